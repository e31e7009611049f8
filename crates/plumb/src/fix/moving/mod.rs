//! `plumb fix move`, `resume`, `rollback` and `status`: the outside of a move. What has to hold before it, where its journal
//! lies, how far it is, and what the kernel is told when it ends. The move itself is `plumb_relocate::moving`.

use std::path::{Path, PathBuf};

use plumb_relocate::moving::status;
use plumb_relocate::{JournalError, JournalFile, MoveError, Status};
use plumb_report::fix::{Moved, print_moved};

use crate::cli::fix::{Move, Resume, Status as StatusArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

mod blocks;
mod boot_gap;
mod carry;
mod error;
mod evidence;
mod identity;
mod journal_place;
mod label_difference;
mod neighbours;
mod preflight;
mod progress;
mod target;
mod write_cache;

use error::MoveRefused;
pub use identity::{marker_at_ends, moving_part};
use preflight::{Preflight, Prepared};

/// What a move is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To go on.
    On,
    /// To go back.
    Back,
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
            "--yes: found `{yes}`, expected `{name}`, which is what would be moved"
        ))
        .with_help("nothing was written"));
    }
    carry::begin(prepared, args)
}

fn shown(prepared: &Prepared, is_json: bool) -> Result<Exit, Failure> {
    let typed: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--json")
        .collect();
    let words = typed
        .iter()
        .map(String::as_str)
        .chain(["--yes", &prepared.name]);
    let command = format!("plumb {}", plumb_plan::shell::join_words(words));
    let moved = Moved {
        command: Some(command),
        ..prepared.view("move", "shown")
    };
    print(&moved, is_json)?;
    Ok(Exit::Clean)
}

fn print(moved: &Moved, is_json: bool) -> Result<(), Failure> {
    let text = print_moved(env!("CARGO_PKG_VERSION"), moved, is_json);
    output::print(&text.map_err(|error| Failure::failed(&error))?)
}

/// Runs `plumb fix resume` and `plumb fix rollback`.
///
/// # Errors
/// When the journal is none, the disk another one, and when the move stops again.
pub fn go_on(args: &Resume, direction: Direction) -> Result<Exit, Failure> {
    let way = identity::way_to(&args.journal)?;
    carry::go_on(way, args, direction)
}

/// Runs `plumb fix status`.
///
/// # Errors
/// When the journal is none.
pub fn tell(args: &StatusArgs) -> Result<Exit, Failure> {
    let way = identity::way_to(&args.journal)?;
    let status = look(&way.journal)?;
    let way = way.beside(&status);
    let moved = carry::view(&status, &way, "status");
    let is_complete = status.ending.is_some();
    print(&moved, args.json)?;
    Ok(if is_complete {
        Exit::Clean
    } else {
        Exit::Incomplete
    })
}

/// What a journal says.
fn look(path: &Path) -> Result<Status, Failure> {
    let read = |source| MoveRefused::Journal {
        path: path.display().to_string(),
        source,
    };
    let store = JournalFile::open_to_look(path).map_err(read)?;
    status(store).map_err(|source| {
        let path_words = path.display().to_string();
        match source {
            MoveError::Journal(JournalError::None) if journal_place::is_unwritten(path) => {
                MoveRefused::Unwritten { path: path_words }.into()
            }
            source => MoveRefused::NoMove {
                path: path_words,
                source,
            }
            .into(),
        }
    })
}

/// What leads to a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovePaths {
    /// Its journal.
    pub journal: PathBuf,
    /// Its disk, where that is not the one that the journal names.
    pub disk: Option<PathBuf>,
}

impl MovePaths {
    /// Without what the journal says as well.
    fn beside(self, status: &Status) -> MovePaths {
        let said = identity::DiskWords::parse(&status.plan.disk).path;
        MovePaths {
            disk: self.disk.filter(|disk| *disk != Path::new(&said)),
            ..self
        }
    }

    /// The command that goes back, where that can be.
    fn back(&self, status: &Status) -> Option<String> {
        let can_be = status.ending.is_none() && !status.progress.is_back && !status.may_be_in_use;
        can_be.then(|| self.command("rollback"))
    }

    /// The command that goes on.
    fn command(&self, what: &str) -> String {
        let journal = std::path::absolute(&self.journal).unwrap_or_else(|_| self.journal.clone());
        let mut words = vec![
            "plumb".to_owned(),
            "fix".to_owned(),
            what.to_owned(),
            journal.display().to_string(),
        ];
        if let Some(disk) = &self.disk {
            words.extend(["--disk".to_owned(), disk.display().to_string()]);
        }
        plumb_plan::shell::join_words(words.iter().map(String::as_str))
    }
}
