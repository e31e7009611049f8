//! What has to hold before a partition is moved, and the plan that comes of it. Nothing is written here.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use plumb_geometry::{Bytes, Extent, SECTOR, align_down};
use plumb_label::{Label, Partition, PartitionPlace, PartitionType};
use plumb_relocate::fix_ups::fix_ups;
use plumb_relocate::labels::label_move;
use plumb_relocate::moving::{ByteChange, Copying, JournalId, Plan};
use plumb_relocate::signatures::survey;
use plumb_relocate::{JOURNAL_BLOCK_BYTES_MIN, Raw, Unit};
use plumb_report::fix::Moved;
use plumb_sys::{Access, KernelPartition};

use super::error::MoveRefused;
use super::identity::{Attachment, DiskWords, JOURNAL};
use super::progress::ProgressLine;
use super::target::MoveTarget;
use super::{blocks, journal_place, neighbours, trust, write_cache};
use crate::cli::fix::Move;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::fix::act::{Ownership, STATE};
use crate::fix::error::FixError;
use crate::fix::here::Here;
use crate::fix::subject::{Subject, by_name};
use crate::fix::unfinished;

/// Type of the partition in which GRUB keeps its core image, found by absolute sector.
const BIOS_BOOT: plumb_label::Guid =
    plumb_label::Guid::from_u128(0x21686148_6449_6e6f_744e_656564454649);
/// What ends in 55 AA, and need not be more than a boot sector.
const BOOT_SECTOR: &str = "fat or boot sector";
/// Every block device by its name.
const BLOCK_CLASS: &str = "/sys/class/block";

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
    /// What its disk writes as a whole.
    pub journal_block: u32,
    /// The disk as the kernel numbered it when it was looked at.
    pub attachment: Option<Attachment>,
    /// Formats that were found in the partition.
    holds: Vec<&'static str>,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
    /// What keeps the move from beginning now; always empty where it was to begin.
    pub obstacles: Vec<String>,
}

/// What keeps a move from beginning, and can be removed without another plan.
struct Obstacles {
    /// Whether the move is only shown.
    is_preview: bool,
    found: Vec<String>,
}

