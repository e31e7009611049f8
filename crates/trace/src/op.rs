//! The operation of an I/O ([`Op`]), its layer ([`Layer`]) and its flags ([`flags`]).

use serde::{Deserialize, Serialize};

/// The operation of one I/O. The order is that of the one-letter codes in a residue table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Op {
    /// Data comes from the device.
    Read = 0,
    /// Data goes to the device.
    Write = 1,
    /// Blocks are given back (trim, unmap).
    Discard = 2,
    /// The write cache is emptied; has no extent.
    Flush = 3,
    /// Blocks are zeroed without sending data.
    WriteZeroes = 4,
    /// Anything else: passthrough commands, zone management.
    Other = 5,
}

impl Op {
    /// All operations, in code order.
    pub const ALL: [Op; 6] = [
        Op::Read,
        Op::Write,
        Op::Discard,
        Op::Flush,
        Op::WriteZeroes,
        Op::Other,
    ];

    /// The letter that stands for it in a residue table: `R W D F Z O`.
    #[must_use]
    pub const fn letter(self) -> char {
        ['R', 'W', 'D', 'F', 'Z', 'O'][self as usize]
    }

    /// The operation of a letter, upper or lower case; `None` for any other byte.
    #[must_use]
    pub const fn from_letter(letter: u8) -> Option<Op> {
        Some(match letter {
            b'R' | b'r' => Op::Read,
            b'W' | b'w' => Op::Write,
            b'D' | b'd' => Op::Discard,
            b'F' | b'f' => Op::Flush,
            b'Z' | b'z' => Op::WriteZeroes,
            b'O' | b'o' => Op::Other,
            _ => return None,
        })
    }

    /// Inverse of `op as u8`; `None` above 5.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Op> {
        if code < 6 {
            Some(Op::ALL[code as usize])
        } else {
            None
        }
    }

    /// The word used in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        ["read", "write", "discard", "flush", "write-zeroes", "other"][self as usize]
    }

    /// The operation of a word, as in [`Op::word`]; `None` for any other.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.word() == word)
    }
}

/// The layer of the storage stack that recorded an I/O, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Layer {
    /// Requests of the application to a file.
    Vfs = 0,
    /// Requests to a block device node.
    Bio = 1,
    /// Requests of the driver to the device.
    Request = 2,
}

impl Layer {
    /// All layers, highest first.
    pub const ALL: [Layer; 3] = [Layer::Vfs, Layer::Bio, Layer::Request];

    /// The word used in output, in flags and in the Parquet column.
    #[must_use]
    pub const fn word(self) -> &'static str {
        ["vfs", "bio", "request"][self as usize]
    }

    /// The layer of a word; `None` for any other.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Layer> {
        Layer::ALL.into_iter().find(|layer| layer.word() == word)
    }
}

/// Bits of the `flags` column.
pub mod flags {
    /// Somebody waits for it.
    pub const SYNC: i32 = 1;
    /// File-system metadata.
    pub const META: i32 = 2;
    /// Read-ahead.
    pub const AHEAD: i32 = 4;
    /// Forced unit access: through the write cache.
    pub const FUA: i32 = 8;
    /// The cache is flushed before it.
    pub const PREFLUSH: i32 = 16;
    /// It completed with an error.
    pub const FAILED: i32 = 32;
}

/// The operation and flags of a kernel `rwbs` string such as `WS`, `FWFSM` or `RA`.
///
/// `len_bytes` tells a bare flush from a write that flushes first.
#[must_use]
pub fn parse_rwbs(rwbs: &[u8], len_bytes: u64) -> (Op, i32) {
    // Operations on zones: an append, and those that move no data (reset, finish, open, close).
    let (mut op, rwbs) = match rwbs {
        [b'Z', b'A', rest @ ..] => (Some(Op::Write), rest),
        [b'Z', b'R', b'A', rest @ ..] | [b'Z', b'R' | b'F' | b'O' | b'C', rest @ ..] => {
            (Some(Op::Other), rest)
        }
        _ => (None, rwbs),
    };
    let mut bits = 0;
    for &letter in rwbs {
        match letter {
            b'F' if op.is_none() => bits |= flags::PREFLUSH,
            b'F' => bits |= flags::FUA,
            b'D' | b'R' | b'Z' => op = op.or(Op::from_letter(letter)),
            // `WZ` is how write-zeroes prints on kernels that have a letter for it.
            b'W' => op = op.or(Some(Op::Write)),
            b'N' => op = op.or(Some(Op::Other)),
            b'S' => bits |= flags::SYNC,
            b'M' => bits |= flags::META,
            b'A' => bits |= flags::AHEAD,
            _ => {}
        }
    }
    let bare_flush = len_bytes == 0 && bits & (flags::PREFLUSH | flags::FUA) != 0;
    match op {
        Some(Op::Write | Op::Other) | None if bare_flush => (Op::Flush, bits),
        Some(Op::Write) if rwbs.contains(&b'Z') => (Op::WriteZeroes, bits),
        Some(op) => (op, bits),
        None => (Op::Other, bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rwbs_strings() {
        let check = |rwbs: &str, len, op, bits| {
            assert_eq!(parse_rwbs(rwbs.as_bytes(), len), (op, bits), "{rwbs} {len}");
        };
        check("R", 4096, Op::Read, 0);
        check("RA", 4096, Op::Read, flags::AHEAD);
        check("RM", 4096, Op::Read, flags::META);
        check("WS", 512, Op::Write, flags::SYNC);
        check(
            "WFSM",
            512,
            Op::Write,
            flags::FUA | flags::SYNC | flags::META,
        );
        check(
            "FWFS",
            512,
            Op::Write,
            flags::PREFLUSH | flags::FUA | flags::SYNC,
        );
        check("FWS", 0, Op::Flush, flags::PREFLUSH | flags::SYNC);
        check("FF", 0, Op::Flush, flags::PREFLUSH);
        check("DS", 1 << 20, Op::Discard, flags::SYNC);
        check("WZS", 4096, Op::WriteZeroes, flags::SYNC);
        check("ZAS", 4096, Op::Write, flags::SYNC);
        check("ZRA", 0, Op::Other, 0);
        check("ZFS", 0, Op::Other, flags::SYNC);
        check("N", 0, Op::Other, 0);
        check("", 0, Op::Other, 0);
    }

    #[test]
    fn letters_and_codes_are_inverse() {
        for op in Op::ALL {
            assert_eq!(Op::from_letter(op.letter() as u8), Some(op));
            assert_eq!(Op::from_code(op as u8), Some(op));
            assert_eq!(Op::from_word(op.word()), Some(op));
        }
        assert_eq!(Op::from_code(6), None);
        assert_eq!(Layer::from_word("request"), Some(Layer::Request));
    }
}
