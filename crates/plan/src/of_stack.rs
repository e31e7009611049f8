//! The same requests, filled in from a node of a stack, for a finding about that node.

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use plumb_stack::ProblemId;
use plumb_stack::node::keys;
use plumb_stack::node_facts::{HostSystem, LabelWord, VolumeManager};
use plumb_stack::{CellKind, Kind, Landing, Node, NodeId, Part, Placing, Stack, Verdict};

use crate::error::PlanError;
use crate::filesystem;
use crate::partition::{self, Content, FileSystem, LabelScheme};
use crate::softpart::{self, SoftPartition, Submirror};

/// Problems that must be fixed before a label is written, in the order of fixing.
const LABEL_PROBLEMS: [ProblemId; 5] = [
    ProblemId::UnfinishedMove,
    ProblemId::BrokenLabel,
    ProblemId::BeyondDevice,
    ProblemId::OverlappingPartitions,
    ProblemId::SectorSizeMismatch,
];

/// That nothing that a plan would move, and nothing below it, has bytes that may be those of others.
///
/// # Errors
/// If a layer has a conflict.
pub fn without_conflict(stack: &Stack, id: NodeId) -> Result<(), PlanError> {
    match stack
        .under(id)
        .into_iter()
        .find_map(|below| stack.conflict(below))
    {
        Some(found) => Err(PlanError::Conflict {
            found: found.to_owned(),
        }),
        None => Ok(()),
    }
}

/// A contiguous partition or slice on a disk, to be recreated on all grids of the disk.
///
/// # Errors
/// When the node is no such partition, or the label of its disk is not known.
pub fn partition(stack: &Stack, id: NodeId) -> Result<partition::PartitionRequest, PlanError> {
    let node = stack.node(id);
    let part = only_part(node)
        .filter(|_| node.kind == Kind::Partition)
        .ok_or(PlanError::Missing {
            what: "a partition in one piece on a disk",
            give: "name a partition or slice",
        })?;
    without_conflict(stack, id)?;
    has_whole_labels(stack, id)?;
    let disk = stack.node(part.node);
    let label = match label(node, disk)? {
        // Linux writes such a label as any other GPT, also on disks that ZFS uses completely.
        LabelScheme::SolarisEfi if is_on_linux(stack, node) => LabelScheme::Gpt,
        label => label,
    };
    let device = device_path(label, disk)?;
    let sector_bytes = logical_block(stack, part.node)?;
    let number = number(node, label)?;
    refuse_reserved(node, label, number, sector_bytes)?;
    let (after, before) = free_around(stack, id, part);
    let below = stack.grids_through(part.node);
    let mut grids: Vec<Grid> = below.iter().map(|fact| fact.grid).collect();
    let assumed = below.iter().all(|fact| fact.what == CellKind::Assumed);
    // A disk whose own start is moved against the assumed unit is no place for starts on a larger one.
    let is_off = Grid::ASSUMED.past_boundary(part.start) != Bytes(0);
    if assumed && is_off && grids.iter().all(|grid| grid.offset() == Bytes(0)) {
        grids = vec![partition::WIDEST_ASSUMED];
    }
    Ok(partition::PartitionRequest {
        device,
        label,
        is_new_label: false,
        sector_bytes,
        disk_bytes: disk.size,
        grids,
        are_grids_assumed: assumed,
        // From its present start on, so that the same data still fit in front of the next partition.
        after: after.max(part.start),
        before: before.or_else(|| last_end(stack, part.node).filter(|_| disk.size.is_none())),
        size: part.len.or(node.size),
        number,
        current: Some(part.start),
        content: content(stack, id),
        file_system: file_system(stack, id),
        reserved_from: reserved_from(stack, part.node),
        smaller_by: None,
    })
}

/// Tag of the slice that a Solaris EFI label keeps for itself.
const RESERVED_TAG: u64 = 11;
/// Its number as Linux counts, and its blocks (`EFI_MIN_RESV_SIZE` of illumos' `sys/efi_partition.h`).
const RESERVED_NUMBER: u32 = 9;
const RESERVED_BLOCKS: u64 = 16 << 10;

