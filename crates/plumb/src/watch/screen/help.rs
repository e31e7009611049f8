//! The view's help: its keys, its columns, and the reason for waiting while there is nothing to show.

use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::{Screen, WatchSubject};

/// A key, its word in the last line, and its effect.
struct Taught {
    key: &'static str,
    word: &'static str,
    does: &'static str,
}

const fn taught(key: &'static str, word: &'static str, does: &'static str) -> Taught {
    Taught { key, word, does }
}

/// All keys, in the order of the last line. Those without a word are in the help alone.
const KEYS: [Taught; 11] = [
    taught("q", "quit", "end, and print the totals"),
    taught("?", "help", "these lines, and back; h does the same"),
    taught(
        "s",
        "sort",
        "sort by misfit, I/O, bytes, latency, name in turn",
    ),
    taught(
        "g",
        "grid",
        "judge by the next granularity; G by the one before",
    ),
    taught("o", "offset", "move the grid on by a sector"),
    taught(
        "/",
        "filter",
        "show disks alone whose name holds what is typed; Esc drops it",
    ),
    taught(
        "f",
        "freeze",
        "hold what is shown, and go on; counting goes on meanwhile",
    ),
    taught("w", "save", "save the profile of the whole time so far"),
    taught("↑↓", "device", "select a device; k and j do the same"),
    taught(
        "a",
        "",
        "what was asked of file systems, and back (with --app)",
    ),
    taught("Esc", "", "drop the filter, or leave this help"),
];

/// Columns of the list that need words.
const COLUMNS: [(&str, &str); 5] = [
    ("off", "share of the I/O that start off the grid"),
    (
        "split",
        "share of the I/O that touch more cells of it than they need",
    ),
    ("odd", "share of the I/O that are no multiple of it long"),
    (
        "median",
        "latency, issue to complete, of the operation with most I/O",
    ),
    ("depth", "I/O in flight, on average"),
];

/// The keys, as the last line has them; `asked` where there is something to be asked for.
pub(super) fn foot(asked: bool) -> String {
    let shown = KEYS
        .iter()
        .filter(|one| !one.word.is_empty() && (!asked || one.word != "device"));
    let shown: Vec<String> = shown
        .map(|one| format!("{} {}", one.key, one.word))
        .collect();
    let shown = shown.join("  ");
    if asked {
        format!("{shown}  a asked")
    } else {
        shown
    }
}

/// All effects of the keys, and the meaning of the columns.
pub(super) fn lines() -> Vec<Line<'static>> {
    let bold =
        |words: &'static str| Line::from(words).style(Style::new().add_modifier(Modifier::BOLD));
    let row = |name: &str, words: &str| Line::from(format!("  {name:<8}{words}"));
    let mut lines = vec![bold("Keys")];
    lines.extend(KEYS.iter().map(|one| row(one.key, one.does)));
    lines.push(bold("Columns"));
    lines.extend(COLUMNS.iter().map(|(name, words)| row(name, words)));
    lines
}

impl Screen {
    /// The text in place of a device if there is none to show.
    pub(super) fn idle_lines(&self) -> Vec<Line<'static>> {
        let has_io = |seen: &super::ShownInterval| {
            seen.reading
                .profiles
                .iter()
                .any(|profile| profile.ios() > 0)
        };
        let first = match &self.seen {
            None => format!(
                "waiting for the first interval to end: {} s",
                self.watched.interval_s
            ),
            Some(seen) if has_io(seen) => {
                format!(
                    "no disk with I/O has `{}` in its name: Esc drops the filter",
                    self.filter
                )
            }
            Some(_) => "no I/O in this interval; waiting for the next".to_owned(),
        };
        let rest = [self.watched.text(), "? shows the keys".to_owned()];
        [first]
            .into_iter()
            .chain(rest)
            .map(|words| Line::from(format!("  {words}")))
            .collect()
    }
}

impl WatchSubject {
    fn text(&self) -> String {
        let disks = if self.disks.is_empty() {
            "all disks".to_owned()
        } else {
            self.disks.join(", ")
        };
        let only = self
            .filter
            .as_ref()
            .map_or(String::new(), |words| format!(", only {words}"));
        format!("watched: {disks}: {}{only}", self.how)
    }
}
