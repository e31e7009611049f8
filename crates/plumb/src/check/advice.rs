//! Commands for findings: the first remedy of the plan that answers a finding, if the data survive it.
//!
//! A remedy that destroys data is printed only for a partition that is known to be empty. The other remedies of a plan
//! are left to `plumb plan` and `plumb fix`.

use std::collections::HashMap;
use std::fs::File;

use plumb_diagnose::{Diagnosis, Finding, Fix};
use plumb_plan::{Answer, Plan, Remedy, Wishes};
use plumb_stack::{Kind, NodeId, Placing, Stack};
use rustix::fs::SeekFrom;

use crate::cli::Beneath;

/// Adds to each finding the commands of its recommended remedy, or the reason why there are none.
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
        // No tool can change a file inside a virtual disk.
        if is_image && is_inside_image(stack, node) {
            finding
                .explain("no commands for it: attach the image as a device first, and check that");
            continue;
        }
        if let Some(component) = plumb_plan::component_laid_out(stack, finding.id(), node) {
            if let Some(first) = laid_out.get(&component) {
                finding.explain(format!(
                    "one layout covers all soft partitions of {}: see {first}",
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
            Some(Ok(answer)) => recommend(finding, stack, node, answer),
            Some(Err(why)) => finding.explain(format!("no commands for it: {why}")),
            None => {}
        }
    }
}

fn is_inside_image(stack: &Stack, node: NodeId) -> bool {
    let below = stack.under(node);
    below
        .into_iter()
        .any(|id| stack.node(id).kind == Kind::ImageDisk)
}

/// Adds the first remedy that keeps the data, or says that none does.
fn recommend(finding: &mut Finding, stack: &Stack, found: NodeId, answer: Answer) {
    let Answer { changes, plan } = answer;
    let is_empty = is_known_empty(stack, changes);
    let recommended = plan
        .remedies
        .iter()
        .find(|remedy| remedy.harm.keeps_data() || is_empty);
    match (recommended, &plan.refusal) {
        (Some(remedy), _) => {
            if let Some(host) = host_of_commands(stack, found, changes) {
                finding.explain(host);
            }
            add_steps(finding, remedy);
        }
        (None, Some(why)) => finding.explain(format!("no commands for it: {why}")),
        (None, None) if plan.remedies.is_empty() => {}
        (None, None) => finding.explain(destroys_data(stack, changes, &plan)),
    }
}

fn destroys_data(stack: &Stack, changes: NodeId, plan: &Plan) -> String {
    format!(
        "no commands for it: every fix destroys the data on {}. `plumb plan {}` prints the steps, which need a backup",
        stack.node(changes).name,
        plan.kind
    )
}

/// Whether a partition holds no data: it is part of an image file that is a hole there, and nothing stands on it. The
/// bytes of a block device are not all read, so a device is never known to be empty.
fn is_known_empty(stack: &Stack, id: NodeId) -> bool {
    let node = stack.node(id);
    let (Kind::Partition, Placing::Parts { parts }) = (node.kind, &node.placing) else {
        return false;
    };
    let [part] = parts.as_slice() else {
        return false;
    };
    let disk = stack.node(part.node);
    let (Kind::File, Some(len), true) = (disk.kind, part.len, stack.above(id).is_empty()) else {
        return false;
    };
    let end = part.start.checked_add(len);
    let file = File::open(disk.own_name());
    let (Some(end), Ok(file)) = (end, file) else {
        return false;
    };
    match rustix::fs::seek(&file, SeekFrom::Data(part.start.0)) {
        Ok(data) => data >= end.0,
        // No data from there to the end of the file.
        Err(rustix::io::Errno::NXIO) => true,
        Err(_) => false,
    }
}

/// The host to run the commands on: device names are those of the host of the changed node, which may be below the host
/// that the finding is about.
fn host_of_commands(stack: &Stack, found: NodeId, changes: NodeId) -> Option<String> {
    let (found, changes) = (&stack.node(found).host, stack.node(changes));
    let host = match (&changes.host, found) {
        (Some(host), _) => host,
        (None, Some(_)) => "this host",
        (None, None) => return None,
    };
    let changed = if changes.host == *found {
        String::new()
    } else {
        format!(": they change {}", changes.name)
    };
    Some(format!(
        "run the commands on {host}, with its names for its devices{changed}"
    ))
}

/// Adds a remedy with its preconditions: a reader would run a command alone without them.
fn add_steps(finding: &mut Finding, remedy: &Remedy) {
    finding.explain(format!(
        "recommended: {} ({})",
        remedy.harm.text(),
        remedy.title
    ));
    for constraint in &remedy.constraints {
        finding.explain(constraint.as_str());
    }
    for step in remedy.steps.iter().cloned() {
        finding.add_fix(Fix {
            command: step.command,
            risk: step.risk.into(),
            undo: step.undo.into(),
        });
    }
}
