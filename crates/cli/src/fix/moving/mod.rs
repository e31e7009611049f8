//! `plumb fix move`, `resume`, `rollback` and `status`: the outside of a move. Its conditions, the place of its
//! journal, its progress, and the kernel's update at its end. The move itself is `plumb_relocate::moving`.

use std::io;
use std::path::{Path, PathBuf};

use plumb_model::result::fix::Moved;
use plumb_quoting::Command;
use plumb_relocate::moving::{never_begun, status};
use plumb_relocate::preflight::DiskWords;
use plumb_relocate::{Direction, JournalError, JournalFile, MoveError, Status};
use plumb_report::fix::print_moved;
use plumb_sys::Doubt;

use crate::cli::ColorChoice;
use crate::cli::fix::{Move, Resume, Status as StatusArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::fix::view::given;
use crate::{output, typed};

mod carry;
mod error;
mod held;
mod host;
mod identity;
mod label_difference;
mod lost;
mod owners;
mod preflight;
mod progress;
mod refusal;
mod target;
mod trust;
mod write_cache;

use error::MoveRefused;
pub use held::known_partitions;
use preflight::{Preflight, Prepared};
use trust::Reached;

/// The command that goes this way.
fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "resume",
        Direction::Back => "rollback",
    }
}

/// Runs `plumb fix move`.
///
/// # Errors
/// When something that has to hold does not, and when it stops before its end.
pub fn run(args: &Move) -> Result<Exit, Failure> {
    let prepared = match Prepared::check(args)? {
        Preflight::Move(prepared) => *prepared,
        Preflight::Nothing(moved) => {
            print(&moved, args.act.json)?;
            return Ok(Exit::Clean);
        }
    };
    let Some(yes) = &args.act.yes else {
        return shown(&prepared, args.act.json);
    };
    if *yes != prepared.name && Path::new(yes) != prepared.node {
        let name = &prepared.name;
        return Err(Failure::usage(format!(
            "--yes: found `{yes}`, expected `{name}`, the partition to move"
        ))
        .with_help("nothing was written"));
    }
    carry::begin(prepared, args)
}

fn shown(prepared: &Prepared, is_json: bool) -> Result<Exit, Failure> {
    let mut moved = prepared.view("move", "shown");
    moved.command = given(Some(typed::with_yes(&prepared.name)), &mut moved.notes);
    print(&moved, is_json)?;
    Ok(Exit::Clean)
}

fn print(moved: &Moved, is_json: bool) -> Result<(), Failure> {
    let paper = (!is_json).then(|| output::paper(ColorChoice::Never));
    let text = print_moved(&crate::this_run::now(), moved, paper);
    output::print(&text.map_err(|error| Failure::failed(&error))?)
}

/// Runs `plumb fix resume` and `plumb fix rollback`.
///
/// # Errors
/// When the journal is none, the disk another one, and when the move stops again.
pub fn go_on(args: &Resume, direction: Direction) -> Result<Exit, Failure> {
    let way = identity::way_to(&args.journal)?;
    match carry::go_on(way.clone(), args, direction) {
        Err(failure) => match not_begun(&way.journal) {
            Some(status) => {
                identity::must_be_untouched(&status, &way, args.disk.as_deref())?;
                nothing_to_do(&way, &status, args.json, direction)
            }
            None => Err(failure),
        },
        ended => ended,
    }
}

/// Runs `plumb fix status`.
///
/// # Errors
/// When the journal is none.
pub fn tell(args: &StatusArgs) -> Result<Exit, Failure> {
    let way = identity::way_to(&args.journal)?;
    let (store, status) = opened(&way.journal, JournalFile::open_to_look)?;
    let doubt = trust::doubt_of(&store, &way.journal);
    trust::judge(way.reached, doubt.as_ref(), &way.journal)?;
    let said = DiskWords::parse(&status.plan.disk).path;
    let disk = way.disk.clone().unwrap_or_else(|| PathBuf::from(&said));
    let way = way.beside(&status).with_yes(doubt.as_ref(), &disk);
    let mut moved = carry::view(&status, &way, "status");
    moved.places = trust::places(&status);
    print(&moved, args.json)?;
    Ok(match status.ending {
        None => Exit::Incomplete,
        Some(_) if moved.lost.is_empty() => Exit::Clean,
        Some(_) => Exit::Lost,
    })
}

