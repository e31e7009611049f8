//! Helpers of all dump readers: numbered lines, sniffing, the count of lines, and the error of an unreadable dump.

use super::{DumpError, Input, Sniff, Taken, shown};

/// Lines that a sniffer looks at.
const SNIFFED_LINES: usize = 300;

/// The beginning of a text, as far as a sniffer looks.
pub(super) fn beginning<'a>(input: &Input<'a>) -> impl Iterator<Item = &'a str> {
    input.text.lines().take(SNIFFED_LINES)
}

/// *Yes* where any line of the beginning is the tool's own.
pub(super) fn sniff_by(input: &Input<'_>, is_own: impl Fn(&str) -> bool) -> Sniff {
    if beginning(input).any(is_own) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

/// Lines with content, counted from 1, without surrounding blanks.
pub(super) fn lines<'a>(input: &Input<'a>) -> impl Iterator<Item = (usize, &'a str)> {
    let numbered = input
        .text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty())
}

/// Whether anything came of a text; an error that names its first line, if not.
pub(super) fn anything(
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
pub(super) fn count(taken: &mut Taken, is_understood: bool) {
    if is_understood {
        taken.understood += 1
    } else {
        taken.passed_over += 1
    }
}
