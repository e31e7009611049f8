//! The commands of `plumb`: reads flags, runs a command, says how it ended.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use plumb_report::exports;

mod agent;
mod analyze;
mod api;
mod bench;
mod check;
mod cli;
mod collect;
mod compare;
mod config;
mod convert;
mod device_names;
mod device_reader;
mod diagnose;
mod exit;
mod explain;
mod failure;
mod fix;
mod fleet;
mod generate;
mod help;
mod history;
mod inputs;
mod killed;
mod listen;
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
mod serve;
mod side_by_side;
mod signals;
mod status;
mod this_run;
mod typed;
mod unseen;
mod version;
mod watch;

use cli::Command;

/// Runs the command of the arguments of this process, and returns its status.
#[must_use]
pub fn run() -> ExitCode {
    if std::env::args_os().nth(1).as_deref() == Some(device_reader::ARGUMENT.as_ref()) {
        return device_reader::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if std::env::args_os().nth(1).as_deref() == Some(agent::RECORDING_HELPER.as_ref()) {
        let arguments: Vec<_> = std::env::args_os().skip(2).collect();
        let served = agent::serve_recordings(&arguments);
        return served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    // The parser takes longer than the answer.
    if std::env::args_os().skip(1).eq(["--version"]) {
        return status_of(version::run(&cli::Version::default()));
    }
    // Without it a signal leaves a file behind that is not whole, which is no reason not to work.
    let _ = plumb_sys::signals::remove_unfinished_at_the_end();
    this_run::note_host();
    // Commands drop privileges later.
    this_run::is_by_root();
    // Usage errors, --help and --version end here, with the statuses 2, 0 and 0.
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && cli::asks_for_plugin_line(std::env::args_os()) => {
            return end_as_plugin(&cli::lines::first(&error));
        }
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
        Command::Agent(args) => agent::run(args),
        Command::History(args) => history::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Fleet(args) => fleet::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Help(args) => help::run(args),
        Command::Version(args) => version::run(args),
        Command::Generate(args) => generate::run(args),
    };
    if let Err(failure) = &ended
        && is_plugin(&cli.command)
    {
        failure.print();
        return end_as_plugin(&failure.text(""));
    }
    status_of(ended)
}

/// The exit status of a command; a failure is printed.
fn status_of(ended: Result<exit::Exit, failure::Failure>) -> ExitCode {
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.print();
            failure.exit().into()
        }
    }
}

/// Whether the command runs as a plugin of a monitoring system.
fn is_plugin(command: &Command) -> bool {
    matches!(command, Command::Check(args) if args.export == Some(cli::Export::Nagios))
}

/// Ends a plugin that failed: a monitoring system reads standard output, and knows the statuses 0 to 3.
fn end_as_plugin(words: &str) -> ExitCode {
    // A failure of this print has no channel to report it.
    let _ = output::print(&exports::nagios_failure(words));
    exit::Exit::Plugin(exports::PluginStatus::Unknown).into()
}
