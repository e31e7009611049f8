//! Moves on a simulated disk that loses, reorders and tears what it was not told to flush.
//!
//! What is taken for possible in a crash is drawn in `docs/move.md`. The production code runs unchanged; only disk and
//! journal file are others.

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
