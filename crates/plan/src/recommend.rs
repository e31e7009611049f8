//! The remedies of a diagnosis. Each is applied to the model of the stack and judged before a report recommends it
//! ([`plumb_diagnose::prove`]); a finding without a remedy names the obstacle.
//!
//! A remedy that destroys data is recommended only for a place that is known to be empty. The other ways of a plan are left to
//! `plumb plan`, which prints all of them with their harm.

use std::collections::HashMap;

use plumb_diagnose::layout::Known;
use plumb_diagnose::{Diagnosis, Prover};
use plumb_geometry::SmallSort;
use plumb_model::{
    Action, Advice, Class, Disruption, Finding, Fix, Measurement, Obstacle, Place, PlanKind,
    Precondition, RuleId, Target,
};
use plumb_profile::ProfileSet;
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Stack};

use crate::error::PlanError;
use crate::for_finding::{Answer, Wishes, answers, component_laid_out};
use crate::plan::{Plan, Remedy};

/// The conditions of a recommendation beside the stack.
pub struct Circumstances<'a> {
    /// The inputs of the rules.
    pub known: &'a Known,
    /// The profiles that they were given.
    pub profiles: Option<&'a ProfileSet>,
    /// The facts that only the user knows.
    pub wishes: Wishes,
    /// Whether a node was read and holds no data.
    pub is_known_empty: &'a dyn Fn(NodeId) -> bool,
    /// Whether the stack is that of an image, inside which no tool can change anything.
    pub is_image: bool,
}

/// Adds to each finding its remedies, the commands of the recommended one, or the reason for none.
pub fn recommend(stack: &Stack, circumstances: &Circumstances<'_>, diagnosis: &mut Diagnosis) {
    let mut advisor = Advisor {
        stack,
        circumstances,
        prover: Prover::new(stack, circumstances.known, circumstances.profiles),
        laid_out: HashMap::new(),
    };
    for finding in &mut diagnosis.findings {
        advisor.advise(finding);
    }
}

struct Advisor<'a> {
    stack: &'a Stack,
    circumstances: &'a Circumstances<'a>,
    prover: Prover<'a>,
    /// Components whose soft partitions were laid out, with the finding that says how.
    laid_out: HashMap<NodeId, (RuleId, Target)>,
}

/// A way that was judged.
struct JudgedWay<'a> {
    answer: &'a Answer,
    way: &'a Remedy,
    remedy: plumb_model::Remedy,
}

