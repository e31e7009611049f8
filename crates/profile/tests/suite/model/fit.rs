//! The fit that a table gives against laying out every event, and the questions that it must not answer.

use proptest::prelude::*;

use plumb_geometry::{Bounds, Bytes, Grid, GridKind};
use plumb_profile::fit::{FitTally, Select, Unknown};
use plumb_profile::latency_fit::LatencyByFit;
use plumb_profile::{Collector, Settings, Table};
use plumb_testkit::Rng;
use plumb_trace::{Event, Op, SourceInfo};

use crate::model::slow;
use crate::model::support::{Recording, Spread, only, random};

/// Sums over events laid on a grid one by one, by counting cells from the first byte and the last.
fn brute_force(events: &[(Event, bool)], grid: &Grid, select: Select) -> FitTally {
    let (g, o) = (
        i128::from(grid.granularity().0),
        i128::from(grid.offset().0),
    );
    let mut tally = FitTally::default();
    for (event, continues) in events {
        let asked = match select.op {
            Some(op) => event.op == op,
            None => matches!(event.op, Op::Read | Op::Write),
        };
        if !asked
            || event.len_bytes == 0
            || select.continues.is_some_and(|wanted| wanted != *continues)
            || event.len_bytes < select.len_bytes_min
        {
            continue;
        }
        let (start, len) = (
            i128::from(event.start_bytes) - o,
            i128::from(event.len_bytes),
        );
        let end = start + len;
        let (first, last) = (start.div_euclid(g), (end - 1).div_euclid(g));
        let cut = |cell: i128| cell * g < start || (cell + 1) * g > end;
        let partial = i128::from(cut(first)) + i128::from(last != first && cut(last));
        let (cells, needed) = (last - first + 1, (len + g - 1) / g);
        let head = start.rem_euclid(g);
        tally.ios += 1;
        let flag = |sum: &mut Bounds<u64>, so: bool| sum.add(Bounds::exact(u64::from(so)));
        let number = |sum: &mut Bounds<u128>, number: i128| sum.add(Bounds::exact(number as u128));
        flag(&mut tally.misaligned, head != 0);
        number(&mut tally.head_bytes_sum, head);
        let power = (0..64).find(|n| head < 512 << n).expect("a head is small");
        tally.heads.add(if head == 0 { 0 } else { power.max(1) }, 1);
        flag(&mut tally.odd_length, len % g != 0);
        flag(&mut tally.partial, partial > 0);
        flag(&mut tally.split, cells > needed);
        flag(&mut tally.crossing, cells > 1);
        number(&mut tally.cells, cells);
        number(&mut tally.cells_min, needed);
        number(&mut tally.partial_cells, partial);
        number(&mut tally.bytes, len);
        if grid.kind() == GridKind::Unit {
            let read_first = if event.op == Op::Write {
                partial * g
            } else {
                0
            };
            number(&mut tally.touched_bytes, cells * g);
            number(&mut tally.read_first_bytes, read_first);
            number(&mut tally.beyond_bytes, cells * g + read_first - len);
        }
    }
    tally
}

fn divisors(modulus: u64) -> Vec<u64> {
    (1..=modulus)
        .filter(|d| modulus.is_multiple_of(*d))
        .collect()
}

const SELECTS: [Select; 6] = [
    Select::DATA,
    Select::HEADS,
    Select::op(Op::Read),
    Select::op(Op::Discard),
    Select {
        op: Some(Op::Write),
        continues: Some(true),
        len_bytes_min: 0,
    },
    Select {
        op: None,
        continues: None,
        len_bytes_min: 4096,
    },
];

fn check_all_grids(recording: &Recording, modulus: u64, unit: u64, rng: &mut Rng) {
    let mut collector = Collector::new(&Settings {
        modulus_bytes: modulus,
        ..Settings::default()
    })
    .expect("a modulus");
    recording
        .batches(64)
        .for_each(|batch| collector.fold(&batch));
    let table = only(&collector.finish(&SourceInfo::default())).places.table;
    assert_eq!((table.unit_bytes(), table.modulus_bytes()), (unit, modulus));
    let events = slow::with_stream_bit(&recording.events);
    for granularity in divisors(modulus) {
        let units = granularity.div_ceil(unit);
        let offset = rng.below(units) * unit;
        let kind =
            [GridKind::Unit, GridKind::Boundary, GridKind::ParityStripe][rng.below(3) as usize];
        let grid = Grid::new(Bytes(granularity), Bytes(offset), kind).expect("an offset below");
        for select in SELECTS {
            let expected = brute_force(&events, &grid, select);
            let expected = if expected.ios == 0 {
                Err(Unknown::NoIo)
            } else {
                Ok(expected)
            };
            assert_eq!(table.fit(&grid, select), expected, "{grid:?} {select:?}");
        }
    }
}

