//! Pools of ZFS: vdevs, and the disks below them.
//!
//! A disk of a vdev keeps two labels and a gap of 4 MiB before its data (OpenZFS, `VDEV_LABEL_START_SIZE`). ZFS
//! allocates in blocks of 2^ashift bytes from there on, so a vdev of one disk or of copies is a constant move. RAID-Z
//! lays out each block separately; that is no fixed map.

use plumb_geometry::{Bytes, Grid, GridKind, SmallSort};

use super::names;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, GridFact, Source};
use crate::node::{Kind, Member, Part, Placing, keys};
use crate::obstacle::Obstacle;

/// First byte of data on a disk of a vdev.
const DATA_START: Bytes = Bytes(4 << 20);
/// Largest ashift that ZFS takes.
const ASHIFT_MAX: u32 = 16;

/// The kind of a top-level vdev.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VdevShape {
    Disk,
    Mirror,
    /// With the number of parities, if known.
    RaidZ(Option<u32>),
    Other,
}

impl VdevShape {
    /// Parses the type that zdb prints (`mirror`), or the name that zpool prints (`mirror-0`, `raidz2-1`, `draid1:4d:8c:0s-0`).
    pub(super) fn parse(word: &str) -> Option<VdevShape> {
        let (word, is_numbered) = match word.rsplit_once('-') {
            Some((word, number)) if number.parse::<u32>().is_ok() => (word, true),
            _ => (word, false),
        };
        Some(match word {
            "mirror" => VdevShape::Mirror,
            "replacing" | "spare" if is_numbered => VdevShape::Other,
            "disk" | "file" if !is_numbered => VdevShape::Disk,
            "raidz" => VdevShape::RaidZ(None),
            _ if word.starts_with("raidz") || word.starts_with("draid") => {
                let digits = word.trim_start_matches("raidz").trim_start_matches("draid");
                VdevShape::RaidZ(digits.chars().next().and_then(|digit| digit.to_digit(10)))
            }
            _ => return None,
        })
    }
}

/// A top-level vdev.
#[derive(Debug)]
pub(super) struct Vdev {
    pub(super) shape: VdevShape,
    pub(super) number: u64,
    pub(super) ashift: Option<u32>,
    pub(super) disks: Vec<NodeId>,
    pub(super) source: Source,
}

/// A pool as a tool describes it.
#[derive(Debug)]
pub(super) struct ZfsPool {
    pub(super) name: String,
    pub(super) vdevs: Vec<Vdev>,
    /// Whether disks are paths that ZFS opens. `zpool status` prints the name of a whole disk, although its data are in
    /// the first partition or slice that ZFS has made there.
    pub(super) has_paths: bool,
    pub(super) source: Source,
}

/// Sets the devices of pools.
pub(super) fn place_all(builder: &mut Builder) {
    let mut pools = std::mem::take(&mut builder.linux.pools);
    // Paths first, which are exact.
    pools.small_sort_by_key(|pool| !pool.has_paths);
    for mut pool in pools {
        let node = builder.node(&pool.name);
        builder.kind(node, Kind::Pool, &pool.source);
        builder.fact(node, keys::MANAGER, "zfs", &pool.source);
        let mut members = Vec::new();
        for vdev in &mut pool.vdevs {
            let is_sure =
                pool.has_paths || vdev.disks.iter_mut().all(|disk| as_slice(builder, disk));
            members.push(tell_vdev(builder, &pool.name, vdev, is_sure));
        }
        let why = Obstacle::SpreadOverVdevs;
        builder.place(node, Placing::Unknown { members, why }, &pool.source);
    }
}

/// Puts the first partition or slice in the place of a whole disk; `false` where nobody knows it.
fn as_slice(builder: &mut Builder, disk: &mut NodeId) -> bool {
    let name = builder.get(*disk).name.clone();
    if is_slice(&name) {
        return true;
    }
    let first = [
        names::partition(&name, 1),
        format!("{name}-part1"),
        format!("{name}s0"),
    ];
    match first.iter().find_map(|name| builder.find(name)) {
        Some(slice) => {
            *disk = slice;
            true
        }
        None => false,
    }
}

/// Names of partitions, of slices, and of devices with their own label (`gpt/disk12`).
fn is_slice(name: &str) -> bool {
    let ends_in = |mark: &str| {
        let before = name
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .strip_suffix(mark);
        name.ends_with(|c: char| c.is_ascii_digit())
            && before.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
    };
    names::disk_of(name).is_some()
        || name.contains('/')
        || name
            .rsplit_once("-part")
            .is_some_and(|(_, number)| number.parse::<u32>().is_ok())
        || ends_in("s")
        || ends_in("p")
}

