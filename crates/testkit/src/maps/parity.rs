//! Parity RAID (RAID 5 and 6): data in chunks over all disks but one or two, parity on those, and
//! both taking turns from stripe to stripe.
//!
//! Lists the stripes that a write covers in full. Left out: the array's treatment of the others (read the old data and
//! parity, or read the rest), which depends on its cache and is a matter of cost.

use plumb_geometry::{Bytes, Extent, ParityLayout};

use super::chunks::{self, ChunkPart};
use super::roles::Roles;
use super::{
    Direction, LayerMap, LayoutError, MAX_MEMBERS, MapError, Piece, check_pieces, check_range,
    proven, push_merged,
};

/// A parity array whose members all begin at byte 0; put a [`Shift`](super::Shift) beneath for a
/// data offset.
///
/// A read becomes pieces of data. A write becomes the same pieces, and after them the parity: for each stripe in turn
/// P, then Q. Parity is computed byte by byte (over the same position in each chunk); md rounds it out to pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParityStripe {
    chunk: u64,
    data_disks: u32,
    parity: u32,
    layout: ParityLayout,
    stripes: u64,
}

/// The effect of one write on one stripe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeWrite {
    /// Number of the stripe, from 0.
    pub stripe: u64,
    /// Bytes of its data that are written, at least 1 and at most a stripe's.
    pub written: Bytes,
    /// Whether that is all of them, so that parity follows without reading anything.
    pub full: bool,
    /// Parity to be written, P before Q, each of one or two pieces in address order.
    pub parity: Vec<Piece>,
}

impl ParityStripe {
    /// An array of `len` bytes of data, on `data_disks` disks' worth of data (at least 1) and
    /// `parity` (1 or 2) of parity.
    ///
    /// # Errors
    /// [`LayoutError::ZeroChunk`], [`LayoutError::NoMembers`], [`LayoutError::TooManyMembers`],
    /// [`LayoutError::ParityCount`], [`LayoutError::StripeOverflow`], or
    /// [`LayoutError::NotWholeStripes`].
    pub fn new(
        chunk: Bytes,
        data_disks: u32,
        parity: u32,
        layout: ParityLayout,
        len: Bytes,
    ) -> Result<Self, LayoutError> {
        if chunk.0 == 0 {
            return Err(LayoutError::ZeroChunk);
        }
        if data_disks == 0 {
            return Err(LayoutError::NoMembers);
        }
        if !(1..=2).contains(&parity) {
            return Err(LayoutError::ParityCount { found: parity });
        }
        let disks = data_disks as usize + parity as usize;
        if disks > MAX_MEMBERS {
            return Err(LayoutError::TooManyMembers { found: disks });
        }
        let overflow = LayoutError::StripeOverflow { chunk, data_disks };
        let stripe = chunk.checked_mul(data_disks.into()).ok_or(overflow)?;
        if !len.0.is_multiple_of(stripe.0) {
            return Err(LayoutError::NotWholeStripes { len, stripe });
        }
        Ok(Self {
            chunk: chunk.0,
            data_disks,
            parity,
            layout,
            stripes: len.0 / stripe.0,
        })
    }

    /// Data of one full stripe: chunk times data disks.
    #[must_use]
    pub const fn stripe_bytes(&self) -> Bytes {
        // Proved to fit by the constructor.
        Bytes(self.chunk * self.data_disks as u64)
    }

    /// Chunk, at least 1 byte.
    #[must_use]
    pub const fn chunk(&self) -> Bytes {
        Bytes(self.chunk)
    }

    /// The members with the parity of stripe number `stripe`, P before Q. `None` beyond the end.
    #[must_use]
    pub fn parity_members(&self, stripe: u64) -> Option<Vec<u32>> {
        (stripe < self.stripes).then(|| self.roles(stripe).parity_disks().collect())
    }

    /// The stripes that a write of `extent` touches, in order, with its effect on each.
    ///
    /// # Errors
    /// [`MapError::OutOfRange`], or [`MapError::TooManyPieces`].
    pub fn stripe_writes(&self, extent: Extent) -> Result<Vec<StripeWrite>, MapError> {
        check_range(extent, self.size())?;
        let stripe_bytes = self.stripe_bytes().0;
        let parts = chunks::cut(extent, stripe_bytes)?;
        let write_of = |part: ChunkPart| StripeWrite {
            stripe: part.index,
            written: Bytes(part.len),
            full: part.len == stripe_bytes,
            parity: self.parity_pieces(part),
        };
        Ok(parts.map(write_of).collect())
    }

    /// The parity over `part` of a stripe: the union of its ranges within each chunk.
    fn parity_pieces(&self, part: ChunkPart) -> Vec<Piece> {
        let (first, last) = (part.within, part.within + part.len - 1);
        let (from, to) = (first % self.chunk, last % self.chunk + 1);
        let ranges = match last / self.chunk - first / self.chunk {
            0 => vec![(from, to)],
            // The end of one chunk and the beginning of the next, with a gap between.
            1 if to < from => vec![(0, to), (from, self.chunk)],
            _ => vec![(0, self.chunk)],
        };
        let base = part.index * self.chunk;
        let piece = |disk, (from, to): (u64, u64)| Piece {
            member: disk,
            extent: proven(base + from, to - from),
        };
        let disks = self.roles(part.index).parity_disks();
        disks
            .flat_map(|disk| ranges.iter().map(move |&range| piece(disk, range)))
            .collect()
    }

    fn data_pieces(&self, extent: Extent) -> Result<Vec<Piece>, MapError> {
        let mut pieces = Vec::new();
        let data_disks = u64::from(self.data_disks);
        for ChunkPart { index, within, len } in chunks::cut(extent, self.chunk)? {
            let (stripe, data) = (index / data_disks, (index % data_disks) as u32);
            let member = self.roles(stripe).data_disk(data);
            push_merged(&mut pieces, member, stripe * self.chunk + within, len);
        }
        Ok(pieces)
    }

    fn roles(&self, stripe: u64) -> Roles {
        Roles::in_stripe(
            self.layout,
            self.data_disks + self.parity,
            self.parity,
            stripe,
        )
    }
}

impl LayerMap for ParityStripe {
    fn size(&self) -> Bytes {
        Bytes(self.stripes * self.stripe_bytes().0)
    }

    fn map(&self, extent: Extent, op: Direction) -> Result<Vec<Piece>, MapError> {
        check_range(extent, self.size())?;
        let mut pieces = self.data_pieces(extent)?;
        if op == Direction::Write {
            for write in self.stripe_writes(extent)? {
                pieces.extend(write.parity);
            }
            check_pieces(extent, pieces.len() as u64)?;
        }
        Ok(pieces)
    }

    fn upper(&self, member: u32, byte: Bytes) -> Option<Bytes> {
        let stripe = byte.0 / self.chunk;
        if member >= self.data_disks + self.parity || stripe >= self.stripes {
            return None;
        }
        let data = self.roles(stripe).data_on(member)?;
        // Below `size`, whose bytes were proved to fit.
        let index = stripe * u64::from(self.data_disks) + u64::from(data);
        Some(Bytes(index * self.chunk + byte.0 % self.chunk))
    }
}
