//! One I/O in words.

use plumb_geometry::group_digits;
use plumb_profile::answers::{IoError, IoFile, Sender};
use plumb_profile::{Owner, SingleIo};

use super::command_of;
use crate::format::{bytes, ns};

/// `read of 8 KiB at sector 2,048, 3.6 s, by fio (712) of backup.service, file db.0 (inode 13)`.
pub(crate) fn single_io(io: &SingleIo) -> String {
    let mut words = format!("{}, {}", placed(io), ns(io.ns));
    if let Some(error) = io.error {
        words += &format!(", {}", cause(error));
    }
    if let Some(by) = &io.sender {
        words += &format!(", by {}", sender(by));
    }
    if let Some(file) = &io.file {
        let name = file.name.as_deref().unwrap_or("of unknown name");
        // The kernel's programs keep no more of a name.
        let end = if name.len() >= IoFile::NAME_BYTES {
            "..."
        } else {
            ""
        };
        let name = plumb_quoting::visible(name);
        words += &format!(", file {name}{end} (inode {})", file.inode);
    }
    words
}

/// `fio (712) of backup.service`.
pub(crate) fn sender(sender: &Sender) -> String {
    let comm = plumb_quoting::visible(&sender.comm);
    let owner = sender.cgroup.as_deref().and_then(Owner::of_cgroup);
    command_of(&format!("{comm} ({})", sender.pid), owner.as_ref())
}

/// The operation, the length and the place; a flush has no place.
fn placed(io: &SingleIo) -> String {
    if io.len_bytes == 0 {
        return io.op.word().to_owned();
    }
    let (len, sector) = (bytes(io.len_bytes), group_digits(io.start_bytes / 512));
    format!("{} of {len} at sector {sector}", io.op.word())
}

/// Why it failed, as the kernel log has it.
pub(crate) fn cause(error: IoError) -> &'static str {
    match error {
        IoError::Timeout => "timeout",
        IoError::NoSpace => "no space on the device",
        IoError::Transport => "transport error",
        IoError::Target => "error of the device",
        IoError::Reservation => "reserved by another host",
        IoError::Medium => "medium error",
        IoError::Protection => "wrong protection information",
        IoError::Memory => "no memory",
        IoError::Offline => "device offline",
        IoError::Io => "I/O error",
    }
}