/// One device at one layer, so that there is one table.
fn one_lane(unit: u64, starts: u64, seed: u64) -> Recording {
    let spread = Spread {
        events: 200,
        devices: 1,
        unit,
        starts,
        lengths: 60 * 512 / unit,
    };
    let mut recording = random(spread, seed);
    recording
        .events
        .iter_mut()
        .for_each(|event| event.layer = plumb_trace::Layer::Vfs);
    recording
}

proptest! {
    #![proptest_config(crate::model::support::cases(24))]

    #[test]
    fn the_table_equals_the_events_in_sectors(
        seed: u64,
        modulus in prop::sample::select(vec![1u64 << 20, 48 << 10, 512, 7 * 512, 12 << 10, 3 << 20]),
    ) {
        check_all_grids(&one_lane(512, 40_000, seed), modulus, 512, &mut Rng::new(seed));
    }

    #[test]
    fn the_table_equals_the_events_in_bytes(
        seed: u64, modulus in prop::sample::select(vec![1u64 << 20, 48 << 10, 512, 7 * 512]),
    ) {
        let mut recording = one_lane(1, 1 << 22, seed);
        // One odd length at least, or the table might stay in sectors.
        recording.events[0].len_bytes = 4_097;
        recording.events[0].op = Op::Write;
        check_all_grids(&recording, modulus, 1, &mut Rng::new(seed));
    }
}

#[test]
fn a_far_start_keeps_its_residue() {
    let mut table = Table::new(48 << 10).expect("a modulus");
    let start = u64::MAX - u64::MAX % 512 - 4096;
    table.add(Op::Read, start, 4096, false, None);
    let grid = Grid::unit(Bytes(48 << 10)).expect("a grid");
    let tally = table
        .fit(&grid, Select::DATA)
        .expect("48 KiB divides the modulus");
    assert_eq!(
        tally.head_bytes_sum,
        Bounds::exact(u128::from(start % (48 << 10)))
    );
}

fn grid(granularity: u64, offset: u64) -> Grid {
    Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit).expect("a grid")
}

#[test]
fn questions_outside_the_table_are_unknown() {
    let mut table = Table::default();
    assert_eq!(table.fit(&Grid::ASSUMED, Select::DATA), Err(Unknown::NoIo));
    table.add(Op::Read, 512, 4096, false, None);
    let modulus = |granularity| Unknown::Modulus {
        granularity: Bytes(granularity),
        modulus: Bytes(1 << 20),
    };
    for granularity in [48 << 10, 2 << 20, 3, 1000, u64::MAX, 1 << 63] {
        let asked = grid(granularity, 0);
        assert_eq!(table.fit(&asked, Select::DATA), Err(modulus(granularity)));
        assert_eq!(table.latency_by_fit(&asked), Err(modulus(granularity)));
        assert_eq!(
            plumb_profile::what_if::shifted(&table, &asked, 512, Select::DATA),
            Err(modulus(granularity))
        );
        assert_eq!(
            plumb_profile::what_if::striped(&table, &asked, Some(2)),
            Err(modulus(granularity))
        );
    }
    for offset in [1, 511, 513, 4095] {
        let unknown = Unknown::Offset {
            offset: Bytes(offset),
            unit: Bytes(512),
        };
        assert_eq!(table.fit(&grid(4096, offset), Select::DATA), Err(unknown));
    }
    assert_eq!(
        table.fit(&Grid::ASSUMED, Select::op(Op::Write)),
        Err(Unknown::NoIo)
    );
    table.add(Op::Read, 1, 1, false, None);
    assert!(
        table.fit(&grid(4096, 511), Select::DATA).is_ok(),
        "bytes answer every offset"
    );
}

/// I/O that need more rows than a table of 1,024 at every step down to a given one.
fn many_lengths(residues: u64, seed: u64) -> Vec<(Op, u64, u64)> {
    let mut rng = Rng::new(seed);
    let start = |rng: &mut Rng| rng.below(1 << 20) * (1 << 20) + rng.below(residues) * 512;
    (0..6_000)
        .map(|_| {
            (
                Op::ALL[rng.below(2) as usize],
                start(&mut rng),
                512 * rng.between(1, 4_000),
            )
        })
        .collect()
}

fn table_of(ios: &[(Op, u64, u64)], rows_max: usize, grids: &[Grid]) -> Table {
    let mut table = Table::default().with_rows_max(rows_max).with_grids(grids);
    for (at, &(op, start, len)) in ios.iter().enumerate() {
        table.add(op, start, len, at % 3 == 0, None);
    }
    table
}

