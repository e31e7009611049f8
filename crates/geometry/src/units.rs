//! Quantities that must not be mixed up: bytes, 512-byte sectors and nanoseconds, each a type of
//! its own, with arithmetic that says so when a result does not fit.
//!
//! Left out on purpose: `+` and `*` operators, since they would panic or wrap on overflow, and any
//! conversion that rounds. Reading sizes from text is in [`crate::parse`].

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes in one sector, as the Linux block layer counts them (`SECTOR_SIZE` in
/// `include/linux/blk_types.h`). It is 512 also on drives whose logical block is 4096 bytes.
pub const SECTOR: u64 = 512;

/// A position or a length in bytes, 0 to `u64::MAX`.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A position or a length in sectors of [`SECTOR`] bytes, 0 to `u64::MAX`.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Sectors(pub u64);

/// A span of time, or a difference of two times, in nanoseconds; negative when the clock of the
/// source went back or the later event came first.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub i64);

// The three types differ only in their integer, and a macro keeps their behaviour from drifting.
macro_rules! checked_arithmetic {
    ($name:ident, $inner:ty) => {
        impl $name {
            /// The sum; `None` when it does not fit.
            #[must_use]
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(sum) => Some(Self(sum)),
                    None => None,
                }
            }

            /// The difference; `None` when it does not fit (for unsigned units: below zero).
            #[must_use]
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(difference) => Some(Self(difference)),
                    None => None,
                }
            }

            /// The product with a plain count; `None` when it does not fit.
            #[must_use]
            pub const fn checked_mul(self, times: $inner) -> Option<Self> {
                match self.0.checked_mul(times) {
                    Some(product) => Some(Self(product)),
                    None => None,
                }
            }
        }
    };
}

checked_arithmetic!(Bytes, u64);
checked_arithmetic!(Sectors, u64);
checked_arithmetic!(Nanos, i64);

impl Bytes {
    /// The same quantity in sectors; `None` when it is not a whole number of them.
    #[must_use]
    pub const fn to_sectors_exact(self) -> Option<Sectors> {
        if self.0.is_multiple_of(SECTOR) {
            Some(Sectors(self.0 / SECTOR))
        } else {
            None
        }
    }
}

impl Sectors {
    /// The same quantity in bytes; `None` from 2^55 sectors on, which 64 bits cannot hold.
    #[must_use]
    pub const fn to_bytes(self) -> Option<Bytes> {
        match self.0.checked_mul(SECTOR) {
            Some(bytes) => Some(Bytes(bytes)),
            None => None,
        }
    }
}

/// Binary units from the largest down, so that the first which divides a value is the one to show.
const BINARY_UNITS: [(&str, u64); 6] = [
    ("EiB", 1 << 60),
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

/// Units of time from the largest down, for the same purpose.
const TIME_UNITS: [(&str, u64); 3] = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000)];

/// The value in the largest unit that divides it, else in the base unit: nothing is rounded, so the printed value is
/// the stored one.
fn exact(value: u64, units: &[(&str, u64)], base: &str) -> String {
    let fits = |&&(_, size): &&(&str, u64)| value > 0 && value.is_multiple_of(size);
    let (name, size) = units.iter().find(fits).copied().unwrap_or((base, 1));
    format!("{} {name}", group_digits(value / size))
}

impl fmt::Display for Bytes {
    /// Exact: `4 KiB`, `1 MiB`, and `1,011 B` where no binary unit divides the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&exact(self.0, &BINARY_UNITS, "B"))
    }
}

impl fmt::Display for Sectors {
    /// `1 sector`, `2,048 sectors`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&plural(self.0, "sector"))
    }
}

impl fmt::Display for Nanos {
    /// Exact: `5 ms`, `1,500 µs`, `-7 ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        f.pad(&format!(
            "{sign}{}",
            exact(self.0.unsigned_abs(), &TIME_UNITS, "ns")
        ))
    }
}

