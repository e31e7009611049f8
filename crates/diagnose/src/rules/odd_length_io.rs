//! `odd-length-io`: the length is no multiple of the unit, so an end is off the grid for any start.

use plumb_geometry::Bytes;
use plumb_model::facts::{OddLengthIo, OfLength};
use plumb_model::{Confidence, Cost, CostOf, Facts, Finding, Reason, RuleId, Severity};
use plumb_profile::fit::{FitTally, Select};
use plumb_profile::imported::Totals;

use super::context::table;
use super::{Context, IOS_MIN, IoRule, Outcome, severity_of, thresholds_with_warning};
use crate::analysis::{GridFit, PlaceAnalysis};
use crate::share::Share;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::OddLengthIo,
    thresholds: thresholds_with_warning,
    judge,
};

/// Odd lengths that are named.
const NAMED: usize = 3;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let totals = &context.profile.imported.totals;
    if !totals.is_empty() {
        return vec![judge_totals(context, totals)];
    }
    let Some(device) = context.analysis.device() else {
        return vec![];
    };
    device
        .grids
        .iter()
        .filter(|fit| !is_told_by_starts(context, device, fit))
        .map(|fit| judge_grid(context, fit))
        .collect()
}

/// Whether `misaligned-io` says that a file system's blocks are shorter than the grid. Lengths have the same cause.
fn is_told_by_starts(context: &Context<'_>, device: &PlaceAnalysis, fit: &GridFit) -> bool {
    let is_misaligned = fit.all.as_ref().is_ok_and(|tally| {
        tally.ios >= IOS_MIN && severity_of(Share::between(tally.misaligned, tally.ios)).is_some()
    });
    let granularity = fit.grid.granularity().0;
    let file_systems = context.file_systems_in(device, &fit.grid);
    let mut file_systems = file_systems.iter().flatten();
    is_misaligned && file_systems.any(|one| !one.block_bytes.0.is_multiple_of(granularity))
}

fn judge_grid(context: &Context<'_>, fit: &GridFit) -> Outcome {
    let tally = match &fit.all {
        Ok(tally) => tally,
        Err(_) if !context.profile.imported.is_empty() => {
            return Outcome::Unknown(Reason::LengthsNotTold);
        }
        Err(why) => return Outcome::Unknown(table(why.clone())),
    };
    if let Some(unknown) = context.too_few(tally.ios) {
        return unknown;
    }
    let share = Share::between(tally.odd_length, tally.ios);
    let Some(severity) = severity_of(share) else {
        return context.none_found_of(share, || tally.lengths_dropped());
    };
    let granularity = fit.grid.granularity();
    let commonest = context
        .profile
        .places
        .table
        .lengths(Select::DATA)
        .into_iter()
        .filter(|(length, rounded, _)| !rounded && !length.is_multiple_of(granularity.0))
        .take(NAMED)
        .map(|(length, _, ios)| OfLength {
            len_bytes: Bytes(length),
            ios,
        })
        .collect();
    let facts = OddLengthIo {
        unit_bytes: granularity,
        counted: context.counted(share),
        commonest,
        is_seen: true,
    };
    let finding = found(context, facts, severity, fit.source.confidence());
    Outcome::found(finding.with_cost(cost(tally, granularity)))
}

fn found(
    context: &Context<'_>,
    facts: OddLengthIo,
    severity: Severity,
    confidence: Confidence,
) -> Finding {
    let confidence = context.confidence(&facts.counted, confidence);
    context.finding(Facts::OddLengthIo(facts), severity, confidence)
}

/// The cost of the lengths alone: bytes of the cells that they need at best. `misaligned-io` counts the effect of
/// misaligned starts.
fn cost(tally: &FitTally, granularity: Bytes) -> Option<Cost> {
    if tally.bytes.high == 0 {
        return None;
    }
    // At least so much: the true figure is higher where lengths are a range.
    let value = tally.cells_min.low as f64 * granularity.0 as f64 / tally.bytes.high as f64;
    Some(Cost::estimated(CostOf::CellBytes, value.max(1.0)))
}

fn judge_totals(context: &Context<'_>, totals: &[Totals]) -> Outcome {
    let sum = |value: fn(&Totals) -> u64| totals.iter().map(value).fold(0, u64::saturating_add);
    let (ios, odd) = (
        sum(|totals| totals.ios),
        sum(|totals| totals.odd_length_ios),
    );
    if let Some(unknown) = context.too_few(ios) {
        return unknown;
    }
    let share = Share::new(odd, ios);
    let Some(severity) = severity_of(share) else {
        return context.none_found(share);
    };
    let facts = OddLengthIo {
        unit_bytes: Bytes(totals.first().map_or(0, |totals| totals.len_unit_bytes)),
        counted: context.counted(share),
        commonest: Vec::new(),
        is_seen: false,
    };
    Outcome::found(found(context, facts, severity, Confidence::Medium))
}