impl Obstacles {
    /// Notes a failure where the move is only shown.
    ///
    /// # Errors
    /// The failure, where the move would begin.
    fn meet<T>(&mut self, result: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(failure) if self.is_preview && failure.exit() != Exit::NotPermitted => {
                let text = failure.text("");
                self.found
                    .push(text.replacen("nothing was written: ", "", 1));
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

/// What comes of looking.
pub enum Preflight {
    /// A move.
    Move(Box<Prepared>),
    /// Nothing: it is there already.
    Nothing(Box<Moved>),
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
    let whole = fs::canonicalize(node).map_err(|_| MoveRefused::NotThere {
        name: node.display().to_string(),
    })?;
    let name = whole.file_name().unwrap_or_default();
    let class = fs::canonicalize(Path::new(BLOCK_CLASS).join(name));
    let class = class.map_err(|_| refused("no block device"))?;
    let number =
        fs::read_to_string(class.join("partition")).map_err(|_| refused("no partition"))?;
    let number = number
        .trim()
        .parse()
        .map_err(|_| refused("a partition without a number"))?;
    let disk = class
        .parent()
        .and_then(Path::file_name)
        .ok_or_else(|| refused("a partition of no disk"))?;
    Ok((
        Path::new("/dev").join(disk.to_string_lossy().replace('!', "/")),
        number,
    ))
}

impl Prepared {
    /// Checks everything that a move needs, and makes its plan.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check(args: &Move) -> Result<Preflight, Failure> {
        let partition = by_name(&args.partition);
        let (disk, number) = disk_and_number(&partition)?;
        let node = fs::canonicalize(&partition).map_err(|error| Failure::failed(&error))?;
        let here = Here::find(&node)?;
        let mut obstacles = Obstacles {
            is_preview: args.act.yes.is_none(),
            found: Vec::new(),
        };
        let words = node.display().to_string();
        obstacles.meet(must_be_unused(&words, &here))?;
        let subject = Subject::open(&disk, Access::Read)?;
        let users = subject.here.own_users();
        if !users.is_empty() {
            return Err(MoveRefused::InUse {
                partition: words,
                users,
            }
            .into());
        }
        subject.must_be_writable()?;
        subject.must_take_any_write()?;
        obstacles.meet(
            subject
                .must_have_no_writers(&[&node])
                .map_err(Failure::from),
        )?;
        let label = subject.label()?.ok_or_else(|| FixError::NoLabel {
            device: subject.device(),
        })?;
        unfinished::must_be_none(&subject, Some(&label), args.act.ignore_marker.as_deref())?;
        if let Some(problem) = label.problems.first() {
            return Err(FixError::LabelProblem {
                device: subject.device(),
                problem: problem.clone(),
            }
            .into());
        }
        let look = Look {
            partition: words,
            subject: &subject,
            label: &label,
            number,
        };
        let part = look.part()?;
        look.must_be_movable(&part)?;
        look.must_be_known(&part)?;
        let name = node
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let to = match look.target(&part, args)? {
            MoveTarget::Start(to) => to,
            MoveTarget::InPlace(note) => {
                return Ok(Preflight::Nothing(Box::new(
                    look.in_place(&part, name, note),
                )));
            }
        };
        look.must_spare_boot_loaders(&part, to)?;
        let id = journal_id()?;
        let journal = args
            .journal
            .journal
            .clone()
            .unwrap_or_else(|| default_journal(&name, id));
        let (plan, holds) = look.plan(&part, to, id, &journal)?;
        plan.check().map_err(|error| MoveRefused::NotBegun {
            partition: look.partition.clone(),
            source: error.into(),
        })?;
        neighbours::must_be_all(&plan, number, &subject, Some(&label))?;
        let mut notes = look.notes(&part, &plan);
        if args.aligned {
            notes.extend(look.narrow_unit(to));
        }
        for one in neighbours::beside(&plan, &subject, Some(&label))? {
            let unused = one.must_be_unused(&look.partition, &subject.here);
            obstacles.meet(unused.map_err(Failure::from))?;
            notes.push(format!(
                "{} has bytes in a block that is written with it or with the label: it is kept from use until the move has \
                 ended, and after a crash must not be used before that goes on",
                one.name
            ));
        }
        let place = journal_place::check(&journal, &here, &name, args.journal.journal_same_disk);
        let journal_block = obstacles.meet(place)?.unwrap_or(JOURNAL_BLOCK_BYTES_MIN);
        let journal_bytes = plan.journal_bytes(journal_block);
        if let Some(doubt) = trust::doubt_at(Path::new(&plan.journal_path)) {
            notes.push(format!(
                "others than root could write the journal there: {doubt}; resume and rollback will ask for --yes {}",
                subject.name
            ));
        }
        if args.scan || args.scan_write {
            look.must_be_readable(&part)?;
        }
        // What is written with zeros is read after that.
        if args.scan && !args.scan_write {
            look.must_have_readable_place(&plan)?;
        }
        let prepared = Prepared {
            node,
            name,
            disk,
            number,
            plan,
            journal_bytes,
            journal_block,
            attachment: Attachment::of(&subject.disk),
            holds,
            notes,
            obstacles: obstacles.found,
        };
        Ok(Preflight::Move(Box::new(prepared)))
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
            holds: Some(self.holds.iter().map(|name| (*name).to_owned()).collect()),
            journal: plan.journal_path.clone(),
            journal_bytes: Some(self.journal_bytes),
            stage: None,
            bytes_done: 0,
            bytes_total: plan.len,
            seconds: None,
            verifying_seconds: None,
            doubt: None,
            places: Vec::new(),
            obstacles: self.obstacles.clone(),
            lost: Vec::new(),
            lost_file: None,
            command: None,
            undo: None,
            notes: self.notes.clone(),
        }
    }
}

/// That nobody uses the partition.
fn must_be_unused(partition: &str, here: &Here) -> Result<(), Failure> {
    let users = here.users();
    if users.is_empty() {
        return Ok(());
    }
    let failure = Failure::from(MoveRefused::InUse {
        partition: partition.to_owned(),
        users,
    });
    Err(match here.freed_by() {
        Some(command) => failure.with_command(command),
        None => failure,
    })
}

fn default_journal(name: &str, id: JournalId) -> PathBuf {
    let id = id.to_string();
    Path::new(STATE).join(format!(
        "{}-{}.{JOURNAL}",
        plumb_quoting::shell::file_name(name),
        &id[..8]
    ))
}

fn journal_id() -> Result<JournalId, Failure> {
    use std::io::Read;
    let mut id = [0; 16];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut id));
    read.map_err(|error| Failure::failed(&error))?;
    Ok(JournalId(id))
}

