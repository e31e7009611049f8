//! `misstated-grid`: what a target shows to other hosts, or a hypervisor to a guest, states another grid than the one that
//! its blocks lie on. Whoever uses it lays out data by the statement.
//!
//! A statement is good when each boundary that it names is a boundary of every unit below. It says nothing of where the
//! export as a whole begins: that is `misaligned-partition`.

use plumb_geometry::{Bytes, Grid};
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, GridFact, Kind, Node, NodeId};

use super::context::{Context, seen_from_above};
use super::{LayoutRule, words};
use crate::finding::{Basis, Confidence, Cost, Finding, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "misstated-grid",
    title: "an export states another grid than it lies on",
    needs: "a target's configfs, or a virtual disk joined with the layers below",
    decides: true,
    thresholds: || {
        vec![
            format!(
                "smaller than a unit below, or off it, is a {}",
                Fault::Hidden.severity().word()
            ),
            format!("a larger one a {}", Fault::Larger.severity().word()),
            format!("is {}", Fault::Refused.severity().word()),
            HANDED_ON.join(" or "),
        ]
    },
    plan: None,
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

/// What is wrong with a statement, by growing harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Larger than need be: it costs space and cache, and hides nothing.
    Larger,
    /// Its boundaries lie between those of the unit.
    Shifted,
    /// Smaller: nobody sees that there is a unit.
    Hidden,
    /// Blocks smaller than those that the device below takes at all.
    Refused,
}

impl Fault {
    /// How bad it is.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Fault::Larger => Severity::Note,
            Fault::Shifted | Fault::Hidden => Severity::Warning,
            Fault::Refused => Severity::Critical,
        }
    }
}

/// A unit below, as it lies in the address space of what is shown.
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

/// Exports, and virtual disks that are known to lie on something. A disk that lies on an export only repeats its words, and
/// memory has no units.
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
    let unknown = |why: String| Outcome::UnknownOf(context.target(id), why);
    let (units, lost) = units(context, id);
    let Some(logical) = stated(node, CellKind::LogicalBlock) else {
        return unknown(
            lost.unwrap_or("which blocks it states to its users is not known".to_owned()),
        );
    };
    if let Some(block) = device_block(context, id, node)
        && logical.granularity() < block.grid.granularity()
    {
        return Outcome::Found(found(
            context,
            (id, node),
            (Fault::Refused, logical, &block),
        ));
    }
    let physical = stated(node, CellKind::PhysicalBlock).unwrap_or(logical);
    if let Some((fault, unit)) = worst(&physical.grid, &units) {
        return Outcome::Found(found(context, (id, node), (fault, physical, unit)));
    }
    lost.map_or(Outcome::Silent, unknown)
}

fn stated(node: &Node, what: CellKind) -> Option<&GridFact> {
    node.grids.iter().find(|fact| fact.what == what)
}

