//! The offset of I/O, and the move of the layout that would align them.
//!
//! A residue proves no cause, so a layout is never more than consistent with it. A move is advised only if it reduces
//! the count of these very I/O.

use plumb_geometry::{Bytes, Grid, SECTOR};
use plumb_model::Fix;
use plumb_model::facts::{
    GridSource, IoOffset, KnownStart, OffsetAdvice, OtherOffset, PartitionStart,
};
use plumb_profile::fit::{FitTally, Select};
use plumb_profile::infer::{InferenceVerdict, Phase};
use plumb_profile::table::Table;
use plumb_profile::what_if;
use plumb_quoting::{Command, NoCommand};
use plumb_trace::Layer;
use plumb_trace::names::partition_number;

use crate::analysis::{GridFit, PlaceAnalysis};
use crate::rules::Context;

/// Below this share of the stream heads, in percent, an offset is no layout of its own.
const LAYOUT_HEADS_PERCENT_MIN: u64 = 1;

/// The command that counts the I/O again with another start.
type Again = Option<Result<Fix, NoCommand>>;

/// The offset of the I/O in a place, and the command that shows the effect of a move.
pub(super) fn of_place(
    context: &Context<'_>,
    place: &PlaceAnalysis,
    fit: &GridFit,
    tally: &FitTally,
) -> (IoOffset, Again) {
    let inference = &place.inference;
    let phases: &[Phase] = match &inference.verdict {
        InferenceVerdict::One { phase } => std::slice::from_ref(phase),
        InferenceVerdict::Two { phases } => phases,
        InferenceVerdict::NoGrid | InferenceVerdict::NotEnoughData { .. } => &[],
    };
    let within = context.file_systems_in(place, &fit.grid);
    // Known partitions need no guess, and offsets in files have other causes.
    let is_guessed = context.profile.layer != Layer::Vfs
        && context.analysis.places.len() == 1
        && within.is_none();
    let known_starts = phases
        .iter()
        .map(|phase| known_start(phase).filter(|_| is_guessed));
    let others = inference.other_offsets.iter().map(|other| OtherOffset {
        offset_bytes: other.offset_bytes,
        ios: other.ios,
        heads: other.heads,
        continues_streams: other.heads * 100 < inference.heads * LAYOUT_HEADS_PERCENT_MIN,
    });
    let (advice, again) = match (within, &inference.verdict) {
        (Some(file_systems), _) => (OffsetAdvice::WithinFileSystems { file_systems }, None),
        (None, InferenceVerdict::One { phase }) => advise(context, place, fit, tally, phase),
        (None, InferenceVerdict::Two { .. })
            if place.name.is_none() && context.profile.layer != Layer::Vfs =>
        {
            (OffsetAdvice::EachPart, None)
        }
        _ => (OffsetAdvice::Nothing, None),
    };
    let partitions = match inference.verdict {
        InferenceVerdict::NoGrid => Vec::new(),
        _ => partitions(context, place, &fit.grid),
    };
    let offset = IoOffset {
        ios: inference.ios,
        heads: inference.heads,
        verdict: inference.verdict.clone(),
        examined_bytes: inference.examined_bytes,
        known_starts: known_starts.collect(),
        others: others.collect(),
        partitions,
        advice,
    };
    (offset, again)
}

/// First sectors that old tools gave the first partition.
const KNOWN_STARTS: [(u64, KnownStart); 3] = [
    (63, KnownStart::Sector63),
    (34, KnownStart::Sector34),
    (16_065, KnownStart::Cylinder),
];

/// A layout that would give this phase. Never more than consistent with it: a residue proves no cause.
#[must_use]
pub fn known_start(phase: &Phase) -> Option<KnownStart> {
    let Bytes(granularity) = phase.granularity_bytes;
    if phase.offset_bytes.0 == 0 {
        return None;
    }
    let mut known = KNOWN_STARTS.iter();
    known
        .find(|(sector, _)| sector * SECTOR % granularity == phase.offset_bytes.0)
        .map(|(_, known)| *known)
}

/// The start of each known partition, so that a misaligned layout is separated from I/O that are misaligned inside it.
fn partitions(context: &Context<'_>, place: &PlaceAnalysis, grid: &Grid) -> Vec<PartitionStart> {
    let parts = context.analysis.places.iter().skip(1);
    parts
        .filter(|part| place.name.is_none() || part.name == place.name)
        .map(|part| PartitionStart {
            name: part.name.clone().unwrap_or_default(),
            start_bytes: Bytes(part.first_byte),
            past_bytes: grid.past_boundary(Bytes(part.first_byte)),
        })
        .collect()
}

