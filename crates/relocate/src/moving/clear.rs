//! The free part of the new place, filled with zeros before the move: a disk replaces a bad block on a write, and
//! unwritable blocks are found while the partition is still at its old place.

use std::ops::ControlFlow;

use plumb_sys::AlignedBuffer;

use super::read::read_into;
use super::{Move, MoveError};
use crate::disk::{Disk, JournalStore};

/// The length of one write and read; simulated disks are small.
const PIECE_BYTES: u64 = if cfg!(test) { 8 << 10 } else { 8 << 20 };

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Fills whole units of the free part of the new place with zeros, and reads them again. Only before the first step.
    /// `watch` learns how many bytes are done and how many there are, and can stop it; then the answer is `false`.
    ///
    /// # Errors
    /// Blocks that cannot be written or read, or differ from the write; and a move that has begun.
    pub fn clear_new_place(
        &mut self,
        mut watch: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<bool, MoveError> {
        if self.state.next > 0 || self.script.is_back() {
            return Err(MoveError::Stopped);
        }
        let (unit, free) = (self.state.plan.unit, self.state.plan.free_part());
        let (start, end) = (unit.ceil(free.start), unit.floor(free.end));
        let piece = unit.floor_len(PIECE_BYTES).max(unit.bytes);
        let mut at = start;
        while at < end {
            if watch(at - start, end - start).is_break() {
                return Ok(false);
            }
            let len = piece.min(end - at);
            let zeros = AlignedBuffer::new(len as usize);
            self.disk.writer().put(at, &zeros)?;
            let mut found = AlignedBuffer::new(len as usize);
            read_into(&mut self.disk, at, &mut found)?;
            if found.iter().any(|byte| *byte != 0) {
                return Err(MoveError::NotAsWritten { at, len });
            }
            at += len;
        }
        Ok(true)
    }
}
