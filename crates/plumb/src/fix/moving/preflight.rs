//! What has to hold before a partition is moved, and the plan that comes of it. Nothing is written here.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use plumb_geometry::{Bytes, Extent, Grid, align_down};
use plumb_label::{Detail, Label, Partition, PartitionType, Place};
use plumb_plan::meet::{meet_all, next_boundary};
use plumb_plan::partition::usual_grid;
use plumb_relocate::fix_ups::fix_ups;
use plumb_relocate::labels::label_move;
use plumb_relocate::moving::{Change, Copying, JournalId, Plan, UNIT_BYTES_MIN};
use plumb_relocate::signatures::survey;
use plumb_relocate::{Raw, Unit};
use plumb_report::fix::Moved;
use plumb_stack::node::keys;
use plumb_sys::Access;

use super::error::MoveRefused;
use super::identity::{DiskWords, JOURNAL};
use super::journal_place;
use crate::cli::fix::Move;
use crate::failure::Failure;
use crate::fix::act::STATE;
use crate::fix::error::FixError;
use crate::fix::here::Here;
use crate::fix::subject::Subject;

/// Type of the partition in which GRUB keeps its core image, found by absolute sector.
const BIOS_BOOT: plumb_label::Guid = plumb_label::Guid::from_u128(0x21686148_6449_6e6f_744e_656564454649);
/// Blocks of a journal's file: pages of the file system that it lies on.
const JOURNAL_BLOCK: u32 = 4096;
/// First sectors of an MBR disk, where boot loaders lie.
const BOOT_GAP: u64 = 1 << 20;

/// A move that may be begun.
pub struct Prepared {
    /// Node of the partition.
    pub node: PathBuf,
    /// What `--yes` has to name.
    pub name: String,
    /// Node of its disk.
    pub disk: PathBuf,
    /// Number of the partition.
    pub number: u32,
    /// What is to be done.
    pub plan: Plan,
    /// Length of the journal's file.
    pub journal_bytes: u64,
    /// Formats that were found in the partition.
    holds: Vec<&'static str>,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
}

/// The disk of a partition, and the partition's number there.
///
/// # Errors
/// When it is no partition that the kernel knows.
pub fn disk_and_number(node: &Path) -> Result<(PathBuf, u32), MoveRefused> {
    let refused = |found: &str| MoveRefused::NotAPartition {
        name: node.display().to_string(),
        found: found.to_owned(),
    };
    let whole = fs::canonicalize(node).map_err(|error| refused(&error.to_string()))?;
    let name = whole.file_name().unwrap_or_default();
    let class = fs::canonicalize(Path::new("/sys/class/block").join(name));
    let class = class.map_err(|_| refused("no block device"))?;
    let number = fs::read_to_string(class.join("partition")).map_err(|_| refused("no partition"))?;
    let number = number.trim().parse().map_err(|_| refused("a partition without a number"))?;
    let disk = class.parent().and_then(Path::file_name).ok_or_else(|| refused("a partition of no disk"))?;
    Ok((Path::new("/dev").join(disk.to_string_lossy().replace('!', "/")), number))
}

