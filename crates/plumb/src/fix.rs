//! `plumb fix`: changes labels so that partitions begin where they should, and mends labels.
//!
//! Every command works out first what it would do and prints that; only `--yes NAME` lets it write, with the disk opened
//! alone and locked, the old label saved, and what was written read back.

use crate::cli::fix::{Fix as Args, What};
use crate::exit::Exit;
use crate::failure::Failure;

mod act;
mod backup_label;
mod contents;
mod error;
mod from_plan;
mod here;
mod relabel;
mod subject;
mod undo;
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
    }
}
