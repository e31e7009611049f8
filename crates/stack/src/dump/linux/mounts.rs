//! `/proc/mounts` and `/proc/self/mountinfo`, `mount`, and `findmnt`: file systems on devices below `/dev`.

use plumb_geometry::Bytes;

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{self, on_linux};
use crate::builder::Builder;
use crate::dm_table::number_of;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::linux::{tell_xfs_stripe, unescape};
use crate::node::{Kind, Part, Placing, keys};
use crate::obstacle::Obstacle;

pub(super) static MOUNTS: Format = Format {
    tool: "/proc/mounts",
    is_verified: true,
    sniff: sniff_mounts,
    read: read_mounts,
};
pub(super) static MOUNT: Format = Format {
    tool: "mount",
    is_verified: true,
    sniff: sniff_mount,
    read: read_mount,
};
pub(super) static FINDMNT: Format = Format {
    tool: "findmnt",
    is_verified: true,
    sniff: sniff_findmnt,
    read: read_findmnt,
};

/// A file system that is mounted, or a swap.
#[derive(Clone, Debug)]
pub(super) struct Mounted {
    pub(super) device: NodeId,
    /// `[SWAP]` for one that is no file system.
    pub(super) at: String,
    /// Its type, empty where it is not printed.
    pub(super) kind: String,
    pub(super) options: Option<String>,
    pub(super) source: Source,
}

/// A line, in any order of its columns.
struct MountLine<'a> {
    device: &'a str,
    at: String,
    kind: &'a str,
    options: &'a str,
}

/// `DEVICE DIRECTORY TYPE OPTIONS 0 0`, or a line of mountinfo.
fn mounts_line(line: &str) -> Option<MountLine<'_>> {
    if let Some((mount, rest)) = line.split_once(" - ") {
        let mut words = mount.split(' ').skip(2);
        number_of(words.next()?)?;
        let (_, at, options) = (words.next()?, words.next()?, words.next()?);
        let mut rest = rest.split(' ');
        let (kind, device) = (rest.next()?, rest.next()?);
        return Some(MountLine {
            device,
            at: unescape(at),
            kind,
            options,
        });
    }
    let words: Vec<&str> = line.split(' ').take(7).collect();
    let &[device, at, kind, options, dump, pass] = &words[..] else {
        return None;
    };
    let is_one = at.starts_with('/') && [dump, pass].iter().all(|word| word.parse::<u32>().is_ok());
    is_one.then(|| MountLine {
        device,
        at: unescape(at),
        kind,
        options,
    })
}

/// `DEVICE on DIRECTORY type TYPE (OPTIONS)`.
fn mount_line(line: &str) -> Option<MountLine<'_>> {
    let (head, options) = line.trim_end().split_once(" (")?;
    let (head, kind) = head.rsplit_once(" type ")?;
    let (device, at) = head.split_once(" on ")?;
    let options = options.split(')').next()?;
    at.starts_with('/').then(|| MountLine {
        device,
        at: at.to_owned(),
        kind,
        options,
    })
}

/// `├─DIRECTORY  SOURCE  TYPE  OPTIONS`, without the lines of the tree.
fn findmnt_line(line: &str) -> Option<MountLine<'_>> {
    let plain =
        line.trim_start_matches(|c: char| !c.is_ascii() || matches!(c, ' ' | '|' | '`' | '-'));
    let words: Vec<&str> = plain.split_whitespace().take(5).collect();
    let &[at, device, kind, options] = &words[..] else {
        return None;
    };
    // Part of a file system is mounted: `/dev/sda1[/dir]`.
    let device = device.split_once('[').map_or(device, |(device, _)| device);
    at.starts_with('/').then(|| MountLine {
        device,
        at: at.to_owned(),
        kind,
        options,
    })
}

fn sniff_mounts(input: &Input<'_>) -> Sniff {
    let mut said = lines(input).take(300).map(|(_, line)| line).peekable();
    let is_one = said.peek().is_some() && said.all(|line| mounts_line(line).is_some());
    if is_one { Sniff::Yes } else { Sniff::No }
}

