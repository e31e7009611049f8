//! A concatenation: parts of members one after another, as in a linear md array, an LVM linear
//! volume, or a soft partition of several extents.

use plumb_geometry::{Bytes, Extent};

use super::{Direction, LayerMap, LayoutError, MapError, Piece, check_range, push_merged};

/// One run of bytes on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcatPart {
    /// Index of the member; several parts may share one.
    pub member: u32,
    /// First byte on the member.
    pub start: Bytes,
    /// Bytes in the part, at least 1.
    pub len: Bytes,
}

/// Parts in the order of the upper address space. Reads and writes are placed alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concat {
    parts: Vec<Placed>,
    size: Bytes,
}

/// A part together with the upper address it begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placed {
    upper: u64,
    member: u32,
    extent: Extent,
}

impl Concat {
    /// Joins `parts`, at least one, in the order given.
    ///
    /// # Errors
    /// [`LayoutError::NoMembers`], [`LayoutError::EmptyPart`], [`LayoutError::MemberOverflow`],
    /// [`LayoutError::SizeOverflow`], or [`LayoutError::Overlap`] of two parts on one member.
    pub fn new(parts: &[ConcatPart]) -> Result<Self, LayoutError> {
        if parts.is_empty() {
            return Err(LayoutError::NoMembers);
        }
        let mut placed = Vec::with_capacity(parts.len());
        let mut upper = 0_u64;
        for (index, &ConcatPart { member, start, len }) in parts.iter().enumerate() {
            if len.0 == 0 {
                return Err(LayoutError::EmptyPart { index });
            }
            let overflow = |_| LayoutError::MemberOverflow { member, start, len };
            let extent = Extent::new(start, len).map_err(overflow)?;
            placed.push(Placed {
                upper,
                member,
                extent,
            });
            upper = upper
                .checked_add(len.0)
                .ok_or(LayoutError::SizeOverflow { index })?;
        }
        check_overlap(&placed)?;
        Ok(Self {
            parts: placed,
            size: Bytes(upper),
        })
    }
}

/// Without this a byte of a member would have two upper addresses, and the inverse no answer.
fn check_overlap(parts: &[Placed]) -> Result<(), LayoutError> {
    let mut by_member: Vec<_> = parts
        .iter()
        .map(|part| (part.member, part.extent))
        .collect();
    by_member.sort_unstable();
    for pair in by_member.windows(2) {
        if let &[(member, first), (next_member, second)] = pair
            && member == next_member
            && second.start() < first.end()
        {
            return Err(LayoutError::Overlap {
                member,
                first,
                second,
            });
        }
    }
    Ok(())
}

impl LayerMap for Concat {
    fn size(&self) -> Bytes {
        self.size
    }

    fn map(&self, extent: Extent, _op: Direction) -> Result<Vec<Piece>, MapError> {
        check_range(extent, self.size)?;
        let (start, end) = (extent.start().0, extent.end().0);
        let first = self
            .parts
            .partition_point(|part| part.upper + part.extent.len().0 <= start);
        let mut pieces = Vec::new();
        // At most one piece a part, so the caller's own list bounds the answer.
        for part in self
            .parts
            .iter()
            .skip(first)
            .take_while(|part| part.upper < end)
        {
            let from = start.max(part.upper);
            let to = end.min(part.upper + part.extent.len().0);
            let lower = part.extent.start().0 + (from - part.upper);
            push_merged(&mut pieces, part.member, lower, to - from);
        }
        Ok(pieces)
    }

    fn upper(&self, member: u32, byte: Bytes) -> Option<Bytes> {
        let holds = |part: &&Placed| {
            part.member == member && part.extent.start() <= byte && byte < part.extent.end()
        };
        let part = self.parts.iter().find(holds)?;
        Some(Bytes(part.upper + (byte.0 - part.extent.start().0)))
    }
}
