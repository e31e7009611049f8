//! LUKS 1 and 2: the start of the encrypted data, and their sector size.
//!
//! From the LUKS On-Disk Format Specification 1.2.3 and 2; held against `cryptsetup luksDump`. Of LUKS 2 a copy of the
//! header answers for a damaged first one.
//!
//! Salts and digests of keys are between the fields that are read here, and the text of LUKS 2 also has tokens with
//! wrapped keys. A collection must not have them, so that only the fields are read, and of the text only the segments
//! are kept.

use plumb_geometry::{Bytes, SECTOR};
use serde_json::{Value, json};

use super::area::Area;
use super::content::{Cell, Content, Layer, ProblemId};
use crate::grid::CellKind;
use crate::obstacle::LuksFault;

const SEGMENTS: &str = "segments";
const MAGIC: &[u8] = b"LUKS\xba\xbe";
/// The second header follows the first; these are its possible sizes.
const MAGIC_SECOND: &[u8] = b"SKUL\xba\xbe";
const SECONDS: [u64; 9] = [
    0x4000, 0x8000, 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000,
];
/// Bytes of the binary header; text follows.
const BINARY_BYTES: u64 = 4096;
/// Bytes up to the version, at the beginning of both versions.
const VERSIONED: usize = 8;
/// Place of `payload-offset` in the header of version 1: 4 bytes, before the digest of the master key.
const PAYLOAD_OFFSET: u64 = 104;
/// Bytes up to `hdr_size` in the header of version 2, before its label, salt and checksum.
const SIZED: usize = 16;

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let block = area.read(0, VERSIONED)?;
    let content = match (block.has(0, MAGIC), block.be16(6)) {
        (true, 1) => version_1(u64::from(area.read(PAYLOAD_OFFSET, 4)?.be32(0))),
        (true, 2) => version_2(area),
        _ => second(area)?,
    };
    Some(within(content, area.len()))
}

/// Data that begin behind the end are nowhere. A copy of a header ends where they would begin, and lacks nothing.
fn within(mut content: Content, len: u64) -> Content {
    let Layer::Crypt { start: Ok(start) } = content.layer else {
        return content;
    };
    if start > len {
        let text = format!(
            "data of {} begin at {}, and there are {}",
            content.format,
            Bytes(start),
            Bytes(len)
        );
        content.problems.push((ProblemId::BeyondDevice, text));
    }
    if start >= len {
        content.layer = Layer::Crypt {
            start: Err(LuksFault::BeyondEnd),
        };
    }
    content
}

fn version_1(payload_sectors: u64) -> Content {
    let start = match payload_sectors {
        0 => Err(LuksFault::Detached),
        sectors => Ok(sectors * SECTOR),
    };
    let content = Content::new("crypto_LUKS", Layer::Crypt { start });
    Content {
        format: "LUKS 1".to_owned(),
        ..content
    }
    .cell(Cell::unit(SECTOR, CellKind::CryptSector))
}

fn version_2(area: &Area<'_>) -> Content {
    let first = header(area, 0).and_then(|text| segment(&text));
    let found = match &first {
        Ok(_) => first,
        Err(why) => copies(area).next().ok_or_else(|| why.clone()),
    };
    content(found)
}

/// Only the copy is left.
fn second(area: &Area<'_>) -> Option<Content> {
    let found = copies(area).next()?;
    let mut content = content(Ok(found));
    let text = "the first header of LUKS is gone, a copy of it is good".to_owned();
    content.problems.push((ProblemId::BrokenSuperblock, text));
    Some(content)
}

fn copies<'a>(area: &'a Area<'_>) -> impl Iterator<Item = Segment> + 'a {
    SECONDS.into_iter().filter_map(|at| {
        let block = area.read(at, 8)?;
        if !block.has(0, MAGIC_SECOND) {
            return None;
        }
        segment(&header(area, at).ok()?).ok()
    })
}

/// The start of the data, and their sectors.
struct Segment {
    start: u64,
    sector_bytes: u64,
}

fn content(found: Result<Segment, LuksFault>) -> Content {
    let (start, cell) = match found {
        Ok(found) => (
            Ok(found.start),
            Some(Cell::unit(found.sector_bytes, CellKind::CryptSector)),
        ),
        Err(why) => (Err(why), None),
    };
    let mut content = Content::new("crypto_LUKS", Layer::Crypt { start });
    content.format = "LUKS 2".to_owned();
    content.cells.extend(cell);
    content
}

/// The text of a header. Its length is one of nine, so that nothing large is read.
fn header(area: &Area<'_>, at: u64) -> Result<Value, LuksFault> {
    let binary = area.read(at, SIZED).ok_or(LuksFault::CutOff)?;
    let len = binary.be64(8);
    if !SECONDS.contains(&len) {
        return Err(LuksFault::Length(len));
    }
    let text_at = at.saturating_add(BINARY_BYTES);
    let text = area.read_secret(text_at, (len - BINARY_BYTES) as usize);
    let text = text.ok_or(LuksFault::CutOff)?;
    let end = text
        .bytes()
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(text.bytes().len());
    let header: Value =
        serde_json::from_slice(&text.bytes()[..end]).map_err(|_| LuksFault::NoJson)?;
    let mut kept = json!({ SEGMENTS: header[SEGMENTS] })
        .to_string()
        .into_bytes();
    // Zeros end the text, and take the place of all that is left out.
    kept.resize(text.bytes().len(), 0);
    area.keep_instead(text_at, kept);
    Ok(header)
}

/// A volume that is being re-encrypted has several segments.
fn segment(header: &Value) -> Result<Segment, LuksFault> {
    let segments = header[SEGMENTS].as_object().ok_or(LuksFault::NoSegments)?;
    let [segment] = segments.values().collect::<Vec<_>>()[..] else {
        return Err(LuksFault::Segments(segments.len() as u64));
    };
    if segment["type"] != "crypt" {
        return Err(LuksFault::NotInPlace);
    }
    let start = segment["offset"]
        .as_str()
        .and_then(|start| start.parse().ok());
    let sector_bytes = segment["sector_size"]
        .as_u64()
        .filter(|bytes| *bytes >= SECTOR);
    match (start, sector_bytes) {
        (Some(0), _) => Err(LuksFault::Detached),
        (Some(start), Some(sector_bytes)) => Ok(Segment {
            start,
            sector_bytes,
        }),
        _ => Err(LuksFault::NoStart),
    }
}
