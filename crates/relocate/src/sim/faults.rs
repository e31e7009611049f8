//! Faulty media: unreadable blocks, writes that are dropped or go elsewhere, false confirmations of flushes, changes by
//! other programs.
//!
//! The property: a move or a rollback that ends has every byte right that it does not name as lost; one that stops
//! gives the reason; and one that stops over blocks of the partition continues once the loss is accepted. Left out are
//! faults that no reader can see: a power cut after the end on a disk that confirmed flushes falsely, a source that was
//! altered before its first read, and bytes outside of both places and the label.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use plumb_testkit::Rng;

use super::case::{Case, EMULATED, Setting};
use super::crash::{Cache, Effort, fates};
use super::medium::{MediaFaults, SimDisk, SimStore, Which, WriteFault};
use super::tests::{SEED, cases, say};
use crate::journal::{Ending, JournalError};
use crate::moving::plan::{Plan, meet};
use crate::moving::{LossKind, LostRange, Move, MoveError, OnLoss, Progress, Stage, status};
use crate::mutation::{Mutation, Mutations};

const SECTOR: u64 = 512;

/// The fault.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    Unreadable {
        which: Which,
        sectors: Range<u64>,
        heals: bool,
    },
    Write {
        which: Which,
        after: u64,
        fault: WriteFault,
    },
    LyingFlushes {
        after: u64,
    },
    Altered {
        at: u64,
    },
}

/// How a move or a rollback came out.
#[derive(Debug)]
enum Outcome {
    Ended(Ending, Vec<LostRange>),
    Stopped(MoveError),
}

/// Counts of trials.
#[derive(Debug, Default, Clone, Copy)]
struct FaultCounts {
    trials: u64,
    /// Trials in which the fault occurred.
    met: u64,
    /// Ended with every byte right, and none named.
    whole: u64,
    /// Ended with lost ranges that were named.
    named: u64,
    /// Recoveries that stopped with a reason.
    stopped: u64,
}

impl FaultCounts {
    fn add(&mut self, other: Self) {
        self.trials += other.trials;
        self.met += other.met;
        self.whole += other.whole;
        self.named += other.named;
        self.stopped += other.stopped;
    }
}

impl fmt::Display for FaultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trials,
            met,
            whole,
            named,
            stopped,
        } = self;
        write!(
            f,
            "{trials} faults, {met} of them met, {whole} recoveries whole, {named} with named losses, {stopped} stopped"
        )
    }
}

/// How a trial came out.
#[derive(Debug)]
enum Grade {
    /// Every byte is right, and none is named as lost.
    Whole,
    /// The lost ones are named.
    Named,
    /// It stopped at least once with a reason.
    Stopped,
    /// Bytes are wrong and not named.
    Wrong(#[expect(dead_code, reason = "printed")] String),
}

impl Grade {
    /// The worse, the higher.
    fn rank(&self) -> u8 {
        match self {
            Self::Whole => 0,
            Self::Named => 1,
            Self::Stopped => 2,
            Self::Wrong(_) => 3,
        }
    }
}

/// A move on failing media.
struct FaultTrial {
    setting: Setting,
    mutations: Mutations,
    rng: Rng,
    counts: FaultCounts,
    /// Bytes of the partition that may be wrong without a word, since they were altered before they were read.
    excused: Vec<LostRange>,
    mark: (usize, usize),
    /// Whether the fault came when a part of the partition was compared for the last time.
    is_late: bool,
    /// Whether flushes are confirmed falsely: in blocks that are written as a whole, a neighbour can lose its part.
    lies: bool,
    /// Blocks that a write was led to, and that a power cut may have spoiled as a whole.
    hit: Range<u64>,
    /// Whether somebody may have used the partition before the recovery that counts.
    was_used: bool,
    /// Whether an operation was made to fail.
    was_cut: bool,
}

impl FaultTrial {
    fn new(case: &Case, seed: u64, mutations: Mutations) -> Self {
        Self {
            setting: Setting::new(case, seed),
            mutations,
            rng: Rng::new(seed ^ 0xfa01),
            counts: FaultCounts::default(),
            excused: Vec::new(),
            mark: (0, 0),
            is_late: false,
            lies: false,
            hit: 0..0,
            was_used: false,
            was_cut: false,
        }
    }

