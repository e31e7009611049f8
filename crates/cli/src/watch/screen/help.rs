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

/// All keys, in the order of the last line, which shows as many as fit. Those without a word are in the help alone.
const KEYS: [Taught; 15] = [
    taught("q", "quit", "end, and print the verdict"),
    taught("?", "help", "show these lines, or go back; h does the same"),
    taught("s", "sort", "sort by misfit, I/O, bytes, latency, name"),
    taught(
        "Enter",
        "device",
        "show the page of the selected device, or go back",
    ),
    taught("p", "processes", "show all processes, or go back"),
    taught("g", "grid", "judge by the next grid; G: by the one before"),
    taught(
        "f",
        "freeze",
        "freeze the screen, or resume; counting goes on",
    ),
    taught(
        "←→",
        "time",
        "show an earlier or later interval; End: newest",
    ),
    taught(
        "+-",
        "interval",
        "make the next intervals longer or shorter",
    ),
    taught(
        "z",
        "zoom",
        "show more time in the graphs, in turn; Z: less",
    ),
    taught(
        "/",
        "filter",
        "show only disks with the typed text in the name",
    ),
    taught("w", "save", "save the profile of the whole time so far"),
    taught("o", "offset", "move the grid by a sector"),
    taught("↑↓", "", "select, or scroll; also k, j, PgUp, PgDn, mouse"),
    taught("Esc", "", "go back, or drop the filter; a: see --app"),
];

/// Lines of the help: keys, columns, and a heading for each.
pub(super) const LINES: usize = KEYS.len() + COLUMNS.len() + 2;

/// Columns of the list that need words.
const COLUMNS: [(&str, &str); 5] = [
    ("off", "share of the I/O that start off the grid"),
    ("split", "share that touches more blocks than needed"),
    ("odd", "share whose length is no multiple of it"),
    ("median", "latency of the operation with the most I/O"),
    ("depth", "I/O in flight, on average"),
];

/// The keys that fit the last line; `asked` if I/O of applications can be shown.
pub(super) fn foot(asked: bool, width: usize) -> String {
    let applications = taught("a", "applications", "");
    let mut keys: Vec<&Taught> = KEYS.iter().filter(|one| !one.word.is_empty()).collect();
    if asked {
        keys.insert(3, &applications);
    }
    let mut foot = String::new();
    for key in keys {
        let gap = if foot.is_empty() { "" } else { "  " };
        let more = format!("{gap}{} {}", key.key, key.word);
        if foot.chars().count() + more.chars().count() > width {
            break;
        }
        foot += &more;
    }
    foot
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
    /// The text in place of a device if no device can be shown.
    pub(super) fn idle_lines(&self) -> Vec<Line<'static>> {
        let has_io = |seen: &super::ShownInterval| {
            seen.reading
                .profiles
                .iter()
                .any(|profile| profile.ios() > 0)
        };
        let first = match self.seen() {
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
