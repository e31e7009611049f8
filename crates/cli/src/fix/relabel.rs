//! `plumb fix relabel`: a partition of an empty disk begins elsewhere, or a disk without a label gets one. One command
//! with a dry run replaces a dialogue with `format -e`.

use std::io::Read;
use std::path::Path;

use plumb_geometry::{Bytes, Extent, Grid, align_down};
use plumb_label::{Detail, Guid, Label, LabelKind, Partition, PartitionPlace, Role};
use plumb_plan::meet::{meet_all, next_boundary};
use plumb_plan::partition::usual_grid;
use plumb_relocate::labels::edit::{blanked_gpt, encode, relocated};
use plumb_relocate::labels::{Change, EditError, NewIds, NewKind, NewLabel};
use plumb_sys::Access;

use super::act::{is_wanted, save_and_carry_out, save_path};
use super::contents;
use super::error::FixError;
use super::from_plan::{self, Stated, Wanted};
use super::subject::Subject;
use super::undo::would_hide;
use super::unfinished;
use super::view::{Shown, print};
use crate::cli::fix::{NewLabelKind, Relabel};
use crate::exit::Exit;
use crate::failure::Failure;

/// Logical block of an image when nobody tells another.
const IMAGE_BLOCK: u32 = 512;

/// Runs the command.
///
/// # Errors
/// When the disk is not empty or in use, the label cannot have such a partition, or a write fails.
pub fn run(args: &Relabel) -> Result<Exit, Failure> {
    let access = if args.act.yes.is_some() {
        Access::Exclusive
    } else {
        Access::Read
    };
    let subject = Subject::open(&args.device, access)?;
    let is_wanted = is_wanted(&args.act, &subject)?;
    subject.must_take_any_write()?;
    subject.must_be_unused()?;
    let before = subject.label()?;
    let ignored = args.act.ignore_marker.as_deref();
    unfinished::must_be_none(&subject, before.as_ref(), ignored)?;
    let work = RelabelWork::prepare(args, &subject, before.as_ref())?;
    let (detail, extent, about) = work.layout()?;
    let change = work.change(&detail)?;
    unfinished::must_be_none_at(&subject, extent, ignored)?;
    must_be_empty(&subject, before.as_ref(), extent, work.block)?;
    let path = save_path(&args.save, &subject);
    let mut notes = work.notes(extent);
    let is_done = is_wanted && !change.is_empty();
    if is_done {
        notes.extend(save_and_carry_out(
            &subject,
            &change,
            &path,
            &format!("relabel: {about}"),
        )?);
    }
    let after = match is_done {
        true => subject.label()?,
        false => subject.label_after(&change, Some(work.block))?,
    };
    // Unknown data have to be restorable.
    let left = would_hide(&subject, after.as_ref(), before.as_ref());
    notes.extend(
        left.iter().map(|what| {
            format!("{what}: undo takes that for content, and goes back by --force only")
        }),
    );
    let saved = (!change.is_empty()).then(|| path.display().to_string());
    print(&Shown {
        action: "relabel",
        subject: &subject,
        is_done,
        before: before.as_ref(),
        after: after.as_ref(),
        grid: Some(work.grid),
        about: vec![if change.is_empty() {
            "the label is as it should be: nothing to do".to_owned()
        } else {
            about
        }],
        change: &change,
        undo: is_done.then(|| super::undo::command(&path, &subject)),
        saved,
        notes,
        json: args.act.json,
    })?;
    Ok(Exit::Clean)
}

/// Remains of formats anywhere: on the disk, in its partitions, and at the start of the new one.
fn must_be_empty(
    subject: &Subject,
    label: Option<&Label>,
    extent: Extent,
    block: u32,
) -> Result<(), FixError> {
    let mut places: Vec<Extent> = label.map_or_else(Vec::new, |label| {
        let has_data =
            |part: &&Partition| !part.is_whole_disk && part.place != PartitionPlace::Extended;
        label
            .partitions
            .iter()
            .filter(has_data)
            .map(|part| part.extent)
            .collect()
    });
    places.push(extent);
    match contents::found(&subject.raw(), &subject.name, &places, block) {
        found if found.is_empty() => Ok(()),
        found => Err(FixError::NotEmpty {
            device: subject.device(),
            found,
        }),
    }
}

/// A request, with the disk to compare it with.
struct RelabelWork<'a> {
    args: &'a Relabel,
    subject: &'a Subject,
    /// The label that is changed; `None` where a new one is made.
    label: Option<&'a Label>,
    /// Whether there is a label that a new one takes the place of.
    replaces: bool,
    wanted: Wanted,
    grid: Grid,
    block: u32,
}

