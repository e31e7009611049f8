//! Whether a medium is behind the reads. Ranges that were never written, or were trimmed, are answered by the owner of
//! the map; caches answer from memory. Neither pays for a boundary, so a probe of them shows none, for any medium.
//!
//! Zeros everywhere are no proof of either, and neither is speed. Both are doubts. In doubt the probe reports neither
//! *no penalty* nor a grid: the kernel itself takes longer for a read that it has to split, as thin volumes do at their
//! blocks and page caches at pages. One exception: if zeros are read, and a misaligned read takes longer than in any
//! kernel, something has charged for it.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use plumb_stats::Interval;
use plumb_sys::Errno;

use super::session::ReadError;
use super::{Bar, Broken, Probed};
use crate::random::Random;
use crate::run::LoadError;
use crate::tally::IoFailure;
use crate::target::Target;

/// Parts that a target is looked at in, and places that are read in each.
const PARTS: u64 = 128;
const PLACES: u64 = 2;
/// Length of a read.
const LEN_BYTES: u64 = 4096;
/// Places that are read again at the end.
const AGAIN: usize = 48;
/// Parts with data that are enough to read from, in bytes: some ten thousand reads of 4 KiB without coming back.
const DATA_BYTES_MIN: u64 = 64 << 20;
/// Faster than any flash answers a single read: the fastest parts made for low latency take some 10 µs from cell to pin alone,
/// and the way to them as much again (Z-NAND, XL-FLASH data sheets); memory takes a few.
pub const MEMORY_NS: u64 = 12_000;
/// A kernel takes a few µs to split a read in two: a difference of at least this was charged by something else. A
/// multiple of its shortest reads is as good a measure, and a better one on a slow machine, such as an emulated one.
const SPLIT_NS: f64 = 20_000.0;
const SPLIT_CALLS: f64 = 40.0;
/// Calls that the shortest is taken of.
const CALLS: u32 = 64;
/// First reads that take at most this many times as long as second ones came from the same source.
const ALIKE: f64 = 1.5;

/// The parts of a target, as seen.
#[derive(Clone, Debug, Default)]
pub struct MediaSurvey {
    /// Places that were read.
    pub places: u64,
    /// Of these, nothing but zeros.
    pub zeros: u64,
    /// Median time of a read alone; `None` where none was made.
    pub first_ns: Option<u64>,
    /// Median time of reading the same place again.
    pub again_ns: Option<u64>,
    /// Parts where something else than zeros was read: first byte and end, in order.
    pub data: Vec<(u64, u64)>,
}

/// Why a measurement would not be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// All places read as zeros: never written, trimmed, or only zeros.
    Zeros {
        /// Places.
        places: u64,
    },
    /// Reads are answered from memory.
    Memory {
        /// Median time of a read.
        ns: u64,
    },
    /// Reads go through a cache, and the first one of a place is no slower than the second.
    Cached {
        /// Median time of the first.
        first_ns: u64,
        /// Median time of the second.
        again_ns: u64,
    },
}

impl MediaSurvey {
    /// Reads at places of each part of the ranges, one at a time.
    ///
    /// # Errors
    /// When a read fails.
    pub fn read(
        target: &Target,
        ranges: &[(u64, u64)],
        seed: u64,
    ) -> Result<MediaSurvey, Broken<ReadError>> {
        let random = &mut Random::new(seed, 1);
        let block = u64::from(target.block_bytes().max(512));
        let mut reading = MediaReader {
            file: second(target)?,
            buffer: Vec::new(),
            block,
            reads: 0,
        };
        let (mut survey, mut times_ns, mut seen) = (MediaSurvey::default(), Vec::new(), Vec::new());
        for part in parts(ranges, block) {
            let mut has_data = false;
            for _ in 0..PLACES {
                let Some(place) = reading.place(part, random) else {
                    continue;
                };
                let (ns, is_zero) = reading.at(place)?;
                times_ns.push(ns);
                seen.push(place);
                survey.places += 1;
                survey.zeros += u64::from(is_zero);
                has_data |= !is_zero;
            }
            if has_data {
                join(&mut survey.data, part);
            }
        }
        // The latest are the likeliest to be kept.
        let again = seen
            .iter()
            .rev()
            .take(AGAIN)
            .map(|&place| Ok(reading.at(place)?.0));
        survey.again_ns = median(again.collect::<Result<Vec<u64>, _>>()?);
        survey.first_ns = median(times_ns);
        Ok(survey)
    }

