//! btrfs: the superblock at 64 KiB.
//!
//! Offsets from the on-disk format page of its documentation; tested with `btrfs inspect-internal dump-super`. The
//! positions of chunks are in a separate tree, which is not read.

use twox_hash::XxHash64;

use super::area::{Area, Block};
use super::checksum::{self, Mismatch};
use super::content::{Cell, Content, Layer};
use crate::grid::CellKind;
use crate::node::keys;

const AT: u64 = 64 << 10;
/// The checksum takes up to 32 bytes; the data that it covers follow.
const CHECKED_FROM: usize = 32;
const TYPE_CRC32C: u16 = 0;
const TYPE_XXHASH64: u16 = 1;

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let (block, mismatch) = checksum::read(area, AT, 4096, verify)?;
    if !block.has(0x40, b"_BHRfS_M") {
        return None;
    }
    let layer = Layer::Btrfs {
        uuid: block.field(0x20),
        devices: block.le64(0x88),
    };
    if let Some(mismatch) = mismatch {
        return Some(
            Content::new("btrfs", layer).broken("superblock of btrfs at byte 65,536", &mismatch),
        );
    }
    let (sector, node) = (u64::from(block.le32(0x90)), u64::from(block.le32(0x94)));
    if block.le64(0x30) != AT || !sector.is_power_of_two() || !node.is_power_of_two() {
        return None;
    }
    // The item of this device begins at 0xc9, its size 8 bytes later; the superblock's own size is that of all.
    let content = Content::new("btrfs", layer)
        .sized(Some(block.le64(0xd1)))
        .length(keys::FS_BLOCK, sector)
        .length(keys::FS_NODE, node)
        .cell(Cell::unit(sector, CellKind::FileSystemBlock));
    Some(content)
}

/// SHA-256 and BLAKE2b are not verified. Others are printed in the order of their bytes, as `btrfs` prints them.
fn verify(block: &Block) -> Option<Mismatch> {
    let checked = block
        .bytes()
        .get(CHECKED_FROM..)
        .filter(|_| block.has(0x40, b"_BHRfS_M"))?;
    match block.le16(0xc4) {
        TYPE_CRC32C => Mismatch::between(block.be32(0), checksum::crc32c([checked]).swap_bytes()),
        TYPE_XXHASH64 => {
            Mismatch::between(block.be64(0), XxHash64::oneshot(0, checked).swap_bytes())
        }
        _ => None,
    }
}
