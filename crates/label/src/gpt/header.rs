//! The header of a GPT: one sector, little-endian, with a checksum over itself and one over the array.
//!
//! Offsets are those of the UEFI specification, "GPT Header".

use crate::bytes::{field, put};
use crate::disk::Blocks;
use crate::gpt::entry::ENTRY_BYTES;
use crate::guid::Guid;
use crate::problem::Fault;

/// Signature at byte 0.
pub const SIGNATURE: [u8; 8] = *b"EFI PART";
/// Bytes of the fields that are defined. Solaris writes a HeaderSize of 512, so any up to a sector is taken.
pub const HEADER_BYTES: u32 = 92;
/// Largest array that is read. Linux refuses larger ones too: it is the most that `kmalloc` gives on x86
/// (`is_gpt_valid` in `block/partitions/efi.c`).
pub const ARRAY_BYTES_MAX: u64 = 4 << 20;

/// Fields of one header. Those that both copies share are here too; [`crate::gpt::Gpt`] has them once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GptHeader {
    pub revision: u32,
    pub header_bytes: u32,
    pub reserved: u32,
    pub my_lba: u64,
    pub alternate_lba: u64,
    pub first_usable_lba: u64,
    pub last_usable_lba: u64,
    pub disk_guid: Guid,
    pub array_lba: u64,
    pub entry_count: u32,
    pub entry_bytes: u32,
    pub array_crc: u32,
    /// From byte 92 to the end of the sector.
    pub rest: Vec<u8>,
}

impl GptHeader {
    /// Decodes the header at `lba`.
    pub(crate) fn decode(sector: &[u8], lba: u64) -> Result<Self, Fault> {
        if field(sector, 0) != SIGNATURE {
            return Err(Fault::NoSignature);
        }
        let le32 = |at| u32::from_le_bytes(field(sector, at));
        let le64 = |at| u64::from_le_bytes(field(sector, at));
        let header_bytes = le32(12);
        let summed = usize::try_from(header_bytes)
            .ok()
            .and_then(|end| sector.get(..end));
        let Some(summed) = summed.filter(|_| header_bytes >= HEADER_BYTES) else {
            return Err(fault(
                "HeaderSize",
                header_bytes.into(),
                "92 bytes to a sector",
            ));
        };
        let (found, expected) = (le32(16), header_crc(summed));
        if found != expected {
            return Err(Fault::Checksum {
                over: "header",
                found,
                expected,
            });
        }
        let header = Self {
            revision: le32(8),
            header_bytes,
            reserved: le32(20),
            my_lba: le64(24),
            alternate_lba: le64(32),
            first_usable_lba: le64(40),
            last_usable_lba: le64(48),
            disk_guid: Guid(field(sector, 56)),
            array_lba: le64(72),
            entry_count: le32(80),
            entry_bytes: le32(84),
            array_crc: le32(88),
            rest: sector[HEADER_BYTES as usize..].to_vec(),
        };
        header.check(lba).map(|()| header)
    }

    /// The position of the other header, whether or not the checksum of this one is right.
    pub(crate) fn alternate_lba_unchecked(sector: &[u8]) -> Option<u64> {
        (field(sector, 0) == SIGNATURE).then(|| u64::from_le_bytes(field(sector, 32)))
    }

    /// The sector, with its checksum.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut sector = vec![0; HEADER_BYTES as usize];
        put(&mut sector, 0, &SIGNATURE);
        put(&mut sector, 8, &self.revision.to_le_bytes());
        put(&mut sector, 12, &self.header_bytes.to_le_bytes());
        put(&mut sector, 20, &self.reserved.to_le_bytes());
        put(&mut sector, 24, &self.my_lba.to_le_bytes());
        put(&mut sector, 32, &self.alternate_lba.to_le_bytes());
        put(&mut sector, 40, &self.first_usable_lba.to_le_bytes());
        put(&mut sector, 48, &self.last_usable_lba.to_le_bytes());
        put(&mut sector, 56, &self.disk_guid.0);
        put(&mut sector, 72, &self.array_lba.to_le_bytes());
        put(&mut sector, 80, &self.entry_count.to_le_bytes());
        put(&mut sector, 84, &self.entry_bytes.to_le_bytes());
        put(&mut sector, 88, &self.array_crc.to_le_bytes());
        sector.extend_from_slice(&self.rest);
        let crc = header_crc(&sector[..self.header_bytes as usize]);
        put(&mut sector, 16, &crc.to_le_bytes());
        sector
    }

    fn check(&self, lba: u64) -> Result<(), Fault> {
        if self.my_lba != lba {
            return Err(fault(
                "MyLBA",
                self.my_lba,
                "the address of the header itself",
            ));
        }
        if self.last_usable_lba < self.first_usable_lba {
            return Err(fault(
                "LastUsableLBA",
                self.last_usable_lba,
                "FirstUsableLBA or more",
            ));
        }
        if !is_entry_size(self.entry_bytes) {
            return Err(fault(
                "SizeOfPartitionEntry",
                self.entry_bytes.into(),
                "128 times a power of two",
            ));
        }
        if self.array_bytes() > ARRAY_BYTES_MAX {
            return Err(fault(
                "NumberOfPartitionEntries",
                self.entry_count.into(),
                "at most 4 MiB of entries",
            ));
        }
        Ok(())
    }

    fn array_bytes(&self) -> u64 {
        u64::from(self.entry_count) * u64::from(self.entry_bytes)
    }

    /// The array in whole sectors, if its checksum is right, and how many of its bytes are entries.
    pub(crate) fn read_array(&self, blocks: Blocks<'_>) -> Result<(Vec<u8>, usize), Fault> {
        let sectors = self.array_bytes().div_ceil(u64::from(blocks.sector_bytes));
        let array = blocks.read(self.array_lba, sectors)?;
        // Bounded by ARRAY_BYTES_MAX, and the array was read.
        let len = self.array_bytes() as usize;
        let expected = crc32fast::hash(&array[..len]);
        if self.array_crc != expected {
            return Err(Fault::Checksum {
                over: "partition entries",
                found: self.array_crc,
                expected,
            });
        }
        Ok((array, len))
    }
}

/// Whether the specification allows entries of this size.
pub(crate) fn is_entry_size(bytes: u32) -> bool {
    bytes >= ENTRY_BYTES && bytes.is_power_of_two()
}

fn fault(field: &'static str, found: u64, expected: &'static str) -> Fault {
    Fault::Field {
        field,
        found,
        expected,
    }
}

/// CRC-32 of the header with its own field taken as 0.
fn header_crc(header: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[..16]);
    crc.update(&[0; 4]);
    crc.update(&header[20..]);
    crc.finalize()
}
