//! The reasons why positions of bytes are unknown, and why a statement is doubted. `report` has the sentences.
//!
//! Devices, files and volumes are named as their host names them: the reasons outlive the stack that found them.

use plumb_geometry::Bytes;
use serde::{Deserialize, Serialize};

use crate::grid::Source;
use crate::node_facts::ContentKind;

/// Why the place of bytes is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields repeat the names of facts")]
pub enum Obstacle {
    /// A walk down a stack ended at its bound of layers.
    TooManyLayers { layers: u64 },
    /// A walk down a stack ended at its bound of pieces.
    TooManyPieces { pieces: u64 },
    /// Two layers are above each other.
    StandsOnItself { upper: String, lower: String },
    /// The bytes are beyond the end of the layer below.
    BeyondLayer,
    /// A sparse file has a hole there.
    Hole { file: String },
    /// A layer places nothing there.
    NoPart { of: String },
    /// Nothing states a grid of the layers below.
    NothingKnown,
    /// Nothing is known of a device beyond the assumed grid.
    NothingBeyond {
        on: String,
        granularity_bytes: Bytes,
    },
    /// A virtual disk states a grid, and the layers below it are elsewhere.
    BelowVirtualDisk {
        disk: String,
        target: Option<String>,
    },

    /// The device mapper has no table for the device.
    NoTable,
    /// All lines of a table are `error` or `zero`.
    LeadsNowhere,
    /// A target of the device mapper that is not known here.
    UnknownTarget { target: String },
    /// dm-integrity puts checksums between the data.
    IntegrityChecksums,
    /// The table of the thin pool is missing.
    PoolTableMissing,
    /// The table is not in a collection.
    TableNotCollected,
    /// The table is readable with a capability that the user lacks.
    TableNeedsRoot,
    /// The kernel refused an answer, in its words.
    Refused { said: String },

    /// The backing device of a bcache is not known.
    NoBackingDevice,
    /// A driver that is not known here uses the devices below.
    UnknownUse { device: String },
    /// DRBD does not state its device.
    Drbd,
    /// The format places its blocks by rules that are not followed here.
    PlacesItself { format: ContentKind },
    /// The target of an export states no backing.
    NoBacking,
    /// A program in user space serves an export.
    ServedByProgram { handler: Option<String> },
    /// The device of an export is not one of this host.
    NotOfHost { device: String },

    /// No mounted file system holds the file.
    NoFileSystem,
    /// The file system of a file is on no block device of this host.
    NotOnBlockDevice { format: ContentKind },
    /// The file may be on the realtime device of XFS.
    RealtimeDevice,
    /// Only the kernel of the host can tell the extents.
    OnlyHost,
    /// The file of a loop device was deleted.
    FileDeleted { file: String },
    /// No extent of the file has a place yet.
    NothingPlaced,

    /// An array does not run.
    ArrayState { state: String },
    /// An array does not run, so that no member is printed.
    MembersNotPrinted,
    /// An array is being reshaped.
    Reshaping { sector: Option<String> },
    /// An array claims more members than any has.
    TooManyMembers { members: u64 },
    /// The start of the data on a member is not stated.
    DataStart { member: String },
    /// The start of the data on a member is in its superblock alone.
    DataStartInSuperblock { member: String },
    /// The chunk of an array or stripe is not stated.
    NoChunk,
    /// The size of a member is not stated.
    MemberSize,
    /// The sizes of members are in their superblocks alone.
    MemberSizesInSuperblocks,
    /// A member is missing, and with it its length.
    MissingMemberSize,
    /// A member of an array is missing.
    MissingMember { array: String, slot: u64 },
    /// A level of RAID that is not known here.
    UnknownLevel { level: String },
    /// A position beyond 2^64 bytes.
    Beyond64Bits { source: Option<Source> },

    /// A physical volume of a group was not seen.
    MissingVolume { volume: String, group: String },
    /// A snapshot: unchanged blocks are in its origin.
    Snapshot,
    /// The text of a volume group does not state the place.
    NotInGroupText,
    /// A type of segment that is not known here.
    UnknownSegment { segment: String },
    /// A type of segment whose places no report of LVM has.
    SegmentNotPrinted { segment: String },
    /// A hidden volume of LVM was not printed.
    HiddenVolume,
    /// The block of a pool was not printed.
    PoolBlockNotPrinted,
    /// The length of a segment was rounded.
    RoundedSegment,
    /// The extent of a volume group was not printed.
    ExtentNotPrinted,
    /// The first extent of a physical volume was not printed.
    FirstExtentNotPrinted { device: String },
    /// The devices of a segment were not printed.
    SegmentDevicesNotPrinted,
    /// The stripe of a segment was not printed.
    StripeNotPrinted,

