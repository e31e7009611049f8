//! A stripe (RAID 0): chunks dealt to the members in turn.
//!
//! Members count alike. An md RAID 0 of unequal members has further zones behind the shortest one;
//! those are further stripes, joined by a [`Concat`](super::Concat).

use plumb_geometry::{Bytes, Extent};

use super::chunks::{self, ChunkPart};
use super::{
    Direction, LayerMap, LayoutError, MAX_MEMBERS, MapError, Piece, check_range, push_merged,
};

/// Chunk i of the upper address space is chunk ⌊i / n⌋ of member i mod n, counted from that
/// member's own start. Reads and writes are placed alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripe {
    chunk: u64,
    starts: Vec<u64>,
    len: u64,
}

impl Stripe {
    /// A stripe of `len` bytes in chunks of `chunk` bytes, over one member for each of `starts`:
    /// the first byte used on it. The last chunk may be cut short by `len`.
    ///
    /// # Errors
    /// [`LayoutError::ZeroChunk`], [`LayoutError::NoMembers`], [`LayoutError::TooManyMembers`], or
    /// [`LayoutError::MemberOverflow`] when a member's share ends beyond 64 bits.
    pub fn new(chunk: Bytes, starts: &[Bytes], len: Bytes) -> Result<Self, LayoutError> {
        if chunk.0 == 0 {
            return Err(LayoutError::ZeroChunk);
        }
        if starts.is_empty() {
            return Err(LayoutError::NoMembers);
        }
        if starts.len() > MAX_MEMBERS {
            return Err(LayoutError::TooManyMembers {
                found: starts.len(),
            });
        }
        let starts = starts.iter().map(|start| start.0).collect();
        let stripe = Self {
            chunk: chunk.0,
            starts,
            len: len.0,
        };
        for (member, &start) in (0_u32..).zip(&stripe.starts) {
            let used = stripe.used_on(member);
            if start.checked_add(used).is_none() {
                let (start, len) = (Bytes(start), Bytes(used));
                return Err(LayoutError::MemberOverflow { member, start, len });
            }
        }
        Ok(stripe)
    }

    /// The member that holds upper byte `offset`; `None` beyond the end.
    #[must_use]
    pub fn member_of(&self, offset: Bytes) -> Option<u32> {
        (offset.0 < self.len).then(|| (offset.0 / self.chunk % self.members()) as u32)
    }

    /// Data of one stripe across all members; `None` when that exceeds 64 bits.
    #[must_use]
    pub fn stripe_bytes(&self) -> Option<Bytes> {
        Bytes(self.chunk).checked_mul(self.members())
    }

    /// Chunk, at least 1 byte.
    #[must_use]
    pub const fn chunk(&self) -> Bytes {
        Bytes(self.chunk)
    }

    fn members(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Bytes of the stripe on `member`, which exists.
    fn used_on(&self, member: u32) -> u64 {
        let (chunks, rest) = (self.len / self.chunk, self.len % self.chunk);
        let (rows, left_over) = (chunks / self.members(), chunks % self.members());
        let last = match u64::from(member).cmp(&left_over) {
            std::cmp::Ordering::Less => self.chunk,
            std::cmp::Ordering::Equal => rest,
            std::cmp::Ordering::Greater => 0,
        };
        rows * self.chunk + last
    }
}

impl LayerMap for Stripe {
    fn size(&self) -> Bytes {
        Bytes(self.len)
    }

    fn map(&self, extent: Extent, _op: Direction) -> Result<Vec<Piece>, MapError> {
        check_range(extent, self.size())?;
        let mut pieces = Vec::new();
        if let &[start] = self.starts.as_slice() {
            // Chunks of a single member all merge, and need not be counted or walked.
            push_merged(&mut pieces, 0, start + extent.start().0, extent.len().0);
            return Ok(pieces);
        }
        for ChunkPart { index, within, len } in chunks::cut(extent, self.chunk)? {
            let (row, member) = (index / self.members(), index % self.members());
            let start = self.starts[member as usize] + row * self.chunk + within;
            push_merged(&mut pieces, member as u32, start, len);
        }
        Ok(pieces)
    }

    fn upper(&self, member: u32, byte: Bytes) -> Option<Bytes> {
        let start = *self.starts.get(member as usize)?;
        let lower = byte
            .0
            .checked_sub(start)
            .filter(|&lower| lower < self.used_on(member))?;
        // Below `len`, since it is one of the bytes counted as used: the product fits.
        let index = lower / self.chunk * self.members() + u64::from(member);
        Some(Bytes(index * self.chunk + lower % self.chunk))
    }
}
