//! The senders of a device's I/O over a time.

use plumb_geometry::plural;
use plumb_model::result::history::HistorySenders;
use plumb_profile::top::ProcessShare;
use plumb_quoting::visible;

use crate::format::{bytes, count, percent};
use crate::text::page::{FigureColumn, Page};
use crate::words;

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
        let mut shown = format!("  {name:<NAME_MAX$}");
        if shown.chars().count() > NAME_MAX + 2 {
            // A long name has lines of its own.
            page.wrapped("  ", "    ", name);
            shown = " ".repeat(NAME_MAX + 2);
        }
        page.row(&shown, &COLUMNS, &[count(ios), moved, share(ios)]);
    };
    for sender in of.senders.iter().take(SHOWN) {
        let command = visible(&sender.command);
        let name = words::command_of(&command, sender.owner.as_ref());
        row(page, &name, sender.sent.ios, bytes(sender.sent.bytes));
    }
    let rest = of.senders.iter().skip(SHOWN).map(|sender| sender.sent);
    let others = rest.fold(of.others, |sum, sent| ProcessShare {
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
    if of.damaged > 0 {
        page.wrapped(
            "  note: ",
            "    ",
            format!(
                "{} in this time cannot be read. Their I/O are in no figure.",
                plural(of.damaged, "record")
            ),
        );
    }
    page.gap();
}

#[cfg(test)]
mod tests {
    use plumb_model::result::history::HistorySender;
    use plumb_profile::Owner;

    use super::*;
    use crate::text::Color;

    fn sent(ios: u64) -> ProcessShare {
        ProcessShare {
            ios,
            bytes: ios * 4096,
        }
    }

    fn list(senders: usize, others: u64) -> HistorySenders {
        let sender = |at: usize| HistorySender {
            command: format!("job{at}"),
            cgroup: None,
            owner: Some(Owner::Pod {
                uid: "1f3c9a52-7a4b-4c1d-9e0f-aabbccddeeff".to_owned(),
                container: None,
            }),
            sent: sent(100),
        };
        HistorySenders {
            device: "sda".to_owned(),
            identity: "sda".to_owned(),
            layer: "request",
            from: "2026-11-01T00:00:00Z".to_owned(),
            to: "2026-11-02T00:00:00Z".to_owned(),
            ios: 100 * senders as u64 + others + 7,
            senders: (0..senders).map(sender).collect(),
            others: sent(others),
            unknown: 7,
            damaged: 2,
        }
    }

    fn shown(list: &HistorySenders, columns: usize) -> String {
        let mut page = Page::new(crate::text::Paper::from(Color::Never).of_width(columns));
        text(&mut page, list);
        page.text
    }

    #[test]
    fn all_io_are_in_a_row_or_a_note() {
        let text = shown(&list(22, 30), 80);
        assert_eq!(text.matches("job").count(), SHOWN, "{text}");
        // Two senders that are not shown, and 30 I/O of those that no window kept.
        let row = |name: &str| {
            let line = text
                .lines()
                .find(|line| line.trim_start().starts_with(name));
            let line = line.unwrap_or_else(|| panic!("no {name}: {text}"));
            let words = line.split_whitespace().skip(1).map(str::to_owned);
            words.collect::<Vec<_>>()
        };
        assert_eq!(row("others"), ["230", "920", "KiB", "10.3", "%"]);
        assert_eq!(row("unknown"), ["7", "0.31", "%"]);
        insta::assert_snapshot!(text);
        assert!(!shown(&list(2, 0), 80).contains("may belong"));
    }

    #[test]
    fn long_names_keep_within_the_width() {
        for columns in [60, 80, 200] {
            let text = shown(&list(3, 0), columns);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{columns}: {text}");
            assert_eq!(text.matches("100").count(), 3, "{text}");
        }
    }
}
