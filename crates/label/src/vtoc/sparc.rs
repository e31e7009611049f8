//! Sun's label of SPARC disks: big-endian, in the first sector, slices that begin at cylinders.

use plumb_geometry::Bytes;

use crate::bytes::{field, is_zero, put, text};
use crate::checks;
use crate::disk::Blocks;
use crate::label::{
    Detail, Label, LabelCopy, LabelKind, Partition, PartitionPlace, PartitionType, extent,
};
use crate::problem::{Fault, PartId, Problem, Role};
use crate::vtoc::{
    Geometry, LABEL_BYTES, MAGIC, SANITY, Slice, VERSION, WHOLE_SLICE, check_rest, checksum, tags,
};
use crate::write::{EncodeError, WriteStep, in_order};

const SLICES: usize = 8;
/// Places of the two halves of a slice: tag and flag, start and count.
const TAGS_AT: usize = 142;
const MAP_AT: usize = 444;
/// From the version to the sanity: labels of other systems may leave it 0.
const VTOC: std::ops::Range<usize> = 128..192;

/// A SPARC label with all its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparcVtoc {
    /// Logical sector in bytes.
    pub sector_bytes: u32,
    /// Whole logical blocks of the disk.
    pub disk_lbas: u64,
    /// Description, as in `SUN18G cyl 7506 alt 2 hd 19 sec 248`.
    pub description: [u8; 128],
    /// Name of the volume.
    pub volume: [u8; 8],
    /// Whether the table of contents is there; without it slices have no tags.
    pub has_tags: bool,
    /// The fabricated geometry.
    pub geometry: Geometry,
    /// The slices, in use or not.
    pub slices: [Slice; SLICES],
    /// Blocks of the backup labels to be written too.
    pub backup_lbas: Vec<u64>,
    /// The whole sector, with 0 in place of the fields above.
    rest: Vec<u8>,
}

