//! How layers place their bytes: each map takes extents of the upper address space (what the layer
//! shows) to extents on its members (what it is built of), and single bytes back.
//!
//! A map is the arithmetic of a healthy layer. Left out: degraded arrays, reshapes in progress,
//! caches and thin pools, whose placement is data rather than arithmetic, and where metadata puts
//! the first byte of a member ([`Shift`] composes with the others for that).

mod chunks;
mod concat;
mod error;
mod mirror;
mod parity;
mod parity_layout;
mod shift;
mod stripe;

pub use concat::{Concat, ConcatPart};
pub use error::{LayoutError, MapError};
pub use mirror::Mirror;
pub use parity::{ParityStripe, StripeWrite};
pub use parity_layout::ParityLayout;
pub use shift::Shift;
pub use stripe::Stripe;

use serde::{Deserialize, Serialize};

use crate::extent::Extent;
use crate::units::Bytes;

/// Most members a map takes: above anything md (384 devices) or SVM builds, and low enough that a
/// damaged superblock cannot make a single write fan out without bound.
pub const MAX_MEMBERS: usize = 4096;

/// Most pieces that one call returns, about 24 MiB of them. The largest request of the block layer
/// is far below; this bounds the memory that an extent as long as the device could ask for.
pub const MAX_PIECES: u64 = 1 << 20;

/// Whether bytes are fetched or stored, which redundant layers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Bytes are fetched: one copy serves.
    Read,
    /// Bytes are stored: every copy and the parity is brought up to date.
    Write,
}

/// One extent on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Piece {
    /// Index of the member within its layer, from 0.
    pub member: u32,
    /// Where on the member; never empty.
    pub extent: Extent,
}

/// The placement of one layer's bytes on its members.
pub trait LayerMap {
    /// Length of the upper address space in bytes.
    fn size(&self) -> Bytes;

    /// The pieces that an I/O on `extent` of the upper address space becomes.
    ///
    /// Pieces are in the order of the upper addresses they hold, and merged where they follow each
    /// other both there and on one member. Where a layer has copies or parity, those come after
    /// the first copy of the data, as the map's own page says. No piece for a length of 0.
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
        last.extent = Extent::proven(last.extent.start().0, last.extent.len().0 + len);
        return;
    }
    pieces.push(Piece {
        member,
        extent: Extent::proven(start, len),
    });
}
