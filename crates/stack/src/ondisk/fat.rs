//! FAT12, FAT16, FAT32, exFAT and NTFS: the boot sector, and the start of the partition that it has noted.
//!
//! From Microsoft's *FAT: General Overview of On-Disk Format* 1.03 and *exFAT file system specification*, and for NTFS
//! from the BIOS parameter block of ntfs-3g's `layout.h`; held against `mkfs.fat`, `mkfs.exfat` and `mkfs.ntfs`.
//! A wrong start stops firmware and Windows from booting, and no data are lost by it.

use plumb_geometry::GridKind;

use super::area::{Area, Block};
use super::content::{Cell, Content, Layer};
use crate::grid::CellKind;
use crate::node::keys;

const SECTOR_BYTES: std::ops::RangeInclusive<u64> = 512..=4096;

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let block = area.read(0, 512)?;
    if !block.has(510, &[0x55, 0xaa]) {
        return None;
    }
    match block.run(3, 8) {
        b"EXFAT   " => exfat(&block),
        b"NTFS    " => ntfs(&block),
        _ => fat(&block),
    }
}

fn content(
    name: &'static str,
    sector: u64,
    hidden_sectors: u64,
    cluster: u64,
    data_start: u64,
) -> Option<Content> {
    let cell = Cell {
        len: cluster,
        offset: data_start.checked_rem(cluster)?,
        what: CellKind::FileSystemBlock,
        kind: GridKind::Unit,
    };
    let mut content = Content::new(name, Layer::FileSystem)
        .length(keys::FS_BLOCK, cluster)
        .length(keys::FS_SECTOR, sector)
        .length(keys::FS_DATA_START, data_start)
        .cell(cell);
    // Most tools that do not know the start write 0.
    if let Some(hidden) = hidden_sectors
        .checked_mul(sector)
        .filter(|hidden| *hidden > 0)
    {
        content = content.length(keys::HIDDEN_BYTES, hidden);
        content.hidden = Some(hidden);
    }
    Some(content)
}

fn sector_bytes(bytes: u64) -> Option<u64> {
    (SECTOR_BYTES.contains(&bytes) && bytes.is_power_of_two()).then_some(bytes)
}

fn exfat(block: &Block) -> Option<Content> {
    let (sector_log, cluster_log) = (block.byte(108), block.byte(109));
    if !(9..=12).contains(&sector_log) || cluster_log > 25 - sector_log {
        return None;
    }
    let sector = 1_u64 << sector_log;
    let data_start = u64::from(block.le32(88)) * sector;
    let content = content(
        "exfat",
        sector,
        block.le64(64),
        sector << cluster_log,
        data_start,
    )?;
    Some(content.sized(block.le64(72).checked_mul(sector)))
}

fn ntfs(block: &Block) -> Option<Content> {
    let sector = sector_bytes(block.le16(0x0b).into())?;
    // Above 128 the byte is a negative power of two.
    let sectors = match block.byte(0x0d) {
        0 => return None,
        count @ 1..=128 => u64::from(count),
        power => 1_u64
            .checked_shl(256 - u32::from(power))
            .filter(|sectors| *sectors <= 4096)?,
    };
    let cluster = sector
        .checked_mul(sectors)
        .filter(|cluster| cluster.is_power_of_two())?;
    let content = content("ntfs", sector, block.le32(0x1c).into(), cluster, 0)?;
    // One sector more holds the copy of the boot sector.
    Some(content.sized(block.le64(0x28).checked_add(1)?.checked_mul(sector)))
}

fn fat(block: &Block) -> Option<Content> {
    let sector = sector_bytes(block.le16(0x0b).into())?;
    let (per_cluster, reserved, copies) = (block.byte(0x0d), block.le16(0x0e), block.byte(0x10));
    let is_sound = per_cluster.is_power_of_two() && reserved > 0 && (1..=2).contains(&copies);
    if !is_sound || !matches!(block.byte(0x15), 0xf0 | 0xf8..=0xff) {
        return None;
    }
    let wide = |short: u16, long: u32| {
        if short > 0 {
            u64::from(short)
        } else {
            u64::from(long)
        }
    };
    let table = wide(block.le16(0x16), block.le32(0x24));
    let total = wide(block.le16(0x13), block.le32(0x20));
    let root = (u64::from(block.le16(0x11)) * 32).div_ceil(sector);
    let data = u64::from(reserved) + u64::from(copies) * table + root;
    if table == 0 || total <= data {
        return None;
    }
    let cluster = sector * u64::from(per_cluster);
    let mut content = content(
        "vfat",
        sector,
        block.le32(0x1c).into(),
        cluster,
        data * sector,
    )?;
    content.format = match (total - data) / u64::from(per_cluster) {
        _ if block.le16(0x16) == 0 => "FAT32",
        0..4085 => "FAT12",
        _ => "FAT16",
    }
    .to_owned();
    Some(content.sized(total.checked_mul(sector)))
}
