//! VHDX, of Hyper-V: regions named by a table at 192 KiB, blocks at multiples of 1 MiB.
//!
//! From Microsoft's MS-VHDX; held against `qemu-img`. A log that was not played back may hold newer tables.

use plumb_geometry::GridKind;

use super::map::{ENTRIES_MAX, Map, step};
use super::{DiskImage, Lies, cluster};
use crate::grid::CellKind;
use crate::ondisk::area::{Area, Block};
use crate::ondisk::content::Cell;

const HEADERS: [u64; 2] = [64 << 10, 128 << 10];
const REGIONS: [u64; 2] = [192 << 10, 256 << 10];
const TABLE_LEN: usize = 64 << 10;
const REGIONS_MAX: usize = 2047;
const MIB: u64 = 1 << 20;

/// GUIDs as they are in the file.
const BAT: [u8; 16] = guid(0x2dc2_7766, 0xf623, 0x4200, 0x9d64_115e_9bfd_4a08);
const METADATA: [u8; 16] = guid(0x8b7c_a206, 0x4790, 0x4b9a, 0xb8fe_575f_050f_886e);
const FILE_PARAMETERS: [u8; 16] = guid(0xcaa1_6737, 0xfa36, 0x4d43, 0xb3b6_33f0_aa44_e76b);
const DISK_SIZE: [u8; 16] = guid(0x2fa5_4224, 0xcd1b, 0x4876, 0xb211_5dbe_d83b_f4b8);
const LOGICAL_SECTOR: [u8; 16] = guid(0x8141_bf1d, 0xa96f, 0x4709, 0xba47_f233_a8fa_ab5f);
const PHYSICAL_SECTOR: [u8; 16] = guid(0xcda3_48c7, 0x445d, 0x4471, 0x9cc9_e988_5251_c556);

/// States of a block that is there, wholly or in part.
const PRESENT: u64 = 6;
const PARTLY_PRESENT: u64 = 7;
const HAS_PARENT: u32 = 2;

const fn guid(a: u32, b: u16, c: u16, d: u64) -> [u8; 16] {
    let (a, b, c, d) = (
        a.to_le_bytes(),
        b.to_le_bytes(),
        c.to_le_bytes(),
        d.to_be_bytes(),
    );
    [
        a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5], d[6],
        d[7],
    ]
}

pub(super) fn read(area: &Area<'_>) -> Option<Result<DiskImage, String>> {
    area.read(0, 8).filter(|mark| mark.has(0, b"vhdxfile"))?;
    Some(read_marked(area))
}