impl Prepared {
    /// Looks at everything, and makes the plan.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn of(args: &Move) -> Result<Prepared, Failure> {
        let (disk, number) = disk_and_number(&args.partition)?;
        let node = fs::canonicalize(&args.partition).map_err(|error| Failure::failed(&error))?;
        let here = Here::of(&node)?;
        let users = here.users();
        let words = node.display().to_string();
        if !users.is_empty() {
            return Err(MoveRefused::InUse { partition: words, users }.into());
        }
        let subject = Subject::open(&disk, Access::Read)?;
        let label = subject.label()?.ok_or_else(|| FixError::NoLabel { device: subject.device() })?;
        if let Some(problem) = label.problems.first() {
            return Err(FixError::LabelProblem { device: subject.device(), problem: problem.clone() }.into());
        }
        let look = Look { partition: words, subject: &subject, label: &label, number };
        let part = look.part()?;
        look.must_be_movable(&part)?;
        let to = look.target(&part, args)?;
        look.must_spare_boot_loaders(&part, to)?;
        let name = node.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let id = journal_id()?;
        let journal = args.journal.clone().unwrap_or_else(|| default_journal(&name, id));
        journal_place::must_exist(&journal)?;
        journal_place::check(&journal, &here, &name, args.journal_same_disk)?;
        if args.scan {
            look.must_be_readable(&part)?;
        }
        let (plan, holds) = look.plan(&part, to, id, &journal)?;
        plan.check()
            .map_err(|source| MoveRefused::Move { name: look.partition.clone(), source: source.into() })?;
        let journal_bytes = plan.journal_bytes(JOURNAL_BLOCK);
        let notes = look.notes(&plan);
        Ok(Prepared { node, name, disk, number, plan, journal_bytes, holds, notes })
    }

    /// In the form that is printed.
    pub fn view(&self, action: &'static str, state: &'static str) -> Moved {
        let plan = &self.plan;
        let (copying, window_bytes) = match plan.copying {
            Copying::Windows(bytes) => ("windows", bytes),
            Copying::Batches(bytes) => ("batches through the journal", bytes),
        };
        Moved {
            action,
            state,
            partition: plan.partition.clone(),
            name: self.name.clone(),
            disk: self.disk.display().to_string(),
            from_bytes: plan.from,
            to_bytes: plan.to,
            len_bytes: plan.len,
            copying,
            window_bytes,
            holds: self.holds.iter().map(|name| (*name).to_owned()).collect(),
            journal: plan.journal_path.clone(),
            journal_bytes: Some(self.journal_bytes),
            stage: None,
            bytes_done: 0,
            bytes_total: plan.len,
            seconds: None,
            command: None,
            notes: self.notes.clone(),
        }
    }
}

fn default_journal(name: &str, id: JournalId) -> PathBuf {
    let id = id.to_string();
    Path::new(STATE).join(format!("{}-{}.{JOURNAL}", plumb_plan::shell::file_name(name), &id[..8]))
}

fn journal_id() -> Result<JournalId, Failure> {
    use std::io::Read;
    let mut id = [0; 16];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut id));
    read.map_err(|error| Failure::failed(&error))?;
    Ok(JournalId(id))
}

/// A partition that is looked at.
struct Look<'a> {
    partition: String,
    subject: &'a Subject,
    label: &'a Label,
    number: u32,
}

