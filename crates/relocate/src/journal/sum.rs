//! Sums that hold a journal together, and that tell whether a window arrived.

use std::hash::Hasher;
use std::vec;

use twox_hash::XxHash64;

/// The sum of parts that follow each other.
pub(crate) fn sum(parts: &[&[u8]]) -> u64 {
    let mut hasher = XxHash64::with_seed(0);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

/// The [`sum`]s of pieces that follow each other in memory, taken as their bytes come.
#[derive(Debug)]
pub(crate) struct Sums {
    /// How many bytes each piece has that is not ended, the next one first.
    lens: vec::IntoIter<usize>,
    /// The missing part of the current piece.
    lacks: usize,
    hasher: XxHash64,
    sums: Vec<u64>,
}

impl Sums {
    /// For pieces of these lengths, all of them non-empty.
    pub(crate) fn new(lens: Vec<usize>) -> Self {
        let mut lens = lens.into_iter();
        let lacks = lens.next().unwrap_or(0);
        Self {
            lens,
            lacks,
            hasher: XxHash64::with_seed(0),
            sums: Vec::new(),
        }
    }

    /// The bytes that follow the earlier ones. Bytes behind the last piece are ignored.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while self.lacks > 0 && !bytes.is_empty() {
            let (here, behind) = bytes.split_at(self.lacks.min(bytes.len()));
            self.hasher.write(here);
            self.lacks -= here.len();
            bytes = behind;
            if self.lacks == 0 {
                let hasher = std::mem::replace(&mut self.hasher, XxHash64::with_seed(0));
                self.sums.push(hasher.finish());
                self.lacks = self.lens.next().unwrap_or(0);
            }
        }
    }

    /// Those of the pieces that are whole.
    pub(crate) fn finish(self) -> Vec<u64> {
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the bytes come, each piece has its own sum.
        #[test]
        fn sums_are_those_of_the_pieces(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..100), 0..6),
            part in 1usize..150,
            behind in 0usize..20,
        ) {
            let mut bytes = pieces.concat();
            bytes.extend(vec![7; behind]);
            let mut sums = Sums::new(pieces.iter().map(Vec::len).collect());
            bytes.chunks(part).for_each(|part| sums.add(part));
            let expected: Vec<u64> = pieces.iter().map(|piece| sum(&[piece])).collect();
            prop_assert_eq!(sums.finish(), expected);
        }
    }
}
