//! Numbers for people. Display converts, nothing else does.

use plumb_geometry::{Bytes, group_digits};

/// A count with separators: `1,011`.
#[must_use]
pub fn count(value: u64) -> String {
    group_digits(value)
}

/// Bytes rounded to a binary unit with three digits: `33.6 GiB`, and exactly where a unit divides them.
#[must_use]
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let exact = Bytes(value).to_string();
    if value < 1 << 10 || !exact.ends_with(" B") && exact.len() <= 8 {
        return exact;
    }
    let mut scaled = value as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1000.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(scaled), UNITS[unit])
}

/// A time with three digits: `87.2 µs`, `1.36 ms`.
#[must_use]
pub fn ns(value: u64) -> String {
    let value = value as f64;
    match value {
        v if v < 1e3 => format!("{value} ns"),
        v if v < 1e6 => format!("{} µs", three_digits(v / 1e3)),
        v if v < 1e9 => format!("{} ms", three_digits(v / 1e6)),
        v => format!("{} s", three_digits(v / 1e9)),
    }
}

/// A share: `7.6 %`; below one percent with two digits.
#[must_use]
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.01 {
        format!("{:.2} %", share * 100.0)
    } else {
        format!("{:.1} %", share * 100.0)
    }
}

/// Per second, with three digits: `15.8 /s`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    if per_second >= 1000.0 {
        format!("{} /s", count(per_second.round() as u64))
    } else {
        format!("{} /s", three_digits(per_second))
    }
}

fn three_digits(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}
