//! Every crash point of many moves, every mistake that the simulation has to find, every failure of disk and journal.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use plumb_geometry::group_digits;

use super::case::{
    Blocks, Case, EMULATED, EMULATED_16K, EMULATED_OFFSET, NATIVE_512, NATIVE_4096, Setting,
};
use super::crash::Effort;
use super::explore::{Depth, ExploredCounts, Trial};
use super::medium::{Flushes, SimDisk, SimStore};
use crate::journal::Ending;
use crate::moving::{Move, MoveError, status};
use crate::mutation::{Mutation, Mutations};

pub(super) const SEED: u64 = 20_261_122;
/// The least number of states of all moves.
const STATES_MIN: u64 = 1_000_000;
/// `make test` tries one move in three. Directions alternate, sizes of windows repeat after 4 moves and groups of windows after 5: these
/// moves have all of them.
const MOVES_EACH: usize = 3;
/// Between two lines of progress.
const PROGRESS_SECONDS: u64 = 5;
const TORTURE_STATES_MIN: u64 = 100_000_000;

/// Old start, new start and length in sectors, for disks addressed by 512 bytes.
const PLACES: [(u64, u64, u64); 24] = [
    (34, 35, 40),
    (35, 34, 40),
    (63, 64, 61),
    (64, 63, 61),
    (34, 40, 77),
    (40, 34, 77),
    (34, 41, 1),
    (48, 41, 9),
    (34, 49, 50),
    (49, 34, 50),
    (40, 56, 64),
    (56, 40, 64),
    (34, 64, 100),
    (64, 34, 100),
    (63, 80, 133),
    (80, 63, 133),
    (40, 104, 200),
    (104, 40, 200),
    (63, 2048, 90),
    (2048, 63, 90),
    (34, 2048, 30),
    (128, 2048, 64),
    (34, 34 + 131_072, 61),
    (63 + 131_072, 63, 61),
];

/// The same in blocks of 4,096 bytes, counted in sectors.
const PLACES_4096: [(u64, u64, u64); 8] = [
    (48, 56, 120),
    (56, 48, 120),
    (48, 64, 120),
    (64, 48, 120),
    (48, 256, 160),
    (256, 48, 160),
    (48, 2048, 8),
    (48, 48 + 131_072, 64),
];

/// Longest windows, in units.
const UNITS: [u64; 4] = [1, 2, 3, 16];
/// Windows at once, and the duration of a flush: with each of the sizes in turn.
const GROUPS: [(u64, Flushes); 5] = [
    (2, Flushes::Dear),
    (3, Flushes::Cheap),
    (1, Flushes::Cheap),
    (3, Flushes::Changing),
    (4, Flushes::Dear),
];

/// Moves with this number of window sizes for each pair of places, and twice as many on blocks of 4,096 bytes.
pub(super) fn cases(sizes: usize) -> Vec<Case> {
    let mut found = Vec::new();
    let mut add = |blocks: Blocks, places: &[(u64, u64, u64)], sizes: usize| {
        for (index, (from, to, len)) in places.iter().enumerate() {
            // Other sizes of windows for each pair of places.
            for units in UNITS.iter().cycle().skip(index).take(sizes) {
                // A label as long as that of a GPT ends within the block of sector 34.
                let label = if *units == 1 && blocks.logical == 512 {
                    33
                } else {
                    8
                };
                let (at_once, flushes) = GROUPS[found.len() % GROUPS.len()];
                let (from, to, len, units) = (*from, *to, *len, *units);
                found.push(Case {
                    blocks,
                    from,
                    to,
                    len,
                    units,
                    at_once,
                    flushes,
                    label,
                });
            }
        }
    };
    add(NATIVE_512, &PLACES, sizes);
    add(EMULATED, &PLACES, 2 * sizes);
    add(EMULATED_OFFSET, &PLACES, sizes);
    add(EMULATED_16K, &PLACES[12..22], sizes);
    add(NATIVE_4096, &PLACES_4096, 2 * sizes);
    found
}

