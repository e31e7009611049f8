//! Arrays of md, from `/proc/mdstat`, `mdadm --detail` and `mdadm --examine` together.
//!
//! The first two know members and chunk; only superblocks, which `--examine` prints, know the start of the data.
//! Formats 0.90 and 1.0 keep their superblock at the end, so that data begin at 0 (md(4)).

use std::collections::HashMap;

use plumb_geometry::{Bytes, ParityLayout, SmallSort};

use super::names;
use crate::builder::Builder;
use crate::dm_table::missing;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::md::{self, kind_of, layout_of};
use crate::node::{Member, Placing, keys};
use crate::obstacle::Obstacle;

/// Most members that an array may claim.
const MEMBERS_MAX: u32 = 4096;

/// An array as one tool describes it.
#[derive(Clone, Debug)]
pub(super) struct PrintedArray {
    pub(super) node: NodeId,
    pub(super) level: Option<String>,
    pub(super) chunk: Option<Bytes>,
    pub(super) layout: ChunkLayout,
    /// `0.90`, `1.2`, `external:imsm`.
    pub(super) metadata: Option<String>,
    /// How many members it should have.
    pub(super) disks: Option<u32>,
    /// Members by number as mdstat names them: `dm-3` may be known by another name later.
    pub(super) named: Vec<(u32, String)>,
    /// Members by slot, no spares.
    pub(super) members: Vec<(u32, NodeId)>,
    /// A reshape is running, so positions are not reliable.
    pub(super) moving: bool,
    pub(super) source: Source,
}

/// How chunks move or are copied, as printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkLayout {
    pub(super) parity: Option<ParityLayout>,
    /// Copies of RAID 10.
    pub(super) copies: Option<u32>,
}

impl ChunkLayout {
    /// `left-symmetric`, `near=2`, `near=1, far=2`.
    pub(super) fn parse(word: &str) -> ChunkLayout {
        let parity = match word.trim() {
            "left-asymmetric" => Some(ParityLayout::LeftAsymmetric),
            "right-asymmetric" => Some(ParityLayout::RightAsymmetric),
            "left-symmetric" => Some(ParityLayout::LeftSymmetric),
            "right-symmetric" => Some(ParityLayout::RightSymmetric),
            _ => None,
        };
        let copies = word.split(", ").filter_map(|part| {
            let (kind, count) = part.trim().split_once('=')?;
            let is_copies = matches!(kind, "near" | "far" | "offset");
            count
                .parse::<u32>()
                .ok()
                .filter(|count| is_copies && (1..=255).contains(count))
        });
        ChunkLayout {
            parity,
            copies: copies.reduce(u32::saturating_mul),
        }
    }

    /// The numbers of `drivers/md/raid5.h`.
    pub(super) fn algorithm(number: u32) -> ChunkLayout {
        ChunkLayout {
            parity: layout_of(number),
            copies: None,
        }
    }
}

/// The fields of a member's superblock.
#[derive(Clone, Debug)]
pub(super) struct Superblock {
    pub(super) member: NodeId,
    /// First byte of data.
    pub(super) data: Option<Bytes>,
    /// Its own share of the array, for linear ones.
    pub(super) len: Option<Bytes>,
    pub(super) uuid: Option<String>,
    /// `host:0`.
    pub(super) name: Option<String>,
    /// `None` for a spare.
    pub(super) slot: Option<u32>,
    /// Its fields about the array; its node is filled in later.
    pub(super) level: Option<String>,
    pub(super) chunk: Option<Bytes>,
    pub(super) layout: ChunkLayout,
    pub(super) metadata: Option<String>,
    pub(super) disks: Option<u32>,
    pub(super) moving: bool,
    pub(super) source: Source,
}

