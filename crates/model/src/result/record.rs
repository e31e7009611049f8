//! The result of `plumb record`.

use plumb_trace::Layer;
use serde::Serialize;

/// A recording that has ended.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded<'a> {
    /// How long it took.
    pub seconds: f64,
    /// Why it ended.
    pub ended: &'static str,
    /// Layers, and how they were recorded.
    pub how: &'a str,
    /// Files that were written, in order.
    pub files: &'a [File],
    /// Disks that received I/O.
    pub devices: &'a [DiskTally],
    /// I/O in the files, the deleted ones too.
    pub ios: u64,
    /// I/O that are in no file: there was no room for them in the buffer.
    pub lost: u64,
    /// I/O that came when the last file was full.
    pub after_the_end: u64,
    /// I/O that were in flight at the end, without latency.
    pub in_flight_at_end: u64,
    /// I/O that follow one in the file that was issued later.
    pub out_of_order: u64,
    /// Calls of the kernel programs that the kernel skipped: each may hide an I/O or its latency.
    pub skipped_calls: u64,
    /// Sentences that a reader must know.
    pub notes: &'a [String],
}

/// A file of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct File {
    /// Its name.
    pub path: String,
    /// I/O in it.
    pub ios: u64,
    /// Its length.
    pub bytes: u64,
    /// Whether it had to go for a further one.
    pub deleted: bool,
}

/// A disk of a recording: the counts of its I/O since the recording began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiskTally {
    /// Its name.
    pub device: String,
    /// Layer at which it was recorded.
    pub layer: Layer,
    /// I/O that were issued to it.
    pub sent: u64,
    /// Of these, in no file: there was no room for them in the buffer.
    pub lost: u64,
    /// Requests that were issued once more.
    pub requeues: u64,
    /// Completions of a part of a request.
    pub partial_completions: u64,
    /// Issues whose completion never came.
    pub unmatched_issues: u64,
    /// Completions without an issue: of I/O from before the recording began.
    pub unmatched_completions: u64,
    /// I/O with an unknown sender.
    pub unknown_senders: u64,
    /// Failed I/O without an issue, by operation.
    #[serde(skip)]
    pub unseen_failures: [u64; 6],
}
