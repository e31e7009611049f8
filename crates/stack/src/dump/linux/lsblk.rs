//! `lsblk -J`, with `-O -b` for all of its columns: layers, limits, and starts of partitions.
//!
//! START is in sectors of 512 bytes for any logical sector, as in sysfs, the source of lsblk. It does not show the data
//! position of volumes.

use plumb_geometry::{Bytes, Sectors, group_digits};
use serde_json::Value;

use super::super::text::{anything, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken, shown};
use super::limits::{self, PrintedLimits};
use super::mounts::Mounted;
use super::names::{self, disk_of, on_linux};
use super::pending::Stacked;
use crate::builder::{Builder, device_name};
use crate::dm_table::number_of;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::linux::{Family, kind_of};
use crate::node::{Kind, Member, Part, Placing, keys};
use crate::obstacle::Obstacle;

pub(super) static FORMAT: Format = Format {
    tool: "lsblk -J",
    is_verified: true,
    sniff,
    read,
};

/// Transport of a disk of another host; this host sees only the statements of its target. NVMe over fabrics is `nvme`
/// here, as drives in the host are.
const ISCSI: &str = "iscsi";

fn sniff(input: &Input<'_>) -> Sniff {
    let is_json = input.text.trim_start().starts_with('{');
    if is_json {
        sniff_by(input, |line| line.contains("\"blockdevices\""))
    } else {
        Sniff::No
    }
}

/// Memory of an object: its map begins with room for eleven keys and values.
const OBJECT_BYTES: u64 = 700;
/// Memory of any other value, where the list that it is in grows.
const VALUE_BYTES: u64 = 100;
/// Most memory for the values of a text: those of ten thousand devices, by `lsblk -J -O`, take some 200 MB.
const VALUES_BYTES_MAX: u64 = 512 << 20;

/// An upper bound of the memory that values take. Short ones take a hundred times as much as their text, which a
/// collection packs very small.
fn values_bytes(text: &str) -> u64 {
    let cost = |byte: u8| match byte {
        b'{' => OBJECT_BYTES,
        b'[' | b',' | b':' => VALUE_BYTES,
        _ => 0,
    };
    text.bytes().map(cost).sum()
}

/// The value of a text that is JSON.
pub(super) fn json(input: &Input<'_>, tool: &'static str) -> Result<Value, DumpError> {
    let bytes = values_bytes(input.text);
    if bytes > VALUES_BYTES_MAX {
        return Err(DumpError::Malformed {
            tool,
            file: input.name.to_owned(),
            line: 1,
            found: format!("values that take {} bytes of memory", group_digits(bytes)),
            expected: "at most 512 MiB".to_owned(),
        });
    }
    serde_json::from_str(input.text).map_err(|error| DumpError::Malformed {
        tool,
        file: input.name.to_owned(),
        line: error.line() as u64,
        found: shown(
            input
                .text
                .lines()
                .nth(error.line().saturating_sub(1))
                .unwrap_or("the end"),
        ),
        expected: "JSON".to_owned(),
    })
}

/// A number, which some versions write as a word.
pub(super) fn number(value: &Value, key: &str) -> Option<u64> {
    match value.get(key)? {
        Value::Number(number) => number.as_u64(),
        Value::String(word) => word.trim().parse().ok(),
        _ => None,
    }
}

fn signed(value: &Value, key: &str) -> Option<i64> {
    match value.get(key)? {
        Value::Number(number) => number.as_i64(),
        Value::String(word) => word.trim().parse().ok(),
        _ => None,
    }
}

fn word<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value
        .get(key)?
        .as_str()
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

/// Some versions say `"1"`, some `true`.
fn flag(value: &Value, key: &str) -> Option<bool> {
    match value.get(key)? {
        Value::Bool(flag) => Some(*flag),
        Value::String(word) => Some(word == "1"),
        Value::Number(number) => Some(number.as_u64() == Some(1)),
        _ => None,
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let value = json(input, FORMAT.tool)?;
    let source = input.source(FORMAT.tool, 0);
    let mut taken = Taken::default();
    let devices = value.get("blockdevices").and_then(Value::as_array);
    for device in devices.into_iter().flatten() {
        // As deep as the JSON, which its reader bounds.
        walk(builder, device, None, &source, &mut taken);
    }
    on_linux(builder, &source);
    anything(taken, input, FORMAT.tool, "\"blockdevices\" with \"name\"")
}

fn walk(
    builder: &mut Builder,
    device: &Value,
    parent: Option<NodeId>,
    source: &Source,
    taken: &mut Taken,
) {
    if is_extended(device) || word(device, "type") == Some("rom") {
        tell_extended(builder, device, parent, source);
        taken.understood += 1;
        return;
    }
    let Some(node) = tell(builder, device, parent, source) else {
        taken.passed_over += 1;
        return;
    };
    taken.understood += 1;
    for child in device
        .get("children")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        walk(builder, child, Some(node), source, taken);
    }
}

