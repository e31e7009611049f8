//! Numbers in text, straight from bytes. Exact: a decimal fraction never goes through a float.

use crate::reader::IOS_MAX;

/// The number that a text begins with and how many digits it has (0 without any); `None` above `u64`.
///
/// Eight digits are read in one step: a few operations on a word of 64 bits give the digit bytes and their value.
#[inline]
#[must_use]
pub fn leading_digits(text: &[u8]) -> Option<(u64, usize)> {
    const POWERS: [u64; 9] = [
        1,
        10,
        100,
        1000,
        10_000,
        100_000,
        1_000_000,
        10_000_000,
        100_000_000,
    ];
    let mut value = 0u64;
    let mut at = 0;
    while let Some(chunk) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk) ^ 0x3030_3030_3030_3030;
        let digits = (others(word).trailing_zeros() / 8) as usize;
        if digits == 0 {
            return Some((value, at));
        }
        let worth = worth_of_digits(word << (64 - 8 * digits));
        value = match at {
            0 => worth,
            _ => value.checked_mul(POWERS[digits])?.checked_add(worth)?,
        };
        at += digits;
        if digits < 8 {
            return Some((value, at));
        }
    }
    while let Some(digit) = text
        .get(at)
        .map(|byte| byte.wrapping_sub(b'0'))
        .filter(|&digit| digit <= 9)
    {
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        at += 1;
    }
    Some((value, at))
}

/// The highest bit of each byte above 9.
#[inline(always)]
pub(crate) fn others(word: u64) -> u64 {
    (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080
}

/// The value of eight digits (0 to 9, not letters), the lowest byte being the first: neighbours are joined
/// to pairs, pairs to fours, fours to the eight.
#[inline]
pub(crate) fn worth_of_digits(digits: u64) -> u64 {
    let pairs = (digits & 0x000f_000f_000f_000f) * 10 + (digits >> 8 & 0x000f_000f_000f_000f);
    let fours = (pairs & 0x0000_00ff_0000_00ff) * 100 + (pairs >> 16 & 0x0000_00ff_0000_00ff);
    (fours & 0xffff) * 10_000 + (fours >> 32)
}

/// A whole number without sign; `None` for anything else or above `u64`.
#[must_use]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value: u64 = 0;
    if text.len() <= 19 {
        for &byte in text {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// How many I/O a source has counted by itself; `None` for anything else or more than there can have been.
#[must_use]
pub fn parse_ios(text: &[u8]) -> Option<u64> {
    parse_u64(text).filter(|&ios| ios <= IOS_MAX)
}

/// A whole number with an optional minus sign; `None` for anything else or outside `i64`.
#[must_use]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) => 0i64.checked_sub_unsigned(parse_u64(digits)?),
        None => i64::try_from(parse_u64(text)?).ok(),
    }
}

/// A hexadecimal number with or without `0x`; `None` for anything else or above `u64`.
#[must_use]
pub fn parse_hex(text: &[u8]) -> Option<u64> {
    let digits = text
        .strip_prefix(b"0x")
        .or_else(|| text.strip_prefix(b"0X"))
        .unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        Some(value << 4 | u64::from((byte as char).to_digit(16)?))
    })
}

/// A decimal number times `10^scale`, exactly: `parse_decimal(b"1.5", 9)` is 1,500,000,000.
///
/// Digits beyond the scale are cut off. `None` for NaN, infinities, exponents, empty text and overflow.
#[must_use]
pub fn parse_decimal(text: &[u8], scale: u32) -> Option<i64> {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix(b"+").unwrap_or(text)),
    };
    let point = memchr::memchr(b'.', text);
    let (whole, fraction) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &text[text.len()..]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let kept = &fraction[..fraction.len().min(scale as usize)];
    let whole = if whole.is_empty() {
        0
    } else {
        parse_u64(whole)?
    };
    let kept_value = if kept.is_empty() { 0 } else { parse_u64(kept)? };
    let unit = 10u64.checked_pow(scale)?;
    let missing = 10u64.checked_pow(scale - u32::try_from(kept.len()).ok()?)?;
    let value = whole
        .checked_mul(unit)?
        .checked_add(kept_value.checked_mul(missing)?)?;
    let value = i64::try_from(value).ok()?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b""), None);
        assert_eq!(parse_u64(b"-1"), None);
        assert_eq!(parse_u64(b"1e3"), None);
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775808"), None);
        assert_eq!(parse_hex(b"0xFFFFFFFFFFFFFFFF"), Some(u64::MAX));
        assert_eq!(parse_hex(b"0x"), None);
    }

    #[test]
    fn leading_digits_stop_at_the_first_other_byte() {
        for digits in 0..=20usize {
            let number = &"12345678901234567890"[..digits];
            for after in ["", ",", ",12345678", "x", ":", "/", "\u{e9}9999999"] {
                let expected = if digits == 0 {
                    0
                } else {
                    number.parse().unwrap()
                };
                let text = format!("{number}{after}");
                assert_eq!(
                    leading_digits(text.as_bytes()),
                    Some((expected, digits)),
                    "{text}"
                );
            }
        }
        assert_eq!(
            leading_digits(b"18446744073709551615,"),
            Some((u64::MAX, 20))
        );
        assert_eq!(leading_digits(b"18446744073709551616,"), None);
        assert_eq!(leading_digits(b"99999999999999999999999999"), None);
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(parse_decimal(b"0.011413", 9), Some(11_413_000));
        assert_eq!(
            parse_decimal(b"5633898.368802", 9),
            Some(5_633_898_368_802_000)
        );
        assert_eq!(
            parse_decimal(b"1456095145.133076000", 9),
            Some(1_456_095_145_133_076_000)
        );
        assert_eq!(parse_decimal(b"1.1234567899", 9), Some(1_123_456_789));
        assert_eq!(parse_decimal(b"-1.5", 3), Some(-1500));
        assert_eq!(parse_decimal(b".5", 1), Some(5));
        assert_eq!(parse_decimal(b"7", 0), Some(7));
        for bad in [
            &b"NaN"[..],
            b"inf",
            b"1e9",
            b"",
            b".",
            b"-",
            b"1.2.3",
            b"99999999999999999999",
        ] {
            assert_eq!(parse_decimal(bad, 9), None, "{bad:?}");
        }
    }
}
