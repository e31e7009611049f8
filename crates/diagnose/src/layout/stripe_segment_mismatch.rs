//! `stripe-segment-mismatch`: the chunk of a software stripe is no multiple of the segment of the array below it.

use plumb_geometry::Bytes;
use plumb_model::facts::{Segment, StripeSegmentMismatch};
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::{Chunks, NodeId, Source};

use super::context::{Context, Hardware};
use super::{LayoutRule, sizes};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::StripeSegmentMismatch,
    thresholds: || vec![format!("proposed up to {}", Bytes(PROPOSED_BYTES_MAX))],
    judge,
};

/// Chunks are proposed up to here: the paper's 20 × 48 KiB = 960 KiB is the largest "round" one below it.
pub const PROPOSED_BYTES_MAX: u64 = 1 << 20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    context
        .striped()
        .map(|(id, chunks)| judge_stripe(context, id, chunks))
        .collect()
}

fn judge_stripe(context: &Context<'_>, id: NodeId, chunks: &Chunks) -> Outcome {
    let leaves = context.leaves(id);
    // The segment given by the user is that of arrays: a drive that is known to be one has none.
    let is_lun = |leaf: &NodeId| context.hardware(*leaf) != Hardware::Drive;
    let segments: Vec<(NodeId, Bytes, Source)> = leaves
        .iter()
        .filter(|leaf| is_lun(leaf))
        .filter_map(|leaf| {
            context
                .segment(*leaf)
                .map(|(segment, source)| (*leaf, segment, source))
        })
        .collect();
    let off: Vec<&(NodeId, Bytes, Source)> = segments
        .iter()
        .filter(|(_, segment, _)| !sizes::is_multiple(chunks.chunk, *segment))
        .collect();
    let Some((leaf, segment, source)) = off.first() else {
        return match leaves
            .iter()
            .find(|leaf| matches!(context.hardware(**leaf), Hardware::Array(_)))
        {
            Some(array) if segments.is_empty() => {
                let on = context.name(*array).to_owned();
                context.unknown(id, Reason::Segment { on })
            }
            _ if segments.is_empty() => Outcome::NotAsked,
            _ => Outcome::Silent,
        };
    };
    let (chunk, segment) = (chunks.chunk, *segment);
    let below = chunk.0 / segment.0 * segment.0;
    let above = below.checked_add(segment.0);
    let nearest = [Some(below).filter(|below| *below > 0), above];
    let proposed = Bytes(PROPOSED_BYTES_MAX / segment.0 * segment.0);
    let facts = Facts::StripeSegmentMismatch(StripeSegmentMismatch {
        chunk_bytes: chunk,
        segment: Segment {
            bytes: segment,
            on: context.name(*leaf).to_owned(),
            source: source.clone(),
        },
        past_bytes: Bytes(chunk.0 % segment.0),
        devices_off: off.len() as u64,
        devices: leaves.len() as u64,
        nearest_bytes: nearest.into_iter().flatten().map(Bytes).collect(),
        proposed_bytes: (proposed.0 > 0).then_some(proposed),
        source: context.placed_by(id),
    });
    Outcome::found(context.finding(facts, (id, Severity::Warning, Confidence::High)))
}
