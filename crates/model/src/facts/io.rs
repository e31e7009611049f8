//! Facts about I/O.

use plumb_geometry::{Bounds, Bytes, Grid};
use plumb_profile::SingleIo;
use plumb_profile::infer::InferenceVerdict;
use plumb_profile::latency_fit::LatencyByFit;
use serde::{Deserialize, Serialize};

use super::OfLength;
use crate::counted::CountedShare;
use crate::finding::Confidence;

/// The source of the grid for judging I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GridSource {
    /// Nobody stated one: 4 KiB at offset 0.
    Assumed,
    /// The user gave it.
    User,
    /// The stack below the device states it.
    Stated,
    /// A virtual disk states it, and the layers below are not visible.
    Shown,
    /// The source of the trace tested it.
    Tested,
}

impl GridSource {
    /// The word used in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            GridSource::Assumed => "assumed",
            GridSource::User => "given",
            GridSource::Stated => "stated",
            GridSource::Shown => "stated by a virtual disk",
            GridSource::Tested => "tested by the source",
        }
    }

    /// How sure a conclusion from such a grid is.
    #[must_use]
    pub const fn confidence(self) -> Confidence {
        match self {
            GridSource::User | GridSource::Stated => Confidence::High,
            GridSource::Assumed | GridSource::Shown | GridSource::Tested => Confidence::Medium,
        }
    }
}

/// `misaligned-io`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MisalignedIo {
    /// The grid.
    pub grid: Grid,
    /// Its source.
    pub grid_source: GridSource,
    /// I/O that start off it.
    pub counted: CountedShare,
    /// Whether only I/O outside of all partitions count.
    pub is_outside_partitions: bool,
    /// Mean distance from the boundary before; absent for I/O outside of all partitions.
    pub mean_past_bytes: Option<f64>,
    /// The offset that the I/O themselves show; absent where the source only counted.
    pub offset: Option<IoOffset>,
    /// Latency of I/O off the grid against those on it; absent if none was timed.
    pub latency: Option<LatencyByFit>,
}

rule! {
    MISALIGNED_IO: MisalignedIo(MisalignedIo) "misaligned-io", Io, true, None,
        "I/O start off the grid", "nothing; `--grid` confirms it";
}

/// The offset of I/O, and the change that would fix it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoOffset {
    /// I/O that were looked at.
    pub ios: u64,
    /// Stream heads among them.
    pub heads: u64,
    /// The offset or offsets.
    pub verdict: InferenceVerdict,
    /// Largest granularity that the table could tell; absent if all were examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examined_bytes: Option<Bytes>,
    /// For each offset, the first sector of a well-known layout that would give it.
    pub known_starts: Vec<Option<KnownStart>>,
    /// Offsets of other I/O.
    pub others: Vec<OtherOffset>,
    /// Starts of partitions of the device.
    pub partitions: Vec<PartitionStart>,
    /// The effect of a move.
    pub advice: OffsetAdvice,
}

/// A start that old tools gave the first partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownStart {
    /// Sector 63, by MBR tools that counted cylinders.
    Sector63,
    /// Sector 34, behind an EFI label.
    Sector34,
    /// A cylinder of 16,065 sectors.
    Cylinder,
}

/// I/O at another offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherOffset {
    /// The offset.
    pub offset_bytes: Bytes,
    /// I/O on it.
    pub ios: u64,
    /// Stream heads among them.
    pub heads: u64,
    /// Whether so few are stream heads that there is no second layout.
    pub continues_streams: bool,
}

/// The start of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionStart {
    /// Its name.
    pub name: String,
    /// Its start.
    pub start_bytes: Bytes,
    /// Distance from the boundary before.
    pub past_bytes: Bytes,
}

/// A file system, and the length of its blocks. They are at multiples of this length from its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemBlock {
    /// Its name.
    pub name: String,
    /// Length of a block.
    pub block_bytes: Bytes,
}