    fn both(&self) -> (SimDisk, SimStore) {
        let world = &self.setting.world;
        (SimDisk(world.clone()), SimStore(world.clone()))
    }

    /// Tries a number of faults, each in a separate move.
    fn run(mut self, rounds: u64) -> Result<FaultCounts, String> {
        let steps = self.steps()?;
        for round in 0..rounds {
            self.one(steps)
                .map_err(|error| format!("round {round}: {error}"))?;
        }
        Ok(self.counts)
    }

    /// How many steps the move has; nothing of it is left on the disk.
    fn steps(&self) -> Result<u64, String> {
        let start = self.setting.world.borrow().mark();
        let steps = self.whole_move();
        self.setting.world.borrow_mut().back_to(start);
        steps
    }

    /// Tries one fault, and restores the disk.
    fn one(&mut self, steps: u64) -> Result<(), String> {
        let start = self.setting.world.borrow().mark();
        self.excused.clear();
        let result = self.round(steps);
        let mut world = self.setting.world.borrow_mut();
        self.counts.met += u64::from(world.faults.met > 0);
        world.faults = MediaFaults::default();
        (world.fails, world.events) = (None, None);
        world.back_to(start);
        result
    }

    /// The same with random numbers of its own: how it came out.
    fn graded(&mut self, round: u64, steps: u64) -> Grade {
        self.rng = Rng::new(SEED ^ (round << 20));
        let before = self.counts;
        match self.one(steps) {
            Err(error) => Grade::Wrong(error),
            Ok(()) if self.counts.stopped > before.stopped => Grade::Stopped,
            Ok(()) if self.counts.named > before.named => Grade::Named,
            Ok(()) => Grade::Whole,
        }
    }

    /// How many steps it has.
    fn whole_move(&self) -> Result<u64, String> {
        let (disk, store) = self.both();
        let plan = self.setting.plan.clone();
        let mut moving = Move::start_with(plan, disk, store, self.mutations)
            .map_err(|error| error.to_string())?;
        let mut steps = 0;
        while moving
            .step()
            .map_err(|error| format!("without a fault: {error}"))?
            .is_none()
        {
            steps += 1;
        }
        Ok(steps)
    }

    fn round(&mut self, steps: u64) -> Result<(), String> {
        self.counts.trials += 1;
        let (disk, store) = self.both();
        let plan = self.setting.plan.clone();
        let mut moving = Move::start_with(plan, disk, store, self.mutations)
            .map_err(|error| error.to_string())?;
        for _ in 0..self.rng.below(steps + 1) {
            moving.step().map_err(|error| error.to_string())?;
        }
        let progress = moving.progress();
        let is_back = self.rng.percent(50);
        let copied = match progress.stage {
            Stage::Hiding => 0,
            Stage::Copying => progress.bytes,
            _ => self.setting.plan.len,
        };
        // Compared data are not compared again.
        self.is_late = match progress.stage {
            Stage::Verifying => progress.bytes > 0,
            stage => stage == Stage::Finishing,
        };
        let fault = self.fault(copied);
        self.lies = matches!(fault, Fault::LyingFlushes { .. });
        (self.hit, self.was_used, self.was_cut) = (0..0, false, false);
        self.put(&fault, copied);
        self.listen();
        // Killed in one of the next operations, or not at all; with the power, or without.
        let dies = self.rng.percent(70);
        self.was_cut |= dies;
        if dies {
            let mut world = self.setting.world.borrow_mut();
            world.asked = 0;
            world.fails = Some(self.rng.below(40));
        }
        let ended = loop {
            match moving.step() {
                Ok(None) => {}
                Ok(Some(ending)) => break Some(ending),
                Err(_) => break None,
            }
        };
        self.setting.world.borrow_mut().fails = None;
        let lost = moving.lost();
        drop(moving);
        if let Some(ending) = ended {
            return self.ended(ending, lost, &format!("{fault:?}"));
        }
        // A disk that confirmed flushes falsely may lose data at the end of a move unnoticed.
        let has_ended = status(self.both().1)
            .is_ok_and(|status| status.ending.is_some() || status.may_be_in_use);
        if self.lies && has_ended || self.may_have_been_used() {
            return Ok(());
        }
        if self.lies || self.rng.percent(50) {
            self.cut_power();
        }
        // A block goes bad beside bytes that the power cut has spoiled.
        if self.lies && self.rng.percent(30) {
            let sector = self.place();
            let second = Fault::Unreadable {
                which: Which::Disk,
                sectors: self.bad_sectors(sector),
                heals: self.rng.percent(75),
            };
            self.put(&second, copied);
        }
        self.recover(is_back, &fault)
    }

