//! Why something is not done to a disk.

use std::io;

use plumb_label::{Problem, ReadError};
use plumb_quoting::Command;
use plumb_relocate::labels::mend::is_of_copies;
use plumb_relocate::labels::{ChangeError, EditError, MendError, SavedLabelError};
use plumb_relocate::preflight::Unfinished;
use plumb_sys::SysError;
use thiserror::Error;

use super::unfinished;
use crate::failure::Failure;

/// A refusal, or something that went wrong; each names the disk.
#[derive(Debug, Error)]
pub enum FixError {
    /// Somebody uses it.
    #[error("{device}: nothing was written: {}", users.join("; "))]
    InUse {
        /// The disk.
        device: String,
        /// The users.
        users: Vec<String>,
    },
    /// Something is on it.
    #[error("{device}: nothing was written: found {}; expected an empty disk", found.join("; "))]
    NotEmpty {
        /// The disk.
        device: String,
        /// The contents.
        found: Vec<String>,
    },
    /// Something is in a partition that would go away.
    #[error(
        "{device}: nothing was written: found {}; expected nothing in partitions that the old label does not have there",
        found.join("; ")
    )]
    WouldHide {
        /// The disk.
        device: String,
        /// The contents.
        found: Vec<String>,
    },
    /// The old label would be written into a partition that is in use.
    #[error("{device}: nothing was written: found a place at byte {at} in a partition that is in use, expected places of a label: {}", users.join("; "))]
    InPartition {
        /// The disk.
        device: String,
        /// The first byte there.
        at: u64,
        /// The users of the partition.
        users: Vec<String>,
    },
    /// A move has stopped there in its middle.
    #[error("{device}: nothing was written: {}", unfinished::text(unfinished))]
    Unfinished {
        /// The disk.
        device: String,
        /// The required name of `--ignore-marker`.
        name: String,
        /// The evidence.
        unfinished: Box<Unfinished>,
    },
    /// Its blocks cannot be written one by one.
    #[error(
        "{device}: has zones that the host has to write in order: neither its label nor its data can be changed in place"
    )]
    Zoned {
        /// The disk.
        device: String,
    },
    /// A kind of label that is read and changed, and not made.
    #[error(
        "{device}: nothing was written: a new SMI label of x86 is not made, since no label that Solaris has written was at \
         hand to hold it against"
    )]
    NotMade {
        /// The disk.
        device: String,
    },
    /// A part of a disk was named.
    #[error("{device} is a {found}: expected a whole disk, or an image of one")]
    NotADisk {
        /// The name given.
        device: String,
        /// Its kind.
        found: &'static str,
    },
    /// A label that has to be repaired before any other change.
    #[error("{device}: the label has a problem: {problem}")]
    LabelProblem {
        /// The disk.
        device: String,
        /// The problem.
        problem: Problem,
    },
    /// There is no label.
    #[error("{device}: found no label, expected one of GPT, MBR or Solaris")]
    NoLabel {
        /// The disk.
        device: String,
    },
    /// It is not known whether there is one.
    #[error("{device}: its label cannot be read")]
    Label {
        /// The disk.
        device: String,
        /// Why.
        source: ReadError,
    },
    /// The label cannot have the partition there.
    #[error("{device}: nothing was written: the label cannot have the partition there")]
    Edit {
        /// The disk.
        device: String,
        /// Why.
        source: EditError,
    },
    /// The label cannot be repaired.
    #[error("{device}: nothing was written: the label cannot be repaired")]
    Mend {
        /// The disk.
        device: String,
        /// Why.
        source: MendError,
    },
    /// A write failed, or the content is not the expected one.
    #[error("{device}: {}", if *is_begun { "the label was written in part" } else { "nothing was written" })]
    Change {
        /// The disk.
        device: String,
        /// Whether something was written.
        is_begun: bool,
        /// Why.
        source: ChangeError,
    },
    /// The label is on the disk, and the kernel goes by another one.
    #[error(
        "{device}: the kernel does not take the partitions of the label that is on the disk now"
    )]
    NotTold {
        /// The disk.
        device: String,
        /// Why.
        source: SysError,
    },
    /// The disk cannot be read.
    #[error("{device}: cannot be read")]
    Read {
        /// The disk.
        device: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A plan that does not match the disk.
    #[error("{device}: nothing was written: found {found}, expected {expected}, as the plan says")]
    OtherThanPlanned {
        /// The disk.
        device: String,
        /// The value found.
        found: String,
        /// The value of the plan.
        expected: String,
    },
    /// The old label cannot be saved, or read back.
    #[error(transparent)]
    Saved(#[from] SavedLabelError),
    /// Another disk than the one whose label was saved.
    #[error("{device}: found {found}, expected {expected}: the label was saved of another disk")]
    OtherDisk {
        /// The disk.
        device: String,
        /// The value found.
        found: String,
        /// The expected value.
        expected: String,
    },
}

impl From<FixError> for Failure {
    fn from(error: FixError) -> Failure {
        let failure = Failure::failed(&error);
        match &error {
            FixError::Saved(SavedLabelError::Io { path, source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Failure::missing(format!("{path}: found no such file or directory, expected a saved label"))
            }
            FixError::LabelProblem { device, problem } => match problem {
                Problem::SectorSizeMismatch { label_bytes, .. } => failure.with_help(format!(
                    "attach the disk so that its sectors are of {label_bytes} bytes, as where its label was made; one that is \
                     empty gets another label by relabel --new-label"
                )),
                problem if is_of_copies(problem) => {
                    failure.with_command(Command::new("plumb fix backup-label").path(device))
                }
                _ => failure.with_help("repair the label with the tool that made it: fdisk, sgdisk or parted"),
            },
            FixError::Unfinished { device, name, unfinished } => {
                let status = Command::new("plumb fix status").path(device);
                match unfinished.entry {
                    Some(_) => failure.with_command(status),
                    // Any program can write such a mark.
                    None => failure.with_commands([
                        ("show the move", status),
                        (
                            "if no move of this disk is unfinished, pass over the mark",
                            crate::typed::again().option("--ignore-marker", name),
                        ),
                    ]),
                }
            }
            FixError::OtherThanPlanned { .. } => {
                failure.with_help("make a new plan for this disk as it is now: plumb plan partition")
            }
            FixError::WouldHide { .. } => failure.with_help(
                "data that was written to them since would be hidden; --force goes back all the same, and saves the present label",
            ),
            FixError::NotEmpty { .. } => failure.with_help(
                "only empty disks are relabelled: data stay where they are, and their label would not",
            ),
            FixError::NotMade { .. } => failure.with_help(
                "fdisk -B and format of Solaris make one; relabel then lets its slices begin on the grid, and undo goes back",
            ),
            _ => failure,
        }
    }
}

/// As [`Failure::of_system`].
pub fn of_system(error: SysError) -> Failure {
    Failure::of_system(&error)
}
