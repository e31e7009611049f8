//! A grid with its pedigree: its kind, its source, and whether to believe it.

use std::borrow::Cow;

use plumb_geometry::{Bytes, Grid};
use serde::{Deserialize, Serialize};

use crate::obstacle::GridDoubt;

/// Kind of the cells of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellKind {
    /// The smallest addressable block.
    LogicalBlock,
    /// Physical block of a drive.
    PhysicalBlock,
    /// `minimum_io_size`: the device prefers requests of at least this.
    MinimumIo,
    /// `optimal_io_size`: a hint, often a stripe, often nonsense.
    OptimalIo,
    /// NVMe NPWA: preferred starts of writes.
    WriteAlignment,
    /// NVMe NPWG or another statement of the unit in which flash is mapped.
    IndirectionUnit,
    /// Bytes written all or nothing.
    AtomicWrite,
    /// Unit of discards.
    DiscardUnit,
    /// Zone of a zoned drive.
    Zone,
    /// `chunk_sectors` or NVMe NOIOB: a boundary that I/O should not cross.
    IoBoundary,
    /// Chunk of a stripe: interlace, strip, stripe unit.
    Chunk,
    /// Data of one stripe over all its members, of a parity RAID.
    ParityStripe,
    /// Segment or allocation unit of a hardware array.
    ArrayUnit,
    /// Sector of an encrypted volume.
    CryptSector,
    /// Block of a thin pool, a cache or a virtual disk: contiguous inside, anywhere as a whole.
    Cluster,
    /// Allocation unit of a volume group.
    VolumeExtent,
    /// Block of a file system.
    FileSystemBlock,
    /// Record of ZFS, or block of one of its volumes.
    Record,
    /// 2^ashift of a ZFS vdev.
    Ashift,
    /// Page of a database.
    Page,
    /// Nobody said anything: 4 KiB.
    Assumed,
}

impl CellKind {
    /// The words used in output.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            CellKind::LogicalBlock => "logical block",
            CellKind::PhysicalBlock => "physical block",
            CellKind::MinimumIo => "minimum I/O size",
            CellKind::OptimalIo => "optimal I/O size",
            CellKind::WriteAlignment => "preferred write alignment",
            CellKind::IndirectionUnit => "indirection unit",
            CellKind::AtomicWrite => "atomic write unit",
            CellKind::DiscardUnit => "discard unit",
            CellKind::Zone => "zone",
            CellKind::IoBoundary => "I/O boundary",
            CellKind::Chunk => "chunk",
            CellKind::ParityStripe => "parity stripe",
            CellKind::ArrayUnit => "array unit",
            CellKind::CryptSector => "encryption sector",
            CellKind::Cluster => "cluster",
            CellKind::VolumeExtent => "volume extent",
            CellKind::FileSystemBlock => "file-system block",
            CellKind::Record => "record",
            CellKind::Ashift => "ashift block",
            CellKind::Page => "database page",
            CellKind::Assumed => "assumed unit",
        }
    }
}

/// The source of a statement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// A limit that the kernel states in sysfs, by its path.
    Kernel {
        /// Path below the root of the host.
        path: String,
    },
    /// A field that the drive itself returned.
    Drive {
        /// `NPWA`, `READ CAPACITY(16)`.
        field: String,
    },
    /// The table of a device mapper device.
    DeviceMapper,
    /// A label or superblock read from the disk.
    OnDisk {
        /// `gpt`, `ext4`, `md 1.2`.
        format: String,
    },
    /// Output of a tool.
    Dump {
        /// `metastat -p`.
        tool: Cow<'static, str>,
        /// Name of the input.
        file: String,
        /// Line in it, from 1; 0 where lines mean nothing.
        line: u64,
    },
    /// The user said so.
    User,
    /// One host shows it to another under this identity.
    Identity {
        /// `naa.6001405…`
        id: String,
    },
    /// A table of known arrays and drives, with the document it is from.
    Catalogue {
        /// The document.
        document: String,
    },
    /// It follows from how the layer places its bytes.
    Layout,
    /// Nobody: taken for want of better knowledge.
    Assumed,
}

impl Source {
    /// The same in a word or two, for long lists.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Source::Kernel { .. } => "kernel",
            Source::Drive { .. } => "drive",
            Source::DeviceMapper => "device mapper",
            Source::OnDisk { .. } => "on the disk",
            Source::Dump { tool, .. } => tool,
            Source::User => "given",
            Source::Identity { .. } => "identity",
            Source::Catalogue { .. } => "known arrays",
            Source::Layout => "layout",
            Source::Assumed => "assumed",
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Kernel { path } => f.write_str(path),
            Source::Drive { field } => write!(f, "{field} of the drive"),
            Source::DeviceMapper => f.write_str("device mapper table"),
            Source::OnDisk { format } => write!(f, "{format} on the disk"),
            Source::Dump {
                tool,
                file,
                line: 0,
            } => write!(f, "{tool} ({file})"),
            Source::Dump { tool, file, line } => write!(f, "{tool} ({file}:{line})"),
            Source::User => f.write_str("given by the user"),
            Source::Identity { id } => write!(f, "shown to it as {id}"),
            Source::Catalogue { document } => write!(f, "known arrays: {document}"),
            Source::Layout => f.write_str("layout of the layer"),
            Source::Assumed => f.write_str("assumed"),
        }
    }
}

/// Whether a statement is taken for true.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Belief {
    /// Yes.
    Believed,
    /// No, for this reason.
    Doubted {
        /// Why not.
        why: GridDoubt,
    },
}

/// A grid in the address space of the node that it is a fact of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct GridFact {
    /// The grid.
    pub grid: Grid,
    /// The kind of its cells.
    pub what: CellKind,
    /// Its source.
    pub source: Source,
    /// Whether it is believed.
    pub belief: Belief,
}

impl GridFact {
    /// A fact that is believed.
    #[must_use]
    pub const fn believed(grid: Grid, what: CellKind, source: Source) -> GridFact {
        GridFact {
            grid,
            what,
            source,
            belief: Belief::Believed,
        }
    }

    /// Whether it is such a grid, and the drive itself stated it.
    #[must_use]
    pub fn is_of_drive(&self, what: CellKind) -> bool {
        self.what == what && matches!(self.source, Source::Drive { .. })
    }

    /// A fact that is kept but not believed.
    #[must_use]
    pub fn doubted(grid: Grid, what: CellKind, source: Source, why: GridDoubt) -> GridFact {
        GridFact {
            grid,
            what,
            source,
            belief: Belief::Doubted { why },
        }
    }

    /// Whether it is believed.
    #[must_use]
    pub fn is_believed(&self) -> bool {
        self.belief == Belief::Believed
    }

    /// The length of a cell.
    #[must_use]
    pub const fn granularity(&self) -> Bytes {
        self.grid.granularity()
    }
}
