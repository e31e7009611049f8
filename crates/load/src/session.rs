//! A target that is read at starts that somebody else chose, or written back there: for measurements that decide, slice by
//! slice, where the next I/O goes.

use std::time::{Duration, Instant};

use plumb_sys::{Completion, Errno, IoTarget, MemoryShape, Ring};

use crate::engine::{Engine, EngineChoice};
use crate::outcome::Means;
use crate::permission::MayWrite;
use crate::pool::Pool;
use crate::run::LoadError;
use crate::tally::IoFailure;
use crate::target::Target;
use crate::workload::{LEN_BYTES_MAX, WorkloadError};

/// I/O that have not moved for this time do not come back.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// Writes in flight start at least this far apart: no write shares a cell of up to this length with another one in
/// flight.
pub const APART_BYTES: u64 = 4 << 20;

/// Stands for an I/O that failed among latencies.
pub const FAILED_NS: u64 = u64::MAX;

/// A target with all that is needed to send it I/O. It belongs to one thread.
pub struct Session<'a> {
    target: &'a Target,
    means: Means,
    engine: AnyEngine,
    len_bytes_max: u32,
    slots: Vec<Slot>,
}

/// A ring, or as many threads as I/O may be in flight.
enum AnyEngine {
    Ring(Box<Ring>),
    Pool(Pool),
}

impl AnyEngine {
    fn new(means: Means, target: &IoTarget, shape: MemoryShape) -> Result<AnyEngine, Errno> {
        match means {
            Means::Ring { .. } => {
                Ring::new(target, shape).map(|ring| AnyEngine::Ring(Box::new(ring)))
            }
            Means::Blocking { .. } => <Pool as Engine>::new(target, shape).map(AnyEngine::Pool),
        }
    }
}

/// Room for one I/O: whose it is, and since when it is in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    number: usize,
    start: u64,
    issued: Option<Instant>,
}

/// The result of one slice of I/O.
#[derive(Clone, Debug, Default)]
pub struct SessionSlice {
    /// From the first issue to the last completion; for write-back, of the timed writes alone.
    pub elapsed: Duration,
    /// Time of the untimed part.
    pub beside: Duration,
    /// I/O that failed; their places in the latencies hold [`FAILED_NS`].
    pub failed: u64,
    /// How the first of them failed.
    pub failure: Option<IoFailure>,
    /// Whether they were writes.
    pub is_write: bool,
}

/// A command for an engine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Read,
    WriteSlot,
}

/// I/O of one slice that go to slots of their own, or to whichever is free.
struct Batch<'b> {
    doing: Doing,
    starts: &'b [u64],
    len_bytes: u32,
    depth: u32,
    /// The slot of the first, those behind it having the next ones; `None` where any will do.
    first_slot: Option<usize>,
}

