//! Partitions and slices as a disk's own label has them, under the names that Linux gives them.

use plumb_geometry::Bytes;
use plumb_label::{Disk, Label, LabelKind, PartId, Partition, PartitionPlace, Problem as Found};

use super::content::ProblemId;
use super::nodes;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, Source};
use crate::node::{Kind, Placing, Problem, keys};

/// Suffix of the name of the disk in a file.
pub(crate) const DISK_OF_IMAGE: &str = ":disk";

/// A partition that may have something in it.
pub(crate) struct LabelledPart {
    pub(crate) node: NodeId,
    pub(crate) start: u64,
    pub(crate) len: u64,
    /// The start that its file system should have noted; `None` for logical partitions, where that is another one.
    pub(crate) noted_start: Option<u64>,
}

/// How the partitions of a disk are called.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Naming {
    /// As the kernel of its host calls them.
    Device,
    /// `disk.img#1`.
    Image,
}

/// Makes a node of each partition; those that hold others are no pieces. `None` where there is no label.
pub(crate) fn tell(
    builder: &mut Builder,
    disk: &dyn Disk,
    id: NodeId,
    naming: Naming,
) -> Option<Vec<LabelledPart>> {
    let name = builder.get(id).name.clone();
    let label = match plumb_label::read(disk, sector_bytes(builder, id)) {
        Ok(found) => found?,
        Err(error) => {
            builder.note(format!("{name}: {error}"));
            return None;
        }
    };
    let source = Source::OnDisk {
        format: label.kind.to_string(),
    };
    builder.fact(id, keys::LABEL, word(label.kind), &source);
    builder.fact(
        id,
        keys::LABEL_BLOCK,
        Bytes(label.sector_bytes.into()),
        &source,
    );
    if let Some(plumb_label::Detail::SparcVtoc(vtoc)) = &label.detail {
        let sectors = u64::from(vtoc.geometry.heads) * u64::from(vtoc.geometry.sectors);
        builder.fact(id, keys::CYLINDER_SECTORS, sectors, &source);
    }
    let names = Names::from_label(&label, naming);
    let nodes: Vec<(NodeId, &Partition)> = label
        .partitions
        .iter()
        .map(|partition| (builder.node(&names.node(&name, partition)), partition))
        .collect();
    for (node, partition) in &nodes {
        tell_partition(builder, id, *node, partition, &source);
    }
    for (node, partition) in nodes
        .iter()
        .filter(|(_, partition)| partition.kind.is_moving())
    {
        let text = format!("{name}: the move of {} has not ended", partition.id);
        let id = ProblemId::UnfinishedMove;
        builder.problem(Problem {
            node: Some(*node),
            id,
            text,
            source: source.clone(),
        });
    }
    for problem in &label.problems {
        let about = part(problem).and_then(|part| nodes.iter().find(|(_, known)| known.id == part));
        tell_problem(
            builder,
            about.map_or(id, |(node, _)| *node),
            &name,
            problem,
            &source,
        );
    }
    let node = |part: &PartId| {
        nodes
            .iter()
            .find(|(_, known)| known.id == *part)
            .map(|(node, _)| *node)
    };
    let overlaps = label.problems.iter().filter_map(|problem| match problem {
        Found::Overlap { first, second } => {
            Some((node(first)?, node(second)?, problem.to_string()))
        }
        _ => None,
    });
    builder.label_judged(id, overlaps);
    let holds_others = |partition: &Partition| {
        let is_parent = |other: &Partition| other.id.within == Some(partition.id.number);
        partition.place == PartitionPlace::Extended
            || partition.is_whole_disk
            || partition.place == PartitionPlace::Disk && label.partitions.iter().any(is_parent)
    };
    let pieces = nodes
        .iter()
        .filter(|(_, partition)| !holds_others(partition))
        .map(|(node, partition)| LabelledPart {
            node: *node,
            start: partition.extent.start().0,
            len: partition.extent.len().0,
            noted_start: (partition.place == PartitionPlace::Disk)
                .then_some(partition.extent.start().0),
        });
    Some(pieces.collect())
}

/// The device's logical block, if known.
fn sector_bytes(builder: &Builder, id: NodeId) -> Option<u32> {
    let mut grids = builder.get(id).grids.iter();
    let told = grids.find(|fact| fact.what == CellKind::LogicalBlock)?;
    let bytes = u32::try_from(told.granularity().0).ok()?;
    (bytes.is_power_of_two() && (512..=65_536).contains(&bytes)).then_some(bytes)
}

fn word(kind: LabelKind) -> &'static str {
    match kind {
        LabelKind::Gpt => "gpt",
        LabelKind::SolarisEfi => "efi",
        LabelKind::Mbr => "dos",
        LabelKind::X86Vtoc => "vtoc",
        LabelKind::SparcVtoc => "sun",
    }
}

/// Numbers of slices within MBR partitions, which Linux counts on from the logical partitions.
struct Names {
    naming: Naming,
    slices: Vec<(PartId, u32)>,
}

impl Names {
    fn from_label(label: &Label, naming: Naming) -> Names {
        let is_slice = |partition: &&Partition| partition.place == PartitionPlace::Slice;
        let next = label
            .partitions
            .iter()
            .filter(|one| one.place == PartitionPlace::Logical)
            .map(|one| one.id.number);
        let first = next.max().unwrap_or(4) + 1;
        let slices = label.partitions.iter().filter(is_slice);
        Names {
            naming,
            slices: slices
                .zip(first..)
                .map(|(partition, number)| (partition.id, number))
                .collect(),
        }
    }

