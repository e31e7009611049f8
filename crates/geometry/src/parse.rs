//! Sizes, shifts, ranges and grids as they are typed on the command line.
//!
//! A bare number is bytes, and every unit is binary except `s`, a sector. Decimal-looking units
//! (`MB`) are refused: half of all tools read them one way and half the other, and a position that
//! is 5 % off destroys data. Durations are not read here; no flag takes both.

use thiserror::Error;

use crate::grid::{Grid, GridError, GridKind};
use crate::units::{Bytes, SECTOR, group_digits, plural};

/// Why a text is not the size, shift, range or grid asked for. `found` is the text as typed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SizeError {
    /// Nothing where a size belongs.
    #[error(
        "found nothing where a size belongs: expected digits and perhaps a unit, as in 4096, 4k, 1M or 8s"
    )]
    Empty,
    /// A minus sign where only 0 or more makes sense.
    #[error("found `{found}`, which is negative: expected a size of 0 or more, without a sign")]
    Negative {
        /// The text as typed.
        found: String,
    },
    /// No digits at the beginning.
    #[error("found `{found}`: expected a size that begins with a digit, as in 4096, 4k, 1M or 8s")]
    NotANumber {
        /// The text as typed.
        found: String,
    },
    /// A decimal point, or a comma of either meaning.
    #[error(
        "found `{found}`, which has a point or comma: expected whole digits, in a smaller unit where needed, as in 1536 for 1.5k"
    )]
    Fraction {
        /// The text as typed.
        found: String,
    },
    /// A unit that some read as a power of 1000 and some as a power of 1024.
    #[error("found `{found}`, which is ambiguous: write {binary} for {} bytes, or {decimal} for {} bytes",
        group_digits(*binary_bytes), group_digits(*decimal))]
    Ambiguous {
        /// The text as typed.
        found: String,
        /// The binary size in a form that is accepted.
        binary: String,
        /// The binary size in bytes.
        binary_bytes: u64,
        /// The decimal size in bytes, also a form that is accepted.
        decimal: u64,
    },
    /// Letters after the digits that name no unit.
    #[error(
        "found unit `{unit}` in `{found}`: expected no unit (bytes), or k, M, G, T, KiB, MiB, GiB, TiB or s (512 bytes)"
    )]
    UnknownUnit {
        /// The text as typed.
        found: String,
        /// The text after the digits.
        unit: String,
    },
    /// More bytes than the type of the result holds.
    #[error("found `{found}`, which is too large: expected at most {} bytes", group_digits(*max))]
    Overflow {
        /// The text as typed.
        found: String,
        /// The largest magnitude that fits, in bytes.
        max: u64,
    },
    /// Not two sizes with a minus between them.
    #[error("found `{found}`: expected a range START-END, as in 0-1M")]
    RangeShape {
        /// The text as typed.
        found: String,
    },
    /// A range that is empty or runs backwards.
    #[error("found `{found}`, from {start} to {end}: expected a start below the end")]
    RangeOrder {
        /// The text as typed.
        found: String,
        /// The first size in it.
        start: Bytes,
        /// The second size in it.
        end: Bytes,
    },
    /// Fewer bytes than a sector where only blocks make sense: mostly a unit that was forgotten.
    #[error(
        "found `{found}`, which is {}: expected at least 512 bytes, a sector; write `{meant}` for {} bytes",
        plural(*bytes, "byte"), group_digits(*meant_bytes)
    )]
    BelowSector {
        /// The text as typed.
        found: String,
        /// Its bytes.
        bytes: u64,
        /// The size that was likely meant.
        meant: String,
        /// Its bytes.
        meant_bytes: u64,
    },
    /// Two good sizes that make no grid.
    #[error("found `{found}`, which is no grid")]
    Grid {
        /// The text as typed.
        found: String,
        /// Its fault as a grid.
        source: GridError,
    },
}

/// Reads a size: digits, then nothing (bytes), `k`, `M`, `G` or `T` in either case, `KiB` to `TiB`
/// or `kib` to `tib`, or `s` for sectors of 512 bytes.
///
/// # Errors
/// Any [`SizeError`] but those of ranges and grids; nothing is trimmed, guessed or rounded.
pub fn parse_size(text: &str) -> Result<Bytes, SizeError> {
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    if unit.starts_with(['.', ',']) {
        return Err(SizeError::Fraction {
            found: text.to_owned(),
        });
    }
    if digits.is_empty() {
        return Err(without_digits(text));
    }
    let overflow = || SizeError::Overflow {
        found: text.to_owned(),
        max: u64::MAX,
    };
    let count: u64 = digits.parse().map_err(|_| overflow())?;
    match unit_bytes(unit) {
        Some(factor) => count.checked_mul(factor).map(Bytes).ok_or_else(overflow),
        None => Err(bad_unit(text, count, unit)),
    }
}

