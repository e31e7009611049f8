//! `misaligned-partition`: what holds the data begins off a grid below.
//!
//! Judged is where byte 0 of each top, and with it each of its blocks, comes to lie in the end, through every layer
//! between. No layer is judged alone: a partition at sector 63 under a volume that makes up for it is right.

use std::collections::HashSet;

use plumb_geometry::{Bytes, plural};
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind, NodeId, Placing, Standing, Verdict};

use super::context::{Context, Top};
use super::soft_partition_drift::HEADER_BYTES;
use super::{LayoutRule, cylinder, hole, seen, words};
use crate::finding::{Basis, Confidence, Cost, Finding, Severity};
use crate::rules::{Outcome, PlanKind};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "misaligned-partition",
    title: "data begin off a grid of a layer below",
    needs: "nothing; `--grid` confirms it",
    decides: true,
    thresholds: || vec![format!("units of {} or more", Bytes(WARNING_BYTES_MIN))],
    plan: Some(PlanKind::Start),
    judge,
};

/// Off a grid of less than this is a note: file systems seldom write less than 4 KiB, so smaller units cost little.
pub const WARNING_BYTES_MIN: u64 = 4096;

/// Nobody is sent into the first MiB of a disk: the label and boot loaders lie there, and partitioning tools of today
/// give no start before it.
pub const LABEL_AREA_BYTES: u64 = 1 << 20;

/// What a partition may hold that puts its data elsewhere than at its first byte.
const LAYERS: [&str; 5] = ["LVM2 PV", "md member", "crypto_LUKS", "bcache", "VxVM disk"];

/// Reasons that are named for one top; the rest are counted.
const REASONS_MAX: usize = 3;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut known = HashSet::new();
    for top in &context.tops {
        let judged = judge_top(context, top);
        let has_none = matches!(judged[..], [Outcome::UnknownOf(..) | Outcome::Silent]);
        outcomes.extend(judged);
        if has_none
            && let Some((device, found)) = judge_above_hole(context, top)
            && known.insert(device)
        {
            outcomes.push(Outcome::Found(found));
        }
    }
    outcomes
}

/// A top in a hole reaches no grid, but a layer above the hole that is off moves all that will be written there.
fn judge_above_hole(context: &Context<'_>, top: &Top) -> Option<(NodeId, Finding)> {
    if !matches!(held(context, top), Held::Data) {
        return None;
    }
    let layers = hole::layers_above(context, top);
    let is_off = |standing: &&Standing| matches!(standing.verdict, Verdict::Misaligned { .. });
    let first = layers
        .iter()
        .find_map(|(_, standings)| standings.iter().find(is_off))?;
    let device = lowest_mover(context, first)?;
    let (_, standings) = layers.iter().find(|(layer, _)| *layer == device)?;
    let off: Vec<&Standing> = standings.iter().filter(is_off).collect();
    let worst = off
        .iter()
        .min_by_key(|standing| severity(standing) != Severity::Warning)?;
    Some((
        device,
        found(context, (top, device), worst, (&off, standings)),
    ))
}

/// What is found comes before what is unknown, of which a note takes nothing away.
fn judge_top(context: &Context<'_>, top: &Top) -> Vec<Outcome> {
    let device = context.device_of(top.id);
    let moved = match held(context, top) {
        Held::Data => None,
        Held::From(start) => Some(moved(context, &top.standings, start)),
        Held::Elsewhere(what) => {
            let why =
                format!("it holds a {what} of which nothing more is known: where data begin in it");
            return vec![Outcome::UnknownOf(context.target(device), why)];
        }
    };
    let standings = moved.as_ref().unwrap_or(&top.standings);
    let mut off: Vec<&Standing> = standings
        .iter()
        .filter(|standing| {
            matches!(
                standing.verdict,
                Verdict::Misaligned { .. } | Verdict::Varies { .. }
            )
        })
        .collect();
    // What is surely off first, on the grid that most I/O meet.
    off.sort_by_key(|standing| {
        let varies = matches!(standing.verdict, Verdict::Varies { .. });
        (
            severity(standing) != Severity::Warning,
            varies,
            standing.fact.granularity(),
        )
    });
    let Some(worst) = off.first() else {
        return vec![unknown(context, top, standings).unwrap_or(Outcome::Silent)];
    };
    let finding = Outcome::Found(found(context, (top, device), worst, (&off, standings)));
    let unknown = unknown(context, top, standings).filter(|_| severity(worst) == Severity::Note);
    [finding].into_iter().chain(unknown).collect()
}

