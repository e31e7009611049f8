//! The possible start of a partition: the next position that is on every grid at once and within the limits of the
//! label.
//!
//! Grids, their alignment offset, the sectors of the label and the cylinders of an old one are all grids, and a start
//! is on all of them ([`crate::meet`]). So the cylinder of an SMI label, a multiple of A / gcd(A, heads · sectors),
//! needs no special rule. [`commands`] describes the behaviour of tools with a given start.

pub mod commands;
mod content;
mod limits;
mod smaller;
mod usual;

use plumb_geometry::{Bytes, Grid, SECTOR, align_down, align_up, lcm_checked};

use crate::error::PlanError;
use plumb_model::{DeviceRef, LocalNode, PartitionRef};

use crate::meet::{meet_all, next_boundary};
use crate::nodes::{Nodes, System};
use crate::plan::{AssumedStart, Plan, Subject, Table, Unit, Value};

pub use content::Content;
pub use limits::{LabelScheme, limits};
pub use smaller::{FileSystem, SMALLER_MAX, fitted};
pub use usual::usual_grid;

/// A partition to create, or to recreate elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRequest {
    /// The disk, as the system calls it: `/dev/sdb`, `c1t0d0`.
    pub device: String,
    /// Its label.
    pub label: LabelScheme,
    /// Whether the label is to be made as well.
    pub is_new_label: bool,
    /// Logical block of the disk, bytes.
    pub sector_bytes: u64,
    /// Size of the disk, if known.
    pub disk_bytes: Option<Bytes>,
    /// The grids of the start; an alignment offset is part of a grid.
    pub grids: Vec<Grid>,
    /// Whether nobody stated these grids.
    pub are_grids_assumed: bool,
    /// First byte that may be used; the label may say later.
    pub after: Bytes,
    /// First byte that may not be used any more: the start of the next partition.
    pub before: Option<Bytes>,
    /// Length; to the end of the free space if absent.
    pub size: Option<Bytes>,
    /// Number of the partition, or of the slice.
    pub number: u32,
    /// Its present start, if it exists.
    pub current: Option<Bytes>,
    /// Its content, if that can move data by itself.
    pub content: Option<Content>,
    /// The file system on it, if that is known.
    pub file_system: Option<FileSystem>,
    /// First byte of the slice that a Solaris EFI label reserves at the end, if the label tells: it may be shorter than usual.
    pub reserved_from: Option<Bytes>,
    /// By how much it becomes smaller than it is, where it would not fit otherwise.
    pub smaller_by: Option<Bytes>,
}

/// The layout to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionLayout {
    /// All grids in one.
    pub grid: Grid,
    /// First byte; the smallest that will do.
    pub start: Bytes,
    /// Length; `None` where neither it nor the end of the disk is known.
    pub len: Option<Bytes>,
    /// First byte that may be used.
    pub first: Bytes,
    /// First byte that may not, if known.
    pub end: Option<Bytes>,
}

impl PartitionRequest {
    /// The partition as it is; `None` for one that is to be made.
    #[must_use]
    pub fn existing(&self) -> Option<PartitionRef> {
        let grown = |len: Bytes| len.checked_add(self.smaller_by.unwrap_or_default());
        Some(PartitionRef {
            disk: DeviceRef::named(self.device.clone()),
            number: self.number,
            start_bytes: self.current?,
            len_bytes: self.size.and_then(grown),
            node: LocalNode::default(),
        })
    }
}

impl PartitionLayout {
    /// First logical block.
    #[must_use]
    pub fn start_lba(&self, request: &PartitionRequest) -> u64 {
        self.start.0 / request.sector_bytes
    }

    /// Number of logical blocks.
    #[must_use]
    pub fn len_lba(&self, request: &PartitionRequest) -> Option<u64> {
        self.len.map(|len| len.0 / request.sector_bytes)
    }

    /// Last logical block.
    #[must_use]
    pub fn last_lba(&self, request: &PartitionRequest) -> Option<u64> {
        self.len_lba(request)
            .map(|len| self.start_lba(request) + len - 1)
    }
}

