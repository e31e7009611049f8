//! The records of all CPUs of one recording as one sequence, by time.
//!
//! Ties go to the lower CPU, then to the lower sequence number. One stream after the other is followed as
//! long as its next record is the earliest of all: I/O tends to come in runs of one CPU, so that the heap of
//! the others is rarely touched.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::record::RawRecord;
use super::shape::RecordShape;
use super::stream::Stream;
use crate::error::{Damage, Error};

/// Time, CPU and sequence of a stream's next record, and the stream.
type Next = Reverse<(u128, usize)>;

/// A record with its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedRecord<'records> {
    /// The record.
    pub record: RawRecord,
    /// Its data.
    pub data: &'records [u8],
    /// CPU that its file is named for; `None` for a merged file.
    pub file_cpu: Option<u32>,
}

/// Every record of a recording, all actions, merged by time.
pub struct Records {
    streams: Vec<Stream>,
    others: BinaryHeap<Next>,
    /// The stream whose record is the current one.
    current: Option<usize>,
    started: bool,
}

fn key(record: &RawRecord) -> u128 {
    u128::from(record.time_ns.cast_unsigned()) << 64
        | u128::from(record.cpu) << 32
        | u128::from(record.sequence)
}

impl Records {
    /// Merges streams of one layout.
    #[must_use]
    pub fn new(streams: Vec<Stream>) -> Records {
        Records {
            streams,
            others: BinaryHeap::new(),
            current: None,
            started: false,
        }
    }

    /// Layout of the records.
    #[must_use]
    pub fn shape(&self) -> RecordShape {
        self.streams.first().map_or(
            RecordShape {
                version: 7,
                big_endian: false,
            },
            Stream::shape,
        )
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When a file goes on in another layout than it began.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<MergedRecord<'_>>, Error> {
        if !self.started {
            self.start()?;
        } else if let Some(current) = self.current {
            self.follow(current)?;
        }
        Ok(self
            .current
            .and_then(|current| self.streams.get(current))
            .map(|stream| MergedRecord {
                record: stream.record,
                data: stream.data(),
                file_cpu: stream.cpu,
            }))
    }

    fn start(&mut self) -> Result<(), Error> {
        self.started = true;
        for (index, stream) in self.streams.iter_mut().enumerate() {
            if stream.advance()? {
                self.others.push(Reverse((key(&stream.record), index)));
            }
        }
        self.current = self.others.pop().map(|Reverse((_, index))| index);
        Ok(())
    }

    /// Goes on in the current stream, or in the one whose record is now the earliest.
    #[inline]
    fn follow(&mut self, current: usize) -> Result<(), Error> {
        let stream = &mut self.streams[current];
        if !stream.advance()? {
            self.current = self.others.pop().map(|Reverse((_, index))| index);
            return Ok(());
        }
        let mine = (key(&stream.record), current);
        if let Some(mut earliest) = self.others.peek_mut()
            && earliest.0 < mine
        {
            self.current = Some(earliest.0.1);
            *earliest = Reverse(mine);
        }
        Ok(())
    }

    /// Damaged places so far, how many there were, and bytes passed over.
    #[must_use]
    pub fn damages(&self) -> (Vec<Damage>, u64, u64) {
        let places = self
            .streams
            .iter()
            .flat_map(|stream| stream.damages.iter().cloned())
            .collect();
        let damaged = self.streams.iter().map(|stream| stream.damaged).sum();
        (
            places,
            damaged,
            self.streams.iter().map(|stream| stream.skipped_bytes).sum(),
        )
    }
}
