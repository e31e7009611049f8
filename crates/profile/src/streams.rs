//! Which I/O continue a stream: same operation, and a start where one of the last I/O ended.
//!
//! Looks at the last [`WINDOW`] I/O of a device, so that interleaved streams are told from random I/O. Exact:
//! each I/O is found by its end through a chain of those whose end hashes alike, newest first.

use plumb_trace::Op;

/// How many I/O back a stream may have been last seen.
pub const WINDOW: usize = 256;

/// From which I/O on a chain counts as a run: two that touch by chance are common in random I/O.
pub const RUN_LENGTH_MIN: u64 = 3;

/// Buckets by hash of an end: enough that the 256 ends of the window rarely share one.
const BUCKETS: usize = 1 << BUCKET_BITS;
const BUCKET_BITS: u32 = 12;

/// Number of the first I/O. Larger than the window, so that the zeros of new buckets are long ago.
const FIRST: u32 = 2 * WINDOW as u32;

#[derive(Clone, Copy)]
struct Slot {
    end: u64,
    /// How many I/O the chain has up to this one.
    length: u64,
    /// Number of the I/O before this one whose end hashes alike.
    previous: u32,
    op: u8,
    /// Whether a later I/O went on from this one.
    continued: bool,
}

/// No operation has this code.
const NO_OP: u8 = u8::MAX;

/// The last I/O of one device, in issue order.
#[derive(Clone)]
pub struct Streams {
    slots: Box<[Slot; WINDOW]>,
    /// Number of the newest I/O by hash of its end. Numbers begin anew after 2^32 I/O: an old one that then
    /// looks new leads to a slot all the same, and what is in a slot is compared.
    newest: Box<[u32; BUCKETS]>,
    issued: u32,
}

impl Default for Streams {
    fn default() -> Streams {
        let free = Slot { end: 0, length: 0, previous: 0, op: NO_OP, continued: false };
        Streams { slots: Box::new([free; WINDOW]), newest: Box::new([0; BUCKETS]), issued: FIRST }
    }
}

#[inline(always)]
fn bucket(position: u64, op: u8) -> usize {
    let mixed = (position ^ u64::from(op) << 60).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - BUCKET_BITS)) as usize
}

impl Streams {
    /// Takes an I/O in; tells whether it continues a stream, and how many I/O its chain has with it.
    ///
    /// Several I/O may start where one ended, and all of them continue; the chain goes on in one of them only, so
    /// that each I/O is in one chain. Only for I/O with an extent.
    #[inline(always)]
    pub fn issue(&mut self, op: Op, start_bytes: u64, len_bytes: u64) -> (bool, u64) {
        let op = op as u8;
        let number = self.newest[bucket(start_bytes, op)];
        let (continues, length) = if self.issued.wrapping_sub(number) < WINDOW as u32 {
            self.find(number, op, start_bytes)
        } else {
            (false, 1)
        };
        self.issued = self.issued.wrapping_add(1);
        let end = start_bytes.saturating_add(len_bytes);
        let newest = &mut self.newest[bucket(end, op)];
        let slot = Slot { end, length, previous: *newest, op, continued: false };
        *newest = self.issued;
        self.slots[self.issued as usize % WINDOW] = slot;
        (continues, length)
    }

    /// The I/O that this one goes on from, among those of one bucket from `number` on.
    #[inline]
    fn find(&mut self, mut number: u32, op: u8, start_bytes: u64) -> (bool, u64) {
        let mut continues = false;
        loop {
            let slot = &mut self.slots[number as usize % WINDOW];
            if slot.end == start_bytes && slot.op == op {
                continues = true;
                if !slot.continued {
                    slot.continued = true;
                    return (true, slot.length + 1);
                }
            }
            let (age, previous_age) =
                (self.issued.wrapping_sub(number), self.issued.wrapping_sub(slot.previous));
            if previous_age >= WINDOW as u32 || previous_age <= age {
                return (continues, 1);
            }
            number = slot.previous;
        }
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

    /// Numbers that begin anew, and buckets that were last used 2^32 I/O before.
    #[test]
    fn numbers_may_run_over() {
        let mut rng = 1u64;
        for issued in [u32::MAX - 300, u32::MAX - 1, u32::MAX, 0, 100, 255] {
            let (mut fast, mut slow) = (Streams { issued, ..Streams::default() }, Slow::default());
            for bucket in fast.newest.iter_mut() {
                rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *bucket = issued.wrapping_sub((rng >> 33) as u32 % 600);
            }
            for _ in 0..3_000 {
                rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (start, len) = ((rng >> 33) % 300 * 512, (1 + (rng >> 43) % 3) * 512);
                assert_eq!(fast.issue(Op::Read, start, len), slow.issue(Op::Read, start, len));
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
