//! The activity between two readings, for callers.

use std::collections::BTreeMap;

use plumb_geometry::SmallSort;
use plumb_model::result::watch::Misses;
use plumb_profile::ProfileSet;

/// The activity between two readings.
#[derive(Debug, Default)]
pub struct Reading {
    /// A profile for each disk that received I/O, at the layer at which it is watched.
    pub profiles: ProfileSet,
    /// Irregularities, by disk.
    pub misses: BTreeMap<String, Misses>,
    /// Processes that sent I/O, most first.
    pub processes: Vec<Process>,
    /// I/O of devices for which there was no room.
    pub unlisted: u64,
    /// I/O with an unknown sender.
    pub of_unknown_sender: u64,
    /// I/O of processes for which there was no room.
    pub of_unlisted_process: u64,
    /// Events that the kernel's buffer had no room for, where the watch is by events: their I/O are in no figure, or without
    /// latency.
    pub lost: u64,
    /// Calls of the programs that the kernel skipped: each may hide an I/O or its latency.
    pub skipped_calls: u64,
    /// Disks that passed I/O on to others in the reading, with these: never add up the I/O of both.
    pub seen_again: BTreeMap<String, Vec<String>>,
}

/// The I/O of a process on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The disk or partition that it used.
    pub device: String,
    /// The disk.
    pub disk: String,
    /// Its number.
    pub pid: u32,
    /// Its command.
    pub comm: String,
    /// Path of its cgroup of version 2 below the root of the hierarchy, when it was first seen; `None` if unknown.
    pub cgroup: Option<String>,
    /// Its arguments, if they were asked for and it still ran.
    pub command_line: Option<String>,
    /// I/O.
    pub ios: u64,
    /// I/O of these that a worker of the kernel wrote from pages which the process had made dirty.
    pub written_back: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// Distinct threads that sent these I/O.
    pub threads: u64,
    /// I/O by the power of two, in sectors, that divides their start; the last stands for all above.
    pub by_alignment: [u64; ALIGNMENTS],
}

/// Classes of [`Process::by_alignment`]: powers of two from a sector to 1 MiB.
pub const ALIGNMENTS: usize = 12;

/// The class of [`Process::by_alignment`] for an I/O that starts at this byte of a disk; 0 also off a sector.
#[must_use]
pub fn alignment_of(start_bytes: u64) -> usize {
    let power = start_bytes.trailing_zeros().saturating_sub(SECTOR_POWER);
    (power as usize).min(ALIGNMENTS - 1)
}

/// A sector has 2^9 bytes.
pub(crate) const SECTOR_POWER: u32 = 9;

impl Reading {
    /// Adds the I/O of another layer in the same time.
    pub(crate) fn add(&mut self, other: Reading) {
        self.add_misses(&other);
        self.profiles.merge(&other.profiles);
        self.processes.extend(other.processes);
        self.processes
            .small_sort_by_key(|process| std::cmp::Reverse(process.ios));
    }

    /// Adds the irregularities of another reading.
    pub fn add_misses(&mut self, other: &Reading) {
        for (device, misses) in &other.misses {
            self.misses.entry(device.clone()).or_default().add(misses);
        }
        self.unlisted += other.unlisted;
        self.of_unknown_sender += other.of_unknown_sender;
        self.of_unlisted_process += other.of_unlisted_process;
        self.lost += other.lost;
        self.skipped_calls += other.skipped_calls;
        for (device, below) in &other.seen_again {
            let all = self.seen_again.entry(device.clone()).or_default();
            all.extend(below.iter().cloned());
            all.sort();
            all.dedup();
        }
    }
}

impl Process {
    /// Adds other I/O of the same process on the same device.
    pub fn add(&mut self, other: Process) {
        self.ios += other.ios;
        self.written_back += other.written_back;
        self.bytes += other.bytes;
        self.threads = self.threads.max(other.threads);
        // A search for its cgroup may have come later than its first I/O.
        self.cgroup = self.cgroup.take().or(other.cgroup);
        self.command_line = self.command_line.take().or(other.command_line);
        self.by_alignment
            .iter_mut()
            .zip(other.by_alignment)
            .for_each(|(mine, more)| *mine += more);
    }

    /// I/O that do not start at a multiple of 2^`power` sectors of the disk.
    #[must_use]
    pub fn misaligned(&self, power: usize) -> u64 {
        self.by_alignment.iter().take(power).sum()
    }
}
