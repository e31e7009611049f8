//! Facts about units: records, blocks, and devices' statements about theirs.

use plumb_geometry::{Bounds, Bytes};
use plumb_stack::{CellKind, GridDoubt, Source};
use serde::{Deserialize, Serialize};

use super::OfLength;
use crate::counted::CountedShare;
use crate::grid::GridOf;
use crate::io_size::IoSizeBasis;
use crate::rule::PlanKind;

/// `record-mismatch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum RecordMismatch {
    /// Requests in a trace.
    Requests(RequestsAndRecords),
    /// Pages and records of a layout.
    Layout(PagesAndRecords),
}

rule! {
    RECORD_MISMATCH: RecordMismatch(RecordMismatch) "record-mismatch", Io, true, Some(PlanKind::Record),
        "pages or requests and records differ in size or place",
        "`--record` and a trace of the vfs layer; from a layout `--page`";
}

/// Requests that cover records in part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestsAndRecords {
    /// The record.
    pub record_bytes: Bytes,
    /// Requests that cover a record only in part.
    pub counted: CountedShare,
    /// Bytes moved per byte read, at most; absent without reads.
    pub read_amplification: Option<Bounds<f64>>,
    /// Bytes moved per byte written, at most; absent without writes.
    pub write_amplification: Option<Bounds<f64>>,
    /// Of the requests that cover a record in part, those that follow another without a gap.
    pub following: Bounds<u64>,
    /// The commonest request whose length is exact.
    pub commonest: Option<OfLength>,
}

/// Pages in records of another size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PagesAndRecords {
    /// The page.
    pub page_bytes: Bytes,
    /// The source of the page.
    pub page_source: Source,
    /// The record.
    pub record_bytes: Bytes,
    /// The source of the record.
    pub record_source: Source,
    /// The keeper of the record.
    pub keeper: Keeper,
    /// Bytes moved per byte read.
    pub read_amplification: f64,
    /// Bytes moved per byte written.
    pub write_amplification: f64,
}

/// The keeper of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keeper {
    /// Records of a data set.
    Records,
    /// Blocks of a ZFS volume.
    VolumeBlocks,
    /// Blocks of a file system without records.
    Blocks,
}

/// `indirection-unit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndirectionUnit {
    /// The unit.
    pub grid: GridOf,
    /// The smallest write.
    pub written_bytes: Bytes,
    /// The cause of the small writes.
    pub written_by: SmallestWrite,
    /// Bytes programmed per byte written, at most.
    pub amplification: f64,
}

rule! {
    INDIRECTION_UNIT: IndirectionUnit(IndirectionUnit) "indirection-unit", Layout, true, None,
        "writes are smaller than the unit of the flash below", "a unit; `--page`, an ashift or a profile";
}

/// The cause of the smallest write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SmallestWrite {
    /// The size of the I/O.
    Io {
        /// How that size is known.
        basis: IoSizeBasis,
    },
    /// Blocks of a pool: 2^ashift.
    PoolBlocks,
    /// Blocks of a file system.
    FileSystemBlocks,
}

/// `geometry-mismatch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeometryMismatch {
    /// The stripe unit in the superblock; 0 for none.
    pub told_unit_bytes: Bytes,
    /// The stripe width in the superblock.
    pub told_width_bytes: Option<Bytes>,
    /// The source of the superblock.
    pub source: Option<Source>,
    /// The stripe below; absent if the layers below have none.
    pub stripe: Option<StripeBelow>,
}

rule! {
    GEOMETRY_MISMATCH: GeometryMismatch(GeometryMismatch) "geometry-mismatch", Layout, true, Some(PlanKind::FileSystem),
        "a file system is configured for another stripe than the one below it", "its superblock";
}

/// A stripe below a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripeBelow {
    /// The striped device.
    pub on: String,
    /// Its chunk.
    pub chunk_bytes: Bytes,
    /// Chunks of data in a stripe.
    pub data_chunks: u64,
    /// Data of a stripe; absent if that does not fit 64 bits.
    pub width_bytes: Option<Bytes>,
}

/// `implausible-hint`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImplausibleHint {
    /// The statements that cannot be true; at least one.
    pub hints: Vec<Hint>,
}

rule! {
    IMPLAUSIBLE_HINT: ImplausibleHint(ImplausibleHint) "implausible-hint", Layout, true, None,
        "a stated size cannot be true", "nothing";
}

/// A size that cannot be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The stated kind of the size.
    pub what: CellKind,
    /// The size.
    pub stated_bytes: Bytes,
    /// Its source.
    pub source: Source,
    /// Why it cannot be true.
    pub doubt: HintDoubt,
}

/// Why a size cannot be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HintDoubt {
    /// 65,535 sectors, the value of USB bridges that do not know.
    Bridge,
    /// Larger than the optimal I/O of any device.
    TooLarge {
        /// The largest that is plausible.
        most_bytes: Bytes,
    },
    /// No multiple of a smaller unit of the same device.
    NoMultiple {
        /// The smaller unit.
        of: CellKind,
        /// Its size.
        unit_bytes: Bytes,
    },
    /// An odd number of sectors.
    OddSectors,
    /// Another width than that of the stripe.
    NotTheStripe {
        /// The true width.
        stripe_bytes: Bytes,
        /// Whether members have such a hint, so that the kernel took the least common multiple.
        is_multiple_of_members: bool,
    },
    /// The reader of the statement doubts it.
    Told {
        /// Why.
        why: GridDoubt,
    },
}

/// `misstated-grid`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MisstatedGrid {
    /// The fault of the statement.
    pub fault: Fault,
    /// The block that the export states.
    pub stated_bytes: Bytes,
    /// The start of its first block that the export states.
    pub stated_offset_bytes: Bytes,
    /// The source of both.
    pub source: Source,
    /// The unit below, at its position in the address space of the export.
    pub grid: GridOf,
    /// Kind of the export; absent for a disk that a hypervisor shows.
    pub backstore: Option<String>,
}

rule! {
    MISSTATED_GRID: MisstatedGrid(MisstatedGrid) "misstated-grid", Layout, true, None,
        "an export states another grid than the one below it",
        "a target's configfs, or a virtual disk joined with the layers below";
}

/// The fault of a statement, by growing harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// Larger than any unit below: it costs space and cache, and hides nothing.
    Larger,
    /// Its boundaries are between those of the unit.
    Shifted,
    /// Smaller than a unit below: nobody sees that there is one.
    Hidden,
    /// Blocks smaller than those that the device below takes at all.
    Refused,
}