/// The start of the slice that the label of a disk reserves, by its tag.
fn reserved_from(stack: &Stack, disk: NodeId) -> Option<Bytes> {
    stack.above(disk).iter().find_map(|id| {
        let node = stack.node(*id);
        let is_reserved = node.number(keys::PARTITION_TAG) == Some(RESERVED_TAG);
        let Placing::Parts { parts } = &node.placing else {
            return None;
        };
        parts
            .iter()
            .find(|run| is_reserved && run.node == disk)
            .map(|run| run.start)
    })
}

/// Refuses the slice that a Solaris EFI label keeps for itself, which Linux shows as a partition of a GPT: by its tag,
/// or by number and size.
fn refuse_reserved(
    node: &Node,
    label: LabelScheme,
    number: u32,
    sector_bytes: u64,
) -> Result<(), PlanError> {
    let is_like =
        number == RESERVED_NUMBER && node.size == Some(Bytes(RESERVED_BLOCKS * sector_bytes));
    let is_reserved = match node.number(keys::PARTITION_TAG) {
        Some(tag) => tag == RESERVED_TAG,
        None => is_like,
    };
    if label != LabelScheme::Gpt || !is_reserved {
        return Ok(());
    }
    Err(PlanError::OutOfRange {
        what: "the partition",
        found: format!("number {number}, which Solaris and ZFS reserve at the end of a disk"),
        expected: "one that holds data: it stays where it is",
    })
}

/// The number by which the tools for a label call a partition: Solaris's own for a slice.
fn number(node: &Node, label: LabelScheme) -> Result<u32, PlanError> {
    let (key, missing) = match label.system() {
        crate::System::Linux => (
            keys::PARTITION_NUMBER,
            PlanError::Missing {
                what: "the number of the partition",
                give: "a dump that names it is needed: sfdisk, lsblk",
            },
        ),
        crate::System::Solaris => (
            keys::SLICE,
            PlanError::Missing {
                what: "the number of the slice",
                give: "give the output of prtvtoc: Linux counts slices otherwise",
            },
        ),
    };
    node.number(key)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or(missing)
}

/// Whether every label above a node is reliable: a tool that changes one entry writes all others again as it understood
/// them.
///
/// # Errors
/// When one is damaged, or its partitions cannot all be right.
pub(crate) fn has_whole_labels(stack: &Stack, id: NodeId) -> Result<(), PlanError> {
    let is_partition = |id: &NodeId| stack.node(*id).kind == Kind::Partition;
    let disks = stack
        .under(id)
        .into_iter()
        .filter(is_partition)
        .flat_map(|id| stack.node(id).placing.below());
    for disk in disks {
        has_whole_label(stack, disk)?;
    }
    Ok(())
}

/// Whether the label of a disk is reliable.
///
/// # Errors
/// As [`has_whole_labels`].
pub(crate) fn has_whole_label(stack: &Stack, disk: NodeId) -> Result<(), PlanError> {
    let has = |about: NodeId| {
        let is_partition = stack.node(about).kind == Kind::Partition;
        about == disk || is_partition && stack.above(disk).contains(&about)
    };
    let problem = |id| {
        stack
            .problems()
            .iter()
            .find(|one| one.id == id && one.node.is_some_and(has))
    };
    let Some(problem) = LABEL_PROBLEMS.into_iter().find_map(problem) else {
        return Ok(());
    };
    let disk = stack.node(disk).own_name().to_owned();
    Err(match problem.id {
        ProblemId::UnfinishedMove => PlanError::UnfinishedMove { disk },
        problem => PlanError::LabelProblem {
            disk,
            problem: problem.into(),
        },
    })
}

/// The file system that fills a partition, from the layer above or the partition itself.
fn file_system(stack: &Stack, id: NodeId) -> Option<FileSystem> {
    let above = stack.above(id).iter().map(|above| stack.node(*above));
    let mut of = above
        .filter(|node| node.kind == Kind::FileSystem)
        .chain([stack.node(id)]);
    of.find_map(|node| {
        let kind = node.value(keys::CONTENT)?.to_string();
        Some(FileSystem {
            kind,
            mount: node.word(keys::MOUNT).map(str::to_owned),
        })
    })
}

