//! A table as columns gives the same table back, damage is refused without a panic, and a reduced table is one that was
//! full all the time.

use proptest::prelude::*;

use plumb_profile::Table;
use plumb_profile::table::ROWS_MAX_LEAST;
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
}
