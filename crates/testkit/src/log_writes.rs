//! Logs of a disk's requests: its writes with their data, and its flushes, in their order. From a log the disk can be
//! restored as at any moment, and as after a power cut at that moment.
//!
//! The format is that of the kernel's dm-log-writes (`drivers/md/dm-log-writes.c`), which QEMU's driver *blklogwrites* keeps
//! as well: a sector with a head, then for each entry a sector that describes it, and its data. Numbers are little-endian.
//!
//! Left out: discards, which are counted and change nothing. A write in progress when a flush is logged counts as
//! flushed: the log does not show it, and this is the milder case.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::Rng;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
/// Forced unit access: durable by itself.
const FUA: u64 = 2;
const DISCARD: u64 = 4;

/// A request to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// First byte on the disk.
    pub at: u64,
    /// Bytes written; 0 for a flush alone, and for a discard.
    pub len_bytes: u64,
    /// Whether all before it was made durable.
    pub is_flush: bool,
    /// Whether its own data were durable when it returned.
    pub is_durable: bool,
    /// The position of its data in the log.
    data_at: u64,
}

impl Entry {
    /// The bytes of the disk that it changed.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.at..self.at + self.len_bytes
    }
}

/// A log that may still grow.
#[derive(Debug)]
pub struct WriteLog {
    file: File,
    sector_bytes: u64,
    entries: Vec<Entry>,
    /// The start of the next entry.
    next: u64,
}

/// The ways to destroy an unflushed write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tear {
    /// Every sector of 512 bytes is old or new.
    Sectors,
    /// Every physical block of this size is old, new, both by sectors, or garbage: bystanders included.
    Blocks(u64),
}

/// The result of a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survived {
    /// Writes that had been flushed.
    pub durable: usize,
    /// Writes that had not, and arrived.
    pub whole: usize,
    /// Those that did not arrive.
    pub lost: usize,
    /// Those that arrived in part.
    pub torn: usize,
}

