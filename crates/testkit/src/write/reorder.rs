//! Puts the events of overlapping I/O into order of time, in memory bounded by the number in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

struct Entry<T> {
    key: Reverse<(i64, u64)>,
    item: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A queue that gives items by time, and those of one instant in the order they came.
pub struct Reorder<T> {
    heap: BinaryHeap<Entry<T>>,
    arrivals: u64,
}

impl<T> Default for Reorder<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            arrivals: 0,
        }
    }
}

impl<T> Reorder<T> {
    /// Holds `item`, which happens at `time_ns`.
    pub fn push(&mut self, time_ns: i64, item: T) {
        self.heap.push(Entry {
            key: Reverse((time_ns, self.arrivals)),
            item,
        });
        self.arrivals += 1;
    }

    /// The earliest item, if it happens before `until_ns`.
    pub fn pop_before(&mut self, until_ns: i64) -> Option<(i64, T)> {
        let first = self.heap.peek()?.key.0.0;
        if first >= until_ns {
            return None;
        }
        self.pop()
    }

    /// The earliest item.
    pub fn pop(&mut self) -> Option<(i64, T)> {
        self.heap.pop().map(|entry| (entry.key.0.0, entry.item))
    }

    /// How many items are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_time_then_arrival_and_holds_back_the_rest() {
        let mut queue = Reorder::default();
        for (time_ns, name) in [
            (5, "late"),
            (3, "first of two"),
            (3, "second of two"),
            (1, "early"),
        ] {
            queue.push(time_ns, name);
        }
        let mut before_five = Vec::new();
        while let Some((_, name)) = queue.pop_before(5) {
            before_five.push(name);
        }
        assert_eq!(before_five, ["early", "first of two", "second of two"]);
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.pop(), Some((5, "late")));
        assert!(queue.is_empty());
    }
}