/// The node of a device under all its names.
fn node_of(builder: &mut Builder, device: &Value) -> Option<NodeId> {
    let name = word(device, "name").or(word(device, "kname"))?;
    let kernels = word(device, "kname").unwrap_or(name).replace('!', "/");
    let is_mapped = device_name(&kernels).starts_with("dm-") || word(device, "type") == Some("lvm");
    let name = device_name(name).trim_start_matches("mapper/").to_owned();
    let node = if is_mapped {
        let node = names::mapped(builder, &name, word(device, "type") == Some("lvm"));
        builder.alias(node, &kernels);
        node
    } else {
        builder.node(&kernels)
    };
    if let Some(number) = word(device, "maj:min").and_then(number_of) {
        builder.linux.numbers.insert(number, node);
    }
    Some(node)
}

fn tell(
    builder: &mut Builder,
    device: &Value,
    parent: Option<NodeId>,
    source: &Source,
) -> Option<NodeId> {
    let kind = word(device, "type").unwrap_or_default();
    let node = node_of(builder, device)?;
    let parent = parent.or_else(|| word(device, "pkname").map(|name| builder.node(name)));
    tell_facts(builder, device, node, source);
    if kind == "part" {
        tell_partition(builder, device, node, parent, source);
        return Some(node);
    }
    if let Some(size) = number(device, "size") {
        builder.size(node, Bytes(size), source);
    }
    let name = device_name(word(device, "kname").or(word(device, "name"))?).into_owned();
    let family = if matches!(kind, "lvm" | "crypt" | "dm" | "mpath") {
        Family::Mapped
    } else {
        Family::from_name(&name)
    };
    let words = [word(device, "vendor"), word(device, "model")];
    let model = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if kind == "disk" && !model.is_empty() {
        builder.fact(node, keys::MODEL, model.as_str(), source);
    }
    let kind_of_node = match word(device, "tran").filter(|_| kind == "disk") {
        Some(ISCSI) => {
            builder.fact(node, keys::TRANSPORT, ISCSI, source);
            Kind::VirtualDisk
        }
        _ => kind_by_type(kind, family, &model),
    };
    builder.kind(node, kind_of_node, source);
    limits::tell(builder, node, family, &limits_of(device), source);
    if kind == "loop" {
        builder.opaque(node, Obstacle::LoopFileNotPrinted);
    }
    if let Some(lower) = parent.filter(|parent| *parent != node) {
        let why = why_unplaced(kind);
        let stacked = Stacked {
            upper: node,
            lower,
            why,
            source: source.clone(),
        };
        builder.linux.stacked.push(stacked);
    }
    Some(node)
}

fn kind_by_type(kind: &str, family: Family, model: &str) -> Kind {
    match kind {
        "lvm" | "dm" => Kind::LogicalVolume,
        "crypt" => Kind::Crypt,
        "mpath" => Kind::Multipath,
        "loop" => Kind::Loop,
        "linear" => Kind::Concat,
        "raid0" | "raid10" => Kind::Stripe,
        "raid1" => Kind::Mirror,
        "raid4" | "raid5" | "raid6" => Kind::ParityRaid,
        _ => kind_of(family, model),
    }
}

fn why_unplaced(kind: &str) -> Obstacle {
    match kind {
        "raid0" | "raid1" | "raid10" | "raid4" | "raid5" | "raid6" | "linear" | "md" => {
            Obstacle::ArrayStartNotPrinted
        }
        _ => Obstacle::MappedStartNotPrinted,
    }
}

fn tell_facts(builder: &mut Builder, device: &Value, node: NodeId, source: &Source) {
    let content = word(device, "fstype").map(|kind| match kind {
        "LVM2_member" => "LVM2 PV",
        "linux_raid_member" => "md member",
        "zfs_member" => "zfs member",
        kind => kind,
    });
    let zoned = word(device, "zoned").filter(|zoned| *zoned != "none");
    builder.fact_if(node, keys::CONTENT, content, source);
    builder.fact_if(node, keys::SCHEDULER, word(device, "sched"), source);
    builder.fact_if(node, keys::ZONED, zoned, source);
    let identity = word(device, "wwn").filter(|_| word(device, "type") == Some("disk"));
    builder.fact_if(node, keys::IDENTITY, identity, source);
    let label = word(device, "pttype").filter(|_| word(device, "type") != Some("part"));
    builder.fact_if(node, keys::LABEL, label, source);
    if word(device, "type") != Some("part") {
        let read_ahead = number(device, "ra").and_then(|kib| kib.checked_mul(1024));
        builder.fact_if(node, keys::READ_AHEAD, read_ahead.map(Bytes), source);
        builder.fact_if(node, keys::QUEUE_DEPTH, number(device, "rq-size"), source);
    }
    builder.fact_if(node, keys::ROTATIONAL, flag(device, "rota"), source);
    let is_read_only = flag(device, "ro").filter(|is_read_only| *is_read_only);
    builder.fact_if(node, keys::READ_ONLY, is_read_only, source);
    let mounts = device
        .get("mountpoints")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mounts = mounts
        .chain(device.get("mountpoint"))
        .filter_map(Value::as_str);
    for at in mounts.filter(|at| !at.is_empty()) {
        let kind = content.unwrap_or_default().to_owned();
        builder.linux.mounted.push(Mounted {
            device: node,
            at: at.to_owned(),
            kind,
            options: None,
            source: source.clone(),
        });
    }
}

