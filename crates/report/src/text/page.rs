//! A page of text under construction: lines, headings, paragraphs that wrap at 80 columns.

use std::borrow::Cow;

use plumb_diagnose::finding::Severity;

/// Columns that a report is made for.
pub const WIDTH: usize = 80;

/// Whether to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    #[default]
    Never,
    /// Severities in colour.
    Always,
}

/// Text under construction.
#[derive(Default)]
pub struct Page {
    /// What was written so far.
    pub text: String,
    /// Whether to colour.
    pub color: Color,
}

impl Page {
    /// A line; names in it are from anywhere, so that it is tamed here, once for all.
    pub fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(tame(line.as_ref().trim_end()).as_ref());
        self.text.push('\n');
    }

    pub fn gap(&mut self) {
        let is_there = self.text.is_empty() || self.text == "\n" || self.text.ends_with("\n\n");
        if !is_there {
            self.text.push('\n');
        }
    }

    pub fn heading(&mut self, words: &str) {
        self.gap();
        let begin = self.text.len();
        self.wrapped("", "", words);
        let widest = self.text[begin..].lines().map(columns).max().unwrap_or(0);
        self.line("─".repeat(widest));
    }

    /// A paragraph behind `first`, its other lines behind `rest`. A number and its unit stay on one line.
    pub fn wrapped(&mut self, first: &str, rest: &str, words: &str) {
        let mut line = first.to_owned();
        let mut fresh = true;
        for word in unbreakable(words) {
            let word = tame(&word);
            let long = columns(&line) + 1 + columns(&word) > WIDTH;
            if !fresh && long {
                self.line(&line);
                line = rest.to_owned();
                fresh = true;
            }
            if !fresh {
                line.push(' ');
            }
            line.push_str(&word);
            fresh = false;
        }
        self.line(&line);
    }

    /// Words behind a number that ends in column `width`.
    pub fn numbered(&mut self, width: usize, number: &str, words: &str) {
        self.wrapped(&format!("{number:>width$} "), &" ".repeat(width + 1), words);
    }

    /// A word in a colour, by its number.
    pub fn painted(&self, code: &str, word: &str) -> String {
        match self.color {
            Color::Never => word.to_owned(),
            Color::Always => format!("\x1b[1;{code}m{word}\x1b[0m"),
        }
    }

    pub fn severity(&self, severity: Severity) -> String {
        let word = severity.word().to_uppercase();
        let code = match severity {
            Severity::Note => "36",
            Severity::Warning => "33",
            Severity::Critical => "31",
        };
        self.painted(code, &word)
    }
}

/// Sequences that a report itself writes.
const COLORS: [&str; 5] = [
    "\x1b[0m",
    "\x1b[1;31m",
    "\x1b[1;32m",
    "\x1b[1;33m",
    "\x1b[1;36m",
];

/// A line without what a terminal would obey, but for colours: names in it are from anywhere.
#[must_use]
pub fn tame(text: &str) -> Cow<'_, str> {
    if !text.contains(|letter: char| letter.is_control()) {
        return Cow::Borrowed(text);
    }
    let is_harmless = |at: usize, letter: char| {
        !letter.is_control() || COLORS.iter().any(|color| text[at..].starts_with(color))
    };
    let letters = text.char_indices();
    letters
        .map(|(at, letter)| {
            if is_harmless(at, letter) {
                letter
            } else {
                '\u{fffd}'
            }
        })
        .collect()
}

/// Columns that a line takes on a terminal: escape sequences of colour take none.
fn columns(line: &str) -> usize {
    let mut columns = 0;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\x1b' {
            letters.by_ref().find(|&letter| letter == 'm');
        } else {
            columns += 1;
        }
    }
    columns
}

/// What stands behind a number without a line between them.
const UNITS: [&str; 15] = [
    "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "%", "ns", "µs", "ms", "s", "I/O", "sector",
    "sectors",
];

/// The words of a text, a number together with the unit behind it.
fn unbreakable(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
        match words.last_mut() {
            Some(last) if unit && last.ends_with(|letter: char| letter.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        Page {
            text: String::new(),
            color: Color::Never,
        }
    }

    fn wrapped(first: &str, rest: &str, words: &str) -> String {
        let mut page = page();
        page.wrapped(first, rest, words);
        page.text
    }

    #[test]
    fn paragraphs_wrap_and_keep_numbers_with_their_units() {
        insta::assert_snapshot!(
            wrapped(
                "  - ",
                "    ",
                "a layout that begins 1 sector (512 B) later would put all of them on the grid; 23,300 of 113,872 (20.5 %) \
                 would stay off it, at most 1 MiB apart, and for none of them is the length known"
            ),
            @r"
          - a layout that begins 1 sector (512 B) later would put all of them on the
            grid; 23,300 of 113,872 (20.5 %) would stay off it, at most 1 MiB apart, and
            for none of them is the length known
        "
        );
        assert_eq!(
            unbreakable("at 4 KiB, 7 of 8: 3 %; 12 I/O"),
            ["at", "4 KiB,", "7", "of", "8:", "3 %;", "12 I/O"]
        );
        assert_eq!(
            wrapped("  note: ", "    ", ""),
            "  note:\n",
            "nothing to say leaves no blanks"
        );
    }

    #[test]
    fn a_word_longer_than_a_line_has_one_of_its_own() {
        let path = "/".repeat(100);
        assert_eq!(
            wrapped("  ", "    ", &format!("read {path} today")),
            format!("  read\n    {path}\n    today\n")
        );
    }

    #[test]
    fn words_beside_a_number_stay_in_their_column() {
        let mut page = page();
        page.numbered(14, "52,579", &"chunks ".repeat(14));
        insta::assert_snapshot!(page.text, @r"
                52,579 chunks chunks chunks chunks chunks chunks chunks chunks chunks
                       chunks chunks chunks chunks chunks
        ");
    }

    #[test]
    fn colour_takes_no_columns() {
        let colored = Page {
            text: String::new(),
            color: Color::Always,
        };
        let word = colored.severity(Severity::Warning);
        assert_eq!(
            (word.as_str(), columns(&word)),
            ("\x1b[1;33mWARNING\x1b[0m", 7)
        );
        assert_eq!(columns("4 KiB ≤ µs"), 10);
    }

    #[test]
    fn names_move_no_cursor() {
        assert_eq!(
            tame("sd\x1b[2Ja\x07 \x1b[1;31mred\x1b[0m"),
            "sd\u{fffd}[2Ja\u{fffd} \x1b[1;31mred\x1b[0m"
        );
        assert_eq!(
            wrapped("", "", "a\x1b]0;title\x07b"),
            "a\u{fffd}]0;title\u{fffd}b\n"
        );
        let mut page = page();
        page.heading("sd\x1b[2J");
        page.line("sd\ra\nb\x07");
        assert_eq!(
            page.text,
            "sd\u{fffd}[2J\n──────\nsd\u{fffd}a\u{fffd}b\u{fffd}\n"
        );
    }

    #[test]
    fn a_heading_keeps_within_the_columns() {
        let mut page = page();
        page.heading(&"word ".repeat(30));
        assert!(
            page.text.lines().count() == 3 && page.text.lines().all(|line| columns(line) <= WIDTH)
        );
    }

    #[test]
    fn gaps_are_one_line_and_never_first() {
        let mut page = page();
        page.gap();
        page.line("one  ");
        page.gap();
        page.gap();
        page.heading("two");
        assert_eq!(page.text, "one\n\ntwo\n───\n");
    }
}
