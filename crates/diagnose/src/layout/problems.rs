//! Problems noticed while a stack was read, as findings: broken and stranded labels, layers that end beyond the layer
//! below, sources that contradict each other, and other named reports of a source.

use plumb_model::facts::NoticedProblem;
use plumb_model::{Confidence, Facts, Finding, RuleId, Severity, Target};
use plumb_stack::{Problem, ProblemId};

use super::LayoutRule;
use super::context::Context;
use crate::rules::Outcome;

/// A label with one damaged copy.
pub const BROKEN_LABEL: LayoutRule = rule(RuleId::BrokenLabel, |context| {
    judge(context, ProblemId::BrokenLabel)
});
/// A backup label that is not at the end of the disk.
pub const STRANDED_BACKUP_LABEL: LayoutRule = rule(RuleId::StrandedBackupLabel, |context| {
    judge(context, ProblemId::StrandedBackupLabel)
});
/// A layer that ends beyond the layer below it.
pub const BEYOND_DEVICE: LayoutRule = rule(RuleId::BeyondDevice, |context| {
    judge(context, ProblemId::BeyondDevice)
});
/// Sources that contradict each other.
pub const CONTRADICTION: LayoutRule = rule(RuleId::Contradiction, |context| {
    judge(context, ProblemId::Contradiction)
});
/// Two partitions that share bytes.
pub const OVERLAPPING_PARTITIONS: LayoutRule = rule(RuleId::OverlappingPartitions, |context| {
    noticed(context, ProblemId::OverlappingPartitions)
});
/// A move that has not ended.
pub const UNFINISHED_MOVE: LayoutRule = rule(RuleId::UnfinishedMove, |context| {
    noticed(context, ProblemId::UnfinishedMove)
});
/// A label for sectors of another size.
pub const SECTOR_SIZE_MISMATCH: LayoutRule = rule(RuleId::SectorSizeMismatch, |context| {
    noticed(context, ProblemId::SectorSizeMismatch)
});
/// A superblock that is damaged.
pub const BROKEN_SUPERBLOCK: LayoutRule = rule(RuleId::BrokenSuperblock, |context| {
    noticed(context, ProblemId::BrokenSuperblock)
});
/// A file system that notes another start.
pub const HIDDEN_SECTORS: LayoutRule = rule(RuleId::HiddenSectors, |context| {
    noticed(context, ProblemId::HiddenSectors)
});
/// A pool with blocks smaller than those of the disk.
pub const ASHIFT_BELOW_BLOCK: LayoutRule = rule(RuleId::AshiftBelowBlock, |context| {
    noticed(context, ProblemId::AshiftBelowBlock)
});

const fn rule(id: RuleId, judge: for<'a, 'b> fn(&'a Context<'b>) -> Vec<Outcome>) -> LayoutRule {
    LayoutRule {
        id,
        thresholds: Vec::new,
        judge,
    }
}

/// The severity of each kind: a problem that loses data in use is critical.
#[must_use]
pub const fn severity(id: ProblemId) -> Severity {
    match id {
        ProblemId::BeyondDevice | ProblemId::OverlappingPartitions | ProblemId::UnfinishedMove => {
            Severity::Critical
        }
        ProblemId::StrandedBackupLabel | ProblemId::HiddenSectors => Severity::Note,
        ProblemId::BrokenLabel
        | ProblemId::SectorSizeMismatch
        | ProblemId::BrokenSuperblock
        | ProblemId::AshiftBelowBlock
        | ProblemId::Contradiction => Severity::Warning,
    }
}

/// Problems of a kind for which readers look on every device, so that *none* is an answer.
fn judge(context: &Context<'_>, id: ProblemId) -> Vec<Outcome> {
    let mut found = noticed(context, id);
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

fn noticed(context: &Context<'_>, id: ProblemId) -> Vec<Outcome> {
    let problems = context.stack.problems().iter();
    problems
        .filter(|problem| problem.id == id)
        .map(|problem| outcome(context, problem))
        .collect()
}

fn outcome(context: &Context<'_>, problem: &Problem) -> Outcome {
    let target = problem
        .node
        .map_or_else(Target::host, |id| Target::layer(context.stack, id));
    let facts = NoticedProblem {
        text: problem.text.clone(),
        source: problem.source.clone(),
        is_move_unfinished: has_unfinished_move(context, problem),
    };
    let facts = match problem.id {
        ProblemId::BrokenLabel => Facts::BrokenLabel(facts),
        ProblemId::StrandedBackupLabel => Facts::StrandedBackupLabel(facts),
        ProblemId::OverlappingPartitions => Facts::OverlappingPartitions(facts),
        ProblemId::UnfinishedMove => Facts::UnfinishedMove(facts),
        ProblemId::SectorSizeMismatch => Facts::SectorSizeMismatch(facts),
        ProblemId::BrokenSuperblock => Facts::BrokenSuperblock(facts),
        ProblemId::HiddenSectors => Facts::HiddenSectors(facts),
        ProblemId::AshiftBelowBlock => Facts::AshiftBelowBlock(facts),
        ProblemId::BeyondDevice => Facts::BeyondDevice(facts),
        ProblemId::Contradiction => Facts::Contradiction(facts),
    };
    let severity = severity(problem.id);
    Outcome::found(Finding::new(facts, target, severity, Confidence::High))
}

/// Whether a problem is one of a label on a disk with an unfinished move.
fn has_unfinished_move(context: &Context<'_>, problem: &Problem) -> bool {
    let of_label = matches!(
        problem.id,
        ProblemId::BrokenLabel
            | ProblemId::StrandedBackupLabel
            | ProblemId::BeyondDevice
            | ProblemId::OverlappingPartitions
            | ProblemId::SectorSizeMismatch
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
        .filter(|other| other.id == ProblemId::UnfinishedMove);
    of_label && moves.any(|other| leaves(other).iter().any(|disk| disks.contains(disk)))
}
