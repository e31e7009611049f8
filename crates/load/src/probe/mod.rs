//! The real grid of a target, and the cost of misaligned reads: found by reading alone, with short reads at chosen
//! starts.
//!
//! First reads of one length are compared by their starts, scale by scale (`scale`); if that shows a trace, windows are
//! halved down to one boundary (`locate`); fresh reads then decide whether it is one, and give the distance of such
//! boundaries and the first one (`confirm`); and reads on the grid are timed against reads off it (`cost`). Everything
//! is compared within rounds of short slices in random order (`meter`), by sequential tests
//! (`plumb_stats::sequential`); the absence of a grid is a separate result (`plumb_stats::equivalence`). In addition
//! the pace of the target is followed ([`drift`]), and in the end reads are repeated ([`cache`]).
//!
//! The search opens no device and asks no clock: reads go through a [`ProbeReader`], which tells the time. [`media`] judges
//! reads that no medium answered, [`conclusion`] weighs the verdict against everything known beside the reads, and [`stated`] holds
//! the grids that others state against the measured one.

use std::time::Duration;

use plumb_stats::Interval;
use plumb_stats::equivalence::Margin;
use serde::Serialize;

pub mod beside;
mod beyond;
pub mod cache;
pub mod conclusion;
mod confirm;
mod cost;
pub mod counters;
pub mod drift;
mod locate;
mod mapped;
pub mod media;
mod meter;
mod scale;
mod search;
pub mod session;
mod space;
pub mod stated;
mod watched;
pub mod write_back;
mod write_cache;
mod written;

pub use confirm::Candidate;
pub use search::probe;
pub use watched::Watched;
pub use write_cache::WriteCache;
pub use written::written;

/// Reads for a probe.
pub trait ProbeReader {
    /// Why a read failed.
    type Error;

    /// Reads `len_bytes` at each start with up to `depth` in flight; gives the time from the first to the last. The time of
    /// each comes into `latencies_ns`, which is emptied first.
    ///
    /// # Errors
    /// When a read failed.
    fn read_each(
        &mut self,
        starts: &[u64],
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Duration, Self::Error>;

    /// The same in two parts: the first `lead` for themselves, which are not timed, then the others.
    ///
    /// # Errors
    /// When a read failed.
    fn slice(
        &mut self,
        starts: &[u64],
        lead: usize,
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Sliced, Self::Error> {
        let (early, timed) = starts.split_at(lead.min(starts.len()));
        let beside = match early {
            [] => Duration::ZERO,
            early => self.read_each(early, len_bytes, depth, latencies_ns)?,
        };
        let timed = self.read_each(timed, len_bytes, depth, latencies_ns)?;
        Ok(Sliced { timed, beside })
    }

    /// Whether the user has ended the probe. No read begins after that.
    fn is_ended(&self) -> bool {
        false
    }
}

/// The result of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliced {
    /// Time of the timed part.
    pub timed: Duration,
    /// Time of the part before it.
    pub beside: Duration,
}

/// Why reading ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop<E> {
    /// Time is over, or the user has ended the probe.
    Time,
    /// No part that may be read has room for such a read.
    NoRoom,
    /// A read failed.
    Read(E),
}

/// A probe that a failed read has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken<E> {
    /// Why the read failed.
    pub error: E,
    /// Reads before it, and before those that were in flight with it.
    pub reads: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The settings of a probe.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Parts of the target that may be read: first byte and end.
    pub ranges: Vec<(u64, u64)>,
    /// Logical block: starts and lengths are multiples of it.
    pub block_bytes: u64,
    /// Reads in flight.
    pub depth: u32,
    /// Time of all reads.
    pub limit: Duration,
    /// A difference that does not matter.
    pub margin: Margin,
    /// Largest power of two that is looked for.
    pub granularity_max: u64,
    /// Granularities that are looked for besides, as a stack or a user states them.
    pub granularities: Vec<u64>,
    /// Size of the cache before the medium, where it is stated; 0 for none.
    pub cache_bytes: Option<u64>,
    /// The order of all reads hangs on it.
    pub seed: u64,
}

/// The result of the reads.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeVerdict {
    /// Boundaries, and the first one not at 0.
    Misaligned,
    /// Boundaries, the first one at 0.
    Aligned,
    /// No start costs more than the margin.
    NoPenalty,
    /// Undecided.
    Inconclusive(Reason),
}

/// The reason why it is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Time was over first.
    Time,
    /// The user ended it first.
    Ended,
    /// The target, or its readable part, is too small.
    NoRoom,
    /// The readable part is not at least twice as large as the stated cache before it.
    Cache,
    /// There are boundaries from 0 on, and whether some of them cost more, from elsewhere on, is open.
    Coarser,
}

/// The result for a granularity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Searched {
    /// Bytes.
    pub granularity_bytes: u64,
    /// Length of the reads.
    pub len_bytes: u64,
    /// No start cost a share more than this; `None` where that was not shown.
    pub flat_within: Option<f64>,
}

/// The cost of a read at a start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The start, modulo the granularity.
    pub offset_bytes: u64,
    /// ns a read.
    pub ns: f64,
}

/// The result of a probe.
#[derive(Clone, Debug)]
pub struct Probed {
    /// Its verdict.
    pub verdict: ProbeVerdict,
    /// The grid, where there is one.
    pub grid: Option<Candidate>,
    /// Time of reads off the grid to that of reads on it.
    pub penalty: Option<Interval>,
    /// Length of these reads.
    pub penalty_len_bytes: u64,
    /// Time of the shortest reads across a boundary to that of others.
    pub crossing: Option<Interval>,
    /// For the verdict *aligned*: the share that an unseen grid of 2 or 4 times the granularity and of another offset
    /// may cost; `None` if that is within the margin.
    pub coarser_within: Option<f64>,
    /// Granularities in the order in which they were looked for.
    pub searched: Vec<Searched>,
    /// Cost by start over the granularity.
    pub bars: Vec<Bar>,
    /// Reads that were made.
    pub reads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time that they took.
    pub spent: Duration,
    /// ns of a short read once the rate was steady.
    pub settled_ns: Option<f64>,
    /// The pace from then on.
    pub course: drift::PaceCourse,
    /// The cache found; `None` if its size was stated, or too little was read.
    pub cache: Option<cache::Cache>,
    /// Bytes of the parts that were read.
    pub space_bytes: u64,
}
