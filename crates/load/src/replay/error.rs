//! Why a trace cannot be replayed.

use plumb_geometry::group_digits;
use plumb_trace::Op;
use thiserror::Error;

/// Why a trace cannot be replayed. An I/O is named by its number in the trace, from 1 on, as it was selected.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A fold by nothing.
    #[error("found a modulus of 0 bytes, expected 512 or more")]
    NoModulus,
    /// Two ranges at one place.
    #[error("found two ranges that begin at byte {}, expected each once", group_digits(*old))]
    SameRange {
        /// First byte in the trace.
        old: u64,
    },
    /// A fold would leave the logical blocks.
    #[error("{target}: found a modulus of {} bytes, expected a multiple of its logical block of {} bytes",
        group_digits(*modulus_bytes), group_digits(u64::from(*block_bytes)))]
    OddModulus {
        /// The target.
        target: String,
        /// Bytes by which the fold moves.
        modulus_bytes: u64,
        /// Its logical block.
        block_bytes: u32,
    },
    /// O_DIRECT takes multiples of the logical block only.
    #[error("{target}: I/O {} of the trace, a {} of {} bytes at byte {}, would start at byte {}: expected multiples of \
        its logical block of {} bytes", group_digits(*number), op.word(), group_digits(*len_bytes),
        group_digits(*start), group_digits(*placed), group_digits(u64::from(*block_bytes)))]
    OffLogicalBlock {
        /// The target.
        target: String,
        /// The number of the I/O.
        number: u64,
        /// Its operation.
        op: Op,
        /// Its start in the trace.
        start: u64,
        /// Its length.
        len_bytes: u64,
        /// Its start on the target.
        placed: u64,
        /// The target's logical block.
        block_bytes: u32,
    },
    /// Longer than any kernel takes it.
    #[error("I/O {} of the trace: found a length of {} bytes, expected at most {}", group_digits(*number),
        group_digits(*len_bytes), group_digits(u64::from(*len_bytes_max)))]
    TooLong {
        /// The number of the I/O.
        number: u64,
        /// Its length.
        len_bytes: u64,
        /// The longest that is sent.
        len_bytes_max: u32,
    },
    /// No place on the target keeps its residue.
    #[error("{target}: found {} bytes, which is too small for I/O {} of the trace, {} bytes at byte {}: expected room \
        for it where its start keeps its residue modulo {} bytes", group_digits(*size_bytes), group_digits(*number),
        group_digits(*len_bytes), group_digits(*start), group_digits(*modulus_bytes))]
    NoRoom {
        /// The target.
        target: String,
        /// Its length.
        size_bytes: u64,
        /// The number of the I/O.
        number: u64,
        /// Its start in the trace.
        start: u64,
        /// Its length.
        len_bytes: u64,
        /// Bytes by which the fold moves.
        modulus_bytes: u64,
    },
    /// Its I/O have no times.
    #[error("the trace does not tell when its I/O were: expected --speed max, with --depth")]
    NoTimes,
    /// The ends of I/O are not known.
    #[error(
        "the trace has no latencies, so the dependencies between I/O are unknown: expected --depth N with --speed max"
    )]
    NoLatencies,
    /// Nothing in it can be sent.
    #[error("found no I/O to send among {} of the trace: expected reads or writes", group_digits(*events))]
    Nothing {
        /// Events that were looked at.
        events: u64,
    },
    /// More speed than there is.
    #[error("found a speed of {found}, expected above 0 and at most 1,000,000")]
    Speed {
        /// Times as fast as the trace.
        found: f64,
    },
    /// More in flight than there may be.
    #[error("found a depth of {found}, expected 1 to 4,096")]
    Depth {
        /// I/O in flight.
        found: u32,
    },
}
