//! The course over time, for pictures: at most [`WINDOWS_MAX`] windows whose width doubles when they are full.
//!
//! Windows start at multiples of their width, a power of two in ns, so that timelines of one clock merge in any order.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use plumb_trace::{IOS_MAX, Op, UNKNOWN_NS};

use crate::columns::{BLOCK_EVENTS, Ios};
use crate::histogram::{Counts, power_index};

/// Most windows.
pub const WINDOWS_MAX: usize = 512;

/// Width to begin with: 2^20 ns, about a millisecond.
const SHIFT_MIN: u32 = 20;

/// Lengths by power of two: one more than there are bits.
const SIZES: usize = 65;

/// Places for these: a power of two, so that a bucket with its operation is a place.
const SIZE_PLACES: usize = SIZES.next_power_of_two();

/// Regions of 2^58 bytes are 64 for all addresses that there are.
const REGION_SHIFT_MAX: u32 = 58;

/// A window is at least this many times as long as the counting period of a source.
const COUNTED_IN_WINDOW: u64 = 3;

/// Width of the widest window: 146 years.
const SHIFT_MAX: u32 = 62;

/// A part of a time, in ns since its begin.
struct TimeSpan {
    from: u64,
    to: u64,
    whole: u64,
}

impl TimeSpan {
    /// The share of a count, so rounded that the shares of all parts add up to it.
    fn share_of(&self, count: u64) -> u64 {
        let until = |ns: u64| u128::from(count) * u128::from(ns) / u128::from(self.whole);
        u64::try_from(until(self.to) - until(self.from)).unwrap_or(u64::MAX)
    }
}

/// The activity in one window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Reads by [`power_index`] of their length.
    pub read_sizes: Counts,
    /// Writes by [`power_index`] of their length.
    pub write_sizes: Counts,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// I/O of other operations.
    pub other_ios: u64,
    /// Reads and writes with a known latency.
    pub timed: u64,
    /// Sum of their latencies, ns.
    pub ns_sum: u64,
    /// Largest of their latencies, ns.
    pub ns_max: u64,
    /// Reads and writes by region of the device; see [`Timeline::region_shift`].
    pub regions: Counts,
}

impl Window {
    fn merge(&mut self, other: &Window) {
        self.read_sizes.merge(&other.read_sizes);
        self.write_sizes.merge(&other.write_sizes);
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.write_bytes = self.write_bytes.saturating_add(other.write_bytes);
        self.other_ios = self.other_ios.saturating_add(other.other_ios);
        self.timed = self.timed.saturating_add(other.timed);
        self.ns_sum = self.ns_sum.saturating_add(other.ns_sum);
        self.ns_max = self.ns_max.max(other.ns_max);
        self.regions.merge(&other.regions);
    }

    /// Its share of a part of the time: parts that make the whole add up to it.
    fn part(&self, part: &TimeSpan) -> Window {
        let counts = |counts: &Counts| {
            let mut some = Counts::default();
            for (index, ios) in counts.iter() {
                some.add(index, part.share_of(ios));
            }
            some
        };
        let timed = part.share_of(self.timed);
        Window {
            read_sizes: counts(&self.read_sizes),
            write_sizes: counts(&self.write_sizes),
            read_bytes: part.share_of(self.read_bytes),
            write_bytes: part.share_of(self.write_bytes),
            other_ios: part.share_of(self.other_ios),
            timed,
            ns_sum: part.share_of(self.ns_sum),
            ns_max: if timed > 0 { self.ns_max } else { 0 },
            regions: counts(&self.regions),
        }
    }

    fn fold_regions(&mut self, by: u32) {
        let mut folded = Counts::default();
        for (region, ios) in self.regions.iter() {
            folded.add(region >> by.min(63), ios);
        }
        self.regions = folded;
    }
}

/// Windows by their number: window n begins at n · 2^shift ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    shift: u32,
    region_shift: u32,
    #[serde(deserialize_with = "crate::bounded::map::<_, _, _, WINDOWS_MAX>")]
    windows: BTreeMap<i64, Window>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline {
            shift: SHIFT_MIN,
            region_shift: SHIFT_MIN,
            windows: BTreeMap::new(),
        }
    }
}

