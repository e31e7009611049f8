//! Commands for `sh`, made of arguments. Names come out of labels and dumps of other hosts, and must not become commands:
//! text from outside enters a command only as one quoted word, and a command is one line without hidden characters.
//!
//! A name that cannot be typed so that its tool accepts it unchanged gives no command ([`NoCommand`] has the reason):
//! one with a hidden character (a terminal shows it differently, and it may end the line), one whose bytes were no
//! text, and one that the tool refuses or would read as an option.

use std::borrow::{Borrow, Cow};
use std::ffi::OsStr;
use std::fmt::{self, Display, Formatter};
use std::ops::Deref;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use crate::names::Names;
use crate::visible::{is_hidden, visible};

/// Why no command is given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoCommand {
    /// A name that looks otherwise than it is.
    #[error(
        "no command is given: the name \"{}\" holds {}, which cannot be typed; rename it first",
        visible(word), letter.escape_unicode()
    )]
    Hidden {
        /// The name.
        word: String,
        /// Its first hidden character.
        letter: char,
    },
    /// A name with lost bytes.
    #[error(
        "no command is given: some bytes of the name \"{}\" are no UTF-8 text",
        visible(word)
    )]
    NotText {
        /// The remaining text.
        word: String,
    },
    /// A name that the tool does not take.
    #[error(
        "no command is given: found \"{}\" as the name of {what}, expected {expected}",
        visible(word)
    )]
    NotTaken {
        /// The name.
        word: String,
        /// The thing that has it.
        what: &'static str,
        /// The names that the tool takes.
        expected: &'static str,
    },
}

/// A path that is the name of nothing.
const NO_PATH: Names = Names::none("a file or device", "a path");
/// A word that a tool would read as an option, if the tool has no way to prevent it.
const NO_OPTION: Names = Names::none("an operand", "a name that does not begin with a hyphen");

/// A command under construction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Command {
    text: String,
    refused: Option<NoCommand>,
}

impl Command {
    /// A command of the program itself or of a tool, with words that need no quotes: `Command::new("sfdisk -d")`. The
    /// text is that of the program: nothing from outside can be `'static`.
    pub fn new(text: &'static str) -> Command {
        Command {
            text: text.to_owned(),
            refused: None,
        }
    }

    /// A command of words that were put together elsewhere, as for [`std::process::Command`].
    pub fn of_words(words: impl IntoIterator<Item = impl Display>) -> Command {
        words.into_iter().fold(Command::new(""), Command::arg)
    }

    /// The command that prints a line.
    pub fn echo(line: impl Display) -> Command {
        let line = line.to_string();
        // Shells differ in `echo` of a backslash and of a leading hyphen.
        match line.starts_with('-') || line.contains('\\') {
            true => Command::new(r"printf '%s\n'").arg(line),
            false => Command::new("echo").arg(line),
        }
    }

    /// Adds words of the program's own.
    pub fn flags(mut self, text: &'static str) -> Command {
        self.push(text);
        self
    }

    /// Adds a word that the tool accepts with any first character: a number, the value of an option, `of=PATH`.
    pub fn arg(mut self, word: impl Display) -> Command {
        let word = word.to_string();
        self.push_word(&word, "");
        self
    }

    /// Adds an operand that is no path. One that begins with a hyphen is refused.
    pub fn operand(self, word: impl Display) -> Command {
        let word = word.to_string();
        match word.starts_with('-') || word.is_empty() {
            true => self.refuse(NO_OPTION, &word),
            false => self.arg(word),
        }
    }

    /// Adds a path. One that begins with a hyphen gets `./` before it.
    pub fn path(self, path: impl AsRef<OsStr>) -> Command {
        let path = path.as_ref().to_string_lossy();
        match path.as_ref() {
            "" => self.refuse(NO_PATH, ""),
            path if path.starts_with('-') => self.arg(format!("./{path}")),
            path => self.arg(path),
        }
    }

