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

/// One of the last I/O. Its place in the ring tells its age.
#[derive(Clone, Copy)]
struct Slot {
    end: u64,
    /// How many I/O the chain has up to this one.
    length: u64,
    /// Bucket and operation; the lowest bit tells whether a later I/O went on from this one.
    mark: u32,
    /// Place of the I/O before this one in the same bucket, if it is still that one.
    previous: u8,
    /// 1 if there was one, else 0: a number, so that it goes into one condition with others and not before them.
    shared: u8,
}

/// A mark that no I/O has.
const NO_MARK: u32 = u32::MAX;

/// The last I/O of one device, in issue order.
#[derive(Clone)]
pub struct Streams {
    slots: Box<[Slot; WINDOW]>,
    /// Place of the newest I/O by bucket, if it is still one of that bucket.
    newest: Box<[u8; BUCKETS]>,
    /// Place of the newest I/O.
    last: u8,
}

impl Default for Streams {
    fn default() -> Streams {
        let free = Slot { end: 0, length: 0, mark: NO_MARK, previous: 0, shared: 0 };
        Streams { slots: Box::new([free; WINDOW]), newest: Box::new([0; BUCKETS]), last: 0 }
    }
}

/// Bucket and operation of an I/O that ends here, as a mark has them.
#[inline(always)]
fn mark(position: u64, op: Op) -> u32 {
    let mixed = (position ^ (op as u64) << 60).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> (64 - BUCKET_BITS)) as u32) << 4 | (op as u32) << 1
}

#[inline(always)]
fn bucket(mark: u32) -> usize {
    (mark >> 4) as usize % BUCKETS
}

impl Streams {
    /// Takes I/O in, as (operation, first byte, length); tells of each in turn whether it continues a stream, and how
    /// many I/O its chain has with it: none for one without an extent, which is not looked at any further.
    ///
    /// Several I/O may start where one ended, and all of them continue; the chain goes on in one of them only, so
    /// that each I/O is in one chain.
    #[inline(always)]
    pub fn issue_all(&mut self, ios: impl Iterator<Item = (Op, u64, u64)>, mut tell: impl FnMut(bool, u64)) {
        let (slots, newest, mut last) = (&mut *self.slots, &mut *self.newest, self.last);
        for (op, start_bytes, len_bytes) in ios {
            let (mut continues, mut length) = (false, 0);
            if len_bytes > 0 {
                (continues, length) = look_up(slots, newest, last, op, start_bytes);
                last = last.wrapping_add(1);
                remember(slots, newest, last, op, start_bytes.saturating_add(len_bytes), length);
            }
            tell(continues, length);
        }
        self.last = last;
    }
}

type Slots = [Slot; WINDOW];

/// Which I/O continue is hard to foresee, so it is worked out without a branch wherever a bucket has one I/O, which
/// is nearly everywhere.
#[inline(always)]
fn look_up(slots: &mut Slots, newest: &[u8; BUCKETS], last: u8, op: Op, start_bytes: u64) -> (bool, u64) {
    let mark = mark(start_bytes, op);
    let newest = newest[bucket(mark)];
    let slot = &mut slots[usize::from(newest)];
    let continues = (slot.end == start_bytes) & (slot.mark & !1 == mark);
    let is_next = u32::from(continues) & !slot.mark & 1;
    if u32::from(slot.shared) & !is_next & 1 != 0 && bucket(slot.mark) == bucket(mark) {
        return find(slots, last, newest, mark, start_bytes);
    }
    slot.mark |= is_next;
    (continues, 1 + slot.length * u64::from(is_next))
}

#[inline(always)]
fn remember(slots: &mut Slots, newest: &mut [u8; BUCKETS], last: u8, op: Op, end: u64, length: u64) {
    let mark = mark(end, op);
    let previous = std::mem::replace(&mut newest[bucket(mark)], last);
    let shared = u8::from(bucket(slots[usize::from(previous)].mark) == bucket(mark));
    slots[usize::from(last)] = Slot { end, length, mark, previous, shared };
}

/// The I/O that this one goes on from, among those of its bucket.
#[inline(never)]
fn find(slots: &mut Slots, last: u8, mut place: u8, mark: u32, start_bytes: u64) -> (bool, u64) {
    let mut continues = false;
    loop {
        let slot = &mut slots[usize::from(place)];
        if slot.end == start_bytes && slot.mark & !1 == mark {
            continues = true;
            if slot.mark == mark {
                slot.mark |= 1;
                return (true, slot.length + 1);
            }
        }
        // One that is younger has taken the place of what was there, and all before that have gone as well.
        let (age, previous_age) = (last.wrapping_sub(place), last.wrapping_sub(slot.previous));
        place = slot.previous;
        let previous = slots[usize::from(place)].mark;
        if previous_age <= age || previous == NO_MARK || bucket(previous) != bucket(mark) {
            return (continues, 1);
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

    impl Streams {
        fn issue(&mut self, op: Op, start: u64, len: u64) -> (bool, u64) {
            let mut told = (false, 0);
            self.issue_all(std::iter::once((op, start, len)), |continues, chain| told = (continues, chain));
            told
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            starts in prop::sample::select(vec![3u64, 40, 400, 100_000]),
            ios in prop::collection::vec((0u8..2, 0u64..1 << 40, 1u64..4), 0..2000),
        ) {
            let (mut fast, mut slow) = (Streams::default(), Slow::default());
            for (op, start, len) in ios {
                let (op, start) = (Op::ALL[op as usize], start % starts);
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