/// Units below that a block smaller than they, or off them, would touch in part; and why not all are known.
fn units<'a>(context: &Context<'a>, id: NodeId) -> (Vec<UnitBelow<'a>>, Option<String>) {
    let landings = context.landings(id);
    let mut lost = landings.lost.first().map(|(_, why)| why.clone());
    let mut units: Vec<UnitBelow<'a>> = Vec::new();
    for landing in landings.all.iter().filter(|landing| landing.on != id) {
        let of = context.name(landing.on);
        for fact in context.stack.deciding_grids(landing.on) {
            match (fact.what, seen_from_above(landing, &fact.grid)) {
                (CellKind::Assumed, _) => {
                    lost.get_or_insert_with(|| {
                        format!("nothing is known of {of} beyond {}", fact.granularity())
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
                    lost.get_or_insert_with(|| {
                        "it lies otherwise on the unit from one chunk to the next".to_owned()
                    });
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

/// The worst that is wrong with a statement, and of which unit; of equals that of the largest.
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
) -> Finding {
    let (told, granularity) = (stated.granularity(), unit.grid.granularity());
    let (first, first_true) = (stated.grid.offset(), unit.grid.offset());
    let (what, of) = (unit.what.text(), unit.of);
    let summary = match fault {
        Fault::Refused => {
            format!("shows blocks of {told}, and {of} takes none of less than {granularity}")
        }
        Fault::Hidden => {
            format!("states blocks of {told} and hides the {what} of {granularity} of {of}")
        }
        Fault::Shifted => format!(
            "states that blocks begin at {}, and those of the {what} of {of} begin at {}",
            words::place(first),
            words::place(first_true)
        ),
        Fault::Larger => {
            format!("states blocks of {told}, where the largest below are of {granularity}")
        }
    };
    let confidence = match context.stack.find(of).map(|on| context.stack.node(on).kind) {
        Some(Kind::VirtualDisk) => Confidence::Medium,
        _ => words::confidence_in(&unit.source),
    };
    let evidence = words::bytes("stated_bytes", told, &stated.source);
    let of_unit = format!("{}, of {of}", unit.source);
    context
        .finding(
            &RULE,
            (id, severity(node, fault), confidence),
            summary,
            evidence,
        )
        .with_evidence(words::bytes("stated_offset_bytes", first, &stated.source))
        .with_evidence(words::bytes("granularity_bytes", granularity, &of_unit))
        .with_evidence(words::bytes(
            "grid_offset_bytes",
            first_true,
            "layout of the layers between",
        ))
        .with_cost(cost(node, fault, granularity))
        .explained(meaning(fault))
        .explained(remedy(node, fault))
}

/// Where what stands on a disk is known, misaligned-partition says whether the shift harms it; another start may make up
/// for it.
fn severity(node: &Node, fault: Fault) -> Severity {
    match fault {
        Fault::Shifted if node.kind == Kind::VirtualDisk => Severity::Note,
        _ => fault.severity(),
    }
}

/// A write of one block of those that are stated, where the unit is read and written for it.
fn cost(node: &Node, fault: Fault, unit: Bytes) -> Option<Cost> {
    let logical = stated(node, CellKind::LogicalBlock)?.granularity();
    let value = 2.0 * unit.0 as f64 / logical.0 as f64;
    let unit = "bytes moved per byte written";
    (fault == Fault::Hidden).then_some(Cost {
        value,
        unit,
        basis: Basis::Estimated,
    })
}

fn meaning(fault: Fault) -> &'static str {
    match fault {
        Fault::Refused => {
            "each I/O that is no multiple of the block below, or begins off it, ends with an error"
        }
        Fault::Hidden => {
            "those who use it see no reason not to write single blocks: ZFS takes the stated block for its ashift, XFS for its \
             sector, databases for their log, and each such write makes the device below read first"
        }
        Fault::Shifted => {
            "whoever begins data at a boundary that is stated begins them off the unit: partitions at 1 MiB too"
        }
        Fault::Larger => {
            "nothing is misaligned by it, but pools and file systems take larger blocks than they need: ZFS by its ashift, for \
             good"
        }
    }
}

fn remedy(node: &Node, fault: Fault) -> String {
    let hand = match (node.word(keys::BACKSTORE), fault) {
        (Some("iblock" | "pscsi"), Fault::Refused | Fault::Larger) => {
            "leave attrib/block_size of the backstore as the device has it: LIO counts the physical block in what is set there"
        }
        (Some("iblock"), Fault::Shifted) => {
            "begin what is exported at a boundary of the unit: blocks larger than those of the device cannot state where the \
             first unit begins"
        }
        (Some("fileio"), Fault::Hidden) => {
            "give a device to LIO as iblock, which states its physical block, and not as fileio; for a file set \
             attrib/block_size to 4096"
        }
        (Some("nvmet"), _) => {
            "begin what is exported at a boundary of the unit: NVMe has no field for where the first unit begins"
        }
        (None, Fault::Hidden) => {
            "let the hypervisor state the physical block (QEMU: physical_block_size=)"
        }
        _ => "begin what is exported at a boundary of the unit, and let its target state it",
    };
    format!(
        "{hand}; labels and file systems that were made by the old statement keep it, so change it before there are data"
    )
}
