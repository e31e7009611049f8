//! Soft partitions of Solaris Volume Manager: offsets on the unit of the layer below.
//!
//! Each extent has a header of one sector in front of it, so the next offset is align_up(last offset + last size + 1,
//! unit). The formula last offset + last size + unit, of Sun's paper of November 2003, is the same only if offset and
//! size are multiples of the unit; otherwise its offset is misaligned. Both are shown if they differ. Offsets count
//! from the start of the component, so the start of the component counts too.

mod around;
mod metainit;

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR, SmallSort, group_digits, next_aligned_start};

use crate::error::PlanError;
use crate::meet::next_boundary;
use crate::nodes::{Nodes, System};
use crate::plan::{Plan, Table, Unit, Value};

/// A soft partition as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoftPartition {
    /// Its name: `d12`.
    pub name: String,
    /// Extents in the order of their data: offset on the component and length, in sectors.
    pub extents: Vec<(u64, u64)>,
    /// Mirror that it is a copy of, if it is.
    pub mirror: Option<Submirror>,
    /// Volumes above it, the topmost first: Solaris Volume Manager clears nothing that another volume uses.
    pub users: Vec<String>,
}

/// How a soft partition is part of a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submirror {
    /// The mirror.
    pub mirror: String,
    /// The submirror that consists of the soft partition.
    pub submirror: String,
}

/// All soft partitions of one component, and those to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoftpartRequest {
    /// Their component: `d10`, `c3t8d0s0`.
    pub component: String,
    /// The unit of their starts: interlace, full stripe, page.
    pub unit: Bytes,
    /// Whether nobody stated the unit.
    pub is_unit_assumed: bool,
    /// A sentence if the component itself starts off a unit of the disks below.
    pub off_below: Option<String>,
    /// The start of the component in the address space of that unit.
    pub base: Bytes,
    /// Length of the component, if known.
    pub component_bytes: Option<Bytes>,
    /// Those that exist.
    pub existing: Vec<SoftPartition>,
    /// Names and lengths of those to be added behind them.
    pub new: Vec<(String, Bytes)>,
}

/// An extent with its present and its right position, in sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index of its soft partition: existing ones by offset, then new ones.
    pub name: String,
    /// Its present position; `None` for a new one.
    pub offset_now: Option<u64>,
    /// Sectors past the unit where it is now.
    pub past_now: Option<u64>,
    /// Its right position.
    pub offset: u64,
    /// Length.
    pub size: u64,
    /// The result of the paper's formula from the extent before; `None` for the first.
    pub paper: Option<u64>,
}

impl Placed {
    /// Whether it exists and goes elsewhere.
    fn is_moved(&self) -> bool {
        self.offset_now.is_some_and(|now| now != self.offset)
    }

    /// Whether it exists and is off the unit.
    fn is_off(&self) -> bool {
        self.past_now.is_some_and(|past| past > 0)
    }
}

/// Computes the right position of every extent. Those on the unit stay if the others find room beside them. Otherwise
/// all are placed in their present order: at their present or the next place behind, so that gaps stay, or without gaps
/// if they would not fit into the component otherwise.
///
/// # Errors
/// When unit or base are no whole sectors, or an offset exceeds 64 bits.
pub fn place(request: &SoftpartRequest) -> Result<Vec<Placed>, PlanError> {
    if let Some(placed) = around::place(request)? {
        return Ok(placed);
    }
    let placed = place_in_order(request, true)?;
    if beyond(request, &placed).is_none() || !placed.iter().any(Placed::is_off) {
        return Ok(placed);
    }
    let closed = place_in_order(request, false)?;
    Ok(if beyond(request, &closed).is_none() {
        closed
    } else {
        placed
    })
}

/// Sectors by which the last extent ends beyond the component, if it does.
fn beyond(request: &SoftpartRequest, placed: &[Placed]) -> Option<u64> {
    past_end(request, end_of(placed)?)
}

/// The end of the last extent.
fn end_of(placed: &[Placed]) -> Option<u64> {
    placed.iter().map(|one| one.offset + one.size).max()
}

/// Sectors by which a sector is beyond the component, if it is.
fn past_end(request: &SoftpartRequest, end: u64) -> Option<u64> {
    end.checked_sub(request.component_bytes?.0 / SECTOR)
        .filter(|beyond| *beyond > 0)
}

/// The reason why they do not fit into the component: at present, which no other place fixes, or at their right
/// positions.
fn refusal(request: &SoftpartRequest, placed: &[Placed]) -> Result<Option<String>, PlanError> {
    let ends = |part: &SoftPartition| {
        part.extents
            .iter()
            .map(|(at, size)| at.saturating_add(*size))
            .max()
    };
    let ends_now = request
        .existing
        .iter()
        .filter_map(|part| Some((ends(part)?, part.name.as_str())))
        .max();
    if let Some((end, name)) = ends_now
        && let Some(sectors) = past_end(request, end)
    {
        return Ok(Some(format!(
            "{name} ends {} sectors beyond the component already now: see how long both of them are (metastat -p, \
             prtvtoc)",
            group_digits(sectors)
        )));
    }
    let Some(sectors) = beyond(request, placed) else {
        return Ok(None);
    };
    let closed = beyond(request, &place_in_order(request, false)?);
    let without_gaps =
        closed.filter(|closed| *closed < sectors && placed.iter().any(Placed::is_off));
    let without_gaps = without_gaps.map(|left| format!(", {} without gaps", group_digits(left)));
    Ok(Some(format!(
        "the last one would end {} sectors beyond the component{}: make one of them smaller, or put one elsewhere",
        group_digits(sectors),
        without_gaps.unwrap_or_default()
    )))
}

