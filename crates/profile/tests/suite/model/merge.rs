//! Merging in any order and grouping gives the same bytes, even if tables, lists and clocks lose detail.

use proptest::prelude::*;

use plumb_geometry::{Bytes, Grid, GridKind};
use plumb_profile::fit::Select;
use plumb_profile::profile::TimeBase;
use plumb_profile::table::Row;
use plumb_profile::top::{NAMES_MAX, ProcessShare, Top};
use plumb_profile::{ProfileSet, Table};
use plumb_testkit::Rng;
use plumb_trace::{Event, Op};

use crate::model::support::{Recording, Spread, bytes_of, merge_anyhow, random, table_bytes};

/// An I/O as a table counts it.
type CountedIo = (Op, u64, u64, bool, Option<i64>);

fn random_ios(count: usize, unit: u64, starts: u64, lengths: u64, rng: &mut Rng) -> Vec<CountedIo> {
    (0..count)
        .map(|_| {
            let op = Op::ALL[rng.below(6) as usize];
            let ns = rng.percent(50).then(|| rng.next_u64() as i64);
            (
                op,
                rng.below(starts) * unit,
                rng.below(lengths) * unit,
                rng.percent(50),
                ns,
            )
        })
        .collect()
}

/// Cap of the tables here: small, so that tests fill them soon.
const ROWS_MAX: usize = 1 << 14;

fn empty_table(modulus: u64) -> Table {
    let grids = [(4096, 0), (4096, 512), (3072, 1024), (65_536, 0)].map(|(bytes, offset)| {
        Grid::new(Bytes(bytes), Bytes(offset), GridKind::Unit).expect("a grid")
    });
    let table = Table::new(modulus).expect("a modulus");
    table.with_rows_max(ROWS_MAX).with_grids(&grids)
}

fn table_of(modulus: u64, ios: &[CountedIo]) -> Table {
    let mut table = empty_table(modulus);
    ios.iter()
        .for_each(|&(op, start, len, continues, ns)| table.add(op, start, len, continues, ns));
    table
}

