//! `narrow-stripe`: the chunk of a stripe is small against the I/O, so random I/O are split often and a member never
//! sees enough in a row to read ahead.

use plumb_geometry::{Bytes, Grid, SECTOR, split_share};
use plumb_stack::grid::Belief;
use plumb_stack::{CellKind, Chunks, Node, NodeId, Placing};

use super::context::Context;
use super::{LayoutRule, words};
use crate::finding::{Confidence, Severity};
use crate::rules::{Outcome, PlanKind};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "narrow-stripe",
    title: "the chunk of a stripe is small against the I/O",
    needs: "`--page` or a profile",
    decides: false,
    thresholds: || {
        vec![
            format!("less than {IOS_PER_CHUNK_MIN} I/O"),
            format!("up to {IOS_PER_CHUNK_WARNING} I/O"),
            format!("{} or more is never narrow", Bytes(WIDE_BYTES)),
        ]
    },
    plan: Some(PlanKind::Chunk),
    judge,
};

/// A chunk of less than so many I/O is narrow: random I/O are then split in more than 1 of 16 cases, where the
/// chance of a split has long been what limits a stripe.
pub const IOS_PER_CHUNK_MIN: u64 = 16;

/// Up to so many it is worth mending: the paper's bad example is 8 KiB on 32 KiB.
pub const IOS_PER_CHUNK_WARNING: u64 = 4;

/// Never narrow, whatever is asked: the paper's 1 MiB or greater, and twice what one request holds by default.
pub const WIDE_BYTES: u64 = 1 << 20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let stripes = context.striped().filter(|(_, chunks)| chunks.parity == 0);
    stripes
        .map(|(id, chunks)| judge_stripe(context, id, chunks))
        .chain(without_chunk(context))
        .collect()
}

/// Stripes of which the chunk was guessed at.
fn without_chunk(context: &Context<'_>) -> impl Iterator<Item = Outcome> {
    let guessed = |node: &Node| {
        node.grids.iter().find_map(|fact| match &fact.belief {
            Belief::Doubted { why } if fact.what == CellKind::Chunk => Some(why.clone()),
            _ => None,
        })
    };
    context
        .stack
        .nodes()
        .filter_map(move |(id, node)| match &node.placing {
            Placing::Unknown { .. } => Some(Outcome::UnknownOf(context.target(id), guessed(node)?)),
            _ => None,
        })
}

fn judge_stripe(context: &Context<'_>, id: NodeId, chunks: &Chunks) -> Outcome {
    let chunk = chunks.chunk;
    if chunk.0 >= WIDE_BYTES {
        return Outcome::Silent;
    }
    let io = context.io_size(id);
    // By division, since a page may be as large as 64 bits hold.
    let ios = chunk.0 / io.bytes.0.max(1);
    if ios >= IOS_PER_CHUNK_MIN {
        return if io.is_assumed() {
            let why = format!(
                "a chunk of {chunk} is wide enough for I/O of {}, which are assumed; unknown for larger ones: give --page \
                 or a profile",
                io.bytes
            );
            Outcome::UnknownOf(context.target(id), why)
        } else {
            Outcome::Silent
        };
    }
    let severity = if ios <= IOS_PER_CHUNK_WARNING && io.confidence != Confidence::Low {
        Severity::Warning
    } else {
        Severity::Note
    };
    let summary = format!("a chunk of {chunk} holds {ios} I/O of {}", io.bytes);
    let source = context
        .stack
        .node(id)
        .placed_by
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut finding = context
        .finding(
            &RULE,
            (id, severity, io.confidence),
            summary,
            words::bytes("chunk_bytes", chunk, source),
        )
        .with_evidence(io.evidence());
    let random = Grid::boundary(chunk)
        .ok()
        .and_then(|grid| split_share(io.bytes, &grid, Bytes(SECTOR)));
    if let Some(random) = random {
        let evidence = words::real(
            "split_share_random",
            random.value(),
            "share",
            "starts on random sectors",
        );
        finding = finding.with_evidence(evidence).explained(format!(
            "{} I/O of {} at random sectors are split: {} exactly",
            words::share(random),
            io.bytes,
            random
        ));
    }
    if io.is_assumed() {
        finding = finding.explained("the size of the I/O is assumed: give --page or a profile");
    }
    Outcome::Found(finding.explained(format!(
        "a chunk cannot be changed on most systems: make the stripe anew with {} or more, or lay soft partitions on \
         chunk boundaries meanwhile",
        Bytes(WIDE_BYTES)
    )))
}
