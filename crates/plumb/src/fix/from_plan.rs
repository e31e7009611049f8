//! The document of `plumb plan … --json`, as far as a fix carries it out.

use std::path::Path;

use plumb_geometry::Bytes;
use serde_json::Value;

use crate::failure::Failure;
use crate::inputs;

/// Longest document that is read.
const PLAN_BYTES_MAX: u64 = 16 << 20;
const SCHEMA: &str = "plumb.plan/1";

/// Where a partition is to lie, as far as somebody has said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// First byte.
    pub start: Option<Bytes>,
    /// Length.
    pub len: Option<Bytes>,
    /// Number of the partition or slice, as its label counts.
    pub number: Option<u32>,
}

/// The only plan for a partition in a file.
///
/// # Errors
/// When the file is no such document, or has another number of them.
pub fn partition(path: &Path) -> Result<Wanted, Failure> {
    let plans = plans(path)?;
    let mut of_partitions = plans.iter().filter(|plan| plan["kind"] == "partition");
    let (Some(plan), None) = (of_partitions.next(), of_partitions.next()) else {
        let count = plans.iter().filter(|plan| plan["kind"] == "partition").count();
        return Err(wrong(
            path,
            &format!("{count} plans for partitions"),
            "one: plumb plan partition --json",
        ));
    };
    if let Some(why) = plan["refusal"].as_str() {
        return Err(Failure::unknown(format!("{}: the plan was refused: {why}", path.display())));
    }
    let start = figure(plan, "start_bytes");
    if start.is_none() {
        return Err(wrong(path, "a plan without a start", "the figure start_bytes"));
    }
    let number = plan["subject"]["number"].as_u64().and_then(|number| u32::try_from(number).ok());
    Ok(Wanted { start, len: figure(plan, "len_bytes"), number })
}

fn figure(plan: &Value, name: &str) -> Option<Bytes> {
    let figures = plan["target"].as_array()?;
    figures.iter().find(|figure| figure["name"] == name)?["value"].as_u64().map(Bytes)
}

/// All plans of a file.
///
/// # Errors
/// When the file is no such document.
pub fn plans(path: &Path) -> Result<Vec<Value>, Failure> {
    let bytes = inputs::read(path, PLAN_BYTES_MAX)?;
    let document: Value = serde_json::from_slice(&bytes)
        .map_err(|error| wrong(path, &format!("no JSON ({error})"), "the output of plumb plan --json"))?;
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
    Failure::usage(format!("{}: found {found}, expected {expected}", path.display()))
}
