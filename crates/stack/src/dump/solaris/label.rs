//! A disk's label as prtvtoc and format print it: slices on a disk.

use plumb_geometry::{Bytes, Grid, SECTOR};

use super::names::on_solaris;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, GridFact, Source};
use crate::node::{Kind, Part, Placing, Problem, keys};
use crate::obstacle::Obstacle;
use crate::problem_ids::ProblemId;

/// Tag of a slice that stands for the whole disk and is no part of it.
pub(super) const BACKUP: u32 = 5;
/// Tag of the part of an EFI label that Solaris keeps for itself.
pub(super) const RESERVED: u32 = 11;
/// Slices of a VTOC on SPARC; on x86 there are 16.
const SPARC_SLICES: u32 = 8;

/// Names of tags, as format prints them, by number.
const TAGS: [&str; 12] = [
    "unassigned",
    "boot",
    "root",
    "swap",
    "usr",
    "backup",
    "stand",
    "var",
    "home",
    "alternates",
    "cache",
    "reserved",
];

/// The number of a tag.
pub(super) fn tag_number(name: &str) -> Option<u32> {
    let at = TAGS
        .iter()
        .position(|tag| *tag == name)
        .or_else(|| (name == "altsctr").then_some(9))?;
    u32::try_from(at).ok()
}

/// A slice in the units of its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrintedSlice {
    pub(super) number: u32,
    pub(super) tag: Option<u32>,
    /// `00` mountable and writable, `01` not mountable, `10` read-only, `11` both.
    pub(super) flags: String,
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) mount: Option<String>,
    pub(super) line: usize,
}

/// A label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SolarisLabel {
    pub(super) disk: String,
    pub(super) is_efi: bool,
    pub(super) sector: Bytes,
    pub(super) cylinder_sectors: Option<u64>,
    /// Sectors of the disk; a VTOC does not tell.
    pub(super) sectors: Option<u64>,
    /// First sector behind the space for slices, if it is printed.
    pub(super) end: Option<u64>,
    pub(super) slices: Vec<PrintedSlice>,
}

impl SolarisLabel {
    /// On x86 a VTOC is inside an fdisk partition and counts from its start.
    fn is_in_fdisk_partition(&self) -> bool {
        !self.is_efi && self.slices.iter().any(|slice| slice.number >= SPARC_SLICES)
    }

    /// Tells all of it.
    pub(super) fn tell(
        &self,
        source: impl Fn(usize) -> Source,
        line: usize,
        builder: &mut Builder,
    ) {
        let (disk, from) = (builder.node(&self.disk), source(line));
        on_solaris(builder, &from);
        builder.kind(disk, Kind::Disk, &from);
        builder.fact(
            disk,
            keys::LABEL,
            if self.is_efi { "efi" } else { "vtoc" },
            &from,
        );
        if let Ok(grid) = Grid::unit(self.sector) {
            builder.grid(
                disk,
                GridFact::believed(grid, CellKind::LogicalBlock, from.clone()),
            );
        }
        let cylinder = self
            .cylinder_sectors
            .and_then(|sectors| self.bytes(sectors));
        if let Some(bytes) = cylinder {
            builder.fact(disk, keys::CYLINDER_SECTORS, bytes.0 / SECTOR, &from);
        }
        if let Some(size) = self.sectors.and_then(|sectors| self.bytes(sectors)) {
            builder.size(disk, size, &from);
        }
        let below = if self.is_in_fdisk_partition() {
            self.fdisk_partition(disk, &from, builder)
        } else {
            disk
        };
        for slice in &self.slices {
            self.tell_slice(slice, below, &source(slice.line), builder);
        }
    }

    fn bytes(&self, sectors: u64) -> Option<Bytes> {
        self.sector.checked_mul(sectors)
    }

    fn fdisk_partition(&self, disk: NodeId, source: &Source, builder: &mut Builder) -> NodeId {
        let id = builder.node(&format!("{} Solaris partition", self.disk));
        builder.kind(id, Kind::Partition, source);
        let why = Obstacle::FdiskStart {
            disk: self.disk.to_string(),
        };
        builder.place(
            id,
            Placing::Unknown {
                members: vec![disk],
                why,
            },
            source,
        );
        id
    }

    fn tell_slice(
        &self,
        slice: &PrintedSlice,
        below: NodeId,
        source: &Source,
        builder: &mut Builder,
    ) {
        let id = builder.node(&format!("{}s{}", self.disk, slice.number));
        let (Some(start), Some(len)) = (self.bytes(slice.first), self.bytes(slice.count)) else {
            let text = format!(
                "slice {} of {} is beyond 2^64 bytes",
                slice.number, self.disk
            );
            builder.problem(Problem {
                node: Some(id),
                id: ProblemId::BrokenLabel,
                text,
                source: source.clone(),
            });
            return;
        };
        builder.kind(id, Kind::Partition, source);
        builder.size(id, len, source);
        let part = Part {
            upper: Bytes(0),
            node: below,
            start,
            len: Some(len),
        };
        builder.place(id, Placing::Parts { parts: vec![part] }, source);
        builder.fact(id, keys::PARTITION_NUMBER, slice.number, source);
        builder.fact(id, keys::SLICE, slice.number, source);
        if let Some(tag) = slice.tag {
            builder.fact(id, keys::PARTITION_TAG, tag, source);
        }
        builder.fact(id, keys::PARTITION_FLAGS, slice.flags.as_str(), source);
        if let Some(mount) = &slice.mount {
            builder.fact(id, keys::MOUNT, mount.as_str(), source);
        }
        let end = slice.first.checked_add(slice.count);
        if let Some(limit) = self.end.filter(|limit| end.is_none_or(|end| end > *limit)) {
            let text = format!(
                "slice {} of {} ends behind sector {limit}, where the label says that its disk ends",
                slice.number, self.disk
            );
            builder.problem(Problem {
                node: Some(id),
                id: ProblemId::BrokenLabel,
                text,
                source: source.clone(),
            });
        }
    }
}
