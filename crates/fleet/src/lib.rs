//! The I/O of many hosts: their inputs, the part of each shard, the file that holds the profiles of hosts, and the merge of such files.
//!
//! A crate of its own because a fleet file is untrusted input: the fuzzer reaches libraries, and not the program. It reads no trace,
//! judges nothing and starts no thread; `plumb fleet` does that with the code of `plumb analyze`. `docs/formats/fleet.md` describes the
//! file.

#![forbid(unsafe_code)]

pub mod file;
pub mod host;
pub mod merge;
pub mod source;

pub use file::{FleetError, FleetReader, FleetWriter};
pub use host::{HostFacts, HostIo, InputMark, ObservedTime};
pub use merge::{FleetMerge, MergeError};
pub use source::{Shard, Source, SourceError, Sources, find_sources};