fn tell_vdev(builder: &mut Builder, pool: &str, vdev: &Vdev, is_sure: bool) -> NodeId {
    let (word, kind) = match vdev.shape {
        VdevShape::Disk => ("disk", Kind::LogicalVolume),
        VdevShape::Mirror => ("mirror", Kind::Mirror),
        VdevShape::RaidZ(_) => ("raidz", Kind::ParityRaid),
        VdevShape::Other => ("vdev", Kind::Unknown),
    };
    let node = builder.node(&format!("{pool}/{word}-{}", vdev.number));
    builder.kind(node, kind, &vdev.source);
    builder.fact(node, keys::MANAGER, "zfs", &vdev.source);
    if let VdevShape::RaidZ(Some(parity)) = vdev.shape {
        builder.fact(node, keys::LEVEL, format!("raidz{parity}"), &vdev.source);
    }
    if let Some(shift) = vdev.ashift {
        tell_ashift(builder, node, shift, &vdev.source);
    }
    for disk in &vdev.disks {
        builder.fact(*disk, keys::CONTENT, "zfs member", &vdev.source);
    }
    let placing = match (vdev.shape, &vdev.disks[..]) {
        (_, [_, ..]) if !is_sure => Placing::Unknown {
            members: vdev.disks.clone(),
            why: Obstacle::ZfsPartition,
        },
        (VdevShape::Disk, [disk]) => {
            let part = Part {
                upper: Bytes(0),
                node: *disk,
                start: DATA_START,
                len: None,
            };
            Placing::Parts { parts: vec![part] }
        }
        (VdevShape::Mirror, [_, ..]) => {
            let members = vdev
                .disks
                .iter()
                .map(|node| Member {
                    node: *node,
                    start: DATA_START,
                })
                .collect();
            Placing::Copies { members }
        }
        (_, []) => Placing::Leaf,
        _ => Placing::Unknown {
            members: vdev.disks.clone(),
            why: Obstacle::RaidZ,
        },
    };
    if placing == Placing::Leaf {
        builder.opaque(node, Obstacle::VdevDisks);
    } else {
        builder.place(node, placing, &vdev.source);
    }
    node
}

fn tell_ashift(builder: &mut Builder, node: NodeId, shift: u32, source: &Source) {
    builder.fact(node, keys::ASHIFT, shift, source);
    let cell = 1u64 << shift.min(ASHIFT_MAX);
    if let Ok(grid) = Grid::new(Bytes(cell), Bytes(0), GridKind::Unit) {
        builder.grid(
            node,
            GridFact::believed(grid, CellKind::Ashift, source.clone()),
        );
    }
}

/// An ashift from a block size, as `zpool status` prints it.
pub(super) fn shift_of(block: u64) -> Option<u32> {
    block
        .is_power_of_two()
        .then(|| block.trailing_zeros())
        .filter(|shift| (9..=ASHIFT_MAX).contains(shift))
}

/// An ashift that ZFS can have.
pub(super) fn shift(word: &str) -> Option<u32> {
    word.parse()
        .ok()
        .filter(|shift| (9..=ASHIFT_MAX).contains(shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_whole_disks() {
        for name in [
            "sda1",
            "nvme0n1p1",
            "gpt/disk12",
            "c1t0d0s0",
            "ada1p3",
            "ata-X_1-part1",
            "da0s1",
        ] {
            assert!(is_slice(name), "{name}");
        }
        for name in [
            "sda",
            "nvme0n1",
            "ada1",
            "c1t0d0",
            "wwn-0x5000c500",
            "ata-X-part",
            "disks1x",
            "p1",
        ] {
            assert!(!is_slice(name), "{name}");
        }
    }

    #[test]
    fn shapes_by_name() {
        for (word, shape) in [
            ("mirror-0", Some(VdevShape::Mirror)),
            ("mirror", Some(VdevShape::Mirror)),
            ("raidz2-1", Some(VdevShape::RaidZ(Some(2)))),
            ("raidz1", Some(VdevShape::RaidZ(Some(1)))),
            ("raidz", Some(VdevShape::RaidZ(None))),
            ("draid2:4d:8c:0s-0", Some(VdevShape::RaidZ(Some(2)))),
            ("replacing-0", Some(VdevShape::Other)),
            ("sda", None),
            ("mirrored", None),
        ] {
            assert_eq!(VdevShape::parse(word), shape, "{word}");
        }
    }
}
