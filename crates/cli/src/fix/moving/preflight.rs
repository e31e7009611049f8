//! The preflight of a move in the words of the command line: the request to `plumb_relocate::preflight`, the choice of
//! the new start, and the texts for a user. Nothing is written here.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use plumb_geometry::{Bytes, SECTOR};
use plumb_label::{Disk, Label, Partition};
use plumb_model::result::fix::Moved;
use plumb_relocate::labels::kernel::node_of;
use plumb_relocate::moving::{Copying, JournalId, Plan};
use plumb_relocate::preflight::{MoveRequest, Ownership, Planned, Survey, SurveyMode};
use plumb_sys::Access;

use super::error::MoveRefused;
use super::host::{SystemHost, name_of};
use super::identity::JOURNAL;
use super::progress::ProgressLine;
use super::refusal::RefusedMove;
use super::target::MoveTarget;
use super::{trust, write_cache};
use crate::cli::fix::Move;
use crate::failure::Failure;
use crate::fix::act::STATE;
use crate::fix::here::Here;
use crate::fix::subject::{Subject, by_name};
use crate::fix::unfinished::ignores_marks;

/// Every block device by its name.
const BLOCK_CLASS: &str = "/sys/class/block";

/// A move that may be begun.
pub struct Prepared {
    /// Node of the partition.
    pub node: PathBuf,
    /// The required name of `--yes`.
    pub name: String,
    /// Node of its disk.
    pub disk: PathBuf,
    /// Number of the partition.
    pub number: u32,
    /// The plan, as it was checked.
    pub planned: Planned,
    /// Length of the journal's file.
    pub journal_bytes: u64,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
    /// Obstacles to the move; always empty if it was to begin.
    pub obstacles: Vec<String>,
}

/// The result of the preflight.
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
        let subject = Subject::open(&disk, Access::Read)?;
        let (words, name) = (node.display().to_string(), name_of(&node));
        let id = journal_id()?;
        let given = args.journal.journal.clone();
        let journal = given.unwrap_or_else(|| default_journal(&name, id));
        let refused = RefusedMove {
            partition: words.clone(),
            subject: &subject,
            freed_by: here.freed_by(),
            journal: &journal,
        };
        let (raw, host) = (
            subject.raw(),
            SystemHost {
                partition: &here,
                node: &node,
                subject: &subject,
            },
        );
        let mode = SurveyMode {
            ignores_marks: ignores_marks(&subject, args.act.ignore_marker.as_deref())?,
            is_preview: args.act.yes.is_none(),
        };
        let survey = Survey::of_partition(&raw, &host, number, mode);
        let survey = survey.map_err(|refusal| refused.failure(refusal))?;
        let label = survey.label().clone();
        let part = survey.part().clone();
        let look = Look {
            partition: words.clone(),
            subject: &subject,
            label: &label,
        };
        let to = match look.target(&part, args)? {
            MoveTarget::Start(to) => to,
            MoveTarget::InPlace(note) => {
                return Ok(Preflight::Nothing(Box::new(
                    look.in_place(&part, name, note),
                )));
            }
        };
        let request = MoveRequest {
            partition: &words,
            name: &name,
            device: &subject.device(),
            ownership: Ownership::read(&node),
            to,
            journal: id,
            journal_path: &journal,
            may_share_disk: args.journal.journal_same_disk,
        };
        let planned = survey.plan(&request);
        let mut planned = planned.map_err(|refusal| refused.failure(refusal))?;
        let obstacles = planned.take_obstacles().into_iter().map(|refusal| {
            let failure = refused.failure(refusal);
            let text = failure.text("");
            let text = text.replacen("nothing was written: ", "", 1);
            match failure.advice() {
                Some(advice) => format!("{text} ({advice})"),
                None => text,
            }
        });
        let obstacles = obstacles.collect();
        let mut notes = look.notes(&part, &planned);
        if args.aligned {
            notes.extend(look.narrow_unit(to));
        }
        if args.scan || args.scan_write {
            look.must_be_readable(&part)?;
        }
        // Places written with zeros are read after that.
        if args.scan && !args.scan_write {
            look.must_have_readable_place(planned.plan())?;
        }
        let prepared = Prepared {
            node,
            name,
            disk,
            number,
            journal_bytes: planned.plan().journal_bytes(planned.journal_block_bytes()),
            planned,
            notes,
            obstacles,
        };
        Ok(Preflight::Move(Box::new(prepared)))
    }

    /// In the form that is printed.
    pub fn view(&self, action: &'static str, state: &'static str) -> Moved {
        let plan = self.planned.plan();
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
            from_bytes: plan.from.0,
            to_bytes: plan.to.0,
            len_bytes: plan.len,
            copying,
            window_bytes,
            holds: Some(
                self.planned
                    .holds()
                    .iter()
                    .map(|name| (*name).to_owned())
                    .collect(),
            ),
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
            owner_search: None,
            lost_file: None,
            command: None,
            undo: None,
            notes: self.notes.clone(),
        }
    }
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
}

impl Look<'_> {
    pub(super) fn refused(&self, why: impl Into<String>) -> MoveRefused {
        MoveRefused::Refused {
            partition: self.partition.clone(),
            why: why.into(),
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
            owner_search: None,
            lost_file: None,
            command: None,
            undo: None,
            notes: note.into_iter().collect(),
        }
    }

    fn unreadable(&self, at: u64, source: std::io::Error) -> MoveRefused {
        MoveRefused::Unreadable {
            partition: self.partition.clone(),
            at,
            source,
        }
    }

    /// Every byte can be read: unreadable ones cannot be moved either.
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
            let read = raw.read_at(at, &mut buffer[..len]);
            read.map_err(|source| self.unreadable(at, source))
        });
        line.clear();
        read
    }

    fn notes(&self, part: &Partition, planned: &Planned) -> Vec<String> {
        let plan = planned.plan();
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
            notes.push("remains of a file system in the free space are wiped".to_owned());
        }
        notes.extend(planned.beside().iter().map(|number| {
            format!(
                "{} has bytes in a block that is written with it or with the label: it is kept from use until the move has \
                 ended, and after a crash must not be used before that goes on",
                name_of(&node_of(&self.subject.path, *number))
            )
        }));
        if let Some(doubt) = trust::doubt_at(Path::new(&plan.journal_path)) {
            notes.push(format!(
                "others than root could write the journal there: {doubt}; resume and rollback will ask for --yes {}",
                self.subject.name
            ));
        }
        notes
    }
}
