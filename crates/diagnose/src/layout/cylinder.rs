//! Slices of an SMI label begin at cylinders, so that the next start on a grid is not the next one that can be had.

use plumb_geometry::{Bytes, SECTOR};
use plumb_stack::node::keys;
use plumb_stack::node_facts::LabelWord;
use plumb_stack::{NodeId, Placing, Standing, Verdict};

use super::context::Context;

/// Cylinders that are looked at. An odd one of 512 B sectors is on a grid of 2 MiB once in 4,096.
const CYLINDERS_MAX: u64 = 4096;

/// The cylinder that a slice has to begin at.
pub struct Cylinder {
    /// The disk with the label.
    pub disk: NodeId,
    /// The next one where all of the slice is on its grids; `None` where none was found.
    pub next: Option<Bytes>,
}

/// The next aligned start of a misaligned slice; `None` if no cylinder binds it.
pub fn next(context: &Context<'_>, slice: NodeId, standings: &[Standing]) -> Option<Cylinder> {
    let Placing::Parts { parts } = &context.stack.node(slice).placing else {
        return None;
    };
    let [part] = parts.as_slice() else {
        return None;
    };
    let disk = context.stack.node(part.node);
    let is_free = matches!(
        disk.value(keys::LABEL),
        Some(LabelWord::Gpt | LabelWord::Dos | LabelWord::Efi)
    );
    let sectors = disk
        .number(keys::CYLINDER_SECTORS)
        .filter(|sectors| *sectors > 0 && !is_free)?;
    let bytes = sectors.checked_mul(SECTOR)?;
    let first = part.start.0 / bytes + 1;
    let is_right = |start: &u64| {
        standings
            .iter()
            .all(|standing| is_on(context, standing, start - part.start.0))
    };
    let starts = (first..)
        .take(CYLINDERS_MAX as usize)
        .map_while(|cylinder| cylinder.checked_mul(bytes));
    Some(Cylinder {
        disk: part.node,
        next: starts.into_iter().find(is_right).map(Bytes),
    })
}

/// Whether a layer is on a grid after a shift by this distance.
fn is_on(context: &Context<'_>, standing: &Standing, by: u64) -> bool {
    let mut landing = standing.landing.clone();
    landing.shift += i128::from(by);
    !matches!(
        context.stack.verdict(&landing, &standing.fact),
        Verdict::Misaligned { .. } | Verdict::Varies { .. }
    )
}