fn limits_of(device: &Value) -> PrintedLimits {
    let has_discards = number(device, "disc-max").is_some_and(|most| most > 0);
    // Of a disk without zones this column has the boundary that I/O should not cross (chunk_sectors).
    let has_zones = word(device, "zoned").is_some_and(|zoned| zoned != "none");
    PrintedLimits {
        logical: number(device, "log-sec"),
        physical: number(device, "phy-sec"),
        minimum_io: number(device, "min-io"),
        optimal_io: number(device, "opt-io"),
        alignment_offset: signed(device, "alignment"),
        discard_granularity: number(device, "disc-gran").filter(|_| has_discards),
        discard_alignment: signed(device, "disc-aln").filter(|_| has_discards),
        zone: number(device, "zone-sz").filter(|_| has_zones),
    }
}

/// The extended partition of an MBR holds nothing but others, and to the kernel is a sector or two long.
fn is_extended(device: &Value) -> bool {
    let is_tiny = || number(device, "size") == Some(1024) && word(device, "fstype").is_none();
    word(device, "type") == Some("part")
        && (matches!(word(device, "parttype"), Some("0x5" | "0xf" | "0x85")) || is_tiny())
}

/// For an extended partition only its start counts: another partition may end there.
fn tell_extended(builder: &mut Builder, device: &Value, parent: Option<NodeId>, source: &Source) {
    let disk = word(device, "pkname")
        .or_else(|| word(device, "name").and_then(disk_of))
        .map(str::to_owned);
    let disk = parent.or_else(|| disk.map(|disk| builder.node(&disk)));
    let start = number(device, "start").and_then(|start| Sectors(start).to_bytes());
    if let (Some(disk), Some(start), true) = (disk, start, is_extended(device)) {
        builder.fact(disk, keys::EXTENDED_START, start, source);
    }
}

fn tell_partition(
    builder: &mut Builder,
    device: &Value,
    node: NodeId,
    parent: Option<NodeId>,
    source: &Source,
) {
    builder.kind(node, Kind::Partition, source);
    if let Some(offset) = signed(device, "alignment").filter(|offset| *offset != 0) {
        builder.fact(node, keys::ALIGNMENT_OFFSET, offset, source);
    }
    let name = builder.get(node).name.clone();
    let disk = parent.or_else(|| disk_of(&name).map(|disk| builder.node(disk)));
    let number_in_name =
        disk_of(&name).and_then(|disk| name[disk.len()..].trim_start_matches('p').parse().ok());
    if let Some(in_label) = number(device, "partn").or(number_in_name) {
        builder.fact(node, keys::PARTITION_NUMBER, in_label, source);
    }
    let Some(disk) = disk.filter(|disk| *disk != node) else {
        return;
    };
    let len = number(device, "size").map(Bytes);
    if let Some(len) = len {
        builder.size(node, len, source);
    }
    match number(device, "start").and_then(|start| Sectors(start).to_bytes()) {
        Some(start) => {
            let part = Part {
                upper: Bytes(0),
                node: disk,
                start,
                len,
            };
            builder.place(node, Placing::Parts { parts: vec![part] }, source);
        }
        None => {
            let why = Obstacle::NoStartColumn;
            builder.linux.stacked.push(Stacked {
                upper: node,
                lower: disk,
                why,
                source: source.clone(),
            });
        }
    }
}

/// For nodes without a placing, adds at least the devices below. Paths are placed as the devices below.
pub(super) fn place_rest(builder: &mut Builder) {
    let mut uppers: Vec<(Stacked, Vec<NodeId>)> = Vec::new();
    let mut at = std::collections::HashMap::new();
    for stacked in std::mem::take(&mut builder.linux.stacked) {
        let index = *at.entry(stacked.upper).or_insert_with(|| {
            uppers.push((stacked.clone(), Vec::new()));
            uppers.len() - 1
        });
        uppers[index].1.push(stacked.lower);
    }
    for (
        Stacked {
            upper, why, source, ..
        },
        mut lowers,
    ) in uppers
    {
        if builder.get(upper).placing != Placing::Leaf {
            continue;
        }
        let mut seen = std::collections::HashSet::new();
        lowers.retain(|lower| seen.insert(*lower));
        let placing = if builder.get(upper).kind == Kind::Multipath {
            for path in &lowers {
                builder.kind(*path, Kind::Path, &source);
            }
            let members = lowers
                .into_iter()
                .map(|node| Member {
                    node,
                    start: Bytes(0),
                })
                .collect();
            Placing::Copies { members }
        } else {
            Placing::Unknown {
                members: lowers,
                why,
            }
        };
        builder.place(upper, placing, &source);
    }
}
