//! Time at each depth of I/O in flight, and of threads with I/O in flight.
//!
//! An I/O is in flight from its issue until its latency later; I/O without a known latency do not count. The time
//! between two changes is attributed to the I/O whose issue (or the end of the piece) brings it to notice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use plumb_trace::UNKNOWN_NS;

use crate::histogram::{Counts, log_linear_index};

mod threads;

use threads::{NO_PLACE, Threads};

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
#[derive(Clone)]
pub struct Pending {
    now: Now,
    /// The next completions with the places of their threads, the very next at `now.near`. The first entry is never
    /// reached: it ends every search.
    near_ns: [i64; ROOM],
    near_place: [u32; ROOM],
    /// All others, none of them before one of the near ones. Empty when there are no near ones.
    far: BinaryHeap<Reverse<(i64, u32)>>,
    threads: Threads,
    /// Whether any thread is known.
    any_thread: bool,
    /// Times by number of I/O and number of threads, as long as both are few, as is usual: they need no bucket to be
    /// worked out. They cannot run over: all of them lie one after the other.
    few_ns: Box<[[u64; FEW]; FEW]>,
}

/// What changes with every I/O, apart, so that it can stay in registers.
#[derive(Clone, Copy)]
struct Now {
    /// [`UNKNOWN_NS`] before the first issue.
    time_ns: i64,
    /// How many completions are near.
    near: usize,
    /// How many threads have I/O in flight.
    threads: usize,
    depth_max: usize,
    threads_max: usize,
}

/// Queues are short as a rule, and then a short sorted list is faster than a heap; what it cannot hold waits in one.
const NEAR: usize = 31;

/// One entry more, which is never reached.
const ROOM: usize = NEAR + 1;

/// Up to here a log-linear bucket holds one number.
const FEW: usize = 32;

impl Default for Pending {
    fn default() -> Pending {
        Pending {
            now: Now { time_ns: UNKNOWN_NS, near: 0, threads: 0, depth_max: 0, threads_max: 0 },
            near_ns: [i64::MAX; ROOM],
            near_place: [NO_PLACE; ROOM],
            far: BinaryHeap::new(),
            threads: Threads::default(),
            any_thread: false,
            few_ns: Box::new([[0; FEW]; FEW]),
        }
    }
}

impl Pending {
    /// Goes on from issue to issue, and puts an I/O in flight at each: (time, how long it stays, thread).
    #[inline(always)]
    pub fn issue_all(&mut self, ios: impl Iterator<Item = (i64, i64, i32)>, sums: &mut InFlight) {
        let mut now = self.now;
        for (time_ns, device_ns, thread) in ios {
            if now.time_ns == UNKNOWN_NS {
                now.time_ns = time_ns;
            }
            now = self.advance(now, time_ns, sums);
            let (issued, place) = self.enter(now, thread, sums);
            now = self.push(issued, device_ns, place);
        }
        self.now = now;
    }

    /// The end of the piece: everything in flight completes.
    pub fn finish(&mut self, sums: &mut InFlight) {
        while self.now.near > 0 {
            self.now = self.advance(self.now, self.near_ns[self.now.near], sums);
        }
        self.put_into(sums);
        *self = Pending::default();
    }

    /// Puts what is kept here into the sums, which are not complete without.
    pub fn put_into(&mut self, sums: &mut InFlight) {
        self.put_times_into(sums);
        sums.depth_max = sums.depth_max.max(std::mem::take(&mut self.now.depth_max) as u64);
        sums.threads_max = sums.threads_max.max(std::mem::take(&mut self.now.threads_max) as u64);
    }

    fn put_times_into(&mut self, sums: &mut InFlight) {
        for (depth, spent) in self.few_ns.iter_mut().enumerate() {
            sums.depth_ns.add(depth, spent.iter().sum());
            for (threads, ns) in spent.iter_mut().enumerate() {
                sums.threads_ns.add(threads, std::mem::take(ns) & if self.any_thread { u64::MAX } else { 0 });
            }
        }
    }

    /// Goes on to `time_ns`: what completed until then leaves. Time never goes back.
    #[inline(always)]
    fn advance(&mut self, mut now: Now, time_ns: i64, sums: &mut InFlight) -> Now {
        loop {
            let done_ns = self.near_ns[now.near % ROOM];
            if done_ns > time_ns || now.near == 0 {
                break;
            }
            let place = self.near_place[now.near % ROOM];
            now.time_ns = self.spend(now, done_ns, sums);
            now.near -= 1;
            if now.near == 0 && !self.far.is_empty() {
                now.near = self.refill();
            }
            if place != NO_PLACE {
                now.threads -= usize::from(self.threads.leave(place));
            }
        }
        now.time_ns = self.spend(now, time_ns, sums);
        now
    }

