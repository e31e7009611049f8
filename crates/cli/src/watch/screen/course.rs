//! The course of a device over time: a few sums of each interval, kept after the interval's profile is gone, and their
//! form as columns of a graph.

use std::collections::{BTreeMap, VecDeque};

use plumb_capture::{ALIGNMENTS, alignment_of};
use plumb_geometry::Grid;
use plumb_profile::Profile;
use plumb_profile::histogram::{Counts, log_linear_bounds, power_index};
use plumb_trace::Op;

use crate::watch::alignment_power;

/// Intervals that a course holds: at one a second half an hour.
pub(super) const INTERVALS_MAX: usize = 1800;

/// I/O by class; empty classes are absent.
type Classes = BTreeMap<u32, u64>;

/// Buckets of a log-linear histogram are joined in fours, so that a class of latencies is at most a quarter wide.
const CLASS_SHIFT: u32 = 2;

/// The sums of one interval, or of several.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub(super) seconds: f64,
    pub(super) ios: u64,
    pub(super) reads: u64,
    pub(super) bytes: u64,
    /// I/O that continue a stream.
    pub(super) continuing: u64,
    pub(super) by_alignment: [u64; ALIGNMENTS],
    /// I/O off a grid that the alignments cannot judge, counted when the interval came.
    pub(super) judged: Option<(Grid, u64)>,
    /// I/O with a known latency, by class of [`CLASS_SHIFT`].
    pub(super) latencies: Classes,
    /// By the power of two at or above the length in bytes.
    pub(super) sizes: Classes,
}

impl Moment {
    /// The sums of a profile of `seconds`, judged by a grid.
    pub(super) fn new(profile: &Profile, seconds: f64, grid: &Grid) -> Moment {
        let mut moment = Moment {
            seconds,
            ios: profile.ios(),
            reads: profile.op(Op::Read).ios,
            bytes: profile.bytes(),
            continuing: profile.ordered.continuing,
            ..Moment::default()
        };
        for totals in &profile.ops {
            add_times(&mut moment.latencies, &totals.device_ns);
            for (power, ios) in totals.sizes.iter() {
                *moment.sizes.entry(power as u32).or_default() += ios;
            }
        }
        let table = &profile.places.table;
        let unit = table.unit_bytes();
        let granularity = grid.granularity().0;
        let is_judged = table.modulus_bytes().is_multiple_of(granularity);
        let mut off = 0;
        for (key, row) in table.iter() {
            // A flush has no place.
            if key.length() == 0 {
                continue;
            }
            let start = key.residue() * unit;
            moment.by_alignment[alignment_of(start)] += row.ios;
            let past = start + granularity - grid.offset().0;
            if !past.is_multiple_of(granularity) {
                off += row.ios;
            }
        }
        moment.judged = is_judged.then_some((*grid, off));
        moment
    }

    /// An interval without I/O.
    pub(super) fn idle(seconds: f64) -> Moment {
        Moment {
            seconds,
            ..Moment::default()
        }
    }

    fn add(&mut self, other: &Moment) {
        let is_first = self.seconds == 0.0;
        self.judged = match (self.judged, other.judged) {
            (None, judged) if is_first || self.ios == 0 => judged,
            (judged, None) if other.ios == 0 => judged,
            (Some((mine, off)), Some((theirs, more))) if mine == theirs => Some((mine, off + more)),
            _ => None,
        };
        self.seconds += other.seconds;
        self.ios += other.ios;
        self.reads += other.reads;
        self.bytes += other.bytes;
        self.continuing += other.continuing;
        for (mine, theirs) in self.by_alignment.iter_mut().zip(other.by_alignment) {
            *mine += theirs;
        }
        for (mine, theirs) in [
            (&mut self.latencies, &other.latencies),
            (&mut self.sizes, &other.sizes),
        ] {
            for (class, ios) in theirs {
                *mine.entry(*class).or_default() += ios;
            }
        }
    }

