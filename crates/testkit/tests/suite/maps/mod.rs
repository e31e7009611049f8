//! The maps of `testkit::maps` against slow, obvious models, which place bytes one by one.

mod model;
mod parity_tables;

use std::collections::BTreeMap;

use plumb_geometry::{Bytes, Extent};
use plumb_testkit::maps::{Direction, LayerMap, MapError, Piece};

/// The position of one byte: member, and byte on it.
pub type MemberByte = (u32, u64);

pub fn extent(start: u64, len: u64) -> Extent {
    Extent::new(Bytes(start), Bytes(len)).expect("ends within 64 bits")
}

/// Every byte of the pieces, in their order.
pub fn bytes_of(pieces: &[Piece]) -> Vec<MemberByte> {
    let bytes = |piece: &Piece| {
        let (member, extent) = (piece.member, piece.extent);
        (extent.start().0..extent.end().0)
            .map(move |byte| (member, byte))
            .collect::<Vec<_>>()
    };
    pieces.iter().flat_map(bytes).collect()
}

/// Compares the reads and the inverse of `map` with `places`, with upper byte i at `places[i]`: for every extent that
/// fits, and for every byte of `members` members up to `reach`.
pub fn check_reads(map: &dyn LayerMap, places: &[MemberByte], members: u32, reach: u64) {
    let size = places.len() as u64;
    assert_eq!(map.size(), Bytes(size));
    for start in 0..=size {
        for len in 0..=size - start {
            let pieces = map
                .map(extent(start, len), Direction::Read)
                .expect("in range");
            assert_eq!(
                bytes_of(&pieces),
                places[start as usize..(start + len) as usize]
            );
            assert!(pieces.iter().all(|piece| !piece.extent.is_empty()));
            for pair in pieces.windows(2) {
                let contiguous = pair[0].extent.end() == pair[1].extent.start();
                assert!(
                    pair[0].member != pair[1].member || !contiguous,
                    "not merged: {pair:?}"
                );
            }
        }
        let beyond = extent(start, size - start + 1);
        for op in [Direction::Read, Direction::Write] {
            let error = Err(MapError::OutOfRange {
                extent: beyond,
                size: Bytes(size),
            });
            assert_eq!(map.map(beyond, op), error);
        }
    }
    check_inverse(map, places, members, reach);
}

fn check_inverse(map: &dyn LayerMap, places: &[MemberByte], members: u32, reach: u64) {
    let uppers: BTreeMap<MemberByte, u64> = places
        .iter()
        .zip(0..)
        .map(|(&place, upper)| (place, upper))
        .collect();
    assert_eq!(
        uppers.len(),
        places.len(),
        "the model puts two bytes in one place"
    );
    for member in 0..members + 2 {
        for byte in (0..reach).chain([u64::MAX - 1, u64::MAX]) {
            let expected = uppers.get(&(member, byte)).copied().map(Bytes);
            assert_eq!(
                map.upper(member, Bytes(byte)),
                expected,
                "member {member} byte {byte}"
            );
        }
    }
}
