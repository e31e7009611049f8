//! Pools, put together from the labels of their devices.

use std::collections::{BTreeMap, HashMap};

use plumb_geometry::{Bytes, GridKind};

use super::{Config, DATA_START, Vdev};
use crate::builder::Builder;
use crate::dm_table::missing;
use crate::graph::NodeId;
use crate::grid::{CellKind, Source};
use crate::node::{Chunks, Kind, Member, Placing, keys};
use crate::obstacle::Obstacle;
use crate::ondisk::content::Cell;
use crate::ondisk::nodes;

/// The parts of one pool found so far.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    name: String,
    tops_stated: u64,
    /// Devices by their number.
    devices: HashMap<u64, NodeId>,
    /// The newest label of each vdev at the top, by its place.
    tops: BTreeMap<u64, (u64, Vdev)>,
}

fn source() -> Source {
    Source::OnDisk {
        format: "ZFS label".to_owned(),
    }
}

impl Pool {
    pub(crate) fn add(&mut self, node: NodeId, config: Config) {
        self.devices.insert(config.guid, node);
        self.tops_stated = self.tops_stated.max(config.tops);
        self.name = config.pool;
        let known = self.tops.get(&config.top.id).map(|(txg, _)| *txg);
        if known.is_none_or(|known| known < config.txg) {
            self.tops.insert(config.top.id, (config.txg, config.top));
        }
    }

    /// Makes the pool's node and one for each vdev that joins devices.
    pub(crate) fn tell(&self, builder: &mut Builder) {
        let id = builder.node(&self.name);
        builder.kind(id, Kind::Pool, &source());
        builder.fact(id, keys::MANAGER, "zfs", &source());
        let tops: Vec<(Member, Option<u64>)> = self
            .tops
            .values()
            .map(|(_, top)| (self.vdev(builder, id, top), top.ashift))
            .collect();
        let members: Vec<NodeId> = tops.iter().map(|(member, _)| member.node).collect();
        let placing = match tops[..] {
            [(member, Some(ashift))] if self.tops_stated <= 1 => {
                builder.fact(id, keys::ASHIFT, ashift, &source());
                Placing::Blocks {
                    block: Bytes(1 << ashift),
                    member,
                }
            }
            [_] if self.tops_stated <= 1 => Placing::Unknown {
                members,
                why: Obstacle::NoAshift,
            },
            _ => Placing::Unknown {
                members,
                why: Obstacle::SpreadOverVdevs,
            },
        };
        if matches!(
            builder.get(id).placing,
            Placing::Leaf | Placing::Unknown { .. }
        ) {
            builder.place(id, placing, &source());
        }
    }

    /// The device with the start of its data, or a node for the vdev that joins several.
    fn vdev(&self, builder: &mut Builder, pool: NodeId, vdev: &Vdev) -> Member {
        if vdev.children.is_empty() {
            let node = self.device(builder, pool, vdev);
            return Member {
                node,
                start: Bytes(DATA_START),
            };
        }
        let parity = if vdev.kind == "raidz" {
            vdev.parity.to_string()
        } else {
            String::new()
        };
        let name = format!("{}:{}{parity}-{}", self.name, vdev.kind, vdev.id);
        let id = builder.node(&name);
        let members: Vec<Member> = vdev
            .children
            .iter()
            .map(|child| self.vdev(builder, pool, child))
            .collect();
        let ids = members.iter().map(|member| member.node).collect();
        let chunk = vdev.ashift.map(|ashift| Bytes(1 << ashift));
        let (kind, placing) = match (vdev.kind.as_str(), chunk) {
            ("mirror" | "replacing" | "spare", _) => (Kind::Mirror, Placing::Copies { members }),
            ("raidz", Some(chunk)) => {
                let parity = u32::try_from(vdev.parity).unwrap_or(u32::MAX);
                (
                    Kind::ParityRaid,
                    Placing::Chunks(Chunks {
                        chunk,
                        members,
                        parity,
                        copies: 1,
                        layout: None,
                    }),
                )
            }
            (other, _) => {
                let why = Obstacle::UnknownVdev {
                    vdev: other.to_owned(),
                };
                (Kind::Unknown, Placing::Unknown { members: ids, why })
            }
        };
        builder.kind(id, kind, &source());
        builder.place(id, placing, &source());
        if let Some(Bytes(len)) = chunk {
            let cell = Cell {
                len,
                offset: 0,
                what: CellKind::Ashift,
                kind: GridKind::Unit,
            };
            nodes::tell_cell(builder, id, cell, &source());
        }
        Member {
            node: id,
            start: Bytes(0),
        }
    }

    fn device(&self, builder: &mut Builder, pool: NodeId, vdev: &Vdev) -> NodeId {
        self.devices
            .get(&vdev.guid)
            .copied()
            .unwrap_or_else(|| missing(builder, pool, vdev.id as usize))
    }
}
