//! The requests of one source of I/O: reads or writes, lengths, starts. Its pace decides about their times.
//!
//! All starts of one length s have the same residue: they are the numbers congruent to the shift modulo the alignment
//! (s itself by default) from the start of the range on, so that a shift of 512 shows the cost of a partition that
//! starts one sector late.

use plumb_geometry::{Bytes, group_digits};
use thiserror::Error;

/// Largest length of one I/O: more is split by every kernel.
pub const LEN_BYTES_MAX: u32 = 64 << 20;

/// The requests of a source of I/O.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Percentage of reads; the others are writes.
    pub read_percent: u8,
    /// Lengths and how often each of them is drawn.
    pub lengths: Lengths,
    /// The starts of I/O.
    pub starts: Starts,
    /// Starts are multiples of this, plus the shift; `None` is the length of each I/O.
    pub align_bytes: Option<u64>,
    /// Added to each start.
    pub shift_bytes: i64,
    /// First byte that may be touched, and the one after the last; `None` is all of the target.
    pub range: Option<(Bytes, Bytes)>,
    /// A small part of the range that is touched more often.
    pub hits: Option<Hits>,
}

impl Workload {
    /// Random reads of one length over the whole target.
    #[must_use]
    pub fn random_reads(len_bytes: u32) -> Workload {
        Workload {
            read_percent: 100,
            lengths: Lengths::one(len_bytes),
            starts: Starts::Random(Spread::Uniform),
            align_bytes: None,
            shift_bytes: 0,
            range: None,
            hits: None,
        }
    }

    /// Whether it can write anything.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }
}

/// Lengths of I/O with their weights: never empty, none of length or weight 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths(Vec<(u32, u32)>);

impl Lengths {
    /// One length for all.
    ///
    /// # Panics
    /// When it is 0 or above [`LEN_BYTES_MAX`]; lengths from outside go through [`Lengths::new`].
    #[must_use]
    pub fn one(len_bytes: u32) -> Lengths {
        assert!(
            (1..=LEN_BYTES_MAX).contains(&len_bytes),
            "a length of {len_bytes} bytes"
        );
        Lengths(vec![(len_bytes, 1)])
    }

    /// Pairs of a length in bytes and its weight.
    ///
    /// # Errors
    /// If the list is empty, or a length is 0 or too long.
    pub fn new(weighted: Vec<(u32, u32)>) -> Result<Lengths, WorkloadError> {
        let total: u64 = weighted.iter().map(|&(_, weight)| u64::from(weight)).sum();
        let bad = weighted
            .iter()
            .find(|(len, weight)| !(1..=LEN_BYTES_MAX).contains(len) || *weight == 0);
        match bad {
            Some(&(len_bytes, weight)) => Err(WorkloadError::Length { len_bytes, weight }),
            None if total == 0 || total > u64::from(u32::MAX) => {
                Err(WorkloadError::Weights { total })
            }
            None => Ok(Lengths(weighted)),
        }
    }

    /// Pairs of length and weight, as given.
    #[must_use]
    pub fn weighted(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// The longest, in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u32 {
        self.0
            .iter()
            .map(|&(len_bytes, _)| len_bytes)
            .max()
            .unwrap_or(0)
    }
}

/// The starts of I/O.
#[derive(Clone, Debug, PartialEq)]
pub enum Starts {
    /// Anywhere, as spread.
    Random(Spread),
    /// One behind the other; all threads of a job share the stream. At the end of the range it goes on at its beginning.
    Sequential {
        /// Whether the first one is somewhere in the range, drawn at random, and not at its beginning.
        from_anywhere: bool,
    },
    /// At this distance from each other; as [`Starts::Sequential`] otherwise.
    Strided {
        /// Bytes from start to start.
        stride_bytes: u64,
    },
    /// The percentage of I/O at a random place; the others continue the last one: each thread has its own stream.
    Seeks {
        /// From 1 to 99.
        percent: u8,
        /// The target of a seek.
        spread: Spread,
    },
}

/// How random starts are spread over the range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Each is as likely as every other.
    Uniform,
    /// The k-th most popular one is drawn with a probability proportional to k^-theta. Neighbours in popularity are far
    /// apart.
    Zipf {
        /// Above 0; at 0.99 some thousandth of the places takes half of the I/O.
        theta: f64,
    },
}

/// A part of the range that is touched more often, at its beginning: all other I/O go behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// Its length.
    pub area_bytes: u64,
    /// The percentage of reads there.
    pub read_percent: u8,
    /// The percentage of writes there.
    pub write_percent: u8,
}

/// Why a workload cannot be run against a target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// A length or weight out of bounds.
    #[error("found a length of {} bytes with weight {weight}, expected 1 to {} bytes and a weight above 0",
        group_digits(u64::from(*len_bytes)), group_digits(u64::from(LEN_BYTES_MAX)))]
    Length {
        /// Length in bytes.
        len_bytes: u32,
        /// Its weight.
        weight: u32,
    },
    /// No weights, or too large ones.
    #[error(
        "found weights of lengths with the sum {total}, expected 1 to {}",
        u32::MAX
    )]
    Weights {
        /// Their sum.
        total: u64,
    },
    /// A number outside its range.
    #[error("{what}: found {found}, expected {expected}")]
    OutOfRange {
        /// Its name.
        what: &'static str,
        /// The value given.
        found: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// O_DIRECT takes multiples of the logical block only.
    #[error("{target}: found {what} of {} bytes, expected a multiple of its logical block of {} bytes",
        group_digits(*found_bytes), group_digits(u64::from(*logical_block_bytes)))]
    OffLogicalBlock {
        /// The target.
        target: String,
        /// Its name.
        what: &'static str,
        /// The value given.
        found_bytes: u64,
        /// Its logical block.
        logical_block_bytes: u32,
    },
    /// Not one I/O fits.
    #[error("{target}: found {} bytes to load, which is too small: expected room for one I/O of {} bytes{at}",
        group_digits(*found_bytes), group_digits(u64::from(*len_bytes)))]
    TooSmall {
        /// The target.
        target: String,
        /// Bytes in its range.
        found_bytes: u64,
        /// The longest I/O.
        len_bytes: u32,
        /// The reason for the small rest: empty, or ` shifted by N bytes`.
        at: String,
    },
    /// The range ends behind the target.
    #[error("{target}: found a range up to byte {}, expected an end within its {} bytes",
        group_digits(*end_bytes), group_digits(*size_bytes))]
    BeyondEnd {
        /// The target.
        target: String,
        /// End of the range.
        end_bytes: u64,
        /// Size of the target.
        size_bytes: u64,
    },
    /// Writes without the permission for this target.
    #[error("{target}: found writes without a permission to write to it")]
    NotPermitted {
        /// The target.
        target: String,
    },
}
