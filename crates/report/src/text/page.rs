//! A page of text under construction: lines, headings, paragraphs that wrap at its width. Commands are never wrapped.

use std::borrow::Cow;
use std::ops::Add;

use plumb_geometry::SmallSort;
use plumb_model::Severity;
use plumb_quoting::{CommandLine, visible};

/// Columns of a report that is not for a terminal.
pub const WIDTH: usize = 80;

/// Columns from which a report fits.
pub const WIDTH_MIN: usize = 60;

/// Columns beyond which sentences are too long to read.
pub const WIDTH_MAX: usize = 120;

/// Columns that a table uses at most.
pub const TABLE_WIDTH_MAX: usize = 200;

/// Whether to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    #[default]
    Never,
    /// Severities in colour.
    Always,
}

/// The surface that a report is printed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Whether to colour.
    pub color: Color,
    /// Columns of sentences.
    pub width: usize,
    /// Columns of tables, which are read one cell at a time.
    pub table_width: usize,
}

impl Paper {
    /// Paper for a terminal of that number of columns; widths that no report fits are replaced by the nearest one.
    #[must_use]
    pub fn of_width(self, columns: usize) -> Paper {
        Paper {
            width: columns.clamp(WIDTH_MIN, WIDTH_MAX),
            table_width: columns.clamp(WIDTH_MIN, TABLE_WIDTH_MAX),
            ..self
        }
    }
}

impl Default for Paper {
    fn default() -> Paper {
        Color::default().into()
    }
}

impl From<Color> for Paper {
    fn from(color: Color) -> Paper {
        Paper {
            color,
            width: WIDTH,
            table_width: WIDTH,
        }
    }
}

/// How much of a report to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The verdict, and a few lines for each finding.
    #[default]
    Brief,
    /// The evidence of each finding, the I/O and the stack.
    Evidence,
    /// Everything, with each rule that could not judge and each source.
    All,
}

/// Text under construction.
#[derive(Default)]
pub struct Page {
    /// The text so far.
    pub text: String,
    /// The surface.
    pub paper: Paper,
}

/// Words for a terminal: hidden characters in them are escapes, from any source, and only [`Page::painted`] adds
/// sequences of colour. Every text becomes one on its way into a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Painted(String);

impl From<&str> for Painted {
    fn from(words: &str) -> Painted {
        Painted(visible(words).into_owned())
    }
}

impl From<&String> for Painted {
    fn from(words: &String) -> Painted {
        words.as_str().into()
    }
}

impl From<String> for Painted {
    fn from(words: String) -> Painted {
        words.as_str().into()
    }
}

impl From<Cow<'_, str>> for Painted {
    fn from(words: Cow<'_, str>) -> Painted {
        words.as_ref().into()
    }
}

impl Add<&str> for Painted {
    type Output = Painted;

    fn add(mut self, words: &str) -> Painted {
        self.0.push_str(&visible(words));
        self
    }
}

impl Add<Painted> for &str {
    type Output = Painted;

    fn add(self, words: Painted) -> Painted {
        Painted(visible(self).into_owned() + &words.0)
    }
}

impl Add for Painted {
    type Output = Painted;

    fn add(self, words: Painted) -> Painted {
        Painted(self.0 + &words.0)
    }
}

/// Columns of the name before [`Page::figures`].
const NAME_WIDTH: usize = 16;

/// A column of a table that leaves out columns where there is no room.
#[derive(Clone, Copy, Debug)]
pub struct FigureColumn {
    /// Columns of the terminal, with the gap before it.
    pub width: usize,
    /// Low ranks stay on narrow paper.
    pub rank: u8,
}

/// Columns of one width.
pub const fn figure_columns<const N: usize>(width: usize, ranks: [u8; N]) -> [FigureColumn; N] {
    let mut columns = [FigureColumn { width, rank: 0 }; N];
    let mut at = 0;
    while at < N {
        columns[at].rank = ranks[at];
        at += 1;
    }
    columns
}