/// The journal of a move that was never begun; `None` for any other file.
fn not_begun(journal: &Path) -> Option<Status> {
    let store = JournalFile::open_to_look(journal).ok()?;
    never_begun(store).ok().flatten()
}

/// A journal that nothing is to be done with.
fn nothing_to_do(
    way: &MovePaths,
    status: &Status,
    is_json: bool,
    direction: Direction,
) -> Result<Exit, Failure> {
    let why =
        "the move never began, and nothing was written to the disk; the journal can be removed";
    if !is_json {
        let journal = way.journal.display();
        output::print_line(&format!("{journal}: nothing to do: {why}"))?;
        return Ok(Exit::Clean);
    }
    let moved = Moved {
        state: "never begun",
        stage: None,
        command: None,
        undo: None,
        notes: vec![format!("nothing to do: {why}")],
        ..carry::view(status, way, word(direction))
    };
    print(&moved, is_json)?;
    Ok(Exit::Clean)
}

/// The content of a journal.
fn look(path: &Path) -> Result<Status, Failure> {
    opened(path, JournalFile::open_to_look).map(|(_, status)| status)
}

/// Opens a journal, once, and reads its content.
fn opened(
    path: &Path,
    open: impl FnOnce(&Path) -> io::Result<JournalFile>,
) -> Result<(JournalFile, Status), Failure> {
    let mut store = open(path).map_err(|source| MoveRefused::Journal {
        path: path.display().to_string(),
        source,
    })?;
    let status = says(&mut store, path)?;
    Ok((store, status))
}

/// The content of an open journal.
fn says(store: &mut JournalFile, path: &Path) -> Result<Status, Failure> {
    status(&mut *store).map_err(|source| {
        let path = path.display().to_string();
        match source {
            MoveError::Journal(JournalError::None) if store.is_unwritten() => {
                MoveRefused::Unwritten { path }.into()
            }
            source => MoveRefused::NoMove { path, source }.into(),
        }
    })
}

/// The paths of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovePaths {
    /// Its journal.
    pub journal: PathBuf,
    /// Its disk, where that is not the one that the journal names.
    pub disk: Option<PathBuf>,
    /// The way to the journal.
    pub reached: Reached,
    /// The required name of `--yes` for going on, if it is needed.
    pub yes: Option<String>,
}

impl MovePaths {
    fn new(journal: PathBuf, disk: Option<PathBuf>, reached: Reached) -> MovePaths {
        MovePaths {
            journal,
            disk,
            reached,
            yes: None,
        }
    }

    /// With the name of the disk for `--yes`, where the journal needs it when it is named.
    fn with_yes(self, doubt: Option<&Doubt>, disk: &Path) -> MovePaths {
        let name = disk.file_name().unwrap_or_default().to_string_lossy();
        MovePaths {
            yes: doubt.map(|_| name.into_owned()),
            ..self
        }
    }

    /// Without the facts that the journal has as well.
    fn beside(self, status: &Status) -> MovePaths {
        let said = DiskWords::parse(&status.plan.disk).path;
        MovePaths {
            disk: self.disk.filter(|disk| *disk != Path::new(&said)),
            ..self
        }
    }

    /// The command that goes back, where that can be.
    fn back(&self, status: &Status) -> Option<Command> {
        let can_be = status.ending.is_none() && !status.progress.is_back && !status.may_be_in_use;
        can_be.then(|| self.command("rollback"))
    }

    /// The command that goes on.
    fn command(&self, what: &'static str) -> Command {
        let journal = std::path::absolute(&self.journal).unwrap_or_else(|_| self.journal.clone());
        let command = Command::new("plumb fix").flags(what).path(journal);
        let command = match &self.disk {
            Some(disk) => command.option("--disk", disk),
            None => command,
        };
        match &self.yes {
            Some(yes) => command.option("--yes", yes),
            None => command,
        }
    }
}
