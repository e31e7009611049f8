//! Virtual disks in files: the positions in the file of a guest's bytes, and a disk that reads them there.
//!
//! Read are raw images, qcow2, VHD, VHDX and VMDK. Blocks that a file does not have are zeros, or are in a backing file,
//! which is not read. Compressed and encrypted images have no place for a byte, and say so.

mod map;
mod qcow2;
mod vhd;
mod vhdx;
mod vmdk;

use plumb_geometry::{Bytes, GridKind, group_digits};
use plumb_label::Disk;

pub use self::map::Mapped;

use self::map::Map;
use self::qcow2::Held;
use super::Scan;
use super::area::Area;
use super::content::{Cell, ProblemId};
use super::label::{DISK_OF_IMAGE, Naming};
use super::nodes;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, Source};
use crate::node::{Kind, Member, Part, Placing, Problem, keys};
use crate::obstacle::{ImageObstacle, Obstacle};

/// A virtual disk as its file describes it.
struct DiskImage {
    format: &'static str,
    /// Bytes that the guest sees.
    size: u64,
    lies: Lies,
    cells: Vec<Cell>,
    /// The reason why some of its bytes are elsewhere; `None` if all are here.
    elsewhere: Option<ImageObstacle>,
    /// Other statements of the file, in sentences.
    notes: Vec<String>,
    problems: Vec<String>,
    /// The position of each byte, for reading; or the reason why it is unknown.
    map: Result<Map, String>,
}

/// The positions of its bytes.
enum Lies {
    /// In one run of the file.
    Run {
        start: u64,
    },
    /// In blocks at multiples of this from a start in the file.
    Blocks {
        block: u64,
        start: u64,
    },
    /// In runs of other files: name, start there, length; without a name there are only zeros.
    Files(Vec<(Option<String>, u64, u64)>),
    /// As blocks, in another file.
    BlocksOf {
        file: String,
        block: u64,
    },
    Unknown(ImageObstacle),
}

impl DiskImage {
    /// Clusters of qcow2 that are compressed begin at any byte, and of those in a backing file nothing is known.
    fn tell_what_is_elsewhere(&mut self, file: &dyn Disk) {
        let Ok(Map::Qcow2(tables)) = &self.map else {
            return;
        };
        let held = tables.held(file, self.size);
        let (some, all) = match held {
            Held {
                is_compressed: true,
                ..
            } => (ImageObstacle::SomeCompressed, ImageObstacle::AllCompressed),
            Held {
                is_in_backing: true,
                ..
            } => (ImageObstacle::SomeInBacking, ImageObstacle::AllInBacking),
            _ => return,
        };
        match held.has_own {
            true => self.elsewhere = Some(some),
            false => self.lies = Lies::Unknown(all),
        }
    }
}

type ImageReader = fn(&Area<'_>) -> Option<Result<DiskImage, String>>;

const READERS: [(&str, ImageReader); 4] = [
    ("qcow2", qcow2::read),
    ("VHDX", vhdx::read),
    ("VMDK", vmdk::read),
    ("VHD", vhd::read),
];

/// The disk in a file, to be read as a guest does; `None` when the file is of no known format, and so a disk itself.
///
/// # Errors
/// When the file is of a known format, and damaged or without a known place for each byte.
#[must_use]
pub fn open(file: &dyn Disk) -> Option<Result<Mapped<'_>, String>> {
    let area = Area::whole(file);
    let found = READERS.iter().find_map(|(_, read)| read(&area))?;
    Some(found.and_then(|image| Ok(Mapped::new(file, image.map?, image.size))))
}

impl Scan {
    /// Reads a file as a virtual disk: the layout of the disk in the file, then its label and superblocks as far as
    /// they can be read. A file of no known format is a disk itself.
    ///
    /// `id` is the file's node. Of an image with a format of its own the disk is a node above it, `FILE:disk`, and its
    /// partitions are `FILE#1` and so on. Returns the node of the disk.
    pub fn probe_image(&mut self, builder: &mut Builder, file: &dyn Disk, id: NodeId) -> NodeId {
        let Some((disk, image)) = place_image(builder, file, id) else {
            self.probe_named(builder, file, id, Naming::Image);
            return id;
        };
        match image.map(|image| (image.map, image.size)) {
            Some((Ok(map), size)) => {
                self.probe_named(builder, &Mapped::new(file, map, size), disk, Naming::Image);
            }
            Some((Err(why), _)) => {
                let name = &builder.get(id).name;
                builder.note(format!(
                    "{name}: the content of the virtual disk is not known: {why}"
                ));
            }
            None => {}
        }
        disk
    }
}

/// Adds the layout of the virtual disk in a file, and nothing of its content, which its guest describes. Returns the
/// node of the disk, or that of the file if it is damaged; `None` for a file of no known format, which is a disk
/// itself.
pub fn tell_disk_of(builder: &mut Builder, file: &dyn Disk, id: NodeId) -> Option<NodeId> {
    place_image(builder, file, id).map(|(disk, _)| disk)
}

