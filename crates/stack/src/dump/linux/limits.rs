//! Limits of a device that tools print as the kernel states them.
//!
//! The same limits are believed as on a live host: a disk's own statements, except an impossible optimal I/O size, but
//! not the limits that the kernel computes for stacked devices.

use plumb_geometry::{Bytes, Grid, GridKind};

use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, GridFact, Source};
use crate::linux::{Family, implausible_optimal, stated_optimal};
use crate::node::keys;
use crate::obstacle::GridDoubt;

/// Limits in bytes; `None` where they are not printed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PrintedLimits {
    pub(super) logical: Option<u64>,
    pub(super) physical: Option<u64>,
    pub(super) minimum_io: Option<u64>,
    pub(super) optimal_io: Option<u64>,
    /// Bytes to the first aligned one; -1 where the kernel gave up.
    pub(super) alignment_offset: Option<i64>,
    pub(super) discard_granularity: Option<u64>,
    pub(super) discard_alignment: Option<i64>,
    pub(super) zone: Option<u64>,
}

/// Tells the grids of a device that is no partition.
pub(super) fn tell(
    builder: &mut Builder,
    node: NodeId,
    family: Family,
    limits: &PrintedLimits,
    source: &Source,
) {
    let derived = family.is_stacked().then_some(GridDoubt::Derived);
    let taken_over = (family == Family::Loop)
        .then_some(GridDoubt::TakenOver)
        .or(derived.clone());
    let offset = limits.alignment_offset.unwrap_or(0);
    if offset != 0 {
        builder.fact(node, keys::ALIGNMENT_OFFSET, offset, source);
    }
    let (physical, minimum) = (limits.physical.unwrap_or(0), limits.minimum_io.unwrap_or(0));
    let optimal_io = stated_optimal(limits.optimal_io, limits.logical);
    let optimal = derived.clone().or_else(|| {
        implausible_optimal(
            Bytes(optimal_io.unwrap_or(0)),
            Bytes(physical),
            Bytes(minimum),
        )
    });
    let discard = limits.discard_alignment.unwrap_or(0);
    if discard != 0 {
        builder.fact(node, keys::DISCARD_ALIGNMENT, discard, source);
    }
    for (granularity, offset, what, doubt) in [
        (limits.logical, 0, CellKind::LogicalBlock, None),
        (limits.physical, offset, CellKind::PhysicalBlock, taken_over),
        (limits.minimum_io, 0, CellKind::MinimumIo, derived.clone()),
        (optimal_io, 0, CellKind::OptimalIo, optimal),
        (
            limits.discard_granularity,
            discard,
            CellKind::DiscardUnit,
            derived.clone(),
        ),
        (limits.zone, 0, CellKind::Zone, derived),
    ] {
        let Some(granularity) = granularity.filter(|it| *it > 0) else {
            continue;
        };
        let doubt = doubt.or_else(|| (offset < 0).then_some(GridDoubt::NoOffset));
        let offset = u64::try_from(offset).unwrap_or(0) % granularity;
        let kind = if what == CellKind::Zone {
            GridKind::Boundary
        } else {
            GridKind::Unit
        };
        let Ok(grid) = Grid::new(Bytes(granularity), Bytes(offset), kind) else {
            continue;
        };
        builder.grid(
            node,
            match doubt {
                Some(why) => GridFact::doubted(grid, what, source.clone(), why),
                None => GridFact::believed(grid, what, source.clone()),
            },
        );
    }
}
