//! `plumb watch --app`: bytes that processes asked of file systems, beside bytes that the devices below moved for them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plumb_capture::{AccessWay, Asker, CallKind, Calls, CaptureError, FileSystem, Reading, Vfs};
use plumb_diagnose::{Diagnosis, Flow, Questions, Throughput, analyze, diagnose_throughput};
use plumb_geometry::SmallSort;
use plumb_model::result::watch::{self as result, AskedBy, AskedFlow, AskedOf, ProcessFlow};
use plumb_profile::{Profile, ProfileSet};
use plumb_trace::{Layer, Op};

use super::below::{MountsInUse, is_on};

/// The programs at the vfs layer, and the I/O since the beginning.
pub(super) struct App {
    vfs: Vfs,
    mounted: MountsInUse,
    /// Names of the disks that are watched; all when empty.
    disks: Vec<String>,
    is_synced: bool,
    file_systems: BTreeMap<FileSystem, Sum>,
    processes: BTreeMap<(u32, Option<FileSystem>), AskedBy>,
    of_unlisted_process: u64,
    /// The result of the last interval.
    pub(super) last: result::App,
}

/// I/O to a file system, and the bytes moved for it.
#[derive(Clone, Default)]
struct Sum {
    devices: Vec<String>,
    calls: [Calls; 4],
    /// Bytes read and written at the devices.
    device_bytes: [u64; 2],
    unknown_ways: BTreeSet<AccessWay>,
    device_unknown: Option<String>,
}

impl App {
    /// From here on everything counts. With `sync` the contents of the cache are written first.
    pub(super) fn attach(disks: &[u32], sync: bool) -> Result<App, CaptureError> {
        let vfs = Vfs::attach(None)?;
        let disks = disks
            .iter()
            .map(|disk| plumb_capture::name_of(*disk).name)
            .collect();
        let mut app = App {
            vfs,
            mounted: MountsInUse::default(),
            disks,
            is_synced: sync,
            file_systems: BTreeMap::new(),
            processes: BTreeMap::new(),
            of_unlisted_process: 0,
            last: result::App::default(),
        };
        if sync {
            app.sync();
            app.vfs.read(|_| String::new());
        }
        Ok(app)
    }

    /// The method of observing I/O.
    pub(super) fn how(&self) -> String {
        let uring = match self.vfs.sees_uring() {
            true => " and io_uring",
            false => "",
        };
        let mapped = match self.vfs.sees_mapped() {
            true => "; page faults of mapped files",
            false => "",
        };
        format!(
            "vfs layer by {}: system calls{uring}{mapped}",
            self.vfs.attached().text()
        )
    }

    /// Writes out the cache of the file systems on the disks that are watched.
    pub(super) fn sync(&mut self) {
        self.mounted.refresh();
        for mount in self.mounted.on_disks(&self.disks) {
            // One that cannot be opened or flushed leaves its writes in the cache, and the time unsynced.
            self.is_synced &= plumb_capture::write_out(Path::new(&mount)).is_ok();
        }
    }

    /// Whether the end is to be synced as the beginning was.
    pub(super) fn is_to_sync(&self) -> bool {
        self.is_synced
    }

