//! Nodes that the found content belongs to, or that are known already.

use plumb_geometry::{Bytes, Grid};

use super::content::Cell;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{GridFact, Source};
use crate::node::{Node, Part, Placing};

/// A node of that kind directly above one of these.
pub(crate) fn above_with(
    builder: &Builder,
    below: &[NodeId],
    is_sort: impl Fn(&Node) -> bool,
) -> Option<NodeId> {
    builder.ids().find(|id| {
        let node = builder.get(*id);
        is_sort(node) && node.placing.below().iter().any(|one| below.contains(one))
    })
}

/// All of a layer in one run.
pub(crate) fn run(node: NodeId, start: u64, len: Option<Bytes>) -> Placing {
    Placing::Parts {
        parts: vec![Part {
            upper: Bytes(0),
            node,
            start: Bytes(start),
            len,
        }],
    }
}

/// Notes a cell as grid of a node; one without length is none.
pub(crate) fn tell_cell(builder: &mut Builder, id: NodeId, cell: Cell, source: &Source) {
    if let Ok(grid) = Grid::new(Bytes(cell.len), Bytes(cell.offset), cell.kind) {
        builder.grid(id, GridFact::believed(grid, cell.what, source.clone()));
    }
}
