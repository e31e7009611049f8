//! Errors of a layout, and of an extent that is to be mapped through one.

use plumb_geometry::{Bytes, Extent};
use thiserror::Error;

use super::MAX_MEMBERS;

/// Why a layer cannot be laid out as described.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Chunks of no size.
    #[error("chunk is 0 bytes: expected at least 1")]
    ZeroChunk,
    /// Nothing to place bytes on.
    #[error("layer has no members: expected at least 1")]
    NoMembers,
    /// More members than any layer has.
    #[error("layer has {found} members: expected at most {MAX_MEMBERS}")]
    TooManyMembers {
        /// The number asked for.
        found: usize,
    },
    /// A member index that names none.
    #[error("member {found} does not exist: expected a number below {members}")]
    NoSuchMember {
        /// The index asked for.
        found: u32,
        /// How many members there are.
        members: u32,
    },
    /// A part of a concatenation that holds nothing.
    #[error("part {index} has a length of 0: expected at least 1 byte, or leave the part out")]
    EmptyPart {
        /// The number of the part, from 0.
        index: usize,
    },
    /// Bytes placed on a member beyond its last possible position.
    #[error("member {member} would hold {len} from byte {} on, which ends beyond 64 bits", start.0)]
    MemberOverflow {
        /// The member.
        member: u32,
        /// First byte used on it.
        start: Bytes,
        /// Bytes used on it.
        len: Bytes,
    },
    /// All parts together exceed 64 bits.
    #[error("layer ends beyond 64 bits at part {index}: expected less than 16 EiB in all")]
    SizeOverflow {
        /// The part at which the sum no longer fits, from 0.
        index: usize,
    },
    /// One byte of a member would hold two bytes of the layer.
    #[error(
        "member {member} is used twice, by {first} and by {second}: expected parts that do not overlap"
    )]
    Overlap {
        /// The member.
        member: u32,
        /// The part that starts first on it.
        first: Extent,
        /// The part that starts within that one.
        second: Extent,
    },
    /// A parity count that no layout here has.
    #[error("{found} parity chunks a stripe: expected 1 (RAID 5) or 2 (RAID 6)")]
    ParityCount {
        /// The number asked for.
        found: u32,
    },
    /// Chunk times data disks exceeds 64 bits.
    #[error(
        "{data_disks} chunks of {chunk} exceed 64 bits: expected a smaller chunk or fewer disks"
    )]
    StripeOverflow {
        /// The chunk asked for.
        chunk: Bytes,
        /// The data disks asked for.
        data_disks: u32,
    },
    /// A last stripe without all of its data, which parity RAID does not have.
    #[error(
        "length of {} bytes is no whole number of stripes of {} bytes: the nearest below is {}",
        len.0, stripe.0, len.0 - len.0.checked_rem(stripe.0).unwrap_or(0)
    )]
    NotWholeStripes {
        /// The length asked for.
        len: Bytes,
        /// Data of one stripe.
        stripe: Bytes,
    },
}

/// Why an extent cannot be mapped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MapError {
    /// The extent reaches beyond the layer.
    #[error("{extent} is out of range: expected an end of at most byte {}", size.0)]
    OutOfRange {
        /// The extent asked for.
        extent: Extent,
        /// Length of the layer.
        size: Bytes,
    },
    /// The extent falls into more pieces than one answer may hold.
    #[error("{extent} falls into {pieces} pieces: expected at most {max}, so map it in parts")]
    TooManyPieces {
        /// The extent asked for.
        extent: Extent,
        /// Pieces before merging, an upper bound of the result.
        pieces: u64,
        /// The bound.
        max: u64,
    },
}
