//! A virtual disk read through the tables of its file.

use std::io;

use plumb_geometry::gcd;
use plumb_label::Disk;

/// Entries of a table that are read for positions: 16 TiB of blocks of 2 MiB.
pub(super) const ENTRIES_MAX: u64 = 8 << 20;

/// How the place of a block is found.
pub(super) enum Map {
    /// All in one run.
    Run { start: u64 },
    /// One table, here as places in the file; `None` for zeros.
    Table {
        block: u64,
        places: Vec<Option<u64>>,
    },
    /// Two tables of qcow2, read as they are needed.
    Qcow2(super::qcow2::Tables),
}

/// The content of a place of the virtual disk.
#[derive(Clone, Copy)]
pub(super) enum ImagePlace {
    At(u64),
    Zeros,
    Elsewhere(&'static str),
}

impl Map {
    /// The position of a byte, and the number of bytes that follow it there.
    fn place(&self, file: &dyn Disk, at: u64) -> io::Result<(ImagePlace, u64)> {
        match self {
            Map::Run { start } => Ok((ImagePlace::At(start.saturating_add(at)), u64::MAX)),
            Map::Table { block, places } => {
                let within = at % block;
                let found = usize::try_from(at / block)
                    .ok()
                    .and_then(|block| places.get(block))
                    .copied()
                    .flatten();
                let place = found.map_or(ImagePlace::Zeros, |start| {
                    ImagePlace::At(start.saturating_add(within))
                });
                Ok((place, block - within))
            }
            Map::Qcow2(tables) => tables.place(file, at),
        }
    }
}

impl Map {
    /// A byte of data or of a table beyond the end of the file. Only the part of the last block that the disk has must
    /// exist.
    pub(super) fn beyond(&self, file: &dyn Disk, size: u64) -> Option<u64> {
        let end = file.size_bytes();
        match self {
            Map::Run { start } => (start.saturating_add(size) > end).then_some(end),
            Map::Table { block, places } => {
                let left =
                    (0..).map(|number: u64| size.saturating_sub(number.saturating_mul(*block)));
                let blocks = places
                    .iter()
                    .zip(left)
                    .filter_map(|(place, left)| Some(((*place)?, left)));
                let mut missing =
                    blocks.filter_map(|(place, left)| first_missing(place, left.min(*block), end));
                missing.next()
            }
            Map::Qcow2(tables) => tables.beyond(file, size),
        }
    }
}

/// The first of these bytes beyond the end of the file.
pub(super) fn first_missing(place: u64, len: u64, end: u64) -> Option<u64> {
    (len > 0 && place.saturating_add(len) > end).then_some(place.max(end))
}

/// The disk that a guest sees, read in the file of its host.
pub struct Mapped<'a> {
    file: &'a dyn Disk,
    map: Map,
    size: u64,
}

impl<'a> Mapped<'a> {
    pub(super) fn new(file: &'a dyn Disk, map: Map, size: u64) -> Self {
        Self { file, map, size }
    }
}

impl Disk for Mapped<'_> {
    fn size_bytes(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset_bytes.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        while done < buffer.len() {
            let (place, follow) = self.map.place(self.file, offset_bytes + done as u64)?;
            let len = usize::try_from(follow)
                .unwrap_or(usize::MAX)
                .clamp(1, buffer.len() - done);
            let piece = &mut buffer[done..done + len];
            match place {
                ImagePlace::At(at) => self.read_or_zeros(at, piece)?,
                ImagePlace::Zeros => piece.fill(0),
                ImagePlace::Elsewhere(why) => {
                    return Err(io::Error::new(io::ErrorKind::Unsupported, why));
                }
            }
            done += len;
        }
        Ok(())
    }
}

impl Mapped<'_> {
    /// The last block of a file may be shorter than a block: unwritten bytes are zero.
    fn read_or_zeros(&self, at: u64, piece: &mut [u8]) -> io::Result<()> {
        let there = self.file.size_bytes().saturating_sub(at);
        let len = piece
            .len()
            .min(usize::try_from(there).unwrap_or(usize::MAX));
        piece[len..].fill(0);
        self.file.read_at(at, &mut piece[..len])
    }
}

/// The largest step that fits all of these places from the first one on, and its offset. It holds for further blocks
/// only if `pitch`, the distance of two new ones, is a multiple.
pub(super) fn step(places: &[Option<u64>], block: u64, pitch: u64) -> (u64, u64) {
    let mut starts = places.iter().flatten();
    let Some(first) = starts.next() else {
        return (gcd(block, pitch).max(1), 0);
    };
    let others = starts.fold((gcd(block, pitch), 1), |(step, count), start| {
        (gcd(step, start.abs_diff(*first)), count + 1)
    });
    let step = others.0.max(1);
    (step, first % step)
}
