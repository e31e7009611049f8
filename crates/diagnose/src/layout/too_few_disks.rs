//! `too-few-disks`: the requested rate compared with that of the disks below, with the cost of writes and a margin.

use std::collections::HashSet;

use plumb_model::facts::{RateBasis, TooFewDisks};
use plumb_model::{Confidence, Cost, CostOf, Facts, Reason, RuleId, Severity};
use plumb_stack::{Kind, Landings, NodeId, Placing};

use super::LayoutRule;
use super::context::Context;
use super::parity_small_writes::write_cost;
use super::rates::Rate;
use crate::rules::{Outcome, share_words};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::TooFewDisks,
    thresholds: || vec![format!("{} more", share_words(MARGIN_MIN))],
    judge,
};

/// The rate of disks beyond the demand. The case study asks for 20 to 30 percent more than 265 a second and accepts
/// 320, which is 21.
pub const MARGIN_MIN: f64 = 0.20;

/// A demand on a volume.
struct Demand {
    ios_per_second: f64,
    write_share: f64,
    basis: RateBasis,
    confidence: Confidence,
}

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let known = context.known;
    let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
    match (
        known.ios_per_second.filter(|rate| is_rate(*rate)),
        known.disk_ios_per_second.filter(|rate| is_rate(*rate)),
    ) {
        (None, None) => vec![Outcome::NotAsked],
        (Some(rate), disk) => {
            let demand = Demand {
                ios_per_second: rate,
                write_share: known.write_share.map_or(1.0, |share| share.clamp(0.0, 1.0)),
                basis: RateBasis::Given,
                confidence: Confidence::Medium,
            };
            vec![given(context, &demand, disk)]
        }
        (None, Some(disk)) => seen(context, disk),
    }
}

fn given(context: &Context<'_>, demand: &Demand, disk: Option<f64>) -> Outcome {
    let volume = context.known.volume.or(match context.tops.as_slice() {
        [only] => Some(only.id),
        _ => None,
    });
    let Some(volume) = volume else {
        return Outcome::Unknown(Reason::WhichVolume {
            volumes: context.tops.len() as u64,
        });
    };
    let Some(disk) = disk else {
        return context.unknown(volume, Reason::DiskRate);
    };
    judge_volume(context, volume, demand, disk)
}

/// Each volume with counted I/O, by their mean rate.
fn seen(context: &Context<'_>, disk: f64) -> Vec<Outcome> {
    let volumes = context.tops.iter().filter_map(|top| {
        let recorded = || Rate::seen(context.profile(top.id, |_| true)?);
        let on_device = || Rate::find(context, context.device_of(top.id));
        let rate = Rate::find(context, top.id)
            .or_else(recorded)
            .or_else(on_device)?;
        let demand = Demand {
            ios_per_second: rate.ios_per_second,
            write_share: rate.write_share.unwrap_or(1.0),
            basis: rate.basis,
            confidence: Confidence::Medium,
        };
        Some(judge_volume(context, top.id, &demand, disk))
    });
    let outcomes: Vec<Outcome> = volumes.collect();
    if outcomes.is_empty() {
        return vec![Outcome::Unknown(Reason::Demand)];
    }
    outcomes
}

/// Disk operations for a write, by the layers on the way; `None` if a layer places its bytes in an unknown way. The
/// start of a partition makes no more operations, so one without a label does not matter.
fn write_factor(context: &Context<'_>, landings: &Landings) -> Option<u64> {
    let of = |id: NodeId| match &context.stack.node(id).placing {
        Placing::Copies { members } if context.stack.node(id).kind != Kind::Multipath => {
            members.len() as u64
        }
        Placing::Chunks(chunks) if chunks.parity > 0 => write_cost(chunks.parity),
        Placing::Chunks(chunks) => u64::from(chunks.copies.max(1)),
        _ => 1,
    };
    let is_partition = |id: NodeId| context.stack.node(id).kind == Kind::Partition;
    let is_end =
        |id: NodeId| context.stack.is_leaf(id) || landings.lost.iter().any(|(lost, _)| *lost == id);
    let leaves = landings.all.iter().filter(|landing| is_end(landing.on));
    let factor = |via: &[NodeId]| {
        via.iter()
            .fold(1, |factor: u64, id| factor.saturating_mul(of(*id)))
    };
    let most = leaves.map(|landing| factor(&landing.via)).max();
    most.filter(|_| landings.lost.iter().all(|(lost, _)| is_partition(*lost)))
}

