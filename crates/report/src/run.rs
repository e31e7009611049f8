//! The run of the program that a document is of.

use serde::Serialize;

/// The fields of each JSON document about its run, directly after the name of its schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Run {
    /// Version of the program.
    pub version: String,
    /// The host on which the program ran; absent if the kernel does not tell.
    pub host: Option<String>,
    /// Moment of the document, UTC.
    pub time: String,
    /// The command line, word by word.
    pub command: Vec<String>,
}
