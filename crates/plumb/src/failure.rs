//! Errors on their way to the terminal: printed once, with what lies behind them.

use std::error::Error;
use std::io;

use crate::exit::Exit;
use crate::output::say;

/// Why a command could not do its work.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
    causes: Vec<String>,
    help: Option<String>,
}

impl Failure {
    /// The command line asks for something that cannot be.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, message: message.into(), causes: Vec::new(), help: None }
    }

    /// The question has no answer.
    #[must_use]
    pub fn unknown(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Unknown, message: message.into(), causes: Vec::new(), help: None }
    }

    /// The system refuses; `command` would have what is missing.
    #[must_use]
    pub fn not_permitted(error: &dyn Error, command: String) -> Failure {
        Failure {
            exit: Exit::NotPermitted,
            message: error.to_string(),
            causes: Vec::new(),
            help: Some(format!("run: {command}")),
        }
    }

    /// Something went wrong.
    #[must_use]
    pub fn failed(error: &(dyn Error + 'static)) -> Failure {
        let mut causes = Vec::new();
        let mut exit = Exit::Failed;
        let mut is_written = false;
        let mut advice = None;
        let mut next = Some(error);
        while let Some(cause) = next {
            if cause
                .downcast_ref::<io::Error>()
                .is_some_and(|io| io.kind() == io::ErrorKind::PermissionDenied)
            {
                exit = Exit::NotPermitted;
            }
            if matches!(
                cause.downcast_ref(),
                Some(
                    plumb_trace::Error::NoSuchFormat { .. }
                        | plumb_trace::Error::NoSuchTarget { .. }
                        | plumb_trace::Error::NoFile { .. }
                )
            ) {
                exit = Exit::Usage;
            }
            is_written |= matches!(cause.downcast_ref(), Some(plumb_trace::Error::Write { .. }));
            if matches!(cause.downcast_ref(), Some(plumb_trace::Error::UnknownFormat { .. })) {
                let known = plumb_trace::format::known_names();
                advice = Some(format!("--format names one, expected one of: {known}"));
            }
            causes.push(cause.to_string());
            next = cause.source();
        }
        let message = causes.remove(0);
        let help = (exit == Exit::NotPermitted).then(|| match is_written {
            true => "give another place, or run the command as a user who may write there".to_owned(),
            false => {
                "the file's owner or CAP_DAC_READ_SEARCH may read it: run the command with sudo".to_owned()
            }
        });
        Failure { exit, message, causes, help: help.or(advice) }
    }

    /// The one to end with when nothing could be read: that whose exit status goes before the others', which are
    /// printed here.
    #[must_use]
    pub fn first_of(mut failures: Vec<Failure>) -> Option<Failure> {
        let rank = |failure: &Failure| match failure.exit() {
            Exit::Usage => 0,
            Exit::NotPermitted => 1,
            Exit::Failed => 2,
            Exit::Findings | Exit::Unknown | Exit::Clean => 3,
        };
        let first = (0..failures.len()).min_by_key(|&at| rank(&failures[at]))?;
        let last = failures.remove(first);
        failures.iter().for_each(Failure::print);
        Some(last)
    }

    /// Adds advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// How the command ends for it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// The same in one line, for a report on what could be read.
    #[must_use]
    pub fn note(&self) -> String {
        format!("not read: {}", self.words(""))
    }

    /// Message and causes, without the name of the file before them.
    #[must_use]
    pub fn words(&self, file: &str) -> String {
        let mut words = self.message.clone();
        for cause in &self.causes {
            words.push_str(": ");
            words.push_str(cause);
        }
        match words.strip_prefix(file).and_then(|rest| rest.strip_prefix(": ")) {
            Some(bare) if !file.is_empty() => bare.to_owned(),
            _ => words,
        }
    }

    /// Prints it to standard error: what happened in one line each, advice in lines that a terminal holds.
    pub fn print(&self) {
        say(&format!("plumb: {}", self.message));
        for cause in &self.causes {
            say(&format!("  because: {cause}"));
        }
        if let Some(help) = &self.help {
            wrapped("  help: ", help).lines().for_each(say);
        }
    }
}

/// Columns of a terminal.
const WIDTH: usize = 80;

/// Words behind a head, in lines of at most [`WIDTH`] columns where words allow it.
fn wrapped(head: &str, words: &str) -> String {
    let indent = " ".repeat(head.len());
    let (mut text, mut columns) = (head.to_owned(), head.len());
    for (at, word) in words.split(' ').enumerate() {
        let len = word.chars().count();
        if at > 0 && columns + 1 + len > WIDTH {
            text.push('\n');
            text.push_str(&indent);
            columns = indent.len();
        } else if at > 0 {
            text.push(' ');
            columns += 1;
        }
        text.push_str(word);
        columns += len;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_keeps_within_a_terminal() {
        let text = wrapped("  help: ", &"some words ".repeat(30));
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("        some") || line.starts_with("        words"))
        );
        let flat: Vec<&str> = text.split_whitespace().skip(1).collect();
        assert_eq!(flat.join(" "), "some words ".repeat(30).trim());
        let path = format!("/{}", "x".repeat(100));
        assert_eq!(wrapped("  help: ", &path), format!("  help: {path}"), "a path is never broken");
    }
}
