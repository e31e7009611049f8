//! Misplaced extents among well-placed ones: only the misplaced move, each to the nearest free place behind it, else to
//! the first one. A header of one sector precedes each extent.

use plumb_geometry::{Bytes, Grid, SECTOR, SmallSort};

use super::{Placed, SoftpartRequest, offsets, paper_offset, sectors};
use crate::error::PlanError;
use crate::meet::next_boundary;

/// Starts are planned on this while the unit is only assumed, if there is room.
const WIDE_SECTORS: u64 = (1 << 20) / SECTOR;

/// Places the misplaced; `None` where none or all are, new ones are asked for, or there is no room.
///
/// # Errors
/// As [`super::place`].
pub(super) fn place(request: &SoftpartRequest) -> Result<Option<Vec<Placed>>, PlanError> {
    let unit = sectors("the unit", request.unit)?;
    let base = sectors("the start of the component", request.base)?;
    if unit == 0 || !request.new.is_empty() {
        return Ok(None);
    }
    let grid = offsets(unit, base)?;
    let mut extents: Vec<(&str, u64, u64)> = request
        .existing
        .iter()
        .flat_map(|part| {
            let extents = part.extents.iter();
            extents.map(|(at, size)| (part.name.as_str(), *at, *size))
        })
        .collect();
    extents.small_sort_by_key(|(_, at, _)| *at);
    let is_off = |at: u64| grid.past_boundary(Bytes(at)) != Bytes(0);
    let off = extents.iter().filter(|(_, at, _)| is_off(*at)).count();
    if off == 0 || off == extents.len() {
        return Ok(None);
    }
    let mut units = vec![unit];
    if request.is_unit_assumed && base == 0 {
        units = std::iter::successors(Some(WIDE_SECTORS), |wide| Some(wide / 2))
            .take_while(|wide| *wide > unit && wide.is_multiple_of(unit))
            .chain([unit])
            .collect();
    }
    for unit in units {
        let places = Free::beside(request, &extents).place(&extents, is_off, &offsets(unit, base)?);
        if let Some(places) = places {
            return Ok(Some(placed(request, &extents, &grid, &places)));
        }
    }
    Ok(None)
}

fn placed(
    request: &SoftpartRequest,
    extents: &[(&str, u64, u64)],
    grid: &Grid,
    places: &[u64],
) -> Vec<Placed> {
    let mut before: Option<(u64, u64)> = None;
    let all = extents.iter().zip(places);
    all.map(|(&(name, now, size), &offset)| {
        let paper = before.and_then(|(at, len)| paper_offset(at, len, request.unit.0 / SECTOR));
        before = Some((now, size));
        Placed {
            name: name.to_owned(),
            offset_now: Some(now),
            past_now: Some(grid.past_boundary(Bytes(now)).0),
            offset,
            size,
            paper: paper.filter(|_| offset != now),
        }
    })
    .collect()
}

/// Free sectors: behind the extents in use, up to the end of the component if known.
struct Free {
    /// First sectors, and those behind the last.
    gaps: Vec<(u64, u64)>,
}

impl Free {
    /// The space that the extents leave. The old places of moved extents count as used: their data are there until they
    /// were copied.
    fn beside(request: &SoftpartRequest, extents: &[(&str, u64, u64)]) -> Free {
        let end = request.component_bytes.map_or(0, |bytes| bytes.0 / SECTOR);
        let mut gaps = Vec::new();
        let mut from = 0;
        for (_, at, size) in extents {
            let header = at.saturating_sub(1);
            if header > from {
                gaps.push((from, header));
            }
            from = from.max(at.saturating_add(*size));
        }
        if end > from {
            gaps.push((from, end));
        }
        Free { gaps }
    }

    fn place(
        mut self,
        extents: &[(&str, u64, u64)],
        is_off: impl Fn(u64) -> bool,
        grid: &Grid,
    ) -> Option<Vec<u64>> {
        let mut places = Vec::with_capacity(extents.len());
        for (_, at, size) in extents {
            places.push(match is_off(*at) {
                true => self.take(*at, *size, grid)?,
                false => *at,
            });
        }
        Some(places)
    }

    /// Takes the nearest place behind a sector, else the first one.
    fn take(&mut self, near: u64, size: u64, grid: &Grid) -> Option<u64> {
        let fits = |&(from, end): &(u64, u64)| {
            let start = next_boundary(grid, Bytes(from.checked_add(1)?))?.0;
            (start.checked_add(size)? <= end).then_some(start)
        };
        let mut starts: Vec<(usize, u64)> = self
            .gaps
            .iter()
            .enumerate()
            .filter_map(|(gap, range)| Some((gap, fits(range)?)))
            .collect();
        starts.small_sort_by_key(|(_, start)| (*start < near, *start));
        let (gap, start) = *starts.first()?;
        let (from, end) = self.gaps[gap];
        self.gaps[gap] = (start + size, end);
        self.gaps.push((from, start - 1));
        Some(start)
    }
}
