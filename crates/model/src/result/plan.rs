//! The inputs of `plumb plan`.

use serde::Serialize;

/// Something that a plan was made from.
#[derive(Clone, Debug, Serialize)]
pub struct PlanInput {
    /// As named on the command line.
    pub path: String,
    /// The tool that printed it, or the kind of file.
    pub format: String,
    /// Whether the reader was held against a real file.
    pub verified: bool,
    /// Lines or records that were understood.
    pub understood: u64,
    /// Those that were not.
    pub passed_over: u64,
}
