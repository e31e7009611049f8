//! ext2, ext3 and ext4: the superblock at byte 1024.
//!
//! Offsets and feature bits from the kernel's `Documentation/filesystems/ext4/super.rst`; held against `dumpe2fs`.

use super::area::{Area, Block};
use super::checksum::{self, Mismatch};
use super::content::{Cell, Content, Layer, ProblemId};
use crate::grid::CellKind;
use crate::node::keys;

const AT: u64 = 1024;
const MAGIC: u16 = 0xef53;
/// Blocks are 1 KiB << this; ext4 knows up to 64 KiB.
const LOG_BLOCK_MAX: u32 = 6;

/// Clean, with errors, and orphans being recovered.
const STATE_MAX: u16 = 7;
const REVISION_MAX: u32 = 1;
/// Linux, Hurd, Masix, FreeBSD, Lites.
const SYSTEM_MAX: u32 = 4;

const COMPAT_HAS_JOURNAL: u32 = 0x4;
const INCOMPAT_JOURNAL_DEVICE: u32 = 0x8;
const INCOMPAT_64BIT: u32 = 0x80;
/// Extents, 64 bit, multiple mount protection, flexible groups, inodes with attributes, metadata checksum seed, large
/// directories, inline data, encryption: only ext4 has them.
const INCOMPAT_EXT4: u32 =
    0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x2000 | 0x4000 | 0x8000 | 0x1_0000;
/// Huge files, checksums of groups, many links, extra inode size, clusters, checksums of metadata.
const RO_COMPAT_EXT4: u32 = 0x8 | 0x10 | 0x20 | 0x40 | 0x200 | 0x400;

const RO_COMPAT_CHECKSUMS: u32 = 0x400;
/// The only type there is.
const CHECKSUM_CRC32C: u8 = 1;
const CHECKSUM_AT: usize = 0x3fc;

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let (block, mismatch) = checksum::read(area, AT, 1024, verify)?;
    if block.le16(0x38) != MAGIC {
        return None;
    }
    let (compat, incompat, ro_compat) = (block.le32(0x5c), block.le32(0x60), block.le32(0x64));
    let name = if incompat & INCOMPAT_EXT4 != 0 || ro_compat & RO_COMPAT_EXT4 != 0 {
        "ext4"
    } else if compat & COMPAT_HAS_JOURNAL != 0 {
        "ext3"
    } else {
        "ext2"
    };
    if let Some(mismatch) = mismatch {
        let place = format!("superblock of {name} at byte 1,024");
        return Some(Content::new(name, Layer::FileSystem).broken(&place, &mismatch));
    }
    let log = block.le32(0x18);
    let impossible = |what: String| {
        let text =
            format!("superblock of {name} at byte 1,024: {what}; nothing else of it is believed");
        let mut content = Content::new(name, Layer::FileSystem);
        content.problems.push((ProblemId::BrokenSuperblock, text));
        content
    };
    if log > LOG_BLOCK_MAX {
        let what = format!(
            "found blocks of 2^{} bytes, expected 2^10 to 2^16",
            u64::from(log) + 10
        );
        return is_likely(&block).then(|| impossible(what));
    }
    if incompat & INCOMPAT_JOURNAL_DEVICE != 0 {
        return Some(Content::new("jbd", Layer::Nothing));
    }
    let bytes = 1024_u64 << log;
    let high = if incompat & INCOMPAT_64BIT != 0 {
        u64::from(block.le32(0x150)) << 32
    } else {
        0
    };
    let blocks = high | u64::from(block.le32(0x4));
    if blocks == 0 {
        return is_likely(&block)
            .then(|| impossible("found 0 blocks, expected one at least".to_owned()));
    }
    let content = Content::new(name, Layer::FileSystem)
        .sized(blocks.checked_mul(bytes))
        .length(keys::FS_BLOCK, bytes)
        .length(keys::FS_STRIPE_UNIT, u64::from(block.le16(0x164)) * bytes)
        .length(keys::FS_STRIPE_WIDTH, u64::from(block.le32(0x170)) * bytes)
        .cell(Cell::unit(bytes, CellKind::FileSystemBlock));
    Some(content)
}

/// Whether more than the two bytes of the mark are those of a superblock: state, revision and system have few values.
fn is_likely(block: &Block) -> bool {
    let (state, revision, system) = (block.le16(0x3a), block.le32(0x4c), block.le32(0x48));
    state <= STATE_MAX && revision <= REVISION_MAX && system <= SYSTEM_MAX && block.le32(0) > 0
}

/// CRC-32C from all ones, not inverted at its end.
fn verify(block: &Block) -> Option<Mismatch> {
    let has_one =
        block.le32(0x64) & RO_COMPAT_CHECKSUMS != 0 && block.byte(0x175) == CHECKSUM_CRC32C;
    let expected = has_one.then(|| !checksum::crc32c([block.run(0, CHECKSUM_AT)]))?;
    Mismatch::between(block.le32(CHECKSUM_AT), expected)
}