/// The end of the partition before a partition on its disk, and the start of the next one. Runs that contain all of it,
/// such as slices for the whole disk and extended partitions, are no neighbours.
fn free_around(stack: &Stack, id: NodeId, part: &Part) -> (Bytes, Option<Bytes>) {
    let end = |part: &Part| part.len.and_then(|len| part.start.checked_add(len));
    let extended = stack.node(part.node).number(keys::EXTENDED_START);
    let (mut after, mut before) = (Bytes(0), extended.filter(|start| *start > part.start));
    for other in stack.above(part.node).iter().filter(|other| **other != id) {
        let Placing::Parts { parts } = &stack.node(*other).placing else {
            continue;
        };
        for run in parts.iter().filter(|run| run.node == part.node) {
            if run.start > part.start {
                before = Some(before.map_or(run.start, |known| known.min(run.start)));
            } else if let Some(end) = end(run).filter(|end| *end <= part.start) {
                after = after.max(end);
            }
        }
    }
    (after, before)
}

/// The end of the last partition of a disk: if its size is unknown, nothing may be beyond.
fn last_end(stack: &Stack, disk: NodeId) -> Option<Bytes> {
    runs_on(stack, disk)
        .filter_map(|run| run.start.checked_add(run.len?))
        .max()
}

/// The ranges of a disk that partitions use.
fn runs_on(stack: &Stack, disk: NodeId) -> impl Iterator<Item = &Part> {
    let runs = stack
        .above(disk)
        .iter()
        .flat_map(|above| match &stack.node(*above).placing {
            Placing::Parts { parts } => parts.as_slice(),
            _ => &[],
        });
    runs.filter(move |run| run.node == disk)
}

fn only_part(node: &Node) -> Option<&Part> {
    match &node.placing {
        Placing::Parts { parts } if parts.len() == 1 => parts.first(),
        _ => None,
    }
}

/// Whether the host of a node says that it runs Linux.
fn is_on_linux(stack: &Stack, node: &Node) -> bool {
    let of_host = |host: &String| {
        let name = format!("{host}:{}", plumb_stack::graph::HOST);
        stack.find(&name).map(|id| stack.node(id))
    };
    let host = match &node.host {
        Some(host) => of_host(host),
        None => stack.host(),
    };
    host.is_some_and(|host| host.value(keys::SYSTEM) == Some(&HostSystem::Linux))
}

fn label(node: &Node, disk: &Node) -> Result<LabelScheme, PlanError> {
    let cylinder = disk
        .number(keys::CYLINDER_SECTORS)
        .or(node.number(keys::CYLINDER_SECTORS));
    let missing = |what, give| Err(PlanError::Missing { what, give });
    match (
        disk.value(keys::LABEL).or(node.value(keys::LABEL)),
        cylinder,
    ) {
        (Some(LabelWord::Gpt), _) => Ok(LabelScheme::Gpt),
        (Some(LabelWord::Dos), _) => Ok(LabelScheme::Dos),
        (Some(LabelWord::Efi), _) => Ok(LabelScheme::SolarisEfi),
        (Some(label), Some(cylinder_sectors)) if label.is_vtoc() => {
            Ok(LabelScheme::Smi { cylinder_sectors })
        }
        (Some(label), None) if label.is_vtoc() => {
            missing("the length of a cylinder", "give the output of prtvtoc")
        }
        (Some(_), _) => missing(
            "a label that can be planned for",
            "it must be GPT, DOS, Solaris EFI or SMI",
        ),
        (None, _) => missing(
            "the label of the disk",
            "give the output of sfdisk -d or prtvtoc",
        ),
    }
}

/// The path of a device; of an image in a file the name by which it was read, which no tool of Solaris takes.
fn device_path(label: LabelScheme, disk: &Node) -> Result<String, PlanError> {
    match (label.system(), disk.kind) {
        (crate::System::Linux, Kind::File) => Ok(disk.own_name().to_owned()),
        (crate::System::Linux, _) => Ok(lasting_path(disk)),
        (crate::System::Solaris, Kind::File) => Err(PlanError::Missing {
            what: "the name that Solaris has for the disk",
            give: "this is an image in a file: show it to that host as a disk, and check it there",
        }),
        (crate::System::Solaris, _) => Ok(disk.own_name().to_owned()),
    }
}

