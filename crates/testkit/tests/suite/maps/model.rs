//! Shift, concat, stripe and mirror against models that place one byte at a time.

use super::{MemberByte, bytes_of, check_reads, extent};
use plumb_geometry::{Bytes, Extent, ParityLayout};
use plumb_testkit::maps::{
    Concat, ConcatPart, Direction, LayerMap, LayoutError, MapError, Mirror, ParityStripe, Piece,
    Shift, Stripe,
};
use proptest::prelude::*;

fn check_writes_like_reads(map: &dyn LayerMap) {
    for start in 0..map.size().0 {
        let extent = extent(start, map.size().0 - start);
        assert_eq!(
            map.map(extent, Direction::Read),
            map.map(extent, Direction::Write)
        );
    }
}

#[test]
fn a_shift_moves_every_byte_alike() {
    for by in 0..6 {
        let places: Vec<MemberByte> = (0..17).map(|byte| (0, byte + by)).collect();
        let shift = Shift::new(Bytes(by), Bytes(17)).expect("fits");
        check_reads(&shift, &places, 1, 30);
        check_writes_like_reads(&shift);
    }
    let last = Shift::new(Bytes(u64::MAX), Bytes(1));
    assert!(matches!(
        last,
        Err(LayoutError::MemberOverflow { member: 0, .. })
    ));
}

/// Deals bytes to members chunk by chunk, as one would deal cards.
fn deal(chunk: u64, starts: &[u64], len: u64) -> Vec<MemberByte> {
    let mut next: Vec<u64> = starts.to_vec();
    let mut places = Vec::new();
    let (mut member, mut left_in_chunk) = (0, chunk);
    while (places.len() as u64) < len {
        places.push((member as u32, next[member]));
        next[member] += 1;
        left_in_chunk -= 1;
        if left_in_chunk == 0 {
            (member, left_in_chunk) = ((member + 1) % starts.len(), chunk);
        }
    }
    places
}

#[test]
fn a_stripe_deals_chunks_in_turn() {
    for starts in [&[3][..], &[0, 0], &[0, 5], &[2, 0, 7], &[1, 1, 1, 1]] {
        for chunk in 1..=7 {
            for len in 0..=26 {
                let places = deal(chunk, starts, len);
                let wrapped: Vec<Bytes> = starts.iter().copied().map(Bytes).collect();
                let stripe = Stripe::new(Bytes(chunk), &wrapped, Bytes(len)).expect("fits");
                check_reads(&stripe, &places, starts.len() as u32, 40);
                check_writes_like_reads(&stripe);
                for (upper, &(member, _)) in (0..).zip(&places) {
                    assert_eq!(stripe.member_of(Bytes(upper)), Some(member));
                }
                assert_eq!(stripe.member_of(Bytes(len)), None);
            }
        }
    }
}

#[test]
fn twenty_segments_of_48_kib_make_960_kib() {
    let stripe = Stripe::new(Bytes(48 << 10), &[Bytes(0); 20], Bytes(960 << 10)).expect("fits");
    assert_eq!(stripe.stripe_bytes(), Some(Bytes(960 << 10)));
    let pieces = stripe
        .map(extent(0, 960 << 10), Direction::Read)
        .expect("in range");
    assert!(
        pieces
            .iter()
            .zip(0..)
            .all(|(piece, member)| piece.member == member)
    );
    assert_eq!(pieces.len(), 20);
}

fn part((member, start, len): (u32, u64, u64)) -> ConcatPart {
    ConcatPart {
        member,
        start: Bytes(start),
        len: Bytes(len),
    }
}

