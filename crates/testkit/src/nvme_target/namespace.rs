//! The blocks of the namespace, in memory: only those that were written take room.

use std::collections::BTreeMap;
use std::ops::Range;

/// Length of a piece that is kept.
const PIECE_BYTES: u64 = 4096;

/// The written data, in pieces of 4 KiB.
#[derive(Debug)]
pub struct Namespace {
    len_bytes: u64,
    pieces: BTreeMap<u64, Box<[u8]>>,
}

impl Namespace {
    /// All zeros.
    #[must_use]
    pub fn new(len_bytes: u64) -> Self {
        Namespace {
            len_bytes,
            pieces: BTreeMap::new(),
        }
    }

    /// Whether these bytes are all inside.
    #[must_use]
    pub fn has(&self, start: u64, len: u64) -> bool {
        start
            .checked_add(len)
            .is_some_and(|end| end <= self.len_bytes)
    }

    /// The content at `start`.
    #[must_use]
    pub fn read(&self, start: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for (piece, within, of_all) in parts(start, len) {
            if let Some(kept) = self.pieces.get(&piece) {
                bytes[of_all].copy_from_slice(&kept[within]);
            }
        }
        bytes
    }

    /// Puts `bytes` at `start`.
    pub fn write(&mut self, start: u64, bytes: &[u8]) {
        debug_assert!(self.has(start, bytes.len() as u64));
        for (piece, within, of_all) in parts(start, bytes.len()) {
            let kept = self
                .pieces
                .entry(piece)
                .or_insert_with(|| vec![0; PIECE_BYTES as usize].into_boxed_slice());
            kept[within].copy_from_slice(&bytes[of_all]);
        }
    }
}

/// The pieces that a range touches: number, range within it, and range within the range.
fn parts(start: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let end = start + len as u64;
    let first = start / PIECE_BYTES;
    (first..end.div_ceil(PIECE_BYTES)).map(move |piece| {
        let from = (piece * PIECE_BYTES).max(start);
        let to = ((piece + 1) * PIECE_BYTES).min(end);
        let within = (from - piece * PIECE_BYTES) as usize..(to - piece * PIECE_BYTES) as usize;
        (
            piece,
            within,
            (from - start) as usize..(to - start) as usize,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a plain vector.
    #[test]
    fn written_blocks_read_back() {
        let mut random = crate::Rng::new(7);
        let (mut namespace, mut model) = (Namespace::new(1 << 16), vec![0_u8; 1 << 16]);
        for round in 0..200_u8 {
            let (start, len) = (random.below(1 << 15), random.below(12_000) as usize);
            let bytes: Vec<u8> = (0..len).map(|at| round ^ at as u8).collect();
            namespace.write(start, &bytes);
            model[start as usize..start as usize + len].copy_from_slice(&bytes);
            let (start, len) = (random.below(1 << 15), random.below(12_000) as usize);
            assert!(namespace.read(start, len) == model[start as usize..start as usize + len]);
        }
    }

    #[test]
    fn the_end_is_the_end() {
        let namespace = Namespace::new(1024);
        assert!(namespace.has(512, 512) && namespace.has(1024, 0));
        assert!(!namespace.has(512, 513) && !namespace.has(u64::MAX, 2));
    }
}
