//! `xfs_info`, and the output of mkfs.xfs: block, and the configured stripe of the file system, in blocks.

use plumb_geometry::Bytes;

use super::super::text::{anything, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::keys;

pub(super) static FORMAT: Format = Format {
    tool: "xfs_info",
    is_verified: true,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        line.starts_with("meta-data=") && line.contains("agcount=")
    })
}

/// The number behind `key=`.
fn value(line: &str, key: &str) -> Option<u64> {
    let word = line
        .split([' ', ','])
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
    word.parse().ok()
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut found: Option<(NodeId, Source)> = None;
    let (mut section, mut block) = ("", None);
    for (line, text) in lines(input) {
        let Some((name, _)) = text.split_once('=') else {
            continue;
        };
        if !name.trim().is_empty() && text.starts_with(name.trim_start()) {
            section = name.trim();
        }
        if let Some(device) = text
            .strip_prefix("meta-data=")
            .and_then(|rest| rest.split_whitespace().next())
        {
            let source = input.source(FORMAT.tool, line);
            let node = names::device(builder, device);
            builder.fact(node, keys::CONTENT, "xfs", &source);
            (found, block) = (Some((node, source)), None);
            taken.understood += 1;
        }
        let Some((node, source)) = &found else {
            continue;
        };
        if section != "data" {
            continue;
        }
        if let Some(bytes) = value(text, "bsize").filter(|bytes| bytes.is_power_of_two()) {
            block = Some(Bytes(bytes));
            builder.fact(*node, keys::FS_BLOCK, Bytes(bytes), source);
        }
        for (name, key) in [
            ("sunit", keys::FS_STRIPE_UNIT),
            ("swidth", keys::FS_STRIPE_WIDTH),
        ] {
            let blocks = value(text, name).filter(|blocks| *blocks > 0);
            if let Some(bytes) = blocks
                .zip(block)
                .and_then(|(blocks, block)| block.checked_mul(blocks))
            {
                builder.fact(*node, key, bytes, source);
                taken.understood += 1;
            }
        }
    }
    anything(taken, input, FORMAT.tool, "\"meta-data=DEVICE\"")
}
