//! Partitions, soft partitions, subdisks and volumes of Solaris Volume Manager that share bytes, the header of a soft
//! partition included: on their common layer, or on a layer below two components, such as a slice and a metadevice made
//! of it.
//!
//! Below parity only whole stripes are followed, because bytes of a stripe share its parity by design; below chunks
//! with copies, and layers that place their blocks themselves, nothing is.

use std::collections::{BTreeMap, HashSet};

use plumb_geometry::{SECTOR, group_digits};

use crate::graph::NodeId;
use crate::node::{Chunks, Kind, Node, Part, Placing, keys};
use crate::node_facts::VolumeManager;

mod below;
mod partitions;
#[cfg(test)]
mod tests;

/// The overlaps found, and whether everything was compared.
pub(crate) struct Overlaps {
    pub(crate) found: Vec<Overlap>,
    pub(crate) is_whole: bool,
}

/// Two that share bytes, which may be two extents of one.
#[derive(Clone, Debug)]
pub(crate) struct Overlap {
    pub(crate) one: NodeId,
    /// The one that a problem is about.
    pub(crate) other: NodeId,
    pub(crate) text: String,
    /// Whether a problem reports it already, or an overlap of the layers above them.
    pub(crate) is_told: bool,
}

/// An extent that was cut out of, or placed on, a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Extent {
    start: u64,
    end: u64,
    owner: NodeId,
    component: NodeId,
    has_header: bool,
}

/// The position of an extent and its header on a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OccupiedRange {
    start: u64,
    end: u64,
    extent: Extent,
}

/// All of them; labels of the disks in `judged` were held against overlaps where they were read.
pub(crate) fn all(nodes: &[Node], judged: &HashSet<NodeId>) -> Overlaps {
    let mut found = partitions::overlaps(nodes, judged);
    let soft = soft_partitions(nodes);
    found.extend(soft.found);
    Overlaps {
        found,
        is_whole: soft.is_whole,
    }
}

/// Each overlap is reported once, with the earlier extent that ends last.
fn soft_partitions(nodes: &[Node]) -> Overlaps {
    let components = by_component(extents(nodes));
    let mut found = Vec::new();
    let mut told = HashSet::new();
    for runs in components.values() {
        for (one, other) in pairs(runs, |_, _| true) {
            told.insert((one.extent.owner, other.extent.owner));
            found.push(overlap(one, other, beside(nodes, one, other)));
        }
    }
    let mut told_below = HashSet::new();
    let (below, is_whole) = below::below(nodes, &components);
    for (layer, mut runs) in below {
        runs.sort_unstable();
        for (one, other) in pairs(&runs, |one, other| one.component != other.component) {
            let owners = (one.extent.owner, other.extent.owner);
            if told.insert(owners) && !told.contains(&(owners.1, owners.0)) {
                told_below.extend([owners.0, owners.1]);
                found.push(overlap(one, other, below_both(nodes, layer, one, other)));
            }
        }
    }
    found.extend(on_volumes(nodes, &told_below));
    Overlaps { found, is_whole }
}

/// Volumes that use all of a component, and other extents on it. If the layers above a volume were compared with the
/// other one, that overlap is reported.
fn on_volumes(nodes: &[Node], told_below: &HashSet<NodeId>) -> Vec<Overlap> {
    let is_volume = |extent: &Extent| nodes[extent.owner.at()].kind != Kind::SoftPartition;
    let mut found = Vec::new();
    for runs in by_component(extents(nodes).chain(volumes(nodes))).values() {
        let is_asked = |one: &Extent, other: &Extent| one.owner != other.owner;
        for (one, other) in beside_volumes(runs, is_volume, is_asked) {
            let is_told = [one, other]
                .iter()
                .any(|run| told_below.contains(&run.extent.owner));
            found.push(Overlap {
                is_told,
                ..overlap(one, other, beside(nodes, one, other))
            });
        }
    }
    found
}

/// As [`pairs`], where one of both is a volume at least.
fn beside_volumes(
    runs: &[OccupiedRange],
    is_volume: impl Fn(&Extent) -> bool,
    is_asked: impl Fn(&Extent, &Extent) -> bool,
) -> Vec<(OccupiedRange, OccupiedRange)> {
    let mut found = Vec::new();
    // The volume and the soft partition that end last.
    let mut last: [Option<OccupiedRange>; 2] = [None; 2];
    for run in runs {
        let own = usize::from(is_volume(&run.extent));
        let against = if own == 1 {
            [last[1], last[0]]
        } else {
            [last[1], None]
        };
        let before = against
            .into_iter()
            .flatten()
            .find(|before| run.start < before.end && is_asked(&before.extent, &run.extent));
        found.extend(before.map(|before| (before, *run)));
        if last[own].is_none_or(|known| known.end < run.end) {
            last[own] = Some(*run);
        }
    }
    found
}

fn overlap(one: OccupiedRange, other: OccupiedRange, text: String) -> Overlap {
    Overlap {
        one: one.extent.owner,
        other: other.extent.owner,
        text,
        is_told: false,
    }
}

