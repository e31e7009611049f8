//! Time at each depth of I/O in flight, and of threads with I/O in flight.
//!
//! An I/O is in flight from its issue until its latency later; I/O without a known latency do not count. The time
//! between two changes is attributed to the I/O whose issue (or the end of the piece) brings it to notice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::histogram::{Counts, log_linear_index};

/// How long how many were in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// ns by number of I/O in flight, log-linear buckets.
    pub depth_ns: Counts,
    /// ns by number of distinct threads with I/O in flight, log-linear buckets; empty when no thread is known.
    pub threads_ns: Counts,
    /// Most I/O in flight at once.
    pub depth_max: u64,
    /// Most distinct threads with I/O in flight at once.
    pub threads_max: u64,
}

impl InFlight {
    /// Adds another one's times; the maxima are those of either.
    pub fn merge(&mut self, other: &InFlight) {
        self.depth_ns.merge(&other.depth_ns);
        self.threads_ns.merge(&other.threads_ns);
        self.depth_max = self.depth_max.max(other.depth_max);
        self.threads_max = self.threads_max.max(other.threads_max);
    }
}

/// Stands for an unknown thread.
pub const NO_THREAD: i32 = i32::MIN;

/// I/O in flight on one device, kept up from issue to issue.
#[derive(Clone, Default)]
pub struct Pending {
    completions: Completions,
    threads: Threads,
    now_ns: Option<i64>,
    any_thread: bool,
}

impl Pending {
    /// Goes on to `time_ns`, then puts an I/O in flight that stays for `device_ns`.
    #[inline]
    pub fn issue(&mut self, time_ns: i64, device_ns: i64, thread: i32, sums: &mut InFlight) {
        self.advance(time_ns, sums);
        let now_ns = self.now_ns.unwrap_or(time_ns);
        self.completions.push(now_ns.saturating_add(device_ns.max(0)), thread);
        sums.depth_max = sums.depth_max.max(self.completions.len() as u64);
        if thread != NO_THREAD {
            self.any_thread = true;
            self.threads.enter(thread);
            sums.threads_max = sums.threads_max.max(self.threads.in_flight() as u64);
        }
    }

    /// Goes on to `time_ns`: what completed until then leaves. Time never goes back.
    #[inline]
    pub fn advance(&mut self, time_ns: i64, sums: &mut InFlight) {
        let Some(mut now_ns) = self.now_ns else {
            self.now_ns = Some(time_ns);
            return;
        };
        while let Some((done_ns, thread)) = self.completions.pop_until(time_ns) {
            self.spend(now_ns, done_ns, self.completions.len() + 1, sums);
            now_ns = now_ns.max(done_ns);
            if thread != NO_THREAD {
                self.threads.leave(thread);
            }
        }
        self.spend(now_ns, time_ns, self.completions.len(), sums);
        self.now_ns = Some(now_ns.max(time_ns));
    }

    /// The end of the piece: everything in flight completes.
    pub fn finish(&mut self, sums: &mut InFlight) {
        while let Some(done_ns) = self.completions.next_ns() {
            self.advance(done_ns, sums);
        }
        *self = Pending::default();
    }

    #[inline(always)]
    fn spend(&self, from_ns: i64, to_ns: i64, depth: usize, sums: &mut InFlight) {
        if to_ns > from_ns {
            let ns = from_ns.abs_diff(to_ns);
            sums.depth_ns.add(log_linear_index(depth as u64), ns);
            if self.any_thread {
                sums.threads_ns.add(log_linear_index(self.threads.in_flight() as u64), ns);
            }
        }
    }
}

/// How many of the next completions are kept sorted.
const NEAR: usize = 32;

/// Completions by time. Queues are short as a rule, and then a short sorted list is faster than a heap; what it
/// cannot hold waits in a heap.
#[derive(Clone, Default)]
struct Completions {
    /// The next ones, the very next at the end.
    near: [(i64, i32); NEAR],
    near_len: usize,
    /// All others, none of them before one of the near ones. Empty when those are.
    far: BinaryHeap<Reverse<(i64, i32)>>,
}

impl Completions {
    #[inline(always)]
    fn len(&self) -> usize {
        self.near_len + self.far.len()
    }

    #[inline(always)]
    fn next_ns(&self) -> Option<i64> {
        self.near[..self.near_len].last().map(|next| next.0)
    }

    #[inline(always)]
    fn pop_until(&mut self, time_ns: i64) -> Option<(i64, i32)> {
        let next = self.near[..self.near_len].last().copied().filter(|next| next.0 <= time_ns)?;
        self.near_len -= 1;
        if self.near_len == 0 && !self.far.is_empty() {
            self.refill();
        }
        Some(next)
    }

    #[inline(always)]
    fn push(&mut self, done_ns: i64, thread: i32) {
        if self.near_len == NEAR {
            self.spill();
        }
        if !self.far.is_empty() && done_ns >= self.near[0].0 {
            self.far.push(Reverse((done_ns, thread)));
            return;
        }
        let mut at = self.near_len;
        while at > 0 && self.near[at - 1].0 < done_ns {
            self.near[at] = self.near[at - 1];
            at -= 1;
        }
        self.near[at] = (done_ns, thread);
        self.near_len += 1;
    }

    /// Gives the later half of the near ones to the others.
    #[cold]
    fn spill(&mut self) {
        self.far.extend(self.near[..NEAR / 2].iter().map(|&later| Reverse(later)));
        self.near.copy_within(NEAR / 2.., 0);
        self.near_len = NEAR / 2;
    }

