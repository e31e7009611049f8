//! `no-direct-io`: a database on UFS goes through the file cache, with its lock for a single writer.

use plumb_geometry::Bytes;
use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId};

use super::context::Context;
use super::{LayoutRule, solaris, words};
use crate::finding::{Confidence, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "no-direct-io",
    title: "a database on UFS goes through the file cache",
    needs: "mount options, `--page`",
    decides: false,
    thresholds: || {
        vec![format!(
            "pages of {} to {}",
            Bytes(*PAGE_BYTES.start()),
            Bytes(*PAGE_BYTES.end())
        )]
    },
    plan: None,
    judge,
};

/// Pages of databases: what is stated below or above is no database.
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
        None => {
            return Outcome::UnknownOf(
                context.target(id),
                "its mount options are not known".to_owned(),
            );
        }
        Some(true) => return Outcome::Silent,
        Some(false) => {}
    }
    let options = node
        .facts
        .get(keys::MOUNT_OPTIONS)
        .map(|fact| fact.source.to_string())
        .unwrap_or_default();
    let mut finding = context
        .finding(
            &RULE,
            (id, Severity::Note, Confidence::Low),
            "is mounted without forcedirectio".to_owned(),
            words::number("forcedirectio", 0, "flag", options),
        )
        .with_evidence(words::bytes("page_bytes", page, "page given by the user"));
    let block = context.number(id, keys::FS_BLOCK).map(Bytes);
    if let Some(block) = block.filter(|block| page < *block) {
        finding = finding.explained(format!(
            "a write of {page} makes the file system read a block of {block} first; direct I/O moves the page alone"
        ));
    }
    Outcome::Found(
        finding
            .explained("direct I/O lets several writers into one file at once (from Solaris 8 3/01 on) and saves a copy")
            .explained(
                "try it first: what a database leaves to the file cache is read from disk then, and may become slower",
            ),
    )
}
