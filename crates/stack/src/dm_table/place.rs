//! From tables to layers.
//!
//! A table of one line is one layer. One of several lines is cut into runs: each that is more than a constant move gets a
//! layer of its own, named after the device with the number of the line, `vg/data[1]`.

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR, Sectors};

use super::{At, DmLine, DmTarget, RaidShape};
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, GridFact, Source};
use crate::node::{Chunks, Kind, Member, Part, Placing, keys};
use crate::obstacle::Obstacle;

/// A mapped device with its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Its node.
    pub node: NodeId,
    /// Its uuid, which names the owner; empty where it has none.
    pub uuid: String,
    /// Its table.
    pub lines: Vec<DmLine>,
}

/// The numbers in `253:4`.
#[must_use]
pub fn number_of(word: &str) -> Option<(u32, u32)> {
    let (major, minor) = word.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// `vg/lv` from the name that LVM gave the mapped device: a hyphen parts the names, two are one inside a name. `None` for
/// names with a layer behind (`vg-lv-real`) or without a volume.
#[must_use]
pub fn lvm_name(name: &str) -> Option<String> {
    const INNER: &str = "\u{0}";
    let folded = name.replace("--", INNER);
    let (group, volume) = folded.split_once('-')?;
    let is_plain = !group.is_empty() && !volume.is_empty() && !volume.contains('-');
    is_plain.then(|| format!("{group}/{volume}").replace(INNER, "-"))
}

/// Adds the meaning of tables to the builder; `resolve` finds the node of a device that a table names.
pub fn place(
    builder: &mut Builder,
    tables: &[Mapped],
    resolve: &mut dyn FnMut(&mut Builder, &str) -> NodeId,
    source: &Source,
) {
    let is_thin = |table: &&Mapped| {
        matches!(
            table.lines[..],
            [DmLine {
                target: DmTarget::Thin { .. },
                ..
            }]
        )
    };
    let mut placer = Placer {
        builder,
        resolve,
        source,
    };
    // Thin volumes last: their block is a fact of the pool.
    for table in tables
        .iter()
        .filter(|table| !is_thin(table))
        .chain(tables.iter().filter(is_thin))
    {
        placer.table(table);
    }
}

struct Placer<'a> {
    builder: &'a mut Builder,
    resolve: &'a mut dyn FnMut(&mut Builder, &str) -> NodeId,
    source: &'a Source,
}

fn bytes(sectors: Sectors) -> Bytes {
    sectors.to_bytes().unwrap_or(Bytes(u64::MAX))
}

