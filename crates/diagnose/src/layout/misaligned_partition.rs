//! `misaligned-partition`: the data begin off a grid below.
//!
//! The rule judges the final position of byte 0 of each top layer, and with it of each of its blocks, through every
//! layer between. No layer is judged alone: a partition at sector 63 under a volume that compensates for it is right.

use std::collections::HashSet;

use plumb_geometry::{Bytes, SmallSort};
use plumb_model::facts::{MisalignedPartition, Mover, NextStart, OtherGrid, WantedStart};
use plumb_model::{
    Confidence, Cost, CostOf, Facts, Finding, GridOf, Reason, RuleId, Seen, Severity,
};
use plumb_profile::latency_fit::LatencyByFit;
use plumb_stack::fold::Phase;
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::node_facts::ContentKind;
use plumb_stack::{CellKind, Kind, NodeId, Obstacle, Placing, Standing, Verdict};

use super::context::{Context, Top};
use super::soft_partition_drift::HEADER_BYTES;
use super::{LayoutRule, cylinder, hole, seen, sizes};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::MisalignedPartition,
    thresholds: || vec![format!("units of {} or more", Bytes(WARNING_BYTES_MIN))],
    judge,
};

/// Off a grid of less than this is a note: file systems seldom write less than 4 KiB, so smaller units cost little.
pub const WARNING_BYTES_MIN: u64 = 4096;

/// Never suggest a start inside the first MiB of a disk: the label and boot loaders are there, and present partitioning
/// tools suggest no start before it.
pub const LABEL_AREA_BYTES: u64 = 1 << 20;

/// Contents of a partition whose data are elsewhere than at its first byte.
const LAYERS: [ContentKind; 5] = [
    ContentKind::LvmMember,
    ContentKind::MdMember,
    ContentKind::Luks,
    ContentKind::Bcache,
    ContentKind::VxvmDisk,
];

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
            outcomes.push(Outcome::found(found));
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
    let (device, _) = lowest_mover(context, first)?;
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

/// Whether all data that begin on a device are on the grids of a finding, as far as the way down is known; the rest
/// below them was not known for the finding either. A grid is compared by its cells, because its disk may be another
/// one by now.
pub(crate) fn is_on_grid(
    context: &Context<'_>,
    device: NodeId,
    found: &MisalignedPartition,
) -> bool {
    let tops = context.tops.iter();
    let mut mine = tops
        .filter(|top| context.device_of(top.id) == device)
        .peekable();
    let is_there = mine.peek().is_some();
    let is_on = |top: &Top| {
        let moved = match held(context, top) {
            Held::Data => None,
            Held::From(start) => Some(moved(context, &top.standings, start)),
            Held::Elsewhere(_) => return false,
        };
        let standings = moved.as_ref().unwrap_or(&top.standings);
        let mut same = standings
            .iter()
            .filter(|one| {
                let fact = &one.fact;
                fact.what == found.grid.what && fact.granularity() == found.grid.granularity_bytes
            })
            .peekable();
        same.peek().is_some()
            && same.all(|one| matches!(one.landing.phase(&one.fact.grid), Phase::Past(Bytes(0))))
            && top.landings.lost.len() <= found.not_known.len()
    };
    is_there && mine.all(is_on)
}

