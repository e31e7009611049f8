//! `software-stripe-on-hardware-raid`: software stripes over LUNs that an array stripes already.

use plumb_stack::{Chunks, NodeId};

use super::context::{Context, Hardware};
use super::{LayoutRule, words};
use crate::finding::{Confidence, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "software-stripe-on-hardware-raid",
    title: "software stripes what an array stripes already",
    needs: "nothing",
    decides: true,
    thresholds: || vec![format!("at least {LUNS_MIN} LUN")],
    plan: None,
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
                let name = context.name(*leaf);
                let why = format!("whether {name} is a drive or a LUN of an array is not known");
                Outcome::UnknownOf(context.target(id), why)
            }
            None if leaves.is_empty() => Outcome::NotAsked,
            None => Outcome::Silent,
        };
    };
    let summary = format!(
        "{luns} of {} devices below are LUNs of an array",
        leaves.len()
    );
    let finding = context
        .finding(
            &RULE,
            (id, Severity::Note, Confidence::Medium),
            summary,
            words::number("luns", luns, "devices", "devices below"),
        )
        .with_evidence(words::bytes("chunk_bytes", chunks.chunk, "layout"))
        .explained(format!("{} for one: {why}", context.name(lun)))
        .explained(
            "two stripes over each other split I/O twice. Let the array stripe, or, where several LUNs have to be joined, \
             take a large chunk that is a multiple of the segment",
        );
    Outcome::Found(finding)
}
