//! Findings that are alike: one rule, one severity, and one misfit on several devices.
//!
//! Counts and starts differ from device to device and do not matter; grids and distances from them do. JSON keeps one
//! finding for each device.

use plumb_geometry::{Bytes, Grid, SmallSort, plural};
use plumb_model::facts::GridSource;
use plumb_model::{Facts, Finding};
use plumb_profile::infer::InferenceVerdict;
use plumb_quoting::CommandLine;
use plumb_stack::CellKind;

use crate::check::listed;

/// Findings by likeness, in the order of the first of each. The one with the largest share of its I/O leads a group.
pub(crate) fn groups<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Vec<&'a Finding>> {
    let share = |finding: &Finding| {
        let counted = finding.facts.counted();
        counted.map_or(0.0, |counted| {
            counted.count.low as f64 / counted.of.max(1) as f64
        })
    };
    let mut groups = gathered(findings, is_alike);
    for group in &mut groups {
        group.small_sort_by(|one, other| share(other).total_cmp(&share(one)));
    }
    groups
}

/// The name of a group: its rule, and the number of its places.
pub(crate) fn name(group: &[&Finding]) -> String {
    let places = plural(group.len() as u64, "place");
    format!("{}: {places}, alike", group[0].rule())
}

/// The sentence above the list of the other findings of a group.
pub(crate) fn common_cause(others: &[&Finding]) -> String {
    let number = plural(others.len() as u64, "other");
    format!("The same holds for {number} below. {ONE_CAUSE}.")
}

/// The sentence that names the other findings of a group.
pub(crate) fn the_same_on(others: &[&Finding]) -> String {
    let devices = others.iter().map(|one| one.target.device.as_str());
    let devices = listed(devices.collect());
    format!("The same on {devices} (-vv shows each). {ONE_CAUSE}.")
}

/// The likely cause of equal findings.
pub(crate) const ONE_CAUSE: &str =
    "Equal misfits often have one cause: an image, a template or a tool that created all of them";

/// Whether two findings have the same commands, so that one list of them is enough.
pub(crate) fn is_same_fix(one: &Finding, other: &Finding) -> bool {
    let commands = |finding: &Finding| -> Vec<CommandLine> {
        let steps = finding.fix.iter();
        steps.map(|step| step.command.clone()).collect()
    };
    commands(one) == commands(other)
}

/// Findings by rule and severity, in the order of the first of each.
pub(crate) fn kinds<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Vec<&'a Finding>> {
    let kind = |finding: &Finding| (finding.rule(), finding.severity);
    gathered(findings, |one, other| kind(one) == kind(other))
}

/// Groups of items that are alike, in the order of the first item of each group.
pub(crate) fn gathered<'a, T>(
    items: impl IntoIterator<Item = &'a T>,
    is_alike: impl Fn(&T, &T) -> bool,
) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| is_alike(group[0], item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

fn is_alike(one: &Finding, other: &Finding) -> bool {
    let kind = |finding: &Finding| {
        let part = finding.target.part.is_some();
        (
            finding.rule(),
            (finding.severity, finding.confidence),
            finding.target.layer,
            part,
        )
    };
    kind(one) == kind(other)
        && one.target != other.target
        && match (misfit(&one.facts), misfit(&other.facts)) {
            (Some(mine), Some(theirs)) => mine == theirs,
            (None, None) => one.facts == other.facts,
            _ => false,
        }
}

/// The common property of all devices that one cause misaligned.
#[derive(PartialEq)]
enum Misfit {
    /// I/O off a grid, with the offsets that they show.
    Starts(Grid, GridSource, Vec<(Bytes, Bytes)>),
    /// A layer that starts this far past a boundary of a grid, or in steps of that length.
    Layer(CellKind, Bytes, Option<Bytes>, Option<Bytes>),
    /// I/O of odd lengths, small ones, or ones in sequence: of a rule that has no place.
    Lengths,
}

/// `None` for facts that have to be equal.
fn misfit(facts: &Facts) -> Option<Misfit> {
    match facts {
        Facts::MisalignedIo(facts) => {
            let phases = match facts.offset.as_ref().map(|offset| &offset.verdict) {
                Some(InferenceVerdict::One { phase }) => vec![phase],
                Some(InferenceVerdict::Two { phases }) => phases.iter().collect(),
                _ => Vec::new(),
            };
            let offsets = phases.into_iter();
            let offsets = offsets.map(|phase| (phase.granularity_bytes, phase.offset_bytes));
            Some(Misfit::Starts(
                facts.grid,
                facts.grid_source,
                offsets.collect(),
            ))
        }
        Facts::MisalignedPartition(facts) => Some(Misfit::Layer(
            facts.grid.what,
            facts.grid.granularity_bytes,
            facts.past_bytes,
            facts.varies_by_bytes,
        )),
        Facts::OddLengthIo(_) | Facts::SmallRandomWrites(_) | Facts::LooksSequential(_) => {
            Some(Misfit::Lengths)
        }
        _ => None,
    }
}
