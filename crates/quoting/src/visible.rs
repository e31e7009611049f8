//! Characters that a terminal obeys or does not show, written as escapes: `\u{202e}`.
//!
//! Hidden are the categories Cc, Cf, Zl and Zp of Unicode (controls, invisible formats and bidirectional controls, line and
//! paragraph separators), noncharacters, and the characters that Unicode lets a program draw as nothing
//! (`Default_Ignorable_Code_Point` of `DerivedCoreProperties.txt`). A test compares them with the table of another program.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Code points beyond the controls (Cc), in ascending order.
const HIDDEN: [RangeInclusive<u32>; 26] = [
    0x00ad..=0x00ad,
    0x034f..=0x034f,
    0x0600..=0x0605,
    0x061c..=0x061c,
    0x06dd..=0x06dd,
    0x070f..=0x070f,
    0x0890..=0x0891,
    0x08e2..=0x08e2,
    0x115f..=0x1160,
    0x17b4..=0x17b5,
    0x180b..=0x180f,
    0x200b..=0x200f,
    0x2028..=0x202e,
    0x2060..=0x206f,
    0x3164..=0x3164,
    0xfdd0..=0xfdef,
    0xfe00..=0xfe0f,
    0xfeff..=0xfeff,
    0xffa0..=0xffa0,
    0xfff0..=0xfffb,
    0x110bd..=0x110bd,
    0x110cd..=0x110cd,
    0x13430..=0x1343f,
    0x1bca0..=0x1bca3,
    0x1d173..=0x1d17a,
    0xe0000..=0xe0fff,
];

/// Whether a terminal obeys a character or shows nothing for it.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    // Nearly all text ends here.
    if matches!(letter, ' '..='~') {
        return false;
    }
    let code = u32::from(letter);
    let is_noncharacter = code & 0xfffe == 0xfffe;
    letter.is_control() || is_noncharacter || HIDDEN.iter().any(|range| range.contains(&code))
}

/// The text with an escape in the place of each hidden character, line feeds and tabs included. Applied twice it changes
/// nothing more.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    visible_but(text, |_| false)
}

/// As [`visible`](fn@visible), for text of several lines: line feeds and tabs stay.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    visible_but(text, |letter| matches!(letter, '\n' | '\t'))
}

fn visible_but(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_escaped = |letter: char| is_hidden(letter) && !is_kept(letter);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_escaped(letter) {
            true => shown.extend(letter.escape_unicode()),
            false => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order() {
        assert!(
            HIDDEN
                .windows(2)
                .all(|pair| pair[0].end() < pair[1].start())
        );
    }

    #[test]
    fn hidden_characters_become_escapes() {
        for (text, shown) in [
            ("sda1", "sda1"),
            ("größe / 表", "größe / 表"),
            ("a\u{202e}b", r"a\u{202e}b"),
            ("\u{200e}\u{200f}\u{61c}", r"\u{200e}\u{200f}\u{61c}"),
            ("\u{2066}\u{2069}", r"\u{2066}\u{2069}"),
            ("\x1b]52;c;AAAA\x07", r"\u{1b}]52;c;AAAA\u{7}"),
            ("\x1b[1;31mred\x1b[0m", r"\u{1b}[1;31mred\u{1b}[0m"),
            ("a\nb\tc\r\u{7f}", r"a\u{a}b\u{9}c\u{d}\u{7f}"),
            ("\u{9b}2J", r"\u{9b}2J"),
            ("a\u{ad}b\u{feff}", r"a\u{ad}b\u{feff}"),
            ("\u{fdd1}\u{e0041}", r"\u{fdd1}\u{e0041}"),
        ] {
            assert_eq!(visible(text), shown);
            assert_eq!(visible(shown), shown, "an escape stays one");
        }
        assert_eq!(visible_lines("a\n\tb\x1b"), "a\n\tb\\u{1b}");
    }
}
