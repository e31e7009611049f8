//! `single-path`: a LUN of an array that is reached by one path, or by several that nobody joined.

use std::collections::HashMap;

use plumb_model::facts::{PathCase, SinglePath};
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Source};

use super::LayoutRule;
use super::context::{Context, Hardware};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::SinglePath,
    thresholds: || vec![format!("less than {PATHS_MIN} paths")],
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
    // A disk on an export of this host is no second path to the same device.
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
        0 => context.unknown(id, Reason::Paths),
        PATHS_MIN.. => Outcome::Silent,
        paths => {
            let about = (id, Severity::Warning, Confidence::High);
            found(
                context,
                about,
                (paths, PathCase::Multipath),
                context.placed_by(id),
            )
        }
    }
}

fn found(
    context: &Context<'_>,
    about: (NodeId, Severity, Confidence),
    (paths, case): (u64, PathCase),
    source: Option<Source>,
) -> Outcome {
    let facts = Facts::SinglePath(SinglePath {
        paths,
        case,
        source,
    });
    Outcome::found(context.finding(facts, about))
}

/// A disk that nobody joined with another and that has no identity to look for one by.
fn unnamed(context: &Context<'_>, id: NodeId) -> Outcome {
    match context.hardware(id) {
        Hardware::Array(because) => context.unknown(id, Reason::NoIdentity { because }),
        Hardware::Drive | Hardware::Unknown => Outcome::NotAsked,
    }
}

/// Disks of one identity that no multipath device joins.
fn judge_unjoined(context: &Context<'_>, disks: &[NodeId]) -> Outcome {
    let [first, rest @ ..] = disks else {
        return Outcome::NotAsked;
    };
    let identity = context.stack.node(*first).fact(keys::IDENTITY);
    let source = identity.map(|fact| fact.source.clone());
    if rest.is_empty() {
        let Hardware::Array(because) = context.hardware(*first) else {
            return Outcome::NotAsked;
        };
        let about = (*first, Severity::Note, Confidence::Medium);
        return found(context, about, (1, PathCase::Lun { because }), source);
    }
    let devices = disks.iter().map(|id| context.name(*id).to_owned());
    let case = PathCase::Unjoined {
        devices: devices.collect(),
    };
    let about = (*first, Severity::Warning, Confidence::Medium);
    found(context, about, (disks.len() as u64, case), source)
}
