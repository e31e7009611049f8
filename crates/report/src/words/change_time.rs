//! The time of a change, and the changes of the host beside it.

use std::time::{Duration, UNIX_EPOCH};

use plumb_geometry::plural;
use plumb_model::facts::{ChangeTime, HostChange, HostChangeKind, HostFact, HostValue};
use plumb_quoting::visible;

use super::phrase::sector;

/// Changes of the host that are printed.
const SHOWN: usize = 8;

/// A time of the day in UTC; of a window of a day only the date: `2026-11-14 (UTC)`, `2026-11-14 08:00 UTC`.
fn utc(ns: i64, window_seconds: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    let words = humantime::format_rfc3339_seconds(time).to_string();
    let date = words.get(..10).unwrap_or(&words);
    match (window_seconds, words.get(11..16)) {
        (0..86_400, Some(minute)) => format!("{date} {minute} UTC"),
        _ => format!("{date} (UTC)"),
    }
}

/// The time from which on the level is a new one.
pub(super) fn since(time: &ChangeTime) -> String {
    utc(time.since_ns, time.window_seconds)
}

/// The name of a window.
pub(super) fn window(time: &ChangeTime) -> &'static str {
    match time.window_seconds {
        86_400 => "day",
        3600 => "hour",
        _ => "window",
    }
}

/// The windows that show a change: `31 days before, 12 days since then`.
pub(super) fn windows(time: &ChangeTime) -> String {
    let name = window(time);
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
    // Packages are many, and the rest is more likely the reason.
    let is_package = |change: &&HostChange| {
        matches!(
            &change.is,
            HostChangeKind::Fact {
                of: HostFact::Package { .. },
                ..
            }
        )
    };
    let (packages, others): (Vec<_>, Vec<_>) = time.beside.iter().partition(is_package);
    let changes = others.into_iter().chain(packages);
    let changes: Vec<String> = changes.take(SHOWN).map(change).collect();
    let more = match time.beside.len() as u64 + time.left_out - changes.len() as u64 {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("At that time: {}{more}.", changes.join("; "))
}

fn change(change: &HostChange) -> String {
    // Seen at that minute; a survey sees most changes later than they happened.
    let at = utc(change.at_ns, 60);
    let words = match &change.is {
        HostChangeKind::Fact { of, before, after } => fact(of, before.as_ref(), after.as_ref()),
        HostChangeKind::Appeared { rule, device } => {
            format!("{rule} appeared on {}", visible(device))
        }
        HostChangeKind::Gone { rule, device } => format!("{rule} went from {}", visible(device)),
    };
    format!("{words} (seen {at})")
}

fn fact(of: &HostFact, before: Option<&HostValue>, after: Option<&HostValue>) -> String {
    let name = match of {
        HostFact::Kernel => "the kernel".to_owned(),
        HostFact::Mount { path } => format!("the mount at {}", visible(path)),
        HostFact::Partition { device } => format!("the partition {}", visible(device)),
        HostFact::Scheduler { device } => format!("the scheduler of {}", visible(device)),
        HostFact::Volume { device } => format!("the volume {}", visible(device)),
        HostFact::Package { name } => format!("the package {}", visible(name)),
    };
    match (before, after) {
        (Some(before), Some(after)) => {
            format!("{name} changed from {} to {}", value(before), value(after))
        }
        (None, Some(after)) => format!("{name} is new: {}", value(after)),
        (before, None) => {
            let before =
                before.map_or_else(String::new, |before| format!(", before {}", value(before)));
            format!("{name} is gone{before}")
        }
    }
}

fn value(value: &HostValue) -> String {
    match value {
        HostValue::Name(name) => visible(name).into_owned(),
        HostValue::FileSystem {
            file_system,
            device,
            options,
        } => format!(
            "{} on {} ({})",
            visible(file_system),
            visible(device),
            visible(&options.join(","))
        ),
        HostValue::Volume {
            volume,
            chunk_bytes,
            members,
        } => {
            let members: Vec<_> = members.iter().map(|name| visible(name)).collect();
            let chunks =
                chunk_bytes.map_or_else(String::new, |bytes| format!(" in chunks of {bytes}"));
            format!("{}{chunks} on {}", visible(volume), members.join(", "))
        }
        HostValue::Place {
            disk,
            start_bytes,
            len_bytes,
        } => format!(
            "{len_bytes} from {} of {} on",
            sector(*start_bytes),
            visible(disk)
        ),
    }
}
