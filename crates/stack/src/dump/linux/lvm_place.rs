//! Positions of the segments of logical volumes: first extent of the physical volume, plus extents, plus the stripe.

use plumb_geometry::{Bytes, Grid, GridKind};

use super::lvm::Segment;
use super::names;
use crate::builder::Builder;
use crate::dm_table::{RaidShape, shape};
use crate::graph::NodeId;
use crate::grid::{CellKind, GridFact};
use crate::node::{Chunks, Kind, Member, Part, Placing, keys};
use crate::obstacle::Obstacle;

/// Places every volume that no table of the device mapper has placed.
pub(super) fn place_all(builder: &mut Builder) {
    let volumes = std::mem::take(&mut builder.linux.volumes);
    for (node, (group, source)) in &volumes.groups {
        if let Some(extent) = volumes.extents.get(group) {
            builder.fact(*node, keys::PE_SIZE, *extent, source);
        }
    }
    let mut pools: Vec<(&String, &Segment)> = Vec::new();
    for (name, segments) in &volumes.segments {
        let node = names::device(builder, name);
        let is_placed = !matches!(
            builder.get(node).placing,
            Placing::Leaf | Placing::Unknown { .. }
        );
        let mut placer = Placer {
            builder,
            node,
            starts: &volumes.starts,
        };
        for segment in segments.values() {
            placer.tell(segment);
        }
        if is_placed {
            continue;
        }
        if let Some(segment) = segments
            .values()
            .next()
            .filter(|segment| segment.kind == "thin")
        {
            // Their block is a fact of the pool.
            pools.push((name, segment));
            continue;
        }
        placer.place(
            segments.values(),
            volumes.extents.get(group_of(name)).copied(),
        );
    }
    for (name, segment) in pools {
        place_thin(builder, name, segment);
    }
    for segment in volumes
        .segments
        .values()
        .flat_map(|segments| segments.values())
    {
        for (name, _) in segment
            .devices
            .iter()
            .filter(|(name, _)| !name.starts_with('/'))
        {
            let node = names::device(builder, &format!("{}/{name}", segment.group));
            if builder.get(node).placing == Placing::Leaf {
                builder.opaque(node, Obstacle::HiddenVolume);
            }
        }
    }
}

fn group_of(volume: &str) -> &str {
    volume.split_once('/').map_or("", |(group, _)| group)
}

fn place_thin(builder: &mut Builder, name: &str, segment: &Segment) {
    let node = names::device(builder, name);
    builder.kind(node, Kind::ThinVolume, &segment.source);
    let Some(pool) = &segment.pool else { return };
    let pool = names::device(builder, &format!("{}/{pool}", segment.group));
    let block = builder
        .get(pool)
        .grids
        .iter()
        .find(|fact| fact.what == CellKind::Cluster);
    let placing = match block.map(GridFact::granularity) {
        Some(block) => Placing::Blocks {
            block,
            member: Member {
                node: pool,
                start: Bytes(0),
            },
        },
        None => Placing::Unknown {
            members: vec![pool],
            why: Obstacle::PoolBlockNotPrinted,
        },
    };
    builder.place(node, placing, &segment.source);
}

struct Placer<'a> {
    builder: &'a mut Builder,
    node: NodeId,
    starts: &'a std::collections::BTreeMap<NodeId, Bytes>,
}