    /// Adds paths.
    pub fn paths(self, paths: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        paths.into_iter().fold(self, Command::path)
    }

    /// Adds a name of a kind, as part of a word: `named(ZFS, "/dev/zvol/", "tank/v", ".new")`. A name that is none of the
    /// kind is refused.
    pub fn named(
        self,
        kind: Names,
        before: &'static str,
        name: &str,
        behind: impl Display,
    ) -> Command {
        match kind.has(name) {
            true => self.arg(format!("{before}{name}{behind}")),
            // The character is the better reason.
            false => match unfit(name) {
                Some(why) => self.refused(why),
                None => self.refuse(kind, name),
            },
        }
    }

    /// Adds a name of a kind.
    pub fn name(self, kind: Names, name: &str) -> Command {
        self.named(kind, "", name, "")
    }

    /// Adds a long option with a value.
    pub fn option(self, option: &'static str, value: impl AsRef<OsStr>) -> Command {
        let value = value.as_ref().to_string_lossy();
        match value.starts_with('-') {
            true => self.arg(format!("{option}={value}")),
            false => self.flags(option).arg(value),
        }
    }

    /// Adds a word that ends with the value of a variable: `1:"$type"`.
    pub fn variable(mut self, before: impl Display, variable: &'static str) -> Command {
        self.push_word(&before.to_string(), &format!("\"${variable}\""));
        self
    }

    /// Adds the output of another command, as one word.
    pub fn output_of(mut self, inner: Command) -> Command {
        self.push(&format!("\"$({})\"", inner.text));
        self.and_refused(inner.refused)
    }

    /// Puts the output of a command into a variable.
    pub fn set(variable: &'static str, inner: Command) -> Command {
        Command {
            text: format!("{variable}=$({})", inner.text),
            refused: inner.refused,
        }
    }

    /// Writes its output to a file.
    pub fn to_file(self, path: impl AsRef<OsStr>) -> Command {
        self.flags(">").path(path)
    }

    /// Reads its input from a file.
    pub fn from_file(self, path: impl AsRef<OsStr>) -> Command {
        self.flags("<").path(path)
    }

    /// Hands its output to another command.
    pub fn pipe(self, next: Command) -> Command {
        self.joined(" | ", next)
    }

    /// Runs another command if it succeeds.
    pub fn and(self, next: Command) -> Command {
        self.joined(" && ", next)
    }

    /// Runs another command if it fails.
    pub fn or(self, next: Command) -> Command {
        self.joined(" || ", next)
    }

    /// Runs another command after it.
    pub fn then(self, next: Command) -> Command {
        self.joined("; ", next)
    }

    /// Both commands as one, with a common output.
    pub fn group(self, next: Command) -> Command {
        let both = self.joined("; ", next);
        Command {
            text: format!("{{ {}; }}", both.text),
            refused: both.refused,
        }
    }

    /// Adds a remark for the reader, which a shell passes over.
    pub fn remark(mut self, words: &'static str) -> Command {
        self.text.push_str("    # ");
        self.text.push_str(words);
        self
    }

    /// The command, ready to be typed.
    ///
    /// # Errors
    /// The first reason why none can be given.
    pub fn line(self) -> Result<CommandLine, NoCommand> {
        match self.refused {
            Some(why) => Err(why),
            None => Ok(CommandLine(self.text)),
        }
    }

    fn joined(mut self, by: &'static str, next: Command) -> Command {
        self.text.push_str(by);
        self.text.push_str(&next.text);
        self.and_refused(next.refused)
    }

