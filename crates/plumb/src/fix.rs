//! `plumb fix`: changes labels so that partitions begin where they should, mends labels, and moves partitions.
//!
//! Every command works out first what it would do and prints that; only `--yes NAME` lets it write, with the disk opened
//! alone and locked, the old label saved, and what was written read back.

use crate::cli::fix::{Fix as Args, What};
use crate::exit::Exit;
use crate::failure::Failure;

mod act;
mod backup_label;
mod carry_plan;
mod contents;
mod durable;
mod error;
mod from_plan;
mod here;
mod moving;
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
        What::Relabel(args) => relabel::run(args),
        What::Undo(args) => undo::run(args),
        What::BackupLabel(args) => backup_label::run(args),
        What::Plan(args) => carry_plan::run(args),
        What::Move(args) => moving::run(args),
        What::Resume(args) => moving::go_on(args, moving::Direction::On),
        What::Rollback(args) => moving::go_on(args, moving::Direction::Back),
        What::Status(args) => moving::tell(args),
    }
}