/// What cannot be told of a top, and why; `None` where all is known.
fn unknown(context: &Context<'_>, top: &Top, standings: &[Standing]) -> Option<Outcome> {
    let mut reasons: Vec<String> = top
        .landings
        .lost
        .iter()
        .map(|(_, why)| why.clone())
        .collect();
    reasons.extend(
        standings
            .iter()
            .filter_map(|standing| match &standing.verdict {
                Verdict::Unknown { why } => Some(why.clone()),
                _ => None,
            }),
    );
    reasons.sort();
    reasons.dedup();
    let more = reasons.len().saturating_sub(REASONS_MAX);
    reasons.truncate(REASONS_MAX);
    let target = context.target(context.device_of(top.id));
    match (reasons.is_empty(), standings.is_empty()) {
        (false, _) => {
            let more = if more > 0 {
                format!("; and {}", plural(more as u64, "more reason"))
            } else {
                String::new()
            };
            Some(Outcome::UnknownOf(
                target,
                format!("{}{more}", reasons.join("; ")),
            ))
        }
        (true, true) => {
            let why = context.stack.why_nowhere(&top.landings);
            let why = why.unwrap_or_else(|| "no grid is known below it".to_owned());
            Some(Outcome::UnknownOf(target, why))
        }
        (true, false) => None,
    }
}

/// What is in a top on which nothing is known to stand.
enum Held<'a> {
    /// Data, from its first byte on.
    Data,
    /// The data of a layer, from this byte on.
    From(Bytes),
    /// The data of this layer, somewhere.
    Elsewhere(&'a str),
}

fn held<'a>(context: &Context<'a>, top: &Top) -> Held<'a> {
    let node = context.stack.node(top.id);
    match node.word(keys::CONTENT) {
        Some(content) if LAYERS.contains(&content) => match node.number(keys::PE_START) {
            Some(start) => Held::From(Bytes(start)),
            None => Held::Elsewhere(content),
        },
        _ => Held::Data,
    }
}

/// How what begins at `start` of the top stands.
fn moved(context: &Context<'_>, standings: &[Standing], start: Bytes) -> Vec<Standing> {
    let moved = standings.iter().map(|standing| {
        let mut moved = standing.clone();
        moved.landing.shift += i128::from(start.0);
        moved.verdict = context.stack.verdict(&moved.landing, &moved.fact);
        moved
    });
    moved.collect()
}

fn severity(standing: &Standing) -> Severity {
    // Blocks of a pool or cache are larger than most I/O: being off one costs where two are touched, and that seldom.
    let is_small = standing.fact.granularity().0 < WARNING_BYTES_MIN
        || standing.fact.what == CellKind::Cluster;
    if is_small {
        Severity::Note
    } else {
        Severity::Warning
    }
}

fn confidence(context: &Context<'_>, standing: &Standing) -> Confidence {
    let stated = words::confidence_in(&standing.fact.source);
    let is_virtual = context.stack.node(standing.landing.on).kind == Kind::VirtualDisk;
    if is_virtual && standing.fact.source != Source::User {
        stated.lowered()
    } else {
        stated
    }
}

fn found(
    context: &Context<'_>,
    (top, device): (&Top, NodeId),
    worst: &Standing,
    (off, all): (&[&Standing], &[Standing]),
) -> Finding {
    let (on, fact) = (context.name(worst.landing.on), &worst.fact);
    let unit = format!("{} {}", fact.granularity(), fact.what.text());
    let (summary, evidence) = match worst.verdict {
        Verdict::Varies { step } => (
            format!(
                "blocks lie off the {unit} of {on} in some chunks: chunks move them by multiples of {}",
                words::place(step)
            ),
            words::bytes("phase_step_bytes", step, "layout of the layers between"),
        ),
        Verdict::Misaligned { by } => (
            format!(
                "begins {} past a boundary of the {unit} of {on}",
                words::place(by)
            ),
            words::bytes("past_boundary_bytes", by, "layout of the layers between"),
        ),
        _ => (
            String::new(),
            words::bytes("past_boundary_bytes", Bytes(0), "layout"),
        ),
    };
    let about = (device, severity(worst), confidence(context, worst));
    let mut finding = context
        .finding(&RULE, about, summary, evidence)
        .with_evidence(words::bytes(
            "granularity_bytes",
            fact.granularity(),
            format!("{}, of {on}", fact.source),
        ))
        .with_evidence(words::bytes(
            "grid_offset_bytes",
            fact.grid.offset(),
            format!("of {on}"),
        ))
        .with_evidence(words::number(
            "grids_off",
            off.len() as u64,
            "grids",
            format!("of {} below", all.len()),
        ))
        .with_cost(cost(context, worst));
    if fact.what == CellKind::Assumed {
        let why = match words::given(context, worst.landing.on) {
            Some(given) => {
                format!(
                    "none larger than the {given} given is known of {on}: a larger --grid replaces it"
                )
            }
            None => format!("nothing is known of {on}: a probe or --grid makes it sure"),
        };
        finding = finding.explained(format!(
            "the grid of {} is assumed, since {why}",
            fact.granularity()
        ));
    }
    for sentence in way(context, worst)
        .into_iter()
        .chain(others(context, worst, off))
    {
        finding = finding.explained(sentence);
    }
    for (_, why) in top.landings.lost.iter().take(REASONS_MAX) {
        finding = finding.explained(format!("not all below is known: {why}"));
    }
    seen::explain(
        context,
        finding.explained(remedy(context, device, worst, all)),
        device,
        worst,
    )
}

