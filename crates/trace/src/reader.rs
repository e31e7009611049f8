//! The one interface of every format.

use std::sync::Arc;

use crate::batch::Batch;
use crate::error::Error;
use crate::op::{Layer, Op};
use crate::progress::Progress;
use crate::source::SourceInfo;

/// The wanted layer of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LayerChoice {
    /// The lowest that the beginning of the source shows; of each device, where the source says that it has one layer each.
    #[default]
    Lowest,
    /// This one.
    Only(Layer),
    /// Every layer, side by side.
    All,
}

impl LayerChoice {
    /// Whether events of `layer` are wanted when `lowest` is the lowest one present.
    #[must_use]
    pub fn takes(self, layer: Layer, lowest: Layer) -> bool {
        match self {
            LayerChoice::Lowest => layer == lowest,
            LayerChoice::Only(only) => layer == only,
            LayerChoice::All => true,
        }
    }
}

/// The wanted ones of the columns that a batch may leave empty. A reader that can do so does not even decode the
/// others; any reader may fill them all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Insert to issue.
    pub queue_ns: bool,
    /// Issue to complete.
    pub device_ns: bool,
    /// Process.
    pub pid: bool,
    /// Thread.
    pub tid: bool,
    /// Command.
    pub comm: bool,
    /// Control group.
    pub cgroup: bool,
    /// File.
    pub file: bool,
}

impl Columns {
    /// Everything.
    pub const ALL: Columns = Columns {
        queue_ns: true,
        device_ns: true,
        pid: true,
        tid: true,
        comm: true,
        cgroup: true,
        file: true,
    };

    /// The columns of a profile: no control groups and no files.
    pub const PROFILE: Columns = Columns {
        cgroup: false,
        file: false,
        ..Columns::ALL
    };
}

impl Default for Columns {
    fn default() -> Columns {
        Columns::ALL
    }
}

/// How a trace is to be read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The layer.
    pub layer: LayerChoice,
    /// Name of the format; `None` finds it out from the content.
    pub format: Option<String>,
    /// The optional columns.
    pub columns: Columns,
    /// The receiver of progress.
    pub progress: Option<Arc<Progress>>,
}

/// No source and no profile can have counted more: a million I/O a second for nine years. Readers of ready-made
/// counts refuse more, so that sums of counts, and percentages of them, stay far below 2^64.
pub const IOS_MAX: u64 = 1 << 48;

/// As many nanoseconds as the longest latency of the most I/O.
pub const DEVICE_NS_SUM_MAX: u128 = (IOS_MAX as u128) << 63;

/// A row of an already counted residue table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResidueRow {
    /// Device as the source names it.
    pub device: String,
    /// Operation.
    pub op: Op,
    /// Start modulo the table's modulus, in bytes.
    pub residue_bytes: u64,
    /// Length in bytes.
    pub len_bytes: u64,
    /// How many I/O.
    pub ios: u64,
    /// Of these, how many were timed.
    pub timed_ios: u64,
    /// Sum of their latencies in ns; 0 when none was timed.
    pub device_ns_sum: u128,
}

/// A whole residue table as text gives it: rows, with the modulus that they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResidueTable {
    /// Unit in bytes.
    pub unit_bytes: u64,
    /// Modulus in bytes.
    pub modulus_bytes: u64,
    /// Rows in the order of the source.
    pub rows: Vec<ResidueRow>,
}

/// The measure of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measured {
    /// Length of I/O in bytes.
    LenBytes,
    /// Distance from the end of the last I/O to the start of the next, in bytes; negative is backwards.
    SeekBytes,
    /// Issue to complete, in ns.
    DeviceNs,
    /// Time between two issues, in ns.
    InterarrivalNs,
    /// I/O in flight when one is issued.
    Depth,
    /// Start modulo a unit, in bytes.
    ResidueBytes,
}

/// A bucket of a histogram: `low..=high`, in the unit of the measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lowest value that it holds; `None` when open to below.
    pub low: Option<i64>,
    /// Highest value that it holds; `None` when open to above.
    pub high: Option<i64>,
    /// How many.
    pub ios: u64,
}

/// A histogram that a source hands over ready-made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Device, disk or process as the source names it.
    pub subject: String,
    /// Its measure.
    pub measured: Measured,
    /// Reads or writes only; `None` means all operations.
    pub op: Option<Op>,
    /// Buckets in rising order.
    pub buckets: Vec<Bucket>,
    /// Smallest, largest and mean value, where the source gives them.
    pub min_max_mean: Option<(i64, i64, i64)>,
    /// The interval of a source that prints its counts at regular intervals and begins again: such histograms of one device add
    /// up. `None` for counts of the whole run.
    pub interval: Option<CountedTime>,
    /// Sum of the lengths of these I/O, where the source gives it.
    pub bytes: Option<u64>,
}

/// The time in which counts were made, ns since the first interval of the source began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedTime {
    /// Its beginning.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
}

/// The subject of counts that a source does not tell apart by device.
pub const ALL_DEVICES: &str = "all devices";

/// Totals that a source hands over ready-made, as `align.d` prints them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlignTotals {
    /// Device as the source names it, or [`ALL_DEVICES`].
    pub subject: String,
    /// Length of the observation in ns; `None` when the source does not tell.
    pub elapsed_ns: Option<i64>,
    /// I/O issued.
    pub ios: u64,
    /// Of these, not starting on the unit.
    pub misaligned_ios: u64,
    /// Unit of the start alignment in bytes.
    pub start_unit_bytes: u64,
    /// Mean distance from the unit in bytes, over all I/O; rounded down by the source.
    pub mean_offset_bytes: u64,
    /// I/O whose length is no multiple of the length unit.
    pub odd_length_ios: u64,
    /// Unit of the length in bytes.
    pub len_unit_bytes: u64,
}

/// The result of a call of [`Reader::fill`].
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// The batch holds events; there may be more.
    Events,
    /// A whole residue table.
    Residue(ResidueTable),
    /// A ready-made histogram.
    Distribution(Distribution),
    /// Ready-made totals.
    Totals(AlignTotals),
    /// Nothing more; the batch is empty.
    End,
}

/// A source of events in issue order.
///
/// Data read before an error stay valid: the caller keeps its batches and reports the error beside them.
pub trait Reader: Send {
    /// Empties `batch` and fills it again.
    ///
    /// # Errors
    /// When nothing sensible can be read any more. Single damaged lines or records are no error; they are
    /// counted in [`SourceInfo::counts`].
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error>;

    /// The facts about the source; complete after [`Fill::End`] or an error.
    fn info(&self) -> &SourceInfo;
}

/// The answer of a format to the first bytes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sniff {
    /// It is this format.
    Yes,
    /// It is not.
    No,
    /// More bytes would tell; at the end of the input this means no.
    More,
}
