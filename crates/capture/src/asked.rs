//! From counters of the vfs layer that only grow to the requests of processes between two readings.
//!
//! Bytes are never guessed. A process that reaches a file system's data in a way with unknown bytes is reported with
//! that way, and its other requests there are incomplete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use plumb_geometry::SmallSort;
use plumb_model::result::watch::MappedPages;
use plumb_profile::profile::TimeBase;
use plumb_profile::table::Row;
use plumb_profile::top::ProcessShare;
use plumb_profile::{ProfileSet, Table};
use plumb_trace::{Layer, Op};

use crate::abi::{self, VfsKey};
use crate::difference::{grown, now, text_of};
use crate::vfs::VfsCounters;

/// The requests of processes between two readings.
#[derive(Debug, Default)]
pub struct FileCalls {
    /// A profile for each file system and device node: extents of files that were read and written.
    pub profiles: ProfileSet,
    /// The processes, most bytes first.
    pub askers: Vec<Asker>,
    /// Calls of processes for which there was no room.
    pub of_unlisted_process: u64,
}

/// A file system, or a device that is used by its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileSystem {
    /// Its number: that of its device, or one of its own, as for btrfs.
    pub dev: u32,
    /// Whether the device itself is read and written.
    pub is_node: bool,
}

/// The requests of a process to one file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Number of the process.
    pub pid: u32,
    /// Its command.
    pub comm: String,
    /// The file system; `None` if only its use of uncounted ways is known.
    pub file_system: Option<FileSystem>,
    /// By [`CallKind`].
    pub calls: [Calls; abi::KINDS],
    /// Calls that failed; they are in no other figure.
    pub failed: u64,
    /// I/O that are in no table of the profile.
    pub unplaced: u64,
    /// Ways that it went since the watch began.
    pub ways: Vec<AccessWay>,
    /// Its use of mapped files, as far as the kernel showed any.
    pub mapped: Option<MappedPages>,
}

/// Calls of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls and requests that did not fail.
    pub calls: u64,
    /// Bytes that they asked for.
    pub asked_bytes: u64,
    /// Bytes that they got.
    pub moved_bytes: u64,
}

/// The kind of a call: an index into [`Asker::calls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Reads that may be met by the page cache.
    Read = 0,
    /// Writes into the page cache.
    Write = abi::KIND_WRITE as isize,
    /// Reads of a file that was opened with O_DIRECT.
    DirectRead = abi::KIND_DIRECT as isize,
    /// Writes to such a file.
    DirectWrite = (abi::KIND_DIRECT | abi::KIND_WRITE) as isize,
}

/// On which way a process comes to data of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessWay {
    /// System calls that read and write.
    Calls,
    /// Reads and writes of io_uring.
    Uring,
    /// Requests of io_uring without a completion.
    SilentUring,
    /// Requests by io_submit. They count when they are submitted, as if they moved all that they ask for: nothing tells their end.
    Aio,
    /// Files mapped into memory.
    Mapped,
    /// Calls of 32-bit programs.
    ForeignCalls,
    /// Calls whose file or request was not found again.
    Lost,
}

impl AccessWay {
    /// All ways, in the order of their bits.
    pub const ALL: [AccessWay; 7] = [
        AccessWay::Calls,
        AccessWay::Uring,
        AccessWay::SilentUring,
        AccessWay::Aio,
        AccessWay::Mapped,
        AccessWay::ForeignCalls,
        AccessWay::Lost,
    ];

    fn bit(self) -> u64 {
        (match self {
            AccessWay::Calls => abi::WAY_CALLS,
            AccessWay::Uring => abi::WAY_URING,
            AccessWay::SilentUring => abi::WAY_URING_SILENT,
            AccessWay::Aio => abi::WAY_AIO,
            AccessWay::Mapped => abi::WAY_MAPPED,
            AccessWay::ForeignCalls => abi::WAY_FOREIGN_CALLS,
            AccessWay::Lost => abi::WAY_LOST,
        }) as u64
    }

    /// Whether the bytes that go this way are counted.
    #[must_use]
    pub fn is_counted(self) -> bool {
        matches!(self, AccessWay::Calls | AccessWay::Uring | AccessWay::Aio)
    }

    /// Its text for the user.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            AccessWay::Calls => "calls",
            AccessWay::Uring => "io_uring",
            AccessWay::SilentUring => "io_uring without completions",
            AccessWay::Aio => "io_submit",
            AccessWay::Mapped => "mapped files",
            AccessWay::ForeignCalls => "32-bit calls",
            AccessWay::Lost => "calls that were lost",
        }
    }
}

impl std::ops::AddAssign for Calls {
    fn add_assign(&mut self, other: Calls) {
        self.calls += other.calls;
        self.asked_bytes += other.asked_bytes;
        self.moved_bytes += other.moved_bytes;
    }
}

