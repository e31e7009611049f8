//! A move carried out: the partition taken from the kernel, the journal made, steps until the end, a signal or an error,
//! and the partition given back where it is then.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use plumb_label::Label;
use plumb_relocate::moving::Copying;
use plumb_relocate::{Ending, JournalFile, Move, MoveError, Progress, Raw, Status};
use plumb_report::fix::{Moved, print_moved};
use plumb_sys::{Access, DirectDisk, KernelPartition, SysError, partitions};

use super::error::MoveRefused;
use super::identity::DiskWords;
use super::preflight::Prepared;
use super::progress::{Line, stage_word};
use super::{Direction, command, look};
use crate::cli::fix::{Move as Args, Resume};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::fix::act::{Owner, tell_kernel};
use crate::fix::error::of_system;
use crate::fix::subject::Subject;
use crate::output;

/// Begins a move and carries it out.
///
/// # Errors
/// When it cannot be begun, or stops before its end.
pub fn begin(prepared: Prepared, args: &Args) -> Result<Exit, Failure> {
    let stop = stop_flag()?;
    let journal = PathBuf::from(&prepared.plan.journal_path);
    // It takes its time, and the partition need not be away meanwhile.
    let store = JournalFile::create(&journal, prepared.journal_bytes)
        .map_err(|source| MoveRefused::Journal { path: journal.display().to_string(), source })?;
    // As long as nothing was written to the disk the journal is of no use, and another one may be made.
    let unused = |_: &Failure| drop(fs::remove_file(&journal));
    let owner = Owner::of(&prepared.node);
    let subject = take_away(&prepared).inspect_err(unused)?;
    let name = prepared.plan.partition.clone();
    let moving = match Move::start(prepared.plan.clone(), Raw(&subject.disk), store) {
        Ok(moving) => moving,
        Err(source) => {
            let failure = Failure::from(MoveRefused::Move { name, source });
            unused(&failure);
            tell_kernel(&subject, subject.label()?.as_ref(), &owner)?;
            return Err(failure);
        }
    };
    let view = prepared.view("move", "complete");
    Run { subject: &subject, journal: &journal, owner, view, is_json: args.act.json }.carry_out(moving, &stop)
}

/// Goes on with a move, or goes back.
///
/// # Errors
/// When there is nothing to go on with, or it stops again.
pub fn go_on(journal: &Path, args: &Resume, direction: Direction) -> Result<Exit, Failure> {
    let stop = stop_flag()?;
    let status = look(journal)?;
    let was = DiskWords::parse(&status.plan.disk);
    let disk = args.disk.clone().unwrap_or_else(|| PathBuf::from(&was.path));
    let subject = open(&disk)?;
    let label = subject.label().ok().flatten();
    was.must_be(&DiskWords::of(&subject, label.as_ref()))?;
    if let (Some(ending), Direction::On) = (status.ending, direction) {
        // It was cut off behind its last write: the kernel has to learn of it.
        let view = view(&status, journal, "resume");
        return Run { subject: &subject, journal, owner: Owner::default(), view, is_json: args.json }
            .ended(ending);
    }
    forget(&subject, &status, label.as_ref())?;
    let store = JournalFile::open(journal)
        .map_err(|source| MoveRefused::Journal { path: journal.display().to_string(), source })?;
    let moving = match direction {
        Direction::On => Move::resume(store, Raw(&subject.disk)),
        Direction::Back => Move::rollback(store, Raw(&subject.disk)),
    };
    let name = status.plan.partition.clone();
    let moving = moving.map_err(|source| incomplete(MoveRefused::Move { name, source }, journal))?;
    let action = if direction == Direction::On { "resume" } else { "rollback" };
    let view = view(&status, journal, action);
    Run { subject: &subject, journal, owner: Owner::default(), view, is_json: args.json }
        .carry_out(moving, &stop)
}

/// After a restart the kernel may have found an entry for the partition again: nobody must use it meanwhile.
fn forget(subject: &Subject, status: &Status, label: Option<&Label>) -> Result<(), Failure> {
    let root = plumb_sys::Directory::root(Path::new("/")).map_err(|errno| Failure::failed(&errno))?;
    let known = partitions::known(&root, &subject.name).map_err(|errno| Failure::failed(&errno))?;
    let (from, to) = (status.plan.from, status.plan.to);
    let end = from.max(to) + status.plan.len;
    let is_container = |number: u32| {
        let is_it = |part: &plumb_label::Partition| {
            part.id.number == number && part.place == plumb_label::Place::Extended
        };
        label.is_some_and(|label| label.partitions.iter().any(is_it))
    };
    let within = known
        .iter()
        .filter(|known| known.start_bytes < end && from.min(to) < known.start_bytes + known.len_bytes);
    for partition in within.filter(|partition| !is_container(partition.number)) {
        partitions::delete(&subject.disk, &subject.path, partition.number).map_err(of_system)?;
    }
    Ok(())
}

