//! `indirection-unit`: writes are smaller than the indirection unit of the flash drive.

use std::collections::HashSet;

use plumb_geometry::Bytes;
use plumb_model::facts::{IndirectionUnit, SmallestWrite};
use plumb_model::{Confidence, Cost, CostOf, Facts, GridOf, Reason, RuleId, Severity};
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, GridFact, NodeId};

use super::context::{Context, Top};
use super::{LayoutRule, sizes};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::IndirectionUnit,
    thresholds: || {
        vec![
            format!("units of {} or more", Bytes(UNIT_BYTES_MIN)),
            format!("warning from {AMPLIFICATION_WARNING} times"),
        ]
    },
    judge,
};

/// Everything writes units up to this size anyway.
pub const UNIT_BYTES_MIN: u64 = 8192;

/// From this number of bytes moved for each byte written on it is a warning.
pub const AMPLIFICATION_WARNING: u64 = 4;

/// The smallest write of a top layer, and its cause.
struct Written {
    bytes: Bytes,
    by: SmallestWrite,
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
        let reason = Reason::WritesToFlash {
            on: on.to_owned(),
            unit_bytes: size,
        };
        return context.unknown(device, reason);
    };
    if written.bytes >= size {
        return Outcome::Silent;
    }
    let amplification = size.0 as f64 / written.bytes.0 as f64;
    // NPWG beside a smaller NPWA is a preference of the drive, not a requirement.
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
    let confidence = written.confidence.min(sizes::confidence_in(&unit.source));
    let facts = Facts::IndirectionUnit(IndirectionUnit {
        grid: GridOf::new(unit, on),
        written_bytes: written.bytes,
        written_by: written.by,
        amplification,
    });
    let finding = context
        .finding(facts, (device, severity, confidence))
        .with_cost(Cost::estimated(CostOf::ProgrammedBytes, amplification));
    Outcome::found(finding)
}

fn written(context: &Context<'_>, top: &Top) -> Option<Written> {
    let io = context.io_size(top.id);
    if !io.is_assumed() {
        return Some(Written {
            bytes: io.bytes,
            confidence: io.confidence(),
            by: SmallestWrite::Io { basis: io.basis },
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
        return Some(Written {
            bytes,
            by: SmallestWrite::PoolBlocks,
            confidence: Confidence::Medium,
        });
    }
    let block = nodes().find_map(|id| context.stack.node(id).number(keys::FS_BLOCK))?;
    // A file system writes blocks one by one only if its user does.
    (block > Bytes(0)).then_some(Written {
        bytes: block,
        by: SmallestWrite::FileSystemBlocks,
        confidence: Confidence::Low,
    })
}