/// In order of their places.
fn by_component(extents: impl Iterator<Item = Extent>) -> BTreeMap<NodeId, Vec<OccupiedRange>> {
    let mut components: BTreeMap<NodeId, Vec<OccupiedRange>> = BTreeMap::new();
    for extent in extents {
        let header = if extent.has_header { SECTOR } else { 0 };
        let run = OccupiedRange {
            start: extent.start.saturating_sub(header),
            end: extent.end,
            extent,
        };
        components.entry(extent.component).or_default().push(run);
    }
    for runs in components.values_mut() {
        runs.sort_unstable();
    }
    components
}

fn extents(nodes: &[Node]) -> impl Iterator<Item = Extent> {
    let soft = (0..)
        .map(NodeId)
        .zip(nodes)
        .filter(|(_, node)| node.kind == Kind::SoftPartition);
    soft.flat_map(|(owner, node)| {
        let Placing::Parts { parts } = &node.placing else {
            return Vec::new();
        };
        // The header is the sector in front, which must be part of nothing else. Subdisks of VxVM have none.
        let has_header = node.value(keys::MANAGER) != Some(&VolumeManager::Vxvm);
        let extent = |part: &Part| {
            let end = part
                .len
                .and_then(|len| part.start.checked_add(len))
                .unwrap_or(part.start);
            Extent {
                start: part.start.0,
                end: end.0,
                owner,
                component: part.node,
                has_header,
            }
        };
        parts.iter().map(extent).collect()
    })
}

/// Space that metainit gives to nothing else: components of stripes, mirrors and the like, from the start of their data
/// on.
fn volumes(nodes: &[Node]) -> impl Iterator<Item = Extent> {
    let is_volume = |node: &Node| {
        node.kind != Kind::SoftPartition && node.value(keys::MANAGER) == Some(&VolumeManager::Svm)
    };
    let volumes = (0..)
        .map(NodeId)
        .zip(nodes)
        .filter(move |(_, node)| is_volume(node));
    volumes.flat_map(move |(owner, node)| {
        let members: Vec<(NodeId, u64)> = match &node.placing {
            Placing::Parts { parts } => {
                parts.iter().map(|part| (part.node, part.start.0)).collect()
            }
            Placing::Chunks(Chunks { members, .. }) | Placing::Copies { members } => members
                .iter()
                .map(|member| (member.node, member.start.0))
                .collect(),
            _ => Vec::new(),
        };
        let extent = move |(component, start): (NodeId, u64)| {
            let end = nodes[component.at()]
                .size
                .map_or(u64::MAX, |size| size.0.max(start));
            Extent {
                start,
                end,
                owner,
                component,
                has_header: false,
            }
        };
        members.into_iter().map(extent)
    })
}

/// Each wanted run that shares bytes with an earlier one, with the one of these that ends last. For components two runs
/// are enough to keep: the last to end, and the last of another component.
fn pairs(
    runs: &[OccupiedRange],
    is_asked: impl Fn(&Extent, &Extent) -> bool,
) -> Vec<(OccupiedRange, OccupiedRange)> {
    let mut found = Vec::new();
    let mut last: [Option<OccupiedRange>; 2] = [None; 2];
    for run in runs {
        let before = last
            .iter()
            .flatten()
            .find(|before| is_asked(&before.extent, &run.extent));
        if let Some(before) = before.filter(|before| run.start < before.end) {
            found.push((*before, *run));
        }
        if last[0].is_none_or(|first| first.end < run.end) {
            let first = last[0].filter(|first| first.extent.component != run.extent.component);
            last = [Some(*run), first.or(last[1])];
        } else if last[0].is_some_and(|first| first.extent.component != run.extent.component)
            && last[1].is_none_or(|second| second.end < run.end)
        {
            last[1] = Some(*run);
        }
    }
    found
}

/// Two on one component.
fn beside(nodes: &[Node], one: OccupiedRange, other: OccupiedRange) -> String {
    let name = |id: NodeId| nodes[id.at()].name.as_str();
    let (one, other) = (one.extent, other.extent);
    let second = if one.owner == other.owner {
        "another of its own extents"
    } else {
        name(other.owner)
    };
    let taken = if one.end == u64::MAX {
        format!("all from sector {} on", group_digits(one.start / SECTOR))
    } else {
        sectors(one.start, one.end)
    };
    format!(
        "{} takes {taken} of {}, and {second} begins at sector {}{}",
        name(one.owner),
        name(one.component),
        group_digits(other.start / SECTOR),
        if other.has_header {
            " with a header in front"
        } else {
            ""
        },
    )
}

/// Two on components that share a layer below.
fn below_both(nodes: &[Node], layer: NodeId, one: OccupiedRange, other: OccupiedRange) -> String {
    let name = |id: NodeId| nodes[id.at()].name.as_str();
    let of = |run: OccupiedRange| match run.extent.component == layer {
        true => name(run.extent.owner).to_owned(),
        false => format!(
            "{} on {}",
            name(run.extent.owner),
            name(run.extent.component)
        ),
    };
    let taken = |run: OccupiedRange| sectors(run.start, run.end);
    format!(
        "{} takes {} of {}, and {} takes {} there{}",
        of(one),
        taken(one),
        name(layer),
        of(other),
        taken(other),
        if other.extent.has_header {
            ", headers included"
        } else {
            ""
        },
    )
}

fn sectors(start: u64, end: u64) -> String {
    let last = (end / SECTOR).saturating_sub(1);
    format!(
        "sectors {} to {}",
        group_digits(start / SECTOR),
        group_digits(last)
    )
}
