//! `implausible-hint`: a device states an impossible size. Tools that believe it put data at odd places.

use plumb_geometry::{Bytes, SECTOR};
use plumb_model::facts::{Hint, HintDoubt, ImplausibleHint};
use plumb_model::{Confidence, Facts, RuleId, Severity};
use plumb_stack::grid::Belief;
use plumb_stack::{CellKind, GridFact, Kind, Node, NodeId, Placing};

use super::context::Context;
use super::{LayoutRule, sizes};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::ImplausibleHint,
    thresholds: || {
        vec![
            format!("above {}", Bytes(OPTIMAL_BYTES_MAX)),
            BRIDGE_BYTES.to_string(),
        ]
    },
    judge: |context| context.judge_nodes(judge_node),
};

/// 65,535 sectors: USB bridges state it if they do not know the size (util-linux 1221 and 1224).
pub const BRIDGE_BYTES: u64 = 65_535 * SECTOR;

/// No drive has an optimal I/O size above this; arrays state whole stripes, which are smaller too.
pub const OPTIMAL_BYTES_MAX: u64 = 16 << 20;

fn judge_node(context: &Context<'_>, id: NodeId, node: &Node) -> Option<Outcome> {
    let mut hints = node
        .grids
        .iter()
        .filter(|fact| is_hint(node, fact))
        .peekable();
    hints.peek()?;
    let hints: Vec<Hint> = hints
        .filter_map(|fact| {
            Some(Hint {
                what: fact.what,
                stated_bytes: fact.granularity(),
                source: fact.source.clone(),
                doubt: doubt(context, node, fact)?,
            })
        })
        .collect();
    if hints.is_empty() {
        return Some(Outcome::Silent);
    }
    let facts = Facts::ImplausibleHint(ImplausibleHint { hints });
    let about = (id, Severity::Note, Confidence::High);
    Some(Outcome::found(context.finding(facts, about)))
}

/// Optimal I/O sizes, and a drive's own statements that are not believed. Limits that the kernel computes for a stacked
/// device are not that device's statement, and a virtual disk with known layers below has nothing to state.
fn is_hint(node: &Node, fact: &GridFact) -> bool {
    let is_drive = matches!(node.kind, Kind::Disk | Kind::VirtualDisk) && !node.is_seen_through();
    let is_limit = matches!(
        fact.what,
        CellKind::PhysicalBlock
            | CellKind::MinimumIo
            | CellKind::IoBoundary
            | CellKind::DiscardUnit
            | CellKind::WriteAlignment
    );
    fact.what == CellKind::OptimalIo || is_drive && is_limit && !fact.is_believed()
}

/// The reason why a statement is not believed: by the rules for any optimal I/O size, or by its reader.
fn doubt(context: &Context<'_>, node: &Node, fact: &GridFact) -> Option<HintDoubt> {
    let told = match &fact.belief {
        Belief::Doubted { why } if matches!(node.kind, Kind::Disk | Kind::VirtualDisk) => {
            Some(HintDoubt::Told { why: why.clone() })
        }
        _ => None,
    };
    if fact.what != CellKind::OptimalIo {
        return told;
    }
    let size = fact.granularity();
    let stated = |what: CellKind| {
        node.grids
            .iter()
            .find(|other| other.what == what)
            .map(GridFact::granularity)
    };
    if size.0 == BRIDGE_BYTES {
        return Some(HintDoubt::Bridge);
    }
    if size.0 > OPTIMAL_BYTES_MAX {
        return Some(HintDoubt::TooLarge {
            most_bytes: Bytes(OPTIMAL_BYTES_MAX),
        });
    }
    for (what, unit) in
        [CellKind::PhysicalBlock, CellKind::MinimumIo].map(|what| (what, stated(what)))
    {
        if let Some(unit_bytes) = unit.filter(|unit| !sizes::is_multiple(size, *unit)) {
            return Some(HintDoubt::NoMultiple {
                of: what,
                unit_bytes,
            });
        }
    }
    if !size.0.is_multiple_of(2 * SECTOR) {
        return Some(HintDoubt::OddSectors);
    }
    if told.is_some() {
        return told;
    }
    let Placing::Chunks(chunks) = &node.placing else {
        return None;
    };
    let stripe = chunks.stripe_bytes().filter(|stripe| *stripe != size)?;
    let below = chunks.members.iter().any(|member| {
        context
            .stack
            .node(member.node)
            .grids
            .iter()
            .any(|fact| fact.what == CellKind::OptimalIo)
    });
    Some(HintDoubt::NotTheStripe {
        stripe_bytes: stripe,
        is_multiple_of_members: below,
    })
}
