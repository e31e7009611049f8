//! `record-mismatch` from the layout: pages are smaller than the records of the data set or the blocks of the file
//! system that they are kept in, or no multiples of them.

use plumb_geometry::Bytes;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Node, NodeId};

use super::context::Context;
use super::solaris;
use super::{LayoutRule, words};
use crate::finding::{Basis, Confidence, Cost, Severity};
use crate::rules::{Outcome, PlanKind};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "record-mismatch",
    title: "pages and records differ in size",
    needs: "`--page`",
    decides: true,
    thresholds: || vec![format!("warning from {AMPLIFICATION_WARNING} times")],
    plan: Some(PlanKind::Record),
    judge,
};

/// From this read amplification on it is worth mending: two pages to a record cost a write one read of the record.
pub const AMPLIFICATION_WARNING: u64 = 4;

/// What a file system without records keeps pages in.
const BLOCKS: &str = "blocks";

/// What pages are kept in.
struct PageRecord {
    bytes: Bytes,
    words: &'static str,
    source: String,
}

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let records = context
        .stack
        .nodes()
        .filter_map(|(id, node)| Some((id, record(node)?)));
    let blocks = context
        .file_systems()
        .filter_map(|(id, _)| Some((id, block(context, id)?)));
    records
        .chain(blocks)
        .map(|(id, record)| judge_one(context, id, record))
        .collect()
}

/// The record of a data set, or the block of a volume.
fn record(node: &Node) -> Option<PageRecord> {
    let of_fact = |key, words| {
        let bytes = Bytes(node.number(key)?);
        let source = node.facts.get(key)?.source.to_string();
        Some(PageRecord {
            bytes,
            words,
            source,
        })
    };
    let grid = node
        .grids
        .iter()
        .find(|fact| fact.what == CellKind::Record && fact.is_believed());
    let record = of_fact(keys::RECORD_SIZE, "records")
        .or_else(|| of_fact(keys::VOLUME_BLOCK, "volume blocks"))
        .or_else(|| {
            let (bytes, source) = grid.map(|fact| (fact.granularity(), fact.source.to_string()))?;
            Some(PageRecord {
                bytes,
                words: "records",
                source,
            })
        })?;
    (record.bytes.0 > 0).then_some(record)
}

/// The block of a file system that has no records.
fn block(context: &Context<'_>, id: NodeId) -> Option<PageRecord> {
    let bytes = Bytes(
        context
            .number(id, keys::FS_BLOCK)
            .filter(|bytes| *bytes > 0)?,
    );
    let source = context.fact(id, keys::FS_BLOCK)?.source.to_string();
    record(context.stack.node(id))
        .is_none()
        .then_some(PageRecord {
            bytes,
            words: BLOCKS,
            source,
        })
}

fn judge_one(context: &Context<'_>, id: NodeId, record: PageRecord) -> Outcome {
    let node = context.stack.node(id);
    let stated = node
        .grids
        .iter()
        .find(|fact| fact.what == CellKind::Page && fact.is_believed());
    let given = context
        .known
        .page
        .filter(|page| page.0 > 0)
        .map(|page| (page, "page given by the user".to_owned()));
    let page = given.or_else(|| stated.map(|fact| (fact.granularity(), fact.source.to_string())));
    let Some((page, page_source)) = page else {
        return match record.words {
            // Blocks of file systems are small and suit most: nobody asked.
            BLOCKS => Outcome::NotAsked,
            _ => Outcome::UnknownOf(
                context.target(id),
                format!(
                    "{} of {}: what is read and written is not known: give --page",
                    record.words, record.bytes
                ),
            ),
        };
    };
    if words::is_multiple(page, record.bytes) {
        return Outcome::Silent;
    }
    // Direct I/O moves parts of blocks.
    if record.words == BLOCKS && solaris::option(node, "forcedirectio") == Some(true) {
        return Outcome::Silent;
    }
    let touched = page
        .0
        .div_ceil(record.bytes.0)
        .saturating_mul(record.bytes.0);
    let read = touched as f64 / page.0 as f64;
    let is_bad = read >= AMPLIFICATION_WARNING as f64;
    let severity = if is_bad {
        Severity::Warning
    } else {
        Severity::Note
    };
    let summary = format!(
        "pages of {page} are kept in {} of {}",
        record.words, record.bytes
    );
    let mut finding = context
        .finding(
            &RULE,
            (id, severity, Confidence::Medium),
            summary,
            words::bytes("record_bytes", record.bytes, record.source),
        )
        .with_evidence(words::bytes("page_bytes", page, page_source))
        .with_evidence(words::real("read_amplification", read, "ratio", "arithmetic"))
        .with_evidence(words::real("write_amplification", 2.0 * read, "ratio", "arithmetic"))
        .with_cost(Some(Cost {
            value: 2.0 * read,
            unit: "bytes moved per byte written",
            basis: Basis::Estimated,
        }))
        .explained(format!(
            "a page that is not cached reads up to {read:.1} bytes for each byte asked for, and a write reads as much \
             before it writes as much"
        ));
    finding = finding.explained(match record.words {
        "records" => {
            "set the record size to the page before the files are written: those that exist keep theirs until they are \
             written anew"
        }
        "volume blocks" => "the block of a volume is set when it is made: make one with the page as its block, and copy",
        _ => "make the file system with blocks and fragments of the page, or mount it for direct I/O",
    });
    Outcome::Found(finding)
}
