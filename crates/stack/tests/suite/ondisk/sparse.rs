//! Disks with only some sectors: seeds of the fuzzer, and inputs of properties.
//!
//! Written as the number of sectors (32 bits, little-endian), then for each sector that is not zero its number and its
//! 512 bytes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use plumb_label::Disk;

const SECTOR: usize = 512;

/// A disk of zeros but for these sectors.
#[derive(Clone, Debug, Default)]
pub struct Sparse {
    pub len: u64,
    pub sectors: BTreeMap<u64, [u8; SECTOR]>,
}

impl Sparse {
    /// Any bytes are one.
    #[allow(dead_code, reason = "only read where seeds are")]
    pub fn decode(bytes: &[u8]) -> Sparse {
        let number = |bytes: &[u8]| {
            let mut value = [0; 4];
            value[..bytes.len().min(4)].copy_from_slice(&bytes[..bytes.len().min(4)]);
            u64::from(u32::from_le_bytes(value))
        };
        let (head, rest) = bytes.split_at(bytes.len().min(4));
        let sectors = rest.chunks_exact(4 + SECTOR).filter_map(|record| {
            let (at, sector) = record.split_at(4);
            Some((number(at), sector.try_into().ok()?))
        });
        Sparse {
            len: number(head) * SECTOR as u64,
            sectors: sectors.collect(),
        }
    }

    #[allow(dead_code, reason = "only seeds are written")]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = ((self.len / SECTOR as u64) as u32).to_le_bytes().to_vec();
        for (at, sector) in &self.sectors {
            bytes.extend((*at as u32).to_le_bytes());
            bytes.extend(sector);
        }
        bytes
    }
}

impl Disk for Sparse {
    fn size_bytes(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset_bytes
            .checked_add(buffer.len() as u64)
            .filter(|end| *end <= self.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.fill(0);
        let sector = SECTOR as u64;
        for (number, bytes) in self
            .sectors
            .range(offset_bytes / sector..end.div_ceil(sector))
        {
            let start = number * sector;
            let (from, to) = (start.max(offset_bytes), (start + sector).min(end));
            if from < to {
                let found = &bytes[(from - start) as usize..(to - start) as usize];
                buffer[(from - offset_bytes) as usize..(to - offset_bytes) as usize]
                    .copy_from_slice(found);
            }
        }
        Ok(())
    }
}

/// Keeps in mind which sectors were asked for.
#[allow(dead_code, reason = "only seeds are recorded")]
pub struct Recorder<'a> {
    pub disk: &'a dyn Disk,
    pub read: RefCell<BTreeSet<u64>>,
}

impl Disk for Recorder<'_> {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset_bytes + buffer.len() as u64;
        self.read
            .borrow_mut()
            .extend(offset_bytes / 512..end.div_ceil(512));
        self.disk.read_at(offset_bytes, buffer)
    }
}
