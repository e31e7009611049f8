//! What a partition holds decides which ways there are: volume managers and mirrors move data while in use.

use plumb_geometry::align_up;

use crate::partition::{PartitionLayout, PartitionRequest};
use crate::plan::{Harm, Remedy, Step};
use crate::shell::word;

/// What a partition holds, and by which name.
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
        let from = word(&from).into_owned();
        let start = crate::error::position(layout.start);
        let new = "NEW";
        let effect =
            format!("data lie on a partition that starts at {start}, and were in use all the time");
        let remedy = |title: &str| {
            Remedy::new(Harm::Online, title, effect.clone()).constraint(format!(
                "{new} is a partition of another disk, at least as long, that starts at {start} there as well"
            ))
        };
        let full =
            "the disks are busy until it is done; an interruption leaves data where they were";
        Some(match self {
            Content::Lvm { group } => {
                let group = word(group);
                remedy("with LVM")
                    .step(Step::new(
                        format!("pvcreate {new} && vgextend {group} {new}"),
                        "writes a label to it",
                        format!("vgreduce {group} {new} && pvremove {new}"),
                    ))
                    .step(Step::new(
                        format!("pvmove {from} {new}"),
                        full,
                        format!("pvmove {new} {from}"),
                    ))
                    .step(Step::new(
                        format!("vgreduce {group} {from} && pvremove {from}"),
                        "the old partition is no longer part of the group",
                        format!("pvcreate {from} && vgextend {group} {from}"),
                    ))
            }
            Content::Md { array } => {
                let path = if array.contains('/') {
                    array.clone()
                } else {
                    format!("/dev/{array}")
                };
                let array = word(&path);
                remedy("with md, without losing redundancy")
                    .step(Step::new(
                        format!("mdadm {array} --add {new}"),
                        "writes a superblock to it",
                        format!("mdadm {array} --remove {new}"),
                    ))
                    .step(Step::new(
                        format!("mdadm {array} --replace {from} --with {new}"),
                        full,
                        format!("mdadm {array} --replace {new} --with {from}"),
                    ))
                    .constraint("arrays of level 1, 4, 5, 6 or 10; RAID 0 cannot replace a member")
            }
            Content::Zfs { pool } => remedy("with ZFS").step(Step::new(
                format!("zpool replace {} {from} {new}", word(pool)),
                full,
                format!("zpool replace {} {new} {from}", word(pool)),
            )),
            Content::SvmMirror { mirror, submirror } => {
                svm_mirror(remedy("with the mirror"), mirror, submirror)
            }
        })
    }

    /// What stands on the partition may begin later: two wrongs that make a right.
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
                .step(Step::new(
                    format!(
                        "pvcreate --dataalignment {}b --dataalignmentoffset {ahead}b {}",
                        alignment,
                        word(&part)
                    ),
                    "all of the physical volume is lost: empty it with pvmove first",
                    "pvcreate with the values that pvs -o pv_name,pe_start printed before",
                ))
                .step(Step::look(format!(
                    "pvs --units s -o pv_name,pe_start {}",
                    word(&part)
                )))
                .constraint(
                    "the extent size of the volume group must be a multiple of the grid as well",
                ),
            ),
            Content::Md { .. } | Content::Zfs { .. } | Content::SvmMirror { .. } => None,
        }
    }
}

fn svm_mirror(remedy: Remedy, mirror: &str, submirror: &str) -> Remedy {
    let (mirror, old) = (word(mirror), word(submirror));
    remedy
        .step(Step::new(
            format!("metainit NEWSUB 1 1 NEW && metattach {mirror} NEWSUB"),
            "the disks are busy until the resync is done: metastat tells",
            format!("metadetach {mirror} NEWSUB && metaclear NEWSUB"),
        ))
        .step(Step::new(
            format!("metadetach {mirror} {old} && metaclear {old}"),
            "one copy less; only after the resync",
            format!("metainit {old} as before, metattach {mirror} {old}"),
        ))
        .constraint("NEWSUB is a free volume name; a mirror takes four submirrors at most")
}
