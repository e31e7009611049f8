//! One sector of a master boot record, or of the chain of logical partitions: both have the same shape.

use crate::bytes::{field, is_zero, put};
use crate::mbr::types;
use crate::problem::Fault;
use crate::write::EncodeError;

/// Bytes of the meaningful part, for any sector size.
const MBR_BYTES: usize = 512;
const SIGNATURE: [u8; 2] = [0x55, 0xaa];
/// Place of the first of four entries, and the size of each.
const ENTRIES_AT: usize = 446;
const ENTRY_BYTES: usize = 16;
/// Status of a partition to boot from; any other than this and 0 says that the sector is no MBR.
const ACTIVE: u8 = 0x80;

/// One of the four entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MbrEntry {
    /// 0x80 for the one to boot from, else 0.
    pub status: u8,
    /// Head, sector and cylinder of the first sector, as stored. Nothing but the BIOS uses them.
    pub first_chs: [u8; 3],
    /// Type; 0 in an entry that is not in use.
    pub kind: u8,
    /// The same of the last sector.
    pub last_chs: [u8; 3],
    /// First block: of the disk, or relative to the base of this sector.
    pub first: u32,
    /// Number of blocks.
    pub count: u32,
}

impl MbrEntry {
    /// Whether it names blocks. Linux and its tools take any with a length for a partition, also of type 0.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.count != 0
    }

    fn decode(bytes: &[u8]) -> Self {
        Self {
            status: bytes[0],
            first_chs: field(bytes, 1),
            kind: bytes[4],
            last_chs: field(bytes, 5),
            first: u32::from_le_bytes(field(bytes, 8)),
            count: u32::from_le_bytes(field(bytes, 12)),
        }
    }

    fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = self.status;
        put(&mut bytes, 1, &self.first_chs);
        bytes[4] = self.kind;
        put(&mut bytes, 5, &self.last_chs);
        put(&mut bytes, 8, &self.first.to_le_bytes());
        put(&mut bytes, 12, &self.count.to_le_bytes());
        bytes
    }
}

/// A sector with all its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MbrSector {
    /// Boot code, bytes 0 to 439.
    pub boot_code: [u8; 440],
    /// Signature of the disk, bytes 440 to 443.
    pub disk_signature: u32,
    /// Bytes 444 and 445.
    pub reserved: [u8; 2],
    /// The entries.
    pub entries: [MbrEntry; 4],
    /// Bytes of a larger sector after its first 512.
    pub rest: Vec<u8>,
}

impl MbrSector {
    /// A sector without code and partitions.
    #[must_use]
    pub fn empty(sector_bytes: u32) -> Self {
        Self {
            boot_code: [0; 440],
            disk_signature: 0,
            reserved: [0; 2],
            entries: [MbrEntry::default(); 4],
            rest: vec![0; (sector_bytes as usize).saturating_sub(MBR_BYTES)],
        }
    }

    /// The sector before a GPT: one partition of type 0xEE over the whole disk, or as much as 32 bits can say.
    #[must_use]
    pub fn protective(sector_bytes: u32, disk_lbas: u64) -> Self {
        let mut sector = Self::empty(sector_bytes);
        let first_chs = [0x00, 0x02, 0x00];
        let last_chs = [0xff; 3];
        sector.entries[0] = MbrEntry {
            first_chs,
            kind: types::PROTECTIVE,
            last_chs,
            first: 1,
            ..MbrEntry::default()
        };
        sector.resize_protective(disk_lbas);
        sector
    }

    /// Whether an entry says that a GPT follows.
    #[must_use]
    pub fn is_protective(&self) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.kind == types::PROTECTIVE)
    }

    /// Whether there are partitions beside the protective entry.
    #[must_use]
    pub fn is_hybrid(&self) -> bool {
        self.is_protective()
            && self
                .entries
                .iter()
                .any(|entry| entry.is_used() && entry.kind != types::PROTECTIVE)
    }

    /// Makes a protective entry cover the disk. In a hybrid one its length was chosen by somebody, and stays.
    pub(crate) fn resize_protective(&mut self, disk_lbas: u64) {
        if self.is_hybrid() {
            return;
        }
        if let Some(entry) = self
            .entries
            .iter_mut()
            .find(|entry| entry.kind == types::PROTECTIVE)
        {
            let lbas = disk_lbas.saturating_sub(entry.first.into());
            entry.count = u32::try_from(lbas).unwrap_or(u32::MAX);
        }
    }

    /// Decodes the first sector of a disk.
    pub(crate) fn decode(sector: &[u8]) -> Result<Self, Fault> {
        let decoded = Self::decode_link(sector)?;
        if let Some(entry) = decoded
            .entries
            .iter()
            .find(|entry| !matches!(entry.status, 0 | ACTIVE))
        {
            let found = entry.status.into();
            return Err(Fault::Field {
                field: "status of a partition",
                found,
                expected: "0 or 128",
            });
        }
        Ok(decoded)
    }

    /// Decodes a link of a chain, where the signature is all that can be held against it.
    pub(crate) fn decode_link(sector: &[u8]) -> Result<Self, Fault> {
        if sector.len() < MBR_BYTES || sector[510..MBR_BYTES] != SIGNATURE {
            return Err(Fault::NoSignature);
        }
        let mut entries = [MbrEntry::default(); 4];
        for (entry, bytes) in entries
            .iter_mut()
            .zip(sector[ENTRIES_AT..510].chunks_exact(ENTRY_BYTES))
        {
            *entry = MbrEntry::decode(bytes);
        }
        Ok(Self {
            boot_code: field(sector, 0),
            disk_signature: u32::from_le_bytes(field(sector, 440)),
            reserved: field(sector, 444),
            entries,
            rest: sector[MBR_BYTES..].to_vec(),
        })
    }

    /// The sector's bytes.
    pub(crate) fn encode(&self, sector_bytes: u32) -> Result<Vec<u8>, EncodeError> {
        if MBR_BYTES + self.rest.len() != sector_bytes as usize {
            let (found, expected) = (self.rest.len() as u64, "the sector size less 512");
            return Err(EncodeError::Field {
                field: "bytes after an MBR",
                found,
                expected,
            });
        }
        let mut sector = vec![0; MBR_BYTES];
        put(&mut sector, 0, &self.boot_code);
        put(&mut sector, 440, &self.disk_signature.to_le_bytes());
        put(&mut sector, 444, &self.reserved);
        for (entry, bytes) in self
            .entries
            .iter()
            .zip(sector[ENTRIES_AT..].chunks_exact_mut(ENTRY_BYTES))
        {
            bytes.copy_from_slice(&entry.encode());
        }
        put(&mut sector, 510, &SIGNATURE);
        sector.extend_from_slice(&self.rest);
        Ok(sector)
    }

    /// Whether it is the boot sector of a FAT or NTFS file system: a jump, and a sector size at their position. Such a
    /// sector ends like an MBR, and if its code is short it looks like one without partitions.
    pub(crate) fn is_boot_sector_of_a_file_system(&self) -> bool {
        let jumps = matches!(self.boot_code[0], 0xeb | 0xe9);
        let sector_bytes = u16::from_le_bytes(field(&self.boot_code, 11));
        jumps && sector_bytes.is_power_of_two() && (512..=4096).contains(&sector_bytes)
    }

    /// Whether it says nothing at all.
    pub(crate) fn is_without_partitions(&self) -> bool {
        self.entries.iter().all(|entry| is_zero(&entry.encode()))
    }
}
