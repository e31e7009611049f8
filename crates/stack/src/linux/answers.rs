//! The answers of a kernel, kept for a check elsewhere.
//!
//! A [`Recorder`] is between a check and the kernel and records each answer; [`Answers`] give them again, refusals
//! included, and have no answer to other questions. Identify pages are bytes of the drive and are kept apart from the
//! rest, which has a written form.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use plumb_sys::{FileExtent, FileExtents, Limits, Mapped, MappedTarget, SysError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::guests::GuestDisk;
use super::kernel::{Identified, Kernel, NoAnswer};

/// The kernel said no, in its words.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{text}")]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// The sentence.
    pub text: String,
    /// The capability that was lacking, as capabilities(7) calls it; `None` where it was something else.
    pub capability: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Said<T> {
    Answer(T),
    Refused(Refusal),
}

/// Start and length in sectors, kind, parameters without keys.
type TargetLine = (u64, u64, String, String);
/// First byte in the file and on the device of the file system, length, flags.
type ExtentLine = (u64, u64, u64, u32);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DmTable {
    name: String,
    uuid: String,
    targets: Vec<TargetLine>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsLine {
    size_bytes: u64,
    logical_block_bytes: u32,
    physical_block_bytes: u32,
    minimum_io_bytes: u32,
    optimal_io_bytes: u32,
    alignment_offset_bytes: i32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extents {
    size_bytes: u64,
    is_cut: bool,
    extents: Vec<ExtentLine>,
}

/// See the module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Answers {
    /// By `MAJOR:MINOR`.
    tables: BTreeMap<String, Said<DmTable>>,
    limits: BTreeMap<String, Said<LimitsLine>>,
    /// By path.
    extents: BTreeMap<String, Said<Extents>>,
    identify_refused: BTreeMap<String, Refusal>,
    guests: Vec<GuestDisk>,
    #[serde(skip)]
    identified: BTreeMap<String, Identified>,
}

impl Answers {
    /// NVMe namespaces that answered, by name.
    pub fn identified(&self) -> impl Iterator<Item = (&str, &Identified)> {
        self.identified
            .iter()
            .map(|(name, pages)| (name.as_str(), pages))
    }

    /// Adds the answer of a namespace.
    pub fn add_identified(&mut self, device: &str, pages: Identified) {
        self.identified.insert(device.to_owned(), pages);
    }

    /// Number of files with known positions.
    #[must_use]
    pub fn files(&self) -> usize {
        self.extents
            .values()
            .filter(|said| matches!(said, Said::Answer(_)))
            .count()
    }
}

fn number(major: u32, minor: u32) -> String {
    format!("{major}:{minor}")
}

fn again<T, U>(said: Option<&Said<T>>, take: impl Fn(&T) -> U) -> Result<U, NoAnswer> {
    match said {
        Some(Said::Answer(answer)) => Ok(take(answer)),
        Some(Said::Refused(refusal)) => Err(refusal.clone().into()),
        None => Err(NoAnswer::Elsewhere),
    }
}

impl Kernel for Answers {
    fn table(&self, major: u32, minor: u32) -> Result<Mapped, NoAnswer> {
        again(self.tables.get(&number(major, minor)), |table| Mapped {
            name: table.name.clone(),
            uuid: table.uuid.clone(),
            targets: table.targets.iter().cloned().map(target).collect(),
        })
    }

    fn identify(&self, device: &str) -> Result<Identified, NoAnswer> {
        match (
            self.identified.get(device),
            self.identify_refused.get(device),
        ) {
            (Some(pages), _) => Ok(pages.clone()),
            (None, Some(refusal)) => Err(refusal.clone().into()),
            (None, None) => Err(NoAnswer::Elsewhere),
        }
    }

    fn limits(&self, device: &str) -> Result<Limits, NoAnswer> {
        again(self.limits.get(device), |line| Limits {
            size_bytes: line.size_bytes,
            logical_block_bytes: line.logical_block_bytes,
            physical_block_bytes: line.physical_block_bytes,
            minimum_io_bytes: line.minimum_io_bytes,
            optimal_io_bytes: line.optimal_io_bytes,
            alignment_offset_bytes: line.alignment_offset_bytes,
        })
    }

    fn extents(&self, path: &str, count_max: usize) -> Result<FileExtents, NoAnswer> {
        again(self.extents.get(path), |found| FileExtents {
            size_bytes: found.size_bytes,
            extents: found
                .extents
                .iter()
                .take(count_max)
                .copied()
                .map(extent)
                .collect(),
            is_cut: found.is_cut || found.extents.len() > count_max,
        })
    }

    fn guests(&self) -> Vec<GuestDisk> {
        self.guests.clone()
    }
}

fn target((start_sectors, len_sectors, kind, params): TargetLine) -> MappedTarget {
    MappedTarget {
        start_sectors,
        len_sectors,
        kind,
        params,
    }
}

fn extent((logical_bytes, physical_bytes, len_bytes, flags): ExtentLine) -> FileExtent {
    FileExtent {
        logical_bytes,
        physical_bytes,
        len_bytes,
        flags,
    }
}

/// Asks another kernel and records its answers.
pub struct Recorder<'k> {
    kernel: &'k dyn Kernel,
    answers: Mutex<Answers>,
}