impl Advisor<'_> {
    fn advise(&mut self, finding: &mut Finding) {
        let Some(kind) = finding.rule().rule().plan else {
            return;
        };
        if !finding.target.is_layer() && !finding.target.is_host() {
            return;
        }
        if let Some(node) = finding.target.node {
            // No tool can change a file inside a virtual disk.
            if self.circumstances.is_image && is_inside_image(self.stack, node) {
                finding.advice.push(Advice::AttachImage);
                return;
            }
            if self.is_laid_out(finding, kind, node) {
                return;
            }
        }
        let answers = answers(self.stack, finding, &self.circumstances.wishes);
        let (mut judged, mut obstacles) = (Vec::new(), Vec::new());
        for answer in answers.iter().flatten() {
            self.judge(finding, answer, &mut judged, &mut obstacles);
        }
        judged.small_sort_by_key(|way| way.remedy.rank());
        match judged.first().filter(|way| way.remedy.is_recommended()) {
            Some(best) => {
                self.add_best(finding, best);
                self.note_laid_out(finding, kind);
            }
            None => self.add_obstacle(finding, &answers, &judged, obstacles.first()),
        }
        finding.remedies = judged.into_iter().map(|way| way.remedy).collect();
    }

    /// Whether the commands for another finding lay out the same component.
    fn is_laid_out(&self, finding: &mut Finding, kind: PlanKind, node: NodeId) -> bool {
        let Some(component) = component_laid_out(self.stack, kind, node) else {
            return false;
        };
        if let Some((rule, target)) = self.laid_out.get(&component) {
            finding.advice.push(Advice::SeeOther {
                component: self.stack.node(component).own_name().to_owned(),
                rule: *rule,
                target: target.clone(),
            });
            return true;
        }
        false
    }

    /// Records that the commands for a finding lay out a component.
    fn note_laid_out(&mut self, finding: &Finding, kind: PlanKind) {
        let node = finding.target.node;
        let component = node.and_then(|node| component_laid_out(self.stack, kind, node));
        if let Some(component) = component {
            let this = (finding.rule(), finding.target.clone());
            self.laid_out.insert(component, this);
        }
    }

    /// Proves the ways of an answer until one can be recommended: the ways behind it do more harm.
    fn judge<'b>(
        &mut self,
        finding: &Finding,
        answer: &'b Answer,
        judged: &mut Vec<JudgedWay<'b>>,
        obstacles: &mut Vec<(NodeId, &'static str, Obstacle)>,
    ) {
        let is_empty = (self.circumstances.is_known_empty)(answer.changes);
        let place = if is_empty {
            Place::KnownEmpty
        } else {
            Place::MayHoldData
        };
        let mut tried: Vec<&[Action]> = Vec::new();
        for way in &answer.plan.remedies {
            // Tools differ, and the change is the same.
            if tried.contains(&way.actions.as_slice()) {
                continue;
            }
            tried.push(&way.actions);
            match self.class(finding, &way.actions) {
                Ok(class) => {
                    let disruption = way.harm.disruption();
                    let first = preconditions(self.stack, answer.changes, way, place);
                    let actions = way.actions.clone();
                    let remedy = plumb_model::Remedy::new(class, disruption, place, first, actions);
                    let is_best = remedy.is_recommended();
                    judged.push(JudgedWay {
                        answer,
                        way,
                        remedy,
                    });
                    if is_best {
                        return;
                    }
                }
                Err(obstacle) => obstacles.push((answer.changes, answer.plan.kind, obstacle)),
            }
        }
    }

    fn class(&mut self, finding: &Finding, actions: &[Action]) -> Result<Class, Obstacle> {
        let class = self.prover.prove(finding, actions)?;
        let is_record = |action: &Action| matches!(action, Action::SetRecord { .. });
        // A record changes the requests below it, which arithmetic cannot foresee.
        Ok(match class {
            Class::Proven { .. } if actions.iter().any(is_record) => Class::NeedsMeasurement {
                with: Measurement::Replay,
            },
            class => class,
        })
    }

    fn add_best(&self, finding: &mut Finding, best: &JudgedWay<'_>) {
        let Answer { changes, plan } = best.answer;
        if let Some(found) = finding.target.node {
            let host = host_of_commands(self.stack, found, *changes);
            finding.advice.extend(host);
        }
        if best.remedy.place == Place::KnownEmpty {
            finding.advice.push(Advice::Empty);
        }
        if let Some(start) = plan.assumed_start {
            finding.advice.push(Advice::AssumedStart {
                planned_bytes: start.planned_bytes,
                is_reduced: start.is_reduced,
            });
        }
        add_steps(finding, best.way);
    }

    /// Adds the obstacle: of the possible answers the least harmful, else of the impossible ones.
    fn add_obstacle(
        &self,
        finding: &mut Finding,
        answers: &[Result<Answer, PlanError>],
        judged: &[JudgedWay<'_>],
        obstacle: Option<&(NodeId, &'static str, Obstacle)>,
    ) {
        let device = |id: NodeId| self.stack.node(id).name.clone();
        let destroys = judged.iter().find(|way| !way.remedy.keeps_data);
        let refusal = answers
            .iter()
            .flatten()
            .find_map(|answer| answer.plan.refusal.clone());
        let error = answers.iter().find_map(|answer| answer.as_ref().err());
        let ways = answers.iter().flatten();
        let no_command = ways
            .flat_map(|answer| &answer.plan.remedies)
            .find_map(Remedy::no_command);
        if let Some(way) = destroys {
            finding.advice.push(destroys_data(
                self.stack,
                way.answer.changes,
                &way.answer.plan,
            ));
        } else if !judged.is_empty() {
            // Its class shows its value.
        } else if let Some(why) = refusal {
            finding.advice.push(Advice::NoPlan { why });
        } else if let Some(why) = no_command {
            finding.advice.push(Advice::NoCommand {
                why: why.to_owned(),
            });
        } else if let Some((changes, plan, obstacle)) = obstacle {
            finding.advice.push(Advice::NoRemedy {
                device: device(*changes),
                plan: (*plan).to_owned(),
                obstacle: obstacle.clone(),
            });
        } else if let Some(why) = error {
            finding.advice.push(Advice::NoPlan {
                why: why.to_string(),
            });
        }
    }
}

fn is_inside_image(stack: &Stack, node: NodeId) -> bool {
    let below = stack.under(node);
    below
        .into_iter()
        .any(|id| stack.node(id).kind == Kind::ImageDisk)
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
fn add_steps(finding: &mut Finding, way: &Remedy) {
    finding.advice.push(Advice::Recommended {
        harm: way.harm.text().to_owned(),
        title: way.title.to_string(),
    });
    let constraints = way.constraints.iter();
    finding
        .advice
        .extend(constraints.map(|text| Advice::Constraint { text: text.clone() }));
    let steps = way.steps.iter().cloned();
    finding.fix.extend(steps.map(|step| Fix {
        command: step.command,
        effect: step.effect,
        risk: step.risk.map(Into::into),
        undo: step.undo,
    }));
}

/// The steps before a way, for the users of the device that it changes.
fn preconditions(stack: &Stack, changes: NodeId, way: &Remedy, place: Place) -> Vec<Precondition> {
    let mut first = Vec::new();
    let is_offline = way.harm.disruption() >= Disruption::Unmounted;
    if is_offline {
        release(stack, changes, &mut first);
    }
    let destroys = way.actions.iter().any(|action| !action.keeps_data());
    let shrinks = way
        .actions
        .iter()
        .any(|action| matches!(action, Action::Shrink { .. }));
    if (destroys || shrinks) && place == Place::MayHoldData {
        first.push(Precondition::Backup {
            device: stack.node(changes).name.clone(),
        });
    }
    if way
        .actions
        .iter()
        .any(|action| matches!(action, Action::Migrate { .. }))
    {
        first.push(Precondition::OtherPartition);
    }
    first
}

/// Everything that keeps a device in use, the topmost first.
fn release(stack: &Stack, changes: NodeId, first: &mut Vec<Precondition>) {
    let mut users = vec![changes];
    let mut next = 0;
    while let Some(id) = users.get(next).copied() {
        next += 1;
        for above in stack.above(id) {
            if !users.contains(above) {
                users.push(*above);
            }
        }
    }
    for id in users.into_iter().rev() {
        let node = stack.node(id);
        match (node.word(keys::MOUNT), node.kind) {
            (Some("/"), _) => first.push(Precondition::BootOtherMedia),
            (Some(mount), _) => first.push(Precondition::Unmount {
                mount: mount.to_owned(),
            }),
            (None, Kind::FileSystem | Kind::File | Kind::Dataset) => {}
            (None, _) if id == changes => {}
            (None, _) => first.push(Precondition::Release {
                volume: node.name.clone(),
            }),
        }
    }
}
