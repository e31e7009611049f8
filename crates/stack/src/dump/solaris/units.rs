//! Sizes as the tools of Solaris print them and take them.

use plumb_geometry::{Bytes, Sectors};

/// Blocks of 512 bytes, in which Solaris counts for any sector size.
pub(super) fn blocks(word: &str) -> Option<Bytes> {
    Sectors(word.parse().ok()?).to_bytes()
}

/// A size with the unit of metainit behind it: blocks, or `b`, `k`, `m`, `g`, `t`.
pub(super) fn size(word: &str) -> Option<Bytes> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let unit = match word[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => return blocks(&word[..digits]),
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    Bytes(word[..digits].parse().ok()?).checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_metainit_takes_them() {
        for (word, bytes) in [
            ("512", 512 * 512),
            ("32b", 16 << 10),
            ("256k", 256 << 10),
            ("1024m", 1 << 30),
            ("2G", 2 << 30),
        ] {
            assert_eq!(size(word), Some(Bytes(bytes)), "{word}");
        }
        for word in [
            "",
            "k",
            "1.5g",
            "12x",
            "-4k",
            "36028797018963968",
            "16777216t",
            "all",
            "٣k",
        ] {
            assert_eq!(size(word), None, "{word}");
        }
    }
}
