//! `queue-setting`: read-ahead, request size or scheduler of a queue that do harm.

use plumb_geometry::{Bytes, SmallSort};
use plumb_model::facts::{BadSetting, QueueSetting};
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId, Placing};

use super::context::Context;
use super::{LayoutRule, sizes};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::QueueSetting,
    thresholds: || {
        vec![
            format!("read-ahead above {}", Bytes(READ_AHEAD_BYTES_MAX)),
            format!("{STRIPES_AHEAD} stripes of an array"),
            format!("requests below {}", Bytes(REQUEST_BYTES_MIN)),
            format!("at least {REQUEST_RATIO} times"),
            SEEK_SCHEDULERS.join(" or "),
        ]
    },
    judge: |context| context.judge_nodes(judge_node),
};

/// A reader that stops early does not use read-ahead above this: 64 MiB, taken from a hint, slowed a volume from its
/// limit to a few MiB/s (Azure AKS 5743). Streams of one disk are at full speed with a few hundred KiB.
pub const READ_AHEAD_BYTES_MAX: u64 = 4 << 20;

/// The kernel's default read-ahead.
pub(super) const READ_AHEAD_BYTES: u64 = 128 << 10;

/// The kernel's default request size.
const REQUEST_BYTES: u64 = 1280 << 10;

/// This number of stripes of an array is right for any size: the default of md.
pub const STRIPES_AHEAD: u64 = 2;

/// Requests below this are small where the hardware takes more: chunks of stripes are larger.
pub const REQUEST_BYTES_MIN: u64 = 256 << 10;

/// The hardware has to accept this many times the request size before the request size is far below.
pub const REQUEST_RATIO: u64 = 4;

/// Schedulers that order I/O for a head that a flash drive does not have.
pub const SEEK_SCHEDULERS: [&str; 2] = ["bfq", "cfq"];

/// A setting that does harm, and how bad it is.
type Point = (BadSetting, Severity);

fn judge_node(context: &Context<'_>, id: NodeId, node: &Node) -> Option<Outcome> {
    let facts = &node.facts;
    let is_known =
        facts.read_ahead.is_some() || facts.max_request.is_some() || facts.scheduler.is_some();
    is_known.then_some(())?;
    let points = [read_ahead(node), request(node), scheduler(node)];
    let mut points: Vec<Point> = points.into_iter().flatten().collect();
    points.small_sort_by_key(|(_, severity)| std::cmp::Reverse(*severity));
    let Some((_, severity)) = points.first() else {
        // A request size without the hardware limit cannot be judged.
        let is_half_known = node.number(keys::MAX_REQUEST).is_some()
            && node.number(keys::MAX_REQUEST_HARDWARE).is_none();
        return Some(if is_half_known && node.kind.is_leaf() {
            context.unknown(id, Reason::HardwareRequest)
        } else {
            Outcome::Silent
        });
    };
    let about = (id, *severity, Confidence::Medium);
    let settings = points.iter().map(|(bad, _)| bad.clone()).collect();
    let facts = Facts::QueueSetting(QueueSetting { settings });
    Some(Outcome::found(context.finding(facts, about)))
}

fn read_ahead(node: &Node) -> Option<Point> {
    // md reads two stripes ahead, so that all members have work.
    let stripes = match &node.placing {
        Placing::Chunks(chunks) => chunks
            .stripe_bytes()
            .map_or(0, |stripe| stripe.0.saturating_mul(STRIPES_AHEAD)),
        _ => 0,
    };
    let most = READ_AHEAD_BYTES_MAX.max(stripes);
    let Bytes(bytes) = node
        .number(keys::READ_AHEAD)
        .filter(|bytes| bytes.0 > most)?;
    let bad = BadSetting::ReadAhead {
        bytes: Bytes(bytes),
        most_bytes: Bytes(most),
        better_bytes: Bytes(READ_AHEAD_BYTES.max(stripes)),
        source: sizes::source(node, keys::READ_AHEAD),
    };
    Some((bad, Severity::Warning))
}

fn request(node: &Node) -> Option<Point> {
    let Bytes(bytes) = node
        .number(keys::MAX_REQUEST)
        .filter(|bytes| bytes.0 < REQUEST_BYTES_MIN)?;
    let Bytes(hardware) = node.number(keys::MAX_REQUEST_HARDWARE)?;
    (hardware >= bytes.saturating_mul(REQUEST_RATIO)).then_some(())?;
    let bad = BadSetting::Request {
        bytes: Bytes(bytes),
        hardware_bytes: Bytes(hardware),
        better_bytes: Bytes(hardware.min(REQUEST_BYTES)),
        source: sizes::source(node, keys::MAX_REQUEST),
    };
    Some((bad, Severity::Note))
}

fn scheduler(node: &Node) -> Option<Point> {
    let scheduler = node
        .word(keys::SCHEDULER)
        .filter(|word| SEEK_SCHEDULERS.contains(word))?;
    let is_flash = node.number(keys::ROTATIONAL) == Some(false) || node.name.starts_with("nvme");
    is_flash.then_some(())?;
    let bad = BadSetting::Scheduler {
        name: scheduler.to_owned(),
        better: "none".to_owned(),
        source: sizes::source(node, keys::ROTATIONAL),
    };
    Some((bad, Severity::Note))
}
