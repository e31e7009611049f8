//! A table as columns gives the same table back, damage is refused without a panic, and a reduced table is one that was
//! full all the time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use plumb_profile::Table;
use plumb_profile::table::{Key, ROWS_MAX_LEAST, Row};
use plumb_testkit::Rng;
use plumb_trace::Op;

use crate::model::support::{cases, table_bytes};

fn random_table(ios: usize, rows_max: usize, rng: &mut Rng) -> Table {
    let mut table = Table::new(1 << 20)
        .expect("a modulus")
        .with_rows_max(rows_max);
    let unit = if rng.percent(20) { 1 } else { 512 };
    for _ in 0..ios {
        let op = Op::ALL[rng.below(6) as usize];
        let ns = rng.percent(60).then(|| rng.below(1 << 40) as i64);
        let (start, len) = (rng.below(1 << 30) * unit, rng.below(300) * unit);
        table.add(op, start, len, rng.percent(30), ns);
    }
    table
}

/// Operation, stream bit and length; whether the length was rounded.
type Kind = (u8, bool, u64, bool);

fn kind(key: Key) -> Kind {
    (
        key.op() as u8,
        key.continues(),
        key.length(),
        key.is_rounded(),
    )
}

/// Known latencies and their sum.
fn by_length(table: &Table) -> BTreeMap<Kind, (u64, u128)> {
    let mut sums = BTreeMap::<Kind, (u64, u128)>::new();
    for (key, row) in table.iter() {
        let (timed, ns) = sums.entry(kind(key)).or_default();
        *timed += row.timed;
        *ns += row.ns_sum;
    }
    sums
}

/// The totals that no reduction may change.
fn totals(table: &Table) -> (u64, u64, u128) {
    table.iter().fold((0, 0, 0), |(ios, timed, ns), (_, row)| {
        (ios + row.ios, timed + row.timed, ns + row.ns_sum)
    })
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn columns_give_the_table_back(seed: u64, ios in 0usize..3000) {
        let mut rng = Rng::new(seed);
        let table = random_table(ios, 1 << 12, &mut rng);
        let bytes = table.to_columns().expect("room");
        let back = Table::from_columns(&bytes).expect("its own columns");
        prop_assert_eq!(&back, &table);
        prop_assert_eq!(table_bytes(&back), table_bytes(&table));
    }

    #[test]
    fn damaged_columns_are_refused_or_are_a_table(seed: u64, ios in 1usize..300) {
        let mut rng = Rng::new(seed);
        let mut bytes = random_table(ios, 1 << 12, &mut rng).to_columns().expect("room");
        prop_assert!(Table::from_columns(&bytes[..rng.below(bytes.len() as u64) as usize]).is_err());
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << rng.below(8);
        if let Ok(table) = Table::from_columns(&bytes) {
            prop_assert!(table.len() <= ios);
        }
    }

    #[test]
    fn a_reduced_table_is_one_that_was_full_all_the_time(seed: u64, ios in 0usize..4000) {
        let whole = random_table(ios, 1 << 14, &mut Rng::new(seed));
        let full = random_table(ios, ROWS_MAX_LEAST, &mut Rng::new(seed));
        let reduced = whole.reduced(ROWS_MAX_LEAST, true);
        // The caps of the two differ, and nothing else.
        prop_assert_eq!(reduced.with_rows_max(ROWS_MAX_LEAST), full);
        let mut merged = whole.emptied();
        merged.merge(&whole);
        prop_assert_eq!(&merged, &whole);
        merged.merge(&whole.emptied());
        prop_assert_eq!(&merged, &whole);
        let small = whole.reduced(256, false);
        prop_assert_eq!(totals(&small), totals(&whole));
        prop_assert!(small.iter().all(|(_, row)| row.ns_squared_sum == 0));
        prop_assert_eq!(small.is_spread_unknown(), totals(&whole).2 > 0);
    }

    /// Rows of one operation, stream bit and length share the sum of their latencies by the number of these, within 1 ns.
    #[test]
    fn a_table_without_squares_has_latencies_by_length(seed: u64, ios in 0usize..3000) {
        let whole = random_table(ios, 1 << 14, &mut Rng::new(seed));
        let shared = whole.reduced(1 << 14, false);
        let (sums, shares) = (by_length(&whole), by_length(&shared));
        prop_assert_eq!(&sums, &shares);
        for (key, row) in shared.iter() {
            let (timed, ns) = sums[&kind(key)];
            let share = ns as f64 * row.timed as f64 / timed.max(1) as f64;
            // Sums of up to 2^52 ns have errors of rounding of some ns.
            prop_assert!((row.ns_sum as f64 - share).abs() <= 2.0 + share / 1e12, "{} of {}", row.ns_sum, share);
        }
        let bytes = shared.to_columns().expect("room");
        let back = Table::from_columns(&bytes).expect("its own columns");
        prop_assert_eq!(&back, &shared);
        prop_assert_eq!(&shared.reduced(1 << 14, false), &shared);
    }

    /// The square of a latency takes no byte beside the latency, and impossible sums come back all the same.
    #[test]
    fn squares_of_single_latencies_take_no_room(seed: u64, ios in 1usize..300, odd: bool) {
        let mut rng = Rng::new(seed);
        let mut table = Table::new(1 << 20).expect("a modulus");
        for at in 0..ios as u64 {
            let ns = u128::from(1 + rng.below(1 << 40));
            let ns_squared_sum = if odd { u128::from(rng.next_u64()) } else { ns * ns };
            let row = Row { ios: 1, timed: 1, ns_sum: ns, ns_squared_sum, ..Row::default() };
            table.add_row(Op::Read, at % 2048 * 512, 4096, false, &row);
        }
        let bytes = table.to_columns().expect("room");
        prop_assert_eq!(&Table::from_columns(&bytes).expect("its own columns"), &table);
        if !odd {
            // A step of a key takes 6 bytes, a count below 128 one, a latency of 40 bits 6.
            prop_assert!(bytes.len() <= 100 + ios * (6 + 1 + 1 + 6), "{} bytes", bytes.len());
            // One sum of latencies for all.
            let shared = table.reduced(1 << 14, false).to_columns().expect("room");
            prop_assert!(shared.len() <= 100 + ios * (6 + 1 + 1), "{} bytes", shared.len());
        }
    }

    /// Sums of latencies that differ from row to row, as stores before version 4 have them.
    #[test]
    fn sums_of_rows_stay_those_of_the_rows(seed: u64, ios in 0usize..300) {
        let mut rng = Rng::new(seed);
        let mut table = Table::new(1 << 20).expect("a modulus");
        for _ in 0..ios {
            let row = Row { ios: 2, timed: 2, ns_sum: u128::from(rng.below(1 << 40)), ..Row::default() };
            table.add_row(Op::Read, rng.below(2048) * 512, (1 + rng.below(3)) * 4096, false, &row);
        }
        let bytes = table.to_columns().expect("room");
        prop_assert_eq!(Table::from_columns(&bytes).expect("its own columns"), table);
    }
}
