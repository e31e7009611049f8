//! `read-ahead-too-large`: random page faults in mapped files each bring in a large read-ahead.
//!
//! At a fault in a file that is mapped without `madvise(MADV_RANDOM)`, the kernel reads the whole read-ahead around the page. It gives up
//! after 100 faults of one open file that found nothing in the cache, so that each newly opened file costs this once more. A read-ahead
//! above the limit of `queue-setting` is reported there, whatever is read.

use plumb_geometry::Bytes;
use plumb_model::facts::ReadAheadTooLarge;
use plumb_model::{Confidence, Facts, RuleId, Severity};
use plumb_profile::fit::Select;
use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId};
use plumb_trace::Op;

use super::cached_reads::{CACHED_SHARE_MIN, cached_reads};
use super::context::Context;
use super::queue_setting::{READ_AHEAD_BYTES, READ_AHEAD_BYTES_MAX};
use super::{LayoutRule, sizes};
use crate::rules::context::too_few_ios;
use crate::rules::{IOS_MIN, Outcome, share_words};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::ReadAheadTooLarge,
    thresholds: || {
        vec![
            format!("read-ahead from {}", Bytes(LARGE_BYTES_MIN)),
            format!("to {}", Bytes(READ_AHEAD_BYTES_MAX)),
            format!("at least {IOS_MIN} reads"),
            format!(
                "{} of them through the page cache",
                share_words(CACHED_SHARE_MIN)
            ),
            format!("{FAULTS_MIN} page faults that waited for a disk"),
            format!(
                "at least {} read for each of them",
                Bytes(BYTES_PER_FAULT_MIN)
            ),
            "at most 1.5 times the read-ahead between two jumps".to_owned(),
        ]
    },
    judge: |context| context.judge_nodes(judge_node),
};

/// Eight times the kernel's default. Streams of one disk are at full speed below this.
const LARGE_BYTES_MIN: u64 = 1 << 20;

/// Programs that start fault a few dozen times in their files.
const FAULTS_MIN: u64 = 50;

/// Four times what the default read-ahead reads at a fault.
const BYTES_PER_FAULT_MIN: u64 = 4 * READ_AHEAD_BYTES;

/// Reads that go on for longer than this share of the read-ahead are streams, which use it.
const RUN_RATIO_MAX: f64 = 1.5;

fn judge_node(context: &Context<'_>, id: NodeId, node: &Node) -> Option<Outcome> {
    let Bytes(bytes) = node.number(keys::READ_AHEAD)?;
    let seen = cached_reads(context, id)?;
    let faults = faults(context, id);
    if !(LARGE_BYTES_MIN..=READ_AHEAD_BYTES_MAX).contains(&bytes) || faults < FAULTS_MIN {
        return Some(Outcome::Silent);
    }
    if seen.reads < IOS_MIN {
        return Some(context.unknown(id, too_few_ios(seen.reads)));
    }
    let jumps = seen.profile.places.table.count(Select {
        op: Some(Op::Read),
        ..Select::HEADS
    });
    let read_bytes = seen.profile.op(Op::Read).bytes;
    let is_random = read_bytes as f64 <= jumps as f64 * bytes as f64 * RUN_RATIO_MAX;
    let is_much = read_bytes / faults >= BYTES_PER_FAULT_MIN;
    if !seen.is_mostly_cached() || !is_random || !is_much {
        return Some(Outcome::Silent);
    }
    let facts = Facts::ReadAheadTooLarge(ReadAheadTooLarge {
        bytes: Bytes(bytes),
        better_bytes: Bytes(READ_AHEAD_BYTES),
        reads: seen.reads,
        cached_reads: seen.cached,
        jumps,
        read_bytes,
        faults,
        source: sizes::source(node, keys::READ_AHEAD),
    });
    let about = (id, Severity::Warning, Confidence::Medium);
    Some(Outcome::found(context.finding(facts, about)))
}

/// Page faults of the processes that sent I/O to a disk or to a part of it. Those of a process that uses several disks count for
/// each.
fn faults(context: &Context<'_>, disk: NodeId) -> u64 {
    let senders = context.known.watch.iter().flat_map(|watch| &watch.senders);
    let is_on_disk = |device: &str| {
        let id = context.stack.find(device);
        id.is_some_and(|id| context.stack.under(id).contains(&disk))
    };
    senders
        .filter(|sender| is_on_disk(&sender.device))
        .map(|sender| sender.faults)
        .sum()
}
