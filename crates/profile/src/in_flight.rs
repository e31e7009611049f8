//! Time at each depth of I/O in flight, and of threads with I/O in flight.
//!
//! An I/O is in flight from its issue until its latency later; I/O without a known latency do not count. The time
//! between two issues is attributed to the later one (or to the end of the piece), which brings it to notice.
//!
//! Time does not go back: a late I/O counts from the last issue on. If hundreds in a row are late, another recording
//! begins; its I/O were never in flight together with those before.

use pulp::{Arch, NullaryFnOnce};
use serde::{Deserialize, Serialize};

use plumb_trace::{UNKNOWN_NS, UNKNOWN_PID};

use crate::columns::BLOCK_EVENTS;
use crate::histogram::Counts;

mod overlap;
mod threads;

use overlap::{Intervals, LANES, LATE, LaneColumn, NEVER, Overlap, STEPS};
use threads::Threads;

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
pub const NO_THREAD: i64 = thread_of(UNKNOWN_PID, UNKNOWN_PID);

/// Process above and thread below as one number: no two pairs have the same, unknown ones neither.
pub(crate) const fn thread_of(pid: i32, tid: i32) -> i64 {
    (pid as i64) << 32 | tid.cast_unsigned() as i64
}

/// This number of consecutive late I/O belongs to another recording. A reader has sorted I/O that are late by less than
/// its window.
const LATE_IN_A_ROW: usize = BLOCK_EVENTS;

/// An I/O: time of issue, how long it stays, thread.
type Flight = (i64, i64, i64);

/// I/O in flight on one device, kept up from issue to issue.
#[derive(Clone)]
pub struct InFlightIos {
    /// Time of the last issue; [`UNKNOWN_NS`] before the first.
    now_ns: i64,
    ios: Overlap,
    /// All I/O of a thread that overlap are taken for one here.
    busy: Overlap,
    threads: Threads,
    /// Whether any thread is known.
    any_thread: bool,
    /// Since this was last put into the sums, whether an I/O was issued, and one of a known thread.
    is_issued: bool,
    is_thread_seen: bool,
    /// Threads with I/O in flight at the first issue of a known one since then.
    threads_first: u64,
    /// Since when a thread is known.
    known_from_ns: i64,
    /// Issues in the block, and the time before the first of them.
    rows: usize,
    from_ns: i64,
    /// The last I/O, where they were issued before `now_ns`: fewer than [`LATE_IN_A_ROW`].
    late: Vec<Flight>,
    /// How long was looked at since this was last put into the sums, and for how long of that a thread was known.
    all_ns: u64,
    known_ns: u64,
    block: Box<IssueBlock>,
}

/// Issues one after the other, as columns of [`Intervals`].
#[derive(Clone)]
struct IssueBlock {
    times_ns: LaneColumn,
    /// Of the I/O.
    begins_ns: LaneColumn,
    ends_ns: LaneColumn,
    /// Of the I/O of a thread, those that overlap taken for one.
    thread_begins_ns: LaneColumn,
    thread_ends_ns: LaneColumn,
    thread_replaced_ns: LaneColumn,
}

/// The relation of an issue to its thread; see [`Intervals`].
struct Issue {
    begins_ns: i64,
    ends_ns: i64,
    replaced_ns: i64,
}

impl Issue {
    const NONE: Issue = Issue {
        begins_ns: LATE,
        ends_ns: NEVER,
        replaced_ns: NEVER,
    };
}

impl IssueBlock {
    #[inline(always)]
    fn put(&mut self, row: usize, now_ns: i64, done_ns: i64, of_thread: Issue) {
        let (lane, step) = (row / STEPS % LANES, row % STEPS);
        self.times_ns[step][lane] = now_ns;
        self.begins_ns[step][lane] = now_ns;
        self.ends_ns[step][lane] = done_ns;
        self.thread_begins_ns[step][lane] = of_thread.begins_ns;
        self.thread_ends_ns[step][lane] = of_thread.ends_ns;
        self.thread_replaced_ns[step][lane] = of_thread.replaced_ns;
    }

    /// Nothing is issued from a row on.
    #[inline(always)]
    fn end(&mut self, rows: usize, now_ns: i64) {
        for row in rows..BLOCK_EVENTS {
            self.put(row, now_ns, NEVER, Issue::NONE);
            self.begins_ns[row % STEPS][row / STEPS] = LATE;
        }
    }
}

