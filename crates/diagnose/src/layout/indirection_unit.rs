//! `indirection-unit`: what is written is smaller than the unit in which a flash drive keeps track of its blocks.

use std::collections::HashSet;

use plumb_geometry::Bytes;
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, GridFact, NodeId};

use super::context::{Context, Top};
use super::{LayoutRule, words};
use crate::finding::{Basis, Confidence, Cost, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "indirection-unit",
    title: "writes are smaller than the unit of the flash below",
    needs: "a unit; `--page`, an ashift or a profile",
    decides: true,
    thresholds: || {
        vec![
            format!("units of {} or more", Bytes(UNIT_BYTES_MIN)),
            format!("warning from {AMPLIFICATION_WARNING} times"),
        ]
    },
    plan: None,
    judge,
};

/// Units up to this size are what everything writes anyway.
pub const UNIT_BYTES_MIN: u64 = 8192;

/// From so many bytes moved per byte written on it is worth mending rather than knowing.
pub const AMPLIFICATION_WARNING: u64 = 4;

/// The smallest that a top writes, and who said so.
struct SmallestWrite {
    bytes: Bytes,
    words: String,
    confidence: Confidence,
}

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for top in &context.tops {
        let mut seen = HashSet::new();
        for landing in top
            .landings
            .all
            .iter()
            .filter(|landing| seen.insert(landing.on))
        {
            let units = context.grids(landing.on, |what| what == CellKind::IndirectionUnit);
            let unit = units.into_iter().max_by_key(GridFact::granularity);
            if let Some(unit) = unit.filter(|unit| unit.granularity().0 >= UNIT_BYTES_MIN) {
                outcomes.push(judge_unit(context, top, landing.on, &unit));
            }
        }
    }
    outcomes
}

fn judge_unit(context: &Context<'_>, top: &Top, leaf: NodeId, unit: &GridFact) -> Outcome {
    let device = context.device_of(top.id);
    let (on, size) = (context.name(leaf), unit.granularity());
    let Some(written) = written(context, top) else {
        let why = format!("{on} keeps blocks of {size}; what is written is not known: give --page");
        return Outcome::UnknownOf(context.target(device), why);
    };
    if written.bytes >= size {
        return Outcome::Silent;
    }
    let amplification = size.0 as f64 / written.bytes.0 as f64;
    // NPWG beside a smaller NPWA is how the drive would like to be written to, not what it cannot do without.
    let is_wish = matches!(unit.source, Source::Drive { .. })
        && !context
            .grids(leaf, |what| what == CellKind::WriteAlignment)
            .is_empty();
    let is_bad = amplification >= AMPLIFICATION_WARNING as f64 && !is_wish;
    let severity = if is_bad {
        Severity::Warning
    } else {
        Severity::Note
    };
    let confidence = words::lesser(written.confidence, words::confidence_in(&unit.source));
    let summary = format!(
        "{} of {} are less than the {size} unit of {on}",
        written.words, written.bytes
    );
    let finding = context
        .finding(
            &RULE,
            (device, severity, confidence),
            summary,
            words::bytes("unit_bytes", size, format!("{}, of {on}", unit.source)),
        )
        .with_evidence(words::bytes("written_bytes", written.bytes, &written.words))
        .with_cost(Some(Cost {
            value: amplification,
            unit: "bytes programmed per byte written",
            basis: Basis::Estimated,
        }))
        .explained("a random write of less than a unit makes the drive read the unit, change it and write it elsewhere")
        .explained(format!(
            "an upper bound: writes in sequence fill units. Where the choice is free, take blocks, records or an ashift \
             that make writes of {size} or more"
        ));
    Outcome::Found(finding)
}

fn written(context: &Context<'_>, top: &Top) -> Option<SmallestWrite> {
    let io = context.io_size(top.id);
    if !io.is_assumed() {
        return Some(SmallestWrite {
            bytes: io.bytes,
            words: format!("I/O ({})", io.source),
            confidence: io.confidence,
        });
    }
    let nodes = || top.landings.all.iter().map(|landing| landing.on);
    let ashift = nodes().find_map(|id| {
        let shift = context
            .stack
            .node(id)
            .number(keys::ASHIFT)
            .and_then(|shift| u32::try_from(shift).ok());
        let grid = || {
            context
                .grids(id, |what| what == CellKind::Ashift)
                .first()
                .map(GridFact::granularity)
        };
        shift
            .and_then(|shift| 1u64.checked_shl(shift))
            .map(Bytes)
            .or_else(grid)
    });
    if let Some(bytes) = ashift {
        let words = "blocks of the pool (2^ashift)".to_owned();
        return Some(SmallestWrite {
            bytes,
            words,
            confidence: Confidence::Medium,
        });
    }
    let block = nodes().find_map(|id| context.stack.node(id).number(keys::FS_BLOCK))?;
    // A file system writes blocks one by one only if its user does.
    let words = "blocks of the file system".to_owned();
    (block > 0).then_some(SmallestWrite {
        bytes: Bytes(block),
        words,
        confidence: Confidence::Low,
    })
}
