//! Disk labels read and written: GPT and Solaris EFI, MBR with logical partitions, Solaris VTOC of SPARC and x86.
//!
//! [`read`] reads a [`Disk`] and returns one view of its label, with every [`Problem`]. Broken parts are reported and
//! skipped: a backup replaces a broken primary, and the rest of a chain its lost end. The [`Detail`] of a label has all
//! its bytes; changed or not it can be written again, as [`WriteStep`]s in an order that leaves a good copy at every
//! moment.
//!
//! Left out: writing to a disk, and other formats in a disk's first sectors (file systems, LVM, BSD labels). A disk
//! without a label is `None`; other crates read its bytes.
//!
//! - [`gpt`], [`mbr`], [`vtoc`]: the codecs, with the source of each layout
//! - [`label`], [`problem`]: the results
//! - [`disk`], [`mod@write`]: input and output

#![forbid(unsafe_code)]

mod bytes;
mod checks;
pub mod disk;
pub mod gpt;
pub mod guid;
pub mod label;
pub mod mbr;
pub mod problem;
mod read;
pub mod vtoc;
pub mod write;

pub use disk::{Disk, FileDisk};
pub use gpt::Gpt;
pub use guid::{Guid, GuidError};
pub use label::{Detail, Label, LabelCopy, LabelKind, Partition, PartitionPlace, PartitionType};
pub use mbr::Mbr;
pub use problem::{Fault, PartId, Problem, Role};
pub use read::{ReadError, read};
pub use vtoc::{SparcVtoc, X86Vtoc};
pub use write::{EncodeError, WriteStep, apply};

/// Sizes that a logical sector can have: powers of two from 512 bytes to 64 KiB, the most that Linux takes.
const SECTOR_BYTES: std::ops::RangeInclusive<u32> = 512..=65_536;

/// Whether a label can be written for sectors of this size.
pub(crate) fn check_sector_bytes(sector_bytes: u32) -> Result<(), EncodeError> {
    if SECTOR_BYTES.contains(&sector_bytes) && sector_bytes.is_power_of_two() {
        return Ok(());
    }
    let expected = "a power of two from 512 to 65536";
    Err(EncodeError::Field {
        field: "sector size",
        found: sector_bytes.into(),
        expected,
    })
}
