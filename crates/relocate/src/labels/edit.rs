//! A partition at another place: a label as fields, to be encoded by its codec.
//!
//! Alignment of a place is not checked here: that is the job of a plan. Here it has to fit the label: whole blocks,
//! inside the usable range, without overlap, at a cylinder if the label knows no other starts.

use plumb_geometry::{Bytes, Extent, SECTOR};
use plumb_label::mbr::MbrEntry;
use plumb_label::vtoc::Slice;
use plumb_label::write::WriteStep;
use plumb_label::{
    Detail, Disk, EncodeError, Gpt, Label, Mbr, PartId, Partition, PartitionPlace, Role, SparcVtoc,
};

/// Why a label cannot have a partition there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// No copy of the label is good.
    #[error("no copy of the label can be used: repair it first")]
    NoLabel,
    /// There is no such partition.
    #[error("the label has no {part}")]
    NoSuchPartition {
        /// The partition.
        part: PartId,
    },
    /// One that holds others, or stands for the whole disk.
    #[error("{part} {why}: expected a partition with data of its own")]
    NotMovable {
        /// The partition.
        part: PartId,
        /// The reason.
        why: &'static str,
    },
    /// A place without a length.
    #[error("{part} would be empty: expected at least one logical block")]
    Empty {
        /// The partition.
        part: PartId,
    },
    /// A place that is not a multiple of the label's unit.
    #[error(
        "{what} of {part}: found {found}, expected a multiple of {unit}, the {of} of the label"
    )]
    NotAMultiple {
        /// The partition.
        part: PartId,
        /// Start or length.
        what: &'static str,
        /// The value given.
        found: Bytes,
        /// Its unit.
        unit: Bytes,
        /// The name of that.
        of: &'static str,
    },
    /// A place outside the usable range of the label.
    #[error("{part} would take bytes {} to {}: expected it within bytes {} to {}", found.start().0, found.end().0, from.0, to.0)]
    Outside {
        /// The partition.
        part: PartId,
        /// Its extent.
        found: Extent,
        /// First byte that may be used.
        from: Bytes,
        /// First byte that may not.
        to: Bytes,
    },
    /// A place that another one has.
    #[error("{part} would take bytes {} to {}, and {other} begins at {} and ends at {}", found.start().0, found.end().0, lies.start().0, lies.end().0)]
    Taken {
        /// The partition.
        part: PartId,
        /// Its extent.
        found: Extent,
        /// Whose place it is.
        other: String,
        /// The extent of the other.
        lies: Extent,
    },
    /// A logical partition in the visible part of the extended one.
    #[error(
        "{part} would begin at byte {}: expected byte {} or one behind it, since Linux shows the part before it, at the start of \
         the extended partition, as a separate partition",
        found.0,
        first.0
    )]
    BehindLink {
        /// The partition.
        part: PartId,
        /// Its start.
        found: Bytes,
        /// The first allowed start.
        first: Bytes,
    },
    /// A number that the label has no room for.
    #[error("{what} of {part}: found {found}, expected at most {most}")]
    TooLarge {
        /// The partition.
        part: PartId,
        /// The name of the number.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The maximum of the label.
        most: u64,
    },
    /// The error of the codec.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// The label with one partition elsewhere; type, name and identity stay.
