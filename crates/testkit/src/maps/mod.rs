//! Maps that tests use as an oracle: each maps an extent of a layer's upper address space (the one
//! that the layer shows) to extents on its members, and single bytes back.
//!
//! The production code folds layers instead (`stack::fold`), so that the two share no mistake. A map is the arithmetic
//! of a healthy layer. Left out: degraded arrays, reshapes in progress, caches and thin pools, whose placement is data
//! rather than arithmetic, and the position of a member's first byte in metadata ([`Shift`] composes with the others
//! for that).

mod chunks;
mod concat;
mod error;
mod mirror;
mod parity;
mod roles;
mod shift;
mod stripe;

pub use concat::{Concat, ConcatPart};
pub use error::{LayoutError, MapError};
pub use mirror::Mirror;
pub use parity::{ParityStripe, StripeWrite};
pub use shift::Shift;
pub use stripe::Stripe;

use plumb_geometry::{Bytes, Extent};

/// Most members a map takes: above anything md (384 devices) or SVM builds, and low enough that a
/// damaged superblock cannot make a single write fan out without bound.
pub const MAX_MEMBERS: usize = 4096;

/// Most pieces that one call returns, about 24 MiB of them. The largest request of the block layer
/// is far below; this bounds the memory that an extent as long as the device could ask for.
pub const MAX_PIECES: u64 = 1 << 20;

/// Whether bytes are fetched or stored, which redundant layers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Bytes are fetched: one copy serves.
    Read,
    /// Bytes are stored: every copy and the parity is brought up to date.
    Write,
}

/// One extent on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    /// Index of the member within its layer, from 0.
    pub member: u32,
    /// The extent on the member; never empty.
    pub extent: Extent,
}

/// The placement of one layer's bytes on its members.
pub trait LayerMap {
    /// Length of the upper address space in bytes.
    fn size(&self) -> Bytes;

    /// The pieces that an I/O on `extent` of the upper address space becomes.
    ///
    /// Pieces are in the order of their upper addresses, and merged if they follow each other both there and on one
    /// member. If a layer has copies or parity, those come after the first copy of the data, as the map's own page
    /// says. No piece for a length of 0.
    ///
    /// # Errors
    /// [`MapError::OutOfRange`] when `extent` ends beyond [`LayerMap::size`], and
    /// [`MapError::TooManyPieces`] beyond [`MAX_PIECES`].
    fn map(&self, extent: Extent, op: Direction) -> Result<Vec<Piece>, MapError>;

    /// The upper byte that `byte` of `member` holds; `None` where that is parity, a gap, outside
    /// the layer, or no member.
    fn upper(&self, member: u32, byte: Bytes) -> Option<Bytes>;
}

/// The first check of every `map`.
fn check_range(extent: Extent, size: Bytes) -> Result<(), MapError> {
    if extent.end() > size {
        return Err(MapError::OutOfRange { extent, size });
    }
    Ok(())
}

/// The bound on pieces, checked before they are listed; parity adds a few for each data piece and
/// is checked once more when they are known.
fn check_pieces(extent: Extent, pieces: u64) -> Result<(), MapError> {
    if pieces > MAX_PIECES {
        return Err(MapError::TooManyPieces {
            extent,
            pieces,
            max: MAX_PIECES,
        });
    }
    Ok(())
}

/// Appends a piece which follows the last one in the upper address space, and grows the last one
/// in its place where they also follow each other on the member.
fn push_merged(pieces: &mut Vec<Piece>, member: u32, start: u64, len: u64) {
    if len == 0 {
        return;
    }
    if let Some(last) = pieces.last_mut()
        && last.member == member
        && last.extent.end().0 == start
    {
        last.extent = proven(last.extent.start().0, last.extent.len().0 + len);
        return;
    }
    pieces.push(Piece {
        member,
        extent: proven(start, len),
    });
}

/// An extent whose end the caller has proved to fit 64 bits.
fn proven(start: u64, len: u64) -> Extent {
    Extent::new(Bytes(start), Bytes(len)).expect("the caller has proved that the end fits 64 bits")
}
