//! `no-logging`: a UFS file system without a log has to be checked as a whole after a crash.

use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId};

use super::context::Context;
use super::{LayoutRule, solaris, words};
use crate::finding::{Confidence, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "no-logging",
    title: "a UFS file system has no log",
    needs: "mount options",
    decides: false,
    thresholds: || OPTIONS.map(str::to_owned).to_vec(),
    plan: None,
    judge,
};

/// The option that decides, and the one that turns it off.
pub const OPTIONS: [&str; 2] = ["logging", "nologging"];

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    solaris::ufs(context)
        .map(|(id, node)| judge_mount(context, id, node))
        .collect()
}

fn judge_mount(context: &Context<'_>, id: NodeId, node: &Node) -> Outcome {
    let (Some(is_on), Some(is_off)) = (
        solaris::option(node, OPTIONS[0]),
        solaris::option(node, OPTIONS[1]),
    ) else {
        return Outcome::UnknownOf(
            context.target(id),
            "its mount options are not known".to_owned(),
        );
    };
    if is_on {
        return Outcome::Silent;
    }
    let source = node
        .facts
        .get(keys::MOUNT_OPTIONS)
        .map(|fact| fact.source.to_string())
        .unwrap_or_default();
    let (severity, confidence, summary) = if is_off {
        (
            Severity::Warning,
            Confidence::High,
            "is mounted with nologging",
        )
    } else {
        // From Solaris 9 9/04 on a log is the default and may go without saying.
        (
            Severity::Note,
            Confidence::Low,
            "is mounted without the option logging",
        )
    };
    let finding = context
        .finding(
            &RULE,
            (id, severity, confidence),
            summary.to_owned(),
            words::number("logging", 0, "flag", source),
        )
        .explained("after a crash all of it is checked before it can be used; with a log that takes seconds")
        .explained("mount it with logging: that can be done at any time, and taken back");
    Outcome::Found(finding)
}
