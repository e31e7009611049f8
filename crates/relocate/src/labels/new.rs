//! A label with one partition, for a disk that has none or is to have another: as fields.

use plumb_geometry::Extent;
use plumb_label::gpt::{Entry, types as gpt_types};
use plumb_label::mbr::types as mbr_types;
use plumb_label::vtoc::{Geometry, tags};
use plumb_label::{Detail, Gpt, Guid, Mbr, PartId, SparcVtoc};

use crate::labels::edit::{Edit, EditError, slice_of};

/// Bytes of the partition that a Solaris EFI label keeps for the system, the last of its slices (`efi_reserved_sectors`
/// of illumos).
const SOLARIS_RESERVED: u64 = 8 << 20;
/// Index of that slice.
const SOLARIS_RESERVED_INDEX: usize = 8;
/// Alternate cylinders of a SPARC label, as `format` leaves them.
const ALTERNATES: u16 = 2;

/// The kind of a new label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewKind {
    /// GPT with a protective MBR.
    Gpt,
    /// The same with the slices of Solaris: the reserved one at the end is made as well.
    SolarisEfi,
    /// MBR.
    Mbr,
    /// Solaris's label of SPARC disks, with this many heads and sectors of a track.
    SparcVtoc {
        /// Heads.
        heads: u32,
        /// Sectors of a track.
        sectors: u32,
    },
}

/// Identities of a new label; drawn by the caller, since nothing here is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewIds {
    /// Of the disk; its first four bytes sign an MBR.
    pub disk: Guid,
    /// Of the partition.
    pub partition: Guid,
    /// Of the reserved partition of Solaris.
    pub reserved: Guid,
}

/// A label with one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewLabel {
    /// Kind.
    pub kind: NewKind,
    /// Logical block of the disk.
    pub sector_bytes: u32,
    /// Whole logical blocks of the disk.
    pub disk_lbas: u64,
    /// Number of the partition from 1; of Solaris the slice from 0.
    pub number: u32,
    /// The extent of the partition.
    pub extent: Extent,
    /// Identities.
    pub ids: NewIds,
}

impl NewLabel {
    /// The label as fields.
    ///
    /// # Errors
    /// When the disk has no room for it, or it none for the partition.
    pub fn detail(&self) -> Result<Detail, EditError> {
        let part = match self.kind {
            NewKind::Gpt | NewKind::Mbr => PartId::partition(self.number),
            NewKind::SolarisEfi | NewKind::SparcVtoc { .. } => PartId::slice(self.number, None),
        };
        let edit = Edit {
            part,
            to: self.extent,
            sector_bytes: self.sector_bytes.into(),
        };
        match self.kind {
            NewKind::Gpt | NewKind::SolarisEfi => {
                self.gpt(&edit).map(|gpt| Detail::Gpt(Box::new(gpt)))
            }
            NewKind::Mbr => {
                let mut mbr = Mbr::new(self.sector_bytes, self.disk_lbas)?;
                let [a, b, c, d, ..] = self.ids.disk.0;
                mbr.first.disk_signature = u32::from_le_bytes([a, b, c, d]);
                edit.primary(&mut mbr)?;
                if let Some(entry) = mbr.first.entries.get_mut(self.number as usize - 1) {
                    entry.kind = mbr_types::LINUX;
                }
                Ok(Detail::Mbr(Box::new(mbr), Vec::new()))
            }
            NewKind::SparcVtoc { heads, sectors } => {
                let mut vtoc = SparcVtoc::new(
                    self.sector_bytes,
                    self.disk_lbas,
                    self.geometry(heads, sectors),
                )?;
                vtoc.backup_lbas = vtoc.geometry.backup_lbas();
                edit.sparc(&mut vtoc)?;
                slice_of(&mut vtoc.slices, part)?.tag = tags::USR;
                Ok(Detail::SparcVtoc(Box::new(vtoc)))
            }
        }
    }

    fn gpt(&self, edit: &Edit) -> Result<Gpt, EditError> {
        let mut gpt = Gpt::new(self.sector_bytes, self.disk_lbas, self.ids.disk)?;
        let is_solaris = self.kind == NewKind::SolarisEfi;
        if is_solaris {
            let lbas = SOLARIS_RESERVED / u64::from(self.sector_bytes);
            let last_lba = gpt.last_usable_lba;
            let first_lba = (last_lba + 1)
                .saturating_sub(lbas)
                .max(gpt.first_usable_lba);
            let reserved = entry(&gpt, gpt_types::SOLARIS_RESERVED, self.ids.reserved);
            gpt.entries[SOLARIS_RESERVED_INDEX] = Entry {
                first_lba,
                last_lba,
                ..reserved
            };
            edit.within(gpt.first_usable_lba, first_lba)?;
        }
        edit.gpt(&mut gpt)?;
        let index = edit.part.number as usize - 1;
        let kind = if is_solaris {
            gpt_types::SOLARIS_USR
        } else {
            gpt_types::LINUX
        };
        let Entry {
            first_lba,
            last_lba,
            ..
        } = gpt.entries[index];
        gpt.entries[index] = Entry {
            first_lba,
            last_lba,
            ..entry(&gpt, kind, self.ids.partition)
        };
        Ok(gpt)
    }

    /// Cylinders as many as the disk has whole ones, the last two of them alternates.
    fn geometry(&self, heads: u32, sectors: u32) -> Geometry {
        let cylinder = u64::from(heads) * u64::from(sectors);
        let whole = self
            .disk_lbas
            .checked_div(cylinder)
            .unwrap_or(0)
            .min(u16::MAX.into()) as u32;
        Geometry {
            cylinders_physical: whole,
            cylinders: whole.saturating_sub(ALTERNATES.into()),
            cylinders_alternate: ALTERNATES,
            heads,
            sectors,
        }
    }
}

fn entry(gpt: &Gpt, kind: Guid, uuid: Guid) -> Entry {
    Entry {
        kind,
        uuid,
        ..Entry::unused(gpt.entry_bytes)
    }
}
