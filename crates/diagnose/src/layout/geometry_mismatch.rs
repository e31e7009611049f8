//! `geometry-mismatch`: the stripe that a file system was told is not the one that it lies on.

use plumb_geometry::Bytes;
use plumb_stack::node::keys;
use plumb_stack::{Chunks, NodeId, Placing};

use super::context::{Context, Hardware};
use super::{LayoutRule, words};
use crate::finding::{Confidence, Finding, Severity};
use crate::rules::{Outcome, PlanKind};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "geometry-mismatch",
    title: "a file system was told another stripe than it lies on",
    needs: "its superblock",
    decides: true,
    thresholds: || vec![TOLD.join(", ")],
    plan: Some(PlanKind::FileSystem),
    judge,
};

/// File systems that can be told a stripe.
pub const TOLD: [&str; 4] = ["ext2", "ext3", "ext4", "xfs"];

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let is_told = |id: NodeId| {
        context.fact(id, keys::FS_STRIPE_UNIT).is_some()
            || context
                .fact(id, keys::CONTENT)
                .is_some_and(|content| TOLD.contains(&content.value.as_str()))
    };
    context
        .file_systems()
        .filter(|(id, _)| is_told(*id))
        .map(|(id, _)| judge_one(context, id))
        .collect()
}

fn judge_one(context: &Context<'_>, id: NodeId) -> Outcome {
    let unknown = |why: String| Outcome::UnknownOf(context.target(id), why);
    let stripe = true_stripe(context, id);
    let told = context.number(id, keys::FS_STRIPE_UNIT).map(Bytes);
    match (told, stripe) {
        (None, None) => Outcome::NotAsked,
        (None, Some((on, _))) => unknown(format!(
            "what stripe it was told is not known; it lies on {}",
            context.name(on)
        )),
        (Some(Bytes(0)), None) => Outcome::Silent,
        (Some(told), None) => on_no_stripe(context, id, told),
        (Some(unit), Some((on, chunks))) => compare(context, id, unit, (on, chunks)),
    }
}

/// The first layer in chunks below: its chunk and width are what the file system meets.
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
        let why = format!(
            "it was told a stripe unit of {told}; whether {} has one cannot be seen from here",
            context.name(*leaf)
        );
        return Outcome::UnknownOf(context.target(id), why);
    }
    let summary = format!("was told a stripe unit of {told} and lies on no stripe");
    let finding = mismatch(context, id, (Severity::Note, told), summary).explained(
        "allocation is rounded for nothing; a hint of the drive was probably taken for a stripe",
    );
    Outcome::Found(finding)
}

fn compare(
    context: &Context<'_>,
    id: NodeId,
    unit: Bytes,
    (on, chunks): (NodeId, &Chunks),
) -> Outcome {
    let (chunk, width) = (chunks.chunk, chunks.stripe_bytes());
    let told_width = context.number(id, keys::FS_STRIPE_WIDTH).map(Bytes);
    if unit == chunk && told_width.is_none_or(|told| Some(told) == width) {
        return Outcome::Silent;
    }
    let name = context.name(on);
    let width_words = width.map_or_else(
        || "more than 64 bits can say".to_owned(),
        |width| width.to_string(),
    );
    let (severity, summary) = if unit == Bytes(0) {
        (
            Severity::Note,
            format!("was told no stripe and lies on chunks of {chunk} of {name}"),
        )
    } else if unit != chunk {
        (
            Severity::Warning,
            format!("was told a stripe unit of {unit}, and chunks of {name} are {chunk}"),
        )
    } else {
        let told = told_width.unwrap_or_default();
        (
            Severity::Warning,
            format!("was told a stripe width of {told}, and that of {name} is {width_words}"),
        )
    };
    let mut finding = mismatch(context, id, (severity, unit), summary).with_evidence(words::bytes(
        "chunk_bytes",
        chunk,
        format!("layout of {name}"),
    ));
    if let Some(width) = width {
        finding = finding.with_evidence(words::bytes(
            "stripe_width_bytes",
            width,
            format!("layout of {name}"),
        ));
    }
    if let Some(told) = told_width {
        finding =
            finding.with_evidence(words::bytes("told_width_bytes", told, source(context, id)));
    }
    Outcome::Found(finding.explained(format!(
        "allocation is spread by the stripe it was told: a wrong one puts metadata on few members and splits files. The \
         true one is {chunk} × {} = {width_words}; optimal_io_size of a stacked device is no stripe width",
        chunks.data_chunks()
    )))
}

fn source(context: &Context<'_>, id: NodeId) -> String {
    context
        .fact(id, keys::FS_STRIPE_UNIT)
        .map(|fact| fact.source.to_string())
        .unwrap_or_default()
}

fn mismatch(
    context: &Context<'_>,
    id: NodeId,
    (severity, told): (Severity, Bytes),
    summary: String,
) -> Finding {
    let evidence = words::bytes("told_unit_bytes", told, source(context, id));
    context
        .finding(&RULE, (id, severity, Confidence::High), summary, evidence)
        .explained("stripe unit and width are hints and can be changed without moving data: retrofit them, or mount with them")
}
