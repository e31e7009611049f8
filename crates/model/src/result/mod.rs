//! Results of commands, a module for each command: the types that `report` renders and that serialise themselves. Only results
//! that no other crate makes are here. The crate that measures or judges keeps its own, as `load` and `diagnose` do.
//!
//! The field names are those of the JSON documents, whose schemas are in `docs/schema`. The types of this module are written and
//! never read.

pub mod api;
pub mod check;
pub mod fix;
pub mod history;
pub mod plan;
pub mod record;
pub mod verdict;
pub mod watch;
