//! The ends of recent I/O, so that an I/O meant to be random cannot continue a stream by accident.

/// The number of stored ends: twice the look-back of a stream detector, so a margin is left.
const REMEMBERED: usize = 512;

/// A ring of the last ends on one device.
#[derive(Debug, Clone)]
pub struct Recent {
    ends: [u64; REMEMBERED],
    next: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            ends: [u64::MAX; REMEMBERED],
            next: 0,
        }
    }
}

impl Recent {
    /// Whether an I/O at `start` would continue one of the last.
    #[must_use]
    pub fn would_continue(&self, start: u64) -> bool {
        // Without an early exit the comparison runs many to the instruction.
        self.ends
            .iter()
            .fold(false, |found, &end| found | (end == start))
    }

    /// Remembers an I/O that ends at `end`.
    pub fn push(&mut self, end: u64) {
        self.ends[self.next] = end;
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// Draws until a start is found that continues nothing, and remembers its end.
    pub fn fresh_start(&mut self, len_bytes: u64, mut draw: impl FnMut() -> u64) -> u64 {
        let mut start = draw();
        while self.would_continue(start) {
            start = draw();
        }
        self.push(start + len_bytes);
        start
    }
}
