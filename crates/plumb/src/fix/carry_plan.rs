//! `plumb fix plan`: carries out what a plan says, as far as it can be done here: a hint to a file system, a label, a move.
//! What it cannot do is printed. Afterwards the layout is checked again.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Parser;
use plumb_geometry::Bytes;
use plumb_relocate::labels::kernel::node_of;
use serde_json::Value;
use thiserror::Error;

use super::{from_plan, moving, relabel};
use crate::cli::fix::{Act, FromPlan, Journal, Move, NewLabelKind, Relabel, Save};
use crate::cli::{self, Cli};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{check, output};

/// What is done for one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// A partition goes to another start with its data.
    Move { node: PathBuf, to: Bytes },
    /// A disk that is empty gets a label, or another start.
    Relabel { device: PathBuf, start: Bytes, len: Option<Bytes>, number: Option<u32> },
    /// A file system is told of its stripe: commands in their order.
    Tune { device: PathBuf, commands: Vec<Vec<String>> },
    /// Nothing of it can be done here.
    Print,
}

/// A command that did not do it.
#[derive(Debug, Error)]
#[error("{command}: {why}")]
struct NotTuned {
    command: String,
    why: String,
}

/// Runs the command.
///
/// # Errors
/// When the file is no plan, or something that is to be done cannot be.
pub fn run(args: &FromPlan) -> Result<Exit, Failure> {
    let plans = from_plan::plans(&args.file)?;
    let actions: Vec<(&Value, Action)> = plans.iter().map(|plan| (plan, Action::of(plan))).collect();
    let is_meant = |action: &Action| args.yes.as_deref().is_some_and(|yes| action.is_named(yes));
    if let Some(yes) = args.yes.as_deref().filter(|_| !actions.iter().any(|(_, action)| is_meant(action))) {
        let names: Vec<String> = actions.iter().filter_map(|(_, action)| action.name()).collect();
        let names = if names.is_empty() {
            "nothing: no plan can be carried out".to_owned()
        } else {
            names.join(" or ")
        };
        return Err(Failure::usage(format!("--yes: found `{yes}`, expected {names}")));
    }
    let mut exit = Exit::Clean;
    for (plan, action) in actions {
        output::print(&format!("{}\n", plan["title"].as_str().unwrap_or("a plan without a title")))?;
        let yes = args.yes.clone().filter(|_| is_meant(&action));
        let is_done = yes.is_some();
        let ended = action.carry_out(plan, yes, &args.journal)?;
        if ended != Exit::Clean {
            exit = ended;
        } else if let Some(node) = action.checked().filter(|_| is_done) {
            exit = check_again(&node)?;
        }
    }
    Ok(exit)
}

/// What `plumb check` says now.
fn check_again(node: &Path) -> Result<Exit, Failure> {
    let typed = ["plumb".as_ref(), "check".as_ref(), node.as_os_str()];
    match Cli::try_parse_from(typed).map(|cli| cli.command) {
        Ok(cli::Command::Check(args)) => check::run(&args),
        _ => Err(Failure::usage(format!("{}: found no name that can be checked", node.display()))),
    }
}

impl Action {
    fn of(plan: &Value) -> Action {
        let Some(device) = plan["subject"]["device"].as_str().map(PathBuf::from) else {
            return Action::Print;
        };
        if !plan["refusal"].is_null() {
            return Action::Print;
        }
        match plan["kind"].as_str() {
            Some("partition") => Action::of_partition(plan, device),
            Some("filesystem") => Action::of_file_system(plan, device),
            _ => Action::Print,
        }
    }

    fn of_partition(plan: &Value, device: PathBuf) -> Action {
        let figure = |name| from_plan::figure(plan, name);
        let number = plan["subject"]["number"].as_u64().and_then(|number| u32::try_from(number).ok());
        let (Some(start), current) = (figure("start_bytes"), figure("current_bytes")) else {
            return Action::Print;
        };
        match (current, number) {
            // Nodes of Solaris are of its own systems.
            (Some(current), Some(number)) if current != start && device.starts_with("/dev") => {
                Action::Move { node: node_of(&device, number), to: start }
            }
            (Some(_), _) => Action::Print,
            (None, number) => Action::Relabel { device, start, len: figure("len_bytes"), number },
        }
    }

