//! Possible problems of a label. None of them ends the reading: a problem is a result, typed, with its position.
//!
//! Severity and remedies are not defined here; the rules that use a problem define them.

use std::fmt;

use plumb_geometry::{Bytes, group_digits, plural};

/// Why one copy of a label is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nothing there says that it is a label.
    #[error("no signature of a label")]
    NoSignature,
    /// The disk ends before.
    #[error("LBA {lba} is beyond the end: the disk has {}", plural(*disk_lbas, "block"))]
    BeyondEnd {
        /// First block asked for.
        lba: u64,
        /// Blocks of the disk.
        disk_lbas: u64,
    },
    /// The disk does not give it.
    #[error("byte {} cannot be read: {error}", at.0)]
    Unreadable {
        /// Place of the read.
        at: Bytes,
        /// The error of the system.
        error: String,
    },
    /// A wrong checksum.
    #[error("checksum of the {over}: found {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// The data that the checksum covers.
        over: &'static str,
        /// The stored value.
        found: u32,
        /// The one that was computed.
        expected: u32,
    },
    /// A field with a value that cannot be.
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

/// One of the copies of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The one at the beginning.
    Primary,
    /// One of those at the end.
    Backup,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Primary => "primary",
            Self::Backup => "backup",
        })
    }
}

/// Identifies a partition or slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId {
    /// From 1: place in the table of a GPT or MBR, 5 and on for logical partitions; of a slice its number plus 1.
    pub number: u32,
    /// Solaris's number of it, from 0; `None` if it is not a slice for Solaris.
    pub slice: Option<u32>,
    /// The MBR partition that contains a slice; `None` for a part of the disk itself.
    pub within: Option<u32>,
}

impl PartId {
    /// A partition of the disk itself.
    #[must_use]
    pub const fn partition(number: u32) -> Self {
        Self {
            number,
            slice: None,
            within: None,
        }
    }

    /// A slice, numbered from 0, of the disk or of an MBR partition.
    #[must_use]
    pub const fn slice(slice: u32, within: Option<u32>) -> Self {
        Self {
            number: slice.saturating_add(1),
            slice: Some(slice),
            within,
        }
    }
}

impl fmt::Display for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.slice, self.within) {
            (Some(slice), Some(within)) => write!(f, "slice {slice} of partition {within}"),
            (Some(slice), None) => write!(f, "slice {slice}"),
            (None, _) => write!(f, "partition {}", self.number),
        }
    }
}

