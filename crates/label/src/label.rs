//! The view that all labels share.

use std::fmt;

use plumb_geometry::{Bytes, Extent};

use crate::gpt::Gpt;
use crate::guid::Guid;
use crate::mbr::Mbr;
use crate::problem::{Fault, PartId, Problem, Role};
use crate::vtoc::{SparcVtoc, X86Vtoc};

/// Kinds of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelKind {
    /// GUID partition table.
    Gpt,
    /// A GPT with partitions of Solaris's types: slices, and as a rule a reserved one.
    SolarisEfi,
    /// Master boot record, with or without logical partitions.
    Mbr,
    /// An MBR with a Solaris partition that has slices.
    X86Vtoc,
    /// Sun's label of SPARC disks.
    SparcVtoc,
}

impl fmt::Display for LabelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpt => "GPT",
            Self::SolarisEfi => "Solaris EFI",
            Self::Mbr => "MBR",
            Self::X86Vtoc => "MBR with Solaris VTOC",
            Self::SparcVtoc => "Solaris VTOC (SPARC)",
        })
    }
}

/// The purpose of a partition, by its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionType {
    /// Of a GPT.
    Guid(Guid),
    /// Of an MBR.
    Mbr(u8),
    /// Of a slice.
    Tag(u16),
}

impl PartitionType {
    /// Its name; `None` if unknown.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Guid(guid) => crate::gpt::types::name(guid),
            Self::Mbr(kind) => crate::mbr::types::name(kind),
            Self::Tag(tag) => crate::vtoc::tags::name(tag),
        }
    }

    /// Whether it is the one of a partition whose move has not ended. The one in an MBR is free for uses like this, so that
    /// others may have one too.
    #[must_use]
    pub fn is_moving(self) -> bool {
        [
            Self::Guid(crate::gpt::types::MOVING),
            Self::Mbr(crate::mbr::types::MOVING),
        ]
        .contains(&self)
    }
}

/// How a partition belongs to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionPlace {
    /// Directly on the disk.
    Disk,
    /// The MBR partition that contains the logical ones.
    Extended,
    /// A logical partition.
    Logical,
    /// A slice within an MBR partition.
    Slice,
}

/// A partition or slice, as the label says; it may reach over the end of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its number.
    pub id: PartId,
    /// How it belongs to the others.
    pub place: PartitionPlace,
    /// Its extent on the disk, in bytes; never empty.
    pub extent: Extent,
    /// Its purpose.
    pub kind: PartitionType,
    /// Its name in the label; `None` where the label has none.
    pub name: Option<String>,
    /// Linux's PARTUUID; `None` if the label has none.
    pub uuid: Option<String>,
    /// A slice that stands for the whole disk and overlaps the others by design.
    pub is_whole_disk: bool,
}

/// The position and state of a copy of the label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelCopy {
    /// Primary or backup.
    pub role: Role,
    /// Its position, or its expected position.
    pub at: Bytes,
    /// Why it cannot be used; `None` for a good one.
    pub fault: Option<Fault>,
    /// Whether the partitions are this one's.
    pub is_used: bool,
}

/// All fields of a label, for changing and writing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// Of [`LabelKind::Gpt`] and [`LabelKind::SolarisEfi`].
    Gpt(Box<Gpt>),
    /// Of [`LabelKind::Mbr`] and [`LabelKind::X86Vtoc`], the latter with a label for each Solaris partition.
    Mbr(Box<Mbr>, Vec<X86Vtoc>),
    /// Of [`LabelKind::SparcVtoc`].
    SparcVtoc(Box<SparcVtoc>),
}

/// The label found on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Its kind.
    pub kind: LabelKind,
    /// Logical sector in bytes that the label was written for, by which its addresses count.
    pub sector_bytes: u32,
    /// The identity of the label: a GUID, or the MBR's signature; `None` if it has none.
    pub id: Option<String>,
    /// The bytes that the label allows for partitions; `None` where it does not say.
    pub usable: Option<Extent>,
    /// Partitions and slices in order of their numbers; empty also when no copy was good.
    pub partitions: Vec<Partition>,
    /// The copies that were looked for. An MBR has one.
    pub copies: Vec<LabelCopy>,
    /// Its problems; empty if there are none.
    pub problems: Vec<Problem>,
    /// All fields; `None` when no copy was good.
    pub detail: Option<Detail>,
}

impl Label {
    /// The copy that the partitions are of, to be written last; `None` when none was good. Of an MBR with Solaris
    /// labels it is that of the last such label.
    #[must_use]
    pub fn in_use(&self) -> Option<Role> {
        self.copies
            .iter()
            .rfind(|copy| copy.is_used)
            .map(|copy| copy.role)
    }

    /// The partition that a Solaris EFI label reserves for the system (tag 11); `None` if absent.
    #[must_use]
    pub fn solaris_reserved(&self) -> Option<&Partition> {
        let reserved = PartitionType::Guid(crate::gpt::types::SOLARIS_RESERVED);
        self.partitions
            .iter()
            .find(|partition| partition.kind == reserved)
    }
}

/// The bytes of blocks `first_lba` to before `end_lba`; `None` if the range is empty or exceeds 64 bits.
pub(crate) fn extent(first_lba: u64, end_lba: u64, sector_bytes: u32) -> Option<Extent> {
    let sector_bytes = u64::from(sector_bytes);
    let len = end_lba
        .checked_sub(first_lba)
        .filter(|&lbas| lbas > 0)?
        .checked_mul(sector_bytes)?;
    Extent::new(Bytes(first_lba.checked_mul(sector_bytes)?), Bytes(len)).ok()
}
