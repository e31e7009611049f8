//! One move, cut off at every write and flush, and every crash recovered from.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_geometry::group_digits;
use plumb_testkit::Rng;
use plumb_testkit::rng::split_mix;

use super::case::{Case, Setting};
use super::crash::{Cache, Effort, Fate, fates};
use super::medium::{Event, SimDisk, SimStore};
use crate::journal::{Ending, JournalError};
use crate::moving::{Move, MoveError, OnLoss};
use crate::mutation::Mutations;

/// Keys are hashes already.
#[derive(Default)]
pub(crate) struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

type SeenStates = HashSet<u64, BuildHasherDefault<Plain>>;

/// Counts of trials.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ExploredCounts {
    pub(crate) moves: u64,
    /// Different states: of a move, a point in it, the survivors there, and the kind of tearing.
    pub(crate) states: u64,
    /// Of these within a recovery from another crash.
    pub(crate) nested: u64,
    /// Writes and flushes of the moves themselves, each of them a point to crash at.
    pub(crate) points: u64,
    pub(crate) resumed: u64,
    pub(crate) rolled_back: u64,
    /// Crashes before the move had begun.
    pub(crate) not_begun: u64,
    /// Torn units.
    pub(crate) torn: u64,
}

impl ExploredCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.moves += other.moves;
        self.states += other.states;
        self.nested += other.nested;
        self.points += other.points;
        self.resumed += other.resumed;
        self.rolled_back += other.rolled_back;
        self.not_begun += other.not_begun;
        self.torn += other.torn;
    }
}

impl fmt::Display for ExploredCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = [
            (self.moves, "moves"),
            (self.points, "writes and flushes to crash at"),
            (self.states, "different states"),
            (self.nested, "of them in a recovery"),
            (self.torn, "torn units"),
            (self.resumed, "states resumed"),
            (self.rolled_back, "rolled back"),
            (self.not_begun, "not begun"),
        ];
        let shown = numbers.map(|(number, what)| format!("{} {what}", group_digits(number)));
        write!(f, "{}", shown.join(", "))
    }
}

/// How thoroughly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Depth {
    pub(crate) effort: Effort,
    /// One of this number of recoveries is itself interrupted, at every write and flush of it.
    pub(crate) nested_each: u64,
    /// Crashes one within the other.
    pub(crate) levels: u32,
}

/// A case that is being tried.
pub(crate) struct Trial<'a> {
    setting: Setting,
    mutations: Mutations,
    rng: Rng,
    seen: SeenStates,
    tally: ExploredCounts,
    depth: Depth,
    /// States of all trials, for a progress display.
    count: Option<&'a AtomicU64>,
}

fn mix(hash: u64, with: u64) -> u64 {
    let mut state = hash ^ with.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    split_mix(&mut state)
}

fn hash_of(hash: u64, fates: &[Fate]) -> u64 {
    fates.iter().fold(hash, |hash, fate| match fate {
        Fate::Lost => mix(hash, 0),
        Fate::Kept(kept) => mix(hash, *kept as u64),
        Fate::Torn(seed) => mix(hash, *seed | 1 << 63),
    })
}

/// One letter for each unit: the seed of the run gives them again.
fn shown(fates: &[Fate]) -> String {
    let letter = |fate: &Fate| match fate {
        Fate::Lost => '-',
        Fate::Kept(_) => '+',
        Fate::Torn(_) => '~',
    };
    format!("units {}", fates.iter().map(letter).collect::<String>())
}

impl<'a> Trial<'a> {
    pub(crate) fn new(case: &Case, seed: u64, depth: Depth, mutations: Mutations) -> Self {
        Self {
            setting: Setting::new(case, seed),
            mutations,
            rng: Rng::new(seed ^ 0x5eed),
            seen: SeenStates::default(),
            tally: ExploredCounts::default(),
            depth,
            count: None,
        }
    }

    /// Adds its states to those of others, as they come.
    pub(crate) fn counted(self, count: &'a AtomicU64) -> Self {
        Self {
            count: Some(count),
            ..self
        }
    }

    fn disk(&self) -> SimDisk {
        SimDisk(self.setting.world.clone())
    }

    fn store(&self) -> SimStore {
        SimStore(self.setting.world.clone())
    }

    /// Carries the move out once, recording its requests to disk and journal, then crashes it everywhere.
    pub(crate) fn run(mut self) -> Result<ExploredCounts, String> {
        let start = self.setting.world.borrow().mark();
        self.setting.world.borrow_mut().events = Some(Vec::new());
        self.whole_move()
            .map_err(|error| format!("without a crash: {error}"))?;
        self.setting
            .check_ending(Some(Ending::Moved))
            .map_err(|error| format!("without a crash: {error}"))?;
        let events = self
            .setting
            .world
            .borrow_mut()
            .events
            .take()
            .unwrap_or_default();
        self.setting.world.borrow_mut().back_to(start);
        self.tally.points = events.len() as u64;
        self.crash_everywhere(&events, self.depth.levels, 0)?;
        self.tally.states = self.seen.len() as u64;
        Ok(self.tally)
    }

    fn whole_move(&self) -> Result<(), MoveError> {
        let plan = self.setting.plan.clone();
        let mut moving = Move::start_with(plan, self.disk(), self.store(), self.mutations)?;
        while moving.step()?.is_none() {}
        Ok(())
    }

