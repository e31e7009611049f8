//! `plumb help`: the help of a command, as `--help` prints it.

use crate::cli::{HelpOf, lines, manual};
use crate::config::one_of;
use crate::exit::Exit;
use crate::explain;
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// When there is no such command.
pub fn run(args: &HelpOf) -> Result<Exit, Failure> {
    let mut command = manual::command();
    // Usage lines then have the whole name of a command.
    command.build();
    for name in &args.command {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| unknown(&command, name))?;
    }
    explain::show(&lines::help(&command.render_long_help().to_string()))?;
    Ok(Exit::Clean)
}

fn unknown(command: &clap::Command, name: &str) -> Failure {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    let found = format!("found `{name}`, expected a command");
    match names.is_empty() {
        true => Failure::usage(format!(
            "{found} of plumb: `{}` has none",
            command.get_name()
        )),
        false => Failure::usage(format!("{found}: {}", one_of("one of", &names, name))),
    }
}
