//! Prints help and errors of the command line, in lines that fit the terminal.

use std::io;
use std::process::ExitCode;

use crate::exit::Exit;
use crate::failure::wrapped;
use crate::output::{self, WIDTH, columns, say};

/// Longer lines of help are hard to read.
const HELP_WIDTH: usize = 100;
/// Words that begin behind this column would have too little room beside the words before them.
const HEAD_WIDTH: usize = 40;

/// Prints the parser's message, and returns the exit status.
pub fn end_with(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if error.use_stderr() {
        // A script reads each of them as one line.
        let text =
            columns(&io::stderr()).map_or_else(|| text.clone(), |width| broken(&text, width));
        text.lines().for_each(say);
        return Exit::Usage.into();
    }
    match output::print(&help(&text)) {
        Ok(()) => Exit::Clean.into(),
        Err(failure) => {
            failure.print();
            failure.exit().into()
        }
    }
}

/// The first line of a mistake in the command line.
pub fn first(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// Help in lines for standard output.
pub fn help(text: &str) -> String {
    let width = columns(&io::stdout()).map_or(WIDTH, |width| width.min(HELP_WIDTH));
    output::drawn(broken(text, width))
}

/// The same in lines of at most `width` columns, where words allow it.
fn broken(text: &str, width: usize) -> String {
    let lines = text.lines().map(|line| {
        let (head, words) = line.split_at(words_begin(line));
        wrapped(head, words, Some(width))
    });
    lines.collect()
}

/// The start of a line's words: behind the gap that follows a flag or a value, or at the start of the line.
fn words_begin(line: &str) -> usize {
    let blanks = |text: &str| text.len() - text.trim_start().len();
    let begin = blanks(line);
    let gap = line[begin..].find("  ").map(|at| begin + at);
    let behind = gap.map(|at| at + blanks(&line[at..]));
    behind
        .filter(|behind| *behind <= HEAD_WIDTH)
        .unwrap_or(begin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::manual;

    fn helps(command: &mut clap::Command, all: &mut Vec<String>) {
        all.extend(
            [command.render_help(), command.render_long_help()].map(|help| help.to_string()),
        );
        command
            .get_subcommands_mut()
            .for_each(|below| helps(below, all));
    }

    #[test]
    fn help_keeps_within_a_terminal() {
        let mut all = Vec::new();
        helps(&mut manual::command(), &mut all);
        assert!(
            all.len() > 40
                && all
                    .iter()
                    .any(|help| help.lines().any(|line| line.len() > WIDTH))
        );
        for help in all {
            let text = broken(&help, WIDTH);
            let long = text.lines().find(|line| line.chars().count() > WIDTH);
            assert_eq!(long, None, "{text}");
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&text), words(&help), "nothing is lost");
        }
    }

    /// Lines of `-h` at 80 columns: the program fits a terminal, and a command a screen.
    #[test]
    fn short_help_is_short() {
        fn add(command: &mut clap::Command, path: &str, long: &mut Vec<String>) {
            let help = command.render_help().to_string();
            let lines = broken(&help, WIDTH).lines().count();
            let most = if path.is_empty() { 24 } else { 40 };
            if lines > most {
                long.push(format!("plumb{path} -h: {lines} lines"));
            }
            for sub in command
                .get_subcommands_mut()
                .filter(|sub| !sub.is_hide_set())
            {
                let path = format!("{path} {}", sub.get_name());
                add(sub, &path, long);
            }
        }
        let mut long = Vec::new();
        let mut command = manual::command();
        command.build();
        add(&mut command, "", &mut long);
        assert_eq!(long, [""; 0]);
    }

    #[test]
    fn wrapped_words_keep_their_column() {
        for (line, columns, expected) in [
            (
                "      --to <POSITION>  some words that go on",
                40,
                "      --to <POSITION>  some words that\n                       go on\n",
            ),
            (
                "          one two three",
                20,
                "          one two\n          three\n",
            ),
            ("one two\n\nthree", 6, "one\n  two\n\nthree\n"),
        ] {
            assert_eq!(broken(line, columns), expected, "{line}");
        }
    }
}
