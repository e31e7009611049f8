//! Positions of volumes, from descriptions of Solaris Volume Manager.
//!
//! Sources: the state database keeps for each component of a stripe where its data begin. It is the component's
//! start; but a component other than the very first of a volume leaves out the cylinder with the disk's label, and
//! any component the cylinders with state database replicas. Columns of RAID 5 begin with a pre-write area on top of
//! that. A full `metastat` prints these starts; without one they are computed here, and of RAID 5 it is said so.

use std::collections::{HashMap, HashSet};

use plumb_geometry::{Bytes, Grid, SECTOR, align};

use super::names::{disk_of, slice_name};
use super::volume::{BlockExtent, Component, StripeRow, Volume, VolumeShape};
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, GridFact};
use crate::node::{Chunks, Kind, Member, Part, Placing, keys};
use crate::obstacle::{GridDoubt, Obstacle};

/// Interlaces that metainit takes where none is given: until Solaris 10, and later.
const DEFAULT_INTERLACES: [Bytes; 2] = [Bytes(16 << 10), Bytes(512 << 10)];
/// A pre-write area is a multiple of this.
const PREWRITE_ROUND: Bytes = Bytes(2 * SECTOR);

/// Starts of data that somebody printed, by volume and component.
type DataStarts<'a> = HashMap<(&'a str, &'a str), Bytes>;

/// Places all volumes that were declared, and the slices of disks without a label.
pub(super) fn place_all(builder: &mut Builder) {
    let volumes = std::mem::take(&mut builder.solaris.volumes);
    let starts = printed_starts(&volumes);
    let (exact, vague): (Vec<&Volume>, Vec<&Volume>) =
        volumes.iter().partition(|volume| volume.is_exact());
    let mut placed = HashSet::new();
    for volume in exact {
        placed.insert(&volume.name);
        place(volume, &starts, builder);
    }
    for volume in vague
        .into_iter()
        .filter(|volume| !placed.contains(&volume.name))
    {
        place(volume, &starts, builder);
    }
    place_slices_without_label(builder);
}

fn printed_starts(volumes: &[Volume]) -> DataStarts<'_> {
    let mut starts = DataStarts::new();
    for volume in volumes {
        let components: Vec<&Component> = match &volume.shape {
            VolumeShape::Rows(rows) => rows.iter().flat_map(|row| &row.components).collect(),
            VolumeShape::Raid5 { columns, .. } => columns.iter().collect(),
            _ => Vec::new(),
        };
        for component in components {
            if let Some(start) = component.start {
                starts
                    .entry((&volume.name, &component.name))
                    .or_insert(start);
            }
        }
    }
    starts
}

fn place(volume: &Volume, starts: &DataStarts<'_>, builder: &mut Builder) {
    let id = builder.node(&volume.name);
    let placing = match &volume.shape {
        VolumeShape::Rows(rows) => rows_placing(volume, rows, starts, builder),
        VolumeShape::Mirror { submirrors, .. } => {
            let members = submirrors.iter().map(|name| Member {
                node: builder.node(name),
                start: Bytes(0),
            });
            Placing::Copies {
                members: members.collect(),
            }
        }
        VolumeShape::Raid5 {
            columns,
            original,
            interlace,
            slots,
        } => {
            let raid5 = Raid5 {
                columns: &columns[..*original],
                interlace: *interlace,
                slots: *slots,
            };
            if *original < columns.len() {
                let later = columns.len() - original;
                builder.note(format!(
                    "{later} of the columns of {} were attached later; they are not followed",
                    volume.name
                ));
            }
            raid5_placing(volume, &raid5, starts, builder)
        }
        VolumeShape::Soft { on, extents } => soft_placing(builder.node(on), extents),
        VolumeShape::SoftAnywhere { on, align } => {
            anywhere_placing(&volume.name, on, *align, builder)
        }
        VolumeShape::Logged { master } => {
            let node = builder.node(master);
            Placing::Parts {
                parts: vec![Part {
                    upper: Bytes(0),
                    node,
                    start: Bytes(0),
                    len: None,
                }],
            }
        }
    };
    builder.place(id, placing, &volume.source);
}

