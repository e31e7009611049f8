//! Puts events into the order of their issue when a source wrote them in another one.
//!
//! Tools that print at completion and traces merged from several recorders are slightly out of order; concatenated
//! recordings go back by a whole recording. A window of events is held back and sorted by time, stably; older events
//! are passed on at their position and counted. Batches in order are passed through unchanged: the window then costs
//! only its memory. Sorting spares them, too: a batch that is in order and overlaps no other one in time changes its
//! place and none of its events, so that between two jumps back in time no event is copied.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::batch::{BATCH_EVENTS, Batch};
use crate::error::Error;
use crate::reader::{Fill, Reader};
use crate::source::SourceInfo;

/// How many events are held back to be sorted.
pub const WINDOW_EVENTS: usize = 1 << 16;

/// A reader whose events come out in time order as far as the window reaches.
pub struct Ordered {
    inner: Box<dyn Reader>,
    /// Batches held back; together in order unless `mixed`.
    held: VecDeque<HeldBatch>,
    held_events: usize,
    /// Latest time held.
    latest_ns: i64,
    mixed: bool,
    /// Emptied batches, for their memory.
    spare: Vec<Batch>,
    /// Batches that are sorted as one.
    joined: Batch,
    info: SourceInfo,
    /// Latest time handed on.
    passed_ns: i64,
    out_of_order: u64,
    /// The reason for the end of events, after the held ones are passed on.
    after: Option<Result<Fill, Error>>,
}

/// Events that are held back, at least one.
struct HeldBatch {
    batch: Batch,
    earliest_ns: i64,
    latest_ns: i64,
    is_in_order: bool,
}

impl HeldBatch {
    /// `None` of a batch without events.
    fn new(batch: &mut Batch) -> Option<HeldBatch> {
        let is_in_order = batch.is_in_order();
        let (earliest_ns, latest_ns) = if is_in_order {
            (*batch.time_ns.first()?, *batch.time_ns.last()?)
        } else {
            let times_ns = batch.time_ns.iter().copied();
            (times_ns.clone().min()?, times_ns.max()?)
        };
        Some(HeldBatch {
            batch: std::mem::take(batch),
            earliest_ns,
            latest_ns,
            is_in_order,
        })
    }
}

/// Batches, by the number of their arrival, that overlap in time and must be sorted as one.
struct Overlap {
    arrivals: Vec<usize>,
    last_arrival: usize,
    latest_ns: i64,
}

/// Groups batches that overlap in time, the earliest first. Of equal times those that came first stay first.
fn overlaps(batches: &[HeldBatch]) -> Vec<Overlap> {
    let mut by_time: Vec<usize> = (0..batches.len()).collect();
    by_time.sort_by_key(|&arrival| batches[arrival].earliest_ns);
    let mut found: Vec<Overlap> = Vec::new();
    for arrival in by_time {
        let HeldBatch {
            earliest_ns,
            latest_ns,
            ..
        } = batches[arrival];
        match found.last_mut() {
            Some(overlap) if overlap.must_include(earliest_ns, arrival) => {
                overlap.arrivals.push(arrival);
                overlap.last_arrival = overlap.last_arrival.max(arrival);
                overlap.latest_ns = overlap.latest_ns.max(latest_ns);
            }
            _ => found.push(Overlap {
                arrivals: vec![arrival],
                last_arrival: arrival,
                latest_ns,
            }),
        }
    }
    found
}

impl Overlap {
    /// Whether some events of a batch must come before some of those that are here.
    fn must_include(&self, earliest_ns: i64, arrival: usize) -> bool {
        (earliest_ns, arrival) < (self.latest_ns, self.last_arrival)
    }
}

