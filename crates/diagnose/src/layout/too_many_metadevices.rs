//! `too-many-metadevices`: more volumes than Solaris Volume Manager is set up for, or soft partitions for each column
//! of each stripe where one stripe below them would do.

use std::collections::BTreeMap;

use plumb_geometry::{group_digits, plural};
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Placing};

use super::context::Context;
use super::{LayoutRule, solaris, words};
use crate::finding::{Confidence, Finding, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "too-many-metadevices",
    title: "more metadevices than need be, or can be",
    needs: "`metastat -p`; `md.conf`",
    decides: true,
    thresholds: || {
        vec![
            format!("{PERCENT_NOTE} % of nmd"),
            NMD_DEFAULT.to_string(),
            group_digits(NMD_MAX),
            format!("{TIMES_NEEDED} times"),
        ]
    },
    plan: None,
    judge,
};

/// Metadevices of a set unless `nmd` of md.conf says otherwise.
pub const NMD_DEFAULT: u64 = 128;

/// The largest that `nmd` can be.
pub const NMD_MAX: u64 = 8192;

/// From so many percent of the limit on it is worth knowing: the next stripe with its columns may not fit.
pub const PERCENT_NOTE: u64 = 90;

/// Stripes are said to have too many parts where these are so many times what is needed.
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
    outcomes.extend(parts(context).map(Outcome::Found));
    outcomes
}

fn judge_set(context: &Context<'_>, set: &str, count: u64) -> Outcome {
    let known = solaris::setting(context, keys::NMD);
    let (limit, source) = match known {
        Some((limit, source)) => (limit, source),
        None if count * 100 < NMD_DEFAULT * PERCENT_NOTE => return Outcome::Silent,
        None => {
            return Outcome::Unknown(format!(
                "{}, and nmd of md.conf is not known: {NMD_DEFAULT} by default, made as needed from Solaris 10 on",
                plural(count, "metadevice")
            ));
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
    let of_set = if set.is_empty() {
        String::new()
    } else {
        format!(" of set {set}")
    };
    let finding = Finding::new(
        RULE.id,
        severity,
        &context.host_target(),
        Confidence::Medium,
        format!("{}{of_set} with nmd = {}", plural(count, "metadevice"), group_digits(limit)),
        words::number("metadevices", count, "devices", "counted in the stack"),
    )
    .with_evidence(words::number("nmd", limit, "devices", source))
    .explained(format!(
        "nmd can be raised up to {} in md.conf and takes effect with a boot -r; fewer volumes are the better remedy",
        group_digits(NMD_MAX)
    ));
    Outcome::Found(finding)
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
    let finding = Finding::new(
        RULE.id,
        Severity::Note,
        &context.host_target(),
        Confidence::Medium,
        format!("{} for {}, {} would do", plural(used, "metadevice"), plural(stripes, "stripe"), group_digits(needed)),
        words::number("metadevices_of_stripes", used, "devices", "counted in the stack"),
    )
    .with_evidence(words::number("metadevices_needed", needed, "devices", "one stripe and a soft partition a volume"))
    .explained(format!(
        "{} as columns of {}: one stripe over whole slices, with soft partitions on it, holds as many volumes",
        plural(columns, "soft partition"),
        plural(stripes, "stripe")
    ));
    Some(finding)
}
