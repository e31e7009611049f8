//! The effect of other layouts on the I/O, compared with laying out every I/O.

use proptest::prelude::*;

use plumb_geometry::{Bounds, Bytes, Grid, GridKind};
use plumb_profile::Table;
use plumb_profile::fit::{Select, Unknown};
use plumb_profile::what_if::{Class, MemberLoad, Refusal, recorded, shifted, striped};
use plumb_testkit::Rng;
use plumb_testkit::workload::{MisfitKind, PlantedMisfits};
use plumb_trace::{Layer, Op};

use crate::model::support::Recording;

fn chunk(bytes: u64, offset: u64) -> Grid {
    Grid::new(Bytes(bytes), Bytes(offset), GridKind::Boundary).expect("a grid")
}

fn table_of(ios: &[(Op, u64, u64)], modulus: u64) -> Table {
    let mut table = Table::new(modulus).expect("a modulus");
    ios.iter()
        .for_each(|&(op, start, len)| table.add(op, start, len, false, None));
    table
}

fn random_ios(unit: u64, seed: u64) -> Vec<(Op, u64, u64)> {
    let mut rng = Rng::new(seed);
    let io = |rng: &mut Rng| {
        let len = if rng.percent(10) {
            rng.below(1 << 22)
        } else {
            rng.below(1 << 16)
        };
        (
            Op::ALL[rng.below(3) as usize],
            (1 << 30) + rng.below(1 << 24) / unit * unit,
            len / unit * unit,
        )
    };
    (0..150).map(|_| io(&mut rng)).collect()
}

/// Member loads, sector by sector.
fn loads_by_sectors(ios: &[(Op, u64, u64)], chunk: &Grid, members: u64) -> Vec<MemberLoad> {
    let mut loads = vec![MemberLoad::default(); members as usize];
    for &(_, start, len) in ios
        .iter()
        .filter(|(op, _, len)| *op != Op::Discard && *len > 0)
    {
        let chunk_of = |byte: u64| (byte - chunk.offset().0) / chunk.granularity().0;
        loads[(chunk_of(start) % members) as usize].ios += 1;
        let mut last = None;
        for sector in (start..start + len).step_by(512) {
            let number = chunk_of(sector);
            let load = &mut loads[(number % members) as usize];
            load.pieces
                .add(Bounds::exact(u64::from(last != Some(number))));
            load.bytes.add(Bounds::exact(512));
            last = Some(number);
        }
    }
    loads
}

proptest! {
    #![proptest_config(crate::model::support::cases(32))]

    #[test]
    fn a_stripe_equals_the_layout_of_every_io(
        seed: u64, chunk_sectors in 1u64..200, members in 1u32..9, offset: u64,
    ) {
        let bytes = chunk_sectors * 512;
        let modulus = bytes * u64::from(members);
        let grid = chunk(bytes, offset % chunk_sectors * 512);
        let ios = random_ios(512, seed);
        let found = striped(&table_of(&ios, modulus), &grid, Some(members)).expect("divides");
        prop_assert_eq!(found.members, Some(loads_by_sectors(&ios, &grid, u64::from(members))));
        let data: Vec<_> = ios.iter().filter(|io| io.0 != Op::Discard && io.2 > 0).collect();
        let (mut split, mut expected) = (0, 0.0);
        for (_, start, len) in &data {
            let splits = |start: u64| {
                let touched = (start + len - 1 - grid.offset().0) / bytes - (start - grid.offset().0) / bytes + 1;
                touched > len.div_ceil(bytes)
            };
            split += u64::from(splits(*start));
            let far = 1 << 20;
            let starts = (0..chunk_sectors).filter(|sector| splits((far * chunk_sectors + sector) * 512));
            expected += starts.count() as f64 / chunk_sectors as f64;
        }
        prop_assert_eq!((found.tally.ios, found.tally.split.known()), (data.len() as u64, Some(split)));
        let random = found.expected_split_share;
        prop_assert!((random.low - expected / data.len() as f64).abs() < 1e-9, "{random:?}");
        prop_assert!((random.high - random.low).abs() < 1e-9, "{random:?}");
        prop_assert_eq!(found.class, Class::ExactForTheseRequests);
    }

    #[test]
    fn a_shift_equals_the_shift_of_every_io(seed: u64, by in -5_000i64..5_000, granularity in 0u32..9) {
        let (granularity, by) = (4096 << granularity, by * 512);
        let ios = random_ios(512, seed);
        let moved: Vec<_> =
            ios.iter().map(|&(op, start, len)| (op, start.wrapping_add_signed(by), len)).collect();
        let grid = chunk(granularity, 7 * 512);
        let (table, moved) = (table_of(&ios, 1 << 20), table_of(&moved, 1 << 20));
        prop_assert_eq!(shifted(&table, &grid, by, Select::DATA), moved.fit(&grid, Select::DATA));
    }
}

/// The arithmetic of the stripe seed: a page of 8 KiB at any sector of a chunk of 32 KiB.
#[test]
fn eight_kib_on_a_chunk_of_thirty_two() {
    let ios: Vec<_> = (0..64)
        .map(|sector| (Op::Read, sector * 512, 8192))
        .collect();
    let found = striped(&table_of(&ios, 1 << 20), &chunk(32 << 10, 0), None).expect("divides");
    let commonest = found.expected_of_commonest.expect("a length");
    let (length, share) = (commonest.len_bytes, commonest.split);
    assert_eq!(
        (length, share.numerator, share.denominator),
        (Bytes(8192), 15, 64)
    );
    assert_eq!(
        (found.tally.split, found.tally.ios),
        (Bounds::exact(15), 64)
    );
    assert!((found.expected_split_share.low - 15.0 / 64.0).abs() < 1e-12);
    assert_eq!((found.members, found.members_unknown), (None, None));
}

