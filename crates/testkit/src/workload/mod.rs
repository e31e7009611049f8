//! Synthetic workloads with known answers, each an iterator of events from a few parameters and a seed.

pub mod misfits;
pub mod mixed;
pub mod oltp;
pub mod pace;
pub mod recent;
pub mod streams;

pub use misfits::{MisfitKind, PlantedMisfits};
pub use mixed::Mixed;
pub use oltp::Oltp;
pub use streams::Streams;