    fn push(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// Adds a word in quotes where it needs them, and something of our own directly behind it.
    fn push_word(&mut self, word: &str, behind: &str) {
        if self.refused.is_none() {
            self.refused = unfit(word);
        }
        self.push(&quoted(word));
        self.text.push_str(behind);
    }

    fn refuse(self, kind: Names, word: &str) -> Command {
        let word = word.to_owned();
        self.refused(NoCommand::NotTaken {
            word,
            what: kind.what,
            expected: kind.expected,
        })
    }

    fn refused(self, why: NoCommand) -> Command {
        self.and_refused(Some(why))
    }

    /// With a further reason; the first one stays.
    fn and_refused(mut self, why: Option<NoCommand>) -> Command {
        self.refused = self.refused.or(why);
        self
    }
}

/// Why no command can hold a word, if none can.
fn unfit(word: &str) -> Option<NoCommand> {
    let own = || word.to_owned();
    // The replacement character stands for bytes that were lost on the way.
    let not_text = || {
        word.contains('\u{fffd}')
            .then(|| NoCommand::NotText { word: own() })
    };
    match word.chars().find(|letter| is_hidden(*letter)) {
        Some(letter) => Some(NoCommand::Hidden {
            word: own(),
            letter,
        }),
        None => not_text(),
    }
}

/// A word in single quotes, unless it needs none.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    // zsh takes the rest of a word that begins with `=` as the name of a program.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// A command to be typed unchanged: one line without hidden characters. Only [`Command::line`] makes one, and nothing
/// may break it: a line in two parts is two other commands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct CommandLine(String);

impl TryFrom<String> for CommandLine {
    type Error = NoCommand;

    /// Takes a line that was written out before. It is still only text to be shown.
    fn try_from(line: String) -> Result<CommandLine, NoCommand> {
        match unfit(&line) {
            Some(why) => Err(why),
            None => Ok(CommandLine(line)),
        }
    }
}

impl CommandLine {
    /// The line.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for CommandLine {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for CommandLine {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Display for CommandLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for CommandLine {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for CommandLine {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<String> for CommandLine {
    fn eq(&self, other: &String) -> bool {
        self.0 == *other
    }
}

impl Serialize for CommandLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The way back from a change, before it is known that it can be given.
#[derive(Clone, Debug)]
pub enum Undo {
    /// Words of the program's own.
    Words(&'static str),
    /// A command.
    Command(Command),
}

impl From<&'static str> for Undo {
    fn from(words: &'static str) -> Undo {
        Undo::Words(words)
    }
}

impl From<Command> for Undo {
    fn from(command: Command) -> Undo {
        Undo::Command(command)
    }
}

impl Undo {
    /// The way back, ready to be shown.
    ///
    /// # Errors
    /// As [`Command::line`].
    pub fn way_back(self) -> Result<WayBack, NoCommand> {
        match self {
            Undo::Words(words) => Ok(WayBack::Words(Cow::Borrowed(words))),
            Undo::Command(command) => command.line().map(WayBack::Command),
        }
    }
}

/// The way back from a change.
///
/// Both are strings in JSON, so one that is read back is words: nothing runs a command that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WayBack {
    /// Words of the program's own.
    Words(Cow<'static, str>),
    /// A command.
    Command(CommandLine),
}

impl Deref for WayBack {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            WayBack::Words(words) => words,
            WayBack::Command(line) => line,
        }
    }
}