    /// Bytes of the parts with data.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.data.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether only the parts with data of these ranges should be measured: some places read as zeros, not all, and the parts
    /// with data are long enough.
    #[must_use]
    pub fn is_data_enough(&self, ranges: &[(u64, u64)]) -> bool {
        let all: u64 = ranges.iter().map(|(start, end)| end - start).sum();
        let data = self.data_bytes();
        let is_mixed = self.zeros > 0 && self.zeros < self.places;
        is_mixed && data >= DATA_BYTES_MIN && data != all
    }

    /// The reason against a measurement; `passes_cache` if reads are known to use a cache. `settled_ns` is the time of
    /// a read at the steady rate: before, a throttle lets some through at the speed of memory.
    #[must_use]
    pub fn doubt(&self, passes_cache: bool, settled_ns: Option<f64>) -> Option<Doubt> {
        let (first_ns, again_ns) = self.first_ns.zip(self.again_ns)?;
        let is_memory = |ns: u64| ns < MEMORY_NS;
        let stays =
            settled_ns.is_none_or(|settled_ns| settled_ns <= (first_ns.max(MEMORY_NS)) as f64);
        if self.zeros == self.places {
            Some(Doubt::Zeros {
                places: self.places,
            })
        } else if is_memory(first_ns) && stays {
            Some(Doubt::Memory { ns: first_ns })
        } else if passes_cache && stays && first_ns as f64 <= ALIKE * again_ns as f64 {
            Some(Doubt::Cached { first_ns, again_ns })
        } else {
            None
        }
    }
}

impl Doubt {
    /// Whether it contradicts the measurement.
    #[must_use]
    pub fn stands(self, probed: &Probed) -> bool {
        !(matches!(self, Doubt::Zeros { .. }) && is_charged(probed))
    }
}

/// Whether a miss costs more than a kernel would take for it.
pub(super) fn is_charged(probed: &Probed) -> bool {
    miss_ns(&probed.bars, probed.penalty) >= (SPLIT_CALLS * call_ns()).max(SPLIT_NS)
}

/// The least time that a misaligned read adds. For reads in flight together only the added time of each is known. That time is
/// at most the time of one.
fn miss_ns(bars: &[Bar], penalty: Option<Interval>) -> f64 {
    let on_ns = bars.iter().map(|bar| bar.ns).min_by(f64::total_cmp);
    on_ns
        .zip(penalty)
        .map_or(0.0, |(on_ns, penalty)| (penalty.low - 1.0) * on_ns)
}

/// The least that a read of 4 KiB takes here, of zeros that the kernel itself makes; 0 where it makes none.
fn call_ns() -> f64 {
    let mut buffer = [0; LEN_BYTES as usize];
    let Ok(mut zeros) = File::open("/dev/zero") else {
        return 0.0;
    };
    let mut call = || {
        let begin = Instant::now();
        zeros
            .read_exact(&mut buffer)
            .ok()
            .map(|()| begin.elapsed().as_nanos() as f64)
    };
    (0..CALLS)
        .filter_map(|_| call())
        .min_by(f64::total_cmp)
        .unwrap_or(0.0)
}

struct MediaReader {
    file: File,
    buffer: Vec<u8>,
    block: u64,
    reads: u64,
}

impl MediaReader {
    fn place(&self, (start, end): (u64, u64), random: &mut Random) -> Option<u64> {
        let len = LEN_BYTES.max(self.block);
        let first = start.next_multiple_of(self.block);
        let room = end.checked_sub(first)?.checked_sub(len)?;
        Some(first + random.below(room / self.block + 1) * self.block)
    }

    /// How long it takes, and whether nothing but zeros is there.
    fn at(&mut self, place: u64) -> Result<(u64, bool), Broken<ReadError>> {
        let len = LEN_BYTES.max(self.block) as usize;
        // Direct reads need aligned memory, which a buffer of twice the length contains.
        self.buffer.resize(2 * len, 0);
        let aligned = self.buffer.as_ptr().align_offset(len).min(len);
        let buffer = &mut self.buffer[aligned..aligned + len];
        let begin = Instant::now();
        self.file.read_exact_at(buffer, place).map_err(|error| {
            let errno = error.raw_os_error().map(Errno::from_raw_os_error);
            let failure = errno.map_or(IoFailure::Short, IoFailure::Errno);
            let error = ReadError::Failed {
                failed: 1,
                is_write: false,
                at: place,
                failure,
            };
            Broken {
                error,
                reads: self.reads,
                bytes: self.reads * len as u64,
            }
        })?;
        self.reads += 1;
        let ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok((ns, buffer.iter().all(|byte| *byte == 0)))
    }
}

