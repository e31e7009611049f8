//! The new start of a partition: the requested one, or the nearest aligned start that has room.

use std::ops::Range;

use plumb_geometry::{Bytes, Grid};
use plumb_label::{Detail, Partition, PartitionPlace};
use plumb_plan::meet::{meet_all, next_boundary};
use plumb_plan::partition::usual_grid;
use plumb_relocate::Unit;
use plumb_relocate::labels::edit::extended_shown_bytes;
use plumb_relocate::moving::WINDOWS_FROM_BYTES;

use super::error::MoveRefused;
use super::preflight::Look;
use crate::cli::fix::Move;
use crate::failure::Failure;

/// The result of the request.
pub(super) enum MoveTarget {
    /// It is to begin there.
    Start(Bytes),
    /// It begins there already; with other notes about that.
    InPlace(Option<String>),
}

impl Look<'_> {
    /// The new start.
    pub(super) fn target(&self, part: &Partition, args: &Move) -> Result<MoveTarget, Failure> {
        let (from, len) = (part.extent.start(), part.extent.len());
        let Some(to) = args.to else {
            return Ok(self.aligned(part)?);
        };
        if to == from {
            return Ok(MoveTarget::InPlace(None));
        }
        let block = u64::from(self.label.sector_bytes);
        if !to.0.is_multiple_of(block) {
            return Err(Failure::usage(format!(
                "--to: found {to}, expected a multiple of its logical block, {block} B"
            )));
        }
        let end = to.checked_add(len);
        end.map(|_| MoveTarget::Start(to))
            .ok_or_else(|| Failure::usage("--to: ends beyond 64 bits"))
    }

    /// The nearest aligned start for which there is room, before or behind, on the widest grid that has one.
    fn aligned(&self, part: &Partition) -> Result<MoveTarget, MoveRefused> {
        let from = part.extent.start();
        let grids = self.grids();
        for grid in &grids {
            if grid.past_boundary(from).0 == 0 {
                return Ok(MoveTarget::InPlace(Some(format!(
                    "it begins on the grid of {grid}"
                ))));
            }
            let starts = [next_boundary(grid, from), previous_boundary(grid, from)];
            if let Some(start) = self.with_room(part, starts) {
                return Ok(MoveTarget::Start(start));
            }
        }
        let free = self.free_around(part);
        let finest = grids.last().copied().unwrap_or(Grid::ASSUMED);
        Err(self.refused(format!(
            "no start on the grid of {finest} has room between bytes {} and {}: make it or its neighbour smaller first",
            free.start, free.end
        )))
    }

    /// The unit of an aligned start, where it is not the usual one for want of room, in words.
    pub(super) fn narrow_unit(&self, to: Bytes) -> Option<String> {
        let grids = self.grids();
        let on = grids
            .iter()
            .position(|grid| grid.past_boundary(to).0 == 0)?;
        let (usual, grid) = (grids.first()?, grids.get(on)?);
        (on > 0).then(|| {
            format!(
                "it begins on the grid of {}: that of {} leaves no room",
                grid.granularity(),
                usual.granularity()
            )
        })
    }

    /// The nearest aligned start that is as far away as makes windows longer than their flushes; `None` without room.
    pub(super) fn farther(&self, part: &Partition, unit: Unit) -> Option<Bytes> {
        let from = part.extent.start();
        let shift = Bytes(WINDOWS_FROM_BYTES.max(2 * unit.bytes));
        let grid = self.grids().first().copied()?;
        let after = from
            .checked_add(shift)
            .and_then(|at| next_boundary(&grid, at));
        let before = from
            .checked_sub(shift)
            .and_then(|at| previous_boundary(&grid, at));
        self.with_room(part, [after, before])
    }

    /// The grids of starts, the widest first: 1 MiB where that is a multiple of the units that are known, then half of it and
    /// so on, no finer than the largest known unit, and not below 4 KiB while nothing states one.
    fn grids(&self) -> Vec<Grid> {
        let limits = self.subject.disk.limits();
        let usual = usual_grid(
            Bytes(limits.physical_block_bytes.into()),
            limits.alignment_offset_bytes,
        );
        let stated = self.subject.here.grids();
        let coarsest = stated.iter().map(Grid::granularity).max();
        let finest = coarsest.unwrap_or(Grid::ASSUMED.granularity()).0;
        let halves = std::iter::successors(Some(usual.granularity().0), |wide| Some(wide / 2));
        let halves = halves.take_while(|wide| *wide >= finest.max(1));
        let on_all = halves.filter_map(|wide| {
            let offset = Bytes(usual.offset().0 % wide);
            let half = Grid::new(Bytes(wide), offset, usual.kind()).ok()?;
            meet_all(stated.iter().chain([&half])).ok()
        });
        let grids: Vec<Grid> = on_all.collect();
        if grids.is_empty() {
            return vec![meet_all(&stated).unwrap_or(usual)];
        }
        grids
    }

    /// The first start that leaves room for the partition.
    fn with_room(&self, part: &Partition, starts: [Option<Bytes>; 2]) -> Option<Bytes> {
        let free = self.free_around(part);
        let fits = |to: &Bytes| {
            to.0 >= free.start
                && to
                    .0
                    .checked_add(part.extent.len().0)
                    .is_some_and(|end| end <= free.end)
        };
        starts.into_iter().flatten().find(fits)
    }

    /// The available part of the disk: between its neighbours, as far as the label allows.
    fn free_around(&self, part: &Partition) -> Range<u64> {
        let block = u64::from(self.label.sector_bytes);
        let size = self.subject.disk.limits().size_bytes;
        let usable = self
            .label
            .usable
            .map_or(block..size, |usable| usable.start().0..usable.end().0);
        let mut free = usable;
        for other in self
            .label
            .partitions
            .iter()
            .filter(|other| other.id != part.id && !other.is_whole_disk)
        {
            let is_beside =
                (other.place == PartitionPlace::Logical) == (part.place == PartitionPlace::Logical);
            if is_beside {
                if other.extent.end() <= part.extent.start() {
                    free.start = free.start.max(other.extent.end().0);
                } else if other.extent.start() >= part.extent.end() {
                    free.end = free.end.min(other.extent.start().0);
                }
            } else if other.place == PartitionPlace::Extended {
                let shown = extended_shown_bytes(self.label.sector_bytes);
                free.start = free.start.max(other.extent.start().0 + shown);
                free.end = free.end.min(other.extent.end().0);
            }
        }
        if let Some(Detail::Mbr(mbr, _)) = self
            .label
            .detail
            .as_ref()
            .filter(|_| part.place == PartitionPlace::Logical)
        {
            for ebr in &mbr.ebrs {
                let at = ebr.lba * block;
                if at < part.extent.start().0 {
                    free.start = free.start.max(at + block);
                } else {
                    free.end = free.end.min(at);
                }
            }
        }
        free
    }
}

fn previous_boundary(grid: &Grid, at: Bytes) -> Option<Bytes> {
    at.checked_sub(grid.past_boundary(at))
        .filter(|start| start.0 > 0)
}
