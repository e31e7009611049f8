//! `dumpe2fs -h` and `tune2fs -l`: block, stride and stripe width of ext2, ext3 and ext4.
//!
//! They do not print the device that they read: the name of the file may have it (`dumpe2fs-sda1.txt`), or the last
//! mount point.

use plumb_geometry::Bytes;

use super::super::text::{anything, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{in_file_name, on_linux};
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, keys};
use crate::obstacle::Obstacle;

pub(super) static FORMAT: Format = Format {
    tool: "dumpe2fs -h",
    is_verified: true,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| line.starts_with("Filesystem magic number:"))
}

/// The fields of a superblock.
#[derive(Default)]
struct Superblock<'a> {
    mounted: Option<&'a str>,
    uuid: Option<&'a str>,
    features: &'a str,
    block: Option<Bytes>,
    stride: Option<u64>,
    width: Option<u64>,
}

impl Superblock<'_> {
    fn kind(&self) -> &'static str {
        let has = |feature: &str| self.features.split_whitespace().any(|word| word == feature);
        match (has("extent"), has("has_journal")) {
            (true, _) => "ext4",
            (false, true) => "ext3",
            (false, false) => "ext2",
        }
    }

    fn node(&self, builder: &mut Builder, input: &Input<'_>, source: &Source) -> NodeId {
        if let Some(device) = in_file_name(input.name) {
            return builder.node(device);
        }
        let name = match (self.mounted, self.uuid) {
            (Some(at), _) => at.to_owned(),
            (None, Some(uuid)) => format!("{} {uuid}", self.kind()),
            (None, None) => format!("{} of {}", self.kind(), input.name),
        };
        let node = builder.node(&name);
        builder.kind(node, Kind::FileSystem, source);
        builder.opaque(node, Obstacle::NoDeviceName);
        node
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut found = Superblock::default();
    for (_, text) in lines(input) {
        let Some((key, value)) = text.split_once(':').map(|(key, value)| (key, value.trim()))
        else {
            continue;
        };
        let number = || value.parse::<u64>().ok().filter(|number| *number > 0);
        match key {
            "Last mounted on" => found.mounted = Some(value).filter(|at| at.starts_with('/')),
            "Filesystem UUID" => found.uuid = Some(value).filter(|uuid| uuid.len() <= 40),
            "Filesystem features" => found.features = value,
            "Block size" => found.block = number().filter(|size| size.is_power_of_two()).map(Bytes),
            "RAID stride" => found.stride = number(),
            "RAID stripe width" => found.width = number(),
            _ => continue,
        }
        taken.understood += 1;
    }
    let taken = anything(
        taken,
        input,
        FORMAT.tool,
        "\"Filesystem magic number:\" and \"Block size:\"",
    )?;
    let source = input.source(FORMAT.tool, 0);
    on_linux(builder, &source);
    let node = found.node(builder, input, &source);
    builder.fact(node, keys::CONTENT, found.kind(), &source);
    let blocks = |count: Option<u64>| {
        count
            .zip(found.block)
            .and_then(|(count, block)| block.checked_mul(count))
    };
    for (key, bytes) in [
        (keys::FS_BLOCK, found.block),
        (keys::FS_STRIPE_UNIT, blocks(found.stride)),
        (keys::FS_STRIPE_WIDTH, blocks(found.width)),
    ] {
        if let Some(bytes) = bytes {
            builder.fact(node, key, bytes, &source);
        }
    }
    Ok(taken)
}
