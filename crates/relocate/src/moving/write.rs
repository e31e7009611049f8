//! Carrying out one step: everything that is written to the disk is written here.
//!
//! An *image* goes into the journal first, is durable there, is written, flushed, and noted as written; nothing of the
//! next step is written before that. Windows of data have ways of their own.

use plumb_sys::AlignedBuffer;

use super::copy::put;
use super::edit::{self, Edit};
use super::read::{read_around, read_into};
use super::script::Action;
use super::{Move, MoveError};
use crate::disk::{Disk, JournalStore};
use crate::journal::{Image, JournalRecord, sum};

impl<D: Disk, J: JournalStore> Move<D, J> {
    pub(super) fn perform(&mut self, action: &Action) -> Result<(), MoveError> {
        if let Action::Window(index) = action {
            return self.copy(*index);
        }
        match edit::for_action(&self.state.plan, &self.state.saved, action) {
            Some(edit) => self.edit(&edit),
            None => Ok(()),
        }
    }

    /// A few bytes, with all else of their blocks as it is.
    fn edit(&mut self, edit: &Edit) -> Result<(), MoveError> {
        let blocks = edit.blocks(&self.state.plan);
        let mut buffer = AlignedBuffer::new((blocks.end - blocks.start) as usize);
        let holes = read_around(&mut self.disk, blocks.start, &mut buffer)?;
        let own = edit.at..edit.at + edit.bytes.len() as u64;
        let start = (edit.at - blocks.start) as usize;
        let found = &mut buffer[start..start + edit.bytes.len()];
        if !edit.fits(found, &holes) && !self.is_lost(&own) {
            return Err(MoveError::Changed { at: edit.at });
        }
        found.copy_from_slice(&edit.bytes);
        let lost = self.fill_holes(&blocks, &mut buffer, &holes, &own)?;
        self.must_be_accepted(self.loss_step(0), lost)?;
        let (step, at, image) = (
            self.state.next,
            blocks.start,
            Image::Inline(buffer.to_vec()),
        );
        self.journal
            .append_durable(&JournalRecord::Image { step, at, image })?;
        self.write_image(at, &buffer)
    }

    /// Writes an image that the journal has. Only when it is durable the journal is told.
    pub(super) fn write_image(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let step = self.state.next;
        self.meanwhile(1, |disk, _| put(disk, at, bytes))?;
        if self.script.window_at(step).is_none() {
            self.must_have_arrived(at, bytes)?;
        }
        let window = self
            .script
            .window_at(step)
            .and_then(|index| self.script.windows().get(index));
        let moved = window.map_or(0, |window| {
            let (start, end) = (
                (window.moved.start - at) as usize,
                (window.moved.end - at) as usize,
            );
            bytes.get(start..end).map_or(0, |moved| sum(&[moved]))
        });
        self.journal
            .append_durable(&JournalRecord::Written { step, moved })?;
        self.passed(&[moved]);
        Ok(())
    }

    /// Windows are read again together, and these few bytes at once.
    pub(super) fn must_have_arrived(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let mut found = AlignedBuffer::new(bytes.len());
        read_into(&mut self.disk, at, &mut found)?;
        if *found == *bytes {
            Ok(())
        } else {
            Err(MoveError::NotAsWritten {
                at,
                len: bytes.len() as u64,
            })
        }
    }

    /// So many steps are done; of windows these are the sums of their data.
    pub(super) fn passed(&mut self, sums: &[u64]) {
        // The steps of this script follow each other, so that there is a place for each.
        let noted = self.state.note_moved(self.state.next, sums);
        debug_assert_eq!(noted, Ok(()));
        self.state.next += sums.len() as u64;
    }
}
