//! btrfs: the superblock at 64 KiB.
//!
//! Offsets from the on-disk format page of its documentation; held against `btrfs inspect-internal dump-super`. Where
//! chunks lie is in a tree of its own, which is not read.

use super::area::Area;
use super::content::{Cell, Content, Layer};
use crate::grid::What;
use crate::node::keys;

const AT: u64 = 64 << 10;

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let block = area.read(AT, 4096)?;
    let is_one = block.has(0x40, b"_BHRfS_M") && block.le64(0x30) == AT;
    let (sector, node) = (u64::from(block.le32(0x90)), u64::from(block.le32(0x94)));
    if !is_one || !sector.is_power_of_two() || !node.is_power_of_two() {
        return None;
    }
    let layer = Layer::Btrfs { uuid: block.field(0x20), devices: block.le64(0x88) };
    // The item of this device begins at 0xc9, its size 8 bytes later; the superblock's own size is that of all.
    let content = Content::new("btrfs", layer)
        .sized(Some(block.le64(0xd1)))
        .fact(keys::FS_BLOCK, sector)
        .fact(keys::FS_NODE, node)
        .cell(Cell::unit(sector, What::FileSystemBlock));
    Some(content)
}
