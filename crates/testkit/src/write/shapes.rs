//! The records of an event: a test's requirements for the life of a request.

/// The records to make. Every `_every` counts its own events: 0 is never, 1 is all, n every n-th.
#[derive(Debug, Clone)]
pub struct Shapes {
    /// CPUs of the host; an event's `cpu` is taken modulo this.
    pub cpus: u32,
    /// Monotonic clock at the workload's zero, ns; at least 11 ms, so that no record falls before 0.
    pub origin_ns: u64,
    /// Wall clock at the workload's zero, seconds since 1970: the timestamp note.
    pub wall_seconds: u32,
    /// Timestamp and process notes.
    pub notes: bool,
    /// A text note after an event.
    pub message_every: u64,
    /// The completion runs on the next CPU.
    pub foreign_completion_every: u64,
    /// The request is two bios: Q G Q M, then I D C of the whole.
    pub merge_every: u64,
    /// The bio is split in the middle: Q X, then two requests. Two requests for one event.
    pub split_every: u64,
    /// The request is put back once: D R before the D that counts.
    pub requeue_every: u64,
    /// A remap record before Q, from partition 1 that starts at this sector.
    pub partition_start_sectors: Option<u64>,
}

impl Default for Shapes {
    /// Plain requests on one CPU with notes, and every third completion on another CPU if there is one.
    fn default() -> Self {
        Self {
            cpus: 1,
            origin_ns: 1_000_000_000_000,
            wall_seconds: 1_590_506_586,
            notes: true,
            message_every: 0,
            foreign_completion_every: 3,
            merge_every: 0,
            split_every: 0,
            requeue_every: 0,
            partition_start_sectors: None,
        }
    }
}

impl Shapes {
    /// Every rare shape among plain ones, on a partition at sector 63.
    #[must_use]
    pub fn all(cpus: u32) -> Self {
        Self {
            cpus,
            message_every: 97,
            merge_every: 5,
            split_every: 7,
            requeue_every: 11,
            partition_start_sectors: Some(63),
            ..Self::default()
        }
    }
}
