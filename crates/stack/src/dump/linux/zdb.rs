//! `zdb -C`: pools with their vdevs as ZFS keeps them, ashift among them. A level of indentation is a level of the tree.

use super::super::text::{anything, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names;
use super::zfs::{self, Vdev, VdevShape};
use crate::builder::Builder;
use crate::graph::NodeId;

pub(super) static FORMAT: Format = Format {
    tool: "zdb -C",
    is_verified: true,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| line.trim() == "vdev_tree:")
}

/// `key: value` with quotes taken off, and how far it is indented.
fn field(line: &str) -> Option<(usize, &str, &str)> {
    let text = line.trim_start();
    let (key, value) = text.split_once(':')?;
    Some((
        line.len() - text.len(),
        key.trim(),
        value.trim().trim_matches('\''),
    ))
}

/// A vdev that is being read.
#[derive(Default)]
struct Node {
    indent: usize,
    kind: String,
    id: u64,
    ashift: Option<u32>,
    parity: Option<u32>,
    path: Option<String>,
    line: usize,
}

/// A pool that is being read: the vdevs that are open, and those that are done.
#[derive(Default)]
struct ZdbPool {
    name: String,
    line: usize,
    tree: Option<usize>,
    open: Vec<Node>,
    disks: Vec<NodeId>,
    vdevs: Vec<Vdev>,
}

impl ZdbPool {
    /// Closes all vdevs as deep as this or deeper.
    fn close(&mut self, indent: usize, input: &Input<'_>, builder: &mut Builder) {
        while let Some(node) = self.open.pop_if(|node| node.indent >= indent) {
            let source = input.source(FORMAT.tool, node.line);
            if let Some(path) = &node.path {
                self.disks.push(names::device(builder, path));
            }
            if !self.open.is_empty() {
                continue;
            }
            let shape = match VdevShape::parse(&node.kind) {
                Some(VdevShape::RaidZ(parity)) => VdevShape::RaidZ(node.parity.or(parity)),
                shape => shape.unwrap_or(VdevShape::Other),
            };
            let disks = std::mem::take(&mut self.disks);
            // Holes and indirect vdevs hold nothing.
            if !matches!(node.kind.as_str(), "hole" | "indirect" | "missing") {
                self.vdevs.push(Vdev {
                    shape,
                    number: node.id,
                    ashift: node.ashift,
                    disks,
                    source,
                });
            }
        }
    }

    fn finish(mut self, input: &Input<'_>, builder: &mut Builder) {
        self.close(0, input, builder);
        if !self.name.is_empty() && !self.vdevs.is_empty() {
            let source = input.source(FORMAT.tool, self.line);
            builder.linux.pools.push(zfs::ZfsPool {
                name: self.name,
                vdevs: self.vdevs,
                has_paths: true,
                source,
            });
        }
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut pool: Option<ZdbPool> = None;
    for (number, line) in input.text.lines().enumerate() {
        let Some((indent, key, value)) = field(line) else {
            continue;
        };
        if key == "name"
            && !value.is_empty()
            && pool
                .as_ref()
                .is_none_or(|pool| pool.tree.is_none_or(|at| indent <= at))
        {
            if let Some(done) = pool.take() {
                done.finish(input, builder);
            }
            pool = Some(ZdbPool {
                name: value.to_owned(),
                line: number + 1,
                ..ZdbPool::default()
            });
            taken.understood += 1;
            continue;
        }
        let Some(pool) = &mut pool else { continue };
        if key == "vdev_tree" {
            pool.tree = Some(indent);
        }
        let Some(tree) = pool.tree else { continue };
        if indent <= tree {
            continue;
        }
        taken.understood += 1;
        if key.starts_with("children[") {
            pool.close(indent, input, builder);
            // A tree is some levels deep; deeper text is not a tree.
            if pool.open.len() < 16 {
                pool.open.push(Node {
                    indent,
                    line: number + 1,
                    ..Node::default()
                });
            }
            continue;
        }
        let Some(node) = pool.open.last_mut().filter(|node| indent > node.indent) else {
            continue;
        };
        match key {
            "type" => node.kind = value.to_owned(),
            "id" => node.id = value.parse().unwrap_or(0),
            "ashift" => node.ashift = zfs::shift(value),
            "nparity" => node.parity = value.parse().ok().filter(|parity| (1..=3).contains(parity)),
            "path" => node.path = Some(value.to_owned()),
            _ => {}
        }
    }
    if let Some(pool) = pool {
        pool.finish(input, builder);
    }
    anything(taken, input, FORMAT.tool, "\"name:\" and \"vdev_tree:\"")
}