/// The target as a file of its own.
fn second(target: &Target) -> Result<File, Broken<ReadError>> {
    target
        .io()
        .as_fd()
        .try_clone_to_owned()
        .map(File::from)
        .map_err(|error| {
            let errno = error
                .raw_os_error()
                .map_or(Errno::MFILE, Errno::from_raw_os_error);
            let error = LoadError::NoMeans {
                target: target.name().to_owned(),
                what: "another descriptor",
                errno,
            };
            Broken {
                error: error.into(),
                reads: 0,
                bytes: 0,
            }
        })
}

/// Equal parts of the ranges, a range at least one.
fn parts(ranges: &[(u64, u64)], block: u64) -> Vec<(u64, u64)> {
    let total: u64 = ranges.iter().map(|(start, end)| end - start).sum();
    let len = (total / PARTS)
        .next_multiple_of(block.max(1))
        .max(LEN_BYTES.max(block));
    let mut parts = Vec::new();
    for &(start, end) in ranges {
        let mut at = start;
        // Files in very many pieces are looked at in some of them.
        while at < end && parts.len() < 4 * PARTS as usize {
            let next = at.saturating_add(len).min(end);
            parts.push((at, next));
            at = next;
        }
    }
    parts
}

fn join(parts: &mut Vec<(u64, u64)>, part: (u64, u64)) {
    match parts.last_mut() {
        Some(last) if last.1 == part.0 => last.1 = part.1,
        _ => parts.push(part),
    }
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(zeros: u64, first_ns: u64, again_ns: u64) -> MediaSurvey {
        MediaSurvey {
            places: 256,
            zeros,
            first_ns: Some(first_ns),
            again_ns: Some(again_ns),
            data: vec![(0, 1 << 20)],
        }
    }

    #[test]
    fn doubts() {
        let ms = 1_000_000;
        for (survey, passes_cache, settled_ns, expected) in [
            (
                survey(256, ms, ms),
                false,
                None,
                Some(Doubt::Zeros { places: 256 }),
            ),
            (survey(255, ms, ms), false, None, None),
            (
                survey(0, 5_000, 5_000),
                false,
                None,
                Some(Doubt::Memory { ns: 5_000 }),
            ),
            (
                survey(0, 5_000, 5_000),
                false,
                Some(3e3),
                Some(Doubt::Memory { ns: 5_000 }),
            ),
            (survey(0, 5_000, 5_000), false, Some(5e5), None),
            (
                survey(0, 30_000, 25_000),
                true,
                Some(9e3),
                Some(Doubt::Cached {
                    first_ns: 30_000,
                    again_ns: 25_000,
                }),
            ),
            (survey(0, 30_000, 25_000), true, Some(5e5), None),
            (survey(0, 30_000, 25_000), false, None, None),
            (survey(0, ms, 25_000), true, None, None),
            (MediaSurvey::default(), true, None, None),
        ] {
            assert_eq!(survey.doubt(passes_cache, settled_ns), expected);
        }
    }

    /// A thin volume that was never written takes 13 µs longer for a read that it has to split, in an emulated machine. A
    /// throttle of 2,000 I/O a second charges 50 for a miss of 10 %.
    #[test]
    fn cost_of_a_cache_miss() {
        let bars = |on_ns: f64, off_ns: f64| {
            [(0, on_ns), (512, off_ns)].map(|(offset_bytes, ns)| Bar { offset_bytes, ns })
        };
        let penalty = |low: f64| {
            Some(Interval {
                estimate: low + 0.01,
                low,
                high: low + 0.02,
                level: plumb_stats::Level::P99,
                n: 14,
            })
        };
        assert!(miss_ns(&bars(66_800.0, 79_800.0), penalty(1.19)) < SPLIT_NS);
        assert!(miss_ns(&bars(500_000.0, 550_000.0), penalty(1.09)) > SPLIT_NS);
        assert_eq!(miss_ns(&[], penalty(2.0)), 0.0);
        assert_eq!(miss_ns(&bars(1e6, 2e6), None), 0.0);
        // A call takes some time everywhere, and less than a millisecond.
        assert!((1.0..1e6).contains(&call_ns()), "{}", call_ns());
    }

    #[test]
    fn parts_cover_the_ranges() {
        let ranges = [(512, 10_000_000), (20_000_000, 20_001_000)];
        let parts = parts(&ranges, 512);
        let covered: u64 = parts.iter().map(|(start, end)| end - start).sum();
        assert_eq!(covered, 10_000_000 - 512 + 1000);
        let mut joined = Vec::new();
        parts.into_iter().for_each(|part| join(&mut joined, part));
        assert_eq!(joined, ranges);
    }
}
