//! Readers run to their end, and checks that several formats share.

pub mod counts;
pub mod lines;
pub mod tool;