/// Tables of random parts, merged anyhow, against one table of all I/O in another order.
fn check_tables(modulus: u64, ios: &[CountedIo], rng: &mut Rng) -> Table {
    let mut ios = ios.to_vec();
    let whole = table_of(modulus, &ios);
    let bytes = table_bytes(&whole);
    for _ in 0..3 {
        for at in (1..ios.len()).rev() {
            ios.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let mut tables = Vec::new();
        let mut rest = &ios[..];
        while !rest.is_empty() {
            let at = (1 + rng.below(rest.len() as u64)) as usize;
            tables.push(table_of(modulus, &rest[..at]));
            rest = &rest[at..];
        }
        let merged = merge_anyhow(tables, rng, |into, table| into.merge(&table));
        assert!(
            table_bytes(&merged) == bytes,
            "merged in another order, the table is another"
        );
    }
    whole
}

/// Modulus, unit, starts, lengths.
type TableShape = (u64, u64, u64, u64);

/// The result of a table of 30,000 I/O of a kind: (lengths rounded, M).
const OVERFLOWS: [(TableShape, (bool, u64)); 5] = [
    ((1 << 20, 512, 64, 9), (false, 1 << 20)),
    ((1 << 20, 512, 32, 4_000), (true, 1 << 20)),
    ((1 << 20, 512, 1 << 30, 1_000), (true, 1 << 18)),
    ((48 << 10, 512, 1 << 30, 1 << 17), (true, 48 << 10)),
    ((96 << 10, 1, 1 << 30, 1 << 14), (true, 96 << 2)),
];

#[test]
fn tables_that_overflow_merge_in_any_order() {
    let mut rng = Rng::announced("tables_that_overflow", 11);
    for ((modulus, unit, starts, lengths), (rounded, left)) in OVERFLOWS {
        let ios = random_ios(30_000, unit, starts, lengths, &mut rng);
        let table = check_tables(modulus, &ios, &mut rng);
        assert!(table.len() <= ROWS_MAX);
        assert_eq!(
            table.are_lengths_rounded(),
            rounded,
            "{modulus} {unit} {starts} {lengths}"
        );
        assert_eq!(
            table.modulus_bytes(),
            left,
            "{modulus} {unit} {starts} {lengths}"
        );
        assert_eq!(
            table.iter().map(|(_, row)| row.ios).sum::<u64>(),
            30_000,
            "nothing is dropped"
        );
    }
}

/// The cap of a merged table is the smallest one, and its grids are those that all sides have.
#[test]
fn caps_and_grids_of_merged_tables() {
    let mut rng = Rng::announced("caps_and_grids", 15);
    let ios = random_ios(9_000, 512, 1 << 30, 500, &mut rng);
    let grid = |bytes| Grid::unit(Bytes(bytes)).expect("a grid");
    let tables = || -> Vec<Table> {
        [(1_500, 4096, 8192), (5_000, 4096, 512), (1_100, 8192, 4096)]
            .iter()
            .zip(ios.chunks(3_000))
            .map(|(&(rows_max, one, other), ios)| {
                let mut table = Table::default()
                    .with_rows_max(rows_max)
                    .with_grids(&[grid(one), grid(other)]);
                for &(op, start, len, continues, ns) in ios {
                    table.add(op, start, len, continues, ns);
                }
                table
            })
            .collect()
    };
    let merged: Table = merge_anyhow(tables(), &mut rng, |into, table| into.merge(&table));
    for _ in 0..6 {
        let again = merge_anyhow(tables(), &mut rng, |into, table| into.merge(&table));
        assert_eq!(table_bytes(&again), table_bytes(&merged));
    }
    assert!(merged.rows_max() == 1_100 && merged.len() <= 1_100 && merged.are_lengths_rounded());
    let exact = table_of(1 << 20, &ios);
    assert!(!exact.are_lengths_rounded());
    let odd = |table: &Table, bytes| {
        let tally = table.fit(&grid(bytes), Select::DATA).expect("divides");
        tally.odd_length
    };
    assert_eq!(odd(&merged, 4096), odd(&exact, 4096));
    let (range, truth) = (odd(&merged, 8192), odd(&exact, 8192));
    assert!(range.low < truth.low && truth.low < range.high, "{range:?}");
}

/// Whatever the caps, the grids and the number of different I/O: tables of one M end with the same bytes in any order.
#[test]
fn any_order_of_merging_gives_the_same_bytes() {
    let mut rng = Rng::announced("any_order_of_merging", 16);
    let mut full = 0;
    for case in 0..24 {
        let lengths = [1, 40, 500, 5_000][case % 4];
        let starts = [1 << 14, 1 << 20, 1 << 30][case % 3];
        let ios = random_ios(6_000, 512, starts, lengths, &mut rng);
        let sizes = [512, 1_536, 4_096, 8_192, 65_536];
        let sides: Vec<(usize, Vec<Grid>)> = (0..2 + rng.below(4))
            .map(|_| {
                let rows_max = 1_024 << rng.below(9);
                let grids = sizes.iter().filter(|_| rng.percent(60));
                let grids = grids.map(|size| Grid::unit(Bytes(*size)).expect("a grid"));
                (rows_max as usize, grids.collect())
            })
            .collect();
        let share = ios.len().div_ceil(sides.len());
        let tables = || -> Vec<Table> {
            let parts = sides.iter().zip(ios.chunks(share));
            let tables = parts.map(|((rows_max, grids), ios)| {
                let mut table = Table::new(3 << 20)
                    .expect("a modulus")
                    .with_rows_max(*rows_max)
                    .with_grids(grids);
                for &(op, start, len, continues, ns) in ios {
                    table.add(op, start, len, continues, ns);
                }
                table
            });
            tables.collect()
        };
        let merged: Table = merge_anyhow(tables(), &mut rng, |into, table| into.merge(&table));
        for _ in 0..4 {
            let again = merge_anyhow(tables(), &mut rng, |into, table| into.merge(&table));
            assert_eq!(
                table_bytes(&again),
                table_bytes(&merged),
                "case {case}: {sides:?}"
            );
        }
        full += usize::from(merged.are_lengths_rounded());
    }
    assert!((4..24).contains(&full), "{full} of 24 tables were full");
}

#[test]
fn tables_of_sectors_and_of_bytes_merge_in_any_order() {
    let mut rng = Rng::announced("tables_of_sectors_and_of_bytes", 12);
    for (odd, lengths) in [(1, 100), (3_000, 5_000), (20_000, 1 << 40)] {
        let mut ios = random_ios(20_000, 512, 1 << 30, lengths, &mut rng);
        ios.extend(random_ios(odd, 1, 1 << 30, lengths, &mut rng));
        assert_eq!(check_tables(1 << 20, &ios, &mut rng).unit_bytes(), 1);
    }
}

/// Lengths near and beyond the longest that a key holds exactly, in sectors first and then in bytes.
#[test]
fn very_long_lengths_merge_in_any_order() {
    let mut rng = Rng::announced("very_long_lengths", 13);
    let mut ios: Vec<CountedIo> = Vec::new();
    for n in 0..20_000u64 {
        ios.push((Op::Discard, 0, (1 << 34) + n * (1 << 21), false, None));
    }
    ios.push((Op::Read, 1, 1, false, None));
    let table = check_tables(1 << 20, &ios, &mut rng);
    assert_eq!(table.unit_bytes(), 1);
    let whole_sectors = check_tables(1 << 20, &ios[..20_000], &mut rng);
    assert_eq!(
        whole_sectors.are_lengths_rounded(),
        table.are_lengths_rounded()
    );
}

#[test]
fn tables_of_different_moduli_meet_at_their_common_divisor() {
    let mut rng = Rng::announced("tables_of_different_moduli", 14);
    let ios = random_ios(900, 512, 1 << 20, 60, &mut rng);
    let tables = || {
        [1 << 20, 48 << 10, 80 << 10]
            .iter()
            .zip(ios.chunks(300))
            .map(|(&m, ios)| table_of(m, ios))
            .collect()
    };
    let merged: Table = merge_anyhow(tables(), &mut rng, |into, table| into.merge(&table));
    for _ in 0..6 {
        let again = merge_anyhow(tables(), &mut rng, |into, table| into.merge(&table));
        assert_eq!(table_bytes(&again), table_bytes(&merged));
    }
    assert!(merged.has_mixed_moduli());
    assert_eq!(merged.modulus_bytes(), 16 << 10);
    let direct = table_of(16 << 10, &ios);
    let rows = |table: &Table| {
        let mut rows: Vec<_> = table
            .iter()
            .map(|(key, row)| (key, row.ios, row.ns_sum, row.regions))
            .collect();
        rows.sort_unstable_by_key(|row| row.0);
        rows
    };
    assert_eq!(rows(&merged), rows(&direct));
}

#[test]
fn regions_fold_to_the_coarser_of_two_tables() {
    let start = |region: u64| region << 20;
    let mut near = Table::default();
    [0, 1, 5, 63]
        .iter()
        .for_each(|&region| near.add(Op::Read, start(region), 512, false, None));
    assert_eq!(near.region_shift(), 20);
    assert_eq!(
        near.iter().map(|(_, row)| row.regions).sum::<u64>(),
        1 | 1 << 1 | 1 << 5 | 1 << 63
    );
    let mut far = Table::default();
    far.add(Op::Read, start(64 * 4), 512, false, None);
    near.merge(&far);
    // 257 regions of 1 MiB need regions of 8 MiB.
    assert_eq!(near.region_shift(), 23);
    let regions = near
        .iter()
        .fold(0, |regions, (_, row)| regions | row.regions);
    assert_eq!(regions, 1 | 1 << 7 | 1 << 32);
    near.set_region_shift(23 + 9);
    assert_eq!(
        near.iter()
            .fold(0, |regions, (_, row)| regions | row.regions),
        1
    );
}

fn name(n: u64) -> String {
    let stems = [
        "kworker/",
        "jbd2-",
        "ééééx",
        "ééééy",
        "цццццц",
        "w",
        "",
        "app:",
    ];
    format!("{}{n}", stems[(n % stems.len() as u64) as usize])
}

#[test]
fn long_lists_of_processes_merge_in_any_order() {
    for names in [100u64, 1_024, 1_025, 5_000, 200_000] {
        let mut rng = Rng::announced("long_lists", names);
        let spread = |n: u64| {
            if names < 10_000 {
                name(n)
            } else {
                format!("{}{n}", unusual(n))
            }
        };
        let top_of = |numbers: &mut dyn Iterator<Item = u64>| {
            let mut top = Top::default();
            numbers.for_each(|n| {
                top.add(
                    &spread(n),
                    ProcessShare {
                        ios: n,
                        bytes: 512 * n,
                    },
                )
            });
            top
        };
        let tops: Vec<Top> = (0..5)
            .map(|part| top_of(&mut (0..names).filter(|n| n % 5 == part)))
            .collect();
        let merge = |rng: &mut Rng| merge_anyhow(tops.clone(), rng, |into, top| into.merge(&top));
        let one = merge(&mut rng);
        (0..5).for_each(|_| assert_eq!(merge(&mut rng), one));
        assert_eq!(top_of(&mut (0..names)), one);
        assert_eq!(top_of(&mut (0..names).rev()), one);
        let all = one.most(usize::MAX);
        assert!(all.len() <= NAMES_MAX);
        assert_eq!(one.is_shortened(), names > 1_024);
        assert_eq!(
            all.iter().map(|(_, share)| share.ios).sum::<u64>(),
            names * (names - 1) / 2
        );
    }
}

/// Four letters from a large set, most of them not ASCII, then one that is.
fn unusual(n: u64) -> String {
    let letter = |n: u64| char::from_u32(0x400 + (n % 200) as u32).unwrap_or('x');
    [
        letter(n),
        letter(n / 7),
        letter(n / 11),
        letter(n / 13),
        (b'a' + (n % 26) as u8) as char,
    ]
    .iter()
    .collect()
}

/// Profiles of several devices and layers, with everything in them.
fn profiles(parts: u64, seed: u64) -> Vec<ProfileSet> {
    (0..parts)
        .map(|part| {
            let mut recording = random(Spread::SMALL, seed ^ part);
            let later = ((part * 7) as i64 * 1_000_000_000) << (3 * part);
            recording
                .events
                .iter_mut()
                .for_each(|event| event.time_ns += later);
            recording.profiles(100)
        })
        .collect()
}

proptest! {
    #![proptest_config(crate::model::support::cases(24))]

    #[test]
    fn profiles_merge_in_any_order(seed: u64) {
        let sets = profiles(5, seed);
        let mut rng = Rng::new(seed);
        let one = merge_anyhow(sets.clone(), &mut rng, |into, set| into.merge(&set));
        for _ in 0..4 {
            let again = merge_anyhow(sets.clone(), &mut rng, |into, set| into.merge(&set));
            prop_assert_eq!(bytes_of(&again), bytes_of(&one));
        }
        prop_assert!(one.iter().all(|profile| profile.pieces <= 5));
    }
}

#[test]
fn busy_profiles_that_overflow_merge_in_any_order() {
    let spread = Spread {
        events: 60_000,
        devices: 1,
        unit: 512,
        starts: 1 << 22,
        lengths: 300,
    };
    let mut recording = random(spread, 8);
    recording
        .events
        .iter_mut()
        .for_each(|event| event.layer = plumb_trace::Layer::Bio);
    let sets: Vec<ProfileSet> = recording
        .events
        .chunks(12_000)
        .map(|events| {
            Recording {
                events: events.to_vec(),
                names: recording.names.clone(),
            }
            .profiles(4096)
        })
        .collect();
    assert!(
        sets.iter()
            .flat_map(ProfileSet::iter)
            .all(|profile| !profile.places.table.are_lengths_rounded())
    );
    let mut rng = Rng::new(1);
    let one = merge_anyhow(sets.clone(), &mut rng, |into, set| into.merge(&set));
    assert!(
        one.iter()
            .all(|profile| profile.places.table.are_lengths_rounded())
    );
    for _ in 0..4 {
        let again = merge_anyhow(sets.clone(), &mut rng, |into, set| into.merge(&set));
        assert_eq!(bytes_of(&again), bytes_of(&one));
    }
}

#[test]
fn clocks_that_differ_give_up_the_course_over_time() {
    let sets: Vec<ProfileSet> = [
        plumb_trace::Clock::Unix,
        plumb_trace::Clock::Boot,
        plumb_trace::Clock::Unix,
    ]
    .into_iter()
    .map(|clock| {
        let recording = random(
            Spread {
                devices: 1,
                ..Spread::SMALL
            },
            5,
        );
        let mut collector = crate::model::support::collector(1 << 20);
        collector.set_clock(clock);
        recording
            .batches(100)
            .for_each(|batch| collector.fold(&batch));
        collector.finish(&plumb_trace::SourceInfo::default())
    })
    .collect();
    let mut rng = Rng::new(1);
    let one = merge_anyhow(sets.clone(), &mut rng, |into, set| into.merge(&set));
    for profile in one.iter() {
        assert_eq!(profile.time_base, TimeBase::Mixed);
        assert_eq!(
            (
                profile.first_ns,
                profile.last_ns,
                profile.timeline.iter().count()
            ),
            (None, None, 0)
        );
    }
    for _ in 0..6 {
        let again = merge_anyhow(sets.clone(), &mut rng, |into, set| into.merge(&set));
        assert_eq!(bytes_of(&again), bytes_of(&one));
    }
}

#[test]
fn sums_that_run_over_stay_at_their_end() {
    let row = Row {
        ios: u64::MAX,
        timed: u64::MAX,
        ns_sum: u128::MAX,
        ns_squared_sum: u128::MAX,
        regions: 1,
    };
    let mut table = Table::default();
    (0..3).for_each(|_| table.add_row(Op::Read, 0, 4096, false, &row));
    (0..3).for_each(|_| table.add_row(Op::Read, 512, 4096, true, &row));
    let other = table.clone();
    table.merge(&other);
    assert_eq!(table.iter().map(|(_, row)| row.ios).max(), Some(u64::MAX));
    let tally = table
        .fit(&plumb_geometry::Grid::ASSUMED, plumb_profile::Select::DATA)
        .expect("an answer");
    assert_eq!(tally.ios, u64::MAX);
    let mut profile = plumb_profile::Profile::new("sda", plumb_trace::Layer::Bio, Table::default());
    (0..3).for_each(|_| profile.add_residue(Op::Read, 0, u64::MAX, false, &row));
    let same = profile.clone();
    profile.merge(&same);
    assert_eq!(
        (profile.ios(), profile.placed_ios(), profile.bytes()),
        (u64::MAX, u64::MAX, u64::MAX)
    );
}

/// Ten times the events of one profile are ten profiles merged, where nothing depends on order.
#[test]
fn merging_a_profile_with_itself_doubles_it() {
    let recording = random(
        Spread {
            devices: 1,
            ..Spread::SMALL
        },
        9,
    );
    let set = recording.profiles(100);
    let mut twice = set.clone();
    twice.merge(&set);
    for (one, two) in set.iter().zip(twice.iter()) {
        assert_eq!(two.ios(), 2 * one.ios());
        assert_eq!(two.bytes(), 2 * one.bytes());
        assert_eq!(two.pieces, 2);
        assert_eq!(
            two.ordered.interarrival_ns.total(),
            2 * one.ordered.interarrival_ns.total()
        );
        assert_eq!(two.last_ns, one.last_ns);
    }
    let events: &[Event] = &recording.events;
    assert_eq!(
        twice.iter().map(|profile| profile.ios()).sum::<u64>(),
        2 * events.len() as u64
    );
}
