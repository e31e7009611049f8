//! `vxdisk list`: disks of the Veritas Volume Manager, as a table and each in detail. *Unverified* but for an example
//! in a document.
//!
//! The public region holds the data: it begins at `disk_offset` plus `offset` sectors of the disk, or, where no
//! `disk_offset` is printed, at `offset` of its slice. It becomes a layer of its own, called GROUP/DISK.

use plumb_geometry::Bytes;

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{disk_of, on_solaris};
use super::units::blocks;
use crate::builder::{Builder, device_name};
use crate::node::{Kind, Part, Placing, keys};

pub(super) static FORMAT: Format = Format {
    tool: "vxdisk list",
    is_verified: false,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    let is_region = |line: &str| line.starts_with("public:") && line.contains("slice=");
    sniff_by(input, |line| is_heading(line) || is_region(line))
}

fn is_heading(line: &str) -> bool {
    line.split_whitespace()
        .eq(["DEVICE", "TYPE", "DISK", "GROUP", "STATUS"])
}

/// A disk in detail while its lines are read.
#[derive(Default)]
struct Draft<'a> {
    device: &'a str,
    line: usize,
    disk: Option<&'a str>,
    group: Option<&'a str>,
    region: Option<Region>,
}

struct Region {
    slice: u32,
    offset: Bytes,
    len: Bytes,
    disk_offset: Option<Bytes>,
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let (mut draft, mut is_table) = (Draft::default(), false);
    for (line, text) in lines(input) {
        if is_heading(text) {
            is_table = true;
        } else if let Some(device) = text.strip_prefix("Device:") {
            finish(&draft, input, builder);
            (draft, is_table) = (
                Draft {
                    device: device.trim(),
                    line,
                    ..Draft::default()
                },
                false,
            );
            taken.understood += 1;
        } else if is_table {
            count(&mut taken, table_row(text, line, input, builder));
        } else if let Some((key, value)) = text.split_once(':') {
            match key {
                "disk" => draft.disk = field(value, "name"),
                "group" => draft.group = field(value, "name"),
                "public" => {
                    draft.region = region(value);
                    count(&mut taken, draft.region.is_some());
                }
                _ => {}
            }
        }
    }
    finish(&draft, input, builder);
    anything(
        taken,
        input,
        FORMAT.tool,
        "a table of disks, or \"Device:\" and \"public:\" of one",
    )
}

/// `NAME=VALUE` among others.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn region(value: &str) -> Option<Region> {
    let disk_offset = match field(value, "disk_offset") {
        Some(offset) => Some(blocks(offset)?),
        None => None,
    };
    Some(Region {
        slice: field(value, "slice")?.parse().ok()?,
        offset: blocks(field(value, "offset")?)?,
        len: blocks(field(value, "len")?)?,
        disk_offset,
    })
}

/// Device, type, disk, group, status; `-` if absent.
fn table_row(text: &str, line: usize, input: &Input<'_>, builder: &mut Builder) -> bool {
    let words: Vec<&str> = text.split_whitespace().take(5).collect();
    let &[device, _, disk, _, _] = words.as_slice() else {
        return false;
    };
    let source = input.source(FORMAT.tool, line);
    let name = device_name(device);
    let id = builder.node(disk_of(&name).unwrap_or(&name));
    builder.kind(id, Kind::Disk, &source);
    if disk != "-" {
        builder.fact(id, keys::CONTENT, "VxVM disk", &source);
    }
    true
}

fn finish(draft: &Draft<'_>, input: &Input<'_>, builder: &mut Builder) {
    let Some(region) = &draft.region else { return };
    let source = input.source(FORMAT.tool, draft.line);
    let name = device_name(draft.device);
    let disk = disk_of(&name).unwrap_or(&name);
    let (below, start) = match region.disk_offset {
        Some(disk_offset) => (builder.node(disk), disk_offset.checked_add(region.offset)),
        None => (
            builder.node(&format!("{disk}s{}", region.slice)),
            Some(region.offset),
        ),
    };
    let Some(start) = start else { return };
    on_solaris(builder, &source);
    let on = builder.node(disk);
    builder.kind(on, Kind::Disk, &source);
    let public = match (draft.group, draft.disk) {
        (Some(group), Some(disk)) => builder.node(&format!("{group}/{disk}")),
        (None, Some(disk)) => builder.node(disk),
        (_, None) => builder.node(&format!("{disk} public region")),
    };
    builder.kind(public, Kind::LogicalVolume, &source);
    builder.size(public, region.len, &source);
    builder.fact(public, keys::MANAGER, "vxvm", &source);
    let part = Part {
        upper: Bytes(0),
        node: below,
        start,
        len: Some(region.len),
    };
    builder.place(public, Placing::Parts { parts: vec![part] }, &source);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::join;

    /// Numbers of the example in the vendor's article on prtvtoc and vxdisk.
    #[test]
    fn the_public_region_is_where_slice_4_is() {
        let text = "Device:    c1t8d0s2\ndisk:      name=t8 id=1266597187.43.ms1\ngroup:     name=slicedg id=1\n\
                    public:    slice=4 offset=0 len=35358848 disk_offset=9424\n\
                    private:   slice=3 offset=1 len=4455 disk_offset=4712\n\
                    Device:    c1t9d0s2\ndisk:      name=t9 id=1\n\
                    public:    slice=2 offset=65792 len=1000 disk_offset=16\n\
                    Device:    c1t7d0s2\ndisk:      name=t7 id=1\npublic:    slice=4 offset=3 len=1000\n";
        let mut builder = Builder::default();
        read(
            &Input {
                name: "vxdisk",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        join(&mut builder);
        let stack = builder.finish();
        let shift = |top, below| {
            let landings = stack.landings(stack.find(top).expect("it")).all;
            landings
                .iter()
                .find(|one| stack.node(one.on).name == below)
                .map(|one| one.shift / 512)
        };
        assert_eq!(shift("slicedg/t8", "c1t8d0"), Some(9424));
        assert_eq!(shift("t9", "c1t9d0"), Some(16 + 65_792));
        assert_eq!(
            (shift("t7", "c1t7d0s4"), shift("t7", "c1t7d0")),
            (Some(3), None)
        );
    }

    #[test]
    fn tables() {
        let text = "DEVICE       TYPE            DISK         GROUP        STATUS\n\
                    c1t8d0s2     auto:sliced     t8           slicedg      online\n\
                    c1t9d0s2     auto:none       -            -            online invalid\nshort line\n";
        let mut builder = Builder::default();
        let taken = read(
            &Input {
                name: "vxdisk",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        assert_eq!(
            taken,
            Taken {
                understood: 2,
                passed_over: 1
            }
        );
        let content = |name: &str| {
            builder
                .get(builder.find(name).expect("it"))
                .fact(keys::CONTENT)
                .is_some()
        };
        assert!(content("c1t8d0") && !content("c1t9d0"));
    }
}