/// Works out the layout.
///
/// # Errors
/// When no start is on all grids, or none within the limits.
pub fn layout(request: &PartitionRequest) -> Result<PartitionLayout, PlanError> {
    check(request)?;
    let label = limits(&request.label, request.sector_bytes, request.disk_bytes)?;
    let grid = meet_all(request.grids.iter().chain(&label.grids))?;
    let first = label.first.max(request.after);
    let start = next_boundary(&grid, first).ok_or(PlanError::TooLarge { what: "the start" })?;
    let label_end = match request.label {
        LabelScheme::SolarisEfi => request.reserved_from.or(label.end),
        _ => label.end,
    };
    let end = [label_end, request.before].into_iter().flatten().min();
    let len = match request.size {
        Some(size) => Some(Bytes(
            align_up(size.0, label.len_unit.0).ok_or(PlanError::TooLarge { what: "the size" })?,
        )),
        // The farthest that addresses reach is no end to fill up to.
        None if request.disk_bytes.is_none() && request.before.is_none() => None,
        None => end.map(|end| {
            whole(
                end.0.saturating_sub(start.0),
                &request.grids,
                label.len_unit,
            )
        }),
    };
    let needed = len.unwrap_or(label.len_unit).max(label.len_unit);
    if let Some(end) = end
        && start.checked_add(needed).is_none_or(|last| last > end)
    {
        return Err(PlanError::NoRoom {
            from: first,
            start,
            needed,
            end,
        });
    }
    Ok(PartitionLayout {
        grid,
        start,
        len,
        first,
        end,
    })
}

/// The rest up to the end, in whole cells if that leaves anything.
fn whole(free: u64, grids: &[Grid], len_unit: Bytes) -> Bytes {
    let cell = grids.iter().try_fold(len_unit.0, |cell, grid| {
        lcm_checked(cell, grid.granularity().0)
    });
    let down = |unit: u64| align_down(free, unit).filter(|len| *len > 0);
    Bytes(
        cell.and_then(down)
            .or_else(|| down(len_unit.0))
            .unwrap_or(0),
    )
}

fn check(request: &PartitionRequest) -> Result<(), PlanError> {
    if is_partition(&request.device) {
        return Err(PlanError::OutOfRange {
            what: "the device",
            found: request.device.clone(),
            expected: "a whole disk: its label would be written into the partition named",
        });
    }
    let out = |what, found: String, expected| {
        Err(PlanError::OutOfRange {
            what,
            found,
            expected,
        })
    };
    if !matches!(request.sector_bytes, 512 | 4096) {
        return out(
            "the logical block",
            request.sector_bytes.to_string(),
            "512 or 4096 bytes",
        );
    }
    // A label that counts in 4 KiB has no entry for a start between: the number was read in other sectors.
    if let Some(found) = request
        .current
        .filter(|now| !now.0.is_multiple_of(request.sector_bytes))
    {
        let unit = Bytes(request.sector_bytes);
        return Err(PlanError::NotAMultiple {
            what: "the current start",
            found,
            of: "logical blocks",
            unit,
        });
    }
    if request.grids.is_empty() {
        return Err(PlanError::Missing {
            what: "the boundary to align to",
            give: "give a grid",
        });
    }
    if request.size == Some(Bytes(0)) {
        return out("the size", "0".to_owned(), "at least one logical block");
    }
    request.label.check_number(request.number)
}

/// How many further starts are shown.
const STARTS: usize = 4;

/// The grid that starts are planned on while the unit is only assumed: a multiple of every block, unit and chunk of a power
/// of two up to it, as tools of today have it.
pub const WIDEST_ASSUMED: Grid = Grid::MEBIBYTE;

/// The request with the widest grid that has room, where its grids are only assumed: halved down to the assumed unit.
#[must_use]
pub fn with_room(request: &PartitionRequest) -> PartitionRequest {
    let mut tried = request.clone();
    while request.are_grids_assumed && matches!(layout(&tried), Err(PlanError::NoRoom { .. })) {
        let halved = tried.grids.iter().map(half).collect::<Option<Vec<Grid>>>();
        match halved {
            Some(grids) => tried.grids = grids,
            None => return request.clone(),
        }
    }
    tried
}

/// A grid of half the cells, no finer than the assumed unit.
fn half(grid: &Grid) -> Option<Grid> {
    let half = grid.granularity().0 / 2;
    if half < Grid::ASSUMED.granularity().0 {
        return None;
    }
    Grid::new(Bytes(half), Bytes(grid.offset().0 % half), grid.kind()).ok()
}

/// As [`with_room`], and for a smaller partition where it is in the way of its own new start on any of these grids
/// ([`fitted`]).
///
/// # Errors
/// As [`fitted`].
pub fn fitted_with_room(request: &PartitionRequest) -> Result<PartitionRequest, PlanError> {
    let roomy = with_room(request);
    if layout(&roomy).is_ok() || !request.are_grids_assumed {
        return fitted(roomy);
    }
    // To become smaller it had better become so by as little as the assumed unit wants.
    let finest = request.grids.iter().map(|grid| {
        let unit = Grid::ASSUMED.granularity();
        Grid::new(unit, Bytes(grid.offset().0 % unit.0), grid.kind()).unwrap_or(*grid)
    });
    fitted(PartitionRequest {
        grids: finest.collect(),
        ..request.clone()
    })
}

