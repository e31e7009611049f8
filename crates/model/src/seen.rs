//! I/O that passed through the target of a finding while its devices were watched.

use plumb_geometry::{Bounds, Bytes};
use plumb_profile::latency_fit::LatencyByFit;
use plumb_trace::Layer;
use serde::{Deserialize, Serialize};

/// I/O through a target, or through a layer below that carries it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The device at which they were counted.
    pub on: String,
    /// Whether that device is below the target.
    pub is_below: bool,
    /// The layer at which they were counted.
    pub layer: Layer,
    /// How long the devices were watched; absent for a profile of another time.
    pub seconds: Option<f64>,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes that they moved.
    pub moved_bytes: Bounds<u64>,
    /// Mean latency, issue to completion; absent if none was timed.
    pub mean_ns: Option<f64>,
    /// Their fit on the grid of the finding; absent for a finding that is not about a start.
    pub fit: Option<SeenFit>,
    /// The processes that sent most of them.
    pub senders: Vec<SentBy>,
    /// Processes beyond those.
    pub more_senders: u64,
}

/// The fit of I/O on the grid that the target is off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenFit {
    /// Reads and writes.
    pub ios: u64,
    /// Those that start off the grid.
    pub misaligned: Bounds<u64>,
    /// Cells touched per cell that the lengths need, over all of them; absent without cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells_ratio: Option<Bounds<f64>>,
    /// The same I/O if the target started on the grid; absent where no single move does that.
    pub moved: Option<FitAfterMove>,
    /// Latency of I/O off the grid against those on it, for all I/O of the disk; absent if none was timed.
    pub latency: Option<LatencyByFit>,
}

/// Exact counts for the same I/O after a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FitAfterMove {
    /// Bytes by which the start moves up.
    pub by_bytes: Bytes,
    /// Reads and writes.
    pub ios: u64,
    /// Those that would still start off the grid.
    pub misaligned: Bounds<u64>,
}

/// I/O of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentBy {
    /// Command of the process.
    pub comm: String,
    /// Its I/O.
    pub ios: u64,
}

impl Seen {
    /// Reads and writes.
    #[must_use]
    pub const fn ios(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// The latency of those that start off the grid, against the others.
    #[must_use]
    pub fn latency_by_fit(&self) -> Option<&LatencyByFit> {
        self.fit.as_ref()?.latency.as_ref()
    }
}