fn events_of(ios: &[(Op, u64, u64)]) -> Vec<(Event, bool)> {
    ios.iter()
        .enumerate()
        .map(|(at, &(op, start, len))| {
            let event = Event::new(0, 0, plumb_trace::Layer::Bio, op, start, len);
            (event, at % 3 == 0)
        })
        .collect()
}

/// Each range of a tally as (name, least, most), the figures of exact I/O as ranges of one number.
fn ranges(tally: &FitTally) -> Vec<(&'static str, u128, u128)> {
    let counts = [
        ("misaligned", tally.misaligned),
        ("odd_length", tally.odd_length),
        ("partial", tally.partial),
        ("split", tally.split),
        ("crossing", tally.crossing),
    ];
    let sums = [
        ("head_bytes_sum", tally.head_bytes_sum),
        ("cells", tally.cells),
        ("cells_min", tally.cells_min),
        ("partial_cells", tally.partial_cells),
        ("bytes", tally.bytes),
        ("touched_bytes", tally.touched_bytes),
        ("read_first_bytes", tally.read_first_bytes),
        ("beyond_bytes", tally.beyond_bytes),
    ];
    counts
        .map(|(name, range)| (name, range.map(u128::from)))
        .into_iter()
        .chain(sums)
        .map(|(name, range)| (name, range.low, range.high))
        .collect()
}

/// Checks that the truth is in every range of a tally, and in those of the derived figures.
fn check_holds(tally: &FitTally, truth: &FitTally, grid: &Grid) {
    assert_eq!(tally.ios, truth.ios);
    for ((name, low, high), (_, true_value, _)) in ranges(tally).into_iter().zip(ranges(truth)) {
        assert!(
            low <= true_value && true_value <= high,
            "{name} on {grid}: {true_value} is not within {low} to {high}"
        );
    }
    let of = |tally: &FitTally| [tally.cells_ratio(), tally.amplification(grid)];
    for (found, truth) in of(tally).into_iter().zip(of(truth)) {
        let (Some(found), Some(truth)) = (found, truth) else {
            assert_eq!(found.is_none(), truth.is_none());
            continue;
        };
        assert!(
            found.low <= truth.low + 1e-9 && truth.high <= found.high + 1e-9,
            "{truth:?} is not within {found:?} on {grid}"
        );
    }
}

proptest! {
    #![proptest_config(crate::model::support::cases(24))]

    /// For any cap, the truth is in every range, a subset never exceeds the whole, and the grids that were requested
    /// before stay exact.
    #[test]
    fn ranges_of_a_full_table_hold_the_truth(
        seed: u64,
        rows_max in prop::sample::select(vec![1_024usize, 1_025, 1_500, 2_000, 2_900, 10_000, 65_536, 1 << 18]),
        residues in prop::sample::select(vec![1u64, 8, 64, 2_048]),
        granularity in prop::sample::select(vec![512u64, 1_536, 4_096, 8_192, 65_536, 1 << 20]),
        offset in 0u64..2_048,
    ) {
        let mut rng = Rng::new(seed);
        let ios: Vec<_> = many_lengths(residues, rng.next_u64()).into_iter().take(3_000).collect();
        let divides = 3 << 20;
        let kind = [GridKind::Unit, GridKind::Boundary][rng.below(2) as usize];
        let asked = Grid::new(Bytes(granularity), Bytes(offset * 512 % granularity), kind).expect("a grid");
        let other = Grid::new(Bytes(4_096), Bytes(512), GridKind::Unit).expect("a grid");
        let mut table = Table::new(divides).expect("a modulus").with_rows_max(rows_max).with_grids(&[other]);
        let events = events_of(&ios);
        for (event, continues) in &events {
            table.add(event.op, event.start_bytes, event.len_bytes, *continues, None);
        }
        prop_assert!(table.len() <= rows_max);
        for select in SELECTS {
            let truth = brute_force(&events, &asked, select);
            match table.fit(&asked, select) {
                Ok(tally) => check_holds(&tally, &truth, &asked),
                Err(why) => prop_assert!(why == Unknown::NoIo && truth.ios == 0, "{why:?}"),
            }
            let exact = brute_force(&events, &other, select);
            if exact.ios > 0 && select.len_bytes_min < 2 {
                prop_assert_eq!(table.fit(&other, select), Ok(exact));
            }
        }
        let of = |select| table.fit(&asked, select).unwrap_or_default();
        let (reads, whole) = (of(Select::op(Op::Read)), of(Select::DATA));
        for ((name, low, _), (_, _, high)) in ranges(&reads).into_iter().zip(ranges(&whole)) {
            prop_assert!(low <= high, "{name}: {low} reads of {high}");
        }
    }
}

