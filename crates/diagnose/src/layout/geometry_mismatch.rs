//! `geometry-mismatch`: a file system is configured for another stripe than the one below it.

use plumb_geometry::Bytes;
use plumb_model::facts::{GeometryMismatch, StripeBelow};
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::node_facts::ContentKind;
use plumb_stack::{Chunks, NodeId, Placing};

use super::LayoutRule;
use super::context::{Context, Hardware};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::GeometryMismatch,
    thresholds: || vec![TOLD.map(String::from).join(", ")],
    judge,
};

/// File systems with a stripe parameter.
pub const TOLD: [ContentKind; 4] = [
    ContentKind::Ext2,
    ContentKind::Ext3,
    ContentKind::Ext4,
    ContentKind::Xfs,
];

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let is_told = |id: NodeId| {
        context.fact(id, keys::FS_STRIPE_UNIT).is_some()
            || context
                .fact(id, keys::CONTENT)
                .is_some_and(|content| TOLD.contains(&content.value))
    };
    context
        .file_systems()
        .filter(|(id, _)| is_told(*id))
        .map(|(id, _)| judge_one(context, id))
        .collect()
}

fn judge_one(context: &Context<'_>, id: NodeId) -> Outcome {
    let stripe = true_stripe(context, id);
    let told = context.number(id, keys::FS_STRIPE_UNIT);
    match (told, stripe) {
        (None, None) => Outcome::NotAsked,
        (None, Some((on, _))) => {
            let on = context.name(on).to_owned();
            context.unknown(id, Reason::StripeNotTold { on })
        }
        (Some(Bytes(0)), None) => Outcome::Silent,
        (Some(told), None) => on_no_stripe(context, id, told),
        (Some(unit), Some((on, chunks))) => compare(context, id, unit, (on, chunks)),
    }
}

/// The first layer in chunks below: its chunk and width are the true ones of the file system.
fn true_stripe<'a>(context: &Context<'a>, id: NodeId) -> Option<(NodeId, &'a Chunks)> {
    context.landings(id).all.iter().find_map(|landing| {
        match &context.stack.node(landing.on).placing {
            Placing::Chunks(chunks) if chunks.members.len() > 1 => Some((landing.on, chunks)),
            _ => None,
        }
    })
}

fn on_no_stripe(context: &Context<'_>, id: NodeId, told: Bytes) -> Outcome {
    let leaves = context.leaves(id);
    let hidden = leaves
        .iter()
        .find(|leaf| context.hardware(**leaf) != Hardware::Drive);
    if let Some(leaf) = hidden {
        let reason = Reason::StripeNotVisible {
            told_bytes: told,
            on: context.name(*leaf).to_owned(),
        };
        return context.unknown(id, reason);
    }
    mismatch(context, (id, Severity::Note), told, None)
}

fn compare(
    context: &Context<'_>,
    id: NodeId,
    unit: Bytes,
    (on, chunks): (NodeId, &Chunks),
) -> Outcome {
    let stripe = StripeBelow {
        on: context.name(on).to_owned(),
        chunk_bytes: chunks.chunk,
        data_chunks: chunks.data_chunks(),
        width_bytes: chunks.stripe_bytes(),
    };
    let told_width = context.number(id, keys::FS_STRIPE_WIDTH);
    let is_width_right = told_width.is_none_or(|told| Some(told) == stripe.width_bytes);
    if unit == stripe.chunk_bytes && is_width_right {
        return Outcome::Silent;
    }
    let severity = if unit == Bytes(0) {
        Severity::Note
    } else {
        Severity::Warning
    };
    mismatch(context, (id, severity), unit, Some(stripe))
}

fn mismatch(
    context: &Context<'_>,
    (id, severity): (NodeId, Severity),
    told: Bytes,
    stripe: Option<StripeBelow>,
) -> Outcome {
    let source = context.fact(id, keys::FS_STRIPE_UNIT);
    let facts = Facts::GeometryMismatch(GeometryMismatch {
        told_unit_bytes: told,
        told_width_bytes: context.number(id, keys::FS_STRIPE_WIDTH),
        source: source.map(|fact| fact.source.clone()),
        stripe,
    });
    Outcome::found(context.finding(facts, (id, severity, Confidence::High)))
}
