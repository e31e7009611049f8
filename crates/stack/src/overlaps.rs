//! Partitions, soft partitions, subdisks and volumes of Solaris Volume Manager that share bytes, the header of a soft
//! partition included: on what both lie on, or on what lies below two components, as a slice and a metadevice made of it.
//!
//! Below parity only whole stripes are followed, since bytes of a stripe share its parity by design; below chunks with
//! copies, and what places its blocks itself, nothing is.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use plumb_geometry::{SECTOR, group_digits};

use crate::graph::NodeId;
use crate::node::{Chunks, Kind, Node, Part, Placing, keys};

mod partitions;

/// Pieces of layers that are looked at to see what lies where below; a host of thousands of volumes has far less.
const PIECES_MAX: usize = 1 << 24;

/// What was found, and whether all was looked at.
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
    /// Whether a problem tells of it already, or of what stands on one of them.
    pub(crate) is_told: bool,
}

/// An extent of what was cut out of, or laid on, a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Extent {
    start: u64,
    end: u64,
    owner: NodeId,
    component: NodeId,
    has_header: bool,
}

/// Where an extent and its header lie on a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    start: u64,
    end: u64,
    extent: Extent,
}

/// All of them; labels of the disks in `judged` were held against overlaps where they were read.
pub(crate) fn all(nodes: &[Node], judged: &HashSet<NodeId>) -> Overlaps {
    let mut found = partitions::overlaps(nodes, judged);
    let soft = soft_partitions(nodes);
    found.extend(soft.found);
    Overlaps { found, is_whole: soft.is_whole }
}

/// Each that overlaps is told of once, beside the one before it that ends last.
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
    let (below, is_whole) = below(nodes, &components);
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

/// Volumes that take all of a component, and what else was put there. Where what stands on a volume was held against the
/// other, that is told of.
fn on_volumes(nodes: &[Node], told_below: &HashSet<NodeId>) -> Vec<Overlap> {
    let is_volume = |extent: &Extent| nodes[extent.owner.at()].kind != Kind::SoftPartition;
    let mut found = Vec::new();
    for runs in by_component(extents(nodes).chain(volumes(nodes))).values() {
        let is_asked = |one: &Extent, other: &Extent| one.owner != other.owner;
        for (one, other) in beside_volumes(runs, is_volume, is_asked) {
            let is_told = [one, other].iter().any(|run| told_below.contains(&run.extent.owner));
            found.push(Overlap { is_told, ..overlap(one, other, beside(nodes, one, other)) });
        }
    }
    found
}