impl Asker {
    /// Calls of one kind.
    #[must_use]
    pub fn calls_of(&self, kind: CallKind) -> Calls {
        self.calls[kind as usize]
    }

    /// Whether all that the process asked of the file system is in the figures.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.file_system.is_some() && self.ways.iter().all(|way| way.is_counted())
    }

    fn bytes(&self) -> u64 {
        self.calls.iter().map(|calls| calls.asked_bytes).sum()
    }

    fn is_idle(&self) -> bool {
        self.calls.iter().all(|calls| calls.calls == 0) && self.failed == 0 && self.mapped.is_none()
    }
}

/// Counters and their values at the last reading.
pub(crate) struct Tallies {
    counters: VfsCounters,
    rows: Vec<u64>,
    askers: Vec<PreviousAsker>,
    lost: u64,
    /// File systems that were in a reading before.
    told: BTreeSet<FileSystem>,
}

/// A process as it was.
#[derive(Clone, Copy, Default)]
struct PreviousAsker {
    calls: [Calls; abi::KINDS],
    failed: u64,
    unplaced: u64,
    ways: u64,
    mapped: MappedPages,
}

impl Tallies {
    pub(crate) fn new(counters: VfsCounters) -> Tallies {
        Tallies {
            rows: vec![0; counters.rows.len()],
            askers: vec![PreviousAsker::default(); counters.askers.len()],
            lost: 0,
            told: BTreeSet::new(),
            counters,
        }
    }

    pub(crate) fn next(
        &mut self,
        sees_mapped: bool,
        name: impl Fn(FileSystem) -> String,
    ) -> FileCalls {
        let mut asked = FileCalls::default();
        self.add_rows(&mut asked.profiles, &name);
        asked.askers = self.grown_askers(sees_mapped);
        for asker in &asked.askers {
            let Some(file_system) = asker.file_system else {
                continue;
            };
            let profile = asked
                .profiles
                .entry(&name(file_system), Layer::Vfs, Table::default);
            let ios = asker.calls.iter().map(|calls| calls.calls).sum();
            let bytes = asker.calls.iter().map(|calls| calls.moved_bytes).sum();
            profile.top.add(&asker.comm, ProcessShare { ios, bytes });
            profile.losses.lost += asker.unplaced;
        }
        asked.of_unlisted_process = grown(&self.counters.totals[0].processes_lost, &mut self.lost);
        asked
    }

    fn add_rows(&mut self, profiles: &mut ProfileSet, name: &impl Fn(FileSystem) -> String) {
        for (row, seen) in self.counters.rows.iter().zip(&mut self.rows) {
            let key = now(&row.key);
            if key == 0 {
                continue;
            }
            let ios = grown(&row.ios, seen);
            let key = VfsKey::decode(key);
            let Some(op) = Op::from_code(key.op as u8).filter(|_| ios > 0) else {
                continue;
            };
            let place = self
                .counters
                .places
                .get(key.place)
                .map_or(0, |place| now(&place.dev_device));
            let Some(file_system) = FileSystem::decode(place) else {
                continue;
            };
            let profile = profiles.entry(&name(file_system), Layer::Vfs, Table::default);
            profile.time_base = TimeBase::Boot;
            profile.pieces += u64::from(self.told.insert(file_system));
            profile
                .places
                .table
                .set_region_shift(abi::VFS_REGION_SHIFT as u32);
            let regions = now(&row.regions);
            let sums = Row {
                ios,
                timed: 0,
                ns_sum: 0,
                ns_squared_sum: 0,
                regions,
            };
            profile.add_residue(op, key.residue, key.len_bytes, key.continues, &sums);
            profile.ordered.continuing += if key.continues { ios } else { 0 };
        }
    }

