//! Positions of bytes of a layer: through parts, copies, chunks, and whole stripes of parity.

use std::collections::BTreeMap;
use std::ops::Range;

use super::OccupiedRange;
use crate::graph::NodeId;
use crate::node::{Chunks, Kind, Node, Placing};

/// Most pieces of layers that are followed downwards; a host of thousands of volumes has far less.
const PIECES_MAX: usize = 1 << 24;

/// The final positions of all runs, on layers shared by several components; and whether all were followed.
pub(super) fn below(
    nodes: &[Node],
    components: &BTreeMap<NodeId, Vec<OccupiedRange>>,
) -> (BTreeMap<NodeId, Vec<OccupiedRange>>, bool) {
    let mut below: BTreeMap<NodeId, Vec<OccupiedRange>> = BTreeMap::new();
    let mut left = if components.len() > 1 { PIECES_MAX } else { 0 };
    for run in components.values().flatten() {
        let mut ways = vec![(run.extent.component, run.start..run.end)];
        while let Some((layer, bytes)) = ways.pop() {
            let Some(rest) = left.checked_sub(1 + nodes[layer.at()].placing.below().len()) else {
                return (below, components.len() <= 1);
            };
            left = rest;
            match step(&nodes[layer.at()], &bytes) {
                Some(next) => ways.extend(next.into_iter().filter(|(_, bytes)| !bytes.is_empty())),
                None => below.entry(layer).or_default().push(OccupiedRange {
                    start: bytes.start,
                    end: bytes.end,
                    ..*run
                }),
            }
        }
    }
    (below, true)
}

/// The positions of bytes of a layer on the next ones; `None` if they are followed no further. A soft partition below
/// is compared by itself.
fn step(node: &Node, bytes: &Range<u64>) -> Option<Vec<(NodeId, Range<u64>)>> {
    match &node.placing {
        _ if node.kind == Kind::SoftPartition => None,
        Placing::Parts { parts } => {
            let within = parts.iter().map(|part| {
                let end = part
                    .len
                    .map_or(u64::MAX, |len| part.upper.0.saturating_add(len.0));
                let (from, to) = (bytes.start.max(part.upper.0), bytes.end.min(end));
                let moved = |at: u64| (at - part.upper.0).saturating_add(part.start.0);
                (
                    part.node,
                    if from < to {
                        moved(from)..moved(to)
                    } else {
                        0..0
                    },
                )
            });
            Some(within.collect())
        }
        Placing::Copies { members } => {
            let moved = |at: u64, start: u64| at.saturating_add(start);
            let copies = members.iter().map(|member| {
                (
                    member.node,
                    moved(bytes.start, member.start.0)..moved(bytes.end, member.start.0),
                )
            });
            Some(copies.collect())
        }
        Placing::Chunks(chunks) if chunks.copies <= 1 && chunks.chunk.0 > 0 => {
            Some(in_chunks(chunks, bytes))
        }
        _ => None,
    }
}

/// Contiguous bytes are contiguous on each member as well.
fn in_chunks(chunks: &Chunks, bytes: &Range<u64>) -> Vec<(NodeId, Range<u64>)> {
    let (chunk, width) = (
        chunks.chunk.0,
        chunks.chunk.0.saturating_mul(chunks.data_chunks()),
    );
    let on_member = |number: usize| {
        if chunks.parity > 0 {
            let (first, end) = (bytes.start.div_ceil(width), bytes.end / width);
            return first.saturating_mul(chunk)..end.max(first).saturating_mul(chunk);
        }
        let before = |at: u64| {
            let skipped = (number as u64).saturating_mul(chunk);
            at / width * chunk + (at % width).saturating_sub(skipped).min(chunk)
        };
        before(bytes.start)..before(bytes.end)
    };
    let members = chunks.members.iter().enumerate().map(|(number, member)| {
        let run = on_member(number);
        let moved = |at: u64| at.saturating_add(member.start.0);
        (member.node, moved(run.start)..moved(run.end))
    });
    members.collect()
}
