//! The installed packages in the lists of package managers. A crate of its own because other programs write the lists, and fuzz targets
//! reach no code of the binary.
//!
//! - [`dpkg`]: its list, a text
//! - [`rpm`]: a header in the database of RPM
//!
//! Nothing here opens a file or a database, or waits for the end of a change: the agent does.

#![forbid(unsafe_code)]

pub mod dpkg;
pub mod rpm;

/// Most packages of a list that are read.
pub const PACKAGES_MAX: usize = 8_000;