    /// Somewhere in the places that the move writes.
    fn place(&mut self) -> u64 {
        let plan = &self.setting.plan;
        let sector_in = |range: Range<u64>, rng: &mut Rng| {
            range.start / SECTOR + rng.below((range.end - range.start) / SECTOR)
        };
        let label = &plan.hide[self.rng.below(plan.hide.len() as u64) as usize];
        match self.rng.below(8) {
            0 => sector_in(label.range(), &mut self.rng),
            1..=3 => sector_in(plan.old_place(), &mut self.rng),
            _ => sector_in(plan.new_place(), &mut self.rng),
        }
    }

    fn fault(&mut self, copied: u64) -> Fault {
        let heals = self.rng.percent(75);
        match self.rng.below(9) {
            0..=2 => {
                let sector = self.place();
                Fault::Unreadable {
                    which: Which::Disk,
                    sectors: self.bad_sectors(sector),
                    heals,
                }
            }
            3 => {
                let all = self.setting.world.borrow().journal_bytes / SECTOR;
                let sector = self.rng.below(all);
                Fault::Unreadable {
                    which: Which::Journal,
                    sectors: sector..sector + 1,
                    heals,
                }
            }
            4 => Fault::Write {
                which: Which::Disk,
                after: self.rng.below(6),
                fault: WriteFault::Dropped,
            },
            5 => Fault::Write {
                which: Which::Journal,
                after: self.rng.below(6),
                fault: WriteFault::Dropped,
            },
            6 => {
                let to = self.place() * SECTOR;
                let plan = &self.setting.plan;
                let places = plan.hide.iter().map(|change| change.range());
                let place = places
                    .chain([plan.old_place(), plan.new_place()])
                    .find(|place| place.contains(&to));
                let end = place.map_or(to + SECTOR, |place| place.end);
                Fault::Write {
                    which: Which::Disk,
                    after: self.rng.below(6),
                    fault: WriteFault::Misdirected { to, end },
                }
            }
            7 => Fault::LyingFlushes {
                after: self.rng.below(4),
            },
            _ => {
                let at = self.place() * SECTOR;
                match self.may_be_altered(at, copied) && !self.is_late {
                    true => Fault::Altered { at },
                    false => Fault::LyingFlushes { after: 0 },
                }
            }
        }
    }

    /// A sector, or all of its physical block.
    fn bad_sectors(&mut self, sector: u64) -> Range<u64> {
        if self.rng.percent(60) {
            return sector..sector + 1;
        }
        let plan = &self.setting.plan;
        let at = sector * SECTOR;
        let unit = plan.unit.cover(&(at..at + 1), plan.disk_bytes);
        unit.start / SECTOR..unit.end / SECTOR
    }

    /// Whether a byte is not one of a source that is still to be read.
    fn may_be_altered(&self, at: u64, copied: u64) -> bool {
        let plan = &self.setting.plan;
        !plan.old_place().contains(&at) || self.is_copied(at - plan.from.0, copied)
    }

    fn is_copied(&self, offset: u64, copied: u64) -> bool {
        let plan = &self.setting.plan;
        match plan.to < plan.from {
            true => offset < copied,
            false => offset >= plan.len - copied,
        }
    }