/// A part of the cases, so that torture can be had in pieces: `1/4` to `4/4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CaseShare {
    number: u64,
    of: u64,
}

impl CaseShare {
    const ALL: Self = Self { number: 1, of: 1 };

    fn parse(words: &str) -> Option<Self> {
        let (number, of) = words.split_once('/')?;
        let share = Self {
            number: number.parse().ok()?,
            of: of.parse().ok()?,
        };
        (1..=share.of).contains(&share.number).then_some(share)
    }

    /// The settings of the environment.
    fn asked() -> Self {
        let Ok(words) = std::env::var("PLUMB_TORTURE_SHARE") else {
            return Self::ALL;
        };
        Self::parse(&words).unwrap_or_else(|| {
            panic!("PLUMB_TORTURE_SHARE: found {words}, expected 1/4 or the like")
        })
    }

    fn select<T>(self, all: Vec<T>) -> Vec<T> {
        let is_mine = |index: &u64| index % self.of == self.number - 1;
        (0..)
            .zip(all)
            .filter(|(index, _)| is_mine(index))
            .map(|(_, one)| one)
            .collect()
    }
}

/// Tries cases on two threads, and says how far it is. `before` are states of earlier rounds.
fn explore(cases: &[Case], depth: Depth, seed: u64, before: u64) -> ExploredCounts {
    let (next, total, began) = (
        AtomicUsize::new(0),
        Mutex::new(ExploredCounts::default()),
        Instant::now(),
    );
    let (states, mut lines) = (AtomicU64::new(before), 0);
    let tell = |tally: &ExploredCounts| {
        let (states, seconds) = (
            group_digits(states.load(Ordering::Relaxed)),
            began.elapsed().as_secs(),
        );
        say(&format!(
            "{states} states, {} of {} moves, {seconds} s",
            tally.moves,
            cases.len()
        ));
    };
    std::thread::scope(|scope| {
        let tries = || {
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                let trial = Trial::new(case, seed, depth, Mutations::default()).counted(&states);
                let tally = trial
                    .run()
                    .unwrap_or_else(|error| panic!("seed {seed}, {case:?}: {error}"));
                let mut total = total.lock().expect("no panic");
                total.add(&tally);
                total.moves += 1;
            }
        };
        let threads = [scope.spawn(tries), scope.spawn(tries)];
        while !threads.iter().all(ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(20));
            if began.elapsed().as_secs() / PROGRESS_SECONDS > lines {
                lines += 1;
                tell(&total.lock().expect("no panic"));
            }
        }
    });
    let total = total.into_inner().expect("no panic");
    say(&format!("seed {seed}: {total}"));
    total
}

/// Bypasses the capture of the test harness: these numbers are for the person who runs the tests.
pub(super) fn say(what: &str) {
    // A closed stderr is no error.
    let _ = writeln!(std::io::stderr(), "crashes of moves: {what}");
}

/// One move in three.
fn some_cases() -> Vec<Case> {
    cases(1).into_iter().step_by(MOVES_EACH).collect()
}

fn crash_everywhere(cases: &[Case], states_min: u64) {
    let effort = Effort {
        every_subset_to: 10,
        random: 62,
    };
    let depth = Depth {
        effort,
        nested_each: 80,
        levels: 2,
    };
    let tally = explore(cases, depth, SEED, 0);
    assert!(tally.states >= states_min, "{tally:?}");
    assert!(
        tally.resumed > 0 && tally.rolled_back > 0 && tally.not_begun > 0 && tally.nested > 0,
        "{tally:?}"
    );
}

#[test]
fn every_crash_point() {
    plumb_testkit::require!(Patience);
    crash_everywhere(&some_cases(), STATES_MIN / MOVES_EACH as u64);
}

#[test]
#[ignore = "minutes: make soak"]
fn every_crash_point_of_all_moves() {
    crash_everywhere(&cases(1), STATES_MIN);
}

