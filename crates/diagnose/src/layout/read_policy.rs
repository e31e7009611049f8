//! `read-policy`: a mirror that does not share its reads out evenly.

use std::collections::HashSet;

use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId};

use super::context::Context;
use super::solaris;
use super::{LayoutRule, words};
use crate::finding::{Basis, Confidence, Cost, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "read-policy",
    title: "a mirror does not share its reads evenly",
    needs: "`metastat -p`",
    decides: false,
    thresholds: || vec![format!("other than {EVEN}")],
    plan: None,
    judge,
};

/// What balances reads over all sides of a mirror.
pub const EVEN: &str = "round-robin";

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    solaris::mirrors(context)
        .map(|(id, node)| judge_mirror(context, id, node))
        .collect()
}

fn judge_mirror(context: &Context<'_>, id: NodeId, node: &Node) -> Outcome {
    let Some(policy) = node.facts.get(keys::READ_POLICY) else {
        return Outcome::UnknownOf(
            context.target(id),
            "its read policy is not known".to_owned(),
        );
    };
    if policy.value == EVEN {
        return Outcome::Silent;
    }
    let sides = node.placing.below().len() as u64;
    let is_first = policy.value == "first";
    if is_first && do_sides_differ(context, node) {
        return Outcome::Silent;
    }
    let severity = if is_first {
        Severity::Warning
    } else {
        Severity::Note
    };
    let summary = format!("reads by policy \"{}\" from {sides} sides", policy.value);
    let mut finding = context.finding(
        &RULE,
        (id, severity, Confidence::Medium),
        summary,
        words::number("sides", sides, "devices", &policy.source),
    );
    if is_first {
        finding = finding
            .with_cost(Some(Cost {
                value: sides as f64,
                unit: "reads on the busiest side per read of an even share",
                basis: Basis::Estimated,
            }))
            .explained("all reads go to the first side: right only where the others are slower");
    } else {
        finding = finding.explained(
            "addresses are shared out in ranges: that helps sequential reads of a balanced load and hurts one that \
             has a hot range",
        );
    }
    Outcome::Found(finding.explained(format!(
        "{EVEN} is the default and right for most; the policy is changed at once and without risk to data"
    )))
}

/// Whether the sides are of different make, which is what policy "first" is for.
fn do_sides_differ(context: &Context<'_>, node: &Node) -> bool {
    let kinds = node.placing.below().into_iter().map(|side| {
        let mut kinds: Vec<_> = context
            .stack
            .under(side)
            .into_iter()
            .map(|id| context.stack.node(id))
            .filter_map(|leaf| {
                leaf.word(keys::ROTATIONAL)
                    .or_else(|| leaf.word(keys::MODEL))
            })
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    });
    kinds.collect::<HashSet<_>>().len() > 1
}