/// The disk in a file and the facts of its format; without these if it is damaged, `None` if it has no format.
fn place_image(
    builder: &mut Builder,
    file: &dyn Disk,
    id: NodeId,
) -> Option<(NodeId, Option<DiskImage>)> {
    let area = Area::whole(file);
    let name = builder.get(id).name.clone();
    let found = READERS.iter().find_map(|(format, read)| {
        area.take_short();
        Some((*format, read(&area)?))
    });
    if let Some(failure) = area.failure() {
        builder.note(format!("{name}: {failure}"));
    }
    let (format, found) = found?;
    let source = Source::OnDisk {
        format: format.to_owned(),
    };
    builder.fact(id, keys::CONTENT, format, &source);
    match found {
        Ok(mut image) => {
            image.tell_what_is_elsewhere(file);
            let disk = tell(builder, id, &name, &image);
            tell_of_end(builder, file, id, &name, &image);
            Some((disk, Some(image)))
        }
        Err(text) => {
            let mut problem = ProblemId::BrokenSuperblock;
            let mut text = format!("{name}: {text}");
            if area.take_short() {
                problem = ProblemId::BeyondDevice;
                text.push_str(&format!(
                    "; the file is {} long, and its end is missing",
                    Bytes(file.size_bytes())
                ));
            }
            builder.problem(Problem {
                node: Some(id),
                id: problem,
                text,
                source,
            });
            let fault = ImageObstacle::Unreadable;
            builder.opaque(id, Obstacle::Image { fault });
            Some((id, None))
        }
    }
}

/// Whether the file is as long as its own tables have it.
fn tell_of_end(builder: &mut Builder, file: &dyn Disk, id: NodeId, name: &str, image: &DiskImage) {
    if let Some(at) = image
        .map
        .as_ref()
        .ok()
        .and_then(|map| map.beyond(file, image.size))
    {
        let text = format!(
            "{name}: {} has something at byte {}, and the file is {} long: its end is missing",
            image.format,
            group_digits(at),
            Bytes(file.size_bytes())
        );
        let source = Source::OnDisk {
            format: image.format.to_owned(),
        };
        builder.problem(Problem {
            node: Some(id),
            id: ProblemId::BeyondDevice,
            text,
            source,
        });
    }
}

fn tell(builder: &mut Builder, id: NodeId, name: &str, image: &DiskImage) -> NodeId {
    let source = Source::OnDisk {
        format: image.format.to_owned(),
    };
    let disk = builder.node(&format!("{name}{DISK_OF_IMAGE}"));
    builder.kind(disk, Kind::ImageDisk, &source);
    builder.size(disk, Bytes(image.size), &source);
    let beside = |builder: &mut Builder, file: &str| builder.node(&beside(name, file));
    let placing = match &image.lies {
        Lies::Run { start } => nodes::run(id, *start, Some(Bytes(image.size))),
        Lies::Blocks { block, start } => Placing::Blocks {
            block: Bytes(*block),
            member: Member {
                node: id,
                start: Bytes(*start),
            },
        },
        Lies::BlocksOf { file, block } => {
            let member = Member {
                node: beside(builder, file),
                start: Bytes(0),
            };
            Placing::Blocks {
                block: Bytes(*block),
                member,
            }
        }
        Lies::Files(files) => {
            let mut upper = Bytes(0);
            let mut parts = Vec::new();
            for (file, start, len) in files {
                if let Some(file) = file {
                    let node = beside(builder, file);
                    parts.push(Part {
                        upper,
                        node,
                        start: Bytes(*start),
                        len: Some(Bytes(*len)),
                    });
                }
                upper = upper.checked_add(Bytes(*len)).unwrap_or(Bytes(u64::MAX));
            }
            Placing::Parts { parts }
        }
        Lies::Unknown(fault) => Placing::Unknown {
            members: vec![id],
            why: Obstacle::Image {
                fault: fault.clone(),
            },
        },
    };
    builder.place(disk, placing, &source);
    if let Some(fault) = image.elsewhere.clone() {
        builder.opaque(disk, Obstacle::Image { fault });
    }
    for cell in &image.cells {
        nodes::tell_cell(builder, disk, *cell, &source);
    }
    for note in &image.notes {
        builder.note(format!("{name}: {note}"));
    }
    for text in &image.problems {
        let text = format!("{name}: {text}");
        builder.problem(Problem {
            node: Some(id),
            id: ProblemId::BrokenSuperblock,
            text,
            source: source.clone(),
        });
    }
    disk
}

/// A file named by another one is in the same folder, unless its name says otherwise.
fn beside(image: &str, file: &str) -> String {
    match image.rsplit_once('/') {
        Some((folder, _)) if !file.starts_with('/') => format!("{folder}/{file}"),
        _ => file.to_owned(),
    }
}

/// The cell of a format that allocates by blocks.
fn cluster(len: u64) -> Cell {
    Cell {
        len,
        offset: 0,
        what: CellKind::Cluster,
        kind: GridKind::Boundary,
    }
}