/// Disks below, each once; the paths of one are one.
fn disks(context: &Context<'_>, volume: NodeId) -> usize {
    let mut seen = HashSet::from([volume]);
    let (mut next, mut disks) = (vec![volume], 0);
    while let Some(id) = next.pop() {
        let node = context.stack.node(id);
        if node.kind == Kind::Multipath || context.stack.is_leaf(id) {
            disks += 1;
        } else {
            next.extend(
                node.placing
                    .below()
                    .into_iter()
                    .filter(|below| seen.insert(*below)),
            );
        }
    }
    disks
}

fn judge_volume(context: &Context<'_>, volume: NodeId, demand: &Demand, disk: f64) -> Outcome {
    let disks = disks(context, volume);
    let Some(factor) = write_factor(context, &context.landings(volume)).filter(|_| disks > 0)
    else {
        return context.unknown(volume, Reason::PlaceOnDisks);
    };
    let writes = demand.ios_per_second * demand.write_share;
    let needed = demand.ios_per_second - writes + writes * factor as f64;
    let given = disks as f64 * disk;
    let utilisation = needed / given;
    let service_ns = 1e9 / disk;
    // One queue a disk, arrivals and service at random: the plainest model, and a harsh one.
    let response_ns = (utilisation < 1.0).then(|| service_ns / (1.0 - utilisation));
    let limit_ns = context
        .known
        .response_ns
        .filter(|limit| limit.is_finite() && *limit > 0.0);
    let is_slow = limit_ns.is_some_and(|limit| response_ns.is_none_or(|response| response > limit));
    // If they are busy all the time, the queue grows without end.
    let severity = match (
        given <= needed,
        is_slow,
        given < needed * (1.0 + MARGIN_MIN),
    ) {
        (true, ..) | (_, true, _) => Severity::Warning,
        (.., true) => Severity::Note,
        _ => return Outcome::Silent,
    };
    let wanted = disks_wanted(needed, disk, limit_ns);
    let facts = Facts::TooFewDisks(TooFewDisks {
        asked_ios_per_second: demand.ios_per_second,
        asked_by: demand.basis.clone(),
        needed_ios_per_second: needed,
        given_ios_per_second: given,
        disks: disks as u64,
        operations_per_write: factor,
        utilisation,
        response_ns,
        idle_ns: service_ns,
        wanted_disks: wanted,
        wanted_margin: wanted.map(|wanted| wanted as f64 * disk / needed - 1.0),
    });
    let cost =
        response_ns.map(|response| Cost::estimated(CostOf::IdleResponses, response / service_ns));
    let finding = context.finding(facts, (volume, severity, demand.confidence));
    Outcome::found(finding.with_cost(cost))
}

/// Disks that give the rate with its margin, and within the limit if there is one.
fn disks_wanted(needed: f64, disk: f64, limit_ns: Option<f64>) -> Option<u64> {
    let by_margin = needed * (1.0 + MARGIN_MIN) / disk;
    let by_limit = match limit_ns {
        None => 0.0,
        Some(limit) => {
            let utilisation_max = 1.0 - 1e9 / disk / limit;
            if utilisation_max <= 0.0 {
                return None;
            }
            needed / (disk * utilisation_max)
        }
    };
    let wanted = by_margin.max(by_limit).ceil();
    // Rounding may put the exact bound just above a whole number; one disk more is no harm, none is.
    (wanted < u64::MAX as f64).then_some(wanted as u64)
}