/// Kinds of blocks with the direction, sizes and groups of windows, and lengths of labels.
fn classes(cases: &[Case]) -> BTreeSet<String> {
    let classes = cases.iter().flat_map(|case| {
        let is_right = case.to > case.from;
        [
            format!("{:?} {is_right}", case.blocks),
            format!("{} units", case.units),
            format!("{} at once, {:?}", case.at_once, case.flushes),
            format!("{} sectors of label", case.label),
        ]
    });
    classes.collect()
}

#[test]
fn some_moves_have_each_class() {
    assert_eq!(classes(&some_cases()), classes(&cases(1)));
}

/// `make torture`.
#[test]
#[ignore = "hours: run by make torture"]
fn every_crash_point_a_hundred_times() {
    let effort = Effort {
        every_subset_to: 10,
        random: 150,
    };
    let share = CaseShare::asked();
    let (cases, states_min) = (share.select(cases(2)), TORTURE_STATES_MIN / share.of);
    let mut total = ExploredCounts::default();
    for round in 0.. {
        // The subsets that are tried all are the same in every round, and count once.
        let every_subset_to = if round == 0 {
            effort.every_subset_to
        } else {
            0
        };
        let effort = Effort {
            every_subset_to,
            ..effort
        };
        let depth = Depth {
            effort,
            nested_each: 40,
            levels: 3,
        };
        total.add(&explore(&cases, depth, SEED + 1 + round, total.states));
        if total.states >= states_min {
            break;
        }
    }
    say(&format!("in all {total}"));
}

