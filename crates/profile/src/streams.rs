//! The I/O that continue a stream: same operation, and a start at the end of one of the last I/O.
//!
//! Searches the last [`WINDOW`] I/O of a device, so that interleaved streams are separated from random I/O. Exact: each
//! I/O is found by its end through a chain of those with the same hash, newest first.

use plumb_trace::Op;

use crate::columns::BLOCK_EVENTS;

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
    /// 0 if there was one, else 1: a number, so that it goes into one condition with others and not before them.
    alone: u8,
}

/// The position of a mark's bucket, above operation and lowest bit.
const MARK_BUCKET_SHIFT: u32 = 4;

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
        let free = Slot {
            end: 0,
            length: 0,
            mark: NO_MARK,
            previous: 0,
            alone: 1,
        };
        Streams {
            slots: Box::new([free; WINDOW]),
            newest: Box::new([0; BUCKETS]),
            last: 0,
        }
    }
}

/// Bucket and operation of an I/O that ends here, as a mark has them.
#[inline(always)]
fn mark(position: u64, op: Op) -> u32 {
    let mixed = (position ^ (op as u64) << 60).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> (64 - BUCKET_BITS)) as u32) << MARK_BUCKET_SHIFT | (op as u32) << 1
}

#[inline(always)]
fn bucket(mark: u32) -> usize {
    (mark >> MARK_BUCKET_SHIFT) as usize % BUCKETS
}

/// Whether two marks are of one bucket; [`NO_MARK`] is of none.
#[inline(always)]
fn share_bucket(mark: u32, other: u32) -> bool {
    (mark ^ other) >> MARK_BUCKET_SHIFT == 0
}

impl Streams {
    /// Takes the I/O of a block, and returns the stream relation of each.
    ///
    /// Several I/O may start where one ended, and all of them continue; the chain goes on in one of them only, so
    /// that each I/O is in one chain.
    #[inline(always)]
    pub(crate) fn issue_block(
        &mut self,
        op: &[Op],
        start_bytes: &[u64],
        len_bytes: &[u64],
        told: &mut Told,
    ) {
        told.mark(op, start_bytes, len_bytes);
        let (slots, newest, mut last) = (&mut *self.slots, &mut *self.newest, self.last);
        let Told {
            continues,
            chains,
            ends_bytes,
            start_marks,
            end_marks,
        } = told;
        let given = start_bytes
            .iter()
            .zip(&*ends_bytes)
            .zip(&*start_marks)
            .zip(&*end_marks);
        for ((((&start, &end), &start_mark), &end_mark), (continues, chain)) in
            given.zip(continues.iter_mut().zip(chains))
        {
            if start_mark == NO_MARK {
                (*continues, *chain) = (false, 0);
            } else {
                (*continues, *chain) = look_up(slots, newest, last, start_mark, start);
                last = last.wrapping_add(1);
                remember(slots, newest, last, end_mark, end, *chain);
            }
        }
        self.last = last;
    }
}

/// The stream relations of a block's I/O.
pub(crate) struct Told {
    /// Whether each continues a stream.
    pub(crate) continues: [bool; BLOCK_EVENTS],
    /// How many I/O its chain has with it: none for one without an extent, which is not looked at any further.
    pub(crate) chains: [u64; BLOCK_EVENTS],
    /// The first byte behind it.
    pub(crate) ends_bytes: [u64; BLOCK_EVENTS],
    /// [`NO_MARK`] for one without an extent.
    start_marks: [u32; BLOCK_EVENTS],
    end_marks: [u32; BLOCK_EVENTS],
}

impl Default for Told {
    fn default() -> Told {
        Told {
            continues: [false; BLOCK_EVENTS],
            chains: [0; BLOCK_EVENTS],
            ends_bytes: [0; BLOCK_EVENTS],
            start_marks: [0; BLOCK_EVENTS],
            end_marks: [0; BLOCK_EVENTS],
        }
    }
}

