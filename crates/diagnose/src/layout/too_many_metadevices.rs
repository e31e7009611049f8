//! `too-many-metadevices`: more volumes than Solaris Volume Manager is set up for, or soft partitions for each column
//! of each stripe where one stripe below them would do.

use std::collections::BTreeMap;

use plumb_geometry::group_digits;
use plumb_model::facts::TooManyMetadevices;
use plumb_model::{Confidence, Facts, Finding, Reason, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Placing};

use super::context::Context;
use super::{LayoutRule, solaris};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::TooManyMetadevices,
    thresholds: || {
        vec![
            format!("{PERCENT_NOTE} % of nmd"),
            NMD_DEFAULT.to_string(),
            group_digits(NMD_MAX),
            format!("{TIMES_NEEDED} times"),
        ]
    },
    judge,
};

/// Metadevices of a set unless `nmd` of md.conf says otherwise.
pub const NMD_DEFAULT: u64 = 128;

/// The largest that `nmd` can be.
pub const NMD_MAX: u64 = 8192;

/// From this percentage of the limit on it is worth knowing: the next stripe with its columns may not fit.
pub const PERCENT_NOTE: u64 = 90;

/// Stripes count as having too many parts at this multiple of the necessary number.
pub const TIMES_NEEDED: u64 = 4;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let mut by_set: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, node) in solaris::metadevices(context) {
        // A row of a concatenation is no device of its own.
        if !node.name.contains(' ') {
            let set = node.name.split_once('/').map_or("", |(set, _)| set);
            *by_set.entry(set).or_default() += 1;
        }
    }
    if by_set.is_empty() {
        return vec![Outcome::NotAsked];
    }
    let mut outcomes: Vec<Outcome> = by_set
        .iter()
        .map(|(set, count)| judge_set(context, set, *count))
        .collect();
    outcomes.extend(parts(context).map(Outcome::found));
    outcomes
}

fn judge_set(context: &Context<'_>, set: &str, count: u64) -> Outcome {
    let known = solaris::setting(context, keys::NMD);
    let (limit, source) = match known {
        Some((limit, source)) => (limit, source),
        None if count * 100 < NMD_DEFAULT * PERCENT_NOTE => return Outcome::Silent,
        None => {
            return Outcome::Unknown(Reason::Nmd {
                metadevices: count,
                default: NMD_DEFAULT,
            });
        }
    };
    if count * 100 < limit.saturating_mul(PERCENT_NOTE) {
        return Outcome::Silent;
    }
    let severity = if count >= limit {
        Severity::Warning
    } else {
        Severity::Note
    };
    let facts = Facts::TooManyMetadevices(TooManyMetadevices::Limit {
        set: (!set.is_empty()).then(|| set.to_owned()),
        metadevices: count,
        nmd: limit,
        nmd_max: NMD_MAX,
        source,
    });
    Outcome::found(context.host_finding(facts, severity, Confidence::Medium))
}

/// Stripes that are built of soft partitions, one for each column: with v stripes over d disks v·d + v metadevices, where
/// soft partitions on one stripe over the disks would be 1 + v.
fn parts(context: &Context<'_>) -> Option<Finding> {
    let is_soft = |id: &NodeId| context.stack.node(*id).kind == Kind::SoftPartition;
    let (mut stripes, mut columns) = (0u64, 0u64);
    for (_, node) in solaris::metadevices(context) {
        let Placing::Chunks(chunks) = &node.placing else {
            continue;
        };
        let members: Vec<NodeId> = chunks.members.iter().map(|member| member.node).collect();
        if members.len() > 1 && members.iter().all(is_soft) {
            stripes += 1;
            columns += members.len() as u64;
        }
    }
    let (used, needed) = (stripes + columns, 1 + stripes);
    if stripes == 0 || used < needed * TIMES_NEEDED {
        return None;
    }
    let facts = Facts::TooManyMetadevices(TooManyMetadevices::Columns {
        metadevices: used,
        needed,
        stripes,
        columns,
    });
    Some(context.host_finding(facts, Severity::Note, Confidence::Medium))
}
