//! Exit statuses, the same for every command.

use std::process::ExitCode;

use plumb_report::exports::PluginStatus;
use plumb_report::verdict::Outcome;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing at or above `--fail-on`, and everything could be judged.
    Clean,
    /// Findings at or above `--fail-on`.
    Findings,
    /// The command line was not understood.
    Usage,
    /// An answer is unknown, or the input was read only in part.
    Unknown,
    /// The system refused.
    NotPermitted,
    /// The operation failed.
    Failed,
    /// A move was begun and is not at its end; it can be resumed.
    Incomplete,
    /// A move or a rollback is complete, and bytes that could not be brought along are named.
    Lost,
    /// A monitoring plugin ended, with statuses of its own.
    Plugin(PluginStatus),
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Exit::Clean => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Unknown => 3,
            Exit::NotPermitted => 4,
            Exit::Failed => 5,
            Exit::Incomplete => 6,
            Exit::Lost => 7,
            Exit::Plugin(status) => status.code(),
        }
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Exit {
        match outcome {
            Outcome::Clean => Exit::Clean,
            Outcome::Findings => Exit::Findings,
            Outcome::Unknown(_) => Exit::Unknown,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