fn soft_placing(on: NodeId, extents: &[BlockExtent]) -> Placing {
    let mut upper = Some(Bytes(0));
    let parts = extents.iter().map_while(|extent| {
        let part = Part {
            upper: upper?,
            node: on,
            start: extent.start,
            len: Some(extent.len),
        };
        upper = part.upper.checked_add(extent.len);
        Some(part)
    });
    Placing::Parts {
        parts: parts.collect(),
    }
}

fn anywhere_placing(name: &str, on: &str, align: Option<Bytes>, builder: &mut Builder) -> Placing {
    let on = builder.node(on);
    match align {
        // It begins at a multiple, which is enough for alignment.
        Some(block) => Placing::Blocks {
            block,
            member: Member {
                node: on,
                start: Bytes(0),
            },
        },
        None => Placing::Unknown {
            members: vec![on],
            why: Obstacle::ChosenByMetainit {
                volume: name.to_owned(),
            },
        },
    }
}

fn rows_placing(
    volume: &Volume,
    rows: &[StripeRow],
    starts: &DataStarts<'_>,
    builder: &mut Builder,
) -> Placing {
    if let [row] = rows {
        return match row_runs(volume, 0, row, starts, builder) {
            Ok(members) if members.len() == 1 => one_part(members[0], builder),
            Ok(members) => striped(volume, row, members, builder),
            Err(unknown) => unknown,
        };
    }
    let mut runs = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let members = match row_runs(volume, at, row, starts, builder) {
            Ok(members) => members,
            Err(unknown) => return unknown,
        };
        let len = row_len(row, &members, builder);
        match members[..] {
            [member] => runs.push((member, len, row.components[0].name.clone())),
            _ => {
                let (node, name) = row_node(volume, at, row, members, len, builder);
                runs.push((
                    Member {
                        node,
                        start: Bytes(0),
                    },
                    len,
                    name,
                ));
            }
        }
    }
    one_after_the_other(&runs)
}

/// The start of each component of a row.
fn row_runs(
    volume: &Volume,
    at: usize,
    row: &StripeRow,
    starts: &DataStarts<'_>,
    builder: &mut Builder,
) -> Result<Vec<Member>, Placing> {
    let nodes: Vec<NodeId> = row
        .components
        .iter()
        .map(|component| builder.node(&component.name))
        .collect();
    let mut members = Vec::new();
    for (column, (component, node)) in row.components.iter().zip(&nodes).enumerate() {
        let printed = component
            .start
            .or_else(|| printed(volume, component, starts));
        let Some(start) = printed.or_else(|| first_block(*node, at == 0 && column == 0, builder))
        else {
            let why = Obstacle::BehindReplicas {
                component: component.name.clone(),
            };
            return Err(Placing::Unknown {
                members: nodes,
                why,
            });
        };
        members.push(Member { node: *node, start });
    }
    Ok(members)
}

fn printed(volume: &Volume, component: &Component, starts: &DataStarts<'_>) -> Option<Bytes> {
    starts
        .get(&(volume.name.as_str(), component.name.as_str()))
        .copied()
}

/// The first block that a volume uses of a component; `None` if unknown.
fn first_block(component: NodeId, is_very_first: bool, builder: &Builder) -> Option<Bytes> {
    let (begin, cylinder) = slice_begin(component, builder);
    if let Some(Bytes(end)) = builder.get(component).number(keys::REPLICAS_END) {
        return align::align_up(end, cylinder?.0).map(Bytes);
    }
    match (begin, cylinder) {
        (Some(Bytes(0)), Some(cylinder)) if !is_very_first => Some(cylinder),
        _ => Some(Bytes(0)),
    }
}

