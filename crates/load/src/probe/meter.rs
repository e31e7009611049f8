//! Slices and rounds: the only place where a probe reads.
//!
//! A slice is some reads of one kind, a round one slice of each kind in random order. Slow changes, as in a device that
//! warms up or with a new neighbour, move all kinds of a round alike; random ones hit each kind as often. Only kinds of
//! the same round are compared.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cache::Trail;
use super::drift::PaceCourse;
use super::space::{Residue, Space};
use super::{ProbeReader, Stop};
use crate::random::Random;

/// How long a slice of short reads should take: many short slices outvote the few that another process disturbs.
const SLICE_NS: f64 = 2e6;
/// If a read takes long, a slice has fewer of them, in about this time.
const SLICE_NS_MAX: f64 = 16e6;
/// Reads of a slice.
const READS: std::ops::RangeInclusive<f64> = 2.0..=8.0;
const READS_MAX: f64 = 1024.0;
/// After this number of rounds of a question slices become longer, up to a factor.
const ROUNDS_OF_A_LENGTH: usize = 28;
const LONGER_MAX: usize = 4;
/// Reads before those of a slice that are not timed, where it has many.
const LEAD: usize = 2;
/// Reads of a look at the pace.
const PACE_READS: usize = 8;

/// A kind of read.
#[derive(Clone, Debug)]
pub struct ReadKind {
    /// Its starts.
    pub starts: ReadStarts,
    /// Its length.
    pub len_bytes: u64,
}

/// The starts of a kind of read.
#[derive(Clone, Debug)]
pub enum ReadStarts {
    /// At one residue.
    At(Residue),
    /// At all multiples of `step` modulo `modulus`, but for some residues.
    Besides {
        /// The granularity that residues are of.
        modulus: u64,
        /// Bytes from one to the next.
        step: u64,
        /// Residues that are left out.
        but: Vec<u64>,
    },
    /// At any of these residues.
    Among {
        /// The granularity that residues are of.
        modulus: u64,
        /// At least one.
        residues: Vec<u64>,
    },
}

/// Reads, and measures the time.
pub struct Meter<'r, R: ProbeReader> {
    reader: &'r mut R,
    /// The space of its reads.
    pub space: Space,
    /// Chance.
    pub random: Random,
    depth: u32,
    limit: Duration,
    was_ended: bool,
    /// Time of all reads.
    pub spent: Duration,
    /// Reads so far.
    pub reads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// ns a read, by length, in the latest slice.
    cost_ns: BTreeMap<u64, f64>,
    starts: Vec<u64>,
    latencies_ns: Vec<u64>,
    /// Its reads.
    pub trail: Trail,
    /// The pace, where it is watched, and the reads that tell it.
    pace: Option<(ReadKind, PaceCourse)>,
}

