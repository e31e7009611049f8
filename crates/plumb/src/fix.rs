//! `plumb fix`: changes labels so that partitions begin where they should, mends labels, and moves partitions.
//!
//! Every command works out first what it would do and prints that; only `--yes NAME` lets it write, with the disk opened
//! alone and locked, the old label saved, and what was written read back.

use plumb_relocate::Direction;

use crate::cli::fix::{Fix as Args, FixCommand};
use crate::exit::Exit;
use crate::failure::Failure;

mod act;
mod backup_label;
mod carry_plan;
pub mod contents;
mod durable;
mod error;
mod from_check;
mod from_plan;
mod here;
mod moving;
mod queue;
mod relabel;
mod subject;
mod tune;
mod undo;
mod unfinished;
mod view;

/// Runs the command.
///
/// # Errors
/// When what was asked for cannot be done, or is refused.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.what {
        FixCommand::Relabel(args) => relabel::run(args),
        FixCommand::Undo(args) => undo::run(args),
        FixCommand::BackupLabel(args) => backup_label::run(args),
        FixCommand::Plan(args) => carry_plan::run(args),
        FixCommand::Move(args) => moving::run(args),
        FixCommand::Resume(args) => moving::go_on(args, Direction::Forward),
        FixCommand::Rollback(args) => moving::go_on(args, Direction::Back),
        FixCommand::Status(args) => moving::tell(args),
    }
}
