//! Puts events into the order of their issue when a source wrote them in another one.
//!
//! Tools that print at completion and traces merged from several recorders are out of order by a little.
//! A window of events is held back and sorted by time, stably; what is older still is passed on where it
//! stands and counted. Batches that come in order are handed through as they are: the window costs nothing
//! but its memory then.

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
    held: VecDeque<Batch>,
    held_events: usize,
    /// Latest time held.
    latest_ns: i64,
    mixed: bool,
    /// Emptied batches, for their memory.
    spare: Vec<Batch>,
    info: SourceInfo,
    /// Latest time handed on.
    passed_ns: i64,
    out_of_order: u64,
    /// What ended the events for now, once those held are handed on.
    after: Option<Result<Fill, Error>>,
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
            self.held.front().map_or(1, Batch::len)
        };
        WINDOW_EVENTS + ready
    }

    fn hold(&mut self, batch: Batch) {
        let (Some(&first_ns), Some(&last_ns)) = (batch.time_ns.first(), batch.time_ns.last())
        else {
            self.spare.push(batch);
            return;
        };
        self.held_events += batch.len();
        if first_ns < self.latest_ns || !batch.is_in_order() {
            self.mixed = true;
        }
        self.latest_ns = self.latest_ns.max(last_ns);
        self.held.push_back(batch);
    }

    fn sort(&mut self) {
        let mut all = self.spare.pop().unwrap_or_default();
        all.clear();
        for batch in &self.held {
            batch.copy_rows(0..batch.len(), &mut all);
        }
        if let Some(last) = self.held.back() {
            // Names only grow, so those of the last batch serve for all.
            all.names = Arc::clone(&last.names);
        }
        all.sort_by_time();
        self.spare.extend(self.held.drain(..));
        for start in (0..all.len()).step_by(BATCH_EVENTS) {
            let mut part = self.spare.pop().unwrap_or_default();
            part.clear();
            all.copy_rows(start..all.len().min(start + BATCH_EVENTS), &mut part);
            part.names = Arc::clone(&all.names);
            self.held.push_back(part);
        }
        self.latest_ns = all.time_ns.last().copied().unwrap_or(self.latest_ns);
        self.mixed = false;
    }

    fn count_order(&mut self, batch: &Batch) {
        for &time_ns in &batch.time_ns {
            if time_ns < self.passed_ns {
                self.out_of_order += 1;
            } else {
                self.passed_ns = time_ns;
            }
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
            self.held_events -= front.len();
            self.count_order(&front);
            self.info.counts.out_of_order = self.out_of_order;
            std::mem::swap(batch, &mut front);
            self.spare.push(front);
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
    fn what_is_later_than_the_window_is_passed_on_and_counted() {
        let mut times: Vec<i64> = (0..300_000).collect();
        times[250_000] = 5;
        times[250_001] = 6;
        let (found, out_of_order) = order(&times, 4096);
        assert_eq!((found.len(), out_of_order), (300_000, 2));
        let mut numbers: Vec<u64> = found.iter().map(|event| event.1).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..300_000));
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
            .map(|batch| batch.time_ns.as_ptr())
            .collect();
        assert_eq!(held.len(), 16, "the window, and no more");
        for memory in held {
            reader.fill(&mut batch).unwrap();
            assert_eq!(batch.time_ns.as_ptr(), memory, "no event was copied");
        }
    }
}
