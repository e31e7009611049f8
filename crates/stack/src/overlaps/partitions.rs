//! Partitions of one disk that share bytes, from any source. Labels that were read on the disk itself are left out:
//! overlaps there are compared with facts that only those labels have.
//!
//! Slices for the whole disk, and logical partitions in an extended one, overlap nothing by lying over each other.

use std::collections::{BTreeMap, HashSet};

use super::{Extent, OccupiedRange, Overlap, beside};
use crate::graph::NodeId;
use crate::node::{Kind, Node, Placing, keys};
use crate::node_facts::LabelWord;

/// Tags of slices that cover others by design: the whole disk, and the public and private region of VxVM; the public
/// one covers older slices on an encapsulated disk.
const TAGS_OVER_OTHERS: [u64; 3] = [5, 14, 15];
/// Primary partitions of an MBR: numbers above are those of logical ones.
const PRIMARIES: u64 = 4;

/// Each overlap is reported once, with an earlier partition.
pub(super) fn overlaps(nodes: &[Node], judged: &HashSet<NodeId>) -> Vec<Overlap> {
    let mut found = Vec::new();
    for (disk, mut runs) in by_disk(nodes, judged) {
        let first = runs.iter().map(|run| run.start).min().unwrap_or(0);
        let last = runs.iter().map(|run| run.end).max().unwrap_or(0);
        runs.retain(|run| !is_whole_disk(nodes, run, first, last));
        runs.sort_unstable();
        found.extend(
            pairs(nodes, disk, &runs)
                .into_iter()
                .map(|(one, other)| Overlap {
                    one: one.extent.owner,
                    other: other.extent.owner,
                    text: beside(nodes, one, other),
                    is_told: false,
                }),
        );
    }
    found
}

fn by_disk(nodes: &[Node], judged: &HashSet<NodeId>) -> BTreeMap<NodeId, Vec<OccupiedRange>> {
    let mut disks: BTreeMap<NodeId, Vec<OccupiedRange>> = BTreeMap::new();
    for (owner, node) in (0..)
        .map(NodeId)
        .zip(nodes)
        .filter(|(_, node)| node.kind == Kind::Partition)
    {
        let Placing::Parts { parts } = &node.placing else {
            continue;
        };
        let [part] = parts.as_slice() else { continue };
        let end = part
            .len
            .or(node.size)
            .and_then(|len| part.start.checked_add(len));
        let (start, end) = (part.start.0, end.unwrap_or(part.start).0);
        if start < end && !judged.contains(&part.node) {
            let extent = Extent {
                start,
                end,
                owner,
                component: part.node,
                has_header: false,
            };
            disks
                .entry(part.node)
                .or_default()
                .push(OccupiedRange { start, end, extent });
        }
    }
    disks
}

/// By its tag; if it has none, or is the third slice, by containing all others from the start of the disk on, where a
/// GPT or an MBR would be.
fn is_whole_disk(nodes: &[Node], run: &OccupiedRange, first: u64, last: u64) -> bool {
    let node = &nodes[run.extent.owner.at()];
    let tag = node.number(keys::PARTITION_TAG);
    let is_third = node.number(keys::PARTITION_NUMBER) == Some(2);
    let holds_all = run.start == 0 && first == 0 && run.end == last;
    tag.is_some_and(|tag| TAGS_OVER_OTHERS.contains(&tag))
        || holds_all && (tag.is_none() || is_third)
}