/// Cells that a block touches against those it needs, for the page given or blocks as large as the unit.
fn cost(context: &Context<'_>, standing: &Standing) -> Option<Cost> {
    let Verdict::Misaligned { by } = standing.verdict else {
        return None;
    };
    let granularity = standing.fact.granularity().0;
    let page = context
        .known
        .page
        .filter(|page| page.0 > 0)
        .map_or(granularity, |page| page.0);
    // Pages that are no multiples stand at several phases: there is no one figure.
    if !page.is_multiple_of(granularity) {
        return None;
    }
    let touched = by.0.checked_add(page)?.div_ceil(granularity);
    let value = touched as f64 / (page / granularity) as f64;
    Some(Cost {
        value,
        unit: "cells touched per cell needed",
        basis: Basis::Estimated,
    })
}

/// Where it begins on the layer that it is off, and which layers on the way move it.
fn way(context: &Context<'_>, standing: &Standing) -> Vec<String> {
    let landing = &standing.landing;
    let mut sentences = Vec::new();
    if landing.period.is_none()
        && let Some(start) = words::shifted(landing.upper, landing.shift)
    {
        let which = if landing.upper == Bytes(0) {
            "it".to_owned()
        } else {
            format!("its byte {}", landing.upper)
        };
        sentences.push(format!(
            "{which} lies at {} of {}",
            words::place(start),
            context.name(landing.on)
        ));
    }
    let granularity = standing.fact.granularity().0;
    let movers: Vec<String> = landing
        .via
        .windows(2)
        .filter_map(|pair| {
            let start = only_start(context, pair[0], pair[1])?;
            let past = start.0 % granularity;
            let (above, below) = (context.name(pair[0]), context.name(pair[1]));
            (past != 0).then(|| {
                format!(
                    "{above} begins at {} of {below}: {} over",
                    words::place(start),
                    Bytes(past)
                )
            })
        })
        .collect();
    if landing.via.len() > 2 && !movers.is_empty() {
        sentences.push(format!("on the way down {}", words::list(&movers)));
    }
    sentences
}

/// Where a layer begins on one below; `None` where it does so in several places.
fn only_start(context: &Context<'_>, above: NodeId, below: NodeId) -> Option<Bytes> {
    match &context.stack.node(above).placing {
        Placing::Parts { parts } => {
            let mut on = parts.iter().filter(|part| part.node == below);
            let only = on.next()?;
            (on.next().is_none() && only.upper == Bytes(0)).then_some(only.start)
        }
        Placing::Chunks(chunks) => chunks
            .members
            .iter()
            .find(|member| member.node == below)
            .map(|member| member.start),
        Placing::Copies { members } => members
            .iter()
            .find(|member| member.node == below)
            .map(|member| member.start),
        Placing::Blocks { member, .. } => Some(member.start),
        Placing::Leaf | Placing::Unknown { .. } => None,
    }
}

/// The other grids that it is off, summed up by what they are.
fn others(context: &Context<'_>, worst: &Standing, off: &[&Standing]) -> Option<String> {
    let mut named: Vec<String> = off
        .iter()
        .filter(|other| other.landing.on != worst.landing.on || other.fact != worst.fact)
        .map(|other| {
            let fact = &other.fact;
            format!(
                "{} {} of {}",
                fact.granularity(),
                fact.what.text(),
                context.name(other.landing.on)
            )
        })
        .collect();
    named.dedup();
    (!named.is_empty()).then(|| format!("it is off as well on the {}", words::list(&named)))
}

