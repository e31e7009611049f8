//! `plumb fix plan`: carries out the actions of a plan, or of the remedies of a check, as far as that can be done here: a move,
//! a label, a setting of a queue, a hint to a file system. It prints the others. Afterwards the layout is checked again, and
//! measured where that was asked for.

use std::path::{Path, PathBuf};

use clap::Parser;
use plumb_geometry::Bytes;
use plumb_model::action::QueueChange;
use plumb_model::{Action, Fix};
use plumb_quoting::Command;
use plumb_relocate::labels::kernel::node_of;
use plumb_sys::Access;
use serde::Deserialize;
use serde_json::Value;

use super::from_check::{self, JudgedHost, StatedRemedy};
use super::from_plan::{self, Stated, Wanted};
use super::subject::Subject;
use super::tune::Tuning;
use super::{backup_label, moving, queue, relabel, unfinished};
use crate::cli::fix::{Act, BackupLabel, FromPlan, Journal, Move, Relabel, Save};
use crate::cli::{self, Cli};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{check, output, probe};

/// The work for one plan or remedy.
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
    /// The broken or stranded copy of a GPT is written again.
    BackupLabel { device: PathBuf },
    /// A setting of a queue is changed.
    SetQueue {
        device: PathBuf,
        change: QueueChange,
    },
    /// Sets the stripe of a file system.
    Tune { device: PathBuf, tuning: Tuning },
    /// Nothing of it can be done here.
    Print,
}

/// One thing to do, and how it is shown.
struct FixJob {
    title: String,
    action: PlanAction,
    by_hand: ByHand,
}

/// The output for a job that is not done here.
enum ByHand {
    /// Commands.
    Commands(Vec<String>),
    /// Why there is no way.
    NoWay(String),
    /// There is nothing to do.
    Nothing,
}

