//! Results of commands, a module for each command: the types that `report` renders and that serialise themselves. These are the
//! results that only a command makes, with the counts that `capture` fills. `load` and `diagnose` define their own.
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