/// The start of a slice on its disk, and the length of a cylinder there.
fn slice_begin(slice: NodeId, builder: &Builder) -> (Option<Bytes>, Option<Bytes>) {
    let node = builder.get(slice);
    let begin = match &node.placing {
        Placing::Parts { parts } if node.kind == Kind::Partition => {
            parts.first().map(|part| part.start)
        }
        _ => None,
    };
    let disk = disk_of(&node.name)
        .and_then(|disk| builder.find(disk))
        .map(|disk| builder.get(disk));
    let cylinder = disk.and_then(|disk| disk.number(keys::CYLINDER_SECTORS));
    (
        begin,
        cylinder
            .and_then(|sectors| Bytes(SECTOR).checked_mul(sectors))
            .filter(|len| len.0 > 0),
    )
}

/// The rest of a component behind the start of its data.
fn len_behind(member: Member, builder: &Builder) -> Option<Bytes> {
    builder.get(member.node).size?.checked_sub(member.start)
}

/// Length of a row: that of its only component, or as many times the whole chunks of the shortest.
fn row_len(row: &StripeRow, members: &[Member], builder: &Builder) -> Option<Bytes> {
    if let [member] = members {
        return len_behind(*member, builder);
    }
    let lens: Option<Vec<Bytes>> = members
        .iter()
        .map(|member| len_behind(*member, builder))
        .collect();
    let shortest = align::align_down(lens?.into_iter().min()?.0, row.interlace?.0)?;
    Bytes(shortest).checked_mul(members.len() as u64)
}

fn one_part(member: Member, builder: &Builder) -> Placing {
    let len = len_behind(member, builder);
    Placing::Parts {
        parts: vec![Part {
            upper: Bytes(0),
            node: member.node,
            start: member.start,
            len,
        }],
    }
}

/// A stripe, or the reason against one: the interlace was left out.
fn striped(
    volume: &Volume,
    row: &StripeRow,
    members: Vec<Member>,
    builder: &mut Builder,
) -> Placing {
    match row.interlace {
        Some(chunk) => Placing::Chunks(Chunks {
            chunk,
            members,
            parity: 0,
            copies: 1,
            layout: None,
        }),
        None => {
            let nodes = members.iter().map(|member| member.node).collect();
            without_interlace(volume, nodes, builder)
        }
    }
}

fn without_interlace(volume: &Volume, members: Vec<NodeId>, builder: &mut Builder) -> Placing {
    let [old, new] = DEFAULT_INTERLACES;
    let id = builder.node(&volume.name);
    for grid in DEFAULT_INTERLACES
        .into_iter()
        .filter_map(|interlace| Grid::boundary(interlace).ok())
    {
        let doubt = GridDoubt::NoInterlace {
            old_bytes: old,
            new_bytes: new,
        };
        builder.grid(
            id,
            GridFact::doubted(grid, CellKind::Chunk, volume.source.clone(), doubt),
        );
    }
    builder.note(format!(
        "{}: no interlace is given: {old} before illumos, {new} there; metastat -p {} would show it",
        volume.name, volume.name
    ));
    let why = Obstacle::NoInterlace {
        old_bytes: old,
        new_bytes: new,
    };
    Placing::Unknown { members, why }
}

/// A row of several components under a volume of several rows: a layer that the tools do not name.
fn row_node(
    volume: &Volume,
    at: usize,
    row: &StripeRow,
    members: Vec<Member>,
    len: Option<Bytes>,
    builder: &mut Builder,
) -> (NodeId, String) {
    let name = format!("{} row {at}", volume.name);
    let node = builder.node(&name);
    let placing = striped(volume, row, members, builder);
    builder.kind(node, Kind::Stripe, &volume.source);
    if let Some(len) = len {
        builder.size(node, len, &volume.source);
    }
    builder.place(node, placing, &volume.source);
    (node, name)
}

/// Rows behind each other; unknown where the length of any but the last is.
fn one_after_the_other(runs: &[(Member, Option<Bytes>, String)]) -> Placing {
    let mut upper = Some(Bytes(0));
    let mut parts = Vec::new();
    let mut missing = None;
    for (member, len, name) in runs {
        let Some(begin) = upper else { break };
        parts.push(Part {
            upper: begin,
            node: member.node,
            start: member.start,
            len: *len,
        });
        upper = len.and_then(|len| begin.checked_add(len));
        missing = missing.or_else(|| len.is_none().then_some(name));
    }
    if parts.len() == runs.len() {
        return Placing::Parts { parts };
    }
    Placing::Unknown {
        members: runs.iter().map(|(member, ..)| member.node).collect(),
        why: Obstacle::RowLength {
            row: missing.cloned(),
        },
    }
}

