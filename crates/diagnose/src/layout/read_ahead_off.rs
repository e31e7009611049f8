//! `read-ahead-off`: the read-ahead of a device is 0, and a program reads files on it in order.
//!
//! Without read-ahead the kernel reads one page for each page that a program asks for, whatever the length of the call. Reads past
//! the page cache do not use read-ahead, and do not count here.

use plumb_geometry::Bytes;
use plumb_model::facts::ReadAheadOff;
use plumb_model::{Confidence, Facts, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId};

use super::cached_reads::{CACHED_SHARE_MIN, cached_reads, continuing_up_to};
use super::context::Context;
use super::queue_setting::READ_AHEAD_BYTES;
use super::{LayoutRule, sizes};
use crate::rules::context::too_few_ios;
use crate::rules::{IOS_MIN, Outcome, share_words};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::ReadAheadOff,
    thresholds: || {
        vec![
            "read-ahead of 0".to_owned(),
            format!("at least {IOS_MIN} reads"),
            format!(
                "{} of them through the page cache",
                share_words(CACHED_SHARE_MIN)
            ),
            format!(
                "{} of them up to {} that continue a stream",
                share_words(STREAM_SHARE_MIN),
                Bytes(SHORT_BYTES)
            ),
        ]
    },
    judge: |context| context.judge_nodes(judge_node),
};

/// From this share on the load reads in order. Random reads continue a stream by chance in a few percent.
const STREAM_SHARE_MIN: f64 = 0.5;

/// A page of x86 is 4 KiB, one of some arm64 and POWER hosts 16 KiB or 64 KiB. With 64 KiB reads little is lost.
const SHORT_BYTES: u64 = 16 << 10;

fn judge_node(context: &Context<'_>, id: NodeId, node: &Node) -> Option<Outcome> {
    let Bytes(set) = node.number(keys::READ_AHEAD)?;
    let seen = cached_reads(context, id)?;
    if set > 0 {
        return Some(Outcome::Silent);
    }
    if seen.reads < IOS_MIN {
        return Some(context.unknown(id, too_few_ios(seen.reads)));
    }
    let continuing_reads = continuing_up_to(seen.profile, SHORT_BYTES);
    let is_in_order = continuing_reads as f64 >= seen.reads as f64 * STREAM_SHARE_MIN;
    if !seen.is_mostly_cached() || !is_in_order {
        return Some(Outcome::Silent);
    }
    let facts = Facts::ReadAheadOff(ReadAheadOff {
        reads: seen.reads,
        cached_reads: seen.cached,
        continuing_reads,
        short_bytes: Bytes(SHORT_BYTES),
        better_bytes: Bytes(READ_AHEAD_BYTES),
        source: sizes::source(node, keys::READ_AHEAD),
    });
    let about = (id, Severity::Warning, Confidence::High);
    Some(Outcome::found(context.finding(facts, about)))
}
