//! `plumb fix move`, `resume`, `rollback` and `status`: the outside of a move. What has to hold before it, where its journal
//! lies, how far it is, and what the kernel is told when it ends. The move itself is `plumb_relocate::moving`.

use std::path::{Path, PathBuf};

use plumb_relocate::moving::status;
use plumb_relocate::{JournalFile, Status};
use plumb_report::fix::{Moved, print_moved};

use crate::cli::fix::{Move, Resume, Status as StatusArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

mod carry;
mod error;
mod identity;
mod journal_place;
mod preflight;
mod progress;

use error::MoveRefused;
use preflight::Prepared;

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
    let prepared = Prepared::of(args)?;
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
    let typed: Vec<String> = std::env::args().skip(1).filter(|word| word != "--json").collect();
    let words = typed.iter().map(String::as_str).chain(["--yes", &prepared.name]);
    let command = format!("plumb {}", plumb_plan::shell::words(words));
    let moved = Moved { command: Some(command), ..prepared.view("move", "shown") };
    output::print(
        &print_moved(env!("CARGO_PKG_VERSION"), &moved, is_json).map_err(|error| Failure::failed(&error))?,
    )?;
    Ok(Exit::Clean)
}

/// Runs `plumb fix resume` and `plumb fix rollback`.
///
/// # Errors
/// When the journal is none, the disk another one, and when the move stops again.
pub fn go_on(args: &Resume, direction: Direction) -> Result<Exit, Failure> {
    let path = identity::journal_of(&args.journal)?;
    carry::go_on(&path, args, direction)
}

/// Runs `plumb fix status`.
///
/// # Errors
/// When the journal is none.
pub fn tell(args: &StatusArgs) -> Result<Exit, Failure> {
    let path = identity::journal_of(&args.journal)?;
    let status = look(&path)?;
    let moved = carry::view(&status, &path, "status");
    let is_complete = status.ending.is_some();
    output::print(
        &print_moved(env!("CARGO_PKG_VERSION"), &moved, args.json)
            .map_err(|error| Failure::failed(&error))?,
    )?;
    Ok(if is_complete { Exit::Clean } else { Exit::Incomplete })
}

/// What a journal says.
fn look(path: &Path) -> Result<Status, Failure> {
    let read = |source| MoveRefused::Journal { path: path.display().to_string(), source };
    let store = JournalFile::open_to_look(path).map_err(read)?;
    status(store).map_err(|source| MoveRefused::Move { name: path.display().to_string(), source }.into())
}

/// The command that goes on.
fn command(what: &str, journal: &Path) -> String {
    let journal: PathBuf = std::path::absolute(journal).unwrap_or_else(|_| journal.to_owned());
    plumb_plan::shell::words(["plumb", "fix", what, &journal.display().to_string()])
}