impl<'k> Recorder<'k> {
    /// Records the answers of this kernel.
    #[must_use]
    pub fn new(kernel: &'k dyn Kernel) -> Recorder<'k> {
        Recorder {
            kernel,
            answers: Mutex::default(),
        }
    }

    /// All answers so far.
    #[must_use]
    pub fn into_answers(self) -> Answers {
        self.answers
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, add: impl FnOnce(&mut Answers)) {
        add(&mut self.answers.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The written form of an answer; `None` where nobody could have answered.
fn written<T, U>(answer: &Result<T, NoAnswer>, form: impl Fn(&T) -> U) -> Option<Said<U>> {
    match answer {
        Ok(answer) => Some(Said::Answer(form(answer))),
        Err(error) => refusal(error).map(Said::Refused),
    }
}

fn refusal(error: &NoAnswer) -> Option<Refusal> {
    match error {
        NoAnswer::Elsewhere => None,
        other => Some(Refusal {
            text: other.to_string(),
            capability: other.capability().map(str::to_owned),
        }),
    }
}

impl NoAnswer {
    /// The capability whose lack is the reason, if that is it.
    #[must_use]
    pub fn capability(&self) -> Option<&str> {
        match self {
            NoAnswer::Kernel(SysError::NotPermitted { capability, .. }) => Some(capability),
            NoAnswer::Refused(refusal) => refusal.capability.as_deref(),
            _ => None,
        }
    }
}

impl Kernel for Recorder<'_> {
    fn table(&self, major: u32, minor: u32) -> Result<Mapped, NoAnswer> {
        let answer = self.kernel.table(major, minor);
        let said = written(&answer, |mapped| DmTable {
            name: mapped.name.clone(),
            uuid: mapped.uuid.clone(),
            targets: mapped.targets.iter().map(target_line).collect(),
        });
        self.note(|answers| {
            answers
                .tables
                .extend(said.map(|said| (number(major, minor), said)))
        });
        answer
    }

    fn identify(&self, device: &str) -> Result<Identified, NoAnswer> {
        let answer = self.kernel.identify(device);
        self.note(|answers| match &answer {
            Ok(pages) => answers.add_identified(device, pages.clone()),
            Err(error) => {
                answers
                    .identify_refused
                    .extend(refusal(error).map(|refusal| (device.to_owned(), refusal)));
            }
        });
        answer
    }

    fn limits(&self, device: &str) -> Result<Limits, NoAnswer> {
        let answer = self.kernel.limits(device);
        let said = written(&answer, |limits| LimitsLine {
            size_bytes: limits.size_bytes,
            logical_block_bytes: limits.logical_block_bytes,
            physical_block_bytes: limits.physical_block_bytes,
            minimum_io_bytes: limits.minimum_io_bytes,
            optimal_io_bytes: limits.optimal_io_bytes,
            alignment_offset_bytes: limits.alignment_offset_bytes,
        });
        self.note(|answers| {
            answers
                .limits
                .extend(said.map(|said| (device.to_owned(), said)))
        });
        answer
    }

    fn extents(&self, path: &str, count_max: usize) -> Result<FileExtents, NoAnswer> {
        let answer = self.kernel.extents(path, count_max);
        let said = written(&answer, |found| Extents {
            size_bytes: found.size_bytes,
            is_cut: found.is_cut,
            extents: found.extents.iter().map(extent_line).collect(),
        });
        self.note(|answers| {
            answers
                .extents
                .extend(said.map(|said| (path.to_owned(), said)))
        });
        answer
    }

    fn guests(&self) -> Vec<GuestDisk> {
        let guests = self.kernel.guests();
        self.note(|answers| answers.guests.clone_from(&guests));
        guests
    }
}

fn target_line(target: &MappedTarget) -> TargetLine {
    (
        target.start_sectors,
        target.len_sectors,
        target.kind.clone(),
        target.params.clone(),
    )
}

fn extent_line(extent: &FileExtent) -> ExtentLine {
    (
        extent.logical_bytes,
        extent.physical_bytes,
        extent.len_bytes,
        extent.flags,
    )
}