    fn put(&mut self, fault: &Fault, copied: u64) {
        let plan = &self.setting.plan;
        let mut world = self.setting.world.borrow_mut();
        match *fault {
            Fault::Unreadable {
                which,
                ref sectors,
                heals,
            } => {
                let bad = sectors.clone().map(|sector| ((which, sector), heals));
                world.faults.unreadable.extend(bad);
            }
            Fault::Write {
                which,
                after,
                fault,
            } => {
                world.faults.write = Some((which, after, fault));
                if let WriteFault::Misdirected { to, end } = fault {
                    // A power cut during the write spoils whole blocks.
                    let hit = plan.unit.cover(&(to..end), plan.disk_bytes);
                    self.hit = hit.clone();
                    for at in plan.old_place().step_by(SECTOR as usize) {
                        let offset = at - plan.from.0;
                        if meet(&(at..at + SECTOR), &hit) && !self.is_copied(offset, copied) {
                            self.excused.push(LostRange {
                                range: offset..offset + SECTOR,
                                kind: LossKind::Doubtful,
                            });
                        }
                    }
                }
            }
            Fault::LyingFlushes { after } => world.faults.honest_flushes = Some(after),
            Fault::Altered { at } => {
                let mut sector = [0; SECTOR as usize];
                world.disk.read(at, &mut sector);
                sector[17] ^= 0x40;
                world.disk.write(at, &sector);
                world.faults.met += 1;
            }
        }
    }

    /// Notes writes and flushes from here on.
    fn listen(&mut self) {
        let mut world = self.setting.world.borrow_mut();
        self.mark = world.mark();
        world.events = Some(Vec::new());
    }

    /// A power cut: of the writes since [`listen`](Self::listen) without a flush, some arrive.
    fn cut_power(&mut self) {
        let world = self.setting.world.clone();
        let mut world = world.borrow_mut();
        world.faults.honest_flushes = None;
        let events = world.events.take().unwrap_or_default();
        world.back_to(self.mark);
        let mut cache = Cache::default();
        for event in &events {
            cache.take(event, &mut world);
        }
        let units = cache.units(&world);
        let effort = Effort {
            every_subset_to: 0,
            random: 1,
        };
        let fates = fates(&units, effort, &mut self.rng)
            .pop()
            .unwrap_or_default();
        cache.cut(&units, &fates, &mut world);
    }

    /// Goes on or back until the end, or until it stops; now and then it is cut off again, once.
    fn go(&mut self, is_back: bool, on_loss: OnLoss) -> Option<Outcome> {
        let dies = self.rng.percent(30);
        self.was_cut |= dies;
        if dies {
            self.listen();
            let mut world = self.setting.world.borrow_mut();
            world.asked = 0;
            world.fails = Some(self.rng.below(60));
        }
        let first = self.go_once(is_back, on_loss);
        let asked = {
            let mut world = self.setting.world.borrow_mut();
            let fails = world.fails.take();
            fails.is_some_and(|fails| world.asked > fails)
        };
        let has_stopped = matches!(first, Some(Outcome::Stopped(_)));
        self.was_used |= has_stopped && self.may_have_been_used();
        match first {
            Some(Outcome::Stopped(_)) if dies && asked => {
                // Behind that signature nobody compares: the data may be newer.
                self.was_used |= self.lies && is_back && self.setting.has_gone_back();
                self.cut_power();
                self.go_once(is_back, on_loss)
            }
            outcome => outcome,
        }
    }

    /// `None` where the move had not begun.
    fn go_once(&self, is_back: bool, on_loss: OnLoss) -> Option<Outcome> {
        let (disk, store) = self.both();
        let begin = match is_back {
            true => Move::rollback_with,
            false => Move::resume_with,
        };
        let mut moving = match begin(store.clone(), disk, on_loss, self.mutations) {
            Ok(moving) => moving,
            Err(MoveError::Ended { ending }) => return Some(self.ended_as(ending)),
            Err(MoveError::Journal(JournalError::None | JournalError::NotBegun)) => return None,
            Err(error) => return Some(Outcome::Stopped(error)),
        };
        loop {
            match moving.step() {
                Ok(None) => {}
                Ok(Some(ending)) => return Some(self.ended_as(ending)),
                Err(error) => return Some(Outcome::Stopped(error)),
            }
        }
    }

    /// With the losses in the journal.
    fn ended_as(&self, ending: Ending) -> Outcome {
        match status(self.both().1) {
            Ok(status) => Outcome::Ended(ending, status.lost),
            Err(error) => Outcome::Stopped(error),
        }
    }