/// Distance of a phase from the boundary before; `None` if its blocks are no whole cells, so that there are several.
pub(super) fn past(grid: &Grid, phase: &Phase) -> Option<u64> {
    let whole = phase
        .granularity_bytes
        .0
        .is_multiple_of(grid.granularity().0);
    whole.then(|| grid.past_boundary(phase.offset_bytes).0)
}

/// The distance that everything would have to begin later for a phase to be on the grid; 0 if it is. `None` if no move
/// does it.
#[must_use]
pub fn shift_bytes(grid: &Grid, phase: &Phase) -> Option<u64> {
    let granularity = grid.granularity().0;
    past(grid, phase).map(|past| (granularity - past) % granularity)
}

/// The grid for a move. If none is known, that of the I/O themselves is as good, and blocks on it are on all smaller
/// ones.
fn to_mend(fit: &GridFit, phase: &Phase) -> Grid {
    let own = Grid::new(phase.granularity_bytes, Bytes(0), fit.grid.kind());
    match own {
        Ok(own) if fit.source == GridSource::Assumed && past(&fit.grid, phase).is_some() => own,
        _ => fit.grid,
    }
}

/// The move that aligns these I/O, if there is one.
fn advise(
    context: &Context<'_>,
    place: &PlaceAnalysis,
    fit: &GridFit,
    tally: &FitTally,
    phase: &Phase,
) -> (OffsetAdvice, Again) {
    if context.profile.layer == Layer::Vfs {
        return (OffsetAdvice::InFiles, None);
    }
    let grid = to_mend(fit, phase);
    let by = match shift_bytes(&grid, phase) {
        None => return (OffsetAdvice::NoShift, None),
        Some(0) => return (OffsetAdvice::OnGrid, None),
        Some(by) => by,
    };
    let after = match (i64::try_from(by), table_of(context, place)) {
        (Ok(by), Some(table)) => what_if::shifted(table, &fit.grid, by, Select::DATA).ok(),
        _ => None,
    };
    let Some(after) = after
        .filter(|after| after.misaligned.high < tally.misaligned.low && by.is_multiple_of(SECTOR))
    else {
        return (OffsetAdvice::Nothing, None);
    };
    let advice = OffsetAdvice::Shift {
        up_bytes: Bytes(by),
        blocks_bytes: (grid != fit.grid).then_some(grid.granularity()),
        misaligned: after.misaligned,
        ios: after.ios,
    };
    // The report holds the answer already.
    let is_asked = i64::try_from(by).is_ok_and(|by| context.questions.shift_bytes == Some(by));
    let again = match is_asked {
        true => None,
        false => command(context, place, fit, by / SECTOR).map(Fix::look),
    };
    (advice, again)
}

fn table_of<'a>(context: &Context<'a>, place: &PlaceAnalysis) -> Option<&'a Table> {
    match &place.name {
        None => Some(&context.profile.places.table),
        Some(name) => context
            .profile
            .partitions
            .get(name)
            .map(|places| &places.table),
    }
}

fn command(
    context: &Context<'_>,
    place: &PlaceAnalysis,
    fit: &GridFit,
    sectors: u64,
) -> Option<Command> {
    let asked = context.questions.command.clone();
    let is_asked = asked.is_some();
    let mut command = asked.unwrap_or_else(|| Command::new("plumb analyze FILE"));
    if let Some(name) = &place.name {
        let number = partition_number(&context.target.device, name)?;
        command = command.flags("--partition").arg(number);
    }
    command = command.flags("--shift").arg(format!("+{sectors}s"));
    if is_asked {
        return Some(command);
    }
    if fit.source == GridSource::User {
        command = command.flags("--grid").arg(typed(&fit.grid));
    }
    Some(match (&place.name, &context.analysis.target.part) {
        (None, Some(_)) => command.remark("with the same --partition as now"),
        _ => command,
    })
}

/// A grid as it is typed: `4k`, `8k@1024`.
fn typed(grid: &Grid) -> String {
    let size = |Bytes(bytes): Bytes| {
        if bytes.is_multiple_of(1024) {
            format!("{}k", bytes / 1024)
        } else {
            bytes.to_string()
        }
    };
    match grid.offset() {
        Bytes(0) => size(grid.granularity()),
        offset => format!("{}@{}", size(grid.granularity()), size(offset)),
    }
}
