//! The command line that was typed, to be typed again.

use std::ffi::OsString;

use plumb_quoting::Command;

/// The same command.
pub fn again() -> Command {
    add(Command::new("plumb"), words())
}

/// The same command, with all permissions. The program goes by the path that was typed: `sudo` has a `PATH` of its own.
pub fn as_root() -> Command {
    let program = std::env::args_os().next();
    let sudo = Command::new("sudo").path(program.unwrap_or_else(|| "plumb".into()));
    add(sudo, words())
}

/// The same command, with the name that makes it act. A flag that prints JSON is for programs, and left out.
pub fn with_yes(name: &str) -> Command {
    let typed = words().filter(|word| word != "--json");
    // Behind two hyphens there are no options.
    let (options, rest) = split_at_hyphens(typed.collect());
    let options = add(Command::new("plumb"), options.into_iter());
    add(options.option("--yes", name), rest.into_iter())
}

/// The same command, for the foot of a page.
pub fn for_page() -> String {
    let line = again().line();
    line.map_or_else(|why| why.to_string(), |line| line.to_string())
}

fn words() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1)
}

fn add(command: Command, words: impl Iterator<Item = OsString>) -> Command {
    words.fold(command, |command, word| command.arg(word.to_string_lossy()))
}

fn split_at_hyphens(mut words: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>) {
    let at = words.iter().position(|word| word == "--");
    let rest = words.split_off(at.unwrap_or(words.len()));
    (words, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_two_hyphens() {
        let words = |text: &str| {
            text.split_whitespace()
                .map(OsString::from)
                .collect::<Vec<_>>()
        };
        for (typed, options, rest) in [
            ("fix move sda1 --to 8s", "fix move sda1 --to 8s", ""),
            ("fix move --to 8s -- -a", "fix move --to 8s", "-- -a"),
        ] {
            assert_eq!(
                split_at_hyphens(words(typed)),
                (words(options), words(rest))
            );
        }
    }
}
