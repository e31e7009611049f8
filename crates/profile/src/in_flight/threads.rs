//! How many I/O each thread has in flight.

use super::NO_THREAD;

/// The place of no thread.
pub(super) const NO_PLACE: u32 = u32::MAX;

/// Places to begin with: enough for the threads of a usual program to keep theirs.
pub(super) const PLACES_MIN: usize = 512;

/// How many I/O each thread has in flight: places by hash of the thread. One without I/O keeps its place, since it
/// will be back as a rule; such places are cleared when free ones become few.
#[derive(Clone, Default)]
pub(super) struct Threads {
    /// A power of two of (thread, I/O in flight), or none yet. [`NO_THREAD`] where free.
    pub(super) places: Vec<(i32, u32)>,
    taken: usize,
}

impl Threads {
    /// One I/O more; tells whether it is the first.
    #[inline(always)]
    pub(super) fn enter(&mut self, place: u32) -> bool {
        let ios = &mut self.places[place as usize].1;
        *ios += 1;
        *ios == 1
    }

    /// One I/O less; tells whether it was the last.
    #[inline(always)]
    pub(super) fn leave(&mut self, place: u32) -> bool {
        let ios = &mut self.places[place as usize].1;
        *ios -= 1;
        *ios == 0
    }

    #[inline(always)]
    fn first_place(&self, thread: i32) -> usize {
        (thread as u32).wrapping_mul(0x9e37_79b9) as usize >> 7
    }

    #[inline(always)]
    pub(super) fn find(&self, thread: i32) -> Option<u32> {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = self.first_place(thread) & mask;
        loop {
            let taken = self.places.get(at)?.0;
            if taken == thread {
                return Some(at as u32);
            }
            if taken == NO_THREAD {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        2 * (self.taken + 1) > self.places.len()
    }

    pub(super) fn insert(&mut self, thread: i32) -> u32 {
        self.taken += 1;
        self.put(thread, 0)
    }

    fn put(&mut self, thread: i32, ios: u32) -> u32 {
        let mask = self.places.len() - 1;
        let mut at = self.first_place(thread) & mask;
        while self.places[at].0 != NO_THREAD {
            at = (at + 1) & mask;
        }
        self.places[at] = (thread, ios);
        at as u32
    }

    /// Clears the places of threads without I/O, of which `busy` are not; tells where those have moved.
    pub(super) fn clear_idle(&mut self, busy: usize) -> Vec<u32> {
        let places = (4 * (busy + 1)).next_power_of_two().max(PLACES_MIN);
        let before = std::mem::replace(&mut self.places, vec![(NO_THREAD, 0); places]);
        self.taken = busy;
        before.iter().map(|&(thread, ios)| if ios > 0 { self.put(thread, ios) } else { NO_PLACE }).collect()
    }
}