fn place_in_order(
    request: &SoftpartRequest,
    are_gaps_kept: bool,
) -> Result<Vec<Placed>, PlanError> {
    let unit = sectors("the unit", request.unit)?;
    let base = sectors("the start of the component", request.base)?;
    if unit == 0 {
        let expected = "at least one sector";
        return Err(PlanError::OutOfRange {
            what: "the unit",
            found: "0".to_owned(),
            expected,
        });
    }
    let grid = offsets(unit, base)?;
    let mut extents: Vec<(&str, Option<u64>, u64)> = request
        .existing
        .iter()
        .flat_map(|part| {
            part.extents
                .iter()
                .map(|(at, size)| (part.name.as_str(), Some(*at), *size))
        })
        .collect();
    extents.small_sort_by_key(|(_, at, _)| *at);
    for (name, bytes) in &request.new {
        extents.push((name, None, sectors("the size of a soft partition", *bytes)?));
    }
    let mut placed: Vec<Placed> = Vec::with_capacity(extents.len());
    for (name, now, size) in extents {
        let last = placed.last().map(|last| (last.offset, last.size));
        let from = now.filter(|_| are_gaps_kept).unwrap_or(0);
        let offset =
            next_offset(&grid, last, from).ok_or(PlanError::TooLarge { what: "an offset" })?;
        offset.checked_add(size).ok_or(PlanError::TooLarge {
            what: "the end of a soft partition",
        })?;
        placed.push(Placed {
            name: name.to_owned(),
            offset_now: now,
            past_now: now.map(|at| grid.past_boundary(Bytes(at)).0),
            offset,
            size,
            paper: last.and_then(|(at, size)| paper_offset(at, size, unit)),
        });
    }
    Ok(placed)
}

/// Offsets on the unit, in sectors: those that make up for where the component starts.
fn offsets(unit: u64, base: u64) -> Result<Grid, PlanError> {
    let offset = (unit - base % unit) % unit;
    let grid = Grid::new(Bytes(unit), Bytes(offset), GridKind::Unit);
    grid.map_err(|_| PlanError::TooLarge { what: "the unit" })
}

/// The smallest offset on the grid, from a minimum on, that leaves a sector for the header behind the last extent.
fn next_offset(grid: &Grid, last: Option<(u64, u64)>, from: u64) -> Option<u64> {
    let free = match last {
        Some((at, size)) => next_aligned_start(at, size, 1)?,
        None => 1,
    };
    Some(next_boundary(grid, Bytes(free.max(from)))?.0)
}

/// The formula of the paper: right where offset and size are multiples of the unit.
#[must_use]
pub const fn paper_offset(last_offset: u64, last_size: u64, unit: u64) -> Option<u64> {
    match last_offset.checked_add(last_size) {
        Some(end) => end.checked_add(unit),
        None => None,
    }
}

fn sectors(what: &'static str, bytes: Bytes) -> Result<u64, PlanError> {
    let whole = bytes.to_sectors_exact().map(|sectors| sectors.0);
    whole.ok_or(PlanError::NotAMultiple {
        what,
        found: bytes,
        of: "sectors",
        unit: Bytes(SECTOR),
    })
}

/// Volumes that cannot all be there: a new one by the name of an old one, extents over each other or without room for
/// their header.
///
/// # Errors
/// The first invalid part.
pub fn check(request: &SoftpartRequest) -> Result<(), PlanError> {
    let out = |found: String, expected| {
        Err(PlanError::OutOfRange {
            what: "a soft partition",
            found,
            expected,
        })
    };
    let mut names: Vec<&str> = request
        .existing
        .iter()
        .map(|volume| volume.name.as_str())
        .collect();
    for (name, _) in &request.new {
        if names.contains(&name.as_str()) {
            return out(name.clone(), "a name that no other has");
        }
        names.push(name);
    }
    let extents = request.existing.iter().flat_map(|volume| {
        volume
            .extents
            .iter()
            .map(|(offset, len)| (*offset, *len, volume.name.as_str()))
    });
    let mut extents: Vec<(u64, u64, &str)> = extents.collect();
    extents.sort_unstable();
    if let Some((0, _, name)) = extents.first() {
        return out(
            format!("{name} at sector 0"),
            "an extent with a sector for its header in front",
        );
    }
    for pair in extents.windows(2) {
        let [(first, len, one), (start, _, other)] = *pair else {
            continue;
        };
        // The header of an extent is the sector in front.
        if start <= first.saturating_add(len) {
            let last = first.saturating_add(len).saturating_sub(1);
            return Err(PlanError::Overlap {
                one: one.to_owned(),
                first,
                last,
                other: other.to_owned(),
                start,
            });
        }
    }
    Ok(())
}