/// The part of an I/O that a timeline records.
#[derive(Clone, Copy, Debug)]
pub struct TimelineIo {
    /// Time of issue, ns.
    pub time_ns: i64,
    /// Operation.
    pub op: Op,
    /// First byte.
    pub start_bytes: u64,
    /// Length.
    pub len_bytes: u64,
    /// Latency, where known.
    pub device_ns: Option<i64>,
}

impl Timeline {
    /// Width of a window in ns.
    #[must_use]
    pub fn width_ns(&self) -> u64 {
        1 << self.shift
    }

    /// Regions are 2^shift bytes; there are at most 64.
    #[must_use]
    pub fn region_shift(&self) -> u32 {
        self.region_shift
    }

    /// Windows with activity: start in ns, and content.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &Window)> {
        self.windows
            .iter()
            .map(|(number, window)| (number << self.shift, window))
    }

    /// Takes note of I/O in the order given.
    pub fn add_all(&mut self, ios: impl Iterator<Item = TimelineIo>) {
        let mut open = Open::default();
        for io in ios {
            self.make_ready(io.start_bytes, &mut open);
            self.go_to(&[io.time_ns], &mut open);
            if io.op as usize > 1 {
                open.other_ios += 1;
            } else {
                open.place(io.op, io.start_bytes, io.len_bytes, self.region_shift);
                io.device_ns
                    .into_iter()
                    .for_each(|ns| open.time(ns.max(0).unsigned_abs()));
            }
        }
        self.close(&mut open);
    }

    /// Makes regions large enough for a start.
    pub(crate) fn make_ready(&mut self, start_bytes_max: u64, open: &mut Open) {
        if start_bytes_max >> self.region_shift >= 64 {
            self.close(open);
            let bits = 64 - start_bytes_max.leading_zeros();
            self.set_region_shift(bits.saturating_sub(6));
        }
    }

    /// Makes windows wide enough for the activity between two times.
    pub(crate) fn widen_to(&mut self, first_ns: i64, last_ns: i64, open: &mut Open) {
        let width = |timeline: &Timeline, open: &Open| {
            let shift = timeline.shift;
            let known = timeline
                .windows
                .keys()
                .next()
                .into_iter()
                .chain(timeline.windows.keys().next_back());
            let numbers = known.copied().chain(open.is_open.then_some(open.number));
            let (first, last) = numbers
                .fold((first_ns >> shift, last_ns >> shift), |(first, last), n| {
                    (first.min(n), last.max(n))
                });
            first.abs_diff(last)
        };
        while width(self, open) >= WINDOWS_MAX as u64 {
            self.close(open);
            self.set_shift(self.shift + 1);
        }
    }

    /// Opens the window of the first of some times, if it is not the open one; returns the number of times in it.
    #[inline(always)]
    pub(crate) fn go_to(&mut self, times_ns: &[i64], open: &mut Open) -> usize {
        let Some(&first_ns) = times_ns.first() else {
            return 0;
        };
        if !open.is_open || first_ns >> self.shift != open.number {
            self.close(open);
            open.number = first_ns >> self.shift;
            open.is_open = true;
        }
        let (shift, number) = (self.shift, open.number);
        // Nearly always it is all of them, which needs no branch.
        let others = times_ns
            .iter()
            .fold(0, |others, time_ns| others | (time_ns >> shift ^ number));
        let other = if others == 0 {
            None
        } else {
            times_ns.iter().position(|ns| ns >> shift != number)
        };
        other.unwrap_or(times_ns.len())
    }

    /// Puts the open window, if any, to the others.
    #[inline(never)]
    pub(crate) fn close(&mut self, open: &mut Open) {
        if open.is_open {
            let window = open.take();
            match self.windows.entry(open.number) {
                Entry::Vacant(free) => {
                    free.insert(window);
                    self.widen_until_it_fits();
                }
                Entry::Occupied(mut known) => known.get_mut().merge(&window),
            }
        }
    }

    /// Adds the counts of a summing source between two times, spread evenly over the windows that they touch.
    ///
    /// Windows are made three times as wide as that at least: then most of them hold whole counts, and the even spread
    /// at their ends makes neighbours little more alike than they were.
    pub fn add_counted(&mut self, from_ns: i64, to_ns: i64, counted: &Window) {
        let Some(span_ns) = to_ns
            .checked_sub(from_ns)
            .and_then(|ns| u64::try_from(ns).ok())
        else {
            return;
        };
        if span_ns == 0 {
            return;
        }
        let wanted = span_ns.saturating_mul(COUNTED_IN_WINDOW);
        self.set_shift((64 - (wanted - 1).leading_zeros()).min(SHIFT_MAX));
        let (first, last) = (from_ns >> self.shift, (to_ns - 1) >> self.shift);
        for number in first..=last {
            let (begin, end) = (number << self.shift, (number + 1) << self.shift);
            let part = TimeSpan {
                from: begin.max(from_ns).abs_diff(from_ns),
                to: end.min(to_ns).abs_diff(from_ns),
                whole: span_ns,
            };
            let window = counted.part(&part);
            self.windows.entry(number).or_default().merge(&window);
        }
        self.widen_until_it_fits();
    }

    /// Adds another timeline of the same clock.
    pub fn merge(&mut self, other: &Timeline) {
        self.set_shift(self.shift.max(other.shift));
        self.set_region_shift(self.region_shift.max(other.region_shift));
        let region_shift = self.region_shift - other.region_shift;
        for (number, window) in &other.windows {
            let number = number >> (self.shift - other.shift);
            let mine = self.windows.entry(number).or_default();
            if region_shift == 0 {
                mine.merge(window);
            } else {
                let mut window = window.clone();
                window.fold_regions(region_shift);
                mine.merge(&window);
            }
        }
        self.widen_until_it_fits();
    }

    fn span(&self) -> u64 {
        match (self.windows.keys().next(), self.windows.keys().next_back()) {
            (Some(first), Some(last)) => first.abs_diff(*last).saturating_add(1),
            _ => 0,
        }
    }

    fn widen_until_it_fits(&mut self) {
        while self.span() > WINDOWS_MAX as u64 {
            self.set_shift(self.shift + 1);
        }
    }

    fn set_shift(&mut self, shift: u32) {
        if shift <= self.shift {
            return;
        }
        let by = shift - self.shift;
        self.shift = shift;
        for (number, window) in std::mem::take(&mut self.windows) {
            self.windows
                .entry(number >> by.min(63))
                .or_default()
                .merge(&window);
        }
    }

    fn set_region_shift(&mut self, shift: u32) {
        if shift <= self.region_shift {
            return;
        }
        let by = shift - self.region_shift;
        self.region_shift = shift;
        for window in self.windows.values_mut() {
            window.fold_regions(by);
        }
    }

    pub(crate) fn is_plausible(&self) -> bool {
        (SHIFT_MIN..63).contains(&self.shift)
            && (SHIFT_MIN..=REGION_SHIFT_MAX).contains(&self.region_shift)
            && self.span() <= WINDOWS_MAX as u64
            && self.windows.iter().all(|(number, window)| {
                number << self.shift >> self.shift == *number
                    && window.read_sizes.can_be_ios(SIZES)
                    && window.write_sizes.can_be_ios(SIZES)
                    && window.regions.can_be_ios(64)
                    && window.other_ios.max(window.timed) <= IOS_MAX
            })
    }
}

