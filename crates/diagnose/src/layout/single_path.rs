//! `single-path`: a LUN of an array that is reached by one path, or by several that nobody joined.

use std::collections::HashMap;

use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId};

use super::context::{Context, Hardware};
use super::{LayoutRule, words};
use crate::finding::{Confidence, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "single-path",
    title: "a LUN of an array has one path, or several unjoined",
    needs: "nothing",
    decides: false,
    thresholds: || vec![format!("less than {PATHS_MIN} paths")],
    plan: None,
    judge,
};

/// Paths that survive the loss of one.
pub const PATHS_MIN: u64 = 2;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let multipaths = context
        .stack
        .nodes()
        .filter(|(_, node)| node.kind == Kind::Multipath);
    let mut outcomes: Vec<Outcome> = multipaths
        .map(|(id, _)| judge_multipath(context, id))
        .collect();
    let mut by_identity: HashMap<&str, Vec<NodeId>> = HashMap::new();
    let is_disk = |kind| matches!(kind, Kind::Disk | Kind::VirtualDisk | Kind::Path);
    // A disk that is known to stand on an export of this host is no second path to what is below.
    let disks = context
        .stack
        .nodes()
        .filter(|(_, node)| is_disk(node.kind) && !node.is_seen_through());
    for (id, node) in disks {
        let is_joined = context
            .stack
            .above(id)
            .iter()
            .any(|above| context.stack.node(*above).kind == Kind::Multipath);
        if is_joined {
            continue;
        }
        match node.word(keys::IDENTITY) {
            Some(identity) => by_identity.entry(identity).or_default().push(id),
            None => outcomes.push(unnamed(context, id)),
        }
    }
    let mut groups: Vec<Vec<NodeId>> = by_identity.into_values().collect();
    groups.sort();
    outcomes.extend(
        groups
            .into_iter()
            .map(|group| judge_unjoined(context, &group)),
    );
    outcomes
}

fn judge_multipath(context: &Context<'_>, id: NodeId) -> Outcome {
    let paths = context.stack.node(id).placing.below();
    match paths.len() as u64 {
        0 => Outcome::UnknownOf(context.target(id), "its paths are not known".to_owned()),
        PATHS_MIN.. => Outcome::Silent,
        number => {
            let source = context
                .stack
                .node(id)
                .placed_by
                .as_ref()
                .map(ToString::to_string);
            let finding = context
                .finding(
                    &RULE,
                    (id, Severity::Warning, Confidence::High),
                    "has a single path".to_owned(),
                    words::number("paths", number, "paths", source.unwrap_or_default()),
                )
                .explained("it fails with its path; a second one adds bandwidth as well")
                .explained("look for cables, zoning and LUN masking before anything else: paths seldom go by themselves");
            Outcome::Found(finding)
        }
    }
}

/// A disk that nobody joined with another and that has no identity to look for one by.
fn unnamed(context: &Context<'_>, id: NodeId) -> Outcome {
    match context.hardware(id) {
        Hardware::Array(why) => Outcome::UnknownOf(
            context.target(id),
            format!("{why}, and it has no identity by which other paths to it could be told"),
        ),
        Hardware::Drive | Hardware::Unknown => Outcome::NotAsked,
    }
}

/// Disks of one identity that no multipath device joins.
fn judge_unjoined(context: &Context<'_>, disks: &[NodeId]) -> Outcome {
    let [first, rest @ ..] = disks else {
        return Outcome::NotAsked;
    };
    let identity = context.stack.node(*first).facts.get(keys::IDENTITY);
    let source = identity
        .map(|fact| fact.source.to_string())
        .unwrap_or_default();
    if rest.is_empty() {
        let Hardware::Array(why) = context.hardware(*first) else {
            return Outcome::NotAsked;
        };
        let finding = context
            .finding(
                &RULE,
                (*first, Severity::Note, Confidence::Medium),
                "is a LUN of an array and has one path".to_owned(),
                words::number("paths", 1, "paths", source),
            )
            .explained(why)
            .explained("it fails with its path; a second one adds bandwidth as well");
        return Outcome::Found(finding);
    }
    let names: Vec<String> = disks
        .iter()
        .map(|id| context.name(*id).to_owned())
        .collect();
    let finding = context
        .finding(
            &RULE,
            (*first, Severity::Warning, Confidence::Medium),
            format!("{} are one LUN, and nothing joins them", words::list(&names)),
            words::number("paths", disks.len() as u64, "paths", source),
        )
        .explained(
            "whoever writes to both writes to one disk twice: volume managers may refuse it or damage it",
        )
        .explained("let a multipath driver join them, and use its device only");
    Outcome::Found(finding)
}