impl<'a> Session<'a> {
    /// Prepares for I/O of up to `len_bytes_max` with up to `slots` in flight. Write-back reads before, as much at once
    /// as there are slots.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn open(
        target: &'a Target,
        len_bytes_max: u32,
        slots: u32,
        choice: EngineChoice,
    ) -> Result<Session<'a>, LoadError> {
        let (len_bytes_max, slots) = (len_bytes_max.clamp(1, LEN_BYTES_MAX), slots.max(1));
        let means = choice.found(target.io());
        let shape = MemoryShape {
            slots,
            len_bytes_max,
            has_noise: false,
        };
        let engine = AnyEngine::new(means, target.io(), shape).map_err(|errno| {
            let target = target.name().to_owned();
            LoadError::NoMeans {
                target,
                what: "a ring or memory",
                errno,
            }
        })?;
        let slots = vec![Slot::default(); slots as usize];
        Ok(Session {
            target,
            means,
            engine,
            len_bytes_max,
            slots,
        })
    }

    /// Its target.
    #[must_use]
    pub fn target(&self) -> &'a Target {
        self.target
    }

    /// How I/O are made.
    #[must_use]
    pub fn means(&self) -> Means {
        self.means
    }

    /// Reads `len_bytes` at each start, in this order, with up to `depth` in flight; `latencies_ns` has one entry a start
    /// afterwards, in the order of the starts.
    ///
    /// # Errors
    /// When starts or length do not fit the target or this session, or I/O do not come back.
    pub fn read_each(
        &mut self,
        starts: &[u64],
        len_bytes: u32,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<SessionSlice, LoadError> {
        self.must_fit(starts, len_bytes)?;
        latencies_ns.clear();
        latencies_ns.resize(starts.len(), FAILED_NS);
        self.send(
            &Batch {
                doing: Doing::Read,
                starts,
                len_bytes,
                depth,
                first_slot: None,
            },
            latencies_ns,
        )
    }

    /// Reads `len_bytes` at each start, as many as there are slots, then writes the same bytes there, and continues
    /// with the next ones: for any end of this process and of those writes, the target keeps its content, unless
    /// another program writes there. Writes in flight are [`APART_BYTES`] apart. The first `lead` of them are waited
    /// for before the others begin, and not timed; latencies are those of writes. After a failure nothing more is
    /// written.
    ///
    /// # Errors
    /// When the permission is for another target, starts or length do not fit, or I/O do not come back.
    pub fn write_back_each(
        &mut self,
        may_write: &MayWrite,
        starts: &[u64],
        lead: usize,
        len_bytes: u32,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<SessionSlice, LoadError> {
        if !may_write.covers(self.target) {
            return Err(WorkloadError::NotPermitted {
                target: self.target.name().to_owned(),
            }
            .into());
        }
        self.must_fit(starts, len_bytes)?;
        latencies_ns.clear();
        latencies_ns.resize(starts.len(), FAILED_NS);
        let mut all = SessionSlice {
            is_write: true,
            ..SessionSlice::default()
        };
        let (turn, mut lead) = (self.slots.len(), lead);
        for (starts, latencies_ns) in starts.chunks(turn).zip(latencies_ns.chunks_mut(turn)) {
            let batch = |doing, first_slot: usize, starts| Batch {
                doing,
                starts,
                len_bytes,
                depth,
                first_slot: Some(first_slot),
            };
            let read = self.send(&batch(Doing::Read, 0, starts), latencies_ns)?;
            all.beside += read.elapsed;
            if read.failed > 0 {
                return Ok(SessionSlice {
                    elapsed: all.elapsed,
                    beside: all.beside,
                    ..read
                });
            }
            let untimed = lead.min(starts.len());
            lead -= untimed;
            let (early, timed) = starts.split_at(untimed);
            let (early_ns, timed_ns) = latencies_ns.split_at_mut(untimed);
            let early = self.send(&batch(Doing::WriteSlot, 0, early), early_ns)?;
            let timed = self.send(&batch(Doing::WriteSlot, untimed, timed), timed_ns)?;
            all.beside += early.elapsed;
            all.elapsed += timed.elapsed;
            all.failed += early.failed + timed.failed;
            all.failure = early.failure.or(timed.failure);
            if all.failed > 0 {
                break;
            }
        }
        Ok(all)
    }

    fn must_fit(&self, starts: &[u64], len_bytes: u32) -> Result<(), WorkloadError> {
        let out = |what, found: u64, expected| {
            Err(WorkloadError::OutOfRange {
                what,
                found: found.to_string(),
                expected,
            })
        };
        if !(1..=self.len_bytes_max).contains(&len_bytes) {
            return out(
                "length",
                len_bytes.into(),
                "at most that with which the session was opened",
            );
        }
        let (size_bytes, block_bytes) = (self.target.size_bytes(), self.target.block_bytes());
        let block = u64::from(block_bytes);
        let off = std::iter::once(("a length", u64::from(len_bytes)))
            .chain(starts.iter().map(|&start| ("a start", start)))
            .find(|(_, bytes)| !bytes.is_multiple_of(block));
        if let Some((what, found_bytes)) = off {
            let target = self.target.name().to_owned();
            let logical_block_bytes = block_bytes;
            return Err(WorkloadError::OffLogicalBlock {
                target,
                what,
                found_bytes,
                logical_block_bytes,
            });
        }
        let ends = starts
            .iter()
            .map(|start| start.saturating_add(len_bytes.into()));
        match ends.max().filter(|&end| end > size_bytes) {
            Some(end_bytes) => {
                let target = self.target.name().to_owned();
                Err(WorkloadError::BeyondEnd {
                    target,
                    end_bytes,
                    size_bytes,
                })
            }
            None => Ok(()),
        }
    }

    fn send(
        &mut self,
        batch: &Batch<'_>,
        latencies_ns: &mut [u64],
    ) -> Result<SessionSlice, LoadError> {
        let began = Instant::now();
        let sent = match &mut self.engine {
            AnyEngine::Ring(ring) => send(&mut **ring, &mut self.slots, batch, latencies_ns),
            AnyEngine::Pool(pool) => send(pool, &mut self.slots, batch, latencies_ns),
        };
        let mut slice = sent.map_err(|Stuck| LoadError::Stuck {
            target: self.target.name().to_owned(),
            seconds: STUCK_AFTER.as_secs(),
        })?;
        slice.elapsed = began.elapsed();
        Ok(slice)
    }
}

/// I/O do not come back.
struct Stuck;

impl Batch<'_> {
    /// The slot for an I/O, where it may be issued now.
    fn slot_for(&self, number: usize, slots: &[Slot]) -> Option<usize> {
        let mut in_flight = slots.iter().filter(|slot| slot.issued.is_some());
        if self.doing == Doing::WriteSlot
            && in_flight.any(|slot| slot.start.abs_diff(self.starts[number]) < APART_BYTES)
        {
            return None;
        }
        match self.first_slot {
            Some(first) => Some(first + number),
            None => slots.iter().position(|slot| slot.issued.is_none()),
        }
    }

    fn queue<E: Engine>(&self, engine: &mut E, slot: u32, start: u64) {
        match self.doing {
            Doing::Read => engine.queue_read(slot, start, self.len_bytes),
            Doing::WriteSlot => engine.queue_write_of_slot(slot, start, self.len_bytes),
        }
    }
}

