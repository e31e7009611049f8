//! The document of `plumb plan … --json`, as far as a fix carries it out.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use plumb_geometry::Bytes;
use plumb_label::{Label, Partition, PartitionPlace};
use plumb_plan::partition::SMALLER_MAX;
use serde_json::Value;

use super::error::FixError;
use super::here::Here;
use super::subject::{Subject, by_name};
use crate::cli::fix::NewLabelKind;
use crate::failure::Failure;
use crate::inputs;

/// Longest document that is read.
const PLAN_BYTES_MAX: u64 = 16 << 20;
const SCHEMA: &str = "plumb.plan/2";

/// The wanted place of a partition, as far as stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// First byte.
    pub start: Option<Bytes>,
    /// Length.
    pub len: Option<Bytes>,
    /// Number of the partition or slice, as its label counts.
    pub number: Option<u32>,
    /// Kind of the label that is to be made, in the place of one that is there.
    pub new_label: Option<NewLabelKind>,
}

impl Wanted {
    /// Reads the wanted partition from a plan.
    pub fn from_plan(plan: &Value) -> Wanted {
        let new_label = found(plan, "new_label").and_then(Value::as_str);
        Wanted {
            start: figure(plan, "start_bytes"),
            len: figure(plan, "len_bytes"),
            number: number(plan),
            new_label: new_label.and_then(|word| NewLabelKind::from_str(word, false).ok()),
        }
    }
}

/// A plan's statements about a disk at its time: a disk that differs is another one, or was changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// The disk.
    pub device: Option<PathBuf>,
    /// Number of its partition.
    pub number: Option<u32>,
    /// Its start.
    pub current: Option<Bytes>,
    /// Its length, which of one that exists may be made less by up to [`SMALLER_MAX`].
    pub len: Option<Bytes>,
}

impl Stated {
    /// Reads the state of the disk that a plan was made for.
    pub fn from_plan(plan: &Value) -> Stated {
        let current = figure(plan, "current_bytes");
        Stated {
            device: plan["subject"]["device"].as_str().map(PathBuf::from),
            number: number(plan),
            current,
            // Without a present place the length is only the wanted one.
            len: current.and_then(|_| figure(plan, "len_bytes")),
        }
    }

    /// Checks that the disk is the one of the plan, by its name or its identity.
    ///
    /// # Errors
    /// When it is another one.
    pub fn must_be_on(&self, subject: &Subject) -> Result<(), FixError> {
        let Some(device) = &self.device else {
            return Ok(());
        };
        let path = std::fs::canonicalize(by_name(device));
        let is_it = path.is_ok_and(|path| {
            let identity = |here: Here| here.identity();
            path == subject.path
                || Here::find(&path)
                    .map(identity)
                    .is_ok_and(|is| !is.is_empty() && is == subject.here.identity())
        });
        match is_it {
            true => Ok(()),
            false => Err(differs(
                subject,
                subject.device(),
                device.display().to_string(),
            )),
        }
    }

    /// That the label has the partition where the plan says that it is.
    ///
    /// # Errors
    /// When it begins elsewhere, has another length, or is not there.
    pub fn must_be_in(&self, label: Option<&Label>, subject: &Subject) -> Result<(), FixError> {
        let Some(current) = self.current else {
            return Ok(());
        };
        let number = self.number.unwrap_or(1);
        let is_it = |part: &&Partition| {
            !part.is_whole_disk
                && part.place != PartitionPlace::Extended
                && part.id.slice.unwrap_or(part.id.number) == number
        };
        let sectors = |at: Bytes| plumb_geometry::group_digits(at.0 / plumb_geometry::SECTOR);
        let mut parts = label
            .into_iter()
            .flat_map(|label| &label.partitions)
            .filter(is_it);
        let begins = |at: Bytes| format!("partition {number} at sector {}", sectors(at));
        let Some(part) = parts.next() else {
            return Err(differs(
                subject,
                format!("no partition {number}"),
                begins(current),
            ));
        };
        let (start, len) = (part.extent.start(), part.extent.len());
        if start != current {
            return Err(differs(subject, begins(start), begins(current)));
        }
        let fits = |stated: Bytes| stated <= len && len.0 - stated.0 <= SMALLER_MAX.0;
        match self.len.filter(|stated| !fits(*stated)) {
            None => Ok(()),
            Some(stated) => {
                let long = |len: Bytes| format!("partition {number} of {} sectors", sectors(len));
                Err(differs(subject, long(len), long(stated)))
            }
        }
    }
}

fn differs(subject: &Subject, found: impl Into<String>, expected: impl Into<String>) -> FixError {
    FixError::OtherThanPlanned {
        device: subject.device(),
        found: found.into(),
        expected: expected.into(),
    }
}

fn number(plan: &Value) -> Option<u32> {
    plan["subject"]["number"]
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
}

/// The only plan for a partition in a file.
///
/// # Errors
/// When the file is no such document, or has another number of them.
pub fn partition(path: &Path) -> Result<(Wanted, Stated), Failure> {
    let plans = plans(path)?;
    let mut of_partitions = plans.iter().filter(|plan| plan["kind"] == "partition");
    let (Some(plan), None) = (of_partitions.next(), of_partitions.next()) else {
        let count = plans
            .iter()
            .filter(|plan| plan["kind"] == "partition")
            .count();
        return Err(wrong(
            path,
            &format!("{count} plans for partitions"),
            "one: plumb plan partition --json",
        ));
    };
    if let Some(why) = plan["refusal"].as_str() {
        return Err(Failure::unknown(format!(
            "{}: the plan was refused: {why}",
            path.display()
        )));
    }
    let wanted = Wanted::from_plan(plan);
    if wanted.start.is_none() {
        return Err(wrong(
            path,
            "a plan without a start",
            "the figure start_bytes",
        ));
    }
    Ok((wanted, Stated::from_plan(plan)))
}

/// A figure in bytes; `None` where the plan has none of that name.
pub fn figure(plan: &Value, name: &str) -> Option<Bytes> {
    found(plan, name)?.as_u64().map(Bytes)
}

fn found<'a>(plan: &'a Value, name: &str) -> Option<&'a Value> {
    let figures = plan["target"].as_array()?;
    Some(&figures.iter().find(|figure| figure["name"] == name)?["value"])
}

/// All plans of a file.
///
/// # Errors
/// When the file is no such document.
pub fn plans(path: &Path) -> Result<Vec<Value>, Failure> {
    plans_in(path, &document(path)?)
}

/// The JSON document of a file, or of standard input for `-`.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn document(path: &Path) -> Result<Value, Failure> {
    let bytes = inputs::read(path, PLAN_BYTES_MAX)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        wrong(
            path,
            &format!("no JSON ({error})"),
            "the output of plumb plan --json",
        )
    })
}

/// All plans of a document.
///
/// # Errors
/// When it has none.
pub fn plans_in(path: &Path, document: &Value) -> Result<Vec<Value>, Failure> {
    if document["schema"] != SCHEMA {
        let found = document["schema"].as_str().unwrap_or("none").to_owned();
        return Err(wrong(path, &format!("the schema {found}"), SCHEMA));
    }
    match document["result"]["plans"].as_array() {
        Some(plans) => Ok(plans.clone()),
        None => Err(wrong(path, "no plans", "result.plans")),
    }
}

fn wrong(path: &Path, found: &str, expected: &str) -> Failure {
    Failure::usage(format!(
        "{}: found {found}, expected {expected}",
        path.display()
    ))
}
