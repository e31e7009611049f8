//! Swap space: its mark at the end of the first page, for any page size.
//!
//! From `include/linux/swap.h` (`union swap_header`); held against `mkswap`.

use super::area::{Area, Block};
use super::content::{Cell, Content, Layer};
use crate::grid::CellKind;
use crate::node::keys;

const PAGES: [u64; 5] = [4096, 8192, 16_384, 32_768, 65_536];

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let page = PAGES.into_iter().find(|page| is_marked(area, *page))?;
    let header = area.read(1024, 8)?;
    let content = Content::new("swap", Layer::Swap)
        .sized(pages(&header).and_then(|pages| pages.checked_mul(page)))
        .length(keys::FS_BLOCK, page)
        .cell(Cell::unit(page, CellKind::FileSystemBlock));
    Some(content)
}

fn is_marked(area: &Area<'_>, page: u64) -> bool {
    area.read(page - 10, 10)
        .is_some_and(|mark| mark.has(0, b"SWAPSPACE2"))
}

/// Version 1, then the number of the last page, in the order of bytes of the machine.
fn pages(header: &Block) -> Option<u64> {
    let last = match (header.le32(0), header.be32(0)) {
        (1, _) => header.le32(4),
        (_, 1) => header.be32(4),
        _ => return None,
    };
    Some(u64::from(last) + 1)
}
