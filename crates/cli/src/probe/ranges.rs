//! The measured parts of a target, and the number of I/O in flight there.

use plumb_geometry::{Grid, plural};
use plumb_load::Target;
use plumb_load::probe::media::MediaSurvey;
use plumb_load::probe::{self, write_back};
use plumb_report::format;

use super::writes::Writing;
use crate::cli::Probe;
use crate::failure::Failure;

/// The minimum for a probe: the smallest grids some dozen times.
const SIZE_BYTES_MIN: u64 = 1 << 20;

/// Whether the request can be measured there: in the requested part, on the given grids.
///
/// # Errors
/// When it is too short or not within the target, or a grid is none of its logical blocks.
pub fn must_be_measurable(args: &Probe, target: &Target) -> Result<(), Failure> {
    let (name, size_bytes, least) = (
        target.name(),
        target.size_bytes(),
        format::bytes(SIZE_BYTES_MIN),
    );
    if size_bytes < SIZE_BYTES_MIN {
        let found = format::bytes(size_bytes);
        return Err(Failure::usage(format!(
            "{name}: found {found}, expected {least} or more to measure"
        )));
    }
    let (start, end) = part(args, target);
    if end > size_bytes {
        let (found, size) = (format::bytes(end), format::bytes(size_bytes));
        let what = format!(
            "--range: found an end at {found}, expected at most {size}, the size of {name}"
        );
        return Err(Failure::usage(what));
    }
    if end - start < SIZE_BYTES_MIN {
        let found = format::bytes(end - start);
        let what = format!("--range: found {found} of {name}, expected {least} or more to measure");
        return Err(Failure::usage(what));
    }
    args.grid
        .iter()
        .try_for_each(|grid| must_be_of_blocks(grid, target))
}

/// Nothing shorter than a logical block can be read, nor from within one.
fn must_be_of_blocks(grid: &Grid, target: &Target) -> Result<(), Failure> {
    let block = u64::from(target.block_bytes().max(512));
    let numbers = [
        ("a granularity", grid.granularity().0),
        ("an offset", grid.offset().0),
    ];
    let Some((what, bytes)) = numbers
        .into_iter()
        .find(|(_, bytes)| !bytes.is_multiple_of(block))
    else {
        return Ok(());
    };
    let (found, block, name) = (format::count(bytes), format::count(block), target.name());
    Err(Failure::usage(format!(
        "--grid: found {what} of {found} bytes, expected a multiple of {block} bytes, the logical block of {name}"
    )))
}

/// The requested part of the target.
fn part(args: &Probe, target: &Target) -> (u64, u64) {
    args.range
        .map_or((0, target.size_bytes()), |(start, end)| (start.0, end.0))
}

/// The parts that are worth reading, with notes for a reader.
pub fn readable(args: &Probe, target: &Target, notes: &mut Vec<String>) -> Vec<(u64, u64)> {
    let (start, end) = part(args, target);
    let Some(ranges) = probe::written(target, (start, end)) else {
        if !target.is_block_device() {
            notes.push("its file system does not report the written parts".to_owned());
        }
        return vec![(start, end)];
    };
    let written: u64 = ranges.iter().map(|(first, last)| last - first).sum();
    if written < end - start {
        let (written, all) = (format::bytes(written), format::bytes(end - start));
        notes.push(match target.is_block_device() {
            true => format!(
                "the disk maps {written} of {all} (GET LBA STATUS): nothing else was measured"
            ),
            false => format!("{written} of {all} were ever written: nothing else was measured"),
        });
    }
    ranges
}

/// Only the parts with data, where there are enough of them.
pub fn with_data(
    survey: &MediaSurvey,
    ranges: Vec<(u64, u64)>,
    notes: &mut Vec<String>,
) -> Vec<(u64, u64)> {
    if !survey.is_data_enough(&ranges) {
        return ranges;
    }
    let all: u64 = ranges.iter().map(|(start, end)| end - start).sum();
    notes.push(format!(
        "{} of {} read as zeros: only parts with other bytes were measured, {} of {}",
        format::count(survey.zeros),
        plural(survey.places, "place"),
        format::bytes(survey.data_bytes()),
        format::bytes(all)
    ));
    survey.data.clone()
}

/// The number in flight: for writes as many as are far enough apart.
pub fn depth_in(
    args: &Probe,
    writing: Option<&Writing>,
    ranges: &[(u64, u64)],
    notes: &mut Vec<String>,
) -> u32 {
    if writing.is_none() {
        return args.depth;
    }
    let room = ranges.iter().map(|(start, end)| end - start).sum();
    let depth = write_back::depth_within(room, args.depth);
    if depth < args.depth {
        let (room, depth) = (format::bytes(room), plural(depth.into(), "write"));
        notes.push(format!(
            "{room} have room for only {depth} in flight at a sufficient distance from each other"
        ));
    }
    depth
}
