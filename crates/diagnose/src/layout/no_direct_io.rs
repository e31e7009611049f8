//! `no-direct-io`: a database on UFS goes through the file cache, with its lock for a single writer.

use plumb_geometry::Bytes;
use plumb_model::facts::NoDirectIo;
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId};

use super::context::Context;
use super::{LayoutRule, sizes, solaris};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::NoDirectIo,
    thresholds: || {
        vec![format!(
            "pages of {} to {}",
            Bytes(*PAGE_BYTES.start()),
            Bytes(*PAGE_BYTES.end())
        )]
    },
    judge,
};

/// Pages of databases: other stated sizes are no database.
pub const PAGE_BYTES: std::ops::RangeInclusive<u64> = 2 << 10..=64 << 10;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    solaris::ufs(context)
        .map(|(id, node)| judge_mount(context, id, node))
        .collect()
}

fn judge_mount(context: &Context<'_>, id: NodeId, node: &Node) -> Outcome {
    // Without a page nobody said that there is a database.
    let Some(page) = context
        .known
        .page
        .filter(|page| PAGE_BYTES.contains(&page.0))
    else {
        return Outcome::NotAsked;
    };
    match solaris::option(node, "forcedirectio") {
        None => return context.unknown(id, Reason::MountOptions),
        Some(true) => return Outcome::Silent,
        Some(false) => {}
    }
    let block = context.number(id, keys::FS_BLOCK);
    let facts = Facts::NoDirectIo(NoDirectIo {
        page_bytes: page,
        block_bytes: block.filter(|block| page < *block),
        source: sizes::source(node, keys::MOUNT_OPTIONS),
    });
    Outcome::found(context.finding(facts, (id, Severity::Note, Confidence::Low)))
}
