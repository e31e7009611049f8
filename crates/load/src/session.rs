//! A target that is read or written at starts that somebody else chose: for measurements that decide, slice by slice, where
//! the next I/O goes.

use std::time::{Duration, Instant};

use plumb_sys::{Blocking, Completion, Errno, IoTarget, Ring, Shape};

use crate::engine::{Engine, EngineChoice};
use crate::outcome::Means;
use crate::permission::MayWrite;
use crate::run::LoadError;
use crate::tally::IoFailure;
use crate::target::Target;
use crate::workload::{LEN_BYTES_MAX, WorkloadError};

/// I/O that have not moved for so long do not come back.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// Stands for an I/O that failed among latencies.
pub const FAILED_NS: u64 = u64::MAX;

/// A target with all that is needed to send it I/O. It belongs to one thread.
pub struct Session<'a> {
    target: &'a Target,
    means: Means,
    engines: Engines,
    len_bytes_max: u32,
    depth_max: u32,
    flights: Vec<Flight>,
}

/// One ring, or as many calls as I/O may be in flight.
enum Engines {
    Ring(Box<Ring>),
    Blocking(Vec<Blocking>),
}

impl Engines {
    fn new(means: Means, target: &IoTarget, len_bytes_max: u32, depth: u32) -> Result<Engines, Errno> {
        let shape = |slots| Shape { slots, len_bytes_max, has_noise: true };
        match means {
            Means::Ring { .. } => Ring::new(target, shape(depth)).map(|ring| Engines::Ring(Box::new(ring))),
            Means::Blocking { .. } => {
                let calls = (0..depth).map(|_| Blocking::new(target, shape(1)));
                calls.collect::<Result<_, _>>().map(Engines::Blocking)
            }
        }
    }
}

/// An I/O in flight: which one it is, and when it was issued.
#[derive(Clone, Copy, Debug)]
struct Flight {
    number: usize,
    issued: Instant,
}

/// What came of one slice of I/O.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// From the first issue to the last completion; where writes take turns with reads, of the writes alone.
    pub elapsed: Duration,
    /// I/O that failed; their places in the latencies hold [`FAILED_NS`].
    pub failed: u64,
    /// How the first of them failed.
    pub failure: Option<IoFailure>,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes without a meaning: what was there is lost.
    Noise,
    /// What was read there just before. Only while nobody else writes there.
    AsRead,
}

/// What an engine shall do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Read,
    WriteNoise,
    WriteSlot,
}