/// The path of a device of Linux. Arrays of md get their number when they are assembled, so that the name that they were
/// made with is given where it is known: commands are copied, and may be run after a reboot.
fn lasting_path(node: &Node) -> String {
    let own = |name| {
        node.host
            .as_ref()
            .and_then(|host| own_part(name, host))
            .unwrap_or(name)
    };
    let made_as = |name: &&str| {
        name.strip_prefix("md/")
            .is_some_and(|name| !name.contains('/'))
    };
    let name = node
        .aliases
        .iter()
        .map(|alias| own(alias))
        .find(made_as)
        .unwrap_or(node.own_name());
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/dev/{name}")
    }
}

/// A name without the host before it.
fn own_part<'a>(name: &'a str, host: &str) -> Option<&'a str> {
    name.strip_prefix(host)?.strip_prefix(':')
}

/// The block that the label of a disk counts in. It has to be the one that tools take: others find no label there, and
/// some of them then write a new one.
///
/// # Errors
/// When the two are not the same, or nothing tells 512 bytes from 4,096.
fn logical_block(stack: &Stack, id: NodeId) -> Result<u64, PlanError> {
    let disk = stack.node(id);
    let stated = disk
        .grids
        .iter()
        .find(|fact| fact.what == CellKind::LogicalBlock && fact.is_believed());
    let stated = stated.map(|fact| fact.granularity().0);
    let in_label = disk.number(keys::LABEL_BLOCK).map(|block| block.0);
    let of_tools = if disk.kind == Kind::File {
        Some(SECTOR)
    } else {
        stated.or(in_label)
    };
    match (in_label.or(stated), of_tools) {
        (Some(block), Some(of_tools)) if block != of_tools => Err(PlanError::OutOfRange {
            what: "the logical block of the label",
            found: Bytes(block).to_string(),
            expected: "that of the device, which tools count in, in a file 512 B: attach an image with \
                       losetup --sector-size, and plan for the loop device",
        }),
        (Some(block), _) => Ok(block),
        (None, _) if is_off_4k(stack, id) => Ok(SECTOR),
        (None, _) => Err(PlanError::Missing {
            what: "the logical block of the disk",
            give: "it may be 512 or 4,096 bytes: give the output of fdisk -l or lsblk -O -J -b as well",
        }),
    }
}

/// Whether a partition of a disk begins or ends where no block of 4 KiB does.
fn is_off_4k(stack: &Stack, disk: NodeId) -> bool {
    let is_off = |bytes: Bytes| !bytes.0.is_multiple_of(4096);
    runs_on(stack, disk).any(|run| is_off(run.start) || run.len.is_some_and(is_off))
}

/// The content of a partition, if it can move data by itself.
fn content(stack: &Stack, id: NodeId) -> Option<Content> {
    let above: Vec<&Node> = stack
        .above(id)
        .iter()
        .map(|above| stack.node(*above))
        .collect();
    let managed = |manager: VolumeManager| {
        above
            .iter()
            .find(|node| node.value(keys::MANAGER) == Some(&manager))
    };
    if let Some(volume) = managed(VolumeManager::Lvm) {
        let group = volume
            .own_name()
            .split('/')
            .next()
            .unwrap_or(volume.own_name())
            .to_owned();
        return Some(Content::Lvm { group });
    }
    // md replaces members of arrays that have redundancy only.
    let is_redundant = |node: &&&Node| match &node.placing {
        Placing::Chunks(chunks) => chunks.parity > 0 || chunks.copies > 1,
        placing => matches!(placing, Placing::Copies { .. }),
    };
    if let Some(array) = managed(VolumeManager::Md).filter(is_redundant) {
        return Some(Content::Md {
            array: lasting_path(array),
        });
    }
    if let Some(pool) = managed(VolumeManager::Zfs) {
        return Some(Content::Zfs {
            pool: pool
                .own_name()
                .split('/')
                .next()
                .unwrap_or(pool.own_name())
                .to_owned(),
        });
    }
    submirror(stack, id).map(|side| Content::SvmMirror {
        mirror: side.mirror,
        submirror: side.submirror,
    })
}

