//! `misaligned-io` in words.

use plumb_geometry::{Bytes, Grid, SECTOR, group_digits, plural};
use plumb_model::Target;
use plumb_model::facts::{
    FileSystemBlock, GridSource, IoOffset, KnownStart, MisalignedIo, OffsetAdvice, OtherOffset,
    PartitionStart,
};
use plumb_profile::infer::{InferenceVerdict, Phase};

use super::phrase::{counted, interval, part_of};
use super::{Sentences, seen, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &MisalignedIo) -> Sentences {
    let outside = if facts.is_outside_partitions {
        " outside of all partitions"
    } else {
        ""
    };
    let mut sentences = Sentences::new(format!(
        "{} I/O on {}{outside} start off {}.",
        counted(&facts.counted),
        target::name(on),
        grid(&facts.grid, facts.grid_source)
    ));
    sentences.explanation.extend(interval(&facts.counted));
    if let Some(offset) = &facts.offset {
        sentences.explanation.extend(of_offset(offset, &facts.grid));
    }
    if facts.grid_source == GridSource::Tested {
        sentences = sentences.say(
            "The source counted them: it does not tell their devices, operations and lengths.",
        );
    }
    sentences.and(facts.latency.as_ref().map(seen::latency))
}

fn grid(grid: &Grid, source: GridSource) -> String {
    match source {
        GridSource::Assumed => format!("the grid of {grid}, which is assumed"),
        GridSource::User => format!("the given grid of {grid}"),
        GridSource::Stated => format!("the grid of {grid} that the layers below state"),
        GridSource::Shown => format!("the grid of {grid} that the virtual disk states"),
        GridSource::Tested => format!("the {} that the source tested", grid.granularity()),
    }
}

fn of_offset(offset: &IoOffset, grid: &Grid) -> Vec<String> {
    let known = |at: usize| offset.known_starts.get(at).copied().flatten();
    let mut sentences: Vec<String> = match &offset.verdict {
        InferenceVerdict::One { phase } => vec![of_phase(offset, phase, known(0))],
        InferenceVerdict::Two {
            phases: [first, second],
        } => vec![
            format!("There are two layouts. {}", of_phase(offset, first, known(0))),
            of_phase(offset, second, known(1)),
        ],
        InferenceVerdict::NoGrid => vec![
            "No one or two offsets hold most random I/O, on any grid: no single shift would align them.".to_owned(),
        ],
        InferenceVerdict::NotEnoughData { why } => {
            vec![format!("The offset of the I/O is unknown: {why}.")]
        }
    };
    sentences.extend(offset.examined_bytes.map(examined));
    sentences.extend(offset.others.iter().map(other));
    sentences.extend(offset.partitions.iter().map(partition));
    sentences.extend(advice(&offset.advice, &offset.verdict, grid));
    sentences
}

/// The coverage of a search for offsets in a full table.
#[must_use]
pub fn examined(largest: Bytes) -> String {
    format!(
        "Offsets were examined for blocks up to {largest}: there were too many different starts to keep more of each."
    )
}

/// `4 KiB blocks are at sector 7 of 8: 79.5 % of the I/O, 97.2 % of the random I/O. …`
fn of_phase(offset: &IoOffset, phase: &Phase, known: Option<KnownStart>) -> String {
    let of = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
    let cause = known.map_or_else(String::new, |known| {
        format!(
            " That is consistent with {}, but does not prove it.",
            known_start(known)
        )
    });
    format!(
        "{} blocks are at {}: {:.1} % of the I/O, {:.1} % of the random I/O.{cause}",
        phase.granularity_bytes,
        position(phase),
        of(phase.ios, offset.ios),
        of(phase.heads, offset.heads),
    )
}

/// The layout that a well-known start is from.
#[must_use]
pub const fn known_start(known: KnownStart) -> &'static str {
    match known {
        KnownStart::Sector63 => "a partition at sector 63, as MBR tools made it for cylinders",
        KnownStart::Sector34 => "a partition at sector 34, right behind an EFI label",
        KnownStart::Cylinder => "a partition at a cylinder boundary (16,065 sectors)",
    }
}

