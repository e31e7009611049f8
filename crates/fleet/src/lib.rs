//! The I/O of many hosts: their inputs, the part of each shard, the file that holds the profiles of hosts, and the merge of such files; the
//! attributes of hosts, and the groups that they explain; the answer, as reports print it.
//!
//! A crate of its own because a fleet file is untrusted input: the fuzzer reaches libraries, and not the program. It reads no trace,
//! applies no rule and starts no thread; `plumb fleet` does that with the code of `plumb analyze`. `docs/formats/fleet.md` describes the
//! file.

#![forbid(unsafe_code)]

pub mod answer;
pub mod file;
pub mod groups;
pub mod host;
pub mod inventory;
pub mod merge;
pub mod slowness;
pub mod source;
pub mod windows;

pub use file::{FleetError, FleetReader, FleetWriter};
pub use groups::{Group, Groups, Member, Population};
pub use host::{HostFacts, HostIo, InputMark, ObservedTime};
pub use inventory::{Attributes, HostAttributes, Inventory, InventoryError, attributes_of_path};
pub use merge::{FleetMerge, HostParts, MergeError};
pub use slowness::{ClassMeans, Latencies, Slowness};
pub use source::{Shard, Source, SourceError, Sources, find_sources};
pub use windows::{WindowChoice, WindowName, file_name, object_key};
