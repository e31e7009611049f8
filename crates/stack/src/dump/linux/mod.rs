//! What Linux tools print of disks, volumes and file systems.

use super::Format;
use crate::builder::Builder;

/// The formats, from the narrow to the wide.
pub(super) static FORMATS: &[&Format] = &[];

/// Connects what carries several names.
pub(super) fn join(_builder: &mut Builder) {}
