//! Profiles: the rest of I/O after the events have passed, and the questions it still answers exactly.

#![forbid(unsafe_code)]

pub mod answers;
mod bounded;
pub mod codec;
pub mod collector;
mod columns;
pub mod fit;
pub mod histogram;
pub mod imported;
pub mod in_flight;
pub mod infer;
mod lane;
pub mod latency_fit;
pub mod listing;
pub mod owner;
pub mod profile;
pub mod starts;
pub mod streams;
pub mod table;
pub mod timeline;
pub mod top;
pub mod what_if;

pub use answers::{Answers, SingleIo};
pub use collector::{Collector, Settings};
pub use fit::{FitTally, Select, Unknown};
pub use owner::Owner;
pub use profile::{Places, Profile, ProfileSet};
pub use table::Table;
