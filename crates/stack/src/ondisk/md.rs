//! md: superblocks of members, versions 0.90 and 1.0 to 1.2, and the arrays that they make up.
//!
//! Offsets from the kernel's `include/uapi/linux/raid/md_p.h`; tested with `mdadm --examine`. Arrays that are being
//! reshaped have two layouts at once, and are not placed.

use crate::problem_ids::ProblemId;
use plumb_geometry::SECTOR;

use super::area::{Area, Block, uuid};
use super::checksum::Mismatch;
use super::content::{Content, Layer};
use crate::node::keys;

pub(super) mod array;

const MAGIC: u32 = 0xa92b_4efc;
/// A superblock of either kind takes 4 KiB, roles included.
const LEN: usize = 4096;
const ROLES_AT: usize = 256;
const ROLES_MAX: usize = (LEN - ROLES_AT) / 2;
/// Most members that version 0.90 describes.
const DISKS_MAX_OLD: u32 = 27;
const OLD_RESERVED: u64 = 64 << 10;

/// Features of version 1.
const FEATURE_RESHAPE: u32 = 0x4;

/// The fields of one member about itself and its array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) version: &'static str,
    pub(crate) uuid: [u8; 16],
    /// As version 1 has it, with or without the host before it; empty in 0.90.
    pub(crate) name: String,
    /// Number of the device in 0.90.
    pub(crate) minor: Option<u32>,
    pub(crate) level: i32,
    pub(crate) layout: u32,
    pub(crate) chunk: u64,
    pub(crate) disks: u32,
    /// Place among the members; `None` for a spare, a journal or a failed one.
    pub(crate) role: Option<u32>,
    pub(crate) data_start: u64,
    pub(crate) data_len: u64,
    pub(crate) events: u64,
    pub(crate) is_reshaping: bool,
}

impl Superblock {
    /// The level in the kernel's words; `None` for one that is not known.
    pub(crate) fn level_word(&self) -> Option<&'static str> {
        Some(match self.level {
            -1 => "linear",
            0 => "raid0",
            1 => "raid1",
            4 => "raid4",
            5 => "raid5",
            6 => "raid6",
            10 => "raid10",
            _ => return None,
        })
    }
}

pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    let last_1_0 = (area.len() / SECTOR)
        .checked_sub(16)
        .map(|sector| (sector & !7) * SECTOR);
    let places = [(Some(4096), "1.2"), (Some(0), "1.1"), (last_1_0, "1.0")];
    let found = places
        .into_iter()
        .find_map(|(at, version)| version_1(area, at?, version));
    let found = found.or_else(|| version_0(area))?;
    let (superblock, problems) = found;
    let mut content =
        Content::new("md member", Layer::Nothing).length(keys::DATA_START, superblock.data_start);
    content.metadata = Some(superblock.version.to_string());
    content.format = format!("md {}", superblock.version);
    content.size = superblock.data_start.checked_add(superblock.data_len);
    content.problems = problems;
    content.layer = Layer::Array(Box::new(superblock));
    Some(content)
}

type FoundSuperblock = (Superblock, Vec<(ProblemId, String)>);

fn version_1(area: &Area<'_>, at: u64, version: &'static str) -> Option<FoundSuperblock> {
    let block = area.read(at, LEN)?;
    let is_one = block.le32(0) == MAGIC && block.le32(4) == 1 && block.le64(144) == at / SECTOR;
    let roles = block.le32(220) as usize;
    if !is_one || roles > ROLES_MAX {
        return None;
    }
    let bytes = |sectors: u64| sectors.checked_mul(SECTOR);
    let number = block.le32(160) as usize;
    let role = if number < roles {
        block.le16(ROLES_AT + 2 * number)
    } else {
        u16::MAX
    };
    let disks = block.le32(92);
    let superblock = Superblock {
        version,
        uuid: block.field(16),
        name: block.text(32, 32),
        minor: None,
        level: block.le32(72) as i32,
        layout: block.le32(76),
        chunk: bytes(block.le32(88).into())?,
        disks,
        role: Some(u32::from(role)).filter(|role| *role < disks.min(ROLES_MAX as u32)),
        data_start: bytes(block.le64(128))?,
        data_len: bytes(block.le64(136))?,
        events: block.le64(200),
        is_reshaping: block.le32(8) & FEATURE_RESHAPE != 0,
    };
    let (expected, found) = (checksum_1(&block, roles), block.le32(216));
    Some((superblock, problems(expected, found)))
}

fn problems(expected: u32, found: u32) -> Vec<(ProblemId, String)> {
    Mismatch::between(found, expected)
        .map(|mismatch| mismatch.problem("md superblock"))
        .into_iter()
        .collect()
}

/// The sum of all words but the checksum's own, the carry added in again.
fn checksum_1(block: &Block, roles: usize) -> u32 {
    let len = ROLES_AT + 2 * roles;
    let words = (0..len / 4)
        .filter(|word| *word != 216 / 4)
        .map(|word| u64::from(block.le32(4 * word)));
    let rest = if len % 4 == 2 {
        u64::from(block.le16(len - 2))
    } else {
        0
    };
    fold(words.sum::<u64>() + rest)
}

fn fold(sum: u64) -> u32 {
    ((sum & 0xffff_ffff) + (sum >> 32)) as u32
}

/// Words in the order of bytes of the machine that made it.
fn version_0(area: &Area<'_>) -> Option<FoundSuperblock> {
    let at = (area.len() & !(OLD_RESERVED - 1)).checked_sub(OLD_RESERVED)?;
    let block = area.read(at, LEN)?;
    let is_little = block.le32(0) == MAGIC;
    let word = |at: usize| {
        if is_little {
            block.le32(4 * at)
        } else {
            block.be32(4 * at)
        }
    };
    let disks = word(10);
    if word(0) != MAGIC || (word(1), word(2)) != (0, 90) || disks > DISKS_MAX_OLD {
        return None;
    }
    let mut uuid = [0; 16];
    for (place, at) in [5, 13, 14, 15].into_iter().enumerate() {
        uuid[4 * place..][..4].copy_from_slice(&word(at).to_be_bytes());
    }
    let events = if is_little {
        (word(40), word(39))
    } else {
        (word(39), word(40))
    };
    let superblock = Superblock {
        version: "0.90",
        uuid,
        name: String::new(),
        minor: Some(word(11)),
        level: word(7) as i32,
        layout: word(64),
        chunk: word(65).into(),
        disks,
        // The descriptor of the member itself: number, major, minor, place.
        role: Some(word(992 + 3)).filter(|role| *role < disks),
        data_start: 0,
        data_len: if word(8) > 0 {
            u64::from(word(8)) * 1024
        } else {
            at
        },
        events: u64::from(events.0) << 32 | u64::from(events.1),
        // Version 0.91 is one that is being reshaped, and is not read.
        is_reshaping: false,
    };
    let sum: u64 = (0..LEN / 4)
        .filter(|at| *at != 38)
        .map(|at| u64::from(word(at)))
        .sum();
    Some((superblock, problems(fold(sum), word(38))))
}

/// The UUID as mdadm prints it.
pub(crate) fn shown(bytes: [u8; 16]) -> String {
    let plain = uuid(bytes).replace('-', "");
    let groups: Vec<&str> = (0..4).map(|at| &plain[8 * at..8 * at + 8]).collect();
    groups.join(":")
}
