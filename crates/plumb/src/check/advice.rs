//! Commands for findings: the first remedy of the plan that answers a finding, if the data survive it.
//!
//! A remedy that destroys data is printed only for a partition that is known to be empty. The other remedies of a plan
//! are left to `plumb plan` and `plumb fix`.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use plumb_diagnose::Diagnosis;
use plumb_model::{Advice, Finding, Fix, RuleId, Target};
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
    let mut laid_out: HashMap<NodeId, (RuleId, Target)> = HashMap::new();
    for finding in &mut diagnosis.findings {
        let Some(node) = finding.target.node else {
            continue;
        };
        // No tool can change a file inside a virtual disk.
        if is_image && is_inside_image(stack, node) {
            finding.advice.push(Advice::AttachImage);
            continue;
        }
        let rule = finding.rule().rule();
        let Some(kind) = rule.plan.filter(|_| finding.target.is_layer()) else {
            continue;
        };
        if let Some(component) = plumb_plan::component_laid_out(stack, kind, node) {
            if let Some((rule, target)) = laid_out.get(&component) {
                finding.advice.push(Advice::SeeOther {
                    component: stack.node(component).own_name().to_owned(),
                    rule: *rule,
                    target: target.clone(),
                });
                continue;
            }
            laid_out.insert(component, (rule.id, finding.target.clone()));
        }
        match plumb_plan::for_finding(stack, kind, node, &wishes) {
            Ok(answer) => recommend(finding, stack, node, answer),
            Err(why) => finding.advice.push(no_plan(&why)),
        }
    }
}

fn no_plan(why: &impl ToString) -> Advice {
    Advice::NoPlan {
        why: why.to_string(),
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
            finding
                .advice
                .extend(host_of_commands(stack, found, changes));
            if is_empty {
                finding.advice.push(Advice::Empty);
            }
            add_steps(finding, remedy);
        }
        (None, Some(why)) => finding.advice.push(no_plan(why)),
        (None, None) if plan.remedies.is_empty() => {}
        (None, None) => finding.advice.push(destroys_data(stack, changes, &plan)),
    }
}

fn destroys_data(stack: &Stack, changes: NodeId, plan: &Plan) -> Advice {
    let node = stack.node(changes);
    let disk = node.placing.below().first().map(|id| stack.node(*id));
    // `plumb fix move` needs a device node for the partition.
    if disk.is_some_and(|disk| disk.kind == Kind::File) && node.kind == Kind::Partition {
        return Advice::AttachLoop;
    }
    Advice::NoneKeepsData {
        device: node.name.clone(),
        plan: plan.kind.to_string(),
    }
}

/// Whether a partition holds no data: nothing stands on it, and it is part of an image file that is a hole there, or has
/// zeros. The bytes of a block device are not all read, so a device is never known to be empty.
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
    has_only_zeros(&file, part.start.0..end.0).unwrap_or(false)
}

/// The most that is read of an image to find out that a partition is empty. A hole begins and ends with a block of the
/// file system, so the first and the last block of an empty partition usually hold a part of the label.
const READ_MAX_BYTES: u64 = 16 << 20;

/// Whether a range of a file has no byte other than zero; `false` if that would take too long to find out.
fn has_only_zeros(file: &File, range: Range<u64>) -> io::Result<bool> {
    let (mut at, mut read_bytes) = (range.start, 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        at = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            // No data from there to the end of the file.
            Err(rustix::io::Errno::NXIO) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        if at >= range.end {
            return Ok(true);
        }
        let wanted = (range.end - at).min(buffer.len() as u64) as usize;
        let found = file.read_at(&mut buffer[..wanted], at)?;
        if found == 0 {
            return Ok(true);
        }
        read_bytes += found as u64;
        if read_bytes > READ_MAX_BYTES || buffer[..found].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += found as u64;
    }
}

/// The host to run the commands on: device names are those of the host of the changed node, which may be below the host
/// that the finding is about.
fn host_of_commands(stack: &Stack, found: NodeId, changes: NodeId) -> Option<Advice> {
    let (found, changes) = (&stack.node(found).host, stack.node(changes));
    if changes.host.is_none() && found.is_none() {
        return None;
    }
    Some(Advice::RunOn {
        host: changes.host.clone(),
        changes: (changes.host != *found).then(|| changes.name.clone()),
    })
}

/// Adds a remedy with its preconditions: a reader would run a command alone without them.
fn add_steps(finding: &mut Finding, remedy: &Remedy) {
    finding.advice.push(Advice::Recommended {
        harm: remedy.harm.text().to_owned(),
        title: remedy.title.to_string(),
    });
    let constraints = remedy.constraints.iter();
    finding
        .advice
        .extend(constraints.map(|text| Advice::Constraint { text: text.clone() }));
    let steps = remedy.steps.iter().cloned();
    finding.fix.extend(steps.map(|step| Fix {
        command: step.command,
        risk: step.risk.into(),
        undo: step.undo,
    }));
}
