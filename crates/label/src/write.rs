//! The writes to a disk, in an order that leaves one good copy of the label at every moment.

use plumb_geometry::Bytes;

use crate::problem::Role;

/// One step of writing a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteStep {
    /// Whole sectors to be written.
    Write {
        /// Its position on the disk.
        at: Bytes,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// All writes before it have to be on the medium before one after it is begun.
    Flush,
}

impl WriteStep {
    pub(crate) fn write(lba: u64, sector_bytes: u32, bytes: Vec<u8>) -> Result<Self, EncodeError> {
        let at = lba
            .checked_mul(u64::from(sector_bytes))
            .filter(|at| at.checked_add(bytes.len() as u64).is_some())
            .ok_or(EncodeError::Beyond64Bits { lba })?;
        Ok(Self::Write {
            at: Bytes(at),
            bytes,
        })
    }
}

/// The copies of a label in the order of writing: first those that the disk can do without.
pub(crate) fn in_order(
    primary: Vec<WriteStep>,
    backup: Vec<WriteStep>,
    in_use: Role,
) -> Vec<WriteStep> {
    let (mut steps, then) = match in_use {
        Role::Primary => (backup, primary),
        Role::Backup => (primary, backup),
    };
    if !steps.is_empty() && !then.is_empty() {
        steps.push(WriteStep::Flush);
    }
    steps.extend(then);
    steps
}

/// Lays the writes of `steps` into an image in memory, as a disk would have them in the end.
///
/// # Errors
/// [`EncodeError::OutsideDisk`] when the image is too small.
pub fn apply(steps: &[WriteStep], image: &mut [u8]) -> Result<(), EncodeError> {
    let size_bytes = image.len() as u64;
    for step in steps {
        let WriteStep::Write { at, bytes } = step else {
            continue;
        };
        let place = usize::try_from(at.0)
            .ok()
            .and_then(|start| image.get_mut(start..start.checked_add(bytes.len())?));
        let outside = EncodeError::OutsideDisk {
            at: *at,
            len: Bytes(bytes.len() as u64),
            disk: Bytes(size_bytes),
        };
        place.ok_or(outside)?.copy_from_slice(bytes);
    }
    Ok(())
}

/// The reason why a label cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A place that no byte address reaches.
    #[error("the byte address of LBA {lba} exceeds 64 bits: expected an address on the disk")]
    Beyond64Bits {
        /// The address.
        lba: u64,
    },
    /// A part of the label would be beyond the end of the disk.
    #[error("{len} at byte {} are beyond the end: expected a disk larger than {disk}; move the backup to the end first", at.0)]
    OutsideDisk {
        /// Its position.
        at: Bytes,
        /// Its length.
        len: Bytes,
        /// Size of the disk.
        disk: Bytes,
    },
    /// Two parts of the label, or one and a partition, would overlap.
    #[error("{what} at LBA {lba} overlaps {other}: expected a place of its own")]
    InTheWay {
        /// The part that was to be written.
        what: &'static str,
        /// Its first block.
        lba: u64,
        /// The other one.
        other: String,
    },
    /// A field with a value that the format does not allow.
    #[error("{field}: found {found}, expected {expected}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        found: u64,
        /// The allowed value.
        expected: &'static str,
    },
}
