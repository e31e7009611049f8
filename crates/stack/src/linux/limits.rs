//! Queue limits, and the grids that they state.
//!
//! The statements of a disk about itself are believed, with one exception: `optimal_io_size` is often nonsense and has
//! to pass a check. Limits that the kernel computes for stacked devices are not believed: it uses the largest minimum
//! and the least common multiple of the optima below, which is no stripe.

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use plumb_sys::Directory;

use super::device::{Family, SysfsDevice};
use super::reader::SysfsReader;
use super::sysfs;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, GridFact, Source};
use crate::node::{FactKey, Kind, keys};
use crate::node_facts::ZoneModel;
use crate::obstacle::GridDoubt;

/// Largest optimal I/O that is taken for a property of a device: 16 MiB.
const OPTIMAL_MAX: u64 = 16 << 20;
/// 65,535 sectors: the most that a command of a USB bridge can ask for, and no size that anything prefers.
const BRIDGE_OPTIMAL: u64 = 65_535 * SECTOR;

/// Files of `queue/`; `None` where this kernel has no such file.
#[derive(Debug, Default)]
pub(super) struct Queue {
    logical: Option<u64>,
    physical: Option<u64>,
    minimum_io: Option<u64>,
    optimal_io: Option<u64>,
    chunk_sectors: Option<u64>,
    discard_granularity: Option<u64>,
    discard_max: Option<u64>,
    atomic_write_max: Option<u64>,
    zoned: Option<String>,
    max_kb: Option<u64>,
    max_hardware_kb: Option<u64>,
    read_ahead_kb: Option<u64>,
    scheduler: Option<String>,
    depth: Option<u64>,
    rotational: Option<u64>,
    write_cache: Option<String>,
}

impl Queue {
    /// Logical and physical block, where both are stated.
    pub(super) fn blocks(&self) -> Option<(u64, u64)> {
        self.logical
            .filter(|logical| *logical > 0)
            .zip(self.physical)
    }
}

impl From<plumb_sys::Limits> for Queue {
    fn from(limits: plumb_sys::Limits) -> Queue {
        Queue {
            logical: Some(limits.logical_block_bytes.into()),
            physical: Some(limits.physical_block_bytes.into()),
            minimum_io: Some(limits.minimum_io_bytes.into()),
            optimal_io: Some(limits.optimal_io_bytes.into()),
            ..Queue::default()
        }
    }
}

/// Reads the directory `queue`.
pub(super) fn read(reader: &mut SysfsReader, queue: &Directory, device: &str) -> Queue {
    let mut number = |name: &str| reader.number(queue, name, device);
    let numbers = Queue {
        logical: number("logical_block_size"),
        physical: number("physical_block_size"),
        minimum_io: number("minimum_io_size"),
        optimal_io: number("optimal_io_size"),
        chunk_sectors: number("chunk_sectors"),
        discard_granularity: number("discard_granularity"),
        discard_max: number("discard_max_bytes"),
        atomic_write_max: number("atomic_write_unit_max_bytes"),
        max_kb: number("max_sectors_kb"),
        max_hardware_kb: number("max_hw_sectors_kb"),
        read_ahead_kb: number("read_ahead_kb"),
        depth: number("nr_requests"),
        rotational: number("rotational"),
        ..Queue::default()
    };
    Queue {
        zoned: reader.word(queue, "zoned"),
        scheduler: reader.text(queue, "scheduler").map(chosen),
        write_cache: reader.word(queue, "write_cache"),
        ..numbers
    }
}

/// `mq-deadline` of `none [mq-deadline] kyber`.
fn chosen(list: &str) -> String {
    let inside = list
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(list, |(chosen, _)| chosen).to_owned()
}

/// The optimal I/O size that a device states. One logical block means that it states none: Linux before commit
/// f3bf25d51355 writes it for an NVMe drive that leaves NOWS at 0, with any NPWG.
#[must_use]
pub fn stated_optimal(optimal: Option<u64>, logical: Option<u64>) -> Option<u64> {
    optimal.filter(|optimal| *optimal > 0 && Some(*optimal) != logical)
}

