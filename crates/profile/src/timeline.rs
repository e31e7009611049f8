//! The course over time, for pictures: at most [`WINDOWS_MAX`] windows whose width doubles when they are full.
//!
//! Windows lie at multiples of their width, a power of two in ns, so that timelines of one clock merge in any order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use plumb_trace::{IOS_MAX, Op};

use crate::histogram::{Counts, power_index};

/// Most windows.
pub const WINDOWS_MAX: usize = 512;

/// Width to begin with: 2^20 ns, about a millisecond.
const SHIFT_MIN: u32 = 20;

/// What happened in one window.
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
    /// Reads and writes of which the latency is known.
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
        self.other_ios += other.other_ios;
        self.timed += other.timed;
        self.ns_sum = self.ns_sum.saturating_add(other.ns_sum);
        self.ns_max = self.ns_max.max(other.ns_max);
        self.regions.merge(&other.regions);
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
    windows: BTreeMap<i64, Window>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { shift: SHIFT_MIN, region_shift: SHIFT_MIN, windows: BTreeMap::new() }
    }
}

/// What of an I/O a timeline takes note of.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
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

    /// Windows in which something happened: start in ns, and what.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &Window)> {
        self.windows.iter().map(|(number, window)| (number << self.shift, window))
    }

    /// Takes note of I/O in the order given; runs of one window cost little.
    pub fn add_all(&mut self, ios: impl Iterator<Item = Seen>) {
        let mut open: Option<(i64, Window)> = None;
        for io in ios {
            if io.start_bytes >> self.region_shift >= 64 {
                if let Some((number, window)) = open.take() {
                    self.put(number, &window);
                }
                let bits = 64 - io.start_bytes.leading_zeros();
                self.set_region_shift(bits.saturating_sub(6));
            }
            let number = io.time_ns >> self.shift;
            if open.as_ref().is_none_or(|(at, _)| *at != number) {
                if let Some((at, window)) = open.take() {
                    self.put(at, &window);
                }
                open = Some((io.time_ns >> self.shift, Window::default()));
            }
            if let Some((_, window)) = &mut open {
                note(window, &io, self.region_shift);
            }
        }
        if let Some((number, window)) = open {
            self.put(number, &window);
        }
    }

    /// Adds another timeline of the same clock.
    pub fn merge(&mut self, other: &Timeline) {
        self.set_shift(self.shift.max(other.shift));
        self.set_region_shift(self.region_shift.max(other.region_shift));
        for (number, window) in &other.windows {
            let mut window = window.clone();
            window.fold_regions(self.region_shift - other.region_shift);
            let number = number >> (self.shift - other.shift);
            self.windows.entry(number).or_default().merge(&window);
        }
        self.widen_until_it_fits();
    }

    fn put(&mut self, number: i64, window: &Window) {
        self.windows.entry(number).or_default().merge(window);
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
            self.windows.entry(number >> by.min(63)).or_default().merge(&window);
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
        let fits = |window: &Window| {
            let ios = [window.other_ios, window.timed];
            window.read_sizes.is_plausible(65)
                && window.write_sizes.is_plausible(65)
                && window.regions.is_plausible(64)
                && ios.iter().all(|&ios| ios <= IOS_MAX)
        };
        self.shift < 63
            && self.region_shift < 64
            && self.span() <= WINDOWS_MAX as u64
            && self.windows.values().all(fits)
    }
}

#[inline]
fn note(window: &mut Window, io: &Seen, region_shift: u32) {
    match io.op {
        Op::Read => {
            window.read_sizes.add(power_index(io.len_bytes), 1);
            window.read_bytes = window.read_bytes.saturating_add(io.len_bytes);
        }
        Op::Write => {
            window.write_sizes.add(power_index(io.len_bytes), 1);
            window.write_bytes = window.write_bytes.saturating_add(io.len_bytes);
        }
        _ => {
            window.other_ios += 1;
            return;
        }
    }
    window.regions.add((io.start_bytes >> region_shift) as usize, 1);
    if let Some(ns) = io.device_ns {
        let ns = ns.max(0).unsigned_abs();
        window.timed += 1;
        window.ns_sum = window.ns_sum.saturating_add(ns);
        window.ns_max = window.ns_max.max(ns);
    }
}
