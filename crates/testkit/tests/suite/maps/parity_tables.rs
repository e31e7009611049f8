//! Parity arrays against tables drawn by hand from the description of the layouts in md(4) and
//! mdadm(8): a row is a stripe, a column a disk, P and Q parity, a number a data chunk.

use std::collections::BTreeSet;

use super::{MemberByte, bytes_of, check_reads, extent};
use plumb_geometry::ParityLayout::{
    LeftAsymmetric, LeftSymmetric, RightAsymmetric, RightSymmetric,
};
use plumb_geometry::{Bytes, Extent, ParityLayout};
use plumb_testkit::maps::{Direction, LayerMap, LayoutError, ParityStripe};

/// Parity count, layout, and one full rotation.
type RotationTable = (u32, ParityLayout, &'static str);

const TABLES: [RotationTable; 14] = [
    (1, LeftAsymmetric, "0 1 P / 2 P 3 / P 4 5"),
    (1, RightAsymmetric, "P 0 1 / 2 P 3 / 4 5 P"),
    (1, LeftSymmetric, "0 1 P / 3 P 2 / P 4 5"),
    (1, RightSymmetric, "P 0 1 / 3 P 2 / 4 5 P"),
    (1, LeftAsymmetric, "0 1 2 P / 3 4 P 5 / 6 P 7 8 / P 9 10 11"),
    (
        1,
        RightAsymmetric,
        "P 0 1 2 / 3 P 4 5 / 6 7 P 8 / 9 10 11 P",
    ),
    (1, LeftSymmetric, "0 1 2 P / 4 5 P 3 / 8 P 6 7 / P 9 10 11"),
    (1, RightSymmetric, "P 0 1 2 / 5 P 3 4 / 7 8 P 6 / 9 10 11 P"),
    (2, LeftAsymmetric, "Q 0 1 P / 2 3 P Q / 4 P Q 5 / P Q 6 7"),
    (2, RightAsymmetric, "P Q 0 1 / 2 P Q 3 / 4 5 P Q / Q 6 7 P"),
    (2, LeftSymmetric, "Q 0 1 P / 2 3 P Q / 5 P Q 4 / P Q 6 7"),
    (2, RightSymmetric, "P Q 0 1 / 3 P Q 2 / 4 5 P Q / Q 6 7 P"),
    (
        2,
        LeftAsymmetric,
        "Q 0 1 2 P / 3 4 5 P Q / 6 7 P Q 8 / 9 P Q 10 11 / P Q 12 13 14",
    ),
    (
        2,
        LeftSymmetric,
        "Q 0 1 2 P / 3 4 5 P Q / 7 8 P Q 6 / 11 P Q 9 10 / P Q 12 13 14",
    ),
];

/// A table with its positions, over `rotations` repetitions.
struct Drawn {
    disks: u32,
    stripes: u64,
    /// Stripe and disk of each data chunk.
    data: Vec<(u64, u32)>,
    /// Disks with parity in each stripe, P before Q.
    parity: Vec<Vec<u32>>,
}

fn draw(table: &str, rotations: usize) -> Drawn {
    let rows: Vec<Vec<&str>> = table
        .split(" / ")
        .map(|row| row.split(' ').collect())
        .collect();
    let disk_of = |row: &[&str], mark: &str| row.iter().position(|&cell| cell == mark);
    let mut drawn = Drawn {
        disks: rows[0].len() as u32,
        stripes: 0,
        data: Vec::new(),
        parity: Vec::new(),
    };
    for _ in 0..rotations {
        let mut chunk = 0;
        for row in &rows {
            while let Some(disk) = disk_of(row, &chunk.to_string()) {
                drawn.data.push((drawn.stripes, disk as u32));
                chunk += 1;
            }
            let parity = ["P", "Q"].iter().filter_map(|mark| disk_of(row, mark));
            drawn.parity.push(parity.map(|disk| disk as u32).collect());
            drawn.stripes += 1;
        }
    }
    drawn
}

fn places(drawn: &Drawn, chunk: u64) -> Vec<MemberByte> {
    let bytes = |&(stripe, disk): &(u64, u32)| {
        (0..chunk)
            .map(move |within| (disk, stripe * chunk + within))
            .collect::<Vec<_>>()
    };
    drawn.data.iter().flat_map(bytes).collect()
}

fn array(drawn: &Drawn, parity: u32, layout: ParityLayout, chunk: u64) -> ParityStripe {
    let len = Bytes(drawn.data.len() as u64 * chunk);
    ParityStripe::new(Bytes(chunk), drawn.disks - parity, parity, layout, len).expect("a layout")
}

#[test]
fn data_are_at_the_offsets_of_the_tables() {
    for (parity, layout, table) in TABLES {
        for chunk in 1..=3 {
            let drawn = draw(table, 2);
            let array = array(&drawn, parity, layout, chunk);
            check_reads(
                &array,
                &places(&drawn, chunk),
                drawn.disks,
                drawn.stripes * chunk + 5,
            );
            for (stripe, members) in (0..).zip(&drawn.parity) {
                assert_eq!(
                    array.parity_members(stripe).as_ref(),
                    Some(members),
                    "{table}"
                );
            }
            assert_eq!(array.parity_members(drawn.stripes), None);
        }
    }
}

/// Every parity byte that the written data bytes have, by the tables.
fn parity_bytes(drawn: &Drawn, chunk: u64, written: &[MemberByte]) -> BTreeSet<MemberByte> {
    let above = |&(_, byte): &MemberByte| {
        drawn.parity[(byte / chunk) as usize]
            .iter()
            .map(move |&disk| (disk, byte))
    };
    written.iter().flat_map(above).collect()
}

fn check_write(drawn: &Drawn, array: &ParityStripe, chunk: u64, at: Extent) {
    let all = places(drawn, chunk);
    let written = &all[at.start().0 as usize..at.end().0 as usize];
    let stripe_bytes = array.stripe_bytes().0;

    let stored = bytes_of(&array.map(at, Direction::Write).expect("in range"));
    let (data, parity) = stored.split_at(written.len());
    assert_eq!(data, written);
    let expected = parity_bytes(drawn, chunk, written);
    assert_eq!(
        parity.len(),
        expected.len(),
        "a parity byte is written twice"
    );
    assert_eq!(parity.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert!(
        parity
            .iter()
            .all(|&(disk, byte)| array.upper(disk, Bytes(byte)).is_none())
    );

    let writes = array.stripe_writes(at).expect("in range");
    let touched: BTreeSet<u64> = written.iter().map(|&(_, byte)| byte / chunk).collect();
    assert!(writes.iter().map(|write| write.stripe).eq(touched));
    for write in writes {
        let in_stripe = written
            .iter()
            .filter(|(_, byte)| byte / chunk == write.stripe)
            .count();
        assert_eq!(write.written, Bytes(in_stripe as u64));
        assert_eq!(write.full, in_stripe as u64 == stripe_bytes);
        for (piece, next) in write.parity.iter().zip(write.parity.iter().skip(1)) {
            let contiguous = piece.extent.end() == next.extent.start();
            assert!(
                piece.member != next.member || !contiguous,
                "not merged: {write:?}"
            );
        }
    }
}

#[test]
fn writes_bring_the_parity_of_their_bytes_and_no_other() {
    for (parity, layout, table) in TABLES {
        for chunk in 1..=4 {
            let drawn = draw(table, 1);
            let array = array(&drawn, parity, layout, chunk);
            let size = array.size().0;
            for (start, len) in (0..size).flat_map(|s| (0..=size - s).map(move |len| (s, len))) {
                check_write(&drawn, &array, chunk, extent(start, len));
            }
        }
    }
}

#[test]
fn only_the_outer_stripes_of_a_write_are_partial() {
    // Four data disks with chunks of 64 KiB: half of stripe 0, all of stripe 1, 4 KiB of stripe 2.
    let chunk = 64 << 10;
    let len = Bytes(40 * chunk);
    let array = ParityStripe::new(Bytes(chunk), 4, 1, LeftSymmetric, len).expect("a layout");
    let writes = array
        .stripe_writes(extent(2 * chunk, 6 * chunk + 4_096))
        .expect("in range");
    let found: Vec<_> = writes
        .iter()
        .map(|write| (write.stripe, write.written.0, write.full))
        .collect();
    assert_eq!(
        found,
        [
            (0, 2 * chunk, false),
            (1, 4 * chunk, true),
            (2, 4_096, false)
        ]
    );
    assert_eq!(writes[2].parity[0].extent, extent(2 * chunk, 4_096));
}

#[test]
fn a_layout_that_cannot_be_is_refused() {
    let check = |chunk, data_disks, parity, len| {
        ParityStripe::new(Bytes(chunk), data_disks, parity, LeftSymmetric, Bytes(len))
            .expect_err("cannot be")
    };
    assert_eq!(check(0, 2, 1, 0), LayoutError::ZeroChunk);
    assert_eq!(check(4, 0, 1, 0), LayoutError::NoMembers);
    assert_eq!(check(4, 2, 0, 8), LayoutError::ParityCount { found: 0 });
    assert_eq!(check(4, 2, 3, 8), LayoutError::ParityCount { found: 3 });
    assert!(matches!(
        check(4, u32::MAX, 2, 8),
        LayoutError::TooManyMembers { .. }
    ));
    assert!(matches!(
        check(1 << 63, 2, 1, 8),
        LayoutError::StripeOverflow { .. }
    ));
    let len = Bytes(21);
    let stripe = Bytes(8);
    let error = check(4, 2, 1, len.0);
    assert_eq!(error, LayoutError::NotWholeStripes { len, stripe });
    // The message names the nearest whole length.
    assert!(error.to_string().ends_with(" 16"), "{error}");
}
