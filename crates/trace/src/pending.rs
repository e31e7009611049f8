//! I/O between issue and completion: they wait here so that they leave in the order of issue with a latency.
//!
//! An I/O is identified by device and first sector, a flush by its device alone. A completion longer than the I/O in
//! flight there belongs to an I/O whose issue was not seen. If several of one key are in flight, the one of the
//! completed length is used, and the oldest among equals: two equal ones cannot be distinguished, and the sum of
//! latencies is the same either way, if all complete. After one lost completion each takes the completion of the next,
//! so nothing is queued behind an I/O from before a loss or from more than [`SAME_PLACE_NS_MAX`] ago, and the latencies
//! since the place was last free are doubtful if one there never completes. After a completion whose issue is missing
//! each takes the completion of the one before it, until a completion finds no issue: the latencies at a busy place are
//! doubtful then. A shorter completion ends a part, unless the whole completes later all the same. The ring is bounded;
//! unfinished I/O that leave it are counted.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::batch::{Batch, Event};
use crate::busy_places::BusyPlaces;
use crate::names::DeviceId;
use crate::source::Counts;

/// Most issues that wait for their completion. At 300,000 I/O a second this is almost a second of I/O
/// behind a single one that hangs; a longer wait ends without a latency and is counted.
pub const WAITING_MAX: usize = 1 << 18;

/// An I/O open for longer at a place where another one is issued is taken to have lost its completion. In a
/// recording from which the files of several CPUs were missing, 0.02 to 1 s gave the same latencies, the
/// longest 15 ms; at 3 s the first stranger came in, at 30 s some of 37 s.
pub const SAME_PLACE_NS_MAX: i64 = 1_000_000_000;

/// The same for flushes, because many threads may wait for a slow disk: the kernel's default time-out of a request
/// (`rq_timeout`, 30 s).
pub const FLUSH_NS_MAX: i64 = 30_000_000_000;

/// How many I/O of one key are looked at for one of the completed length.
const SAME_PLACE_LOOKED_AT: usize = 8;

/// The identity of an I/O between issue and completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IoKey {
    sector: u64,
    /// Device, and in the lowest bit whether it is a flush.
    device: u64,
}

impl IoKey {
    /// Of an I/O with an extent.
    #[must_use]
    pub fn place(device: DeviceId, sector: u64) -> IoKey {
        IoKey {
            sector,
            device: u64::from(device) << 1,
        }
    }

    /// Of a flush: it has no place, and drivers report any sector for it.
    #[must_use]
    pub fn flush(device: DeviceId) -> IoKey {
        IoKey {
            sector: 0,
            device: u64::from(device) << 1 | 1,
        }
    }

    const fn is_flush(self) -> bool {
        self.device & 1 == 1
    }
}

/// Times, or anything else, by key; only the recent half is sure to be kept.
pub struct Recent<T = i64> {
    young: FxHashMap<IoKey, T>,
    old: FxHashMap<IoKey, T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent {
            young: FxHashMap::default(),
            old: FxHashMap::default(),
        }
    }
}

impl<T> Recent<T> {
    /// At least this number is kept, at most twice as many.
    const KEPT: usize = 1 << 16;

