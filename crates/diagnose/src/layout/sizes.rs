//! Arithmetic on sizes and sources that several rules need.

use plumb_geometry::Bytes;
use plumb_model::Confidence;
use plumb_stack::grid::Source;
use plumb_stack::node::FactKey;
use plumb_stack::{Node, NodeId};

use super::context::Context;

/// The sum of a position and a shift; `None` if it is no position.
pub fn shifted(position: Bytes, shift: i128) -> Option<Bytes> {
    u64::try_from(i128::from(position.0) + shift)
        .ok()
        .map(Bytes)
}

/// Whether one size is a whole multiple of another, which is not 0.
pub fn is_multiple(of: Bytes, unit: Bytes) -> bool {
    unit.0 > 0 && of.0.is_multiple_of(unit.0)
}

/// How sure a conclusion from a statement is.
pub fn confidence_in(source: &Source) -> Confidence {
    match source {
        Source::Assumed => Confidence::Low,
        // A table speaks of a model; this device may be set up otherwise.
        Source::Catalogue { .. } => Confidence::Medium,
        _ => Confidence::High,
    }
}

/// The largest unit that the user gave for a device; if 4 KiB are assumed all the same, it was a sector.
pub fn given(context: &Context<'_>, id: NodeId) -> Option<Bytes> {
    let grids = context.stack.grids(id);
    grids
        .iter()
        .filter(|fact| fact.source == Source::User)
        .map(|fact| fact.granularity())
        .max()
}

/// The source of a node's fact.
pub fn source<T>(node: &Node, key: FactKey<T>) -> Option<Source> {
    node.fact(key).map(|fact| fact.source.clone())
}
