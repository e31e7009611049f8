//! XFS: the superblock at byte 0, big-endian.
//!
//! Offsets from the XFS Algorithms & Data Structures guide, *Superblocks*; held against `xfs_db`.

use super::area::Area;
use super::content::{Cell, Content, Layer};
use crate::grid::What;
use crate::node::keys;

const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 512..=65_536;

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let block = area.read(0, 512)?;
    let bytes = u64::from(block.be32(4));
    if !block.has(0, b"XFSB") || !BLOCK_BYTES.contains(&bytes) || !bytes.is_power_of_two() {
        return None;
    }
    // Both in blocks of the file system, unlike what mkfs.xfs takes.
    let (unit, width) = (u64::from(block.be32(184)), u64::from(block.be32(188)));
    let content = Content::new("xfs", Layer::FileSystem)
        .sized(block.be64(8).checked_mul(bytes))
        .fact(keys::FS_BLOCK, bytes)
        .fact(keys::FS_SECTOR, block.be16(102))
        .fact(keys::FS_STRIPE_UNIT, unit * bytes)
        .fact(keys::FS_STRIPE_WIDTH, width * bytes)
        .fact(keys::FS_LOG_STRIPE_UNIT, log_unit(block.be32(196)))
        .cell(Cell::unit(bytes, What::FileSystemBlock));
    Some(content)
}

/// Version 2 logs without a stripe unit say 1.
fn log_unit(bytes: u32) -> u32 {
    if bytes > 1 { bytes } else { 0 }
}