impl Default for InFlightIos {
    fn default() -> InFlightIos {
        let none = [[NEVER; LANES]; STEPS];
        InFlightIos {
            now_ns: UNKNOWN_NS,
            ios: Overlap::default(),
            busy: Overlap::default(),
            threads: Threads::default(),
            any_thread: false,
            is_issued: false,
            is_thread_seen: false,
            threads_first: 0,
            known_from_ns: UNKNOWN_NS,
            rows: 0,
            from_ns: UNKNOWN_NS,
            late: Vec::new(),
            all_ns: 0,
            known_ns: 0,
            block: Box::new(IssueBlock {
                times_ns: none,
                begins_ns: none,
                ends_ns: none,
                thread_begins_ns: none,
                thread_ends_ns: none,
                thread_replaced_ns: none,
            }),
        }
    }
}

impl InFlightIos {
    /// Goes on from issue to issue, and puts an I/O in flight at each: (time, how long it stays, thread).
    pub fn issue_all(&mut self, ios: impl Iterator<Item = (i64, i64, i64)>) {
        Arch::new().dispatch(IssueAll { pending: self, ios });
    }

    #[inline(always)]
    fn issue_blocks(&mut self, ios: impl Iterator<Item = Flight>) {
        for flight in ios {
            if flight.0 < self.now_ns {
                self.issue_late(flight);
            } else {
                if !self.late.is_empty() {
                    self.issue_late_ones();
                }
                self.issue(flight);
            }
        }
    }

    #[inline(always)]
    fn issue(&mut self, (time_ns, device_ns, thread): Flight) {
        if self.now_ns == UNKNOWN_NS {
            self.from_ns = time_ns;
        }
        self.is_issued = true;
        self.now_ns = self.now_ns.max(time_ns);
        let done_ns = self.now_ns.saturating_add(device_ns.max(0));
        let of_thread = if thread == NO_THREAD {
            Issue::NONE
        } else {
            self.issue_of(thread, done_ns)
        };
        self.block.put(self.rows, self.now_ns, done_ns, of_thread);
        self.rows += 1;
        if self.rows == BLOCK_EVENTS {
            self.go();
        }
    }

    /// Puts off an I/O from before the last issue, until it is known whether another recording begins with it.
    #[cold]
    #[inline(never)]
    fn issue_late(&mut self, flight: Flight) {
        self.late.push(flight);
        if self.late.len() == LATE_IN_A_ROW {
            self.complete_all();
            self.now_ns = UNKNOWN_NS;
            // Those of the recording before are no threads of this one.
            self.threads = Threads::default();
            self.known_from_ns = UNKNOWN_NS;
            self.issue_late_ones();
        }
    }

    #[cold]
    #[inline(never)]
    fn issue_late_ones(&mut self) {
        for flight in std::mem::take(&mut self.late) {
            self.issue(flight);
        }
    }

    #[inline(always)]
    fn issue_of(&mut self, thread: i64, done_ns: i64) -> Issue {
        let now_ns = self.now_ns;
        if !self.is_thread_seen {
            self.see_first(thread);
        }
        let last_ns = self.threads.last_ns(thread, now_ns);
        let issue = if *last_ns > now_ns {
            Issue {
                begins_ns: LATE,
                ends_ns: done_ns.max(*last_ns),
                replaced_ns: *last_ns,
            }
        } else {
            Issue {
                begins_ns: now_ns,
                ends_ns: done_ns,
                replaced_ns: NEVER,
            }
        };
        *last_ns = issue.ends_ns;
        issue
    }

    /// Takes the rows of the block out of it, up to the present.
    #[inline(always)]
    fn go(&mut self) {
        let (from_ns, now_ns) = (self.from_ns, self.now_ns);
        self.all_ns = self.all_ns.wrapping_add(now_ns.abs_diff(from_ns));
        let IssueBlock {
            times_ns,
            begins_ns,
            ends_ns,
            ..
        } = &*self.block;
        let ios = Intervals {
            from_ns,
            rows: self.rows,
            times_ns,
            begins_ns,
            ends_ns,
            replaced_ns: None,
        };
        self.ios.go(ios);
        if self.any_thread {
            self.known_ns = self
                .known_ns
                .wrapping_add(now_ns.abs_diff(from_ns.max(self.known_from_ns)));
            self.busy.go(Intervals {
                begins_ns: &self.block.thread_begins_ns,
                ends_ns: &self.block.thread_ends_ns,
                replaced_ns: Some(&self.block.thread_replaced_ns),
                ..ios
            });
        }
        (self.from_ns, self.rows) = (now_ns, 0);
    }

