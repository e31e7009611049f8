//! Logical volumes: how each segment places its extents.

use std::collections::HashSet;

use plumb_geometry::{Bytes, GridKind, ParityLayout, SECTOR, SmallSort};

use super::group::{VolumeGroup, source};
use super::{LvmValue, Section};
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::CellKind;
use crate::node::{Chunks, Kind, Member, Part, Placing, keys};
use crate::obstacle::Obstacle;
use crate::ondisk::content::Cell;
use crate::ondisk::nodes;

pub(super) fn tell(builder: &mut Builder, group: &VolumeGroup<'_>) {
    let volumes = || group.text.sections("logical_volumes");
    // A snapshot's own volume is only the store of the changes.
    let stores: HashSet<&str> = volumes()
        .filter_map(|(_, volume)| volume.section("segment1"))
        .filter(|segment| segment.text("type") == Some("snapshot"))
        .filter_map(|segment| segment.text("cow_store"))
        .collect();
    for (name, volume) in volumes() {
        let segments: Vec<&Section> = volume.segments();
        if segments
            .iter()
            .any(|segment| segment.text("type") == Some("snapshot"))
        {
            continue;
        }
        let id = group.volume(builder, name);
        builder.fact(id, keys::MANAGER, "lvm", &source());
        if stores.contains(name) {
            builder.kind(id, Kind::LogicalVolume, &source());
            let why = Obstacle::Snapshot;
            place(
                builder,
                id,
                Placing::Unknown {
                    members: Vec::new(),
                    why,
                },
            );
            continue;
        }
        let extents = segments
            .iter()
            .filter_map(|segment| segment.number("extent_count"));
        let len = extents
            .fold(0_u64, u64::saturating_add)
            .saturating_mul(group.extent);
        if len > 0 {
            builder.size(id, Bytes(len), &source());
        }
        tell_volume(builder, group, id, &segments);
    }
}

impl Section {
    /// `segment1`, `segment2` and so on, in order of their extents.
    fn segments(&self) -> Vec<&Section> {
        let count = self.number("segment_count").unwrap_or(1).clamp(1, 1 << 16);
        let mut found: Vec<&Section> = (1..=count)
            .map_while(|number| self.section(&format!("segment{number}")))
            .collect();
        found.small_sort_by_key(|segment| segment.number("start_extent"));
        found
    }
}

impl VolumeGroup<'_> {
    fn volume(&self, builder: &mut Builder, name: &str) -> NodeId {
        builder.node(&format!("{}/{name}", self.name))
    }

    /// An area: an extent of a physical volume, or of a volume of the same group.
    fn area(&self, builder: &mut Builder, name: &str, extent: u64) -> Member {
        let (node, from) = match self.pvs.get(name) {
            Some((node, start)) => (*node, *start),
            None => (self.volume(builder, name), 0),
        };
        Member {
            node,
            start: Bytes(extent.saturating_mul(self.extent).saturating_add(from)),
        }
    }

    /// The areas of a list `["name", extent, "name", extent, …]`.
    fn areas(&self, builder: &mut Builder, list: &[LvmValue]) -> Vec<Member> {
        let pairs = list.chunks_exact(2).filter_map(|pair| match pair {
            [LvmValue::Text(name), LvmValue::Number(extent)] => {
                Some((name, u64::try_from(*extent).ok()?))
            }
            _ => None,
        });
        pairs
            .map(|(name, extent)| self.area(builder, name, extent))
            .collect()
    }
}

fn tell_volume(builder: &mut Builder, group: &VolumeGroup<'_>, id: NodeId, segments: &[&Section]) {
    if let [segment] = segments {
        let (kind, placing) = placed(builder, group, id, segment);
        builder.kind(id, kind, &source());
        return place(builder, id, placing);
    }
    let mut parts = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let bytes = |name| {
            segment
                .number(name)
                .and_then(|extents| extents.checked_mul(group.extent))
                .map(Bytes)
        };
        let (Some(upper), len) = (bytes("start_extent"), bytes("extent_count")) else {
            continue;
        };
        let below = group_of_one(builder, group, segment).unwrap_or_else(|| {
            let name = format!("{}[{number}]", builder.get(id).name);
            let piece = builder.node(&name);
            let (kind, placing) = placed(builder, group, piece, segment);
            builder.kind(piece, kind, &source());
            builder.place(piece, placing, &source());
            Member {
                node: piece,
                start: Bytes(0),
            }
        });
        parts.push(Part {
            upper,
            node: below.node,
            start: below.start,
            len,
        });
    }
    builder.kind(id, Kind::LogicalVolume, &source());
    let nothing = Placing::Unknown {
        members: Vec::new(),
        why: Obstacle::NotInGroupText,
    };
    let placing = if parts.is_empty() {
        nothing
    } else {
        Placing::Parts { parts }
    };
    place(builder, id, placing);
}

/// The one area of a linear segment.
fn group_of_one(
    builder: &mut Builder,
    group: &VolumeGroup<'_>,
    segment: &Section,
) -> Option<Member> {
    let is_plain = matches!(segment.text("type"), Some("striped" | "linear"));
    match group.areas(builder, segment.list("stripes"))[..] {
        [member] if is_plain => Some(member),
        _ => None,
    }
}

/// The kernel's layout of a volume in use is not doubted if layers between differ from the text's.
fn place(builder: &mut Builder, id: NodeId, placing: Placing) {
    let is_known = !matches!(
        builder.get(id).placing,
        Placing::Leaf | Placing::Unknown { .. }
    );
    let is_plain = matches!(placing, Placing::Parts { .. } | Placing::Chunks(_));
    if !is_known || is_plain && builder.get(id).kind != Kind::Cache {
        builder.place(id, placing, &source());
    }
}

