//! Requests filled in from a stack.

mod labels;
mod volumes;
mod ways;

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use plumb_stack::node::keys;
use plumb_stack::{Builder, CellKind, GridFact, Kind, NodeId, Part, Placing, Source, Stack};

pub const FROM: Source = Source::User;

pub fn sectors(count: u64) -> Bytes {
    Bytes(count * SECTOR)
}

pub fn disk(builder: &mut Builder, name: &str, label: &str, physical: Grid, size: u64) -> NodeId {
    let disk = builder.node(name);
    builder.kind(disk, Kind::Disk, &FROM);
    builder.size(disk, sectors(size), &FROM);
    builder.fact(disk, keys::LABEL, label, &FROM);
    builder.grid(
        disk,
        GridFact::believed(physical, CellKind::PhysicalBlock, FROM),
    );
    disk
}

pub fn cut(
    builder: &mut Builder,
    name: &str,
    kind: Kind,
    on: NodeId,
    start: u64,
    len: u64,
) -> NodeId {
    let node = builder.node(name);
    builder.kind(node, kind, &FROM);
    let part = Part {
        upper: Bytes(0),
        node: on,
        start: sectors(start),
        len: Some(sectors(len)),
    };
    builder.place(node, Placing::Parts { parts: vec![part] }, &FROM);
    node
}

pub fn physical(offset: u64) -> Grid {
    Grid::new(Bytes(4096), Bytes(offset), GridKind::Unit).expect("a grid")
}

pub fn find(stack: &Stack, name: &str) -> NodeId {
    stack.find(name).expect("a node of that name")
}