    /// Takes the next ones of the others.
    #[inline(never)]
    fn refill(&mut self) {
        let taken = (NEAR / 2).min(self.far.len());
        for at in (0..taken).rev() {
            if let Some(Reverse(next)) = self.far.pop() {
                self.near[at] = next;
            }
        }
        self.near_len = taken;
    }
}

/// How many I/O each thread has in flight: places by hash of the thread. One without I/O keeps its place, since it
/// will be back as a rule; such places are cleared when free ones become few.
#[derive(Clone, Default)]
struct Threads {
    /// A power of two of (thread, I/O in flight), or none yet. [`NO_THREAD`] where free.
    places: Vec<(i32, u32)>,
    taken: usize,
    in_flight: usize,
}

impl Threads {
    /// How many threads have I/O in flight.
    #[inline(always)]
    fn in_flight(&self) -> usize {
        self.in_flight
    }

    #[inline(always)]
    fn enter(&mut self, thread: i32) {
        let at = match self.find(thread) {
            Some(at) => at,
            None => self.insert(thread),
        };
        let ios = &mut self.places[at].1;
        self.in_flight += usize::from(*ios == 0);
        *ios += 1;
    }

    #[inline(always)]
    fn leave(&mut self, thread: i32) {
        if let Some(at) = self.find(thread) {
            let ios = &mut self.places[at].1;
            *ios = ios.saturating_sub(1);
            self.in_flight -= usize::from(*ios == 0);
        }
    }

    #[inline(always)]
    fn first_place(&self, thread: i32) -> usize {
        (thread as u32).wrapping_mul(0x9e37_79b9) as usize >> 7
    }

    #[inline(always)]
    fn find(&self, thread: i32) -> Option<usize> {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = self.first_place(thread) & mask;
        loop {
            let taken = self.places.get(at)?.0;
            if taken == thread {
                return Some(at);
            }
            if taken == NO_THREAD {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, thread: i32) -> usize {
        if 2 * (self.taken + 1) > self.places.len() {
            self.clear_idle();
        }
        self.taken += 1;
        self.put(thread, 0)
    }

    fn put(&mut self, thread: i32, ios: u32) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.first_place(thread) & mask;
        while self.places[at].0 != NO_THREAD {
            at = (at + 1) & mask;
        }
        self.places[at] = (thread, ios);
        at
    }

    fn clear_idle(&mut self) {
        let busy: Vec<(i32, u32)> = self.places.iter().copied().filter(|place| place.1 > 0).collect();
        let places = (4 * (busy.len() + 1)).next_power_of_two().max(64);
        self.places = vec![(NO_THREAD, 0); places];
        self.taken = busy.len();
        for (thread, ios) in busy {
            self.put(thread, ios);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Many threads that come and go, and queues longer than the sorted list, against plain maps.
    #[test]
    fn deep_queues_and_many_threads() {
        for (threads, depth) in [(3, 20), (100, 33), (5_000, 400), (100_000, 3_000)] {
            let (mut pending, mut sums) = (Pending::default(), InFlight::default());
            let mut flights: Vec<(i64, i32)> = Vec::new();
            let (mut depth_max, mut threads_max) = (0, 0);
            let mut random = 7u64;
            for time_ns in 0..20_000 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (device_ns, thread) =
                    ((random >> 33) as i64 % (2 * depth), (random >> 40) as i32 % threads);
                pending.issue(time_ns, device_ns, thread, &mut sums);
                flights.retain(|flight| flight.0 > time_ns);
                flights.push((time_ns + device_ns, thread));
                depth_max = depth_max.max(flights.len());
                assert_eq!(pending.completions.len(), flights.len());
                if time_ns % 16 == 0 {
                    let distinct: std::collections::BTreeSet<i32> = flights.iter().map(|f| f.1).collect();
                    assert_eq!(pending.threads.in_flight(), distinct.len());
                    threads_max = threads_max.max(distinct.len());
                    assert!(pending.threads.places.len() <= 16 * (threads_max + 16).next_power_of_two());
                }
            }
            assert_eq!(sums.depth_max, depth_max as u64);
            assert!(sums.threads_max >= threads_max as u64);
        }
    }

    proptest! {
        /// Against counting, for every ns, who is in flight.
        #[test]
        fn agrees_with_counting_every_nanosecond(
            ios in prop::collection::vec((0i64..4, 0i64..20, 0i32..3), 1..60)
        ) {
            let (mut pending, mut sums) = (Pending::default(), InFlight::default());
            let mut time_ns = 0;
            let mut flights = Vec::new();
            for (step, device_ns, thread) in ios {
                time_ns += step;
                pending.issue(time_ns, device_ns, thread, &mut sums);
                flights.push((time_ns, time_ns + device_ns, thread));
            }
            pending.finish(&mut sums);
            let first = flights[0].0;
            let last = flights.iter().map(|flight| flight.1.max(flight.0)).max().unwrap();
            let (mut depth, mut threads) = (Counts::default(), Counts::default());
            for ns in first..last {
                let now: Vec<i32> =
                    flights.iter().filter(|f| f.0 <= ns && ns < f.1).map(|f| f.2).collect();
                depth.add(log_linear_index(now.len() as u64), 1);
                let distinct: std::collections::BTreeSet<i32> = now.into_iter().collect();
                threads.add(log_linear_index(distinct.len() as u64), 1);
            }
            prop_assert_eq!(sums.depth_ns, depth);
            prop_assert_eq!(sums.threads_ns, threads);
        }
    }
}