    /// Share of the I/O that start off a grid; `None` without I/O, or if the grid was not judged at the time.
    pub(super) fn misfit(&self, grid: &Grid) -> Option<f64> {
        let placed: u64 = self.by_alignment.iter().sum();
        if placed == 0 {
            return None;
        }
        let off = match self.judged {
            Some((judged, off)) if judged == *grid => off,
            _ => self.by_alignment.iter().take(alignment_power(grid)?).sum(),
        };
        Some(off as f64 / placed as f64)
    }

    /// The upper end of the class of latencies in which a share of the I/O is reached, ns; `None` without latencies.
    pub(super) fn latency_ns(&self, share: f64) -> Option<u64> {
        let total: u64 = self.latencies.values().sum();
        let wanted = ((total as f64 * share).ceil() as u64).max(1);
        let mut reached = 0;
        let class = self.latencies.iter().find(|(_, ios)| {
            reached += **ios;
            reached >= wanted
        });
        class.map(|(class, _)| end_of_class(*class))
    }

    /// I/O by the power of two at or above their latency in ns.
    pub(super) fn latency_octaves(&self) -> Classes {
        let mut octaves = Classes::new();
        for (class, ios) in &self.latencies {
            let power = power_index(end_of_class(*class)) as u32;
            *octaves.entry(power).or_default() += ios;
        }
        octaves
    }
}

/// The longest latency of a class, ns.
fn end_of_class(class: u32) -> u64 {
    let last = (class << CLASS_SHIFT) + (1 << CLASS_SHIFT) - 1;
    log_linear_bounds(last as usize).1
}

fn add_times(classes: &mut Classes, times: &Counts) {
    for (index, ios) in times.iter() {
        *classes.entry(index as u32 >> CLASS_SHIFT).or_default() += ios;
    }
}

/// The intervals of one device, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    moments: VecDeque<Moment>,
    /// Intervals since the last one with I/O.
    idle: usize,
}

/// The part of a course that a graph shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoursePart {
    /// Columns of the graph.
    pub(super) width: usize,
    /// Intervals of a column.
    pub(super) zoom: usize,
    /// The last intervals, which are left out.
    pub(super) behind: usize,
    /// Intervals since the beginning, with those that no course holds any more.
    pub(super) seen: usize,
}

impl Course {
    pub(super) fn push(&mut self, moment: Moment) {
        self.idle = if moment.ios == 0 { self.idle + 1 } else { 0 };
        self.moments.push_back(moment);
        while self.moments.len() > INTERVALS_MAX {
            self.moments.pop_front();
        }
    }

    /// Whether no interval that it holds has I/O.
    pub(super) fn is_idle(&self) -> bool {
        self.idle >= INTERVALS_MAX
    }

    /// Fills up with idle intervals: a device that was not there before had nothing to do.
    pub(super) fn begin_late(&mut self, seconds: impl ExactSizeIterator<Item = f64>) {
        if self.moments.is_empty() {
            self.moments.extend(seconds.map(Moment::idle));
        }
    }

    /// Columns of several intervals each, the newest last.
    pub(super) fn columns(&self, part: CoursePart) -> Vec<Moment> {
        self.sums(part, Moment::add)
    }

    /// I/O a second in each column of [`Course::columns`].
    pub(super) fn rates(&self, part: CoursePart) -> Vec<f64> {
        let sums = self.sums(part, |(ios, seconds): &mut (u64, f64), moment| {
            *ios += moment.ios;
            *seconds += moment.seconds;
        });
        sums.iter()
            .map(|(ios, seconds)| *ios as f64 / seconds.max(1e-9))
            .collect()
    }

