//! A known number of misfit I/O, planted among fitting I/O: a rule has to find these, and no more.
//!
//! Exactly `misfits` of `total` events are planted, at places that are random but drawn without replacement.
//! Clean means clean *for the kind planted*; whether another rule speaks is not promised.

use super::pace::{LatencyTable, WorkloadClock};
use super::recent::Recent;
use crate::event::{SynthEvent, SynthOp};
use crate::rng::{self, Rng};

/// Grid that the misaligned and odd-length kinds are judged on.
pub const UNIT_BYTES: u64 = 4096;
/// A database page: the usual clean I/O.
pub const PAGE_BYTES: u64 = 8192;
/// Clean starts are multiples of this.
pub const CLEAN_GRID_BYTES: u64 = 65_536;
/// A random read that an array takes for sequential: the size that the ZFS seed document found to do so.
pub const LARGE_BYTES: u64 = 131_072;
/// Length of the clean sequential writes among planted small random ones.
pub const SEQUENTIAL_WRITE_BYTES: u64 = 262_144;
/// Bytes that random starts are drawn from.
const SPAN_BYTES: u64 = 1 << 40;

/// The misfit, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MisfitKind {
    /// Planted: 8 KiB reads that begin 1 to 7 sectors past a multiple of 64 KiB, so off every grid from 4 KiB on.
    /// Clean: 8 KiB reads at multiples of 64 KiB, so on every grid up to there, and of whole 4 and 8 KiB units.
    Misaligned,
    /// Planted: reads of 8 KiB and 1 to 7 sectors, so no multiple of 4 KiB, at multiples of 64 KiB.
    /// Clean: the same reads of 8 KiB.
    OddLength,
    /// Planted: 8 KiB reads that begin 4 KiB before the end of a chunk: they touch two where one would do.
    /// Clean: 8 KiB reads at multiples of 8 KiB inside a chunk, which no 8 KiB read at such a place can leave.
    SplitChunk {
        /// Chunk; a multiple of 8 KiB, and at least 16 KiB.
        chunk_bytes: u64,
    },
    /// Planted: random reads of 128 KiB. Clean: random reads of 8 KiB, far under the 64 KiB from which an array
    /// may suspect a sequential reader.
    LooksSequential,
    /// Planted: random writes of 8 KiB, each a stream head. Clean: one stream of sequential 256 KiB writes,
    /// which is neither small nor random.
    SmallRandomWrites,
    /// Planted: 8 KiB reads on member 0 of a stripe. Clean: 8 KiB reads inside a chunk that take the members
    /// by turns, so their counts differ by one at most.
    MemberSkew {
        /// Chunk; a multiple of 8 KiB.
        chunk_bytes: u64,
        /// Members.
        members: u64,
    },
    /// Planted: 8 KiB reads inside a record, so the record is read for a part. Clean: reads of one whole record.
    RecordMismatch {
        /// Record; a multiple of 8 KiB, and at least 16 KiB.
        record_bytes: u64,
    },
}

impl MisfitKind {
    /// Whether `event`, taken alone, is of this kind, from the definition and not from how it was made.
    /// For [`MisfitKind::MemberSkew`]: whether it lands on member 0, which clean ones do by turns too.
    #[must_use]
    pub fn matches(self, event: &SynthEvent) -> bool {
        let (start, len) = (event.start_bytes, event.len_bytes);
        match self {
            Self::Misaligned => !start.is_multiple_of(UNIT_BYTES),
            Self::OddLength => !len.is_multiple_of(UNIT_BYTES),
            Self::SplitChunk { chunk_bytes } => {
                let touched = (event.end_bytes() - 1) / chunk_bytes - start / chunk_bytes + 1;
                touched > len.div_ceil(chunk_bytes)
            }
            Self::LooksSequential => event.op == SynthOp::Read && len >= LARGE_BYTES / 2,
            Self::SmallRandomWrites => event.op == SynthOp::Write && len < LARGE_BYTES / 2,
            Self::MemberSkew {
                chunk_bytes,
                members,
            } => (start / chunk_bytes).is_multiple_of(members),
            Self::RecordMismatch { record_bytes } => {
                !start.is_multiple_of(record_bytes) || !len.is_multiple_of(record_bytes)
            }
        }
    }
}

/// Parameters of a planted workload.
#[derive(Debug, Clone)]
pub struct PlantedMisfits {
    /// Seed.
    pub seed: u64,
    /// All events.
    pub total: u64,
    /// How many are planted; 0 is the control.
    pub misfits: u64,
    /// The kind.
    pub kind: MisfitKind,
    /// Added to the device time of each planted one, ns: a difference in latency that is known. 0 for none.
    pub penalty_ns: i64,
}

impl PlantedMisfits {
    /// A thousand among a hundred thousand, no slower than the others.
    #[must_use]
    pub const fn standard(kind: MisfitKind, seed: u64) -> Self {
        Self {
            seed,
            total: 100_000,
            misfits: 1_000,
            kind,
            penalty_ns: 0,
        }
    }

    /// The same with nothing planted.
    #[must_use]
    pub const fn control(kind: MisfitKind, seed: u64) -> Self {
        Self {
            misfits: 0,
            ..Self::standard(kind, seed)
        }
    }

    /// How many events [`MisfitKind::matches`] is true for.
    #[must_use]
    pub fn matching(&self) -> u64 {
        match self.kind {
            MisfitKind::MemberSkew { members, .. } => {
                self.misfits + (self.total - self.misfits).div_ceil(members)
            }
            _ => self.misfits,
        }
    }

