//! Names of what readers notice that is not as it should be. Each is a finding with a page of that name.

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

/// All of them: a name that is not here cannot be told to a builder.
pub const ALL: [&str; 10] = [
    BROKEN_LABEL,
    STRANDED_BACKUP_LABEL,
    OVERLAPPING_PARTITIONS,
    UNFINISHED_MOVE,
    SECTOR_SIZE_MISMATCH,
    HIDDEN_SECTORS,
    BROKEN_SUPERBLOCK,
    ASHIFT_BELOW_BLOCK,
    BEYOND_DEVICE,
    CONTRADICTION,
];
