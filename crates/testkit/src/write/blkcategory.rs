//! Category bits of blktrace, in their place above the action number.

/// Read.
pub const READ: u64 = 1 << 16;
/// Write, and also discard and flush.
pub const WRITE: u64 = 1 << 17;
/// Cache flush.
pub const FLUSH: u64 = 1 << 18;
/// Synchronous.
pub const SYNC: u64 = 1 << 19;
/// Queue events.
pub const QUEUE: u64 = 1 << 20;
/// Requeue events.
pub const REQUEUE: u64 = 1 << 21;
/// Issue events.
pub const ISSUE: u64 = 1 << 22;
/// Completion events.
pub const COMPLETE: u64 = 1 << 23;
/// Requests of a file system.
pub const FS: u64 = 1 << 24;
/// Notes, not I/O.
pub const NOTIFY: u64 = 1 << 26;
/// Discard.
pub const DISCARD: u64 = 1 << 29;