/// The mirror that a node is one side of, through a stripe or concatenation of nothing else.
fn submirror(stack: &Stack, id: NodeId) -> Option<Submirror> {
    let [side] = stack.above(id) else { return None };
    let [mirror] = stack.above(*side) else {
        return None;
    };
    let (mirror, side) = (stack.node(*mirror), stack.node(*side));
    let is_whole = side.placing.below().len() == 1;
    (mirror.kind == Kind::Mirror && is_whole).then(|| Submirror {
        mirror: mirror.own_name().to_owned(),
        submirror: side.own_name().to_owned(),
    })
}

/// All soft partitions of a component, to be put on `unit`, or, when not given, on the chunk of the component or the
/// grid that decides below it.
///
/// # Errors
/// If there is no such layer, or the position of the component is unknown.
pub fn softpart(
    stack: &Stack,
    component: NodeId,
    unit: Option<Bytes>,
) -> Result<softpart::SoftpartRequest, PlanError> {
    let is_soft = |id: &&NodeId| stack.node(**id).kind == Kind::SoftPartition;
    let cut_out: Vec<NodeId> = stack
        .above(component)
        .iter()
        .filter(is_soft)
        .copied()
        .collect();
    let existing: Vec<SoftPartition> = cut_out
        .iter()
        .map(|id| SoftPartition {
            name: stack.node(*id).own_name().to_owned(),
            extents: extents(stack.node(*id), component),
            mirror: submirror(stack, *id),
            users: users(stack, *id),
        })
        .collect();
    if existing.is_empty() {
        return Err(PlanError::Missing {
            what: "a soft partition",
            give: "name the component that they are cut from",
        });
    }
    for id in cut_out {
        without_conflict(stack, id)?;
        if stack.node(id).value(keys::MANAGER) == Some(&VolumeManager::Vxvm) {
            return Err(PlanError::Missing {
                what: "a soft partition of Solaris Volume Manager",
                give: "subdisks of VxVM are not planned",
            });
        }
    }
    let node = stack.node(component);
    let (unit, base, is_unit_assumed) = unit_and_base(stack, component, unit)?;
    Ok(softpart::SoftpartRequest {
        component: node.own_name().to_owned(),
        unit,
        is_unit_assumed,
        off_below: off_below(stack, component),
        base,
        component_bytes: node.size,
        existing,
        new: Vec::new(),
    })
}

/// A sentence if a component itself starts off a unit of the disks below: offsets on the unit of the component are off
/// that of the disk then.
fn off_below(stack: &Stack, component: NodeId) -> Option<String> {
    let standings = stack.standings_of(&stack.landings(component));
    standings.into_iter().find_map(|standing| {
        let Verdict::Misaligned { by } = standing.verdict else {
            return None;
        };
        // The member on the disk itself, or the component.
        let below = standing.landing.via.iter().rev().find(|id| **id != standing.landing.on)?;
        Some(format!(
            "{} starts {by} past a {} boundary of {}: move it first, or the extents stay misaligned",
            stack.node(*below).own_name(),
            standing.fact.granularity(),
            stack.node(standing.landing.on).own_name(),
        ))
    })
}

/// Volumes above a soft partition, the topmost first; its mirror is named elsewhere.
fn users(stack: &Stack, id: NodeId) -> Vec<String> {
    if submirror(stack, id).is_some() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next = vec![id];
    while let Some(id) = next.pop() {
        for above in stack.above(id) {
            let is_volume = !matches!(
                stack.node(*above).kind,
                Kind::FileSystem | Kind::Swap | Kind::File
            );
            if is_volume && !found.contains(above) {
                found.push(*above);
                next.push(*above);
            }
        }
    }
    let names = found.iter().rev();
    names
        .map(|id| stack.node(*id).own_name().to_owned())
        .collect()
}

fn extents(node: &Node, component: NodeId) -> Vec<(u64, u64)> {
    let Placing::Parts { parts } = &node.placing else {
        return Vec::new();
    };
    let on = parts.iter().filter(|part| part.node == component);
    on.filter_map(|part| {
        Some((
            part.start.to_sectors_exact()?.0,
            part.len?.to_sectors_exact()?.0,
        ))
    })
    .collect()
}

