//! Numbers and fields as desktop programs write them in the user's country: groups of thousands, a point or a comma
//! before the fraction, quotes around text with the separator.
//!
//! Exact as [`crate::number`]; a group that is none makes the number no number.

use crate::number::{parse_decimal, parse_u64};

/// No number is longer.
const NUMBER_BYTES_MAX: usize = 48;

/// How a source writes numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locale {
    /// The mark before the fraction: a point or a comma.
    pub fraction_mark: u8,
}

impl Locale {
    /// Learns from a number that is known to have a fraction: its last point or comma is the mark. `None` when
    /// it has neither.
    #[must_use]
    pub fn learn(number: &[u8]) -> Option<Locale> {
        let mark = number
            .iter()
            .rev()
            .copied()
            .find(|byte| matches!(byte, b'.' | b','))?;
        Some(Locale {
            fraction_mark: mark,
        })
    }

    /// A number times `10^scale`; `None` if [`parse_decimal`] rejects it and for wrong groups.
    #[must_use]
    pub fn decimal(self, text: &[u8], scale: u32) -> Option<i64> {
        let mut plain = [0; NUMBER_BYTES_MAX];
        let length = self.plain(text, &mut plain)?;
        parse_decimal(plain.get(..length)?, scale)
    }

    /// A whole number; `None` for anything else.
    #[must_use]
    pub fn whole(self, text: &[u8]) -> Option<u64> {
        let mut plain = [0; NUMBER_BYTES_MAX];
        let length = self.plain(text, &mut plain)?;
        parse_u64(plain.get(..length)?)
    }

    /// Writes digits and a point to `plain` and tells how many bytes; groups of thousands are joined.
    fn plain(self, text: &[u8], plain: &mut [u8; NUMBER_BYTES_MAX]) -> Option<usize> {
        let mark_at = memchr::memchr(self.fraction_mark, text).unwrap_or(text.len());
        let (whole, fraction) = text.split_at(mark_at);
        let mut length = 0;
        // How many digits the group has so far; groups begin with the first mark.
        let mut group: Option<u32> = None;
        for (at, &byte) in whole.iter().enumerate() {
            if byte.is_ascii_digit() {
                *plain.get_mut(length)? = byte;
                length += 1;
                group = group.map(|digits| digits + 1);
                continue;
            }
            // Blanks between groups can have two or three bytes: all but the first continue the mark.
            let continues = byte & 0xc0 == 0x80 && at > 0 && group == Some(0);
            let begins = matches!(byte, b'.' | b',' | b'\'' | b' ' | 0xc2 | 0xe2);
            let after_digits = length > 0 && group.is_none_or(|digits| digits == 2 || digits == 3);
            if !(continues || begins && after_digits) {
                return None;
            }
            group = Some(0);
        }
        if group.is_some_and(|digits| digits != 3) {
            return None;
        }
        if let Some((_, digits)) = fraction.split_first() {
            *plain.get_mut(length)? = b'.';
            length += 1;
            plain
                .get_mut(length..length + digits.len())?
                .copy_from_slice(digits);
            length += digits.len();
        }
        Some(length)
    }
}

/// Fields of a line, some of them possibly in quotes, which are removed. A quote inside quotes is written twice in CSV
/// and ends the field here.
pub fn quoted_fields(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let quoted = text.strip_prefix(b"\"").and_then(|inside| {
            let close = memchr::memchr(b'"', inside)?;
            Some((inside.get(..close)?, close + 2))
        });
        let from = quoted.map_or(0, |(_, after)| after);
        let length = text
            .get(from..)?
            .iter()
            .position(|&byte| byte == separator)
            .map(|at| from + at);
        rest = length.and_then(|length| text.get(length + 1..));
        Some(match quoted {
            Some((inside, _)) => inside,
            None => &text[..length.unwrap_or(text.len())],
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_several_countries() {
        let check = |text: &str, mark: u8, expected| {
            let locale = Locale {
                fraction_mark: mark,
            };
            assert_eq!(locale.decimal(text.as_bytes(), 3), expected, "{text}");
        };
        check("1.360,300", b',', Some(1_360_300));
        check("1,360.300", b'.', Some(1_360_300));
        check("1 048 576", b',', Some(1_048_576_000));
        check("1\u{a0}048\u{202f}576,5", b',', Some(1_048_576_500));
        check("1'048.25", b'.', Some(1_048_250));
        check("12,34,567.5", b'.', Some(1_234_567_500));
        check("0,5", b',', Some(500));
        for bad in [
            "1.36", "1.3600", ".360", "1..360", "1.360.", "1x360", "", "NaN", "-1", "1,2,3", "1,-5",
        ] {
            check(bad, b',', None);
        }
        assert_eq!(
            Locale {
                fraction_mark: b','
            }
            .whole(b"1.048.576"),
            Some(1_048_576)
        );
        assert_eq!(
            Locale {
                fraction_mark: b','
            }
            .whole(b"1,5"),
            None
        );
        assert_eq!(
            Locale {
                fraction_mark: b','
            }
            .whole(&[b'9'; 100]),
            None
        );
    }

    #[test]
    fn the_mark_is_the_last_one() {
        assert_eq!(
            Locale::learn(b"1.234,500000000").map(|locale| locale.fraction_mark),
            Some(b',')
        );
        assert_eq!(
            Locale::learn(b"1,234.500000000").map(|locale| locale.fraction_mark),
            Some(b'.')
        );
        assert_eq!(Locale::learn(b"7"), None);
    }

    #[test]
    fn fields_in_quotes() {
        let fields: Vec<&[u8]> = quoted_fields(b"a,\"1,360.300\",,\"open", b',').collect();
        assert_eq!(fields, [&b"a"[..], b"1,360.300", b"", b"\"open"]);
        assert_eq!(quoted_fields(b"", b',').count(), 1);
        assert_eq!(quoted_fields(b"\"x\"", b',').count(), 1);
        assert_eq!(quoted_fields(b"\"x\",", b',').count(), 2);
    }
}
