//! `split-io` from the layout: the share of I/O that must cross a chunk boundary.
//!
//! Recorded I/O of a device are counted. Otherwise the share is computed over one period of the starts d + k·step, with
//! d as the start of the volume and step its page: those with start mod chunk + length > chunk.

use std::collections::HashMap;

use plumb_geometry::{Bytes, Grid, Share as Exact, split_share_from};
use plumb_model::facts::SplitIo;
use plumb_model::{Confidence, Cost, CostOf, Facts, IoSize, Reason, RuleId, Severity};
use plumb_profile::Profile;
use plumb_profile::fit::Select;
use plumb_stack::{CellKind, GridFact, Landing, NodeId};
use plumb_trace::Layer;

use super::context::{Context, Top, seen_from_above};
use super::{LayoutRule, sizes};
use crate::rules::context::too_few_ios;
use crate::rules::{IOS_MIN, Outcome, severity_of, share_words, undecided};
use crate::share::Share;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::SplitIo,
    thresholds: || {
        vec![
            format!("from {} of I/O on", share_words(SHARE_MIN)),
            format!("warning from {}", share_words(SHARE_WARNING)),
        ]
    },
    judge,
};

/// From this share on it is worth knowing: below one in a hundred the paper on striping calls it total alignment's
/// last percent.
pub const SHARE_MIN: f64 = 0.01;

/// From this share on it is a warning, as for recorded I/O.
pub const SHARE_WARNING: f64 = 0.10;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = context
        .tops
        .iter()
        .flat_map(|top| judge_top(context, top))
        .collect();
    // A stripe with recorded I/O is judged by them even if a layer is above it.
    for (id, _) in context
        .striped()
        .filter(|(id, _)| !context.profiles(*id).is_empty())
    {
        if let Some(profile) = placed(context, id) {
            let landings = context.stack.landings(id);
            outcomes.extend(landings.all.iter().take(1).flat_map(|landing| {
                boundaries(context, landing.on)
                    .map(|fact| observed(context, id, profile, landing, &fact))
            }));
        }
    }
    outcomes
}

fn judge_top(context: &Context<'_>, top: &Top) -> Vec<Outcome> {
    let mut by_layer: HashMap<(NodeId, Bytes), (GridFact, Vec<&Landing>)> = HashMap::new();
    let mut order = Vec::new();
    for landing in &top.landings.all {
        for fact in boundaries(context, landing.on) {
            let key = (landing.on, fact.granularity());
            by_layer
                .entry(key)
                .or_insert_with(|| {
                    order.push(key);
                    (fact, Vec::new())
                })
                .1
                .push(landing);
        }
    }
    let device = context.device_of(top.id);
    order
        .iter()
        .filter_map(|key| by_layer.get(key))
        .map(|(fact, landings)| match placed(context, top.id) {
            Some(profile) if landings.len() == 1 => {
                observed(context, device, profile, landings[0], fact)
            }
            _ => expected(context, device, &context.io_size(top.id), landings, fact),
        })
        .collect()
}

/// Boundaries at which I/O are cut on a layer. A chunk on a single member cuts nothing.
fn boundaries(context: &Context<'_>, on: NodeId) -> impl Iterator<Item = GridFact> {
    let is_striped = context.stack.node(on).placing.below().len() > 1;
    let grids = context.grids(on, |what| {
        what == CellKind::IoBoundary || what == CellKind::Chunk && is_striped
    });
    grids.into_iter()
}

/// The recording of a device with positions of the device.
fn placed<'a>(context: &'a Context<'_>, id: NodeId) -> Option<&'a Profile> {
    context.profile(id, |layer| layer != Layer::Vfs)
}