    /// The sum of each column. Columns begin at fixed intervals: a column does not change any more once it is full.
    fn sums<T: Default>(&self, part: CoursePart, add: impl Fn(&mut T, &Moment)) -> Vec<T> {
        let shown = self.moments.len().saturating_sub(part.behind);
        // The number of the first interval that is kept, of all since the beginning.
        let first = part.seen.saturating_sub(self.moments.len());
        let columns = (first + shown).div_ceil(part.zoom);
        let skipped = (columns.saturating_sub(part.width) * part.zoom).saturating_sub(first);
        let mut sums: Vec<T> = Vec::new();
        for (at, moment) in self.moments.iter().enumerate().take(shown).skip(skipped) {
            if sums.is_empty() || (first + at).is_multiple_of(part.zoom) {
                sums.push(T::default());
            }
            if let Some(sum) = sums.last_mut() {
                add(sum, moment);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use plumb_geometry::{Bytes, GridKind};
    use plumb_profile::histogram::log_linear_index;
    use plumb_profile::table::{Row, Table};
    use plumb_trace::Layer;

    use super::*;

    /// Reads of 4 KiB at a sector.
    fn profile(sector: u64, ios: u64) -> Profile {
        let mut profile = Profile::new("sda", Layer::Request, Table::default());
        let sums = Row {
            ios,
            ..Row::default()
        };
        profile.add_residue(Op::Read, sector * 512, 4096, false, &sums);
        profile
    }

    fn grid(granularity: u64, offset: u64) -> Grid {
        Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit).expect("a grid")
    }

    #[test]
    fn misfit_of_grids_that_were_and_were_not_asked_for() {
        let mut sum = Moment::new(&profile(2, 30), 1.0, &Grid::ASSUMED);
        sum.add(&Moment::new(&profile(8, 10), 1.0, &Grid::ASSUMED));
        assert_eq!(sum.misfit(&Grid::ASSUMED), Some(0.75));
        assert_eq!(sum.misfit(&grid(1024, 0)), Some(0.0));
        assert_eq!(sum.misfit(&grid(8192, 0)), Some(1.0));
        assert_eq!(sum.misfit(&grid(4096, 1024)), None);
        let moved = grid(4096, 1024);
        let later = Moment::new(&profile(2, 30), 1.0, &moved);
        assert_eq!(later.misfit(&moved), Some(0.0));
        // Flushes are I/O without a place.
        let mut flushed = profile(2, 30);
        let flushes = Row {
            ios: 10,
            ..Row::default()
        };
        flushed.add_residue(Op::Flush, 0, 0, false, &flushes);
        let flushed = Moment::new(&flushed, 1.0, &Grid::ASSUMED);
        assert_eq!(flushed.misfit(&Grid::ASSUMED), Some(1.0));
        // A sum of intervals that different grids judged is not judged by either.
        sum.add(&later);
        assert_eq!(sum.misfit(&moved), None);
        assert_eq!(sum.misfit(&Grid::ASSUMED), Some(60.0 / 70.0));
        assert_eq!(Moment::idle(1.0).misfit(&Grid::ASSUMED), None);
    }

    #[test]
    fn columns_begin_at_fixed_intervals() {
        let mut course = Course::default();
        for ios in 1..=7 {
            course.push(Moment::new(&profile(0, ios), 1.0, &Grid::ASSUMED));
        }
        let ios = |width, zoom, behind| -> Vec<u64> {
            let columns = course.columns(CoursePart {
                width,
                zoom,
                behind,
                seen: 9,
            });
            columns.iter().map(|column| column.ios).collect()
        };
        assert_eq!(ios(9, 1, 0), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(ios(3, 1, 2), [3, 4, 5]);
        // The first of seven is the third of nine: the second column of two begins with the fifth.
        assert_eq!(ios(9, 2, 0), [3, 7, 11, 7]);
        assert_eq!(ios(2, 4, 0), [18, 7]);
    }

    #[test]
    fn latencies_end_with_their_class() {
        let mut times = Counts::default();
        times.add(log_linear_index(100_000), 98);
        times.add(log_linear_index(1_000_000), 2);
        let mut moment = Moment::default();
        add_times(&mut moment.latencies, &times);
        for (share, ns) in [(0.5, 100_000.0), (0.99, 1_000_000.0)] {
            let found = moment.latency_ns(share).expect("a latency") as f64;
            assert!((ns..=ns * 1.25).contains(&found), "{found}");
        }
        // 2^17 is 131 µs, 2^20 is 1.05 ms.
        let octaves: Vec<(u32, u64)> = moment.latency_octaves().into_iter().collect();
        assert_eq!(octaves, [(17, 98), (20, 2)]);
        assert_eq!(Moment::default().latency_ns(0.99), None);
    }
}
