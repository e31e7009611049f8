//! The senders of a device's I/O over a time.

use plumb_profile::Owner;
use plumb_quoting::visible;
use serde::Serialize;

use crate::format::{bytes, count, percent};
use crate::text::page::{FigureColumn, Page};
use crate::words;

/// The senders of a device's I/O over a time.
#[derive(Clone, Debug, Serialize)]
pub struct HistorySenders {
    /// Its last name.
    pub device: String,
    /// WWN, serial number or UUID; a name without them.
    pub identity: String,
    /// Layer at which its I/O were counted.
    pub layer: &'static str,
    /// Begin of the first window with I/O.
    pub from: String,
    /// End of the last one, excluded.
    pub to: String,
    /// I/O of all operations.
    pub ios: u64,
    /// The senders, most I/O first. A window keeps its largest ones: if `others` has I/O, a sender may have sent some of these
    /// as well.
    pub senders: Vec<HistorySender>,
    /// I/O of senders that a window did not keep.
    pub others: SentIos,
    /// I/O whose sender was not seen.
    pub unknown: u64,
}

/// A sender.
#[derive(Clone, Debug, Serialize)]
pub struct HistorySender {
    /// Its command.
    pub command: String,
    /// Path of its cgroup of version 2, if it was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// The owner that this path names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Its I/O.
    #[serde(flatten)]
    pub sent: SentIos,
}

/// I/O and their bytes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SentIos {
    /// I/O.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Lines of senders that a person reads; JSON has all.
const SHOWN: usize = 20;
/// The longest name before the figures.
const NAME_MAX: usize = 38;

const COLUMNS: [FigureColumn; 3] = [
    FigureColumn { width: 14, rank: 0 },
    FigureColumn { width: 12, rank: 2 },
    FigureColumn { width: 9, rank: 1 },
];

pub(super) fn text(page: &mut Page, of: &HistorySenders) {
    page.heading(&format!(
        "{} ({} layer), {} to {}",
        visible(&of.device),
        of.layer,
        of.from,
        of.to
    ));
    let words = ["I/O", "bytes", "share"].map(str::to_owned);
    page.row(&format!("  {:<NAME_MAX$}", "sender"), &COLUMNS, &words);
    let share = |ios: u64| percent(ios as f64 / of.ios.max(1) as f64);
    let row = |page: &mut Page, name: &str, ios: u64, moved: String| {
        // A long name has a line of its own.
        let mut name = format!("  {name:<NAME_MAX$}");
        if name.chars().count() > NAME_MAX + 2 {
            page.line(name);
            name = " ".repeat(NAME_MAX + 2);
        }
        page.row(&name, &COLUMNS, &[count(ios), moved, share(ios)]);
    };
    for sender in of.senders.iter().take(SHOWN) {
        let command = visible(&sender.command).to_string();
        let name = match &sender.owner {
            Some(owner) => format!("{command} of {}", words::owner(owner)),
            None => command,
        };
        row(page, &name, sender.sent.ios, bytes(sender.sent.bytes));
    }
    let rest = of.senders.iter().skip(SHOWN).map(|sender| sender.sent);
    let others = rest.fold(of.others, |sum, sent| SentIos {
        ios: sum.ios.saturating_add(sent.ios),
        bytes: sum.bytes.saturating_add(sent.bytes),
    });
    if others.ios > 0 {
        row(page, "others", others.ios, bytes(others.bytes));
    }
    if of.unknown > 0 {
        row(page, "unknown", of.unknown, String::new());
    }
    if of.others.ios > 0 {
        page.wrapped(
            "  note: ",
            "    ",
            format!(
                "A window keeps its 16 largest senders. {} I/O of smaller ones may belong to senders in this list.",
                count(of.others.ios)
            ),
        );
    }
    page.gap();
}
