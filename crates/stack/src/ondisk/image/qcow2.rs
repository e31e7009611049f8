//! qcow2, versions 2 and 3: clusters at multiples of their length, named by tables of two levels.
//!
//! From QEMU's `docs/interop/qcow2.rst`; held against `qemu-img info` and `qemu-img map`.

use std::io;

use plumb_geometry::SECTOR;
use plumb_label::Disk;

use super::map::{ImagePlace, Map, first_missing};
use super::{DiskImage, Lies, cluster};
use crate::obstacle::ImageObstacle;
use crate::ondisk::area::Area;

const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;
const INCOMPATIBLE_DIRTY: u64 = 1;
const INCOMPATIBLE_CORRUPT: u64 = 2;
const INCOMPATIBLE_DATA_FILE: u64 = 4;
const INCOMPATIBLE_EXTENDED: u64 = 16;
/// The data file alone is the disk.
const AUTOCLEAR_RAW: u64 = 2;
const EXTENSION_DATA_FILE: u32 = 0x4441_5441;
const EXTENSIONS_MAX: usize = 16;
const SUBCLUSTERS: u64 = 32;
/// Second-level tables that are looked at for data behind the end of the file: 512 GiB in clusters of 64 KiB.
const TABLES_LOOKED_AT: usize = 1024;

const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
const COMPRESSED: u64 = 1 << 62;
/// Of a cluster with one reference.
const COPIED: u64 = 1 << 63;
const ALL_ZEROS: u64 = 1;

/// Positions of the clusters found.
#[derive(Default)]
pub(super) struct Held {
    /// At multiples of their length.
    pub(super) has_own: bool,
    /// Packed behind each other.
    pub(super) is_compressed: bool,
    /// In another file.
    pub(super) is_in_backing: bool,
}

/// The data to find a cluster.
pub(super) struct Tables {
    cluster: u64,
    first_at: u64,
    first_entries: u64,
    entry_bytes: u64,
    has_backing: bool,
}

pub(super) fn read(area: &Area<'_>) -> Option<Result<DiskImage, String>> {
    let header = area
        .read(0, 104)
        .filter(|header| header.has(0, b"QFI\xfb"))?;
    let version = header.be32(4);
    let bits = header.be32(20);
    if !matches!(version, 2 | 3) || !CLUSTER_BITS.contains(&bits) {
        return Some(Err(format!(
            "qcow2: found version {version} with clusters of 2^{bits}, expected 2 or 3 with 2^9 to 2^21"
        )));
    }
    let bytes = 1_u64 << bits;
    let features = |at| if version == 3 { header.be64(at) } else { 0 };
    let (incompatible, autoclear) = (features(72), features(88));
    let is_extended = incompatible & INCOMPATIBLE_EXTENDED != 0;
    let header_len = if version == 3 { header.be32(100) } else { 72 };
    let has_backing = header.be64(8) != 0;
    let mut notes = Vec::new();
    if has_backing {
        let name = backing(area, header.be64(8), header.be32(16));
        notes.push(format!(
            "clusters that it does not have are in its backing file {name}"
        ));
    }
    if incompatible & INCOMPATIBLE_DIRTY != 0 {
        notes.push(
            "it was not closed: its reference counts may be wrong, its places are not".to_owned(),
        );
    }
    let mut problems = Vec::new();
    if incompatible & INCOMPATIBLE_CORRUPT != 0 {
        problems.push("qcow2 is marked as corrupt".to_owned());
    }
    let tables = Tables {
        cluster: bytes,
        first_at: header.be64(40),
        first_entries: header.be32(36).into(),
        entry_bytes: if is_extended { 16 } else { 8 },
        has_backing,
    };
    let mut map = Ok(Map::Qcow2(tables));
    let lies = if incompatible & INCOMPATIBLE_DATA_FILE != 0 {
        let file = data_file(area, header_len)
            .unwrap_or_else(|| "a data file that it does not name".to_owned());
        map = Err(format!("its data are in {file}"));
        match autoclear & AUTOCLEAR_RAW {
            0 => Lies::BlocksOf { file, block: bytes },
            _ => Lies::Files(vec![(Some(file), 0, header.be64(24))]),
        }
    } else {
        Lies::Blocks {
            block: bytes,
            start: 0,
        }
    };
    if header.be32(32) != 0 {
        map = Err("it is encrypted".to_owned());
    }
    // With a map the clusters are looked at.
    let elsewhere = (has_backing && map.is_err()).then_some(ImageObstacle::SomeInBacking);
    // The unit of rewriting is the content of a subcluster.
    let unit = if is_extended {
        bytes / SUBCLUSTERS
    } else {
        bytes
    };
    let cells = vec![cluster(unit)];
    Some(Ok(DiskImage {
        format: "qcow2",
        size: header.be64(24),
        lies,
        cells,
        elsewhere,
        notes,
        problems,
        map,
    }))
}

