//! Counts the known values of the columns that text formats have no place for.

use crate::batch::{Batch, UNKNOWN_NS, UNKNOWN_PID};
use crate::write::Losses;

/// Latency.
pub fn count_latency(batch: &Batch, losses: &mut Losses) {
    losses.count("latency (device_ns)", count(&batch.device_ns, UNKNOWN_NS));
}

/// The sender of the I/O, and its flags.
pub fn count_sender(batch: &Batch, losses: &mut Losses) {
    losses.count(
        "time before issue (queue_ns)",
        count(&batch.queue_ns, UNKNOWN_NS),
    );
    losses.count("process (pid)", count(&batch.pid, UNKNOWN_PID));
    losses.count("thread (tid)", count(&batch.tid, UNKNOWN_PID));
    losses.count("command (comm)", count(&batch.comm, 0));
    losses.count("control group (cgroup)", count(&batch.cgroup, UNKNOWN_NS));
    losses.count("flags", count(&batch.flags, 0));
}

/// Everything beside time, device, place, operation and latency.
pub fn count_context(batch: &Batch, losses: &mut Losses) {
    count_sender(batch, losses);
    losses.count("file", count(&batch.file, 0));
}

fn count<T: PartialEq>(column: &[T], unknown: T) -> usize {
    column.iter().filter(|value| **value != unknown).count()
}
