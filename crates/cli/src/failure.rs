//! Errors on their way to the terminal: printed once, with their causes, in lines that fit it. Programs that read them
//! instead get a line each.

use std::error::Error;
use std::io;
use std::path::Path;

use plumb_quoting::{Command, CommandLine, visible};
use plumb_report::text::unbroken;
use plumb_sys::SysError;

use crate::exit::Exit;
use crate::output::{columns, say};
use crate::{this_run, typed};

/// Why a command could not do its work.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
    causes: Vec<String>,
    help: Vec<Help>,
}

/// Advice.
#[derive(Debug)]
enum Help {
    Words(String),
    /// A command that would do it, to be copied unchanged, and its purpose if there are several.
    Run(Option<&'static str>, CommandLine),
}

impl Help {
    /// A command, or the reason why none can be given.
    fn run(purpose: Option<&'static str>, command: Command) -> Help {
        match command.line() {
            Ok(line) => Help::Run(purpose, line),
            Err(why) => Help::Words(why.to_string()),
        }
    }
}

impl Failure {
    /// The command line asks for something that cannot be.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Usage,
            message: message.into(),
            causes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// The question has no answer.
    #[must_use]
    pub fn unknown(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Unknown,
            message: message.into(),
            causes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A file or a device of the command line does not exist.
    #[must_use]
    pub fn missing(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Failed,
            ..Failure::usage(message)
        }
    }

    /// The system refuses; `command` has the missing right, if such a command exists.
    #[must_use]
    pub fn not_permitted(error: &dyn Error, command: Option<Command>) -> Failure {
        Failure {
            exit: Exit::NotPermitted,
            message: error.to_string(),
            causes: Vec::new(),
            help: command
                .map(|command| Help::run(None, command))
                .into_iter()
                .collect(),
        }
    }

    /// The kernel's answer on a device or file that was named: one that is not there, or nothing of that kind, is a slip of
    /// the command line, and a refusal for lack of a right goes away as root.
    #[must_use]
    pub fn of_system(error: &SysError) -> Failure {
        match error {
            SysError::NotPermitted { .. } => {
                Failure::not_permitted(error, typed::as_root())
            }
            SysError::NotThere { path, .. } => {
                Failure::missing(error.to_string()).with_help(found_at(path))
            }
            SysError::NotATarget { .. } | SysError::FileAmongDevices { .. } => {
                Failure::usage(error.to_string())
            }
            SysError::ReadOnly { .. } => Failure::failed(error).with_help(
                "reading needs no --write; blockdev --setrw makes a disk writable that was set read-only",
            ),
            SysError::InUse { .. } => {
                Failure::failed(error).with_help("find mounts with lsblk, and the programs that have it open with fuser -v")
            }
            _ => Failure::failed(error),
        }
    }

