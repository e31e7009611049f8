//! `plumb fix plan`: carries out what a plan says, as far as it can be done here: a hint to a file system, a label, a move.
//! What it cannot do is printed. Afterwards the layout is checked again, and measured where that was asked for.

use std::path::{Path, PathBuf};

use clap::Parser;
use plumb_geometry::Bytes;
use plumb_quoting::Command;
use plumb_relocate::labels::kernel::node_of;
use plumb_sys::Access;
use serde_json::Value;

use super::from_plan::{self, Stated, Wanted};
use super::subject::Subject;
use super::tune::Tuning;
use super::{moving, relabel, unfinished};
use crate::cli::fix::{Act, FromPlan, Journal, Move, Relabel, Save};
use crate::cli::{self, Cli};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{check, output, probe};

/// What is done for one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PlanAction {
    /// A partition goes to another start with its data.
    Move {
        node: PathBuf,
        to: Bytes,
        stated: Stated,
    },
    /// A disk that is empty gets a label, or another start.
    Relabel {
        device: PathBuf,
        start: Bytes,
        wanted: Wanted,
    },
    /// A file system is told of its stripe.
    Tune { device: PathBuf, tuning: Tuning },
    /// Nothing of it can be done here.
    Print,
}

/// Runs the command.
///
/// # Errors
/// When the file is no plan, or something that is to be done cannot be.
pub fn run(args: &FromPlan) -> Result<Exit, Failure> {
    let plans = from_plan::plans(&args.file)?;
    let actions: Vec<(&Value, PlanAction)> = plans
        .iter()
        .map(|plan| (plan, PlanAction::from_plan(plan)))
        .collect();
    let is_meant =
        |action: &PlanAction| args.yes.as_deref().is_some_and(|yes| action.is_named(yes));
    if let Some(yes) = args
        .yes
        .as_deref()
        .filter(|_| !actions.iter().any(|(_, action)| is_meant(action)))
    {
        let names: Vec<String> = actions
            .iter()
            .filter_map(|(_, action)| action.name())
            .collect();
        let names = if names.is_empty() {
            "nothing: no plan can be carried out".to_owned()
        } else {
            names.join(" or ")
        };
        return Err(Failure::usage(format!(
            "--yes: found `{yes}`, expected {names}"
        )));
    }
    let mut exit = Exit::Clean;
    for (plan, action) in actions {
        output::print_line(plan["title"].as_str().unwrap_or("a plan without a title"))?;
        let yes = args.yes.clone().filter(|_| is_meant(&action));
        let is_done = yes.is_some();
        let ended = action.carry_out(plan, yes, &args.journal)?;
        exit = graver(exit, ended);
        if ended != Exit::Clean {
            continue;
        }
        for (what, node) in action.looks(args.probe) {
            if is_done {
                exit = graver(exit, look(what, &node)?);
            } else {
                output::print_line(&format!("and afterwards: {}", look_command(what, &node)))?;
            }
        }
    }
    Ok(exit)
}

/// Of two ends the one that is told: what is incomplete or failed before what was found, and that before what is unknown.
fn graver(one: Exit, other: Exit) -> Exit {
    const ORDER: [Exit; 8] = [
        Exit::Usage,
        Exit::NotPermitted,
        Exit::Failed,
        Exit::Incomplete,
        Exit::Lost,
        Exit::Findings,
        Exit::Unknown,
        Exit::Clean,
    ];
    ORDER
        .into_iter()
        .find(|exit| [one, other].contains(exit))
        .unwrap_or(Exit::Clean)
}

/// The command that looks at a device, or the reason why its name gives none.
fn look_command(what: &'static str, node: &Path) -> String {
    let line = Command::new("plumb").flags(what).path(node).line();
    line.map_or_else(|why| why.to_string(), |line| line.to_string())
}

