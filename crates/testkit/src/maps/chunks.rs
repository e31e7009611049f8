//! Cuts an extent at the chunk boundaries of its upper address space; all striped layers share it.

use plumb_geometry::Extent;

use super::{MapError, check_pieces};

/// The part of an extent in one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkPart {
    /// The number of the chunk in the upper address space, from 0.
    pub index: u64,
    /// The position in the chunk, in bytes.
    pub within: u64,
    /// Bytes, at least 1.
    pub len: u64,
}

/// The parts in address order, after their number was checked. `chunk` is at least 1.
pub(super) fn cut(extent: Extent, chunk: u64) -> Result<impl Iterator<Item = ChunkPart>, MapError> {
    let (start, end) = (extent.start().0, extent.end().0);
    let range = if extent.is_empty() {
        0..0
    } else {
        start / chunk..(end - 1) / chunk + 1
    };
    check_pieces(extent, range.end - range.start)?;
    Ok(range.map(move |index| {
        // The chunk begins at or before the extent's end, but may itself end beyond 64 bits.
        let begin = index * chunk;
        let from = begin.max(start);
        let to = begin.saturating_add(chunk).min(end);
        ChunkPart {
            index,
            within: from - begin,
            len: to - from,
        }
    }))
}
