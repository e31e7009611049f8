//! A GPT back to bytes, in an order that leaves one whole copy on the disk at every moment.

use plumb_geometry::Bytes;

use crate::gpt::header::{ARRAY_BYTES_MAX, GptHeader, HEADER_BYTES, is_entry_size};
use crate::gpt::{Entry, Gpt, HeaderCopy};
use crate::problem::Role;
use crate::write::{EncodeError, WriteStep, in_order};

impl Gpt {
    /// Both copies, each its array and then its header, with a flush between: first the one that the disk can do
    /// without, which is the backup unless that is `in_use` because the primary is broken. The caller flushes once
    /// more at the end. Sector 0 is left alone.
    ///
    /// # Errors
    /// When the parts do not fit the disk or each other, or a field has a value that cannot be.
    pub fn encode(&self, in_use: Role) -> Result<Vec<WriteStep>, EncodeError> {
        self.check()?;
        let primary = self.encode_copy(&self.primary, self.backup.header_lba)?;
        let backup = self.encode_copy(&self.backup, self.primary.header_lba)?;
        Ok(in_order(primary, backup, in_use))
    }

    /// As [`Gpt::encode`], and after a flush the protective MBR: for a label where none was.
    ///
    /// # Errors
    /// As [`Gpt::encode`].
    pub fn encode_with_mbr(&self, in_use: Role) -> Result<Vec<WriteStep>, EncodeError> {
        let mut steps = self.encode(in_use)?;
        if let Some(mbr) = &self.mbr {
            steps.extend([
                WriteStep::Flush,
                WriteStep::write(0, self.sector_bytes, mbr.encode(self.sector_bytes)?)?,
            ]);
        }
        Ok(steps)
    }

    fn encode_copy(
        &self,
        copy: &HeaderCopy,
        alternate_lba: u64,
    ) -> Result<Vec<WriteStep>, EncodeError> {
        let mut array: Vec<u8> = self
            .entries
            .iter()
            .flat_map(|entry| entry.encode())
            .collect();
        let header = GptHeader {
            revision: self.revision,
            header_bytes: copy.header_bytes,
            reserved: copy.reserved,
            my_lba: copy.header_lba,
            alternate_lba,
            first_usable_lba: self.first_usable_lba,
            last_usable_lba: self.last_usable_lba,
            disk_guid: self.disk_guid,
            array_lba: copy.array_lba,
            // Bounded by `check`.
            entry_count: self.entries.len() as u32,
            entry_bytes: self.entry_bytes,
            array_crc: crc32fast::hash(&array),
            rest: copy.header_rest.clone(),
        };
        array.extend_from_slice(&copy.array_rest);
        let write = |lba, bytes| WriteStep::write(lba, self.sector_bytes, bytes);
        Ok(vec![
            write(copy.array_lba, array)?,
            write(copy.header_lba, header.encode())?,
        ])
    }

    fn check(&self) -> Result<(), EncodeError> {
        crate::check_sector_bytes(self.sector_bytes)?;
        let error = |field, found, expected| {
            Err(EncodeError::Field {
                field,
                found,
                expected,
            })
        };
        if !is_entry_size(self.entry_bytes) {
            return error(
                "SizeOfPartitionEntry",
                self.entry_bytes.into(),
                "128 times a power of two",
            );
        }
        let array_bytes = (self.entries.len() as u64).saturating_mul(self.entry_bytes.into());
        if array_bytes > ARRAY_BYTES_MAX {
            return error(
                "NumberOfPartitionEntries",
                self.entries.len() as u64,
                "at most 4 MiB of entries",
            );
        }
        let entry_rest = (self.entry_bytes - crate::gpt::ENTRY_BYTES) as usize;
        if let Some(entry) = self
            .entries
            .iter()
            .find(|entry| entry.rest.len() != entry_rest)
        {
            return error(
                "bytes after an entry's name",
                entry.rest.len() as u64,
                "the rest that the size of entries leaves",
            );
        }
        if self.primary.header_lba != 1 {
            return error("block of the primary header", self.primary.header_lba, "1");
        }
        if self.last_usable_lba < self.first_usable_lba {
            return error(
                "LastUsableLBA",
                self.last_usable_lba,
                "FirstUsableLBA or more",
            );
        }
        for copy in [&self.backup, &self.primary] {
            self.check_copy(copy, array_bytes)?;
        }
        self.check_places()
    }

    fn check_copy(&self, copy: &HeaderCopy, array_bytes: u64) -> Result<(), EncodeError> {
        let error = |field, found, expected| {
            Err(EncodeError::Field {
                field,
                found,
                expected,
            })
        };
        if !(HEADER_BYTES..=self.sector_bytes).contains(&copy.header_bytes) {
            return error(
                "HeaderSize",
                copy.header_bytes.into(),
                "92 bytes to a sector",
            );
        }
        if copy.header_rest.len() as u64 != u64::from(self.sector_bytes - HEADER_BYTES) {
            return error(
                "bytes after the header's fields",
                copy.header_rest.len() as u64,
                "the rest of the sector",
            );
        }
        let array_rest = self.array_lbas() * u64::from(self.sector_bytes) - array_bytes;
        if copy.array_rest.len() as u64 != array_rest {
            return error(
                "bytes after the entries",
                copy.array_rest.len() as u64,
                "the rest of the last sector",
            );
        }
        Ok(())
    }

    /// No part overlaps another, sector 0 or a partition, or ends beyond the disk. A primary that names a wrong place
    /// for a lost backup must not cause a write into data.
    fn check_places(&self) -> Result<(), EncodeError> {
        let parts = [
            ("sector 0", 0, 1),
            ("primary header", self.primary.header_lba, 1),
            ("primary array", self.primary.array_lba, self.array_lbas()),
            ("backup array", self.backup.array_lba, self.array_lbas()),
            ("backup header", self.backup.header_lba, 1),
        ];
        for (index, &(what, lba, lbas)) in parts.iter().enumerate() {
            let Some(end) = lba.checked_add(lbas).filter(|&end| end <= self.disk_lbas) else {
                let sector_bytes = u64::from(self.sector_bytes);
                let bytes = |lbas: u64| Bytes(lbas.saturating_mul(sector_bytes));
                return Err(EncodeError::OutsideDisk {
                    at: bytes(lba),
                    len: bytes(lbas),
                    disk: bytes(self.disk_lbas),
                });
            };
            let shares = |&&(_, other, other_lbas): &&(&str, u64, u64)| {
                lba < other + other_lbas && other < end
            };
            if let Some((other, ..)) = parts[..index].iter().find(shares) {
                return Err(EncodeError::InTheWay {
                    what,
                    lba,
                    other: (*other).to_owned(),
                });
            }
            if let Some(number) = self.partition_in(lba, end) {
                return Err(EncodeError::InTheWay {
                    what,
                    lba,
                    other: format!("partition {number}"),
                });
            }
        }
        Ok(())
    }
    /// Number of the first partition with blocks from `lba` to before `end`.
    fn partition_in(&self, lba: u64, end: u64) -> Option<usize> {
        let shares = |entry: &Entry| {
            entry.is_used()
                && (lba.max(entry.first_lba)..end)
                    .contains(&entry.last_lba.min(end.saturating_sub(1)))
        };
        self.entries.iter().position(shares).map(|index| index + 1)
    }
}
