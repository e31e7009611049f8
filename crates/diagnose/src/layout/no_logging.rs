//! `no-logging`: a UFS file system without a log has to be checked as a whole after a crash.

use plumb_model::facts::NoLogging;
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId};

use super::context::Context;
use super::{LayoutRule, sizes, solaris};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::NoLogging,
    thresholds: || OPTIONS.map(str::to_owned).to_vec(),
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
        return context.unknown(id, Reason::MountOptions);
    };
    if is_on {
        return Outcome::Silent;
    }
    let (severity, confidence) = if is_off {
        (Severity::Warning, Confidence::High)
    } else {
        // From Solaris 9 9/04 on a log is the default and may go without saying.
        (Severity::Note, Confidence::Low)
    };
    let facts = Facts::NoLogging(NoLogging {
        is_switched_off: is_off,
        source: sizes::source(node, keys::MOUNT_OPTIONS),
    });
    Outcome::found(context.finding(facts, (id, severity, confidence)))
}
