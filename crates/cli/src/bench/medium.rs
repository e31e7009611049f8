//! Detects targets that answer without a medium: a page cache, or an unwritten range.

use plumb_load::Target;
use plumb_report::format;
use plumb_sys::extents::{self, flag};

/// Pieces of a file that are looked at.
const EXTENTS_MAX: usize = 1 << 16;

/// That a target is read through the page cache.
pub fn cached(target: &Target) -> Option<String> {
    let name = target.name();
    let words = "its file system refuses direct I/O: this is the speed of the page cache";
    (!target.is_direct()).then(|| format!("{name}: {words}"))
}

/// That parts of a file were never written, so that no medium has to be asked for them.
pub fn unwritten(target: &Target) -> Option<String> {
    let (name, all) = (target.name(), target.size_bytes());
    let written = written_bytes(target).filter(|written| *written < all)?;
    let (written, all) = (format::bytes(written), format::bytes(all));
    Some(format!(
        "{name}: {written} of {all} were ever written: reads of the rest touch no medium"
    ))
}

/// Bytes of a file that are no hole, and not only reserved; `None` for devices, and if its file system does not state
/// it.
fn written_bytes(target: &Target) -> Option<u64> {
    let is_file = !target.is_block_device();
    let found = is_file.then(|| extents::of_file(target.path(), EXTENTS_MAX).ok())?;
    let found = found.filter(|found| !found.is_cut)?;
    let written = found
        .extents
        .iter()
        .filter(|extent| extent.flags & flag::UNWRITTEN == 0);
    let end = |extent: &plumb_sys::FileExtent| {
        extent
            .logical_bytes
            .saturating_add(extent.len_bytes)
            .min(target.size_bytes())
    };
    Some(
        written
            .map(|extent| end(extent).saturating_sub(extent.logical_bytes))
            .sum(),
    )
}
