//! `plumb fix`: changes labels so that partitions begin at the right places, repairs labels, and moves partitions.
//!
//! Every command first computes and prints its effect; it writes only with `--yes NAME`, with the disk opened
//! exclusively and locked, the old label saved, and the written bytes read back.

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
/// If the request is impossible, or refused.
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