    /// `events` begin at the state of the media; afterwards the media are in that state again.
    fn crash_everywhere(&mut self, events: &[Event], levels: u32, hash: u64) -> Result<(), String> {
        let world = self.setting.world.clone();
        let start = world.borrow().mark();
        let is_nested = levels < self.depth.levels;
        let effort = match is_nested {
            true => Effort {
                every_subset_to: 0,
                random: 1,
            },
            false => self.depth.effort,
        };
        let mut cache = Cache::default();
        for (point, event) in events.iter().enumerate() {
            cache.take(event, &mut world.borrow_mut());
            let units = cache.units(&world.borrow());
            for fates in fates(&units, effort, &mut self.rng) {
                let hash = hash_of(mix(hash, point as u64 + 1), &fates);
                if !self.seen.insert(hash) {
                    continue;
                }
                if let Some(count) = self.count {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                self.tally.nested += u64::from(is_nested);
                self.tally.torn += fates
                    .iter()
                    .filter(|fate| matches!(fate, Fate::Torn(_)))
                    .count() as u64;
                let mark = world.borrow().mark();
                cache.cut(&units, &fates, &mut world.borrow_mut());
                let result = self.after_crash(levels, hash);
                world.borrow_mut().back_to(mark);
                result.map_err(|error| format!("point {point}, {}: {error}", shown(&fates)))?;
            }
        }
        world.borrow_mut().back_to(start);
        Ok(())
    }

    /// Goes on from the media as they are, forward or back as the state's hash has it.
    fn after_crash(&mut self, levels: u32, hash: u64) -> Result<(), String> {
        self.setting.check_hidden()?;
        let is_back = hash & 1 == 1;
        let crashes_again = levels > 1 && (hash >> 1).is_multiple_of(self.depth.nested_each);
        let mark = self.setting.world.borrow().mark();
        if crashes_again {
            self.setting.world.borrow_mut().events = Some(Vec::new());
        }
        let recovered = self.recover(is_back);
        let events = self.setting.world.borrow_mut().events.take();
        recovered?;
        let Some(events) = events else { return Ok(()) };
        self.setting.world.borrow_mut().back_to(mark);
        self.crash_everywhere(&events, levels - 1, hash)
    }

    fn recover(&mut self, is_back: bool) -> Result<(), String> {
        let begin = if is_back {
            Move::rollback_with
        } else {
            Move::resume_with
        };
        let ending = match begin(self.store(), self.disk(), OnLoss::Stop, self.mutations) {
            Ok(mut moving) => {
                let ending = loop {
                    match moving.step() {
                        Ok(Some(ending)) => break ending,
                        Ok(None) => {}
                        Err(error) => return Err(format!("it stops: {error}")),
                    }
                };
                Some(ending)
            }
            Err(MoveError::Ended { ending }) => Some(ending),
            Err(MoveError::Journal(JournalError::None | JournalError::NotBegun)) => None,
            Err(error) => return Err(format!("it cannot go on: {error}")),
        };
        match ending {
            None => self.tally.not_begun += 1,
            Some(Ending::Moved) => self.tally.resumed += 1,
            Some(Ending::RolledBack) => self.tally.rolled_back += 1,
        }
        self.setting
            .check_ending(ending)
            .map_err(|error| format!("after {ending:?}: {error}"))
    }

    /// Lets one read, write or flush after the other fail, and recovers from each: at once, and after a power cut on top.
    pub(crate) fn fail_everywhere(mut self) -> Result<u64, String> {
        let world = self.setting.world.clone();
        let start = world.borrow().mark();
        for asked in 0.. {
            {
                let mut world = world.borrow_mut();
                (world.asked, world.fails) = (0, Some(asked));
                world.events = Some(Vec::new());
            }
            let result = self.whole_move();
            let events = world.borrow_mut().events.take().unwrap_or_default();
            world.borrow_mut().fails = None;
            if result.is_ok() {
                world.borrow_mut().back_to(start);
                // A read ahead that fails is repeated when it is due: not every failure stops a move.
                if world.borrow().asked <= asked {
                    return Ok(asked);
                }
                continue;
            }
            for is_back in [false, true] {
                let mark = world.borrow().mark();
                self.recover(is_back)
                    .map_err(|error| format!("failure {asked}: {error}"))?;
                world.borrow_mut().back_to(mark);
            }
            world.borrow_mut().back_to(start);
            self.cut_at_end(&events)
                .map_err(|error| format!("failure {asked} and a crash: {error}"))?;
            world.borrow_mut().back_to(start);
        }
        Ok(0)
    }

    fn cut_at_end(&mut self, events: &[Event]) -> Result<(), String> {
        let world = self.setting.world.clone();
        let mut cache = Cache::default();
        events
            .iter()
            .for_each(|event| cache.take(event, &mut world.borrow_mut()));
        let units = cache.units(&world.borrow());
        let effort = Effort {
            every_subset_to: 3,
            random: 4,
        };
        for fates in fates(&units, effort, &mut self.rng) {
            for is_back in [false, true] {
                let mark = world.borrow().mark();
                cache.cut(&units, &fates, &mut world.borrow_mut());
                let result = self.recover(is_back);
                world.borrow_mut().back_to(mark);
                result.map_err(|error| format!("{}: {error}", shown(&fates)))?;
            }
        }
        Ok(())
    }
}
