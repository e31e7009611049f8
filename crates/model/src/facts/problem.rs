//! Facts that readers notice in labels, superblocks and dumps.

use plumb_stack::Source;
use serde::{Deserialize, Serialize};

/// A problem that a reader noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticedProblem {
    /// The problem, in the words of its reader: numbers of labels and names of devices.
    pub text: String,
    /// Its source.
    pub source: Source,
    /// Whether a move on the same disk has not ended, which comes first.
    pub is_move_unfinished: bool,
}
