//! Why a rule cannot tell.

use plumb_geometry::{Bytes, Grid, Share};
use plumb_profile::fit::Unknown;
use plumb_stack::node_facts::ContentKind;
use plumb_stack::{GridDoubt, Obstacle};
use plumb_trace::Layer;
use serde::{Deserialize, Serialize};

use crate::facts::{ArrayEvidence, Keeper};
use crate::grid::GridOf;
use crate::io_size::IoSize;

/// Why a rule cannot tell. `report` has the sentences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(
    missing_docs,
    reason = "fields repeat the names of facts, with the same meaning and unit"
)]
pub enum Reason {
    /// Too few were seen to judge a share.
    TooFew {
        what: Counting,
        seen: u64,
        needed: u64,
    },
    /// The residue table does not hold the answer.
    Table { why: Unknown },
    /// The events that the source lost may hold a defect.
    Lost { count: u64, of: u64, lost: u64 },
    /// No I/O is off the assumed grid, and no other grid is known.
    BeyondAssumed {
        count: u64,
        of: u64,
        granularity_bytes: Bytes,
    },
    /// No I/O is off the grid of a virtual disk, and the layers below cannot be seen.
    BeyondShown { count: u64, of: u64, grid: Grid },
    /// No I/O is off the unit that the source tested, and it tested no larger one.
    BeyondTested {
        count: u64,
        of: u64,
        granularity_bytes: Bytes,
    },
    /// A trace of completions alone has no streams.
    CompletionsOnly,
    /// Files of the recording are missing.
    MissingFiles { files: u64 },
    /// The source does not tell the order of I/O.
    Unordered,
    /// The source tells no single lengths.
    LengthsNotTold,
    /// Places at the vfs layer are places in files.
    PlacesInFiles,
    /// A trace of a layer below the one that decides about records.
    BelowRecords { layer: Layer },
    /// The bytes at the device for this file system alone are unknown.
    DeviceUnknown { why: String },
    /// Processes use ways to the data that nobody counts.
    Uncounted { ways: Vec<String> },
    /// Writes went through the cache, and the watch did not start and end synced.
    NotSynced,

    /// The layers below are not all known, or their grids are not, for these reasons of the stack.
    Stack { because: Vec<Obstacle>, more: u64 },
    /// No grid is known below.
    NoGrid,
    /// The device holds a layer without further known facts.
    HoldsLayer { layer: ContentKind },
    /// Chunks between the layers move the start on a discard unit.
    DiscardVaries {
        unit_bytes: Bytes,
        step_bytes: Bytes,
        on: String,
    },
    /// Chunks between are no multiples of the unit.
    ChunksBelow { on: String },
    /// Chunks between differ from those below, so that the share differs from one to the next.
    ChunksBetween { devices: Vec<String> },
    /// The fit of an export differs from one chunk to the next.
    DiffersByChunk,
    /// Nothing is known of a device beyond the assumed unit.
    NothingBeyond {
        on: String,
        granularity_bytes: Bytes,
    },
    /// The chunk was inferred and is not relied on.
    ChunkDoubted { why: GridDoubt },
    /// The chunk is wide enough for I/O of an assumed size.
    WideForAssumed { chunk_bytes: Bytes, io: IoSize },
    /// Few I/O of an assumed size cross chunks.
    FewSplitForAssumed {
        io: IoSize,
        on: String,
        split: Share,
    },
    /// An offset is on a unit that is only assumed.
    OnAssumedUnit {
        grid: GridOf,
        given_bytes: Option<Bytes>,
    },
    /// The lengths of extents are not known.
    ExtentLengths { on: String },
    /// The segment of an array is not known.
    Segment { on: String },
    /// Whether a device is a drive or a LUN is not known.
    DriveOrLun { device: String },
    /// A LUN has no identity by which to find its other paths.
    NoIdentity { because: ArrayEvidence },
    /// The paths of a multipath device are not known.
    Paths,
    /// A full stripe does not fit 64 bits.
    StripeTooLong,
    /// The writes to a parity array are not known.
    WritesToStripe { stripe_bytes: Bytes },
    /// The writes to a flash drive are not known.
    WritesToFlash { on: String, unit_bytes: Bytes },
    /// The I/O to records are not known.
    IoToRecords { keeper: Keeper, record_bytes: Bytes },
    /// The manager that computes parity is not known.
    ParityManager,
    /// Chunks and parity are not known.
    ParityLayout,
    /// The superblock does not tell the stripe.
    StripeNotTold { on: String },
    /// A file system is configured for a stripe that cannot be checked from here.
    StripeNotVisible { told_bytes: Bytes, on: String },
    /// The blocks that an export states are not known.
    StatedBlocks,
    /// The largest request of the hardware is not known.
    HardwareRequest,
    /// The read policy is not known.
    ReadPolicy,
    /// The mount options are not known.
    MountOptions,
    /// `/etc/system` is not known, and may set `md_mirror_wow_flg`.
    SystemFile,
    /// `maxphys` is not known.
    Maxphys,
    /// The size of resync I/O is not known.
    ResyncSize,
    /// `segmap_percent` is not known.
    Segmap { default_percent: u64 },
    /// `nmd` is not known.
    Nmd { metadevices: u64, default: u64 },
    /// The volume that a rate is asked of is not known.
    WhichVolume { volumes: u64 },
    /// The rate of one disk is not known.
    DiskRate,
    /// The demand is not known.
    Demand,
    /// The place of the bytes on disks is not known.
    PlaceOnDisks,
}

/// Things that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum Counting {
    /// Reads and writes.
    Ios,
    /// Writes.
    Writes,
    /// Calls of processes.
    Calls,
    /// Pieces of I/O for members of a stripe.
    Pieces {
        /// The members.
        members: u64,
    },
    /// Windows of a history with enough I/O.
    Windows,
    /// Windows of a history with enough timed I/O that are nearly all reads, or nearly all writes.
    TimedWindows,
}

impl Reason {
    /// The reason without the names of devices: reasons that differ only in those are printed once.
    #[must_use]
    pub fn without_names(&self) -> Reason {
        let mut reason = self.clone();
        match &mut reason {
            Reason::DiscardVaries { on, .. }
            | Reason::ChunksBelow { on }
            | Reason::NothingBeyond { on, .. }
            | Reason::FewSplitForAssumed { on, .. }
            | Reason::ExtentLengths { on }
            | Reason::Segment { on }
            | Reason::DriveOrLun { device: on }
            | Reason::WritesToFlash { on, .. }
            | Reason::StripeNotTold { on }
            | Reason::StripeNotVisible { on, .. } => on.clear(),
            Reason::OnAssumedUnit { grid, .. } => grid.on.clear(),
            Reason::ChunksBetween { devices } => devices.clear(),
            _ => {}
        }
        reason
    }
}