fn placed(
    builder: &mut Builder,
    group: &VolumeGroup<'_>,
    id: NodeId,
    segment: &Section,
) -> (Kind, Placing) {
    let sectors = |name| {
        segment
            .number(name)
            .and_then(|sectors| sectors.checked_mul(SECTOR))
    };
    let len = segment
        .number("extent_count")
        .and_then(|extents| extents.checked_mul(group.extent))
        .map(Bytes);
    let kind = segment.text("type").unwrap_or_default();
    // A volume of the same group that is named by itself.
    let mut below = |name: &str| Some(group.area(builder, segment.text(name)?, 0));
    let found = match kind {
        "striped" | "linear" => {
            let members = group.areas(builder, segment.list("stripes"));
            return striped(members, sectors("stripe_size"), len);
        }
        "mirror" => Some((
            Kind::Mirror,
            Placing::Copies {
                members: group.areas(builder, segment.list("mirrors")),
            },
        )),
        "thin-pool" => below("pool").map(|data| (Kind::ThinPool, nodes::run(data.node, 0, len))),
        "cache-pool" => {
            below("data").map(|data| (Kind::LogicalVolume, nodes::run(data.node, 0, len)))
        }
        "cache" | "writecache" => {
            below("origin").map(|data| (Kind::Cache, nodes::run(data.node, 0, len)))
        }
        "thin" => thin(group, segment, below("thin_pool")),
        raid if raid.starts_with("raid") => raided(builder, group, segment, raid),
        _ => None,
    };
    if let ("thin-pool", Some(len)) = (kind, sectors("chunk_size")) {
        let cell = Cell {
            len,
            offset: 0,
            what: CellKind::Cluster,
            kind: GridKind::Boundary,
        };
        nodes::tell_cell(builder, id, cell, &source());
    }
    found.unwrap_or_else(|| {
        let why = Obstacle::UnknownSegment {
            segment: kind.to_owned(),
        };
        (
            Kind::LogicalVolume,
            Placing::Unknown {
                members: Vec::new(),
                why,
            },
        )
    })
}

fn striped(members: Vec<Member>, chunk: Option<u64>, len: Option<Bytes>) -> (Kind, Placing) {
    match (&members[..], chunk) {
        ([one], _) => (Kind::LogicalVolume, nodes::run(one.node, one.start.0, len)),
        ([_, _, ..], Some(chunk)) if chunk > 0 => {
            let chunks = Chunks {
                chunk: Bytes(chunk),
                members,
                parity: 0,
                copies: 1,
                layout: None,
            };
            (Kind::Stripe, Placing::Chunks(chunks))
        }
        _ => {
            let members = members.iter().map(|member| member.node).collect();
            (
                Kind::LogicalVolume,
                Placing::Unknown {
                    members,
                    why: Obstacle::NotInGroupText,
                },
            )
        }
    }
}

/// Blocks of the pool, each of the pool's chunk.
fn thin(
    group: &VolumeGroup<'_>,
    segment: &Section,
    pool: Option<Member>,
) -> Option<(Kind, Placing)> {
    let text = group
        .text
        .section("logical_volumes")?
        .section(segment.text("thin_pool")?)?
        .section("segment1")?;
    let block = text
        .number("chunk_size")
        .filter(|sectors| *sectors > 0)?
        .checked_mul(SECTOR)?;
    Some((
        Kind::ThinVolume,
        Placing::Blocks {
            block: Bytes(block),
            member: pool?,
        },
    ))
}

/// Members are volumes of their own, each after the one with its metadata where there is such.
fn raided(
    builder: &mut Builder,
    group: &VolumeGroup<'_>,
    segment: &Section,
    level: &str,
) -> Option<(Kind, Placing)> {
    let (list, step) = match segment.list("raid0_lvs") {
        [] => (segment.list("raids"), 2),
        list => (list, 1),
    };
    let names = list
        .iter()
        .skip(step - 1)
        .step_by(step)
        .filter_map(|name| match name {
            LvmValue::Text(name) => Some(name.as_str()),
            _ => None,
        });
    let members: Vec<Member> = names.map(|name| group.area(builder, name, 0)).collect();
    if level == "raid1" {
        return Some((Kind::Mirror, Placing::Copies { members }));
    }
    let chunk = Bytes(
        segment
            .number("stripe_size")
            .filter(|sectors| *sectors > 0)?
            .checked_mul(SECTOR)?,
    );
    let (kind, parity, copies) = match level.get(..5)? {
        "raid4" | "raid5" => (Kind::ParityRaid, 1, 1),
        "raid6" => (Kind::ParityRaid, 2, 1),
        _ if level.starts_with("raid10") => (Kind::Stripe, 0, 2),
        "raid0" => (Kind::Stripe, 0, 1),
        _ => return None,
    };
    if members.is_empty() {
        return None;
    }
    let layout = match level.split_once('_') {
        // lvmraid(7): without a layout it is this one, and the table that LVM gives the kernel says raid5_ls.
        None if level == "raid5" => Some(ParityLayout::LeftSymmetric),
        Some((_, "la")) => Some(ParityLayout::LeftAsymmetric),
        Some((_, "ra")) => Some(ParityLayout::RightAsymmetric),
        Some((_, "ls")) => Some(ParityLayout::LeftSymmetric),
        Some((_, "rs")) => Some(ParityLayout::RightSymmetric),
        _ => None,
    };
    Some((
        kind,
        Placing::Chunks(Chunks {
            chunk,
            members,
            parity,
            copies,
            layout,
        }),
    ))
}
