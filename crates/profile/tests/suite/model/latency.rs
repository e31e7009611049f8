//! Latency by fit: a planted difference is found, and too little to compare is said to be so.

use plumb_geometry::{Bytes, Grid};
use plumb_profile::Table;
use plumb_profile::latency_fit::{LatencyByFit, STRATUM_TIMED_MIN};
use plumb_profile::table::Row;
use plumb_testkit::Rng;
use plumb_testkit::workload::{MisfitKind, PlantedMisfits};
use plumb_trace::Op;

use crate::model::support::Recording;

/// (difference, low, high, compared, unfitting, strata)
fn difference(table: &Table) -> (f64, f64, f64, u64, u64, u64) {
    match table
        .latency_by_fit(&Grid::ASSUMED)
        .expect("4 KiB divides the modulus")
    {
        LatencyByFit::Difference {
            difference_ns,
            low_ns,
            high_ns,
            compared,
            unfitting,
            strata,
            ..
        } => (difference_ns, low_ns, high_ns, compared, unfitting, strata),
        LatencyByFit::NotComparable { why } => panic!("not comparable: {why}"),
    }
}

fn why_not(table: &Table) -> String {
    match table
        .latency_by_fit(&Grid::ASSUMED)
        .expect("4 KiB divides the modulus")
    {
        LatencyByFit::NotComparable { why } => why,
        found => panic!("compared although it cannot be: {found:?}"),
    }
}

fn planted(penalty_ns: i64, seed: u64) -> Table {
    let load = PlantedMisfits {
        total: 20_000,
        misfits: 1_000,
        penalty_ns,
        ..PlantedMisfits::standard(MisfitKind::Misaligned, seed)
    };
    Recording::from_workload(load.iter()).profile().places.table
}

#[test]
fn a_planted_penalty_is_within_the_interval() {
    for penalty_ns in [0, 50_000, 2_000_000] {
        let mut within = 0;
        for seed in 0..20 {
            let (found, low, high, compared, unfitting, strata) =
                difference(&planted(penalty_ns, seed));
            assert_eq!((compared, unfitting, strata), (1_000, 1_000, 1));
            assert!(low < found && found < high);
            // Latencies spread over some 100 µs, so the mean of a thousand is known to some µs.
            assert!((found - penalty_ns as f64).abs() < 30_000.0, "{found}");
            assert!(high - low < 60_000.0, "{low} to {high}");
            within += u32::from(low <= penalty_ns as f64 && penalty_ns as f64 <= high);
        }
        // Of 20 intervals of 95 %, fewer than 16 hold the truth once in 400 times.
        assert!(within >= 16, "{within} of 20 intervals hold {penalty_ns}");
    }
}

/// `count` timed reads of one kind; `sector` 0 starts on the grid, others do not.
fn add(table: &mut Table, count: u64, sector: u64, len: u64, ns: i64) {
    for n in 0..count {
        // Two values, 10 ns to either side: a variance that is easily worked out.
        let ns = if n % 2 == 0 { ns - 10 } else { ns + 10 };
        table.add(Op::Read, (n * 4096) + sector * 512, len, false, Some(ns));
    }
}

#[test]
fn the_mix_is_that_of_the_unfitting() {
    let mut table = Table::default();
    // Long I/O take longer and are mostly on the grid: a plain mean would have the wrong sign.
    add(&mut table, 900, 0, 65_536, 10_000);
    add(&mut table, 100, 1, 65_536, 10_500);
    add(&mut table, 100, 0, 4096, 1_000);
    add(&mut table, 900, 3, 4096, 1_100);
    let (found, low, high, compared, unfitting, strata) = difference(&table);
    assert!(
        (found - (100.0 * 500.0 + 900.0 * 100.0) / 1000.0).abs() < 1e-6,
        "{found}"
    );
    assert_eq!((compared, unfitting, strata), (1_000, 1_000, 2));
    // Variance of a mean of n such values: 100 / (n − 1); the strata weigh 0.1 and 0.9.
    let variance = 0.01 * (100.0 / 899.0 + 100.0 / 99.0) + 0.81 * (100.0 / 99.0 + 100.0 / 899.0);
    assert!(
        (high - found - 1.96 * f64::sqrt(variance)).abs() < 1e-6,
        "{low} {found} {high}"
    );
    assert!((found - low - (high - found)).abs() < 1e-6);
}

