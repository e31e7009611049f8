//! Mounts and swap: `/proc/self/mountinfo` and `/proc/swaps` (proc_pid_mountinfo(5)).

use plumb_geometry::{Bytes, SECTOR, SmallSort};

use super::{Host, Root};
use crate::builder::Builder;
use crate::dm_table;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, Part, Placing, keys};
use crate::node_facts::ContentKind;
use crate::obstacle::Obstacle;

const MOUNTINFO: &str = "/proc/self/mountinfo";
const SWAPS: &str = "/proc/swaps";
/// Longest table that is read: a hundred thousand mounts.
const TABLE_MAX: usize = 16 << 20;

/// A line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of the file system: of its device, or one of its own.
    pub number: (u32, u32),
    /// The mounted part of the file system: `/`, or a directory of it.
    pub root: String,
    /// The mount point.
    pub at: String,
    /// Options of this mount.
    pub options: String,
    /// Type of the file system.
    pub kind: String,
    /// The mounted object, mostly the path of a device.
    pub source: String,
    /// Options of the file system itself.
    pub super_options: String,
}

/// The mounts that the text of a mountinfo tells; lines of another form are passed over.
#[must_use]
pub fn mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Mount> {
    let (mount, rest) = line.split_once(" - ")?;
    let mut words = mount.split(' ').skip(2);
    let number = dm_table::number_of(words.next()?)?;
    let (root, at, options) = (words.next()?, words.next()?, words.next()?);
    let mut rest = rest.split(' ');
    let (kind, source) = (rest.next()?, rest.next()?);
    Some(Mount {
        number,
        root: unescape(root),
        at: unescape(at),
        options: options.to_owned(),
        kind: kind.to_owned(),
        source: unescape(source),
        super_options: rest.next().unwrap_or_default().to_owned(),
    })
}