/// `sector 7 of 8`, or bytes if it is no whole sector.
fn position(phase: &Phase) -> String {
    let unit = if phase.offset_bytes.0.is_multiple_of(SECTOR) {
        SECTOR
    } else {
        1
    };
    format!(
        "{} of {}",
        at(phase.offset_bytes),
        group_digits(phase.granularity_bytes.0 / unit)
    )
}

/// `sector 7`, or the byte if it is no whole sector.
fn at(Bytes(offset): Bytes) -> String {
    match offset % SECTOR {
        0 => format!("sector {}", group_digits(offset / SECTOR)),
        _ => format!("byte {}", group_digits(offset)),
    }
}

fn other(other: &OtherOffset) -> String {
    let (ios, place) = (group_digits(other.ios), at(other.offset_bytes));
    if other.continues_streams {
        format!("The {ios} I/O at {place} continue streams: they are no second layout.")
    } else {
        format!(
            "{ios} more I/O, {} of them random, are at {place}: too few to be sure of a second layout.",
            group_digits(other.heads)
        )
    }
}

fn partition(part: &PartitionStart) -> String {
    let sector = group_digits(part.start_bytes.0 / SECTOR);
    match part.past_bytes {
        Bytes(0) => format!(
            "Partition {} starts at sector {sector}, on the grid: its unaligned I/O come from within it.",
            part.name
        ),
        past => format!(
            "Partition {} starts at sector {sector}, {past} past the grid.",
            part.name
        ),
    }
}

/// The sentence on a move of the layout, or on the cause where no move helps.
pub(super) fn next_step(facts: &MisalignedIo) -> Option<String> {
    let offset = facts.offset.as_ref()?;
    advice(&offset.advice, &offset.verdict, &facts.grid)
}

fn advice(advice: &OffsetAdvice, verdict: &InferenceVerdict, grid: &Grid) -> Option<String> {
    let granularity = grid.granularity();
    Some(match advice {
        OffsetAdvice::Nothing => return None,
        OffsetAdvice::EachPart => {
            "Look at each part of the device by itself (`--partition` or `--range`).".to_owned()
        }
        OffsetAdvice::InFiles => {
            "These are places in files: the application or its file format decides them.".to_owned()
        }
        OffsetAdvice::NoShift => match verdict {
            InferenceVerdict::One { phase } => format!(
                "No single shift puts blocks of {} on {granularity}.",
                phase.granularity_bytes
            ),
            _ => format!("No single shift puts them on {granularity}."),
        },
        OffsetAdvice::WithinFileSystems { file_systems } => within(file_systems, granularity),
        OffsetAdvice::OnGrid => {
            "These are on the grid: the others are off by themselves, and no shift aligns them."
                .to_owned()
        }
        OffsetAdvice::Shift {
            up_bytes,
            blocks_bytes,
            misaligned,
            ios,
        } => {
            let effect = match blocks_bytes {
                None => "align them".to_owned(),
                Some(blocks) => format!("put blocks of {blocks} on multiples of their length"),
            };
            format!(
                "A layout that starts {} ({up_bytes}) later would {effect} and leave {} I/O off {granularity} (exact for these \
                 requests).",
                plural(up_bytes.0 / SECTOR, "sector"),
                part_of(*misaligned, *ios)
            )
        }
    })
}

/// The cause of I/O that are off although all file systems begin on the grid.
fn within(file_systems: &[FileSystemBlock], granularity: Bytes) -> String {
    let is_short = |one: &&FileSystemBlock| !one.block_bytes.0.is_multiple_of(granularity.0);
    let short: Vec<&FileSystemBlock> = file_systems.iter().filter(is_short).collect();
    let blocks = |of: &[&FileSystemBlock]| {
        let named: Vec<String> = of
            .iter()
            .map(|one| format!("{} has blocks of {}", one.name, one.block_bytes))
            .collect();
        named.join(", ")
    };
    if short.is_empty() {
        let all: Vec<&FileSystemBlock> = file_systems.iter().collect();
        return format!(
            "No move of a partition aligns them: all file systems on it begin on the grid ({}). The application chooses these offsets in \
             its files: set its block size or alignment to {granularity}.",
            blocks(&all)
        );
    }
    format!(
        "No move of a partition aligns them: {}, and a block may begin anywhere in {granularity}. The length of a block is fixed when a \
         file system is made: copy the files to a new one with blocks of {granularity}.",
        blocks(&short)
    )
}
