//! Time at each depth of I/O in flight, and of threads with I/O in flight.
//!
//! An I/O is in flight from its issue until its latency later; I/O without a known latency do not count. The time
//! between two changes is attributed to the I/O whose issue (or the end of the piece) brings it to notice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
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

/// I/O in flight on one device, kept up from issue to issue.
#[derive(Clone, Default)]
pub struct Pending {
    completions: BinaryHeap<Reverse<(i64, i32)>>,
    threads: FxHashMap<i32, u32>,
    now_ns: Option<i64>,
    any_thread: bool,
}

/// Stands for an unknown thread.
pub const NO_THREAD: i32 = i32::MIN;

impl Pending {
    /// Goes on to `time_ns`, then puts an I/O in flight that stays for `device_ns`.
    #[inline]
    pub fn issue(&mut self, time_ns: i64, device_ns: i64, thread: i32, sums: &mut InFlight) {
        self.advance(time_ns, sums);
        let now_ns = self.now_ns.unwrap_or(time_ns);
        self.completions.push(Reverse((now_ns.saturating_add(device_ns.max(0)), thread)));
        sums.depth_max = sums.depth_max.max(self.completions.len() as u64);
        if thread != NO_THREAD {
            self.any_thread = true;
            *self.threads.entry(thread).or_insert(0) += 1;
            sums.threads_max = sums.threads_max.max(self.threads.len() as u64);
        }
    }

    /// Goes on to `time_ns`: what completed until then leaves. Time never goes back.
    #[inline]
    pub fn advance(&mut self, time_ns: i64, sums: &mut InFlight) {
        let Some(mut now_ns) = self.now_ns else {
            self.now_ns = Some(time_ns);
            return;
        };
        while let Some(&Reverse((done_ns, thread))) = self.completions.peek() {
            if done_ns > time_ns {
                break;
            }
            self.spend(now_ns, done_ns, sums);
            now_ns = now_ns.max(done_ns);
            self.completions.pop();
            self.leave(thread);
        }
        self.spend(now_ns, time_ns, sums);
        self.now_ns = Some(now_ns.max(time_ns));
    }

    /// The end of the piece: everything in flight completes.
    pub fn finish(&mut self, sums: &mut InFlight) {
        while let Some(&Reverse((done_ns, _))) = self.completions.peek() {
            self.advance(done_ns, sums);
        }
        *self = Pending::default();
    }

    #[inline]
    fn spend(&self, from_ns: i64, to_ns: i64, sums: &mut InFlight) {
        if to_ns > from_ns {
            let ns = from_ns.abs_diff(to_ns);
            sums.depth_ns.add(log_linear_index(self.completions.len() as u64), ns);
            if self.any_thread {
                sums.threads_ns.add(log_linear_index(self.threads.len() as u64), ns);
            }
        }
    }

    #[inline]
    fn leave(&mut self, thread: i32) {
        if thread == NO_THREAD {
            return;
        }
        if let Some(ios) = self.threads.get_mut(&thread) {
            *ios -= 1;
            if *ios == 0 {
                self.threads.remove(&thread);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