/// Joins and places.
pub(super) fn place_all(builder: &mut Builder) {
    let superblocks = std::mem::take(&mut builder.linux.superblocks);
    let mut arrays: Vec<PrintedArray> = Vec::new();
    let mut by_node: HashMap<NodeId, usize> = HashMap::new();
    for mut array in std::mem::take(&mut builder.linux.arrays) {
        for (number, name) in std::mem::take(&mut array.named) {
            array.members.push((number, names::device(builder, &name)));
        }
        match by_node.get(&array.node) {
            Some(at) => arrays[*at].merge(array),
            None => {
                by_node.insert(array.node, arrays.len());
                arrays.push(array);
            }
        }
    }
    let mut member_of: HashMap<NodeId, usize> = HashMap::new();
    for (at, array) in arrays.iter().enumerate() {
        for (_, member) in &array.members {
            member_of.entry(*member).or_insert(at);
        }
    }
    let mut starts: HashMap<NodeId, &Superblock> = HashMap::new();
    let mut unnamed: HashMap<&str, Vec<&Superblock>> = HashMap::new();
    for superblock in &superblocks {
        builder.fact(
            superblock.member,
            keys::CONTENT,
            "md member",
            &superblock.source,
        );
        starts.entry(superblock.member).or_insert(superblock);
        match (member_of.get(&superblock.member), &superblock.uuid) {
            (Some(at), _) => arrays[*at].learn(superblock),
            (None, Some(uuid)) => unnamed.entry(uuid).or_default().push(superblock),
            (None, None) => {}
        }
    }
    let mut unnamed: Vec<_> = unnamed.into_iter().collect();
    unnamed.small_sort_by_key(|(uuid, _)| *uuid);
    for (uuid, blocks) in unnamed {
        arrays.extend(assembled(builder, uuid, &blocks));
    }
    for array in &arrays {
        place(builder, array, &starts);
    }
}

/// An array that only the superblocks of its members tell of.
fn assembled(builder: &mut Builder, uuid: &str, blocks: &[&Superblock]) -> Option<PrintedArray> {
    let first = blocks.first()?;
    // mdadm makes /dev/md/NAME of `host:NAME`.
    let name = first
        .name
        .as_deref()
        .and_then(|name| name.split(':').next_back())
        .filter(|name| !name.is_empty());
    let node = builder.node(&format!("md/{}", name.unwrap_or(uuid)));
    let mut array = PrintedArray::new(node, first.source.clone());
    for block in blocks {
        array.learn(block);
        array
            .members
            .extend(block.slot.map(|slot| (slot, block.member)));
    }
    Some(array)
}

impl PrintedArray {
    /// An array with a name and no other facts.
    pub(super) fn new(node: NodeId, source: Source) -> PrintedArray {
        PrintedArray {
            node,
            level: None,
            chunk: None,
            layout: ChunkLayout::default(),
            metadata: None,
            disks: None,
            named: Vec::new(),
            members: Vec::new(),
            moving: false,
            source,
        }
    }

    fn merge(&mut self, other: PrintedArray) {
        self.level = self.level.take().or(other.level);
        self.chunk = self.chunk.or(other.chunk);
        self.metadata = self.metadata.take().or(other.metadata);
        self.disks = self.disks.or(other.disks);
        self.layout.parity = self.layout.parity.or(other.layout.parity);
        self.layout.copies = self.layout.copies.or(other.layout.copies);
        self.moving |= other.moving;
        // `--detail` knows slots; mdstat only numbers, which differ after a disk was replaced.
        let knows_slots = |source: &Source| matches!(source, Source::Dump { tool, .. } if tool != super::mdstat::FORMAT.tool);
        if self.members.is_empty() || (knows_slots(&other.source) && !knows_slots(&self.source)) {
            self.members = other.members;
            self.source = other.source;
        }
    }