#[test]
fn strata_and_coverage_have_their_least() {
    let table = |on: u64, off: u64, alone: u64| {
        let mut table = Table::default();
        add(&mut table, on, 0, 4096, 1_000);
        add(&mut table, off, 1, 4096, 2_000);
        add(&mut table, alone, 1, 8192, 2_000);
        table
    };
    assert_eq!(STRATUM_TIMED_MIN, 30);
    assert_eq!(difference(&table(30, 30, 0)).3, 30);
    assert!(why_not(&table(29, 30, 0)).contains("0 of 30"));
    assert!(why_not(&table(30, 29, 0)).contains("0 of 29"));
    // 30 of 150 are 20 %.
    assert_eq!(difference(&table(30, 30, 120)).3, 30);
    assert!(why_not(&table(30, 30, 121)).contains("30 of 151"));
    assert!(why_not(&table(0, 30, 0)).contains("all 30"));
    assert!(why_not(&table(30, 0, 0)).contains("all 30"));
    assert!(why_not(&Table::default()).contains("no latency"));
}

#[test]
fn like_is_compared_with_like_only() {
    // The same but for operation, length or stream bit: nothing is comparable.
    for (op, len, continues) in [
        (Op::Write, 4096, false),
        (Op::Read, 8192, false),
        (Op::Read, 4096, true),
    ] {
        let mut table = Table::default();
        add(&mut table, 100, 0, 4096, 1_000);
        (0..100).for_each(|n| table.add(op, n * 4096 + 512, len, continues, Some(2_000)));
        assert!(why_not(&table).contains("0 of 100"));
    }
}

/// Lengths that were rounded up to the same power of two are not the same length.
#[test]
fn rounded_lengths_are_not_comparable() {
    let mut table = Table::default().with_rows_max(1 << 14);
    let mut rng = Rng::new(2);
    for _ in 0..60_000 {
        let (page, sectors) = (rng.below(256), rng.between(1025, 2047));
        // The longer the slower, and misaligned I/O are longer, but not slower for their length.
        let sectors = if rng.percent(50) {
            sectors
        } else {
            sectors / 2 + 1024
        };
        let start = page * 4096 + if sectors > 1536 { 512 } else { 0 };
        table.add(
            Op::Read,
            start,
            sectors * 512,
            false,
            Some(sectors as i64 * 1_000),
        );
    }
    assert!(table.are_lengths_rounded());
    insta::assert_snapshot!(why_not(&table));
}

/// A source that gives counts and sums alone does not tell how far its latencies spread.
#[test]
fn no_interval_without_squares() {
    let row = Row {
        ios: 100,
        timed: 100,
        ns_sum: 100_000,
        ..Row::default()
    };
    let mut table = Table::default();
    table.add_row(Op::Read, 0, 4096, false, &row);
    table.add_row(Op::Read, 512, 4096, false, &row);
    assert!(why_not(&table).contains("spread"));
    let mut other = Table::default();
    add(&mut other, 100, 0, 4096, 1_000);
    add(&mut other, 100, 1, 4096, 1_000);
    assert_eq!(difference(&other).3, 100);
    other.merge(&table);
    assert!(why_not(&other).contains("spread"));
    // With squares, rows that were summed up elsewhere do.
    let row = Row {
        ns_squared_sum: 100 * 1_000_100,
        ..row
    };
    let mut table = Table::default();
    table.add_row(Op::Read, 0, 4096, false, &row);
    table.add_row(Op::Read, 512, 4096, false, &row);
    assert_eq!(difference(&table).3, 100);
}

#[test]
fn other_grids_are_compared_as_well() {
    let table = planted(1_000_000, 1);
    let grid = Grid::unit(Bytes(65_536)).expect("a grid");
    assert_eq!(
        table.latency_by_fit(&grid),
        table.latency_by_fit(&Grid::ASSUMED)
    );
}