/// What a command says of a device now.
fn look(what: &'static str, node: &Path) -> Result<Exit, Failure> {
    output::print("\n")?;
    output::print_line(&look_command(what, node))?;
    let typed = ["plumb".as_ref(), what.as_ref(), node.as_os_str()];
    match Cli::try_parse_from(typed).map(|cli| cli.command) {
        Ok(cli::Command::Check(args)) => check::run(&args),
        Ok(cli::Command::Probe(args)) => probe::run(&args),
        _ => Err(Failure::usage(format!(
            "{}: found no name that can be looked at",
            node.display()
        ))),
    }
}

impl PlanAction {
    fn from_plan(plan: &Value) -> PlanAction {
        let Some(device) = plan["subject"]["device"].as_str().map(PathBuf::from) else {
            return PlanAction::Print;
        };
        if !plan["refusal"].is_null() {
            return PlanAction::Print;
        }
        match plan["kind"].as_str() {
            Some("partition") => PlanAction::of_partition(plan, device),
            Some("filesystem") => PlanAction::of_file_system(plan, device),
            _ => PlanAction::Print,
        }
    }

    fn of_partition(plan: &Value, device: PathBuf) -> PlanAction {
        let figure = |name| from_plan::figure(plan, name);
        let number = plan["subject"]["number"]
            .as_u64()
            .and_then(|number| u32::try_from(number).ok());
        let (Some(start), current) = (figure("start_bytes"), figure("current_bytes")) else {
            return PlanAction::Print;
        };
        match (current, number) {
            // What can go on being used while it moves is better than what cannot.
            (Some(_), _) if plan["remedies"][0]["harm"] == "online" => PlanAction::Print,
            // Nodes of Solaris are of its own systems.
            (Some(current), Some(number)) if current != start && device.starts_with("/dev") => {
                let node = node_of(&device, number);
                PlanAction::Move {
                    node,
                    to: start,
                    stated: Stated::from_plan(plan),
                }
            }
            (Some(_), _) => PlanAction::Print,
            (None, _) => PlanAction::Relabel {
                device,
                start,
                wanted: Wanted::from_plan(plan),
            },
        }
    }