    fn learn(&mut self, block: &Superblock) {
        self.level = self.level.take().or_else(|| block.level.clone());
        self.chunk = self.chunk.or(block.chunk);
        self.metadata = self.metadata.take().or_else(|| block.metadata.clone());
        self.disks = self.disks.or(block.disks);
        self.layout.parity = self.layout.parity.or(block.layout.parity);
        self.layout.copies = self.layout.copies.or(block.layout.copies);
        self.moving |= block.moving;
    }

    /// Whether the superblock is behind the data, and data therefore begin at 0.
    fn begins_at_0(&self) -> bool {
        self.metadata.as_deref().is_some_and(|version| {
            matches!(version, "1.0" | "0.90") || version.starts_with("0.90.")
        })
    }
}

fn place(builder: &mut Builder, array: &PrintedArray, starts: &HashMap<NodeId, &Superblock>) {
    let (node, source) = (array.node, &array.source);
    builder.fact(node, keys::MANAGER, "md", source);
    for (key, value) in [
        (keys::LEVEL, &array.level),
        (keys::METADATA, &array.metadata),
    ] {
        if let Some(value) = value {
            builder.fact(node, key, value.as_str(), source);
        }
    }
    if let Some((kind, _)) = array.level.as_deref().and_then(kind_of) {
        builder.kind(node, kind, source);
    }
    for (_, member) in &array.members {
        builder.fact(*member, keys::CONTENT, "md member", source);
    }
    let placing =
        members(builder, array, starts).and_then(|members| placing(array, members, starts));
    let placing = placing.unwrap_or_else(|why| Placing::Unknown {
        members: array.members.iter().map(|(_, member)| *member).collect(),
        why,
    });
    builder.place(node, placing, source);
}

/// The members by slot, with those that are missing in their places.
fn members(
    builder: &mut Builder,
    array: &PrintedArray,
    starts: &HashMap<NodeId, &Superblock>,
) -> Result<Vec<Member>, Obstacle> {
    if array.moving {
        return Err(Obstacle::Reshaping { sector: None });
    }
    if array.members.is_empty() {
        return Err(Obstacle::MembersNotPrinted);
    }
    let disks = array
        .disks
        .unwrap_or(array.members.len() as u32)
        .min(MEMBERS_MAX);
    // Numbers of mdstat are no slots once a disk was replaced: then their order stands for the slots.
    let mut slots: Vec<NodeId> = Vec::new();
    let is_by_slot = array.members.iter().all(|(slot, _)| *slot < disks);
    if !is_by_slot {
        let mut ordered = array.members.clone();
        ordered.small_sort_by_key(|(number, _)| *number);
        slots.extend(ordered.into_iter().map(|(_, member)| member));
    }
    let by_slot: HashMap<u32, NodeId> = array.members.iter().rev().copied().collect();
    let mut members = Vec::new();
    for slot in 0..disks {
        let known = if is_by_slot {
            by_slot.get(&slot)
        } else {
            slots.get(slot as usize)
        }
        .copied();
        let Some(node) = known else {
            members.push(Member {
                node: missing(builder, array.node, slot as usize),
                start: Bytes(0),
            });
            continue;
        };
        let stated = starts.get(&node).and_then(|block| block.data);
        let start = stated
            .or_else(|| array.begins_at_0().then_some(Bytes(0)))
            .ok_or_else(|| Obstacle::DataStartInSuperblock {
                member: builder.get(node).name.clone(),
            })?;
        members.push(Member { node, start });
    }
    Ok(members)
}

fn placing(
    array: &PrintedArray,
    members: Vec<Member>,
    starts: &HashMap<NodeId, &Superblock>,
) -> Result<Placing, Obstacle> {
    let share = |member: Member| (member, starts.get(&member.node).and_then(|block| block.len));
    let array = md::Array {
        level: array.level.as_deref().unwrap_or_default(),
        chunk: array.chunk,
        layout: array.layout.parity,
        copies: array.layout.copies.unwrap_or(2),
        members: members.into_iter().map(share).collect(),
    };
    array.place(Obstacle::MemberSizesInSuperblocks)
}
