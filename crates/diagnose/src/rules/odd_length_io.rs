//! `odd-length-io`: the length is no multiple of the unit, so an end is off the grid whatever the start.

use plumb_geometry::Bytes;
use plumb_profile::imported::Totals;

use super::{Context, Outcome, Rule, of, severity_of, too_few};
use crate::analysis::GridFit;
use crate::finding::{Basis, Confidence, Cost};
use crate::question::GridSource;
use crate::share::Share;

/// The rule.
pub const RULE: Rule = Rule { id: "odd-length-io", title: "the length is no multiple of the unit", judge };

/// Of the lengths at most so many, in percent, may have been rounded: more would speak for too little.
const UNKNOWN_PERCENT_MAX: u64 = 10;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let totals = &context.profile.imported.totals;
    if !totals.is_empty() {
        return vec![judge_totals(context, totals)];
    }
    let Some(device) = context.analysis.device() else { return vec![] };
    device.grids.iter().map(|fit| judge_grid(context, fit)).collect()
}

fn judge_grid(context: &Context<'_>, fit: &GridFit) -> Outcome {
    let tally = match &fit.all {
        Ok(tally) => tally,
        Err(why) => return Outcome::Unknown(why.to_string()),
    };
    if let Some(unknown) = too_few(tally.known_length()) {
        return unknown;
    }
    if tally.unknown_length * 100 > tally.ios * UNKNOWN_PERCENT_MAX {
        let share = Share::new(tally.unknown_length, tally.ios);
        return Outcome::Unknown(format!("the length of {} I/O is not known exactly any more", of(share)));
    }
    let share = Share::new(tally.odd_length, tally.known_length());
    let Some(severity) = severity_of(share) else { return Outcome::Silent };
    let granularity = fit.grid.granularity();
    let confidence = if fit.source == GridSource::User { Confidence::High } else { Confidence::Medium };
    let summary = format!("the length of {} I/O is no multiple of {granularity}", of(share));
    let cost = (tally.bytes > 0 && tally.touched_bytes > 0).then(|| Cost {
        value: tally.touched_bytes as f64 / tally.bytes as f64,
        unit: "bytes touched per byte asked for",
        basis: Basis::Estimated,
    });
    let odd: Vec<String> = context
        .analysis
        .lengths
        .iter()
        .filter(|(length, rounded, _)| !rounded && !length.is_multiple_of(granularity.0))
        .take(3)
        .map(|(length, _, ios)| format!("{} ({} I/O)", Bytes(*length), plumb_geometry::group_digits(*ios)))
        .collect();
    let mut finding = context.share_finding(&RULE, severity, confidence, share, summary).with_cost(cost);
    if !odd.is_empty() {
        finding = finding.explained(format!("commonest odd lengths: {}", odd.join(", ")));
    }
    finding = finding.explained(
        "moving a partition does not mend it: the application or file system asks in smaller units than the device keeps",
    );
    Outcome::Found(finding)
}

fn judge_totals(context: &Context<'_>, totals: &[Totals]) -> Outcome {
    let ios: u64 = totals.iter().map(|totals| totals.ios).sum();
    let odd: u64 = totals.iter().map(|totals| totals.odd_length_ios).sum();
    if let Some(unknown) = too_few(ios) {
        return unknown;
    }
    let share = Share::new(odd, ios);
    let Some(severity) = severity_of(share) else { return Outcome::Silent };
    let unit = Bytes(totals.first().map_or(0, |totals| totals.len_unit_bytes));
    let summary = format!("the length of {} I/O is no multiple of {unit}", of(share));
    Outcome::Found(context.share_finding(&RULE, severity, Confidence::Medium, share, summary))
}
