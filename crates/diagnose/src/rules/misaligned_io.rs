//! `misaligned-io`: I/O start off the grid.
//!
//! Judges every grid asked for (4 KiB at offset 0 when none is), and totals that a source hands over ready-made,
//! as `align.d` prints them. What offset the I/O really have comes from inference.

use plumb_geometry::{Bytes, Grid, SECTOR, group_digits};
use plumb_profile::fit::{FitTally, Unknown};
use plumb_profile::imported::Totals;
use plumb_profile::infer::{Phase, Verdict};
use plumb_profile::latency_fit::LatencyByFit;

use super::{Context, Outcome, Rule, of, severity_of, too_few};
use crate::analysis::GridFit;
use crate::finding::{Basis, Confidence, Cost, Finding, Step};
use crate::question::GridSource;
use crate::share::Share;

/// The rule.
pub const RULE: Rule = Rule { id: "misaligned-io", title: "I/O start off the grid", judge };

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
        Err(Unknown::NoIo) if !context.profile.imported.is_empty() => {
            return Outcome::Unknown(Unknown::NoStarts.to_string());
        }
        Err(why) => return Outcome::Unknown(why.to_string()),
    };
    if let Some(unknown) = too_few(tally.ios) {
        return unknown;
    }
    let share = Share::new(tally.misaligned, tally.ios);
    let Some(severity) = severity_of(share) else {
        if fit.source == GridSource::Assumed {
            let granularity = fit.grid.granularity();
            return Outcome::Unknown(format!(
                "{} start off the assumed grid of {granularity}; unknown beyond {granularity}, since no grid is known: \
                 give one with --grid",
                of(share)
            ));
        }
        return Outcome::Silent;
    };
    let confidence = if fit.source == GridSource::User { Confidence::High } else { Confidence::Medium };
    let summary = format!("{} I/O start off {}", of(share), grid_words(&fit.grid, fit.source));
    let mut finding = context
        .share_finding(&RULE, severity, confidence, share, summary)
        .with_evidence(context.evidence("head_bytes_mean", mean_head(tally), "bytes"))
        .with_cost(cost(tally));
    if let Some(device) = context.analysis.device() {
        finding = explain_offset(context, finding, &fit.grid, &device.inference.verdict);
    }
    finding = explain_latency(finding, fit);
    Outcome::Found(finding)
}

fn grid_words(grid: &Grid, source: GridSource) -> String {
    match source {
        GridSource::Assumed => format!("the grid of {grid}, assumed since none is known"),
        GridSource::User => format!("the given grid of {grid}"),
    }
}

fn mean_head(tally: &FitTally) -> f64 {
    tally.head_bytes_sum as f64 / tally.ios as f64
}

/// Cells touched against cells needed: an upper bound of the extra work.
fn cost(tally: &FitTally) -> Option<Cost> {
    if tally.cells_min == 0 {
        return None;
    }
    let value = tally.cells as f64 / tally.cells_min as f64;
    Some(Cost { value, unit: "cells touched per cell needed", basis: Basis::Estimated })
}

fn explain_offset(context: &Context<'_>, finding: Finding, grid: &Grid, verdict: &Verdict) -> Finding {
    match verdict {
        Verdict::One { phase } => {
            let finding = finding.explained(phase_words(context, phase));
            match move_words(grid, phase) {
                Some((words, shift)) => finding.explained(words).with_fix(Step {
                    command: format!("plumb analyze FILE --shift {shift}"),
                    risk: "none: reads the trace again",
                    undo: "nothing to undo",
                }),
                None => finding,
            }
        }
        Verdict::Two { phases: [first, second] } => finding
            .explained(format!("two layouts: {}", phase_words(context, first)))
            .explained(format!("and {}", phase_words(context, second)))
            .explained("look at each partition by itself (--partition or --range)"),
        Verdict::NoGrid => {
            finding.explained("stream heads lie on no grid of 1 KiB or more: no single shift would mend it")
        }
        Verdict::NotEnoughData { why } => {
            finding.explained(format!("which offset the I/O have cannot be said: {why}"))
        }
    }
}

