//! Manual pages and completions, from the definitions of the flags.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Cli, Generate};
use crate::exit::Exit;
use crate::failure::Failure;

/// Writes `man/*.1` and `completions/*` below a directory.
///
/// # Errors
/// When a file cannot be written.
pub fn run(args: &Generate) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| Failure::failed(&error);
    let man = args.directory.join("man");
    std::fs::create_dir_all(&man).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &man).map_err(failed)?;
    completions(&args.directory.join("completions")).map_err(failed)?;
    Ok(Exit::Clean)
}

fn completions(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "plumb", directory)?;
    }
    Ok(())
}