/// 4 % of lengths that are no multiple of 4 KiB among 200,000 I/O, more different ones than the table takes.
#[test]
fn odd_lengths_of_a_full_table_are_a_range_and_no_zero() {
    let mut rng = Rng::new(7);
    let ios: Vec<(Op, u64, u64)> = (0..200_000)
        .map(|_| {
            let len = if rng.percent(4) {
                512 * (8 * rng.between(1, 500) + rng.between(1, 7))
            } else {
                4096 << rng.below(4)
            };
            (Op::Read, rng.below(1 << 30) * 4096, len)
        })
        .collect();
    let odd = ios.iter().filter(|io| io.2 % 4096 != 0).count() as u64;
    assert!(odd > 7_000, "{odd}");
    let page = grid(4096, 0);
    let full = table_of(&ios, 1_024, &[]);
    assert!(full.are_lengths_rounded());
    let tally = full.fit(&page, Select::DATA).expect("the page divides M");
    assert!(tally.odd_length.contains(odd), "{:?}", tally.odd_length);
    // Lengths of a power of two are kept, so at most those that are not can be odd.
    assert_eq!(tally.odd_length.high, odd);
    let asked = table_of(&ios, 1_024, &[page]);
    let tally = asked.fit(&page, Select::DATA).expect("the page divides M");
    assert_eq!(tally.odd_length, Bounds::exact(odd));
    let roomy = table_of(&ios, 1 << 18, &[]);
    assert!(!roomy.are_lengths_rounded(), "{} rows", roomy.len());
    let tally = roomy.fit(&page, Select::DATA).expect("the page divides M");
    assert_eq!(tally.odd_length, Bounds::exact(odd));
}

/// The commonest length is known only if no class of rounded lengths has more I/O.
#[test]
fn the_commonest_length_of_a_full_table_may_be_unknown() {
    let rounded = many_lengths(1, 9);
    let with_pages = |pages: u64| {
        let pages = (0..pages).map(|at| (Op::Read, at * 8192, 8192));
        table_of(
            &rounded.iter().copied().chain(pages).collect::<Vec<_>>(),
            1_024,
            &[],
        )
    };
    let few = with_pages(400);
    assert!(few.are_lengths_rounded());
    // Of 6,000 lengths up to 2 MiB nearly half are above 1 MiB.
    assert_eq!(few.commonest_length(Select::DATA), None);
    let many = with_pages(4_000);
    assert!(many.are_lengths_rounded());
    let (length, ios) = many.commonest_length(Select::DATA).expect("pages");
    assert!(length == 8192 && ios >= 4_000, "{length} {ios}");
}

/// Starts modulo a smaller M do not tell both sides of a grid apart, so their latencies are not compared.
#[test]
fn a_lowered_modulus_has_no_latency_by_fit() {
    let table = table_of(&many_lengths(2_048, 5), 1_024, &[]);
    let asked = grid(1 << 20, 512);
    let LatencyByFit::NotComparable { why } = table.latency_by_fit(&asked).expect("a range") else {
        panic!("compared");
    };
    let modulus = Bytes(table.modulus_bytes()).to_string();
    insta::assert_snapshot!(why.replace(&modulus, "MODULUS"));
}

/// If M had to be lowered below a granularity, starts off the rest of it are off the grid for certain.
#[test]
fn a_lowered_modulus_leaves_a_range_of_misaligned_io() {
    let ios = many_lengths(2_048, 5);
    let table = table_of(&ios, 1_024, &[]);
    assert!(table.is_modulus_lowered(), "{}", table.modulus_bytes());
    let asked = grid(1 << 20, 512);
    let truth = brute_force(&events_of(&ios), &asked, Select::DATA);
    let tally = table.fit(&asked, Select::DATA).expect("a range");
    check_holds(&tally, &truth, &asked);
    let left = Grid::new(Bytes(table.modulus_bytes()), Bytes(512), GridKind::Unit).expect("a grid");
    let certain = brute_force(&events_of(&ios), &left, Select::DATA);
    assert_eq!(tally.misaligned.low, certain.misaligned.low);
    assert_eq!(tally.misaligned.high, ios.len() as u64);
    let outside = grid(2 << 20, 0);
    assert!(matches!(
        table.fit(&outside, Select::DATA),
        Err(Unknown::Modulus { .. })
    ));
}

#[test]
fn a_least_length_is_exact_at_powers_of_two_after_lengths_were_rounded() {
    let ios = many_lengths(64, 6);
    let table = table_of(&ios, 1_024, &[]);
    assert!(table.are_lengths_rounded());
    for len_bytes_min in (9..21).flat_map(|power| [1 << power, (1 << power) + 1]) {
        let expected = ios.iter().filter(|io| io.2 >= len_bytes_min).count() as u64;
        assert_eq!(
            table.count(Select {
                len_bytes_min,
                ..Select::DATA
            }),
            expected,
            "{len_bytes_min}"
        );
    }
}