impl Look<'_> {
    fn refused(&self, why: impl Into<String>) -> MoveRefused {
        MoveRefused::Refused { partition: self.partition.clone(), why: why.into() }
    }

    /// The partition in the label, which has to be where the kernel has it.
    fn part(&self) -> Result<Partition, Failure> {
        let is_it = |part: &&Partition| part.id.number == self.number && part.place != Place::Slice;
        let part = self.label.partitions.iter().find(is_it).cloned();
        let part = part.ok_or_else(|| self.refused("found no such partition in the label of its disk"))?;
        let (disk, number) = (&self.subject.name, self.number);
        let root = plumb_sys::Directory::root(Path::new("/")).map_err(|errno| Failure::failed(&errno))?;
        let known = plumb_sys::partitions::known(&root, disk).map_err(|errno| Failure::failed(&errno))?;
        let (start, len) = (part.extent.start().0, part.extent.len().0);
        let agrees = known
            .iter()
            .any(|known| (known.number, known.start_bytes, known.len_bytes) == (number, start, len));
        if !agrees {
            return Err(self
                .refused("label and kernel disagree on where it lies: partx --update first")
                .into());
        }
        Ok(part)
    }

    fn must_be_movable(&self, part: &Partition) -> Result<(), MoveRefused> {
        if self.subject.here.word(keys::ZONED).is_some_and(|zoned| zoned == "host-managed") {
            return Err(self.refused("its disk has zones that the host has to write in order"));
        }
        match (part.place, part.kind) {
            (Place::Extended, _) => Err(self.refused(
                "it holds the chain of logical partitions, which cannot be kept: move these one by one",
            )),
            (_, PartitionType::Guid(BIOS_BOOT)) => Err(self.refused(
                "it holds GRUB's core image, which the boot sector finds by its absolute sector: make a new one and run grub-install",
            )),
            (_, PartitionType::Tag(_)) => Err(self.refused("slices of a Solaris label are not moved")),
            _ => Ok(()),
        }
    }

    /// Where it is to begin.
    fn target(&self, part: &Partition, args: &Move) -> Result<Bytes, Failure> {
        let (from, len) = (part.extent.start(), part.extent.len());
        let Some(to) = args.to else { return Ok(self.aligned(part)?) };
        if to == from {
            return Err(self.refused("it begins there already").into());
        }
        let block = u64::from(self.label.sector_bytes);
        if !to.0.is_multiple_of(block) {
            return Err(Failure::usage(format!(
                "--to: found {to}, expected a multiple of its logical block, {block} B"
            )));
        }
        to.checked_add(len).map(|_| to).ok_or_else(|| Failure::usage("--to: ends beyond 64 bits"))
    }

    /// The nearest aligned start for which there is room, before or behind.
    fn aligned(&self, part: &Partition) -> Result<Bytes, MoveRefused> {
        let limits = self.subject.disk.limits();
        let usual = usual_grid(Bytes(limits.physical_block_bytes.into()), limits.alignment_offset_bytes);
        let grid = meet_all(self.subject.here.grids().iter().chain([&usual])).unwrap_or(usual);
        let from = part.extent.start();
        if grid.past_boundary(from).0 == 0 {
            return Err(self.refused(format!("it begins on the grid of {grid} already")));
        }
        let free = self.free_around(part);
        let after = next_boundary(&grid, from);
        let before = previous_boundary(&grid, from);
        let fits = |to: &Bytes| {
            to.0 >= free.start && to.0.checked_add(part.extent.len().0).is_some_and(|end| end <= free.end)
        };
        let found = after.filter(fits).or(before.filter(fits));
        found.ok_or_else(|| {
            self.refused(format!(
                "no start on the grid of {grid} has room between bytes {} and {}: make it or its neighbour smaller first",
                free.start, free.end
            ))
        })
    }

    /// What of the disk it may have: between its neighbours, as far as the label allows.
    fn free_around(&self, part: &Partition) -> Range<u64> {
        let block = u64::from(self.label.sector_bytes);
        let size = self.subject.disk.limits().size_bytes;
        let usable = self.label.usable.map_or(block..size, |usable| usable.start().0..usable.end().0);
        let mut free = usable;
        for other in self.label.partitions.iter().filter(|other| other.id != part.id && !other.is_whole_disk)
        {
            let is_beside = (other.place == Place::Logical) == (part.place == Place::Logical);
            if is_beside {
                if other.extent.end() <= part.extent.start() {
                    free.start = free.start.max(other.extent.end().0);
                } else if other.extent.start() >= part.extent.end() {
                    free.end = free.end.min(other.extent.start().0);
                }
            } else if other.place == Place::Extended {
                free.start = free.start.max(other.extent.start().0);
                free.end = free.end.min(other.extent.end().0);
            }
        }
        if let Some(Detail::Mbr(mbr, _)) = self.label.detail.as_ref().filter(|_| part.place == Place::Logical)
        {
            for ebr in &mbr.ebrs {
                let at = ebr.lba * block;
                if at < part.extent.start().0 {
                    free.start = free.start.max(at + block);
                } else {
                    free.end = free.end.min(at);
                }
            }
        }
        free
    }

    /// Behind an MBR boot loaders lie in front of the first partition, and are found there by sector.
    fn must_spare_boot_loaders(&self, part: &Partition, to: Bytes) -> Result<(), Failure> {
        let is_mbr = matches!(self.label.detail, Some(Detail::Mbr(..)));
        let end = part.extent.start().0.min(BOOT_GAP);
        if !is_mbr || to.0 >= end {
            return Ok(());
        }
        let mut gap = vec![0; (end - to.0) as usize];
        let read = plumb_label::Disk::read_at(&self.subject.raw(), to.0, &mut gap);
        read.map_err(|source| self.unreadable(to.0, source))?;
        if gap.iter().any(|byte| *byte != 0) {
            let why = "a boot loader lies where it would begin, and is found there by its sectors (GRUB's core image)";
            return Err(self.refused(why).into());
        }
        Ok(())
    }

    fn unreadable(&self, at: u64, source: std::io::Error) -> MoveRefused {
        MoveRefused::Unreadable { partition: self.partition.clone(), at, source }
    }

    /// Every byte can be read: what cannot cannot be moved either.
    fn must_be_readable(&self, part: &Partition) -> Result<(), MoveRefused> {
        const PIECE: u64 = 8 << 20;
        let raw = self.subject.raw();
        let mut buffer = vec![0; PIECE as usize];
        let (mut at, end) = (part.extent.start().0, part.extent.end().0);
        while at < end {
            let len = (end - at).min(PIECE);
            let read = plumb_label::Disk::read_at(&raw, at, &mut buffer[..len as usize]);
            read.map_err(|source| self.unreadable(at, source))?;
            at += len;
        }
        Ok(())
    }

    fn plan(
        &self,
        part: &Partition,
        to: Bytes,
        journal: JournalId,
        path: &Path,
    ) -> Result<(Plan, Vec<&'static str>), Failure> {
        let (raw, limits) = (self.subject.raw(), self.subject.disk.limits());
        let labels = label_move(self.label, part.id, to, &raw)
            .map_err(|source| MoveRefused::Label { partition: self.partition.clone(), source })?;
        let (from, len) = (part.extent.start().0, part.extent.len().0);
        let found = survey(&raw, &(from..from + len), &(to.0..to.0 + len), limits.logical_block_bytes)
            .map_err(|source| self.unreadable(from, source))?;
        let unit_bytes = u64::from(limits.physical_block_bytes).max(UNIT_BYTES_MIN);
        let offset = u64::try_from(limits.alignment_offset_bytes).unwrap_or(0) % unit_bytes;
        let unit = Unit { bytes: unit_bytes, offset };
        let block = u64::from(limits.logical_block_bytes);
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let plan = Plan {
            partition: self.partition.clone(),
            disk: DiskWords::of(self.subject, Some(self.label)).text(),
            disk_bytes: align_down(limits.size_bytes, block).unwrap_or(limits.size_bytes),
            logical_block_bytes: limits.logical_block_bytes,
            physical_block_bytes: limits.physical_block_bytes,
            journal,
            journal_path: path.display().to_string(),
            from,
            to: to.0,
            len,
            unit,
            copying: Plan::usual_copying(from.abs_diff(to.0), unit),
            hide: labels.hide,
            finish: labels.finish,
            signatures: found.signatures,
            strays: found.strays,
            fix_ups: self.fix_ups(&raw, part.extent, to)?,
        };
        Ok((plan, found.names))
    }

    fn fix_ups(&self, raw: &Raw<'_>, place: Extent, to: Bytes) -> Result<Vec<Change>, Failure> {
        let found = fix_ups(raw, place, to).map_err(|source| self.unreadable(place.start().0, source))?;
        Ok(found.into_iter().map(|fix| Change { at: fix.at.0, old: fix.old, new: fix.new }).collect())
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        let mut notes = Vec::new();
        match self.subject.here.word(keys::WRITE_CACHE) {
            Some(_) => {}
            None => notes.push(
                "nothing tells whether its disk has a write cache: one that does not obey flushes can lose data when \
                 the power fails"
                    .to_owned(),
            ),
        }
        if let Copying::Batches(_) = plan.copying {
            notes.push(format!(
                "the shift is {} only: everything is written twice, once to the journal; a start farther away is faster",
                Bytes(plan.shift_bytes())
            ));
        }
        if !plan.strays.is_empty() {
            notes.push("what is left of a file system in the free space is wiped".to_owned());
        }
        notes
    }
}

fn previous_boundary(grid: &Grid, at: Bytes) -> Option<Bytes> {
    at.checked_sub(grid.past_boundary(at)).filter(|start| start.0 > 0)
}