    /// The events; prints the seed.
    ///
    /// # Panics
    /// When more are to be planted than there are events.
    pub fn iter(&self) -> impl Iterator<Item = SynthEvent> + use<> {
        rng::announce("PlantedMisfits", self.seed);
        assert!(self.misfits <= self.total, "more misfits than events");
        let mut state = MisfitsState::new(self.clone());
        (0..self.total).map(move |index| state.event(index))
    }
}

struct MisfitsState {
    plan: PlantedMisfits,
    rng: Rng,
    recent: Recent,
    pace: WorkloadClock,
    latency: LatencyTable,
    planted: u64,
}

impl MisfitsState {
    fn new(plan: PlantedMisfits) -> Self {
        Self {
            rng: Rng::new(plan.seed),
            recent: Recent::default(),
            pace: WorkloadClock::new(100_000, plan.seed),
            latency: LatencyTable::new(200_000, 200, 50_000_000, plan.seed ^ 0xb2),
            planted: 0,
            plan,
        }
    }

    fn event(&mut self, index: u64) -> SynthEvent {
        let clean_before = index - self.planted;
        // Selection without replacement: Knuth, Seminumerical Algorithms, 3.4.2, algorithm S.
        let misfit = self.rng.below(self.plan.total - index) < self.plan.misfits - self.planted;
        let (op, start_bytes, len_bytes) = if misfit {
            self.misfit()
        } else {
            self.clean(clean_before)
        };
        self.planted += u64::from(misfit);
        let penalty_ns = if misfit { self.plan.penalty_ns } else { 0 };
        SynthEvent {
            time_ns: self.pace.next_ns(self.rng.next_u64()),
            device: 0,
            op,
            start_bytes,
            len_bytes,
            device_ns: Some(self.latency.draw(self.rng.next_u64()) + penalty_ns),
            queue_ns: Some(self.pace.queue_ns(self.rng.next_u64())),
            pid: 1000,
            comm: "planted",
            cpu: (index % 4) as u32,
        }
    }

    fn clean(&mut self, index: u64) -> (SynthOp, u64, u64) {
        let read = SynthOp::Read;
        match self.plan.kind {
            MisfitKind::Misaligned | MisfitKind::OddLength | MisfitKind::LooksSequential => (
                read,
                self.place(CLEAN_GRID_BYTES, 0, PAGE_BYTES),
                PAGE_BYTES,
            ),
            MisfitKind::SplitChunk { .. } => {
                (read, self.place(PAGE_BYTES, 0, PAGE_BYTES), PAGE_BYTES)
            }
            // Beyond the range of random starts, so that the two never meet.
            MisfitKind::SmallRandomWrites => (
                SynthOp::Write,
                2 * SPAN_BYTES + index * SEQUENTIAL_WRITE_BYTES,
                SEQUENTIAL_WRITE_BYTES,
            ),
            MisfitKind::MemberSkew {
                chunk_bytes,
                members,
            } => (
                read,
                self.place_on_member(chunk_bytes, members, index % members),
                PAGE_BYTES,
            ),
            MisfitKind::RecordMismatch { record_bytes } => (
                read,
                self.place(record_bytes, 0, record_bytes),
                record_bytes,
            ),
        }
    }

    fn misfit(&mut self) -> (SynthOp, u64, u64) {
        let read = SynthOp::Read;
        let odd_bytes = 512 * self.rng.between(1, 7);
        match self.plan.kind {
            MisfitKind::Misaligned => (
                read,
                self.place(CLEAN_GRID_BYTES, odd_bytes, PAGE_BYTES),
                PAGE_BYTES,
            ),
            MisfitKind::OddLength => {
                let len_bytes = PAGE_BYTES + odd_bytes;
                (read, self.place(CLEAN_GRID_BYTES, 0, len_bytes), len_bytes)
            }
            MisfitKind::SplitChunk { chunk_bytes } => (
                read,
                self.place(chunk_bytes, chunk_bytes - UNIT_BYTES, PAGE_BYTES),
                PAGE_BYTES,
            ),
            MisfitKind::LooksSequential => {
                (read, self.place(LARGE_BYTES, 0, LARGE_BYTES), LARGE_BYTES)
            }
            MisfitKind::SmallRandomWrites => (
                SynthOp::Write,
                self.place(CLEAN_GRID_BYTES, 0, PAGE_BYTES),
                PAGE_BYTES,
            ),
            MisfitKind::MemberSkew {
                chunk_bytes,
                members,
            } => (
                read,
                self.place_on_member(chunk_bytes, members, 0),
                PAGE_BYTES,
            ),
            MisfitKind::RecordMismatch { .. } => {
                (read, self.place(PAGE_BYTES, 0, PAGE_BYTES), PAGE_BYTES)
            }
        }
    }

    /// A random multiple of `grid` and `offset` bytes more, that continues nothing.
    fn place(&mut self, grid: u64, offset: u64, len: u64) -> u64 {
        let rng = &mut self.rng;
        self.recent
            .fresh_start(len, || rng.below(SPAN_BYTES / grid) * grid + offset)
    }

    /// A random page of a random chunk of one member.
    fn place_on_member(&mut self, chunk: u64, members: u64, member: u64) -> u64 {
        let rng = &mut self.rng;
        self.recent.fresh_start(PAGE_BYTES, || {
            let row = rng.below(SPAN_BYTES / chunk / members);
            (row * members + member) * chunk + rng.below(chunk / PAGE_BYTES) * PAGE_BYTES
        })
    }
}

#[cfg(test)]
#[path = "misfits_tests.rs"]
mod tests;
