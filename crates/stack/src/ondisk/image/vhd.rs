//! VHD, of Virtual PC and Hyper-V: a footer at the end, and in dynamic disks a bitmap before each block.
//!
//! From Microsoft's *Virtual Hard Disk Image Format Specification* 1.0; tested with `qemu-img`. The bitmap of a block
//! of 2 MiB is 512 bytes, so that consecutive blocks have different phases of 4 KiB; some tools place blocks so that
//! data begin aligned, and the table shows it.

use plumb_geometry::SECTOR;

use super::map::{ENTRIES_MAX, Map, step};
use super::{DiskImage, Lies, cluster};
use crate::ondisk::area::{Area, Block};

const FOOTER: usize = 512;
const FIXED: u32 = 2;
const DYNAMIC: u32 = 3;
const DIFFERENCING: u32 = 4;
const ABSENT: u32 = u32::MAX;

pub(super) fn read(area: &Area<'_>) -> Option<Result<DiskImage, String>> {
    let is_footer = |block: &Block| block.has(0, b"conectix");
    let last = area
        .len()
        .checked_sub(FOOTER as u64)
        .and_then(|at| area.read(at, FOOTER))
        .filter(is_footer);
    // Dynamic disks have a copy at the beginning.
    let copy = || area.read(0, FOOTER).filter(is_footer);
    let mut problems = Vec::new();
    let footer = match last {
        Some(footer) => footer,
        None => {
            problems.push("VHD has no footer at its end, its copy is good".to_owned());
            copy()?
        }
    };
    if checksum(&footer, FOOTER, 64) != footer.be32(64) {
        problems.push("checksum of the footer of VHD does not fit".to_owned());
    }
    let size = footer.be64(48);
    let image = |lies, cells, notes, map| DiskImage {
        format: "VHD",
        size,
        lies,
        cells,
        elsewhere: None,
        notes,
        problems,
        map,
    };
    Some(match footer.be32(60) {
        FIXED => Ok(image(
            Lies::Run { start: 0 },
            Vec::new(),
            Vec::new(),
            Ok(Map::Run { start: 0 }),
        )),
        kind @ (DYNAMIC | DIFFERENCING) => match table(area, footer.be64(16)) {
            Ok(BlockTable { block, places }) => {
                let bitmap = bitmap_bytes(block);
                let (step, start) = step(&places, block, block + bitmap);
                let mut notes = Vec::new();
                let mut map = Ok(Map::Table { block, places });
                if kind == DIFFERENCING {
                    notes.push("sectors that it does not have are in its parent".to_owned());
                    map = Err("parts of it are in its parent".to_owned());
                }
                Ok(image(
                    Lies::Blocks { block: step, start },
                    vec![cluster(block)],
                    notes,
                    map,
                ))
            }
            Err(why) => Err(why),
        },
        kind => Err(format!(
            "VHD: found a disk of type {kind}, expected 2, 3 or 4"
        )),
    })
}

struct BlockTable {
    block: u64,
    places: Vec<Option<u64>>,
}

/// The header of a dynamic disk, and its table of blocks.
fn table(area: &Area<'_>, at: u64) -> Result<BlockTable, String> {
    let header = area
        .read(at, 1024)
        .filter(|header| header.has(0, b"cxsparse"));
    let header = header.ok_or("VHD: no header of a dynamic disk")?;
    let (entries, block) = (u64::from(header.be32(28)), u64::from(header.be32(32)));
    if !block.is_power_of_two() || block < SECTOR || entries > ENTRIES_MAX {
        return Err(format!(
            "VHD: found {entries} blocks of {block} bytes, expected at most {ENTRIES_MAX} of a power of two"
        ));
    }
    let table = area
        .read(header.be64(16), 4 * entries as usize)
        .ok_or("VHD: its table of blocks is cut off")?;
    let places = (0..entries as usize).map(|entry| match table.be32(4 * entry) {
        ABSENT => None,
        sector => Some(u64::from(sector) * SECTOR + bitmap_bytes(block)),
    });
    Ok(BlockTable {
        block,
        places: places.collect(),
    })
}

/// A bit for each sector, in whole sectors.
fn bitmap_bytes(block: u64) -> u64 {
    (block / SECTOR).div_ceil(8).next_multiple_of(SECTOR)
}

/// The complement of the sum of all bytes but the checksum's own.
fn checksum(block: &Block, len: usize, at: usize) -> u32 {
    let others = (0..len).filter(|byte| !(at..at + 4).contains(byte));
    !others
        .map(|byte| u32::from(block.byte(byte)))
        .fold(0, u32::wrapping_add)
}
