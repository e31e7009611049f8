//! Carrying out one step: everything that is written to the disk is written here.
//!
//! Two ways. An *image* goes into the journal first, is durable there, is written, flushed, and noted as written. A
//! *straight* window is written and noted with the sum of its data; then both, disk and journal, are made durable. In
//! both, nothing of the next step is written before that.

use super::edit::{self, Edit};
use super::plan::Copying;
use super::script::Action;
use super::windows::Window;
use super::{Move, MoveError, read, read_into};
use crate::disk::{Buffer, Disk, JournalStore};
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
        let mut buffer = Buffer::new((blocks.end - blocks.start) as usize);
        read_into(&mut self.disk, blocks.start, &mut buffer)?;
        let start = (edit.at - blocks.start) as usize;
        buffer[start..start + edit.bytes.len()].copy_from_slice(&edit.bytes);
        let image = Image::Inline(buffer.to_vec());
        self.record_and_write(blocks.start, image, &buffer)
    }

    /// A window that lies on its own source, or shares a block with others.
    fn batch(&mut self, window: &Window) -> Result<(), MoveError> {
        let (blocks, moved) = (&window.blocks, &window.moved);
        let mut buffer = std::mem::take(&mut self.spare);
        buffer.resize((blocks.end - blocks.start) as usize);
        if blocks != moved {
            read_into(&mut self.disk, blocks.start, &mut buffer)?;
        }
        let source = self.script.windows().source_of(moved);
        let (start, end) = ((moved.start - blocks.start) as usize, (moved.end - blocks.start) as usize);
        // Not every part of a buffer lies where direct I/O wants it.
        if start.is_multiple_of(4096) {
            read_into(&mut self.disk, source.start, &mut buffer[start..end])?;
        } else {
            let data = read(&mut self.disk, source.start, end - start, &self.state.plan)?;
            buffer[start..end].copy_from_slice(&data);
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
        let step = self.state.next;
        let data = self.data_of(step, window)?;
        let at = window.moved.start;
        let next = self.script.straight_at(step + 1);
        match next {
            Some(next) => {
                let source = self.script.windows().source_of(&next.moved);
                let mut ahead = std::mem::take(&mut self.spare);
                ahead.resize((source.end - source.start) as usize);
                let (written, read) = self.disk.write_and_read(at, &data, source.start, &mut ahead);
                let len = data.len() as u64;
                written.map_err(|source| MoveError::Write { at, len, source })?;
                // Read again when it is due: a block that cannot be read must not stop what comes before it.
                self.ahead = read.is_ok().then_some((step + 1, ahead));
            }
            None => self.write(at, &data)?,
        }
        let sum = sum(&[&data]);
        self.journal.append(&Record::Written { step, sum, moved: sum })?;
        self.barrier()?;
        self.spare = data;
        self.passed(sum);
        Ok(())
    }

    /// The data of a straight window: read ahead, or read now.
    fn data_of(&mut self, step: u64, window: &Window) -> Result<Buffer, MoveError> {
        let source = self.script.windows().source_of(&window.moved);
        let len = (source.end - source.start) as usize;
        if let Some((at, buffer)) = self.ahead.take()
            && at == step
            && buffer.len() == len
        {
            return Ok(buffer);
        }
        let mut buffer = std::mem::take(&mut self.spare);
        buffer.resize(len);
        read_into(&mut self.disk, source.start, &mut buffer)?;
        Ok(buffer)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let len = bytes.len() as u64;
        self.disk.write_at(at, bytes).map_err(|source| MoveError::Write { at, len, source })
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