#[test]
fn shares_are_all_cases_once() {
    assert_eq!(
        [
            CaseShare::parse("0/4"),
            CaseShare::parse("5/4"),
            CaseShare::parse("4")
        ],
        [None; 3]
    );
    let mut found: Vec<u32> = ["1/4", "2/4", "3/4", "4/4"]
        .into_iter()
        .flat_map(|words| {
            CaseShare::parse(words)
                .expect("a share")
                .select((0..10).collect())
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, (0..10).collect::<Vec<_>>());
}

#[test]
fn every_failure_of_disk_and_journal() {
    plumb_testkit::require!(Patience);
    let depth = Depth {
        effort: Effort {
            every_subset_to: 3,
            random: 4,
        },
        nested_each: 1,
        levels: 1,
    };
    let mut failures = 0;
    for case in cases(1).iter().step_by(2) {
        let trial = Trial::new(case, SEED, depth, Mutations::default());
        failures += trial
            .fail_everywhere()
            .unwrap_or_else(|error| panic!("{case:?}: {error}"));
    }
    say(&format!(
        "recovered from {failures} failures of a read, write or flush"
    ));
    assert!(failures > 1000, "{failures}");
}

/// A move after a number of steps, with its disk; `None` if it has ended by then.
fn stopped(case: &Case, steps: u64) -> Option<Setting> {
    stopped_in(Setting::new(case, SEED), steps)
}

fn stopped_in(setting: Setting, steps: u64) -> Option<Setting> {
    let (disk, store) = (
        SimDisk(setting.world.clone()),
        SimStore(setting.world.clone()),
    );
    let mut moving =
        Move::start(setting.checked_plan(), disk, store).expect("a move that can begin");
    for _ in 0..steps {
        if moving.step().expect("nothing fails").is_some() {
            return None;
        }
    }
    Some(setting)
}

type Begin = fn(SimStore, SimDisk) -> Result<Move<SimDisk, SimStore>, MoveError>;
const BEGINS: [(Begin, Ending); 2] = [
    (Move::resume, Ending::Moved),
    (Move::rollback, Ending::RolledBack),
];

/// From then on somebody may have used it there, and a rollback would take that from him.
#[test]
fn finished_rollbacks_are_reported() {
    let mut told = 0;
    for case in cases(1).iter().step_by(5) {
        for has_signatures in [true, false] {
            let setting = || {
                let mut setting = Setting::new(case, SEED);
                if !has_signatures {
                    setting.plan.signatures.clear();
                }
                setting
            };
            for setting in (0..).map_while(|steps| stopped_in(setting(), steps)) {
                let status = status(SimStore(setting.world.clone())).expect("a journal");
                assert_eq!(
                    status.may_be_in_use,
                    setting.has_come_back(),
                    "{case:?}: {:?}",
                    status.progress
                );
                told += u64::from(status.may_be_in_use);
            }
        }
    }
    assert!(told > 50, "{told}");
}

/// Another adapter may state other physical blocks than at the start of the move. Units that are multiples of them are
/// written as before; longer blocks would let a torn write destroy bytes that no journal has.
#[test]
fn physical_blocks_that_are_stated_otherwise_later() {
    let cases = cases(1);
    let case_of = |blocks: Blocks| {
        cases
            .iter()
            .find(|case| case.blocks == blocks && case.len > 60)
    };
    let (mut ended, mut refused) = (0, 0);
    for (blocks, later) in [
        (EMULATED, 512),
        (NATIVE_512, 4096),
        (EMULATED_OFFSET, 512),
        (EMULATED_16K, 4096),
        (EMULATED, 16_384),
        (NATIVE_512, 16_384),
    ] {
        let case = case_of(blocks).expect("one of each");
        for (begin, ending) in BEGINS {
            for setting in (0..).map_while(|steps| stopped(case, steps)) {
                setting.world.borrow_mut().physical = later;
                let (disk, store) = (
                    SimDisk(setting.world.clone()),
                    SimStore(setting.world.clone()),
                );
                let mut moving = match begin(store, disk) {
                    Err(MoveError::Plan(error)) if later > blocks.physical.max(4096) => {
                        assert_eq!(error.field, "physical block");
                        refused += 1;
                        continue;
                    }
                    begun => begun.expect("blocks that make up the unit"),
                };
                while moving.step().expect("nothing fails").is_none() {}
                setting
                    .check_ending(Some(ending))
                    .unwrap_or_else(|error| panic!("{case:?}: {later}: {error}"));
                ended += 1;
            }
        }
    }
    assert!(
        ended > 100 && refused > 50,
        "{ended} ended, {refused} refused"
    );
}

/// The first case that finds a mistake, with the message. If neighbours share blocks, all of them can show it.
fn found_by(mutation: Mutation) -> Option<String> {
    let depth = Depth {
        effort: Effort {
            every_subset_to: 4,
            random: 12,
        },
        nested_each: 16,
        levels: 2,
    };
    let mutations = Mutations { on: Some(mutation) };
    cases(1)
        .iter()
        .filter(|case| case.blocks == EMULATED)
        .find_map(|case| {
            let error = Trial::new(case, SEED, depth, mutations).run().err()?;
            Some(format!("{mutation:?}: {case:?}: {error}"))
        })
}

macro_rules! finds {
    ($($name:ident $mutation:ident;)+) => {
        $(
            #[test]
            fn $name() {
                plumb_testkit::require!(Patience);
                let how = found_by(Mutation::$mutation).expect("no crash shows the mistake");
                println!("{how}");
            }
        )+
    };
}

mod mistakes {
    use super::*;

    finds! {
        a_barrier_left_out NoBarrier;
        a_slot_that_is_filled_too_early NoSlotBarrier;
        sums_that_come_too_late LateSums;
        a_journal_that_is_not_flushed NoJournalFlush;
        a_direction_that_is_not_recorded NoDirection;
        a_sum_that_is_not_looked_at NoSumCheck;
        edges_that_are_not_journalled NoEdges;
        signatures_that_stay NoHiding;
        a_label_that_comes_first LabelFirst;
        a_window_longer_than_the_shift LongWindow;
        a_rollback_from_the_wrong_end WrongEnd;
    }
}
