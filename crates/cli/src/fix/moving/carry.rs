//! A move carried out: the partition taken from the kernel, the journal made, steps until the end, a signal or an error,
//! and the partition given back where it is then.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use plumb_geometry::Bytes;
use plumb_label::Label;
use plumb_model::result::fix::Moved;
use plumb_relocate::labels::kernel::{node_of, wait_for};
use plumb_relocate::moving::{Copying, OnLoss};
use plumb_relocate::preflight::{Attachment, DiskWords, Recovery, RecoveryRefusal};
use plumb_relocate::{
    Checked, Direction, Ending, JournalFile, Move, MoveError, Plan, Progress, Raw, Stage, Status,
    Unit,
};
use plumb_sys::{Access, DirectDisk, KernelPartition, SysError, partitions};

use super::error::{DISK_HELP, MoveRefused};
use super::host::{RecoveringHost, SystemHost, name_of};
use super::identity::{current_disk, must_be_of};
use super::preflight::Prepared;
use super::progress::{ProgressLine, stage_word};
use super::refusal::RefusedMove;
use super::trust::Reached;
use super::{MovePaths, held, label_difference, look, lost, owners, trust, word};
use crate::cli::fix::{Move as Args, Resume};
use crate::exit::Exit;
use crate::failure::{Failure, tell};
use crate::fix::act::{Owner, STATE, tell_kernel};
use crate::fix::durable::make_directory;
use crate::fix::error::{FixError, of_system};
use crate::fix::here::Here;
use crate::fix::subject::Subject;
use crate::fix::view::given;
use crate::signals::stop_flag;

/// Begins a move and carries it out.
///
/// # Errors
/// When it cannot be begun, or stops before its end.
pub fn begin(prepared: Prepared, args: &Args) -> Result<Exit, Failure> {
    let plan = prepared.planned.plan();
    let journal = PathBuf::from(&plan.journal_path);
    must_have_directory(&journal)?;
    // It takes its time, and the partition need not be away meanwhile.
    let mut store = JournalFile::create(
        &journal,
        prepared.journal_bytes,
        prepared.planned.journal_block_bytes(),
    )
    .map_err(|error| {
        let needed = Bytes(prepared.journal_bytes);
        let why = match error.kind() {
            std::io::ErrorKind::StorageFull => format!("{error}: it takes {needed}"),
            _ => error.to_string(),
        };
        MoveRefused::Place {
            path: journal.display().to_string(),
            why,
        }
    })?;
    // Until here a signal ends the program, which removes a journal that is not whole.
    let stop = stop_flag()?;
    let owner = Owner::read(&prepared.node);
    let Taken {
        subject,
        locked: _locked,
        neighbours: _kept,
        plan: checked,
    } = take_away(&prepared, &owner).inspect_err(|_| unused(&store))?;
    let partition = plan.partition.clone();
    let started = still_checked(&prepared, &subject)
        .and_then(|()| Ok(subject.must_have_no_writers(&[])?))
        .and_then(|()| {
            let begun = Move::start(checked, Raw(&subject.disk), &mut store);
            let mut moving = begun.map_err(|source| MoveRefused::NotBegun {
                partition: partition.clone(),
                source,
            })?;
            if args.scan_write {
                clear(&mut moving, &stop, &partition)?;
            }
            Ok(moving)
        });
    let moving = match started {
        Ok(moving) => moving,
        Err(failure) => {
            unused(&store);
            put_back(&subject.disk, &prepared, &owner);
            return Err(failure);
        }
    };
    let view = prepared.view("move", "complete");
    let doubt = trust::doubt_at(&journal);
    let way = MovePaths::new(journal, None, Reached::Named).with_yes(doubt.as_ref(), &subject.path);
    let mut run = MoveRun {
        subject: &subject,
        way,
        owner,
        view,
        is_json: args.act.json,
    };
    let ended = run.carry_out(moving, &stop);
    run.close(ended, &store)
}

