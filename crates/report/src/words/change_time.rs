//! The time of a change, and the changes of the host beside it.

use std::time::{Duration, UNIX_EPOCH};

use plumb_geometry::plural;
use plumb_model::facts::{ChangeTime, HostChange, HostChangeKind};
use plumb_quoting::visible;

use super::phrase::list;

/// A time of the day in UTC; of a window of a day only the date: `2026-11-14`, `2026-11-14 08:00 UTC`.
fn utc(ns: i64, window_seconds: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    let words = humantime::format_rfc3339_seconds(time).to_string();
    let date = words.get(..10).unwrap_or(&words);
    match (window_seconds, words.get(11..16)) {
        (0..86_400, Some(minute)) => format!("{date} {minute} UTC"),
        _ => date.to_owned(),
    }
}

/// The time from which on the level is a new one.
pub(super) fn since(time: &ChangeTime) -> String {
    utc(time.since_ns, time.window_seconds)
}

/// The windows that show a change: `31 days before, 12 days since then`.
pub(super) fn windows(time: &ChangeTime) -> String {
    let name = match time.window_seconds {
        86_400 => "day",
        3600 => "hour",
        _ => "window",
    };
    format!(
        "{} before, {} since then",
        plural(time.windows_before, name),
        plural(time.windows_after, name)
    )
}

/// The sentence about other changes of the host at that time.
pub(super) fn beside(time: &ChangeTime) -> String {
    if time.beside.is_empty() {
        return "The history holds no other change of this host at that time. Look for updates, mounts and new programs of that \
                day, in `journalctl --since` and in the log of the package manager."
            .to_owned();
    }
    let changes: Vec<String> = time.beside.iter().map(change).collect();
    format!("At that time: {}.", list(&changes))
}

fn change(change: &HostChange) -> String {
    // A change of the host is exact to the minute.
    let at = utc(change.at_ns, 60);
    let words = match &change.is {
        HostChangeKind::Kernel { before, after } => {
            format!("kernel {} replaced {}", visible(after), visible(before))
        }
        HostChangeKind::Appeared { rule, device } => {
            format!("{rule} appeared on {}", visible(device))
        }
        HostChangeKind::Gone { rule, device } => format!("{rule} went from {}", visible(device)),
    };
    format!("{words} ({at})")
}
