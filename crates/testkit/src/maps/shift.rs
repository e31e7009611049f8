//! A partition, or any layer that is a window on one parent: the same bytes, further along.

use plumb_geometry::{Bytes, Extent};

use super::{Direction, LayerMap, LayoutError, MapError, Piece, check_range, push_merged};

/// Bytes 0 up to `len` of the child are at `by` up to `by + len` of the parent, its member 0. Reads and writes are
/// placed alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    window: Extent,
}

impl Shift {
    /// A child of `len` bytes that begins at byte `by` of its parent.
    ///
    /// # Errors
    /// [`LayoutError::MemberOverflow`] when the child would end beyond 64 bits of the parent.
    pub fn new(by: Bytes, len: Bytes) -> Result<Self, LayoutError> {
        let overflow = |_| LayoutError::MemberOverflow {
            member: 0,
            start: by,
            len,
        };
        Ok(Self {
            window: Extent::new(by, len).map_err(overflow)?,
        })
    }

    /// The start of the child on its parent, in bytes.
    #[must_use]
    pub const fn by(&self) -> Bytes {
        self.window.start()
    }
}

impl LayerMap for Shift {
    fn size(&self) -> Bytes {
        self.window.len()
    }

    fn map(&self, extent: Extent, _op: Direction) -> Result<Vec<Piece>, MapError> {
        check_range(extent, self.size())?;
        let mut pieces = Vec::new();
        push_merged(
            &mut pieces,
            0,
            self.by().0 + extent.start().0,
            extent.len().0,
        );
        Ok(pieces)
    }

    fn upper(&self, member: u32, byte: Bytes) -> Option<Bytes> {
        let inside = member == 0 && byte < self.window.end();
        if inside {
            byte.checked_sub(self.by())
        } else {
            None
        }
    }
}