/// Of all before a run, the primary and the logical partition that end last are enough to know.
fn pairs(
    nodes: &[Node],
    disk: NodeId,
    runs: &[OccupiedRange],
) -> Vec<(OccupiedRange, OccupiedRange)> {
    let is_mbr = nodes[disk.at()]
        .value(keys::LABEL)
        .is_none_or(|label| *label == LabelWord::Dos);
    let number = |run: &OccupiedRange| nodes[run.extent.owner.at()].number(keys::PARTITION_NUMBER);
    let is_logical =
        |run: &OccupiedRange| is_mbr && number(run).is_some_and(|number| number > PRIMARIES);
    let holds = |outer: &OccupiedRange, inner: &OccupiedRange| {
        outer.start <= inner.start && inner.end <= outer.end
    };
    // A partition that two sources call by different names.
    let is_same = |one: &OccupiedRange, other: &OccupiedRange| {
        let numbers = number(one).zip(number(other));
        (one.start, one.end) == (other.start, other.end)
            && numbers.is_none_or(|(one, other)| one == other)
    };
    let by_design =
        |one: &OccupiedRange, other: &OccupiedRange| match (is_logical(one), is_logical(other)) {
            (false, true) => holds(one, other),
            (true, false) => holds(other, one),
            _ => is_same(one, other),
        };
    let mut found = Vec::new();
    let mut last: [Option<OccupiedRange>; 2] = [None; 2];
    for run in runs {
        let own = usize::from(is_logical(run));
        let mut before = [last[own], last[1 - own]].into_iter().flatten();
        if let Some(before) =
            before.find(|before| run.start < before.end && !by_design(before, run))
        {
            found.push((before, *run));
        }
        if last[own].is_none_or(|known| known.end < run.end) {
            last[own] = Some(*run);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use plumb_geometry::{Bytes, SECTOR};

    use super::*;
    use crate::builder::Builder;
    use crate::grid::Source;
    use crate::node::Part;

    const FROM: Source = Source::User;

    /// Partitions as number, tag, first sector and sector behind the last.
    fn found(label: &str, partitions: &[(u64, Option<u64>, u64, u64)]) -> Vec<(u64, u64)> {
        let mut builder = Builder::default();
        let disk = builder.node("disk");
        if !label.is_empty() {
            builder.fact(disk, keys::LABEL, label, &FROM);
        }
        for (at, (number, tag, start, end)) in partitions.iter().enumerate() {
            let id = builder.node(&format!("part{at}"));
            builder.kind(id, Kind::Partition, &FROM);
            builder.fact(id, keys::PARTITION_NUMBER, *number, &FROM);
            if let Some(tag) = tag {
                builder.fact(id, keys::PARTITION_TAG, *tag, &FROM);
            }
            let (start, len) = (Bytes(start * SECTOR), Some(Bytes((end - start) * SECTOR)));
            let part = Part {
                upper: Bytes(0),
                node: disk,
                start,
                len,
            };
            builder.place(id, Placing::Parts { parts: vec![part] }, &FROM);
        }
        let nodes: Vec<Node> = builder.ids().map(|id| builder.get(id).clone()).collect();
        let number = |id: NodeId| {
            nodes[id.at()]
                .number(keys::PARTITION_NUMBER)
                .expect("a number")
        };
        let found = overlaps(&nodes, &HashSet::new());
        found
            .iter()
            .map(|overlap| (number(overlap.one), number(overlap.other)))
            .collect()
    }

    #[test]
    fn neighbours_share_nothing() {
        assert_eq!(found("gpt", &[(1, None, 40, 100), (2, None, 100, 200)]), []);
        assert_eq!(
            found("gpt", &[(1, None, 40, 101), (2, None, 100, 200)]),
            [(1, 2)]
        );
        assert_eq!(
            found("", &[(2, None, 40, 101), (1, None, 100, 200)]),
            [(2, 1)]
        );
        let held = [(1, None, 40, 300), (2, None, 50, 60), (3, None, 70, 80)];
        assert_eq!(found("gpt", &held), [(1, 2), (1, 3)]);
    }

    #[test]
    fn logical_partitions_are_in_an_extended_one() {
        let mbr = [
            (1, None, 63, 100),
            (2, None, 100, 1000),
            (5, None, 163, 300),
            (6, None, 299, 400),
        ];
        assert_eq!(found("dos", &mbr[..3]), []);
        assert_eq!(found("", &mbr[..3]), []);
        assert_eq!(found("dos", &mbr), [(5, 6)]);
        assert_eq!(found("gpt", &mbr[..3]), [(2, 5)]);
        // A primary one over the beginning of a logical one.
        assert_eq!(
            found("dos", &[(1, None, 63, 200), (5, None, 163, 300)]),
            [(1, 5)]
        );
    }

    #[test]
    fn slices_for_the_whole_disk_overlap_nothing() {
        let slice = |tag| (2, tag, 0, 1000);
        let others = [(0, Some(4), 10, 500), (1, Some(4), 500, 1000)];
        for tag in [Some(5), Some(0), None] {
            assert_eq!(
                found("vtoc", &[slice(tag), others[0], others[1]]),
                [],
                "{tag:?}"
            );
        }
        // A slice for data that takes all of the disk is not one of them.
        assert_eq!(
            found("vtoc", &[slice(Some(5)), (0, Some(4), 0, 1000), others[1]]),
            [(0, 1)]
        );
        // An encapsulated disk: the public region of VxVM over older slices.
        assert_eq!(
            found("vtoc", &[slice(Some(5)), (4, Some(14), 0, 1000), others[0]]),
            []
        );
    }

    #[test]
    fn one_partition_by_two_names_is_one() {
        assert_eq!(found("gpt", &[(1, None, 40, 100), (1, None, 40, 100)]), []);
        assert_eq!(
            found("gpt", &[(1, None, 40, 100), (2, None, 40, 100)]),
            [(1, 2)]
        );
    }
}
