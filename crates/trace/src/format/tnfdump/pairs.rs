//! Starts of I/O that wait for the end of their buffer, so that events leave in order of issue with a latency.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::batch::Event;
use crate::text::Sink;

/// Most starts that wait for an end. Behind one that never comes they would gather without bound.
const WAITING_MAX: usize = 1 << 18;

/// The identity of an I/O between start and end. A buffer carries one I/O at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    pub buf: u64,
    pub device: u64,
    pub block: u64,
}

struct StartedIo {
    event: Event,
    done: bool,
}

/// The starts, oldest first, and the position of each buffer's.
#[derive(Default)]
pub struct Pairs {
    waiting: VecDeque<StartedIo>,
    /// Number of the oldest start.
    first: u64,
    by_buf: FxHashMap<u64, (u64, Awaited)>,
}

impl Pairs {
    /// Takes a start in; without `awaited` it has no end to wait for.
    pub fn start(&mut self, event: Event, awaited: Option<Awaited>, sink: &mut Sink) {
        let number = self.first + self.waiting.len() as u64;
        self.waiting.push_back(StartedIo {
            event,
            done: awaited.is_none(),
        });
        let lost = awaited.and_then(|awaited| self.by_buf.insert(awaited.buf, (number, awaited)));
        if let Some(lost) = lost.and_then(|(lost, _)| self.at(lost)) {
            // The buffer is in use again, so the end of its last I/O was not recorded.
            lost.done = true;
            sink.info.counts.unmatched_issues += 1;
        }
    }

    /// Ends the I/O of a buffer.
    pub fn complete(&mut self, time_ns: i64, ended: Awaited, sink: &mut Sink) {
        let found = self
            .by_buf
            .get(&ended.buf)
            .copied()
            .filter(|(_, awaited)| *awaited == ended);
        let Some((number, _)) = found else {
            sink.info.counts.unmatched_completions += 1;
            return;
        };
        self.by_buf.remove(&ended.buf);
        if let Some(waiting) = self.at(number) {
            waiting.done = true;
            waiting.event.device_ns = Some(time_ns.saturating_sub(waiting.event.time_ns).max(0));
        } else {
            sink.info.counts.late_completions += 1;
        }
    }

    /// Passes on completed I/O, oldest first, and gives up the oldest if too many wait.
    pub fn drain(&mut self, sink: &mut Sink) {
        while let Some(front) = self.waiting.front() {
            if !front.done {
                if self.waiting.len() <= WAITING_MAX {
                    return;
                }
                sink.info.counts.unmatched_issues += 1;
            }
            sink.push(&front.event);
            self.waiting.pop_front();
            self.first += 1;
        }
    }

    /// Hands on everything that is left when the source has ended.
    pub fn drain_rest(&mut self, sink: &mut Sink) {
        for waiting in std::mem::take(&mut self.waiting) {
            sink.info.counts.unmatched_issues += u64::from(!waiting.done);
            sink.push(&waiting.event);
        }
        self.by_buf.clear();
    }

    fn at(&mut self, number: u64) -> Option<&mut StartedIo> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.waiting.get_mut(index)
    }
}
