//! Draws the I/O of a workload, one after the other: operation, length and start.

use std::sync::atomic::{AtomicU64, Ordering};

use plumb_geometry::{gcd, group_digits};

use crate::random::Random;
use crate::target::Target;
use crate::workload::{Hits, Spread, Starts, Workload, WorkloadError};
use crate::zipf::Zipf;

/// An I/O to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DrawnIo {
    pub is_read: bool,
    pub start: u64,
    pub len_bytes: u32,
}

/// A workload laid out over its target: the state that all threads of a job share.
#[derive(Debug)]
pub(crate) struct WorkloadLayout {
    lengths: Vec<OneLength>,
    weights: u64,
    read_percent: u8,
    starts: Starts,
    hits: Option<Hits>,
    align_bytes: Option<u64>,
    first: u64,
    end: u64,
    /// The next position of a sequential workload's stream.
    cursor: AtomicU64,
}

/// The possible starts of I/O of one length.
#[derive(Debug)]
struct OneLength {
    len_bytes: u32,
    /// Sum of the weights up to this one.
    weights_to: u64,
    places: Places,
    popular: Option<Popular>,
    hits: Option<Places>,
}

/// Starts at one distance from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    first: u64,
    unit: u64,
    count: u64,
}

/// The rank of each place.
#[derive(Debug)]
struct Popular {
    zipf: Zipf,
    factor: u64,
}

impl Places {
    /// All starts within `low..end` that are congruent to the shift modulo the unit; `None` if there are no such
    /// starts.
    fn new(low: u64, end: u64, len_bytes: u32, unit: u64, shift: i64) -> Option<Places> {
        let low = low.checked_add(u64::try_from(shift).unwrap_or(0))?;
        let residue = i128::from(shift).rem_euclid(i128::from(unit)) as u64;
        let ahead =
            (u128::from(residue) + u128::from(unit) - u128::from(low % unit)) % u128::from(unit);
        let first = low.checked_add(ahead as u64)?;
        let last = end
            .checked_sub(u64::from(len_bytes))
            .filter(|&last| last >= first)?;
        Some(Places {
            first,
            unit,
            count: (last - first) / unit + 1,
        })
    }

    #[inline]
    fn at(&self, number: u64) -> u64 {
        self.first + number * self.unit
    }

    #[inline]
    fn any(&self, random: &mut Random) -> u64 {
        self.at(random.below(self.count))
    }
}

impl Popular {
    /// Ranks map to places by multiplication with a number that has no factor in common with theirs: each place has one
    /// rank, and neighbours in rank are about 0.6 of the range apart.
    fn new(places: &Places, theta: f64) -> Popular {
        let mut factor = (places.count as f64 * 0.618_034) as u64 | 1;
        while gcd(factor, places.count) != 1 {
            factor += 2;
        }
        Popular {
            zipf: Zipf::new(places.count, theta),
            factor,
        }
    }

    fn place(&self, places: &Places, random: &mut Random) -> u64 {
        let rank = u128::from(self.zipf.draw(random));
        places.at((rank * u128::from(self.factor) % u128::from(places.count)) as u64)
    }
}

