//! What was noticed while a stack was read, as findings: broken and stranded labels, layers that end beyond what they lie
//! on, sources that contradict each other, and whatever else a source reports by a name of its own.

use plumb_stack::problem_ids as ids;
use plumb_stack::{Problem, Source};

use super::LayoutRule;
use super::context::Context;
use crate::finding::{Confidence, Evidence, Finding, Severity};
use crate::rules::Outcome;

const BROKEN: &str = ids::BROKEN_LABEL;
const STRANDED: &str = ids::STRANDED_BACKUP_LABEL;
const BEYOND: &str = ids::BEYOND_DEVICE;
const CONTRADICTS: &str = ids::CONTRADICTION;

/// A label of which one copy is damaged.
pub const BROKEN_LABEL: LayoutRule = rule(BROKEN, |context| judge(context, BROKEN));
/// A backup label that is not at the end of the disk.
pub const STRANDED_BACKUP_LABEL: LayoutRule = rule(STRANDED, |context| judge(context, STRANDED));
/// A layer that ends beyond what it lies on.
pub const BEYOND_DEVICE: LayoutRule = rule(BEYOND, |context| judge(context, BEYOND));
/// Sources that contradict each other.
pub const CONTRADICTION: LayoutRule = rule(CONTRADICTS, |context| judge(context, CONTRADICTS));
/// All that have no rule of their own; findings bear the name that the source gave.
pub const OTHERS: LayoutRule = LayoutRule {
    id: "other-problem",
    title: "something else is not as it should be",
    needs: "",
    decides: true,
    thresholds: Vec::new,
    plan: None,
    judge: others,
};

/// The rule of a problem. Its words in the index of findings are in [`ids::ALL`].
const fn rule(
    id: &'static str,
    judge: for<'a, 'b> fn(&'a Context<'b>) -> Vec<Outcome>,
) -> LayoutRule {
    LayoutRule {
        id,
        title: "",
        needs: "",
        decides: true,
        thresholds: Vec::new,
        plan: None,
        judge,
    }
}

/// How bad each kind is: what loses data when somebody relies on it is critical.
#[must_use]
pub fn severity(id: &str) -> Severity {
    match id {
        BEYOND | ids::OVERLAPPING_PARTITIONS | ids::UNFINISHED_MOVE => Severity::Critical,
        STRANDED | ids::HIDDEN_SECTORS => Severity::Note,
        _ => Severity::Warning,
    }
}

fn judge(context: &Context<'_>, id: &str) -> Vec<Outcome> {
    let mut found: Vec<Outcome> = context
        .stack
        .problems()
        .iter()
        .filter(|problem| problem.id == id)
        .map(|one| outcome(context, one))
        .collect();
    if found.is_empty() {
        // An empty stack was not looked at.
        found.push(if context.stack.nodes().next().is_some() {
            Outcome::Silent
        } else {
            Outcome::NotAsked
        });
    }
    found
}

fn others(context: &Context<'_>) -> Vec<Outcome> {
    let named = [BROKEN, STRANDED, BEYOND, CONTRADICTS];
    let others = context
        .stack
        .problems()
        .iter()
        .filter(|problem| !named.contains(&problem.id));
    others.map(|problem| outcome(context, problem)).collect()
}

fn outcome(context: &Context<'_>, problem: &Problem) -> Outcome {
    let target = problem
        .node
        .map_or_else(|| context.host_target(), |id| context.target(id));
    // Whoever saw it says where; that it was seen is the number.
    let evidence = Evidence {
        name: "seen",
        value: 1.0,
        unit: "times",
        source: problem.source.to_string(),
    };
    let finding = Finding::new(
        problem.id,
        severity(problem.id),
        &target,
        Confidence::High,
        problem.text.clone(),
        evidence,
    );
    let remedy = match has_unfinished_move(context, problem) {
        true => Some(END_THE_MOVE),
        false => remedy(problem),
    };
    Outcome::Found(match remedy {
        Some(remedy) => finding.explained(remedy),
        None => finding,
    })
}

/// A change of the label takes the place of the one that the journal of a move knows.
const END_THE_MOVE: &str = "a move on this disk has not ended: do not change its label; run plumb fix status of the disk, \
                            then end the move with plumb fix resume or rollback";

/// Whether a problem is one of a label on a disk with an unfinished move.
fn has_unfinished_move(context: &Context<'_>, problem: &Problem) -> bool {
    let of_label = matches!(
        problem.id,
        BROKEN | STRANDED | BEYOND | ids::OVERLAPPING_PARTITIONS | ids::SECTOR_SIZE_MISMATCH
    );
    let leaves = |problem: &Problem| {
        problem
            .node
            .map(|id| context.leaves(id))
            .unwrap_or_default()
    };
    let disks = leaves(problem);
    let mut moves = context
        .stack
        .problems()
        .iter()
        .filter(|other| other.id == ids::UNFINISHED_MOVE);
    of_label && moves.any(|other| leaves(other).iter().any(|disk| disks.contains(disk)))
}

fn remedy(problem: &Problem) -> Option<&'static str> {
    match problem.id {
        BROKEN if has_one_copy(problem) => Some(
            "there is no second copy of such a label: save its sectors, find out where the partitions truly lie, and do \
             not let a tool write the label before that",
        ),
        BROKEN => Some(
            "what was read comes from the copy that is good, where one is; save both copies, then let a tool for labels \
             write the bad one anew, and do not touch the label otherwise before that",
        ),
        STRANDED => Some(
            "the disk has grown, or was copied to a larger one: let a tool for labels move the backup to the end, which \
             leaves all partitions where they are",
        ),
        BEYOND => Some(
            "do not mount or grow anything on it: find out whether the device shrank, another one stands in for it, or \
             the dumps are of different days",
        ),
        CONTRADICTS => Some(
            "a dump of another host or another day, or a device that changed in between: collect all of them anew, at once",
        ),
        ids::OVERLAPPING_PARTITIONS => Some(
            "mount neither: what one writes destroys what the other has stored; copy both, keep the one that is whole, and \
             make the other anew elsewhere",
        ),
        ids::UNFINISHED_MOVE => Some(
            "its data lie in part at the old place and in part at the new one, so neither make a file system there nor change \
             the label: plumb fix status of the disk tells how far it came, and plumb fix resume or rollback ends it",
        ),
        ids::SECTOR_SIZE_MISMATCH => Some(
            "show the disk with the sectors that its label was written for, or write the label anew with numbers for these",
        ),
        ids::BROKEN_SUPERBLOCK => {
            Some("copy the device before any tool mends it, and try on the copy")
        }
        ids::HIDDEN_SECTORS => {
            Some("only booting depends on it: leave it where nothing boots from there")
        }
        ids::ASHIFT_BELOW_BLOCK => Some("a vdev keeps its ashift: a new pool takes a new one"),
        _ => None,
    }
}

/// An MBR and the chain of its logical partitions are on a disk once.
fn has_one_copy(problem: &Problem) -> bool {
    matches!(&problem.source, Source::OnDisk { format } if format == "MBR")
}
