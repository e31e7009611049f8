//! VMDK, of VMware: a file of grains, or a text that names files with extents.
//!
//! From VMware's *Virtual Disk Format* 5.0; tested with `qemu-img`. Other formats of grains (`COWD`, `SESPARSE`) are
//! reported and not read.

use plumb_geometry::SECTOR;

use super::map::{ENTRIES_MAX, Map, step};
use super::{DiskImage, Lies, cluster};
use crate::obstacle::ImageObstacle;
use crate::ondisk::area::{Area, Block};

const DESCRIPTOR_MAX: u64 = 64 << 10;
const EXTENTS_MAX: usize = 4096;
/// Entries of a grain table.
const TABLE_ENTRIES_MAX: u64 = 4096;
const FLAG_ZERO_GRAINS: u32 = 4;
const FLAG_COMPRESSED: u32 = 1 << 16;
/// An entry of 1 is a grain of zeros, where the header allows it.
const ZERO_GRAIN: u32 = 1;

pub(super) fn read(area: &Area<'_>) -> Option<Result<DiskImage, String>> {
    let header = area.read(0, 512.min(area.len() as usize))?;
    if header.has(0, b"KDMV") {
        return Some(sparse(area, &header));
    }
    if header.has(0, b"COWD") {
        return Some(Err(
            "VMDK: grains of the format COWD are not read".to_owned()
        ));
    }
    let is_text = header
        .text(0, 64)
        .to_ascii_lowercase()
        .starts_with("# disk descriptorfile");
    is_text.then(|| {
        let len = area.len().min(DESCRIPTOR_MAX) as usize;
        descriptor(
            &area
                .read(0, len)
                .ok_or("VMDK: its text cannot be read")?
                .text(0, len),
        )
    })
}

fn image(size: u64, lies: Lies, map: Result<Map, String>) -> DiskImage {
    let (notes, problems) = (Vec::new(), Vec::new());
    DiskImage {
        format: "VMDK",
        size,
        lies,
        cells: Vec::new(),
        elsewhere: None,
        notes,
        problems,
        map,
    }
}

fn sparse(area: &Area<'_>, header: &Block) -> Result<DiskImage, String> {
    let size = header
        .le64(12)
        .checked_mul(SECTOR)
        .ok_or("VMDK: a size beyond 64 bits")?;
    let grain = header
        .le64(20)
        .checked_mul(SECTOR)
        .filter(|grain| grain.is_power_of_two());
    let grain = grain.ok_or("VMDK: grains of no power of two")?;
    let flags = header.le32(8);
    if flags & FLAG_COMPRESSED != 0 {
        let fault = ImageObstacle::GrainsCompressed;
        let why = "its grains are compressed".to_owned();
        return Ok(image(size, Lies::Unknown(fault), Err(why)));
    }
    if size.div_ceil(grain) > ENTRIES_MAX {
        let why = format!("it has more than {ENTRIES_MAX} grains");
        let fault = ImageObstacle::TooManyBlocks(ENTRIES_MAX);
        return Ok(image(size, Lies::Unknown(fault), Err(why)));
    }
    let places = grains(area, header, (size, grain))?;
    // Tools place grains one after the other from the first one on.
    let (step, start) = step(&places, grain, grain);
    let map = Map::Table {
        block: grain,
        places,
    };
    let mut image = image(size, Lies::Blocks { block: step, start }, Ok(map));
    image.cells.push(cluster(grain));
    Ok(image)
}

/// A directory of tables with a fixed number of grains each.
fn grains(
    area: &Area<'_>,
    header: &Block,
    (size, grain): (u64, u64),
) -> Result<Vec<Option<u64>>, String> {
    let (per_table, count) = (u64::from(header.le32(44)), size.div_ceil(grain));
    if !(1..=TABLE_ENTRIES_MAX).contains(&per_table) {
        return Err(format!(
            "VMDK: found {count} grains, {per_table} in each table"
        ));
    }
    let has_zeros = header.le32(8) & FLAG_ZERO_GRAINS != 0;
    let tables = count.div_ceil(per_table);
    let directory = header
        .le64(56)
        .checked_mul(SECTOR)
        .and_then(|at| area.read(at, 4 * tables as usize));
    let directory = directory.ok_or("VMDK: its directory of grains is cut off")?;
    let mut places = Vec::new();
    for table in 0..tables {
        let at = u64::from(directory.le32(4 * table as usize)) * SECTOR;
        let len = per_table.min(count - table * per_table);
        if at == 0 {
            places.extend((0..len).map(|_| None));
            continue;
        }
        let entries = area
            .read(at, 4 * len as usize)
            .ok_or("VMDK: a table of grains is cut off")?;
        places.extend(
            (0..len as usize).map(|number| match entries.le32(4 * number) {
                0 => None,
                ZERO_GRAIN if has_zeros => None,
                sector => Some(u64::from(sector) * SECTOR),
            }),
        );
    }
    Ok(places)
}

/// Lines as `RW 131072 FLAT "disk-flat.vmdk" 0`: access, sectors, kind, file, first sector of a flat one.
fn descriptor(text: &str) -> Result<DiskImage, String> {
    let mut files = Vec::new();
    let mut unknown = None;
    let mut size: u64 = 0;
    for line in text.lines() {
        let (head, rest) = line
            .split_once('"')
            .map_or((line, None), |(head, rest)| (head, rest.rsplit_once('"')));
        let words: Vec<&str> = head.split_whitespace().collect();
        let ["RW" | "RDONLY" | "NOACCESS", sectors, kind] = words[..] else {
            continue;
        };
        let len = sectors
            .parse()
            .ok()
            .and_then(|sectors: u64| sectors.checked_mul(SECTOR));
        let len = len.ok_or_else(|| format!("VMDK: found an extent of {sectors:?} sectors"))?;
        let (file, start) = match rest {
            Some((file, start)) => (Some(file.to_owned()), start.trim().parse().unwrap_or(0_u64)),
            None => (None, 0),
        };
        if !matches!(kind, "FLAT" | "ZERO" | "VMFS" | "VMFSRAW" | "VMFSRDM") {
            unknown.get_or_insert_with(|| ImageObstacle::ExtentKind(kind.to_owned()));
        }
        files.push((file, start.saturating_mul(SECTOR), len));
        size = size.saturating_add(len);
        if files.len() > EXTENTS_MAX {
            return Err(format!("VMDK: more than {EXTENTS_MAX} extents"));
        }
    }
    let lies = match (unknown, files.is_empty()) {
        (_, true) => return Err("VMDK: its text names no extent".to_owned()),
        (Some(why), _) => Lies::Unknown(why),
        (None, _) => Lies::Files(files),
    };
    Ok(image(
        size,
        lies,
        Err("its data are in other files".to_owned()),
    ))
}