impl Placer<'_> {
    /// The facts of a segment about its volume, independent of its position.
    fn tell(&mut self, segment: &Segment) {
        let kind = match segment.kind.as_str() {
            "thin" => Kind::ThinVolume,
            "thin-pool" => Kind::ThinPool,
            "cache" | "writecache" => Kind::Cache,
            "mirror" | "raid1" => Kind::Mirror,
            "striped" if segment.devices.len() > 1 => Kind::Stripe,
            level if level.starts_with("raid") => {
                self.builder
                    .fact(self.node, keys::LEVEL, level, &segment.source);
                if shape(level).is_some_and(|shape| shape.parity > 0) {
                    Kind::ParityRaid
                } else {
                    Kind::Stripe
                }
            }
            _ => Kind::LogicalVolume,
        };
        self.builder.kind(self.node, kind, &segment.source);
        if let (Kind::ThinPool | Kind::Cache, Some(chunk)) = (kind, segment.chunk)
            && let Ok(grid) = Grid::new(chunk, Bytes(0), GridKind::Boundary)
        {
            let fact = GridFact::believed(grid, CellKind::Cluster, segment.source.clone());
            self.builder.grid(self.node, fact);
        }
    }

    fn place<'s>(
        &mut self,
        segments: impl ExactSizeIterator<Item = &'s Segment>,
        extent: Option<Bytes>,
    ) {
        let (count, mut upper, mut parts) = (segments.len(), Bytes(0), Vec::new());
        let mut placed_by = None;
        for (number, segment) in segments.enumerate() {
            placed_by.get_or_insert_with(|| segment.source.clone());
            let len = length(segment, extent);
            let placing = match self.one(segment, len, extent) {
                Ok(placing) => placing,
                Err(why) => {
                    let members = self.nodes(segment);
                    let placing = Placing::Unknown { members, why };
                    return self.builder.place(self.node, placing, &segment.source);
                }
            };
            let run = match &placing {
                Placing::Parts { parts } => parts.first().map(|part| (part.node, part.start)),
                _ => None,
            };
            if count == 1 {
                return self.builder.place(self.node, placing, &segment.source);
            }
            let (node, start) = match run {
                Some(run) => run,
                None => {
                    let name = format!("{}[{number}]", self.builder.get(self.node).name);
                    let piece = self.builder.node(&name);
                    self.builder.place(piece, placing, &segment.source);
                    (piece, Bytes(0))
                }
            };
            parts.push(Part {
                upper,
                node,
                start,
                len,
            });
            let Some(next) = len.and_then(|len| upper.checked_add(len)) else {
                let why = Obstacle::RoundedSegment;
                let members = self.nodes(segment);
                return self.builder.place(
                    self.node,
                    Placing::Unknown { members, why },
                    &segment.source,
                );
            };
            upper = next;
        }
        if let Some(source) = placed_by {
            self.builder
                .place(self.node, Placing::Parts { parts }, &source);
        }
    }

    fn nodes(&mut self, segment: &Segment) -> Vec<NodeId> {
        segment
            .devices
            .iter()
            .map(|(name, _)| self.device(segment, name))
            .collect()
    }

    /// A physical volume by its path, or a volume of the same group.
    fn device(&mut self, segment: &Segment, name: &str) -> NodeId {
        if name.starts_with('/') {
            return names::device(self.builder, name);
        }
        names::device(self.builder, &format!("{}/{name}", segment.group))
    }

    fn members(
        &mut self,
        segment: &Segment,
        extent: Option<Bytes>,
    ) -> Result<Vec<Member>, Obstacle> {
        let mut members = Vec::new();
        for (name, first) in &segment.devices {
            let node = self.device(segment, name);
            let offset = match (first, extent) {
                (0, _) => Bytes(0),
                (first, Some(extent)) => extent
                    .checked_mul(*first)
                    .ok_or(Obstacle::Beyond64Bits { source: None })?,
                _ => {
                    return Err(Obstacle::ExtentNotPrinted);
                }
            };
            let base = match self.starts.get(&node) {
                Some(start) => *start,
                None if !name.starts_with('/') => Bytes(0),
                None => {
                    return Err(Obstacle::FirstExtentNotPrinted {
                        device: name.clone(),
                    });
                }
            };
            let start = base
                .checked_add(offset)
                .ok_or(Obstacle::Beyond64Bits { source: None })?;
            members.push(Member { node, start });
        }
        if members.is_empty() {
            return Err(Obstacle::SegmentDevicesNotPrinted);
        }
        Ok(members)
    }

    fn one(
        &mut self,
        segment: &Segment,
        len: Option<Bytes>,
        extent: Option<Bytes>,
    ) -> Result<Placing, Obstacle> {
        let members = self.members(segment, extent)?;
        let chunks = |shape: RaidShape, members| match segment.stripe {
            Some(chunk) => {
                let RaidShape {
                    parity,
                    copies,
                    layout,
                } = shape;
                Ok(Placing::Chunks(Chunks {
                    chunk,
                    members,
                    parity,
                    copies,
                    layout,
                }))
            }
            None => Err(Obstacle::StripeNotPrinted),
        };
        match (segment.kind.as_str(), &members[..]) {
            ("linear" | "striped" | "thin-pool", [Member { node, start }]) => {
                let part = Part {
                    upper: Bytes(0),
                    node: *node,
                    start: *start,
                    len,
                };
                Ok(Placing::Parts { parts: vec![part] })
            }
            ("striped", _) => chunks(
                RaidShape {
                    parity: 0,
                    copies: 1,
                    layout: None,
                },
                members,
            ),
            ("mirror" | "raid1", _) => Ok(Placing::Copies { members }),
            (level, _) if level.starts_with("raid") => match shape(level) {
                Some(shape) => chunks(shape, members),
                None => Err(Obstacle::UnknownLevel {
                    level: level.to_owned(),
                }),
            },
            (kind, _) => Err(Obstacle::SegmentNotPrinted {
                segment: kind.to_owned(),
            }),
        }
    }
}

/// The length of a segment, where rounding has left only one that is possible.
fn length(segment: &Segment, extent: Option<Bytes>) -> Option<Bytes> {
    let counted = extent
        .zip(segment.len_extents)
        .and_then(|(extent, count)| extent.checked_mul(count));
    let rounded = || extent.and_then(|extent| segment.len?.multiple_of(extent));
    counted.or_else(|| segment.len?.exact()).or_else(rounded)
}
