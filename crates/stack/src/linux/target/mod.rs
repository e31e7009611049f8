//! The exports of this host: LUNs of LIO and namespaces of nvmet, from configfs.
//!
//! Each becomes a node on the device or file behind it, byte for byte, with the blocks that it states to its
//! initiators. That statement is kept and not believed, because the layers below are known here: a rule compares the
//! two. If the initiator is this same host (LIO's loopback, NVMe over loop or TCP to itself), its disk is joined with
//! the export, by the address on the adapter or by an identity that only one export has.

mod backing;
mod join;
mod lio;
mod nvmet;

use std::collections::HashMap;

use plumb_geometry::{Bytes, Grid, GridKind};

use super::device::{Below, SysfsDevice};
use super::reader::SysfsReader;
use super::{Host, Root};
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, GridFact, Source};
use crate::node::{Kind, Part, Placing, keys};
use crate::obstacle::GridDoubt;
use backing::Backing;

/// Directory of the targets' configuration.
const CONFIG: &str = "sys/kernel/config";

/// Something shown to other hosts.
#[derive(Debug, Default)]
struct Export {
    /// Its names; the first one names the node.
    names: Vec<String>,
    /// Its directory, without the leading `/`.
    path: String,
    /// `lio`, `nvmet`.
    by: &'static str,
    backstore: String,
    backing: Backing,
    target: Option<String>,
    unit: Option<u64>,
    transport: Option<String>,
    portal: Option<String>,
    /// Bytes, where its target says so itself.
    size: Option<u64>,
    /// Blocks of the export, if its target is configured with them.
    block: Option<u64>,
    /// The optimal size that an initiator sees, bytes.
    optimal: Option<u64>,
    /// Granularity and first boundary of discards, bytes.
    discard: Option<(u64, u64)>,
    write_cache: Option<bool>,
    identity: Option<String>,
    serial: Option<String>,
    uuid: Option<String>,
    nguid: Option<String>,
    /// Addresses of the disks that an adapter of this host makes of it.
    addresses: Vec<String>,
}

/// The statement about blocks that an initiator sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stated {
    logical: u64,
    physical: u64,
    /// Of the first physical block.
    offset: u64,
}

/// Tells of all exports, and puts disks of this host on theirs.
pub(super) fn tell_all(
    root: &Root<'_>,
    host: &mut Host,
    builder: &mut Builder,
    devices: &[SysfsDevice],
) {
    let mut reader = SysfsReader::new();
    let mut exports = lio::read(root, &mut reader);
    exports.extend(nvmet::read(root, &mut reader));
    host.work.files += reader.files;
    host.work.directories += reader.directories;
    for note in reader.into_notes() {
        builder.note(note);
    }
    if exports.is_empty() {
        return;
    }
    let mut by_node: HashMap<NodeId, &SysfsDevice> = HashMap::new();
    for device in devices {
        by_node.insert(host.device(builder, &device.name), device);
    }
    let mut told = Vec::new();
    for export in &mut exports {
        if let Some(node) = tell(root, host, builder, &by_node, export) {
            told.push((node, &*export));
        }
    }
    join::join(builder, &by_node, &told);
}

fn tell(
    root: &Root<'_>,
    host: &Host,
    builder: &mut Builder,
    devices: &HashMap<NodeId, &SysfsDevice>,
    export: &mut Export,
) -> Option<NodeId> {
    let source = Source::Kernel {
        path: format!("/{}", export.path),
    };
    let (name, others) = export.names.split_first()?;
    let node = builder.node(name);
    builder.kind(node, Kind::Export, &source);
    for other in others {
        builder.alias(node, other);
    }
    let below = match export.backing.resolve(root, host, builder, devices, name) {
        Ok(below) => below,
        Err(why) => {
            builder.opaque(node, why.clone());
            builder.place(
                node,
                Placing::Unknown {
                    members: Vec::new(),
                    why,
                },
                &source,
            );
            tell_facts(builder, node, export, &source);
            return Some(node);
        }
    };
    let size = export.size.map(Bytes).or(builder.get(below).size);
    if let Some(size) = size {
        builder.size(node, size, &source);
    }
    if export.backstore == "pscsi" {
        export.identity = devices
            .get(&below)
            .and_then(|device| device.identity.clone());
    }
    let part = Part {
        upper: Bytes(0),
        node: below,
        start: Bytes(0),
        len: size,
    };
    builder.place(node, Placing::Parts { parts: vec![part] }, &source);
    tell_facts(builder, node, export, &source);
    if let Some(stated) = stated(export, host, builder, devices, below) {
        tell_blocks(builder, node, export, stated);
    }
    Some(node)
}