/// Proves that nobody uses the partition, lets the kernel forget it at once, and opens its disk. Partition and disk cannot
/// be had alone both at a time.
fn take_away(prepared: &Prepared) -> Result<Subject, Failure> {
    let disk = DirectDisk::open(&prepared.disk, Access::Read).map_err(of_system)?;
    let partition = DirectDisk::open(&prepared.node, Access::Exclusive).map_err(of_system)?;
    partition.flush().and_then(|()| partition.drop_cache()).map_err(of_system)?;
    // The kernel does not remove what is open.
    drop(partition);
    partitions::delete(&disk, disk.path(), prepared.number).map_err(of_system)?;
    open(&prepared.disk).inspect_err(|_| {
        let (start_bytes, len_bytes) = (prepared.plan.from, prepared.plan.len);
        let known = KernelPartition { number: prepared.number, start_bytes, len_bytes };
        // What the error says comes first; partx adds the partition as well.
        let _ = partitions::add(&disk, disk.path(), known);
    })
}

/// The disk, alone where that can be: a neighbour in use makes it impossible.
fn open(disk: &Path) -> Result<Subject, Failure> {
    match Subject::try_open(disk, Access::Exclusive)? {
        Ok(subject) => Ok(subject),
        Err(SysError::InUse { .. }) => Subject::open(disk, Access::Write),
        Err(error) => Err(of_system(error)),
    }
}

fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, stop.clone()).map_err(|error| Failure::failed(&error))?;
    }
    Ok(stop)
}

/// A move that is under way.
struct Run<'a> {
    subject: &'a Subject,
    journal: &'a Path,
    owner: Owner,
    view: Moved,
    is_json: bool,
}

impl Run<'_> {
    fn carry_out(
        mut self,
        mut moving: Move<Raw<'_>, JournalFile>,
        stop: &AtomicBool,
    ) -> Result<Exit, Failure> {
        let (began, mut line) = (Instant::now(), Line::new());
        let ended = moving.run(|progress| {
            line.show(progress);
            match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        line.clear();
        self.note(&moving.progress());
        self.view.seconds = Some(began.elapsed().as_secs_f64());
        drop(moving);
        match ended {
            Ok(Some(ending)) => self.ended(ending),
            Ok(None) => {
                self.view.state = "incomplete";
                self.view.command = Some(command("resume", self.journal));
                self.print()?;
                Ok(Exit::Incomplete)
            }
            Err(source) => Err(self.failed(source)),
        }
    }

    fn note(&mut self, progress: &Progress) {
        (self.view.bytes_done, self.view.bytes_total) = (progress.bytes, progress.bytes_total);
        self.view.stage = Some(stage_word(progress.stage, progress.is_back));
    }

    fn failed(&self, source: MoveError) -> Failure {
        incomplete(MoveRefused::Move { name: self.view.partition.clone(), source }, self.journal)
    }

    fn ended(mut self, ending: Ending) -> Result<Exit, Failure> {
        self.subject.disk.drop_cache().map_err(of_system)?;
        let label = self.subject.label()?;
        self.view.notes.extend(tell_kernel(self.subject, label.as_ref(), &self.owner)?);
        self.view.state = match ending {
            Ending::Moved => "complete",
            Ending::RolledBack => "rolled back",
        };
        // It ended, and what it holds are data of the partition.
        if let Err(error) = fs::remove_file(self.journal) {
            self.view.notes.push(format!("{}: can be removed ({error})", self.journal.display()));
        }
        self.print()?;
        Ok(Exit::Clean)
    }

    fn print(&self) -> Result<(), Failure> {
        let text = print_moved(env!("CARGO_PKG_VERSION"), &self.view, self.is_json);
        output::print(&text.map_err(|error| Failure::failed(&error))?)
    }
}

fn incomplete(error: MoveRefused, journal: &Path) -> Failure {
    Failure::incomplete(&error, command("resume", journal))
}

/// What a journal says, in the form that is printed.
pub fn view(status: &Status, journal: &Path, action: &'static str) -> Moved {
    let plan = &status.plan;
    let (copying, window_bytes) = match plan.copying {
        Copying::Windows(bytes) => ("windows", bytes),
        Copying::Batches(bytes) => ("batches through the journal", bytes),
    };
    let state = match status.ending {
        None => "incomplete",
        Some(Ending::Moved) => "complete",
        Some(Ending::RolledBack) => "rolled back",
    };
    let disk = DiskWords::parse(&plan.disk).path;
    let node = Path::new(&plan.partition);
    Moved {
        action,
        state,
        name: node.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        partition: plan.partition.clone(),
        disk,
        from_bytes: plan.from,
        to_bytes: plan.to,
        len_bytes: plan.len,
        copying,
        window_bytes,
        holds: Vec::new(),
        journal: journal.display().to_string(),
        journal_bytes: fs::metadata(journal).ok().map(|found| found.len()),
        stage: Some(stage_word(status.progress.stage, status.progress.is_back)),
        bytes_done: status.progress.bytes,
        bytes_total: status.progress.bytes_total,
        seconds: None,
        command: status.ending.is_none().then(|| command("resume", journal)),
        notes: Vec::new(),
    }
}
