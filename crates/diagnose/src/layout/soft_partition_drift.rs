//! `soft-partition-drift`: soft partitions made one after the other are pushed off the unit below by the sector that
//! holds the header of each extent.

use std::collections::{BTreeMap, HashMap, HashSet};

use plumb_geometry::{Bytes, Grid, SECTOR};
use plumb_stack::{CellKind, Kind, NodeId, Part, Placing};

use super::context::{Context, seen_from_above};
use super::{LayoutRule, words};
use crate::finding::{Confidence, Finding, Severity};
use crate::rules::{Outcome, PlanKind};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "soft-partition-drift",
    title: "extents are pushed off the unit by their headers",
    needs: "`metastat -p`",
    decides: true,
    thresholds: || vec![format!("exactly {HEADER_SECTORS} sector behind")],
    plan: Some(PlanKind::Start),
    judge,
};

/// Sectors of the header in front of each extent (MD_SP_WMSIZE of Solaris Volume Manager).
pub const HEADER_SECTORS: u64 = 1;

pub(super) const HEADER_BYTES: u64 = HEADER_SECTORS * SECTOR;

/// What offsets on a component should be multiples of.
struct ComponentUnit {
    grid: Grid,
    words: String,
    source: String,
    confidence: Confidence,
}

/// An extent, and whose.
struct Extent {
    owner: NodeId,
    start: Bytes,
    len: Option<Bytes>,
}

impl Extent {
    fn end(&self) -> Option<Bytes> {
        self.start.checked_add(self.len?)
    }
}

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let mut by_component: BTreeMap<NodeId, Vec<Extent>> = BTreeMap::new();
    for (owner, node) in context
        .stack
        .nodes()
        .filter(|(_, node)| node.kind == Kind::SoftPartition)
    {
        if let Placing::Parts { parts } = &node.placing {
            for &Part {
                node: component,
                start,
                len,
                ..
            } in parts
            {
                by_component
                    .entry(component)
                    .or_default()
                    .push(Extent { owner, start, len });
            }
        }
    }
    by_component
        .into_iter()
        .flat_map(|(id, extents)| judge_component(context, id, extents))
        .collect()
}

fn judge_component(
    context: &Context<'_>,
    component: NodeId,
    mut extents: Vec<Extent>,
) -> Vec<Outcome> {
    extents.sort_by_key(|extent| (extent.start, extent.owner));
    let Some(unit) = unit(context, component) else {
        let why = format!(
            "chunks below {} are no multiples of the unit",
            context.name(component)
        );
        let owner = |extent: &Extent| Outcome::UnknownOf(context.target(extent.owner), why.clone());
        return extents.iter().map(owner).collect();
    };
    let ends: HashMap<Bytes, usize> = extents
        .iter()
        .enumerate()
        .filter_map(|(at, extent)| Some((extent.end()?, at)))
        .collect();
    let are_lengths_known = extents.iter().all(|extent| extent.len.is_some());
    // The next free place, if the last one's end is known: what a new soft partition should be given.
    let last = extents.iter().filter_map(Extent::end).max();
    let free = last
        .filter(|_| are_lengths_known)
        .and_then(|end| next_on(&unit.grid, end));
    let mut outcomes = Vec::new();
    let (mut reported, mut doubted) = (HashSet::new(), HashSet::new());
    for extent in &extents {
        let Some(before) = extent.start.checked_sub(Bytes(HEADER_BYTES)) else {
            continue;
        };
        let follows = before == Bytes(0) || ends.contains_key(&before);
        let is_off = unit.grid.past_boundary(extent.start) != Bytes(0);
        if !is_off {
            if unit.confidence != Confidence::Low {
                outcomes.push(Outcome::Silent);
            } else if doubted.insert(extent.owner) {
                let why = format!("on {}; unknown beyond that", unit.words);
                outcomes.push(Outcome::UnknownOf(context.target(extent.owner), why));
            }
        } else if follows {
            if reported.insert(extent.owner) {
                let previous = ends.get(&before).map(|at| &extents[*at]);
                outcomes.push(Outcome::Found(found(
                    context, component, extent, previous, &unit, free,
                )));
            }
        } else if !are_lengths_known {
            if doubted.insert(extent.owner) {
                let why = format!(
                    "how long the extents on {} are is not known",
                    context.name(component)
                );
                outcomes.push(Outcome::UnknownOf(context.target(extent.owner), why));
            }
        } else {
            outcomes.push(Outcome::Silent);
        }
    }
    outcomes
}