fn read_marked(area: &Area<'_>) -> Result<DiskImage, String> {
    let tables = REGIONS
        .into_iter()
        .filter_map(|at| area.read(at, TABLE_LEN));
    let table = tables
        .into_iter()
        .find(|table| table.has(0, b"regi"))
        .ok_or("VHDX: no table of regions")?;
    let (metadata_at, _) = region(&table, &METADATA).ok_or("VHDX: no region of metadata")?;
    let (bat_at, bat_len) = region(&table, &BAT).ok_or("VHDX: no table of blocks")?;
    let metadata = area
        .read(metadata_at, TABLE_LEN)
        .filter(|table| table.has(0, b"metadata"));
    let metadata = metadata.ok_or("VHDX: no table of metadata")?;
    let item = |guid: &[u8; 16], name: &str| {
        let at = item(&metadata, guid).and_then(|offset| metadata_at.checked_add(offset));
        at.and_then(|at| area.read(at, 8))
            .ok_or_else(|| format!("VHDX: no {name}"))
    };
    let parameters = item(&FILE_PARAMETERS, "parameters of the file")?;
    let (block, flags) = (u64::from(parameters.le32(0)), parameters.le32(4));
    let size = item(&DISK_SIZE, "size of the disk")?.le64(0);
    let logical = u64::from(item(&LOGICAL_SECTOR, "logical sector")?.le32(0));
    if !block.is_power_of_two()
        || !(MIB..=256 * MIB).contains(&block)
        || !matches!(logical, 512 | 4096)
    {
        return Err(format!(
            "VHDX: found blocks of {block} bytes and sectors of {logical}"
        ));
    }
    let mut cells = vec![cluster(block), sector(logical, CellKind::LogicalBlock)];
    if let Ok(physical) = item(&PHYSICAL_SECTOR, "physical sector") {
        cells.push(sector(physical.le32(0).into(), CellKind::PhysicalBlock));
    }
    let mut notes = Vec::new();
    // Beyond the part of tables that is read, the format still promises whole MiB.
    let (lies, mut map) = if size.div_ceil(block) > ENTRIES_MAX {
        (
            Lies::Blocks {
                block: MIB,
                start: 0,
            },
            Err(format!("it has more than {ENTRIES_MAX} blocks")),
        )
    } else {
        let places = places(area, (bat_at, bat_len), (block, size, logical))?;
        let (step, start) = step(&places, block, MIB);
        (
            Lies::Blocks { block: step, start },
            Ok(Map::Table { block, places }),
        )
    };
    if flags & HAS_PARENT != 0 {
        notes.push("sectors that it does not have are in its parent".to_owned());
        map = Err("parts of it are in its parent".to_owned());
    }
    if has_log(area) {
        notes.push("its log was not played back: newer tables may be in it".to_owned());
    }
    Ok(DiskImage {
        format: "VHDX",
        size,
        lies,
        cells,
        elsewhere: None,
        notes,
        problems: Vec::new(),
        map,
    })
}

fn sector(len: u64, what: CellKind) -> Cell {
    Cell {
        len,
        offset: 0,
        what,
        kind: GridKind::Unit,
    }
}

/// Start and length of a region.
fn region(table: &Block, guid: &[u8; 16]) -> Option<(u64, u64)> {
    let count = (table.le32(8) as usize).min(REGIONS_MAX);
    let at = (0..count)
        .map(|number| 16 + 32 * number)
        .find(|at| table.has(*at, guid))?;
    Some((table.le64(at + 16), table.le32(at + 24).into()))
}

/// The position of an item within the region of metadata.
fn item(table: &Block, guid: &[u8; 16]) -> Option<u64> {
    let count = usize::from(table.le16(10)).min(REGIONS_MAX);
    let at = (0..count)
        .map(|number| 32 + 32 * number)
        .find(|at| table.has(*at, guid))?;
    Some(table.le32(at + 16).into())
}

/// At regular distances the table has an entry for a bitmap.
fn places(
    area: &Area<'_>,
    (at, len): (u64, u64),
    (block, size, logical): (u64, u64, u64),
) -> Result<Vec<Option<u64>>, String> {
    let between = ((1 << 23) * logical / block).max(1);
    let blocks = size.div_ceil(block);
    let entries = blocks.saturating_add(blocks / between);
    if entries.saturating_mul(8) > len {
        return Err(format!(
            "VHDX: found {blocks} blocks, and a table of {len} bytes"
        ));
    }
    let table = area
        .read(at, 8 * entries as usize)
        .ok_or("VHDX: its table of blocks is cut off")?;
    let place = |number: u64| {
        let entry = table.le64(8 * (number + number / between) as usize);
        matches!(entry & 7, PRESENT | PARTLY_PRESENT).then_some((entry >> 20).saturating_mul(MIB))
    };
    Ok((0..blocks).map(place).collect())
}

/// The newer of the two headers names a log when there is something in it.
fn has_log(area: &Area<'_>) -> bool {
    let headers = HEADERS
        .into_iter()
        .filter_map(|at| area.read(at, 96))
        .filter(|header| header.has(0, b"head"));
    headers
        .max_by_key(|header| header.le64(8))
        .is_some_and(|header| header.run(48, 16).iter().any(|byte| *byte != 0))
}