    /// The partition that ZFS made on a whole disk is in no dump.
    ZfsPartition,
    /// RAID-Z places each block by its length.
    RaidZ,
    /// The disks of a vdev are in no dump.
    VdevDisks,
    /// The label of a pool does not state ashift.
    NoAshift,
    /// A pool spreads blocks over vdevs.
    SpreadOverVdevs,
    /// A type of vdev that is not known here.
    UnknownVdev { vdev: String },

    /// A table of partitions counts in rounded cylinders.
    RoundedCylinders,
    /// parted rounded the starts.
    RoundedByParted,
    /// lsblk was not asked for starts.
    NoStartColumn,
    /// An image in a file: no dump tells the layers below.
    ImageFile,
    /// A device is named by its number alone.
    NumberAlone { number: String },
    /// lsblk does not print the file of a loop device.
    LoopFileNotPrinted,
    /// lsblk does not print the start of an array's data.
    ArrayStartNotPrinted,
    /// lsblk does not print the start of a mapped device's data.
    MappedStartNotPrinted,
    /// The label of a disk is in no dump.
    LabelNotDumped { disk: String },
    /// No dump describes a device that is below others.
    NotDescribed,
    /// dumpe2fs does not print its device.
    NoDeviceName,

    /// metainit chose the place of a soft partition.
    ChosenByMetainit { volume: String },
    /// Replicas of the state database come first, and the cylinders of the disk are not known.
    BehindReplicas { component: String },
    /// No interlace is given, and its default changed.
    NoInterlace { old_bytes: Bytes, new_bytes: Bytes },
    /// The length of a row of a concatenation is not known.
    RowLength { row: Option<String> },
    /// The start of the data of a RAID-5 column is not known.
    ColumnStart { column: String },
    /// Nothing describes a volume.
    VolumeNotDescribed { volume: String },
    /// The label of a disk does not have a slice.
    NotInLabel { disk: String, slice: String },
    /// No label of a disk was given.
    NoLabel { disk: String },
    /// The start of a public region is not known.
    PublicRegion { device: String },
    /// A label counts from an fdisk partition whose start is not known.
    FdiskStart { disk: String },

    /// The header of an encrypted volume does not tell.
    LuksHeader { fault: LuksFault },
    /// A virtual disk in a file does not tell.
    Image { fault: ImageObstacle },
}

/// A fault of the header of an encrypted volume, or a missing part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LuksFault {
    /// The data begin beyond the end of the device.
    BeyondEnd,
    /// The header is on another device.
    Detached,
    /// The header is cut off.
    CutOff,
    /// The header has a length that no header has.
    Length(u64),
    /// The text of the header is no JSON.
    NoJson,
    /// The header names no segments.
    NoSegments,
    /// The header names this number of segments: the volume is being encrypted again.
    Segments(u64),
    /// The data are not encrypted in place.
    NotInPlace,
    /// The header does not state the start.
    NoStart,
}

/// Why a virtual disk in a file has no place for some bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageObstacle {
    /// The image cannot be read.
    Unreadable,
    /// Some clusters are compressed.
    SomeCompressed,
    /// All clusters are compressed.
    AllCompressed,
    /// Some data are in a backing file.
    SomeInBacking,
    /// All data are in a backing file.
    AllInBacking,
    /// Grains are compressed.
    GrainsCompressed,
    /// More grains or blocks than are followed.
    TooManyBlocks(u64),
    /// Extents of this kind are files with tables of their own.
    ExtentKind(String),
}

/// Why a statement of a grid is not believed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields repeat the names of facts")]
pub enum GridDoubt {
    /// The kernel worked it out from the devices below.
    Derived,
    /// The kernel took it over from the layer of a file.
    TakenOver,
    /// The devices below have no common offset.
    NoOffset,
    /// 65,535 sectors: the limit of a USB bridge.
    Bridge,
    /// Larger than any plausible value.
    LargerThan { bytes: Bytes },
    /// Smaller than the physical block.
    BelowPhysical { physical_bytes: Bytes },
    /// No multiple of the physical block.
    OffPhysical { physical_bytes: Bytes },
    /// No multiple of the minimum I/O size.
    OffMinimum { minimum_bytes: Bytes },
    /// An odd number of sectors.
    OddSectors,
    /// NOWS is a preferred size and no unit of the flash.
    PreferredSize,
    /// An export states it, and the layers below are known.
    StatedToInitiators,
    /// A virtual disk states it, and the device that it is made of is known.
    StatedByVirtualDisk { made_of: String },
    /// No interlace is given, and its default changed.
    NoInterlace { old_bytes: Bytes, new_bytes: Bytes },
    /// The document of known arrays leaves a choice, in its words.
    Choice { said: String },
}
