//! Which I/O continue a stream: same operation, and a start where one of the last I/O ended.
//!
//! Looks at the last [`WINDOW`] I/O of a device, so that interleaved streams are told from random I/O. Exact:
//! each I/O is found by its end through a chain of those whose end hashes alike, newest first.

use plumb_trace::Op;

/// How many I/O back a stream may have been last seen.
pub const WINDOW: usize = 256;

/// From which I/O on a chain counts as a run: two that touch by chance are common in random I/O.
pub const RUN_LENGTH_MIN: u64 = 3;

const HEADS: usize = 1024;

#[derive(Clone, Copy, Default)]
struct Slot {
    end: u64,
    op: u8,
    /// Whether a later I/O went on from this one.
    continued: bool,
    /// How many I/O the chain has up to this one.
    length: u64,
    /// Number of the I/O before this one whose end hashes alike.
    previous: u64,
}

/// The last I/O of one device, in issue order.
#[derive(Clone)]
pub struct Streams {
    slots: Box<[Slot; WINDOW]>,
    /// Number of the newest I/O by hash of its end; numbers begin at 1.
    heads: Box<[u64; HEADS]>,
    issued: u64,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams { slots: Box::new([Slot::default(); WINDOW]), heads: Box::new([0; HEADS]), issued: 0 }
    }
}

#[inline]
fn hash(position: u64, op: u8) -> usize {
    let mixed = (position ^ u64::from(op) << 60).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 54) as usize
}

impl Streams {
    /// Takes an I/O in; tells whether it continues a stream, and how many I/O its chain has with it.
    ///
    /// Several I/O may start where one ended, and all of them continue; the chain goes on in one of them only, so
    /// that each I/O is in one chain. Only for I/O with an extent.
    #[inline]
    pub fn issue(&mut self, op: Op, start_bytes: u64, len_bytes: u64) -> (bool, u64) {
        let op = op as u8;
        let oldest = self.issued.saturating_sub(WINDOW as u64 - 1);
        let mut number = self.heads[hash(start_bytes, op)];
        let (mut continues, mut length) = (false, 1);
        while number >= oldest && number != 0 {
            let slot = &mut self.slots[number as usize % WINDOW];
            if slot.end == start_bytes && slot.op == op {
                continues = true;
                if !slot.continued {
                    slot.continued = true;
                    length = slot.length + 1;
                    break;
                }
            }
            number = slot.previous;
        }
        self.issued += 1;
        let end = start_bytes.saturating_add(len_bytes);
        let head = &mut self.heads[hash(end, op)];
        self.slots[self.issued as usize % WINDOW] =
            Slot { end, op, continued: false, length, previous: *head };
        *head = self.issued;
        (continues, length)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// The definition, word by word.
    #[derive(Default)]
    struct Slow(VecDeque<(Op, u64, u64, bool)>);

    impl Slow {
        fn issue(&mut self, op: Op, start: u64, len: u64) -> (bool, u64) {
            let continues = self.0.iter().any(|last| last.0 == op && last.1 == start);
            let free = self.0.iter_mut().rev().find(|last| last.0 == op && last.1 == start && !last.3);
            let length = free.map_or(1, |last| {
                last.3 = true;
                last.2 + 1
            });
            self.0.push_back((op, start + len, length, false));
            if self.0.len() > WINDOW {
                self.0.pop_front();
            }
            (continues, length)
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(ios in prop::collection::vec((0u8..2, 0u64..400, 1u64..4), 0..2000)) {
            let (mut fast, mut slow) = (Streams::default(), Slow::default());
            for (op, start, len) in ios {
                let op = Op::ALL[op as usize];
                prop_assert_eq!(fast.issue(op, start * 512, len * 512), slow.issue(op, start * 512, len * 512));
            }
        }
    }

    #[test]
    fn the_window_ends_after_256_ios() {
        for between in [254, 255, 256, 257] {
            let mut streams = Streams::default();
            streams.issue(Op::Read, 0, 512);
            for other in 0..between {
                streams.issue(Op::Read, (1000 + 2 * other) * 512, 512);
            }
            let (continues, _) = streams.issue(Op::Read, 512, 512);
            assert_eq!(continues, between < 256, "{between} I/O between");
        }
    }
}
