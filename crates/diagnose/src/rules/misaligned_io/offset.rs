//! What offset the I/O have, in words, and which move of the layout would mend it.
//!
//! A residue proves no cause, so a layout is never more than consistent with it. A move is advised only where
//! the count of these very I/O gets smaller by it.

use plumb_geometry::{Bytes, Grid, SECTOR, group_digits, plural};
use plumb_profile::fit::{FitTally, Select};
use plumb_profile::infer::{Inference, InferenceVerdict, Phase};
use plumb_profile::table::Table;
use plumb_profile::what_if;
use plumb_quoting::Command;
use plumb_trace::Layer;
use plumb_trace::names::partition_number;

use crate::analysis::{GridFit, PlaceAnalysis};
use crate::finding::{Finding, Fix};
use crate::question::GridSource;
use crate::rules::{Context, share_text};
use crate::share::Share;

/// Below this share of the stream heads, in percent, an offset is no layout of its own.
const LAYOUT_HEADS_PERCENT_MIN: u64 = 1;

/// Says what offset the I/O have and what follows from it.
pub(super) fn explain(
    context: &Context<'_>,
    finding: Finding,
    place: &PlaceAnalysis,
    fit: &GridFit,
    tally: &FitTally,
) -> Finding {
    let inference = &place.inference;
    match &inference.verdict {
        InferenceVerdict::One { phase } => {
            let finding = finding.explained(phase_words(context, place, phase));
            let finding = others(finding, inference);
            let finding = starts(context, finding, place, &fit.grid);
            advise(context, finding, place, fit, tally, phase)
        }
        InferenceVerdict::Two { phases: [first, second] } => {
            let finding = finding
                .explained(format!("two layouts: {}", phase_words(context, place, first)))
                .explained(format!("and {}", phase_words(context, place, second)));
            let finding = starts(context, others(finding, inference), place, &fit.grid);
            if place.name.is_some() || context.profile.layer == Layer::Vfs {
                return finding;
            }
            finding.explained("look at each part of the device by itself (--partition or --range)")
        }
        InferenceVerdict::NoGrid => finding.explained(
            "no one or two offsets hold most stream heads, on any grid: no single shift would mend it",
        ),
        InferenceVerdict::NotEnoughData { why } => {
            let finding = finding.explained(format!("which offset the I/O have cannot be said: {why}"));
            starts(context, finding, place, &fit.grid)
        }
    }
}

/// `4 KiB blocks sit at sector 7 of 8: 79.5 % of the I/O, 97.2 % of the stream heads; consistent with …`.
fn phase_words(context: &Context<'_>, place: &PlaceAnalysis, phase: &Phase) -> String {
    let (ios, heads) = (place.inference.ios.max(1), place.inference.heads.max(1));
    let mut words = format!(
        "{} blocks sit at {}: {:.1} % of the I/O, {:.1} % of the stream heads",
        phase.granularity_bytes,
        position(phase),
        phase.ios as f64 * 100.0 / ios as f64,
        phase.heads as f64 * 100.0 / heads as f64,
    );
    // Where partitions are known nothing has to be guessed, and offsets in files have other causes.
    let guess = context.profile.layer != Layer::Vfs && context.analysis.places.len() == 1;
    if let Some(cause) = consistent_with(phase).filter(|_| guess) {
        words.push_str("; ");
        words.push_str(&cause);
    }
    words
}

/// `sector 7 of 8`, or bytes where it is no whole sector.
fn position(phase: &Phase) -> String {
    let unit = if phase.offset_bytes.0.is_multiple_of(SECTOR) {
        SECTOR
    } else {
        1
    };
    format!(
        "{} of {}",
        place(phase),
        group_digits(phase.granularity_bytes.0 / unit)
    )
}

/// `sector 7`, or the byte where it is no whole sector.
fn place(phase: &Phase) -> String {
    let Bytes(offset) = phase.offset_bytes;
    match offset % SECTOR {
        0 => format!("sector {}", group_digits(offset / SECTOR)),
        _ => format!("byte {}", group_digits(offset)),
    }
}

/// First sectors that old tools gave the first partition, with the tool.
const KNOWN_STARTS: [(u64, &str); 3] = [
    (
        63,
        "a partition at sector 63, as MBR tools made it for cylinders",
    ),
    (34, "a partition at sector 34, right behind an EFI label"),
    (
        16_065,
        "a partition at a cylinder boundary (16,065 sectors)",
    ),
];

/// A layout that would give this phase. Never more than consistent with it: a residue proves no cause.
#[must_use]
pub fn consistent_with(phase: &Phase) -> Option<String> {
    let Bytes(granularity) = phase.granularity_bytes;
    if phase.offset_bytes.0 == 0 {
        return None;
    }
    let known = KNOWN_STARTS
        .iter()
        .find(|(sector, _)| sector * SECTOR % granularity == phase.offset_bytes.0);
    known.map(|(_, words)| format!("consistent with {words} (not proven by it)"))
}

