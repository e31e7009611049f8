//! `implausible-hint`: a device states a size that cannot be what it says it is. Tools that believe it put data at odd
//! places.

use plumb_geometry::{Bytes, SECTOR};
use plumb_stack::grid::Belief;
use plumb_stack::{CellKind, GridFact, Kind, Node, NodeId, Placing};

use super::context::Context;
use super::{LayoutRule, words};
use crate::finding::{Confidence, Finding, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "implausible-hint",
    title: "a stated size cannot be true",
    needs: "nothing",
    decides: true,
    thresholds: || {
        vec![
            format!("above {}", Bytes(OPTIMAL_BYTES_MAX)),
            BRIDGE_BYTES.to_string(),
        ]
    },
    plan: None,
    judge,
};

/// 65,535 sectors: what USB bridges state for want of an answer (util-linux 1221 and 1224).
pub const BRIDGE_BYTES: u64 = 65_535 * SECTOR;

/// No drive has an optimal I/O size above this; arrays state whole stripes, which are smaller too.
pub const OPTIMAL_BYTES_MAX: u64 = 16 << 20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    context
        .stack
        .nodes()
        .filter_map(|(id, node)| judge_node(context, id, node))
        .collect()
}

fn judge_node(context: &Context<'_>, id: NodeId, node: &Node) -> Option<Outcome> {
    let mut hints = node
        .grids
        .iter()
        .filter(|fact| is_hint(node, fact))
        .peekable();
    hints.peek()?;
    let mut finding: Option<Finding> = None;
    for fact in hints {
        let Some(why) = doubt(context, node, fact) else {
            continue;
        };
        let sentence = format!(
            "{} of {}: {why}",
            fact.what.text(),
            words::place(fact.granularity())
        );
        finding = Some(match finding {
            None => found(context, id, fact, sentence),
            Some(finding) => finding.with_evidence(evidence(fact)).explained(sentence),
        });
    }
    Some(finding.map_or(Outcome::Silent, Outcome::Found))
}

/// Optimal I/O sizes, and what a drive states of itself that is not believed. Limits that the kernel works out for a
/// stacked device are not that device's word, and a virtual disk whose ground is known has nothing to state.
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

/// Why a statement is not believed: by what any optimal I/O size must be, or by whoever read it.
fn doubt(context: &Context<'_>, node: &Node, fact: &GridFact) -> Option<String> {
    let told = match &fact.belief {
        Belief::Doubted { why } if matches!(node.kind, Kind::Disk | Kind::VirtualDisk) => {
            Some(why.clone())
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
        return Some("65,535 sectors is what bridges state for want of an answer".to_owned());
    }
    if size.0 > OPTIMAL_BYTES_MAX {
        return Some(format!(
            "no device is at its best with more than {}",
            Bytes(OPTIMAL_BYTES_MAX)
        ));
    }
    for (what, unit) in
        [CellKind::PhysicalBlock, CellKind::MinimumIo].map(|what| (what, stated(what)))
    {
        if let Some(unit) = unit.filter(|unit| !words::is_multiple(size, *unit)) {
            return Some(format!("no multiple of the {} of {unit}", what.text()));
        }
    }
    if !size.0.is_multiple_of(2 * SECTOR) {
        return Some("an odd number of sectors".to_owned());
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
    let cause = if below {
        ": it is the least common multiple with those of its members"
    } else {
        ""
    };
    Some(format!("the true stripe is {stripe}{cause}"))
}

fn evidence(fact: &GridFact) -> crate::finding::Evidence {
    words::bytes("stated_bytes", fact.granularity(), &fact.source)
}

fn found(context: &Context<'_>, id: NodeId, fact: &GridFact, sentence: String) -> Finding {
    let summary = format!(
        "its {} of {} is not believed",
        fact.what.text(),
        fact.granularity()
    );
    context
        .finding(&RULE, (id, Severity::Note, Confidence::High), summary, evidence(fact))
        .explained(sentence)
        .explained(
            "it is not used here, but other tools may: give partitioning tools, pvcreate and mkfs their alignment and \
             stripe yourself",
        )
}