    /// Takes in the I/O and moved bytes since the last call; returns their profiles.
    pub(super) fn add(&mut self, reading: &Reading) -> ProfileSet {
        self.mounted.refresh();
        let mounted = &self.mounted;
        let asked = self.vfs.read(|file_system| mounted.name(file_system));
        self.of_unlisted_process += asked.of_unlisted_process;
        let mut sums: BTreeMap<FileSystem, Sum> = BTreeMap::new();
        // Also those without new I/O: later writes of the cache are moved for earlier I/O.
        for file_system in self.file_systems.keys() {
            sums.insert(*file_system, Sum::default());
        }
        let mut processes = Vec::new();
        let mut astray = BTreeSet::new();
        for asker in &asked.askers {
            if asker.file_system.is_none() {
                astray.extend(asker.ways.iter().filter(|way| !way.is_counted()));
            }
            if let Some(file_system) = asker.file_system {
                if !self.is_watched(file_system) {
                    continue;
                }
                sums.entry(file_system).or_default().add(asker);
            }
            let process = self.process(asker, reading);
            let sum = self.processes.entry((asker.pid, asker.file_system));
            sum.and_modify(|sum| merge_process(sum, &process))
                .or_insert_with(|| process.clone());
            processes.push(process);
        }
        for (file_system, sum) in &mut sums {
            // The file system of these I/O is unknown, so it may have been any.
            sum.unknown_ways.extend(&astray);
            self.add_devices(*file_system, sum, reading);
        }
        for (file_system, sum) in &sums {
            self.file_systems
                .entry(*file_system)
                .or_default()
                .merge(sum);
        }
        let names: BTreeSet<String> = sums
            .keys()
            .map(|file_system| self.mounted.name(*file_system))
            .collect();
        let mut profiles = ProfileSet::default();
        for profile in asked
            .profiles
            .iter()
            .filter(|profile| names.contains(&profile.device))
        {
            profiles.add(profile);
        }
        // The cache is in every single interval.
        let file_systems = self.shown(&sums, false);
        self.last = result::App {
            file_systems,
            processes,
            of_unlisted_process: asked.of_unlisted_process,
        };
        profiles
    }

    fn is_watched(&mut self, file_system: FileSystem) -> bool {
        self.mounted.devices(file_system);
        self.mounted.is_known(file_system, &self.disks)
    }

    fn add_devices(&mut self, file_system: FileSystem, sum: &mut Sum, reading: &Reading) {
        sum.devices = self.mounted.devices(file_system);
        sum.device_unknown = if sum.devices.is_empty() {
            Some("its device is not known".to_owned())
        } else if let Some(device) = sum
            .devices
            .iter()
            .find(|device| !is_on(device, &self.disks))
        {
            Some(format!("{device} is not watched"))
        } else {
            self.mounted.shared(file_system, &sum.devices)
        };
        for device in &sum.devices {
            for (op, bytes) in [Op::Read, Op::Write].into_iter().zip(&mut sum.device_bytes) {
                *bytes += bytes_of(&reading.profiles, device, op);
            }
        }
    }

    fn process(&mut self, asker: &Asker, reading: &Reading) -> AskedBy {
        let devices = asker
            .file_system
            .map(|file_system| self.mounted.devices(file_system))
            .unwrap_or_default();
        let sent = reading
            .processes
            .iter()
            .filter(|process| process.pid == asker.pid && devices.contains(&process.device));
        let sent = sent.map(|process| process.bytes).sum();
        AskedBy {
            comm: asker.comm.clone(),
            pid: asker.pid,
            file_system: asker
                .file_system
                .map(|file_system| self.mounted.name(file_system)),
            reads: process_flow(asker, CallKind::Read, CallKind::DirectRead),
            writes: process_flow(asker, CallKind::Write, CallKind::DirectWrite),
            failed: asker.failed,
            device_bytes: (!devices.is_empty()).then_some(sent),
            ways: asker.ways.iter().map(|way| way.text()).collect(),
            unknown_ways: asker
                .ways
                .iter()
                .filter(|way| !way.is_counted())
                .map(|way| way.text())
                .collect(),
            mapped_files: asker.mapped,
        }
    }

    /// The I/O of the whole time.
    pub(super) fn whole(&self) -> result::App {
        let mut processes: Vec<AskedBy> = self.processes.values().cloned().collect();
        processes.small_sort_by_key(|by| {
            std::cmp::Reverse(by.reads.counted_bytes + by.writes.counted_bytes)
        });
        let file_systems = self.shown(&self.file_systems, true);
        result::App {
            file_systems,
            processes,
            of_unlisted_process: self.of_unlisted_process,
        }
    }

