//! The choice of a disk's label, if several have left something on it.

use plumb_geometry::Bytes;

use crate::disk::{Blocks, Disk};
use crate::gpt;
use crate::label::Label;
use crate::mbr::{self, MbrSector};
use crate::problem::{Fault, Problem};
use crate::vtoc;

/// Sector size of a disk if it is unknown, and of a label that does not state it.
const SECTOR_BYTES_ASSUMED: u32 = 512;

/// Why it is not known whether a disk has a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A place where a label would be cannot be read, and nothing was found elsewhere.
    #[error("cannot tell whether there is a label: byte {} cannot be read: {error}", at.0)]
    Unreadable {
        /// First such place.
        at: Bytes,
        /// The error of the system.
        error: String,
    },
    /// The caller's idea of the device's sector size is none.
    #[error(
        "logical block size of the device: found {found}, expected a power of two from 512 to 65536"
    )]
    SectorBytes {
        /// The value given.
        found: u32,
    },
}

/// Reads the label of a disk; `None` when it has none that is known here.
///
/// `sector_bytes` is the device's logical sector, if the caller knows it. A GPT is found for any sector size, and a
/// mismatch is a problem of the label; other labels do not state it, and are read with this size or 512.
///
/// The order is that of the systems which use the disk. A protective MBR makes the GPT the label; without one a SPARC
/// label or an MBR with partitions is, and a GPT beside it is left over; a GPT alone is the label, if not for Linux.
///
/// # Errors
/// [`ReadError`] when nothing was found and a read has failed: that is not the same as no label.
pub fn read(disk: &dyn Disk, sector_bytes: Option<u32>) -> Result<Option<Label>, ReadError> {
    if let Some(found) = sector_bytes.filter(|&size| crate::check_sector_bytes(size).is_err()) {
        return Err(ReadError::SectorBytes { found });
    }
    let gpt = gpt::read::find(disk, sector_bytes);
    let blocks = Blocks::new(disk, sector_bytes.unwrap_or(SECTOR_BYTES_ASSUMED));
    let first = match blocks.read(0, 1) {
        Ok(first) => first,
        // Shorter than a sector.
        Err(Fault::BeyondEnd { .. }) => return Ok(None),
        Err(fault) => return without_first_sector(gpt, fault).map(Some),
    };
    let mbr = MbrSector::decode(&first).ok();
    if mbr.as_ref().is_some_and(MbrSector::is_protective) {
        // If no trace of a GPT was found, its expected position is by the device's own sector size.
        let is_hybrid = mbr.is_some_and(|mbr| mbr.is_hybrid());
        let mut label = gpt.into_label();
        label
            .problems
            .extend(is_hybrid.then_some(Problem::HybridMbr));
        return Ok(Some(label));
    }
    if let Some(label) = vtoc::read_sparc(blocks, &first) {
        return Ok(Some(beside(label, &gpt)));
    }
    let mbr =
        mbr.filter(|mbr| !mbr.is_without_partitions() || !mbr.is_boot_sector_of_a_file_system());
    match mbr {
        Some(mbr) if !mbr.is_without_partitions() => Ok(Some(beside(mbr::read(blocks, mbr), &gpt))),
        _ if gpt.is_something() => {
            let mut label = gpt.into_label();
            label.problems.push(Problem::NoProtectiveMbr);
            Ok(Some(label))
        }
        Some(mbr) => Ok(Some(mbr::read(blocks, mbr))),
        None => gpt
            .unreadable()
            .map_or(Ok(None), |fault| Err(unreadable(fault))),
    }
}

/// Only a GPT has anything elsewhere.
fn without_first_sector(gpt: gpt::read::FoundGpt, fault: Fault) -> Result<Label, ReadError> {
    if !gpt.is_good() {
        return Err(unreadable(&fault));
    }
    let mut label = gpt.into_label();
    label.problems.push(Problem::FirstSector { fault });
    Ok(label)
}

fn unreadable(fault: &Fault) -> ReadError {
    let (at, error) = match fault {
        Fault::Unreadable { at, error } => (*at, error.clone()),
        other => (Bytes(0), other.to_string()),
    };
    ReadError::Unreadable { at, error }
}

/// Notes the remains of a GPT beside the label that counts.
fn beside(mut label: Label, gpt: &gpt::read::FoundGpt) -> Label {
    if gpt.is_something() {
        label.problems.push(Problem::LeftoverGpt {
            good: gpt.is_good(),
        });
    }
    label
}
