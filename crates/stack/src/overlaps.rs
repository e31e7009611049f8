//! Soft partitions that share bytes, the sector for the header before each extent included. Labels are held against
//! overlaps where they are read.

use std::collections::BTreeMap;

use plumb_geometry::{Bytes, SECTOR};

use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, Node, Placing, Problem};
use crate::problem_ids::OVERLAPPING_PARTITIONS;

/// An extent on its component: where it begins and ends, and whose it is.
type Run = (Bytes, Bytes, NodeId);

/// Each that overlaps is told of once, beside the one before it that ends last.
pub(crate) fn soft_partitions(nodes: &[Node]) -> Vec<Problem> {
    let mut components: BTreeMap<NodeId, Vec<Run>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.kind == Kind::SoftPartition) {
        let Placing::Parts { parts } = &node.placing else { continue };
        for part in parts {
            let end = part.len.and_then(|len| part.start.checked_add(len)).unwrap_or(part.start);
            components.entry(part.node).or_default().push((part.start, end, NodeId(at as u32)));
        }
    }
    let mut found = Vec::new();
    for (component, mut runs) in components {
        runs.sort_unstable();
        let mut before: Option<Run> = None;
        for run in runs {
            // The header stands in the sector in front, which may not be part of the run before.
            if let Some(last) = before.filter(|last| run.0.0 < last.1.0.saturating_add(SECTOR)) {
                found.push(problem(nodes, component, last, run));
            }
            before = before.filter(|last| last.1 >= run.1).or(Some(run));
        }
    }
    found
}

fn problem(nodes: &[Node], component: NodeId, one: Run, other: Run) -> Problem {
    let name = |id: NodeId| nodes[id.at()].name.as_str();
    let text = format!(
        "{} takes sectors {} to {} of {}, and {} begins at sector {} with a header in front",
        name(one.2),
        one.0.0 / SECTOR,
        (one.1.0 / SECTOR).saturating_sub(1),
        name(component),
        name(other.2),
        other.0.0 / SECTOR,
    );
    let source = nodes[other.2.at()].placed_by.clone().unwrap_or(Source::Layout);
    Problem { node: Some(other.2), id: OVERLAPPING_PARTITIONS, text, source }
}