    /// Something went wrong in the middle of a move, with which `command` goes on.
    #[must_use]
    pub fn incomplete(error: &(dyn Error + 'static), command: Command) -> Failure {
        Failure {
            exit: Exit::Incomplete,
            help: vec![Help::run(None, command)],
            ..Failure::failed(error)
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
            if matches!(
                cause.downcast_ref(),
                Some(plumb_trace::Error::UnknownFormat { .. })
            ) {
                let known = plumb_trace::format::known_names();
                advice = Some(format!("--format names one, expected one of: {known}"));
            }
            causes.push(cause.to_string());
            next = cause.source();
        }
        let message = causes.remove(0);
        let help =
            (exit == Exit::NotPermitted).then(|| match (is_written, this_run::is_by_root()) {
                (true, _) => "give another place, or run the command as a user who may write there",
                (false, true) => {
                    "root itself may not read it: a server or a security module refuses"
                }
                (false, false) => {
                    "the file's owner or CAP_DAC_READ_SEARCH may read it: run the command with sudo"
                }
            });
        let help = help.map(str::to_owned);
        Failure {
            exit,
            message,
            causes,
            help: help.or(advice).map(Help::Words).into_iter().collect(),
        }
    }

    /// The one to end with when nothing could be read: that whose exit status goes before the others', which are
    /// printed here.
    #[must_use]
    pub fn first_of(mut failures: Vec<Failure>) -> Option<Failure> {
        let rank = |failure: &Failure| match failure.exit() {
            Exit::Usage => 0,
            Exit::NotPermitted => 1,
            Exit::Failed => 2,
            Exit::Incomplete => 3,
            Exit::Lost => 4,
            Exit::Findings | Exit::Unknown | Exit::Clean | Exit::Plugin(_) => 5,
        };
        let first = (0..failures.len()).min_by_key(|&at| rank(&failures[at]))?;
        let last = failures.remove(first);
        failures.iter().for_each(Failure::print);
        Some(last)
    }

    /// The same of a command that never ends for want of permission: it failed.
    #[must_use]
    pub fn not_for_permission(mut self) -> Failure {
        if self.exit == Exit::NotPermitted {
            self.exit = Exit::Failed;
        }
        self
    }

    /// Adds the position of its cause in a file.
    #[must_use]
    pub fn at(mut self, place: &str) -> Failure {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Failure {
        self.help = vec![Help::Words(help.into())];
        self
    }

    /// Adds a command that would do it.
    #[must_use]
    pub fn with_command(mut self, command: Command) -> Failure {
        self.help = vec![Help::run(None, command)];
        self
    }

    /// Adds advice, and a command behind it. Commands are never part of advice, whose lines are broken.
    #[must_use]
    pub fn with_help_and_command(self, help: impl Into<String>, command: Command) -> Failure {
        let mut failure = self.with_help(help);
        failure.help.push(Help::run(None, command));
        failure
    }

    /// Adds commands for several purposes.
    #[must_use]
    pub fn with_commands(
        mut self,
        commands: impl IntoIterator<Item = (&'static str, Command)>,
    ) -> Failure {
        self.help = commands
            .into_iter()
            .map(|(purpose, command)| Help::run(Some(purpose), command))
            .collect();
        self
    }

    /// How the command ends for it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// The same in one line, for a report on the readable inputs.
    #[must_use]
    pub fn note(&self) -> String {
        format!("not read: {}", self.text(""))
    }

    /// Message and causes, without the name of the file before them.
    #[must_use]
    pub fn text(&self, file: &str) -> String {
        let mut words = self.message.clone();
        for cause in &self.causes {
            words.push_str(": ");
            words.push_str(cause);
        }
        match words
            .strip_prefix(file)
            .and_then(|rest| rest.strip_prefix(": "))
        {
            Some(bare) if !file.is_empty() => bare.to_owned(),
            _ => words,
        }
    }

    /// The advice that is a sentence.
    pub fn advice(&self) -> Option<&str> {
        self.help.iter().find_map(|help| match help {
            Help::Words(words) => Some(words.as_str()),
            Help::Run(..) => None,
        })
    }

    /// Prints it to standard error.
    pub fn print(&self) {
        self.shown(columns(&io::stderr())).lines().for_each(say);
    }

    /// As lines: the failure, its causes, advice. Without a width each is one line, for programs that read them.
    fn shown(&self, width: Option<usize>) -> String {
        let mut text = wrapped("plumb: ", &self.message, width);
        for cause in &self.causes {
            text += &wrapped("  because: ", cause, width);
        }
        for help in &self.help {
            match help {
                Help::Words(words) => text += &wrapped("  help: ", words, width),
                Help::Run(purpose, command) => {
                    let purpose = purpose.unwrap_or("run");
                    text += &match width {
                        None => format!("  help: {purpose}: {command}\n"),
                        Some(_) => format!("  help: {purpose}\n    {command}\n"),
                    }
                }
            }
        }
        text
    }
}

/// Prints a sentence to standard error.
pub fn tell(head: &str, words: &str) {
    wrapped(head, words, columns(&io::stderr()))
        .lines()
        .for_each(say);
}

/// The possible place of the device that was looked for.
fn found_at(path: &Path) -> String {
    let node = Path::new("/dev").join(path);
    match path.components().count() == 1 && node.exists() {
        true => format!("the device of that name is {}", node.display()),
        false => "`plumb check` shows the disks of this host and their contents".to_owned(),
    }
}

/// Words behind a head, in lines of at most `width` columns where words allow it. Names in the words are from anywhere: a
/// line feed in one begins no line.
pub fn wrapped(head: &str, words: &str, width: Option<usize>) -> String {
    let words = &visible(words);
    let Some(width) = width else {
        return format!("{head}{words}\n");
    };
    let indent = " ".repeat(head.chars().count().max(2));
    let (mut text, mut columns) = (head.to_owned(), head.chars().count());
    for (at, word) in unbroken(words).enumerate() {
        let len = word.chars().count();
        if at > 0 && columns + 1 + len > width {
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
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_within_a_terminal() {
        let words = "some words ".repeat(30);
        let failure = Failure::usage(words.trim()).with_help(words.trim());
        for width in [40, 80, 132] {
            let text = failure.shown(Some(width));
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            assert!(text.lines().count() > 3, "{text}");
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(
                flat,
                format!("plumb: {0} help: {0}", words.trim()),
                "nothing is lost"
            );
        }
        let text = failure.shown(Some(40));
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("       ") || line.starts_with("  help: "))
        );
        let path = format!("/{}", "x".repeat(100));
        assert_eq!(
            wrapped("  help: ", &path, Some(80)),
            format!("  help: {path}\n"),
            "a path is never broken"
        );
    }

    #[test]
    fn a_script_reads_one_line_each() {
        let words = "some words ".repeat(30);
        let failure = Failure::unknown(words.trim()).with_help(words.trim());
        assert_eq!(
            failure.shown(None),
            format!("plumb: {0}\n  help: {0}\n", words.trim())
        );
    }

    #[test]
    fn a_command_stays_whole() {
        let command = Command::new("plumb watch").paths(["sda"; 40]);
        let failure = Failure::unknown("nothing is seen there").with_command(command.clone());
        let command = command.line().expect("a command").to_string();
        let text = failure.shown(Some(80));
        assert_eq!(text.lines().last().map(str::trim), Some(command.as_str()));
        insta::assert_snapshot!(failure.shown(None));
        let within = "the collection comes from `plumb check --collect` on that host";
        assert_eq!(
            wrapped("", within, Some(40)),
            within.replace(" `", "\n  `") + "\n"
        );
        assert_eq!(
            wrapped("", "a ` b c", Some(4)),
            "a `\n  b\n  c\n",
            "one that has no other parts nothing"
        );
    }
}