/// Tells streams that run at another offset from layouts that stand there.
fn others(mut finding: Finding, inference: &Inference) -> Finding {
    for other in &inference.other_offsets {
        let few = other.heads * 100 < inference.heads * LAYOUT_HEADS_PERCENT_MIN;
        finding = finding.explained(if few {
            format!(
                "the {} I/O at {} continue streams: no second layout",
                group_digits(other.ios),
                place(other)
            )
        } else {
            format!(
                "{} more I/O, {} of them stream heads, sit at {}: few heads, but perhaps a second layout",
                group_digits(other.ios),
                group_digits(other.heads),
                place(other)
            )
        });
    }
    finding
}

/// Says where a known partition begins, so that a layout off the grid is told from I/O that are off inside it.
fn starts(
    context: &Context<'_>,
    mut finding: Finding,
    place: &PlaceAnalysis,
    grid: &Grid,
) -> Finding {
    let parts = context.analysis.places.iter().skip(1);
    for part in parts.filter(|part| place.name.is_none() || part.name == place.name) {
        let past = grid.past_boundary(Bytes(part.first_byte));
        let stands = if past.0 == 0 {
            "on the grid".to_owned()
        } else {
            format!("{past} past the grid")
        };
        let from = if past.0 == 0 {
            ": what is off comes from within it"
        } else {
            ""
        };
        finding = finding.explained(format!(
            "partition {} begins at sector {}, {stands}{from}",
            part.name.as_deref().unwrap_or_default(),
            group_digits(part.first_byte / SECTOR),
        ));
    }
    finding
}

/// How far past the grid a phase sits; `None` when its blocks are no whole cells, so that they sit in several ways.
pub(super) fn past(grid: &Grid, phase: &Phase) -> Option<u64> {
    let whole = phase
        .granularity_bytes
        .0
        .is_multiple_of(grid.granularity().0);
    whole.then(|| grid.past_boundary(phase.offset_bytes).0)
}

/// By how many bytes everything would have to begin later for a phase to stand on the grid; 0 when it does.
/// `None` when no move does it.
#[must_use]
pub fn shift_bytes(grid: &Grid, phase: &Phase) -> Option<u64> {
    let granularity = grid.granularity().0;
    past(grid, phase).map(|past| (granularity - past) % granularity)
}

/// The grid that a move is to serve. Where none is known that of the I/O themselves is as good, and blocks that stand on
/// it stand on all smaller ones.
fn to_mend(fit: &GridFit, phase: &Phase) -> Grid {
    let own = Grid::new(phase.granularity_bytes, Bytes(0), fit.grid.kind());
    match own {
        Ok(own) if fit.source == GridSource::Assumed && past(&fit.grid, phase).is_some() => own,
        _ => fit.grid,
    }
}

/// Advises a move, if one mends it.
fn advise(
    context: &Context<'_>,
    finding: Finding,
    place: &PlaceAnalysis,
    fit: &GridFit,
    tally: &FitTally,
    phase: &Phase,
) -> Finding {
    if context.profile.layer == Layer::Vfs {
        return finding.explained(
            "these are places in files: the application or its file format decides them",
        );
    }
    let grid = to_mend(fit, phase);
    let Some(by) = shift_bytes(&grid, phase) else {
        return finding.explained(format!(
            "no single shift puts blocks of {} on {}",
            phase.granularity_bytes,
            fit.grid.granularity()
        ));
    };
    if by == 0 {
        return finding.explained(
            "these stand on the grid: the others are off by themselves, and no shift mends that",
        );
    }
    let after = match (i64::try_from(by), table_of(context, place)) {
        (Ok(by), Some(table)) => what_if::shifted(table, &fit.grid, by, Select::DATA).ok(),
        _ => None,
    };
    let Some(after) =
        after.filter(|after| after.misaligned < tally.misaligned && by.is_multiple_of(SECTOR))
    else {
        return finding;
    };
    let sectors = by / SECTOR;
    let put = match grid == fit.grid {
        true => "put them on it".to_owned(),
        false => format!(
            "put blocks of {} on multiples of their own length",
            grid.granularity()
        ),
    };
    let finding = finding.explained(format!(
        "a layout that begins {} ({}) later would {put} and leave {} I/O off {} (exact for these requests)",
        plural(sectors, "sector"),
        Bytes(by),
        share_text(Share::new(after.misaligned, after.ios)),
        fit.grid.granularity(),
    ));
    match command(context, place, fit, sectors) {
        Some(command) => finding.with_fix(Fix::new(
            command,
            "none: reads the trace again",
            "nothing to undo",
        )),
        None => finding,
    }
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
    let mut command = Command::new("plumb analyze FILE");
    if let Some(name) = &place.name {
        let number = partition_number(&context.target.device, name)?;
        command = command.flags("--partition").arg(number);
    }
    command = command.flags("--shift").arg(format!("+{sectors}s"));
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
