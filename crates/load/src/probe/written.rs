//! Which parts of a target may have a medium behind them: of a file those that were written.

use plumb_sys::extents::{self, flag};

use crate::target::Target;

/// Extents of a file that are looked at.
const EXTENTS_MAX: usize = 1 << 16;

/// The written parts of a file within `start..end`, in order; `None` where nobody tells: of a block device, or where the
/// file system does not.
#[must_use]
pub fn written(target: &Target, (start, end): (u64, u64)) -> Option<Vec<(u64, u64)>> {
    if target.is_block_device() {
        return None;
    }
    let found = extents::of_file(target.path(), EXTENTS_MAX).ok()?;
    let is_written =
        |extent: &&plumb_sys::FileExtent| extent.is_placed() && extent.flags & flag::UNWRITTEN == 0;
    let ends = found.extents.iter().filter(is_written).map(|extent| {
        let first = extent.logical_bytes;
        (first.max(start), first.saturating_add(extent.len_bytes).min(end))
    });
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (first, last) in ends.filter(|(first, last)| first < last) {
        match ranges.last_mut() {
            Some(before) if before.1 == first => before.1 = last,
            _ => ranges.push((first, last)),
        }
    }
    Some(ranges)
}