impl WorkloadLayout {
    /// Lays a workload out.
    ///
    /// # Errors
    /// When it does not fit the target.
    pub fn new(
        workload: &Workload,
        target: &Target,
        random: &mut Random,
    ) -> Result<WorkloadLayout, WorkloadError> {
        let size_bytes = target.size_bytes();
        let (low, end) = workload
            .range
            .map_or((0, size_bytes), |(low, end)| (low.0, end.0));
        if end > size_bytes {
            let target = target.name().to_owned();
            return Err(WorkloadError::BeyondEnd {
                target,
                end_bytes: end,
                size_bytes,
            });
        }
        must_be_in_range(workload)?;
        must_be_blocks(workload, target)?;
        let mut weights = 0;
        let mut lengths = Vec::new();
        for &(len_bytes, weight) in workload.lengths.weighted() {
            weights += u64::from(weight);
            let within = |low, end| {
                let unit = workload.align_bytes.unwrap_or(u64::from(len_bytes));
                let places = Places::new(low, end, len_bytes, unit, workload.shift_bytes);
                places.ok_or_else(|| too_small(target, (low, end), len_bytes, workload))
            };
            // An area of hits is reserved for them.
            let behind_hits = workload
                .hits
                .map(|hits| low.saturating_add(hits.area_bytes));
            let places = within(behind_hits.unwrap_or(low), end)?;
            let hits = behind_hits.map(|hits_end| within(low, end.min(hits_end)));
            let popular = match workload.starts {
                Starts::Random(Spread::Zipf { theta })
                | Starts::Seeks {
                    spread: Spread::Zipf { theta },
                    ..
                } => Some(Popular::new(&places, theta)),
                _ => None,
            };
            lengths.push(OneLength {
                len_bytes,
                weights_to: weights,
                places,
                popular,
                hits: hits.transpose()?,
            });
        }
        // The stream begins at the first start of the longest length: places of all lengths are behind the shift.
        let longest = lengths
            .iter()
            .max_by_key(|one| one.len_bytes)
            .map(|one| one.places);
        let first = longest.map_or(low, |places| places.first);
        let cursor = match (&workload.starts, longest) {
            (
                Starts::Sequential {
                    from_anywhere: true,
                },
                Some(places),
            ) => places.any(random),
            _ => first,
        };
        Ok(WorkloadLayout {
            lengths,
            weights,
            read_percent: workload.read_percent,
            starts: workload.starts.clone(),
            hits: workload.hits,
            align_bytes: workload.align_bytes,
            first,
            end,
            cursor: AtomicU64::new(cursor),
        })
    }

    /// From start to start of a stream.
    fn step(&self, len_bytes: u32) -> u64 {
        let len_bytes = u64::from(len_bytes);
        match (&self.starts, self.align_bytes) {
            (Starts::Strided { stride_bytes }, _) => *stride_bytes,
            (_, Some(align)) => len_bytes.next_multiple_of(align),
            (_, None) => len_bytes,
        }
    }

    /// The next start of the stream that all threads share.
    fn next_of_stream(&self, len_bytes: u32) -> u64 {
        let fits = |at: u64| {
            at.checked_add(u64::from(len_bytes))
                .is_some_and(|end| end <= self.end)
        };
        let start = |at: u64| if fits(at) { at } else { self.first };
        let step = self.step(len_bytes);
        let advance = |at: u64| Some(start(at).saturating_add(step));
        let before = self
            .cursor
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance);
        start(before.unwrap_or(self.first))
    }
}

/// Draws for one thread.
#[derive(Debug)]
pub(crate) struct Draw<'a> {
    layout: &'a WorkloadLayout,
    random: Random,
    /// The end of the last I/O of this thread.
    last_end: Option<u64>,
}