    /// The first way that harms least, where it is one that is known.
    fn of_file_system(plan: &Value, device: PathBuf) -> PlanAction {
        let remedies = plan["remedies"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let tunes = remedies.iter().filter(|remedy| remedy["harm"] == "tune");
        let steps = tunes
            .filter_map(|remedy| remedy["steps"].as_array())
            .flatten();
        let mut known = steps.filter_map(|step| Tuning::known(step["command"].as_str()?, &device));
        known
            .next()
            .map_or(PlanAction::Print, |tuning| PlanAction::Tune {
                device,
                tuning,
            })
    }

    /// What `--yes` has to be for it.
    fn name(&self) -> Option<String> {
        let node = match self {
            PlanAction::Move { node, .. } => node,
            PlanAction::Relabel { device, .. } | PlanAction::Tune { device, .. } => device,
            PlanAction::Print => return None,
        };
        Some(node.file_name()?.to_string_lossy().into_owned())
    }

    fn is_named(&self, yes: &str) -> bool {
        self.name()
            .is_some_and(|name| name == yes || yes.strip_prefix("/dev/") == Some(&name))
    }

    /// What is looked at afterwards: commands, and what each is given.
    fn looks(&self, is_probed: bool) -> Vec<(&'static str, PathBuf)> {
        let (checked, probed) = match self {
            PlanAction::Move { node, .. } => (node.clone(), node.clone()),
            PlanAction::Relabel { device, wanted, .. } => {
                (device.clone(), node_of(device, wanted.number.unwrap_or(1)))
            }
            PlanAction::Tune { device, .. } => (device.clone(), device.clone()),
            PlanAction::Print => return Vec::new(),
        };
        let looks = [
            Some(("check", checked)),
            is_probed.then_some(("probe", probed)),
        ];
        looks
            .into_iter()
            .flatten()
            .filter(|(_, node)| node.starts_with("/dev"))
            .collect()
    }

    fn carry_out(
        &self,
        plan: &Value,
        yes: Option<String>,
        journal: &Journal,
    ) -> Result<Exit, Failure> {
        let act = Act {
            yes,
            ignore_marker: None,
            json: false,
        };
        match self {
            PlanAction::Move { node, to, stated } => {
                must_be_as_stated(stated)?;
                moving::run(&Move {
                    partition: node.clone(),
                    to: Some(*to),
                    aligned: false,
                    journal: journal.clone(),
                    scan: false,
                    scan_write: false,
                    act,
                })
            }
            PlanAction::Relabel {
                device,
                start,
                wanted,
            } => relabel::run(&Relabel {
                device: device.clone(),
                start: Some(*start),
                plan: None,
                size: wanted.len,
                number: wanted.number,
                label: wanted.new_label,
                new_label: wanted.new_label.is_some(),
                geometry: None,
                sector: None,
                act,
                save: Save { save: None },
            }),
            PlanAction::Tune { tuning, .. } => tuning.carry_out(act.yes.is_some()),
            PlanAction::Print => by_hand(plan),
        }
    }
}

/// That the partition is where the plan says, on the plan's own disk.
fn must_be_as_stated(stated: &Stated) -> Result<(), Failure> {
    let Some(device) = &stated.device else {
        return Ok(());
    };
    let subject = Subject::open(device, Access::Read)?;
    let label = subject.label()?;
    unfinished::must_be_none(&subject, label.as_ref(), None)?;
    Ok(stated.must_be_in(label.as_ref(), &subject)?)
}

/// The commands of the way that harms least.
fn by_hand(plan: &Value) -> Result<Exit, Failure> {
    if let Some(why) = plan["refusal"].as_str() {
        output::print_line(&format!("  no way: {why}"))?;
        return Ok(Exit::Unknown);
    }
    let Some(remedy) = plan["remedies"].get(0) else {
        output::print("  nothing to be done\n")?;
        return Ok(Exit::Clean);
    };
    output::print("  not done by plumb; by hand:\n")?;
    for step in remedy["steps"].as_array().into_iter().flatten() {
        output::print_line(&format!(
            "    {}",
            step["command"].as_str().unwrap_or_default()
        ))?;
    }
    Ok(Exit::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graver_end_is_told() {
        for (one, other, told) in [
            (Exit::Clean, Exit::Clean, Exit::Clean),
            (Exit::Unknown, Exit::Clean, Exit::Unknown),
            (Exit::Unknown, Exit::Findings, Exit::Findings),
            (Exit::Findings, Exit::Incomplete, Exit::Incomplete),
            (Exit::Findings, Exit::Lost, Exit::Lost),
            (Exit::Lost, Exit::Incomplete, Exit::Incomplete),
            (Exit::Incomplete, Exit::Failed, Exit::Failed),
        ] {
            assert_eq!((graver(one, other), graver(other, one)), (told, told));
        }
    }

    /// A volume group that can be moved while it is in use is not taken out of use.
    #[test]
    fn what_can_be_moved_in_use_is_left_to_its_manager() {
        let plan = |harm: &str| {
            serde_json::json!({
                "kind": "partition",
                "subject": {"device": "/dev/sdb", "number": 1},
                "target": [{"name": "start_bytes", "value": 1_048_576}, {"name": "current_bytes", "value": 17_408}],
                "remedies": [{"harm": harm, "steps": []}, {"harm": "shift", "steps": []}],
            })
        };
        let (to, node, stated) = (
            Bytes(1_048_576),
            PathBuf::from("/dev/sdb1"),
            Stated::from_plan(&plan("recreate")),
        );
        assert_eq!(
            (stated.number, stated.current),
            (Some(1), Some(Bytes(17_408)))
        );
        assert_eq!(
            PlanAction::from_plan(&plan("recreate")),
            PlanAction::Move { node, to, stated }
        );
        assert_eq!(PlanAction::from_plan(&plan("online")), PlanAction::Print);
    }
}