    /// Takes the rows out of a block that is not full.
    fn go_early(&mut self) {
        if self.rows > 0 {
            self.block.end(self.rows, self.now_ns);
            self.go();
        }
    }

    /// How many threads have I/O in flight when the first one is seen: later on more of them come one by one.
    #[cold]
    fn see_first(&mut self, thread: i64) {
        let now_ns = self.now_ns;
        if !self.any_thread {
            // The time before had no knowledge of threads.
            self.known_from_ns = now_ns;
        }
        (self.is_thread_seen, self.any_thread) = (true, true);
        let is_new = *self.threads.last_ns(thread, now_ns) <= now_ns;
        self.threads_first = self.threads.busy(now_ns) + u64::from(is_new);
    }

    /// The end of the piece: everything in flight completes.
    pub fn finish(&mut self, sums: &mut InFlight) {
        self.issue_late_ones();
        self.complete_all();
        self.put_into(sums);
        *self = InFlightIos::default();
    }

    /// Goes on to the time when nothing is in flight any more.
    fn complete_all(&mut self) {
        self.go_early();
        if let Some(end_ns) = self.ios.last_end_ns() {
            self.now_ns = self.now_ns.max(end_ns);
            self.block.end(0, self.now_ns);
            self.rows = 1;
            self.go();
        }
    }

    /// Adds the present state to the sums, which are not complete without.
    pub fn put_into(&mut self, sums: &mut InFlight) {
        self.issue_late_ones();
        self.go_early();
        self.ios
            .put_times_into(std::mem::take(&mut self.all_ns), &mut sums.depth_ns);
        self.busy
            .put_times_into(std::mem::take(&mut self.known_ns), &mut sums.threads_ns);
        let (depth_most, threads_most) = (self.ios.take_most(), self.busy.take_most());
        if std::mem::take(&mut self.is_issued) {
            sums.depth_max = sums.depth_max.max(depth_most + 1);
        }
        if std::mem::take(&mut self.is_thread_seen) {
            let threads_first = std::mem::take(&mut self.threads_first);
            sums.threads_max = sums.threads_max.max(threads_most + 1).max(threads_first);
        }
    }
}

/// A call of [`InFlightIos::issue_all`], compiled for each kind of machine.
struct IssueAll<'a, I> {
    pending: &'a mut InFlightIos,
    ios: I,
}

