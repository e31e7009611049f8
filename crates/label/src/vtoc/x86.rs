//! Solaris's label within a partition of an MBR: little-endian, in the second sector of that partition, slices that
//! count from its first.
//!
//! Unverified: no label written by Solaris was at hand. The reader was held against util-linux, which reads the same
//! layout, on images made from the offset table.

use plumb_geometry::Bytes;

use crate::bytes::{field, put};
use crate::checks;
use crate::disk::Blocks;
use crate::label::{Label, LabelCopy, Partition, PartitionPlace, PartitionType, extent};
use crate::mbr::types;
use crate::problem::{Fault, PartId, Problem, Role};
use crate::vtoc::{
    Geometry, MAGIC, SANITY, Slice, VERSION, WHOLE_SLICE, check_rest, checksum, tags,
};
use crate::write::{EncodeError, WriteStep, in_order};

const SLICES: usize = 16;
const SLICES_AT: usize = 72;
const SLICE_BYTES: usize = 12;
/// The label's sector within its partition.
const LABEL_LBA: u64 = 1;

/// An x86 label with all its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X86Vtoc {
    /// Logical sector in bytes.
    pub sector_bytes: u32,
    /// Number of the MBR partition that contains it.
    pub partition: u32,
    /// First block of that partition.
    pub partition_lba: u64,
    /// Blocks of that partition.
    pub partition_lbas: u64,
    /// Name of the volume.
    pub volume: [u8; 8],
    /// Sector size that the label itself names.
    pub named_sector_bytes: u16,
    /// Slices that count, 16 at most.
    pub slice_count: u16,
    /// All slices, those that do not count too.
    pub slices: [Slice; SLICES],
    /// Description, as in `DEFAULT cyl 2085 alt 2 hd 255 sec 63`.
    pub description: [u8; 128],
    /// The fabricated geometry.
    pub geometry: Geometry,
    /// Blocks of the backup labels to be written too, counted from the start of the disk.
    pub backup_lbas: Vec<u64>,
    /// The whole sector, with 0 in place of the fields above.
    rest: Vec<u8>,
}

impl X86Vtoc {
    /// A label for the MBR partition `partition` of `lbas` blocks from `first_lba` on, with all of it as slice 2.
    ///
    /// # Errors
    /// [`EncodeError::Field`] when the sector size is none, or the partition has more blocks than 32 bits count.
    pub fn new(
        sector_bytes: u32,
        partition: u32,
        first_lba: u64,
        lbas: u64,
        geometry: Geometry,
    ) -> Result<Self, EncodeError> {
        crate::check_sector_bytes(sector_bytes)?;
        let Ok(count) = u32::try_from(lbas) else {
            let (found, expected) = (lbas, "at most 4294967295");
            return Err(EncodeError::Field {
                field: "blocks of a Solaris partition",
                found,
                expected,
            });
        };
        let mut slices = [Slice::default(); SLICES];
        slices[WHOLE_SLICE as usize] = Slice {
            tag: tags::BACKUP,
            flag: 0,
            start: 0,
            count,
        };
        let mut description = [0; 128];
        let Geometry {
            cylinders,
            cylinders_alternate,
            heads,
            sectors,
            ..
        } = geometry;
        let words =
            format!("plumb cyl {cylinders} alt {cylinders_alternate} hd {heads} sec {sectors}");
        put(&mut description, 0, words.as_bytes());
        Ok(Self {
            sector_bytes,
            partition,
            partition_lba: first_lba,
            partition_lbas: lbas,
            volume: [0; 8],
            // A size of 64 KiB does not fit; old labels have 0.
            named_sector_bytes: u16::try_from(sector_bytes).unwrap_or(0),
            slice_count: SLICES as u16,
            slices,
            description,
            geometry,
            backup_lbas: Vec::new(),
            rest: vec![0; sector_bytes as usize],
        })
    }

    /// The backup labels and the label, with a flush between: first those that the disk can do without, which are
    /// the backups unless one of them is `in_use`. The caller flushes once more at the end.
    ///
    /// # Errors
    /// If the label or a backup is outside its partition, or more slices count than exist.
    pub fn encode(&self, in_use: Role) -> Result<Vec<WriteStep>, EncodeError> {
        check_rest(&self.rest, self.sector_bytes)?;
        if usize::from(self.slice_count) > SLICES {
            let (found, expected) = (self.slice_count.into(), "at most 16");
            return Err(EncodeError::Field {
                field: "number of slices",
                found,
                expected,
            });
        }
        let end_lba = self.partition_lba.saturating_add(self.partition_lbas);
        let label_lba = self.partition_lba.saturating_add(LABEL_LBA);
        let outside = |&&lba: &&u64| lba < label_lba || lba >= end_lba;
        if let Some(&found) = self.backup_lbas.iter().chain([&label_lba]).find(outside) {
            let expected = "a block of the Solaris partition after the first";
            return Err(EncodeError::Field {
                field: "block of a label",
                found,
                expected,
            });
        }
        let label = self.encode_sector();
        let write = |lba: &u64| WriteStep::write(*lba, self.sector_bytes, label.clone());
        let backups = self
            .backup_lbas
            .iter()
            .map(write)
            .collect::<Result<_, _>>()?;
        Ok(in_order(vec![write(&label_lba)?], backups, in_use))
    }