    fn ended(&mut self, ending: Ending, lost: Vec<LostRange>, how: &str) -> Result<(), String> {
        match lost.is_empty() {
            true => self.counts.whole += 1,
            false => self.counts.named += 1,
        }
        let named = [lost, self.excused.clone()].concat();
        let spoiled = match self.lies {
            true => 0..u64::MAX,
            false => self.hit.clone(),
        };
        self.setting
            .check_ending_but(ending, &named, self.is_late, &spoiled)
            .map_err(|error| format!("{how} ended as {ending:?}, {named:?}: {error}"))
    }

    /// Whether a write went elsewhere when the partition may have been used already: the last write of a move that hit its own
    /// signature, or one with which a rollback erases its markers. What is there now may be of a program that has used the
    /// partition since, and nobody can tell.
    fn may_have_been_used(&self) -> bool {
        if self.hit.is_empty() {
            return false;
        }
        let Ok(status) = status(self.both().1) else {
            return false;
        };
        let is_last = status.may_be_in_use && !self.setting.has_come_back();
        let Progress { is_back, stage, .. } = status.progress;
        let has_gone_back = is_back && stage == Stage::Finishing && self.setting.has_gone_back();
        is_last || has_gone_back
    }

    /// Goes on over losses for some steps, as its user may before a rollback.
    fn accept_for_a_while(&mut self) {
        let steps = self.rng.below(30);
        let (disk, store) = self.both();
        let accepted = Move::resume_with(store, disk, OnLoss::Accept, self.mutations);
        let Ok(mut moving) = accepted else { return };
        for _ in 0..steps {
            if !matches!(moving.step(), Ok(None)) {
                return;
            }
        }
    }

    /// A write or the flushes of the rollback go wrong as well.
    fn fault_of_rollback(&mut self) -> Option<Fault> {
        if !self.rng.percent(30) {
            return None;
        }
        let after = self.rng.below(12);
        let fault = match self.rng.percent(50) {
            true => Fault::Write {
                which: Which::Disk,
                after,
                fault: WriteFault::Dropped,
            },
            false => Fault::LyingFlushes { after },
        };
        self.lies |= matches!(fault, Fault::LyingFlushes { .. });
        let mut world = self.setting.world.borrow_mut();
        match fault {
            Fault::Write {
                which,
                after,
                fault,
            } => world.faults.write = Some((which, after, fault)),
            _ => world.faults.honest_flushes = Some(after),
        }
        drop(world);
        Some(fault)
    }

    fn recover(&mut self, is_back: bool, fault: &Fault) -> Result<(), String> {
        let turns = is_back && self.rng.percent(50);
        if turns {
            self.accept_for_a_while();
        }
        let later = is_back.then(|| self.fault_of_rollback()).flatten();
        let how = format!("{fault:?}, then {later:?}, back {is_back}, accepted before {turns}");
        let error = match self.go(is_back, OnLoss::Stop) {
            None => return self.setting.check_ending(None),
            Some(Outcome::Ended(..)) if self.was_used => return Ok(()),
            Some(Outcome::Ended(ending, lost)) => return self.ended(ending, lost, &how),
            Some(Outcome::Stopped(error)) => error,
        };
        self.counts.stopped += 1;
        if self.was_used || self.may_have_been_used() {
            return Ok(());
        }
        match self.go(is_back, OnLoss::Accept) {
            None => Err(format!("{how}: begun, and then not")),
            Some(Outcome::Ended(ending, lost)) => {
                self.ended(ending, lost, &format!("{how}, after {error}"))
            }
            Some(Outcome::Stopped(again))
                if later.is_none() && must_end(fault, &self.setting.plan) =>
            {
                Err(format!("{how}: stops for ever: {error}; then {again}"))
            }
            Some(Outcome::Stopped(_)) => Ok(()),
        }
    }
}

/// If the only fault is a block that can be written, nothing stops a move whose user accepts the loss, unless a neighbour has
/// bytes in the block.
fn must_end(fault: &Fault, plan: &Plan) -> bool {
    let Fault::Unreadable {
        which: Which::Disk,
        sectors,
        heals: true,
    } = fault
    else {
        return false;
    };
    let is_own = |sector: u64| {
        let at = sector * SECTOR;
        plan.old_place().contains(&at) || plan.new_place().contains(&at)
    };
    sectors.end - sectors.start == 1 || sectors.clone().all(is_own)
}

/// Tries faults in all these cases on two threads.
fn explore(cases: &[Case], seed: u64, rounds: u64) -> FaultCounts {
    let (next, total) = (
        AtomicUsize::new(0),
        std::sync::Mutex::new(FaultCounts::default()),
    );
    std::thread::scope(|scope| {
        let tries = || {
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                let counts = FaultTrial::new(case, seed, Mutations::default())
                    .run(rounds)
                    .unwrap_or_else(|error| panic!("seed {seed}, {case:?}: {error}"));
                total.lock().expect("no panic").add(counts);
            }
        };
        scope.spawn(tries);
        tries();
    });
    total.into_inner().expect("no panic")
}

