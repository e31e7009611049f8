//! One I/O in words.

use plumb_geometry::group_digits;
use plumb_profile::SingleIo;
use plumb_profile::answers::IoError;

use super::owner_of_cgroup;
use crate::format::{bytes, ns};

/// `read of 8 KiB at sector 2,048, 3.6 s, by fio (712) of backup.service, file db.0 (inode 13)`.
pub(crate) fn single_io(io: &SingleIo) -> String {
    let mut words = format!("{}, {}", placed(io), ns(io.ns));
    if let Some(error) = io.error {
        words += &format!(", {}", cause(error));
    }
    if let Some(sender) = &io.sender {
        let comm = plumb_quoting::visible(&sender.comm);
        words += &format!(", by {comm} ({})", sender.pid);
        if let Some(owner) = owner_of_cgroup(sender.cgroup.as_deref()) {
            words += &format!(" of {owner}");
        }
    }
    if let Some(file) = &io.file {
        let name = file.name.as_deref().unwrap_or("of unknown name");
        let name = plumb_quoting::visible(name);
        words += &format!(", file {name} (inode {})", file.inode);
    }
    words
}

/// The operation, the length and the place.
fn placed(io: &SingleIo) -> String {
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
