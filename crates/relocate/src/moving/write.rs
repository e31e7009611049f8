//! Carrying out one step: everything that is written to the disk is written here.
//!
//! Two ways. An *image* goes into the journal first, is durable there, is written, flushed, and noted as written. A
//! *straight* window is written and noted with the sum of its data; then both, disk and journal, are made durable. In
//! both, nothing of the next step is written before that.

use plumb_sys::AlignedBuffer;

use super::edit::{self, Edit};
use super::plan::Copying;
use super::script::Action;
use super::windows::Window;
use super::{Move, MoveError, read, read_into};
use crate::disk::{Disk, JournalStore};
use crate::journal::{Image, Record, sum};
use crate::mutation::Mutation;

impl<D: Disk, J: JournalStore> Move<D, J> {
    pub(super) fn perform(&mut self, action: &Action) -> Result<(), MoveError> {
        if let Action::Window(index) = action {
            return match self.script.windows().get(*index) {
                Some(window) if window.is_journalled => self.batch(&window),
                Some(window) => self.straight(&window),
                None => Ok(()),
            };
        }
        match edit::of(&self.state.plan, &self.state.saved, action) {
            Some(edit) => self.edit(&edit),
            None => Ok(()),
        }
    }

    /// A few bytes, with all else of their blocks as it is.
    fn edit(&mut self, edit: &Edit) -> Result<(), MoveError> {
        if let Some(before) = &edit.before {
            let found = read(&mut self.disk, edit.at, edit.bytes.len(), &self.state.plan)?;
            if found != *before && found != edit.bytes {
                return Err(MoveError::Changed { at: edit.at });
            }
        }
        let end = edit.at + edit.bytes.len() as u64;
        let plan = &self.state.plan;
        let blocks = plan.unit.cover(&(edit.at..end), plan.disk_bytes);
        let mut buffer = AlignedBuffer::new((blocks.end - blocks.start) as usize);
        read_into(&mut self.disk, blocks.start, &mut buffer)?;
        let start = (edit.at - blocks.start) as usize;
        buffer[start..start + edit.bytes.len()].copy_from_slice(&edit.bytes);
        let image = Image::Inline(buffer.to_vec());
        self.record_and_write(blocks.start, image, &buffer)
    }

    /// A window that lies on its own source, or shares a block with others.
    fn batch(&mut self, window: &Window) -> Result<(), MoveError> {
        let (blocks, moved) = (&window.blocks, &window.moved);
        let mut buffer = self.data_of(window)?;
        if blocks != moved {
            let mut around = AlignedBuffer::new((blocks.end - blocks.start) as usize);
            read_into(&mut self.disk, blocks.start, &mut around)?;
            let start = (moved.start - blocks.start) as usize;
            around[start..start + buffer.len()].copy_from_slice(&buffer);
            buffer = around;
        }
        let image = match self.state.plan.copying {
            Copying::Windows(_) => Image::Inline(buffer.to_vec()),
            Copying::Batches(_) => self.journal.fill_slot(&buffer)?,
        };
        self.record_and_write(blocks.start, image, &buffer)?;
        self.spare = buffer;
        Ok(())
    }

    fn record_and_write(&mut self, at: u64, image: Image, bytes: &[u8]) -> Result<(), MoveError> {
        self.journal.append_durable(&Record::Image { step: self.state.next, at, image })?;
        self.write_image(at, bytes)
    }

    /// Writes an image that the journal has. Only when it is durable the journal is told.
    pub(super) fn write_image(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let step = self.state.next;
        self.write(at, bytes)?;
        self.flush()?;
        let window = self.script.window_at(step).and_then(|index| self.script.windows().get(index));
        let moved = window.map_or(0, |window| {
            let (start, end) = ((window.moved.start - at) as usize, (window.moved.end - at) as usize);
            bytes.get(start..end).map_or(0, |moved| sum(&[moved]))
        });
        self.journal.append_durable(&Record::Written { step, sum: sum(&[bytes]), moved })?;
        self.passed(moved);
        Ok(())
    }

    /// A window that shares no block with its own source, nor with any source of the windows to come.
    fn straight(&mut self, window: &Window) -> Result<(), MoveError> {
        let data = self.data_of(window)?;
        self.write(window.moved.start, &data)?;
        let (step, sum) = (self.state.next, sum(&[&data]));
        self.journal.append(&Record::Written { step, sum, moved: sum })?;
        self.barrier()?;
        self.spare = data;
        self.passed(sum);
        Ok(())
    }

    /// The data of the window that is due: read ahead, or read now.
    fn data_of(&mut self, window: &Window) -> Result<AlignedBuffer, MoveError> {
        let source = self.script.windows().source_of(&window.moved);
        let len = (source.end - source.start) as usize;
        if let Some((step, buffer)) = self.ahead.take()
            && step == self.state.next
            && buffer.len() == len
        {
            return Ok(buffer);
        }
        let mut buffer = std::mem::take(&mut self.spare);
        buffer.resize(len);
        read_into(&mut self.disk, source.start, &mut buffer)?;
        Ok(buffer)
    }

    /// Writes what this step writes and reads what the next one moves, which no window before it touches.
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let (len, step) = (bytes.len() as u64, self.state.next + 1);
        let next = self.script.window_at(step).and_then(|index| self.script.windows().get(index));
        let written = match next {
            Some(next) if self.script.window_at(self.state.next).is_some() => {
                let source = self.script.windows().source_of(&next.moved);
                let mut ahead = std::mem::take(&mut self.spare);
                ahead.resize((source.end - source.start) as usize);
                let (written, read) = self.disk.write_and_read(at, bytes, source.start, &mut ahead);
                // Read again when it is due: a block that cannot be read must not stop what comes before it.
                self.ahead = read.is_ok().then_some((step, ahead));
                written
            }
            _ => self.disk.write_at(at, bytes),
        };
        written.map_err(|source| MoveError::Write { at, len, source })
    }

    fn flush(&mut self) -> Result<(), MoveError> {
        self.disk.flush().map_err(|source| MoveError::Flush { source })
    }

    /// Window and record are durable when it returns, both.
    fn barrier(&mut self) -> Result<(), MoveError> {
        if self.mutations.has(Mutation::NoBarrier) {
            return Ok(());
        }
        self.disk.begin_flush().map_err(|source| MoveError::Flush { source })?;
        let synced = self.journal.sync();
        self.flush()?;
        Ok(synced?)
    }

    fn passed(&mut self, moved: u64) {
        let index = self.script.window_at(self.state.next).filter(|_| !self.script.is_back());
        if let Some(index) = index.and_then(|index| usize::try_from(index).ok()) {
            self.state.moved.truncate(index);
            self.state.moved.push(moved);
        }
        self.state.next += 1;
    }
}
