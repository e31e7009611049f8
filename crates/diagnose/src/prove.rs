//! Remedies, proven: actions are applied to the model of the stack, and all rules judge the result.
//!
//! Judged is everything that shares bytes with the target, directly or through other layers, before and after. A finding is
//! *gone* if its rule is silent about the same node. *Unknown* is not gone, with two exceptions: contents that an action
//! emptied, and a finding that rests on an assumption (the grid of a disk that states none, of a virtual disk, the size of the
//! I/O): there the rule can say no more than that the assumption holds, and the proof says that it rests on it.
//!
//! Something is *worse* if there is a new finding, or a raised one, at or above the severity of the one that is removed, or
//! if a rule cannot tell any more of something else.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use plumb_model::{
    Action, Applied, Class, Facts, Finding, NotModelled, Obstacle, PartitionRef, Reason, RestsOn,
    RuleId, Severity, Target, Unjudged, apply,
};
use plumb_profile::ProfileSet;
use plumb_stack::{NodeId, Stack, StackPart};

use crate::layout::context::Context;
use crate::layout::{self, Known, misaligned_partition};
use crate::rules::Diagnosis;

/// Nodes that are judged again at most, over all remedies of a report: some seconds. A host with thousands of misplaced volumes
/// on one component would take hours otherwise.
pub const NODES_MAX: usize = 400_000;

/// A measure that is at most this part of the old one is a partial remedy.
const PARTIAL_MAX: f64 = 0.5;

/// Proves remedies for the findings of one stack.
pub struct Prover<'a> {
    stack: &'a Stack,
    known: &'a Known,
    profiles: Option<&'a ProfileSet>,
    /// By the first node of each connected part.
    parts: HashMap<Option<NodeId>, Rc<JudgedPart>>,
    left: usize,
}

/// A connected part of the present stack, with the results of the rules.
struct JudgedPart {
    part: StackPart,
    known: Known,
    diagnosis: Diagnosis,
}

impl<'a> Prover<'a> {
    /// A prover for a stack, with the input of the rules.
    #[must_use]
    pub fn new(stack: &'a Stack, known: &'a Known, profiles: Option<&'a ProfileSet>) -> Prover<'a> {
        Prover {
            stack,
            known,
            profiles,
            parts: HashMap::new(),
            left: NODES_MAX,
        }
    }

    /// The effect of actions on a finding.
    ///
    /// # Errors
    /// Why they are no remedy.
    pub fn prove(&mut self, finding: &Finding, actions: &[Action]) -> Result<Class, Obstacle> {
        if actions.is_empty() {
            return Err(Obstacle::NotModelled);
        }
        let before = self.part_of(finding.target.node);
        let nodes = before.part.stack.nodes().count();
        self.left = match self.left.checked_sub(nodes) {
            Some(left) => left,
            None => return Err(Obstacle::NotJudged),
        };
        let inside: Vec<Action> = actions
            .iter()
            .map(|action| action.renumbered(|id| before.part.inside(id)))
            .collect();
        let applied = apply(&before.part.stack, &inside).map_err(|why| match why {
            NotModelled::NotDescribed | NotModelled::NoDevice | NotModelled::Differs => {
                Obstacle::NotModelled
            }
        })?;
        let profiles = self
            .profiles
            .map(|profiles| moved_profiles(&before.part.stack, profiles, &inside));
        let context = Context::new(&applied.stack, &before.known, profiles.as_ref());
        let diagnosis = layout::diagnose_in(&context);
        let after = After {
            applied: &applied,
            context: &context,
            diagnosis: &diagnosis,
        };
        let target = finding.target.node.and_then(|id| before.part.inside(id));
        let class = after.class(finding, target)?;
        match after.worse(finding, target, &before.diagnosis) {
            None => Ok(class),
            Some((rule, target, severity)) => Err(Obstacle::Worse {
                rule,
                target: self.outside(&before, target),
                severity,
            }),
        }
    }

    /// The part of the stack that a node is connected with; all of it for a finding about the host.
    fn part_of(&mut self, node: Option<NodeId>) -> Rc<JudgedPart> {
        let wanted: BTreeSet<NodeId> = match node {
            Some(id) => self.stack.connected(id),
            None => self.stack.nodes().map(|(id, _)| id).collect(),
        };
        let Some(first) = wanted.first().copied() else {
            return Rc::new(self.judge(&wanted));
        };
        // Findings about the host have a part of their own.
        let key = node.map(|_| first);
        if let Some(judged) = self.parts.get(&key) {
            return Rc::clone(judged);
        }
        let judged = Rc::new(self.judge(&wanted));
        self.parts.insert(key, Rc::clone(&judged));
        judged
    }

    fn judge(&self, wanted: &BTreeSet<NodeId>) -> JudgedPart {
        let part = self.stack.part(wanted);
        let known = Known {
            volume: self.known.volume.and_then(|id| part.inside(id)),
            ..self.known.clone()
        };
        let diagnosis = layout::diagnose(&part.stack, &known, self.profiles);
        JudgedPart {
            part,
            known,
            diagnosis,
        }
    }

    /// A target with the number of its node in the whole stack.
    fn outside(&self, judged: &JudgedPart, target: Target) -> Target {
        Target {
            node: target.node.and_then(|id| judged.part.outside(id)),
            ..target
        }
    }
}

/// The stack after a change, judged.
struct After<'a> {
    applied: &'a Applied,
    context: &'a Context<'a>,
    diagnosis: &'a Diagnosis,
}