/// The chunk of the component or of what it lies on; without one the segment of an array, what decides at the bottom, or
/// 4 KiB. `None` where it lies differently from one chunk to the next.
fn unit(context: &Context<'_>, component: NodeId) -> Option<ComponentUnit> {
    let landings = context.stack.landings(component);
    let mut leaf = None;
    for landing in &landings.all {
        let name = context.name(landing.on);
        let is_striped = context.stack.node(landing.on).placing.below().len() > 1;
        if let Some(fact) = context
            .grids(landing.on, |what| what == CellKind::Chunk && is_striped)
            .first()
        {
            return Some(ComponentUnit {
                grid: seen_from_above(landing, &fact.grid)?,
                words: format!("the {} chunk of {name}", fact.granularity()),
                source: format!("{}, of {name}", fact.source),
                confidence: words::confidence_in(&fact.source),
            });
        }
        if leaf.is_none() && context.stack.is_leaf(landing.on) {
            leaf = Some(landing);
        }
    }
    // Without a way to a leaf the component itself is all there is.
    let landing = leaf.or(landings.all.first())?;
    let name = context.name(landing.on);
    if let Some((segment, source)) = context.segment(landing.on) {
        let grid = Grid::unit(segment).ok()?;
        let grid = seen_from_above(landing, &grid)?;
        let words = format!("the {segment} segment of {name}");
        return Some(ComponentUnit {
            grid,
            words,
            source,
            confidence: Confidence::High,
        });
    }
    let facts = context.stack.deciding_grids(landing.on);
    let fact = facts.into_iter().max_by_key(|fact| fact.granularity());
    let (grid, words, source, confidence) = match fact {
        Some(fact) if fact.what != CellKind::Assumed => (
            fact.grid,
            format!("the {} {} of {name}", fact.granularity(), fact.what.text()),
            format!("{}, of {name}", fact.source),
            words::confidence_in(&fact.source),
        ),
        _ => (
            Grid::ASSUMED,
            match words::given(context, landing.on) {
                Some(given) => format!(
                    "the {} assumed, since none larger than the {given} given is known of {name}",
                    Grid::ASSUMED.granularity()
                ),
                None => {
                    format!(
                        "the {} assumed, since nothing is known of {name}",
                        Grid::ASSUMED.granularity()
                    )
                }
            },
            "assumed".to_owned(),
            Confidence::Low,
        ),
    };
    Some(ComponentUnit {
        grid: seen_from_above(landing, &grid)?,
        words,
        source,
        confidence,
    })
}

/// First place on a grid that leaves room for a header behind what ends at `end`.
fn next_on(grid: &Grid, end: Bytes) -> Option<Bytes> {
    let first = end.checked_add(Bytes(HEADER_BYTES))?;
    match grid.past_boundary(first).0 {
        0 => Some(first),
        past => first.checked_add(Bytes(grid.granularity().0 - past)),
    }
}

fn found(
    context: &Context<'_>,
    component: NodeId,
    extent: &Extent,
    previous: Option<&Extent>,
    unit: &ComponentUnit,
    free: Option<Bytes>,
) -> Finding {
    let component = context.name(component);
    let past = unit.grid.past_boundary(extent.start);
    let summary = format!(
        "begins {} past {}, one sector behind {}",
        words::place(past),
        unit.words,
        previous.map_or_else(
            || format!("the beginning of {component}"),
            |previous| format!("the end of {}", context.name(previous.owner))
        )
    );
    let source = context
        .stack
        .node(extent.owner)
        .placed_by
        .as_ref()
        .map(ToString::to_string);
    let source = source.unwrap_or_default();
    let mut finding = context
        .finding(
            &RULE,
            (extent.owner, Severity::Warning, unit.confidence),
            summary,
            words::bytes("offset_bytes", extent.start, source),
        )
        .with_evidence(words::bytes(
            "past_unit_bytes",
            past,
            format!("on {component}"),
        ))
        .with_evidence(words::bytes(
            "unit_bytes",
            unit.grid.granularity(),
            &unit.source,
        ));
    let end = extent.start.0 - HEADER_BYTES;
    if let Some(better) = next_on(&unit.grid, Bytes(end)) {
        finding = finding
            .with_evidence(words::bytes("offset_wanted_bytes", better, "arithmetic"))
            .explained(format!(
                "the next offset on the unit behind a header is {} of {component}",
                words::place(better)
            ));
        finding = rule_of_thumb(finding, previous, &unit.grid);
    }
    if let Some(free) = free {
        finding = finding
            .with_evidence(words::bytes("next_offset_bytes", free, "arithmetic"))
            .explained(format!(
                "a new soft partition on {component} begins well at {}",
                words::place(free)
            ));
    }
    finding.explained(
        "each extent has a header of one sector in front: give offsets yourself (-o), or let them be aligned (-A)",
    )
}

/// The formula last offset + last size + unit, where it does not lead to the unit.
fn rule_of_thumb(finding: Finding, previous: Option<&Extent>, grid: &Grid) -> Finding {
    let thumb = previous
        .and_then(Extent::end)
        .and_then(|end| end.checked_add(grid.granularity()));
    match thumb {
        Some(thumb) if grid.past_boundary(thumb) != Bytes(0) => finding.explained(format!(
            "last offset + last size + unit would give {}, which is off the unit: that formula holds only where both \
             are multiples of it",
            words::place(thumb)
        )),
        _ => finding,
    }
}