/// As [`pairs`], where one of both is a volume at least.
fn beside_volumes(
    runs: &[Run],
    is_volume: impl Fn(&Extent) -> bool,
    is_asked: impl Fn(&Extent, &Extent) -> bool,
) -> Vec<(Run, Run)> {
    let mut found = Vec::new();
    // The volume and the soft partition that end last.
    let mut last: [Option<Run>; 2] = [None; 2];
    for run in runs {
        let own = usize::from(is_volume(&run.extent));
        let against = if own == 1 { [last[1], last[0]] } else { [last[1], None] };
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

fn overlap(one: Run, other: Run, text: String) -> Overlap {
    Overlap { one: one.extent.owner, other: other.extent.owner, text, is_told: false }
}

/// In order of their places.
fn by_component(extents: impl Iterator<Item = Extent>) -> BTreeMap<NodeId, Vec<Run>> {
    let mut components: BTreeMap<NodeId, Vec<Run>> = BTreeMap::new();
    for extent in extents {
        let header = if extent.has_header { SECTOR } else { 0 };
        let run = Run { start: extent.start.saturating_sub(header), end: extent.end, extent };
        components.entry(extent.component).or_default().push(run);
    }
    for runs in components.values_mut() {
        runs.sort_unstable();
    }
    components
}

fn extents(nodes: &[Node]) -> impl Iterator<Item = Extent> {
    let soft = (0..).map(NodeId).zip(nodes).filter(|(_, node)| node.kind == Kind::SoftPartition);
    soft.flat_map(|(owner, node)| {
        let Placing::Parts { parts } = &node.placing else { return Vec::new() };
        // The header stands in the sector in front, which may be part of nothing else. Subdisks of VxVM have none.
        let has_header = node.word(keys::MANAGER) != Some("vxvm");
        let extent = |part: &Part| {
            let end = part.len.and_then(|len| part.start.checked_add(len)).unwrap_or(part.start);
            Extent { start: part.start.0, end: end.0, owner, component: part.node, has_header }
        };
        parts.iter().map(extent).collect()
    })
}

/// What metainit gives to nothing else: components of stripes, mirrors and the like, from where their data begin on.
fn volumes(nodes: &[Node]) -> impl Iterator<Item = Extent> {
    let is_volume = |node: &Node| node.kind != Kind::SoftPartition && node.word(keys::MANAGER) == Some("svm");
    let volumes = (0..).map(NodeId).zip(nodes).filter(move |(_, node)| is_volume(node));
    volumes.flat_map(move |(owner, node)| {
        let members: Vec<(NodeId, u64)> = match &node.placing {
            Placing::Parts { parts } => parts.iter().map(|part| (part.node, part.start.0)).collect(),
            Placing::Chunks(Chunks { members, .. }) | Placing::Copies { members } => {
                members.iter().map(|member| (member.node, member.start.0)).collect()
            }
            _ => Vec::new(),
        };
        let extent = move |(component, start): (NodeId, u64)| {
            let end = nodes[component.at()].size.map_or(u64::MAX, |size| size.0.max(start));
            Extent { start, end, owner, component, has_header: false }
        };
        members.into_iter().map(extent)
    })
}

/// Each run that shares bytes with one before it of which this is asked, beside the one of these that ends last. Of a
/// question about components two runs are enough to keep: the last to end, and the last of another component.
fn pairs(runs: &[Run], is_asked: impl Fn(&Extent, &Extent) -> bool) -> Vec<(Run, Run)> {
    let mut found = Vec::new();
    let mut last: [Option<Run>; 2] = [None; 2];
    for run in runs {
        let before = last.iter().flatten().find(|before| is_asked(&before.extent, &run.extent));
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

/// Where all runs lie in the end, of layers on which those of several components do; and whether all were followed.
fn below(nodes: &[Node], components: &BTreeMap<NodeId, Vec<Run>>) -> (BTreeMap<NodeId, Vec<Run>>, bool) {
    let mut below: BTreeMap<NodeId, Vec<Run>> = BTreeMap::new();
    let mut left = if components.len() > 1 { PIECES_MAX } else { 0 };
    for run in components.values().flatten() {
        let mut ways = vec![(run.extent.component, run.start..run.end)];
        while let Some((layer, bytes)) = ways.pop() {
            let Some(rest) = left.checked_sub(1 + nodes[layer.at()].placing.below().len()) else {
                return (below, components.len() <= 1);
            };
            left = rest;
            match step(&nodes[layer.at()], &bytes) {
                Some(next) => ways.extend(next.into_iter().filter(|(_, bytes)| !bytes.is_empty())),
                None => {
                    below.entry(layer).or_default().push(Run { start: bytes.start, end: bytes.end, ..*run })
                }
            }
        }
    }
    (below, true)
}

/// Where bytes of a layer lie on the next ones; `None` where they are followed no further. A soft partition below is
/// held against others by itself.
fn step(node: &Node, bytes: &Range<u64>) -> Option<Vec<(NodeId, Range<u64>)>> {
    match &node.placing {
        _ if node.kind == Kind::SoftPartition => None,
        Placing::Parts { parts } => {
            let within = parts.iter().map(|part| {
                let end = part.len.map_or(u64::MAX, |len| part.upper.0.saturating_add(len.0));
                let (from, to) = (bytes.start.max(part.upper.0), bytes.end.min(end));
                let moved = |at: u64| (at - part.upper.0).saturating_add(part.start.0);
                (part.node, if from < to { moved(from)..moved(to) } else { 0..0 })
            });
            Some(within.collect())
        }
        Placing::Copies { members } => {
            let moved = |at: u64, start: u64| at.saturating_add(start);
            let copies = members.iter().map(|member| {
                (member.node, moved(bytes.start, member.start.0)..moved(bytes.end, member.start.0))
            });
            Some(copies.collect())
        }
        Placing::Chunks(chunks) if chunks.copies <= 1 && chunks.chunk.0 > 0 => Some(in_chunks(chunks, bytes)),
        _ => None,
    }
}

/// Bytes in a row lie in a row on each member as well.
fn in_chunks(chunks: &Chunks, bytes: &Range<u64>) -> Vec<(NodeId, Range<u64>)> {
    let (chunk, width) = (chunks.chunk.0, chunks.chunk.0.saturating_mul(chunks.data_chunks()));
    let on_member = |number: usize| {
        if chunks.parity > 0 {
            let (first, end) = (bytes.start.div_ceil(width), bytes.end / width);
            return first.saturating_mul(chunk)..end.max(first).saturating_mul(chunk);
        }
        let before = |at: u64| {
            let skipped = (number as u64).saturating_mul(chunk);
            at / width * chunk + (at % width).saturating_sub(skipped).min(chunk)
        };
        before(bytes.start)..before(bytes.end)
    };
    let members = chunks.members.iter().enumerate().map(|(number, member)| {
        let run = on_member(number);
        let moved = |at: u64| at.saturating_add(member.start.0);
        (member.node, moved(run.start)..moved(run.end))
    });
    members.collect()
}

/// Two on one component.
fn beside(nodes: &[Node], one: Run, other: Run) -> String {
    let name = |id: NodeId| nodes[id.at()].name.as_str();
    let (one, other) = (one.extent, other.extent);
    let second = if one.owner == other.owner { "another of its own extents" } else { name(other.owner) };
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
        if other.has_header { " with a header in front" } else { "" },
    )
}

/// Two on components that share a layer below.
fn below_both(nodes: &[Node], layer: NodeId, one: Run, other: Run) -> String {
    let name = |id: NodeId| nodes[id.at()].name.as_str();
    let of = |run: Run| match run.extent.component == layer {
        true => name(run.extent.owner).to_owned(),
        false => format!("{} on {}", name(run.extent.owner), name(run.extent.component)),
    };
    let taken = |run: Run| sectors(run.start, run.end);
    format!(
        "{} takes {} of {}, and {} takes {} there{}",
        of(one),
        taken(one),
        name(layer),
        of(other),
        taken(other),
        if other.extent.has_header { ", headers included" } else { "" },
    )
}

fn sectors(start: u64, end: u64) -> String {
    let last = (end / SECTOR).saturating_sub(1);
    format!("sectors {} to {}", group_digits(start / SECTOR), group_digits(last))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use plumb_geometry::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::builder::Builder;
    use crate::grid::Source;
    use crate::node::Member;

    const FROM: Source = Source::User;

    fn stripe(builder: &mut Builder, name: &str, members: &[NodeId], chunk: u64, parity: u32) -> NodeId {
        let id = builder.node(name);
        let members = members.iter().map(|node| Member { node: *node, start: Bytes(0) }).collect();
        let chunks = Chunks { chunk: Bytes(chunk), members, parity, copies: 1, layout: None };
        builder.place(id, Placing::Chunks(chunks), &FROM);
        id
    }

    /// Extents as first sector and length in sectors.
    fn soft(builder: &mut Builder, name: &str, below: NodeId, (start, len): (u64, u64)) {
        let id = builder.node(name);
        builder.kind(id, Kind::SoftPartition, &FROM);
        let (start, len) = (Bytes(start * SECTOR), Some(Bytes(len * SECTOR)));
        let part = Part { upper: Bytes(0), node: below, start, len };
        builder.place(id, Placing::Parts { parts: vec![part] }, &FROM);
    }

    fn overlaps(builder: Builder) -> Vec<String> {
        builder.finish().problems().iter().map(|problem| problem.text.clone()).collect()
    }

    /// A mirror of two slices, a soft partition on it, and one on a slice.
    #[test]
    fn a_slice_is_seen_through_a_mirror() {
        for (start, is_found) in [(1000, true), (1099, true), (1100, true), (1101, false)] {
            let mut builder = Builder::default();
            let slices = ["s0", "s1"].map(|name| builder.node(name));
            let mirror = builder.node("d10");
            let members = slices.map(|node| Member { node, start: Bytes(0) }).to_vec();
            builder.place(mirror, Placing::Copies { members }, &FROM);
            soft(&mut builder, "d11", mirror, (1000, 100));
            soft(&mut builder, "d12", slices[1], (start, 50));
            let found = overlaps(builder);
            assert_eq!(found.len(), usize::from(is_found), "{start}: {found:?}");
            if start == 1100 {
                let text = "d11 on d10 takes sectors 999 to 1,099 of s1, and d12 takes sectors 1,099 to 1,149 there, \
                            headers included";
                assert_eq!(found, [text]);
            }
        }
    }

    /// What lies on a soft partition is not held against it; what lies beside it is held against that alone.
    #[test]
    fn a_soft_partition_holds_what_lies_on_it() {
        let mut builder = Builder::default();
        let slice = builder.node("s0");
        soft(&mut builder, "d11", slice, (100, 100));
        soft(&mut builder, "d12", slice, (150, 100));
        let (d11, mirror) = (builder.node("d11"), builder.node("d20"));
        let members = vec![Member { node: d11, start: Bytes(0) }];
        builder.place(mirror, Placing::Copies { members }, &FROM);
        soft(&mut builder, "d21", mirror, (10, 90));
        let found = overlaps(builder);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("d11 takes sectors 100 to 199 of s0, and d12 begins"), "{found:?}");
    }

    /// Neighbours on RAID 5 share the parity of a stripe, and no byte.
    #[test]
    fn parity_is_shared_by_design() {
        for (first, len, is_found) in [(9, 1, false), (17, 31, true), (1, 15, false)] {
            let mut builder = Builder::default();
            let slices = ["s0", "s1", "s2"].map(|name| builder.node(name));
            let raid = stripe(&mut builder, "d10", &slices, 8 * SECTOR, 1);
            soft(&mut builder, "d11", raid, (first, len));
            soft(&mut builder, "d12", raid, (first + len + 1, 4));
            // Sectors 16 to 23 of a member are those of the stripe that begins at sector 32.
            soft(&mut builder, "d13", slices[2], (20, 2));
            let found = overlaps(builder);
            assert_eq!(found.len(), usize::from(is_found), "{first}: {found:?}");
        }
    }

    /// Subdisks have no header: one may begin where another ends.
    #[test]
    fn subdisks_stand_side_by_side() {
        for (start, is_found) in [(200, false), (199, true)] {
            let mut builder = Builder::default();
            let disk = builder.node("dg/disk01");
            soft(&mut builder, "dg/disk01-01", disk, (100, 100));
            soft(&mut builder, "dg/disk01-02", disk, (start, 100));
            for name in ["dg/disk01-01", "dg/disk01-02"] {
                let id = builder.node(name);
                builder.fact(id, keys::MANAGER, "vxvm", &FROM);
            }
            assert_eq!(overlaps(builder).len(), usize::from(is_found), "{start}");
        }
    }

    proptest! {
        /// Against laying every sector by hand: a soft partition on a stripe and one on a member share a sector, or do not.
        #[test]
        fn stripes_are_followed_sector_by_sector(
            members in 1_u64..5, chunk in 1_u64..9,
            upper in (1_u64..100, 1_u64..40), lower in (1_u64..60, 1_u64..20), which in any::<prop::sample::Index>(),
        ) {
            let which = which.index(members as usize) as u64;
            let mut builder = Builder::default();
            let disks: Vec<NodeId> = (0..members).map(|number| builder.node(&format!("s{number}"))).collect();
            let on = stripe(&mut builder, "d10", &disks, chunk * SECTOR, 0);
            soft(&mut builder, "d11", on, upper);
            soft(&mut builder, "d12", disks[which as usize], lower);
            let laid: BTreeSet<(u64, u64)> = (upper.0 - 1..upper.0 + upper.1)
                .map(|sector| (sector / chunk % members, sector / chunk / members * chunk + sector % chunk))
                .collect();
            let is_shared = (lower.0 - 1..lower.0 + lower.1).any(|sector| laid.contains(&(which, sector)));
            prop_assert_eq!(overlaps(builder).len(), usize::from(is_shared));
        }

        /// Against holding each run against all before it.
        #[test]
        fn two_runs_are_enough_to_keep(mut runs in prop::collection::vec((0_u64..60, 0_u64..20, 0_u32..4), 1..20)) {
            runs.sort_unstable();
            let runs: Vec<Run> = runs.iter().enumerate().map(|(at, (start, len, component))| {
                let (owner, component) = (NodeId(at as u32), NodeId(*component));
                let extent = Extent { start: *start, end: start + len, owner, component, has_header: false };
                Run { start: *start, end: start + len, extent }
            }).collect();
            let is_asked = |one: &Extent, other: &Extent| one.component != other.component;
            let found: Vec<NodeId> = pairs(&runs, is_asked).iter().map(|(_, other)| other.extent.owner).collect();
            let meets = |at: &usize| runs[..*at].iter().any(|before| {
                is_asked(&before.extent, &runs[*at].extent) && runs[*at].start < before.end
            });
            let expected: Vec<NodeId> =
                (0..runs.len()).filter(meets).map(|at| runs[at].extent.owner).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
