//! The targets of a series, open for all its runs, and why a run may not fit them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::Series;
use crate::job_file::FileLine;
use crate::permission::MayWrite;
use crate::target::Target;
use crate::workload::WorkloadError;

/// Why a run of a series cannot be made.
#[derive(Debug, Error)]
pub enum SeriesError {
    /// A workload does not fit its target.
    #[error("{place}: {source}")]
    Workload {
        /// The position of the target's name.
        place: FileLine,
        /// Why.
        source: WorkloadError,
    },
    /// A target was not opened.
    #[error("{place}: {} is not open", path.display())]
    NotOpen {
        /// The position of its name.
        place: FileLine,
        /// The target.
        path: PathBuf,
    },
}

/// A target that a series needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// Device or file.
    pub path: PathBuf,
    /// The position of its first use, or of the first write to it.
    pub place: FileLine,
    /// Whether it is written to.
    pub is_written: bool,
}

/// Open targets by their paths.
#[derive(Debug, Default)]
pub struct Targets(BTreeMap<PathBuf, (Target, Option<MayWrite>)>);

impl Targets {
    /// The needs of a series: each target once, in the order of the series.
    #[must_use]
    pub fn needed(series: &Series) -> Vec<Needed> {
        let mut needed: Vec<Needed> = Vec::new();
        for part in series.runs.iter().flat_map(|run| &run.parts) {
            let (place, is_written) = (part.place.clone(), part.writes());
            match needed.iter_mut().find(|other| other.path == part.path) {
                Some(other) if is_written && !other.is_written => {
                    (other.place, other.is_written) = (place, is_written);
                }
                Some(_) => {}
                None => needed.push(Needed {
                    path: part.path.clone(),
                    place,
                    is_written,
                }),
            }
        }
        needed
    }

    /// Adds a target under the path by which the series names it.
    pub fn insert(&mut self, path: PathBuf, target: Target, may_write: Option<MayWrite>) {
        self.0.insert(path, (target, may_write));
    }

    /// A target, and the permission to write to it.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<(&Target, Option<&MayWrite>)> {
        self.0
            .get(path)
            .map(|(target, may_write)| (target, may_write.as_ref()))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Target> {
        self.0.values().map(|(target, _)| target)
    }
}
