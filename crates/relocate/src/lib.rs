//! Writes layouts: labels of disks, and the data of a partition moved to where it belongs, so that a crash at any point
//! loses no byte. The only crate that writes either.
