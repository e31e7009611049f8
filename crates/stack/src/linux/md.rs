//! Arrays of md: the files about their members in `/sys/block/mdN/md`, and the placement of bytes.
//!
//! The kernel's `Documentation/admin-guide/md.rst` describes the files. An array that is not running shows no members;
//! only their superblocks then have the start of its data.

use plumb_geometry::{Bytes, SECTOR};
use plumb_sys::Directory;

use super::host::Host;
use super::reader::SysfsReader;
use super::sysfs;
use crate::builder::Builder;
use crate::dm_table::missing;
use crate::graph::NodeId;
use crate::md::{Array, copies_of, kind_of, layout_of};
use crate::node::{Member, Placing, keys};
use crate::obstacle::Obstacle;

/// The layout of RAID 10 where none is stated: two near copies, one far.
const NEAR_2: u32 = 0x102;

/// Most members that an array may claim; md itself allows a few hundred.
const MEMBERS_MAX: u64 = 4096;

/// The directory `md` of an array.
#[derive(Debug, Default)]
pub(super) struct Md {
    level: Option<String>,
    layout: Option<i64>,
    chunk_bytes: u64,
    disks: u64,
    metadata: Option<String>,
    state: Option<String>,
    /// The position of a reshape; `None` if none is running.
    reshaping: Option<String>,
    members: Vec<MdMember>,
    slaves: Vec<String>,
}

/// A directory `dev-…` of an array.
#[derive(Debug)]
struct MdMember {
    name: String,
    /// `None` for a spare.
    slot: Option<u64>,
    offset_sectors: Option<u64>,
    size_kb: Option<u64>,
}

/// Reads it.
pub(super) fn read(
    reader: &mut SysfsReader,
    array: &Directory,
    device: &Directory,
    name: &str,
) -> Md {
    let mut md = Md {
        level: reader.word(array, "level"),
        layout: reader.number(array, "layout", name),
        chunk_bytes: reader.number(array, "chunk_size", name).unwrap_or(0),
        // While a reshape is under way the old number follows in brackets: `4 (3)`.
        disks: reader
            .text(array, "raid_disks")
            .and_then(first_number)
            .unwrap_or(0),
        metadata: reader.word(array, "metadata_version"),
        state: reader.word(array, "array_state"),
        reshaping: reader
            .word(array, "reshape_position")
            .filter(|position| position != "none"),
        members: Vec::new(),
        slaves: Vec::new(),
    };
    let mut entries = array.names().unwrap_or_default();
    entries.sort_unstable();
    for entry in entries {
        let Some(member) = entry.strip_prefix("dev-") else {
            continue;
        };
        let Some(dir) = reader.child(array, &entry) else {
            continue;
        };
        let slot = reader.text(&dir, "slot").and_then(|slot| slot.parse().ok());
        let offset_sectors = reader.number(&dir, "offset", name);
        let size_kb = reader.number(&dir, "size", name);
        md.members.push(MdMember {
            name: member.to_owned(),
            slot,
            offset_sectors,
            size_kb,
        });
    }
    if md.members.is_empty() {
        md.slaves = reader.names(device, "slaves");
    }
    md
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Paths to one disk, as md once joined them, are copies like those of RAID 1.
fn level_of(level: &str) -> &str {
    if level == "multipath" { "raid1" } else { level }
}

/// Adds the kind of an array and the positions of its bytes.
pub(super) fn tell(host: &Host, builder: &mut Builder, node: NodeId, name: &str, md: &Md) {
    let source = sysfs(&format!("{name}/md"));
    builder.fact(node, keys::MANAGER, "md", &source);
    for (key, value) in [(keys::LEVEL, &md.level), (keys::METADATA, &md.metadata)] {
        if let Some(value) = value {
            builder.fact(node, key, value.as_str(), &source);
        }
    }
    let level = md.level.as_deref().unwrap_or_default();
    if let Some((kind, _)) = kind_of(level_of(level)) {
        builder.kind(node, kind, &source);
    }
    let placing =
        match members(host, builder, node, md).and_then(|members| placing(level, md, members)) {
            Ok(placing) => placing,
            Err(why) => {
                let known = md.members.iter().map(|member| &member.name);
                let members = known
                    .chain(&md.slaves)
                    .map(|member| host.device(builder, member))
                    .collect();
                Placing::Unknown { members, why }
            }
        };
    builder.place(node, placing, &source);
}

/// The members by slot, with those that are missing in their places.
fn members(
    host: &Host,
    builder: &mut Builder,
    node: NodeId,
    md: &Md,
) -> Result<Vec<(Member, Option<u64>)>, Obstacle> {
    if md.members.is_empty() {
        let state = md.state.as_deref().unwrap_or("not running");
        return Err(Obstacle::ArrayState {
            state: state.to_owned(),
        });
    }
    if let Some(position) = &md.reshaping {
        return Err(Obstacle::Reshaping {
            sector: Some(position.to_string()),
        });
    }
    if md.disks > MEMBERS_MAX {
        return Err(Obstacle::TooManyMembers { members: md.disks });
    }
    let mut members = Vec::new();
    for slot in 0..md.disks {
        let found = md.members.iter().find(|member| member.slot == Some(slot));
        members.push(match found {
            Some(member) => {
                let start = member
                    .offset_sectors
                    .and_then(|sectors| sectors.checked_mul(SECTOR));
                let start = start.ok_or_else(|| Obstacle::DataStart {
                    member: member.name.clone(),
                })?;
                (
                    Member {
                        node: host.device(builder, &member.name),
                        start: Bytes(start),
                    },
                    member.size_kb,
                )
            }
            None => {
                let text = format!("{} runs without its member {slot}", builder.get(node).name);
                builder.note(text);
                (
                    Member {
                        node: missing(builder, node, slot as usize),
                        start: Bytes(0),
                    },
                    None,
                )
            }
        });
    }
    Ok(members)
}

fn placing(level: &str, md: &Md, members: Vec<(Member, Option<u64>)>) -> Result<Placing, Obstacle> {
    let number = md.layout.and_then(|layout| u32::try_from(layout).ok());
    let bytes = |kb: u64| kb.checked_mul(1024).map(Bytes);
    let array = Array {
        level: level_of(level),
        chunk: Some(Bytes(md.chunk_bytes)).filter(|chunk| chunk.0 > 0),
        layout: number.and_then(layout_of),
        copies: copies_of(number.unwrap_or(NEAR_2)),
        members: members
            .into_iter()
            .map(|(member, kb)| (member, kb.and_then(bytes)))
            .collect(),
    };
    array.place(Obstacle::MemberSize)
}
