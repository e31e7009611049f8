//! `odd-length-io`: the length is no multiple of the unit, so an end is off the grid whatever the start.

use plumb_geometry::{Bytes, group_digits};
use plumb_profile::fit::{FitTally, Select};
use plumb_profile::imported::Totals;

use super::{
    Context, IoRule, Outcome, severity_of, share_text, tally_lengths_unknown,
    thresholds_with_warning,
};
use crate::analysis::GridFit;
use crate::finding::{Basis, Confidence, Cost};
use crate::share::Share;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: "odd-length-io",
    title: "the length is no multiple of the unit",
    needs: "nothing; `--grid` confirms it",
    decides: true,
    thresholds: thresholds_with_warning,
    plan: None,
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
        .map(|fit| judge_grid(context, fit))
        .collect()
}

fn judge_grid(context: &Context<'_>, fit: &GridFit) -> Outcome {
    let tally = match &fit.all {
        Ok(tally) => tally,
        Err(_) if !context.profile.imported.is_empty() => {
            return Outcome::Unknown("the source does not tell single lengths".to_owned());
        }
        Err(why) => return Outcome::Unknown(why.to_string()),
    };
    if let Some(unknown) = context
        .too_few(tally.ios)
        .or_else(|| tally_lengths_unknown(tally))
    {
        return unknown;
    }
    let share = Share::new(tally.odd_length, tally.known_length());
    let Some(severity) = severity_of(share) else {
        return context.none_found(share);
    };
    let granularity = fit.grid.granularity();
    let summary = format!(
        "the length of {} I/O is no multiple of {granularity}",
        share_text(share)
    );
    let odd: Vec<String> = context
        .profile
        .places
        .table
        .lengths(Select::DATA)
        .into_iter()
        .filter(|(length, rounded, _)| !rounded && !length.is_multiple_of(granularity.0))
        .take(NAMED)
        .map(|(length, _, ios)| format!("{} ({} I/O)", Bytes(length), group_digits(ios)))
        .collect();
    let mut finding = context
        .share_finding(&RULE, severity, fit.source.confidence(), share, summary)
        .with_cost(cost(tally, granularity));
    if !odd.is_empty() {
        finding = finding.explained(format!("commonest odd lengths: {}", odd.join(", ")));
    }
    finding = finding.explained(
        "moving a partition does not mend it: the application or file system asks in smaller units than the device keeps",
    );
    Outcome::Found(finding)
}

/// What the lengths alone cost: bytes of the cells that they need at best. What off starts add to that is counted
/// by `misaligned-io`.
fn cost(tally: &FitTally, granularity: Bytes) -> Option<Cost> {
    if tally.bytes == 0 {
        return None;
    }
    let value = tally.cells_min as f64 * granularity.0 as f64 / tally.bytes as f64;
    let unit = "bytes touched per byte asked for, were all starts on the grid";
    Some(Cost {
        value,
        unit,
        basis: Basis::Estimated,
    })
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
    let unit = Bytes(totals.first().map_or(0, |totals| totals.len_unit_bytes));
    let summary = format!(
        "the length of {} I/O is no multiple of {unit}",
        share_text(share)
    );
    Outcome::Found(context.share_finding(&RULE, severity, Confidence::Medium, share, summary))
}