    fn number(&self, partition: &Partition) -> u32 {
        let known = self.slices.iter().find(|(id, _)| *id == partition.id);
        known.map_or(partition.id.number, |(_, number)| *number)
    }

    /// `sda1`, `nvme0n1p1`, `c1t0d0s0`, and of an image `disk.img#1`.
    fn node(&self, disk: &str, partition: &Partition) -> String {
        let number = self.number(partition);
        if self.naming == Naming::Image {
            return format!(
                "{}#{number}",
                disk.strip_suffix(DISK_OF_IMAGE).unwrap_or(disk)
            );
        }
        match (
            is_solaris_disk(disk),
            partition.id.slice,
            partition.id.within,
        ) {
            (true, Some(slice), _) => format!("{disk}s{slice}"),
            // Solaris calls the partitions of an EFI label slices, from 0.
            (true, None, None) if partition.place == PartitionPlace::Disk => {
                format!("{disk}p{number}")
            }
            _ if disk.ends_with(|last: char| last.is_ascii_digit()) => format!("{disk}p{number}"),
            _ => format!("{disk}{number}"),
        }
    }
}

/// Whether a disk has a name of Solaris: `c1t0d0`, `c0d0`, `c0t5000C500A1B2C3D4d0`.
#[must_use]
pub fn is_solaris_disk(disk: &str) -> bool {
    let mut parts = disk.splitn(2, 'd');
    let (Some(path), Some(unit)) = (parts.next(), parts.next()) else {
        return false;
    };
    let mut path = path.strip_prefix('c').unwrap_or_default().splitn(2, 't');
    let is_number =
        |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let is_target =
        |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    path.next().is_some_and(is_number) && path.next().is_none_or(is_target) && is_number(unit)
}

fn tell_partition(
    builder: &mut Builder,
    disk: NodeId,
    node: NodeId,
    partition: &Partition,
    source: &Source,
) {
    builder.kind(node, Kind::Partition, source);
    builder.fact(node, keys::PARTITION_NUMBER, partition.id.number, source);
    if let Some(slice) = partition.id.slice {
        builder.fact(node, keys::SLICE, slice, source);
    }
    let (start, len) = (partition.extent.start(), partition.extent.len());
    // The kernel shows two sectors of a partition that holds others, and cuts partitions at the end of the disk.
    let is_known = builder.get(node).placing != Placing::Leaf;
    let is_cut = builder
        .get(disk)
        .size
        .is_some_and(|size| partition.extent.end() > size);
    if is_known && (partition.place == PartitionPlace::Extended || is_cut) {
        return;
    }
    builder.place(node, nodes::run(disk, start.0, Some(len)), source);
    builder.size(node, len, source);
}

fn part(problem: &Found) -> Option<PartId> {
    match problem {
        Found::Overlap { second: part, .. }
        | Found::OutsideUsable { part }
        | Found::BeyondEnd { part, .. }
        | Found::OutsideParent { part, .. } => Some(*part),
        _ => None,
    }
}

/// The id of a problem; `None` for one that is only a note.
fn id(problem: &Found) -> Option<ProblemId> {
    Some(match problem {
        Found::StrandedBackup { .. } => ProblemId::StrandedBackupLabel,
        Found::SectorSizeMismatch { .. } => ProblemId::SectorSizeMismatch,
        Found::Overlap { .. } => ProblemId::OverlappingPartitions,
        Found::BeyondEnd { .. } | Found::DeviceSmaller { .. } => ProblemId::BeyondDevice,
        Found::LegacyBackup { .. } | Found::HybridMbr | Found::LeftoverGpt { .. } => return None,
        Found::BrokenCopy { .. }
        | Found::NoGoodCopy
        | Found::BackupElsewhere { .. }
        | Found::CopiesDiffer { .. }
        | Found::NoProtectiveMbr
        | Found::FirstSector { .. }
        | Found::OutsideUsable { .. }
        | Found::Backwards { .. }
        | Found::OutsideParent { .. }
        | Found::EbrLoop { .. }
        | Found::BrokenEbr { .. }
        | Found::EbrOutsideExtended { .. }
        | Found::EbrLimit { .. } => ProblemId::BrokenLabel,
    })
}

fn tell_problem(
    builder: &mut Builder,
    about: NodeId,
    disk: &str,
    problem: &Found,
    source: &Source,
) {
    let text = format!("{disk}: {problem}");
    let Some(id) = id(problem) else {
        return builder.note(text);
    };
    // The builder itself reports a run that ends beyond the layer below.
    let is_told_by_builder = matches!(problem, Found::BeyondEnd { .. })
        && matches!(&builder.get(about).placing, Placing::Parts { parts } if parts.iter().any(|part| {
            let end = part.len.and_then(|len| part.start.checked_add(len));
            builder.get(part.node).size.is_some_and(|size: Bytes| end.is_none_or(|end| end > size))
        }));
    if !is_told_by_builder {
        builder.problem(Problem {
            node: Some(about),
            id,
            text,
            source: source.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_solaris_are_distinguished() {
        for name in ["c1t0d0", "c0d0", "c0t5000C500A1B2C3D4d0"] {
            assert!(is_solaris_disk(name), "{name}");
        }
        for name in ["sda", "nvme0n1", "md0", "cciss", "c1t0d0s2", "d12", "loop0"] {
            assert!(!is_solaris_disk(name), "{name}");
        }
    }
}
