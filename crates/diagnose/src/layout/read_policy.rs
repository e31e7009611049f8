//! `read-policy`: a mirror that does not share its reads out evenly.

use std::collections::HashSet;

use plumb_model::facts::ReadPolicy;
use plumb_model::{Confidence, Cost, CostOf, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::node_facts::MirrorReads;
use plumb_stack::{Node, NodeId};

use super::LayoutRule;
use super::context::Context;
use super::solaris;
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::ReadPolicy,
    thresholds: || vec![format!("other than {EVEN}")],
    judge,
};

/// The policy that balances reads over all sides of a mirror.
pub const EVEN: MirrorReads = MirrorReads::RoundRobin;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    solaris::mirrors(context)
        .map(|(id, node)| judge_mirror(context, id, node))
        .collect()
}

fn judge_mirror(context: &Context<'_>, id: NodeId, node: &Node) -> Outcome {
    let Some(policy) = node.fact(keys::READ_POLICY) else {
        return context.unknown(id, Reason::ReadPolicy);
    };
    if policy.value == EVEN {
        return Outcome::Silent;
    }
    let sides = node.placing.below().len() as u64;
    let is_first = policy.value == MirrorReads::First;
    if is_first && do_sides_differ(context, node) {
        return Outcome::Silent;
    }
    let severity = if is_first {
        Severity::Warning
    } else {
        Severity::Note
    };
    let facts = Facts::ReadPolicy(ReadPolicy {
        policy: policy.value.clone(),
        sides,
        source: policy.source.clone(),
    });
    let cost = is_first.then(|| Cost::estimated(CostOf::SideReads, sides as f64));
    let finding = context.finding(facts, (id, severity, Confidence::Medium));
    Outcome::found(finding.with_cost(cost))
}

/// Whether the sides are of different make, the purpose of policy "first".
fn do_sides_differ(context: &Context<'_>, node: &Node) -> bool {
    let kinds = node.placing.below().into_iter().map(|side| {
        let mut kinds: Vec<_> = context
            .stack
            .under(side)
            .into_iter()
            .map(|id| context.stack.node(id))
            .filter_map(|leaf| match leaf.number(keys::ROTATIONAL) {
                Some(is_rotational) => Some((Some(is_rotational), None)),
                None => Some((None, Some(leaf.word(keys::MODEL)?))),
            })
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    });
    kinds.collect::<HashSet<_>>().len() > 1
}