/// `4 KiB blocks sit at sector 7 of 8: 79.5 % of the I/O, 97.2 % of the stream heads; consistent with …`.
#[must_use]
pub fn phase_words(context: &Context<'_>, phase: &Phase) -> String {
    let Some(device) = context.analysis.device() else { return String::new() };
    let (ios, heads) = (device.inference.ios.max(1), device.inference.heads.max(1));
    let Bytes(granularity) = phase.granularity_bytes;
    let mut words = format!(
        "{} blocks sit at sector {} of {}: {:.1} % of the I/O, {:.1} % of the stream heads",
        phase.granularity_bytes,
        group_digits(phase.offset_bytes.0 / SECTOR),
        group_digits(granularity / SECTOR),
        phase.ios as f64 * 100.0 / ios as f64,
        phase.heads as f64 * 100.0 / heads as f64,
    );
    if let Some(cause) = consistent_with(phase) {
        words.push_str("; ");
        words.push_str(&cause);
    }
    words
}

/// First sectors that old tools gave the first partition, with the tool.
const KNOWN_STARTS: [(u64, &str); 3] = [
    (63, "a partition at sector 63, as MBR tools made it for cylinders"),
    (34, "a partition at sector 34, right behind an EFI label"),
    (16_065, "a partition at a cylinder boundary (16,065 sectors)"),
];

/// A layout that would give this phase. Never more than consistent with it: a residue proves no cause.
#[must_use]
pub fn consistent_with(phase: &Phase) -> Option<String> {
    let Bytes(granularity) = phase.granularity_bytes;
    if phase.offset_bytes.0 == 0 {
        return None;
    }
    let known = KNOWN_STARTS.iter().find(|(sector, _)| sector * SECTOR % granularity == phase.offset_bytes.0);
    known.map(|(_, words)| format!("consistent with {words} (not proven by it)"))
}

/// By how much all would have to move to stand on the grid, if one move does it.
fn move_words(grid: &Grid, phase: &Phase) -> Option<(String, String)> {
    let granularity = grid.granularity().0;
    if phase.granularity_bytes.0 < granularity {
        return None;
    }
    let off = grid.past_boundary(phase.offset_bytes).0;
    let by = (granularity - off) % granularity;
    if by == 0 || !by.is_multiple_of(SECTOR) {
        return None;
    }
    let sectors = by / SECTOR;
    let plural = if sectors == 1 { "" } else { "s" };
    Some((
        format!("a layout that begins {sectors} sector{plural} ({}) later would put them on it", Bytes(by)),
        format!("+{sectors}s"),
    ))
}

fn explain_latency(finding: Finding, fit: &GridFit) -> Finding {
    match &fit.latency {
        Some(LatencyByFit::Difference { difference_ns, low_ns, high_ns, fitting_ns_mean, compared, unfitting, .. }) => {
            finding.explained(format!(
                "latency difference to fitting I/O of the same kind: {:+.1} µs (95 % interval {:+.1} to {:+.1}) on {:.1} µs, \
                 from {} of {} unfitting I/O; a difference, not a measured cost",
                difference_ns / 1e3,
                low_ns / 1e3,
                high_ns / 1e3,
                fitting_ns_mean / 1e3,
                group_digits(*compared),
                group_digits(*unfitting),
            ))
        }
        Some(LatencyByFit::NotComparable { why }) => finding.explained(format!("latency by fit is not comparable: {why}")),
        None => finding,
    }
}

/// Judges totals of `align.d`, all observations together.
fn judge_totals(context: &Context<'_>, totals: &[Totals]) -> Outcome {
    let ios: u64 = totals.iter().map(|totals| totals.ios).sum();
    let misaligned: u64 = totals.iter().map(|totals| totals.misaligned_ios).sum();
    if let Some(unknown) = too_few(ios) {
        return unknown;
    }
    let share = Share::new(misaligned, ios);
    let unit = Bytes(totals.first().map_or(0, |totals| totals.start_unit_bytes));
    let Some(severity) = severity_of(share) else {
        return Outcome::Unknown(format!(
            "{} start off {unit}; unknown beyond it: the source tested no larger unit",
            of(share)
        ));
    };
    let summary = format!("{} I/O start off the {unit} that the source tested", of(share));
    let offset: u64 =
        totals.iter().map(|totals| totals.mean_offset_bytes * totals.ios).sum::<u64>() / ios.max(1);
    let finding = context
        .share_finding(&RULE, severity, Confidence::Medium, share, summary)
        .with_evidence(context.evidence("head_bytes_mean", offset as f64, "bytes"))
        .explained("the source counted; which devices, operations and lengths it cannot tell");
    Outcome::Found(finding)
}