fn backing(area: &Area<'_>, at: u64, len: u32) -> String {
    let len = len.min(1023) as usize;
    area.read(at, len).map_or_else(
        || "that it does not name".to_owned(),
        |name| name.text(0, len),
    )
}

/// Extensions follow the header: kind, length, and data up to a multiple of 8.
fn data_file(area: &Area<'_>, header_len: u32) -> Option<String> {
    let mut at = u64::from(header_len);
    for _ in 0..EXTENSIONS_MAX {
        let head = area.read(at, 8)?;
        let (kind, len) = (head.be32(0), head.be32(4));
        match kind {
            0 => return None,
            EXTENSION_DATA_FILE => {
                let len = len.min(1023) as usize;
                return Some(area.read(at + 8, len)?.text(0, len));
            }
            _ => at = at.checked_add(8 + u64::from(len).next_multiple_of(8))?,
        }
    }
    None
}

impl Tables {
    pub(super) fn place(&self, file: &dyn Disk, at: u64) -> io::Result<(ImagePlace, u64)> {
        let within = at % self.cluster;
        let follow = self.cluster - within;
        let entries = self.cluster / self.entry_bytes;
        let number = at / self.cluster;
        let (first, second) = (number / entries, number % entries);
        let absent = if self.has_backing {
            ImagePlace::Elsewhere("it is in the backing file")
        } else {
            ImagePlace::Zeros
        };
        if first >= self.first_entries {
            return Ok((absent, follow));
        }
        let table = number_at(file, self.first_at, first, 8)? & OFFSET;
        if table == 0 {
            return Ok((absent, follow));
        }
        let entry = number_at(file, table, second, self.entry_bytes)?;
        let place = match entry {
            _ if entry & COMPRESSED != 0 => ImagePlace::Elsewhere("it is compressed"),
            // With subclusters their map has the flag, and the list of allocated ones.
            _ if self.entry_bytes == 8 && entry & ALL_ZEROS != 0 => ImagePlace::Zeros,
            _ if entry & OFFSET == 0 => absent,
            _ => ImagePlace::At((entry & OFFSET).saturating_add(within)),
        };
        if self.entry_bytes == 8 || !matches!(place, ImagePlace::At(_)) {
            return Ok((place, follow));
        }
        self.subcluster(
            file,
            table.saturating_add(second * 16 + 8),
            (place, within, absent),
        )
    }

    /// A byte of data or of a table that the file has ended before.
    pub(super) fn beyond(&self, file: &dyn Disk, size: u64) -> Option<u64> {
        let end = file.size_bytes();
        let first_len = self.first_entries.saturating_mul(8);
        if let Some(missing) = first_missing(self.first_at, first_len, end) {
            return Some(missing);
        }
        let tables = (0..self.first_entries).filter_map(|first| {
            Some((
                first,
                number_at(file, self.first_at, first, 8).ok()? & OFFSET,
            ))
        });
        for (first, table) in tables
            .filter(|(_, table)| *table > 0)
            .take(TABLES_LOOKED_AT)
        {
            if let Some(missing) = first_missing(table, self.cluster, end) {
                return Some(missing);
            }
            let mut bytes = vec![0; usize::try_from(self.cluster).ok()?];
            file.read_at(table, &mut bytes).ok()?;
            let per_table = self.cluster / self.entry_bytes;
            let entries = bytes
                .chunks_exact(self.entry_bytes as usize)
                .zip(first.saturating_mul(per_table)..);
            let mut missing = entries.filter_map(|(entry, number)| {
                let left = size.saturating_sub(number.saturating_mul(self.cluster));
                let (place, len) = self.run_of(entry, left)?;
                first_missing(place, len, end)
            });
            if let Some(missing) = missing.next() {
                return Some(missing);
            }
        }
        None
    }

