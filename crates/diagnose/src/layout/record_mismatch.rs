//! `record-mismatch` from the layout: pages are smaller than the records of the data set or the blocks of the file
//! system that they are kept in, or no multiples of them.

use plumb_geometry::Bytes;
use plumb_model::facts::{Keeper, PagesAndRecords, RecordMismatch};
use plumb_model::{Confidence, Cost, CostOf, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Node, NodeId, Source};

use super::context::Context;
use super::{LayoutRule, sizes, solaris};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::RecordMismatch,
    thresholds: || vec![format!("warning from {AMPLIFICATION_WARNING} times")],
    judge,
};

/// From this read amplification on it is a warning: two pages in a record cost a write one read of the record.
pub const AMPLIFICATION_WARNING: u64 = 4;

/// The keeper of pages.
struct PageRecord {
    bytes: Bytes,
    keeper: Keeper,
    source: Source,
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
    let of_fact = |key, keeper| {
        let fact = node.fact(key)?;
        Some(PageRecord {
            bytes: fact.value,
            keeper,
            source: fact.source.clone(),
        })
    };
    let grid = node
        .grids
        .iter()
        .find(|fact| fact.what == CellKind::Record && fact.is_believed());
    let record = of_fact(keys::RECORD_SIZE, Keeper::Records)
        .or_else(|| of_fact(keys::VOLUME_BLOCK, Keeper::VolumeBlocks))
        .or_else(|| {
            let (bytes, source) = grid.map(|fact| (fact.granularity(), fact.source.clone()))?;
            Some(PageRecord {
                bytes,
                keeper: Keeper::Records,
                source,
            })
        })?;
    (record.bytes.0 > 0).then_some(record)
}

/// The block of a file system that has no records.
fn block(context: &Context<'_>, id: NodeId) -> Option<PageRecord> {
    let fact = context.fact(id, keys::FS_BLOCK)?;
    let (bytes, source) = (fact.value, fact.source.clone());
    (bytes > Bytes(0)).then_some(())?;
    record(context.stack.node(id))
        .is_none()
        .then_some(PageRecord {
            bytes,
            keeper: Keeper::Blocks,
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
        .map(|page| (page, Source::User));
    let page = given.or_else(|| stated.map(|fact| (fact.granularity(), fact.source.clone())));
    let Some((page, page_source)) = page else {
        return match record.keeper {
            // Blocks of file systems are small and suit most: nobody asked.
            Keeper::Blocks => Outcome::NotAsked,
            keeper => context.unknown(
                id,
                Reason::IoToRecords {
                    keeper,
                    record_bytes: record.bytes,
                },
            ),
        };
    };
    if sizes::is_multiple(page, record.bytes) {
        return Outcome::Silent;
    }
    // Direct I/O moves parts of blocks.
    if record.keeper == Keeper::Blocks && solaris::option(node, "forcedirectio") == Some(true) {
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
    let facts = Facts::RecordMismatch(RecordMismatch::Layout(PagesAndRecords {
        page_bytes: page,
        page_source,
        record_bytes: record.bytes,
        record_source: record.source,
        keeper: record.keeper,
        read_amplification: read,
        write_amplification: 2.0 * read,
    }));
    let finding = context.finding(facts, (id, severity, Confidence::Medium));
    Outcome::found(finding.with_cost(Cost::estimated(CostOf::WrittenBytes, 2.0 * read)))
}