fn tell_facts(builder: &mut Builder, node: NodeId, export: &Export, source: &Source) {
    builder.fact(node, keys::EXPORTED_BY, export.by, source);
    builder.fact(node, keys::BACKSTORE, export.backstore.as_str(), source);
    builder.fact_if(node, keys::UNIT_NUMBER, export.unit, source);
    let cache = export
        .write_cache
        .map(|is_on| if is_on { "write back" } else { "write through" }.to_owned());
    for (key, value) in [
        (keys::TARGET, &export.target),
        (keys::TRANSPORT, &export.transport),
        (keys::PORTAL, &export.portal),
        (keys::WRITE_CACHE, &cache),
        (keys::IDENTITY, &export.identity),
        (keys::SERIAL, &export.serial),
        (keys::UUID, &export.uuid),
        (keys::NGUID, &export.nguid),
    ] {
        if let Some(value) = value {
            builder.fact(node, key, value.as_str(), source);
        }
    }
}

/// The statement about the blocks of an export that an initiator sees.
///
/// LIO hands on exponent and alignment of a block device as they are, but counts them in the blocks that it exports
/// (`iblock_get_lbppbe`, since Linux 3.13); of a file and of memory it states no physical block. nvmet takes the logical
/// block of the device, and its physical one as NPWG, NPWA and NAWUPF (`nvmet_bdev_set_limits`, since 5.4), but can state no
/// offset. The blocks of a file behind nvmet are those of its file system, which configfs does not show.
fn stated(
    export: &Export,
    host: &Host,
    builder: &mut Builder,
    devices: &HashMap<NodeId, &SysfsDevice>,
    below: NodeId,
) -> Option<Stated> {
    let device = devices.get(&below).copied();
    let blocks = device.and_then(|device| limits_of(device, host, builder, devices));
    match (export.by, export.backstore.as_str()) {
        ("lio", "iblock" | "pscsi") => {
            let (logical, physical) = blocks?;
            let block = export.block.unwrap_or(logical);
            let blocks_per_physical = (physical / logical).max(1);
            let start = device?
                .alignment_offset
                .and_then(|offset| u64::try_from(offset).ok())
                .unwrap_or(0);
            let physical = block.checked_mul(1 << blocks_per_physical.ilog2())?;
            let offset = (start / logical).checked_mul(block)? % physical;
            Some(Stated {
                logical: block,
                physical,
                offset,
            })
        }
        ("lio", _) => {
            let block = export.block?;
            Some(Stated {
                logical: block,
                physical: block,
                offset: 0,
            })
        }
        _ => blocks.map(|(logical, physical)| Stated {
            logical,
            physical: physical.max(logical),
            offset: 0,
        }),
    }
}

/// Blocks that a device states; a partition has those of its disk.
fn limits_of(
    device: &SysfsDevice,
    host: &Host,
    builder: &mut Builder,
    devices: &HashMap<NodeId, &SysfsDevice>,
) -> Option<(u64, u64)> {
    match &device.below {
        Below::Partition { parent, .. } => {
            let disk = host.device(builder, parent);
            devices.get(&disk)?.queue.as_ref()?.blocks()
        }
        _ => device.queue.as_ref()?.blocks(),
    }
}

fn tell_blocks(builder: &mut Builder, node: NodeId, export: &Export, stated: Stated) {
    let source = |file: &str| Source::Kernel {
        path: format!("/{}/{file}", export.path),
    };
    let (block_file, unmap_file, optimal_file) = match export.by {
        "lio" => (
            "attrib/block_size",
            "attrib/unmap_granularity",
            "attrib/optimal_sectors",
        ),
        _ => ("device_path", "device_path", "device_path"),
    };
    if let Ok(grid) = Grid::unit(Bytes(stated.logical)) {
        builder.grid(
            node,
            GridFact::believed(grid, CellKind::LogicalBlock, source(block_file)),
        );
    }
    let discard = export.discard.filter(|(granularity, _)| *granularity > 0);
    for (granularity, offset, what, file) in [
        (
            Some(stated.physical),
            stated.offset,
            CellKind::PhysicalBlock,
            block_file,
        ),
        (export.optimal, 0, CellKind::OptimalIo, optimal_file),
        (
            discard.map(|it| it.0),
            discard.map_or(0, |it| it.1 % it.0),
            CellKind::DiscardUnit,
            unmap_file,
        ),
    ] {
        let Some(granularity) = granularity else {
            continue;
        };
        let Ok(grid) = Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit) else {
            continue;
        };
        let why = GridDoubt::StatedToInitiators;
        builder.grid(node, GridFact::doubted(grid, what, source(file), why));
    }
}
