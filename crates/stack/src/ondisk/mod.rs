//! The content of a disk, by its own bytes: the label, and the superblock in each partition.
//!
//! A [`Scan`] reads one device or image after the other and fills a [`Builder`]; layers over several devices (volume
//! groups, arrays, pools) are assembled at its end. If a device has facts already, the content agrees or becomes a
//! contradiction.
//!
//! Left out: the inside of volumes, arrays and encrypted volumes without a device, and everything deeper than a
//! superblock: the blocks of a file, a thin volume or a chunk of btrfs.
//!
//! Each format has a file of its own, with the source of its layout; [`image`] has the virtual disks in files.

mod area;
mod bcache;
mod btrfs;
mod checksum;
mod content;
mod ext;
mod fat;
pub mod image;
mod label;
mod luks;
mod lvm;
mod md;
mod nodes;
mod reads;
mod swap;
mod xfs;
mod zfs;

use std::collections::BTreeMap;

use plumb_geometry::{Bytes, plural};
use plumb_label::Disk;

use self::area::Area;
pub use self::area::Counted;
use self::content::{Content, Layer, ProblemId};
use self::label::Naming;
pub use self::label::is_solaris_disk;
use self::reads::Noted;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, Placing, Problem, keys};
use crate::node_facts::ContentKind;
use crate::obstacle::Obstacle;

