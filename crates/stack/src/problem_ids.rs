//! The problems that readers notice in labels, superblocks and dumps. Each becomes a finding with a page of its own.

use serde::Serialize;

/// A kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemId {
    /// A label, or one copy of it, is damaged.
    BrokenLabel,
    /// The backup of a label is not at the end of the disk.
    StrandedBackupLabel,
    /// Two partitions, or soft partitions with their headers, share bytes.
    OverlappingPartitions,
    /// A partition was being moved, and the move has not ended.
    UnfinishedMove,
    /// A label is for sectors of another size than the device has.
    SectorSizeMismatch,
    /// A file system notes another start of its partition than the true one.
    HiddenSectors,
    /// A superblock, or the header of a virtual disk, is damaged.
    BrokenSuperblock,
    /// ZFS writes blocks that are smaller than those of the disk.
    AshiftBelowBlock,
    /// A layer ends beyond the layer below it.
    BeyondDevice,
    /// Sources do not agree.
    Contradiction,
}
