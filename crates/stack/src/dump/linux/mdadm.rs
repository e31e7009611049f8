//! `mdadm --detail` of arrays, and `mdadm --examine` of members, the only source for the start of the data.

use plumb_geometry::{Bytes, Sectors};

use super::super::text::{anything, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::md::{ChunkLayout, PrintedArray, Superblock};
use super::names::{self, on_linux};
use super::units;
use crate::builder::{Builder, device_name};
use crate::graph::NodeId;
use crate::grid::Source;

pub(super) static DETAIL: Format = Format {
    tool: "mdadm --detail",
    is_verified: true,
    sniff: sniff_detail,
    read: read_detail,
};
pub(super) static EXAMINE: Format = Format {
    tool: "mdadm --examine",
    is_verified: true,
    sniff: sniff_examine,
    read: read_examine,
};

fn has_level(input: &Input<'_>) -> bool {
    sniff_by(input, |line| line.trim_start().starts_with("Raid Level :")) == Sniff::Yes
}

/// Both print the same kind of lines; only a superblock has a magic.
fn is_superblock(input: &Input<'_>) -> bool {
    sniff_by(input, |line| line.trim_start().starts_with("Magic : ")) == Sniff::Yes
}

fn sniff_detail(input: &Input<'_>) -> Sniff {
    if has_level(input) && !is_superblock(input) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

fn sniff_examine(input: &Input<'_>) -> Sniff {
    if is_superblock(input) && input.text.contains("Raid Devices :") {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

/// A path alone with a colon begins a device.
fn heading(line: &str) -> Option<&str> {
    let name = line.strip_suffix(':')?;
    (!name.is_empty() && !name.contains([' ', '\t'])).then_some(name)
}

fn field(line: &str) -> Option<(&str, &str)> {
    line.split_once(" : ")
        .map(|(key, value)| (key.trim(), value.trim()))
}

fn read_detail(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut array: Option<PrintedArray> = None;
    for (line, text) in lines(input) {
        let source = input.source(DETAIL.tool, line);
        if let Some(name) = heading(text) {
            on_linux(builder, &source);
            builder.linux.arrays.extend(array.take());
            let node = names::device(builder, name);
            taken.understood += 1;
            array = Some(PrintedArray::new(node, source));
        } else if let (Some(array), Some((key, value))) = (&mut array, field(text)) {
            detail(builder, array, key, value);
        } else if let (Some(array), Some((number, slot, name))) = (&mut array, member(text)) {
            let node = names::device(builder, name);
            builder.linux.numbers.entry(number).or_insert(node);
            array.members.extend(slot.map(|slot| (slot, node)));
        }
    }
    builder.linux.arrays.extend(array);
    anything(
        taken,
        input,
        DETAIL.tool,
        "a device with a colon, and lines of \"KEY : VALUE\"",
    )
}

fn detail(builder: &mut Builder, array: &mut PrintedArray, key: &str, value: &str) {
    match key {
        "Version" => array.metadata = Some(value.to_owned()),
        "Raid Level" => array.level = Some(value.to_owned()),
        "Raid Devices" => array.disks = value.parse().ok(),
        "Layout" => array.layout = ChunkLayout::parse(value),
        "Chunk Size" => array.chunk = units::chunk(value),
        "Array Size" => {
            let kib = value.split(' ').next().and_then(|kib| kib.parse().ok());
            if let Some(size) = kib.and_then(|kib| Bytes(1024).checked_mul(kib)) {
                builder.size(array.node, size, &array.source);
            }
        }
        "Reshape Status" | "Delta Devices" | "New Layout" | "New Chunksize" => array.moving = true,
        _ => {}
    }
}

/// A member's number, its slot if it has one, and its name.
type MemberRow<'a> = ((u32, u32), Option<u32>, &'a str);

/// `0  8  0  0  active sync  /dev/sda`: number, major, minor, slot or `-`, state, device.
fn member(line: &str) -> Option<MemberRow<'_>> {
    let mut words = line.split_whitespace();
    words
        .next()?
        .parse::<u32>()
        .ok()
        .or_else(|| line.trim_start().starts_with('-').then_some(0))?;
    let number = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let slot = words.next()?;
    let name = line
        .split_whitespace()
        .next_back()
        .filter(|name| name.starts_with('/'))?;
    let is_data = !["spare", "faulty", "journal", "removed"]
        .iter()
        .any(|state| line.contains(state))
        || line.contains("spare rebuilding");
    Some((number, slot.parse().ok().filter(|_| is_data), name))
}

fn read_examine(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut block: Option<Superblock> = None;
    for (line, text) in lines(input) {
        let source = input.source(EXAMINE.tool, line);
        if let Some(name) = heading(text) {
            on_linux(builder, &source);
            builder.linux.superblocks.extend(block.take());
            let member = names::device(builder, name);
            taken.understood += 1;
            block = Some(superblock(member, source));
        } else if let (Some(block), Some((key, value))) = (&mut block, field(text)) {
            examined(block, key, value);
        } else if let Some(block) = &mut block
            && let Some(slot) = this_slot(text)
        {
            block.slot = Some(slot);
        }
    }
    builder.linux.superblocks.extend(block);
    anything(
        taken,
        input,
        EXAMINE.tool,
        "a device with a colon, and lines of \"KEY : VALUE\"",
    )
}

fn superblock(member: NodeId, source: Source) -> Superblock {
    Superblock {
        member,
        data: None,
        len: None,
        uuid: None,
        name: None,
        slot: None,
        level: None,
        chunk: None,
        layout: ChunkLayout::default(),
        metadata: None,
        disks: None,
        moving: false,
        source,
    }
}

fn sectors(value: &str) -> Option<Bytes> {
    Sectors(value.strip_suffix(" sectors")?.parse().ok()?).to_bytes()
}

fn examined(block: &mut Superblock, key: &str, value: &str) {
    match key {
        "Version" => block.metadata = Some(value.to_owned()),
        "Array UUID" | "UUID" => block.uuid = value.split(' ').next().map(str::to_owned),
        "Name" => {
            block.name = value
                .split("  (")
                .next()
                .map(|name| device_name(name).into_owned())
        }
        "Raid Level" => block.level = Some(value.to_owned()),
        "Raid Devices" => block.disks = value.parse().ok(),
        "Layout" => block.layout = ChunkLayout::parse(value),
        "Chunk Size" => block.chunk = units::chunk(value),
        "Data Offset" => block.data = sectors(value),
        "New Offset" | "Reshape pos'n" | "Delta Devices" => block.moving = true,
        // `1144832 sectors (559.00 MiB 586.15 MB)`; linear arrays use all that there is.
        "Avail Dev Size" => {
            let sectors = value
                .split(' ')
                .next()
                .and_then(|sectors| sectors.parse().ok());
            block.len = sectors.and_then(|sectors| Sectors(sectors).to_bytes());
        }
        "Device Role" => {
            block.slot = value
                .strip_prefix("Active device ")
                .and_then(|slot| slot.parse().ok());
        }
        _ => {}
    }
}

/// Of format 0.90: `this     0       8        1        0      active sync   /dev/sda1`.
fn this_slot(line: &str) -> Option<u32> {
    let rest = line.strip_prefix("this ")?;
    let mut words = rest.split_whitespace();
    words
        .nth(3)?
        .parse()
        .ok()
        .filter(|_| line.contains("active"))
}