/// Works out the plan.
///
/// # Errors
/// As [`place`]; without anything to place.
pub fn plan(request: &SoftpartRequest) -> Result<Plan, PlanError> {
    check(request)?;
    let placed = place(request)?;
    if placed.is_empty() {
        let give = "name those that exist, or the size of a new one";
        return Err(PlanError::Missing {
            what: "the soft partitions to place",
            give,
        });
    }
    let off = placed.iter().filter(|one| one.is_off()).count();
    let exist = placed.iter().filter(|one| one.offset_now.is_some()).count();
    let mut plan = Plan::new("softpart", title(request, off, exist));
    figures(&mut plan, request, &placed, off, exist);
    plan.tables.push(table(&placed));
    match refusal(request, &placed)? {
        Some(why) => plan.refuse(why),
        None => plan.add(metainit::remedies(request, &placed)),
    }
    if off > 0 && plan.refusal.is_none() {
        let is_moved = |part: &&SoftPartition| {
            placed
                .iter()
                .any(|one| one.name == part.name && one.is_moved())
        };
        let moved = request.existing.iter().filter(is_moved);
        let moved = moved.map(|part| format!("/dev/md/rdsk/{}", part.name));
        plan.keep_nodes(Nodes::for_names(
            System::Solaris,
            &moved.collect::<Vec<_>>(),
        ));
    }
    notes(&mut plan, request, &placed);
    Ok(plan)
}

fn title(request: &SoftpartRequest, off: usize, exist: usize) -> String {
    let (component, unit) = (&request.component, request.unit);
    match (off, request.new.len()) {
        (0, 0) => {
            format!("soft partitions of {component}: {exist} of {exist} extents are on {unit}")
        }
        (0, _) => format!("soft partitions of {component}: the next one on {unit}"),
        (off, _) => {
            format!("soft partitions of {component}: {off} of {exist} extents are off {unit}")
        }
    }
}

fn figures(
    plan: &mut Plan,
    request: &SoftpartRequest,
    placed: &[Placed],
    off: usize,
    exist: usize,
) {
    plan.figure(
        "unit_bytes",
        request.unit,
        Unit::Bytes,
        "unit that extents have to be on",
    );
    plan.figure(
        "unit_sectors",
        request.unit.0 / SECTOR,
        Unit::Sectors,
        "the same in sectors of 512 B",
    );
    if request.base.0 > 0 {
        let base = request.base.0 / SECTOR;
        plan.figure(
            "base_sectors",
            base,
            Unit::Sectors,
            "start of the component itself",
        );
    }
    if exist > 0 {
        plan.figure("extents", exist as u64, Unit::Count, "extents now");
        plan.figure(
            "extents_off",
            off as u64,
            Unit::Count,
            "of them off the unit",
        );
    }
    if let Some(end) = end_of(placed) {
        plan.figure(
            "end_sectors",
            end,
            Unit::Sectors,
            "end of the last one, on the component",
        );
    }
    if let Some(size) = request.component_bytes {
        plan.figure(
            "component_sectors",
            size.0 / SECTOR,
            Unit::Sectors,
            "length of the component",
        );
    }
}

fn table(placed: &[Placed]) -> Table {
    let mut table = Table::new(
        "Extents in order, on the component",
        &[
            ("name", "name", Unit::Words),
            ("offset_now_sectors", "-o now", Unit::Sectors),
            ("past_now_sectors", "past", Unit::Sectors),
            ("offset_sectors", "-o", Unit::Sectors),
            ("size_sectors", "-b", Unit::Sectors),
            ("paper_sectors", "by the paper", Unit::Sectors),
        ],
    );
    for one in placed {
        let differs = one.paper.filter(|paper| *paper != one.offset);
        table.row(vec![
            one.name.as_str().into(),
            one.offset_now.into(),
            one.past_now.into(),
            one.offset.into(),
            one.size.into(),
            differs.map_or(Value::None, Value::Count),
        ]);
    }
    table
}

fn notes(plan: &mut Plan, request: &SoftpartRequest, placed: &[Placed]) {
    if let Some(off) = &request.off_below {
        plan.note(off.as_str());
    }
    if placed
        .iter()
        .any(|one| one.paper.is_some_and(|paper| paper != one.offset))
    {
        plan.note(
            "by the paper: last offset + last size + unit, shown if it differs. It holds only if the last size is a \
             multiple of the unit, and the component starts on it; otherwise its result is off the unit",
        );
    }
    if request.component_bytes.is_none() {
        plan.note("the length of the component is not known: see that the last one ends before it (prtvtoc, metastat)");
    }
    if request.base.0 == 0 && request.off_below.is_none() {
        plan.note(
            "offsets count from the start of the component, assumed to be on the unit; if it is not, give its \
             start",
        );
    }
    plan.note(
        "metastat -p also prints hot spares in use and submirrors: do not pass its output to metainit unchanged",
    );
}
