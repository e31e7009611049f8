//! `software-raid5`: parity in software, where each small write reads before it writes and a crash leaves stripes open.

use plumb_stack::node::keys;
use plumb_stack::{Kind, Node, NodeId, Placing};

use super::context::Context;
use super::parity_small_writes::write_cost;
use super::{LayoutRule, words};
use crate::finding::{Basis, Confidence, Cost, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "software-raid5",
    title: "parity is computed in software",
    needs: "nothing",
    decides: true,
    thresholds: || vec![format!("at least {PARITY_MIN} chunk of parity")],
    plan: None,
    judge,
};

/// Chunks of parity from which on it is one.
pub const PARITY_MIN: u32 = 1;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let arrays = context
        .stack
        .nodes()
        .filter(|(_, node)| node.kind == Kind::ParityRaid);
    arrays
        .map(|(id, node)| judge_array(context, id, node))
        .collect()
}

fn judge_array(context: &Context<'_>, id: NodeId, node: &Node) -> Outcome {
    let manager = node.facts.get(keys::MANAGER);
    let Some(manager) = manager else {
        return Outcome::UnknownOf(
            context.target(id),
            "who computes its parity is not known".to_owned(),
        );
    };
    let Placing::Chunks(chunks) = &node.placing else {
        return Outcome::UnknownOf(
            context.target(id),
            "its chunks and parity are not known".to_owned(),
        );
    };
    // RAID-Z writes whole stripes of its own.
    if manager.value == "zfs" || chunks.parity < PARITY_MIN {
        return Outcome::Silent;
    }
    // Solaris Volume Manager has no write-intent log or gathering beyond its small pre-write area.
    let severity = if manager.value == "svm" {
        Severity::Warning
    } else {
        Severity::Note
    };
    let cost = write_cost(chunks.parity);
    let summary = format!(
        "{} computes parity over {} devices",
        manager.value,
        chunks.members.len()
    );
    let finding = context
        .finding(
            &RULE,
            (id, severity, Confidence::Medium),
            summary,
            words::number("parity_chunks", u64::from(chunks.parity), "chunks", &manager.source),
        )
        .with_evidence(words::number("members", chunks.members.len() as u64, "devices", "layout"))
        .with_cost(Some(Cost {
            value: cost as f64,
            unit: "disk operations per small write",
            basis: Basis::Estimated,
        }))
        .explained(format!(
            "a small write takes {cost} disk operations, on a mirror 2: for databases take mirrors, or an array with a \
             cache that survives a power cut"
        ));
    Outcome::Found(finding)
}
