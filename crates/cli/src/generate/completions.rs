//! Completions for bash, zsh and fish: those that `clap_complete` makes of the flags, and the devices of the host if a command
//! takes one. Names of findings are values of an argument, so `clap_complete` has them for bash and zsh, except for `--ignore`, whose value can
//! continue with a device.

use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_complete::{Generator, Shell};
use plumb_model::rule::RULES;

use super::FilesToWrite;
use crate::cli::Cli;

/// Value names of arguments that take a device of this host.
const DEVICES: [&str; 3] = ["DEVICE", "TARGET", "PARTITION"];

/// Adds `completions/*`.
pub fn add(files: &mut FilesToWrite) {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "plumb", &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let text = match shell {
            Shell::Bash => bash(&text),
            Shell::Zsh => zsh(&text),
            _ => fish(&text),
        };
        let path = Path::new("completions").join(shell.file_name("plumb"));
        files.insert(path, text);
    }
}

/// Words of each command that takes a device as an operand.
fn with_devices() -> Vec<String> {
    fn add(command: &Command, path: &str, all: &mut Vec<String>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{path} {}", sub.get_name());
            if sub.get_positionals().any(is_device) {
                all.push(path.trim_start().to_owned());
            }
            add(sub, &path, all);
        }
    }
    let mut all = Vec::new();
    add(&Cli::command(), "", &mut all);
    all
}

fn is_device(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().any(|name| DEVICES.contains(&name.as_str()))
}

fn rules() -> String {
    let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    names.join(" ")
}

/// Names of all commands, for `plumb help`.
fn commands_of_help() -> String {
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let names: Vec<&str> = shown.map(Command::get_name).collect();
    names.join(" ")
}

/// A function around the one of `clap_complete`. Words that begin with a slash are paths, which bash completes itself.
fn bash(text: &str) -> String {
    let commands: Vec<String> = with_devices()
        .iter()
        .map(|words| format!("\"{words}\""))
        .collect();
    let wrapper = format!(
        r#"
# Devices of this host, and names of findings.
_plumb_with_names() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
    local command="${{COMP_WORDS[1]}}" device
    _plumb "$@"
    if [[ $prev == --ignore ]]; then
        COMPREPLY=($(compgen -W "{rules}" -- "$cur"))
        return
    fi
    case "$command" in plan|fix) command+=" ${{COMP_WORDS[2]}}" ;; esac
    [[ $cur == -* || $cur == */* || $prev == --* ]] && return
    case "$command" in
        help)
            COMPREPLY=($(compgen -W "{all}" -- "$cur"))
            ;;
        {commands})
            for device in /sys/class/block/*; do
                device=${{device##*/}}
                [[ $device != '*' && $device == "$cur"* ]] && COMPREPLY+=("$device")
            done
            ;;
    esac
}}
"#,
        rules = rules(),
        all = commands_of_help(),
        commands = commands.join("|"),
    );
    let (before, complete) = split_at_last(text, "\nif [[ \"${BASH_VERSINFO[0]}\" -eq 4");
    let complete = complete.replace("complete -F _plumb ", "complete -F _plumb_with_names ");
    before.to_owned() + &wrapper + &complete
}

/// Operands that are devices complete by a function, and others by files as before.
fn zsh(text: &str) -> String {
    let function = r#"
# Devices of this host, or a path.
_plumb_devices() {
    local -a names
    names=(/sys/class/block/*(N:t))
    _alternative 'devices:device:compadd -a names' 'files:file:_files'
}
"#;
    let mut lines = String::new();
    for line in text.lines() {
        let is_operand = ["target", "targets", "device", "devices", "partition"]
            .iter()
            .any(|name| {
                [":", "::", "*::"]
                    .iter()
                    .any(|colons| line.starts_with(&format!("'{colons}{name} -- ")))
            });
        let line = match line {
            line if is_operand => line
                .replace(":_files'", ":_plumb_devices'")
                .replace(":_default'", ":_plumb_devices'"),
            line if line.starts_with("'*::command -- ") => {
                line.replace(":_default'", &format!(":({})'", commands_of_help()))
            }
            line if line.starts_with("'*--ignore=[") => {
                line.replace(":_default'", &format!(":({})'", rules()))
            }
            line => line.to_owned(),
        };
        lines += &line;
        lines.push('\n');
    }
    let (before, after) = split_at_last(&lines, "\nif [ \"$funcstack[1]\"");
    before.to_owned() + function + after
}

fn fish(text: &str) -> String {
    let mut text = text.to_owned();
    text += "\n# Devices of this host.\nfunction __fish_plumb_devices\n    for device in /sys/class/block/*\n        \
             string replace -r '.*/' '' $device\n    end\nend\n\n";
    for words in with_devices() {
        let condition = match words.split_once(' ') {
            None => format!("__fish_plumb_using_subcommand {words}"),
            Some((command, below)) => format!(
                "__fish_plumb_using_subcommand {command}; and __fish_seen_subcommand_from {below}"
            ),
        };
        text += &format!(
            "complete -c plumb -n \"{condition}\" -a \"(__fish_plumb_devices)\" -d 'Device'\n"
        );
    }
    // `clap_complete` has no values of operands for fish.
    for (command, operands) in [("help", commands_of_help()), ("explain", rules())] {
        text += &format!(
            "complete -c plumb -n \"__fish_plumb_using_subcommand {command}\" -f -a \"{operands}\"\n"
        );
    }
    for command in ["check", "diagnose"] {
        text += &format!(
            "complete -c plumb -n \"__fish_plumb_using_subcommand {command}\" -l ignore -x -a \"{}\"\n",
            rules()
        );
    }
    text
}

/// A text before and from the last place of some words; the whole of it before where they are missing.
fn split_at_last<'a>(text: &'a str, words: &str) -> (&'a str, &'a str) {
    text.split_at(text.rfind(words).unwrap_or(text.len()))
}
