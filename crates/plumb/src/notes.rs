//! What is said of a source: a line on what it is, and sentences on how far it can be believed.

use plumb_geometry::group_digits;
use plumb_trace::{Latency, SourceInfo};

/// What a source is, in one line.
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

/// What must be known of a source before its numbers are believed.
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
        "event stands out of order by more than could be sorted",
        "events stand out of order by more than could be sorted",
    );
    for damage in &info.damages {
        notes.push(format!("{}, {damage}", info.path));
    }
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