#[test]
fn a_concat_lays_parts_end_to_end() {
    let cases: [&[(u32, u64, u64)]; 5] = [
        &[(0, 0, 9)],
        &[(0, 4, 6), (1, 0, 7)],
        // Back to back on one member, so the border must not show; then a gap of three.
        &[(0, 0, 5), (0, 5, 5), (0, 13, 4)],
        // Adjacent on the member but in the other order, so they must stay apart.
        &[(2, 6, 6), (2, 0, 6), (1, 1, 1)],
        &[(7, 1, 1), (3, 3, 2), (7, 0, 1), (3, 0, 3), (0, 9, 9)],
    ];
    for case in cases {
        let places: Vec<MemberByte> = case
            .iter()
            .flat_map(|&(member, start, len)| (start..start + len).map(move |byte| (member, byte)))
            .collect();
        let parts: Vec<ConcatPart> = case.iter().copied().map(part).collect();
        let concat = Concat::new(&parts).expect("parts apart");
        check_reads(&concat, &places, 8, 30);
        check_writes_like_reads(&concat);
    }
}

#[test]
fn a_concat_refuses_parts_that_cannot_be() {
    let check = |parts: &[(u32, u64, u64)]| {
        let parts: Vec<ConcatPart> = parts.iter().copied().map(part).collect();
        Concat::new(&parts).expect_err("cannot be")
    };
    assert_eq!(check(&[]), LayoutError::NoMembers);
    assert_eq!(
        check(&[(0, 0, 1), (0, 4, 0)]),
        LayoutError::EmptyPart { index: 1 }
    );
    let overlap = LayoutError::Overlap {
        member: 1,
        first: extent(0, 5),
        second: extent(4, 2),
    };
    assert_eq!(check(&[(1, 4, 2), (0, 4, 2), (1, 0, 5)]), overlap);
    assert!(matches!(
        check(&[(0, u64::MAX, 1)]),
        LayoutError::MemberOverflow { .. }
    ));
    let full = (0, 0, u64::MAX);
    assert_eq!(
        check(&[full, (1, 0, 1)]),
        LayoutError::SizeOverflow { index: 1 }
    );
}

#[test]
fn a_mirror_writes_all_copies_and_reads_one() {
    for copies in 1..=4 {
        let mirror = Mirror::new(copies, Bytes(11)).expect("has copies");
        for read_copy in 0..copies {
            let mirror = mirror.reading_from(read_copy).expect("exists");
            for (start, len) in (0..11).flat_map(|start| (0..=11 - start).map(move |l| (start, l)))
            {
                let on = |member| (start..start + len).map(move |byte| (member, byte));
                let read = mirror
                    .map(extent(start, len), Direction::Read)
                    .expect("in range");
                assert_eq!(bytes_of(&read), on(read_copy).collect::<Vec<_>>());
                let write = mirror
                    .map(extent(start, len), Direction::Write)
                    .expect("in range");
                assert_eq!(
                    bytes_of(&write),
                    (0..copies).flat_map(on).collect::<Vec<_>>()
                );
            }
        }
        assert!(mirror.reading_from(copies).is_err());
        for (member, byte) in (0..copies + 2).flat_map(|m| (0..14).map(move |byte| (m, byte))) {
            let expected = (member < copies && byte < 11).then_some(Bytes(byte));
            assert_eq!(mirror.upper(member, Bytes(byte)), expected);
        }
    }
    assert_eq!(Mirror::new(0, Bytes(1)), Err(LayoutError::NoMembers));
    assert!(Mirror::new(u32::MAX, Bytes(1)).is_err());
}

#[test]
fn an_answer_too_long_to_hold_is_refused() {
    let whole = extent(0, u64::MAX);
    let stripe = Stripe::new(Bytes(1), &[Bytes(0); 2], Bytes(u64::MAX)).expect("fits");
    let error = stripe.map(whole, Direction::Read).expect_err("2^64 pieces");
    assert!(
        matches!(
            error,
            MapError::TooManyPieces {
                pieces: u64::MAX,
                ..
            }
        ),
        "{error}"
    );
    let single = Stripe::new(Bytes(1), &[Bytes(0)], Bytes(u64::MAX)).expect("fits");
    let piece = Piece {
        member: 0,
        extent: whole,
    };
    assert_eq!(single.map(whole, Direction::Read), Ok(vec![piece]));
}

