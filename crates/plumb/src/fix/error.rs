//! Why something is not done to a disk.

use std::io;

use plumb_label::{Problem, ReadError};
use plumb_relocate::labels::{ChangeError, EditError, MendError, SavedLabelError};
use plumb_sys::SysError;
use thiserror::Error;

use crate::failure::Failure;

/// A refusal, or something that went wrong; each names the disk.
#[derive(Debug, Error)]
pub enum FixError {
    /// Somebody uses it.
    #[error("{device}: nothing was written: {}", users.join("; "))]
    InUse {
        /// The disk.
        device: String,
        /// Who.
        users: Vec<String>,
    },
    /// Something is on it.
    #[error("{device}: nothing was written: found {}; expected an empty disk", found.join("; "))]
    NotEmpty {
        /// The disk.
        device: String,
        /// What.
        found: Vec<String>,
    },
    /// A part of a disk was named.
    #[error("{device} is a {found}: expected a whole disk, or an image of one")]
    NotADisk {
        /// What was named.
        device: String,
        /// What it is.
        found: &'static str,
    },
    /// A label that has to be mended before another thing is done to it.
    #[error("{device}: the label has a problem: {problem}")]
    LabelProblem {
        /// The disk.
        device: String,
        /// Which.
        problem: Problem,
    },
    /// There is no label.
    #[error("{device}: found no label, expected one of GPT, MBR or Solaris")]
    NoLabel {
        /// The disk.
        device: String,
    },
    /// It is not known whether there is one.
    #[error("{device}")]
    Label {
        /// The disk.
        device: String,
        /// Why.
        source: ReadError,
    },
    /// The label cannot have the partition there.
    #[error("{device}")]
    Edit {
        /// The disk.
        device: String,
        /// Why.
        source: EditError,
    },
    /// The label cannot be mended.
    #[error("{device}")]
    Mend {
        /// The disk.
        device: String,
        /// Why.
        source: MendError,
    },
    /// A write failed, or what is there is not what it should be.
    #[error("{device}: {}", if *is_begun { "the label was written in part" } else { "nothing was written" })]
    Change {
        /// The disk.
        device: String,
        /// Whether something was written.
        is_begun: bool,
        /// Why.
        source: ChangeError,
    },
    /// The disk cannot be read.
    #[error("{device}: cannot be read")]
    Read {
        /// The disk.
        device: String,
        /// What the system said.
        source: io::Error,
    },
    /// The old label cannot be saved, or read back.
    #[error(transparent)]
    Saved(#[from] SavedLabelError),
    /// Another disk than the one whose label was saved.
    #[error("{device}: found {found}, expected {expected}: the label was saved of another disk")]
    OtherDisk {
        /// The disk.
        device: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
}

impl From<FixError> for Failure {
    fn from(error: FixError) -> Failure {
        let failure = Failure::failed(&error);
        match &error {
            FixError::LabelProblem { device, .. } => {
                failure.with_command(format!("plumb fix backup-label {device}"))
            }
            FixError::NotEmpty { .. } => failure.with_help(
                "only empty disks are relabelled: data stay where they are, and their label would not",
            ),
            _ => failure,
        }
    }
}

/// What the kernel refuses for lack of a right goes away as root.
pub fn of_system(error: SysError) -> Failure {
    match &error {
        SysError::NotPermitted { .. } => {
            let typed: Vec<String> = std::env::args().skip(1).collect();
            let command = plumb_plan::shell::words(typed.iter().map(String::as_str));
            Failure::not_permitted(&error, format!("sudo plumb {command}"))
        }
        _ => Failure::failed(&error),
    }
}