impl<'a> Draw<'a> {
    pub fn new(layout: &'a WorkloadLayout, random: Random) -> Draw<'a> {
        Draw {
            layout,
            random,
            last_end: None,
        }
    }

    /// The next I/O.
    #[inline]
    pub fn next(&mut self) -> DrawnIo {
        let layout = self.layout;
        let is_read = match layout.read_percent {
            100 => true,
            0 => false,
            percent => self.random.percent(percent),
        };
        let one = match layout.lengths.as_slice() {
            [one] => one,
            several => {
                let weight = self.random.below(layout.weights);
                let at = several.partition_point(|one| one.weights_to <= weight);
                &several[at]
            }
        };
        let start = self.start(one, is_read);
        DrawnIo {
            is_read,
            start,
            len_bytes: one.len_bytes,
        }
    }

    #[inline]
    fn start(&mut self, one: &OneLength, is_read: bool) -> u64 {
        if let (Some(hits), Some(places)) = (self.layout.hits, one.hits) {
            let percent = if is_read {
                hits.read_percent
            } else {
                hits.write_percent
            };
            if self.random.percent(percent) {
                return places.any(&mut self.random);
            }
        }
        match self.layout.starts {
            Starts::Random(_) => self.random_place(one),
            Starts::Sequential { .. } | Starts::Strided { .. } => {
                self.layout.next_of_stream(one.len_bytes)
            }
            Starts::Seeks { percent, .. } => self.seek_or_go_on(one, percent),
        }
    }

    #[inline]
    fn random_place(&mut self, one: &OneLength) -> u64 {
        match &one.popular {
            Some(popular) => popular.place(&one.places, &mut self.random),
            None => one.places.any(&mut self.random),
        }
    }

    fn seek_or_go_on(&mut self, one: &OneLength, percent: u8) -> u64 {
        let behind = self
            .last_end
            .filter(|at| at + u64::from(one.len_bytes) <= self.layout.end);
        let start = match behind {
            Some(start) if !self.random.percent(percent) => start,
            _ => self.random_place(one),
        };
        self.last_end = Some(start + self.layout.step(one.len_bytes));
        start
    }
}

fn too_small(
    target: &Target,
    (low, end): (u64, u64),
    len_bytes: u32,
    workload: &Workload,
) -> WorkloadError {
    let mut at = match workload.shift_bytes {
        0 => String::new(),
        shift => format!(" shifted by {shift} bytes"),
    };
    if let Some(hits) = workload.hits {
        at += &format!(
            ", in the hit area of {} bytes and behind it",
            group_digits(hits.area_bytes)
        );
    }
    let found_bytes = end.saturating_sub(low);
    WorkloadError::TooSmall {
        target: target.name().to_owned(),
        found_bytes,
        len_bytes,
        at,
    }
}

fn must_be_in_range(workload: &Workload) -> Result<(), WorkloadError> {
    let out = |what, found: String, expected| {
        Err(WorkloadError::OutOfRange {
            what,
            found,
            expected,
        })
    };
    let percents = [
        ("reads", workload.read_percent),
        (
            "hits of reads",
            workload.hits.map_or(0, |hits| hits.read_percent),
        ),
        (
            "hits of writes",
            workload.hits.map_or(0, |hits| hits.write_percent),
        ),
    ];
    if let Some((what, found)) = percents.into_iter().find(|&(_, percent)| percent > 100) {
        return out(what, format!("{found} %"), "0 to 100 %");
    }
    if workload.align_bytes == Some(0) {
        return out("alignment of starts", "0".to_owned(), "1 byte or more");
    }
    let theta = match workload.starts {
        Starts::Random(Spread::Zipf { theta }) => Some(theta),
        Starts::Seeks { percent, .. } if !(1..=99).contains(&percent) => {
            return out("seeks", format!("{percent} %"), "1 to 99 %");
        }
        Starts::Seeks {
            spread: Spread::Zipf { theta },
            ..
        } => Some(theta),
        Starts::Strided { stride_bytes: 0 } => {
            return out("stride", "0".to_owned(), "1 byte or more");
        }
        _ => None,
    };
    match theta {
        Some(theta) if !(theta > 0.0 && theta <= 10.0) => {
            out("theta of zipf", theta.to_string(), "above 0, at most 10")
        }
        _ => Ok(()),
    }
}

fn must_be_blocks(workload: &Workload, target: &Target) -> Result<(), WorkloadError> {
    let block = u64::from(target.block_bytes());
    let stride = match workload.starts {
        Starts::Strided { stride_bytes } => stride_bytes,
        _ => 0,
    };
    // The beginning of a range needs none: starts are multiples of the alignment of the whole target.
    let lengths = workload
        .lengths
        .weighted()
        .iter()
        .map(|&(len, _)| ("a length", u64::from(len)));
    let others = [
        ("a shift", workload.shift_bytes.unsigned_abs()),
        ("an alignment of starts", workload.align_bytes.unwrap_or(0)),
        ("a stride", stride),
    ];
    match lengths
        .chain(others)
        .find(|(_, bytes)| !bytes.is_multiple_of(block))
    {
        Some((what, found_bytes)) => Err(WorkloadError::OffLogicalBlock {
            target: target.name().to_owned(),
            what,
            found_bytes,
            logical_block_bytes: target.block_bytes(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