/// Computes the plan; if a partition is in the way of its own new start, for a smaller one ([`fitted`]).
///
/// # Errors
/// As [`fitted`].
pub fn plan(request: &PartitionRequest) -> Result<Plan, PlanError> {
    let wished = request.grids.first().map(Grid::granularity);
    let request = &fitted_with_room(request)?;
    let layout = layout(request)?;
    let mut plan = Plan::new("partition", title(request, &layout));
    plan.assumed_start = request
        .are_grids_assumed
        .then_some(())
        .and(request.grids.first())
        .map(|grid| AssumedStart {
            planned_bytes: grid.granularity(),
            is_reduced: wished != Some(grid.granularity()),
        });
    plan.subject = Some(Subject {
        device: request.device.clone(),
        number: Some(request.number),
    });
    figures(&mut plan, request, &layout);
    starts(&mut plan, request, &layout);
    if request.current != Some(layout.start) {
        plan.add(commands::remedies(request, &layout));
        plan.add(
            request
                .content
                .iter()
                .filter_map(|content| content.online(request, &layout)),
        );
        plan.add(
            request
                .content
                .iter()
                .filter_map(|content| content.begin_later(request)),
        );
        let system = request.label.system();
        let nodes = request.label.node(&request.device, request.number);
        if request.current.is_some() && !nodes.is_empty() {
            plan.keep_nodes(Nodes::for_names(system, &nodes));
        }
    }
    notes(&mut plan, request, &layout);
    Ok(plan)
}

/// Whether a name is that of a partition or slice, by the systems' rules: `sda1`, `nvme0n1p2`, `loop0p1`, `c1t0d0s3`.
fn is_partition(device: &str) -> bool {
    let name = device.rsplit('/').next().unwrap_or(device);
    let numbered = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if numbered.len() == name.len() {
        return false;
    }
    let is_lettered = |prefix: &str| {
        let letters = numbered.strip_prefix(prefix);
        letters.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_lowercase()))
    };
    // Behind the letter that parts the number from a disk's own there is a digit.
    let disk = numbered
        .strip_suffix('p')
        .or_else(|| numbered.strip_suffix('s'));
    let is_parted = disk.is_some_and(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    let is_solaris = name.starts_with('c') && name.contains('d');
    let parts = ["nvme", "mmcblk", "loop", "md", "nbd"];
    ["sd", "hd", "vd", "xvd"].into_iter().any(is_lettered)
        || is_parted && (is_solaris || parts.iter().any(|prefix| name.starts_with(prefix)))
}

fn title(request: &PartitionRequest, layout: &PartitionLayout) -> String {
    let what = format!(
        "{} {} of {}",
        request.label.part_word(),
        request.number,
        request.device
    );
    let start = crate::error::position(layout.start);
    match request.current {
        Some(now) if now == layout.start => format!("{what} starts at {start} and is on its grid"),
        Some(now) => {
            format!(
                "{what} starts at {} and should start at {start}",
                crate::error::position(now)
            )
        }
        None => format!("{what} starts at {start}"),
    }
}

fn figures(plan: &mut Plan, request: &PartitionRequest, layout: &PartitionLayout) {
    plan.figure(
        "start_bytes",
        layout.start,
        Unit::Bytes,
        "first byte, from the start of the disk",
    );
    plan.figure(
        "start_sectors",
        layout.start.0 / SECTOR,
        Unit::Sectors,
        "the same in sectors of 512 B",
    );
    if request.sector_bytes != SECTOR {
        let words = format!(
            "the same in logical blocks of {}, as labels count",
            Bytes(request.sector_bytes)
        );
        plan.figure(
            "start_lba",
            layout.start_lba(request),
            Unit::LogicalBlocks,
            words,
        );
    }
    if let Some((cylinder, cylinder_bytes)) = request.label.cylinder_of(layout.start) {
        let words = format!(
            "the same in cylinders of {}",
            crate::error::position(cylinder_bytes)
        );
        plan.figure("start_cylinder", cylinder, Unit::Cylinders, words);
    }
    if let Some(len) = layout.len {
        plan.figure("len_bytes", len, Unit::Bytes, "length");
        plan.figure(
            "len_sectors",
            len.0 / SECTOR,
            Unit::Sectors,
            "the same in sectors of 512 B",
        );
    }
    let assumed = if request.are_grids_assumed {
        ", assumed since none was given"
    } else {
        ""
    };
    for grid in &request.grids {
        plan.figure(
            "grid",
            grid.to_string(),
            Unit::Words,
            format!("grid to start on{assumed}"),
        );
    }
    if request.is_new_label {
        plan.figure(
            "new_label",
            request.label.word(),
            Unit::Words,
            "kind of the label that is made as well",
        );
    }
    plan.figure(
        "first_bytes",
        layout.first,
        Unit::Bytes,
        "first byte that may be used",
    );
    if let Some(end) = layout.end {
        plan.figure(
            "end_bytes",
            end,
            Unit::Bytes,
            "first byte that may not be used",
        );
    }
    if let Some(now) = request.current {
        plan.figure("current_bytes", now, Unit::Bytes, "its start now");
        for grid in &request.grids {
            let words = format!("so far past the grid of {grid}");
            plan.figure(
                "current_past_bytes",
                grid.past_boundary(now),
                Unit::Bytes,
                words,
            );
        }
    }
}

