//! The file of a label change: the old bytes, for undo, and the new ones, which reveal later writes by others. Drawn
//! byte by byte in `docs/formats/saved-label.md`.
//!
//! It is written and on its medium before the first byte of the label is.

use std::io::{self, Read, Write};
use std::path::Path;

use plumb_geometry::Bytes;
use plumb_sys::{Doubt, FileContent, FileUse, NamedFile, NewFile};

use crate::labels::change::{Change, ChangeError, ChangeStep};

const MAGIC: [u8; 8] = *b"PLUMBLBL";
const VERSION: u16 = 1;
/// Longest file that is read: a label of 4 MiB of entries twice, before and after, and as much again.
const FILE_MAX: u64 = 32 << 20;
/// Longest text in it.
const TEXT_MAX: usize = 4096;
/// A record that is a flush, and not bytes at a place.
const FLUSH_AT: u64 = u64::MAX;

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedLabel {
    /// Size of the disk.
    pub disk_bytes: u64,
    /// Its logical block.
    pub sector_bytes: u32,
    /// When it was saved, seconds since 1970.
    pub unix_s: u64,
    /// The disk's node then.
    pub device: String,
    /// The identity of the disk: its World Wide Name, serial number or backing file; empty if it has none.
    pub identity: String,
    /// The change, in words.
    pub what: String,
    /// The steps.
    pub change: Change,
}

/// Why a file was not written, or is none.
#[derive(Debug, thiserror::Error)]
pub enum SavedLabelError {
    /// The system refuses it.
    #[error("{path}: cannot be {what}")]
    Io {
        /// Its name.
        path: String,
        /// Read or written.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Something else.
    #[error(
        "{path}: found no saved label (its first bytes are others), expected a file that plumb fix has saved"
    )]
    NotOne {
        /// Its name.
        path: String,
    },
    /// Of another version.
    #[error(
        "{path}: found version {found} of a saved label, expected {VERSION}: another release of plumb reads it"
    )]
    Version {
        /// Its name.
        path: String,
        /// The version.
        found: u16,
    },
    /// Cut off or damaged.
    #[error("{path}: byte {at}: found {found}, expected {expected}: nothing of it is used")]
    Damaged {
        /// Its name.
        path: String,
        /// The position.
        at: usize,
        /// The value found.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// Its steps are none.
    #[error("{path}: the steps in it cannot be")]
    Steps {
        /// Its name.
        path: String,
        /// Why.
        source: ChangeError,
    },
}

impl SavedLabel {
    /// The bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend(self.sector_bytes.to_le_bytes());
        bytes.extend(self.disk_bytes.to_le_bytes());
        bytes.extend(self.unix_s.to_le_bytes());
        for text in [&self.device, &self.identity, &self.what] {
            let text = cut(text);
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend((self.change.steps().len() as u32).to_le_bytes());
        for step in self.change.steps() {
            match step {
                ChangeStep::Flush => bytes.extend(FLUSH_AT.to_le_bytes()),
                ChangeStep::Write { at, old, new } => {
                    bytes.extend(at.0.to_le_bytes());
                    // Both have the same length, of a label's part.
                    bytes.extend((new.len() as u32).to_le_bytes());
                    bytes.extend(old);
                    bytes.extend(new);
                }
            }
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Takes a file's bytes apart; `path` is for errors.
    ///
    /// # Errors
    /// When they are no saved label, or not all of one.
    pub fn decode(path: &str, bytes: &[u8]) -> Result<SavedLabel, SavedLabelError> {
        let path = path.to_owned();
        if !bytes.starts_with(&MAGIC) {
            return Err(SavedLabelError::NotOne { path });
        }
        let mut fields = SavedFields {
            path: path.clone(),
            bytes,
            at: MAGIC.len(),
        };
        let version = u16::from_le_bytes(fields.array()?);
        if version != VERSION {
            return Err(SavedLabelError::Version {
                path,
                found: version,
            });
        }
        fields.must_have_its_checksum()?;
        let _reserved: [u8; 2] = fields.array()?;
        let sector_bytes = u32::from_le_bytes(fields.array()?);
        let disk_bytes = u64::from_le_bytes(fields.array()?);
        let unix_s = u64::from_le_bytes(fields.array()?);
        let [device, identity, what] = [fields.text()?, fields.text()?, fields.text()?];
        let count = u32::from_le_bytes(fields.array()?);
        let mut steps = Vec::new();
        for _ in 0..count {
            steps.push(fields.step()?);
        }
        if !fields.bytes[fields.at..].is_empty() {
            return Err(fields.damaged("bytes after the last step", "the checksum there"));
        }
        let change =
            Change::from_steps(steps).map_err(|source| SavedLabelError::Steps { path, source })?;
        Ok(SavedLabel {
            disk_bytes,
            sector_bytes,
            unix_s,
            device,
            identity,
            what,
            change,
        })
    }

    /// Writes a new file, and returns when it and its name are on the medium.
    ///
    /// # Errors
    /// When there is a file of that name, or the system refuses.
    pub fn save(&self, path: &Path) -> Result<(), SavedLabelError> {
        let error = |source| SavedLabelError::Io {
            path: path.display().to_string(),
            what: "written",
            source,
        };
        let mut file = NewFile::create(path, FileContent::DiskData).map_err(error)?;
        file.write_all(&self.encode()).map_err(error)?;
        file.finish().map(drop).map_err(error)
    }

    /// Reads a file, and returns the first reason to distrust its writers.
    ///
    /// # Errors
    /// When it is no regular file, cannot be read, or is no saved label.
    pub fn load(path: &Path) -> Result<(SavedLabel, Option<Doubt>), SavedLabelError> {
        let name = path.display().to_string();
        let error = |source| SavedLabelError::Io {
            path: name.clone(),
            what: "read",
            source,
        };
        let mut bytes = Vec::new();
        let named = NamedFile::open(path, FileUse::Read).map_err(error)?;
        named
            .file()
            .take(FILE_MAX)
            .read_to_end(&mut bytes)
            .map_err(error)?;
        Ok((Self::decode(&name, &bytes)?, named.doubt().cloned()))
    }
}

/// At most as many bytes as a reader takes, at the end of a character.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The rest of a file.
struct SavedFields<'a> {
    path: String,
    bytes: &'a [u8],
    at: usize,
}

impl SavedFields<'_> {
    fn damaged(&self, found: impl Into<String>, expected: &'static str) -> SavedLabelError {
        SavedLabelError::Damaged {
            path: self.path.clone(),
            at: self.at,
            found: found.into(),
            expected,
        }
    }