/// Why an optimal I/O size is not to be believed; `None` where it may be.
///
/// The checks are those that partitioning tools came to one by one: no larger than 16 MiB, a multiple of the physical
/// block and of the minimum, not 65,535 sectors, an even number of sectors.
#[must_use]
pub fn implausible_optimal(optimal: Bytes, physical: Bytes, minimum: Bytes) -> Option<GridDoubt> {
    let is_multiple = |of: Bytes| of.0 == 0 || optimal.0.is_multiple_of(of.0);
    let why = if optimal.0 == BRIDGE_OPTIMAL {
        GridDoubt::Bridge
    } else if optimal.0 > OPTIMAL_MAX {
        GridDoubt::LargerThan {
            bytes: Bytes(OPTIMAL_MAX),
        }
    } else if optimal.0 < physical.0 {
        GridDoubt::BelowPhysical {
            physical_bytes: physical,
        }
    } else if !is_multiple(physical) {
        GridDoubt::OffPhysical {
            physical_bytes: physical,
        }
    } else if !is_multiple(minimum) {
        GridDoubt::OffMinimum {
            minimum_bytes: minimum,
        }
    } else if !optimal.0.is_multiple_of(2 * SECTOR) {
        GridDoubt::OddSectors
    } else {
        return None;
    };
    Some(why)
}

/// Tells a device's limits: grids and settings.
pub(super) fn tell(builder: &mut Builder, node: NodeId, device: &SysfsDevice, queue: &Queue) {
    Telling {
        builder,
        node,
        device,
        queue,
    }
    .all();
}

/// The kernel writes -1 for an offset where devices below contradict each other.
fn gave_up(offset: i64) -> Option<GridDoubt> {
    (offset < 0).then_some(GridDoubt::NoOffset)
}

struct Telling<'a> {
    builder: &'a mut Builder,
    node: NodeId,
    device: &'a SysfsDevice,
    queue: &'a Queue,
}