impl SparcVtoc {
    /// A label with the whole disk as slice 2, and nothing else.
    ///
    /// # Errors
    /// [`EncodeError::Field`] when the sector size is none, or the geometry does not fit the label or the disk.
    pub fn new(sector_bytes: u32, disk_lbas: u64, geometry: Geometry) -> Result<Self, EncodeError> {
        crate::check_sector_bytes(sector_bytes)?;
        let lbas = geometry
            .data_lbas()
            .filter(|&lbas| lbas > 0 && lbas <= disk_lbas);
        let Some(count) = lbas.and_then(|lbas| u32::try_from(lbas).ok()) else {
            let (found, expected) = (
                geometry.data_lbas().unwrap_or(u64::MAX),
                "1 block to those of the disk",
            );
            return Err(EncodeError::Field {
                field: "blocks of all cylinders",
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
        let rest = vec![0; sector_bytes as usize];
        let volume = [0; 8];
        let backup_lbas = Vec::new();
        Ok(Self {
            sector_bytes,
            disk_lbas,
            description,
            volume,
            has_tags: true,
            geometry,
            slices,
            backup_lbas,
            rest,
        })
    }

    /// The backup labels and the one in sector 0, with a flush between: first those that the disk can do without,
    /// which are the backups unless one of them is `in_use`. The caller flushes once more at the end.
    ///
    /// # Errors
    /// If the geometry does not fit the label, or a backup is outside the disk or on sector 0.
    pub fn encode(&self, in_use: Role) -> Result<Vec<WriteStep>, EncodeError> {
        check_rest(&self.rest, self.sector_bytes)?;
        if let Some(&lba) = self
            .backup_lbas
            .iter()
            .find(|&&lba| lba == 0 || lba >= self.disk_lbas)
        {
            let expected = "a block of the disk after the first";
            return Err(EncodeError::Field {
                field: "block of a backup label",
                found: lba,
                expected,
            });
        }
        let label = self.encode_sector()?;
        let write = |lba: &u64| WriteStep::write(*lba, self.sector_bytes, label.clone());
        let backups = self
            .backup_lbas
            .iter()
            .map(write)
            .collect::<Result<_, _>>()?;
        Ok(in_order(vec![write(&0)?], backups, in_use))
    }

    fn encode_sector(&self) -> Result<Vec<u8>, EncodeError> {
        let mut sector = self.rest.clone();
        put(&mut sector, 0, &self.description);
        if self.has_tags {
            put(&mut sector, 128, &VERSION.to_be_bytes());
            put(&mut sector, 132, &self.volume);
            put(&mut sector, 140, &(SLICES as u16).to_be_bytes());
            put(&mut sector, 188, &SANITY.to_be_bytes());
        }
        put(
            &mut sector,
            422,
            &narrow("physical cylinders", self.geometry.cylinders_physical)?,
        );
        put(
            &mut sector,
            432,
            &narrow("cylinders", self.geometry.cylinders)?,
        );
        put(
            &mut sector,
            434,
            &self.geometry.cylinders_alternate.to_be_bytes(),
        );
        put(&mut sector, 436, &narrow("heads", self.geometry.heads)?);
        put(
            &mut sector,
            438,
            &narrow("sectors of a track", self.geometry.sectors)?,
        );
        for (index, slice) in self.slices.iter().enumerate() {
            if self.has_tags {
                put(&mut sector, TAGS_AT + 4 * index, &slice.tag.to_be_bytes());
                put(
                    &mut sector,
                    TAGS_AT + 4 * index + 2,
                    &slice.flag.to_be_bytes(),
                );
            }
            put(&mut sector, MAP_AT + 8 * index, &slice.start.to_be_bytes());
            put(
                &mut sector,
                MAP_AT + 8 * index + 4,
                &slice.count.to_be_bytes(),
            );
        }
        put(&mut sector, 508, &MAGIC.to_be_bytes());
        put(&mut sector, 510, &[0; 2]);
        let sum = checksum(&sector);
        put(&mut sector, 510, &sum.to_be_bytes());
        Ok(sector)
    }

    fn decode(sector: &[u8], blocks: Blocks<'_>) -> Result<Self, Fault> {
        if u16::from_be_bytes(field(sector, 508)) != MAGIC {
            return Err(Fault::NoSignature);
        }
        super::check_sum(sector)?;
        let be16 = |at| u16::from_be_bytes(field(sector, at));
        let be32 = |at| u32::from_be_bytes(field(sector, at));
        let has_tags =
            be32(188) == SANITY && be32(128) == VERSION && usize::from(be16(140)) == SLICES;
        let mut slices = [Slice::default(); SLICES];
        for (index, slice) in slices.iter_mut().enumerate() {
            if has_tags {
                (slice.tag, slice.flag) =
                    (be16(TAGS_AT + 4 * index), be16(TAGS_AT + 4 * index + 2));
            }
            (slice.start, slice.count) = (be32(MAP_AT + 8 * index), be32(MAP_AT + 8 * index + 4));
        }
        let mut rest = sector.to_vec();
        blank(&mut rest, has_tags);
        Ok(Self {
            sector_bytes: blocks.sector_bytes,
            disk_lbas: blocks.count(),
            description: field(sector, 0),
            volume: if has_tags { field(sector, 132) } else { [0; 8] },
            has_tags,
            geometry: geometry(sector),
            slices,
            backup_lbas: Vec::new(),
            rest,
        })
    }

    fn is_whole_disk(&self, number: u32, slice: &Slice) -> bool {
        let covers = slice.start == 0 && self.geometry.data_lbas() == Some(slice.count.into());
        (self.has_tags && slice.tag == tags::BACKUP) || (number == WHOLE_SLICE && covers)
    }

    fn show(&self, label: &mut Label) {
        let name = text(&self.volume);
        label.id = (!name.is_empty()).then_some(name);
        label.usable = self
            .geometry
            .data_lbas()
            .and_then(|lbas| extent(0, lbas, self.sector_bytes));
        if let Some(label_lbas) = self
            .geometry
            .data_lbas()
            .filter(|&lbas| lbas > self.disk_lbas)
        {
            label.problems.push(Problem::DeviceSmaller {
                label_lbas,
                device_lbas: self.disk_lbas,
            });
        }
        for (number, slice) in (0u32..)
            .zip(&self.slices)
            .filter(|(_, slice)| slice.count > 0)
        {
            let id = PartId::slice(number, None);
            // 32 bits of cylinders of 2 × 16 bits of blocks: the product fits, its bytes may not.
            let first_lba = u64::from(slice.start).saturating_mul(self.geometry.cylinder_lbas());
            let end_lba = first_lba.saturating_add(slice.count.into());
            let Some(extent) = extent(first_lba, end_lba, self.sector_bytes) else {
                label.problems.push(Problem::Backwards {
                    part: id,
                    first_lba,
                    last_lba: end_lba - 1,
                });
                continue;
            };
            label.partitions.push(Partition {
                id,
                place: PartitionPlace::Disk,
                extent,
                kind: PartitionType::Tag(slice.tag),
                name: None,
                uuid: None,
                is_whole_disk: self.is_whole_disk(number, slice),
            });
        }
        let data_end = label.usable.map(|usable| usable.end());
        let over =
            |partition: &&Partition| data_end.is_some_and(|end| partition.extent.end() > end);
        let outside = label
            .partitions
            .iter()
            .filter(over)
            .map(|p| Problem::OutsideUsable { part: p.id });
        label.problems.extend(outside);
        label.problems.extend(checks::beyond_end(
            &label.partitions,
            self.sector_bytes,
            self.disk_lbas,
        ));
        label.problems.extend(checks::overlaps(&label.partitions));
    }
}

/// A field of 16 bits.
fn narrow(field: &'static str, value: u32) -> Result<[u8; 2], EncodeError> {
    let error = EncodeError::Field {
        field,
        found: value.into(),
        expected: "at most 65535",
    };
    u16::try_from(value)
        .map(u16::to_be_bytes)
        .map_err(|_| error)
}

fn geometry(sector: &[u8]) -> Geometry {
    let be16 = |at| u16::from_be_bytes(field(sector, at));
    Geometry {
        cylinders_physical: be16(422).into(),
        cylinders: be16(432).into(),
        cylinders_alternate: be16(434),
        heads: be16(436).into(),
        sectors: be16(438).into(),
    }
}

/// Puts 0 where fields are that have a name.
fn blank(sector: &mut [u8], has_tags: bool) {
    sector[..128].fill(0);
    if has_tags {
        for range in [128..TAGS_AT + 4 * SLICES, 188..192] {
            sector[range].fill(0);
        }
    }
    for range in [422..424, 432..440, MAP_AT..LABEL_BYTES] {
        sector[range].fill(0);
    }
}

/// Reads the label of a disk; `None` if the first sector has no part of one. A broken one is searched at its backups,
/// as far as its geometry still shows their positions.
pub(crate) fn read(blocks: Blocks<'_>, first: &[u8]) -> Option<Label> {
    let primary = SparcVtoc::decode(first, blocks);
    if let Err(fault) = &primary {
        // 16 bits alone are met by chance.
        let is_one =
            !matches!(fault, Fault::NoSignature) && u32::from_be_bytes(field(first, 188)) == SANITY;
        if !is_one {
            return None;
        }
    }
    // Every label has more: a first sector of zeroes with the magic number alone would pass the checksum by design.
    if primary.is_ok() && geometry(first).cylinder_lbas() == 0 && is_zero(&first[VTOC]) {
        return None;
    }
    let backups: Vec<(u64, SparcVtoc)> = geometry(first)
        .backup_lbas()
        .into_iter()
        .filter_map(|lba| {
            Some((
                lba,
                SparcVtoc::decode(&blocks.read(lba, 1).ok()?, blocks).ok()?,
            ))
        })
        // A broken geometry may lead to a backup of another label.
        .filter(|(lba, backup)| backup.geometry.backup_lbas().contains(lba))
        .collect();
    Some(label_of(blocks, primary, backups))
}

fn label_of(
    blocks: Blocks<'_>,
    primary: Result<SparcVtoc, Fault>,
    backups: Vec<(u64, SparcVtoc)>,
) -> Label {
    let at = |lba: u64| Bytes(lba * u64::from(blocks.sector_bytes));
    let fault = primary.as_ref().err().cloned();
    let mut label = Label {
        kind: LabelKind::SparcVtoc,
        sector_bytes: blocks.sector_bytes,
        id: None,
        usable: None,
        partitions: Vec::new(),
        copies: vec![LabelCopy {
            role: Role::Primary,
            at: Bytes(0),
            fault: fault.clone(),
            is_used: fault.is_none(),
        }],
        problems: Vec::new(),
        detail: None,
    };
    let backup_lbas: Vec<u64> = backups.iter().map(|&(lba, _)| lba).collect();
    label.copies.extend(
        backup_lbas
            .iter()
            .enumerate()
            .map(|(index, &lba)| LabelCopy {
                role: Role::Backup,
                at: at(lba),
                fault: None,
                is_used: index == 0 && fault.is_some(),
            }),
    );
    if let Ok(primary) = &primary
        && backups.iter().any(|(_, backup)| backup != primary)
    {
        label
            .problems
            .push(Problem::CopiesDiffer { field: "slices" });
    }
    if let Some(fault) = fault {
        label.problems.push(Problem::BrokenCopy {
            role: Role::Primary,
            lba: 0,
            fault,
        });
    }
    match primary
        .ok()
        .or_else(|| backups.into_iter().next().map(|(_, backup)| backup))
    {
        Some(mut used) => {
            used.backup_lbas = backup_lbas;
            used.show(&mut label);
            label.detail = Some(Detail::SparcVtoc(Box::new(used)));
        }
        None => label.problems.push(Problem::NoGoodCopy),
    }
    label
}
