//! The fit that a table gives against laying out every event, and the questions that it must not answer.

use proptest::prelude::*;

use plumb_geometry::{Bytes, Grid, GridKind};
use plumb_profile::fit::{FitTally, Select, Unknown};
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
        let head = start.rem_euclid(g) as u128;
        tally.ios += 1;
        tally.misaligned += u64::from(head != 0);
        tally.head_bytes_sum += head;
        let power = (0..64).find(|n| head < 512 << n).expect("a head is small");
        tally.heads.add(if head == 0 { 0 } else { power.max(1) }, 1);
        tally.odd_length += u64::from(len % g != 0);
        tally.partial += u64::from(partial > 0);
        tally.split += u64::from(cells > needed);
        tally.crossing += u64::from(cells > 1);
        tally.cells += cells as u128;
        tally.cells_min += needed as u128;
        tally.partial_cells += partial as u128;
        tally.bytes += len as u128;
        if grid.kind() == GridKind::Unit {
            tally.touched_bytes += (cells * g) as u128;
            tally.read_first_bytes += if event.op == Op::Write {
                (partial * g) as u128
            } else {
                0
            };
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
    fn the_table_gives_what_the_events_give_in_sectors(
        seed: u64,
        modulus in prop::sample::select(vec![1u64 << 20, 48 << 10, 512, 7 * 512, 12 << 10, 3 << 20]),
    ) {
        check_all_grids(&one_lane(512, 40_000, seed), modulus, 512, &mut Rng::new(seed));
    }

    #[test]
    fn the_table_gives_what_the_events_give_in_bytes(
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
    assert_eq!(tally.head_bytes_sum, u128::from(start % (48 << 10)));
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

/// Events that need more rows than a table has at every step down to a given one.
fn many_lengths(residues: u64, seed: u64) -> Vec<(Op, u64, u64)> {
    let mut rng = Rng::new(seed);
    let start = |rng: &mut Rng| rng.below(1 << 20) * (1 << 20) + rng.below(residues) * 512;
    (0..60_000)
        .map(|_| {
            (
                Op::ALL[rng.below(2) as usize],
                start(&mut rng),
                512 * rng.between(1, 4_000),
            )
        })
        .collect()
}

#[test]
fn a_lowered_table_is_exact_in_starts_and_counts_only_exact_lengths() {
    for (residues, modulus_expected) in [(64, 1 << 20), (2048, 1 << 19)] {
        let ios = many_lengths(residues, 5);
        let mut table = Table::default();
        ios.iter()
            .for_each(|&(op, start, len)| table.add(op, start, len, false, None));
        assert!(table.are_lengths_rounded());
        assert_eq!(table.modulus_bytes(), modulus_expected);
        assert_eq!(table.is_modulus_lowered(), modulus_expected < 1 << 20);
        for asked in [grid(4096, 512), grid(modulus_expected, 7 * 512)] {
            let tally = table
                .fit(&asked, Select::DATA)
                .expect("divides what is left of the modulus");
            let events: Vec<(Event, bool)> = ios
                .iter()
                .map(|&(op, start, len)| {
                    (
                        Event::new(0, 0, plumb_trace::Layer::Bio, op, start, len),
                        false,
                    )
                })
                .collect();
            let of_all = brute_force(&events, &asked, Select::DATA);
            assert_eq!(
                (tally.ios, tally.misaligned),
                (of_all.ios, of_all.misaligned)
            );
            assert_eq!(
                (tally.head_bytes_sum, &tally.heads),
                (of_all.head_bytes_sum, &of_all.heads)
            );
            let exact: Vec<(Event, bool)> = events
                .into_iter()
                .filter(|(event, _)| event.len_bytes.is_power_of_two())
                .collect();
            let of_exact = brute_force(&exact, &asked, Select::DATA);
            assert_eq!(tally.known_length(), of_exact.ios);
            let sums = |tally: &FitTally| {
                let shares = (tally.odd_length, tally.partial, tally.split, tally.crossing);
                (
                    shares,
                    tally.cells,
                    tally.partial_cells,
                    tally.bytes,
                    tally.touched_bytes,
                )
            };
            assert_eq!(sums(&tally), sums(&of_exact));
        }
        let unknown = Unknown::Modulus {
            granularity: Bytes(2 << 20),
            modulus: Bytes(modulus_expected),
        };
        assert_eq!(table.fit(&grid(2 << 20, 0), Select::DATA), Err(unknown));
    }
}

#[test]
fn a_least_length_is_exact_at_powers_of_two_after_lengths_were_rounded() {
    let ios = many_lengths(64, 6);
    let mut table = Table::default();
    ios.iter()
        .for_each(|&(op, start, len)| table.add(op, start, len, false, None));
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
