//! `discard-misaligned`: a layer off the unit of discards never gives its first and last unit back.

use std::collections::HashSet;

use plumb_geometry::{Bytes, Grid, GridKind};
use plumb_model::facts::DiscardMisaligned;
use plumb_model::{Cost, CostOf, Facts, GridOf, Reason, RuleId, Severity};
use plumb_stack::fold::Phase;
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::node_facts::KernelOffset;
use plumb_stack::{CellKind, GridFact, Landing, NodeId};

use super::context::{Context, Top};
use super::{LayoutRule, sizes};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::DiscardMisaligned,
    thresholds: || vec![format!("units of {} or more", Bytes(UNIT_BYTES_MIN))],
    judge,
};

/// Units up to this size are those of alignment itself, and judged there.
pub const UNIT_BYTES_MIN: u64 = 8192;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    context
        .tops
        .iter()
        .flat_map(|top| judge_top(context, top))
        .collect()
}

fn judge_top(context: &Context<'_>, top: &Top) -> Vec<Outcome> {
    let device = context.device_of(top.id);
    let mut seen = HashSet::new();
    let mut outcomes = Vec::new();
    for landing in &top.landings.all {
        let units = context.grids(landing.on, |what| what == CellKind::DiscardUnit);
        // If a drive states a start of discards, it means that for starts, and the other for lengths.
        let has_start = units.iter().any(|fact| is_field(fact, "NPDA"));
        for fact in units
            .into_iter()
            .filter(|fact| !(has_start && is_field(fact, "NPDG")))
        {
            // One answer for each layer, for any number of pieces on it.
            if fact.granularity().0 >= UNIT_BYTES_MIN
                && seen.insert((landing.on, fact.granularity()))
            {
                outcomes.push(judge_landing(context, device, landing, &fact));
            }
        }
    }
    outcomes
}

fn is_field(fact: &GridFact, name: &str) -> bool {
    matches!(&fact.source, Source::Drive { field } if field == name)
}

/// The grid with the offset that the kernel states apart from it.
fn grid(context: &Context<'_>, on: NodeId, fact: &GridFact) -> Grid {
    let unit = fact.granularity().0;
    let stated = context.stack.node(on).number(keys::DISCARD_ALIGNMENT);
    match stated {
        Some(KernelOffset::Bytes(offset)) if fact.grid.offset() == Bytes(0) => {
            Grid::new(Bytes(unit), Bytes(offset.0 % unit), GridKind::Unit).unwrap_or(fact.grid)
        }
        _ => fact.grid,
    }
}

fn judge_landing(
    context: &Context<'_>,
    device: NodeId,
    landing: &Landing,
    fact: &GridFact,
) -> Outcome {
    let on = context.name(landing.on);
    let grid = grid(context, landing.on, fact);
    let past_bytes = match landing.phase(&grid) {
        Phase::Past(Bytes(0)) => return Outcome::Silent,
        Phase::Past(past) => past,
        Phase::Varies(step_bytes) => {
            let reason = Reason::DiscardVaries {
                unit_bytes: fact.granularity(),
                step_bytes,
                on: on.to_owned(),
            };
            return context.unknown(device, reason);
        }
    };
    let facts = Facts::DiscardMisaligned(DiscardMisaligned {
        grid: GridOf {
            offset_bytes: grid.offset(),
            ..GridOf::new(fact, on)
        },
        past_bytes,
    });
    let about = (device, Severity::Note, sizes::confidence_in(&fact.source));
    // Each hole of n units gives back n - 1.
    let cost = Cost::estimated(CostOf::KeptUnits, 1.0);
    Outcome::found(context.finding(facts, about).with_cost(cost))
}
