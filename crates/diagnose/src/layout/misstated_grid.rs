//! `misstated-grid`: an export of a target, or a guest's disk of a hypervisor, states another grid than the one of its
//! blocks. Its users lay out data by the statement.
//!
//! A statement is good if each boundary that it names is a boundary of every unit below. It says nothing about the
//! start of the export as a whole: that is `misaligned-partition`.

use plumb_geometry::{Bytes, Grid};
use plumb_model::facts::{Fault, MisstatedGrid};
use plumb_model::{Confidence, Cost, CostOf, Facts, GridOf, Reason, RuleId, Severity};
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, GridFact, Kind, Node, NodeId};

use super::context::{Context, seen_from_above};
use super::{LayoutRule, sizes};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::MisstatedGrid,
    thresholds: || {
        vec![
            format!(
                "smaller than a unit below, or off it, is a {}",
                severity_of(Fault::Hidden).word()
            ),
            format!("a larger one a {}", severity_of(Fault::Larger).word()),
            format!("is {}", severity_of(Fault::Refused).word()),
            HANDED_ON.join(" or "),
        ]
    },
    judge,
};

/// Backstores that hand on each I/O as it comes: one smaller than a block of the device below fails there.
pub const HANDED_ON: [&str; 2] = ["iblock", "pscsi"];

/// Units that a disk does not state as its physical block, so that an export does not hide them either.
const NOT_STATED: [CellKind; 4] = [
    CellKind::Cluster,
    CellKind::Zone,
    CellKind::IndirectionUnit,
    CellKind::ArrayUnit,
];

/// How bad a fault is.
const fn severity_of(fault: Fault) -> Severity {
    match fault {
        Fault::Larger => Severity::Note,
        Fault::Shifted | Fault::Hidden => Severity::Warning,
        Fault::Refused => Severity::Critical,
    }
}

/// A unit below, converted to the address space of the export.
struct UnitBelow<'a> {
    grid: Grid,
    what: CellKind,
    source: Source,
    of: &'a str,
}

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let shown = context
        .stack
        .nodes()
        .filter(|(_, node)| is_shown(context, node));
    shown
        .map(|(id, node)| judge_node(context, id, node))
        .collect()
}

/// Exports, and virtual disks with known layers below. A disk on an export only repeats its statement, and memory has
/// no units.
fn is_shown(context: &Context<'_>, node: &Node) -> bool {
    let kinds: Vec<Kind> = node
        .placing
        .below()
        .iter()
        .map(|below| context.stack.node(*below).kind)
        .collect();
    match node.kind {
        Kind::Export => kinds != [Kind::Ram],
        Kind::VirtualDisk => node.is_seen_through() && !kinds.contains(&Kind::Export),
        _ => false,
    }
}

fn judge_node(context: &Context<'_>, id: NodeId, node: &Node) -> Outcome {
    let (units, lost) = units(context, id);
    let Some(logical) = stated(node, CellKind::LogicalBlock) else {
        return context.unknown(id, lost.unwrap_or(Reason::StatedBlocks));
    };
    if let Some(block) = device_block(context, id, node)
        && logical.granularity() < block.grid.granularity()
    {
        return found(context, (id, node), (Fault::Refused, logical, &block));
    }
    let physical = stated(node, CellKind::PhysicalBlock).unwrap_or(logical);
    if let Some((fault, unit)) = worst(&physical.grid, &units) {
        return found(context, (id, node), (fault, physical, unit));
    }
    lost.map_or(Outcome::Silent, |reason| context.unknown(id, reason))
}

fn stated(node: &Node, what: CellKind) -> Option<&GridFact> {
    node.grids.iter().find(|fact| fact.what == what)
}

/// Units below that a block smaller than they, or off them, would touch in part; and why not all are known.
fn units<'a>(context: &Context<'a>, id: NodeId) -> (Vec<UnitBelow<'a>>, Option<Reason>) {
    let landings = context.landings(id);
    let mut lost = landings.lost.first().map(|(_, why)| Reason::Stack {
        because: vec![why.clone()],
        more: 0,
    });
    let mut units: Vec<UnitBelow<'a>> = Vec::new();
    for landing in landings.all.iter().filter(|landing| landing.on != id) {
        let of = context.name(landing.on);
        for fact in context.stack.deciding_grids(landing.on) {
            match (fact.what, seen_from_above(landing, &fact.grid)) {
                (CellKind::Assumed, _) => {
                    lost.get_or_insert_with(|| Reason::NothingBeyond {
                        on: of.to_owned(),
                        granularity_bytes: fact.granularity(),
                    });
                }
                (what, _) if NOT_STATED.contains(&what) => {}
                (what, Some(grid)) => units.push(UnitBelow {
                    grid,
                    what,
                    source: fact.source.clone(),
                    of,
                }),
                (_, None) => {
                    lost.get_or_insert(Reason::DiffersByChunk);
                }
            }
        }
    }
    (units, lost)
}

