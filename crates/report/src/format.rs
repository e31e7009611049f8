//! Numbers as people read them. Short exact values are printed exactly, everything else with three significant digits;
//! a unit is never left out.

use plumb_geometry::{Bounds, group_digits};

const BINARY: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const TIMES: [(&str, f64); 3] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)];

/// A count with a comma before each group of three digits: `1,011`.
#[must_use]
pub fn count(value: u64) -> String {
    group_digits(value)
}

/// A number of bytes in the largest binary unit: `1,011 B`, `4 KiB`, `1.18 MiB`.
#[must_use]
pub fn bytes(value: u64) -> String {
    if value < 1024 {
        return format!("{} B", group_digits(value));
    }
    let mut power = (63 - value.leading_zeros() as usize) / 10;
    let scaled = |power: usize| value as f64 / (1u64 << (10 * power)) as f64;
    // 1,023.7 KiB would be shown as 1,024 KiB.
    if scaled(power) >= 1023.5 && power < BINARY.len() {
        power += 1;
    }
    let unit = BINARY[power - 1];
    if value.is_multiple_of(1 << (10 * power)) {
        return format!("{} {unit}", group_digits(value >> (10 * power)));
    }
    format!("{} {unit}", digits(scaled(power)))
}

/// A span of time: `512 ns`, `1.23 µs`, `12.3 ms`, `1,234 s`.
#[must_use]
pub fn ns(value: u64) -> String {
    for (at, (unit, size)) in TIMES.iter().enumerate().rev() {
        let scaled = value as f64 / size;
        if value >= 1_000 && (scaled < 999.5 || at == 0) {
            return format!("{} {unit}", digits(scaled));
        }
    }
    format!("{value} ns")
}

/// A difference of times with its sign: `+1.23 µs`, `-2.5 ms`.
#[must_use]
pub fn signed_ns(difference: f64) -> String {
    let sign = if difference < 0.0 { '-' } else { '+' };
    format!("{sign}{}", ns(difference.abs().round() as u64))
}

/// A share from 0 to 1 in percent: `7.6 %`, below 1 % with two digits: `0.12 %`. A share that is neither none nor
/// all is never shown as such: `0 %` and `100 %` are exact.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        "unknown".to_owned()
    } else if percent == 0.0 || percent == 100.0 {
        format!("{percent:.0} %")
    } else if percent > 0.0 && percent < 0.005 {
        "< 0.01 %".to_owned()
    } else if percent > 0.0 && percent < 1.0 {
        format!("{percent:.2} %")
    } else if (99.95..100.0).contains(&percent) {
        "> 99.9 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}

/// A count that may be a range: `7,044` or `21 to 7,044`.
#[must_use]
pub fn count_within(part: Bounds<u64>) -> String {
    ends(part.map(count))
}

/// The share of a count that may be a range: `3.5 %` or `0 to 3.5 %`.
#[must_use]
pub fn share_within(part: Bounds<u64>, whole: u64) -> String {
    percent_within(part.map(|part| part as f64 / whole.max(1) as f64))
}

/// A share that may be a range.
#[must_use]
pub fn percent_within(share: Bounds<f64>) -> String {
    let ends = share.map(percent);
    match ends.low.strip_suffix(" %") {
        Some(low) if ends.low != ends.high => format!("{low} to {}", ends.high),
        _ => ends.high,
    }
}

/// Bytes that may be a range.
#[must_use]
pub fn bytes_within(value: Bounds<u128>) -> String {
    ends(value.map(|value| bytes(u64::try_from(value).unwrap_or(u64::MAX))))
}

/// A factor that may be a range, with a number of decimals.
#[must_use]
pub fn factor_within(factor: Bounds<f64>, digits: usize) -> String {
    ends(factor.map(|factor| format!("{factor:.digits$}")))
}

fn ends(ends: Bounds<String>) -> String {
    if ends.low == ends.high {
        ends.low
    } else {
        format!("{} to {}", ends.low, ends.high)
    }
}

/// A number of events a second: `1,234/s`, `12.3/s`, `0.050/s`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    if per_second.is_finite() {
        format!("{}/s", digits(per_second))
    } else {
        "unknown".to_owned()
    }
}

/// Three significant digits, or all of those before the point; two below one. Not for negative numbers.
#[must_use]
pub(crate) fn digits(value: f64) -> String {
    let decimals = match value {
        _ if value <= 0.0 || value >= 99.95 => return group_digits(value.max(0.0).round() as u64),
        _ if value >= 9.995 => 1,
        _ if value >= 0.995 => 2,
        _ => (1.0 - value.log10().floor()).clamp(2.0, 12.0) as usize,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_exact_where_that_is_short() {
        for (value, shown) in [
            (0, "0 B"),
            (1, "1 B"),
            (1_011, "1,011 B"),
            (1_023, "1,023 B"),
            (1_024, "1 KiB"),
            (1_536, "1.50 KiB"),
            (4_096, "4 KiB"),
            (1_023 << 10, "1,023 KiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (1 << 20, "1 MiB"),
            (1_234_567, "1.18 MiB"),
            (12_345_678, "11.8 MiB"),
            (123_456_789, "118 MiB"),
            (123_456_789_012, "115 GiB"),
            (1 << 63, "8 EiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(value), shown, "{value}");
        }
    }

    #[test]
    fn times_have_three_digits() {
        for (value, shown) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (1_234, "1.23 µs"),
            (9_996, "10.0 µs"),
            (123_456, "123 µs"),
            (999_600, "1.00 ms"),
            (12_345_678, "12.3 ms"),
            (1_500_000_000, "1.50 s"),
            (1_234_567_890_123, "1,235 s"),
            (u64::MAX, "18,446,744,074 s"),
        ] {
            assert_eq!(ns(value), shown, "{value}");
        }
    }

    #[test]
    fn shares_are_none_or_all_only_when_they_are() {
        for (share, shown) in [
            (0.0, "0 %"),
            (0.000_01, "< 0.01 %"),
            (0.001_2, "0.12 %"),
            (0.0762, "7.6 %"),
            (0.9994, "99.9 %"),
            (0.999_99, "> 99.9 %"),
            (1.0, "100 %"),
            (f64::NAN, "unknown"),
        ] {
            assert_eq!(percent(share), shown, "{share}");
        }
    }

    #[test]
    fn rates_and_counts() {
        for (value, shown) in [
            (0.0, "0/s"),
            (0.05, "0.050/s"),
            (0.5, "0.50/s"),
            (9.999, "10.0/s"),
            (12.34, "12.3/s"),
            (1_234.4, "1,234/s"),
            (f64::INFINITY, "unknown"),
        ] {
            assert_eq!(rate(value), shown, "{value}");
        }
        assert_eq!(count(1_011), "1,011");
        assert_eq!(count(94_878), "94,878");
    }
}
