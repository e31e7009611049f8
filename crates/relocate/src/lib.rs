//! Writes layouts: labels of disks, and the data of a partition moved to where it belongs, so that a crash at any point
//! loses no byte. The only crate that writes either.
//!
//! - [`labels`]: a partition elsewhere, a new label, a mended one; written so that the way back is saved first
//! - [`mod@fix_ups`]: what file systems note of their place
//! - [`raw`]: an open disk as readers and writers of labels want it

#![forbid(unsafe_code)]

pub mod fix_ups;
pub mod labels;
pub mod raw;

pub use raw::Raw;