impl Ordered {
    /// Puts a reader's events into order.
    #[must_use]
    pub fn new(inner: Box<dyn Reader>) -> Ordered {
        let info = inner.info().clone();
        Ordered {
            inner,
            held: VecDeque::new(),
            held_events: 0,
            latest_ns: i64::MIN,
            mixed: false,
            spare: Vec::new(),
            joined: Batch::default(),
            info,
            passed_ns: i64::MIN,
            out_of_order: 0,
            after: None,
        }
    }

    /// Reads until the first batch can go, and the window is still full without it.
    fn gather(&mut self) {
        while self.after.is_none() && self.held_events < self.wanted_events() {
            let mut incoming = self.spare.pop().unwrap_or_default();
            match self.inner.fill(&mut incoming) {
                Ok(Fill::Events) => self.hold(incoming),
                other => {
                    self.spare.push(incoming);
                    self.after = Some(other);
                }
            }
        }
        if self.mixed {
            self.sort();
        }
    }

    /// Sorting costs the whole window, so it is put off until there is a second one to hand on.
    fn wanted_events(&self) -> usize {
        let ready = if self.mixed {
            WINDOW_EVENTS
        } else {
            self.held.front().map_or(1, |first| first.batch.len())
        };
        WINDOW_EVENTS + ready
    }

    fn hold(&mut self, mut batch: Batch) {
        let Some(held) = HeldBatch::new(&mut batch) else {
            self.spare.push(batch);
            return;
        };
        self.held_events += held.batch.len();
        self.mixed |= held.earliest_ns < self.latest_ns || !held.is_in_order;
        self.latest_ns = self.latest_ns.max(held.latest_ns);
        self.held.push_back(held);
    }

    /// Puts the batches held into order, and sorts the events of those that overlap in time.
    fn sort(&mut self) {
        let Some(last) = self.held.back() else {
            return;
        };
        // Names only grow, so those of the last batch serve for all.
        let names = Arc::clone(&last.batch.names);
        let mut batches = Vec::from(std::mem::take(&mut self.held));
        for held in &mut batches {
            held.batch.names = Arc::clone(&names);
        }
        let overlaps = overlaps(&batches);
        let mut batches: Vec<Option<HeldBatch>> = batches.into_iter().map(Some).collect();
        for mut overlap in overlaps {
            overlap.arrivals.sort_unstable();
            let taken = overlap.arrivals.iter().filter_map(|&at| batches[at].take());
            let mut taken: Vec<HeldBatch> = taken.collect();
            match &taken[..] {
                [alone] if alone.is_in_order => self.held.append(&mut taken.into()),
                _ => self.sort_events(taken.drain(..).map(|held| held.batch)),
            }
        }
        self.mixed = false;
    }

    /// Sorts the events of batches, given as they came, and holds them. The library's sort finds runs that are in
    /// order and merges them.
    fn sort_events(&mut self, batches: impl Iterator<Item = Batch>) {
        self.joined.clear();
        for batch in batches {
            self.joined.append(&batch);
            self.joined.names = Arc::clone(&batch.names);
            self.spare.push(batch);
        }
        let times_ns = self.joined.time_ns.iter().copied();
        let mut rows: Vec<(i64, u32)> = times_ns.zip(0..).collect();
        rows.sort_by_key(|&(time_ns, _)| time_ns);
        let rows: Vec<u32> = rows.into_iter().map(|(_, row)| row).collect();
        for rows in rows.chunks(BATCH_EVENTS) {
            let mut part = self.spare.pop().unwrap_or_default();
            self.joined.pick_rows(rows, &mut part);
            self.held.extend(HeldBatch::new(&mut part));
        }
    }

    fn count_order(&mut self, held: &HeldBatch) {
        if held.is_in_order && held.earliest_ns >= self.passed_ns {
            self.passed_ns = held.latest_ns;
            return;
        }
        for &time_ns in &held.batch.time_ns {
            self.out_of_order += u64::from(time_ns < self.passed_ns);
            self.passed_ns = self.passed_ns.max(time_ns);
        }
    }
}