/// The columns that have room, in their order: those with the lowest ranks.
#[must_use]
pub fn fitting_columns(columns: &[FigureColumn], room: usize) -> Vec<usize> {
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.small_sort_by_key(|&at| columns[at].rank);
    let mut left = room;
    let has_room = |at: &usize| {
        let rest = left.checked_sub(columns[*at].width);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let mut fitting: Vec<usize> = by_rank.into_iter().take_while(has_room).collect();
    fitting.sort_unstable();
    fitting
}

impl Page {
    /// A page without anything in it so far.
    pub fn new(paper: impl Into<Paper>) -> Page {
        Page {
            text: String::new(),
            paper: paper.into(),
        }
    }

    /// A line.
    pub fn line(&mut self, line: impl Into<Painted>) {
        self.text.push_str(line.into().0.trim_end());
        self.text.push('\n');
    }

    /// A command on a line of its own: in two parts it would be two others.
    pub fn command(&mut self, before: &'static str, command: &CommandLine) {
        self.line(format!("{before}{command}"));
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

    /// A row of figures behind a name of 16 columns. On narrow paper the cells with the highest ranks are left out, so that
    /// no figure is cut.
    pub fn figures(&mut self, name: &str, columns: &[FigureColumn], cells: &[String]) {
        self.row(&format!("{name:<NAME_WIDTH$}"), columns, cells);
    }

    /// The same behind a name that is padded to its column.
    pub fn row(&mut self, name: &str, columns: &[FigureColumn], cells: &[String]) {
        let room = self.paper.table_width.saturating_sub(name.chars().count());
        let mut line = name.to_owned();
        for at in fitting_columns(columns, room) {
            line += &format!("{:>width$}", cells[at], width = columns[at].width);
        }
        self.line(line);
    }

    /// A paragraph behind `first`, its other lines behind `rest`. A number and its unit stay on one line, and so does a
    /// command between backquotes.
    pub fn wrapped(
        &mut self,
        first: impl Into<Painted>,
        rest: impl Into<Painted>,
        words: impl Into<Painted>,
    ) {
        let (mut line, rest, words) = (first.into(), rest.into(), words.into());
        let mut fresh = true;
        for word in unbreakable(&words.0) {
            let long = columns(&line.0) + 1 + columns(&word) > self.paper.width;
            if !fresh && long {
                self.line(line);
                line = rest.clone();
                fresh = true;
            }
            if !fresh {
                line.0.push(' ');
            }
            line.0.push_str(&word);
            fresh = false;
        }
        self.line(line);
    }

    /// Words behind a number that ends in column `width`.
    pub fn numbered(&mut self, width: usize, number: &str, words: &str) {
        self.wrapped(format!("{number:>width$} "), " ".repeat(width + 1), words);
    }

    /// A word in a colour, by its number.
    pub fn painted(&self, code: &'static str, word: &'static str) -> Painted {
        match self.paper.color {
            Color::Never => Painted(word.to_owned()),
            Color::Always => Painted(format!("\x1b[1;{code}m{word}\x1b[0m")),
        }
    }

    pub fn severity(&self, severity: Severity) -> Painted {
        match severity {
            Severity::Note => self.painted("36", "NOTE"),
            Severity::Warning => self.painted("33", "WARNING"),
            Severity::Critical => self.painted("31", "CRITICAL"),
        }
    }
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

/// Words between blanks; text between two backquotes, such as a command, is one.
pub fn unbroken(words: &str) -> impl Iterator<Item = &str> {
    let is_paired = words.matches('`').count().is_multiple_of(2);
    let mut is_within = false;
    words
        .split(move |c: char| {
            is_within ^= c == '`' && is_paired;
            c.is_whitespace() && !is_within
        })
        .filter(|word| !word.is_empty())
}

/// Units that follow a number on the same line.
const UNITS: [&str; 15] = [
    "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "%", "ns", "µs", "ms", "s", "I/O", "sector",
    "sectors",
];

/// The words of a text, a number together with the unit behind it.
fn unbreakable(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in unbroken(text) {
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

    #[test]
    fn narrow_paper_has_fewer_figures() {
        let columns = figure_columns(11, [0, 3, 1, 4, 2]);
        let cells = ["1", "2", "3", "4", "5"].map(str::to_owned);
        let row = |width| {
            let mut page = Page::new(Paper::default().of_width(width));
            page.figures("    read", &columns, &cells);
            page.text
        };
        let shown = |width| {
            let row = row(width);
            assert!(row.trim_end().chars().count() <= width, "{row}");
            row.split_whitespace().skip(1).collect::<Vec<_>>().concat()
        };
        assert_eq!(shown(80), "12345");
        assert_eq!(shown(70), "1235");
        assert_eq!(shown(60), "1235");
        assert_eq!(row(80).trim_end().len(), 16 + 5 * 11);
        // Sentences wrap at the width.
        let mut page = Page::new(Paper::default().of_width(60));
        page.wrapped("", "", "word ".repeat(40).as_str());
        assert!(page.text.lines().all(|line| line.chars().count() <= 60));
        assert_eq!(Paper::default().of_width(20).width, WIDTH_MIN);
        assert_eq!(Paper::default().of_width(500).width, WIDTH_MAX);
    }

    fn page() -> Page {
        Page::new(Color::Never)
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
        let units = "at 4 KiB, 7 of 8: 3 %; 12 I/O";
        assert_eq!(
            unbreakable(units),
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
        let Painted(word) = Page::new(Color::Always).severity(Severity::Warning);
        assert_eq!(
            (word.as_str(), columns(&word)),
            ("\x1b[1;33mWARNING\x1b[0m", 7)
        );
        assert_eq!(columns("4 KiB ≤ µs"), 10);
    }

    #[test]
    fn names_move_no_cursor_and_have_no_colour() {
        for color in [Color::Never, Color::Always] {
            let mut page = Page::new(color);
            page.heading("sd\x1b[2J");
            page.line("sd\ra\nb\x07 \x1b[1;31mred\x1b[0m");
            page.wrapped("a\x1b]0;t\x07", "", "b\u{202e}c");
            let (painted, plain) = match color {
                Color::Never => ("unknown", ""),
                Color::Always => ("\x1b[1;36munknown", "\x1b[0m"),
            };
            let words = page.painted("36", "unknown") + " of \x1b[1;31msda\x1b[0m";
            page.wrapped("", "", words);
            assert_eq!(
                page.text,
                format!(
                    "sd\\u{{1b}}[2J\n───────────\nsd\\u{{d}}a\\u{{a}}b\\u{{7}} \\u{{1b}}[1;31mred\\u{{1b}}[0m\n\
                     a\\u{{1b}}]0;t\\u{{7}}b\\u{{202e}}c\n{painted}{plain} of \\u{{1b}}[1;31msda\\u{{1b}}[0m\n"
                )
            );
        }
    }

    #[test]
    fn a_command_stays_on_one_line() {
        let within = "the collection of the other host comes from there with `plumb check --collect FILE`, as root";
        assert_eq!(
            wrapped("  ", "    ", within),
            "  the collection of the other host comes from there with\n    `plumb check --collect FILE`, as root\n"
        );
        let command =
            plumb_quoting::Command::new("sgdisk").paths((0..30).map(|at| format!("/dev/a {at}")));
        let command = command.line().expect("a command");
        let mut page = page();
        page.command("    ", &command);
        assert_eq!(page.text, format!("    {command}\n"));
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