    fn encode_sector(&self) -> Vec<u8> {
        let mut sector = self.rest.clone();
        put(&mut sector, 12, &SANITY.to_le_bytes());
        put(&mut sector, 16, &VERSION.to_le_bytes());
        put(&mut sector, 20, &self.volume);
        put(&mut sector, 28, &self.named_sector_bytes.to_le_bytes());
        put(&mut sector, 30, &self.slice_count.to_le_bytes());
        for (slice, bytes) in self
            .slices
            .iter()
            .zip(sector[SLICES_AT..].chunks_exact_mut(SLICE_BYTES))
        {
            put(bytes, 0, &slice.tag.to_le_bytes());
            put(bytes, 2, &slice.flag.to_le_bytes());
            put(bytes, 4, &slice.start.to_le_bytes());
            put(bytes, 8, &slice.count.to_le_bytes());
        }
        put(&mut sector, 328, &self.description);
        put(
            &mut sector,
            456,
            &self.geometry.cylinders_physical.to_le_bytes(),
        );
        put(&mut sector, 460, &self.geometry.cylinders.to_le_bytes());
        put(
            &mut sector,
            464,
            &self.geometry.cylinders_alternate.to_le_bytes(),
        );
        put(&mut sector, 468, &self.geometry.heads.to_le_bytes());
        put(&mut sector, 472, &self.geometry.sectors.to_le_bytes());
        put(&mut sector, 508, &MAGIC.to_le_bytes());
        put(&mut sector, 510, &[0; 2]);
        let sum = checksum(&sector);
        put(&mut sector, 510, &sum.to_be_bytes());
        sector
    }

    fn decode(sector: &[u8], blocks: Blocks<'_>, part: &Partition) -> Result<Self, Fault> {
        let le16 = |at| u16::from_le_bytes(field(sector, at));
        let le32 = |at| u32::from_le_bytes(field(sector, at));
        if le16(508) != MAGIC || le32(12) != SANITY {
            return Err(Fault::NoSignature);
        }
        super::check_sum(sector)?;
        if le32(16) != VERSION {
            return Err(Fault::Field {
                field: "version",
                found: le32(16).into(),
                expected: "1",
            });
        }
        if usize::from(le16(30)) > SLICES {
            return Err(Fault::Field {
                field: "number of slices",
                found: le16(30).into(),
                expected: "at most 16",
            });
        }
        let mut slices = [Slice::default(); SLICES];
        for (slice, bytes) in slices
            .iter_mut()
            .zip(sector[SLICES_AT..].chunks_exact(SLICE_BYTES))
        {
            *slice = Slice {
                tag: u16::from_le_bytes(field(bytes, 0)),
                flag: u16::from_le_bytes(field(bytes, 2)),
                start: u32::from_le_bytes(field(bytes, 4)),
                count: u32::from_le_bytes(field(bytes, 8)),
            };
        }
        let mut rest = sector.to_vec();
        for range in [
            12..32,
            SLICES_AT..SLICES_AT + SLICES * SLICE_BYTES,
            328..466,
            468..476,
            508..512,
        ] {
            rest[range].fill(0);
        }
        let sector_bytes = u64::from(blocks.sector_bytes);
        Ok(Self {
            sector_bytes: blocks.sector_bytes,
            partition: part.id.number,
            partition_lba: part.extent.start().0 / sector_bytes,
            partition_lbas: part.extent.len().0 / sector_bytes,
            volume: field(sector, 20),
            named_sector_bytes: le16(28),
            slice_count: le16(30),
            slices,
            description: field(sector, 328),
            geometry: geometry(sector),
            backup_lbas: Vec::new(),
            rest,
        })
    }

    /// Reads the labels in all partitions of an MBR that may have one, and lists their slices.
    pub(crate) fn read_all(blocks: Blocks<'_>, label: &mut Label) -> Vec<Self> {
        let may_have_one = |part: &&Partition| {
            matches!(
                part.kind,
                PartitionType::Mbr(types::SOLARIS | types::SOLARIS_OLD)
            )
        };
        let parts: Vec<Partition> = label
            .partitions
            .iter()
            .filter(may_have_one)
            .cloned()
            .collect();
        parts
            .iter()
            .filter_map(|part| Self::read(blocks, part, label))
            .collect()
    }