impl Reader for Ordered {
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
        batch.clear();
        if self.after.is_none() {
            self.gather();
            self.info.clone_from(self.inner.info());
            self.info.counts.out_of_order = self.out_of_order;
        }
        if let Some(mut front) = self.held.pop_front() {
            self.held_events -= front.batch.len();
            self.count_order(&front);
            self.info.counts.out_of_order = self.out_of_order;
            std::mem::swap(batch, &mut front.batch);
            self.spare.push(front.batch);
            return Ok(Fill::Events);
        }
        match self.after.take() {
            Some(Ok(Fill::End)) | None => {
                self.after = Some(Ok(Fill::End));
                Ok(Fill::End)
            }
            Some(other) => other,
        }
    }

    fn info(&self) -> &SourceInfo {
        &self.info
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::Event;
    use crate::op::{Layer, Op};

    /// Gives batches of the sizes and times it was made with; the start of an event is its number.
    struct Given {
        batches: VecDeque<Vec<i64>>,
        next: u64,
        info: SourceInfo,
    }

    impl Reader for Given {
        fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
            batch.clear();
            let Some(times) = self.batches.pop_front() else {
                return Ok(Fill::End);
            };
            for time_ns in times {
                batch.push(&Event::new(time_ns, 0, Layer::Bio, Op::Read, self.next, 1));
                self.next += 1;
            }
            Ok(Fill::Events)
        }

        fn info(&self) -> &SourceInfo {
            &self.info
        }
    }

    /// Reads all; gives time and number of each event, and how many were counted out of order.
    fn order(times: &[i64], batch_events: usize) -> (Vec<(i64, u64)>, u64) {
        let batches = times.chunks(batch_events).map(<[i64]>::to_vec).collect();
        let mut reader = Ordered::new(Box::new(Given {
            batches,
            next: 0,
            info: SourceInfo::default(),
        }));
        let (mut batch, mut events) = (Batch::default(), Vec::new());
        while let Fill::Events = reader.fill(&mut batch).unwrap() {
            assert!(!batch.is_empty());
            events.extend(
                batch
                    .events()
                    .map(|event| (event.time_ns, event.start_bytes)),
            );
        }
        assert_eq!(reader.fill(&mut batch).unwrap(), Fill::End);
        (events, reader.info().counts.out_of_order)
    }

    fn random(seed: &mut u64, below: u64) -> u64 {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % below
    }

    #[test]
    fn disorder_within_the_window_comes_out_sorted_and_stable() {
        let mut seed = 42;
        let mut check = |events: i64, reach: u64, batch_events: usize| {
            let times: Vec<i64> = (0..events)
                .map(|time| (time - random(&mut seed, reach) as i64).max(0) / 3)
                .collect();
            let (found, out_of_order) = order(&times, batch_events);
            let mut expected: Vec<(i64, u64)> = times.into_iter().zip(0..).collect();
            expected.sort_by_key(|event| event.0);
            assert!(
                found == expected,
                "{events} events, reach {reach}, batches of {batch_events}"
            );
            assert_eq!(out_of_order, 0);
        };
        check(0, 1, 10);
        check(10, 5, 3);
        check(300_000, 1, 4096);
        check(300_000, 100, 4096);
        check(300_000, 60_000, 4096);
        check(200_000, 60_000, 100_000);
        check(150_000, 2_000, 7);
    }

    #[test]
    fn late_events_are_passed_on_and_counted() {
        let mut times: Vec<i64> = (0..300_000).collect();
        times[250_000] = 5;
        times[250_001] = 6;
        let (found, out_of_order) = order(&times, 4096);
        assert_eq!((found.len(), out_of_order), (300_000, 2));
        let mut numbers: Vec<u64> = found.iter().map(|event| event.1).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..300_000));
    }

    /// Recordings of a few runs each, appended: times that jump back by less and by more than a batch.
    fn appended_runs() -> impl Strategy<Value = Vec<i64>> {
        let run = (0i64..5_000, 1usize..3_000, 0i64..4);
        prop::collection::vec(run, 1..20).prop_map(|runs| {
            let times = runs.into_iter().flat_map(|(first_ns, events, step_ns)| {
                (0..events as i64).map(move |event| first_ns + event * step_ns)
            });
            times.collect()
        })
    }

    proptest! {
        /// The window returns its input as the library's stable sort of all events does.
        #[test]
        fn appended_runs_come_out_as_a_stable_sort_has_them(
            times in appended_runs(),
            batch_events in prop::sample::select(vec![1usize, 7, 100, 1_000, 4_096, 10_000]),
        ) {
            let (found, out_of_order) = order(&times, batch_events);
            let mut expected: Vec<(i64, u64)> = times.into_iter().zip(0..).collect();
            expected.sort_by_key(|event| event.0);
            prop_assert!(found == expected);
            prop_assert_eq!(out_of_order, 0);
        }

        /// A column that only some batches have is unknown in the events of the others, wherever those go.
        #[test]
        fn sorted_rows_keep_their_columns(
            parts in prop::collection::vec((prop::collection::vec(0i64..50, 1..20), any::<bool>()), 1..8),
        ) {
            let (mut joined, mut expected) = (Batch::default(), Vec::new());
            for (times, has_pids) in parts {
                let mut part = Batch::default();
                for time_ns in times {
                    let mut event = Event::new(time_ns, 1, Layer::Bio, Op::Write, time_ns as u64, 3);
                    event.pid = has_pids.then_some(time_ns as i32);
                    part.push(&event);
                    expected.push(event);
                }
                if !has_pids {
                    part.pid.clear();
                }
                joined.append(&part);
            }
            let rows: Vec<u32> = (0..expected.len() as u32).rev().collect();
            let mut picked = Batch::default();
            joined.pick_rows(&rows, &mut picked);
            expected.reverse();
            prop_assert_eq!(picked.events().collect::<Vec<_>>(), expected);
        }
    }

    /// Recordings that are longer than the window; each goes back by the whole length of the one before. Every event comes
    /// out, and those that are counted follow one that was passed on before.
    #[test]
    fn long_recordings_that_were_appended_stay_in_order_between_jumps() {
        let recording: Vec<i64> = (0..200_000).collect();
        let times = [&recording[..], &recording[..], &recording[..]].concat();
        for batch_events in [100, 4096] {
            let (found, out_of_order) = order(&times, batch_events);
            let mut passed_ns = i64::MIN;
            let mut late = 0;
            for &(time_ns, _) in &found {
                late += u64::from(time_ns < passed_ns);
                passed_ns = passed_ns.max(time_ns);
            }
            assert_eq!(out_of_order, late);
            // A window that holds the end of one and the beginning of the next may go back twice.
            let jumps = found.windows(2).filter(|pair| pair[1].0 < pair[0].0);
            assert!((2..=4).contains(&jumps.count()));
            let mut numbers: Vec<u64> = found.iter().map(|event| event.1).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..600_000));
        }
    }

    #[test]
    fn batches_in_order_are_handed_through() {
        let batches = (0..40)
            .map(|batch| (0..4096).map(|row| batch * 4096 + row).collect())
            .collect();
        let mut reader = Ordered::new(Box::new(Given {
            batches,
            next: 0,
            info: SourceInfo::default(),
        }));
        let mut batch = Batch::default();
        reader.fill(&mut batch).unwrap();
        let held: Vec<*const i64> = reader
            .held
            .iter()
            .map(|held| held.batch.time_ns.as_ptr())
            .collect();
        assert_eq!(held.len(), 16, "the window, and no more");
        for memory in held {
            reader.fill(&mut batch).unwrap();
            assert_eq!(batch.time_ns.as_ptr(), memory, "no event was copied");
        }
    }
}
