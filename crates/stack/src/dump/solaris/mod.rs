//! What Solaris prints of its disks and volumes.

use super::Format;
use crate::builder::Builder;

/// The formats, from the narrow to the wide.
pub(super) static FORMATS: &[&Format] = &[];

/// Connects slices with their disks.
pub(super) fn join(_builder: &mut Builder) {}
