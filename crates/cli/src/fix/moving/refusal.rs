//! The texts for a refusal of the preflight: the sentence, and the advice.

use std::path::Path;

use plumb_quoting::Command;
use plumb_relocate::JournalFile;
use plumb_relocate::labels::kernel::node_of;
use plumb_relocate::preflight::{BootGapEvidence, BootSector, JournalPlaceError, Refusal};

use super::error::{MoveRefused, UNWRITTEN_HELP};
use super::host::name_of;
use crate::failure::Failure;
use crate::fix::error::FixError;
use crate::fix::subject::Subject;

/// A move that was refused, in the names of its user.
pub struct RefusedMove<'a> {
    /// Node of the partition.
    pub partition: String,
    /// Its disk.
    pub subject: &'a Subject,
    /// The command that frees the partition, if there is one.
    pub freed_by: Option<Command>,
    /// File of the journal.
    pub journal: &'a Path,
}

impl RefusedMove<'_> {
    /// The failure to print.
    pub fn failure(&self, refusal: Refusal) -> Failure {
        let (partition, device) = (self.partition.clone(), self.subject.device());
        let refused = |why: &str| MoveRefused::Refused {
            partition: partition.clone(),
            why: why.to_owned(),
        };
        match refusal {
            Refusal::InUse { users } => {
                let failure = Failure::from(MoveRefused::InUse {
                    partition,
                    users,
                });
                match &self.freed_by {
                    Some(command) => failure.with_command(command.clone()),
                    None => failure,
                }
            }
            Refusal::DiskInUse { users } => MoveRefused::InUse {
                partition,
                users,
            }
            .into(),
            Refusal::OpenForWriting { users } => FixError::InUse {
                device,
                users,
            }
            .into(),
            Refusal::ReadOnly => self.subject.read_only().into(),
            Refusal::OrderedZones => FixError::Zoned { device }.into(),
            Refusal::System { source } => Failure::failed(&source),
            Refusal::LabelUnread { source } => FixError::Label { device, source }.into(),
            Refusal::NoLabel => FixError::NoLabel { device }.into(),
            Refusal::LabelProblem { problem } => FixError::LabelProblem {
                device,
                problem,
            }
            .into(),
            Refusal::Unfinished { unfinished } => FixError::Unfinished {
                device,
                name: self.subject.name.clone(),
                unfinished,
            }
            .into(),
            Refusal::NotInLabel => {
                refused("found no such partition in the label of its disk").into()
            }
            Refusal::Extended => refused(
                "it holds the chain of logical partitions, which cannot be kept: move these one by one",
            )
            .into(),
            Refusal::BiosBoot => refused(
                "it holds GRUB's core image, which the boot sector finds by its absolute sector: make a new one and run \
                 grub-install",
            )
            .into(),
            Refusal::SolarisSlice => refused("slices of a Solaris label are not moved").into(),
            Refusal::KernelDisagrees => {
                refused("label and kernel disagree on its position: run partx --update first").into()
            }
            Refusal::GrubCore {
                at,
                is_in_partition,
                boot,
            } => {
                let which = match is_in_partition {
                    true => "in it",
                    false => "in its new place",
                };
                let whose = match boot {
                    BootSector::Disk => "of the disk".to_owned(),
                    BootSector::Partition(part) => format!("of {part}"),
                };
                refused(&format!(
                    "GRUB's core image is {which}, at byte {at}, and the boot sector {whose} finds it there by its sector: let \
                     grub-install put it elsewhere first"
                ))
                .into()
            }
            Refusal::BootGap {
                first_sector,
                last_sector,
                evidence,
            } => MoveRefused::BootGap {
                partition,
                device,
                first: first_sector,
                last: last_sector,
                evidence: match evidence {
                    BootGapEvidence::GrubCore => {
                        "a sector of it begins as GRUB's core image does"
                    }
                    BootGapEvidence::BootCode => {
                        "the boot sector has code, which may load more from there"
                    }
                    BootGapEvidence::Bytes => {
                        "the boot sector has no code, but boards load from sectors of their own"
                    }
                },
            }
            .into(),
            Refusal::LabelMove { source } => MoveRefused::Label { partition, source }.into(),
            Refusal::Unreadable { at, source } => MoveRefused::Unreadable {
                partition,
                at,
                source,
            }
            .into(),
            Refusal::Plan { source } => MoveRefused::NotBegun {
                partition,
                source: source.into(),
            }
            .into(),
            Refusal::OnlyInKernel { numbers } => self.only_in_kernel(&numbers),
            Refusal::NeighbourInUse {
                number,
                users,
            } => MoveRefused::NeighbourInUse {
                partition,
                neighbour: name_of(&node_of(&self.subject.path, number)),
                users,
            }
            .into(),
            Refusal::JournalPlace { source } => self.no_place(&source),
            Refusal::OnlyShown => {
                refused("it was looked at to be shown, and not to be moved").into()
            }
            Refusal::Exchanged => MoveRefused::Exchanged { device }.into(),
            Refusal::Changed { at } => MoveRefused::NotBegun {
                partition,
                source: plumb_relocate::MoveError::Changed { at },
            }
            .into(),
        }
    }

    fn only_in_kernel(&self, numbers: &[u32]) -> Failure {
        let names = numbers
            .iter()
            .map(|number| name_of(&node_of(&self.subject.path, *number)));
        let command = Command::new("partx --delete --nr")
            .arg(numbers.first().copied().unwrap_or_default())
            .path(self.subject.device());
        MoveRefused::OnlyInKernel {
            partition: self.partition.clone(),
            found: names.collect(),
            command: Box::new(command),
        }
        .into()
    }

    fn no_place(&self, source: &JournalPlaceError) -> Failure {
        let failure = Failure::from(MoveRefused::Place {
            path: self.journal.display().to_string(),
            why: source.to_string(),
        });
        match source {
            JournalPlaceError::Exists => {
                let found = JournalFile::open_to_look(self.journal);
                match found.is_ok_and(|mut found| found.is_unwritten()) {
                    true => failure.with_help(format!(
                        "its start is zeros, as of a journal whose move never began: {UNWRITTEN_HELP}"
                    )),
                    false => failure,
                }
            }
            JournalPlaceError::SameDisk { .. } => {
                failure.with_help("give a --journal on another disk, or --journal-same-disk")
            }
            JournalPlaceError::OffBlocks { .. } => failure
                .with_help("give a --journal on a file system that begins on a physical block"),
            _ => failure,
        }
    }
}
