//! GUID partition tables of any sector size, and Solaris's EFI labels, which use them.
//!
//! [`Gpt`] has every byte of both copies, so that writing an unchanged label gives the same bytes. It can hold
//! labels with problems; [`crate::read`] lists those.

use crate::guid::Guid;
use crate::mbr::MbrSector;
use crate::write::EncodeError;

pub mod entry;
mod header;
pub(crate) mod read;
pub mod types;
mod view;
mod write;

pub use entry::{ENTRY_BYTES, Entry};
pub use header::{ARRAY_BYTES_MAX, HEADER_BYTES};

/// Entries of a new table: with 128 bytes each the 16 KiB that the specification asks for at least.
const ENTRIES_NEW: usize = 128;

/// The fields of one copy of the label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderCopy {
    /// Block of the header: 1 for the primary.
    pub header_lba: u64,
    /// First block of the array.
    pub array_lba: u64,
    /// HeaderSize: how many bytes the header's checksum is over, 92 to a sector.
    pub header_bytes: u32,
    /// Bytes 20 to 23, which should be 0.
    pub reserved: u32,
    /// The header's sector from byte 92 on.
    pub header_rest: Vec<u8>,
    /// Bytes after the entries in the last sector of the array; empty if the entries fill it.
    pub array_rest: Vec<u8>,
}

/// A GPT with both its copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpt {
    /// Logical sector in bytes: the unit of every address here.
    pub sector_bytes: u32,
    /// Whole logical blocks of the disk.
    pub disk_lbas: u64,
    /// Revision, 0x00010000.
    pub revision: u32,
    /// GUID of the disk.
    pub disk_guid: Guid,
    /// First block that a partition may have.
    pub first_usable_lba: u64,
    /// Last block that a partition may have.
    pub last_usable_lba: u64,
    /// Size of each entry in bytes: 128·2ⁿ.
    pub entry_bytes: u32,
    /// All entries, in use or not.
    pub entries: Vec<Entry>,
    /// The copy at the beginning.
    pub primary: HeaderCopy,
    /// The copy at the end; if none was good, the place for a new one.
    pub backup: HeaderCopy,
    /// The sector before the header. `None` when it holds no MBR.
    pub mbr: Option<MbrSector>,
}

impl Gpt {
    /// An empty table of 128 entries for a disk of `disk_lbas` blocks, with a protective MBR.
    ///
    /// # Errors
    /// [`EncodeError::Field`] when the sector size is none, or the disk has no room for the table.
    pub fn new(sector_bytes: u32, disk_lbas: u64, disk_guid: Guid) -> Result<Self, EncodeError> {
        crate::check_sector_bytes(sector_bytes)?;
        let array_lbas =
            (ENTRIES_NEW as u64 * u64::from(ENTRY_BYTES)).div_ceil(u64::from(sector_bytes));
        let first_usable_lba = 2 + array_lbas;
        let last_usable_lba = disk_lbas
            .checked_sub(2 + array_lbas)
            .filter(|&last| last >= first_usable_lba);
        let Some(last_usable_lba) = last_usable_lba else {
            let expected = "room for two copies of the table and a block between them";
            return Err(EncodeError::Field {
                field: "blocks of the disk",
                found: disk_lbas,
                expected,
            });
        };
        let copy = |header_lba, array_lba| HeaderCopy {
            header_lba,
            array_lba,
            header_bytes: HEADER_BYTES,
            reserved: 0,
            header_rest: vec![0; (sector_bytes - HEADER_BYTES) as usize],
            array_rest: Vec::new(),
        };
        Ok(Self {
            sector_bytes,
            disk_lbas,
            revision: 0x0001_0000,
            disk_guid,
            first_usable_lba,
            last_usable_lba,
            entry_bytes: ENTRY_BYTES,
            entries: vec![Entry::unused(ENTRY_BYTES); ENTRIES_NEW],
            primary: copy(1, 2),
            backup: copy(disk_lbas - 1, last_usable_lba + 1),
            mbr: Some(MbrSector::protective(sector_bytes, disk_lbas)),
        })
    }

    /// Blocks that the array takes.
    #[must_use]
    pub fn array_lbas(&self) -> u64 {
        (self.entries.len() as u64 * u64::from(self.entry_bytes))
            .div_ceil(u64::from(self.sector_bytes))
    }

    /// Places the backup at the end of the disk and ends the usable range before it: for a disk that grew or shrank.
    /// The protective MBR is extended to cover the disk, unless it is a hybrid one.
    ///
    /// # Errors
    /// [`EncodeError::InTheWay`] if a partition reaches into the place of the backup.
    pub fn move_backup_to_end(&mut self) -> Result<(), EncodeError> {
        let too_small = EncodeError::Field {
            field: "blocks of the disk",
            found: self.disk_lbas,
            expected: "room for the backup",
        };
        let header_lba = self
            .disk_lbas
            .checked_sub(1)
            .ok_or_else(|| too_small.clone())?;
        let array_lba = header_lba
            .checked_sub(self.array_lbas())
            .ok_or_else(|| too_small.clone())?;
        let last_usable_lba = array_lba
            .checked_sub(1)
            .filter(|&last| last >= self.first_usable_lba);
        let last_usable_lba = last_usable_lba.ok_or(too_small)?;
        let in_use = (1u32..)
            .zip(&self.entries)
            .filter(|(_, entry)| entry.is_used());
        if let Some((number, _)) = { in_use }.find(|(_, entry)| entry.last_lba > last_usable_lba) {
            let other = format!("partition {number}");
            return Err(EncodeError::InTheWay {
                what: "backup of the GPT",
                lba: array_lba,
                other,
            });
        }
        (self.backup.header_lba, self.backup.array_lba) = (header_lba, array_lba);
        self.last_usable_lba = last_usable_lba;
        if let Some(mbr) = &mut self.mbr {
            mbr.resize_protective(self.disk_lbas);
        }
        Ok(())
    }
}
