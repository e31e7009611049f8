//! Master boot records, with the chain of sectors that describes logical partitions.
//!
//! Addresses are logical blocks of the device, of 512 bytes or 4096: the label does not state the size, so the device
//! has to. CHS addresses are kept unchanged and never read.

use std::collections::HashSet;

use crate::disk::Blocks;
use crate::problem::{Fault, Problem};
use crate::write::{EncodeError, WriteStep};

mod sector;
pub mod types;
mod view;

pub use sector::{MbrEntry, MbrSector};
pub(crate) use view::read;

/// Links of a chain of logical partitions that are followed. Linux stops at 256 partitions of a disk; a chain longer
/// than this is made to keep a reader busy.
pub const EBR_LINKS_MAX: usize = 4_096;

/// A link of the chain of logical partitions, an extended boot record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ebr {
    /// Its block on the disk. A logical partition in it counts from here.
    pub lba: u64,
    /// The extended partition it belongs to, as index of [`MbrSector::entries`]. Links to the next count from there.
    pub extended: usize,
    /// Its bytes.
    pub sector: MbrSector,
}

impl Ebr {
    /// The entries that name logical partitions; one, as a rule.
    pub fn logical(&self) -> impl Iterator<Item = &MbrEntry> {
        self.entries()
            .filter(|entry| entry.is_used() && !types::is_extended(entry.kind))
    }

    /// The entry that leads to the next link.
    #[must_use]
    pub fn next(&self) -> Option<&MbrEntry> {
        self.entries()
            .find(|entry| entry.is_used() && types::is_extended(entry.kind))
    }

    /// The entries that mean something. Some systems leave garbage in the others
    /// (`parse_extended` in Linux's `block/partitions/msdos.c`).
    fn entries(&self) -> impl Iterator<Item = &MbrEntry> {
        self.sector.entries[..2].iter()
    }
}

/// An MBR with all links of its chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mbr {
    /// Logical sector in bytes: the unit of every address here.
    pub sector_bytes: u32,
    /// Whole logical blocks of the disk.
    pub disk_lbas: u64,
    /// Sector 0.
    pub first: MbrSector,
    /// Links in the order of their chains.
    pub ebrs: Vec<Ebr>,
}

impl Mbr {
    /// An MBR without partitions.
    ///
    /// # Errors
    /// [`EncodeError::Field`] when the sector size is none.
    pub fn new(sector_bytes: u32, disk_lbas: u64) -> Result<Self, EncodeError> {
        crate::check_sector_bytes(sector_bytes)?;
        Ok(Self {
            sector_bytes,
            disk_lbas,
            first: MbrSector::empty(sector_bytes),
            ebrs: Vec::new(),
        })
    }

    /// The chains from their ends to their beginnings, flush, sector 0: at every moment, no link on the disk leads to
    /// one that is not written yet. The caller flushes once more at the end.
    ///
    /// # Errors
    /// If a link is outside the disk or on sector 0, or a sector has a wrong size.
    pub fn encode(&self) -> Result<Vec<WriteStep>, EncodeError> {
        crate::check_sector_bytes(self.sector_bytes)?;
        let mut steps = Vec::new();
        for ebr in self.ebrs.iter().rev() {
            if ebr.lba == 0 || ebr.lba >= self.disk_lbas {
                let (found, expected) = (ebr.lba, "a block of the disk after the first");
                return Err(EncodeError::Field {
                    field: "block of a logical partition's link",
                    found,
                    expected,
                });
            }
            steps.push(WriteStep::write(
                ebr.lba,
                self.sector_bytes,
                ebr.sector.encode(self.sector_bytes)?,
            )?);
        }
        if !steps.is_empty() {
            steps.push(WriteStep::Flush);
        }
        steps.push(WriteStep::write(
            0,
            self.sector_bytes,
            self.first.encode(self.sector_bytes)?,
        )?);
        Ok(steps)
    }

    /// The logical partition of this index, 0 for number 5: its link, as index of [`Mbr::ebrs`], and its entry there.
    #[must_use]
    pub fn logical_mut(&mut self, index: usize) -> Option<(usize, &mut MbrEntry)> {
        let links = self.ebrs.iter_mut().enumerate();
        let mut logical = links.flat_map(|(at, ebr)| {
            let entries = ebr.sector.entries[..2].iter_mut();
            let of_data =
                entries.filter(|entry| entry.is_used() && !types::is_extended(entry.kind));
            of_data.map(move |entry| (at, entry))
        });
        logical.nth(index)
    }

    /// Reads the chains that belong to a first sector.
    pub(crate) fn read(blocks: Blocks<'_>, first: MbrSector) -> (Self, Vec<Problem>) {
        let mut chains = Chains {
            blocks,
            seen: HashSet::new(),
            ebrs: Vec::new(),
            problems: Vec::new(),
        };
        for (index, entry) in first.entries.iter().enumerate() {
            if entry.is_used() && types::is_extended(entry.kind) {
                chains.follow(index, entry);
            }
        }
        let mbr = Self {
            sector_bytes: blocks.sector_bytes,
            disk_lbas: blocks.count(),
            first,
            ebrs: chains.ebrs,
        };
        (mbr, chains.problems)
    }
}

struct Chains<'a> {
    blocks: Blocks<'a>,
    seen: HashSet<u64>,
    ebrs: Vec<Ebr>,
    problems: Vec<Problem>,
}

impl Chains<'_> {
    /// Follows one chain to its end, or to an invalid link.
    fn follow(&mut self, extended: usize, container: &MbrEntry) {
        let base = u64::from(container.first);
        let range = base..base + u64::from(container.count);
        let mut lba = base;
        loop {
            if !self.seen.insert(lba) {
                return self.problems.push(Problem::EbrLoop { lba });
            }
            if self.ebrs.len() >= EBR_LINKS_MAX {
                return self.problems.push(Problem::EbrLimit {
                    links: self.ebrs.len(),
                });
            }
            if !range.contains(&lba) {
                self.problems.push(Problem::EbrOutsideExtended { lba });
            }
            let sector = match self.link_at(lba) {
                Ok(sector) => sector,
                Err(fault) => return self.problems.push(Problem::BrokenEbr { lba, fault }),
            };
            self.ebrs.push(Ebr {
                lba,
                extended,
                sector,
            });
            match self.ebrs.last().and_then(Ebr::next) {
                // Both are 32 bits wide.
                Some(next) => lba = base + u64::from(next.first),
                None => return,
            }
        }
    }

    fn link_at(&self, lba: u64) -> Result<MbrSector, Fault> {
        if lba == 0 {
            let expected = "a block after the first";
            return Err(Fault::Field {
                field: "block of a logical partition's link",
                found: 0,
                expected,
            });
        }
        MbrSector::decode_link(&self.blocks.read(lba, 1)?)
    }
}
