//! `stripe-segment-mismatch`: the chunk of a software stripe is no multiple of the segment of the array below it.

use plumb_geometry::{Bytes, plural};
use plumb_stack::{Chunks, NodeId};

use super::context::{Context, Hardware};
use super::{LayoutRule, words};
use crate::finding::{Confidence, Severity};
use crate::rules::{Outcome, PlanKind, percent};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "stripe-segment-mismatch",
    title: "a software chunk is no multiple of the segment of the array below",
    needs: "a known array or `--segment`",
    decides: true,
    thresholds: || vec![format!("proposed up to {}", Bytes(PROPOSED_BYTES_MAX))],
    plan: Some(PlanKind::Chunk),
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
    let segments: Vec<(NodeId, Bytes, String)> = leaves
        .iter()
        .filter(|leaf| is_lun(leaf))
        .filter_map(|leaf| {
            context
                .segment(*leaf)
                .map(|(segment, source)| (*leaf, segment, source))
        })
        .collect();
    let off: Vec<&(NodeId, Bytes, String)> = segments
        .iter()
        .filter(|(_, segment, _)| !words::is_multiple(chunks.chunk, *segment))
        .collect();
    let Some((leaf, segment, source)) = off.first() else {
        return match leaves
            .iter()
            .find(|leaf| matches!(context.hardware(**leaf), Hardware::Array(_)))
        {
            Some(array) if segments.is_empty() => {
                let why = format!(
                    "the segment of the array behind {} is not known: give --segment",
                    context.name(*array)
                );
                Outcome::UnknownOf(context.target(id), why)
            }
            _ if segments.is_empty() => Outcome::NotAsked,
            _ => Outcome::Silent,
        };
    };
    let (chunk, segment) = (chunks.chunk, *segment);
    let summary = format!(
        "a chunk of {chunk} is no multiple of the {segment} segment of {} of {} below",
        off.len(),
        plural(leaves.len() as u64, "device")
    );
    let stated = context
        .stack
        .node(id)
        .placed_by
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let below = chunk.0 / segment.0 * segment.0;
    let above = below.checked_add(segment.0);
    let near: Vec<String> = [Some(below).filter(|below| *below > 0), above]
        .into_iter()
        .flatten()
        .map(|n| Bytes(n).to_string())
        .collect();
    let largest = Bytes(PROPOSED_BYTES_MAX / segment.0 * segment.0);
    let mut finding = context
        .finding(
            &RULE,
            (id, Severity::Warning, Confidence::High),
            summary,
            words::bytes("chunk_bytes", chunk, stated),
        )
        .with_evidence(words::bytes("segment_bytes", segment, format!("{source}, below {}", context.name(*leaf))))
        .with_evidence(words::bytes("chunk_past_segment_bytes", Bytes(chunk.0 % segment.0), "arithmetic"))
        .explained(format!(
            "chunks begin at other places of a segment each time, so I/O that lie well in a chunk are cut again by \
             the array: {} of a segment is left over",
            percent((chunk.0 % segment.0) as f64 / segment.0 as f64)
        ))
        .explained(format!("the nearest multiples of the segment are {}", words::list(&near)));
    if largest.0 > 0 {
        finding = finding.explained(format!(
            "for random I/O the chunk should be large, such as {largest} = {} × {segment}",
            largest.0 / segment.0
        ));
    }
    Outcome::Found(
        finding.explained("a chunk cannot be changed in place: make the stripe anew and copy"),
    )
}
