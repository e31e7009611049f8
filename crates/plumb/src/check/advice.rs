//! What to do about findings: the commands of the way of least harm.

use std::collections::HashMap;

use plumb_diagnose::{Diagnosis, Finding, Fix};
use plumb_plan::partition::commands::WITH_PLUMB;
use plumb_plan::{Answer, Harm, Remedy, Wishes};
use plumb_stack::{Kind, NodeId, Stack};

use crate::cli::Beneath;

/// Gives findings the commands of the way of least harm; the others are told of by `plumb plan`.
pub fn with_commands(beneath: &Beneath, is_image: bool, stack: &Stack, diagnosis: &mut Diagnosis) {
    let wishes = Wishes {
        page: beneath.page,
        segment: beneath.segment_bytes(),
        unit: None,
    };
    // The commands for one soft partition lay out all of its component, so only one finding gets them.
    let mut laid_out: HashMap<NodeId, String> = HashMap::new();
    for finding in &mut diagnosis.findings {
        let Some(node) = stack.find(&finding.target().device) else {
            continue;
        };
        // Inside of a virtual disk no tool works on the file.
        if is_image
            && stack
                .under(node)
                .into_iter()
                .any(|below| stack.node(below).kind == Kind::ImageDisk)
        {
            finding
                .explain("no commands for it: attach the image as a device first, and check that");
            continue;
        }
        if let Some(component) = plumb_plan::component_laid_out(stack, finding.id(), node) {
            if let Some(first) = laid_out.get(&component) {
                finding.explain(format!(
                    "all soft partitions of {} are laid out anew together: see {first}",
                    stack.node(component).own_name()
                ));
                continue;
            }
            laid_out.insert(
                component,
                format!("{} of {}", finding.id(), finding.target()),
            );
        }
        match plumb_plan::for_finding(stack, finding.id(), node, &wishes) {
            Some(Ok(Answer { changes, plan })) => match (plan.remedies.first(), plan.refusal) {
                (Some(way), _) => {
                    if let Some(whose) = whose(stack, node, changes) {
                        finding.explain(whose);
                    }
                    tell(finding, way);
                    if let Some(command) = move_of(&plan.remedies) {
                        finding.explain(format!(
                            "with its data: {command} shows a move that no crash harms"
                        ));
                    }
                }
                (None, Some(why)) => finding.explain(format!("no commands for it: {why}")),
                (None, None) => {}
            },
            Some(Err(why)) => finding.explain(format!("no commands for it: {why}")),
            None => {}
        }
    }
}

/// On which host the commands are to be run: names of devices are those of the host of what they change, which may be
/// below the host that a finding is about.
fn whose(stack: &Stack, found: NodeId, changes: NodeId) -> Option<String> {
    let (found, changes) = (&stack.node(found).host, stack.node(changes));
    let host = match (&changes.host, found) {
        (Some(host), _) => host,
        (None, Some(_)) => "this host",
        (None, None) => return None,
    };
    let what = if changes.host == *found {
        String::new()
    } else {
        format!(": they change {}", changes.name)
    };
    Some(format!(
        "commands are for {host}, with the names that it has for its devices{what}"
    ))
}

/// The command that shows how Plumb itself would move a partition with its data, where nothing has to come before.
fn move_of(ways: &[Remedy]) -> Option<&str> {
    let way = ways.iter().find(|way| way.title == WITH_PLUMB)?;
    let first = way.steps.first()?.command.as_str();
    first.starts_with("plumb fix move").then_some(first)
}

/// Adds one way with all that must hold for it: a command alone would be taken at its word.
fn tell(finding: &mut Finding, way: &Remedy) {
    finding.explain(format!(
        "the way of least harm is to {}: {}",
        way.harm.words(),
        way.title
    ));
    for constraint in &way.constraints {
        finding.explain(constraint.as_str());
    }
    let data = match way.harm {
        Harm::Tune | Harm::Online => "",
        Harm::Recreate => {
            "data there are not taken along, so only where there are none or a copy is; "
        }
        Harm::Shift => "data are moved in place, so only with a copy; ",
    };
    for step in way.steps.iter().cloned() {
        let changes = !step.risk.starts_with("none: ");
        let risk = if changes {
            format!("{data}{}", step.risk)
        } else {
            step.risk
        };
        finding.add_fix(Fix {
            command: step.command,
            risk: risk.into(),
            undo: step.undo.into(),
        });
    }
}