/// The next starts, and how coarse a unit each would also be aligned to.
fn starts(plan: &mut Plan, request: &PartitionRequest, layout: &PartitionLayout) {
    let mut table = Table::new(
        "Starts that will do",
        &[
            ("start_sectors", "sector", Unit::Sectors),
            ("start_bytes", "byte", Unit::Bytes),
            ("aligned_to_bytes", "aligned to", Unit::Bytes),
        ],
    );
    // Past an alignment offset, which all grids share, the largest power of two is the alignment.
    let origin = request
        .grids
        .iter()
        .map(|grid| grid.offset().0)
        .max()
        .unwrap_or(0);
    let step = layout.grid.granularity();
    let mut start = Some(layout.start);
    for _ in 0..STARTS {
        let room = |at: Bytes| {
            layout
                .end
                .is_none_or(|end| at.checked_add(step).is_some_and(|to| to <= end))
        };
        let Some(at) = start.filter(|at| *at == layout.start || room(*at)) else {
            break;
        };
        let past = at.0.abs_diff(origin);
        let aligned = if past == 0 {
            Value::None
        } else {
            Value::Count(1 << past.trailing_zeros())
        };
        table.row(vec![(at.0 / SECTOR).into(), at.into(), aligned]);
        start = at.checked_add(step);
    }
    table.chosen = Some(0);
    plan.tables.push(table);
}

fn notes(plan: &mut Plan, request: &PartitionRequest, layout: &PartitionLayout) {
    if let Some(start) = plan.assumed_start {
        let unit = start.planned_bytes;
        let why = if start.is_reduced {
            ", since larger units leave no room"
        } else {
            ""
        };
        plan.note(format!(
            "nothing states the unit of the disk, so the start is planned on {unit}{why}: a multiple of every block, unit and \
             chunk of a power of two up to it, and of nothing else (48 KiB segments, stripes over three disks); run `plumb probe` \
             to measure the unit"
        ));
    }
    if request.sector_bytes != SECTOR {
        plan.note(
            "labels count in logical blocks of 4 KiB on this disk; sysfs, dm tables and BLKPG count in sectors of \
             512 B on every disk",
        );
    }
    if let Some(size) = request
        .size
        .filter(|size| layout.len.is_some_and(|len| len != *size))
    {
        plan.note(format!(
            "the size asked for, {size}, was raised to the next whole {}",
            request.label.len_word()
        ));
    }
    if let Some(by) = request.smaller_by {
        plan.note(format!(
            "it fills the space up to the next partition, so that it becomes {} smaller",
            crate::error::position(by)
        ));
        if let Err(why) = commands::smaller(request, layout) {
            plan.note(format!(
                "its data cannot be moved in place: {why}. They have to come back from a copy"
            ));
        }
    }
    if let Some(now) = request
        .current
        .filter(|now| *now < layout.start && request.smaller_by.is_none())
    {
        let by = Bytes(layout.start.0 - now.0);
        plan.note(format!(
            "the start moves up by {}: the next partition must leave that much room, or this one shrinks by it",
            crate::error::position(by)
        ));
    }
    if request.label.system() == System::Solaris {
        plan.note("the dialogues of format were taken from its manual and not run for this plan");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn partitions_are_no_disks() {
        for name in [
            "/dev/sda1",
            "/dev/xvdb12",
            "nvme0n1p2",
            "mmcblk0p1",
            "loop0p1",
            "c1t0d0s3",
            "/dev/dsk/c2d0p1",
        ] {
            assert!(super::is_partition(name), "{name}");
        }
        for name in [
            "/dev/sda",
            "nvme0n1",
            "mmcblk0",
            "loop0",
            "c1t0d0",
            "md127",
            "/tmp/disk.img",
            "disk1",
            "sds",
        ] {
            assert!(!super::is_partition(name), "{name}");
        }
    }
}
