//! `double-counted`: rates of layered devices are one load; adding them up counts it once for each layer.

use std::collections::{BTreeMap, HashMap, HashSet};

use plumb_geometry::SmallSort;
use plumb_model::facts::DoubleCounted;
use plumb_model::{Confidence, Facts, RuleId, Severity};
use plumb_stack::NodeId;

use super::LayoutRule;
use super::context::Context;
use super::rates::Rate;
use crate::rules::{Outcome, share_words};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::DoubleCounted,
    thresholds: || vec![share_words(SAME_WITHIN)],
    judge,
};

/// Layers whose rates differ by no more than this carry the same I/O; above it splits, copies or other users have a
/// part as well.
pub const SAME_WITHIN: f64 = 0.10;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let rates: BTreeMap<NodeId, Rate> = context
        .stack
        .nodes()
        .filter_map(|(id, _)| Some((id, Rate::find(context, id)?)))
        .collect();
    if rates.is_empty() {
        return vec![Outcome::NotAsked];
    }
    let mut loads = Loads::default();
    for (id, rate) in &rates {
        let under = context.stack.under(*id);
        let is_same_load = |below: &&NodeId| {
            *below != id
                && rates
                    .get(below)
                    .is_some_and(|other| rate.is_of_one_time(other))
        };
        for below in under.iter().filter(is_same_load) {
            loads.join(*id, *below);
            loads.carried.insert(*below);
            loads.carrying.insert(*id);
        }
    }
    let mut outcomes: Vec<Outcome> = loads
        .groups(&rates)
        .iter()
        .map(|group| judge_load(context, &rates, group, &loads))
        .collect();
    if outcomes.is_empty() {
        outcomes.push(Outcome::Silent);
    }
    outcomes
}

/// Devices that carry one load.
#[derive(Default)]
struct Loads {
    parent: HashMap<NodeId, NodeId>,
    carried: HashSet<NodeId>,
    carrying: HashSet<NodeId>,
}

impl Loads {
    fn root(&self, mut id: NodeId) -> NodeId {
        while let Some(parent) = self.parent.get(&id) {
            id = *parent;
        }
        id
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.parent.insert(a.max(b), a.min(b));
        }
    }

    /// Groups of more than one.
    fn groups(&self, rates: &BTreeMap<NodeId, Rate>) -> Vec<Vec<NodeId>> {
        let mut groups: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for id in rates.keys() {
            groups.entry(self.root(*id)).or_default().push(*id);
        }
        groups
            .into_values()
            .filter(|group| group.len() > 1)
            .collect()
    }
}

fn judge_load(
    context: &Context<'_>,
    rates: &BTreeMap<NodeId, Rate>,
    group: &[NodeId],
    loads: &Loads,
) -> Outcome {
    let sum = |wanted: &dyn Fn(&NodeId) -> bool| -> f64 {
        group
            .iter()
            .filter(|id| wanted(id))
            .filter_map(|id| rates.get(id))
            .map(|rate| rate.ios_per_second)
            .sum()
    };
    let all = sum(&|_| true);
    let asked = sum(&|id| !loads.carried.contains(id));
    let done = sum(&|id| !loads.carrying.contains(id));
    let Some(top) = group.iter().copied().find(|id| !loads.carried.contains(id)) else {
        return Outcome::NotAsked;
    };
    let is_same = (done - asked).abs() <= asked * SAME_WITHIN;
    let confidence = if is_same {
        Confidence::High
    } else {
        Confidence::Medium
    };
    let mut names: Vec<String> = group
        .iter()
        .map(|id| context.name(*id).to_owned())
        .collect();
    names.small_sort_by(|a, b| plumb_geometry::natural(a, b));
    let Some(rate) = rates.get(&top) else {
        return Outcome::NotAsked;
    };
    let facts = Facts::DoubleCounted(DoubleCounted {
        devices: names,
        asked_ios_per_second: asked,
        asked_by: rate.basis.clone(),
        sum_ios_per_second: all,
        bottom_ios_per_second: done,
        is_same,
    });
    Outcome::found(context.finding(facts, (top, Severity::Note, confidence)))
}