impl Placer<'_> {
    fn table(&mut self, table: &Mapped) {
        let manager = if table.uuid.starts_with("LVM-") {
            "lvm"
        } else {
            "dm"
        };
        self.builder
            .fact(table.node, keys::MANAGER, manager, self.source);
        let runs = table
            .lines
            .iter()
            .all(|line| matches!(line.target, DmTarget::Linear(_) | DmTarget::Nothing));
        let placing = match &table.lines[..] {
            [] => Placing::Unknown {
                members: Vec::new(),
                why: Obstacle::NoTable,
            },
            [line] if !runs => self.one(table.node, line),
            lines => {
                let parts: Vec<Part> = lines
                    .iter()
                    .enumerate()
                    .filter_map(|(number, line)| self.part(table.node, number, line))
                    .collect();
                self.builder
                    .kind(table.node, kind_of_runs(table, &parts), self.source);
                if parts.is_empty() {
                    return self.builder.opaque(table.node, Obstacle::LeadsNowhere);
                }
                Placing::Parts { parts }
            }
        };
        self.builder.place(table.node, placing, self.source);
    }

    /// One line of several.
    fn part(&mut self, node: NodeId, number: usize, line: &DmLine) -> Option<Part> {
        let (below, start) = match &line.target {
            DmTarget::Nothing => return None,
            DmTarget::Linear(at) => (self.device(&at.device), bytes(at.start)),
            _ => {
                let piece = self.piece(node, &format!("[{number}]"));
                self.builder.size(piece, bytes(line.len), self.source);
                let placing = self.one(piece, line);
                self.builder.place(piece, placing, self.source);
                (piece, Bytes(0))
            }
        };
        Some(Part {
            upper: bytes(line.start),
            node: below,
            start,
            len: Some(bytes(line.len)),
        })
    }

    /// How a line that is a layer of its own places its bytes, counted from the first of the line.
    fn one(&mut self, node: NodeId, line: &DmLine) -> Placing {
        match &line.target {
            DmTarget::Linear(at) => self.run(at, line.len),
            DmTarget::Nothing => Placing::Leaf,
            DmTarget::Striped { chunk, members } => {
                self.kind(node, Kind::Stripe);
                let members = members
                    .iter()
                    .map(|at| self.member(&at.device, at.start))
                    .collect();
                Placing::Chunks(Chunks {
                    chunk: bytes(*chunk),
                    members,
                    parity: 0,
                    copies: 1,
                    layout: None,
                })
            }
            DmTarget::Crypt { data, sector_bytes } => {
                self.kind(node, Kind::Crypt);
                self.grid(
                    node,
                    Bytes(*sector_bytes),
                    GridKind::Unit,
                    CellKind::CryptSector,
                );
                self.run(data, line.len)
            }
            DmTarget::Raid {
                level,
                shape,
                chunk,
                data_offset,
                members,
            } => self.raid(node, level, *shape, *chunk, *data_offset, members),
            DmTarget::Mirror { members } => {
                self.kind(node, Kind::Mirror);
                let members = members
                    .iter()
                    .map(|at| self.member(&at.device, at.start))
                    .collect();
                Placing::Copies { members }
            }
            DmTarget::Multipath { paths } => self.multipath(node, paths),
            DmTarget::ThinPool {
                metadata: _,
                data,
                block,
            } => {
                self.kind(node, Kind::ThinPool);
                self.grid(node, bytes(*block), GridKind::Boundary, CellKind::Cluster);
                self.whole(data, line.len)
            }
            DmTarget::Thin { pool, origin } => self.thin(node, pool, origin.as_deref()),
            DmTarget::Cache {
                cache,
                origin,
                block,
            } => {
                self.kind(node, Kind::Cache);
                self.grid(node, bytes(*block), GridKind::Boundary, CellKind::Cluster);
                self.beside(node, origin, ":cache", cache, bytes(*block))
            }
            DmTarget::WriteCache {
                cache: _,
                origin,
                block_bytes,
            } => {
                self.kind(node, Kind::Cache);
                self.grid(
                    node,
                    Bytes(*block_bytes),
                    GridKind::Boundary,
                    CellKind::Cluster,
                );
                self.whole(origin, line.len)
            }
            DmTarget::Snapshot {
                origin,
                store,
                chunk,
            } => {
                self.kind(node, Kind::LogicalVolume);
                self.beside(node, origin, ":store", store, bytes(*chunk))
            }
            DmTarget::SnapshotOrigin(device) | DmTarget::Verity { data: device, .. } => {
                self.kind(node, Kind::LogicalVolume);
                self.whole(device, line.len)
            }
            DmTarget::Integrity { device, .. } => {
                self.kind(node, Kind::LogicalVolume);
                self.unknown(std::slice::from_ref(device), Obstacle::IntegrityChecksums)
            }
            DmTarget::Other { kind, devices } => self.unknown(
                devices,
                Obstacle::UnknownTarget {
                    target: kind.clone(),
                },
            ),
        }
    }

    fn raid(
        &mut self,
        node: NodeId,
        level: &str,
        shape: RaidShape,
        chunk: Sectors,
        data_offset: Sectors,
        members: &[Option<String>],
    ) -> Placing {
        self.builder.fact(node, keys::LEVEL, level, self.source);
        let members: Vec<Member> = members
            .iter()
            .enumerate()
            .map(|(slot, member)| match member {
                Some(device) => self.member(device, data_offset),
                None => Member {
                    node: missing(self.builder, node, slot),
                    start: Bytes(0),
                },
            })
            .collect();
        if level == "raid1" {
            self.kind(node, Kind::Mirror);
            return Placing::Copies { members };
        }
        self.kind(
            node,
            if shape.parity > 0 {
                Kind::ParityRaid
            } else {
                Kind::Stripe
            },
        );
        if chunk == Sectors(0) {
            let members = members.iter().map(|member| member.node).collect();
            return Placing::Unknown {
                members,
                why: Obstacle::NoChunk,
            };
        }
        let RaidShape {
            parity,
            copies,
            layout,
        } = shape;
        Placing::Chunks(Chunks {
            chunk: bytes(chunk),
            members,
            parity,
            copies,
            layout,
        })
    }

    fn multipath(&mut self, node: NodeId, paths: &[String]) -> Placing {
        self.kind(node, Kind::Multipath);
        let members: Vec<Member> = paths
            .iter()
            .map(|path| self.member(path, Sectors(0)))
            .collect();
        for member in &members {
            if matches!(
                self.builder.get(member.node).kind,
                Kind::Unknown | Kind::Disk
            ) {
                self.kind(member.node, Kind::Path);
            }
        }
        Placing::Copies { members }
    }

    fn thin(&mut self, node: NodeId, pool: &str, origin: Option<&str>) -> Placing {
        self.kind(node, Kind::ThinVolume);
        let pool = self.device(pool);
        let block = self
            .builder
            .get(pool)
            .grids
            .iter()
            .find(|fact| fact.what == CellKind::Cluster);
        match block.map(GridFact::granularity) {
            Some(block) if origin.is_none() => Placing::Blocks {
                block,
                member: Member {
                    node: pool,
                    start: Bytes(0),
                },
            },
            Some(block) => {
                let origin = self.member(origin.unwrap_or_default(), Sectors(0));
                let piece = self.piece(node, ":blocks");
                let blocks = Placing::Blocks {
                    block,
                    member: Member {
                        node: pool,
                        start: Bytes(0),
                    },
                };
                self.builder.place(piece, blocks, self.source);
                Placing::Copies {
                    members: vec![
                        origin,
                        Member {
                            node: piece,
                            start: Bytes(0),
                        },
                    ],
                }
            }
            None => Placing::Unknown {
                members: vec![pool],
                why: Obstacle::PoolTableMissing,
            },
        }
    }

    /// A byte is at its own place on `device`, or in a block somewhere on `store`, or both.
    fn beside(
        &mut self,
        node: NodeId,
        device: &str,
        suffix: &str,
        store: &str,
        block: Bytes,
    ) -> Placing {
        let piece = self.piece(node, suffix);
        let member = self.member(store, Sectors(0));
        self.builder
            .place(piece, Placing::Blocks { block, member }, self.source);
        let whole = self.member(device, Sectors(0));
        Placing::Copies {
            members: vec![
                whole,
                Member {
                    node: piece,
                    start: Bytes(0),
                },
            ],
        }
    }

    fn unknown(&mut self, devices: &[String], why: Obstacle) -> Placing {
        let members = devices.iter().map(|device| self.device(device)).collect();
        Placing::Unknown { members, why }
    }

    fn run(&mut self, at: &At, len: Sectors) -> Placing {
        let node = self.device(&at.device);
        Placing::Parts {
            parts: vec![Part {
                upper: Bytes(0),
                node,
                start: bytes(at.start),
                len: Some(bytes(len)),
            }],
        }
    }

    fn whole(&mut self, device: &str, len: Sectors) -> Placing {
        self.run(
            &At {
                device: device.to_owned(),
                start: Sectors(0),
            },
            len,
        )
    }

    fn piece(&mut self, node: NodeId, suffix: &str) -> NodeId {
        let name = format!("{}{suffix}", self.builder.get(node).name);
        self.builder.node(&name)
    }

    fn device(&mut self, name: &str) -> NodeId {
        (self.resolve)(self.builder, name)
    }

    fn member(&mut self, name: &str, start: Sectors) -> Member {
        Member {
            node: self.device(name),
            start: bytes(start),
        }
    }

    fn kind(&mut self, node: NodeId, kind: Kind) {
        self.builder.kind(node, kind, self.source);
    }

    fn grid(&mut self, node: NodeId, granularity: Bytes, kind: GridKind, what: CellKind) {
        if let Ok(grid) = Grid::new(granularity, Bytes(0), kind)
            && granularity.0.is_multiple_of(SECTOR)
        {
            self.builder
                .grid(node, GridFact::believed(grid, what, self.source.clone()));
        }
    }
}

/// The place of a member that is not there.
pub(crate) fn missing(builder: &mut Builder, array: NodeId, slot: usize) -> NodeId {
    let name = format!("{}:missing-{slot}", builder.get(array).name);
    let node = builder.node(&name);
    let why = Obstacle::MissingMember {
        array: builder.get(array).name.clone(),
        slot: slot as u64,
    };
    builder.opaque(node, why);
    node
}

fn kind_of_runs(table: &Mapped, parts: &[Part]) -> Kind {
    // kpartx and the tools of multipath: `part1-mpath-…`.
    if table.uuid.starts_with("part") {
        return Kind::Partition;
    }
    match parts {
        [first, rest @ ..]
            if rest.iter().any(|part| part.node != first.node) && table.uuid.is_empty() =>
        {
            Kind::Concat
        }
        _ => Kind::LogicalVolume,
    }
}