/// Sends all I/O of a batch, in their order.
fn send<E: Engine>(
    engine: &mut E,
    slots: &mut [Slot],
    batch: &Batch<'_>,
    latencies_ns: &mut [u64],
) -> Result<SessionSlice, Stuck> {
    let mut slice = SessionSlice::default();
    let depth = batch.depth.clamp(1, slots.len() as u32);
    let mut numbers = 0..batch.starts.len();
    let mut now = Instant::now();
    let mut moved = now;
    loop {
        while engine.in_flight() < depth && !numbers.is_empty() {
            let Some(slot) = batch.slot_for(numbers.start, slots) else {
                break;
            };
            let Some(number) = numbers.next() else { break };
            let start = batch.starts[number];
            slots[slot] = Slot {
                number,
                start,
                issued: Some(now),
            };
            batch.queue(engine, slot as u32, start);
        }
        if engine.in_flight() == 0 {
            return Ok(slice);
        }
        let handed_over = engine.submit(1, STUCK_AFTER);
        now = Instant::now();
        engine.reap(|completion| {
            moved = now;
            let slot = &mut slots[completion.slot as usize];
            let issued = slot.issued.take().unwrap_or(now);
            let ns = (now - issued).as_nanos() as u64;
            latencies_ns[slot.number] = slice.count(completion, batch.len_bytes, ns);
        });
        if handed_over.is_err() || now - moved >= STUCK_AFTER {
            return Err(Stuck);
        }
    }
}

impl SessionSlice {
    /// Counts one that came back; its latency, or the mark of a failure.
    fn count(&mut self, completion: Completion, len_bytes: u32, ns: u64) -> u64 {
        let failure = match completion.result {
            Ok(bytes) if bytes == len_bytes => return ns,
            Ok(_) => IoFailure::Short,
            Err(errno) => IoFailure::Errno(errno),
        };
        self.failed += 1;
        self.failure = self.failure.or(Some(failure));
        FAILED_NS
    }
}