impl Told {
    /// Computes the part that needs no other I/O, several at a time.
    #[inline(always)]
    fn mark(&mut self, op: &[Op], start_bytes: &[u64], len_bytes: &[u64]) {
        for ((end, &start), &len) in self.ends_bytes.iter_mut().zip(start_bytes).zip(len_bytes) {
            *end = start.saturating_add(len);
        }
        let marks = self.start_marks.iter_mut().zip(&mut self.end_marks);
        let given = op
            .iter()
            .zip(start_bytes)
            .zip(len_bytes)
            .zip(&self.ends_bytes);
        for ((starts, ends), (((&op, &start), &len), &end)) in marks.zip(given) {
            *starts = if len > 0 { mark(start, op) } else { NO_MARK };
            *ends = mark(end, op);
        }
    }
}

type Slots = [Slot; WINDOW];

/// Continuations are hard to predict, so this is computed without a branch if a bucket has one I/O, which is nearly
/// always.
#[inline(always)]
fn look_up(
    slots: &mut Slots,
    newest: &[u8; BUCKETS],
    last: u8,
    mark: u32,
    start_bytes: u64,
) -> (bool, u64) {
    let newest = newest[bucket(mark)];
    let slot = &mut slots[usize::from(newest)];
    let (ends_here, difference) = (slot.end == start_bytes, slot.mark ^ mark);
    // If only the lowest bit differs, another I/O has continued from it.
    let continues = ends_here & (difference <= 1);
    let is_next = u32::from(ends_here & (difference == 0));
    // All in one, since by itself whether the bucket is the same is hard to foresee.
    if u32::from(slot.alone) | is_next | difference >> MARK_BUCKET_SHIFT == 0 {
        return find(slots, last, newest, mark, start_bytes);
    }
    slot.mark |= is_next;
    (continues, 1 + slot.length * u64::from(is_next))
}

#[inline(always)]
fn remember(
    slots: &mut Slots,
    newest: &mut [u8; BUCKETS],
    last: u8,
    mark: u32,
    end: u64,
    length: u64,
) {
    let previous = std::mem::replace(&mut newest[bucket(mark)], last);
    let alone = u8::from(!share_bucket(slots[usize::from(previous)].mark, mark));
    slots[usize::from(last)] = Slot {
        end,
        length,
        mark,
        previous,
        alone,
    };
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
        // A younger one has replaced the entry, and all earlier ones have gone as well.
        let (age, previous_age) = (last.wrapping_sub(place), last.wrapping_sub(slot.previous));
        place = slot.previous;
        let previous = slots[usize::from(place)].mark;
        if previous_age <= age || !share_bucket(previous, mark) {
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
            if len == 0 {
                return (false, 0);
            }
            let continues = self.0.iter().any(|last| last.0 == op && last.1 == start);
            let free = self
                .0
                .iter_mut()
                .rev()
                .find(|last| last.0 == op && last.1 == start && !last.3);
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
            self.issue_all(&[(op, start, len)])[0]
        }

        fn issue_all(&mut self, ios: &[(Op, u64, u64)]) -> Vec<(bool, u64)> {
            let op: Vec<Op> = ios.iter().map(|io| io.0).collect();
            let start: Vec<u64> = ios.iter().map(|io| io.1).collect();
            let len: Vec<u64> = ios.iter().map(|io| io.2).collect();
            let mut told = Told::default();
            self.issue_block(&op, &start, &len, &mut told);
            told.continues
                .into_iter()
                .zip(told.chains)
                .take(ios.len())
                .collect()
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            starts in prop::sample::select(vec![3u64, 40, 400, 100_000]),
            ios in prop::collection::vec((0u8..2, 0u64..1 << 40, 0u64..4), 0..2000),
            at_once in 1usize..=BLOCK_EVENTS,
        ) {
            let (mut fast, mut slow) = (Streams::default(), Slow::default());
            let io = |(op, start, len)| (Op::ALL[op as usize], start % starts * 512, len * 512);
            let ios: Vec<(Op, u64, u64)> = ios.into_iter().map(io).collect();
            for ios in ios.chunks(at_once) {
                let expected: Vec<_> = ios.iter().map(|&(op, start, len)| slow.issue(op, start, len)).collect();
                prop_assert_eq!(fast.issue_all(ios), expected);
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
