//! Texts of a probe beside its numbers: the way of I/O, notes, doubts, and useful commands.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plumb_geometry::plural;
use plumb_load::probe::media::Doubt;
use plumb_load::probe::{Candidate, ProbeVerdict, Probed};
use plumb_load::{Means, Target};
use plumb_model::facts::Direction;
use plumb_quoting::{Command, CommandLine, NoCommand};
use plumb_report::format;

/// How I/O were made.
pub fn means(means: Means) -> String {
    match means {
        Means::Ring { .. } => "by io_uring".to_owned(),
        Means::Blocking { refused: None } => "by blocking I/O".to_owned(),
        Means::Blocking { refused: Some(why) } => {
            format!("by blocking I/O: io_uring is refused ({why})")
        }
    }
}

/// `4,321 reads, 1,080/s, 4 of up to 30 s, 26 s left; Ctrl-C ends it early`.
pub fn progress(ios: &AtomicU64, op: Direction, elapsed: Duration, limit: Duration) -> String {
    let (made, seconds) = (ios.load(Ordering::Relaxed), elapsed.as_secs_f64());
    format!(
        "{} {}, {}/s, {seconds:.0} of up to {:.0} s, {:.0} s left; Ctrl-C ends it early",
        format::count(made),
        op.all(),
        format::count((made as f64 / seconds.max(0.001)) as u64),
        limit.as_secs_f64(),
        limit.saturating_sub(elapsed).as_secs_f64()
    )
}

/// Notes for a reader of a finished probe.
pub fn notes(probed: &Probed, op: Direction) -> Vec<String> {
    let mut notes = Vec::new();
    if op == Direction::Write && probed.verdict == ProbeVerdict::NoPenalty {
        notes.push(
            "if a grid is not a multiple of 2 KiB and only writes of its whole cells are cheaper, no penalty shows either".to_owned(),
        );
    }
    let within = probed.grid.zip(probed.coarser_within);
    notes.extend(within.map(|(grid, share)| coarser_within(grid, share)));
    if probed.bytes > probed.space_bytes {
        notes.push(match op {
            Direction::Read => "more was read than there is: caches may have answered".to_owned(),
            Direction::Write => {
                "more was written than there is: places came more than once".to_owned()
            }
        });
    }
    notes
}

/// The possible cost of a coarser grid on an aligned target, if it could not be held to the margin.
fn coarser_within(grid: Candidate, share: f64) -> String {
    let ([twice, most], cost) = (coarser_than(grid), format::percent(share));
    format!("boundaries of {twice} or {most} off 0 were not seen, but may cost up to {cost}")
}

/// The results of a probe that the user ended.
pub fn ended(grid: Option<Candidate>, flat_bytes: u64) -> String {
    let so_far = match grid {
        Some(grid) => {
            let (granularity, offset) = (
                format::bytes(grid.granularity_bytes),
                format::bytes(grid.offset_bytes),
            );
            format!("boundaries every {granularity} from {offset} on, not checked any further")
        }
        None if flat_bytes > 0 => {
            let most = format::bytes(flat_bytes);
            format!(
                "no start costs more on grids of up to {most}; larger ones and caches are not checked"
            )
        }
        None => "nothing is decided yet".to_owned(),
    };
    format!("ended early; so far {so_far}")
}

/// Why a grid at 0 alone does not make a target aligned.
pub fn coarser_open(grid: Candidate) -> String {
    let ([twice, most], fine) = (coarser_than(grid), format::bytes(grid.granularity_bytes));
    format!("a coarser grid is not excluded: {fine} at 0 was seen, {twice} or {most} off 0 is open")
}

fn coarser_than(grid: Candidate) -> [String; 2] {
    [2, 4].map(|times| format::bytes(times * grid.granularity_bytes))
}

/// That I/O go through a page cache, and the way past it.
pub fn through_cache(target: &Target, op: Direction) -> String {
    let past = match target.is_direct() {
        true => "losetup --direct-io=on lets a loop device go past it",
        false => "its file system refuses direct I/O",
    };
    format!("{} go through a page cache of this host: {past}", op.all())
}

/// Why a measurement of reads is not believed.
pub fn doubt(doubt: Doubt) -> String {
    match doubt {
        Doubt::Zeros { places } => {
            format!(
                "all of {} read as zeros, as if they had never been written",
                plural(places, "place")
            )
        }
        Doubt::Memory { ns } => format!("a read takes {}, as from memory", format::ns(ns)),
        Doubt::Cached { first_ns, again_ns } => format!(
            "the first read of a place takes {}, and the second one from the cache {}",
            format::ns(first_ns),
            format::ns(again_ns)
        ),
    }
}

/// Commands that back a range by media, and probe it.
///
/// # Errors
/// When the name is one that no command can hold.
pub fn scratch(target: &Target, op: Direction) -> Result<[CommandLine; 2], NoCommand> {
    let (name, mib) = (target.name(), (target.size_bytes() >> 20).clamp(1, 1024));
    let write = Command::new("dd if=/dev/urandom")
        .arg(format!("of={name}"))
        .flags("bs=1M")
        .arg(format!("count={mib}"));
    let write = if target.is_direct() {
        write.flags("oflag=direct")
    } else {
        write
    };
    let probe = Command::new("plumb probe").path(name);
    let probe = if op == Direction::Write {
        probe.flags("--write")
    } else {
        probe
    };
    Ok([
        write
            .flags("conv=notrunc,fsync")
            .remark("destroys the data at the beginning of the target")
            .line()?,
        probe.flags("--range").arg(format!("0-{mib}m")).line()?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_an_ended_probe_are_named() {
        let grid = Candidate {
            granularity_bytes: 4096,
            offset_bytes: 1024,
        };
        let words = [ended(Some(grid), 0), ended(None, 16 << 10), ended(None, 0)];
        insta::assert_snapshot!(words.join("\n\n"));
    }

    #[test]
    fn undecided_larger_grids_are_named() {
        let grid = Candidate {
            granularity_bytes: 4096,
            offset_bytes: 0,
        };
        let words = [coarser_open(grid), coarser_within(grid, 0.12)];
        insta::assert_snapshot!(words.join("\n\n"));
    }
}