    /// Processes that asked something, with the ways that are known of each process alone joined to those of its
    /// file systems.
    fn grown_askers(&mut self, sees_mapped: bool) -> Vec<Asker> {
        let mut of_process: BTreeMap<u32, u64> = BTreeMap::new();
        let mut all = Vec::new();
        for (asker, before) in self.counters.askers.iter().zip(&mut self.askers) {
            let tgid = now(&asker.tgid);
            // Free, or about to be made.
            if tgid <= 1 {
                continue;
            }
            let ways_before = before.ways;
            let (mut asker, mut ways) = before.grown(tgid as u32, asker);
            let Some(file_system) = asker.file_system else {
                *of_process.entry(asker.pid).or_default() |= ways;
                if !asker.is_idle() || ways != ways_before {
                    all.push((asker, ways));
                }
                continue;
            };
            if asker.is_idle() && ways == ways_before {
                continue;
            }
            if ways & AccessWay::Mapped.bit() == 0 && has_mapped(asker.pid, file_system) {
                ways |= AccessWay::Mapped.bit();
            }
            // Without data that are mapped, the faults are those of the program and its libraries.
            let maps_data = ways & AccessWay::Mapped.bit() != 0;
            asker.mapped = asker.mapped.filter(|_| sees_mapped && maps_data);
            if !asker.is_idle() || ways != ways_before {
                all.push((asker, ways));
            }
        }
        let with_files: Vec<u32> = all
            .iter()
            .filter(|(asker, _)| asker.file_system.is_some())
            .map(|(asker, _)| asker.pid)
            .collect();
        // Facts about a process alone are reported with its file systems, if it used any.
        all.retain(|(asker, _)| asker.file_system.is_some() || !with_files.contains(&asker.pid));
        let mut askers: Vec<Asker> = all
            .into_iter()
            .map(|(mut asker, ways)| {
                let ways = ways | of_process.get(&asker.pid).copied().unwrap_or(0);
                asker.ways = AccessWay::ALL
                    .into_iter()
                    .filter(|way| ways & way.bit() != 0)
                    .collect();
                asker
            })
            .collect();
        askers.small_sort_by_key(|asker| std::cmp::Reverse(asker.bytes()));
        askers
    }
}

impl PreviousAsker {
    /// The requests of the process since then, and all ways that it ever used.
    fn grown(&mut self, pid: u32, asker: &abi::Asker) -> (Asker, u64) {
        let mut calls = [Calls::default(); abi::KINDS];
        for (kind, calls) in calls.iter_mut().enumerate() {
            let before = &mut self.calls[kind];
            *calls = Calls {
                calls: grown(&asker.calls[kind], &mut before.calls),
                asked_bytes: grown(&asker.asked_bytes[kind], &mut before.asked_bytes),
                moved_bytes: grown(&asker.moved_bytes[kind], &mut before.moved_bytes),
            };
        }
        self.ways = now(&asker.ways);
        let mapped = MappedPages {
            faults: grown(&asker.faults, &mut self.mapped.faults),
            dirtied: grown(&asker.stores, &mut self.mapped.dirtied),
        };
        let asker = Asker {
            pid,
            comm: text_of(&asker.comm),
            file_system: FileSystem::decode(now(&asker.file_system)),
            calls,
            failed: grown(&asker.failed, &mut self.failed),
            unplaced: grown(&asker.unplaced, &mut self.unplaced),
            ways: Vec::new(),
            mapped: Some(mapped).filter(|mapped| *mapped != MappedPages::default()),
        };
        (asker, self.ways)
    }
}

impl FileSystem {
    /// Decodes the word that the kernel programs write; `None` for 0.
    fn decode(word: u64) -> Option<FileSystem> {
        (word != 0).then_some(FileSystem {
            dev: word as u32,
            is_node: word >> abi::NODE_BIT & 1 == 1,
        })
    }
}

/// Whether a process may have files of a file system mapped: also those that it mapped before anybody watched.
fn has_mapped(pid: u32, file_system: FileSystem) -> bool {
    match fs::read(format!("/proc/{pid}/maps")) {
        Ok(maps) => maps_data(&String::from_utf8_lossy(&maps), file_system),
        // One that may not be looked at may have; one that ended has none any more.
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    }
}

/// Programs and libraries are mapped executable, in part, and are no data; neither is the loader's list of them.
fn maps_data(maps: &str, file_system: FileSystem) -> bool {
    let device = format!(
        "{:02x}:{:02x}",
        file_system.dev >> 20,
        file_system.dev & 0xf_ffff
    );
    let mut mapped: BTreeMap<&str, bool> = BTreeMap::new();
    for line in maps.lines() {
        let mut words = line.splitn(6, ' ');
        let (Some(mode), Some(of), Some(path)) = (words.nth(1), words.nth(1), words.nth(1)) else {
            continue;
        };
        if of == device && !file_system.is_node {
            *mapped.entry(path.trim_start()).or_default() |= mode.contains('x');
        }
    }
    mapped
        .iter()
        .any(|(path, is_program)| !is_program && !path.ends_with("/ld.so.cache"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_libraries_are_no_data() {
        let program = "55d0-55d8 r--p 00000000 fe:00 11 /bin/cat\n55d8-55dc r-xp 00008000 fe:00 11 /bin/cat\n";
        let list = "7f00-7f08 r--p 00000000 fe:00 12                         /etc/ld.so.cache\n";
        let data = "7f10-7f18 r--s 00000000 fe:01 13                         /srv/a file\n";
        let of = |minor: u32| FileSystem {
            dev: (0xfe << 20) | minor,
            is_node: false,
        };
        let maps = format!("{program}{list}{data}7ffc-7ffd rw-p 00000000 00:00 0    [stack]\n");
        assert!(!maps_data(&maps, of(0)));
        assert!(maps_data(&maps, of(1)));
        assert!(!maps_data(&maps, of(2)));
    }
}
