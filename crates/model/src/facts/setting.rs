//! Facts about settings, paths and load.

use plumb_geometry::Bytes;
use plumb_stack::Source;
use plumb_stack::node_facts::MirrorReads;
use plumb_trace::Layer;
use serde::{Deserialize, Serialize};

use super::ArrayEvidence;
use crate::rule::PlanKind;

/// `queue-setting`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSetting {
    /// Settings that do harm, the worst first; at least one.
    pub settings: Vec<BadSetting>,
}

rule! {
    QUEUE_SETTING: QueueSetting(QueueSetting) "queue-setting", Setting, false, Some(PlanKind::Queue),
        "read-ahead, request size or scheduler costs performance", "a live Linux host";
}

/// A setting of a queue that does harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum BadSetting {
    /// Too much is read ahead.
    ReadAhead {
        /// Bytes that the kernel reads ahead.
        bytes: Bytes,
        /// The most that serves a stream.
        most_bytes: Bytes,
        /// The value to set.
        better_bytes: Bytes,
        /// Its source.
        source: Option<Source>,
    },
    /// Requests are smaller than the hardware takes.
    Request {
        /// Largest request of the kernel.
        bytes: Bytes,
        /// Largest request of the hardware.
        hardware_bytes: Bytes,
        /// The value to set.
        better_bytes: Bytes,
        /// Its source.
        source: Option<Source>,
    },
    /// A scheduler for disks with a head on a drive without one.
    Scheduler {
        /// Its name.
        name: String,
        /// The scheduler to set.
        better: String,
        /// The source of the statement that the drive has no head.
        source: Option<Source>,
    },
}

/// `read-ahead-off`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadAheadOff {
    /// Reads of the device.
    pub reads: u64,
    /// Reads that filled the page cache: read-ahead works for these alone.
    pub cached_reads: u64,
    /// Short reads that continued a stream.
    pub continuing_reads: u64,
    /// The longest read that counts as short.
    pub short_bytes: Bytes,
    /// The value to set.
    pub better_bytes: Bytes,
    /// The source of the setting.
    pub source: Option<Source>,
}

rule! {
    READ_AHEAD_OFF: ReadAheadOff(ReadAheadOff) "read-ahead-off", Setting, false, Some(PlanKind::Queue),
        "sequential reads through the page cache are short because read-ahead is off", "a live watch with BPF";
}

/// `read-ahead-too-large`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadAheadTooLarge {
    /// Bytes that the kernel reads ahead.
    pub bytes: Bytes,
    /// The value to set.
    pub better_bytes: Bytes,
    /// Reads of the device.
    pub reads: u64,
    /// Reads that filled the page cache.
    pub cached_reads: u64,
    /// Reads that continued no stream.
    pub jumps: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Page faults of the reading processes that waited for a disk.
    pub faults: u64,
    /// The source of the setting.
    pub source: Option<Source>,
}

rule! {
    READ_AHEAD_TOO_LARGE: ReadAheadTooLarge(ReadAheadTooLarge) "read-ahead-too-large", Setting, false, Some(PlanKind::Queue),
        "random reads of mapped files bring in far more than is used", "a live watch with BPF";
}

/// `too-few-disks`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TooFewDisks {
    /// I/O a second that are asked of the volume.
    pub asked_ios_per_second: f64,
    /// The source of that rate.
    pub asked_by: RateBasis,
    /// Disk operations a second that they need.
    pub needed_ios_per_second: f64,
    /// Disk operations a second that the disks give.
    pub given_ios_per_second: f64,
    /// Disks below.
    pub disks: u64,
    /// Disk operations of a write.
    pub operations_per_write: u64,
    /// Needed by given.
    pub utilisation: f64,
    /// Mean response time; absent at a utilisation of 1 and above.
    pub response_ns: Option<f64>,
    /// Response time of an idle disk.
    pub idle_ns: f64,
    /// Disks that would do; absent if an idle disk is slower than the limit.
    pub wanted_disks: Option<u64>,
    /// Operations that those give beyond the need, as a share of it.
    pub wanted_margin: Option<f64>,
}

rule! {
    TOO_FEW_DISKS: TooFewDisks(TooFewDisks) "too-few-disks", Setting, false, None,
        "more I/O are asked than the disks give", "`--disk-rate`; `--writes`, a profile or `iostat`";
}

/// The source of a rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RateBasis {
    /// The user gave it.
    Given,
    /// A tool printed it.
    Printed {
        /// Its output.
        source: Source,
    },
    /// The mean of a profile.
    Profile {
        /// The device.
        on: String,
        /// The layer.
        layer: Layer,
    },
}

/// `single-path`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinglePath {
    /// Paths to the LUN.
    pub paths: u64,
    /// How they are seen.
    pub case: PathCase,
    /// Their source.
    pub source: Option<Source>,
}

rule! {
    SINGLE_PATH: SinglePath(SinglePath) "single-path", Setting, false, None,
        "a LUN of an array has one path, or several unjoined", "nothing";
}

/// How the paths to a LUN are seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PathCase {
    /// A multipath device.
    Multipath,
    /// A disk that counts as a LUN.
    Lun {
        /// Why it does.
        because: ArrayEvidence,
    },
    /// Several disks of one identity.
    Unjoined {
        /// The disks.
        devices: Vec<String>,
    },
}