/// Findings come before unknowns; a note hides no unknown.
fn judge_top(context: &Context<'_>, top: &Top) -> Vec<Outcome> {
    let device = context.device_of(top.id);
    let moved = match held(context, top) {
        Held::Data => None,
        Held::From(start) => Some(moved(context, &top.standings, start)),
        Held::Elsewhere(layer) => {
            let layer = layer.clone();
            return vec![context.unknown(device, Reason::HoldsLayer { layer })];
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
    // Surely misaligned first, on the grid of most I/O.
    off.small_sort_by_key(|standing| {
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
    let finding = found(context, (top, device), worst, (&off, standings));
    let is_note = finding.severity == Severity::Note;
    let unknown = unknown(context, top, standings).filter(|_| is_note);
    [Outcome::found(finding)]
        .into_iter()
        .chain(unknown)
        .collect()
}

/// The unknown part of a top layer, with the reason; `None` if all is known.
fn unknown(context: &Context<'_>, top: &Top, standings: &[Standing]) -> Option<Outcome> {
    let mut reasons: Vec<Obstacle> = top
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
    let device = context.device_of(top.id);
    let reason = match (reasons.is_empty(), standings.is_empty()) {
        (false, _) => Reason::Stack {
            because: reasons,
            more: more as u64,
        },
        (true, true) => match context.stack.why_nowhere(&top.landings) {
            Some(why) => Reason::Stack {
                because: vec![why],
                more: 0,
            },
            None => Reason::NoGrid,
        },
        (true, false) => return None,
    };
    Some(context.unknown(device, reason))
}

/// The content of a top layer without known layers above.
enum Held<'a> {
    /// Data, from its first byte on.
    Data,
    /// The data of a layer, from this byte on.
    From(Bytes),
    /// The data of this layer, somewhere.
    Elsewhere(&'a ContentKind),
}

fn held<'a>(context: &Context<'a>, top: &Top) -> Held<'a> {
    let node = context.stack.node(top.id);
    match node.value(keys::CONTENT) {
        Some(content) if LAYERS.contains(content) => match node.number(keys::PE_START) {
            Some(start) => Held::From(start),
            None => Held::Elsewhere(content),
        },
        _ => Held::Data,
    }
}

/// The verdicts of data that begin at `start` of the top layer.
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
    let stated = sizes::confidence_in(&standing.fact.source);
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
    let (past_bytes, varies_by_bytes) = match worst.verdict {
        Verdict::Varies { step } => (None, Some(step)),
        Verdict::Misaligned { by } => (Some(by), None),
        _ => (None, None),
    };
    let not_known = top.landings.lost.iter().take(REASONS_MAX);
    let given = || sizes::given(context, worst.landing.on);
    let facts = Facts::MisalignedPartition(MisalignedPartition {
        grid: GridOf::new(fact, on),
        past_bytes,
        varies_by_bytes,
        byte: worst.landing.upper,
        start_bytes: start_below(worst),
        given_bytes: (fact.what == CellKind::Assumed).then(given).flatten(),
        grids_off: off.len() as u64,
        grids: all.len() as u64,
        movers: movers(context, worst),
        also_off: others(context, worst, off),
        not_known: not_known.map(|(_, why)| why.clone()).collect(),
        wanted: wanted(context, device, worst, all),
    });
    let seen = seen::through(context, device, worst);
    // One grid is measured, for reads and writes: another one may cost.
    let latency = seen.as_ref().and_then(Seen::latency_by_fit);
    let serious = off.iter().filter(|one| severity(one) >= Severity::Warning);
    let is_free =
        serious.count() <= 1 && latency.is_some_and(LatencyByFit::shows_no_cost_of_writes);
    let severity = if is_free {
        Severity::Note
    } else {
        severity(worst)
    };
    let about = (device, severity, confidence(context, worst));
    let finding = context
        .finding(facts, about)
        .with_cost(cost(context, worst, seen.as_ref()));
    Finding { seen, ..finding }
}

/// Cells touched against those needed: of the I/O that were seen, so that the finding and the tables have one figure.
/// Without any, of the page given, or of blocks as large as the unit.
fn cost(context: &Context<'_>, standing: &Standing, seen: Option<&Seen>) -> Option<Cost> {
    let fit = seen.and_then(|seen| seen.fit.as_ref());
    match fit.and_then(|fit| fit.cells_ratio) {
        Some(ratio) => Cost::of_ratio(CostOf::Cells, ratio),
        None => cost_of_page(context, standing),
    }
}

/// Cells that a block touches against those it needs, for the page given or blocks as large as the unit.
fn cost_of_page(context: &Context<'_>, standing: &Standing) -> Option<Cost> {
    let Verdict::Misaligned { by } = standing.verdict else {
        return None;
    };
    let granularity = standing.fact.granularity().0;
    let page = context
        .known
        .page
        .filter(|page| page.0 > 0)
        .map_or(granularity, |page| page.0);
    // Pages that are no multiples have several phases: there is no single figure.
    if !page.is_multiple_of(granularity) {
        return None;
    }
    let touched = by.0.checked_add(page)?.div_ceil(granularity);
    let value = touched as f64 / (page / granularity) as f64;
    Some(Cost::estimated(CostOf::Cells, value))
}

/// The place of the judged byte on the layer that it is off; `None` if it has several.
fn start_below(standing: &Standing) -> Option<Bytes> {
    let landing = &standing.landing;
    if landing.period.is_some() {
        return None;
    }
    sizes::shifted(landing.upper, landing.shift)
}

/// Layers on the way down that start off the unit, if there are several layers.
fn movers(context: &Context<'_>, standing: &Standing) -> Vec<Mover> {
    let landing = &standing.landing;
    if landing.via.len() <= 2 {
        return Vec::new();
    }
    let granularity = standing.fact.granularity().0;
    let pairs = landing.via.windows(2);
    pairs
        .filter_map(|pair| {
            let start = only_start(context, pair[0], pair[1])?;
            let past = start.0 % granularity;
            (past != 0).then(|| Mover {
                device: context.name(pair[0]).to_owned(),
                on: context.name(pair[1]).to_owned(),
                start_bytes: start,
                past_bytes: Bytes(past),
            })
        })
        .collect()
}

/// The start of a layer on one below; `None` if there are several.
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

/// The other grids that it is off.
fn others(context: &Context<'_>, worst: &Standing, off: &[&Standing]) -> Vec<OtherGrid> {
    let mut others: Vec<OtherGrid> = off
        .iter()
        .filter(|other| other.landing.on != worst.landing.on || other.fact != worst.fact)
        .map(|other| OtherGrid {
            granularity_bytes: other.fact.granularity(),
            what: other.fact.what,
            on: context.name(other.landing.on).to_owned(),
        })
        .collect();
    others.dedup();
    others
}

/// Whether another member with such units has the same bytes elsewhere in them.
fn stands_otherwise(worst: &Standing, other: &Standing) -> bool {
    other.landing.on != worst.landing.on
        && other.landing.upper == worst.landing.upper
        && other.fact.granularity() == worst.fact.granularity()
        && other.landing.phase(&other.fact.grid) != worst.landing.phase(&worst.fact.grid)
}

/// The lowest layer on the way that begins off the unit on the one below it, and by how much.
fn lowest_mover(context: &Context<'_>, standing: &Standing) -> Option<(NodeId, Bytes)> {
    let grid = &standing.fact.grid;
    standing.landing.via.windows(2).rev().find_map(|pair| {
        let start = only_start(context, pair[0], pair[1])?;
        let past = match pair[1] == standing.landing.on {
            true => grid.past_boundary(start),
            false => Bytes(start.0 % grid.granularity().0),
        };
        (past != Bytes(0)).then_some((pair[0], past))
    })
}

/// The start to take where slices begin at cylinders.
fn cylinder_of(context: &Context<'_>, device: NodeId, all: &[Standing]) -> Option<WantedStart> {
    if context.stack.node(device).kind != Kind::Partition {
        return None;
    }
    let cylinder = cylinder::next(context, device, all)?;
    Some(WantedStart::Cylinder {
        disk: context.name(cylinder.disk).to_owned(),
        next_bytes: cylinder.next,
    })
}

/// The place where the device should start.
fn wanted(
    context: &Context<'_>,
    device: NodeId,
    worst: &Standing,
    all: &[Standing],
) -> WantedStart {
    let Verdict::Misaligned { by } = worst.verdict else {
        return WantedStart::NoStart;
    };
    let up = |past: Bytes| Bytes(worst.fact.granularity().0.saturating_sub(past.0));
    let up_bytes = up(by);
    if let Some(other) = all.iter().find(|other| stands_otherwise(worst, other)) {
        // Each layer moves by its own distance: those above it are judged again when it is in place.
        let (mover, past) = lowest_mover(context, worst).unwrap_or((device, by));
        return WantedStart::BelowFirst {
            differs_on: context.name(other.landing.on).to_owned(),
            mover: context.name(mover).to_owned(),
            up_bytes: up(past),
        };
    }
    if let Some(cylinder) = cylinder_of(context, device, all) {
        return cylinder;
    }
    let down_bytes = is_free_behind(context, device, by).then_some(by);
    match context.stack.node(device).kind {
        Kind::Partition => WantedStart::Partition {
            up_bytes,
            down_bytes,
            next: next_start(context, device, up_bytes),
        },
        Kind::SoftPartition => WantedStart::SoftPartition {
            up_bytes,
            down_bytes,
        },
        _ => WantedStart::Layer { up_bytes },
    }
}

/// The start of a partition that moves up by so much, as its own table counts.
fn next_start(context: &Context<'_>, device: NodeId, up: Bytes) -> Option<NextStart> {
    let Placing::Parts { parts } = &context.stack.node(device).placing else {
        return None;
    };
    let [part] = parts.as_slice() else {
        return None;
    };
    Some(NextStart {
        on: context.name(part.node).to_owned(),
        start_bytes: part.start.checked_add(up)?,
    })
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