/// Reads a size of blocks: at least a sector.
///
/// # Errors
/// As [`parse_size`], and [`SizeError::BelowSector`].
pub fn parse_block_size(text: &str) -> Result<Bytes, SizeError> {
    let size = parse_size(text)?;
    if size.0 >= SECTOR {
        return Ok(size);
    }
    let kibibytes = if size.0 == 0 { 4 } else { size.0 };
    Err(SizeError::BelowSector {
        found: text.to_owned(),
        bytes: size.0,
        meant: format!("{kibibytes}k"),
        meant_bytes: kibibytes << 10,
    })
}

/// Reads a shift in bytes: a size with `+`, `-` or no sign before it, as in `+1s` or `-4k`.
///
/// # Errors
/// As [`parse_size`]; [`SizeError::Overflow`] already beyond 63 bits.
pub fn parse_shift(text: &str) -> Result<i64, SizeError> {
    let (negative, size) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = i128::from(parse_size(size)?.0);
    let shift = if negative { -magnitude } else { magnitude };
    let overflow = |_| SizeError::Overflow {
        found: text.to_owned(),
        max: i64::MAX as u64,
    };
    i64::try_from(shift).map_err(overflow)
}

/// Reads `START-END`, two sizes with the start below the end; the end is the first byte after.
///
/// # Errors
/// [`SizeError::RangeShape`], [`SizeError::RangeOrder`], or the fault of either size.
pub fn parse_range(text: &str) -> Result<(Bytes, Bytes), SizeError> {
    let Some((start, end)) = text
        .split_once('-')
        .filter(|(a, b)| !a.is_empty() && !b.is_empty())
    else {
        return Err(SizeError::RangeShape {
            found: text.to_owned(),
        });
    };
    let (start, end) = (parse_size(start)?, parse_size(end)?);
    if start >= end {
        return Err(SizeError::RangeOrder {
            found: text.to_owned(),
            start,
            end,
        });
    }
    Ok((start, end))
}

/// Reads a grid of blocks, of kind [`GridKind::Unit`]: `GRANULARITY` or `GRANULARITY@OFFSET`, as in
/// `4k`, `8k@1024` or `4k@7s`. Blocks have at least a sector.
///
/// # Errors
/// The fault of either size, or [`SizeError::Grid`] if they make no grid.
pub fn parse_grid(text: &str) -> Result<Grid, SizeError> {
    let (granularity, offset) = match text.split_once('@') {
        Some((granularity, offset)) => (parse_block_size(granularity)?, parse_size(offset)?),
        None => (parse_block_size(text)?, Bytes(0)),
    };
    Grid::new(granularity, offset, GridKind::Unit).map_err(|source| SizeError::Grid {
        found: text.to_owned(),
        source,
    })
}

/// Bytes in one of the accepted units; `None` for every other text.
fn unit_bytes(unit: &str) -> Option<u64> {
    Some(match unit {
        "" => 1,
        "s" => SECTOR,
        "k" | "K" | "KiB" | "kib" => 1 << 10,
        "m" | "M" | "MiB" | "mib" => 1 << 20,
        "g" | "G" | "GiB" | "gib" => 1 << 30,
        "t" | "T" | "TiB" | "tib" => 1 << 40,
        _ => return None,
    })
}

/// Names the text in place of the first digit.
fn without_digits(text: &str) -> SizeError {
    match text.chars().next() {
        None => SizeError::Empty,
        Some('-') => SizeError::Negative {
            found: text.to_owned(),
        },
        Some(_) => SizeError::NotANumber {
            found: text.to_owned(),
        },
    }
}

/// Tells an ambiguous unit, for which there are two things to write instead, from an unknown one.
fn bad_unit(text: &str, count: u64, unit: &str) -> SizeError {
    let power = match unit.to_ascii_lowercase().as_str() {
        "kb" => 1,
        "mb" => 2,
        "gb" => 3,
        "tb" => 4,
        _ => {
            return SizeError::UnknownUnit {
                found: text.to_owned(),
                unit: unit.to_owned(),
            };
        }
    };
    let letter = ["KiB", "MiB", "GiB", "TiB"][power - 1];
    let sizes = [1024_u64, 1000].map(|base| count.checked_mul(base.pow(power as u32)));
    match sizes {
        [Some(binary_bytes), Some(decimal)] => SizeError::Ambiguous {
            found: text.to_owned(),
            binary: format!("{count}{letter}"),
            binary_bytes,
            decimal,
        },
        _ => SizeError::Overflow {
            found: text.to_owned(),
            max: u64::MAX,
        },
    }
}