impl<'r, R: ProbeReader> Meter<'r, R> {
    /// `limit` is the time after which no further round begins.
    pub fn new(
        reader: &'r mut R,
        space: Space,
        random: Random,
        depth: u32,
        limit: Duration,
    ) -> Meter<'r, R> {
        Meter {
            reader,
            space,
            random,
            depth: depth.max(1),
            limit,
            was_ended: false,
            spent: Duration::ZERO,
            reads: 0,
            bytes: 0,
            cost_ns: BTreeMap::new(),
            starts: Vec::new(),
            latencies_ns: Vec::new(),
            trail: Trail::default(),
            pace: None,
        }
    }

    /// Looks at the pace between rounds from now on, by such reads.
    pub fn watch_pace(&mut self, kind: ReadKind) {
        self.pace = Some((kind, PaceCourse::default()));
    }

    /// The pace so far.
    #[must_use]
    pub fn course(&self) -> Option<&PaceCourse> {
        self.pace.as_ref().map(|(_, course)| course)
    }

    fn look_at_pace(&mut self) -> Result<(), Stop<R::Error>> {
        let is_due = |meter: &Self| {
            meter
                .pace
                .as_ref()
                .is_some_and(|(_, course)| course.is_due(meter.spent))
        };
        while is_due(self) {
            let Some((kind, _)) = &self.pace else { break };
            let (kind, from) = (kind.clone(), self.spent);
            let elapsed = self.send(&kind, LEAD, PACE_READS)?;
            let ns = (elapsed.as_nanos() as f64 / PACE_READS as f64).max(1.0);
            if let Some((_, course)) = &mut self.pace {
                course.push(self.spent, self.spent - from, ns);
            }
        }
        Ok(())
    }

    /// Places of one kind that must have room, so that none in flight repeats: of a sequence by the golden ratio any n
    /// are at least 1/(2.62 n) of the whole apart.
    #[must_use]
    pub fn places_min(&self) -> u64 {
        3 * u64::from(self.depth)
    }

    /// Ends at another time; the one that was set before.
    pub fn set_limit(&mut self, limit: Duration) -> Duration {
        std::mem::replace(&mut self.limit, limit)
    }

    /// Keeps this number in flight from now on; returns the old number.
    pub fn set_depth(&mut self, depth: u32) -> u32 {
        std::mem::replace(&mut self.depth, depth.max(1))
    }

    /// Whether time is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.spent >= self.limit
    }

    /// Whether the user ended it before all reads were made.
    #[must_use]
    pub fn was_ended(&self) -> bool {
        self.was_ended
    }

    fn must_go_on(&mut self) -> Result<(), Stop<R::Error>> {
        if !self.reader.is_ended() {
            return Ok(());
        }
        self.was_ended = true;
        Err(Stop::Time)
    }

    /// One slice of each kind in random order: ns a read, in the order of the kinds. `round` counts the earlier rounds
    /// of the same question: if many short slices do not decide it, longer ones are needed, in which a waiting device
    /// has caught up.
    ///
    /// # Errors
    /// When a read fails, time is over, or there is no room for a read of a kind.
    pub fn round(&mut self, kinds: &[ReadKind], round: usize) -> Result<Vec<f64>, Stop<R::Error>> {
        if self.is_over() {
            return Err(Stop::Time);
        }
        self.look_at_pace()?;
        let mut order: Vec<usize> = (0..kinds.len()).collect();
        // Fisher and Yates.
        for last in (1..order.len()).rev() {
            order.swap(last, self.random.below(last as u64 + 1) as usize);
        }
        let mut costs = vec![0.0; kinds.len()];
        // All slices of a round are alike long, or a burst that a device allows would favour one.
        let reads = kinds
            .iter()
            .map(|kind| self.reads_of(kind.len_bytes))
            .min()
            .unwrap_or(1);
        let reads = reads * (1 + round / ROUNDS_OF_A_LENGTH).min(LONGER_MAX);
        for at in order {
            costs[at] = self.slice(&kinds[at], reads)?;
        }
        Ok(costs)
    }

    /// Reads `reads` times, after some reads that are not timed: a throttle delays the first read of a slice for the
    /// debt of the last slice. ns a read.
    fn slice(&mut self, kind: &ReadKind, reads: usize) -> Result<f64, Stop<R::Error>> {
        let lead = if reads >= 8 { LEAD } else { 1 };
        let elapsed = self.send(kind, lead, reads)?;
        let cost_ns = (elapsed.as_nanos() as f64 / reads as f64).max(1.0);
        self.cost_ns.insert(kind.len_bytes, cost_ns);
        Ok(cost_ns)
    }

    /// Reads of a kind at any places; their time.
    ///
    /// # Errors
    /// As [`Meter::round`].
    pub fn read(&mut self, kind: &ReadKind, reads: usize) -> Result<Duration, Stop<R::Error>> {
        self.send(kind, 0, reads)
    }

    fn send(
        &mut self,
        kind: &ReadKind,
        lead: usize,
        reads: usize,
    ) -> Result<Duration, Stop<R::Error>> {
        self.must_go_on()?;
        self.starts.clear();
        for _ in 0..lead + reads {
            let residue = self.residue(&kind.starts);
            let start = self
                .space
                .next(residue, kind.len_bytes)
                .ok_or(Stop::NoRoom)?;
            self.starts.push(start);
        }
        self.latencies_ns.clear();
        let sliced = self
            .reader
            .slice(
                &self.starts,
                lead,
                kind.len_bytes,
                self.depth,
                &mut self.latencies_ns,
            )
            .map_err(Stop::Read)?;
        self.count(
            sliced.timed + sliced.beside,
            self.starts.len(),
            kind.len_bytes,
        );
        self.starts
            .iter()
            .for_each(|&start| self.trail.push(start, kind.len_bytes));
        Ok(sliced.timed)
    }

    /// Reads at these places, one at a time, which are not remembered; how long they took, and each of them.
    ///
    /// # Errors
    /// When a read fails, or the user has ended the probe.
    pub fn read_alone(
        &mut self,
        starts: &[u64],
        len_bytes: u64,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Duration, Stop<R::Error>> {
        self.must_go_on()?;
        let elapsed = self
            .reader
            .read_each(starts, len_bytes, 1, latencies_ns)
            .map_err(Stop::Read)?;
        self.count(elapsed, starts.len(), len_bytes);
        Ok(elapsed)
    }

    fn count(&mut self, elapsed: Duration, reads: usize, len_bytes: u64) {
        self.spent += elapsed;
        self.reads += reads as u64;
        self.bytes += reads as u64 * len_bytes;
    }

    fn residue(&mut self, starts: &ReadStarts) -> Residue {
        match starts {
            ReadStarts::At(residue) => *residue,
            ReadStarts::Among { modulus, residues } => {
                let at = self.random.below(residues.len().max(1) as u64) as usize;
                Residue::new(residues.get(at).copied().unwrap_or(0), *modulus)
            }
            ReadStarts::Besides { modulus, step, but } => {
                let count = (modulus / step).max(1);
                let mut residue = self.random.below(count) * step;
                // Few are left out, so this ends soon; if all are, it ends anyway.
                for _ in 0..64 {
                    if !but.contains(&residue) {
                        break;
                    }
                    residue = self.random.below(count) * step;
                }
                Residue::new(residue, *modulus)
            }
        }
    }

    fn reads_of(&self, len_bytes: u64) -> usize {
        // Of a length that was not read yet nothing is known: the time of the next shorter one is a lower bound.
        let shorter = self.cost_ns.range(..=len_bytes).next_back();
        let cost_ns = shorter.map_or(SLICE_NS, |(_, &cost_ns)| cost_ns);
        let least = (SLICE_NS_MAX / cost_ns).clamp(*READS.start(), *READS.end());
        (SLICE_NS / cost_ns).clamp(least, READS_MAX) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes 1 µs a byte, and records the reads.
    struct Even {
        seen: Vec<(u64, u64)>,
    }

    impl ProbeReader for Even {
        type Error = std::convert::Infallible;

        fn read_each(
            &mut self,
            starts: &[u64],
            len_bytes: u64,
            _depth: u32,
            _latencies_ns: &mut Vec<u64>,
        ) -> Result<Duration, Self::Error> {
            self.seen
                .extend(starts.iter().map(|&start| (start, len_bytes)));
            Ok(Duration::from_micros(starts.len() as u64 * len_bytes))
        }
    }

    #[test]
    fn a_round_is_balanced_and_counted() {
        let mut reader = Even { seen: Vec::new() };
        let mut random = Random::new(3, 0);
        let space = Space::new(&[(0, 1 << 30)], &mut random);
        let mut meter = Meter::new(&mut reader, space, random, 4, Duration::from_secs(60));
        let kinds = [
            ReadKind {
                starts: ReadStarts::At(Residue::new(512, 4096)),
                len_bytes: 1024,
            },
            ReadKind {
                starts: ReadStarts::Besides {
                    modulus: 4096,
                    step: 512,
                    but: vec![512, 0],
                },
                len_bytes: 1024,
            },
        ];
        for _ in 0..10 {
            let costs = meter.round(&kinds, 0).expect("no error");
            assert_eq!(costs, [1_024_000.0, 1_024_000.0]);
        }
        let (reads, spent, bytes) = (meter.reads, meter.spent, meter.bytes);
        assert_eq!(reads, reader.seen.len() as u64);
        assert_eq!(
            (bytes, spent),
            (reads * 1024, Duration::from_micros(reads * 1024))
        );
        let at = |residue: u64| {
            reader
                .seen
                .iter()
                .filter(|(start, _)| start % 4096 == residue)
                .count() as u64
        };
        assert_eq!(at(512), reads / 2, "as many of either kind");
        assert_eq!(at(0), 0);
        assert_eq!((1024..4096).step_by(512).map(at).sum::<u64>(), reads / 2);
    }

    #[test]
    fn time_and_room_end_it() {
        let mut reader = Even { seen: Vec::new() };
        let mut random = Random::new(3, 0);
        let space = Space::new(&[(0, 4096)], &mut random);
        let mut meter = Meter::new(&mut reader, space, random, 1, Duration::from_millis(5));
        let kind = |len_bytes| {
            [ReadKind {
                starts: ReadStarts::At(Residue::new(0, 4096)),
                len_bytes,
            }]
        };
        assert!(matches!(meter.round(&kind(8192), 0), Err(Stop::NoRoom)));
        assert!(meter.round(&kind(4096), 0).is_ok());
        assert!(matches!(meter.round(&kind(4096), 0), Err(Stop::Time)));
    }
}