/// Fills the free part of the new place with zeros. On failure the partition keeps its place.
fn clear(
    moving: &mut Move<Raw<'_>, &mut JournalFile>,
    stop: &AtomicBool,
    partition: &str,
) -> Result<(), Failure> {
    let mut line = ProgressLine::new();
    let cleared = moving.clear_new_place(|done, all| {
        line.tell("filling the new place with zeros", done, all);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    line.clear();
    let refused = |source| MoveRefused::NewPlace {
        partition: partition.to_owned(),
        source,
    };
    match cleared {
        Ok(true) => Ok(()),
        Ok(false) => Err(refused(MoveError::Stopped).into()),
        Err(source) => Err(refused(source).into()),
    }
}

/// As long as nothing was written to the disk its journal is of no use, and another one may be made.
fn unused(store: &JournalFile) {
    // The failure before it is the one that tells.
    let _ = store.remove();
}

/// Goes on with a move, or goes back.
///
/// # Errors
/// When there is nothing to go on with, or it stops again.
pub fn go_on(way: MovePaths, args: &Resume, direction: Direction) -> Result<Exit, Failure> {
    let stop = stop_flag()?;
    let (mut store, status) = super::opened(&way.journal, JournalFile::open)?;
    let doubt = trust::doubt_of(&store, &way.journal);
    let asks = trust::judge(way.reached, doubt.as_ref(), &way.journal)?;
    let was = DiskWords::parse(&status.plan.disk);
    let disk = args
        .disk
        .clone()
        .or_else(|| way.disk.clone())
        .unwrap_or_else(|| PathBuf::from(&was.path));
    // The node of a disk that was taken away may stay.
    let is_there = || disk.exists() && Here::find(&disk).is_ok();
    let (subject, is_alone) = open(&disk, true).map_err(|failure| match is_there() {
        true => failure,
        false => failure.with_help(DISK_HELP),
    })?;
    subject.lock()?;
    let is_yes = trust::is_named(args.yes.as_deref(), &subject)?;
    // Another process may have gone on with it, or have ended it, while the lock was waited for.
    let status = still_says(&mut store, &way.journal)?;
    let way = MovePaths {
        disk: Some(subject.path.clone()),
        ..way.with_yes(doubt.as_ref(), &subject.path)
    };
    // A disk that had to be named has to be named again.
    let way = if args.disk.is_some() {
        way
    } else {
        way.beside(&status)
    };
    let partition = status.plan.partition.clone();
    let stopped = |source| {
        incomplete(
            MoveRefused::Move {
                partition: partition.clone(),
                source,
            },
            &way,
            &subject,
        )
    };
    if let (Direction::Back, Some(ending @ Ending::Moved)) = (direction, status.ending) {
        return Err(stopped(MoveError::Ended { ending }));
    }
    let label = subject.label().ok().flatten();
    let note = must_be_of(&status, &subject, label.as_ref(), args.disk.is_some())?;
    let owner = owner_of(&status, &was, &subject.path);
    let mut view = view(&status, &way, word(direction));
    view.notes.extend(note);
    if let Some(why) = asks.filter(|_| !is_yes) {
        return ask(view, &status, &way, &subject, why, args.json);
    }
    if let Some(ending) = status.ending {
        // It was cut off behind its last write: the kernel has to learn of it.
        return MoveRun {
            subject: &subject,
            way,
            owner,
            view,
            is_json: args.json,
        }
        .ended(ending, &store);
    }
    let on_loss = match args.accept_loss {
        true => OnLoss::Accept,
        false => OnLoss::Stop,
    };
    let host = RecoveringHost {
        subject: &subject,
        plan: &status.plan,
        label: label.as_ref(),
    };
    let raw = subject.raw();
    let now = current_disk(&subject, &raw, label.as_ref(), args.disk.is_some());
    let recovery = Recovery::check(&status, direction, on_loss, &now, &host);
    let recovery = recovery.map_err(|refusal| refused(refusal, &status, &way, &subject))?;
    let _kept = held::keep(&status.plan, &subject, label.as_ref(), is_alone)?;
    forget(&subject, &status, label.as_ref())?;
    // Once more: nobody can have opened a partition since that the kernel does not have any more.
    subject.must_have_no_writers(&[])?;
    let moving = Move::recover(recovery, &mut store, Raw(&subject.disk)).map_err(stopped)?;
    let mut run = MoveRun {
        subject: &subject,
        way,
        owner,
        view,
        is_json: args.json,
    };
    let ended = run.carry_out(moving, &stop);
    run.close(ended, &store)
}

/// Makes the directory of journals without a place of their own.
///
/// # Errors
/// When it cannot be made.
fn must_have_directory(journal: &Path) -> Result<(), Failure> {
    if !journal.starts_with(STATE) {
        return Ok(());
    }
    make_directory(Path::new(STATE)).map_err(|error| {
        MoveRefused::Place {
            path: STATE.to_owned(),
            why: error.to_string(),
        }
        .into()
    })
}

/// Why a move does not go on, with the commands that help.
fn refused(
    refusal: RecoveryRefusal,
    status: &Status,
    way: &MovePaths,
    subject: &Subject,
) -> Failure {
    let partition = status.plan.partition.clone();
    let device = subject.device();
    let words = |unit: Unit| format!("{} at offset {}", Bytes(unit.bytes), Bytes(unit.offset));
    let stopped = |error| incomplete(error, way, subject);
    match refusal {
        RecoveryRefusal::Ended { ending } => stopped(MoveRefused::Move {
            partition,
            source: MoveError::Ended { ending },
        }),
        RecoveryRefusal::NotThisDisk { source } => MoveRefused::from(source).into(),
        RecoveryRefusal::MayBeInUse => stopped(MoveRefused::MayBeInUse { partition }),
        RecoveryRefusal::OtherSize { found } => stopped(MoveRefused::OtherSize {
            device,
            found,
            expected: status.plan.disk_bytes,
        }),
        RecoveryRefusal::OtherBlocks { stated } => stopped(MoveRefused::OtherBlocks {
            device,
            found: words(stated),
            expected: words(status.plan.unit),
        }),
        RecoveryRefusal::NotDerived { source } => MoveRefused::NotDerived {
            device,
            path: way.journal.display().to_string(),
            source,
        }
        .into(),
        RecoveryRefusal::ReadOnly => subject.read_only().into(),
        RecoveryRefusal::OpenForWriting { users } => FixError::InUse { device, users }.into(),
        RecoveryRefusal::NeighbourInUse { number, users } => MoveRefused::NeighbourInUse {
            partition,
            neighbour: name_of(&node_of(&subject.path, number)),
            users,
        }
        .into(),
        RecoveryRefusal::System { source } => FixError::Read { device, source }.into(),
    }
}

/// The present content of the journal, unless another process has ended the move and removed it.
fn still_says(store: &mut JournalFile, path: &Path) -> Result<Status, Failure> {
    let named = store.has_name().and_then(|has_name| match has_name {
        true => Ok(()),
        false => Err(std::io::ErrorKind::NotFound.into()),
    });
    named.map_err(|source| MoveRefused::Journal {
        path: path.display().to_string(),
        source,
    })?;
    super::says(store, path)
}

/// Shows every place that would be written, and the command that writes there.
fn ask(
    view: Moved,
    status: &Status,
    way: &MovePaths,
    subject: &Subject,
    why: String,
    is_json: bool,
) -> Result<Exit, Failure> {
    let way = MovePaths {
        yes: Some(subject.name.clone()),
        ..way.clone()
    };
    let mut shown = Moved {
        state: "shown",
        doubt: Some(why),
        places: trust::places(status),
        undo: None,
        ..view
    };
    shown.command = given(Some(way.command(shown.action)), &mut shown.notes);
    super::print(&shown, is_json)?;
    Ok(Exit::Incomplete)
}

/// Whose the partition's node was when the move began; its disk may be called otherwise now.
fn owner_of(status: &Status, was: &DiskWords, disk: &Path) -> Owner {
    let number = status
        .plan
        .partition
        .strip_prefix(&was.path)
        .map(|rest| rest.trim_start_matches('p'));
    match number.and_then(|number| number.parse().ok()) {
        Some(number) => Owner {
            node: node_of(disk, number),
            before: was.ownership,
        },
        None => Owner::default(),
    }
}

/// After a restart the kernel may have found an entry for the partition again: nobody must use it meanwhile.
fn forget(subject: &Subject, status: &Status, label: Option<&Label>) -> Result<(), Failure> {
    for partition in held::within_move(&status.plan, subject, label)? {
        partitions::delete(&subject.disk, &subject.path, partition.number).map_err(of_system)?;
    }
    Ok(())
}

/// A disk without the partition that is moved, the same as it is locked, and the neighbours that are kept from others
/// meanwhile.
struct Taken {
    subject: Subject,
    locked: Subject,
    neighbours: Vec<DirectDisk>,
    /// The checked plan.
    plan: Checked<Plan>,
}

/// Proves that nobody uses the partition, lets the kernel forget it at once, and opens its disk. Partition and disk cannot
/// be had alone both at a time.
fn take_away(prepared: &Prepared, owner: &Owner) -> Result<Taken, Failure> {
    let locked = Subject::open(&prepared.disk, Access::Read)?;
    // To the end: udev would open a closed partition, and read the table again.
    locked.lock()?;
    let here = Here::find(&prepared.node)?;
    let plan = prepared.planned.plan();
    let host = SystemHost {
        partition: &here,
        node: &prepared.node,
        subject: &locked,
    };
    let checked = prepared.planned.check(&locked.raw(), &host);
    let checked = checked.map_err(|refusal| {
        let refused = RefusedMove {
            partition: plan.partition.clone(),
            subject: &locked,
            freed_by: here.freed_by(),
            journal: Path::new(&plan.journal_path),
        };
        refused.failure(refusal)
    })?;
    let label = locked.label().ok().flatten();
    // First, so that nobody comes to use one while the partition is gone.
    let neighbours = held::keep(plan, &locked, label.as_ref(), false)?;
    let partition = DirectDisk::open(&prepared.node, Access::Exclusive).map_err(of_system)?;
    partition
        .flush()
        .and_then(|()| partition.drop_cache())
        .map_err(of_system)?;
    // The kernel does not remove an open partition.
    drop(partition);
    let disk = &locked.disk;
    partitions::delete(disk, disk.path(), prepared.number).map_err(of_system)?;
    match open(&prepared.disk, neighbours.is_empty()) {
        Ok((subject, _)) => Ok(Taken {
            subject,
            locked,
            neighbours,
            plan: checked,
        }),
        Err(failure) => {
            put_back(disk, prepared, owner);
            Err(failure)
        }
    }
}

/// That the disk which was opened to be written to is the one that was checked: a node can lead elsewhere by now.
fn still_checked(prepared: &Prepared, subject: &Subject) -> Result<(), Failure> {
    let attachment = Attachment::of_disk(&subject.disk);
    let same = prepared
        .planned
        .must_be_same_disk(attachment, &subject.here.identity());
    same.map_err(|_| {
        MoveRefused::Exchanged {
            device: subject.device(),
        }
        .into()
    })
}

/// Adds the partition at its old place to the kernel again. The earlier fault comes first, so an error here is not
/// reported: partx adds the partition as well. Its label may be the unreadable part.
fn put_back(disk: &DirectDisk, prepared: &Prepared, owner: &Owner) {
    let plan = prepared.planned.plan();
    let (start_bytes, len_bytes) = (plan.from.0, plan.len);
    let known = KernelPartition {
        number: prepared.number,
        start_bytes,
        len_bytes,
    };
    if partitions::add(disk, disk.path(), known).is_ok() && wait_for(&prepared.node) {
        let _ = owner.restore();
    }
}

/// The disk, and whether alone: a neighbour in use, or kept by this process, makes that impossible. One that is in use as a
/// whole is refused. It is not locked yet.
fn open(disk: &Path, may_be_alone: bool) -> Result<(Subject, bool), Failure> {
    if may_be_alone {
        match Subject::try_open_unlocked(disk, Access::Exclusive)? {
            Ok(subject) => return Ok((subject, true)),
            Err(SysError::InUse { .. }) => {}
            Err(error) => return Err(of_system(error)),
        }
    }
    let subject = Subject::open_unlocked(disk, Access::Write)?;
    match subject.here.own_users() {
        users if users.is_empty() => Ok((subject, false)),
        users => Err(MoveRefused::InUse {
            partition: subject.device(),
            users,
        }
        .into()),
    }
}

/// A move that is under way.
struct MoveRun<'a> {
    subject: &'a Subject,
    way: MovePaths,
    owner: Owner,
    view: Moved,
    is_json: bool,
}

/// How long reading again took.
#[derive(Default)]
struct Verifying {
    began: Option<Instant>,
    ended: Option<Instant>,
}

impl Verifying {
    fn at(&mut self, stage: Stage) {
        if stage == Stage::Verifying {
            self.began.get_or_insert_with(Instant::now);
        } else if self.began.is_some() {
            self.ended.get_or_insert_with(Instant::now);
        }
    }

    fn seconds(&self) -> Option<f64> {
        let ended = self.ended.unwrap_or_else(Instant::now);
        self.began
            .map(|began| ended.duration_since(began).as_secs_f64())
    }
}

impl MoveRun<'_> {
    /// Carries out all steps, until the end or a signal.
    fn carry_out(
        &mut self,
        mut moving: Move<Raw<'_>, &mut JournalFile>,
        stop: &AtomicBool,
    ) -> Result<Option<Ending>, MoveError> {
        let (began, mut line) = (Instant::now(), ProgressLine::new());
        let mut verifying = Verifying::default();
        let ended = moving.run(|progress| {
            line.show(progress);
            verifying.at(progress.stage);
            match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        line.clear();
        self.note(&moving.progress());
        self.view.lost = lost::ranges(&moving.lost());
        self.view.seconds = Some(began.elapsed().as_secs_f64());
        self.view.verifying_seconds = verifying.seconds();
        ended
    }

    /// Says how it ended, or how to go on.
    fn close(
        mut self,
        ended: Result<Option<Ending>, MoveError>,
        store: &JournalFile,
    ) -> Result<Exit, Failure> {
        match ended {
            Ok(Some(ending)) => self.ended(ending, store),
            Ok(None) => {
                self.view.state = "incomplete";
                let back = look(&self.way.journal)
                    .ok()
                    .and_then(|status| self.way.back(&status));
                let notes = &mut self.view.notes;
                self.view.command = given(Some(self.way.command("resume")), notes);
                self.view.undo = given(back, notes);
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
        let partition = self.view.partition.clone();
        incomplete(
            MoveRefused::Move { partition, source },
            &self.way,
            self.subject,
        )
    }

    /// The move has ended, and nothing later can change that: a failure now is a note, and a later resume repeats the
    /// step.
    fn ended(mut self, ending: Ending, store: &JournalFile) -> Result<Exit, Failure> {
        self.view.state = match ending {
            Ending::Moved => "complete",
            Ending::RolledBack => "rolled back",
        };
        (self.view.command, self.view.undo) = (None, None);
        let told = self.tell_kernel();
        let place = match ending {
            Ending::Moved => self.view.to_bytes,
            Ending::RolledBack => self.view.from_bytes,
        };
        self.find_owners(place);
        let is_named = self.name_losses();
        match told {
            Ok(notes) => {
                self.view.notes.extend(notes);
                // It contains data of the partition.
                if is_named && let Err(error) = store.remove() {
                    self.view.notes.push(format!(
                        "{}: can be removed ({error})",
                        self.way.journal.display()
                    ));
                }
            }
            Err(failure) => {
                self.view.notes.push(format!(
                    "the kernel does not know the partition at its place yet: {}; free it, then resume once more, which only \
                     tells the kernel and removes the journal",
                    failure.text("")
                ));
                let resume = self.way.command("resume");
                self.view.command = given(Some(resume), &mut self.view.notes);
            }
        }
        let exit = match self.view.lost.is_empty() {
            true => Exit::Clean,
            false => Exit::Lost,
        };
        match self.print() {
            Ok(()) => Ok(exit),
            // A JSON reader has to know that the document is incomplete.
            Err(failure) if self.is_json => Err(failure),
            Err(failure) => {
                tell(
                    "plumb: warning: ",
                    &format!(
                        "the move has ended; its report could not be written: {}",
                        failure.text("")
                    ),
                );
                Ok(exit)
            }
        }
    }

    fn tell_kernel(&self) -> Result<Vec<String>, Failure> {
        self.subject.disk.drop_cache().map_err(of_system)?;
        let label = self.subject.label()?;
        tell_kernel(self.subject, label.as_ref(), &self.owner)
    }

    /// Asks the tools of the file system for the files that have lost bytes, now that the partition is at its place.
    fn find_owners(&mut self, place: u64) {
        if self.view.lost.is_empty() {
            return;
        }
        let label = self.subject.label().ok().flatten();
        let known = held::known_partitions(self.subject, label.as_ref()).unwrap_or_default();
        let is_it = |known: &&KernelPartition| {
            (known.start_bytes, known.len_bytes) == (place, self.view.len_bytes)
        };
        let node = known.iter().find(is_it);
        let node = node.map(|known| node_of(&self.subject.path, known.number));
        self.view.owner_search = Some(owners::find(node.as_deref(), &mut self.view.lost));
    }

    /// Writes the file that names the losses. Without it the journal stays, which has them too.
    fn name_losses(&mut self) -> bool {
        if self.view.lost.is_empty() {
            return true;
        }
        let view = &self.view;
        let written = lost::write(
            &self.way.journal,
            &view.partition,
            &view.lost,
            view.owner_search.as_ref(),
        );
        match written {
            Ok(path) => {
                self.view.lost_file = Some(path.display().to_string());
                true
            }
            Err(error) => {
                self.view.notes.push(format!(
                    "the lost bytes could not be written to a file ({error}): the journal stays, and has them"
                ));
                false
            }
        }
    }

    fn print(&self) -> Result<(), Failure> {
        super::print(&self.view, self.is_json)
    }
}

fn incomplete(error: MoveRefused, way: &MovePaths, subject: &Subject) -> Failure {
    match &error {
        MoveRefused::Move {
            source: MoveError::Ended { .. },
            ..
        } => error.into(),
        MoveRefused::Move {
            source: MoveError::Changed { .. },
            ..
        } => changed(&error, way, subject),
        MoveRefused::OtherSize { .. } => Failure::incomplete(&error, way.command("resume"))
            .with_help_and_command(
                format!(
                    "{DISK_HELP}; the disk of the move has to have its old size again, then go on"
                ),
                way.command("resume"),
            ),
        MoveRefused::Move {
            source: MoveError::Lost { .. } | MoveError::LabelUnreadable { .. },
            ..
        } => over_losses(&error, way),
        MoveRefused::Move { source, .. } if !matches!(source, MoveError::Used { .. }) => {
            let failure = Failure::incomplete(&error, way.command("resume"));
            // Places that cannot be read, or not be written right, may stay so.
            match look(&way.journal).ok().and_then(|status| way.back(&status)) {
                Some(back) => failure
                    .with_commands([("to go on", way.command("resume")), ("to go back", back)]),
                None => failure,
            }
        }
        _ => Failure::incomplete(&error, way.command("resume")),
    }
}

/// Bytes of the partition cannot be read, or are not proven to be right. A second try may read them; else the user decides.
fn over_losses(error: &MoveRefused, way: &MovePaths) -> Failure {
    let failure = Failure::incomplete(error, way.command("resume"));
    let Ok(status) = look(&way.journal) else {
        return failure;
    };
    let mut commands = Vec::new();
    let direction = match status.progress.is_back {
        true => "rollback",
        false => "resume",
    };
    commands.push(("to try again", way.command(direction)));
    commands.extend(way.back(&status).map(|back| ("to go back", back)));
    commands.push((
        "to go on without these bytes, which are named then",
        way.command(direction).flags("--accept-loss"),
    ));
    if direction == "resume" && way.back(&status).is_some() {
        commands.push((
            "to go back without these bytes, which are named then",
            way.command("rollback").flags("--accept-loss"),
        ));
    }
    failure.with_commands(commands)
}

/// Another program has written a place of the move. The old label allows a rollback; any other allows neither
/// direction.
fn changed(error: &MoveRefused, way: &MovePaths, subject: &Subject) -> Failure {
    let failure = Failure::incomplete(error, way.command("rollback"));
    let Ok(status) = look(&way.journal) else {
        return failure;
    };
    if !status.progress.is_back && label_difference::is_old(&status, subject) {
        return failure;
    }
    let differences = label_difference::differences(&status, subject).join("; ");
    let differences = if differences.is_empty() {
        String::new()
    } else {
        format!(" ({differences})")
    };
    failure.with_help_and_command(
        format!(
            "neither resume nor rollback goes on with this table: put it back as the move left it{differences}, then go on"
        ),
        way.command("resume"),
    )
}

/// The content of a journal, for display.
pub fn view(status: &Status, way: &MovePaths, action: &'static str) -> Moved {
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
    let disk = way.disk.as_ref().map(|disk| disk.display().to_string());
    let mut notes = Vec::new();
    let on = status.ending.is_none().then(|| way.command("resume"));
    let node = Path::new(&plan.partition);
    Moved {
        action,
        state,
        name: node
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        partition: plan.partition.clone(),
        disk: disk.unwrap_or_else(|| DiskWords::parse(&plan.disk).path),
        from_bytes: plan.from.0,
        to_bytes: plan.to.0,
        len_bytes: plan.len,
        copying,
        window_bytes,
        holds: None,
        journal: way.journal.display().to_string(),
        journal_bytes: fs::metadata(&way.journal).ok().map(|found| found.len()),
        stage: Some(stage_word(status.progress.stage, status.progress.is_back)),
        bytes_done: status.progress.bytes,
        bytes_total: status.progress.bytes_total,
        seconds: None,
        verifying_seconds: None,
        doubt: None,
        places: Vec::new(),
        obstacles: Vec::new(),
        lost: lost::ranges(&status.lost),
        owner_search: None,
        lost_file: None,
        command: given(on, &mut notes),
        undo: given(way.back(status), &mut notes),
        notes,
    }
}
