//! `software-raid5`: parity in software, where each small write reads before it writes and a crash leaves stripes open.

use plumb_model::facts::SoftwareRaid5;
use plumb_model::{Confidence, Cost, CostOf, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::node_facts::VolumeManager;
use plumb_stack::{Kind, Node, NodeId, Placing};

use super::LayoutRule;
use super::context::Context;
use super::parity_small_writes::write_cost;
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::SoftwareRaid5,
    thresholds: || vec![format!("at least {PARITY_MIN} chunk of parity")],
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
    let manager = node.fact(keys::MANAGER);
    let Some(manager) = manager else {
        return context.unknown(id, Reason::ParityManager);
    };
    let Placing::Chunks(chunks) = &node.placing else {
        return context.unknown(id, Reason::ParityLayout);
    };
    // RAID-Z writes whole stripes of its own.
    if manager.value == VolumeManager::Zfs || chunks.parity < PARITY_MIN {
        return Outcome::Silent;
    }
    // Solaris Volume Manager has no write-intent log or gathering beyond its small pre-write area.
    let severity = if manager.value == VolumeManager::Svm {
        Severity::Warning
    } else {
        Severity::Note
    };
    let operations = write_cost(chunks.parity);
    let facts = Facts::SoftwareRaid5(SoftwareRaid5 {
        manager: manager.value.clone(),
        members: chunks.members.len() as u64,
        parity: chunks.parity,
        operations,
        source: manager.source.clone(),
    });
    let finding = context.finding(facts, (id, severity, Confidence::Medium));
    Outcome::found(finding.with_cost(Cost::estimated(CostOf::DiskOperations, operations as f64)))
}
