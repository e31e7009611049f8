//! A terminal's screens as a picture: SVG, which every browser and code forge shows.

use std::fmt::Write;

/// Size of a cell.
const CELL: (f64, f64) = (8.4, 18.0);
/// Space around the screen.
const MARGIN: f64 = 14.0;
const FOREGROUND: &str = "#d8dee9";
const BACKGROUND: &str = "#1c2128";
/// The 16 colours of a terminal.
const COLORS: [&str; 16] = [
    "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
    "#7f8794", "#ff7b86", "#b5e08f", "#ffd58a", "#82c4ff", "#dc9bf0", "#7bd5e0", "#ffffff",
];

/// Screens that follow each other, each shown for as long.
pub struct Picture {
    pub title: String,
    pub columns: usize,
    pub rows: usize,
    pub seconds_each: f64,
    /// As `tmux capture-pane -e` prints them.
    pub screens: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Style {
    color: Option<usize>,
    behind: Option<usize>,
    is_bold: bool,
    is_dim: bool,
    is_reversed: bool,
}

/// Signs of one style, from a column on.
#[derive(Debug, PartialEq)]
struct StyledRun {
    column: usize,
    text: String,
    style: Style,
}

impl Picture {
    /// The whole as SVG.
    pub fn svg(&self) -> String {
        let (width, height) = (
            self.columns as f64 * CELL.0 + 2.0 * MARGIN,
            self.rows as f64 * CELL.1 + 2.0 * MARGIN,
        );
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
             font-size=\"14\" fill=\"{FOREGROUND}\">\n<title>{}</title>\n\
             <style>text{{white-space:pre}}</style>\n\
             <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n",
            escaped(&self.title)
        );
        let screens: Vec<Vec<&str>> = self
            .screens
            .iter()
            .map(|one| one.lines().collect())
            .collect();
        for row in 0..self.rows {
            let line = |screen: &Vec<&'_ str>| {
                screen
                    .get(row)
                    .map_or(String::new(), |line| (*line).to_owned())
            };
            let mut at = 0;
            // A line that stays the same is drawn once.
            while at < screens.len() {
                let words = line(&screens[at]);
                let same = screens[at..]
                    .iter()
                    .take_while(|one| line(one) == words)
                    .count();
                self.draw(&mut svg, row, &words, at..at + same);
                at += same;
            }
        }
        svg + "</svg>\n"
    }

    fn draw(&self, svg: &mut String, row: usize, line: &str, shown: std::ops::Range<usize>) {
        let runs = runs(line);
        if runs.is_empty() {
            return;
        }
        let all = self.screens.len();
        let top = MARGIN + row as f64 * CELL.1;
        let _ = write!(svg, "<g transform=\"translate(0 {top:.0})\">");
        if shown.len() < all {
            let part = |screens: usize| screens as f64 / all as f64;
            let mut values = vec!["hidden", "visible", "hidden"];
            let mut times = vec![0.0, part(shown.start), part(shown.end)];
            if shown.start == 0 {
                (values, times) = (vec!["visible", "hidden"], vec![0.0, part(shown.end)]);
            } else if shown.end == all {
                values.pop();
                times.pop();
            }
            let times: Vec<String> = times.iter().map(|time| format!("{time:.4}")).collect();
            let _ = write!(
                svg,
                "<animate attributeName=\"visibility\" calcMode=\"discrete\" dur=\"{:.1}s\" \
                 repeatCount=\"indefinite\" values=\"{}\" keyTimes=\"{}\"/>",
                self.seconds_each * all as f64,
                values.join(";"),
                times.join(";")
            );
        }
        for run in runs {
            let (left, width) = (
                MARGIN + run.column as f64 * CELL.0,
                run.text.chars().count() as f64 * CELL.0,
            );
            let mut color = run.style.color.map_or(FOREGROUND, |color| COLORS[color]);
            let mut behind = run.style.behind.map(|color| COLORS[color]);
            if run.style.is_reversed {
                (color, behind) = (behind.unwrap_or(BACKGROUND), Some(color));
            }
            if let Some(behind) = behind {
                let _ = write!(
                    svg,
                    "<rect x=\"{left:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{behind}\"/>",
                    CELL.1
                );
            }
            if run.text.trim().is_empty() {
                continue;
            }
            let mut flags = String::new();
            if color != FOREGROUND {
                let _ = write!(flags, " fill=\"{color}\"");
            }
            if run.style.is_bold {
                flags += " font-weight=\"bold\"";
            }
            if run.style.is_dim {
                flags += " opacity=\"0.6\"";
            }
            // The length keeps columns in line with any font.
            let _ = write!(
                svg,
                "<text x=\"{left:.1}\" y=\"13.5\" textLength=\"{width:.1}\"{flags}>{}</text>",
                escaped(&run.text)
            );
        }
        svg.push_str("</g>\n");
    }
}

/// Text with the signs of XML escaped.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A line with escape sequences as runs of one style; trailing spaces without a background are left out.
fn runs(line: &str) -> Vec<StyledRun> {
    let mut runs: Vec<StyledRun> = Vec::new();
    let (mut style, mut column) = (Style::default(), 0);
    let mut rest = line;
    while let Some(sign) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\x1b[") {
            let end = after
                .find(|sign: char| sign.is_ascii_alphabetic())
                .expect("an escape sequence ends");
            assert_eq!(&after[end..=end], "m", "only styles are printed: {line:?}");
            style.set(&after[..end]);
            rest = &after[end + 1..];
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.style == style => run.text.push(sign),
            _ => runs.push(StyledRun {
                column,
                text: sign.to_string(),
                style: style.clone(),
            }),
        }
        column += 1;
        rest = &rest[sign.len_utf8()..];
    }
    if let Some(last) = runs.last_mut()
        && last.style.behind.is_none()
        && !last.style.is_reversed
    {
        let len = last.text.trim_end().len();
        last.text.truncate(len);
    }
    runs.retain(|run| !run.text.is_empty());
    runs
}

impl Style {
    /// Takes in the numbers of one sequence.
    fn set(&mut self, numbers: &str) {
        let mut numbers = numbers.split(';').map(|number| number.parse().unwrap_or(0));
        while let Some(number) = numbers.next() {
            // `38;5;N` is a colour by its number.
            let mut numbered = || {
                assert_eq!(numbers.next(), Some(5), "a colour by its number");
                numbers.next().filter(|&color| color < COLORS.len())
            };
            match number {
                0 => *self = Style::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                7 => self.is_reversed = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                27 => self.is_reversed = false,
                30..=37 => self.color = Some(number - 30),
                38 => self.color = Some(numbered().expect("one of the 16 colours")),
                39 => self.color = None,
                40..=47 => self.behind = Some(number - 40),
                48 => self.behind = Some(numbered().expect("one of the 16 colours")),
                49 => self.behind = None,
                90..=97 => self.color = Some(number - 82),
                100..=107 => self.behind = Some(number - 92),
                other => panic!("no picture has the style {other}"),
            }
        }
    }
}

#[test]
fn styles_become_runs() {
    let run = |column, text: &str, style| StyledRun {
        column,
        text: text.to_owned(),
        style,
    };
    let yellow = Style {
        color: Some(3),
        is_bold: true,
        ..Style::default()
    };
    assert_eq!(
        runs("\x1b[1;38;5;3mMISFIT\x1b[0m: a < b  "),
        [
            run(0, "MISFIT", yellow),
            run(6, ": a < b", Style::default())
        ]
    );
    assert_eq!(runs("   \x1b[39m "), []);
}