    /// Whether all bytes written in the whole time are at the device. File systems that are mounted elsewhere, and the cache of a
    /// device node, were never written out.
    fn is_synced(&self, file_system: FileSystem) -> bool {
        self.is_synced && !file_system.is_node && self.mounted.is_mounted(file_system)
    }

    fn shown(&self, sums: &BTreeMap<FileSystem, Sum>, is_whole_time: bool) -> Vec<AskedOf> {
        let used = sums.iter().filter(|(_, sum)| !sum.is_idle());
        let of = |(file_system, sum): (&FileSystem, &Sum)| {
            sum.shown(
                self.mounted.name(*file_system),
                is_whole_time && self.is_synced(*file_system),
            )
        };
        let mut shown: Vec<AskedOf> = used.map(of).collect();
        shown.small_sort_by_key(|of| {
            std::cmp::Reverse(of.reads.counted_bytes + of.writes.counted_bytes)
        });
        shown
    }

    /// Judges the whole time.
    pub(super) fn diagnose(&self, profiles: &ProfileSet, questions: &Questions) -> Diagnosis {
        let mut diagnosis = Diagnosis::default();
        for (file_system, sum) in self.file_systems.iter().filter(|(_, sum)| !sum.is_idle()) {
            let name = self.mounted.name(*file_system);
            let Some(profile) = profiles.find(&name, Layer::Vfs) else {
                continue;
            };
            let analysis = analyze(profile, None, questions);
            let throughput = sum.throughput(self.is_synced(*file_system));
            diagnosis.absorb(diagnose_throughput(
                profile,
                &analysis,
                questions,
                &throughput,
            ));
        }
        diagnosis
    }
}

/// Bytes of a disk or partition.
fn bytes_of(profiles: &ProfileSet, device: &str, op: Op) -> u64 {
    let at_requests = profiles
        .iter()
        .filter(|profile| profile.layer == Layer::Request);
    at_requests
        .map(|profile| bytes_in(profile, device, op))
        .sum()
}

fn bytes_in(profile: &Profile, device: &str, op: Op) -> u64 {
    if profile.device == device {
        return profile.op(op).bytes;
    }
    let Some(part) = profile.partitions.get(device) else {
        return 0;
    };
    let unit = part.table.unit_bytes();
    let of_op = part.table.iter().filter(|(key, _)| key.op() == op);
    of_op.map(|(key, row)| key.length() * unit * row.ios).sum()
}

fn both(calls: &[Calls; 4], kinds: [CallKind; 2]) -> Calls {
    let mut sum = Calls::default();
    kinds
        .into_iter()
        .for_each(|kind| sum += calls[kind as usize]);
    sum
}

fn process_flow(asker: &Asker, cached: CallKind, direct: CallKind) -> ProcessFlow {
    let Calls {
        calls,
        asked_bytes,
        moved_bytes,
    } = both(&asker.calls, [cached, direct]);
    let direct_bytes = asker.calls_of(direct).asked_bytes;
    let is_all = asker.ways.iter().all(|way| way.is_counted());
    let all_bytes = is_all.then_some(asked_bytes);
    ProcessFlow {
        calls,
        asked_bytes: all_bytes,
        counted_bytes: asked_bytes,
        moved_bytes,
        direct_bytes,
    }
}

fn merge_process(sum: &mut AskedBy, other: &AskedBy) {
    for (sum, other) in [
        (&mut sum.reads, &other.reads),
        (&mut sum.writes, &other.writes),
    ] {
        sum.calls += other.calls;
        // A number that was unknown once is missing in the sum.
        sum.asked_bytes = sum
            .asked_bytes
            .zip(other.asked_bytes)
            .map(|(one, other)| one + other);
        sum.counted_bytes += other.counted_bytes;
        sum.moved_bytes += other.moved_bytes;
        sum.direct_bytes += other.direct_bytes;
    }
    sum.failed += other.failed;
    sum.device_bytes = sum
        .device_bytes
        .zip(other.device_bytes)
        .map(|(one, other)| one + other);
    // A file may be mapped no more.
    add_new(&mut sum.ways, &other.ways);
    add_new(&mut sum.unknown_ways, &other.unknown_ways);
    if let Some(more) = other.mapped_files {
        *sum.mapped_files.get_or_insert_default() += more;
    }
}