    /// Stores the value of a key.
    pub fn insert(&mut self, key: IoKey, value: T) {
        if self.young.len() >= Recent::<T>::KEPT {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(key, value);
    }

    /// The value of a key, if it is still known.
    #[must_use]
    pub fn get(&self, key: IoKey) -> Option<&T> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    /// Removes the value of a key.
    pub fn remove(&mut self, key: IoKey) -> Option<T> {
        self.young.remove(&key).or_else(|| {
            if self.old.is_empty() {
                None
            } else {
                self.old.remove(&key)
            }
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IoState {
    /// Its completion is awaited.
    Open,
    /// It needs nothing more.
    Done,
    /// Its completion was lost.
    Lost,
    /// It went back to the queue and was issued again.
    Withdrawn,
}

struct Waiting {
    event: Event,
    key: IoKey,
    /// Bytes that have not completed yet.
    open_bytes: u64,
    /// Number of the next younger open one of the same key.
    younger: Option<u64>,
    state: IoState,
}

/// The oldest and the youngest open I/O of a key.
#[derive(Clone, Copy)]
struct Chain {
    oldest: u64,
    youngest: u64,
    /// Completions, since no I/O of the key was open, that may be those of an equal younger one.
    doubtful: u64,
}

impl Chain {
    fn of_one(number: u64) -> Chain {
        Chain {
            oldest: number,
            youngest: number,
            doubtful: 0,
        }
    }
}

/// I/O in the order of their issue.
#[derive(Default)]
pub struct Pending {
    ring: VecDeque<Waiting>,
    /// Number of the first one in the ring.
    first: u64,
    open: FxHashMap<IoKey, Chain>,
    overdue: Recent,
    /// I/O below this number were issued before something was lost.
    doubtful_below: u64,
    /// I/O that were issued before this are not waited for.
    given_up_before_ns: Option<i64>,
    /// Latencies of chains in which an I/O never completed, and of places with a completion too many.
    doubtful: u64,
    busy: BusyPlaces,
    /// Completions of a part of an I/O.
    partial_completions: u64,
    /// The original of each I/O that completed in part.
    whole: FxHashMap<IoKey, WholeIo>,
}

/// An I/O with a reported partial completion.
#[derive(Clone, Copy)]
struct WholeIo {
    number: u64,
    len_bytes: u64,
}

impl Pending {
    /// Takes in an I/O that needs no completion.
    pub fn push(&mut self, event: Event) {
        let key = IoKey::flush(event.device);
        self.ring.push_back(Waiting {
            event,
            key,
            open_bytes: 0,
            younger: None,
            state: IoState::Done,
        });
    }

    /// Takes in an I/O whose completion is awaited.
    pub fn push_open(&mut self, event: Event, key: IoKey) {
        let number = self.first + self.ring.len() as u64;
        let chain = match self.open.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(Chain::of_one(number));
                None
            }
            Entry::Occupied(mut entry) => {
                let before = *entry.get();
                entry.insert(Chain {
                    youngest: number,
                    ..before
                });
                Some(before)
            }
        };
        let open_bytes = event.len_bytes;
        self.ring.push_back(Waiting {
            event,
            key,
            open_bytes,
            younger: None,
            state: IoState::Open,
        });
        if let Some(before) = chain {
            self.same_place(before, key, number, event.time_ns);
        }
    }

    /// Links an I/O behind those of the same key, or gives those up.
    fn same_place(&mut self, before: Chain, key: IoKey, number: u64, now_ns: i64) {
        let doubtful_below = self.doubtful_below;
        let Some(youngest) = self.at(before.youngest) else {
            return;
        };
        let open_ns = now_ns.saturating_sub(youngest.event.time_ns);
        let most_ns = if key.is_flush() {
            FLUSH_NS_MAX
        } else {
            SAME_PLACE_NS_MAX
        };
        if before.youngest >= doubtful_below && open_ns <= most_ns {
            youngest.younger = Some(number);
            return;
        }
        let mut next = Some(before.oldest);
        while let Some(old) = next.and_then(|number| self.at(number)) {
            old.state = IoState::Lost;
            next = old.younger.take();
        }
        self.doubtful += before.doubtful;
        self.open.insert(key, Chain::of_one(number));
    }

    fn at(&mut self, number: u64) -> Option<&mut Waiting> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.ring.get_mut(index)
    }

    /// The open I/O of a completion, and the one before it in its chain. `None` if the oldest one, which is the default
    /// unless another has the length, is shorter than the completion.
    fn find(&mut self, chain: Chain, len_bytes: u64) -> Option<(Option<u64>, u64)> {
        let (mut before, mut number) = (None, chain.oldest);
        for _ in 0..SAME_PLACE_LOOKED_AT {
            let Some(waiting) = self.at(number) else {
                break;
            };
            if waiting.open_bytes == len_bytes {
                return Some((before, number));
            }
            let Some(younger) = waiting.younger else {
                break;
            };
            (before, number) = (Some(number), younger);
        }
        let oldest = self.at(chain.oldest)?;
        let may_be_part = len_bytes <= oldest.open_bytes || oldest.key.is_flush();
        may_be_part.then_some((None, chain.oldest))
    }

    /// Whether an I/O from this one of a chain on has the length; a long chain is taken to have one.
    fn has_equal(&mut self, first: Option<u64>, len_bytes: u64) -> bool {
        let mut next = first;
        for _ in 0..SAME_PLACE_LOOKED_AT {
            let Some(waiting) = next.and_then(|number| self.at(number)) else {
                return false;
            };
            if waiting.open_bytes == len_bytes {
                return true;
            }
            next = waiting.younger;
        }
        true
    }

    /// Takes an open I/O of a key out of its chain.
    fn unlink(&mut self, key: IoKey, len_bytes: u64) -> Option<u64> {
        let chain = *self.open.get(&key)?;
        let (before, number) = self.find(chain, len_bytes)?;
        if chain.oldest == chain.youngest {
            self.open.remove(&key);
            return Some(chain.oldest);
        }
        let unlinked = self.at(number)?;
        let (younger, open_bytes) = (unlinked.younger.take(), unlinked.open_bytes);
        let doubtful = chain.doubtful + u64::from(self.has_equal(younger, open_bytes));
        let oldest = match before {
            Some(before) => {
                self.at(before)?.younger = younger;
                chain.oldest
            }
            None => younger?,
        };
        let youngest = if number == chain.youngest {
            before?
        } else {
            chain.youngest
        };
        let rest = Chain {
            oldest,
            youngest,
            doubtful,
        };
        self.open.insert(key, rest);
        Some(number)
    }

    /// Whether a completion without a length is that of an open I/O, which then has none either.
    #[must_use]
    pub fn awaits_empty(&mut self, key: IoKey) -> bool {
        let oldest = self.open.get(&key).map(|chain| chain.oldest);
        oldest
            .and_then(|number| self.at(number))
            .is_some_and(|waiting| waiting.open_bytes == 0)
    }

    /// A completion: gives the I/O of the key its latency, and `flags` to add.
    pub fn complete(
        &mut self,
        key: IoKey,
        len_bytes: u64,
        time_ns: i64,
        flags: i32,
        counts: &mut Counts,
    ) {
        let Some(number) = self
            .unlink(key, len_bytes)
            .or_else(|| self.unlink_whole(key, len_bytes, counts))
        else {
            self.doubtful += self.busy.take(key, time_ns);
            match self.overdue.remove(key) {
                Some(issued_ns) => {
                    counts.late_completions += 1;
                    counts.late_ns_max = counts.late_ns_max.max(time_ns.saturating_sub(issued_ns));
                }
                None => counts.unmatched_completions += 1,
            }
            return;
        };
        let Some(waiting) = self.at(number) else {
            return;
        };
        waiting.event.flags |= flags;
        if 0 < len_bytes && len_bytes < waiting.open_bytes {
            self.complete_part(number, key, len_bytes);
            return;
        }
        let device_ns = time_ns.saturating_sub(waiting.event.time_ns);
        // A completion from before the issue is that of another one.
        waiting.state = if device_ns < 0 {
            IoState::Lost
        } else {
            IoState::Done
        };
        waiting.event.device_ns = (device_ns >= 0).then_some(device_ns);
        let issued_ns = waiting.event.time_ns;
        if device_ns >= 0 {
            self.busy.count(key, issued_ns, time_ns);
        }
    }

    /// Completions of a part of an I/O so far.
    #[must_use]
    pub fn partial_completions(&self) -> u64 {
        self.partial_completions
    }

    /// The rest of it completes later, under the sector at which it begins.
    fn complete_part(&mut self, number: u64, key: IoKey, len_bytes: u64) {
        self.partial_completions += 1;
        let rest = IoKey {
            sector: key.sector.wrapping_add(len_bytes / 512),
            ..key
        };
        let entry = self.open.entry(rest);
        let free = matches!(entry, Entry::Vacant(_));
        entry.or_insert(Chain::of_one(number));
        let Some(waiting) = self.at(number) else {
            return;
        };
        if waiting.open_bytes == waiting.event.len_bytes {
            let len_bytes = waiting.open_bytes;
            self.remember_whole(key, WholeIo { number, len_bytes });
        }
        let Some(waiting) = self.at(number) else {
            return;
        };
        waiting.open_bytes -= len_bytes;
        waiting.key = rest;
        if !free {
            // Chains are in the order of issue; an older one cannot join.
            waiting.state = IoState::Lost;
        }
    }

    fn remember_whole(&mut self, key: IoKey, whole: WholeIo) {
        // I/O that have left are forgotten when there are as many again as wait.
        if self.whole.len() > 2 * self.ring.len() + 64 {
            let first = self.first;
            self.whole.retain(|_, whole| whole.number >= first);
        }
        self.whole.insert(key, whole);
    }

    /// The I/O with a reported partial completion that belonged to another one: here it completes as a whole.
    fn unlink_whole(&mut self, key: IoKey, len_bytes: u64, counts: &mut Counts) -> Option<u64> {
        let WholeIo { number, .. } = *self
            .whole
            .get(&key)
            .filter(|it| it.len_bytes == len_bytes)?;
        self.whole.remove(&key);
        let waiting = self.at(number)?;
        if waiting.state != IoState::Open {
            return None;
        }
        let rest = waiting.key;
        let is_alone = |chain: &Chain| (chain.oldest, chain.youngest) == (number, number);
        self.open.get(&rest).filter(|chain| is_alone(chain))?;
        self.open.remove(&rest);
        self.at(number)?.open_bytes = len_bytes;
        self.partial_completions = self.partial_completions.saturating_sub(1);
        counts.unmatched_completions += 1;
        Some(number)
    }

    /// Whether an I/O of the key awaits its completion.
    #[must_use]
    pub fn is_open(&self, key: IoKey) -> bool {
        self.open.contains_key(&key)
    }

    /// An issue is taken back, since it comes again; false when it has already left.
    pub fn withdraw(&mut self, key: IoKey, len_bytes: u64) -> bool {
        let Some(waiting) = self
            .unlink(key, len_bytes)
            .and_then(|number| self.at(number))
        else {
            return false;
        };
        waiting.state = IoState::Withdrawn;
        true
    }

    /// From here on no completion of open I/O is expected.
    pub fn doubt(&mut self) {
        self.doubtful_below = self.first + self.ring.len() as u64;
    }

    /// From here on no completion of I/O issued before a time is expected.
    pub fn give_up_before(&mut self, time_ns: i64) {
        self.given_up_before_ns = Some(time_ns);
    }

    /// Moves finished events into the batch, oldest first, until one still waits.
    #[inline]
    pub fn drain(&mut self, batch: &mut Batch, most: usize, counts: &mut Counts) {
        counts.doubtful_latencies += std::mem::take(&mut self.doubtful);
        while batch.len() < most {
            let Some(front) = self.ring.front() else {
                return;
            };
            if front.state == IoState::Open {
                let is_waited_for = self
                    .given_up_before_ns
                    .is_none_or(|before_ns| front.event.time_ns >= before_ns);
                if self.ring.len() <= WAITING_MAX && is_waited_for {
                    return;
                }
                self.give_up_front();
            }
            self.pop_front(batch, counts);
        }
    }

    /// Moves everything into the batch that is left at the end of the source.
    pub fn drain_rest(&mut self, batch: &mut Batch, most: usize, counts: &mut Counts) {
        while batch.len() < most
            && let Some(front) = self.ring.front()
        {
            if front.state == IoState::Open {
                let key = front.key;
                self.take_doubtful(key);
            }
            self.pop_front(batch, counts);
        }
        counts.doubtful_latencies += std::mem::take(&mut self.doubtful);
    }

    /// An I/O of the key never completes.
    fn take_doubtful(&mut self, key: IoKey) {
        if let Some(chain) = self.open.get_mut(&key) {
            self.doubtful += std::mem::take(&mut chain.doubtful);
        }
    }

    fn give_up_front(&mut self) {
        let Some(front) = self.ring.front() else {
            return;
        };
        let (key, issued_ns, open_bytes) = (front.key, front.event.time_ns, front.open_bytes);
        self.take_doubtful(key);
        // If it completes late, the latencies up to now are not in doubt.
        self.busy.take(key, i64::MAX);
        // Nothing older is left, so that the front is the oldest of its chain.
        self.unlink(key, open_bytes);
        self.overdue.insert(key, issued_ns);
    }

    fn pop_front(&mut self, batch: &mut Batch, counts: &mut Counts) {
        let Some(front) = self.ring.pop_front() else {
            return;
        };
        self.first += 1;
        match front.state {
            IoState::Withdrawn => return,
            IoState::Open | IoState::Lost => counts.unmatched_issues += 1,
            IoState::Done => {}
        }
        batch.push(&front.event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Layer, Op};

    /// One that hangs holds back later I/O until it is given up, and completes late then.
    #[test]
    fn hanging_io_are_given_up() {
        let (mut pending, mut batch, mut counts) =
            (Pending::default(), Batch::default(), Counts::default());
        for sector in [0, 8] {
            let event = Event::new(
                sector as i64,
                0,
                Layer::Request,
                Op::Read,
                sector * 512,
                4096,
            );
            pending.push_open(event, IoKey::place(0, sector));
        }
        pending.complete(IoKey::place(0, 8), 4096, 20, 0, &mut counts);
        pending.give_up_before(0);
        pending.drain(&mut batch, usize::MAX, &mut counts);
        assert_eq!((batch.len(), counts.unmatched_issues), (0, 0));
        pending.give_up_before(1);
        pending.drain(&mut batch, usize::MAX, &mut counts);
        assert_eq!(batch.device_ns, [crate::UNKNOWN_NS, 12]);
        assert_eq!(counts.unmatched_issues, 1);
        pending.complete(IoKey::place(0, 0), 4096, 30, 0, &mut counts);
        assert_eq!(
            (
                counts.late_completions,
                counts.late_ns_max,
                counts.unmatched_completions
            ),
            (1, 30, 0)
        );
    }

    /// Equal I/O at one place, one after another: a lost completion shifts all that follow; two that overlap and all
    /// complete leave no doubt.
    #[test]
    fn latencies_after_a_lost_completion_are_doubtful() {
        let doubtful = |lost: Option<i64>, overlap_ns: i64| {
            let (mut pending, mut batch, mut counts) =
                (Pending::default(), Batch::default(), Counts::default());
            let place = IoKey::place(0, 0);
            let mut open: Vec<i64> = Vec::new();
            for at in 0..100 {
                let issued_ns = at * 1000;
                while let Some(&done_ns) = open.first().filter(|ns| **ns <= issued_ns) {
                    pending.complete(place, 4096, done_ns, 0, &mut counts);
                    open.remove(0);
                }
                let event = Event::new(issued_ns, 0, Layer::Request, Op::Write, 0, 4096);
                pending.push_open(event, place);
                if lost != Some(at) {
                    open.push(issued_ns + 500 + overlap_ns * (at % 2));
                }
                pending.drain(&mut batch, usize::MAX, &mut counts);
            }
            for done_ns in open {
                pending.complete(place, 4096, done_ns, 0, &mut counts);
            }
            pending.drain_rest(&mut batch, usize::MAX, &mut counts);
            (counts.unmatched_issues, counts.doubtful_latencies)
        };
        assert_eq!(doubtful(None, 0), (0, 0));
        assert_eq!(doubtful(None, 800), (0, 0));
        // I/O 40 takes the completion of 41, and so on: 59 latencies.
        assert_eq!(doubtful(Some(40), 0), (1, 59));
        assert_eq!(doubtful(Some(99), 0), (1, 0));
    }

    /// A short I/O whose completion is lost, and then pairs of a long one and a short one at its place: each short one takes
    /// the completion of the next.
    #[test]
    fn other_lengths_between_equal_io_hide_no_doubt() {
        for (is_lost, expected) in [(false, (0, 0)), (true, (1, 99))] {
            let (mut pending, mut batch, mut counts) =
                (Pending::default(), Batch::default(), Counts::default());
            let place = IoKey::place(0, 0);
            let issue = |ns, len| Event::new(ns, 0, Layer::Request, Op::Write, 0, len);
            if is_lost {
                pending.push_open(issue(0, 4096), place);
            }
            for at in 1..=99 {
                let ns = at * 10_000;
                pending.push_open(issue(ns, 8192), place);
                pending.push_open(issue(ns + 50, 4096), place);
                pending.complete(place, 4096, ns + 150, 0, &mut counts);
                pending.complete(place, 8192, ns + 300, 0, &mut counts);
            }
            pending.drain_rest(&mut batch, usize::MAX, &mut counts);
            let found = (counts.unmatched_issues, counts.doubtful_latencies);
            assert_eq!(found, expected);
        }
    }

    /// Flushes one after another: a lost completion shifts all that follow.
    #[test]
    fn flushes_are_in_doubt_too() {
        let (mut pending, mut batch, mut counts) =
            (Pending::default(), Batch::default(), Counts::default());
        for at in 0..100 {
            let event = Event::new(at * 10_000, 0, Layer::Request, Op::Flush, 0, 0);
            pending.push_open(event, IoKey::flush(0));
            if at != 5 {
                pending.complete(IoKey::flush(0), 0, at * 10_000 + 200, 0, &mut counts);
            }
        }
        pending.drain_rest(&mut batch, usize::MAX, &mut counts);
        let found = (counts.unmatched_issues, counts.doubtful_latencies);
        assert_eq!(found, (1, 94));
    }

    /// Bursts of 100 writes at one place, one each µs, each 1.5 µs long. A write is in flight there before a burst whose
    /// issue is missing: each write takes the completion of the one before it, and the last completion finds none. Idle
    /// seconds separate bursts.
    #[test]
    fn latencies_before_an_orphan_are_doubtful() {
        let doubtful = |have_orphan: &[bool]| {
            let (mut pending, mut batch, mut counts) =
                (Pending::default(), Batch::default(), Counts::default());
            let place = IoKey::place(0, 0);
            for (burst, has_orphan) in have_orphan.iter().enumerate() {
                let from_ns = burst as i64 * 2 * SAME_PLACE_NS_MAX;
                for at in 0..100 {
                    let issued_ns = from_ns + at * 1000;
                    let event = Event::new(issued_ns, 0, Layer::Request, Op::Write, 0, 4096);
                    pending.push_open(event, place);
                    if at > 0 || *has_orphan {
                        pending.complete(place, 4096, issued_ns + 500, 0, &mut counts);
                    }
                }
                pending.complete(place, 4096, from_ns + 100_500, 0, &mut counts);
                pending.drain(&mut batch, usize::MAX, &mut counts);
            }
            pending.drain_rest(&mut batch, usize::MAX, &mut counts);
            (counts.unmatched_completions, counts.doubtful_latencies)
        };
        assert_eq!(doubtful(&[false, false]), (0, 0));
        assert_eq!(doubtful(&[true, false]), (1, 100));
        assert_eq!(doubtful(&[false, true]), (1, 100));
        assert_eq!(doubtful(&[true, true]), (2, 200));
    }

    /// Completions of I/O whose issue was lost: a longer one is nobody's, and a shorter one is put right when the whole
    /// completes.
    #[test]
    fn orphans_take_no_other_issue() {
        let (mut pending, mut batch, mut counts) =
            (Pending::default(), Batch::default(), Counts::default());
        let place = IoKey::place(0, 0);
        let issue = |ns| Event::new(ns, 0, Layer::Request, Op::Read, 0, 4096);
        pending.push_open(issue(0), place);
        pending.complete(place, 8192, 5, 0, &mut counts);
        assert!(pending.is_open(place));
        pending.complete(place, 4096, 70, 0, &mut counts);
        pending.push_open(issue(100), place);
        pending.complete(place, 512, 105, 0, &mut counts);
        pending.complete(place, 4096, 190, 0, &mut counts);
        pending.drain(&mut batch, usize::MAX, &mut counts);
        assert_eq!(batch.device_ns, [70, 90]);
        assert_eq!(
            (counts.unmatched_completions, counts.unmatched_issues),
            (2, 0)
        );
        assert_eq!(pending.partial_completions(), 0);
    }

    #[test]
    fn parts_are_counted() {
        let (mut pending, mut counts) = (Pending::default(), Counts::default());
        pending.push_open(
            Event::new(0, 0, Layer::Request, Op::Read, 0, 4096),
            IoKey::place(0, 0),
        );
        pending.complete(IoKey::place(0, 0), 1024, 1, 0, &mut counts);
        assert_eq!(pending.partial_completions(), 1);
        pending.complete(IoKey::place(0, 2), 3072, 2, 0, &mut counts);
        assert_eq!(
            (pending.partial_completions(), counts.unmatched_completions),
            (1, 0)
        );
    }
}