fn sniff_mount(input: &Input<'_>) -> Sniff {
    let mut said = lines(input).take(300).map(|(_, line)| line).peekable();
    let is_one = said.peek().is_some() && said.all(|line| mount_line(line).is_some());
    if is_one { Sniff::Yes } else { Sniff::No }
}

fn sniff_findmnt(input: &Input<'_>) -> Sniff {
    let is_heading = |line: &str| {
        line.split_whitespace()
            .eq(["TARGET", "SOURCE", "FSTYPE", "OPTIONS"])
    };
    sniff_by(input, is_heading)
}

fn read_mounts(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    read_by(input, builder, MOUNTS.tool, mounts_line)
}

fn read_mount(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    read_by(input, builder, MOUNT.tool, mount_line)
}

fn read_findmnt(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    read_by(input, builder, FINDMNT.tool, findmnt_line)
}

fn read_by(
    input: &Input<'_>,
    builder: &mut Builder,
    tool: &'static str,
    parse: impl Fn(&str) -> Option<MountLine<'_>>,
) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    for (line, text) in lines(input).filter(|(_, text)| !text.starts_with("TARGET ")) {
        let mount = parse(text);
        count(&mut taken, mount.is_some());
        let Some(mount) = mount.filter(|mount| mount.device.starts_with("/dev/")) else {
            continue;
        };
        let source = input.source(tool, line);
        on_linux(builder, &source);
        let device = names::device(builder, &unescape(mount.device));
        builder.linux.mounted.push(Mounted {
            device,
            at: mount.at,
            kind: mount.kind.to_owned(),
            options: Some(mount.options.to_owned()),
            source,
        });
    }
    anything(taken, input, tool, "mounted file systems")
}

/// Makes a node of each file system. Sizes of devices have to be known, so it comes late.
pub(super) fn place_all(builder: &mut Builder) {
    for mounted in std::mem::take(&mut builder.linux.mounted) {
        let Mounted {
            device,
            at,
            kind,
            options,
            source,
        } = mounted;
        if !kind.is_empty() {
            builder.fact(device, keys::CONTENT, kind.as_str(), &source);
        }
        if builder.linux.told.contains_key(&device) && at != "[SWAP]" {
            // Other mounts are views of the same; the first has made the node.
            let node = builder.linux.told[&device];
            tell_options(builder, node, &kind, options, &source);
            continue;
        }
        let is_swap = at == "[SWAP]";
        let name = if is_swap {
            format!("swap on {}", builder.get(device).name)
        } else {
            at.clone()
        };
        let node = builder.node(&name);
        if node == device {
            continue;
        }
        builder.linux.told.insert(device, node);
        builder.kind(
            node,
            if is_swap {
                Kind::Swap
            } else {
                Kind::FileSystem
            },
            &source,
        );
        if !is_swap {
            builder.fact(node, keys::MOUNT, at.as_str(), &source);
        }
        tell_options(builder, node, &kind, options, &source);
        let placing = if matches!(kind.as_str(), "btrfs" | "bcachefs") {
            Placing::Unknown {
                members: vec![device],
                why: Obstacle::PlacesItself {
                    format: kind.as_str().into(),
                },
            }
        } else {
            let len = builder.get(device).size;
            Placing::Parts {
                parts: vec![Part {
                    upper: Bytes(0),
                    node: device,
                    start: Bytes(0),
                    len,
                }],
            }
        };
        builder.place(node, placing, &source);
    }
}

fn tell_options(
    builder: &mut Builder,
    node: NodeId,
    kind: &str,
    options: Option<String>,
    source: &Source,
) {
    if !kind.is_empty() {
        builder.fact(node, keys::CONTENT, kind, source);
    }
    if let Some(options) = options {
        if kind == "xfs" {
            tell_xfs_stripe(builder, node, &options, source);
        }
        builder.fact(node, keys::MOUNT_OPTIONS, options, source);
    }
}