fn observed(
    context: &Context<'_>,
    device: NodeId,
    profile: &Profile,
    landing: &Landing,
    fact: &GridFact,
) -> Outcome {
    let Some(grid) = seen_from_above(landing, &fact.grid) else {
        return context.unknown(device, no_phase(context, landing));
    };
    let tally = match profile.places.table.fit(&grid, Select::DATA) {
        Ok(tally) => tally,
        Err(why) => return context.unknown(device, Reason::Table { why }),
    };
    if tally.ios < IOS_MIN {
        return context.unknown(device, too_few_ios(tally.ios));
    }
    let share = Share::between(tally.split, tally.ios);
    let Some(severity) = severity_of(share) else {
        return match undecided(share, || tally.lengths_dropped()) {
            Some(reason) => context.unknown(device, reason),
            None => Outcome::Silent,
        };
    };
    let is_own = context.name(device) == profile.device;
    let facts = SplitIo {
        counted: Some(share.counted()),
        counted_on: (!is_own).then(|| profile.device.clone()),
        ..facts(context, landing, fact)
    };
    let about = (device, severity, sizes::confidence_in(&fact.source));
    found(context, facts, about, share.value())
}

fn expected(
    context: &Context<'_>,
    device: NodeId,
    io: &IoSize,
    landings: &[&Landing],
    fact: &GridFact,
) -> Outcome {
    let mut worst: Option<(Exact, &Landing)> = None;
    for landing in landings {
        let Some(share) = share_of(landing, &fact.grid, io.bytes) else {
            return context.unknown(device, no_phase(context, landing));
        };
        if worst.is_none_or(|(known, _)| share.value() > known.value()) {
            worst = Some((share, *landing));
        }
    }
    let Some((share, landing)) = worst else {
        return Outcome::NotAsked;
    };
    if share.value() < SHARE_MIN {
        return match (io.is_assumed(), fact.what) {
            // Boundaries of drives are wide, and nothing here speaks against them.
            (true, CellKind::IoBoundary) => Outcome::NotAsked,
            (true, _) => {
                let reason = Reason::FewSplitForAssumed {
                    io: io.clone(),
                    on: context.name(landing.on).to_owned(),
                    split: share,
                };
                context.unknown(device, reason)
            }
            (false, _) => Outcome::Silent,
        };
    }
    let severity = if share.value() >= SHARE_WARNING {
        Severity::Warning
    } else {
        Severity::Note
    };
    let confidence = io.confidence().min(sizes::confidence_in(&fact.source));
    let facts = SplitIo {
        expected: Some(share),
        io: Some(io.clone()),
        ..facts(context, landing, fact)
    };
    found(
        context,
        facts,
        (device, severity, confidence),
        share.value(),
    )
}

/// Share of pages of a volume that cross a boundary of a layer below; `None` if that differs from one chunk between to
/// the next.
fn share_of(landing: &Landing, grid: &Grid, page: Bytes) -> Option<Exact> {
    let from_above = seen_from_above(landing, grid)?;
    split_share_from(Bytes(0), page, &from_above, page)
}

fn no_phase(context: &Context<'_>, landing: &Landing) -> Reason {
    let between = landing.via.iter().map(|id| context.name(*id).to_owned());
    Reason::ChunksBetween {
        devices: between.collect(),
    }
}

/// The chunk, and the start of the target on it.
fn facts(context: &Context<'_>, landing: &Landing, fact: &GridFact) -> SplitIo {
    let past = landing.shift.rem_euclid(i128::from(fact.granularity().0)) as u64;
    SplitIo {
        chunk_bytes: fact.granularity(),
        on: Some(context.name(landing.on).to_owned()),
        source: Some(fact.source.clone()),
        counted: None,
        counted_on: None,
        expected: None,
        io: None,
        past_bytes: Some(fact.grid.past_boundary(Bytes(past))),
        trace: None,
    }
}

fn found(
    context: &Context<'_>,
    facts: SplitIo,
    about: (NodeId, Severity, Confidence),
    share: f64,
) -> Outcome {
    let finding = context.finding(Facts::SplitIo(facts), about);
    Outcome::found(finding.with_cost(Cost::estimated(CostOf::Commands, 1.0 + share)))
}
