//! `plumb`: finds the I/O that does not fit the storage beneath it. Reads flags, runs a command, says how it ended.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

mod analyze;
mod bench;
mod check;
mod cli;
mod collect;
mod compare;
mod convert;
mod device_reader;
mod diagnose;
mod exit;
mod failure;
mod fix;
mod generate;
mod inputs;
mod meter;
mod moment;
mod notes;
mod output;
mod plan;
mod privilege;
mod probe;
mod record;
mod recordings;
mod replay;
mod sandbox;
mod select;
mod side_by_side;
mod signals;
mod this_run;
mod typed;
mod version;
mod watch;

use cli::{Cli, Command};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).as_deref() == Some(device_reader::ARGUMENT.as_ref()) {
        return device_reader::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    // Without it a signal leaves a file behind that is not whole, which is no reason not to work.
    let _ = plumb_sys::signals::remove_unfinished_at_the_end();
    this_run::note_host();
    // Usage errors, --help and --version end here, with the statuses 2, 0 and 0.
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::lines::end_with(&error),
    };
    let ended = match &cli.command {
        Command::Analyze(args) => analyze::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Check(args) => check::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Diagnose(args) => diagnose::run(args),
        Command::Fix(args) => fix::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Record(args) => record::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Version(args) => version::run(args),
        Command::Generate(args) => generate::run(args),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.print();
            failure.exit().into()
        }
    }
}
