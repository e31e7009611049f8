//! Pools of ZFS: vdevs, and the disks below them.
//!
//! A disk of a vdev keeps two labels and a gap of 4 MiB before its data (OpenZFS, `VDEV_LABEL_START_SIZE`). ZFS allocates
//! in blocks of 2^ashift bytes from there on, so a vdev of one disk or of copies is a constant move. RAID-Z lays each block
//! out anew; that is no fixed map.

use plumb_geometry::{Bytes, Grid, GridKind};

use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{GridFact, Source, What};
use crate::node::{Kind, Member, Part, Placing, keys};

/// First byte of data on a disk of a vdev.
const DATA_START: Bytes = Bytes(4 << 20);
/// Largest ashift that ZFS takes.
const ASHIFT_MAX: u32 = 16;

/// What a top-level vdev is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Disk,
    Mirror,
    /// With so many parities, where that is known.
    RaidZ(Option<u32>),
    Other,
}

impl Shape {
    /// By the type of zdb (`mirror`), or the name of zpool (`mirror-0`, `raidz2-1`, `draid1:4d:8c:0s-0`).
    pub(super) fn of(word: &str) -> Option<Shape> {
        let (word, is_numbered) = match word.rsplit_once('-') {
            Some((word, number)) if number.parse::<u32>().is_ok() => (word, true),
            _ => (word, false),
        };
        Some(match word {
            "mirror" => Shape::Mirror,
            "replacing" | "spare" if is_numbered => Shape::Other,
            "disk" | "file" if !is_numbered => Shape::Disk,
            "raidz" => Shape::RaidZ(None),
            _ if word.starts_with("raidz") || word.starts_with("draid") => {
                let digits = word.trim_start_matches("raidz").trim_start_matches("draid");
                Shape::RaidZ(digits.chars().next().and_then(|digit| digit.to_digit(10)))
            }
            _ => return None,
        })
    }
}

/// A top-level vdev.
#[derive(Debug)]
pub(super) struct Vdev {
    pub(super) shape: Shape,
    pub(super) number: u64,
    pub(super) ashift: Option<u32>,
    pub(super) disks: Vec<NodeId>,
    pub(super) source: Source,
}

/// Says what a pool stands on.
pub(super) fn tell_pool(builder: &mut Builder, pool: &str, vdevs: Vec<Vdev>, source: &Source) {
    let node = builder.node(pool);
    builder.kind(node, Kind::Pool, source);
    builder.fact(node, keys::MANAGER, "zfs", source);
    let members = vdevs.iter().map(|vdev| tell_vdev(builder, pool, vdev)).collect();
    let why = "ZFS places its blocks itself".to_owned();
    builder.place(node, Placing::Unknown { members, why }, source);
}

fn tell_vdev(builder: &mut Builder, pool: &str, vdev: &Vdev) -> NodeId {
    let (word, kind) = match vdev.shape {
        Shape::Disk => ("disk", Kind::LogicalVolume),
        Shape::Mirror => ("mirror", Kind::Mirror),
        Shape::RaidZ(_) => ("raidz", Kind::ParityRaid),
        Shape::Other => ("vdev", Kind::Unknown),
    };
    let node = builder.node(&format!("{pool}/{word}-{}", vdev.number));
    builder.kind(node, kind, &vdev.source);
    builder.fact(node, keys::MANAGER, "zfs", &vdev.source);
    if let Shape::RaidZ(Some(parity)) = vdev.shape {
        builder.fact(node, keys::LEVEL, format!("raidz{parity}"), &vdev.source);
    }
    if let Some(shift) = vdev.ashift {
        tell_ashift(builder, node, shift, &vdev.source);
    }
    for disk in &vdev.disks {
        builder.fact(*disk, keys::CONTENT, "zfs member", &vdev.source);
    }
    let placing = match (vdev.shape, &vdev.disks[..]) {
        (Shape::Disk, [disk]) => {
            let part = Part { upper: Bytes(0), node: *disk, start: DATA_START, len: None };
            Placing::Parts { parts: vec![part] }
        }
        (Shape::Mirror, [_, ..]) => {
            let members = vdev.disks.iter().map(|node| Member { node: *node, start: DATA_START }).collect();
            Placing::Copies { members }
        }
        (_, []) => Placing::Leaf,
        _ => Placing::Unknown {
            members: vdev.disks.clone(),
            why: "RAID-Z lays out each block by its own length".to_owned(),
        },
    };
    if placing == Placing::Leaf {
        builder.opaque(node, "its disks are not in the dump: use `zdb -C` or `zpool status`");
    } else {
        builder.place(node, placing, &vdev.source);
    }
    node
}

fn tell_ashift(builder: &mut Builder, node: NodeId, shift: u32, source: &Source) {
    builder.fact(node, keys::ASHIFT, shift.to_string(), source);
    let cell = 1u64 << shift.min(ASHIFT_MAX);
    if let Ok(grid) = Grid::new(Bytes(cell), Bytes(0), GridKind::Unit) {
        builder.grid(node, GridFact::believed(grid, What::Ashift, source.clone()));
    }
}

/// An ashift from a block size, as `zpool status` prints it.
pub(super) fn shift_of(block: u64) -> Option<u32> {
    block.is_power_of_two().then(|| block.trailing_zeros()).filter(|shift| (9..=ASHIFT_MAX).contains(shift))
}

/// An ashift that ZFS can have.
pub(super) fn shift(word: &str) -> Option<u32> {
    word.parse().ok().filter(|shift| (9..=ASHIFT_MAX).contains(shift))
}
