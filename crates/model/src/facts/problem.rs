//! Facts that readers notice in labels, superblocks and dumps.

use crate::PlanKind;
use plumb_stack::Source;
use serde::{Deserialize, Serialize};

/// A problem that a reader noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticedProblem {
    /// The problem, in the words of its reader: numbers of labels and names of devices.
    pub text: String,
    /// Its source.
    pub source: Source,
    /// Whether a move on the same disk has not ended, which comes first.
    pub is_move_unfinished: bool,
}

rule! {
    BROKEN_LABEL: BrokenLabel(NoticedProblem) "broken-label", Layout, true, None,
        "a label, or one copy of it, is damaged", "the disk";
    STRANDED_BACKUP_LABEL: StrandedBackupLabel(NoticedProblem) "stranded-backup-label", Layout, true, Some(PlanKind::BackupLabel),
        "the backup of a label is not at the end of the disk", "the disk";
    OVERLAPPING_PARTITIONS: OverlappingPartitions(NoticedProblem) "overlapping-partitions", Layout, true, None,
        "two partitions or soft partitions share bytes", "the disk, `metastat -p`";
    UNFINISHED_MOVE: UnfinishedMove(NoticedProblem) "unfinished-move", Layout, true, None,
        "a move of a partition has not ended", "the disk";
    SECTOR_SIZE_MISMATCH: SectorSizeMismatch(NoticedProblem) "sector-size-mismatch", Layout, true, None,
        "a label is for sectors of another size", "the disk";
    BROKEN_SUPERBLOCK: BrokenSuperblock(NoticedProblem) "broken-superblock", Layout, true, None,
        "a superblock or the header of a virtual disk is damaged", "the disk, an image";
    HIDDEN_SECTORS: HiddenSectors(NoticedProblem) "hidden-sectors", Layout, true, None,
        "a file system notes another start of its partition", "the disk";
    ASHIFT_BELOW_BLOCK: AshiftBelowBlock(NoticedProblem) "ashift-below-block", Layout, true, None,
        "ZFS writes less than a block of the disk", "`zpool status`";
    BEYOND_DEVICE: BeyondDevice(NoticedProblem) "beyond-device", Layout, true, None,
        "a layer ends beyond the layer below it", "both sizes";
    CONTRADICTION: Contradiction(NoticedProblem) "contradiction", Layout, true, None,
        "sources contradict each other", "two sources";
}
