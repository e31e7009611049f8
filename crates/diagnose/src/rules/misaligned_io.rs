//! `misaligned-io`: I/O start off the grid.
//!
//! Judges every requested grid (4 KiB at offset 0 by default), and a source's ready-made totals, such as those of
//! `align.d`. The real offset of the I/O comes from inference. If the source reveals partitions with different starts,
//! each is judged separately.

use plumb_geometry::{Bounds, Bytes, Grid, GridKind};
use plumb_model::facts::{GridSource, MisalignedIo};
use plumb_model::{Cost, CostOf, Facts, Finding, Part, Reason, RuleId, Severity, Target};
use plumb_profile::fit::FitTally;
use plumb_profile::imported::Totals;
use plumb_profile::infer::InferenceVerdict;

use super::context::table;
use super::{Context, IOS_MIN, IoRule, Outcome, severity_of, thresholds_with_warning, undecided};
use crate::analysis::{GridFit, PlaceAnalysis};
use crate::share::Share;

mod offset;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::MisalignedIo,
    thresholds: thresholds_with_warning,
    judge,
};

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let totals = &context.profile.imported.totals;
    if !totals.is_empty() {
        return vec![judge_totals(context, totals)];
    }
    let Some((device, parts)) = context.analysis.places.split_first() else {
        return vec![];
    };
    let mut outcomes = Vec::new();
    let is_explained_itself = context
        .questions
        .explained
        .contains(&context.profile.device);
    for (at, fit) in device.grids.iter().enumerate() {
        if is_explained_itself && fit.grid.past_boundary(Bytes(0)) != Bytes(0) {
            continue;
        }
        let mut fits: Vec<JudgedPlace<'_>> = parts
            .iter()
            .filter_map(|part| {
                Some(JudgedPlace {
                    place: part,
                    fit: part.grids.get(at)?,
                })
            })
            .collect();
        let all = fits.len();
        let rest = beside(fit, &fits);
        fits.retain(|part| !is_explained(context, *part));
        if fits.len() < all {
            // Of the others each by itself: a sentence on the device would tell of those once more.
            let has_enough = |part: &&JudgedPlace<'_>| {
                part.fit
                    .all
                    .as_ref()
                    .is_ok_and(|tally| tally.ios >= IOS_MIN)
            };
            outcomes.extend(
                fits.iter()
                    .filter(has_enough)
                    .map(|part| judge_part(context, *part)),
            );
            outcomes.extend(rest.and_then(|rest| judge_rest(context, fit, rest)));
        } else if differ(&fits) {
            outcomes.extend(fits.iter().map(|part| judge_part(context, *part)));
        } else {
            outcomes.push(judge_place(context, JudgedPlace { place: device, fit }));
        }
    }
    outcomes
}

/// The device or a partition, on one grid.
#[derive(Clone, Copy)]
struct JudgedPlace<'a> {
    place: &'a PlaceAnalysis,
    fit: &'a GridFit,
}

impl JudgedPlace<'_> {
    /// Its severity, and the distance of its own blocks past the grid if known. `None` if there were too few I/O.
    fn stand(&self) -> Option<(Option<Severity>, Option<u64>)> {
        let tally = self
            .fit
            .all
            .as_ref()
            .ok()
            .filter(|tally| tally.ios >= IOS_MIN)?;
        let past = match &self.place.inference.verdict {
            InferenceVerdict::One { phase } => offset::past(&self.fit.grid, phase),
            _ => None,
        };
        let share = Share::between(tally.misaligned, tally.ios);
        Some((severity_of(share), past))
    }
}