impl<'a> Session<'a> {
    /// Makes ready for I/O of up to `len_bytes_max` with up to `depth_max` in flight.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn open(
        target: &'a Target,
        len_bytes_max: u32,
        depth_max: u32,
        choice: EngineChoice,
    ) -> Result<Session<'a>, LoadError> {
        let (len_bytes_max, depth_max) = (len_bytes_max.clamp(1, LEN_BYTES_MAX), depth_max.max(1));
        let means = choice.found(target.io());
        let engines = Engines::new(means, target.io(), len_bytes_max, depth_max).map_err(|errno| {
            let target = target.name().to_owned();
            LoadError::NoMeans { target, what: "a ring or memory", errno }
        })?;
        let nothing = Flight { number: 0, issued: Instant::now() };
        let flights = vec![nothing; depth_max as usize];
        Ok(Session { target, means, engines, len_bytes_max, depth_max, flights })
    }

    /// What it reads and writes.
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
    ) -> Result<Slice, LoadError> {
        self.must_fit(starts, len_bytes)?;
        latencies_ns.clear();
        latencies_ns.resize(starts.len(), FAILED_NS);
        self.each(Doing::Read, starts, len_bytes, depth, latencies_ns)
    }

    /// Writes `len_bytes` at each start, as [`Session::read_each`] reads. With [`Content::AsRead`] as many are read as may be
    /// in flight, written back at the same places, and so on; latencies are those of the writes. A write that follows a read
    /// that failed is not made.
    ///
    /// # Errors
    /// When the permission is for another target, starts or length do not fit, or I/O do not come back.
    pub fn write_each(
        &mut self,
        may_write: &MayWrite,
        content: Content,
        starts: &[u64],
        len_bytes: u32,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Slice, LoadError> {
        if !may_write.covers(self.target) {
            return Err(WorkloadError::NotPermitted { target: self.target.name().to_owned() }.into());
        }
        self.must_fit(starts, len_bytes)?;
        latencies_ns.clear();
        latencies_ns.resize(starts.len(), FAILED_NS);
        if content == Content::Noise {
            return self.each(Doing::WriteNoise, starts, len_bytes, depth, latencies_ns);
        }
        let mut all = Slice::default();
        let turn = depth.clamp(1, self.depth_max) as usize;
        for (starts, latencies_ns) in starts.chunks(turn).zip(latencies_ns.chunks_mut(turn)) {
            // Each start goes to one slot in both directions: as many I/O as slots, in the same order.
            let read = self.each(Doing::Read, starts, len_bytes, turn as u32, latencies_ns)?;
            let written = match read.failed {
                0 => self.each(Doing::WriteSlot, starts, len_bytes, turn as u32, latencies_ns)?,
                _ => {
                    latencies_ns.fill(FAILED_NS);
                    Slice { elapsed: Duration::ZERO, failed: starts.len() as u64, ..read }
                }
            };
            all.elapsed += written.elapsed;
            all.failed += written.failed;
            all.failure = all.failure.or(written.failure);
        }
        Ok(all)
    }

    fn must_fit(&self, starts: &[u64], len_bytes: u32) -> Result<(), WorkloadError> {
        let out = |what, found: u64, expected| {
            Err(WorkloadError::OutOfRange { what, found: found.to_string(), expected })
        };
        if !(1..=self.len_bytes_max).contains(&len_bytes) {
            return out("length", len_bytes.into(), "at most that with which the session was opened");
        }
        let (size_bytes, block_bytes) = (self.target.size_bytes(), self.target.block_bytes());
        let block = u64::from(block_bytes);
        let off = std::iter::once(("a length", u64::from(len_bytes)))
            .chain(starts.iter().map(|&start| ("a start", start)))
            .find(|(_, bytes)| !bytes.is_multiple_of(block));
        if let Some((what, found_bytes)) = off {
            let target = self.target.name().to_owned();
            let logical_block_bytes = block_bytes;
            return Err(WorkloadError::OffLogicalBlock { target, what, found_bytes, logical_block_bytes });
        }
        let ends = starts.iter().map(|start| start.saturating_add(len_bytes.into()));
        match ends.max().filter(|&end| end > size_bytes) {
            Some(end_bytes) => {
                let target = self.target.name().to_owned();
                Err(WorkloadError::BeyondEnd { target, end_bytes, size_bytes })
            }
            None => Ok(()),
        }
    }

    fn each(
        &mut self,
        doing: Doing,
        starts: &[u64],
        len_bytes: u32,
        depth: u32,
        latencies_ns: &mut [u64],
    ) -> Result<Slice, LoadError> {
        let depth = depth.clamp(1, self.depth_max);
        let began = Instant::now();
        let sent = match &mut self.engines {
            Engines::Ring(ring) => {
                let flights = &mut self.flights[..depth as usize];
                one_engine(&mut **ring, flights, doing, starts, len_bytes, latencies_ns)
            }
            Engines::Blocking(calls) => {
                side_by_side(&mut calls[..depth as usize], doing, starts, len_bytes, latencies_ns)
            }
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

/// Sends all I/O through one engine, a flight for each slot: the n-th I/O of no more than there are slots has slot n.
fn one_engine<E: Engine>(
    engine: &mut E,
    flights: &mut [Flight],
    doing: Doing,
    starts: &[u64],
    len_bytes: u32,
    latencies_ns: &mut [u64],
) -> Result<Slice, Stuck> {
    let mut slice = Slice::default();
    let mut free: Vec<u32> = (0..flights.len() as u32).rev().collect();
    let mut todo = starts.iter().enumerate();
    let mut now = Instant::now();
    let mut moved = now;
    loop {
        while let Some(&slot) = free.last() {
            let Some((number, &start)) = todo.next() else { break };
            free.pop();
            flights[slot as usize] = Flight { number, issued: now };
            match doing {
                Doing::Read => engine.queue_read(slot, start, len_bytes),
                Doing::WriteNoise => engine.queue_write_of_noise(slot, start, len_bytes),
                Doing::WriteSlot => engine.queue_write_of_slot(slot, start, len_bytes),
            }
        }
        if engine.in_flight() == 0 {
            return Ok(slice);
        }
        let handed_over = engine.submit(1, STUCK_AFTER);
        now = Instant::now();
        engine.reap(|completion| {
            free.push(completion.slot);
            moved = now;
            let flight = flights[completion.slot as usize];
            let ns = (now - flight.issued).as_nanos() as u64;
            latencies_ns[flight.number] = slice.count(completion, len_bytes, ns);
        });
        if handed_over.is_err() || now - moved >= STUCK_AFTER {
            return Err(Stuck);
        }
    }
}

/// Without a ring: a thread for each I/O in flight. The n-th start belongs to engine n modulo their number.
fn side_by_side(
    engines: &mut [Blocking],
    doing: Doing,
    starts: &[u64],
    len_bytes: u32,
    latencies_ns: &mut [u64],
) -> Result<Slice, Stuck> {
    let turn = engines.len();
    let work = |(first, engine): (usize, &mut Blocking)| {
        let mine: Vec<u64> = starts.iter().skip(first).step_by(turn).copied().collect();
        let mut mine_ns = vec![FAILED_NS; mine.len()];
        let mut flights = [Flight { number: 0, issued: Instant::now() }];
        let slice = one_engine(engine, &mut flights, doing, &mine, len_bytes, &mut mine_ns);
        slice.map(|slice| (first, slice, mine_ns))
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            engines.iter_mut().enumerate().map(|pair| scope.spawn(move || work(pair))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut all = Slice::default();
    for one in ended {
        let (first, slice, mine_ns) = one?;
        for (place, ns) in latencies_ns.iter_mut().skip(first).step_by(turn).zip(mine_ns) {
            *place = ns;
        }
        all.failed += slice.failed;
        all.failure = all.failure.or(slice.failure);
    }
    Ok(all)
}

impl Slice {
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
