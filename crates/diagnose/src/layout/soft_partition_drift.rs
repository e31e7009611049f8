//! `soft-partition-drift`: soft partitions made one after the other are pushed off the unit below by the sector that
//! holds the header of each extent.

use std::collections::{BTreeMap, HashMap, HashSet};

use plumb_geometry::{Bytes, Grid, SECTOR, SmallSort};
use plumb_model::facts::SoftPartitionDrift;
use plumb_model::{Confidence, Facts, GridOf, Reason, RuleId, Severity};
use plumb_stack::{CellKind, GridFact, Kind, NodeId, Part, Placing, Source};

use super::context::{Context, seen_from_above};
use super::{LayoutRule, sizes};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::SoftPartitionDrift,
    thresholds: || vec![format!("exactly {HEADER_SECTORS} sector behind")],
    judge,
};

/// Sectors of the header in front of each extent (MD_SP_WMSIZE of Solaris Volume Manager).
pub const HEADER_SECTORS: u64 = 1;

pub(super) const HEADER_BYTES: u64 = HEADER_SECTORS * SECTOR;

/// The unit of offsets on a component.
struct ComponentUnit {
    grid: Grid,
    /// The grid as the device below has it.
    below: GridOf,
    /// The largest unit that the user gave, where the unit is assumed.
    given: Option<Bytes>,
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
    extents.small_sort_by_key(|extent| (extent.start, extent.owner));
    let Some(unit) = unit(context, component) else {
        let on = context.name(component).to_owned();
        let reason = Reason::ChunksBelow { on };
        return extents
            .iter()
            .map(|extent| context.unknown(extent.owner, reason.clone()))
            .collect();
    };
    let ends: HashMap<Bytes, usize> = extents
        .iter()
        .enumerate()
        .filter_map(|(at, extent)| Some((extent.end()?, at)))
        .collect();
    let are_lengths_known = extents.iter().all(|extent| extent.len.is_some());
    // The next free place, if the last one's end is known: the right offset of a new soft partition.
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
                let reason = Reason::OnAssumedUnit {
                    grid: unit.below.clone(),
                    given_bytes: unit.given,
                };
                outcomes.push(context.unknown(extent.owner, reason));
            }
        } else if follows {
            if reported.insert(extent.owner) {
                let previous = ends.get(&before).map(|at| &extents[*at]);
                outcomes.push(found(context, component, extent, previous, &unit, free));
            }
        } else if !are_lengths_known {
            if doubted.insert(extent.owner) {
                let on = context.name(component).to_owned();
                outcomes.push(context.unknown(extent.owner, Reason::ExtentLengths { on }));
            }
        } else {
            outcomes.push(Outcome::Silent);
        }
    }
    outcomes
}

/// The chunk of the component or of the layer below; without one the segment of an array, the deciding unit of the
/// lowest layer, or 4 KiB. `None` if it differs from one chunk to the next.
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
                below: GridOf::new(fact, name),
                given: None,
                confidence: sizes::confidence_in(&fact.source),
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
        let fact = GridFact::believed(grid, CellKind::ArrayUnit, source);
        return Some(ComponentUnit {
            grid: seen_from_above(landing, &grid)?,
            below: GridOf::new(&fact, name),
            given: None,
            confidence: Confidence::High,
        });
    }
    let facts = context.stack.deciding_grids(landing.on);
    let fact = facts
        .into_iter()
        .max_by_key(|fact| fact.granularity())
        .filter(|fact| fact.what != CellKind::Assumed)
        .unwrap_or_else(|| GridFact::believed(Grid::ASSUMED, CellKind::Assumed, Source::Assumed));
    let is_assumed = fact.what == CellKind::Assumed;
    Some(ComponentUnit {
        grid: seen_from_above(landing, &fact.grid)?,
        below: GridOf::new(&fact, name),
        given: sizes::given(context, landing.on).filter(|_| is_assumed),
        confidence: sizes::confidence_in(&fact.source),
    })
}

/// First place on a grid that leaves room for a header behind an end.
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
) -> Outcome {
    let end = extent.start.0 - HEADER_BYTES;
    let facts = Facts::SoftPartitionDrift(SoftPartitionDrift {
        component: context.name(component).to_owned(),
        start_bytes: extent.start,
        past_bytes: unit.grid.past_boundary(extent.start),
        grid: GridOf {
            granularity_bytes: unit.grid.granularity(),
            offset_bytes: unit.grid.offset(),
            ..unit.below.clone()
        },
        given_bytes: unit.given,
        behind: previous.map(|previous| context.name(previous.owner).to_owned()),
        wanted_bytes: next_on(&unit.grid, Bytes(end)),
        rule_of_thumb_bytes: rule_of_thumb(previous, &unit.grid),
        next_free_bytes: free,
        source: context.placed_by(extent.owner),
    });
    let about = (extent.owner, Severity::Warning, unit.confidence);
    Outcome::found(context.finding(facts, about))
}

/// The result of the formula last offset + last size + unit, if that is off the unit.
fn rule_of_thumb(previous: Option<&Extent>, grid: &Grid) -> Option<Bytes> {
    let thumb = previous?.end()?.checked_add(grid.granularity())?;
    (grid.past_boundary(thumb) != Bytes(0)).then_some(thumb)
}