/// The unit, the start of the component on it, and whether the unit is only assumed. On a stripe offsets are those of
/// the stripe; elsewhere they are folded down to the disks, which all have to agree. If nothing is known below, as
/// without the label of the disk, offsets count from the component, and its start is assumed to be on the unit.
fn unit_and_base(
    stack: &Stack,
    component: NodeId,
    unit: Option<Bytes>,
) -> Result<(Bytes, Bytes, bool), PlanError> {
    if let Placing::Chunks(chunks) = &stack.node(component).placing {
        return Ok((unit.unwrap_or(chunks.chunk), Bytes(0), false));
    }
    if stack.node(component).placing.below().is_empty() {
        let facts = stack.deciding_grids(component);
        let coarsest = facts.iter().max_by_key(|fact| fact.granularity());
        let is_assumed = coarsest.is_none_or(|fact| fact.what == CellKind::Assumed);
        let stated = coarsest.map_or(Grid::ASSUMED.granularity(), |fact| fact.granularity());
        let is_given = unit.is_some();
        return Ok((unit.unwrap_or(stated), Bytes(0), is_assumed && !is_given));
    }
    let landings = stack.landings(component);
    let leaves: Vec<&Landing> = landings
        .all
        .iter()
        .filter(|landing| stack.is_leaf(landing.on))
        .collect();
    let unknown = PlanError::Missing {
        what: "the start of the component on its disk",
        give: "give the label of the disk as well: prtvtoc",
    };
    if !landings.lost.is_empty() {
        return Err(unknown);
    }
    let coarsest = leaves
        .iter()
        .flat_map(|leaf| stack.deciding_grids(leaf.on))
        .max_by_key(|fact| fact.granularity());
    let is_assumed = coarsest
        .as_ref()
        .is_some_and(|fact| fact.what == CellKind::Assumed && unit.is_none());
    let coarsest = coarsest.map(|fact| fact.grid);
    let unit = unit
        .or(coarsest.map(|grid| grid.granularity()))
        .ok_or(unknown.clone())?;
    let offset = coarsest.map_or(0, |grid| grid.offset().0 % unit.0.max(1));
    let grid =
        Grid::new(unit, Bytes(offset), GridKind::Unit).map_err(|_| PlanError::OutOfRange {
            what: "the unit",
            found: "0".to_owned(),
            expected: "at least one sector",
        })?;
    let mut bases = leaves.iter().map(|leaf| leaf.phase(&grid));
    let first = bases.next().ok_or(unknown.clone())?;
    match first {
        plumb_stack::fold::Phase::Past(past) if bases.all(|base| base == first) => {
            Ok((unit, past, is_assumed))
        }
        _ => Err(PlanError::OutOfRange {
            what: "the start of the component",
            found: "not the same on all disks below".to_owned(),
            expected: "one phase: move its parts first",
        }),
    }
}

/// The parameters of a file system for the nearest stripe below a node.
///
/// # Errors
/// When there is no stripe below it.
pub fn filesystem(
    stack: &Stack,
    id: NodeId,
    kind: filesystem::Type,
) -> Result<filesystem::FilesystemRequest, PlanError> {
    without_conflict(stack, id)?;
    let chunks = stack
        .under(id)
        .into_iter()
        .find_map(|below| match &stack.node(below).placing {
            Placing::Chunks(chunks) => Some(chunks.clone()),
            _ => None,
        });
    let chunks = chunks.ok_or(PlanError::Missing {
        what: "a stripe below it",
        give: "give its chunk and members",
    })?;
    let node = stack.node(id);
    // A file system goes by the directory where it is mounted, or by none; its commands want the device that it is on.
    let is_device = |at: &NodeId| stack.node(*at).kind != Kind::FileSystem;
    let device = stack.node(stack.under(id).into_iter().find(is_device).unwrap_or(id));
    let physical = stack
        .under(id)
        .into_iter()
        .flat_map(|below| stack.deciding_grids(below));
    let physical = physical
        .filter(|fact| fact.what == CellKind::PhysicalBlock)
        .map(|fact| fact.granularity());
    Ok(filesystem::FilesystemRequest {
        kind,
        device: lasting_path(device),
        mount: node.word(keys::MOUNT).map(str::to_owned),
        chunk: Some(chunks.chunk),
        data_members: chunks.data_chunks(),
        block: node.number(keys::FS_BLOCK),
        physical: physical.max().unwrap_or(Bytes(4096)),
        page: None,
    })
}
