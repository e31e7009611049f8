//! Names from anywhere, made harmless for a terminal, a JSON document and a shell. Labels, dumps, collections and traces
//! are untrusted: a name in them may hold what a terminal obeys or what a shell runs.
//!
//! - [`visible`](mod@visible): hidden characters as escapes, in text
//! - [`json`]: the same in the strings of a document
//! - [`shell`]: commands made of arguments; nothing else in the workspace puts a command together
//! - [`names`]: the names that tools take

#![forbid(unsafe_code)]

pub mod json;
pub mod names;
pub mod shell;
pub mod visible;

pub use shell::{Command, CommandLine, NoCommand, WayBack};
pub use visible::{is_hidden, visible};
