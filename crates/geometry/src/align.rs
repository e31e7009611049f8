//! Rounding positions to multiples of a unit. The numbers may count anything (bytes, sectors,
//! cylinders), as long as position and unit count the same thing.
//!
//! Left out: grids with an offset, which are [`crate::grid`]'s.

/// The smallest multiple of `unit` at or after `position`, both in the same unit of measure.
/// `None` when `unit` is 0 or the multiple exceeds 64 bits.
#[must_use]
pub const fn align_up(position: u64, unit: u64) -> Option<u64> {
    position.checked_next_multiple_of(unit)
}

/// The largest multiple of `unit` at or before `position`. `None` when `unit` is 0.
#[must_use]
pub const fn align_down(position: u64, unit: u64) -> Option<u64> {
    match position.checked_rem(unit) {
        Some(past) => Some(position - past),
        None => None,
    }
}

/// The next start of a soft partition, in the unit of the arguments.
///
/// Solaris Volume Manager puts an extent header of one block in front of each soft partition, so
/// the start must leave at least one block free after the last one: the sum is raised by one and
/// then aligned up. `None` when `unit` is 0 or the result exceeds 64 bits.
#[must_use]
pub const fn next_aligned_start(last_offset: u64, last_size: u64, unit: u64) -> Option<u64> {
    let Some(end) = last_offset.checked_add(last_size) else {
        return None;
    };
    match end.checked_add(1) {
        Some(after_header) => align_up(after_header, unit),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sector_34_moves_up_to_the_next_multiple() {
        // Sixteen sectors are 8 KiB, 128 are 64 KiB, 256 are 128 KiB.
        assert_eq!(align_up(34, 16), Some(48));
        assert_eq!(align_up(34, 128), Some(128));
        assert_eq!(align_up(34, 256), Some(256));
        assert_eq!(align_down(34, 16), Some(32));
    }

    #[test]
    fn a_soft_partition_leaves_room_for_its_header() {
        assert_eq!(next_aligned_start(512, 2_097_152, 512), Some(2_098_176));
        // One block short of the multiple: the header takes that block, and the start stays.
        assert_eq!(next_aligned_start(0, 511, 512), Some(512));
        assert_eq!(next_aligned_start(0, 512, 512), Some(1_024));
    }

    #[test]
    fn overflows_are_none() {
        assert_eq!(align_up(1, 0), None);
        assert_eq!(align_down(1, 0), None);
        assert_eq!(align_up(u64::MAX, 2), None);
        assert_eq!(align_up(u64::MAX, u64::MAX), Some(u64::MAX));
        assert_eq!(next_aligned_start(u64::MAX, 0, 1), None);
        assert_eq!(next_aligned_start(u64::MAX, 1, 1), None);
        assert_eq!(next_aligned_start(1, 1, 0), None);
    }

    #[test]
    fn rounding_agrees_with_a_search() {
        for (position, unit) in (0..200).flat_map(|p| (1..30).map(move |u| (p, u))) {
            let up = (position..).find(|x| x % unit == 0);
            let down = (0..=position).rev().find(|x| x % unit == 0);
            assert_eq!(
                (align_up(position, unit), align_down(position, unit)),
                (up, down)
            );
        }
    }
}