/// The window into which I/O go at present, with room for every bucket.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    is_open: bool,
    number: i64,
    /// By size; first reads, then writes.
    sizes: [u64; 2 * SIZE_PLACES],
    bytes: [u64; 2],
    pub(crate) other_ios: u64,
    timed: u64,
    ns_sum: u64,
    ns_max: u64,
    regions: [u64; 64],
}

impl Default for Open {
    fn default() -> Open {
        Open {
            is_open: false,
            number: 0,
            sizes: [0; 2 * SIZE_PLACES],
            bytes: [0; 2],
            other_ios: 0,
            timed: 0,
            ns_sum: 0,
            ns_max: 0,
            regions: [0; 64],
        }
    }
}

impl Open {
    /// Counts a read or write.
    #[inline(always)]
    pub(crate) fn place(&mut self, op: Op, start_bytes: u64, len_bytes: u64, region_shift: u32) {
        let op = op as usize & 1;
        self.sizes[op * SIZE_PLACES + power_index(len_bytes)] += 1;
        self.bytes[op] = self.bytes[op].saturating_add(len_bytes);
        self.regions[(start_bytes >> region_shift & 63) as usize] += 1;
    }

    /// Counts its latency.
    #[inline(always)]
    pub(crate) fn time(&mut self, ns: u64) {
        self.timed += 1;
        self.ns_sum = self.ns_sum.saturating_add(ns);
        self.ns_max = self.ns_max.max(ns);
    }