/// The effect of a move of the layout for I/O off a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OffsetAdvice {
    /// Nothing to say.
    Nothing,
    /// Look at each part of the device by itself.
    EachPart,
    /// The I/O are at places in files.
    InFiles,
    /// No single shift puts the blocks of the I/O on the grid.
    NoShift,
    /// The blocks are on the grid, and the other I/O are off by themselves.
    OnGrid,
    /// The device, its partitions and the file systems on them begin on the grid: no move aligns the I/O.
    WithinFileSystems {
        /// The file systems.
        file_systems: Vec<FileSystemBlock>,
    },
    /// A layout that starts later would align I/O.
    Shift {
        /// The distance.
        up_bytes: Bytes,
        /// The blocks that would be on multiples of their length, if the grid is only assumed.
        blocks_bytes: Option<Bytes>,
        /// I/O that would still start off the grid, exact for these requests.
        misaligned: Bounds<u64>,
        /// The total.
        ios: u64,
    },
}

/// `odd-length-io`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OddLengthIo {
    /// The unit.
    pub unit_bytes: Bytes,
    /// I/O whose length is no multiple of it.
    pub counted: CountedShare,
    /// The commonest such lengths.
    pub commonest: Vec<OfLength>,
    /// Whether single I/O were seen, and not only counts of a source.
    pub is_seen: bool,
}

rule! {
    ODD_LENGTH_IO: OddLengthIo(OddLengthIo) "odd-length-io", Io, true, None,
        "the length is no multiple of the unit", "nothing; `--grid` confirms it";
}

/// `small-random-writes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmallRandomWrites {
    /// The longest write that is small.
    pub longest_bytes: Bytes,
    /// Small writes that continue no stream, of all I/O.
    pub counted: CountedShare,
    /// Small writes that one gathered write may hold.
    pub gathered: u64,
    /// Gathered writes that would do.
    pub gathered_writes: u64,
    /// Small random writes a second; absent if the trace has no times.
    pub per_second: Option<f64>,
}

rule! {
    SMALL_RANDOM_WRITES: SmallRandomWrites(SmallRandomWrites) "small-random-writes", Io, false, None,
        "small writes that continue no stream", "issue order";
}

/// `looks-sequential`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LooksSequential {
    /// The smallest length that an array may take for sequential.
    pub from_bytes: Bytes,
    /// The length from which on random I/O is as good as sequential.
    pub below_bytes: Bytes,
    /// Random I/O of such lengths, of all I/O.
    pub counted: CountedShare,
    /// All I/O of such lengths.
    pub of_that_size: u64,
}

rule! {
    LOOKS_SEQUENTIAL: LooksSequential(LooksSequential) "looks-sequential", Io, false, None,
        "random I/O of a size that passes for sequential", "issue order";
}

/// `member-skew`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberSkew {
    /// The busiest member, from 0.
    pub member: u64,
    /// Members.
    pub members: u64,
    /// Pieces of I/O on that member, of all pieces.
    pub counted: CountedShare,
    /// Its load by that of an even share.
    pub ratio: f64,
}

rule! {
    MEMBER_SKEW: MemberSkew(MemberSkew) "member-skew", Io, true, None,
        "members of a stripe are loaded unevenly", "`--chunk`, `--members`";
}

/// `throughput-inflation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputInflation {
    /// Reads or writes.
    pub direction: Direction,
    /// Calls.
    pub calls: u64,
    /// Bytes that they asked for.
    pub asked_bytes: Bytes,
    /// Bytes that the devices moved.
    pub device_bytes: Bytes,
    /// The latter by the former.
    pub ratio: f64,
    /// Whether the page cache has a part in the ratio.
    pub is_cached: bool,
    /// Bytes read that nobody asked for, beside writes.
    pub read_first_bytes: Option<Bytes>,
}

rule! {
    THROUGHPUT_INFLATION: ThroughputInflation(ThroughputInflation) "throughput-inflation", Io, true, None,
        "the device moves far more bytes than applications asked for", "`plumb watch --app`";
}

/// Reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl Direction {
    /// One I/O.
    #[must_use]
    pub const fn one(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
        }
    }

    /// Several.
    #[must_use]
    pub const fn all(self) -> &'static str {
        match self {
            Direction::Read => "reads",
            Direction::Write => "writes",
        }
    }
}

/// `failing-io`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingIo {
    /// Operations with failed I/O, in the order of [`FailingOp`].
    pub ops: Vec<FailedIos>,
    /// The first of them, as far as a watch kept them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub first: Vec<SingleIo>,
}

rule! {
    FAILING_IO: FailingIo(FailingIo) "failing-io", Io, false, None,
        "reads, writes or flushes fail", "a source that notes errors";
}

/// I/O of one operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedIos {
    /// The operation.
    pub op: FailingOp,
    /// I/O that failed.
    pub failed: u64,
    /// All I/O of the operation; `None` if fewer were counted than failed.
    pub ios: Option<u64>,
}

/// An operation whose failures all matter. Discards and zeroing are left out: a device may refuse them, and the kernel then
/// does without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailingOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes of the write cache.
    Flush,
}

/// `stalled-io`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StalledIo {
    /// The way in which I/O wait.
    pub stall: Stall,
}

rule! {
    STALLED_IO: StalledIo(StalledIo) "stalled-io", Io, false, None,
        "I/O wait for seconds", "a watch, or a source with times of completion";
}

/// A way in which I/O wait. Times are lower ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Stall {
    /// Nothing completes at the end of the watch.
    Silent {
        /// I/O in flight.
        in_flight: u64,
        /// Time without a completion.
        for_ns: u64,
        /// The oldest I/O in flight, if the watch saw its issue.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        oldest: Option<SingleIo>,
    },
    /// One I/O waits while others complete.
    LeftBehind {
        /// I/O in flight.
        in_flight: u64,
        /// The oldest.
        oldest: SingleIo,
    },
    /// Nothing completed for a while, and the device has gone on since.
    WasSilent {
        /// Time without a completion.
        for_ns: u64,
        /// The slowest I/O, if the watch saw its issue.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        slowest: Option<SingleIo>,
    },
    /// A few I/O took far longer than most.
    Slow {
        /// I/O that took at least the limit.
        ios: u64,
        /// The limit.
        limit_ns: u64,
        /// Time of the longest.
        longest_ns: u64,
        /// Half of the I/O took at most this time.
        median_ns: u64,
        /// The slowest I/O, if the watch kept it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        slowest: Option<SingleIo>,
    },
}

/// `saturated-device`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SaturatedDevice {
    /// Share of the time with I/O in flight.
    pub busy_share: f64,
    /// Mean number of I/O in flight.
    pub depth_mean: f64,
    /// Mean time of a read or write in ns, with its time in the scheduler's queue.
    pub mean_ns: f64,
    /// Busy time for each read or write that completed, in ns.
    pub served_ns: f64,
    /// Reads and writes that completed in a second.
    pub ios_per_second: f64,
    /// Bytes of them.
    pub bytes_per_second: f64,
}

rule! {
    SATURATED_DEVICE: SaturatedDevice(SaturatedDevice) "saturated-device", Io, false, None,
        "the device is busy all the time and I/O wait for each other",
        "a watch, or a source with times of completion";
}

/// `misaligned-target`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MisalignedTarget {
    /// Length of a block.
    pub granularity_bytes: Bytes,
    /// Start of the first one.
    pub offset_bytes: Bytes,
    /// The operation that was measured.
    pub op: Direction,
    /// I/O that were measured.
    pub measured: u64,
    /// Time of an I/O off the grid by that of one on it.
    pub penalty: Option<Penalty>,
}

rule! {
    MISALIGNED_TARGET: MisalignedTarget(MisalignedTarget) "misaligned-target", Io, true, None,
        "blocks start at an offset, measured", "`plumb probe`";
}

/// A measured penalty with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    /// The ratio of the times.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}
