//! `software-stripe-on-hardware-raid`: software stripes over LUNs that an array stripes already.

use plumb_model::facts::SoftwareStripeOnHardwareRaid;
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::{Chunks, NodeId};

use super::LayoutRule;
use super::context::{Context, Hardware};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::SoftwareStripeOnHardwareRaid,
    thresholds: || vec![format!("at least {LUNS_MIN} LUN")],
    judge,
};

/// LUNs of an array below a stripe from which on it is one.
pub const LUNS_MIN: u64 = 1;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let stripes = context
        .striped()
        .filter(|(_, chunks)| chunks.parity == 0 && chunks.copies <= 1);
    stripes
        .map(|(id, chunks)| judge_stripe(context, id, chunks))
        .collect()
}

fn judge_stripe(context: &Context<'_>, id: NodeId, chunks: &Chunks) -> Outcome {
    let leaves = context.leaves(id);
    let kinds: Vec<Hardware> = leaves.iter().map(|leaf| context.hardware(*leaf)).collect();
    let luns = kinds
        .iter()
        .filter(|kind| matches!(kind, Hardware::Array(_)))
        .count() as u64;
    let first = leaves
        .iter()
        .zip(&kinds)
        .find_map(|(leaf, kind)| match kind {
            Hardware::Array(why) => Some((*leaf, why)),
            _ => None,
        });
    let Some((lun, why)) = first.filter(|_| luns >= LUNS_MIN) else {
        let unseen = leaves
            .iter()
            .zip(&kinds)
            .find(|(_, kind)| **kind == Hardware::Unknown);
        return match unseen {
            Some((leaf, _)) => {
                let device = context.name(*leaf).to_owned();
                context.unknown(id, Reason::DriveOrLun { device })
            }
            None if leaves.is_empty() => Outcome::NotAsked,
            None => Outcome::Silent,
        };
    };
    let facts = Facts::SoftwareStripeOnHardwareRaid(SoftwareStripeOnHardwareRaid {
        chunk_bytes: chunks.chunk,
        luns,
        devices: leaves.len() as u64,
        lun: context.name(lun).to_owned(),
        because: why.clone(),
    });
    Outcome::found(context.finding(facts, (id, Severity::Note, Confidence::Medium)))
}
