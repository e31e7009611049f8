//! LVM 2: the label and header of a physical volume, and the text that describes its volume group.
//!
//! Offsets from lvm2's `lib/format_text/layout.h` and `lib/label/label.h`; tested with the output of `pvs` and `lvs`.
//! The text is that of one moment; of several physical volumes the newest counts. The map of a thin volume's blocks is
//! in the pool's own metadata, which are not read.

use plumb_geometry::SECTOR;

use super::area::Area;
use super::content::{Content, Layer, ProblemId};
use crate::node::keys;

pub(super) mod group;
mod text;
mod volumes;

pub(crate) use text::{LvmValue, Section};

/// The label is in one of the first sectors.
const LABEL_SECTORS: u64 = 4;
const AREAS_MAX: usize = 8;
const METADATA_MAGIC: &[u8] = b" LVM2 x[5A%r0N*>";
const METADATA_HEADER_BYTES: u64 = 512;
/// Longest text that is read: far above the limit of the tools of LVM.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// LVM's CRC-32 begins with this instead of all ones, and is not inverted at the end.
const CRC_INITIAL: u32 = 0xf597_a6cf;

/// A physical volume.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pv {
    pub(crate) uuid: String,
    /// First byte for data as the header has it.
    pub(crate) data_start: Option<u64>,
    /// Name of the group and its text; `None` before it belongs to one.
    pub(crate) group: Option<(String, Section)>,
}

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let (at, sector) = (0..LABEL_SECTORS).find_map(|number| {
        let sector = area.read(number * SECTOR, SECTOR as usize)?;
        let is_label = sector.has(0, b"LABELONE") && sector.has(24, b"LVM2 001");
        (is_label && sector.le64(8) == number).then_some((sector.le32(20) as usize, sector))
    })?;
    let mut problems = Vec::new();
    if checksum(sector.run(20, 492)) != sector.le32(16) {
        problems.push((
            ProblemId::BrokenSuperblock,
            "checksum of the label of LVM does not fit".to_owned(),
        ));
    }
    let mut next = at.saturating_add(40);
    let data = locations(&sector, &mut next);
    let metadata = locations(&sector, &mut next);
    let mut group = None;
    for (start, len) in metadata {
        match read_metadata(area, start, len) {
            Ok(found) => group = group.or(found),
            Err(why) => problems.push((
                ProblemId::BrokenSuperblock,
                format!("metadata of LVM at byte {start}: {why}"),
            )),
        }
    }
    let data_start = data.first().map(|(start, _)| *start);
    let pv = Pv {
        uuid: sector.text(at, 32),
        data_start,
        group,
    };
    let mut content =
        Content::new("LVM2 PV", Layer::Nothing).sized(Some(sector.le64(at.saturating_add(32))));
    content.problems = problems;
    if let (None, Some(start)) = (&pv.group, pv.data_start) {
        content = content.length(keys::PE_START, start);
    }
    content.layer = Layer::Volumes(Box::new(pv));
    Some(content)
}

/// Pairs of start and length, to one of zeros.
fn locations(sector: &super::area::Block, next: &mut usize) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    while found.len() < AREAS_MAX && next.saturating_add(16) <= sector.bytes().len() {
        let location = (sector.le64(*next), sector.le64(*next + 8));
        *next += 16;
        if location.0 == 0 {
            break;
        }
        found.push(location);
    }
    found
}

/// The text that an area has now; `None` in one that has none yet.
fn read_metadata(
    area: &Area<'_>,
    start: u64,
    len: u64,
) -> Result<Option<(String, Section)>, String> {
    let header = area
        .read(start, METADATA_HEADER_BYTES as usize)
        .ok_or("beyond the end of the device")?;
    if !header.has(4, METADATA_MAGIC) {
        return Err("no signature".to_owned());
    }
    if checksum(header.run(4, METADATA_HEADER_BYTES as usize - 4)) != header.le32(0) {
        return Err("checksum of its header does not fit".to_owned());
    }
    let (offset, text_len, expected) = (header.le64(40), header.le64(48), header.le32(56));
    if offset == 0 {
        return Ok(None);
    }
    let is_within =
        offset >= METADATA_HEADER_BYTES && offset < len && text_len <= len - METADATA_HEADER_BYTES;
    if !is_within || text_len > TEXT_BYTES_MAX {
        return Err(format!(
            "found a text of {text_len} bytes at {offset}, expected one within {len} bytes"
        ));
    }
    let bytes = ring(area, start, len, (offset, text_len)).ok_or("the text is cut off")?;
    if checksum(&bytes) != expected {
        return Err("checksum of the text does not fit".to_owned());
    }
    let text = String::from_utf8_lossy(&bytes);
    let parsed = text::parse(text.trim_end_matches('\0'))?;
    let group = parsed.into_iter().find_map(|(name, value)| match value {
        LvmValue::Section(section) => Some((name, section)),
        _ => None,
    });
    group
        .map(Some)
        .ok_or_else(|| "the text names no volume group".to_owned())
}

/// The area is a ring: text that does not fit at its end continues behind its header.
fn ring(area: &Area<'_>, start: u64, len: u64, (offset, text_len): (u64, u64)) -> Option<Vec<u8>> {
    let first = text_len.min(len - offset);
    let mut bytes = area
        .read(start.checked_add(offset)?, first as usize)?
        .bytes()
        .to_vec();
    let rest = area.read(
        start.checked_add(METADATA_HEADER_BYTES)?,
        (text_len - first) as usize,
    )?;
    bytes.extend_from_slice(rest.bytes());
    Some(bytes)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!CRC_INITIAL);
    hasher.update(bytes);
    !hasher.finalize()
}