fn number(bytes: &[u8], index: usize) -> u64 {
    bytes[8 * index..8 * index + 8]
        .try_into()
        .map_or(0, u64::from_le_bytes)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl WriteLog {
    /// Opens a log, and reads its content.
    ///
    /// # Errors
    /// When the file is none, or cannot be read.
    pub fn open(path: &Path) -> io::Result<WriteLog> {
        let file = File::open(path)?;
        let mut head = [0; 28];
        file.read_exact_at(&mut head, 0)?;
        let sector_bytes = u64::from(u32::from_le_bytes([head[24], head[25], head[26], head[27]]));
        if (number(&head, 0), number(&head, 1)) != (MAGIC, VERSION)
            || !sector_bytes.is_power_of_two()
        {
            return Err(invalid("no log of writes of version 1"));
        }
        let mut log = WriteLog {
            file,
            sector_bytes,
            entries: Vec::new(),
            next: sector_bytes,
        };
        log.read_on()?;
        Ok(log)
    }

    /// Reads appended entries. An entry counts once the head counts it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_on(&mut self) -> io::Result<()> {
        let mut head = [0; 24];
        self.file.read_exact_at(&mut head, 0)?;
        let count = number(&head, 2);
        while (self.entries.len() as u64) < count {
            let (mut entry, end) = ([0; 32], self.file.metadata()?.len());
            if self.next + entry.len() as u64 > end {
                // Counted already, while it is still being written.
                break;
            }
            self.file.read_exact_at(&mut entry, self.next)?;
            let (sector, sectors, flags) =
                (number(&entry, 0), number(&entry, 1), number(&entry, 2));
            if (sectors, flags) == (0, 0) {
                // Counted, and truncated before it was written: it was not confirmed, and nothing behind it can be
                // found.
                break;
            }
            let data_at = self.next + self.sector_bytes;
            let len_bytes = if flags & DISCARD == 0 {
                sectors * self.sector_bytes
            } else {
                0
            };
            if data_at + len_bytes > end {
                break;
            }
            self.entries.push(Entry {
                at: sector * self.sector_bytes,
                len_bytes,
                is_flush: flags & FLUSH != 0,
                is_durable: flags & FUA != 0,
                data_at,
            });
            self.next = data_at + len_bytes;
        }
        Ok(())
    }

    /// All entries, in their order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Bytes written by these entries.
    #[must_use]
    pub fn bytes(&self, range: Range<usize>) -> u64 {
        self.entries[range]
            .iter()
            .map(|entry| entry.len_bytes)
            .sum()
    }

    /// The data of an entry.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn data(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        let mut data =
            vec![0; usize::try_from(entry.len_bytes).map_err(|_| invalid("a long entry"))?];
        self.file.read_exact_at(&mut data, entry.data_at)?;
        Ok(data)
    }

    /// Writes the data of these entries to an image of the disk.
    ///
    /// # Errors
    /// When the log cannot be read, or the image not written.
    pub fn replay(&self, range: Range<usize>, image: &File) -> io::Result<()> {
        for entry in self.entries[range]
            .iter()
            .filter(|entry| entry.len_bytes > 0)
        {
            image.write_all_at(&self.data(entry)?, entry.at)?;
        }
        Ok(())
    }

    /// Makes of an image of the disk before its first entry one that a power cut behind entry `end` could have left.
    ///
    /// # Errors
    /// As for [`replay`](Self::replay).
    pub fn cut(&self, end: usize, tear: Tear, rng: &mut Rng, image: &File) -> io::Result<Survived> {
        let flushed = self.entries[..end]
            .iter()
            .rposition(|entry| entry.is_flush)
            .unwrap_or(0);
        self.replay(0..flushed, image)?;
        let is_write = |entry: &&Entry| entry.len_bytes > 0;
        let mut survived = Survived {
            durable: self.entries[..flushed].iter().filter(is_write).count(),
            ..Default::default()
        };
        for entry in self.entries[flushed..end].iter().filter(is_write) {
            let data = self.data(entry)?;
            match (entry.is_durable, rng.below(3)) {
                (true, _) => survived.durable += 1,
                (false, 0) => {
                    survived.lost += 1;
                    continue;
                }
                (false, 1) => survived.whole += 1,
                (false, _) => {
                    survived.torn += 1;
                    torn(entry, &data, tear, rng, image)?;
                    continue;
                }
            }
            image.write_all_at(&data, entry.at)?;
        }
        Ok(survived)
    }
}

const SECTOR: u64 = 512;

/// Writes a part of `data`.
fn torn(entry: &Entry, data: &[u8], tear: Tear, rng: &mut Rng, image: &File) -> io::Result<()> {
    let block = match tear {
        Tear::Sectors => return torn_sectors(&entry.range(), entry.at, data, rng, image),
        Tear::Blocks(block) => block,
    };
    let range = entry.range();
    let size = image.metadata()?.len();
    let mut start = range.start - range.start % block;
    while start < range.end {
        let end = (start + block).min(size);
        let own = start.max(range.start)..end.min(range.end);
        match rng.below(4) {
            0 => {}
            1 => image.write_all_at(part(&own, entry.at, data), own.start)?,
            2 => torn_sectors(&own, entry.at, data, rng, image)?,
            _ => {
                let garbage: Vec<u8> = (start..end).map(|_| rng.next_u64() as u8).collect();
                image.write_all_at(&garbage, start)?;
            }
        }
        start = end;
    }
    Ok(())
}

fn torn_sectors(
    range: &Range<u64>,
    at: u64,
    data: &[u8],
    rng: &mut Rng,
    image: &File,
) -> io::Result<()> {
    let mut start = range.start;
    while start < range.end {
        let own = start..(start + SECTOR).min(range.end);
        if rng.below(2) == 0 {
            image.write_all_at(part(&own, at, data), start)?;
        }
        start = own.end;
    }
    Ok(())
}

fn part<'a>(range: &Range<u64>, at: u64, data: &'a [u8]) -> &'a [u8] {
    &data[(range.start - at) as usize..(range.end - at) as usize]
}