///
/// # Errors
/// When the label does not allow it there.
pub fn relocated(label: &Label, part: PartId, to: Extent) -> Result<Detail, EditError> {
    let mut detail = label.detail.clone().ok_or(EditError::NoLabel)?;
    let known = label.partitions.iter().find(|known| known.id == part);
    let known = known.ok_or(EditError::NoSuchPartition { part })?;
    must_be_movable(known)?;
    must_be_free(label, known, to)?;
    let edit = Edit {
        part,
        to,
        sector_bytes: label.sector_bytes.into(),
    };
    match &mut detail {
        Detail::Gpt(gpt) => edit.gpt(gpt)?,
        Detail::Mbr(_, vtocs) if known.place == PartitionPlace::Slice => {
            let vtoc = vtocs
                .iter_mut()
                .find(|vtoc| Some(vtoc.partition) == part.within);
            let vtoc = vtoc.ok_or(EditError::NoSuchPartition { part })?;
            let (origin, lbas) = (vtoc.partition_lba, vtoc.partition_lbas);
            edit.within(origin, origin.saturating_add(lbas))?;
            let cylinder = vtoc.geometry.cylinder_lbas();
            edit.on_cylinder(origin, cylinder)?;
            let start = edit.narrow("start", edit.first() - origin)?;
            let slice = slice_of(&mut vtoc.slices, part)?;
            (slice.start, slice.count) = (start, edit.narrow("length", edit.lbas())?);
        }
        Detail::Mbr(mbr, _) if known.place == PartitionPlace::Logical => edit.logical(mbr)?,
        Detail::Mbr(mbr, _) => edit.primary(mbr)?,
        Detail::SparcVtoc(vtoc) => edit.sparc(vtoc)?,
    }
    Ok(detail)
}

pub(super) fn slice_of(slices: &mut [Slice], part: PartId) -> Result<&mut Slice, EditError> {
    let index = part.slice.and_then(|slice| usize::try_from(slice).ok());
    index
        .and_then(|index| slices.get_mut(index))
        .ok_or(EditError::NoSuchPartition { part })
}

fn must_be_movable(known: &Partition) -> Result<(), EditError> {
    let part = known.id;
    if known.is_whole_disk {
        return Err(EditError::NotMovable {
            part,
            why: "stands for the whole disk",
        });
    }
    if known.place == PartitionPlace::Extended {
        return Err(EditError::NotMovable {
            part,
            why: "holds the logical partitions",
        });
    }
    Ok(())
}

/// Places of others at the same level, and the sectors that the label itself has among them.
fn must_be_free(label: &Label, known: &Partition, to: Extent) -> Result<(), EditError> {
    let beside = |other: &&Partition| {
        let is_on_disk = |part: &Partition| {
            matches!(part.place, PartitionPlace::Disk | PartitionPlace::Extended)
        };
        let is_level = other.place == known.place || is_on_disk(other) && is_on_disk(known);
        is_level
            && other.id != known.id
            && other.id.within == known.id.within
            && !other.is_whole_disk
    };
    let taken = |other: String, lies: Extent| EditError::Taken {
        part: known.id,
        found: to,
        other,
        lies,
    };
    if let Some(other) = label
        .partitions
        .iter()
        .filter(beside)
        .find(|other| overlap(other.extent, to))
    {
        return Err(taken(other.id.to_string(), other.extent));
    }
    let Some(Detail::Mbr(mbr, _)) = &label.detail else {
        return Ok(());
    };
    let sector = u64::from(label.sector_bytes);
    let links = mbr
        .ebrs
        .iter()
        .filter_map(|ebr| Extent::new(Bytes(ebr.lba.checked_mul(sector)?), Bytes(sector)).ok());
    if known.place != PartitionPlace::Logical {
        return Ok(());
    }
    if let Some(link) = { links }.find(|link| overlap(*link, to)) {
        return Err(taken(
            "a link of the chain of logical partitions".to_owned(),
            link,
        ));
    }
    let mut extended = label
        .partitions
        .iter()
        .filter(|part| part.place == PartitionPlace::Extended);
    let is_inside =
        |part: &&Partition| part.extent.start() <= to.start() && to.start() < part.extent.end();
    let shown = extended_shown_bytes(label.sector_bytes);
    let first = extended
        .find(is_inside)
        .map(|part| Bytes(part.extent.start().0.saturating_add(shown)));
    match first {
        // If one begins there already, the kernel has found it by reading the table, which it accepts.
        Some(first) if to.start() < first && to.start() != known.extent.start() => {
            Err(EditError::BehindLink {
                part: known.id,
                found: to.start(),
                first,
            })
        }
        _ => Ok(()),
    }
}

/// The part of an extended partition that Linux shows as a partition: two sectors for a boot loader, or a logical block
/// if longer (`parse_extended` in `block/partitions/msdos.c`). It adds no other partition there.
#[must_use]
pub fn extended_shown_bytes(block_bytes: u32) -> u64 {
    u64::from(block_bytes).max(2 * SECTOR)
}

