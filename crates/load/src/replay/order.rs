//! The waiting steps that may go: those of a thread in their order, each after all of its thread have come back that
//! had ended in the trace before it was issued. By depth alone none waits for another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::replay::steps::{ReplayStep, SenderIds};

/// The I/O that an I/O waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those of its thread that had ended before it was issued, by the latencies of the trace; an I/O without one never
    /// ends, and no I/O waits for it. I/O of unknown senders count as one thread's.
    Threads,
    /// None: this number is in flight, from any sender.
    Depth(u32),
}

/// A step, and when it is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub step: ReplayStep,
    pub due_ns: u64,
}

/// Steps of one thread.
#[derive(Debug, Default)]
struct Thread {
    waiting: VecDeque<Due>,
    /// Number and end of those in flight whose end is known.
    in_flight: Vec<(u64, i64)>,
    /// Whether its first one is among those that may go.
    is_listed: bool,
}

impl Thread {
    /// Number of the first one, if that may go.
    fn ready(&self) -> Option<u64> {
        let Due { step, .. } = self.waiting.front()?;
        self.in_flight
            .iter()
            .all(|&(_, end_ns)| end_ns > step.time_ns)
            .then_some(step.number)
    }
}

/// Steps that are due, thread by thread.
#[derive(Debug)]
pub(crate) struct Waiting {
    order: Order,
    threads: BTreeMap<Option<SenderIds>, Thread>,
    /// First steps that may go: the earliest of the trace first.
    ready: BinaryHeap<Reverse<(u64, Option<SenderIds>)>>,
    len: usize,
}

impl Waiting {
    pub fn new(order: Order) -> Waiting {
        Waiting {
            order,
            threads: BTreeMap::new(),
            ready: BinaryHeap::new(),
            len: 0,
        }
    }

    /// Steps that have not gone yet.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a step; steps come in the order of the trace.
    pub fn push(&mut self, due: Due) {
        let key = self.key(&due.step);
        self.threads.entry(key).or_default().waiting.push_back(due);
        self.len += 1;
        self.list(key);
    }

    /// Takes the earliest that may go.
    pub fn next(&mut self) -> Option<Due> {
        let Reverse((_, key)) = self.ready.pop()?;
        let thread = self.threads.get_mut(&key)?;
        thread.is_listed = false;
        let due = thread.waiting.pop_front()?;
        self.len -= 1;
        if let (Order::Threads, Some(end_ns)) = (self.order, due.step.end_ns) {
            thread.in_flight.push((due.step.number, end_ns));
        }
        self.list(key);
        Some(due)
    }

    /// A step has come back.
    pub fn ended(&mut self, step: &ReplayStep) {
        let key = self.key(step);
        if let Some(thread) = self.threads.get_mut(&key) {
            thread
                .in_flight
                .retain(|&(number, _)| number != step.number);
        }
        self.list(key);
    }

    fn key(&self, step: &ReplayStep) -> Option<SenderIds> {
        step.sender.filter(|_| self.order == Order::Threads)
    }

    /// Lists a thread whose first step may go, and forgets one that has nothing.
    fn list(&mut self, key: Option<SenderIds>) {
        let Some(thread) = self.threads.get_mut(&key) else {
            return;
        };
        if thread.is_listed {
            return;
        }
        if let Some(number) = thread.ready() {
            thread.is_listed = true;
            self.ready.push(Reverse((number, key)));
        } else if thread.waiting.is_empty() && thread.in_flight.is_empty() {
            self.threads.remove(&key);
        }
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