/// Blanks, tabs, newlines and backslashes are written as three octal digits.
pub(crate) fn unescape(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after
            .first_chunk::<3>()
            .filter(|digits| digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        let value = digits.map(|d| {
            d.iter()
                .fold(0u32, |sum, digit| sum * 8 + u32::from(digit - b'0'))
        });
        match value
            .and_then(|value| u8::try_from(value).ok())
            .filter(|_| *first == b'\\')
        {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn source() -> Source {
    Source::Kernel {
        path: MOUNTINFO.to_owned(),
    }
}

impl Host {
    /// Makes a node of each file system on a known device, and of each swap.
    pub(super) fn read_mounts(&mut self, root: &Root<'_>, builder: &mut Builder) {
        let read = |path: &str| {
            let text = root
                .directory
                .read_below(path, TABLE_MAX)
                .unwrap_or_default();
            String::from_utf8_lossy(&text).into_owned()
        };
        let table = read(MOUNTINFO);
        if table.is_empty() {
            builder.note(format!(
                "{MOUNTINFO} cannot be read: nothing is known of file systems"
            ));
        }
        self.mounts = mounts(&table);
        // The whole of a file system first: its other mounts are views of it.
        let mut order: Vec<&Mount> = self.mounts.iter().collect();
        order.small_sort_by_key(|mount| mount.root != "/");
        let mut done = std::collections::HashSet::new();
        for mount in order {
            if let Some(device) = self.device_of(builder, mount)
                && done.insert(device)
            {
                tell(root, self, builder, mount, device);
            }
        }
        for line in read(SWAPS).lines().skip(1) {
            self.tell_swap(root, builder, line);
        }
    }

    /// The device of a mount. btrfs shows a number of its own, but names a device.
    pub(super) fn device_of(&self, builder: &Builder, mount: &Mount) -> Option<NodeId> {
        self.by_number(mount.number).or_else(|| {
            let is_device = mount.kind == "btrfs" && mount.source.starts_with("/dev/");
            if is_device {
                builder.find(&mount.source)
            } else {
                None
            }
        })
    }

    /// The mount that holds a path: the longest, and of equals the last, which covers the others.
    pub(super) fn mount_of(&self, path: &str) -> Option<&Mount> {
        let holds = |at: &str| {
            at == "/"
                || path
                    .strip_prefix(at)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.mounts
            .iter()
            .filter(|mount| holds(&mount.at))
            .max_by_key(|mount| mount.at.len())
    }

    fn tell_swap(&self, root: &Root<'_>, builder: &mut Builder, line: &str) {
        let mut words = line.split_whitespace();
        let (Some(path), Some(kind)) = (words.next().map(unescape), words.next()) else {
            return;
        };
        let source = Source::Kernel {
            path: SWAPS.to_owned(),
        };
        let below = if kind == "file" {
            self.file(root, builder, &path)
        } else {
            builder.node(&path)
        };
        builder.fact(below, keys::CONTENT, "swap", &source);
        let name = format!("swap on {}", builder.get(below).name);
        let swap = builder.node(&name);
        builder.kind(swap, Kind::Swap, &source);
        let len = builder.get(below).size;
        let part = Part {
            upper: Bytes(0),
            node: below,
            start: Bytes(0),
            len,
        };
        builder.place(swap, Placing::Parts { parts: vec![part] }, &source);
    }
}

fn tell(root: &Root<'_>, host: &Host, builder: &mut Builder, mount: &Mount, device: NodeId) {
    let source = source();
    builder.fact(device, keys::CONTENT, mount.kind.as_str(), &source);
    let node = builder.node(&mount.at);
    builder.kind(node, Kind::FileSystem, &source);
    builder.fact(node, keys::CONTENT, mount.kind.as_str(), &source);
    builder.fact(node, keys::MOUNT, mount.at.as_str(), &source);
    let options = match mount.super_options.as_str() {
        "" => mount.options.clone(),
        more => format!("{},{more}", mount.options),
    };
    builder.fact(node, keys::MOUNT_OPTIONS, options, &source);
    if mount.kind == "xfs" {
        tell_xfs_stripe(builder, node, &mount.super_options, &source);
    }
    let placing = if mount.kind == "btrfs" {
        let members = btrfs_devices(root, host, builder, device);
        Placing::Unknown {
            members,
            why: Obstacle::PlacesItself {
                format: ContentKind::Btrfs,
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

/// Tells the stripe among the options of a mounted XFS: one given at mount is in use at once, and in the superblock only
/// when the log is written back.
pub(crate) fn tell_xfs_stripe(builder: &mut Builder, node: NodeId, options: &str, source: &Source) {
    if let Some((unit, width)) = xfs_stripe(options) {
        builder.fact(node, keys::FS_STRIPE_UNIT, unit, source);
        builder.fact(node, keys::FS_STRIPE_WIDTH, width, source);
    }
}

/// `sunit` and `swidth` of XFS, which the kernel shows in sectors of 512 bytes (xfs(5)).
fn xfs_stripe(options: &str) -> Option<(Bytes, Bytes)> {
    let of = |name: &str| {
        let value = options
            .split(',')
            .find_map(|option| option.strip_prefix(name)?.strip_prefix('='))?;
        value.parse::<u64>().ok()?.checked_mul(SECTOR).map(Bytes)
    };
    Some((of("sunit")?, of("swidth")?))
}

/// All devices of the btrfs that has this one: `/sys/fs/btrfs/UUID/devices`.
fn btrfs_devices(
    root: &Root<'_>,
    host: &Host,
    builder: &mut Builder,
    device: NodeId,
) -> Vec<NodeId> {
    const LIST: &str = "sys/fs/btrfs";
    let list = root
        .directory
        .below(LIST)
        .and_then(|list| list.names())
        .unwrap_or_default();
    for uuid in list {
        let devices = root
            .directory
            .below(&format!("{LIST}/{uuid}/devices"))
            .and_then(|list| list.names());
        let mut names = devices.unwrap_or_default();
        names.sort_unstable();
        let nodes: Vec<NodeId> = names
            .iter()
            .map(|name| host.device(builder, name))
            .collect();
        if nodes.contains(&device) {
            return nodes;
        }
    }
    vec![device]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        // The example of proc_pid_mountinfo(5), with optional fields, and one without.
        let line = "36 35 98:0 /mnt1 /mnt/parent\\040one rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
        let mount = parse(line).expect("a mount");
        assert_eq!(
            (mount.number, mount.root.as_str(), mount.at.as_str()),
            ((98, 0), "/mnt1", "/mnt/parent one")
        );
        assert_eq!(
            (mount.kind.as_str(), mount.source.as_str()),
            ("ext3", "/dev/root")
        );
        assert_eq!(
            (mount.options.as_str(), mount.super_options.as_str()),
            ("rw,noatime", "rw,errors=continue")
        );
        let bare = parse("1 2 0:5 / /proc rw - proc proc").expect("a mount");
        assert_eq!(bare.super_options, "");
        for broken in [
            "",
            " - ",
            "1 2 x / / rw - ext4 /dev/sda",
            "1 2 8:1 / / rw ext4 /dev/sda rw",
        ] {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn the_stripe_of_a_mounted_xfs() {
        let shown = "rw,attr2,inode64,logbufs=8,logbsize=32k,sunit=128,swidth=384,noquota";
        assert_eq!(xfs_stripe(shown), Some((Bytes(64 << 10), Bytes(192 << 10))));
        for none in [
            "",
            "rw,noquota",
            "sunit=128",
            "sunit=x,swidth=1",
            "sunit=1,swidth=18446744073709551615",
        ] {
            assert_eq!(xfs_stripe(none), None, "{none}");
        }
    }

    #[test]
    fn escapes_are_undone() {
        for (text, expected) in [
            ("a\\040b", "a b"),
            ("\\134", "\\"),
            ("\\08x", "\\08x"),
            ("\\777", "\\777"),
            ("\\04", "\\04"),
        ] {
            assert_eq!(unescape(text), expected);
        }
    }
}
