//! Every crash point of many moves, every mistake that the simulation has to find, every failure of disk and journal.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::case::{Blocks, Case, EMULATED, EMULATED_16K, EMULATED_OFFSET, NATIVE_512, NATIVE_4096};
use super::crash::Effort;
use super::explore::{Depth, Tally, Trial};
use crate::mutation::{Mutation, Mutations};

const SEED: u64 = 20_261_122;
/// What `make test` has to try at the least.
const STATES_MIN: u64 = 1_000_000;
/// Between two lines of progress.
const PROGRESS_MOVES: u64 = 50;
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

/// Moves with so many sizes of windows for each pair of places, and twice as many on blocks of 4,096 bytes.
fn cases(sizes: usize) -> Vec<Case> {
    let mut found = Vec::new();
    let mut add = |blocks: Blocks, places: &[(u64, u64, u64)], sizes: usize| {
        for (index, (from, to, len)) in places.iter().enumerate() {
            // Other sizes of windows for each pair of places.
            for units in UNITS.iter().cycle().skip(index).take(sizes) {
                // A label as long as that of a GPT ends within the block in which sector 34 lies.
                let label = if *units == 1 && blocks.logical == 512 { 33 } else { 8 };
                found.push(Case { blocks, from: *from, to: *to, len: *len, units: *units, label });
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

/// Tries all cases on two threads.
fn explore(sizes: usize, depth: Depth, seed: u64) -> Tally {
    let cases = cases(sizes);
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let trial = Trial::new(case, seed, depth, Mutations::default());
                    let tally = trial.run().unwrap_or_else(|error| panic!("seed {seed}, {case:?}: {error}"));
                    let mut total = total.lock().expect("no panic");
                    total.add(&tally);
                    total.moves += 1;
                    if total.moves.is_multiple_of(PROGRESS_MOVES) {
                        say(&format!("{} of {} moves, {} states", total.moves, cases.len(), total.states));
                    }
                }
            });
        }
    });
    let total = total.into_inner().expect("no panic");
    say(&format!("seed {seed}: {total}"));
    total
}

/// Past the capture of the test harness: these numbers are for whoever runs the tests.
fn say(what: &str) {
    // Who has closed stderr does not want to know.
    let _ = writeln!(std::io::stderr(), "crashes of moves: {what}");
}

#[test]
fn every_crash_point() {
    let effort = Effort { every_subset_to: 10, random: 60 };
    let tally = explore(1, Depth { effort, nested_each: 80, levels: 2 }, SEED);
    assert!(tally.states >= STATES_MIN, "{tally:?}");
    assert!(
        tally.resumed > 0 && tally.rolled_back > 0 && tally.not_begun > 0 && tally.nested > 0,
        "{tally:?}"
    );
}

/// `make torture`.
#[test]
#[ignore = "hours: run by make torture"]
fn every_crash_point_a_hundred_times() {
    let effort = Effort { every_subset_to: 10, random: 150 };
    let mut total = Tally::default();
    for round in 0.. {
        // The subsets that are tried all are the same in every round, and count once.
        let every_subset_to = if round == 0 { effort.every_subset_to } else { 0 };
        let effort = Effort { every_subset_to, ..effort };
        total.add(&explore(2, Depth { effort, nested_each: 40, levels: 3 }, SEED + 1 + round));
        if total.states >= TORTURE_STATES_MIN {
            break;
        }
    }
    say(&format!("in all {total}"));
}

#[test]
fn every_failure_of_disk_and_journal() {
    let depth = Depth { effort: Effort { every_subset_to: 3, random: 4 }, nested_each: 1, levels: 1 };
    let mut failures = 0;
    for case in cases(1).iter().step_by(2) {
        let trial = Trial::new(case, SEED, depth, Mutations::default());
        failures += trial.fail_everywhere().unwrap_or_else(|error| panic!("{case:?}: {error}"));
    }
    say(&format!("recovered from {failures} failures of a read, write or flush"));
    assert!(failures > 1000, "{failures}");
}

/// The first case in which a mistake is found, and how. Where neighbours share blocks all of them can show.
fn found_by(mutation: Mutation) -> Option<String> {
    let depth = Depth { effort: Effort { every_subset_to: 4, random: 12 }, nested_each: 16, levels: 2 };
    let mutations = Mutations { on: Some(mutation) };
    cases(1).iter().filter(|case| case.blocks == EMULATED).find_map(|case| {
        let error = Trial::new(case, SEED, depth, mutations).run().err()?;
        Some(format!("{mutation:?}: {case:?}: {error}"))
    })
}

macro_rules! finds {
    ($($name:ident $mutation:ident;)+) => {
        $(
            #[test]
            fn $name() {
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
