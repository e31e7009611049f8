//! Notes on an interval: the gaps in its figures, and their limits.

use std::collections::BTreeMap;

use plumb_capture::{Filter, Reading};
use plumb_geometry::{SmallSort, group_digits, natural};
use plumb_profile::Profile;

/// The sentences, none for an interval with complete figures.
pub(super) fn notes(reading: &Reading, filter: &Filter) -> Vec<String> {
    let mut notes = silent(reading);
    notes.extend(of_disks(reading));
    notes.extend(of_all(reading, filter));
    notes.extend(reading.seen_again.iter().map(|(device, on)| {
        format!(
            "I/O of {device} are handed on to {}, and counted there again: never add them up",
            on.join(", ")
        )
    }));
    notes
}

/// A silence is worth a line from here on.
const SILENCE_NS_MIN: u64 = 1_000_000_000;

/// Disks that complete nothing: their intervals without I/O are no sign of rest.
fn silent(reading: &Reading) -> Vec<String> {
    let silent = |profile: &Profile| {
        let answers = profile.answers.as_ref()?;
        (answers.in_flight > 0 && answers.present_silence_ns >= SILENCE_NS_MIN).then(|| {
            format!(
                "{} does not answer: {} I/O in flight, none completed for at least {:.1} s",
                profile.device,
                group_digits(answers.in_flight),
                answers.present_silence_ns as f64 / 1e9
            )
        })
    };
    reading.profiles.iter().filter_map(silent).collect()
}

fn of_disks(reading: &Reading) -> Vec<String> {
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut splits = Vec::new();
    let mut devices: Vec<_> = reading.misses.iter().collect();
    devices.small_sort_by(|(one, _), (other, _)| natural(one, other));
    for (device, misses) in devices {
        let told = [
            (misses.requeues, "I/O issued more than once, counted once"),
            (
                misses.partial_completions,
                "completions of a part of an I/O",
            ),
            (
                misses.unmatched_issues,
                "I/O whose completion was not seen, so without latency",
            ),
            (
                misses.unplaced,
                "some I/O are in no figure: too many different ones",
            ),
        ];
        for (count, words) in told.iter().filter(|(count, _)| *count > 0) {
            all.entry(words)
                .or_default()
                .push(format!("{device} {}", group_digits(*count)));
        }
        if misses.splits > 0 {
            splits.push(format!("{device} {}", group_digits(misses.splits)));
        }
    }
    let mut notes: Vec<String> = all
        .into_iter()
        .map(|(words, devices)| format!("{words}: {}", devices.join(", ")))
        .collect();
    if !splits.is_empty() {
        let what =
            "times that an I/O was cut in two, too long for the disk or across a boundary of it";
        notes.push(format!("{what}: {}", splits.join(", ")));
    }
    notes
}

fn of_all(reading: &Reading, filter: &Filter) -> impl Iterator<Item = String> {
    let of_unknown_sender = match filter.is_by_sender() {
        true => "I/O with an unknown sender, in no figure because of the filter",
        false => "I/O with an unknown sender",
    };
    let of_all = [
        (
            reading.unlisted,
            "I/O of devices for which there was no room, in no figure",
        ),
        (
            reading.lost,
            "events lost by the kernel's buffer: their I/O are in no figure, or without latency",
        ),
        (
            reading.skipped_calls,
            "calls of Plumb's programs skipped by the kernel: each may hide an I/O or its latency",
        ),
        (
            reading.of_unlisted_process,
            "bios of processes for which there was no room, counted for none",
        ),
        (reading.of_unknown_sender, of_unknown_sender),
    ];
    let of_all = of_all.into_iter().filter(|(count, _)| *count > 0);
    of_all.map(|(count, words)| format!("{} {words}", group_digits(count)))
}