impl<'a> RelabelWork<'a> {
    fn prepare(
        args: &'a Relabel,
        subject: &'a Subject,
        before: Option<&'a Label>,
    ) -> Result<RelabelWork<'a>, Failure> {
        let wanted = match &args.plan {
            Some(path) => {
                let (wanted, stated) = from_plan::partition(path)?;
                let stated = Stated {
                    number: args.number.or(stated.number),
                    ..stated
                };
                stated.must_be_on(subject)?;
                if !args.new_label && wanted.new_label.is_none() {
                    stated.must_be_in(before, subject)?;
                }
                wanted
            }
            None => Wanted {
                start: args.start,
                len: args.size,
                number: None,
                new_label: None,
            },
        };
        let label = before.filter(|_| !args.new_label && wanted.new_label.is_none());
        if let Some(problem) = label.and_then(|label| label.problems.first()) {
            let (device, problem) = (subject.device(), problem.clone());
            return Err(FixError::LabelProblem { device, problem }.into());
        }
        if let (Some(label), Some(asked)) = (label, args.label)
            && label.kind != kind_of(asked)
        {
            return Err(Failure::usage(format!(
                "{}: --label: found the label {}, expected none or {}: --new-label makes another one in its place",
                subject.device(),
                label.kind,
                kind_of(asked)
            )));
        }
        let limits = subject.disk.limits();
        let asked = args.sector.and_then(|sector| u32::try_from(sector.0).ok());
        let block = match (label, subject.disk.is_image()) {
            (Some(label), true) => label.sector_bytes,
            (None, true) => asked.unwrap_or(IMAGE_BLOCK),
            (_, false) => limits.logical_block_bytes,
        };
        let usual = usual_grid(
            Bytes(limits.physical_block_bytes.into()),
            limits.alignment_offset_bytes,
        );
        // `plumb check` reports grids of layers below that never meet; then the usual one is left.
        let grid = meet_all(subject.here.grids().iter().chain([&usual])).unwrap_or(usual);
        let replaces = before.is_some() && label.is_none();
        Ok(RelabelWork {
            args,
            subject,
            label,
            replaces,
            wanted,
            grid,
            block,
        })
    }

    fn edit_error(&self) -> impl Fn(EditError) -> FixError + use<'_, 'a> {
        |source| FixError::Edit {
            device: self.subject.device(),
            source,
        }
    }

    /// The label to be written, the extent of its partition, and that in words.
    fn layout(&self) -> Result<(Detail, Extent, String), Failure> {
        match self.label {
            Some(label) => self.moved(label),
            None => self.new_label(),
        }
    }

    fn moved(&self, label: &Label) -> Result<(Detail, Extent, String), Failure> {
        let part = self.chosen(label)?;
        if label.partitions.iter().any(|inner| {
            inner.place == PartitionPlace::Slice
                && inner.id.within == Some(part.id.number)
                && part.id.within.is_none()
        }) {
            let error = EditError::NotMovable {
                part: part.id,
                why: "holds slices",
            };
            return Err(self.edit_error()(error).into());
        }
        let from = label.usable.map_or(Bytes(0), |usable| usable.start());
        let start = match self.wanted.start {
            Some(start) => start,
            None => self.aligned(
                from.max(self.end_before(label, part)),
                self.label_grid(label),
            )?,
        };
        // The end stays, as in the dialogue: the next partition keeps its place.
        let len = self
            .wanted
            .len
            .or_else(|| part.extent.end().checked_sub(start))
            .unwrap_or_default();
        let extent = self.extent(start, len)?;
        let detail = relocated(label, part.id, extent).map_err(self.edit_error())?;
        let words = format!(
            "{} from {} to {}",
            part.id,
            place(part.extent),
            place(extent)
        );
        Ok((detail, extent, words))
    }

    /// The end of the partition before one on its level.
    fn end_before(&self, label: &Label, part: &Partition) -> Bytes {
        let beside = label.partitions.iter().filter(|other| {
            other.id != part.id && !other.is_whole_disk && other.extent.end() <= part.extent.start()
        });
        beside
            .map(|other| other.extent.end())
            .max()
            .unwrap_or_default()
    }

    /// Cylinders, where starts are counted in them.
    fn label_grid(&self, label: &Label) -> Option<Grid> {
        let Some(Detail::SparcVtoc(vtoc)) = &label.detail else {
            return None;
        };
        let cylinder = vtoc
            .geometry
            .cylinder_lbas()
            .checked_mul(label.sector_bytes.into())?;
        Grid::new(Bytes(cylinder), Bytes(0), plumb_geometry::GridKind::Unit).ok()
    }

    fn aligned(&self, from: Bytes, of_label: Option<Grid>) -> Result<Bytes, Failure> {
        // Sector 0 has the label, for any stated range.
        let from = from.max(Bytes(self.block.into()));
        let meeting = meet_all([&self.grid].into_iter().chain(&of_label));
        let start = meeting.ok().and_then(|grid| next_boundary(&grid, from));
        let none = || {
            Failure::unknown(format!(
                "no start is on the grid of {}: give one with --start",
                self.grid
            ))
        };
        start.ok_or_else(none)
    }

    fn extent(&self, start: Bytes, len: Bytes) -> Result<Extent, Failure> {
        Extent::new(start, len).map_err(|error| Failure::usage(error.to_string()))
    }

    /// The partition that is meant: the only one with data, or the one that was named.
    fn chosen(&self, label: &'a Label) -> Result<&'a Partition, Failure> {
        let reserved = label.solaris_reserved().map(|part| part.id);
        let has_data = |part: &&Partition| {
            !part.is_whole_disk
                && part.place != PartitionPlace::Extended
                && Some(part.id) != reserved
        };
        let mut all = label.partitions.iter().filter(has_data);
        let Some(number) = self.args.number.or(self.wanted.number) else {
            return match (all.next(), all.next()) {
                (Some(only), None) => Ok(only),
                (None, _) => Err(Failure::usage(format!(
                    "{}: found a label without a partition, expected one; --new-label makes a label with one",
                    self.subject.device()
                ))),
                (Some(_), Some(_)) => Err(Failure::usage(format!(
                    "{}: found several partitions: give --number",
                    self.subject.device()
                ))),
            };
        };
        let is_it = |part: &&Partition| part.id.slice.unwrap_or(part.id.number) == number;
        let missing = || {
            let what = format!(
                "{}: found no partition or slice with data of number {number}",
                self.subject.device()
            );
            Failure::usage(what)
        };
        all.find(is_it).ok_or_else(missing)
    }

    fn new_label(&self) -> Result<(Detail, Extent, String), Failure> {
        let disk_lbas = self.subject.disk.limits().size_bytes / u64::from(self.block);
        let kind = self.kind()?;
        let unit = match kind {
            NewKind::SparcVtoc { heads, sectors } => u64::from(heads)
                .saturating_mul(sectors.into())
                .saturating_mul(self.block.into()),
            _ => self.block.into(),
        };
        let (from, end) = self.range(kind, disk_lbas, unit)?;
        let cylinders = Grid::new(Bytes(unit), Bytes(0), plumb_geometry::GridKind::Unit).ok();
        let start = match self.wanted.start {
            Some(start) => start,
            None => self.aligned(from, cylinders)?,
        };
        let free = end.0.saturating_sub(start.0);
        // It ends on the grid as well where that leaves anything; Solaris lets the reserved slice follow at once.
        let cell = if kind == NewKind::SolarisEfi {
            unit
        } else {
            self.grid.granularity().0.max(unit)
        };
        let whole =
            |cell: u64| align_down(free, cell).filter(|len| *len > 0 && len.is_multiple_of(unit));
        let len = self
            .wanted
            .len
            .unwrap_or(Bytes(whole(cell).or_else(|| whole(unit)).unwrap_or(free)));
        let extent = self.extent(start, len)?;
        let number = self
            .args
            .number
            .or(self.wanted.number)
            .unwrap_or(match kind {
                NewKind::Gpt | NewKind::Mbr => 1,
                NewKind::SolarisEfi | NewKind::SparcVtoc { .. } => 0,
            });
        let new = NewLabel {
            kind,
            sector_bytes: self.block,
            disk_lbas,
            number,
            extent,
            ids: ids()?,
        };
        let detail = new.detail().map_err(self.edit_error())?;
        let replaced = if self.replaces {
            ", in the place of the one that is there"
        } else {
            ""
        };
        Ok((
            detail,
            extent,
            format!("a new label{replaced}, with {}", place(extent)),
        ))
    }

    fn kind(&self) -> Result<NewKind, Failure> {
        Ok(
            match self
                .args
                .label
                .or(self.wanted.new_label)
                .unwrap_or(NewLabelKind::Gpt)
            {
                NewLabelKind::Gpt => NewKind::Gpt,
                NewLabelKind::Efi => NewKind::SolarisEfi,
                NewLabelKind::Dos => NewKind::Mbr,
                NewLabelKind::Smi => {
                    let missing =
                        "a new SMI label needs --geometry HEADSxSECTORS: prtvtoc prints both";
                    let (heads, sectors) =
                        self.args.geometry.ok_or_else(|| Failure::usage(missing))?;
                    NewKind::SparcVtoc { heads, sectors }
                }
                NewLabelKind::SmiX86 => {
                    return Err(FixError::NotMade {
                        device: self.subject.device(),
                    }
                    .into());
                }
            },
        )
    }

    /// First byte that the one partition may have, and the first behind it that it may not.
    fn range(&self, kind: NewKind, disk_lbas: u64, unit: u64) -> Result<(Bytes, Bytes), Failure> {
        use plumb_plan::partition::{LabelScheme as Planned, limits};
        let planned = match kind {
            NewKind::Gpt => Planned::Gpt,
            NewKind::SolarisEfi => Planned::SolarisEfi,
            NewKind::Mbr => Planned::Dos,
            NewKind::SparcVtoc { heads, sectors } => Planned::Smi {
                cylinder_sectors: u64::from(heads) * u64::from(sectors),
            },
        };
        let size = Bytes(disk_lbas * u64::from(self.block));
        let limits = limits(&planned, self.block.into(), Some(size));
        let limits = limits.map_err(|error| Failure::unknown(error.to_string()))?;
        let end = limits.end.unwrap_or(size);
        // Two alternate cylinders are kept at the end of an SMI label.
        let kept = if matches!(kind, NewKind::SparcVtoc { .. }) {
            2 * unit
        } else {
            0
        };
        let whole = align_down(end.0, unit).unwrap_or(end.0);
        Ok((limits.first, Bytes(whole.saturating_sub(kept))))
    }

    fn change(&self, detail: &Detail) -> Result<Change, Failure> {
        let device = self.subject.device();
        let raw = self.subject.raw();
        let in_use = self.label.and_then(Label::in_use).unwrap_or(Role::Primary);
        let mut steps = encode(detail, in_use, self.label.is_none()).map_err(self.edit_error())?;
        if self.label.is_none() {
            let blank = blanked_gpt(&raw, self.block, &steps);
            let blank = blank.map_err(|source| FixError::Read {
                device: device.clone(),
                source,
            })?;
            steps.splice(0..0, blank);
        }
        let change = Change::for_disk(&steps, &raw);
        Ok(change.map_err(|source| FixError::Change {
            device,
            is_begun: false,
            source,
        })?)
    }

    fn notes(&self, extent: Extent) -> Vec<String> {
        let mut notes = Vec::new();
        let past = self.grid.past_boundary(extent.start());
        if past.0 > 0 {
            notes.push(format!(
                "the start is {past} past the grid of {}: it was given, and is taken as it is",
                self.grid
            ));
        }
        if self.subject.disk.limits().alignment_offset_bytes < 0 {
            notes.push(
                "the kernel does not know the first aligned byte: byte 0 is assumed".to_owned(),
            );
        }
        notes
    }
}

