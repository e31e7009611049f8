//! Files: positions of their extents on their file system, and loop devices on top.

use plumb_geometry::{Bytes, plural};
use plumb_sys::FileExtents;

use super::device::{Below, SysfsDevice};
use super::mounts::Mount;
use super::{Host, NoAnswer, Root, sysfs};
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, Part, Placing, keys};
use crate::obstacle::Obstacle;

/// Extents of a file that are followed; a file in more pieces says so.
const EXTENTS_MAX: usize = 4096;
/// How sysfs marks a file that has no name any more.
const DELETED: &str = " (deleted)";

/// File systems on one device whose extents are places on it.
const PLAIN: [&str; 12] = [
    "ext2", "ext3", "ext4", "xfs", "f2fs", "vfat", "exfat", "ntfs3", "jfs", "nilfs2", "gfs2",
    "ocfs2",
];

impl Host {
    /// The node of a file, by its absolute path on the host, with symbolic links resolved. Unknown parts of its
    /// position are recorded there.
    pub fn file(&self, root: &Root<'_>, builder: &mut Builder, path: &str) -> NodeId {
        let source = Source::Kernel {
            path: format!("extents of {path}"),
        };
        let node = builder.node(path);
        if builder.get(node).kind != Kind::Unknown {
            return node;
        }
        builder.kind(node, Kind::File, &source);
        match self.place_of(root, builder, path) {
            Ok((file_system, found)) => {
                builder.size(node, Bytes(found.size_bytes), &source);
                place(builder, node, file_system, &found, &source);
            }
            Err((members, why)) => {
                if members.is_empty() {
                    builder.opaque(node, why.clone());
                }
                builder.place(node, Placing::Unknown { members, why }, &source);
            }
        }
        node
    }

    /// The file system of a file and its extents there, or the known part below and the reason for the rest.
    fn place_of(
        &self,
        root: &Root<'_>,
        builder: &mut Builder,
        path: &str,
    ) -> Result<(NodeId, FileExtents), (Vec<NodeId>, Obstacle)> {
        let Some(mount) = self.mount_of(path) else {
            return Err((Vec::new(), Obstacle::NoFileSystem));
        };
        let Some(file_system) = self.file_system(builder, mount) else {
            return Err((
                Vec::new(),
                Obstacle::NotOnBlockDevice {
                    format: mount.kind.as_str().into(),
                },
            ));
        };
        if !PLAIN.contains(&mount.kind.as_str()) {
            return Err((
                vec![file_system],
                Obstacle::PlacesItself {
                    format: mount.kind.as_str().into(),
                },
            ));
        }
        if mount
            .super_options
            .split(',')
            .any(|option| option.starts_with("rtdev="))
        {
            return Err((vec![file_system], Obstacle::RealtimeDevice));
        }
        match root.kernel.extents(path, EXTENTS_MAX) {
            Ok(found) => Ok((file_system, found)),
            Err(NoAnswer::Elsewhere) => Err((vec![file_system], Obstacle::OnlyHost)),
            Err(error) => {
                let said = error.to_string();
                Err((vec![file_system], Obstacle::Refused { said }))
            }
        }
    }

    /// The node of the file system of a directory, by its absolute path with links resolved; `None` if it is not on a
    /// block device of the host.
    #[must_use]
    pub fn file_system_of(&self, builder: &Builder, path: &str) -> Option<NodeId> {
        self.file_system(builder, self.mount_of(path)?)
    }

    /// The node of a mount's file system: that of the first mount of its device.
    fn file_system(&self, builder: &Builder, mount: &Mount) -> Option<NodeId> {
        let device = self.device_of(builder, mount)?;
        let same = |other: &&Mount| self.device_of(builder, other) == Some(device);
        let mounts = self.mounts.iter().filter(same);
        let known = mounts.filter_map(|other| builder.find(&other.at));
        known
            .into_iter()
            .find(|node| builder.get(*node).kind == Kind::FileSystem)
    }

    /// Puts loop devices on their files.
    pub(super) fn place_loops(
        &self,
        root: &Root<'_>,
        builder: &mut Builder,
        devices: &[SysfsDevice],
    ) {
        for device in devices {
            let Below::Loop {
                file,
                offset_bytes,
                is_direct,
            } = &device.below
            else {
                continue;
            };
            let node = self.device(builder, &device.name);
            let source = sysfs(&format!("{}/loop", device.name));
            builder.fact(node, keys::DIRECT_IO, *is_direct, &source);
            if let Some(name) = file.strip_suffix(DELETED) {
                builder.opaque(
                    node,
                    Obstacle::FileDeleted {
                        file: name.to_owned(),
                    },
                );
                continue;
            }
            let known = if file.starts_with("/dev/") {
                builder.find(file)
            } else {
                None
            };
            let below = known.unwrap_or_else(|| self.file(root, builder, file));
            let len = builder.get(node).size;
            let part = Part {
                upper: Bytes(0),
                node: below,
                start: Bytes(*offset_bytes),
                len,
            };
            builder.place(node, Placing::Parts { parts: vec![part] }, &source);
        }
    }
}

/// Extents as runs on the file system; neighbours are joined.
fn place(
    builder: &mut Builder,
    node: NodeId,
    file_system: NodeId,
    found: &FileExtents,
    source: &Source,
) {
    let mut parts: Vec<Part> = Vec::new();
    let mut unplaced = 0;
    for extent in &found.extents {
        if !extent.is_placed() {
            unplaced += 1;
            continue;
        }
        let (upper, start, len) = (
            extent.logical_bytes,
            extent.physical_bytes,
            extent.len_bytes,
        );
        let joined = parts.last_mut().and_then(|last| {
            let before = last.len?.0;
            let follows = last.upper.0.checked_add(before)? == upper
                && last.start.0.checked_add(before)? == start;
            let len = before.checked_add(len)?;
            follows.then(|| last.len = Some(Bytes(len)))
        });
        if joined.is_none() {
            parts.push(Part {
                upper: Bytes(upper),
                node: file_system,
                start: Bytes(start),
                len: Some(Bytes(len)),
            });
        }
    }
    let name = builder.get(node).name.clone();
    if found.is_cut {
        builder.note(format!(
            "{name} has more than {EXTENTS_MAX} extents: the others were not looked at"
        ));
    }
    if unplaced > 0 {
        let extents = plural(unplaced, "extent");
        builder.note(format!(
            "{name}: {extents} without a place of its own: not written yet, or encoded"
        ));
    }
    if parts.is_empty() {
        let why = Obstacle::NothingPlaced;
        builder.place(
            node,
            Placing::Unknown {
                members: vec![file_system],
                why,
            },
            source,
        );
    } else {
        builder.place(node, Placing::Parts { parts }, source);
    }
}