/// A partition that is looked at.
pub(super) struct Look<'a> {
    pub(super) partition: String,
    pub(super) subject: &'a Subject,
    pub(super) label: &'a Label,
    number: u32,
}

impl Look<'_> {
    pub(super) fn refused(&self, why: impl Into<String>) -> MoveRefused {
        MoveRefused::Refused {
            partition: self.partition.clone(),
            why: why.into(),
        }
    }

    /// The partition in the label.
    fn part(&self) -> Result<Partition, MoveRefused> {
        let is_it = |part: &&Partition| {
            part.id.number == self.number && part.place != PartitionPlace::Slice
        };
        let part = self.label.partitions.iter().find(is_it).cloned();
        part.ok_or_else(|| self.refused("found no such partition in the label of its disk"))
    }

    /// The kernel has it where the label says.
    fn must_be_known(&self, part: &Partition) -> Result<(), Failure> {
        let (start, len) = (part.extent.start().0, part.extent.len().0);
        let is_it = |known: &KernelPartition| {
            (known.number, known.start_bytes, known.len_bytes) == (self.number, start, len)
        };
        match neighbours::known(self.subject, Some(self.label))?
            .iter()
            .any(is_it)
        {
            true => Ok(()),
            false => Err(self
                .refused("label and kernel disagree on where it lies: partx --update first")
                .into()),
        }
    }

    /// A move that is none.
    fn in_place(&self, part: &Partition, name: String, note: Option<String>) -> Moved {
        let (at, len) = (part.extent.start().0, part.extent.len().0);
        Moved {
            action: "move",
            state: "in place",
            partition: self.partition.clone(),
            name,
            disk: self.subject.device(),
            from_bytes: at,
            to_bytes: at,
            len_bytes: len,
            copying: "nothing",
            window_bytes: 0,
            holds: None,
            journal: String::new(),
            journal_bytes: None,
            stage: None,
            bytes_done: len,
            bytes_total: len,
            seconds: None,
            verifying_seconds: None,
            doubt: None,
            places: Vec::new(),
            obstacles: Vec::new(),
            lost: Vec::new(),
            lost_file: None,
            command: None,
            undo: None,
            notes: note.into_iter().collect(),
        }
    }

    fn must_be_movable(&self, part: &Partition) -> Result<(), MoveRefused> {
        match (part.place, part.kind) {
            (PartitionPlace::Extended, _) => Err(self.refused(
                "it holds the chain of logical partitions, which cannot be kept: move these one by one",
            )),
            (_, PartitionType::Guid(BIOS_BOOT)) => Err(self.refused(
                "it holds GRUB's core image, which the boot sector finds by its absolute sector: make a new one and run grub-install",
            )),
            (_, PartitionType::Tag(_)) => Err(self.refused("slices of a Solaris label are not moved")),
            _ => Ok(()),
        }
    }

    pub(super) fn unreadable(&self, at: u64, source: std::io::Error) -> MoveRefused {
        MoveRefused::Unreadable {
            partition: self.partition.clone(),
            at,
            source,
        }
    }

    /// Every byte can be read: what cannot cannot be moved either.
    fn must_be_readable(&self, part: &Partition) -> Result<(), MoveRefused> {
        let place = part.extent.start().0..part.extent.end().0;
        self.must_read("reading the partition", &place)
    }

    /// Every byte of the new place that the partition does not have yet can be read.
    fn must_have_readable_place(&self, plan: &Plan) -> Result<(), MoveRefused> {
        self.must_read("reading the new place", &plan.free_part())
    }

    fn must_read(&self, stage: &'static str, place: &Range<u64>) -> Result<(), MoveRefused> {
        const PIECE: u64 = 8 << 20;
        let (raw, mut line) = (self.subject.raw(), ProgressLine::new());
        let mut buffer = vec![0; PIECE as usize];
        let (start, end) = (place.start, place.end);
        let mut pieces = (start..end).step_by(PIECE as usize);
        let read = pieces.try_for_each(|at| {
            line.tell(stage, at - start, end - start);
            let len = (end - at).min(PIECE) as usize;
            let read = plumb_label::Disk::read_at(&raw, at, &mut buffer[..len]);
            read.map_err(|source| self.unreadable(at, source))
        });
        line.clear();
        read
    }

    fn plan(
        &self,
        part: &Partition,
        to: Bytes,
        journal: JournalId,
        path: &Path,
    ) -> Result<(Plan, Vec<&'static str>), Failure> {
        let (raw, limits) = (self.subject.raw(), self.subject.disk.limits());
        let labels =
            label_move(self.label, part.id, to, &raw).map_err(|source| MoveRefused::Label {
                partition: self.partition.clone(),
                source,
            })?;
        let (from, len) = (part.extent.start().0, part.extent.len().0);
        let found = survey(
            &raw,
            &(from..from + len),
            &(to.0..to.0 + len),
            limits.logical_block_bytes,
        )
        .map_err(|source| self.unreadable(from, source))?;
        let unit = blocks::written(blocks::stated(limits), &self.subject.here.write_units());
        let block = u64::from(limits.logical_block_bytes);
        let ownership = Ownership::read(Path::new(&self.partition));
        let mut words = DiskWords::from_disk(self.subject, Some(self.label));
        words.ownership = ownership;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let copying = copying(from.abs_diff(to.0), len, unit);
        let plan = Plan {
            partition: self.partition.clone(),
            disk: words.text(),
            disk_bytes: align_down(limits.size_bytes, block).unwrap_or(limits.size_bytes),
            logical_block_bytes: limits.logical_block_bytes,
            physical_block_bytes: limits.physical_block_bytes,
            journal,
            journal_path: path.display().to_string(),
            from,
            to: to.0,
            len,
            unit,
            copying,
            at_once: Plan::usual_at_once(copying, len),
            hide: labels.hide,
            finish: labels.finish,
            signatures: found.signatures,
            strays: found.strays,
            fix_ups: self.fix_ups(&raw, part.extent, to)?,
        };
        let mut names = found.names;
        // Where a format is known, the mark that its boot sector shares with others tells nothing more.
        if names.len() > 1 {
            names.retain(|name| *name != BOOT_SECTOR);
        }
        Ok((plan, names))
    }

    pub(super) fn fix_ups(
        &self,
        raw: &Raw<'_>,
        place: Extent,
        to: Bytes,
    ) -> Result<Vec<ByteChange>, Failure> {
        let found =
            fix_ups(raw, place, to).map_err(|source| self.unreadable(place.start().0, source))?;
        Ok(found
            .into_iter()
            .map(|fix| ByteChange {
                at: fix.at.0,
                old: fix.old,
                new: fix.new,
            })
            .collect())
    }

    fn notes(&self, part: &Partition, plan: &Plan) -> Vec<String> {
        let doubts = write_cache::doubts(Path::new(BLOCK_CLASS), &self.subject.name);
        let mut notes: Vec<String> = doubts.into_iter().map(str::to_owned).collect();
        if let Copying::Batches(_) = plan.copying {
            let farther = self.farther(part, plan.unit);
            let farther =
                farther.map(|to| format!("; --to {}s, farther away, is faster", to.0 / SECTOR));
            notes.push(format!(
                "the shift is {} only: everything is written twice, once to the journal{}",
                Bytes(plan.shift_bytes()),
                farther.unwrap_or_default()
            ));
        }
        if !plan.strays.is_empty() {
            notes.push("what is left of a file system in the free space is wiped".to_owned());
        }
        notes
    }
}

/// As usual, but in no longer batches than the whole partition: the journal has room for one.
fn copying(shift: u64, len: u64, unit: Unit) -> Copying {
    match Plan::usual_copying(shift, unit) {
        // One more for the blocks that its ends share with others.
        Copying::Batches(bytes) => Copying::Batches(bytes.min((len / unit.bytes + 2) * unit.bytes)),
        windows => windows,
    }
}
