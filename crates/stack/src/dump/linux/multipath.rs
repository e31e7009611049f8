//! `multipath -ll`: disks with several paths. *Unverified*: after the manuals of Red Hat and SUSE.

use super::super::text::{anything, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{self, on_linux};
use crate::builder::Builder;
use crate::dm_table::number_of;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, Member, Placing, keys};
use plumb_geometry::Bytes;

pub(super) static FORMAT: Format = Format {
    tool: "multipath -ll",
    is_verified: false,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        let is_size = line.starts_with("size=") || line.starts_with("[size=");
        is_size && line.contains("features=") && line.contains("hwhandler=")
    })
}

/// `H:C:T:L DEVICE MAJOR:MINOR …` behind the lines of the tree.
fn path(line: &str) -> Option<(&str, (u32, u32))> {
    let plain = line.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut words = plain.split_whitespace();
    let address = words.next()?;
    let numbers = address
        .split(':')
        .filter(|part| part.parse::<u64>().is_ok())
        .count();
    let (device, number) = (words.next()?, number_of(words.next()?)?);
    (numbers == 4).then_some((device, number))
}

/// A map: its name, its identity, the kernel's name.
struct Map<'a> {
    name: &'a str,
    identity: &'a str,
    kernels: Option<&'a str>,
}

/// `mpatha (WWID) dm-1 VENDOR,PRODUCT`, or `WWID dm-1 …`, both after the action that changed it.
fn map(line: &str) -> Option<Map<'_>> {
    if line.starts_with(['|', '`', ' ', '\\', '[', '_']) || line.starts_with("size=") {
        return None;
    }
    let line = line.split_once(": ").map_or(line, |(_, rest)| rest);
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let next = words.next();
    let identity = next.and_then(|word| word.strip_prefix('(')?.strip_suffix(')'));
    let kernels = if identity.is_some() {
        words.next()
    } else {
        next
    };
    let kernels = kernels.filter(|word| word.starts_with("dm-"));
    // A line of its own in old versions has nothing but the identity.
    let is_one = identity.is_some() || kernels.is_some() || (next.is_none() && name.len() >= 16);
    is_one.then(|| Map {
        name,
        identity: identity.unwrap_or(name),
        kernels,
    })
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut found: Option<(NodeId, Vec<Member>, Source)> = None;
    // Not trimmed: only lines of maps begin at the margin.
    for (number, text) in input.text.lines().enumerate() {
        let source = input.source(FORMAT.tool, number + 1);
        if let (Some((_, members, _)), Some((device, number))) = (&mut found, path(text)) {
            taken.understood += 1;
            let node = builder.node(device);
            builder.linux.numbers.entry(number).or_insert(node);
            builder.kind(node, Kind::Path, &source);
            members.push(Member {
                node,
                start: Bytes(0),
            });
        } else if let Some(map) = map(text) {
            place(builder, found.take());
            on_linux(builder, &source);
            taken.understood += 1;
            let node = names::mapped(builder, map.name, false);
            if let Some(kernels) = map.kernels {
                builder.alias(node, kernels);
            }
            builder.kind(node, Kind::Multipath, &source);
            builder.fact(node, keys::IDENTITY, map.identity, &source);
            found = Some((node, Vec::new(), source));
        }
    }
    place(builder, found);
    anything(taken, input, FORMAT.tool, "maps with their paths")
}

fn place(builder: &mut Builder, found: Option<(NodeId, Vec<Member>, Source)>) {
    if let Some((node, members, source)) = found.filter(|(_, members, _)| !members.is_empty()) {
        builder.place(node, Placing::Copies { members }, &source);
    }
}