    fn read(blocks: Blocks<'_>, part: &Partition, label: &mut Label) -> Option<Self> {
        let first_lba = part.extent.start().0 / u64::from(blocks.sector_bytes);
        let sector = blocks.read(first_lba + LABEL_LBA, 1).ok()?;
        let primary = Self::decode(&sector, blocks, part);
        let tells = u32::from_le_bytes(field(&sector, 12)) == SANITY;
        if primary.is_err() && !tells {
            return None;
        }
        let end_lba = part.extent.end().0 / u64::from(blocks.sector_bytes);
        // With a cylinder of one track the place of the first backup is that of the label itself.
        let in_partition = |lba: &u64| *lba > first_lba + LABEL_LBA && *lba < end_lba;
        let backups: Vec<(u64, Self)> = geometry(&sector)
            .backup_lbas()
            .into_iter()
            .filter_map(|lba| lba.checked_add(first_lba).filter(in_partition))
            .filter_map(|lba| {
                Some((
                    lba,
                    Self::decode(&blocks.read(lba, 1).ok()?, blocks, part).ok()?,
                ))
            })
            // A broken geometry may lead to a backup of another label.
            .filter(|(lba, backup)| backup.geometry.backup_lbas().contains(&(lba - first_lba)))
            .collect();
        let backup_lbas = backups.iter().map(|&(lba, _)| lba).collect();
        note_copies(label, blocks, first_lba + LABEL_LBA, &primary, &backups);
        let used = primary
            .ok()
            .or_else(|| backups.into_iter().next().map(|(_, backup)| backup));
        let Some(mut used) = used else {
            label.problems.push(Problem::NoGoodCopy);
            return None;
        };
        used.backup_lbas = backup_lbas;
        used.show(label, part);
        Some(used)
    }

    fn show(&self, label: &mut Label, part: &Partition) {
        let covers =
            |slice: &Slice| slice.start == 0 && u64::from(slice.count) == self.partition_lbas;
        let counted = (0u32..).zip(&self.slices).take(self.slice_count.into());
        let mut slices = Vec::new();
        for (number, slice) in counted.filter(|(_, slice)| slice.count > 0) {
            let id = PartId::slice(number, Some(self.partition));
            let first_lba = self.partition_lba + u64::from(slice.start);
            let end_lba = first_lba + u64::from(slice.count);
            let Some(extent) = extent(first_lba, end_lba, self.sector_bytes) else {
                continue;
            };
            slices.push(Partition {
                id,
                place: PartitionPlace::Slice,
                extent,
                kind: PartitionType::Tag(slice.tag),
                name: None,
                uuid: None,
                is_whole_disk: slice.tag == tags::BACKUP
                    || (number == WHOLE_SLICE && covers(slice)),
            });
        }
        label.partitions.extend(slices);
        let parent =
            |slice: &Partition| (slice.id.within == Some(self.partition)).then_some(part.id);
        let outside = checks::outside(&label.partitions, parent);
        label.problems.extend(outside);
    }
}

fn geometry(sector: &[u8]) -> Geometry {
    let le32 = |at| u32::from_le_bytes(field(sector, at));
    Geometry {
        cylinders_physical: le32(456),
        cylinders: le32(460),
        cylinders_alternate: u16::from_le_bytes(field(sector, 464)),
        heads: le32(468),
        sectors: le32(472),
    }
}

fn note_copies(
    label: &mut Label,
    blocks: Blocks<'_>,
    label_lba: u64,
    primary: &Result<X86Vtoc, Fault>,
    backups: &[(u64, X86Vtoc)],
) {
    let fault = primary.as_ref().err().cloned();
    let copy = |role, lba: u64, fault, is_used| LabelCopy {
        role,
        at: Bytes(lba * u64::from(blocks.sector_bytes)),
        fault,
        is_used,
    };
    label.copies.push(copy(
        Role::Primary,
        label_lba,
        fault.clone(),
        fault.is_none(),
    ));
    for (index, &(lba, _)) in backups.iter().enumerate() {
        label
            .copies
            .push(copy(Role::Backup, lba, None, index == 0 && fault.is_some()));
    }
    if let Ok(primary) = primary
        && backups.iter().any(|(_, backup)| backup != primary)
    {
        label
            .problems
            .push(Problem::CopiesDiffer { field: "slices" });
    }
    if let Some(fault) = fault {
        label.problems.push(Problem::BrokenCopy {
            role: Role::Primary,
            lba: label_lba,
            fault,
        });
    }
}
