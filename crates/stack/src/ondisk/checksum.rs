//! Superblocks with a checksum: read, verified, and reported if they are broken.
//!
//! CRC-32C is the cyclic redundancy check of RFC 3720, appendix B.4, with the polynomial 1EDC6F41, reflected.

use super::area::{Area, Block};
use super::content::{Content, ProblemId};

/// A mounted file system may write its superblock while it is read: only one that stays wrong is broken.
const READS: usize = 3;

/// A checksum that does not fit, as hexadecimal digits.
pub(super) struct Mismatch {
    found: String,
    expected: String,
}

impl Mismatch {
    /// Compares two checksums; `None` if they are equal.
    pub(super) fn between<T: PartialEq + std::fmt::LowerHex>(
        found: T,
        expected: T,
    ) -> Option<Mismatch> {
        let digits = |sum: &T| format!("{sum:#0width$x}", width = 2 + 2 * size_of::<T>());
        (found != expected).then(|| Mismatch {
            found: digits(&found),
            expected: digits(&expected),
        })
    }

    /// The problem for a superblock that is read nevertheless.
    pub(super) fn problem(&self, what: &str) -> (ProblemId, String) {
        let text = format!(
            "{what}: found checksum {}, expected {}",
            self.found, self.expected
        );
        (ProblemId::BrokenSuperblock, text)
    }
}

impl Content {
    /// The rest of a superblock whose checksum is wrong: its existence. None of its numbers is believed.
    pub(super) fn broken(mut self, place: &str, mismatch: &Mismatch) -> Content {
        let (id, text) = mismatch.problem(place);
        self.problems
            .push((id, format!("{text}; nothing else of it is believed")));
        self
    }
}

/// The bytes from `at` on, and the fault of their checksum if it stays wrong.
pub(super) fn read(
    area: &Area<'_>,
    at: u64,
    len: usize,
    verify: impl Fn(&Block) -> Option<Mismatch>,
) -> Option<(Block, Option<Mismatch>)> {
    let mut block = area.read(at, len)?;
    let mut mismatch = verify(&block);
    for _ in 1..READS {
        if mismatch.is_none() {
            break;
        }
        block = area.read(at, len)?;
        mismatch = verify(&block);
    }
    Some((block, mismatch))
}

const CRC_32C: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ if value & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

/// CRC-32C of these runs, one behind the other.
pub(super) fn crc32c<const N: usize>(runs: [&[u8]; N]) -> u32 {
    let bytes = runs.into_iter().flatten();
    !bytes.fold(!0, |sum, byte| {
        (sum >> 8) ^ CRC_32C[usize::from(sum as u8 ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The samples of RFC 3720, B.4, and the check value of the catalogue of CRC algorithms.
    #[test]
    fn crc_32c_is_that_of_the_standard() {
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c([&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c([&[0xff; 32]]), 0x62a8_ab43);
        assert_eq!(crc32c([&rising]), 0x46dd_794e);
        assert_eq!(crc32c([b"1234", b"56789"]), 0xe306_9283);
    }
}
