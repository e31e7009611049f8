//! Makes untrusted names harmless for a terminal, a JSON document and a shell. Names in labels, dumps, collections and
//! traces may hold control characters for a terminal or code for a shell.
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
