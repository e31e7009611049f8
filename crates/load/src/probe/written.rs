//! The parts of a target that may have a medium: of a file those that were written, of a device those that it reports
//! as mapped.

use plumb_sys::extents::{self, flag};

use super::mapped::mapped;
use crate::target::Target;

/// Extents of a file that are looked at.
const EXTENTS_MAX: usize = 1 << 16;

/// The written parts of a target within `start..end`, in order; `None` where nobody tells: most devices do not, nor do some
/// file systems.
#[must_use]
pub fn written(target: &Target, range: (u64, u64)) -> Option<Vec<(u64, u64)>> {
    if target.is_block_device() {
        return mapped(target, range).map(|parts| joined(parts, range));
    }
    let found = extents::of_file(target.path(), EXTENTS_MAX).ok()?;
    let is_written =
        |extent: &&plumb_sys::FileExtent| extent.is_placed() && extent.flags & flag::UNWRITTEN == 0;
    let parts = found.extents.iter().filter(is_written).map(|extent| {
        let first = extent.logical_bytes;
        (first, first.saturating_add(extent.len_bytes))
    });
    Some(joined(parts, range))
}

/// The parts within `start..end`; adjacent ones as one.
fn joined(
    parts: impl IntoIterator<Item = (u64, u64)>,
    (start, end): (u64, u64),
) -> Vec<(u64, u64)> {
    let within = parts
        .into_iter()
        .map(|(first, last)| (first.max(start), last.min(end)));
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (first, last) in within.filter(|(first, last)| first < last) {
        match ranges.last_mut() {
            Some(before) if before.1 == first => before.1 = last,
            _ => ranges.push((first, last)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_and_joined() {
        let parts = [
            (0, 512),
            (4096, 8192),
            (8192, 12_288),
            (20_480, 24_576),
            (30_000, 40_000),
        ];
        assert_eq!(
            joined(parts, (6000, 22_000)),
            [(6000, 12_288), (20_480, 22_000)]
        );
        assert_eq!(joined(parts, (512, 4096)), []);
    }
}
