//! The data of the windows that come next, read while those before them are written.
//!
//! No window shares a byte with the source of a later one, so nothing changes under the read. Failed reads ahead are
//! repeated when they are due: they must not stop the steps before. The sums of the data are computed during the next
//! read.

use std::ops::Range;

use plumb_sys::AlignedBuffer;

use super::read::{read_around, read_into};
use super::windows::{MoveWindow, Windows};
use super::write::{DiskWriter, TargetDisk};
use super::{Move, MoveError};
use crate::disk::{Disk, JournalStore};
use crate::journal::{Journal, Sums};

/// Parts of a read end on it, so that the memory of the next one begins where direct I/O wants it.
const PART_GRAIN: usize = 4096;

/// Data that are read together: of one window, or of several adjacent ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    /// Their position on the disk.
    at: u64,
    len: usize,
    /// The blocks that they are written to, or were. The memory has this length.
    blocks: Range<u64>,
    /// The start of the data in it.
    start: usize,
    /// How long the windows are whose sums are wanted, by their places.
    summed: Vec<usize>,
    /// Whether that is the order in which they are written.
    is_ascending: bool,
}

/// Data that were read.
pub(super) struct Due {
    pub(super) bytes: AlignedBuffer,
    /// Of windows that are copied straight, in the order in which they are written.
    pub(super) sums: Vec<u64>,
    /// Blocks of the disk that cannot be read, with zeros in their place.
    pub(super) holes: Vec<Range<u64>>,
}

/// From the first byte to the last of adjacent ranges.
fn cover<'a>(ranges: impl Iterator<Item = &'a Range<u64>>) -> Range<u64> {
    ranges
        .cloned()
        .reduce(|all, range| all.start.min(range.start)..all.end.max(range.end))
        .unwrap_or(0..0)
}

/// The position of a disk range in memory of data that begin at `base`.
pub(super) fn within(base: u64, range: &Range<u64>) -> Range<usize> {
    (range.start - base) as usize..(range.end - base) as usize
}

impl Reading {
    /// The source of windows.
    pub(super) fn to_copy(windows: &Windows, group: &[MoveWindow]) -> Self {
        let moved = cover(group.iter().map(|window| &window.moved));
        let blocks = cover(group.iter().map(|window| &window.blocks));
        let start = (moved.start - blocks.start) as usize;
        let straight = group.iter().filter(|window| !window.is_journalled);
        let mut summed: Vec<usize> = straight
            .map(|window| (window.moved.end - window.moved.start) as usize)
            .collect();
        let places = || group.iter().map(|window| window.moved.start);
        let is_ascending = places().is_sorted();
        if !is_ascending {
            summed.reverse();
        }
        let at = windows.source_of(&moved).start;
        Self {
            at,
            len: (moved.end - moved.start) as usize,
            blocks,
            start,
            summed,
            is_ascending,
        }
    }

    /// Adjacent places to compare.
    pub(super) fn to_compare<'a>(places: impl Iterator<Item = &'a Range<u64>>) -> Self {
        let place = cover(places);
        let len = (place.end - place.start) as usize;
        Self {
            at: place.start,
            len,
            blocks: place,
            start: 0,
            summed: Vec::new(),
            is_ascending: true,
        }
    }

    /// The disk position of the first byte of the memory.
    pub(super) fn base(&self) -> u64 {
        self.blocks.start
    }
}

/// A reading that was begun.
#[derive(Debug)]
pub(super) struct Ahead {
    reading: Reading,
    bytes: AlignedBuffer,
    /// How much was read.
    done: usize,
    sums: Sums,
    /// Of how much the sums were taken.
    summed: usize,
}

/// The next part to read, and the part read before.
struct ReadPart<'a> {
    at: u64,
    memory: &'a mut [u8],
    before: &'a [u8],
    sums: &'a mut Sums,
}

impl Ahead {
    fn new(reading: Reading, mut bytes: AlignedBuffer) -> Self {
        bytes.resize((reading.blocks.end - reading.blocks.start) as usize);
        let sums = Sums::new(reading.summed.clone());
        Self {
            reading,
            bytes,
            done: 0,
            sums,
            summed: 0,
        }
    }

    /// One of the remaining parts. The sums of the part before it have to be computed.
    fn part(&mut self, parts_left: usize) -> Option<ReadPart<'_>> {
        let left = self.reading.len - self.done;
        let len = left
            .div_ceil(parts_left.max(1))
            .next_multiple_of(PART_GRAIN)
            .min(left);
        if len == 0 {
            return None;
        }
        let at = self.reading.at + self.done as u64;
        let (before, behind) = self.bytes[self.reading.start..].split_at_mut(self.done);
        let part = ReadPart {
            at,
            memory: &mut behind[..len],
            before: &before[self.summed..],
            sums: &mut self.sums,
        };
        (self.summed, self.done) = (self.done, self.done + len);
        Some(part)
    }

    /// All of it was read.
    fn due(mut self) -> Due {
        let data = &self.bytes[self.reading.start..][..self.reading.len];
        self.sums.add(&data[self.summed..]);
        let mut sums = self.sums.finish();
        if !self.reading.is_ascending {
            sums.reverse();
        }
        Due {
            bytes: self.bytes,
            sums,
            holes: Vec::new(),
        }
    }

    /// All of it was read again from the start, around unreadable blocks.
    fn due_around<D: Disk>(mut self, disk: &mut TargetDisk<D>) -> Result<Due, MoveError> {
        let data = &mut self.bytes[self.reading.start..][..self.reading.len];
        let holes = read_around(disk, self.reading.at, data)?;
        self.sums = Sums::new(self.reading.summed.clone());
        self.summed = 0;
        Ok(Due {
            holes,
            ..self.due()
        })
    }
}

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// The data that are due: the part that was not read ahead is read now.
    pub(super) fn data_of(&mut self, reading: &Reading) -> Result<Due, MoveError> {
        let mut due = match self.ahead.take() {
            Some(ahead) if ahead.reading == *reading => ahead,
            _ => Ahead::new(reading.clone(), std::mem::take(&mut self.spare)),
        };
        let Some(part) = due.part(1) else {
            return Ok(due.due());
        };
        part.sums.add(part.before);
        match read_into(&mut self.disk, part.at, part.memory) {
            Ok(()) => Ok(due.due()),
            Err(_) => due.due_around(&mut self.disk),
        }
    }

    /// From now on this is read [`meanwhile`](Self::meanwhile).
    pub(super) fn read_ahead(&mut self, reading: Reading) {
        self.ahead = Some(Ahead::new(reading, std::mem::take(&mut self.spare)));
    }

    /// Does something with disk and journal, and at the same time reads one of the remaining parts ahead.
    pub(super) fn meanwhile<T>(
        &mut self,
        parts_left: usize,
        work: impl FnOnce(&mut DiskWriter<'_, D>, &mut Journal<J>) -> T,
    ) -> T {
        let Some(ReadPart {
            at,
            memory,
            before,
            sums,
        }) = self.ahead.as_mut().and_then(|ahead| ahead.part(parts_left))
        else {
            return work(&mut self.disk.writer(), &mut self.journal);
        };
        let journal = &mut self.journal;
        let (done, read) = self.disk.read_while(at, memory, |disk| {
            let done = work(disk, journal);
            sums.add(before);
            done
        });
        if read.is_err() {
            self.ahead = None;
        }
        done
    }
}