fn add_new(ways: &mut Vec<&'static str>, others: &[&'static str]) {
    let new: Vec<&str> = others
        .iter()
        .copied()
        .filter(|way| !ways.contains(way))
        .collect();
    ways.extend(new);
}

impl Sum {
    fn add(&mut self, asker: &Asker) {
        self.calls
            .iter_mut()
            .zip(asker.calls)
            .for_each(|(sum, calls)| *sum += calls);
        self.unknown_ways
            .extend(asker.ways.iter().filter(|way| !way.is_counted()));
    }

    fn merge(&mut self, other: &Sum) {
        self.devices.clone_from(&other.devices);
        self.calls
            .iter_mut()
            .zip(other.calls)
            .for_each(|(sum, calls)| *sum += calls);
        self.device_bytes
            .iter_mut()
            .zip(other.device_bytes)
            .for_each(|(sum, bytes)| *sum += bytes);
        self.unknown_ways.extend(&other.unknown_ways);
        // A number that was unknown once is missing in the sum.
        self.device_unknown = self
            .device_unknown
            .take()
            .or_else(|| other.device_unknown.clone());
    }

    fn is_idle(&self) -> bool {
        self.calls.iter().all(|calls| calls.calls == 0) && self.unknown_ways.is_empty()
    }

    fn throughput(&self, is_synced: bool) -> Throughput {
        let flow = |cached: CallKind, direct: CallKind, device_bytes: u64| {
            let all = both(&self.calls, [cached, direct]);
            let direct_bytes = self.calls[direct as usize].asked_bytes;
            Flow {
                calls: all.calls,
                asked_bytes: all.asked_bytes,
                direct_bytes,
                device_bytes,
            }
        };
        Throughput {
            reads: flow(CallKind::Read, CallKind::DirectRead, self.device_bytes[0]),
            writes: flow(CallKind::Write, CallKind::DirectWrite, self.device_bytes[1]),
            uncounted: self
                .unknown_ways
                .iter()
                .map(|way| way.text().to_owned())
                .collect(),
            device_unknown: self.device_unknown.clone(),
            is_synced,
        }
    }

    fn shown(&self, name: String, is_synced: bool) -> AskedOf {
        let throughput = self.throughput(is_synced);
        let shown = |flow: &Flow, moved: [CallKind; 2], amplification: Option<f64>| AskedFlow {
            calls: flow.calls,
            asked_bytes: self.unknown_ways.is_empty().then_some(flow.asked_bytes),
            counted_bytes: flow.asked_bytes,
            moved_bytes: both(&self.calls, moved).moved_bytes,
            direct_bytes: flow.direct_bytes,
            device_bytes: throughput
                .device_unknown
                .is_none()
                .then_some(flow.device_bytes),
            amplification,
            ratio_with_cache: flow
                .ratio()
                .filter(|_| throughput.is_whole() && amplification.is_none()),
        };
        AskedOf {
            name,
            devices: self.devices.clone(),
            reads: shown(
                &throughput.reads,
                [CallKind::Read, CallKind::DirectRead],
                throughput.read_amplification(),
            ),
            writes: shown(
                &throughput.writes,
                [CallKind::Write, CallKind::DirectWrite],
                throughput.write_amplification(),
            ),
            unknown_ways: throughput.uncounted.clone(),
            device_unknown: throughput.device_unknown.clone(),
        }
    }
}
