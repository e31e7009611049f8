//! ZFS: the labels of a device of a pool, four copies of a list of names and values, and the pools they make up.
//!
//! Layout from the *ZFS On-Disk Specification* (2006), chapter 1, and OpenZFS's `vdev_impl.h`; the list is in the XDR
//! form of `nvpair.c`. Blocks are anywhere from 4 MiB on, at multiples of 2^ashift; their exact positions are not read.

use super::area::{Area, Block};
use super::content::{Content, Layer};
use crate::node::keys;

pub(super) mod pool;

const LABEL: u64 = 256 << 10;
/// Within a label.
const LIST_AT: u64 = 16 << 10;
const LIST_LEN: usize = 112 << 10;
/// Start of the data on every device: two labels and room for booting.
pub(crate) const DATA_START: u64 = 4 << 20;
/// 2^9 to 2^16 bytes.
const ASHIFT: std::ops::RangeInclusive<u64> = 9..=16;
/// Vdevs within vdevs that are followed; ZFS has three.
const DEPTH_MAX: usize = 8;
/// States of a pool: destroyed ones leave their labels.
const STATE_DESTROYED: u64 = 2;

/// A vdev: a device, or how its children are joined.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Vdev {
    pub(crate) kind: String,
    pub(crate) id: u64,
    pub(crate) guid: u64,
    pub(crate) ashift: Option<u64>,
    pub(crate) parity: u64,
    pub(crate) children: Vec<Vdev>,
}

/// The content of the label of one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Config {
    pub(crate) pool: String,
    pub(crate) pool_guid: u64,
    pub(crate) txg: u64,
    /// The device's own number.
    pub(crate) guid: u64,
    /// Vdevs at the top of the pool; 0 where the label does not tell.
    pub(crate) tops: u64,
    pub(crate) top: Vdev,
    state: u64,
}

/// The two labels at the beginning.
pub(super) fn read(area: &Area<'_>) -> Option<Content> {
    [0, LABEL].into_iter().find_map(|at| label(area, at))
}

/// The two labels at the end, which outlive much later content: only if nothing else is found.
pub(super) fn read_end(area: &Area<'_>) -> Option<Content> {
    let end = area.len() & !(LABEL - 1);
    [2, 1]
        .into_iter()
        .find_map(|back| label(area, end.checked_sub(back * LABEL)?))
}

fn label(area: &Area<'_>, at: u64) -> Option<Content> {
    let at = at.checked_add(LIST_AT)?;
    // Encoded as XDR, with any byte order of the machine, and the list's first version: other data are rejected after
    // few bytes.
    let head = area.read(at, 8)?;
    if head.byte(0) != 1 || head.byte(1) > 1 || head.be32(4) != 0 {
        return None;
    }
    let block = area.read(at, LIST_LEN)?;
    let mut config = Config::default();
    let mut reader = XdrReader {
        block: &block,
        at: 4,
    };
    reader.list(&mut config, Of::Label, 0)?;
    if config.pool.is_empty() || config.top.kind.is_empty() || config.state == STATE_DESTROYED {
        return None;
    }
    let mut content =
        Content::new("zfs member", Layer::Nothing).length(keys::DATA_START, DATA_START);
    if let Some(ashift) = config.top.ashift {
        content.ashift = Some(ashift);
    }
    content.layer = Layer::Zfs(Box::new(config));
    Some(content)
}

/// The list that is being read.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Label,
    Vdev,
    Other,
}

const TYPE_UINT64: u32 = 8;
const TYPE_STRING: u32 = 9;
const TYPE_LIST: u32 = 19;
const TYPE_LISTS: u32 = 20;

struct XdrReader<'a> {
    block: &'a Block,
    at: usize,
}

impl XdrReader<'_> {
    fn word(&mut self) -> Option<u32> {
        let value = (self.at + 4 <= LIST_LEN).then(|| self.block.be32(self.at))?;
        self.at += 4;
        Some(value)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from(self.word()?) << 32 | u64::from(self.word()?))
    }

    /// Its length, then its bytes up to a multiple of four.
    fn text(&mut self) -> Option<String> {
        let len = self.word()? as usize;
        let end = self
            .at
            .checked_add(len.checked_next_multiple_of(4)?)
            .filter(|end| *end <= LIST_LEN)?;
        let text = self.block.text(self.at, len);
        self.at = end;
        Some(text)
    }

    /// Version and flags, then pairs up to one of length 0. Wanted values go into `config`; a list of a vdev goes into
    /// its `top`.
    fn list(&mut self, config: &mut Config, of: Of, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.at += 8;
        loop {
            let start = self.at;
            let (encoded, decoded) = (self.word()? as usize, self.word()?);
            if (encoded, decoded) == (0, 0) {
                return Some(());
            }
            let name = self.text()?;
            let (kind, count) = (self.word()?, self.word()?);
            match (kind, of, name.as_str()) {
                (TYPE_UINT64, ..) => take_number(config, of, &name, self.number()?),
                (TYPE_STRING, Of::Label, "name") => config.pool = self.text()?,
                (TYPE_STRING, Of::Vdev, "type") => config.top.kind = self.text()?,
                (TYPE_LIST, Of::Label, "vdev_tree") => self.list(config, Of::Vdev, depth + 1)?,
                (TYPE_LISTS, Of::Vdev, "children") => self.children(config, count, depth)?,
                (TYPE_LIST, ..) => self.list(&mut Config::default(), Of::Other, depth + 1)?,
                (TYPE_LISTS, ..) => {
                    for _ in 0..count {
                        self.list(&mut Config::default(), Of::Other, depth + 1)?;
                    }
                }
                _ => {}
            }
            // The length of a pair covers all that is in it. Going only forward bounds the work.
            let end = start.checked_add(encoded)?;
            if end < self.at || end > LIST_LEN {
                return None;
            }
            self.at = end;
        }
    }

    fn children(&mut self, config: &mut Config, count: u32, depth: usize) -> Option<()> {
        for _ in 0..count {
            let mut child = Config::default();
            self.list(&mut child, Of::Vdev, depth + 1)?;
            config.top.children.push(child.top);
        }
        Some(())
    }
}

fn take_number(config: &mut Config, of: Of, name: &str, value: u64) {
    match (of, name) {
        (Of::Label, "txg") => config.txg = value,
        (Of::Label, "state") => config.state = value,
        (Of::Label, "pool_guid") => config.pool_guid = value,
        (Of::Label, "guid") => config.guid = value,
        (Of::Label, "vdev_children") => config.tops = value,
        (Of::Vdev, "id") => config.top.id = value,
        (Of::Vdev, "guid") => config.top.guid = value,
        (Of::Vdev, "nparity") => config.top.parity = value,
        (Of::Vdev, "ashift") => {
            config.top.ashift = Some(value).filter(|ashift| ASHIFT.contains(ashift))
        }
        _ => {}
    }
}