    fn take(&mut self, len: usize) -> Result<&[u8], SavedLabelError> {
        let end = self
            .at
            .checked_add(len)
            .filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            return Err(self.damaged("its end", "more bytes"));
        };
        let start = std::mem::replace(&mut self.at, end);
        Ok(&self.bytes[start..end])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SavedLabelError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn text(&mut self) -> Result<String, SavedLabelError> {
        let len = u32::from_le_bytes(self.array()?) as usize;
        if len > TEXT_MAX {
            return Err(self.damaged(format!("a text of {len} bytes"), "at most 4096"));
        }
        Ok(String::from_utf8_lossy(self.take(len)?).into_owned())
    }

    fn step(&mut self) -> Result<ChangeStep, SavedLabelError> {
        let at = u64::from_le_bytes(self.array()?);
        if at == FLUSH_AT {
            return Ok(ChangeStep::Flush);
        }
        let len = u32::from_le_bytes(self.array()?) as usize;
        let old = self.take(len)?.to_vec();
        let new = self.take(len)?.to_vec();
        Ok(ChangeStep::Write {
            at: Bytes(at),
            old,
            new,
        })
    }

    /// Holds the last four bytes against all before, and takes them off.
    fn must_have_its_checksum(&mut self) -> Result<(), SavedLabelError> {
        let Some((body, sum)) = self
            .bytes
            .split_last_chunk::<4>()
            .filter(|(body, _)| body.len() >= self.at)
        else {
            return Err(self.damaged("its end", "a checksum"));
        };
        let (found, expected) = (u32::from_le_bytes(*sum), crc32fast::hash(body));
        if found != expected {
            let found =
                format!("the checksum {found:#010x}, and {expected:#010x} over the bytes before");
            self.at = body.len();
            return Err(self.damaged(found, "both to be the same"));
        }
        self.bytes = body;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> SavedLabel {
        let write = |at, old: u8, new: u8| ChangeStep::Write {
            at: Bytes(at),
            old: vec![old; 512],
            new: vec![new; 512],
        };
        let steps = [write(1_048_064, 0, 1), ChangeStep::Flush, write(512, 2, 3)];
        SavedLabel {
            disk_bytes: 1 << 20,
            sector_bytes: 512,
            unix_s: 1_795_341_600,
            device: "/dev/sdb".to_owned(),
            identity: "naa.5000c500a1b2c3d4".to_owned(),
            what: "relabel: partition 1 from byte 17,408 to byte 1,048,576".to_owned(),
            change: Change::from_steps(steps).expect("places apart"),
        }
    }

    #[test]
    fn saved_labels_read_back() {
        let directory = plumb_testkit::temp_dir("saved-label");
        let path = directory.path().join("a.plumb-label");
        saved().save(&path).expect("a new file");
        assert_eq!(SavedLabel::load(&path).expect("the file").0, saved());
        assert!(
            matches!(saved().save(&path), Err(SavedLabelError::Io { .. })),
            "never over another one"
        );
        assert_eq!(SavedLabel::load(&path).expect("the file").0, saved());
    }

    /// The first bytes, laid by hand after the page of the format.
    #[test]
    fn the_bytes_are_those_of_the_page() {
        let bytes = saved().encode();
        let mut head = b"PLUMBLBL\x01\0\0\0\0\x02\0\0".to_vec();
        head.extend([0, 0, 0x10, 0, 0, 0, 0, 0]);
        head.extend(1_795_341_600u64.to_le_bytes());
        head.extend(b"\x08\0\0\0/dev/sdb");
        assert_eq!(bytes[..head.len()], head);
    }

    #[test]
    fn damage_is_never_used() {
        let bytes = saved().encode();
        for len in 0..bytes.len() {
            assert!(
                SavedLabel::decode("cut", &bytes[..len]).is_err(),
                "{len} bytes"
            );
        }
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 0x10;
            assert!(SavedLabel::decode("broken", &broken).is_err(), "byte {at}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(SavedLabel::decode("longer", &longer).is_err());
    }

    /// Lengths in a file with a right checksum are not believed either.
    #[test]
    fn lengths_are_checked() {
        let bytes = saved().encode();
        let body = &bytes[..bytes.len() - 4];
        for at in 32..body.len() - 4 {
            let mut made = body.to_vec();
            made[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            made.extend(crc32fast::hash(&made).to_le_bytes());
            // For any content, reading ends, and allocates no more than the input.
            let _ = SavedLabel::decode("made", &made);
        }
    }
}
