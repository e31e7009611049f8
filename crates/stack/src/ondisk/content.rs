//! The content of a superblock, before it becomes nodes of a stack.

use plumb_geometry::{Bytes, GridKind};

use super::{lvm, md, zfs};
use crate::grid::CellKind;
use crate::node::FactKey;
use crate::obstacle::LuksFault;
pub(crate) use crate::problem_ids::ProblemId;

/// A cell that a format states, by its length and its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) len: u64,
    pub(crate) offset: u64,
    pub(crate) what: CellKind,
    pub(crate) kind: GridKind,
}

impl Cell {
    pub(crate) const fn unit(len: u64, what: CellKind) -> Cell {
        Cell {
            len,
            offset: 0,
            what,
            kind: GridKind::Unit,
        }
    }
}

/// The layer on the device that has the superblock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Layer {
    /// No known layer: a journal, a cache's own device.
    Nothing,
    FileSystem,
    Swap,
    /// A btrfs: its UUID, and how many devices it has.
    Btrfs {
        uuid: [u8; 16],
        devices: u64,
    },
    /// An encrypted volume with the start of its data; `None` if unknown, with the reason.
    Crypt {
        start: Result<u64, LuksFault>,
    },
    /// A device behind a cache, with the start of its data.
    Cached {
        start: u64,
    },
    Volumes(Box<lvm::Pv>),
    Array(Box<md::Superblock>),
    Zfs(Box<zfs::Config>),
}

/// The content found on a device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Content {
    /// As `blkid` calls it, or `md member` and the like; see [`crate::node::keys::CONTENT`].
    pub(crate) name: &'static str,
    /// Format and version, for the source.
    pub(crate) format: String,
    /// Lengths and positions of the file system, or of the device if nothing is above it.
    pub(crate) lengths: Vec<(FactKey<Bytes>, Bytes)>,
    /// Metadata version of an array.
    pub(crate) metadata: Option<String>,
    /// Ashift of a vdev.
    pub(crate) ashift: Option<u64>,
    /// Grids of the layer above the device.
    pub(crate) cells: Vec<Cell>,
    /// Bytes of the device that it takes, if it says so.
    pub(crate) size: Option<u64>,
    /// Start of its partition as it has noted it, bytes; `None` when it has not.
    pub(crate) hidden: Option<u64>,
    pub(crate) layer: Layer,
    /// Its problems.
    pub(crate) problems: Vec<(ProblemId, String)>,
}

impl Content {
    pub(crate) fn new(name: &'static str, layer: Layer) -> Content {
        Content {
            name,
            format: name.to_owned(),
            lengths: Vec::new(),
            metadata: None,
            ashift: None,
            cells: Vec::new(),
            size: None,
            hidden: None,
            layer,
            problems: Vec::new(),
        }
    }

    pub(crate) fn length(mut self, key: FactKey<Bytes>, bytes: impl Into<u64>) -> Content {
        self.lengths.push((key, Bytes(bytes.into())));
        self
    }

    pub(crate) fn cell(mut self, cell: Cell) -> Content {
        self.cells.push(cell);
        self
    }

    pub(crate) fn sized(mut self, size: Option<u64>) -> Content {
        self.size = size;
        self
    }
}
