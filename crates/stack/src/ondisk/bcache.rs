//! bcache: the superblock at 4 KiB of backing devices and caches.
//!
//! Offsets from `include/uapi/linux/bcache.h` (`struct cache_sb`); held against `bcache-super-show`.

use plumb_geometry::SECTOR;

use super::area::Area;
use super::content::{Content, Layer};
use crate::node::keys;

const AT: u64 = 4096;
const MAGIC: [u8; 16] = [
    0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81,
];
/// Start of the data on the first version of backing devices, which does not state it.
const START_FIRST_SECTORS: u64 = 16;

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let block = area.read(AT, 512)?;
    if !block.has(24, &MAGIC) || block.le64(8) != AT / SECTOR {
        return None;
    }
    let start = match block.le64(16) {
        1 => Some(START_FIRST_SECTORS),
        // With a stated start, and the same with features.
        4 | 6 => Some(block.le64(184)),
        _ => None,
    };
    let layer = match start.and_then(|sectors| sectors.checked_mul(SECTOR)) {
        Some(start) => Layer::Cached { start },
        None => Layer::Nothing,
    };
    let name = if start.is_some() {
        "bcache"
    } else {
        "bcache cache"
    };
    let block_bytes = u64::from(block.le16(192)) * SECTOR;
    Some(if start.is_some() {
        Content::new(name, layer)
    } else {
        Content::new(name, layer).length(keys::CACHE_BLOCK, block_bytes)
    })
}
