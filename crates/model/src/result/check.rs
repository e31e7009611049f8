//! The inputs of `plumb check`, and the parts of a host that a check could not see.

use plumb_quoting::CommandLine;
use serde::Serialize;

/// A dump or the host itself, and the result of reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckInput {
    /// As named on the command line.
    pub path: String,
    /// The tool that printed it; `None` if it is unknown.
    pub tool: Option<String>,
    /// Whether its reader was held against output of the real tool.
    pub verified: bool,
    /// Lines or records that were understood.
    pub understood: u64,
    /// Those that were not.
    pub passed_over: u64,
    /// Why nothing could be made of it; `None` when something could.
    pub error: Option<String>,
}

/// Something that could not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The part, and the reason.
    pub what: String,
    /// The same as a short clause: `layers below vda are not visible`.
    #[serde(skip)]
    pub clause: String,
    /// Whether it is below the virtual disks of a guest, which a configuration may accept.
    #[serde(skip)]
    pub is_below_guest: bool,
    /// Commands that would see it; none where nothing known to the program would.
    pub commands: Vec<CommandLine>,
}