/// The description of a RAID 5 volume's placing.
struct Raid5<'a> {
    columns: &'a [Component],
    interlace: Option<Bytes>,
    slots: u64,
}

fn raid5_placing(
    volume: &Volume,
    raid5: &Raid5<'_>,
    starts: &DataStarts<'_>,
    builder: &mut Builder,
) -> Placing {
    let nodes: Vec<NodeId> = raid5
        .columns
        .iter()
        .map(|column| builder.node(&column.name))
        .collect();
    let Some(chunk) = raid5.interlace else {
        return without_interlace(volume, nodes, builder);
    };
    let prewrite = prewrite_len(chunk, raid5.slots);
    let (mut members, mut is_computed) = (Vec::new(), false);
    for (column, node) in raid5.columns.iter().zip(&nodes) {
        let printed = column.start.or_else(|| printed(volume, column, starts));
        is_computed |= printed.is_none();
        let computed = || first_block(*node, false, builder)?.checked_add(prewrite?);
        let Some(start) = printed.or_else(computed) else {
            let why = Obstacle::ColumnStart {
                column: column.name.clone(),
            };
            return Placing::Unknown {
                members: nodes,
                why,
            };
        };
        members.push(Member { node: *node, start });
    }
    if let (true, Some(prewrite)) = (is_computed, prewrite) {
        let id = builder.node(&volume.name);
        builder.fact(id, keys::PREWRITE, prewrite, &volume.source);
        builder.note(format!(
            "{0}: the data of each column begin behind a pre-write area of {prewrite}; computed for {1} slots and \
             a driver that transfers a whole interlace at once: the start blocks of metastat {0} would prove it",
            volume.name, raid5.slots
        ));
    }
    Placing::Chunks(Chunks {
        chunk,
        members,
        parity: 1,
        copies: 1,
        layout: None,
    })
}

/// Length of the pre-write area: a slot holds a chunk and a block that describes it.
fn prewrite_len(interlace: Bytes, slots: u64) -> Option<Bytes> {
    let slot = interlace.checked_add(Bytes(SECTOR))?;
    align::align_up(slot.checked_mul(slots)?.0, PREWRITE_ROUND.0).map(Bytes)
}

/// Slices below other nodes that no label describes.
fn place_slices_without_label(builder: &mut Builder) {
    for id in builder.ids() {
        let node = builder.get(id);
        if node.placing != Placing::Leaf {
            continue;
        }
        let Some(slice) = slice_name(&node.name) else {
            if node.kind == Kind::Unknown && node.opaque.is_none() && is_volume(&node.name) {
                let why = Obstacle::VolumeNotDescribed {
                    volume: node.name.clone(),
                };
                builder.opaque(id, why);
            }
            continue;
        };
        let (name, disk) = (node.name.clone(), slice.disk.to_owned());
        let is_whole = slice.is_fdisk && slice.number == 0;
        let below = builder.node(&disk);
        let source = crate::grid::Source::Layout;
        builder.kind(below, Kind::Disk, &source);
        builder.kind(id, Kind::Partition, &source);
        let placing = if is_whole {
            one_part(
                Member {
                    node: below,
                    start: Bytes(0),
                },
                builder,
            )
        } else if builder.get(below).fact(keys::LABEL).is_some() {
            Placing::Unknown {
                members: vec![below],
                why: Obstacle::NotInLabel { disk, slice: name },
            }
        } else {
            Placing::Unknown {
                members: vec![below],
                why: Obstacle::NoLabel { disk },
            }
        };
        builder.place(id, placing, &source);
    }
}

/// `d57`, with or without its set.
fn is_volume(name: &str) -> bool {
    let number = name
        .rsplit('/')
        .next()
        .and_then(|name| name.strip_prefix('d'));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