fn overlap(one: Extent, other: Extent) -> bool {
    one.start() < other.end() && other.start() < one.end()
}

/// A partition on its way to another place.
pub(super) struct Edit {
    pub(super) part: PartId,
    pub(super) to: Extent,
    pub(super) sector_bytes: u64,
}

impl Edit {
    fn first(&self) -> u64 {
        self.to.start().0 / self.sector_bytes
    }

    fn lbas(&self) -> u64 {
        self.to.len().0 / self.sector_bytes
    }

    fn whole_blocks(&self) -> Result<(), EditError> {
        let unit = Bytes(self.sector_bytes);
        if self.to.len().0 == 0 {
            return Err(EditError::Empty { part: self.part });
        }
        for (what, found) in [("start", self.to.start()), ("length", self.to.len())] {
            if !found.0.is_multiple_of(unit.0) {
                let (part, of) = (self.part, "logical block");
                return Err(EditError::NotAMultiple {
                    part,
                    what,
                    found,
                    unit,
                    of,
                });
            }
        }
        Ok(())
    }

    /// Inside of blocks `from` to before `to`.
    pub(super) fn within(&self, from: u64, to: u64) -> Result<(), EditError> {
        self.whole_blocks()?;
        let bytes = |lba: u64| Bytes(lba.saturating_mul(self.sector_bytes));
        if self.to.start() >= bytes(from) && self.to.end() <= bytes(to) {
            return Ok(());
        }
        Err(EditError::Outside {
            part: self.part,
            found: self.to,
            from: bytes(from),
            to: bytes(to),
        })
    }

    fn on_cylinder(&self, origin: u64, cylinder_lbas: u64) -> Result<(), EditError> {
        if cylinder_lbas == 0 || (self.first() - origin).is_multiple_of(cylinder_lbas) {
            return Ok(());
        }
        let unit = Bytes(cylinder_lbas.saturating_mul(self.sector_bytes));
        let (part, found, of) = (self.part, self.to.start(), "cylinder");
        Err(EditError::NotAMultiple {
            part,
            what: "start",
            found,
            unit,
            of,
        })
    }

    fn narrow(&self, what: &'static str, found: u64) -> Result<u32, EditError> {
        let error = EditError::TooLarge {
            part: self.part,
            what,
            found,
            most: u32::MAX.into(),
        };
        u32::try_from(found).map_err(|_| error)
    }

