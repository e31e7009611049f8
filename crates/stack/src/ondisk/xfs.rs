//! XFS: the superblock at byte 0, big-endian.
//!
//! Offsets from the XFS Algorithms & Data Structures guide, *Superblocks*; held against `xfs_db`.

use super::area::{Area, Block};
use super::checksum::{self, Mismatch};
use super::content::{Cell, Content, Layer};
use crate::grid::CellKind;
use crate::node::keys;

const VERSION_AT: usize = 100;
/// The first version with checksums.
const VERSION_CHECKSUMS: u16 = 5;
const CHECKSUM_AT: usize = 224;
const SECTOR_BYTES: std::ops::RangeInclusive<u16> = 512..=32_768;
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 512..=65_536;

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let sector = area.read(0, 512).filter(|block| block.has(0, b"XFSB"))?;
    let (block, mismatch) = checksum::read(area, 0, checked_bytes(&sector), verify)?;
    if let Some(mismatch) = mismatch {
        let content = Content::new("xfs", Layer::FileSystem);
        return Some(content.broken("superblock of xfs at byte 0", &mismatch));
    }
    let bytes = u64::from(block.be32(4));
    if !BLOCK_BYTES.contains(&bytes) || !bytes.is_power_of_two() {
        return None;
    }
    // Both in blocks of the file system, unlike the parameters of mkfs.xfs.
    let (unit, width) = (u64::from(block.be32(184)), u64::from(block.be32(188)));
    let content = Content::new("xfs", Layer::FileSystem)
        .sized(block.be64(8).checked_mul(bytes))
        .length(keys::FS_BLOCK, bytes)
        .length(keys::FS_SECTOR, block.be16(102))
        .length(keys::FS_STRIPE_UNIT, unit * bytes)
        .length(keys::FS_STRIPE_WIDTH, width * bytes)
        .length(keys::FS_LOG_STRIPE_UNIT, log_unit(block.be32(196)))
        .cell(Cell::unit(bytes, CellKind::FileSystemBlock));
    Some(content)
}

fn has_checksum(block: &Block) -> bool {
    block.be16(VERSION_AT) & 0xf == VERSION_CHECKSUMS
}

/// The checksum is that of a whole sector of the file system.
fn checked_bytes(block: &Block) -> usize {
    let sector = block.be16(102);
    let is_valid = SECTOR_BYTES.contains(&sector) && sector.is_power_of_two();
    if has_checksum(block) && is_valid {
        usize::from(sector)
    } else {
        512
    }
}

/// The one field that is little-endian, and zero while it is computed.
fn verify(block: &Block) -> Option<Mismatch> {
    let after = block
        .bytes()
        .get(CHECKSUM_AT + 4..)
        .filter(|_| has_checksum(block))?;
    let expected = checksum::crc32c([block.run(0, CHECKSUM_AT), &[0; 4], after]);
    // In the order of its bytes, as `xfs_db` prints it.
    Mismatch::between(block.be32(CHECKSUM_AT), expected.swap_bytes())
}

/// Version 2 logs without a stripe unit say 1.
fn log_unit(bytes: u32) -> u32 {
    if bytes > 1 { bytes } else { 0 }
}
