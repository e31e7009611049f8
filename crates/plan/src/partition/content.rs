//! The content of a partition decides about the possible ways: volume managers and mirrors move data while in use.

use plumb_geometry::{Bytes, align_up};
use plumb_model::Action;
use plumb_model::action::Manager;
use plumb_quoting::Command;
use plumb_quoting::names::{LVM, SVM, ZFS};

use crate::partition::{PartitionLayout, PartitionRequest};
use crate::plan::{Harm, Remedy, Step};

/// Stands for a partition of another disk.
const NEW: &str = "NEW";

/// The content of a partition, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A physical volume of this volume group.
    Lvm {
        /// The group.
        group: String,
    },
    /// A member of this array.
    Md {
        /// The array.
        array: String,
    },
    /// A device of this pool.
    Zfs {
        /// The pool.
        pool: String,
    },
    /// A submirror of this mirror of Solaris Volume Manager.
    SvmMirror {
        /// The mirror.
        mirror: String,
        /// The submirror that this slice is all of.
        submirror: String,
    },
}

impl Content {
    /// Moves the data onto a partition of another disk that is aligned, while in use.
    pub(super) fn online(
        &self,
        request: &PartitionRequest,
        layout: &PartitionLayout,
    ) -> Option<Remedy> {
        let from = request
            .label
            .node(&request.device, request.number)
            .into_iter()
            .next()?;
        let start = crate::error::position(layout.start);
        let effect =
            format!("data are on a partition that starts at {start}, and remain in use throughout");
        let moved = |manager| {
            request.existing().map(|partition| Action::Migrate {
                partition,
                to_bytes: layout.start,
                manager,
            })
        };
        let manager = match self {
            Content::Lvm { .. } => Manager::Lvm,
            Content::Md { .. } => Manager::Md,
            Content::Zfs { .. } => Manager::Zfs,
            Content::SvmMirror { .. } => Manager::Svm,
        };
        let remedy = |title: &str| {
            let remedy = Remedy::new(Harm::Online, title, effect.clone()).action(moved(manager));
            remedy.constraint(format!(
                "NEW is a partition of another disk, at least as long, that starts at {start} there as well"
            ))
        };
        let full =
            "the disks are busy until it is done; an interruption leaves data where they were";
        Some(match self {
            Content::Lvm { group } => {
                // Makes a partition a part of the group, and takes it out again.
                let extend = |part: &str| {
                    let create = Command::new("pvcreate").path(part);
                    create.and(Command::new("vgextend").name(LVM, group).path(part))
                };
                let reduce = |part: &str| {
                    let reduce = Command::new("vgreduce").name(LVM, group).path(part);
                    reduce.and(Command::new("pvremove").path(part))
                };
                remedy("with LVM")
                    .step(Step::new(extend(NEW), "writes a label to it", reduce(NEW)))
                    .step(Step::new(
                        Command::new("pvmove").path(&from).path(NEW),
                        full,
                        Command::new("pvmove").path(NEW).path(&from),
                    ))
                    .step(Step::new(
                        reduce(&from),
                        "the old partition is no longer part of the group",
                        extend(&from),
                    ))
            }
            Content::Md { array } => {
                let path = if array.contains('/') {
                    array.clone()
                } else {
                    format!("/dev/{array}")
                };
                let mdadm = || Command::new("mdadm").path(&path);
                let replace = |old: &str, new: &str| {
                    mdadm()
                        .flags("--replace")
                        .path(old)
                        .flags("--with")
                        .path(new)
                };
                remedy("with md, without losing redundancy")
                    .step(Step::new(
                        mdadm().flags("--add").path(NEW),
                        "writes a superblock to it",
                        mdadm().flags("--remove").path(NEW),
                    ))
                    .step(Step::new(replace(&from, NEW), full, replace(NEW, &from)))
                    .constraint("arrays of level 1, 4, 5, 6 or 10; RAID 0 cannot replace a member")
            }
            Content::Zfs { pool } => {
                let replace = |old: &str, new: &str| {
                    Command::new("zpool replace")
                        .name(ZFS, pool)
                        .path(old)
                        .path(new)
                };
                remedy("with ZFS").step(Step::new(replace(&from, NEW), full, replace(NEW, &from)))
            }
            Content::SvmMirror { mirror, submirror } => {
                svm_mirror(remedy("with the mirror"), mirror, submirror)
            }
        })
    }

    /// The layer above the partition may begin later: two offsets that cancel.
    pub(super) fn begin_later(&self, request: &PartitionRequest) -> Option<Remedy> {
        let grid = request.grids.first()?;
        let past = grid.past_boundary(request.current?).0;
        if past == 0 || request.grids.len() > 1 {
            return None;
        }
        let ahead = grid.granularity().0 - past;
        let part = request
            .label
            .node(&request.device, request.number)
            .into_iter()
            .next()?;
        // At least the usual 1 MiB, in whole cells of the grid, and then the way to the grid.
        let alignment = align_up(1 << 20, grid.granularity().0)?;
        match self {
            Content::Lvm { .. } => Some(
                Remedy::new(
                    Harm::Recreate,
                    "the partition stays, the physical volume begins later",
                    "the first extent is on the grid, although the partition is not",
                )
                .action(
                    request
                        .existing()
                        .map(|partition| Action::RecreatePhysicalVolume {
                            partition,
                            data_start_bytes: Bytes(alignment + ahead),
                        }),
                )
                .step(Step::new(
                    Command::new("pvcreate --dataalignment")
                        .arg(format!("{alignment}b"))
                        .flags("--dataalignmentoffset")
                        .arg(format!("{ahead}b"))
                        .path(&part),
                    "all of the physical volume is lost: empty it with pvmove first",
                    "pvcreate with the values that pvs -o pv_name,pe_start printed before",
                ))
                .step(Step::look(
                    Command::new("pvs --units s -o pv_name,pe_start").path(&part),
                ))
                .constraint(
                    "the extent size of the volume group must be a multiple of the grid as well",
                ),
            ),
            Content::Md { .. } | Content::Zfs { .. } | Content::SvmMirror { .. } => None,
        }
    }
}

fn svm_mirror(remedy: Remedy, mirror: &str, old: &str) -> Remedy {
    let attach = || Command::new("metattach").name(SVM, mirror);
    let detach = || Command::new("metadetach").name(SVM, mirror);
    remedy
        .step(Step::new(
            Command::new("metainit NEWSUB 1 1 NEW").and(attach().flags("NEWSUB")),
            "the disks are busy until the resync is done: metastat tells",
            detach()
                .flags("NEWSUB")
                .and(Command::new("metaclear NEWSUB")),
        ))
        .step(Step::new(
            detach()
                .name(SVM, old)
                .and(Command::new("metaclear").name(SVM, old)),
            "one copy less; only after the resync",
            attach()
                .name(SVM, old)
                .remark("after metainit has made it as before"),
        ))
        .constraint("NEWSUB is a free volume name; a mirror takes four submirrors at most")
}