    pub(super) fn gpt(&self, gpt: &mut Gpt) -> Result<(), EditError> {
        self.within(gpt.first_usable_lba, gpt.last_usable_lba.saturating_add(1))?;
        let index = usize::try_from(self.part.number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let entry = index.and_then(|index| gpt.entries.get_mut(index));
        let entry = entry.ok_or(EditError::NoSuchPartition { part: self.part })?;
        (entry.first_lba, entry.last_lba) = (self.first(), self.first() + self.lbas() - 1);
        Ok(())
    }

    pub(super) fn primary(&self, mbr: &mut Mbr) -> Result<(), EditError> {
        self.within(1, mbr.disk_lbas)?;
        let index = usize::try_from(self.part.number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let entry = index.and_then(|index| mbr.first.entries.get_mut(index));
        let entry = entry.ok_or(EditError::NoSuchPartition { part: self.part })?;
        self.mbr_entry(entry, 0)
    }

    /// The link keeps its position; only the start of its partition behind it changes.
    fn logical(&self, mbr: &mut Mbr) -> Result<(), EditError> {
        let index = usize::try_from(self.part.number)
            .ok()
            .and_then(|number| number.checked_sub(5));
        let links: Vec<(u64, usize)> = mbr.ebrs.iter().map(|ebr| (ebr.lba, ebr.extended)).collect();
        let containers = mbr.first.entries;
        let found = index.and_then(|index| mbr.logical_mut(index));
        let (at, entry) = found.ok_or(EditError::NoSuchPartition { part: self.part })?;
        let (base, container) = (links[at].0, containers[links[at].1]);
        self.within(
            base + 1,
            u64::from(container.first) + u64::from(container.count),
        )?;
        self.mbr_entry(entry, base)
    }

    fn mbr_entry(&self, entry: &mut MbrEntry, base: u64) -> Result<(), EditError> {
        entry.first = self.narrow("start", self.first() - base)?;
        entry.count = self.narrow("length", self.lbas())?;
        // CHS of logical partitions count from the start of the disk as well.
        entry.first_chs = chs(self.first());
        entry.last_chs = chs(self.first() + self.lbas() - 1);
        Ok(())
    }

    pub(super) fn sparc(&self, vtoc: &mut SparcVtoc) -> Result<(), EditError> {
        let cylinder = vtoc.geometry.cylinder_lbas();
        self.within(
            0,
            vtoc.geometry.data_lbas().unwrap_or(0).min(vtoc.disk_lbas),
        )?;
        self.on_cylinder(0, cylinder)?;
        let start = self.narrow("start", self.first().checked_div(cylinder).unwrap_or(0))?;
        let count = self.narrow("length", self.lbas())?;
        let slice = slice_of(&mut vtoc.slices, self.part)?;
        (slice.start, slice.count) = (start, count);
        Ok(())
    }
}

/// Head, sector and cylinder as tools of today write them: with 255 heads and 63 sectors, all ones beyond 1,023 cylinders.
fn chs(lba: u64) -> [u8; 3] {
    const HEADS: u64 = 255;
    const SECTORS: u64 = 63;
    let (cylinder, head, sector) = (
        lba / (HEADS * SECTORS),
        lba / SECTORS % HEADS,
        lba % SECTORS + 1,
    );
    if cylinder > 1_023 {
        return [0xfe, 0xff, 0xff];
    }
    // The two high bits of the cylinder are above the sector.
    [
        head as u8,
        (sector | (cylinder >> 2 & 0xc0)) as u8,
        cylinder as u8,
    ]
}

/// The steps that write a label; for a new one the sector before a GPT as well.
///
/// # Errors
/// When the fields are no label that the disk can have.
pub fn encode(detail: &Detail, in_use: Role, is_new: bool) -> Result<Vec<WriteStep>, EditError> {
    Ok(match detail {
        Detail::Gpt(gpt) if is_new => gpt.encode_with_mbr(in_use)?,
        Detail::Gpt(gpt) => gpt.encode(in_use)?,
        Detail::Mbr(mbr, vtocs) => {
            let mut steps = mbr.encode()?;
            for vtoc in vtocs {
                steps.push(WriteStep::Flush);
                steps.extend(vtoc.encode(in_use)?);
            }
            steps
        }
        Detail::SparcVtoc(vtoc) => vtoc.encode(in_use)?,
    })
}

/// Blanks the remains of a GPT on a disk that gets another label: otherwise firmware and partitioning tools find it
/// again. Sectors that `steps` write are left out.
///
/// # Errors
/// If the disk cannot be read at the possible position of a header.
pub fn blanked_gpt(
    disk: &dyn Disk,
    sector_bytes: u32,
    steps: &[WriteStep],
) -> std::io::Result<Vec<WriteStep>> {
    let last = (disk.size_bytes() / u64::from(sector_bytes)).saturating_sub(1);
    let mut blank = Vec::new();
    for lba in [last, 1] {
        let at = lba * u64::from(sector_bytes);
        let mut sector = vec![0; sector_bytes as usize];
        disk.read_at(at, &mut sector)?;
        let is_written = |step: &WriteStep| match step {
            WriteStep::Write { at: other, bytes } => {
                other.0 < at + u64::from(sector_bytes) && at < other.0 + bytes.len() as u64
            }
            WriteStep::Flush => false,
        };
        if sector.starts_with(b"EFI PART") && !steps.iter().any(is_written) {
            blank.extend([
                WriteStep::Write {
                    at: Bytes(at),
                    bytes: vec![0; sector.len()],
                },
                WriteStep::Flush,
            ]);
        }
    }
    Ok(blank)
}