/// Mostly small numbers, where layouts are valid, and some from the far end of the range.
fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..64,
        0_u64..1 << 20,
        any::<u64>(),
        u64::MAX - 8..=u64::MAX
    ]
}

/// Brings any two numbers into the layer: a start that exists, and a length of some chunks.
fn within(map: &dyn LayerMap, start: u64, len: u64, chunk: Bytes) -> Extent {
    let size = map.size().0;
    let start = start.checked_rem(size).unwrap_or(0);
    let most = chunk.0.saturating_mul(40).min(size - start);
    extent(start, len.checked_rem(most).map_or(0, |len| len + 1))
}

/// The pieces hold every byte of `at` once, in order, and both ends of each lead back.
fn check_round_trip(map: &dyn LayerMap, at: Extent) -> Result<(), TestCaseError> {
    let mut next = at.start().0;
    for piece in map
        .map(at, Direction::Read)
        .expect("in range, and of few pieces")
    {
        let last = Bytes(piece.extent.end().0 - 1);
        prop_assert_eq!(
            map.upper(piece.member, piece.extent.start()),
            Some(Bytes(next))
        );
        next += piece.extent.len().0;
        prop_assert_eq!(map.upper(piece.member, last), Some(Bytes(next - 1)));
    }
    prop_assert_eq!(next, at.end().0);
    Ok(())
}

/// For any byte of a member that the map claims to hold, its upper byte must lead there.
fn check_claim(map: &dyn LayerMap, member: u32, byte: u64) -> Result<(), TestCaseError> {
    if let Some(upper) = map.upper(member, Bytes(byte)) {
        let pieces = map
            .map(extent(upper.0, 1), Direction::Read)
            .expect("one byte in range");
        prop_assert_eq!(bytes_of(&pieces), [(member, byte)]);
    }
    Ok(())
}

fn any_layout() -> impl Strategy<Value = ParityLayout> {
    prop::sample::select(vec![
        ParityLayout::LeftAsymmetric,
        ParityLayout::RightAsymmetric,
        ParityLayout::LeftSymmetric,
        ParityLayout::RightSymmetric,
    ])
}

proptest! {
    #[test]
    fn any_numbers_give_an_error_or_a_round_trip(
        chunk in any_size().prop_map(Bytes),
        starts in prop::collection::vec(any_size().prop_map(Bytes), 0..6),
        len in any_size().prop_map(Bytes),
        (data_disks, parity, layout) in (0_u32..9, 0_u32..4, any_layout()),
        (start, bytes) in (any_size(), any_size()),
        (member, byte) in (0_u32..12, any_size()),
    ) {
        let mut maps: Vec<Box<dyn LayerMap>> = Vec::new();
        if let Ok(shift) = Shift::new(chunk, len) {
            maps.push(Box::new(shift));
        }
        if let Ok(stripe) = Stripe::new(chunk, &starts, len) {
            maps.push(Box::new(stripe));
        }
        let stripe = chunk.0.saturating_mul(data_disks.into()).max(1);
        let whole = Bytes(len.0 / stripe * stripe);
        if let Ok(array) = ParityStripe::new(chunk, data_disks, parity, layout, whole) {
            maps.push(Box::new(array));
        }
        for map in maps {
            let at = within(map.as_ref(), start, bytes, chunk);
            check_round_trip(map.as_ref(), at)?;
            prop_assert!(map.map(at, Direction::Write).is_ok());
            check_claim(map.as_ref(), member, byte)?;
            // Everywhere else, it must answer one way or the other.
            let anywhere = extent(start, bytes.min(u64::MAX - start));
            let _ = (map.map(anywhere, Direction::Write), map.upper(u32::MAX, Bytes(byte)));
        }
    }
}