    /// Counts the time until `to_ns`, if that is later, and tells until when.
    #[inline(always)]
    fn spend(&mut self, now: Now, to_ns: i64, sums: &mut InFlight) -> i64 {
        let to_ns = to_ns.max(now.time_ns);
        let ns = to_ns.abs_diff(now.time_ns);
        let depth = now.near + self.far.len();
        match self.few_ns.get_mut(depth).and_then(|spent| spent.get_mut(now.threads)) {
            Some(spent) => *spent += ns,
            None => self.spend_deep(depth, now.threads, ns, sums),
        }
        to_ns
    }

    #[inline(never)]
    fn spend_deep(&self, depth: usize, threads: usize, ns: u64, sums: &mut InFlight) {
        sums.depth_ns.add(log_linear_index(depth as u64), ns);
        if self.any_thread {
            sums.threads_ns.add(log_linear_index(threads as u64), ns);
        }
    }

    #[inline(always)]
    fn enter(&mut self, mut now: Now, thread: i32, sums: &mut InFlight) -> (Now, u32) {
        if thread == NO_THREAD {
            return (now, NO_PLACE);
        }
        if !self.any_thread {
            // What went by so far was without knowledge of threads.
            self.put_times_into(sums);
            self.any_thread = true;
        }
        let place = match self.threads.find(thread) {
            Some(place) => place,
            None => self.insert(now, thread),
        };
        now.threads += usize::from(self.threads.enter(place));
        now.threads_max = now.threads_max.max(now.threads);
        (now, place)
    }

    #[inline(always)]
    fn push(&mut self, mut now: Now, device_ns: i64, place: u32) -> Now {
        let done_ns = now.time_ns.saturating_add(device_ns.max(0));
        if now.near == NEAR {
            now.near = self.spill();
        }
        if !self.far.is_empty() && done_ns >= self.near_ns[1] {
            self.far.push(Reverse((done_ns, place)));
        } else {
            now.near += 1;
            let mut at = now.near % ROOM;
            while at > 1 && self.near_ns[at - 1] < done_ns {
                self.near_ns[at] = self.near_ns[at - 1];
                self.near_place[at] = self.near_place[at - 1];
                at -= 1;
            }
            self.near_ns[at] = done_ns;
            self.near_place[at] = place;
        }
        now.depth_max = now.depth_max.max(now.near + self.far.len());
        now
    }

    /// Gives the later half of the near completions to the others; tells how many are left.
    #[cold]
    #[inline(never)]
    fn spill(&mut self) -> usize {
        for at in 1..=NEAR / 2 {
            self.far.push(Reverse((self.near_ns[at], self.near_place[at])));
        }
        self.near_ns.copy_within(NEAR / 2 + 1.., 1);
        self.near_place.copy_within(NEAR / 2 + 1.., 1);
        NEAR - NEAR / 2
    }

    /// Takes the next ones of the others; tells how many.
    #[inline(never)]
    fn refill(&mut self) -> usize {
        let taken = (NEAR / 2).min(self.far.len());
        for at in (1..=taken).rev() {
            if let Some(Reverse(next)) = self.far.pop() {
                (self.near_ns[at], self.near_place[at]) = next;
            }
        }
        taken
    }

    /// A place for a new thread, for which others may have to move.
    #[cold]
    #[inline(never)]
    fn insert(&mut self, now: Now, thread: i32) -> u32 {
        if self.threads.is_full() {
            let moved = self.threads.clear_idle(now.threads);
            let to = |place: u32| moved.get(place as usize).copied().unwrap_or(NO_PLACE);
            self.near_place[1..=now.near].iter_mut().for_each(|place| *place = to(*place));
            let far = std::mem::take(&mut self.far).into_vec();
            self.far = far.into_iter().map(|Reverse((ns, place))| Reverse((ns, to(place)))).collect();
        }
        self.threads.insert(thread)
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
                pending.issue_all(std::iter::once((time_ns, device_ns, thread)), &mut sums);
                flights.retain(|flight| flight.0 > time_ns);
                flights.push((time_ns + device_ns, thread));
                depth_max = depth_max.max(flights.len());
                assert_eq!(pending.now.near + pending.far.len(), flights.len());
                if time_ns % 16 == 0 {
                    let distinct: std::collections::BTreeSet<i32> = flights.iter().map(|f| f.1).collect();
                    assert_eq!(pending.now.threads, distinct.len());
                    threads_max = threads_max.max(distinct.len());
                    assert!(
                        pending.threads.places.len()
                            <= threads::PLACES_MIN.max(16 * threads_max.next_power_of_two())
                    );
                }
            }
            pending.finish(&mut sums);
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
                pending.issue_all(std::iter::once((time_ns, device_ns, thread)), &mut sums);
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
