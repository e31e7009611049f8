//! Names of the problems that readers notice in labels, superblocks and dumps. Each is a finding with a page of that name.

/// A label, or one copy of it, is damaged.
pub const BROKEN_LABEL: &str = "broken-label";
/// The backup of a label is not at the end of the disk.
pub const STRANDED_BACKUP_LABEL: &str = "stranded-backup-label";
/// Two partitions, or soft partitions with their headers, share bytes.
pub const OVERLAPPING_PARTITIONS: &str = "overlapping-partitions";
/// A partition was being moved, and the move has not ended.
pub const UNFINISHED_MOVE: &str = "unfinished-move";
/// A label for sectors of another size than the device has.
pub const SECTOR_SIZE_MISMATCH: &str = "sector-size-mismatch";
/// A file system that notes another start of its partition than the true one.
pub const HIDDEN_SECTORS: &str = "hidden-sectors";
/// A superblock, or the header of a virtual disk, that is damaged.
pub const BROKEN_SUPERBLOCK: &str = "broken-superblock";
/// ZFS writes blocks that are smaller than those of the disk.
pub const ASHIFT_BELOW_BLOCK: &str = "ashift-below-block";
/// A layer that ends beyond what it lies on.
pub const BEYOND_DEVICE: &str = "beyond-device";
/// Sources that do not agree.
pub const CONTRADICTION: &str = "contradiction";

/// A name, with its words in the index of findings.
pub struct NamedProblem {
    /// The name, which is that of the page too.
    pub id: &'static str,
    /// The problem in one line.
    pub title: &'static str,
    /// Input that shows it, in Markdown.
    pub needs: &'static str,
}

/// All of them: a builder takes no other name.
pub static ALL: [NamedProblem; 10] = [
    NamedProblem {
        id: BROKEN_LABEL,
        title: "a label, or one copy of it, is damaged",
        needs: "the disk",
    },
    NamedProblem {
        id: STRANDED_BACKUP_LABEL,
        title: "the backup of a label is not at the end of the disk",
        needs: "the disk",
    },
    NamedProblem {
        id: OVERLAPPING_PARTITIONS,
        title: "two partitions or soft partitions share bytes",
        needs: "the disk, `metastat -p`",
    },
    NamedProblem {
        id: UNFINISHED_MOVE,
        title: "a move of a partition has not ended",
        needs: "the disk",
    },
    NamedProblem {
        id: SECTOR_SIZE_MISMATCH,
        title: "a label is for sectors of another size",
        needs: "the disk",
    },
    NamedProblem {
        id: BROKEN_SUPERBLOCK,
        title: "a superblock or the header of a virtual disk is damaged",
        needs: "the disk, an image",
    },
    NamedProblem {
        id: HIDDEN_SECTORS,
        title: "a file system notes another start of its partition",
        needs: "the disk",
    },
    NamedProblem {
        id: ASHIFT_BELOW_BLOCK,
        title: "ZFS writes less than a block of the disk",
        needs: "`zpool status`",
    },
    NamedProblem {
        id: BEYOND_DEVICE,
        title: "a layer ends beyond the layer below it",
        needs: "both sizes",
    },
    NamedProblem {
        id: CONTRADICTION,
        title: "sources contradict each other",
        needs: "two sources",
    },
];

/// Whether a name is one of them.
#[must_use]
pub fn is_known(id: &str) -> bool {
    ALL.iter().any(|problem| problem.id == id)
}
