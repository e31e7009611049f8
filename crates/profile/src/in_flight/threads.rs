//! When the last I/O of each thread completes.

use super::{NEVER, NO_THREAD};

/// Places to begin with: enough for the threads of a usual program to keep theirs.
pub(super) const PLACES_MIN: usize = 512;

/// When the last I/O of each thread completes: places by hash of the thread. One without I/O in flight keeps its
/// place, since it will be back as a rule; such places are cleared when free ones become few.
#[derive(Clone, Default)]
pub(super) struct Threads {
    /// A power of two of (thread, last completion), or none yet. [`NO_THREAD`] where free.
    pub(super) places: Vec<(i64, i64)>,
    taken: usize,
}

impl Threads {
    /// When the last I/O of a thread completes, to be changed; [`NEVER`] for one that is not known.
    #[inline(always)]
    pub(super) fn last_ns(&mut self, thread: i64, now_ns: i64) -> &mut i64 {
        let at = match self.find(thread) {
            Some(at) => at,
            None => self.insert(thread, now_ns),
        };
        &mut self.places[at].1
    }

    /// How many threads have I/O in flight.
    pub(super) fn busy(&self, now_ns: i64) -> u64 {
        self.places
            .iter()
            .filter(|&&(_, last_ns)| last_ns > now_ns)
            .count() as u64
    }

    #[inline(always)]
    fn first_place(&self, thread: i64) -> usize {
        ((thread >> 32) as u32 ^ (thread as u32).rotate_left(16)).wrapping_mul(0x9e37_79b9) as usize
            >> 7
    }

    #[inline(always)]
    fn find(&self, thread: i64) -> Option<usize> {
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

    /// A place for a new thread, for which others may have to move.
    #[cold]
    #[inline(never)]
    fn insert(&mut self, thread: i64, now_ns: i64) -> usize {
        if 2 * (self.taken + 1) > self.places.len() {
            self.clear_idle(now_ns);
        }
        self.taken += 1;
        self.put(thread, NEVER)
    }

    fn put(&mut self, thread: i64, last_ns: i64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.first_place(thread) & mask;
        while self.places[at].0 != NO_THREAD {
            at = (at + 1) & mask;
        }
        self.places[at] = (thread, last_ns);
        at
    }

    /// Clears the places of threads without I/O in flight.
    fn clear_idle(&mut self, now_ns: i64) {
        self.taken = self.busy(now_ns) as usize;
        let places = (4 * (self.taken + 1)).next_power_of_two().max(PLACES_MIN);
        let before = std::mem::replace(&mut self.places, vec![(NO_THREAD, NEVER); places]);
        for (thread, last_ns) in before.into_iter().filter(|&(_, last_ns)| last_ns > now_ns) {
            self.put(thread, last_ns);
        }
    }
}