/// Something noteworthy about a label. Addresses are logical blocks of the label's own sector size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The label was written for sectors of another size than the device has: systems do not find it.
    SectorSizeMismatch {
        /// Sector size that the label was written for.
        label_bytes: u32,
        /// Sector size of the device.
        device_bytes: u32,
    },
    /// A copy that cannot be used.
    BrokenCopy {
        /// The copy.
        role: Role,
        /// Its position, or its expected position.
        lba: u64,
        /// Its fault.
        fault: Fault,
    },
    /// No copy can be used; nothing is known of the partitions.
    NoGoodCopy,
    /// The backup is good but not at the end: the disk has grown since.
    StrandedBackup {
        /// Its position.
        found_lba: u64,
        /// Its expected position.
        last_lba: u64,
    },
    /// The backup is in the last sector but one, where old Solaris on x86 put it (or the disk grew by one sector).
    LegacyBackup {
        /// Its position.
        found_lba: u64,
    },
    /// The primary names another place for the backup than the one where a good one was found.
    BackupElsewhere {
        /// The position that the primary names.
        named_lba: u64,
        /// Its position.
        found_lba: u64,
    },
    /// Both copies are good and say different things. The primary is used.
    CopiesDiffer {
        /// The field that differs.
        field: &'static str,
    },
    /// The label was made for a larger disk: the disk shrank, or the image is cut off.
    DeviceSmaller {
        /// Blocks that the label needs.
        label_lbas: u64,
        /// Blocks that there are.
        device_lbas: u64,
    },
    /// A GPT without a protective MBR: Linux does not use it.
    NoProtectiveMbr,
    /// A protective MBR that also names partitions of its own.
    HybridMbr,
    /// Another label is in use, and this much of a GPT is left. `good` says whether a copy of it is whole.
    LeftoverGpt {
        /// Whether a copy can be read to its end.
        good: bool,
    },
    /// The first sector cannot be read.
    FirstSector {
        /// The error of the system.
        fault: Fault,
    },
    /// Two partitions share blocks.
    Overlap {
        /// The one that begins first.
        first: PartId,
        /// The one that begins before the other ends.
        second: PartId,
    },
    /// A partition reaches over the blocks that the label allows for partitions.
    OutsideUsable {
        /// The partition.
        part: PartId,
    },
    /// A partition reaches over the end of the disk.
    BeyondEnd {
        /// The partition.
        part: PartId,
        /// First block after it.
        end_lba: u64,
        /// Blocks of the disk.
        device_lbas: u64,
    },
    /// A partition that ends before it begins, or is beyond 64 bits of bytes. It is not listed.
    Backwards {
        /// The partition.
        part: PartId,
        /// Its first block.
        first_lba: u64,
        /// Its last block.
        last_lba: u64,
    },
    /// A partition that reaches over the one that it belongs into: a logical one over the extended, a slice over the
    /// Solaris partition.
    OutsideParent {
        /// The partition.
        part: PartId,
        /// Its container.
        parent: PartId,
    },
    /// The chain of logical partitions returns to an earlier link.
    EbrLoop {
        /// The link that was there before.
        lba: u64,
    },
    /// The chain of logical partitions ends in something that is no link of it.
    BrokenEbr {
        /// The expected position of the link.
        lba: u64,
        /// Its fault.
        fault: Fault,
    },
    /// A link of the chain is outside the extended partition. It is followed.
    EbrOutsideExtended {
        /// Its position.
        lba: u64,
    },
    /// The chain of logical partitions was not followed further.
    EbrLimit {
        /// Links that were read.
        links: usize,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SectorSizeMismatch {
                label_bytes,
                device_bytes,
            } => {
                write!(
                    f,
                    "label was written for logical blocks of {label_bytes} bytes, the device has those of {device_bytes}"
                )
            }
            Self::BrokenCopy { role, lba, fault } => {
                write!(f, "{role} label at LBA {lba}: {fault}")
            }
            Self::NoGoodCopy => f.write_str("no copy of the label can be used"),
            Self::StrandedBackup {
                found_lba,
                last_lba,
            } => {
                write!(
                    f,
                    "backup label is at LBA {found_lba}, expected the last one, {last_lba}: the disk has grown"
                )
            }
            Self::LegacyBackup { found_lba } => {
                write!(
                    f,
                    "backup label is at LBA {found_lba}, the last but one, as old Solaris put it"
                )
            }
            Self::BackupElsewhere {
                named_lba,
                found_lba,
            } => {
                write!(
                    f,
                    "primary label names a backup at LBA {named_lba}, a good one is at LBA {found_lba}"
                )
            }
            Self::CopiesDiffer { field } => {
                write!(f, "primary and backup label differ in the {field}")
            }
            Self::DeviceSmaller {
                label_lbas,
                device_lbas,
            } => {
                write!(
                    f,
                    "label was made for {}, the device has {}",
                    plural(*label_lbas, "block"),
                    group_digits(*device_lbas)
                )
            }
            Self::NoProtectiveMbr => f.write_str("there is no protective MBR before the GPT"),
            Self::HybridMbr => f.write_str("the protective MBR names partitions of its own"),
            Self::LeftoverGpt { good: true } => {
                f.write_str("a whole GPT is left beside the label in use")
            }
            Self::LeftoverGpt { good: false } => {
                f.write_str("remains of a GPT are left beside the label in use")
            }
            Self::FirstSector { fault } => write!(f, "first sector: {fault}"),
            Self::Overlap { first, second } => write!(f, "{second} begins before {first} ends"),
            Self::OutsideUsable { part } => write!(f, "{part} reaches over the usable range"),
            Self::BeyondEnd {
                part,
                end_lba,
                device_lbas,
            } => {
                write!(
                    f,
                    "{part} ends at LBA {end_lba}, the device has {}",
                    plural(*device_lbas, "block")
                )
            }
            Self::Backwards {
                part,
                first_lba,
                last_lba,
            } => {
                write!(
                    f,
                    "{part} cannot be: found first LBA {first_lba} and last LBA {last_lba}"
                )
            }
            Self::OutsideParent { part, parent } => write!(f, "{part} reaches over {parent}"),
            Self::EbrLoop { lba } => {
                write!(f, "chain of logical partitions comes back to LBA {lba}")
            }
            Self::BrokenEbr { lba, fault } => {
                write!(f, "chain of logical partitions ends at LBA {lba}: {fault}")
            }
            Self::EbrOutsideExtended { lba } => {
                write!(
                    f,
                    "link of the chain of logical partitions at LBA {lba} is outside of the extended one"
                )
            }
            Self::EbrLimit { links } => {
                write!(
                    f,
                    "chain of logical partitions was left after {}",
                    plural(*links as u64, "link")
                )
            }
        }
    }
}