/// Decimal digits with a comma before each group of three: `2,098,176`.
#[must_use]
pub fn group_digits(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with its noun, digits in groups of three: `1 disk`, `2,048 disks`. For nouns that add an s.
#[must_use]
pub fn plural(number: u64, noun: &str) -> String {
    format!(
        "{} {noun}{}",
        group_digits(number),
        if number == 1 { "" } else { "s" }
    )
}

/// Greatest common divisor by Euclid's algorithm. `gcd(0, n)` is `n`, and `gcd(0, 0)` is 0.
#[must_use]
pub const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Least common multiple of two granularities: the smallest modulus that answers for both.
/// `None` when it exceeds 64 bits, or when either is 0, which is no granularity.
#[must_use]
pub const fn lcm_checked(a: u64, b: u64) -> Option<u64> {
    if a == 0 || b == 0 {
        return None;
    }
    (a / gcd(a, b)).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        for (number, expected) in [
            (0, "0 disks"),
            (1, "1 disk"),
            (2, "2 disks"),
            (2048, "2,048 disks"),
        ] {
            assert_eq!(plural(number, "disk"), expected);
        }
    }

    #[test]
    fn bytes_are_shown_exactly_in_the_largest_unit_that_divides_them() {
        let check = |value: u64, shown: &str| assert_eq!(Bytes(value).to_string(), shown);
        check(0, "0 B");
        check(1, "1 B");
        check(1_011, "1,011 B");
        check(1_023, "1,023 B");
        check(1_024, "1 KiB");
        check(3_584, "3,584 B");
        check(4_096, "4 KiB");
        check(1 << 20, "1 MiB");
        check(3 << 19, "1,536 KiB");
        check(1 << 63, "8 EiB");
        check(u64::MAX, "18,446,744,073,709,551,615 B");
        assert_eq!(format!("[{:>8}]", Bytes(4_096)), "[   4 KiB]");
    }

    #[test]
    fn sectors_and_times_are_shown_with_their_unit() {
        assert_eq!(Sectors(1).to_string(), "1 sector");
        assert_eq!(Sectors(2_048).to_string(), "2,048 sectors");
        assert_eq!(Nanos(0).to_string(), "0 ns");
        assert_eq!(Nanos(5_000_000).to_string(), "5 ms");
        assert_eq!(Nanos(1_500_000).to_string(), "1,500 µs");
        assert_eq!(Nanos(i64::MIN).to_string(), "-9,223,372,036,854,775,808 ns");
    }

    #[test]
    fn sectors_and_bytes_convert_only_without_loss() {
        assert_eq!(Sectors(34).to_bytes(), Some(Bytes(17 << 10)));
        assert_eq!(
            Sectors((1 << 55) - 1).to_bytes(),
            Some(Bytes(u64::MAX - 511))
        );
        assert_eq!(Sectors(1 << 55).to_bytes(), None);
        assert_eq!(Bytes(3_584).to_sectors_exact(), Some(Sectors(7)));
        assert_eq!(Bytes(1_011).to_sectors_exact(), None);
    }

    #[test]
    fn arithmetic_that_does_not_fit_is_none() {
        assert_eq!(Bytes(48 << 10).checked_mul(20), Some(Bytes(960 << 10)));
        assert_eq!(Bytes(u64::MAX).checked_add(Bytes(1)), None);
        assert_eq!(Bytes(0).checked_sub(Bytes(1)), None);
        assert_eq!(Sectors(u64::MAX).checked_mul(2), None);
        assert_eq!(Nanos(i64::MIN).checked_sub(Nanos(1)), None);
        assert_eq!(Nanos(1).checked_sub(Nanos(3)), Some(Nanos(-2)));
    }

    #[test]
    fn gcd_and_lcm_hold_their_corners() {
        assert_eq!(
            (gcd(0, 0), gcd(0, 9), gcd(9, 0), gcd(48, 64)),
            (0, 9, 9, 16)
        );
        assert_eq!(lcm_checked(48 << 10, 1 << 20), Some(3 << 20));
        assert_eq!(lcm_checked(0, 4), None);
        assert_eq!(lcm_checked(u64::MAX, u64::MAX - 1), None);
        assert_eq!(lcm_checked(u64::MAX, u64::MAX), Some(u64::MAX));
    }
}
