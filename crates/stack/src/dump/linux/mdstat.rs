//! `/proc/mdstat`: arrays that run, their members by number, chunk and layout.

use plumb_geometry::Bytes;

use super::super::text::{anything, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::md::{ChunkLayout, PrintedArray};
use super::names::on_linux;
use super::units;
use crate::builder::Builder;
use crate::node::keys;

pub(super) static FORMAT: Format = Format {
    tool: "/proc/mdstat",
    is_verified: true,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        line.starts_with("Personalities :") || line.starts_with("unused devices:")
    })
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut array: Option<PrintedArray> = None;
    for (number, line) in input.text.lines().enumerate() {
        let source = input.source(FORMAT.tool, number + 1);
        if line.starts_with("Personalities") || line.starts_with("unused devices") {
            on_linux(builder, &source);
            taken.understood += 1;
        } else if line.starts_with(|c: char| c.is_whitespace()) {
            if let Some(array) = &mut array {
                detail(builder, array, line.trim());
            }
        } else if let Some((name, rest)) = line.split_once(" : ") {
            builder.linux.arrays.extend(array.take());
            let node = builder.node(name.trim());
            taken.understood += 1;
            array = Some(head(node, rest, source));
        } else if !line.trim().is_empty() {
            taken.passed_over += 1;
        }
    }
    builder.linux.arrays.extend(array);
    anything(taken, input, FORMAT.tool, "\"Personalities :\" and arrays")
}

/// `active raid5 sdc[2] sdb[1] sda[0]`, with `(auto-read-only)` and the like behind the state.
fn head(node: crate::graph::NodeId, rest: &str, source: crate::grid::Source) -> PrintedArray {
    let mut array = PrintedArray::new(node, source);
    for word in rest
        .split_whitespace()
        .skip(1)
        .filter(|word| !word.starts_with('('))
    {
        match word.split_once('[') {
            Some((name, rest)) => {
                let Some((number, flags)) = rest.split_once(']') else {
                    continue;
                };
                // Spares, failed members, journals and replacements hold no data in a slot.
                let is_data = !["(S)", "(F)", "(J)", "(R)"]
                    .iter()
                    .any(|flag| flags.contains(flag));
                if let Some(number) = number.parse().ok().filter(|_| is_data) {
                    array.named.push((number, name.to_owned()));
                }
            }
            None => array.level = Some(word.to_owned()),
        }
    }
    array
}

/// `1144832 blocks super 1.2 level 5, 64k chunk, algorithm 2 [3/3] [UUU]`, and lines about a running operation.
fn detail(builder: &mut Builder, array: &mut PrintedArray, line: &str) {
    if line.starts_with('[') && line.contains("reshape") {
        array.moving = true;
    }
    let words: Vec<&str> = line
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .take(40)
        .collect();
    let Some(at) = words.iter().position(|word| *word == "blocks") else {
        return;
    };
    let blocks = at
        .checked_sub(1)
        .and_then(|at| words[at].parse::<u64>().ok());
    if let Some(size) = blocks.and_then(|blocks| Bytes(1024).checked_mul(blocks)) {
        builder.size(array.node, size, &array.source);
    }
    // Format 0.90 is so old that it goes without saying.
    array.metadata = Some("0.90".to_owned());
    for pair in words.windows(2) {
        match (pair[0], pair[1]) {
            ("super", version) => array.metadata = Some(version.to_owned()),
            (size, "chunk" | "chunks") => array.chunk = units::chunk(size),
            ("algorithm", number) => {
                array.layout = number
                    .parse()
                    .map(ChunkLayout::algorithm)
                    .unwrap_or_default();
            }
            (copies, "near-copies" | "far-copies" | "offset-copies") => {
                let copies: Option<u32> = copies
                    .parse()
                    .ok()
                    .filter(|copies| (1..=255).contains(copies));
                array.layout.copies = match (array.layout.copies, copies) {
                    (Some(known), Some(copies)) => Some(known.saturating_mul(copies)),
                    (known, copies) => known.or(copies),
                };
            }
            _ => {}
        }
        if let Some((disks, _)) = pair[1]
            .strip_prefix('[')
            .and_then(|rest| rest.split_once('/'))
        {
            array.disks = disks.parse().ok();
        }
    }
    if let Some(metadata) = &array.metadata {
        builder.fact(array.node, keys::METADATA, metadata.as_str(), &array.source);
    }
}
