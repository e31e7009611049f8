//! The partitions that the kernel has to forget and to learn after a label was changed.
//!
//! It hears of them one by one (BLKPG), and only of those that differ: others may be mounted. The container of logical
//! partitions, which kernels show with a length of their own, and Solaris's slices within a partition, which they number
//! as they find them, are left as they are.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_label::{Label, LabelKind, Partition, PartitionPlace};
use plumb_sys::{DirectDisk, KernelPartition, SysError, partitions};

/// How long a node may take to appear, and how often it is looked for.
const NODE_WAIT: Duration = Duration::from_secs(5);
const NODE_AGAIN: Duration = Duration::from_millis(20);
/// Primary partitions of an MBR.
const PRIMARY_MAX: u32 = 4;

/// One thing to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelStep {
    /// To forget the partition of this number.
    Delete(u32),
    /// To learn of one.
    Add(KernelPartition),
}

/// The changes that give the kernel the partitions of a label.
#[must_use]
pub fn kernel_steps(known: &[KernelPartition], label: &Label) -> Vec<KernelStep> {
    let wanted: Vec<KernelPartition> = label.partitions.iter().filter_map(of_label).collect();
    let is_extended = |number: u32| {
        label
            .partitions
            .iter()
            .any(|part| part.place == PartitionPlace::Extended && part.id.number == number)
    };
    let is_ours = |known: &&KernelPartition| {
        let may_be_slice = label.kind == LabelKind::X86Vtoc && known.number > PRIMARY_MAX;
        !is_extended(known.number) && !may_be_slice
    };
    let gone = known
        .iter()
        .filter(is_ours)
        .filter(|known| !wanted.contains(known));
    let new = wanted.iter().filter(|wanted| !known.contains(wanted));
    gone.map(|gone| KernelStep::Delete(gone.number))
        .chain(new.map(|new| KernelStep::Add(*new)))
        .collect()
}

fn of_label(part: &Partition) -> Option<KernelPartition> {
    matches!(part.place, PartitionPlace::Disk | PartitionPlace::Logical).then(|| KernelPartition {
        number: part.id.number,
        start_bytes: part.extent.start().0,
        len_bytes: part.extent.len().0,
    })
}

/// Tells the kernel.
///
/// # Errors
/// When it refuses a step; those before it were taken.
pub fn tell(disk: &DirectDisk, steps: &[KernelStep]) -> Result<(), SysError> {
    steps.iter().try_for_each(|step| match *step {
        KernelStep::Delete(number) => partitions::delete(disk, disk.path(), number),
        KernelStep::Add(partition) => partitions::add(disk, disk.path(), partition),
    })
}

/// The node of a partition beside that of its disk, by the kernel's rule: `sda1`, `loop0p1`.
#[must_use]
pub fn node_of(disk: &Path, number: u32) -> PathBuf {
    let name = disk.file_name().unwrap_or_default().to_string_lossy();
    let between = if name.ends_with(|last: char| last.is_ascii_digit()) {
        "p"
    } else {
        ""
    };
    disk.with_file_name(format!("{name}{between}{number}"))
}

/// Waits until a node is a block device; returns whether it became one. Without udev the kernel makes it itself, and if
/// neither does, a tool may have left a regular file of that name.
#[must_use]
pub fn wait_for(node: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let until = Instant::now() + NODE_WAIT;
    loop {
        if std::fs::metadata(node).is_ok_and(|found| found.file_type().is_block_device()) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(NODE_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use plumb_geometry::{Bytes, Extent};
    use plumb_label::{PartId, PartitionType};

    use super::*;

    fn label(parts: &[(u32, u64, u64, PartitionPlace)]) -> Label {
        let partition =
            |&(number, start, len, place): &(u32, u64, u64, PartitionPlace)| Partition {
                id: PartId::partition(number),
                place,
                extent: Extent::new(Bytes(start), Bytes(len)).expect("small"),
                kind: PartitionType::Mbr(0x83),
                name: None,
                uuid: None,
                is_whole_disk: false,
            };
        Label {
            kind: LabelKind::Mbr,
            sector_bytes: 512,
            id: None,
            usable: None,
            partitions: parts.iter().map(partition).collect(),
            copies: Vec::new(),
            problems: Vec::new(),
            detail: None,
        }
    }

    fn known(number: u32, start_bytes: u64, len_bytes: u64) -> KernelPartition {
        KernelPartition {
            number,
            start_bytes,
            len_bytes,
        }
    }

    #[test]
    fn only_changed_partitions_are_updated() {
        use KernelStep::{Add, Delete};
        let at = |start| {
            label(&[
                (1, start, 4096, PartitionPlace::Disk),
                (2, 65_536, 4096, PartitionPlace::Disk),
            ])
        };
        let both = [known(1, 17_408, 4096), known(2, 65_536, 4096)];
        assert_eq!(kernel_steps(&both, &at(17_408)), []);
        assert_eq!(
            kernel_steps(&both, &at(20_480)),
            [Delete(1), Add(known(1, 20_480, 4096))]
        );
        assert_eq!(
            kernel_steps(&[], &at(20_480)).len(),
            2,
            "a kernel that read no label"
        );
        assert_eq!(kernel_steps(&both, &label(&[])), [Delete(1), Delete(2)]);
    }

    #[test]
    fn containers_are_left_alone() {
        let parts = [
            (1, 1_048_576, 8_388_608, PartitionPlace::Extended),
            (5, 2_097_152, 4096, PartitionPlace::Logical),
        ];
        // As Linux shows an extended partition: two sectors long.
        let shown = [known(1, 1_048_576, 1024), known(5, 2_097_152, 4096)];
        assert_eq!(kernel_steps(&shown, &label(&parts)), []);
        let mut vtoc = label(&[(1, 1_048_576, 8_388_608, PartitionPlace::Disk)]);
        vtoc.kind = LabelKind::X86Vtoc;
        let shown = [known(1, 1_048_576, 8_388_608), known(5, 1_114_112, 4096)];
        assert_eq!(kernel_steps(&shown, &vtoc), []);
    }

    #[test]
    fn nodes_are_named_as_the_kernel_names_them() {
        for (disk, number, node) in [
            ("/dev/sda", 1, "/dev/sda1"),
            ("/dev/loop0", 12, "/dev/loop0p12"),
            ("/dev/nvme0n1", 2, "/dev/nvme0n1p2"),
            ("/dev/mapper/x", 3, "/dev/mapper/x3"),
        ] {
            assert_eq!(node_of(Path::new(disk), number), Path::new(node));
        }
    }
}
