//! `narrow-stripe`: the chunk of a stripe is small against the I/O, so random I/O are split often and a member never
//! sees enough in a row to read ahead.

use plumb_geometry::{Bytes, Grid, SECTOR, Share, split_share};
use plumb_model::facts::NarrowStripe;
use plumb_model::{Facts, IoSize, Reason, RuleId, Severity};
use plumb_stack::grid::Belief;
use plumb_stack::{CellKind, Chunks, Node, NodeId, Placing};

use super::LayoutRule;
use super::context::Context;
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::NarrowStripe,
    thresholds: || {
        vec![
            format!("less than {IOS_PER_CHUNK_MIN} I/O"),
            format!("up to {IOS_PER_CHUNK_WARNING} I/O"),
            format!("{} or more is never narrow", Bytes(WIDE_BYTES)),
        ]
    },
    judge,
};

/// A chunk of fewer I/O than this is narrow: random I/O are then split in more than 1 of 16 cases, and splits have long
/// been the limit of the stripe.
pub const IOS_PER_CHUNK_MIN: u64 = 16;

/// Up to this number it is a warning: the paper's bad example is 8 KiB on 32 KiB.
pub const IOS_PER_CHUNK_WARNING: u64 = 4;

/// Never narrow, for any request: the paper's 1 MiB or greater, and twice the default size of one request.
pub const WIDE_BYTES: u64 = 1 << 20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let stripes = context.striped().filter(|(_, chunks)| chunks.parity == 0);
    stripes
        .map(|(id, chunks)| judge_stripe(context, id, chunks))
        .chain(without_chunk(context))
        .collect()
}

/// Stripes with a guessed chunk.
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
            Placing::Unknown { .. } => {
                let why = guessed(node)?;
                Some(context.unknown(id, Reason::ChunkDoubted { why }))
            }
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
            let reason = Reason::WideForAssumed {
                chunk_bytes: chunk,
                io,
            };
            context.unknown(id, reason)
        } else {
            Outcome::Silent
        };
    }
    let severity = if ios <= IOS_PER_CHUNK_WARNING && !io.is_assumed() {
        Severity::Warning
    } else {
        Severity::Note
    };
    let wanted = Bytes(WIDE_BYTES);
    let confidence = io.confidence();
    let facts = Facts::NarrowStripe(NarrowStripe {
        chunk_bytes: chunk,
        members: chunks.members.len() as u64,
        ios_per_chunk: ios,
        split: split(&io, chunk),
        wanted_chunk_bytes: wanted,
        wanted_split: split(&io, wanted),
        io,
        source: context.placed_by(id),
    });
    Outcome::found(context.finding(facts, (id, severity, confidence)))
}

/// Share of I/O at random sectors that touch two chunks.
fn split(io: &IoSize, chunk: Bytes) -> Option<Share> {
    split_share(io.bytes, &Grid::boundary(chunk).ok()?, Bytes(SECTOR))
}
