//! Reading a disk with unreadable blocks.

use std::io;
use std::ops::Range;

use plumb_sys::{AlignedBuffer, Errno, SysError};

use super::MoveError;
use super::plan::Plan;
use super::write::TargetDisk;
use crate::disk::Disk;

/// A failed read is repeated in this number of parts.
const READ_PARTS: usize = 16;

/// Bytes of the disk that need not begin or end on blocks.
pub(crate) fn read<D: Disk>(
    disk: &mut TargetDisk<D>,
    at: u64,
    len: usize,
    plan: &Plan,
) -> Result<Vec<u8>, MoveError> {
    let blocks = whole_blocks(at, len, plan);
    let mut buffer = AlignedBuffer::new((blocks.end - blocks.start) as usize);
    read_into(disk, blocks.start, &mut buffer)?;
    let skipped = (at - blocks.start) as usize;
    Ok(buffer[skipped..skipped + len].to_vec())
}

/// As [`read`], with zeros where a block cannot be read, and these blocks.
pub(crate) fn read_what_can_be<D: Disk>(
    disk: &mut TargetDisk<D>,
    at: u64,
    len: usize,
    plan: &Plan,
) -> Result<(Vec<u8>, Vec<Range<u64>>), MoveError> {
    let blocks = whole_blocks(at, len, plan);
    let mut buffer = AlignedBuffer::new((blocks.end - blocks.start) as usize);
    let holes = read_around(disk, blocks.start, &mut buffer)?;
    let skipped = (at - blocks.start) as usize;
    Ok((buffer[skipped..skipped + len].to_vec(), holes))
}

fn whole_blocks(at: u64, len: usize, plan: &Plan) -> Range<u64> {
    let logical = u64::from(plan.logical_block_bytes);
    at - at % logical..(at + len as u64).next_multiple_of(logical)
}

/// Whole logical blocks of the disk.
pub(crate) fn read_into<D: Disk>(
    disk: &mut TargetDisk<D>,
    at: u64,
    buffer: &mut [u8],
) -> Result<(), MoveError> {
    let len = buffer.len() as u64;
    disk.read_at(at, buffer)
        .map_err(|source| MoveError::Read { at, len, source })
}

/// Reads whole logical blocks. Those that cannot be read become zeros, and are returned, joined and in their order.
///
/// # Errors
/// When the disk fails otherwise than in a block of its medium: it may have gone away, and nothing is lost then.
pub(crate) fn read_around<D: Disk>(
    disk: &mut TargetDisk<D>,
    at: u64,
    buffer: &mut [u8],
) -> Result<Vec<Range<u64>>, MoveError> {
    let mut holes = Vec::new();
    read_part(disk, at, buffer, &mut holes)?;
    Ok(holes)
}

/// Whether a disk has these bytes there, all of them readable.
pub(crate) fn holds<D: Disk>(
    disk: &mut TargetDisk<D>,
    at: u64,
    bytes: &[u8],
) -> Result<bool, MoveError> {
    let mut found = AlignedBuffer::new(bytes.len());
    let holes = read_around(disk, at, &mut found)?;
    Ok(holes.is_empty() && *found == *bytes)
}

/// In parts, down to the block. Parts and not halves: a disk can take seconds for each read that has a bad block.
fn read_part<D: Disk>(
    disk: &mut TargetDisk<D>,
    at: u64,
    buffer: &mut [u8],
    holes: &mut Vec<Range<u64>>,
) -> Result<(), MoveError> {
    let (len, block) = (buffer.len(), disk.logical_block_bytes() as usize);
    let Err(source) = disk.read_at(at, buffer) else {
        return Ok(());
    };
    if !is_of_medium(&source) {
        let len = len as u64;
        return Err(MoveError::Read { at, len, source });
    }
    if len <= block {
        buffer.fill(0);
        let end = at + len as u64;
        match holes.last_mut() {
            Some(last) if last.end == at => last.end = end,
            _ => holes.push(at..end),
        }
        return Ok(());
    }
    let part = (len / READ_PARTS).next_multiple_of(block).max(block);
    (at..)
        .step_by(part)
        .zip(buffer.chunks_mut(part))
        .try_for_each(|(at, part)| read_part(disk, at, part, holes))
}

/// Whether an error can be one of a single block. A disk that was pulled out answers otherwise, and none of its blocks is
/// lost.
pub(crate) fn is_of_medium(error: &io::Error) -> bool {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<SysError>());
    let errno = match inner {
        Some(SysError::Failed { errno, .. }) => Some(*errno),
        Some(_) => return false,
        None => error.raw_os_error().map(Errno::from_raw_os_error),
    };
    // The errors of drivers for a medium error, a wrong sum, and a target that gives up.
    errno.is_none_or(|errno| {
        [Errno::IO, Errno::NODATA, Errno::ILSEQ, Errno::REMOTEIO].contains(&errno)
    })
}

/// The part of `range` inside `within`, if there is one.
pub(crate) fn common(range: &Range<u64>, within: &Range<u64>) -> Option<Range<u64>> {
    let common = range.start.max(within.start)..range.end.min(within.end);
    (!common.is_empty()).then_some(common)
}

/// The parts of `holes` inside `within`.
pub(crate) fn holes_in(holes: &[Range<u64>], within: &Range<u64>) -> Vec<Range<u64>> {
    holes
        .iter()
        .filter_map(|hole| common(hole, within))
        .collect()
}