#[test]
fn planted_splits_and_member_skew_are_counted() {
    let load = PlantedMisfits::standard(
        MisfitKind::SplitChunk {
            chunk_bytes: 65_536,
        },
        3,
    );
    let table = Recording::from_workload(load.iter()).profile().places.table;
    let found = striped(&table, &chunk(65_536, 0), None).expect("divides");
    assert_eq!(
        (found.tally.ios, found.tally.split),
        (100_000, Bounds::exact(1_000))
    );
    let kind = MisfitKind::MemberSkew {
        chunk_bytes: 65_536,
        members: 4,
    };
    let load = PlantedMisfits {
        misfits: 20_000,
        ..PlantedMisfits::standard(kind, 3)
    };
    let table = Recording::from_workload(load.iter()).profile().places.table;
    let found = striped(&table, &chunk(65_536, 0), Some(4)).expect("divides");
    let pieces: Vec<u64> = found
        .members
        .expect("asked for")
        .iter()
        .map(|load| load.pieces.known().expect("lengths are kept"))
        .collect();
    assert_eq!(pieces[0], load.matching());
    assert_eq!(pieces.iter().sum::<u64>(), 100_000);
    assert!(
        pieces[1..].iter().all(|&pieces| pieces == 20_000),
        "{pieces:?}"
    );
}

#[test]
fn stripes_beyond_the_table_are_ranges() {
    let table = table_of(&[(Op::Read, 0, 4096)], 1 << 20);
    let found = striped(&table, &chunk(65_536, 0), Some(3)).expect("the chunk divides");
    let why = Unknown::Modulus {
        granularity: Bytes(3 * 65_536),
        modulus: Bytes(1 << 20),
    };
    assert_eq!((found.members, found.members_unknown), (None, Some(why)));
    let found = striped(&table, &chunk(65_536, 0), Some(u32::MAX)).expect("the chunk divides");
    assert!(found.members.is_none() && found.members_unknown.is_some());
    let found = striped(&table, &chunk(65_536, 0), Some(0)).expect("the chunk divides");
    assert_eq!(found.members.map(|loads| loads.len()), Some(1));
}

#[test]
fn records_are_decided_at_the_top_layer() {
    let table = table_of(&[(Op::Read, 8192, 8192), (Op::Read, 8192, 8192)], 1 << 20);
    let record = Grid::unit(Bytes(128 << 10)).expect("a grid");
    for layer in [Layer::Bio, Layer::Request] {
        assert_eq!(
            recorded(&table, layer, &record),
            Err(Refusal::LayerAbove { layer })
        );
    }
    let found = recorded(&table, Layer::Vfs, &record).expect("vfs is the top");
    assert_eq!(
        (found.class, found.writes),
        (Class::ChangesTheRequests, None)
    );
    let reads = found.reads.expect("there are reads");
    assert_eq!(
        (reads.ios, reads.bytes, reads.touched_bytes),
        (2, Bounds::exact(16 << 10), Bounds::exact(256 << 10))
    );
    let odd = Grid::unit(Bytes(96 << 10)).expect("a grid");
    assert!(matches!(
        recorded(&table, Layer::Vfs, &odd),
        Err(Refusal::Unknown(Unknown::Modulus { .. }))
    ));
}

/// Nothing overflows when grids and shifts are as large as numbers go.
#[test]
fn grids_of_any_size_are_refused_without_harm() {
    let table = table_of(&[(Op::Read, 0, 4096)], 1 << 20);
    for granularity in [1 << 63, u64::MAX] {
        let grid = chunk(granularity, granularity - 512);
        for by in [i64::MIN, -512, 0, 512, i64::MAX] {
            assert!(shifted(&table, &grid, by, Select::DATA).is_err());
        }
        assert!(striped(&table, &grid, Some(u32::MAX)).is_err());
    }
    assert!(shifted(&table, &Grid::ASSUMED, i64::MIN, Select::DATA).is_ok());
}

/// Of lengths that the table dropped, the load of a member is a range that holds the truth.
#[test]
fn members_of_a_full_table_are_ranges() {
    let mut rng = Rng::new(3);
    let ios: Vec<(Op, u64, u64)> = (0..5_000)
        .map(|_| {
            (
                Op::Read,
                (rng.below(1 << 10) << 20) + rng.below(16) * 65_024,
                512 * rng.between(1, 3_000),
            )
        })
        .collect();
    let mut full = Table::default().with_rows_max(1_024);
    for &(op, start, len) in &ios {
        full.add(op, start, len, false, None);
    }
    assert!(full.are_lengths_rounded());
    let grid = chunk(64 << 10, 0);
    let truth = loads_by_sectors(&ios, &grid, 4);
    let found = striped(&full, &grid, Some(4)).expect("divides");
    let loads = found.members.expect("256 KiB divide M");
    for (found, truth) in loads.iter().zip(&truth) {
        assert_eq!(found.ios, truth.ios);
        assert!(
            found.pieces.contains(truth.pieces.low),
            "{found:?} {truth:?}"
        );
        assert!(found.bytes.contains(truth.bytes.low), "{found:?} {truth:?}");
    }
    let exact = striped(&table_of(&ios, 1 << 20), &grid, None).expect("divides");
    let (range, truth) = (found.expected_split_share, exact.expected_split_share);
    assert!(
        range.low <= truth.low && truth.high <= range.high,
        "{range:?} {truth:?}"
    );
    assert!(range.low < range.high);
}