impl Telling<'_> {
    fn all(&mut self) {
        let queue = self.queue;
        self.grid(
            "logical_block_size",
            queue.logical,
            0,
            GridKind::Unit,
            CellKind::LogicalBlock,
            None,
        );
        self.physical();
        let derived = self.derived();
        self.grid(
            "minimum_io_size",
            queue.minimum_io,
            0,
            GridKind::Unit,
            CellKind::MinimumIo,
            derived.clone(),
        );
        let optimal = stated_optimal(queue.optimal_io, queue.logical);
        let doubt = derived.clone().or_else(|| {
            let [optimal, physical, minimum] =
                [optimal, queue.physical, queue.minimum_io].map(|bytes| Bytes(bytes.unwrap_or(0)));
            implausible_optimal(optimal, physical, minimum)
        });
        self.grid(
            "optimal_io_size",
            optimal,
            0,
            GridKind::Unit,
            CellKind::OptimalIo,
            doubt,
        );
        self.chunk(derived.clone());
        if queue.discard_max.unwrap_or(0) > 0 {
            let (unit, offset) = (
                queue.discard_granularity,
                self.device.discard_alignment.unwrap_or(0),
            );
            let what = CellKind::DiscardUnit;
            self.grid(
                "discard_granularity",
                unit,
                offset,
                GridKind::Unit,
                what,
                derived.clone(),
            );
        }
        let atomic = queue.atomic_write_max;
        self.grid(
            "atomic_write_unit_max_bytes",
            atomic,
            0,
            GridKind::Unit,
            CellKind::AtomicWrite,
            derived,
        );
        self.settings();
    }

    /// Why limits are not the device's own.
    fn derived(&self) -> Option<GridDoubt> {
        let is_joined = self.builder.get(self.node).kind == Kind::Multipath;
        let stacked = self.device.family.is_stacked() || is_joined;
        stacked.then_some(GridDoubt::Derived)
    }

    /// On a disk the grid begins at the alignment offset. Devices on top have the grid of the layers below.
    fn physical(&mut self) {
        let offset = self.device.alignment_offset.unwrap_or(0);
        let doubt = match (self.derived(), self.device.family) {
            (Some(derived), _) => Some(derived),
            (None, Family::Loop) => Some(GridDoubt::TakenOver),
            (None, _) => None,
        };
        let unit = self.queue.physical;
        self.grid(
            "physical_block_size",
            unit,
            offset,
            GridKind::Unit,
            CellKind::PhysicalBlock,
            doubt,
        );
    }

    fn chunk(&mut self, doubt: Option<GridDoubt>) {
        let chunk = self
            .queue
            .chunk_sectors
            .and_then(|sectors| sectors.checked_mul(SECTOR));
        let is_zoned = self
            .queue
            .zoned
            .as_deref()
            .is_some_and(|zoned| zoned != "none");
        let what = if is_zoned {
            CellKind::Zone
        } else {
            CellKind::IoBoundary
        };
        self.grid("chunk_sectors", chunk, 0, GridKind::Boundary, what, doubt);
    }

    fn grid(
        &mut self,
        file: &str,
        granularity: Option<u64>,
        offset: i64,
        kind: GridKind,
        what: CellKind,
        doubt: Option<GridDoubt>,
    ) {
        let Some(granularity) = granularity.filter(|it| *it > 0) else {
            return;
        };
        let doubt = doubt.or_else(|| gave_up(offset));
        let offset = u64::try_from(offset).unwrap_or(0) % granularity;
        let Ok(grid) = Grid::new(Bytes(granularity), Bytes(offset), kind) else {
            return;
        };
        let source = self.source(file);
        let fact = match doubt {
            Some(why) => GridFact::doubted(grid, what, source, why),
            None => GridFact::believed(grid, what, source),
        };
        self.builder.grid(self.node, fact);
    }

    fn settings(&mut self) {
        let queue = self.queue;
        for (key, file, kib) in [
            (keys::MAX_REQUEST, "max_sectors_kb", queue.max_kb),
            (
                keys::MAX_REQUEST_HARDWARE,
                "max_hw_sectors_kb",
                queue.max_hardware_kb,
            ),
            (keys::READ_AHEAD, "read_ahead_kb", queue.read_ahead_kb),
        ] {
            let bytes = kib.and_then(|kib| kib.checked_mul(1024)).map(Bytes);
            self.setting(key, file, bytes);
        }
        self.setting(keys::SCHEDULER, "scheduler", queue.scheduler.clone());
        self.setting(keys::QUEUE_DEPTH, "nr_requests", queue.depth);
        let is_rotational = queue.rotational.map(|stated| stated != 0);
        self.setting(keys::ROTATIONAL, "rotational", is_rotational);
        self.setting(keys::WRITE_CACHE, "write_cache", queue.write_cache.clone());
        let zoned = queue.zoned.as_deref().filter(|zoned| *zoned != "none");
        self.setting(keys::ZONED, "zoned", zoned.map(ZoneModel::from));
        if let Some(alignment) = self.device.discard_alignment.filter(|it| *it != 0) {
            let source = sysfs(&format!("{}/discard_alignment", self.device.name));
            self.builder
                .fact(self.node, keys::DISCARD_ALIGNMENT, alignment, &source);
        }
    }

    fn setting<T>(&mut self, key: FactKey<T>, file: &str, value: Option<T>) {
        let source = self.source(file);
        self.builder.fact_if(self.node, key, value, &source);
    }

    fn source(&self, file: &str) -> Source {
        sysfs(&format!("{}/queue/{file}", self.device.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_brackets_is_the_one() {
        for (list, expected) in [
            ("none [mq-deadline] kyber", "mq-deadline"),
            ("[none]", "none"),
            ("noop", "noop"),
        ] {
            assert_eq!(chosen(list), expected);
        }
    }

    /// Values from the field: USB bridges, arrays behind a stacking kernel, `opt_blks` of a test driver, drives.
    #[test]
    fn hints_are_checked() {
        let believed = |optimal: u64, physical: u64, minimum: u64| {
            implausible_optimal(Bytes(optimal), Bytes(physical), Bytes(minimum)).is_none()
        };
        assert!(!believed(33_553_920, 512, 512), "65535 sectors");
        assert!(
            !believed(65_535 * 4096, 4096, 4096),
            "the same in blocks of 4 KiB"
        );
        assert!(!believed(32 << 20, 4096, 4096), "beyond 16 MiB");
        assert!(
            !believed(8192, 16 << 10, 16 << 10),
            "less than a physical block"
        );
        assert!(!believed(6144, 4096, 512), "no multiple of the block");
        assert!(
            !believed(96 << 10, 512, 64 << 10),
            "no multiple of the minimum"
        );
        assert!(!believed(127 * 512, 512, 512), "odd");
        assert!(believed(16 << 20, 4096, 4096) && believed(192 << 10, 4096, 64 << 10));
        assert!(believed(4096, 4096, 4096), "a block of memory");
    }
}
