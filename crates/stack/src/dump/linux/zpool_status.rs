//! `zpool status`: vdevs and disks by indentation, and, if a disk's blocks are larger than the configured ones, both
//! sizes.

use plumb_geometry::{Bytes, Grid, GridKind};

use super::super::text::{anything, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::zfs::{self, Vdev, VdevShape};
use crate::builder::Builder;
use crate::grid::{CellKind, GridFact};
use crate::node::Problem;
use crate::problem_ids::ProblemId;

pub(super) static FORMAT: Format = Format {
    tool: "zpool status",
    is_verified: true,
    sniff,
    read,
};

/// Sections of a pool that hold no data of their own vdevs.
const SECTIONS: [&str; 5] = ["spares", "cache", "logs", "special", "dedup"];

fn sniff(input: &Input<'_>) -> Sniff {
    let has = |word: &str| {
        sniff_by(input, |line| {
            line.trim() == word || line.trim_start().starts_with(word)
        })
    };
    has("pool: ").min(has("config:"))
}

/// Leading blanks of a line; the tab among them precedes all lines of a table alike.
fn indent(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).count()
}

/// `block size: 512B configured, 4096B native`.
fn block_sizes(line: &str) -> Option<(u64, u64)> {
    let rest = line.split_once("block size: ")?.1;
    let (configured, native) = rest.split_once(" configured, ")?;
    let bytes = |word: &str| word.split('B').next()?.trim().parse().ok();
    Some((bytes(configured)?, bytes(native)?))
}

/// A pool that is being read.
#[derive(Default)]
struct ZpoolStatus {
    name: String,
    /// Indentation of the pool, and of its vdevs once one was seen.
    root: usize,
    top: Option<usize>,
    vdevs: Vec<Vdev>,
    /// Below a heading like `spares`: nothing is placed there.
    is_aside: bool,
}

impl ZpoolStatus {
    fn row(&mut self, line: &str, source: crate::grid::Source, builder: &mut Builder) {
        let (depth, name) = (
            indent(line),
            line.split_whitespace().next().unwrap_or_default(),
        );
        if depth <= self.root {
            self.is_aside = SECTIONS.contains(&name);
            return;
        }
        let top = *self.top.get_or_insert(depth);
        let is_top = depth <= top;
        let shape = VdevShape::parse(name);
        if self.is_aside || (is_top && shape.is_some_and(|shape| shape != VdevShape::Disk)) {
            if !self.is_aside {
                // The number in the name is that of zdb; a disk has none, and is counted.
                let number = name
                    .rsplit_once('-')
                    .and_then(|(_, number)| number.parse().ok());
                let number = number.unwrap_or(self.vdevs.len() as u64);
                let shape = shape.unwrap_or(VdevShape::Other);
                self.vdevs.push(Vdev {
                    shape,
                    number,
                    ashift: None,
                    disks: Vec::new(),
                    source,
                });
            }
            return;
        }
        if shape.is_some_and(|shape| shape == VdevShape::Other) {
            // A disk that is being replaced: both its disks count.
            return;
        }
        let disk = builder.node(name);
        if is_top {
            let number = self.vdevs.len() as u64;
            let shape = VdevShape::Disk;
            self.vdevs.push(Vdev {
                shape,
                number,
                ashift: None,
                disks: Vec::new(),
                source: source.clone(),
            });
        }
        let Some(vdev) = self.vdevs.last_mut() else {
            return;
        };
        vdev.disks.push(disk);
        let Some((configured, native)) = block_sizes(line) else {
            return;
        };
        vdev.ashift = vdev.ashift.or(zfs::shift_of(configured));
        if let Some(grid) = zfs::shift_of(native)
            .and_then(|_| Grid::new(Bytes(native), Bytes(0), GridKind::Unit).ok())
        {
            builder.grid(
                disk,
                GridFact::believed(grid, CellKind::PhysicalBlock, source.clone()),
            );
        }
        if configured < native {
            builder.problem(Problem {
                node: Some(disk),
                id: ProblemId::AshiftBelowBlock,
                text: format!(
                    "{name}: pool {} writes blocks of {configured} bytes to a disk of {native}",
                    self.name
                ),
                source,
            });
        }
    }

    fn finish(self, builder: &mut Builder, input: &Input<'_>, line: usize) {
        if !self.vdevs.is_empty() {
            let source = input.source(FORMAT.tool, line);
            builder.linux.pools.push(zfs::ZfsPool {
                name: self.name,
                vdevs: self.vdevs,
                has_paths: false,
                source,
            });
        }
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut name: Option<&str> = None;
    let mut pool: Option<(ZpoolStatus, usize)> = None;
    for (number, line) in input.text.lines().enumerate() {
        let text = line.trim();
        if let Some(found) = text.strip_prefix("pool: ") {
            if let Some((pool, line)) = pool.take() {
                pool.finish(builder, input, line);
            }
            name = Some(found.trim());
        } else if text.starts_with("errors:") || text.is_empty() {
            if let Some((pool, line)) = pool.take_if(|(pool, _)| !pool.vdevs.is_empty()) {
                pool.finish(builder, input, line);
            }
        } else if text.starts_with("NAME ") || text.starts_with("NAME\t") {
            pool = name.map(|name| {
                (
                    ZpoolStatus {
                        name: name.to_owned(),
                        ..ZpoolStatus::default()
                    },
                    number + 1,
                )
            });
            taken.understood += 1;
        } else if let Some((pool, _)) = &mut pool {
            taken.understood += 1;
            if text.split_whitespace().next() == Some(pool.name.as_str()) && pool.top.is_none() {
                pool.root = indent(line);
            } else {
                pool.row(line, input.source(FORMAT.tool, number + 1), builder);
            }
        }
    }
    if let Some((pool, line)) = pool {
        pool.finish(builder, input, line);
    }
    anything(
        taken,
        input,
        FORMAT.tool,
        "\"pool:\" and a table below \"config:\"",
    )
}