    /// Counts the reads and writes of a block.
    #[inline(always)]
    pub(crate) fn place_all(
        &mut self,
        ios: &Ios<'_>,
        region_shift: u32,
        buckets: &mut [u16; BLOCK_EVENTS],
        numbers: &mut [u64; BLOCK_EVENTS],
    ) {
        // Region, size, operation and whether it counts, each in some bits: worked out several at a time.
        let given = ios.op.iter().zip(ios.start_bytes).zip(ios.len_bytes);
        for (bucket, ((&op, &start), &len)) in buckets.iter_mut().zip(given) {
            let (op, region) = (op as usize, (start >> region_shift & 63) as usize);
            *bucket = (region | power_index(len) << 6 | (op & 1) << 13 | usize::from(op <= 1) << 14)
                as u16;
        }
        for &bucket in &buckets[..ios.len().min(BLOCK_EVENTS)] {
            let (bucket, ios) = (usize::from(bucket), u64::from(bucket >> 14));
            self.regions[bucket & 63] += ios;
            self.sizes[bucket >> 6 & (2 * SIZE_PLACES - 1)] += ios;
        }
        for (op, sum) in self.bytes.iter_mut().enumerate() {
            let given = ios.op.iter().zip(ios.len_bytes);
            for (number, (&of, &len)) in numbers.iter_mut().zip(given) {
                *number = if of as usize == op { len } else { 0 };
            }
            *sum = sum.saturating_add(sum_of(&numbers[..ios.len().min(BLOCK_EVENTS)]));
        }
    }

    /// Counts the latencies of the reads and writes of a block that are known.
    #[inline(always)]
    pub(crate) fn time_all(
        &mut self,
        op: &[Op],
        devices_ns: &[i64],
        numbers: &mut [u64; BLOCK_EVENTS],
    ) {
        let counts = |op: Op, ns: i64| op as usize <= 1 && ns != UNKNOWN_NS;
        let times = op.iter().zip(devices_ns);
        self.timed += times
            .clone()
            .fold(0, |timed, (&op, &ns)| timed + u64::from(counts(op, ns)));
        // I/O that do not count are 0, like a completion before its issue.
        for (number, (&op, &ns)) in numbers.iter_mut().zip(times) {
            *number = if counts(op, ns) {
                ns.max(0).unsigned_abs()
            } else {
                0
            };
        }
        let known_ns = &numbers[..devices_ns.len().min(BLOCK_EVENTS)];
        self.ns_max = known_ns.iter().fold(self.ns_max, |most, &ns| most.max(ns));
        self.ns_sum = self.ns_sum.saturating_add(sum_of(known_ns));
    }

    /// Its content; it is empty and closed then.
    fn take(&mut self) -> Window {
        let mut window = Window {
            read_bytes: self.bytes[0],
            write_bytes: self.bytes[1],
            other_ios: self.other_ios,
            timed: self.timed,
            ns_sum: self.ns_sum,
            ns_max: self.ns_max,
            ..Window::default()
        };
        let (reads, writes) = self.sizes.split_at(SIZE_PLACES);
        window.read_sizes = Counts::from_buckets(reads);
        window.write_sizes = Counts::from_buckets(writes);
        window.regions = Counts::from_buckets(&self.regions);
        *self = Open {
            number: self.number,
            ..Open::default()
        };
        window
    }
}

