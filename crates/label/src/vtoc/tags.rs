//! Tags of slices: `V_…` of illumos `sys/vtoc.h`, and the two of VxVM.

/// A file system beside root's: `format` calls a slice for data so.
pub const USR: u16 = 4;
/// The slice that stands for the whole disk.
pub const BACKUP: u16 = 5;

const NAMES: [(u16, &str); 14] = [
    (0, "unassigned"),
    (1, "boot"),
    (2, "root"),
    (3, "swap"),
    (USR, "usr"),
    (BACKUP, "backup"),
    (6, "stand"),
    (7, "var"),
    (8, "home"),
    (9, "alternate sectors"),
    (10, "cache"),
    (11, "reserved"),
    (14, "VxVM public"),
    (15, "VxVM private"),
];

/// The name of a tag; `None` if the table does not have it.
#[must_use]
pub fn name(tag: u16) -> Option<&'static str> {
    NAMES
        .iter()
        .find(|(number, _)| *number == tag)
        .map(|&(_, name)| name)
}
