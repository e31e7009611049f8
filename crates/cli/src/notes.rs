//! The description of a source: a line on its kind, and sentences on its reliability.

use plumb_geometry::{Bytes, group_digits};
use plumb_trace::{Contradiction, Latency, SourceInfo};

/// The kind of a source, in one line.
#[must_use]
pub fn source_line(info: &SourceInfo) -> String {
    let verified = if info.verified {
        ""
    } else {
        ", reader unverified on real files"
    };
    let layers: Vec<&str> = info.layers.iter().map(|layer| layer.word()).collect();
    let layers = if layers.is_empty() {
        "no I/O".to_owned()
    } else {
        format!("layers {}", layers.join(", "))
    };
    let records = group_digits(info.counts.records);
    let events = group_digits(info.counts.events);
    format!(
        "{}: {}{verified}; {layers}; {events} I/O of {records} records",
        info.path, info.format
    )
}

/// Facts to know about a source before its numbers are believed.
#[must_use]
pub fn notes_of(info: &SourceInfo) -> Vec<String> {
    let mut notes = Vec::new();
    let mut add = |count: u64, one: &str, many: &str| {
        if count > 0 {
            let words = if count == 1 { one } else { many };
            notes.push(format!("{}: {} {words}", info.path, group_digits(count)));
        }
    };
    let counts = &info.counts;
    add(
        counts.lost,
        "event was lost when it was recorded",
        "events were lost when it was recorded",
    );
    add(
        counts.damaged,
        "place could not be understood",
        "places could not be understood",
    );
    add(
        counts.skipped_bytes,
        "byte was passed over",
        "bytes were passed over",
    );
    add(
        counts.unmatched_issues,
        "I/O has no completion, so no latency",
        "I/O have no completion, so no latency",
    );
    add(
        counts.unmatched_completions,
        "completion has no issue",
        "completions have no issue",
    );
    add(
        counts.late_completions,
        "completion came too late to be counted",
        "completions came too late to be counted",
    );
    add(
        counts.out_of_order,
        "event is out of order by more than could be sorted",
        "events are out of order by more than could be sorted",
    );
    for damage in &info.damages {
        notes.push(format!("{}, {damage}", info.path));
    }
    let contradictions = info.contradictions.iter();
    notes.extend(contradictions.map(|found| {
        format!(
            "{}: the source contradicts itself: {}",
            info.path,
            contradiction(found)
        )
    }));
    if info.completions_only {
        notes.push(format!(
            "{}: only completions were recorded; order and times are those of completion",
            info.path
        ));
    }
    if let Latency::None(why) = &info.latency {
        notes.push(format!("{}: latency unknown: {why}", info.path));
    }
    notes.extend(
        info.notes
            .iter()
            .map(|note| format!("{}: {note}", info.path)),
    );
    if !info.cannot_tell.is_empty() {
        notes.push(format!(
            "{} cannot tell: {}",
            info.path,
            info.cannot_tell.join(", ")
        ));
    }
    notes
}

/// The contradiction in words.
fn contradiction(found: &Contradiction) -> String {
    match *found {
        Contradiction::ImpossibleRemainder {
            line,
            from_sectors,
            unit_sectors,
            ios,
        } => format!(
            "the histogram on line {line} has {} I/O in the row {from_sectors}, and a remainder modulo {unit_sectors} is \
             {} at most",
            group_digits(ios),
            unit_sectors.saturating_sub(1)
        ),
        Contradiction::Misaligned {
            line,
            counted,
            printed,
            issued,
        } => format!(
            "the histogram on line {line} counts {} I/O off the unit, and the lines above it {} of {}",
            group_digits(counted),
            group_digits(printed),
            group_digits(issued)
        ),
        Contradiction::HistogramSum {
            line,
            counted,
            issued,
        } => format!(
            "the rows of the histogram on line {line} add up to {} I/O where {} were issued; it is left out",
            group_digits(counted),
            group_digits(issued)
        ),
        Contradiction::MeanOffset {
            line,
            counted_low,
            counted_high,
            printed,
        } => format!(
            "the mean offset is {} bytes as printed, and {} to {} bytes by the histogram on line {line}",
            group_digits(printed),
            group_digits(counted_low),
            group_digits(counted_high)
        ),
        Contradiction::LengthSum { counted, issued } => format!(
            "the counts of each length add up to {} I/O where {} were issued",
            group_digits(counted),
            group_digits(issued)
        ),
        Contradiction::OddLengths {
            counted,
            printed,
            unit_bytes,
        } => format!(
            "{} I/O have a length that is no multiple of {} by the counts of each length, and {} as printed",
            group_digits(counted),
            Bytes(unit_bytes),
            group_digits(printed)
        ),
    }
}