/// Runs the command.
///
/// # Errors
/// When the file is no plan, is of another host or another day, or something that is to be done cannot be.
pub fn run(args: &FromPlan) -> Result<Exit, Failure> {
    let document = from_plan::document(&args.file)?;
    let schema = document["schema"].as_str().unwrap_or_default();
    let jobs = if schema.starts_with(from_check::SCHEMA) {
        of_check(args, &document)?
    } else {
        let plans = from_plan::plans_in(&args.file, &document)?;
        plans.iter().map(FixJob::from_plan).collect()
    };
    let is_meant = |job: &FixJob| {
        args.yes
            .as_deref()
            .is_some_and(|yes| job.action.is_named(yes))
    };
    if let Some(yes) = args.yes.as_deref().filter(|_| !jobs.iter().any(is_meant)) {
        let names: Vec<String> = jobs.iter().filter_map(|job| job.action.name()).collect();
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
    for job in jobs {
        output::print_line(&job.title)?;
        let yes = args.yes.clone().filter(|_| is_meant(&job));
        let is_done = yes.is_some();
        let ended = job.carry_out(yes, &args.journal)?;
        exit = graver(exit, ended);
        if ended != Exit::Clean {
            continue;
        }
        for (what, node) in job.action.looks(args.probe) {
            if is_done {
                exit = graver(exit, look(what, &node)?);
            } else {
                output::print_line(&format!("and afterwards: {}", look_command(what, &node)))?;
            }
        }
    }
    Ok(exit)
}

/// The recommended remedies of a check that are recommended on this host as well. With `--yes` only those for that device have
/// to be.
fn of_check(args: &FromPlan, document: &Value) -> Result<Vec<FixJob>, Failure> {
    let stated = from_check::remedies(&args.file, document)?;
    let host = JudgedHost::look(&stated)?;
    let mut jobs = Vec::new();
    for remedy in &stated {
        let is_asked = args.yes.as_deref().is_none_or(|yes| {
            let actions = remedy.actions.iter().map(PlanAction::from_action);
            actions.into_iter().any(|action| action.is_named(yes))
        });
        if !is_asked {
            continue;
        }
        let (actions, commands) = host.confirm(remedy)?;
        jobs.extend(FixJob::of_remedy(remedy, &actions, commands));
    }
    Ok(jobs)
}

/// The status of two that is reported: incomplete or failed before findings, and findings before unknown.
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

/// The result of a command about a device now.
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

impl FixJob {
    fn from_plan(plan: &Value) -> FixJob {
        FixJob {
            title: plan["title"]
                .as_str()
                .unwrap_or("a plan without a title")
                .to_owned(),
            action: PlanAction::from_plan(plan),
            by_hand: ByHand::from_plan(plan),
        }
    }

    /// A job for each action if all of them can be done here; else one that shows the commands for all.
    fn of_remedy(stated: &StatedRemedy, actions: &[Action], commands: &[Fix]) -> Vec<FixJob> {
        let title = format!(
            "{} of {}",
            stated.rule,
            plumb_quoting::visible(&stated.target.device)
        );
        let done: Vec<PlanAction> = actions.iter().map(PlanAction::from_action).collect();
        let by_hand = || {
            let lines = commands.iter().map(|fix| fix.command.to_string());
            ByHand::Commands(lines.collect())
        };
        if done.contains(&PlanAction::Print) {
            return vec![FixJob {
                title,
                action: PlanAction::Print,
                by_hand: by_hand(),
            }];
        }
        let job = |action| FixJob {
            title: title.clone(),
            action,
            by_hand: by_hand(),
        };
        done.into_iter().map(job).collect()
    }

    fn carry_out(&self, yes: Option<String>, journal: &Journal) -> Result<Exit, Failure> {
        match self.action {
            PlanAction::Print => self.by_hand.print(),
            _ => self.action.carry_out(yes, journal),
        }
    }
}

impl ByHand {
    /// The commands of the way that harms least, as the file has them: they are shown, and nothing runs them.
    fn from_plan(plan: &Value) -> ByHand {
        if let Some(why) = plan["refusal"].as_str() {
            return ByHand::NoWay(why.to_owned());
        }
        let Some(remedy) = plan["remedies"].get(0) else {
            return ByHand::Nothing;
        };
        let steps = remedy["steps"].as_array().into_iter().flatten();
        let commands = steps.filter_map(|step| step["command"].as_str());
        ByHand::Commands(commands.map(str::to_owned).collect())
    }

    fn print(&self) -> Result<Exit, Failure> {
        match self {
            ByHand::NoWay(why) => {
                output::print_line(&format!("  no way: {why}"))?;
                Ok(Exit::Unknown)
            }
            ByHand::Nothing => {
                output::print("  nothing to be done\n")?;
                Ok(Exit::Clean)
            }
            ByHand::Commands(commands) => {
                output::print("  not done by plumb; by hand:\n")?;
                for command in commands {
                    output::print_line(&format!("    {command}"))?;
                }
                Ok(Exit::Clean)
            }
        }
    }
}

impl PlanAction {
    /// How an action is carried out here.
    fn from_action(action: &Action) -> PlanAction {
        match action {
            Action::Move {
                partition,
                to_bytes,
            } => {
                let disk = PathBuf::from(&partition.disk.device);
                PlanAction::Move {
                    node: node_of(&disk, partition.number),
                    to: *to_bytes,
                    stated: Stated {
                        device: Some(disk),
                        number: Some(partition.number),
                        current: Some(partition.start_bytes),
                        len: partition.len_bytes,
                    },
                }
            }
            Action::Relabel {
                partition,
                to_bytes,
                len_bytes,
            } => PlanAction::Relabel {
                device: PathBuf::from(&partition.disk.device),
                start: *to_bytes,
                wanted: Wanted {
                    start: Some(*to_bytes),
                    len: len_bytes.or(partition.len_bytes),
                    number: Some(partition.number),
                    new_label: None,
                },
            },
            Action::BackupLabel { disk } => PlanAction::BackupLabel {
                device: PathBuf::from(&disk.device),
            },
            Action::SetQueue { disk, change } => PlanAction::SetQueue {
                device: PathBuf::from(&disk.device),
                change: change.clone(),
            },
            Action::TuneFileSystem { device, .. } => match Tuning::from_action(action) {
                Some(tuning) => PlanAction::Tune {
                    device: PathBuf::from(&device.device),
                    tuning,
                },
                None => PlanAction::Print,
            },
            _ => PlanAction::Print,
        }
    }

    fn from_plan(plan: &Value) -> PlanAction {
        let Some(device) = plan["subject"]["device"].as_str().map(PathBuf::from) else {
            return PlanAction::Print;
        };
        if !plan["refusal"].is_null() {
            return PlanAction::Print;
        }
        match plan["kind"].as_str() {
            Some("partition") => PlanAction::of_partition(plan, device),
            Some("filesystem") => PlanAction::of_file_system(plan),
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
            // A way that keeps data in use is better than others.
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

    /// The first way that only tunes.
    fn of_file_system(plan: &Value) -> PlanAction {
        let remedies = plan["remedies"].as_array().into_iter().flatten();
        let actions = remedies.filter_map(|remedy| remedy["actions"].as_array());
        let typed = actions.flatten().filter_map(|action| {
            let action = Action::deserialize(action).ok()?;
            matches!(action, Action::TuneFileSystem { .. }).then_some(action)
        });
        typed
            .map(|action| PlanAction::from_action(&action))
            .next()
            .unwrap_or(PlanAction::Print)
    }

    /// The required name of `--yes`.
    fn name(&self) -> Option<String> {
        let node = match self {
            PlanAction::Move { node, .. } => node,
            PlanAction::Relabel { device, .. }
            | PlanAction::BackupLabel { device }
            | PlanAction::SetQueue { device, .. }
            | PlanAction::Tune { device, .. } => device,
            PlanAction::Print => return None,
        };
        Some(node.file_name()?.to_string_lossy().into_owned())
    }

    fn is_named(&self, yes: &str) -> bool {
        self.name()
            .is_some_and(|name| name == yes || yes.strip_prefix("/dev/") == Some(&name))
    }

    /// The checks afterwards: commands, with their arguments.
    fn looks(&self, is_probed: bool) -> Vec<(&'static str, PathBuf)> {
        let (checked, probed) = match self {
            PlanAction::Move { node, .. } => (node.clone(), node.clone()),
            PlanAction::Relabel { device, wanted, .. } => {
                (device.clone(), node_of(device, wanted.number.unwrap_or(1)))
            }
            PlanAction::BackupLabel { device }
            | PlanAction::SetQueue { device, .. }
            | PlanAction::Tune { device, .. } => (device.clone(), device.clone()),
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

    fn carry_out(&self, yes: Option<String>, journal: &Journal) -> Result<Exit, Failure> {
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
            PlanAction::BackupLabel { device } => backup_label::run(&BackupLabel {
                device: device.clone(),
                act,
                save: Save { save: None },
            }),
            PlanAction::SetQueue { device, change } => {
                let name = device.strip_prefix("/dev").unwrap_or(device);
                let name = name.to_string_lossy();
                queue::carry_out(&name, change, act.yes.is_some())
            }
            PlanAction::Tune { tuning, .. } => tuning.carry_out(act.yes.is_some()),
            PlanAction::Print => Ok(Exit::Clean),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_end_is_reported() {
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
    fn volumes_in_use_are_left_to_their_manager() {
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