impl Display for WayBack {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl PartialEq<&str> for WayBack {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl WayBack {
    /// The command, if it is one.
    #[must_use]
    pub fn command(&self) -> Option<&CommandLine> {
        match self {
            WayBack::Words(_) => None,
            WayBack::Command(line) => Some(line),
        }
    }
}

/// The last part of a path, as a name for files beside it; `disk` where nothing is left.
#[must_use]
pub fn file_name(path: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "_.-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let last: String = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or("")
        .chars()
        .map(plain)
        .collect();
    if last.is_empty() || last.starts_with('-') {
        format!("disk{last}")
    } else {
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{KERNEL_DEVICE, ZFS};

    fn line(command: Command) -> String {
        command.line().expect("a command").to_string()
    }

    #[test]
    fn words_are_quoted_where_they_need_it() {
        for (word, typed) in [
            ("--grid", "--grid"),
            ("4k@512", "4k@512"),
            ("/srv/a b", "'/srv/a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$HOME", "'$HOME'"),
            ("~", "'~'"),
            ("=ls", "'=ls'"),
            ("ü", "'ü'"),
        ] {
            assert_eq!(line(Command::new("x").arg(word)), format!("x {typed}"));
        }
    }

    #[test]
    fn forms_of_the_shell() {
        let list = || Command::new("sfdisk -d").path("/dev/a b");
        for (command, text) in [
            (list().to_file("-x y"), "sfdisk -d '/dev/a b' > './-x y'"),
            (
                list().or(Command::echo("no label")),
                "sfdisk -d '/dev/a b' || echo 'no label'",
            ),
            (Command::echo("-n"), r"printf '%s\n' -n"),
            (
                Command::echo("1").pipe(Command::new("x").from_file("f")),
                "echo 1 | x < f",
            ),
            (
                Command::new("a")
                    .and(Command::new("b"))
                    .then(Command::new("c")),
                "a && b; c",
            ),
            (
                Command::new("a").group(Command::new("b")).to_file("f"),
                "{ a; b; } > f",
            ),
            (Command::new("x").variable("1:", "type"), "x 1:\"$type\""),
            (
                Command::set("v", list()).then(Command::new("y")),
                "v=$(sfdisk -d '/dev/a b'); y",
            ),
            (
                Command::new("x").output_of(list()),
                "x \"$(sfdisk -d '/dev/a b')\"",
            ),
            (
                Command::new("plumb")
                    .option("--yes", "-a")
                    .option("--to", "b c"),
                "plumb --yes=-a --to 'b c'",
            ),
            (
                Command::new("zfs get").named(ZFS, "", "t/a b", "@now"),
                "zfs get 't/a b@now'",
            ),
            (Command::new("a").remark("then wait"), "a    # then wait"),
        ] {
            assert_eq!(line(command), text);
        }
    }

    #[test]
    fn names_that_cannot_be_typed_give_no_command() {
        let why = |command: Command| command.line().expect_err("no command");
        for letter in [
            '\n', '\r', '\0', '\t', '\x1b', '\u{9b}', '\u{85}', '\u{2028}', '\u{202e}', '\u{200b}',
        ] {
            let name = format!("a{letter}b");
            let hidden = NoCommand::Hidden {
                word: name.clone(),
                letter,
            };
            assert_eq!(why(Command::new("x").path(&name)), hidden);
            assert_eq!(why(Command::new("x").named(ZFS, "", &name, "")), hidden);
            assert_eq!(why(Command::new("x").to_file(&name)), hidden);
            let inside = Command::new("x").arg(&name);
            assert_eq!(why(Command::new("y").output_of(inside.clone())), hidden);
            assert_eq!(why(Command::new("y").and(inside)), hidden);
            assert!(!hidden.to_string().contains(letter), "{hidden}");
        }
        let lost = String::from_utf8_lossy(b"a\xff").into_owned();
        assert_eq!(
            why(Command::new("x").arg(&lost)),
            NoCommand::NotText { word: lost }
        );
        for refused in [
            Command::new("x").path(""),
            Command::new("x").operand("-a"),
            Command::new("x").operand(""),
            Command::new("x").name(ZFS, "-t"),
            Command::new("x").named(KERNEL_DEVICE, "/sys/block/", "..", "/queue"),
        ] {
            assert!(matches!(why(refused), NoCommand::NotTaken { .. }));
        }
        assert_eq!(
            why(Command::new("x").name(ZFS, "a;b")).to_string(),
            "no command is given: found \"a;b\" as the name of a pool or data set of ZFS, expected a letter first, then \
             letters, digits, blanks and - _ . : /"
        );
    }

    #[test]
    fn names_of_files_hold_nothing_odd() {
        for (path, name) in [
            ("/dev/sdb", "sdb"),
            ("/dev/md/dsk/d1", "d1"),
            ("", "disk"),
            ("/dev/-n", "disk-n"),
            ("a b/", "a-b"),
        ] {
            assert_eq!(file_name(path), name);
        }
    }
}
