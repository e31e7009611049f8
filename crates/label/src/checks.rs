//! Relations of partitions to each other and to the disk.

use plumb_geometry::Extent;

use crate::label::{Partition, PartitionPlace};
use crate::problem::{PartId, Problem};

/// Partitions over the end of a disk of `device_lbas` blocks.
pub(crate) fn beyond_end(
    partitions: &[Partition],
    sector_bytes: u32,
    device_lbas: u64,
) -> Vec<Problem> {
    let end_lba =
        |partition: &Partition| partition.extent.end().0.div_ceil(u64::from(sector_bytes));
    partitions
        .iter()
        .filter(|&partition| end_lba(partition) > device_lbas)
        .map(|partition| Problem::BeyondEnd {
            part: partition.id,
            end_lba: end_lba(partition),
            device_lbas,
        })
        .collect()
}

/// Partitions that share blocks though they belong beside each other. Each one is reported once at most, beside the
/// one before it that ends last: a table of thousands cannot make millions of problems.
pub(crate) fn overlaps(partitions: &[Partition]) -> Vec<Problem> {
    let on_disk = |partition: &&Partition| {
        matches!(
            partition.place,
            PartitionPlace::Disk | PartitionPlace::Extended
        )
    };
    let logical = |partition: &&Partition| partition.place == PartitionPlace::Logical;
    let mut problems = sweep(partitions.iter().filter(on_disk));
    problems.extend(sweep(partitions.iter().filter(logical)));
    let mut parents: Vec<u32> = partitions
        .iter()
        .filter(|p| p.place == PartitionPlace::Slice)
        .filter_map(|p| p.id.within)
        .collect();
    parents.dedup();
    for parent in parents {
        let within =
            |p: &&Partition| p.place == PartitionPlace::Slice && p.id.within == Some(parent);
        problems.extend(sweep(partitions.iter().filter(within)));
    }
    problems
}

fn sweep<'a>(partitions: impl Iterator<Item = &'a Partition>) -> Vec<Problem> {
    let mut order: Vec<(Extent, PartId)> = partitions
        .filter(|p| !p.is_whole_disk)
        .map(|p| (p.extent, p.id))
        .collect();
    order.sort();
    let mut problems = Vec::new();
    let mut furthest: Option<(Extent, PartId)> = None;
    for (extent, id) in order {
        if let Some((before, first)) = furthest
            && extent.start() < before.end()
        {
            problems.push(Problem::Overlap { first, second: id });
        }
        if furthest.is_none_or(|(before, _)| extent.end() > before.end()) {
            furthest = Some((extent, id));
        }
    }
    problems
}

/// Partitions that reach over the one they belong into.
pub(crate) fn outside(
    partitions: &[Partition],
    belongs: impl Fn(&Partition) -> Option<PartId>,
) -> Vec<Problem> {
    let reaches_over =
        |inner: Extent, outer: Extent| inner.start() < outer.start() || inner.end() > outer.end();
    let problem = |part: &Partition| {
        let parent = belongs(part)?;
        let outer = partitions.iter().find(|p| p.id == parent)?;
        reaches_over(part.extent, outer.extent).then_some(Problem::OutsideParent {
            part: part.id,
            parent,
        })
    };
    partitions.iter().filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{PartitionType, extent};

    fn partition(number: u32, first: u64, end: u64, place: PartitionPlace) -> Partition {
        Partition {
            id: PartId::partition(number),
            place,
            extent: extent(first, end, 512).expect("a small extent"),
            kind: PartitionType::Mbr(0x83),
            name: None,
            uuid: None,
            is_whole_disk: false,
        }
    }

    #[test]
    fn neighbours_do_not_overlap_and_a_long_one_overlaps_all_that_follow() {
        let check = |extents: &[(u64, u64)], expected: &[(u32, u32)]| {
            let partitions: Vec<Partition> = (1..)
                .zip(extents)
                .map(|(number, &(first, end))| partition(number, first, end, PartitionPlace::Disk))
                .collect();
            let pairs: Vec<(u32, u32)> = overlaps(&partitions)
                .iter()
                .map(|problem| match problem {
                    Problem::Overlap { first, second } => (first.number, second.number),
                    other => panic!("{other}"),
                })
                .collect();
            assert_eq!(pairs, expected, "{extents:?}");
        };
        check(&[(34, 100), (100, 200)], &[]);
        check(&[(34, 101), (100, 200)], &[(1, 2)]);
        check(&[(100, 200), (34, 101)], &[(2, 1)]);
        check(&[(10, 100), (20, 30), (40, 50)], &[(1, 2), (1, 3)]);
        check(&[(10, 20), (10, 20)], &[(1, 2)]);
    }

    #[test]
    fn logical_partitions_are_in_the_extended_one_without_overlap() {
        let mut partitions = vec![
            partition(1, 63, 1_000, PartitionPlace::Extended),
            partition(5, 126, 300, PartitionPlace::Logical),
        ];
        assert_eq!(overlaps(&partitions), []);
        partitions.push(partition(6, 299, 400, PartitionPlace::Logical));
        let (first, second) = (PartId::partition(5), PartId::partition(6));
        assert_eq!(overlaps(&partitions), [Problem::Overlap { first, second }]);
    }
}