#[test]
fn every_fault_is_named_or_does_no_harm() {
    plumb_testkit::require!(Patience);
    let counts = explore(&cases(1), SEED, 400);
    say(&format!("{counts}"));
    assert!(counts.met > counts.trials / 3, "{counts}");
    assert!(
        counts.whole > 1000 && counts.named > 1000 && counts.stopped > 1000,
        "{counts}"
    );
}

/// `make torture`.
#[test]
#[ignore = "minutes: run by make torture"]
fn every_fault_with_other_seeds() {
    let counts = explore(&cases(1), SEED + 1, 2000);
    say(&format!("{counts}"));
    assert!(counts.met > counts.trials / 3, "{counts}");
}

/// Whether some fault shows a mistake: its trial comes out worse than without the mistake. If a trial was cut off, its mistake may
/// have moved the cut: then only wrong bytes count.
fn finds(mutation: Mutation, rounds: u64) -> Option<String> {
    let mutations = Mutations { on: Some(mutation) };
    let cases = cases(1);
    let mut cases = cases.iter().filter(|case| case.blocks == EMULATED);
    cases.find_map(|case| {
        let mut right = FaultTrial::new(case, SEED, Mutations::default());
        let mut wrong = FaultTrial::new(case, SEED, mutations);
        let steps = right.steps().expect("a move without faults");
        (0..rounds).find_map(|round| {
            let (without, with) = (right.graded(round, steps), wrong.graded(round, steps));
            let is_comparable = !right.was_cut && !wrong.was_cut;
            let is_worse =
                with.rank() > without.rank() && (is_comparable || matches!(with, Grade::Wrong(_)));
            is_worse.then(|| format!("{mutation:?}: {case:?}: {round}: {with:?}, {without:?}"))
        })
    })
}

macro_rules! finds {
    ($($(#[$attribute:meta])* $name:ident $mutation:ident $rounds:literal;)+) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                plumb_testkit::require!(Patience);
                let how = finds(Mutation::$mutation, $rounds).expect("no fault shows the mistake");
                println!("{how}");
            }
        )+
    };
}

mod mistakes {
    use super::*;

    finds! {
        a_rollback_that_is_not_compared NoCheckAfter 1500;
        a_resume_that_does_not_compare_again NoCheckAgain 1500;
        a_loss_that_is_not_named SilentLoss 1500;
        a_loss_that_is_not_recorded NoLossRecord 1500;
        writes_that_are_not_read_again NoArrival 1500;
        copies_that_are_not_compared NoCheckMoved 1500;
        a_loss_that_the_next_step_takes_back LossOfNextStep 1500;
        old_blocks_that_become_zeros OldBlocksMended 1500;
        unproven_bytes_that_a_rollback_forgets UnprovenForgotten 1500;
        #[ignore = "minutes: run by make torture"]
        records_that_are_not_read_again NoReadBack 7000;
        #[ignore = "minutes: run by make torture"]
        a_unit_without_an_image NoMendImage 7000;
        #[ignore = "minutes: run by make torture"]
        nothing_compared_before_a_rollback NoCheckBefore 7000;
        #[ignore = "minutes: run by make torture"]
        a_slot_that_is_not_read_again NoSlotReadBack 7000;
        #[ignore = "minutes: run by make torture"]
        an_image_that_is_written_twice TwoWrites 7000;
    }
}