impl<I: Iterator<Item = Flight>> NullaryFnOnce for IssueAll<'_, I> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.pending.issue_blocks(self.ios);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::log_linear_index;

    /// Many threads that come and go, and queues longer than the sorted list, against plain maps.
    #[test]
    fn deep_queues_and_many_threads() {
        for (threads, depth) in [(3, 20), (100, 33), (5_000, 400), (100_000, 3_000)] {
            let (mut pending, mut sums) = (InFlightIos::default(), InFlight::default());
            let mut flights: Vec<(i64, i64)> = Vec::new();
            let (mut depth_max, mut threads_max) = (0, 0);
            let mut random = 7u64;
            for time_ns in 0..20_000 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let (device_ns, thread) = (
                    (random >> 33) as i64 % (2 * depth),
                    (random >> 40) as i64 % threads,
                );
                pending.issue_all(std::iter::once((time_ns, device_ns, thread)));
                flights.retain(|flight| flight.0 > time_ns);
                flights.push((time_ns + device_ns, thread));
                depth_max = depth_max.max(flights.len());
                if time_ns % 16 == 0 {
                    let distinct: std::collections::BTreeSet<i64> =
                        flights.iter().map(|f| f.1).collect();
                    let stay = flights
                        .iter()
                        .filter(|flight| flight.0 > time_ns)
                        .map(|flight| flight.1);
                    let stay: std::collections::BTreeSet<i64> = stay.collect();
                    assert_eq!(pending.threads.busy(time_ns), stay.len() as u64);
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

    /// Flights of a recording: two I/O every 10 ns; the second ends with the next two.
    fn recording(ios: i64) -> impl Iterator<Item = Flight> {
        (0..ios).map(|io| (io / 2 * 10, 3 + io % 2 * 9, io % 2))
    }

    fn in_flight(ios: impl Iterator<Item = Flight>) -> InFlight {
        let (mut pending, mut sums) = (InFlightIos::default(), InFlight::default());
        pending.issue_all(ios);
        pending.finish(&mut sums);
        sums
    }

    /// Recordings that were appended to each other were never in flight together: as if each had been counted alone.
    #[test]
    fn appended_recordings_add_up() {
        let ios = 4 * LATE_IN_A_ROW as i64;
        let once = in_flight(recording(ios));
        assert_eq!((once.depth_max, once.threads_max), (3, 2));
        let mut twice = once.clone();
        twice.merge(&once);
        let appended = recording(ios).chain(recording(ios));
        assert_eq!(in_flight(appended), twice);
    }

    /// A few I/O that come late count from the last issue on, as if they had been issued then.
    #[test]
    fn late_ios_count_from_the_last_issue_on() {
        let last_ns = 1_000;
        for late in [1, 7, LATE_IN_A_ROW as i64 - 1] {
            let before = [(0, 5, 1), (last_ns, 50, 2)];
            let after = [(2_000, 5, 1)];
            let flights = |time_ns: i64| {
                let late = (0..late).map(move |io| (time_ns, 10 + io, 3));
                before.into_iter().chain(late).chain(after)
            };
            assert_eq!(
                in_flight(flights(500)),
                in_flight(flights(last_ns)),
                "{late}"
            );
        }
    }

    proptest! {
        /// Compared with counting, for every ns, the I/O in flight.
        #[test]
        fn agrees_with_counting_every_nanosecond(
            ios in prop::collection::vec((0i64..4, 0i64..200, 0i64..50), 1..300),
            longest in prop::sample::select(vec![2i64, 20, 100, 200]),
            threads in prop::sample::select(vec![1i64, 3, 50]),
            at_once in 1usize..40,
        ) {
            let (mut pending, mut sums) = (InFlightIos::default(), InFlight::default());
            let mut time_ns = 0;
            let mut flights = Vec::new();
            let (mut depth_max, mut threads_max) = (0, 0);
            for (step, device_ns, thread) in ios {
                time_ns += step;
                flights.push((time_ns, time_ns + device_ns % longest, thread % threads));
                let (last, others) = flights.split_last().expect("one at least");
                let stay = others.iter().filter(|flight| flight.1 > time_ns).chain([last]);
                depth_max = depth_max.max(stay.clone().count() as u64);
                let distinct: std::collections::BTreeSet<i64> = stay.map(|flight| flight.2).collect();
                threads_max = threads_max.max(distinct.len() as u64);
            }
            let (mut plain, mut plain_sums) = (InFlightIos::default(), InFlight::default());
            for flights in flights.chunks(at_once) {
                let ios = flights.iter().map(|flight| (flight.0, flight.1 - flight.0, flight.2));
                pending.issue_all(ios.clone());
                // The same as any machine could do it.
                plain.issue_blocks(ios);
            }
            plain.finish(&mut plain_sums);
            pending.finish(&mut sums);
            let first = flights[0].0;
            let last = flights.iter().map(|flight| flight.1.max(flight.0)).max().unwrap();
            let (mut depth, mut threads) = (Counts::default(), Counts::default());
            for ns in first..last {
                let now: Vec<i64> =
                    flights.iter().filter(|f| f.0 <= ns && ns < f.1).map(|f| f.2).collect();
                depth.add(log_linear_index(now.len() as u64), 1);
                let distinct: std::collections::BTreeSet<i64> = now.into_iter().collect();
                threads.add(log_linear_index(distinct.len() as u64), 1);
            }
            prop_assert_eq!(&sums.depth_ns, &depth);
            prop_assert_eq!(&sums.threads_ns, &threads);
            prop_assert_eq!((sums.depth_max, sums.threads_max), (depth_max, threads_max));
            prop_assert_eq!(sums, plain_sums);
        }
    }
}
