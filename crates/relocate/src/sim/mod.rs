//! Moves on a simulated disk that loses, reorders and tears writes without a flush.
//!
//! `docs/move.md` has the fault model. The production code runs unchanged; only disk and journal file are simulated.

mod case;
mod crash;
mod damage;
mod explore;
mod faults;
mod media;
mod medium;
pub(crate) mod memory_disk;
mod preflight;
mod recovery;
mod tests;
