//! What the readers of Solaris's tools share: lines with their numbers, sizes, and errors.

use plumb_geometry::{Bytes, Sectors};

use super::super::{DumpError, Input, Sniff, Taken, shown};
use crate::builder::Builder;
use crate::grid::Source;
use crate::node::keys;

/// Lines that a sniffer looks at.
const SNIFFED_LINES: usize = 300;

/// The beginning of a text, as far as a sniffer looks.
pub(in crate::dump) fn beginning<'a>(input: &Input<'a>) -> impl Iterator<Item = &'a str> {
    input.text.lines().take(SNIFFED_LINES)
}

/// *Yes* where any line of the beginning is the tool's own.
pub(in crate::dump) fn sniff_by(input: &Input<'_>, is_own: impl Fn(&str) -> bool) -> Sniff {
    if beginning(input).any(is_own) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

/// Lines that say something, counted from 1, without what is around them.
pub(in crate::dump) fn lines<'a>(input: &Input<'a>) -> impl Iterator<Item = (usize, &'a str)> {
    let numbered = input
        .text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty())
}

/// Blocks of 512 bytes, in which Solaris counts whatever the disk's sectors are.
pub(in crate::dump) fn blocks(word: &str) -> Option<Bytes> {
    Sectors(word.parse().ok()?).to_bytes()
}

/// A size with the unit of metainit behind it: blocks, or `b`, `k`, `m`, `g`, `t`.
pub(in crate::dump) fn size(word: &str) -> Option<Bytes> {
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

/// Whether anything came of a text; an error that names its first line, if not.
pub(in crate::dump) fn anything(
    taken: Taken,
    input: &Input<'_>,
    tool: &'static str,
    expected: &str,
) -> Result<Taken, DumpError> {
    if taken.understood > 0 {
        return Ok(taken);
    }
    let (line, found) = lines(input).next().unwrap_or((0, "nothing"));
    Err(DumpError::Malformed {
        tool,
        file: input.name.to_owned(),
        line: line as u64,
        found: shown(found),
        expected: expected.to_owned(),
    })
}

/// Counts a line.
pub(in crate::dump) fn count(taken: &mut Taken, is_understood: bool) {
    if is_understood {
        taken.understood += 1
    } else {
        taken.passed_over += 1
    }
}

/// Notes that the host runs Solaris.
pub(in crate::dump) fn on_solaris(builder: &mut Builder, source: &Source) {
    let host = builder.host();
    builder.fact(host, keys::SYSTEM, "solaris", source);
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
