//! The parts of the results of `plumb watch` and `plumb diagnose` that no other crate makes: the senders of I/O, the events
//! beside them, and the I/O of applications to file systems.

use plumb_profile::Owner;
use serde::Serialize;

/// The I/O of applications in a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct App {
    /// File systems, and devices that are used by their nodes, most bytes first.
    pub file_systems: Vec<AskedOf>,
    /// The processes, most bytes first.
    pub processes: Vec<AskedBy>,
    /// Calls of processes for which there was no room.
    pub of_unlisted_process: u64,
}

/// The I/O of applications to a file system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AskedOf {
    /// Its mount point, or its device.
    pub name: String,
    /// Disks and partitions below it.
    pub devices: Vec<String>,
    /// Reads.
    pub reads: AskedFlow,
    /// Writes.
    pub writes: AskedFlow,
    /// Ways that processes went and that are not counted.
    pub unknown_ways: Vec<String>,
    /// Why bytes at the device are not known.
    pub device_unknown: Option<String>,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AskedFlow {
    /// Calls that did not fail.
    pub calls: u64,
    /// Bytes asked for; `None` where a way is used that is not counted.
    pub asked_bytes: Option<u64>,
    /// Bytes that the calls asked for: all or a part of them.
    pub counted_bytes: u64,
    /// Bytes that they got.
    pub moved_bytes: u64,
    /// Bytes asked for past the cache.
    pub direct_bytes: u64,
    /// Bytes that the devices moved.
    pub device_bytes: Option<u64>,
    /// Bytes at the device per byte asked, where no cache is in it.
    pub amplification: Option<f64>,
    /// The same where the cache is in it.
    pub ratio_with_cache: Option<f64>,
}

/// The I/O of a process to a file system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AskedBy {
    /// Its command.
    pub comm: String,
    /// Its number.
    pub pid: u32,
    /// The file system; `None` where it is not known.
    pub file_system: Option<String>,
    /// Reads.
    pub reads: ProcessFlow,
    /// Writes.
    pub writes: ProcessFlow,
    /// Calls that failed.
    pub failed: u64,
    /// Bytes of requests that it sent to the devices itself; the kernel sends the later writes of the cache.
    pub device_bytes: Option<u64>,
    /// Ways that it went, with those that are not counted.
    pub ways: Vec<&'static str>,
    /// Those that are not counted.
    pub unknown_ways: Vec<&'static str>,
    /// Its use of mapped files, as far as the kernel showed any.
    pub mapped_files: Option<MappedPages>,
}

/// The use of mapped files. Neither number is a measure of the bytes that a program reads and writes there: it reads pages of
/// the cache without a fault, and it may store to a dirty page again and again. Stores of the kernel within a system call, for
/// instance by a `read` into a mapped file, do not count, and neither do files on overlayfs and DAX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MappedPages {
    /// Page faults for which the kernel asked the file system, those in programs and libraries included.
    #[serde(rename = "page_faults")]
    pub faults: u64,
    /// Pages, and large folios of the cache, that were clean before the program stored to them.
    #[serde(rename = "dirtied_pages")]
    pub dirtied: u64,
}

impl std::ops::AddAssign for MappedPages {
    fn add_assign(&mut self, other: MappedPages) {
        self.faults += other.faults;
        self.dirtied += other.dirtied;
    }
}

/// One direction of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessFlow {
    /// Calls that did not fail.
    pub calls: u64,
    /// Bytes asked for; `None` where a way is used that is not counted.
    pub asked_bytes: Option<u64>,
    /// Bytes that the calls asked for: all or a part of them.
    pub counted_bytes: u64,
    /// Bytes that they got.
    pub moved_bytes: u64,
    /// Bytes asked for past the cache.
    pub direct_bytes: u64,
}

/// The I/O of a process in an interval.
#[derive(Clone, Debug, Serialize)]
pub struct IntervalSender<'a> {
    /// The disk or partition that it used.
    pub device: &'a str,
    /// Its command.
    pub comm: &'a str,
    /// Its number.
    pub pid: u32,
    /// Path of its cgroup of version 2, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<&'a str>,
    /// The owner that this path names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Its arguments, separated by spaces, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_line: Option<&'a str>,
    /// I/O.
    pub ios: u64,
    /// I/O of these that a worker of the kernel wrote from pages which the process had made dirty.
    pub written_back: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// Distinct threads that sent I/O during the interval.
    pub threads: u64,
    /// I/O that start off the grid; `None` when that was not counted for this grid.
    pub misaligned: Option<u64>,
    /// Whether other disks of the interval received the I/O again.
    #[serde(skip)]
    pub is_seen_again: bool,
}

/// Other events of a device's I/O.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Apart<'a> {
    /// The disk.
    pub device: &'a str,
    /// Their counts.
    #[serde(flatten)]
    pub misses: &'a Misses,
}

/// Irregularities on a disk, and separate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Misses {
    /// Flushes, which have no place.
    pub flushes: u64,
    /// Requests that were issued once more; they count once.
    pub requeues: u64,
    /// Completions of a part of a request.
    pub partial_completions: u64,
    /// Issues whose completion never came.
    pub unmatched_issues: u64,
    /// Completions without an issue.
    pub unmatched_completions: u64,
    /// I/O counted without their place: the residue table had no row for them.
    pub unplaced: u64,
    /// Number of I/O that were cut in two, because they were too long for the device or crossed a boundary of it.
    pub splits: u64,
}

impl Misses {
    /// Adds the counts of another time or layer.
    pub fn add(&mut self, other: &Misses) {
        self.flushes += other.flushes;
        self.requeues += other.requeues;
        self.partial_completions += other.partial_completions;
        self.unmatched_issues += other.unmatched_issues;
        self.unmatched_completions += other.unmatched_completions;
        self.unplaced += other.unplaced;
        self.splits += other.splits;
    }
}

/// A disk that hands its I/O on to others of the interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SeenAgain<'a> {
    /// The disk.
    pub device: &'a str,
    /// Disks that received its I/O again.
    pub on: &'a [String],
}

/// The watch of `plumb diagnose`.
#[derive(Clone, Debug, Serialize)]
pub struct WatchSummary<'a> {
    /// How long it took.
    pub seconds: f64,
    /// Disks that were watched.
    pub disks: Vec<&'a str>,
    /// Of these, those with too few I/O to judge them.
    pub too_few: Vec<&'a str>,
    /// Senders of I/O, most first.
    #[serde(rename = "processes")]
    pub senders: Vec<IntervalSender<'a>>,
}