/// The kind of a label of that kind when it is read.
fn kind_of(asked: NewLabelKind) -> LabelKind {
    match asked {
        NewLabelKind::Gpt => LabelKind::Gpt,
        NewLabelKind::Dos => LabelKind::Mbr,
        NewLabelKind::Efi => LabelKind::SolarisEfi,
        NewLabelKind::Smi => LabelKind::SparcVtoc,
        NewLabelKind::SmiX86 => LabelKind::X86Vtoc,
    }
}

/// A run in sectors of 512 bytes, as labels print them.
fn place(extent: Extent) -> String {
    let sectors = |bytes: Bytes| plumb_geometry::group_digits(bytes.0 / plumb_geometry::SECTOR);
    format!(
        "sectors {} to {}",
        sectors(extent.start()),
        sectors(Bytes(extent.end().0 - 1))
    )
}

/// Identities that no other disk has, of version 4 (RFC 9562).
fn ids() -> Result<NewIds, Failure> {
    const SOURCE: &str = "/dev/urandom";
    let error = |source| FixError::Read {
        device: SOURCE.to_owned(),
        source,
    };
    let mut file = std::fs::File::open(Path::new(SOURCE)).map_err(error)?;
    let mut next = || {
        let mut bytes = [0; 16];
        file.read_exact(&mut bytes).map_err(error)?;
        // On disk the third field is little-endian: its high byte is the eighth.
        bytes[7] = bytes[7] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok::<Guid, FixError>(Guid(bytes))
    };
    Ok(NewIds {
        disk: next()?,
        partition: next()?,
        reserved: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_of_version_4() {
        let ids = ids().expect("random bytes");
        for id in [ids.disk, ids.partition, ids.reserved] {
            let text = id.to_string();
            assert_eq!(&text[14..15], "4", "{text}");
            assert!("89ab".contains(&text[19..20]), "{text}");
        }
        assert_ne!(ids.disk, ids.partition);
    }
}