/// Whether another member with such units has the same bytes elsewhere in them.
fn stands_otherwise(worst: &Standing, other: &Standing) -> bool {
    other.landing.on != worst.landing.on
        && other.landing.upper == worst.landing.upper
        && other.fact.granularity() == worst.fact.granularity()
        && other.landing.phase(&other.fact.grid) != worst.landing.phase(&worst.fact.grid)
}

/// The lowest layer on the way that begins off the unit on the one below it.
fn lowest_mover(context: &Context<'_>, standing: &Standing) -> Option<NodeId> {
    let granularity = standing.fact.granularity().0;
    standing.landing.via.windows(2).rev().find_map(|pair| {
        let start = only_start(context, pair[0], pair[1])?;
        (start.0 % granularity != 0).then_some(pair[0])
    })
}

const ANEW: &str = "an empty one is made anew, one with data is moved";

/// The start to take where slices begin at cylinders.
fn cylinder_of(context: &Context<'_>, device: NodeId, all: &[Standing]) -> Option<String> {
    if context.stack.node(device).kind != Kind::Partition {
        return None;
    }
    let cylinder = cylinder::next(context, device, all)?;
    Some(match cylinder.next {
        Some(next) => format!(
            "begin it at a cylinder that is on the unit: the next is at {} of {}",
            words::place(next),
            context.name(cylinder.disk)
        ),
        None => "begin it at a cylinder that is on the unit".to_owned(),
    })
}

fn remedy(context: &Context<'_>, device: NodeId, worst: &Standing, all: &[Standing]) -> String {
    let Verdict::Misaligned { by } = worst.verdict else {
        return "make the layers between anew with chunks and extents that are multiples of the unit"
            .to_owned();
    };
    let on_by = Bytes(worst.fact.granularity().0.saturating_sub(by.0));
    if let Some(other) = all.iter().find(|other| stands_otherwise(worst, other)) {
        let mover = lowest_mover(context, worst).unwrap_or(device);
        return format!(
            "it stands otherwise on {}, so no place of its own is right: begin {} {} further on",
            context.name(other.landing.on),
            context.name(mover),
            words::place(on_by)
        );
    }
    if let Some(cylinder) = cylinder_of(context, device, all) {
        return format!("{cylinder}; {ANEW}");
    }
    let back = if is_free_behind(context, device, by) {
        format!(" or {} back", words::place(by))
    } else {
        String::new()
    };
    let moved = format!("{} further on{back}", words::place(on_by));
    match context.stack.node(device).kind {
        Kind::Partition => {
            let place = next_start(context, device, on_by).unwrap_or_default();
            format!("begin it {moved}{place}; {ANEW}")
        }
        Kind::SoftPartition => format!("make it anew with an offset {moved}, and copy the data"),
        _ => format!(
            "begin it, or a layer between, {moved}; the layer that is easiest to move will do"
        ),
    }
}

/// Where a partition would begin that much further on, as its own table counts.
fn next_start(context: &Context<'_>, device: NodeId, on_by: Bytes) -> Option<String> {
    let Placing::Parts { parts } = &context.stack.node(device).placing else {
        return None;
    };
    let [part] = parts.as_slice() else {
        return None;
    };
    let next = words::place(part.start.checked_add(on_by)?);
    Some(format!(
        ": the next such start is {next} of {}",
        context.name(part.node)
    ))
}

/// Whether a partition or soft partition surely has as much room in front of it, with nothing of the label, of a
/// neighbour or of its own header there.
fn is_free_behind(context: &Context<'_>, device: NodeId, by: Bytes) -> bool {
    let node = context.stack.node(device);
    let Placing::Parts { parts } = &node.placing else {
        return false;
    };
    let [part] = parts.as_slice() else {
        return false;
    };
    let reserved = match node.kind {
        Kind::Partition => by.0.saturating_add(LABEL_AREA_BYTES),
        Kind::SoftPartition => by.0.saturating_add(HEADER_BYTES),
        _ => return false,
    };
    if part.start.0 < reserved {
        return false;
    }
    let header = if node.kind == Kind::SoftPartition {
        HEADER_BYTES
    } else {
        0
    };
    let from = part.start.0 - by.0 - header;
    let neighbours = context
        .stack
        .above(part.node)
        .iter()
        .filter(|id| **id != device);
    neighbours
        .copied()
        .all(|id| match &context.stack.node(id).placing {
            Placing::Parts { parts } => {
                parts
                    .iter()
                    .filter(|other| other.node == part.node)
                    .all(|other| {
                        let end = other.len.and_then(|len| other.start.checked_add(len));
                        other.start >= part.start || end.is_some_and(|end| end.0 <= from)
                    })
            }
            _ => false,
        })
}