/// Whether partitions differ so much that one sentence on the device would be wrong for one of them.
fn differ(parts: &[JudgedPlace<'_>]) -> bool {
    let stands: Vec<_> = parts.iter().filter_map(JudgedPlace::stand).collect();
    stands.iter().enumerate().any(|(at, (severity, past))| {
        stands[at + 1..].iter().any(|(other, elsewhere)| {
            severity != other
                || past
                    .zip(*elsewhere)
                    .is_some_and(|(here, there)| here != there)
        })
    })
}

/// Whether it is known already why I/O through a partition are off: it begins off the grid itself.
fn is_explained(context: &Context<'_>, part: JudgedPlace<'_>) -> bool {
    let is_found = part
        .place
        .name
        .as_ref()
        .is_some_and(|name| context.questions.explained.contains(name));
    is_found && part.fit.grid.past_boundary(Bytes(part.place.first_byte)) != Bytes(0)
}

/// How many I/O went to the device without a partition, and how many of them start off the grid.
fn beside(device: &GridFit, parts: &[JudgedPlace<'_>]) -> Option<Share> {
    let all = device.all.as_ref().ok()?;
    let of_parts = || parts.iter().filter_map(|part| part.fit.all.as_ref().ok());
    let less = |all: u64, of: fn(&FitTally) -> u64| all.saturating_sub(of_parts().map(of).sum());
    let misaligned = Bounds {
        low: less(all.misaligned.low, |tally| tally.misaligned.high),
        high: less(all.misaligned.high, |tally| tally.misaligned.low),
    };
    Some(Share::between(misaligned, less(all.ios, |tally| tally.ios)))
}

fn judge_rest(context: &Context<'_>, fit: &GridFit, rest: Share) -> Option<Outcome> {
    let severity = severity_of(rest)?;
    let facts = MisalignedIo {
        grid: fit.grid,
        grid_source: fit.source,
        counted: context.counted(rest),
        is_outside_partitions: true,
        mean_past_bytes: None,
        offset: None,
        latency: None,
    };
    Some(Outcome::found(found(context, facts, severity)))
}

fn found(context: &Context<'_>, facts: MisalignedIo, severity: Severity) -> Finding {
    let confidence = context.confidence(&facts.counted, facts.grid_source.confidence());
    context.finding(Facts::MisalignedIo(facts), severity, confidence)
}

fn judge_part(context: &Context<'_>, part: JudgedPlace<'_>) -> Outcome {
    let name = part.place.name.as_deref().unwrap_or_default();
    let target = Target {
        part: Some(Part::Partition(name.to_owned())),
        ..context.target.clone()
    };
    match judge_place(
        &Context {
            target: &target,
            ..*context
        },
        part,
    ) {
        Outcome::Unknown(why) => Outcome::UnknownOf(target, why),
        outcome => outcome,
    }
}

fn judge_place(context: &Context<'_>, at: JudgedPlace<'_>) -> Outcome {
    let fit = at.fit;
    let tally = match &fit.all {
        Ok(tally) => tally,
        Err(why) => return Outcome::Unknown(table(why.clone())),
    };
    if let Some(unknown) = context.too_few(tally.ios) {
        return unknown;
    }
    let share = Share::between(tally.misaligned, tally.ios);
    let Some(severity) = severity_of(share) else {
        if let Some(reason) =
            undecided(share, || context.profile.places.table.too_coarse(&fit.grid))
        {
            return Outcome::Unknown(reason);
        }
        return match fit.source {
            GridSource::Assumed => Outcome::Unknown(Reason::BeyondAssumed {
                count: share.part.high,
                of: share.whole,
                granularity_bytes: fit.grid.granularity(),
            }),
            GridSource::Shown => Outcome::Unknown(Reason::BeyondShown {
                count: share.part.high,
                of: share.whole,
                grid: fit.grid,
            }),
            GridSource::User | GridSource::Stated | GridSource::Tested => context.none_found(share),
        };
    };
    let latency = fit.latency.clone().filter(|_| context.analysis.timed > 0);
    let severity = match &latency {
        Some(latency) if latency.shows_no_cost() => Severity::Note,
        _ => severity,
    };
    let (offset, fix) = offset::of_place(context, at.place, fit, tally);
    let facts = MisalignedIo {
        grid: fit.grid,
        grid_source: fit.source,
        counted: context.counted(share),
        is_outside_partitions: false,
        mean_past_bytes: mean_head(tally),
        offset: Some(offset),
        latency,
    };
    let finding = found(context, facts, severity).with_cost(cost(tally));
    Outcome::found(match fix {
        Some(fix) => finding.with_fix(fix),
        None => finding,
    })
}

/// `None` where the table does not keep how far from a boundary.
fn mean_head(tally: &FitTally) -> Option<f64> {
    let sum = tally.head_bytes_sum.known()?;
    Some(sum as f64 / tally.ios as f64)
}

/// Cells touched against cells needed: an upper bound of the extra work.
fn cost(tally: &FitTally) -> Option<Cost> {
    // An I/O that touches no more cells than it needs costs nothing here.
    Cost::of_ratio(CostOf::Cells, tally.cells_ratio()?)
}

/// Judges totals of `align.d`, all observations together.
fn judge_totals(context: &Context<'_>, totals: &[Totals]) -> Outcome {
    let sum = |value: fn(&Totals) -> u64| totals.iter().map(value).fold(0, u64::saturating_add);
    let (ios, misaligned) = (
        sum(|totals| totals.ios),
        sum(|totals| totals.misaligned_ios),
    );
    if let Some(unknown) = context.too_few(ios) {
        return unknown;
    }
    let share = Share::new(misaligned, ios);
    let unit = Bytes(totals.first().map_or(0, |totals| totals.start_unit_bytes));
    let Some(severity) = severity_of(share) else {
        return Outcome::Unknown(Reason::BeyondTested {
            count: share.part.high,
            of: share.whole,
            granularity_bytes: unit,
        });
    };
    let head: u128 = totals
        .iter()
        .map(|totals| u128::from(totals.mean_offset_bytes) * u128::from(totals.ios))
        .sum();
    let facts = MisalignedIo {
        grid: Grid::new(unit, Bytes(0), GridKind::Unit).unwrap_or(Grid::ASSUMED),
        grid_source: GridSource::Tested,
        counted: context.counted(share),
        is_outside_partitions: false,
        mean_past_bytes: Some(head as f64 / ios.max(1) as f64),
        offset: None,
        latency: None,
    };
    Outcome::found(found(context, facts, severity))
}
