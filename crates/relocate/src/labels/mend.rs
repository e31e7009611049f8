//! A GPT with a broken, stranded or missing copy: rewritten from the good one.
//!
//! No partition is touched, so that it may be done while they are in use.

use plumb_label::mbr::{MbrSector, types};
use plumb_label::write::WriteStep;
use plumb_label::{Detail, EncodeError, Gpt, Label, Problem, Role};

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The label as it will be.
    pub gpt: Gpt,
    /// The writes, the copy that is not in use first.
    pub steps: Vec<WriteStep>,
    /// The problems that are gone then.
    pub mends: Vec<Problem>,
    /// Those that stay: of partitions, not of copies.
    pub stays: Vec<Problem>,
}

/// The reason why a label cannot be repaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MendError {
    /// Only a GPT has two copies that hold each other's place.
    #[error(
        "found a label of kind {found}, expected a GPT: other labels have no second copy to repair from"
    )]
    NotGpt {
        /// The kind found.
        found: plumb_label::LabelKind,
    },
    /// Both copies are broken.
    #[error(
        "no copy of the label can be used: only a saved label, or a search for file systems, can help"
    )]
    NoGoodCopy,
    /// The label counts in other blocks than the disk.
    #[error(
        "{problem}: the label is whole, the disk changed; correct the disk's sector size instead"
    )]
    SectorSize {
        /// The problem.
        problem: Problem,
    },
    /// The error of the codec.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// The writes that make both copies of a GPT good and place them right. Empty if both are.
///
/// # Errors
/// When there is no GPT, no good copy of it, or no room for one.
pub fn mend(label: &Label) -> Result<Mended, MendError> {
    let is_size = |problem: &&Problem| matches!(problem, Problem::SectorSizeMismatch { .. });
    if let Some(problem) = label.problems.iter().find(is_size) {
        return Err(MendError::SectorSize {
            problem: problem.clone(),
        });
    }
    if label.problems.contains(&Problem::NoGoodCopy) {
        return Err(MendError::NoGoodCopy);
    }
    let (Some(Detail::Gpt(gpt)), Some(in_use)) = (&label.detail, label.in_use()) else {
        return Err(MendError::NotGpt { found: label.kind });
    };
    let (mends, stays): (Vec<Problem>, Vec<Problem>) =
        label.problems.iter().cloned().partition(is_of_copies);
    let mut gpt = (**gpt).clone();
    if mends.is_empty() {
        return Ok(Mended {
            gpt,
            steps: Vec::new(),
            mends,
            stays,
        });
    }
    let has_no_mbr = mends.contains(&Problem::NoProtectiveMbr);
    if has_no_mbr {
        gpt.mbr = Some(with_protective(
            gpt.mbr.take(),
            gpt.sector_bytes,
            gpt.disk_lbas,
        ));
    }
    gpt.move_backup_to_end()?;
    // The protective entry covers the disk, which may have grown; its sector is written where it differs.
    let steps = gpt.encode_with_mbr(in_use)?;
    Ok(Mended {
        gpt,
        steps,
        mends,
        stays,
    })
}

/// Problems that go away when both copies are written where they belong.
#[must_use]
pub fn is_of_copies(problem: &Problem) -> bool {
    matches!(
        problem,
        Problem::BrokenCopy {
            role: Role::Primary | Role::Backup,
            ..
        } | Problem::StrandedBackup { .. }
            | Problem::LegacyBackup { .. }
            | Problem::BackupElsewhere { .. }
            | Problem::CopiesDiffer { .. }
            | Problem::DeviceSmaller { .. }
            | Problem::NoProtectiveMbr
    )
}

/// Boot code and disk signature of the sector that is there stay.
fn with_protective(found: Option<MbrSector>, sector_bytes: u32, disk_lbas: u64) -> MbrSector {
    let protective = MbrSector::protective(sector_bytes, disk_lbas);
    match found {
        Some(found)
            if found
                .entries
                .iter()
                .all(|entry| !entry.is_used() || entry.kind == types::PROTECTIVE) =>
        {
            MbrSector {
                entries: protective.entries,
                ..found
            }
        }
        _ => protective,
    }
}
