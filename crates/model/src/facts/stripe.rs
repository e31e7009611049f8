//! Facts about stripes and parity.

use plumb_geometry::{Bounds, Bytes, Share};
use plumb_stack::Source;
use plumb_stack::node_facts::VolumeManager;
use serde::{Deserialize, Serialize};

use super::ArrayEvidence;
use crate::counted::CountedShare;
use crate::io_size::IoSize;
use crate::rule::PlanKind;

/// `narrow-stripe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NarrowStripe {
    /// The chunk.
    pub chunk_bytes: Bytes,
    /// Members of the stripe.
    pub members: u64,
    /// Size of the I/O.
    pub io: IoSize,
    /// Whole I/O that a chunk holds.
    pub ios_per_chunk: u64,
    /// Share of such I/O at random sectors that touch two chunks.
    pub split: Option<Share>,
    /// The smallest chunk that is never narrow.
    pub wanted_chunk_bytes: Bytes,
    /// The same share with that chunk.
    pub wanted_split: Option<Share>,
    /// The source of the layout.
    pub source: Option<Source>,
}

rule! {
    NARROW_STRIPE: NarrowStripe(NarrowStripe) "narrow-stripe", Layout, false, Some(PlanKind::Chunk),
        "the chunk of a stripe is small against the I/O", "`--page` or a profile";
}

/// `split-io`: counted in a profile, or expected from the layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitIo {
    /// The chunk.
    pub chunk_bytes: Bytes,
    /// The striped device; absent where the user gave the chunk for a trace.
    pub on: Option<String>,
    /// The source of the chunk; absent if the user gave it for a trace.
    pub source: Option<Source>,
    /// I/O that touch more chunks than their length needs; absent for a layout without a profile.
    pub counted: Option<CountedShare>,
    /// The device whose I/O were counted, if that is not the target.
    pub counted_on: Option<String>,
    /// Share that must touch more chunks, from the layout; absent where I/O were counted.
    pub expected: Option<Share>,
    /// Size of the I/O that the expected share is for.
    pub io: Option<IoSize>,
    /// Distance of the start of the target from the chunk boundary before; absent for a trace.
    pub past_bytes: Option<Bytes>,
    /// The facts of a trace beyond the share.
    pub trace: Option<SplitInTrace>,
}

rule! {
    SPLIT_IO: SplitIo(SplitIo) "split-io", Io, true, Some(PlanKind::Chunk),
        "I/O touch more chunks than their length needs", "`--chunk`; from a layout `--page` or a profile";
}

/// The facts of a trace about I/O across chunks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitInTrace {
    /// Share of split I/O that random starts would give.
    pub random_share: Bounds<f64>,
    /// The commonest length, with the share that random sectors would give.
    pub commonest: Option<SplitOfLength>,
    /// I/O that touch several chunks only because they are longer than one.
    pub longer: Bounds<u64>,
}

/// The share of I/O of a length that random sectors split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitOfLength {
    /// The length.
    pub len_bytes: Bytes,
    /// The share.
    pub split: Share,
}

/// `stripe-segment-mismatch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripeSegmentMismatch {
    /// The chunk.
    pub chunk_bytes: Bytes,
    /// The segment.
    pub segment: Segment,
    /// Rest of the chunk behind its last whole segment.
    pub past_bytes: Bytes,
    /// Devices below whose segment does not divide the chunk.
    pub devices_off: u64,
    /// Devices below.
    pub devices: u64,
    /// The nearest multiples of the segment.
    pub nearest_bytes: Vec<Bytes>,
    /// A large multiple of the segment; absent if the segment is larger than any chunk that is proposed.
    pub proposed_bytes: Option<Bytes>,
    /// The source of the chunk.
    pub source: Option<Source>,
}

rule! {
    STRIPE_SEGMENT_MISMATCH: StripeSegmentMismatch(StripeSegmentMismatch) "stripe-segment-mismatch", Layout, true, Some(PlanKind::Chunk),
        "a software chunk is no multiple of the segment of the array below", "a known array or `--segment`";
}

/// The segment of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The segment.
    pub bytes: Bytes,
    /// The LUN.
    pub on: String,
    /// Its source.
    pub source: Source,
}

/// `parity-small-writes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParitySmallWrites {
    /// Data of a full stripe.
    pub stripe_bytes: Bytes,
    /// Chunks of data in a stripe.
    pub data_chunks: u64,
    /// Chunks of parity in a stripe.
    pub parity: u32,
    /// Disk operations of a small write.
    pub operations: u64,
    /// Writes that cover a stripe only in part; absent without a profile.
    pub counted: Option<CountedShare>,
    /// The device whose I/O were counted, if that is not the target.
    pub counted_on: Option<String>,
    /// Size of the I/O; absent where I/O were counted.
    pub io: Option<IoSize>,
    /// The source of the layout.
    pub source: Option<Source>,
}

rule! {
    PARITY_SMALL_WRITES: ParitySmallWrites(ParitySmallWrites) "parity-small-writes", Layout, false, None,
        "writes of less than a full stripe on parity RAID", "`--page` or a profile";
}

/// `software-raid5`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftwareRaid5 {
    /// The volume manager that computes the parity.
    pub manager: VolumeManager,
    /// Members of the array.
    pub members: u64,
    /// Chunks of parity in a stripe.
    pub parity: u32,
    /// Disk operations of a small write.
    pub operations: u64,
    /// The source of the manager.
    pub source: Source,
}

rule! {
    SOFTWARE_RAID5: SoftwareRaid5(SoftwareRaid5) "software-raid5", Layout, true, None,
        "parity is computed in software", "nothing";
}

/// `software-stripe-on-hardware-raid`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftwareStripeOnHardwareRaid {
    /// The chunk of the software stripe.
    pub chunk_bytes: Bytes,
    /// LUNs of an array below.
    pub luns: u64,
    /// Devices below.
    pub devices: u64,
    /// One of the LUNs.
    pub lun: String,
    /// Why it counts as one.
    pub because: ArrayEvidence,
}

rule! {
    SOFTWARE_STRIPE_ON_HARDWARE_RAID: SoftwareStripeOnHardwareRaid(SoftwareStripeOnHardwareRaid) "software-stripe-on-hardware-raid", Layout, true, None,
        "a software stripe consists of LUNs that an array already stripes", "nothing";
}