/// `read-policy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPolicy {
    /// The policy.
    pub policy: MirrorReads,
    /// Sides of the mirror.
    pub sides: u64,
    /// The source of the policy.
    pub source: Source,
}

rule! {
    READ_POLICY: ReadPolicy(ReadPolicy) "read-policy", Setting, false, None,
        "a mirror does not share its reads evenly", "`metastat -p`";
}

/// `mirror-write-copy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorWriteCopy {
    /// `md_mirror_wow_flg`.
    pub flags: u64,
    /// Mirrors of the host.
    pub mirrors: u64,
    /// The source of the flags.
    pub source: Source,
}

rule! {
    MIRROR_WRITE_COPY: MirrorWriteCopy(MirrorWriteCopy) "mirror-write-copy", Setting, false, None,
        "writes to mirrors are copied first", "`/etc/system`";
}

/// `small-resync-io`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmallResyncIo {
    /// Length of the I/O of a resync.
    pub resync_bytes: Bytes,
    /// Length that it should have.
    pub wanted_bytes: Bytes,
    /// Mirrors of the host.
    pub mirrors: u64,
    /// `maxphys` where it is too small as well.
    pub maxphys_bytes: Option<Bytes>,
    /// The source of the length.
    pub source: Source,
}

rule! {
    SMALL_RESYNC_IO: SmallResyncIo(SmallResyncIo) "small-resync-io", Setting, false, Some(PlanKind::Resync),
        "mirrors are resynced in small pieces", "`/etc/system`";
}

/// `small-maxphys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmallMaxphys {
    /// Largest I/O of the kernel.
    pub maxphys_bytes: Bytes,
    /// Value that it should have.
    pub wanted_bytes: Bytes,
    /// The largest chunk of a stripe, if it is larger.
    pub chunk_bytes: Option<Bytes>,
    /// The I/O of a resync, if they are larger.
    pub resync_bytes: Option<Bytes>,
    /// Its source.
    pub source: Source,
}

rule! {
    SMALL_MAXPHYS: SmallMaxphys(SmallMaxphys) "small-maxphys", Setting, false, Some(PlanKind::Resync),
        "the kernel cuts large I/O", "`/etc/system`";
}

/// `no-direct-io`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoDirectIo {
    /// The page of the database.
    pub page_bytes: Bytes,
    /// The block of the file system, if it is larger than the page.
    pub block_bytes: Option<Bytes>,
    /// The source of the mount options.
    pub source: Option<Source>,
}

rule! {
    NO_DIRECT_IO: NoDirectIo(NoDirectIo) "no-direct-io", Setting, false, None,
        "a database on UFS goes through the file cache", "mount options, `--page`";
}

/// `no-logging`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoLogging {
    /// Whether the mount options switch the log off, rather than say nothing.
    pub is_switched_off: bool,
    /// The source of the mount options.
    pub source: Option<Source>,
}

rule! {
    NO_LOGGING: NoLogging(NoLogging) "no-logging", Setting, false, None,
        "a UFS file system has no log", "mount options";
}

/// `small-segmap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmallSegmap {
    /// Percentage of memory.
    pub segmap_percent: u64,
    /// UFS file systems that go through the cache.
    pub file_systems: u64,
    /// The source of the percentage.
    pub source: Source,
}

rule! {
    SMALL_SEGMAP: SmallSegmap(SmallSegmap) "small-segmap", Setting, false, None,
        "the window of UFS on its cache is small", "`/etc/system`, mount options";
}

/// `too-many-metadevices`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "case", rename_all = "kebab-case")]
pub enum TooManyMetadevices {
    /// Near the limit.
    Limit {
        /// The disk set; absent for the local one.
        set: Option<String>,
        /// Metadevices.
        metadevices: u64,
        /// `nmd`.
        nmd: u64,
        /// The largest that `nmd` can be.
        nmd_max: u64,
        /// The source of `nmd`.
        source: Source,
    },
    /// Soft partitions as columns of stripes.
    Columns {
        /// Metadevices of such stripes.
        metadevices: u64,
        /// Metadevices that would do.
        needed: u64,
        /// The stripes.
        stripes: u64,
        /// Their columns.
        columns: u64,
    },
}

rule! {
    TOO_MANY_METADEVICES: TooManyMetadevices(TooManyMetadevices) "too-many-metadevices", Layout, true, None,
        "more metadevices than are needed, or possible", "`metastat -p`; `md.conf`";
}

/// `double-counted`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoubleCounted {
    /// Devices that carry one load.
    pub devices: Vec<String>,
    /// I/O a second at the top.
    pub asked_ios_per_second: f64,
    /// Their source.
    pub asked_by: RateBasis,
    /// The rates of all devices added up.
    pub sum_ios_per_second: f64,
    /// I/O a second at the bottom.
    pub bottom_ios_per_second: f64,
    /// Whether top and bottom do the same.
    pub is_same: bool,
}

rule! {
    DOUBLE_COUNTED: DoubleCounted(DoubleCounted) "double-counted", Layout, false, None,
        "rates of layered devices are one load", "`iostat` or a profile";
}