/// The sum of the numbers of a block, or the largest number. In halves, so that several are added at a time and none
/// of the sums comes to its end.
#[inline(always)]
fn sum_of(numbers: &[u64]) -> u64 {
    let low = numbers.iter().fold(0, |sum, n| sum + (n & 0xffff_ffff));
    let high: u64 = numbers.iter().fold(0, |sum, n| sum + (n >> 32));
    u64::try_from(u128::from(low) + (u128::from(high) << 32)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_at_their_end() {
        assert_eq!(sum_of(&[]), 0);
        assert_eq!(sum_of(&[u64::from(u32::MAX); 3]), 3 * u64::from(u32::MAX));
        assert_eq!(sum_of(&[5 << 40, 7, 1 << 32]), (5 << 40) + 7 + (1 << 32));
        assert_eq!(sum_of(&[u64::MAX, 0]), u64::MAX);
        assert_eq!(sum_of(&[u64::MAX - 1, 2]), u64::MAX);
        assert_eq!(sum_of(&[u64::MAX; BLOCK_EVENTS]), u64::MAX);
    }

    /// Seven hours of readings, 250 ms each, keep at most 512 windows and all counts.
    #[test]
    fn counts_of_hours_fit_512_windows() {
        let mut timeline = Timeline::default();
        let step_ns = 250_000_000;
        for at in 0..100_000i64 {
            let mut counted = Window {
                write_bytes: 8192 * 3,
                timed: 3,
                ns_sum: 7,
                ..Window::default()
            };
            counted.write_sizes.add(13, 3);
            timeline.add_counted(at * step_ns, (at + 1) * step_ns, &counted);
        }
        let windows: Vec<_> = timeline.iter().map(|(_, window)| window).collect();
        // 25,000 s in windows of 2^36 ns, which are 68.7 s: 363.8 of them.
        assert_eq!((timeline.width_ns(), windows.len()), (1 << 36, 364));
        let sum =
            |value: fn(&Window) -> u64| windows.iter().map(|window| value(window)).sum::<u64>();
        assert_eq!(sum(|window| window.write_sizes.total()), 300_000);
        assert_eq!(sum(|window| window.write_bytes), 300_000 * 8192);
        assert_eq!(
            (sum(|window| window.timed), sum(|window| window.ns_sum)),
            (300_000, 700_000)
        );
        // 12 I/O a second for 68.7 s; a reading is cut at each end.
        for window in &windows[1..windows.len() - 1] {
            assert!((822..=828).contains(&window.timed), "{}", window.timed);
        }
        assert!(timeline.is_plausible());
    }

    /// Counts of each 250 ms add up, and each window has its share, for any boundaries.
    #[test]
    fn counts_of_a_time_are_spread() {
        let mut timeline = Timeline::default();
        let (step_ns, begin_ns) = (250_000_000, 7_123_456_789);
        for at in 0..40i64 {
            let mut counted = Window {
                read_bytes: 409_600,
                timed: 100,
                ns_sum: 12_345,
                ns_max: 400,
                ..Window::default()
            };
            counted.read_sizes.add(12, 100);
            let from_ns = begin_ns + at * step_ns;
            timeline.add_counted(from_ns, from_ns + step_ns, &counted);
        }
        assert_eq!(
            timeline.width_ns(),
            1 << 30,
            "three times 250 ms, up to a power of two"
        );
        let windows: Vec<_> = timeline.iter().collect();
        let sum = |value: fn(&Window) -> u64| {
            windows.iter().map(|(_, window)| value(window)).sum::<u64>()
        };
        assert_eq!(sum(|window| window.read_sizes.total()), 4000);
        assert_eq!(
            (sum(|window| window.timed), sum(|window| window.ns_sum)),
            (4000, 40 * 12_345)
        );
        assert_eq!(sum(|window| window.read_bytes), 40 * 409_600);
        // 400 I/O a second for 1.0737 s; counts are cut at no more than two ends.
        for (_, window) in &windows[1..windows.len() - 1] {
            assert!((428..=431).contains(&window.timed), "{}", window.timed);
        }
        let count = windows.len();
        timeline.add_counted(5, 5, &Window::default());
        timeline.add_counted(i64::MAX, i64::MIN, &Window::default());
        assert_eq!(timeline.iter().count(), count);
        assert!(timeline.is_plausible());
    }
}
