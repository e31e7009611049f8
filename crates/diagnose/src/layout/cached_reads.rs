//! Reads through the page cache, as a watch of a device saw them: the input of the rules on read-ahead.

use plumb_profile::Profile;
use plumb_profile::fit::Select;
use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId};
use plumb_trace::{Layer, Op};

use super::context::Context;

/// From this share on, the reads of a device are those of the page cache. A few reads past it change nothing.
pub(super) const CACHED_SHARE_MIN: f64 = 0.5;

/// The reads of a device.
pub(super) struct CachedReads<'a> {
    /// The profile that counted them.
    pub profile: &'a Profile,
    /// All of them.
    pub reads: u64,
    /// Those that filled the page cache.
    pub cached: u64,
}

impl CachedReads<'_> {
    /// Whether most of them filled the page cache.
    pub fn is_mostly_cached(&self) -> bool {
        self.cached as f64 >= self.reads as f64 * CACHED_SHARE_MIN
    }
}

/// The reads of a device whose read-ahead applies to files; `None` if no watch saw their flags, or if the read-ahead of a
/// device above applies.
pub(super) fn cached_reads<'a>(context: &'a Context<'_>, id: NodeId) -> Option<CachedReads<'a>> {
    let profile = context
        .profiles(id)
        .iter()
        .find(|profile| profile.layer != Layer::Vfs)?;
    let cached = profile.answers.as_ref()?.cached_reads?;
    let is_below = |other: NodeId, node: &Node| {
        other != id
            && node.number(keys::READ_AHEAD).is_some()
            && context.stack.under(other).contains(&id)
    };
    if context
        .stack
        .nodes()
        .any(|(other, node)| is_below(other, node))
    {
        return None;
    }
    let reads = profile.places.table.count(Select::op(Op::Read));
    Some(CachedReads {
        profile,
        reads,
        // A watch reads the table first, and this counter a moment later.
        cached: cached.min(reads),
    })
}

/// Reads up to a length that continue a stream.
pub(super) fn continuing_up_to(profile: &Profile, len_bytes: u64) -> u64 {
    let table = &profile.places.table;
    let continuing = Select {
        continues: Some(true),
        ..Select::op(Op::Read)
    };
    let longer = Select {
        len_bytes_min: len_bytes + 1,
        ..continuing
    };
    table.count(continuing).saturating_sub(table.count(longer))
}
