//! The places of a probe's reads: parts of the target, and a sequence of places that repeats none for as long as
//! possible.

use crate::random::Random;

/// The fractional part of the golden ratio, times 2^64: steps of it spread points more evenly than chance does, and keep
/// each far from those just before (Knuth, The Art of Computer Programming 3, section 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Starts of a kind that a step may end at: by a constant step, many reads in a row would all be at every second start,
/// or all at the others, and would all cross a boundary that only half of them should, or none.
const NEIGHBOURS: u64 = 4;

/// Parts of a target that may be read.
#[derive(Clone, Debug)]
pub struct Space {
    /// First byte and end of each, in order, apart from each other.
    ranges: Vec<(u64, u64)>,
    total_bytes: u64,
    at: u64,
    random: Random,
}

/// The starts that a kind of read may have: `residue` + k · `modulus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residue {
    /// Below the modulus.
    pub residue: u64,
    /// Bytes from one start to the next; above 0.
    pub modulus: u64,
}

impl Residue {
    /// Any number of bytes, taken modulo.
    #[must_use]
    pub fn new(residue: u64, modulus: u64) -> Residue {
        Residue {
            residue: residue % modulus.max(1),
            modulus: modulus.max(1),
        }
    }
}

impl Space {
    /// `ranges` are parts that may be read; empty ones are left out.
    #[must_use]
    pub fn new(ranges: &[(u64, u64)], random: &mut Random) -> Space {
        let ranges: Vec<(u64, u64)> = ranges
            .iter()
            .copied()
            .filter(|(start, end)| start < end)
            .collect();
        let total_bytes = ranges.iter().map(|(start, end)| end - start).sum();
        Space {
            ranges,
            total_bytes,
            at: random.next(),
            random: Random::new(random.next(), 0),
        }
    }

    /// Bytes in all parts.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The next place for a read; `None` where no part has room for one near there.
    pub fn next(&mut self, starts: Residue, len_bytes: u64) -> Option<u64> {
        // A place may be in a part that is too short; others are elsewhere.
        (0..TRIES).find_map(|_| {
            self.at = self.at.wrapping_add(GOLDEN);
            let even = ((u128::from(self.at) * u128::from(self.total_bytes)) >> 64) as u64;
            let near = self.random.below(NEIGHBOURS) * starts.modulus;
            let within = even.saturating_add(near) % self.total_bytes.max(1);
            let (place, range) = self.locate(within)?;
            snapped(place, range, starts, len_bytes)
        })
    }

    /// How many starts of a kind there are, to a few.
    #[must_use]
    pub fn count(&self, starts: Residue) -> u64 {
        self.ranges
            .iter()
            .map(|(start, end)| (end - start) / starts.modulus)
            .sum()
    }

    fn locate(&self, mut within: u64) -> Option<(u64, (u64, u64))> {
        for &(start, end) in &self.ranges {
            if within < end - start {
                return Some((start + within, (start, end)));
            }
            within -= end - start;
        }
        None
    }
}

const TRIES: u32 = 64;

/// The start at or before a place, or the first behind it, that keeps a read within the part.
fn snapped(place: u64, (first, end): (u64, u64), starts: Residue, len_bytes: u64) -> Option<u64> {
    let Residue { residue, modulus } = starts;
    let past = (place % modulus + modulus - residue) % modulus;
    let fits = |start: &u64| {
        *start >= first && start.checked_add(len_bytes).is_some_and(|last| last <= end)
    };
    let before = place.checked_sub(past);
    let behind = place.checked_add(modulus - past);
    before
        .filter(fits)
        .or_else(|| behind.filter(fits))
        .or_else(|| before?.checked_sub(modulus).filter(fits))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn places_keep_to_their_kind_and_part() {
        let mut random = Random::new(5, 0);
        let mut space = Space::new(
            &[(512, 9 << 20), (9 << 20, 9 << 20), (20 << 20, 21 << 20)],
            &mut random,
        );
        assert_eq!(space.total_bytes(), (10 << 20) - 512);
        let starts = Residue::new(3584, 8192);
        let mut in_second = 0;
        for _ in 0..2_000 {
            let start = space.next(starts, 8192).expect("room");
            assert_eq!(start % 8192, 3584);
            let first = start >= 512 && start + 8192 <= 9 << 20;
            let second = start >= 20 << 20 && start + 8192 <= 21 << 20;
            assert!(first || second, "{start}");
            in_second += u32::from(second);
        }
        assert!((150..250).contains(&in_second), "a tenth: {in_second}");
    }

    #[test]
    fn no_place_comes_back_soon() {
        let mut space = Space::new(&[(0, 1 << 30)], &mut Random::new(1, 0));
        let mut seen = HashSet::new();
        for _ in 0..20_000 {
            assert!(seen.insert(space.next(Residue::new(0, 4096), 4096).expect("room")));
        }
    }

    /// Sixteen consecutive places are as mixed as random ones, modulo multiples of their divisors: for a share of 1 in
    /// 2, 3 or 5 the standard deviation is that of the binomial distribution, to a fifth.
    #[test]
    fn places_in_a_row_are_mixed() {
        const ROW: usize = 16;
        for (total, modulus, factor) in [
            (1 << 30, 4096, 2),
            ((1 << 30) - 65_536, 4096, 2),
            (1 << 30, 512, 2),
            (1 << 30, 65_536, 2),
            (1 << 30, 4096, 3),
        ] {
            let mut space = Space::new(&[(0, total)], &mut Random::new(3, 0));
            let mut rows = Vec::new();
            for _ in 0..2_000 {
                let is_hit = |start: u64| (start / modulus).is_multiple_of(factor);
                let starts = Residue::new(1024, modulus);
                let hits = (0..ROW)
                    .filter(|_| is_hit(space.next(starts, 1024).expect("room")))
                    .count();
                rows.push(hits as f64 / ROW as f64);
            }
            let share = 1.0 / factor as f64;
            let deviation =
                rows.iter().map(|row| (row - share).powi(2)).sum::<f64>() / rows.len() as f64;
            let expected = share * (1.0 - share) / ROW as f64;
            let times = (deviation / expected).sqrt();
            assert!(times < 1.2, "{total} {modulus} {factor}: {times}");
        }
    }

    #[test]
    fn without_room_there_is_no_place() {
        let mut space = Space::new(&[(100, 5_000)], &mut Random::new(2, 0));
        assert_eq!(space.next(Residue::new(0, 4096), 4096), None);
        assert_eq!(space.next(Residue::new(512, 4096), 4096), Some(512));
        assert_eq!(
            Space::new(&[], &mut Random::new(2, 0)).next(Residue::new(0, 512), 512),
            None
        );
    }
}
