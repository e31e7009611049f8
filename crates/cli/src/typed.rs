//! The command line that was typed, to be typed again.

use std::ffi::OsString;

use plumb_quoting::Command;

use crate::this_run;

/// The same command.
pub fn again() -> Command {
    add(Command::new("plumb"), words())
}

/// The same command, with all permissions; `None` if it had them and was refused all the same. The program goes by the path that
/// was typed: `sudo` has a `PATH` of its own.
pub fn as_root() -> Option<Command> {
    if this_run::is_by_root() {
        return None;
    }
    let program = std::env::args_os().next();
    let sudo = Command::new("sudo").path(program.unwrap_or_else(|| "plumb".into()));
    Some(add(sudo, words()))
}

/// The same command, with the name that makes it act. A flag that prints JSON is for programs, and left out.
pub fn with_yes(name: &str) -> Command {
    let typed = words().filter(|word| word != "--json");
    // Behind two hyphens there are no options.
    let (options, rest) = split_at_hyphens(typed.collect());
    let options = add(Command::new("plumb"), options.into_iter());
    add(options.option("--yes", name), rest.into_iter())
}

/// The same command without some flags, and without some options and their values.
pub fn without(flags: &[&str], options: &[&str]) -> Command {
    add(
        Command::new("plumb"),
        kept(words(), flags, options).into_iter(),
    )
}

fn kept(words: impl Iterator<Item = OsString>, flags: &[&str], options: &[&str]) -> Vec<OsString> {
    let (mut kept, mut is_value, mut is_operand) = (Vec::new(), false, false);
    for word in words {
        let text = word.to_string_lossy();
        is_operand |= text == "--";
        let is_left_out = !is_operand
            && (is_value
                || flags.contains(&text.as_ref())
                || options.contains(&text.as_ref())
                || options.iter().any(|option| {
                    text.strip_prefix(option)
                        .is_some_and(|rest| rest.starts_with('='))
                }));
        is_value = !is_value && options.contains(&text.as_ref());
        if !is_left_out {
            kept.push(word);
        }
    }
    // More options may follow, and none behind two hyphens.
    let (mut options, rest) = split_at_hyphens(kept);
    let operands =
        rest.into_iter()
            .skip(1)
            .map(|word| match word.to_string_lossy().starts_with('-') {
                true => OsString::from(format!("./{}", word.to_string_lossy())),
                false => word,
            });
    options.extend(operands);
    options
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

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn options_can_be_left_out() {
        for (typed, left) in [
            ("analyze a --json --shift +1s", "analyze a"),
            ("analyze --shift=+1s --html p.html a -b", "analyze a -b"),
            ("analyze --grid 4k -- -a b", "analyze --grid 4k ./-a b"),
        ] {
            let kept = kept(
                words(typed).into_iter(),
                &["--json"],
                &["--html", "--shift"],
            );
            assert_eq!(kept, words(left), "{typed}");
        }
    }

    #[test]
    fn options_come_before_two_hyphens() {
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