/// The block in which the device below is addressed, where I/O are handed on to it as they come.
fn device_block<'a>(context: &Context<'a>, id: NodeId, node: &Node) -> Option<UnitBelow<'a>> {
    if !node
        .word(keys::BACKSTORE)
        .is_some_and(|kind| HANDED_ON.contains(&kind))
    {
        return None;
    }
    let landings = context.landings(id);
    let mut below = landings
        .all
        .iter()
        .map(|landing| landing.on)
        .filter(|on| *on != id);
    below.find_map(|on| {
        let fact = stated(context.stack.node(on), CellKind::LogicalBlock)?;
        let source = fact.source.clone();
        Some(UnitBelow {
            grid: fact.grid,
            what: fact.what,
            source,
            of: context.name(on),
        })
    })
}

/// The worst fault of a statement, with its unit; of equals that of the largest.
fn worst<'u, 'a>(stated: &Grid, units: &'u [UnitBelow<'a>]) -> Option<(Fault, &'u UnitBelow<'a>)> {
    let largest = units.iter().map(|unit| unit.grid.granularity()).max()?;
    let faults = units
        .iter()
        .filter_map(|unit| Some((fault(stated, &unit.grid, largest)?, unit)));
    faults.max_by_key(|(fault, unit)| (*fault, unit.grid.granularity()))
}

fn fault(stated: &Grid, unit: &Grid, largest: Bytes) -> Option<Fault> {
    let (told, granularity) = (stated.granularity().0, unit.granularity().0);
    if !told.is_multiple_of(granularity) {
        return Some(Fault::Hidden);
    }
    let apart = i128::from(stated.offset().0) - i128::from(unit.offset().0);
    if apart.rem_euclid(i128::from(granularity)) != 0 {
        return Some(Fault::Shifted);
    }
    (told > largest.0).then_some(Fault::Larger)
}

fn found(
    context: &Context<'_>,
    (id, node): (NodeId, &Node),
    (fault, stated, unit): (Fault, &GridFact, &UnitBelow<'_>),
) -> Outcome {
    let on_virtual_disk = context
        .stack
        .find(unit.of)
        .is_some_and(|on| context.stack.node(on).kind == Kind::VirtualDisk);
    let confidence = if on_virtual_disk {
        Confidence::Medium
    } else {
        sizes::confidence_in(&unit.source)
    };
    let facts = Facts::MisstatedGrid(MisstatedGrid {
        fault,
        stated_bytes: stated.granularity(),
        stated_offset_bytes: stated.grid.offset(),
        source: stated.source.clone(),
        grid: GridOf {
            granularity_bytes: unit.grid.granularity(),
            offset_bytes: unit.grid.offset(),
            what: unit.what,
            source: unit.source.clone(),
            believed: true,
            on: unit.of.to_owned(),
        },
        backstore: node.word(keys::BACKSTORE).map(str::to_owned),
    });
    let finding = context.finding(facts, (id, severity(node, fault), confidence));
    Outcome::found(finding.with_cost(cost(node, fault, unit.grid.granularity())))
}

/// If the layers above a disk are known, misaligned-partition decides about the effect of the shift; another start may
/// compensate for it.
fn severity(node: &Node, fault: Fault) -> Severity {
    match fault {
        Fault::Shifted if node.kind == Kind::VirtualDisk => Severity::Note,
        _ => severity_of(fault),
    }
}

/// A write of one block of those that are stated, where the unit is read and written for it.
fn cost(node: &Node, fault: Fault, unit: Bytes) -> Option<Cost> {
    let logical = stated(node, CellKind::LogicalBlock)?.granularity();
    let value = 2.0 * unit.0 as f64 / logical.0 as f64;
    (fault == Fault::Hidden).then(|| Cost::estimated(CostOf::WrittenBytes, value))
}