    /// The first way that harms least, where it is one that is known here word by word: a file is not trusted to hold
    /// commands.
    fn of_file_system(plan: &Value, device: PathBuf) -> Action {
        let remedies = plan["remedies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let tunes = remedies.iter().filter(|remedy| remedy["harm"] == "tune");
        let steps = tunes.filter_map(|remedy| remedy["steps"].as_array()).flatten();
        let mut known = steps.filter_map(|step| known_tuning(step["command"].as_str()?, &device));
        known.next().map_or(Action::Print, |commands| Action::Tune { device, commands })
    }

    /// What `--yes` has to be for it.
    fn name(&self) -> Option<String> {
        let node = match self {
            Action::Move { node, .. } => node,
            Action::Relabel { device, .. } | Action::Tune { device, .. } => device,
            Action::Print => return None,
        };
        Some(node.file_name()?.to_string_lossy().into_owned())
    }

    fn is_named(&self, yes: &str) -> bool {
        self.name().is_some_and(|name| name == yes || yes.strip_prefix("/dev/") == Some(&name))
    }

    /// What is looked at again.
    fn checked(&self) -> Option<PathBuf> {
        match self {
            Action::Move { node, .. } => Some(node.clone()),
            Action::Relabel { device, .. } | Action::Tune { device, .. } => {
                Some(device.clone()).filter(|device| device.starts_with("/dev"))
            }
            Action::Print => None,
        }
    }

    fn carry_out(&self, plan: &Value, yes: Option<String>, journal: &Journal) -> Result<Exit, Failure> {
        let act = Act { yes, json: false };
        match self {
            Action::Move { node, to } => moving::run(&Move {
                partition: node.clone(),
                to: Some(*to),
                aligned: false,
                journal: journal.clone(),
                scan: false,
                act,
            }),
            Action::Relabel { device, start, len, number } => relabel::run(&Relabel {
                device: device.clone(),
                start: Some(*start),
                plan: None,
                size: *len,
                number: *number,
                label: NewLabelKind::Gpt,
                new_label: false,
                geometry: None,
                sector: None,
                act,
                save: Save { save: None },
            }),
            Action::Tune { commands, .. } => tune(commands, act.yes.is_some()),
            Action::Print => by_hand(plan),
        }
    }
}

/// Commands as a plan prints them, taken apart; `None` for any other.
fn known_tuning(command: &str, device: &Path) -> Option<Vec<Vec<String>>> {
    let device = device.to_str()?;
    let words: Vec<&str> = command.split(' ').collect();
    let is_numbers = |options: &str, names: [&str; 2]| {
        let parts: Vec<&str> = options.split(',').collect();
        let fits = |(part, name): (&&str, &str)| {
            let number = part.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
            number.is_some_and(|number| number.parse::<u64>().is_ok())
        };
        parts.len() == 2 && parts.iter().zip(names).all(fits)
    };
    let is_plain = |path: &str| path.starts_with('/') && !path.contains('\'');
    match words[..] {
        ["tune2fs", "-E", options, on] if on == device && is_plain(on) => {
            let is_known = is_numbers(options, ["stride", "stripe_width"]);
            is_known.then(|| vec![words.iter().map(|word| (*word).to_owned()).collect()])
        }
        ["umount", at, "&&", "mount", "-o", options, on, again] if on == device && at == again => {
            let is_known = is_numbers(options, ["sunit", "swidth"]) && is_plain(on) && is_plain(at);
            let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            is_known.then(|| vec![owned(&["umount", at]), owned(&["mount", "-o", options, on, at])])
        }
        _ => None,
    }
}

fn tune(commands: &[Vec<String>], is_wanted: bool) -> Result<Exit, Failure> {
    for command in commands {
        let shown = plumb_plan::shell::words(command.iter().map(String::as_str));
        output::print(&format!("  {shown}\n"))?;
        let Some((program, arguments)) = command.split_first().filter(|_| is_wanted) else { continue };
        let failed = |why: String| Failure::failed(&NotTuned { command: shown.clone(), why });
        let ended =
            Command::new(program).args(arguments).status().map_err(|error| failed(error.to_string()))?;
        if !ended.success() {
            return Err(failed(ended.to_string()));
        }
    }
    if !is_wanted {
        output::print("nothing was done: --yes with the name of the device does it\n")?;
    }
    Ok(Exit::Clean)
}

/// The commands of the way that harms least.
fn by_hand(plan: &Value) -> Result<Exit, Failure> {
    if let Some(why) = plan["refusal"].as_str() {
        output::print(&format!("  no way: {why}\n"))?;
        return Ok(Exit::Unknown);
    }
    let Some(remedy) = plan["remedies"].get(0) else {
        output::print("  nothing to be done\n")?;
        return Ok(Exit::Clean);
    };
    output::print("  not done by plumb; by hand:\n")?;
    for step in remedy["steps"].as_array().into_iter().flatten() {
        for line in step["command"].as_str().unwrap_or_default().lines() {
            output::print(&format!("    {}\n", plumb_report::text::tame(line)))?;
        }
    }
    Ok(Exit::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_commands_are_run() {
        let device = Path::new("/dev/md0");
        let known = |command: &str| known_tuning(command, device).map(|commands| commands.len());
        assert_eq!(known("tune2fs -E stride=16,stripe_width=48 /dev/md0"), Some(1));
        assert_eq!(known("umount /srv && mount -o sunit=128,swidth=384 /dev/md0 /srv"), Some(2));
        for other in [
            "tune2fs -E stride=16,stripe_width=48 /dev/md1",
            "tune2fs -E stride=16,stripe_width=48;reboot /dev/md0",
            "tune2fs -O ^has_journal /dev/md0",
            "umount /srv && mount -o sunit=128,exec /dev/md0 /srv",
            "umount /srv && mount -o sunit=128,swidth=384 /dev/md0 /etc",
            "rm -rf /dev/md0",
            "",
        ] {
            assert_eq!(known(other), None, "{other}");
        }
    }
}
