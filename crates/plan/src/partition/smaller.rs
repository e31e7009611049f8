//! A partition that fills the space up to its neighbour: on its grid it begins later, so it shrinks, and its content
//! has to shrink first. By their own tools ext2, ext3, ext4 and btrfs can; XFS cannot.

use plumb_geometry::{Bytes, SECTOR};
use plumb_quoting::{Command, NoCommand};

use crate::error::PlanError;
use crate::partition::{Content, PartitionRequest, layout};
use crate::plan::Step;

/// Largest reduction of a partition: the distance that a start moves on the usual grids.
pub const SMALLER_MAX: Bytes = Bytes(1 << 20);

/// The file system on a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its kind, as labels and dumps call it: `ext4`.
    pub kind: String,
    /// Its mount point, if it is mounted.
    pub mount: Option<String>,
}

/// The same request with the length that fits, where the partition is in the way of its own new start.
///
/// # Errors
/// As [`layout`], where it would have to become smaller by more than [`SMALLER_MAX`].
pub fn fitted(mut request: PartitionRequest) -> Result<PartitionRequest, PlanError> {
    let no_room = match layout(&request) {
        Err(error @ PlanError::NoRoom { .. }) => error,
        Err(error) => return Err(error),
        Ok(_) => return Ok(request),
    };
    let Some(size) = request.size.filter(|_| request.current.is_some()) else {
        return Err(no_room);
    };
    let all = PartitionRequest {
        size: None,
        ..request.clone()
    };
    let len = layout(&all)
        .ok()
        .and_then(|layout| layout.len)
        .ok_or(no_room.clone())?;
    let by = size
        .checked_sub(len)
        .filter(|by| *by <= SMALLER_MAX)
        .ok_or(no_room)?;
    (request.size, request.smaller_by) = (Some(len), Some(by));
    Ok(request)
}

/// The steps that shrink the content of a partition, or the reason against them.
pub(super) fn steps(
    request: &PartitionRequest,
    node: Option<&str>,
    len: Bytes,
) -> Result<Vec<Result<Step, NoCommand>>, String> {
    let manager = request.content.as_ref().map(|content| match content {
        Content::Lvm { .. } => "LVM",
        Content::Md { .. } => "md",
        Content::Zfs { .. } => "ZFS",
        Content::SvmMirror { .. } => "Solaris Volume Manager",
    });
    if let Some(manager) = manager {
        return Err(format!(
            "it belongs to a volume of {manager}; Plumb does not make such a partition smaller"
        ));
    }
    let Some(file_system) = &request.file_system else {
        return Err("its content is not known".to_owned());
    };
    let Some(node) = node else {
        return Err(
            "an image in a file has no device node to make its file system smaller by: attach it"
                .to_owned(),
        );
    };
    let sectors = format!("{}s", len.0 / SECTOR);
    match file_system.kind.as_str() {
        "ext2" | "ext3" | "ext4" => Ok(vec![
            Step::new(
                Command::new("umount")
                    .path(node)
                    .then(Command::new("e2fsck -f").path(node)),
                "repairs the errors that it finds, after asking",
                "nothing to undo",
            ),
            Step::new(
                Command::new("resize2fs").path(node).arg(sectors),
                "moves blocks from its end; refused where files need the room, and not safe against an interruption",
                Command::new("resize2fs").path(node),
            ),
        ]),
        "btrfs" => {
            let mount = file_system.mount.as_deref().unwrap_or("/MOUNT");
            Ok(vec![
                Step::new(
                    Command::new("btrfs filesystem resize")
                        .arg(len.0)
                        .path(mount),
                    "moves data from its end; refused where files need the room",
                    Command::new("btrfs filesystem resize max").path(mount),
                ),
                Step::new(
                    Command::new("umount").path(mount),
                    "nothing may be open on it",
                    Command::new("mount").path(node).path(mount),
                ),
            ])
        }
        "xfs" => Err("XFS cannot be made smaller".to_owned()),
        other => Err(format!("how {other} is made smaller is not planned")),
    }
}
