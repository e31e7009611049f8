//! The clock of the programs in the kernel.

use rustix::time::{ClockId, clock_gettime};

/// The time now, in ns.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