impl After<'_> {
    fn class(&self, finding: &Finding, target: Option<NodeId>) -> Result<Class, Obstacle> {
        let rule = finding.rule();
        let is_same = |node: Option<NodeId>, other: RuleId| other == rule && node == target;
        let mut remaining = self
            .diagnosis
            .findings
            .iter()
            .filter(|found| is_same(found.target.node, found.rule()))
            .peekable();
        if remaining.peek().is_some() {
            let worst = remaining.filter_map(measure).reduce(f64::max);
            return match (measure(finding), worst) {
                (Some(now), Some(remains)) if remains <= now * PARTIAL_MAX => {
                    Ok(Class::Partial { now, remains })
                }
                _ => Err(Obstacle::Remains),
            };
        }
        let unknown = self
            .diagnosis
            .unknown
            .iter()
            .filter(|one| is_same(one.target.node, one.rule));
        let mut rests_on = None;
        for unjudged in unknown {
            if target.is_some_and(|id| self.applied.emptied.contains(&id)) {
                continue;
            }
            rests_on = Some(
                self.same_assumption(finding, target, unjudged)
                    .ok_or(Obstacle::BecomesUnknown)?,
            );
        }
        Ok(Class::Proven { rests_on })
    }

    /// The assumption of a finding, where it is the only reason why the rule cannot tell now.
    fn same_assumption(
        &self,
        finding: &Finding,
        target: Option<NodeId>,
        unjudged: &Unjudged,
    ) -> Option<RestsOn> {
        match (&finding.facts, &unjudged.reason) {
            (Facts::MisalignedPartition(found), Reason::Stack { .. }) => {
                misaligned_partition::is_on_grid(self.context, target?, found).then(|| {
                    RestsOn::Grid {
                        what: found.grid.what,
                        on: found.grid.on.clone(),
                    }
                })
            }
            (Facts::SoftPartitionDrift(found), Reason::OnAssumedUnit { grid, .. }) => {
                (grid.what == found.grid.what).then(|| RestsOn::Grid {
                    what: found.grid.what,
                    on: found.grid.on.clone(),
                })
            }
            (facts, Reason::FewSplitForAssumed { io, .. } | Reason::WideForAssumed { io, .. }) => {
                let is_same = facts.io_size().is_some_and(|found| found == io);
                is_same.then_some(RestsOn::IoSize { bytes: io.bytes })
            }
            _ => None,
        }
    }

    /// The first thing that is worse than before.
    fn worse(
        &self,
        finding: &Finding,
        target: Option<NodeId>,
        before: &Diagnosis,
    ) -> Option<(RuleId, Target, Option<Severity>)> {
        let is_emptied =
            |node: Option<NodeId>| node.is_some_and(|id| self.applied.emptied.contains(&id));
        let is_own = |rule, node| rule == finding.rule() && node == target;
        let at_least = |all: &[Finding], like: &Finding| {
            all.iter()
                .filter(|one| one.rule() == like.rule() && one.target.node == like.target.node)
                .filter(|one| one.severity >= like.severity)
                .count()
        };
        let raised = self.diagnosis.findings.iter().find(|found| {
            found.severity >= finding.severity
                && !is_emptied(found.target.node)
                && !is_own(found.rule(), found.target.node)
                && at_least(&self.diagnosis.findings, found) > at_least(&before.findings, found)
        });
        if let Some(found) = raised {
            return Some((found.rule(), found.target.clone(), Some(found.severity)));
        }
        let was_silent = |one: &Unjudged| {
            let same =
                |rule: RuleId, node: Option<NodeId>| rule == one.rule && node == one.target.node;
            let was_unknown = before
                .unknown
                .iter()
                .any(|known| same(known.rule, known.target.node));
            let was_found = before
                .findings
                .iter()
                .any(|known| same(known.rule(), known.target.node));
            !was_unknown && !was_found
        };
        // Of a device that an action adds nothing was known before.
        let is_new = |node: Option<NodeId>| node.is_some_and(|id| self.applied.added.contains(&id));
        let lost = self.diagnosis.unknown.iter().find(|one| {
            !is_emptied(one.target.node)
                && !is_new(one.target.node)
                && !is_own(one.rule, one.target.node)
                && was_silent(one)
        });
        lost.map(|one| (one.rule, one.target.clone(), None))
    }
}

/// How bad a finding is, as a number that a remedy makes smaller: a share of I/O, or a cost above the ideal.
fn measure(finding: &Finding) -> Option<f64> {
    let share = match &finding.facts {
        Facts::NarrowStripe(facts) => facts.split,
        Facts::SplitIo(facts) => facts.expected,
        _ => None,
    };
    let cost = || finding.cost.as_ref().map(|cost| cost.value - 1.0);
    share.map(|share| share.value()).or_else(cost)
}

/// The profiles after a move: I/O to a moved partition start elsewhere on its disk. A profile with an unknown effect is
/// left out.
fn moved_profiles(stack: &Stack, profiles: &ProfileSet, actions: &[Action]) -> ProfileSet {
    let mut moved = ProfileSet::default();
    for profile in profiles.iter() {
        let mut profile = Some(profile.clone());
        for (partition, to) in actions.iter().filter_map(new_start) {
            let Some(now) = &profile else { break };
            if partition.disk.node.0 != stack.find(&now.device) {
                continue;
            }
            let name = partition.node.0.map(|id| stack.node(id).name.clone());
            let by = i128::from(to.0) - i128::from(partition.start_bytes.0);
            profile = name.and_then(|name| now.with_part_moved(&name, by));
        }
        if let Some(profile) = profile {
            moved.add(&profile);
        }
    }
    moved
}

fn new_start(action: &Action) -> Option<(&PartitionRef, plumb_geometry::Bytes)> {
    match action {
        Action::Move {
            partition,
            to_bytes,
        }
        | Action::Shift {
            partition,
            to_bytes,
        } => Some((partition, *to_bytes)),
        _ => None,
    }
}
