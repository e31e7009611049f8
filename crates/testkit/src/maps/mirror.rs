//! A mirror: every member holds all bytes, each at its own position.
//!
//! The copy that serves a read is a policy of the running system (round robin, nearest head, first) that no layout
//! records; the map gets it as a parameter.

use plumb_geometry::{Bytes, Extent};

use super::{
    Direction, LayerMap, LayoutError, MAX_MEMBERS, MapError, Piece, check_range, push_merged,
};

/// `copies` members of `len` bytes each. A write becomes one piece a copy, in order of the members; a read becomes one
/// piece on the chosen copy, by default the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mirror {
    copies: u32,
    read_copy: u32,
    len: Bytes,
}

impl Mirror {
    /// A mirror of `copies` members (at least 1) and `len` bytes.
    ///
    /// # Errors
    /// [`LayoutError::NoMembers`], or [`LayoutError::TooManyMembers`].
    pub const fn new(copies: u32, len: Bytes) -> Result<Self, LayoutError> {
        if copies == 0 {
            return Err(LayoutError::NoMembers);
        }
        if copies as usize > MAX_MEMBERS {
            return Err(LayoutError::TooManyMembers {
                found: copies as usize,
            });
        }
        Ok(Self {
            copies,
            read_copy: 0,
            len,
        })
    }

    /// The same mirror with its reads on member `copy`.
    ///
    /// # Errors
    /// [`LayoutError::NoSuchMember`].
    pub const fn reading_from(self, copy: u32) -> Result<Self, LayoutError> {
        if copy >= self.copies {
            return Err(LayoutError::NoSuchMember {
                found: copy,
                members: self.copies,
            });
        }
        Ok(Self {
            read_copy: copy,
            ..self
        })
    }

    /// How many members hold the data, at least 1.
    #[must_use]
    pub const fn copies(&self) -> u32 {
        self.copies
    }
}

impl LayerMap for Mirror {
    fn size(&self) -> Bytes {
        self.len
    }

    fn map(&self, extent: Extent, op: Direction) -> Result<Vec<Piece>, MapError> {
        check_range(extent, self.len)?;
        let members = match op {
            Direction::Read => self.read_copy..self.read_copy + 1,
            Direction::Write => 0..self.copies,
        };
        let mut pieces = Vec::with_capacity(members.len());
        for member in members {
            push_merged(&mut pieces, member, extent.start().0, extent.len().0);
        }
        Ok(pieces)
    }

    fn upper(&self, member: u32, byte: Bytes) -> Option<Bytes> {
        (member < self.copies && byte < self.len).then_some(byte)
    }
}