    /// The positions of the clusters of a disk of this size, up to the first that deviates.
    pub(super) fn held(&self, file: &dyn Disk, size: u64) -> Held {
        let mut held = Held::default();
        let per_table = self.cluster / self.entry_bytes;
        let clusters = size.div_ceil(self.cluster);
        let tables = clusters.div_ceil(per_table);
        held.is_in_backing = self.has_backing && tables > self.first_entries;
        let mut looked_at = 0;
        for first in 0..tables.min(self.first_entries) {
            let Ok(table) = number_at(file, self.first_at, first, 8).map(|entry| entry & OFFSET)
            else {
                break;
            };
            if table == 0 {
                held.is_in_backing |= self.has_backing;
                continue;
            }
            let mut bytes = vec![0; self.cluster as usize];
            looked_at += 1;
            if looked_at > TABLES_LOOKED_AT || file.read_at(table, &mut bytes).is_err() {
                held.is_in_backing |= self.has_backing;
                break;
            }
            let there = per_table.min(clusters - first * per_table) as usize;
            for entry in bytes.chunks_exact(self.entry_bytes as usize).take(there) {
                self.note_entry(entry, &mut held);
            }
            if held.has_own && (held.is_compressed || held.is_in_backing) {
                break;
            }
        }
        held
    }

    fn note_entry(&self, entry: &[u8], held: &mut Held) {
        let Some(found) = entry.first_chunk().map(|entry| u64::from_be_bytes(*entry)) else {
            return;
        };
        if found & COMPRESSED != 0 {
            held.is_compressed = true;
            return;
        }
        held.has_own |= found & OFFSET != 0;
        let is_whole = match entry.get(8..).and_then(|map| map.first_chunk()) {
            // Each subcluster is here or known to be zeros.
            Some(map) => {
                let map = u64::from_be_bytes(*map);
                (map as u32) | ((map >> 32) as u32) == u32::MAX
            }
            None => found & (OFFSET | ALL_ZEROS) != 0,
        };
        held.is_in_backing |= self.has_backing && !is_whole;
    }

    /// The bytes that an entry of a second-level table needs in the file: the part of the cluster that the disk has.
    fn run_of(&self, entry: &[u8], left: u64) -> Option<(u64, u64)> {
        let found = u64::from_be_bytes(*entry.first_chunk()?);
        if found & COMPRESSED != 0 {
            return Some(self.compressed(found));
        }
        let place = Some(found & OFFSET).filter(|place| *place > 0)?;
        let there = match entry.get(8..).and_then(|map| map.first_chunk()) {
            // Up to the last subcluster that is there.
            Some(map) => {
                u64::from(32 - (u64::from_be_bytes(*map) as u32).leading_zeros()) * self.cluster
                    / SUBCLUSTERS
            }
            None if found & ALL_ZEROS != 0 => 0,
            None => self.cluster,
        };
        Some((place, there.min(left)))
    }

    /// Data of unknown length: they reach into the last of the sectors that are counted behind the first one.
    fn compressed(&self, entry: u64) -> (u64, u64) {
        let bits = 62 - (self.cluster.trailing_zeros() - 8);
        let place = entry & ((1 << bits) - 1);
        let more = (entry & !COMPRESSED & !COPIED) >> bits;
        let last = (place & !(SECTOR - 1)) + more * SECTOR;
        (place, last.max(place) + 1 - place)
    }

    /// Low half of the map: allocated; high half: reads as zeros.
    fn subcluster(
        &self,
        file: &dyn Disk,
        map_at: u64,
        (place, within, absent): (ImagePlace, u64, ImagePlace),
    ) -> io::Result<(ImagePlace, u64)> {
        let unit = self.cluster / SUBCLUSTERS;
        let (map, number) = (number_at(file, map_at, 0, 8)?, within / unit);
        let follow = unit - within % unit;
        let place = match (map >> number & 1, map >> (32 + number) & 1) {
            (1, _) => place,
            (_, 1) => ImagePlace::Zeros,
            _ => absent,
        };
        Ok((place, follow))
    }
}

fn number_at(file: &dyn Disk, table: u64, number: u64, entry_bytes: u64) -> io::Result<u64> {
    let at = number
        .checked_mul(entry_bytes)
        .and_then(|at| at.checked_add(table));
    let mut bytes = [0; 8];
    file.read_at(at.ok_or(io::ErrorKind::UnexpectedEof)?, &mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}