/// Looks for one format; `None` when it is not there.
type ContentReader = fn(&Area<'_>) -> Option<Content>;

/// Formats that join devices come before their possible content: an array with its superblock at the end shows its file
/// system at its beginning. Old labels of ZFS at the end outlive most later content.
const READERS: [ContentReader; 11] = [
    md::read,
    lvm::read,
    luks::read,
    bcache::read,
    zfs::read,
    xfs::read,
    btrfs::read,
    ext::read,
    swap::read,
    fat::read,
    zfs::read_end,
];

/// Devices that were looked at so far.
#[derive(Debug, Default)]
pub struct Scan {
    groups: lvm::group::Groups,
    arrays: BTreeMap<[u8; 16], md::array::ArrayMembers>,
    pools: BTreeMap<u64, zfs::pool::Pool>,
    btrfs: BTreeMap<[u8; 16], Btrfs>,
    /// The bytes of the last device that were read and recognized.
    counted: Counted,
}

/// The devices of one btrfs.
#[derive(Debug, Default)]
struct Btrfs {
    devices: u64,
    seen: Vec<NodeId>,
    found: Option<Content>,
}

impl Scan {
    /// Reads a device as a whole: its label and each of its partitions, or its content without one.
    ///
    /// Partitions are named as Linux does, and those of a file `disk.img#1`. A read that fails is a note of the builder:
    /// it is not the same as nothing there.
    pub fn probe(&mut self, builder: &mut Builder, disk: &dyn Disk, id: NodeId) {
        let is_file = builder.get(id).kind == Kind::File;
        self.probe_named(
            builder,
            disk,
            id,
            if is_file {
                Naming::Image
            } else {
                Naming::Device
            },
        );
    }

    /// The recognized bytes of the device read last: those that a reader requested and whose format it recognized. A
    /// device with zeros for all others reads the same.
    pub fn take_counted(&mut self) -> Counted {
        std::mem::take(&mut self.counted)
    }

    fn probe_named(&mut self, builder: &mut Builder, disk: &dyn Disk, id: NodeId, naming: Naming) {
        self.counted = Counted::default();
        let source = Source::OnDisk {
            format: "size".to_owned(),
        };
        if builder.get(id).size.is_none() {
            builder.size(id, Bytes(disk.size_bytes()), &source);
        }
        let noted = Noted::new(disk);
        let pieces = label::tell(builder, &noted, id, naming);
        if pieces.is_some() {
            self.counted.runs.extend(noted.into_reads());
        }
        let pieces = pieces.unwrap_or_default();
        for piece in &pieces {
            let area = Area::part(disk, piece.start, piece.len);
            self.probe_area(builder, &area, piece.node, piece.noted_start);
        }
        if pieces.is_empty() {
            self.probe_area(builder, &Area::whole(disk), id, None);
        }
    }

    /// Looks for a superblock alone: on a partition, a volume or an array that is a device itself.
    pub fn probe_content(&mut self, builder: &mut Builder, device: &dyn Disk, id: NodeId) {
        let start = match &builder.get(id).placing {
            Placing::Parts { parts }
                if builder.get(id).kind == Kind::Partition && parts.len() == 1 =>
            {
                Some(parts[0].start.0)
            }
            _ => None,
        };
        self.counted = Counted::default();
        self.probe_area(builder, &Area::whole(device), id, start);
    }

    fn probe_area(
        &mut self,
        builder: &mut Builder,
        area: &Area<'_>,
        id: NodeId,
        start: Option<u64>,
    ) {
        let mut counted = Counted::default();
        let mut found = READERS.iter().filter_map(|read| {
            let found = read(area);
            let read = area.take_counted();
            if found.is_some() {
                counted.extend(read);
            }
            found
        });
        let first = found.next();
        // The members of an array show its content, which is not a remainder.
        let is_array = matches!(
            &first,
            Some(Content {
                layer: Layer::Array(_),
                ..
            })
        );
        let rest: Vec<&str> = if is_array {
            Vec::new()
        } else {
            found.map(|content| content.name).collect()
        };
        self.counted.extend(counted);
        let name = builder.get(id).name.clone();
        if let Some(failure) = area.failure() {
            builder.note(format!("{name}: {failure}"));
        }
        let Some(content) = first else { return };
        for other in rest.into_iter().filter(|other| *other != content.name) {
            builder.note(format!(
                "{name} holds {} and remains of {other}",
                content.name
            ));
        }
        tell_problems(builder, area, id, start, &content);
        self.tell(builder, id, content);
    }

    fn tell(&mut self, builder: &mut Builder, id: NodeId, mut content: Content) {
        let source = Source::OnDisk {
            format: content.format.clone(),
        };
        builder.fact(id, keys::CONTENT, content.name, &source);
        let name = builder.get(id).name.clone();
        let len = builder.get(id).size;
        let run =
            |start: u64| nodes::run(id, start, len.and_then(|len| len.checked_sub(Bytes(start))));
        match std::mem::replace(&mut content.layer, Layer::Nothing) {
            Layer::Nothing => tell_facts(builder, id, &content, &source),
            Layer::FileSystem => {
                let node = above(
                    builder,
                    id,
                    Kind::FileSystem,
                    &format!("{} on {name}", content.name),
                    run(0),
                    &source,
                );
                builder.fact(node, keys::CONTENT, content.name, &source);
                tell_facts(builder, node, &content, &source);
            }
            Layer::Swap => {
                let node = above(
                    builder,
                    id,
                    Kind::Swap,
                    &format!("swap on {name}"),
                    run(0),
                    &source,
                );
                tell_facts(builder, node, &content, &source);
            }
            Layer::Crypt { start } => {
                let placing = match start {
                    Ok(start) => run(start),
                    Err(fault) => Placing::Unknown {
                        members: vec![id],
                        why: Obstacle::LuksHeader { fault },
                    },
                };
                let node = above(
                    builder,
                    id,
                    Kind::Crypt,
                    &format!("LUKS on {name}"),
                    placing,
                    &source,
                );
                tell_facts(builder, node, &content, &source);
            }
            Layer::Cached { start } => {
                let node = above(
                    builder,
                    id,
                    Kind::Cache,
                    &format!("bcache on {name}"),
                    run(start),
                    &source,
                );
                tell_facts(builder, node, &content, &source);
            }
            Layer::Btrfs { uuid, devices } => {
                let known = self.btrfs.entry(uuid).or_default();
                known.seen.push(id);
                known.add(devices, content);
            }
            Layer::Volumes(pv) => {
                tell_facts(builder, id, &content, &source);
                self.groups.add(id, *pv);
            }
            Layer::Array(superblock) => {
                tell_facts(builder, id, &content, &source);
                let array = self
                    .arrays
                    .entry(superblock.uuid)
                    .or_insert_with(md::array::ArrayMembers::new);
                array.add(id, *superblock);
            }
            Layer::Zfs(config) => {
                tell_facts(builder, id, &content, &source);
                self.pools
                    .entry(config.pool_guid)
                    .or_default()
                    .add(id, *config);
            }
        }
    }

    /// Assembles layers over several devices; after the last of them.
    pub fn finish(self, builder: &mut Builder) {
        for array in self.arrays.values() {
            array.tell(builder);
        }
        self.groups.tell(builder);
        for pool in self.pools.values() {
            pool.tell(builder);
        }
        for btrfs in self.btrfs.into_values() {
            btrfs.tell(builder);
        }
    }
}

impl Btrfs {
    /// A broken superblock answers only if there is no other one.
    fn add(&mut self, devices: u64, content: Content) {
        let is_better = content.problems.is_empty() || self.found.is_none();
        self.devices = if content.problems.is_empty() {
            devices
        } else {
            self.devices
        };
        if is_better {
            self.found = Some(content);
        }
    }

    fn tell(self, builder: &mut Builder) {
        let (Some(content), Some(first)) = (self.found, self.seen.first().copied()) else {
            return;
        };
        let source = Source::OnDisk {
            format: "btrfs".to_owned(),
        };
        let missing = self.devices.saturating_sub(self.seen.len() as u64);
        let name = format!("btrfs on {}", builder.get(first).name);
        if missing > 0 {
            builder.note(format!(
                "{name}: not seen: {missing} of its {}",
                plural(self.devices, "device")
            ));
        }
        let known = nodes::above_with(builder, &self.seen, |node| node.kind == Kind::FileSystem);
        let node = known.unwrap_or_else(|| builder.node(&name));
        builder.kind(node, Kind::FileSystem, &source);
        builder.fact(node, keys::CONTENT, "btrfs", &source);
        let why = Obstacle::PlacesItself {
            format: ContentKind::Btrfs,
        };
        builder.place(
            node,
            Placing::Unknown {
                members: self.seen,
                why,
            },
            &source,
        );
        tell_facts(builder, node, &content, &source);
    }
}

/// The node of this kind above a device, or a new one.
fn above(
    builder: &mut Builder,
    below: NodeId,
    kind: Kind,
    name: &str,
    placing: Placing,
    source: &Source,
) -> NodeId {
    let known = nodes::above_with(builder, &[below], |node| node.kind == kind);
    let node = known.unwrap_or_else(|| builder.node(name));
    builder.kind(node, kind, source);
    // A volume in use may leave out the end of the layer below: only the starts have to agree.
    let starts_alike = match (&builder.get(node).placing, &placing) {
        (Placing::Parts { parts: known }, Placing::Parts { parts: found }) => {
            known.first().map(|part| (part.node, part.start))
                == found.first().map(|part| (part.node, part.start))
        }
        _ => false,
    };
    if !starts_alike {
        builder.place(node, placing, source);
    }
    node
}

fn tell_facts(builder: &mut Builder, id: NodeId, content: &Content, source: &Source) {
    for (key, value) in &content.lengths {
        builder.fact(id, *key, *value, source);
    }
    builder.fact_if(id, keys::ASHIFT, content.ashift, source);
    builder.fact_if(id, keys::METADATA, content.metadata.as_deref(), source);
    for cell in &content.cells {
        nodes::tell_cell(builder, id, *cell, source);
    }
}

fn tell_problems(
    builder: &mut Builder,
    area: &Area<'_>,
    id: NodeId,
    start: Option<u64>,
    content: &Content,
) {
    let name = builder.get(id).name.clone();
    let source = Source::OnDisk {
        format: content.format.clone(),
    };
    let mut tell = |problem: ProblemId, text: String| {
        let text = format!("{name}: {text}");
        builder.problem(Problem {
            node: Some(id),
            id: problem,
            text,
            source: source.clone(),
        });
    };
    if let Some(size) = content.size.filter(|size| *size > area.len()) {
        let text = format!(
            "{} says that it is {} long, and there are {}",
            content.format,
            Bytes(size),
            Bytes(area.len())
        );
        tell(ProblemId::BeyondDevice, text);
    }
    if let (Some(hidden), Some(start)) = (content.hidden, start)
        && hidden != start
    {
        let text = format!(
            "{} notes that its partition begins at {}, and it begins at {}: firmware and Windows may not boot from it, \
             data are safe",
            content.format,
            Bytes(hidden),
            Bytes(start)
        );
        tell(ProblemId::HiddenSectors, text);
    }
    for (problem, text) in &content.problems {
        tell(*problem, text.clone());
    }
}
