//! From counters that only grow to the activity between two readings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plumb_geometry::SmallSort;
use plumb_model::result::watch::Misses;
use plumb_profile::answers::{Answers, IoError, IoFile, Sender, SingleIo};
use plumb_profile::histogram::log_linear_bounds;
use plumb_profile::profile::TimeBase;
use plumb_profile::table::Row;
use plumb_profile::top::ProcessShare;
use plumb_profile::{Places, Profile, Settings, Table};
use plumb_trace::{Layer, Op};

use crate::abi;
use crate::clock::now_ns;
use crate::devices::{Device, name_of};
use crate::layer::BlockCounters;
use crate::reading::{ALIGNMENTS, Process, Reading};
use crate::sender_names::SenderNames;
use crate::sizes::Sizes;

/// Counters and their values at the last reading.
pub(crate) struct Readings {
    counters: BlockCounters,
    tables: Settings,
    rows: Vec<PreviousRow>,
    counts: Vec<u64>,
    devices: Vec<PreviousDevice>,
    /// Sums of each process in each lane.
    sent: Vec<PreviousSent>,
    /// When each process last sent something, by the clock of the programs.
    last_sent_ns: Vec<u64>,
    forget_after_ns: u64,
    totals: [u64; 3],
    names: BTreeMap<u32, Device>,
    /// Those of earlier readings, for devices that go.
    earlier_names: BTreeMap<u32, Device>,
    /// When the last reading was begun, by the clock of the programs.
    read_at_ns: u64,
    /// When threads were last counted, by the same clock.
    threads_read_ns: u64,
    /// End of the course over time: the start of the last reading, or the time at which the programs were attached.
    course_from_ns: u64,
}

/// A row as it was.
#[derive(Clone, Copy, Default)]
struct PreviousRow {
    ios: u64,
    sectors: u64,
    timed: Timed,
}

/// The completions of a row.
#[derive(Clone, Copy, Default)]
struct Timed {
    ios: u64,
    ns_sum: u64,
    ns_squared: u128,
}

impl Timed {
    /// Reads the sums in the opposite order to that in which the kernel programs add them.
    fn read(row: &abi::KernelRow) -> Timed {
        let (ios, ns_sum) = (now(&row.timed), now(&row.ns_sum));
        Timed {
            ios,
            ns_sum,
            ns_squared: squared(row),
        }
    }
}

/// The sums of a process in a lane as they were.
#[derive(Clone, Copy, Default)]
struct PreviousSent {
    bytes: u64,
    by_alignment: [u64; ALIGNMENTS],
    written_back: u64,
}

/// A device's own counters as they were.
#[derive(Clone, Copy, Default)]
struct PreviousDevice {
    misses: Misses,
    continuing: u64,
    run_ios: u64,
    failed: [u64; 6],
    last_issue_ns: u64,
}

/// Memory of [`Readings`] for maps of these sizes, at most, with the part that only a reading has.
pub(crate) fn buffer_bytes(sizes: &Sizes) -> usize {
    let rows = sizes.lanes * sizes.rows + sizes.coarse_rows;
    rows * (size_of::<PreviousRow>() + size_of::<Timed>())
        + sizes.counts() * size_of::<u64>()
        + sizes.devices * size_of::<PreviousDevice>()
        + sizes.sent() * size_of::<PreviousSent>()
        + sizes.processes * size_of::<u64>()
}

/// The layer at which a disk is watched.
fn layer_of(device: &abi::KernelDevice) -> Layer {
    match device.by_bios.load(Ordering::Relaxed) {
        0 => Layer::Request,
        _ => Layer::Bio,
    }
}

pub(crate) fn now(word: &AtomicU64) -> u64 {
    word.load(Ordering::Acquire)
}

/// The growth of a counter since `seen`, which becomes its present value.
pub(crate) fn grown(word: &AtomicU64, seen: &mut u64) -> u64 {
    let now = now(word);
    now.wrapping_sub(std::mem::replace(seen, now))
}

/// The letters up to the first that is 0.
pub(crate) fn text_of(words: &[AtomicU64]) -> String {
    let letters: Vec<u8> = words
        .iter()
        .flat_map(|word| now(word).to_ne_bytes())
        .collect();
    let end = letters
        .iter()
        .position(|&letter| letter == 0)
        .unwrap_or(letters.len());
    String::from_utf8_lossy(&letters[..end]).into_owned()
}

impl Readings {
    pub(crate) fn new(
        counters: BlockCounters,
        tables: Settings,
        forget_after: Duration,
    ) -> Readings {
        Readings {
            last_sent_ns: vec![0; counters.processes.len()],
            forget_after_ns: forget_after.as_nanos() as u64,
            tables,
            rows: vec![PreviousRow::default(); counters.rows.len() + counters.coarse_rows.len()],
            counts: vec![0; counters.counts.len()],
            devices: vec![PreviousDevice::default(); counters.devices.len()],
            sent: vec![PreviousSent::default(); counters.sent.len()],
            totals: [0; 3],
            names: BTreeMap::new(),
            earlier_names: BTreeMap::new(),
            read_at_ns: 0,
            threads_read_ns: 0,
            course_from_ns: now_ns(),
            counters,
        }
    }

    pub(crate) fn next(&mut self, names: &mut SenderNames) -> Reading {
        let present_ns = now_ns();
        // Numbers may have come to mean other devices.
        self.earlier_names.append(&mut self.names);
        let mut profiles: Vec<Option<Profile>> = (0..self.devices.len())
            .map(|index| self.begin(index))
            .collect();
        let mut reading = Reading::default();
        self.add_rows(&mut profiles);
        for (index, profile) in profiles.into_iter().enumerate() {
            let Some(mut profile) = profile else { continue };
            let misses = self.add_order(index, &mut profile);
            self.add_histograms(index, &mut profile);
            profile.ordered.in_flight.depth_max = Readings::deepest(&profile);
            profile.answers = Some(Box::new(self.answers(index, names)));
            bound_starts(&mut profile);
            if profile.has_io() || misses != Misses::default() {
                reading
                    .misses
                    .entry(profile.device.clone())
                    .or_default()
                    .add(&misses);
                profile.losses.lost = misses.unplaced;
                profile.losses.unmatched_issues = misses.unmatched_issues;
                profile.losses.unmatched_completions = misses.unmatched_completions;
                if profile.ios() > 0 {
                    let [from_ns, to_ns] = [self.course_from_ns, present_ns].map(u64::cast_signed);
                    profile.put_into_course(from_ns, to_ns);
                }
                reading.profiles.add(&profile);
            }
        }
        self.course_from_ns = present_ns;
        self.add_processes(&mut reading, names);
        let totals = &self.counters.totals[0];
        reading.unlisted = grown(&totals.unlisted_devices, &mut self.totals[0]);
        reading.of_unknown_sender = grown(&totals.unknown_senders, &mut self.totals[1]);
        reading.of_unlisted_process = grown(&totals.processes_lost, &mut self.totals[2]);
        self.read_at_ns = present_ns;
        reading
    }

    /// The slowest and the first failed I/O of a device since the watch began.
    fn answers(&self, index: usize, names: &mut SenderNames) -> Answers {
        let first = 2 * abi::KEPT * index;
        let mut kept = |range: std::ops::Range<usize>| {
            self.counters.kept[first + range.start..first + range.end]
                .iter()
                .filter_map(|io| self.single(io, names))
                .collect::<Vec<SingleIo>>()
        };
        let mut slowest = kept(0..abi::KEPT);
        slowest.small_sort_by(|a, b| b.cmp(a));
        let mut failed = kept(abi::KEPT..2 * abi::KEPT);
        failed.small_sort_by_key(|io| io.at_ns);
        Answers {
            slowest,
            failed,
            cached_reads: Some(now(&self.counters.devices[index].cached_reads)),
            ..Answers::default()
        }
    }

    /// An I/O that was kept; `None` for a free place, and for one that is written meanwhile.
    fn single(&self, io: &abi::Kept, names: &mut SenderNames) -> Option<SingleIo> {
        let ns = now(&io.ns);
        let len_bytes = u64::from(io.sectors.load(Ordering::Acquire)) * 512;
        let single = SingleIo {
            ns,
            at_ns: now(&io.ended_ns),
            op: Op::from_code(io.op.load(Ordering::Acquire) as u8)?,
            start_bytes: (now(&io.end) * 512).checked_sub(len_bytes)?,
            len_bytes,
            sender: self.sender(io.process.load(Ordering::Acquire), names),
            file: file(io),
            error: IoError::from_kernel(io.error.load(Ordering::Acquire)),
        };
        (ns > 0 && now(&io.ns) == ns).then_some(single)
    }

    fn sender(&self, process: u32, names: &mut SenderNames) -> Option<Sender> {
        let process = self.counters.processes.get(process as usize)?;
        let pid = now(&process.dev_tgid) as u32;
        (pid > 0).then(|| {
            let comm = text_of(&process.comm);
            Sender {
                cgroup: names.cgroup(now(&process.cgroup)),
                comm,
                pid,
            }
        })
    }

    /// The oldest I/O of a disk that is in flight and was issued at this time or later.
    pub(crate) fn oldest(
        &self,
        dev: u32,
        since_ns: u64,
        names: &mut SenderNames,
    ) -> Option<SingleIo> {
        let present_ns = now_ns();
        let is_of_disk = |flight: &&abi::Flight| {
            let device = flight.device.load(Ordering::Acquire) as usize;
            now(&flight.address) != 0
                && now(&flight.issued_ns) >= since_ns
                && self
                    .counters
                    .devices
                    .get(device)
                    .is_some_and(|device| device.dev.load(Ordering::Relaxed) == dev)
        };
        let in_flight = self.counters.flights().filter(is_of_disk);
        let oldest = in_flight.min_by_key(|flight| now(&flight.issued_ns))?;
        let len_bytes = u64::from(oldest.sectors.load(Ordering::Acquire)) * 512;
        Some(SingleIo {
            ns: present_ns.saturating_sub(now(&oldest.issued_ns)),
            at_ns: present_ns,
            op: Op::from_code(oldest.op.load(Ordering::Acquire) as u8)?,
            start_bytes: (now(&oldest.end) * 512).checked_sub(len_bytes)?,
            len_bytes,
            sender: self.sender(oldest.process.load(Ordering::Acquire), names),
            file: None,
            error: None,
        })
    }

    fn table(&self) -> Table {
        self.tables.table().unwrap_or_default()
    }

    fn device(&mut self, dev: u32) -> &Device {
        let earlier = &self.earlier_names;
        self.names.entry(dev).or_insert_with(|| {
            let known = name_of(dev);
            match earlier.get(&dev) {
                Some(earlier) if !known.is_there => earlier.clone(),
                _ => known,
            }
        })
    }

    /// An empty profile for a disk that is in use.
    fn begin(&mut self, index: usize) -> Option<Profile> {
        let device = &self.counters.devices[index];
        let (dev, shift) = (
            device.dev.load(Ordering::Relaxed),
            device.region_shift.load(Ordering::Relaxed),
        );
        let failed: u64 = device.failed.iter().map(now).sum();
        if dev == 0 || now(&device.issues) + now(&device.flushes) + failed == 0 {
            return None;
        }
        let table = self.table();
        let layer = layer_of(device);
        let known = self.device(dev);
        let mut profile = Profile::new(&known.name, layer, table);
        profile.size_bytes = Some(known.size_bytes).filter(|&bytes| bytes > 0);
        profile.logical_block_bytes = Some(known.logical_block_bytes).filter(|&bytes| bytes > 0);
        profile.time_base = TimeBase::Boot;
        profile.places.table.set_region_shift(shift);
        Some(profile)
    }

    /// Rows into the tables of their disks, and of their partitions.
    fn add_rows(&mut self, profiles: &mut [Option<Profile>]) {
        let empty = self.table();
        // All completions before all issues: a visible completion then has a visible issue, in any lane.
        let exact = self.counters.rows.len();
        let all = self
            .counters
            .rows
            .iter()
            .chain(self.counters.coarse_rows.iter());
        let timed: Vec<Timed> = all.map(Timed::read).collect();
        for (at, timed) in timed.into_iter().enumerate() {
            let row = match at.checked_sub(exact) {
                Some(at) => &self.counters.coarse_rows[at],
                None => &self.counters.rows[at],
            };
            let key = now(&row.key);
            if key == 0 {
                continue;
            }
            let key = abi::BlockKey::decode(key);
            let Some(op) = Op::from_code(key.op as u8) else {
                continue;
            };
            let place = now(&self.counters.places[key.place].dev_device);
            let (dev, index) = (place as u32, (place >> 32) as usize);
            // A disk that has come to be known since waits for the next reading.
            let Some(profile) = profiles.get_mut(index).and_then(Option::as_mut) else {
                continue;
            };
            let sectors_seen = self.rows[at].sectors;
            let Some(sums) = self.rows[at].grown(row, timed) else {
                continue;
            };
            let (residue, length) = (key.residue * 512, key.sectors * 512);
            if key.is_coarse {
                profile.places.table.round_lengths();
            }
            profile.add_residue(op, residue, length, key.continues, &sums);
            if key.is_coarse {
                // The sum of the lengths is known all the same.
                let bytes = &mut profile.ops[op as usize].bytes;
                let known = (self.rows[at].sectors - sectors_seen).saturating_mul(512);
                *bytes = bytes
                    .saturating_sub(length.saturating_mul(sums.ios))
                    .saturating_add(known);
            }
            let part = self.device(dev);
            if part.is_partition {
                let places = profile
                    .partitions
                    .entry(part.name.clone())
                    .or_insert_with(|| {
                        let mut places = Places::with_table(empty.clone(), part.first_byte);
                        places
                            .table
                            .set_region_shift(profile.places.table.region_shift());
                        places
                    });
                if key.is_coarse {
                    places.table.round_lengths();
                }
                places
                    .table
                    .add_row(op, residue, length, key.continues, &sums);
            }
        }
    }

    fn add_order(&mut self, index: usize, profile: &mut Profile) -> Misses {
        let (device, before) = (&self.counters.devices[index], &mut self.devices[index]);
        let seen = &mut before.misses;
        let misses = Misses {
            flushes: grown(&device.flushes, &mut seen.flushes),
            requeues: grown(&device.requeues, &mut seen.requeues),
            partial_completions: grown(&device.partial_completions, &mut seen.partial_completions),
            unmatched_issues: grown(&device.unmatched_issues, &mut seen.unmatched_issues),
            unmatched_completions: grown(
                &device.unmatched_completions,
                &mut seen.unmatched_completions,
            ),
            unplaced: grown(&device.unplaced, &mut seen.unplaced),
            splits: grown(&device.splits, &mut seen.splits),
        };
        let ordered = &mut profile.ordered;
        ordered.continuing = grown(&device.continuing, &mut before.continuing);
        ordered.run_ios = grown(&device.run_ios, &mut before.run_ios);
        for ((totals, failed), seen) in profile
            .ops
            .iter_mut()
            .zip(&device.failed)
            .zip(&mut before.failed)
        {
            totals.failed = grown(failed, seen);
        }
        let last = now(&device.last_issue_ns);
        // The first I/O since then is not counted: it was not before the last one, or before the last reading.
        let first = match before.last_issue_ns {
            0 => now(&device.first_ns),
            before => before.max(self.read_at_ns).min(last),
        };
        if last != before.last_issue_ns {
            profile.first_ns = Some(first as i64);
            profile.last_ns = Some(last as i64);
            profile.pieces = u64::from(before.last_issue_ns == 0);
        }
        before.last_issue_ns = last;
        misses
    }

    fn add_histograms(&mut self, index: usize, profile: &mut Profile) {
        for lane in 0..self.counters.lanes {
            for histogram in 0..abi::HISTOGRAMS {
                let first = ((lane * self.devices.len() + index) * abi::HISTOGRAMS + histogram)
                    * abi::BUCKETS;
                for bucket in 0..abi::BUCKETS {
                    let weight = grown(
                        &self.counters.counts[first + bucket],
                        &mut self.counts[first + bucket],
                    );
                    if weight > 0 {
                        put(profile, histogram, bucket, weight);
                    }
                }
            }
        }
    }

    /// The deepest queue that lasted for any time, as far as the buckets tell it apart.
    fn deepest(profile: &Profile) -> u64 {
        let last = profile.ordered.in_flight.depth_ns.iter().next_back();
        last.map_or(0, |(bucket, _)| log_linear_bounds(bucket).1)
    }

    fn add_processes(&mut self, reading: &mut Reading, names: &mut SenderNames) {
        let disks = self.disks();
        let threads = threads_since(&self.counters.threads, self.threads_read_ns);
        let present_ns = now_ns();
        self.threads_read_ns = present_ns;
        let mut in_flight: Option<BTreeSet<u32>> = None;
        let mut rows: BTreeMap<u64, usize> = BTreeMap::new();
        for (index, process) in self.counters.processes.iter().enumerate() {
            let dev_tgid = now(&process.dev_tgid);
            if dev_tgid == 0 {
                continue;
            }
            let (dev, pid) = ((dev_tgid >> 32) as u32, dev_tgid as u32);
            let last_sent_ns = &mut self.last_sent_ns[index];
            if *last_sent_ns == 0 {
                *last_sent_ns = present_ns;
            }
            let is_idle = present_ns - *last_sent_ns >= self.forget_after_ns;
            // A disk that has come to be known since waits for the next reading. A disk that is not watched has no I/O.
            let Some((disk, layer)) = disks.get(&dev).copied() else {
                if is_idle {
                    forget(process, last_sent_ns);
                }
                continue;
            };
            let (mut bytes, mut written_back, mut by_alignment) = (0, 0, [0; ALIGNMENTS]);
            for lane in (index..self.sent.len()).step_by(self.counters.processes.len()) {
                let (sent, seen) = (&self.counters.sent[lane], &mut self.sent[lane]);
                bytes += grown(&sent.bytes, &mut seen.bytes);
                written_back += grown(&sent.written_back, &mut seen.written_back);
                let words = sent.by_alignment.iter().zip(&mut seen.by_alignment);
                by_alignment
                    .iter_mut()
                    .zip(words)
                    .for_each(|(ios, (word, seen))| *ios += grown(word, seen));
            }
            let ios = by_alignment.iter().sum();
            if ios == 0 {
                if !is_idle {
                    continue;
                }
                // The table of flights is long, and seldom asked for. An I/O may end meanwhile and be kept.
                let is_kept = || is_kept(&self.counters, index as u32);
                let mut is_in_flight = || {
                    in_flight
                        .get_or_insert_with(|| processes_in_flight(&self.counters))
                        .contains(&(index as u32))
                };
                if is_kept() || is_in_flight() || is_kept() {
                    continue;
                }
                forget(process, last_sent_ns);
                let mut lanes = (index..self.sent.len()).step_by(self.counters.processes.len());
                if lanes.any(|lane| now(&self.counters.sent[lane].bytes) != self.sent[lane].bytes) {
                    // It sent something meanwhile: it stays, unless another one has the entry by now.
                    let _ = process.dev_tgid.compare_exchange(
                        0,
                        dev_tgid,
                        Ordering::AcqRel,
                        Ordering::Acquire,
                    );
                }
                continue;
            }
            *last_sent_ns = present_ns;
            let comm = text_of(&process.comm);
            let cgroup = names.cgroup(now(&process.cgroup));
            let command_line = names.command_line(pid, &comm);
            let mut name = |dev: u32| {
                self.names
                    .entry(dev)
                    .or_insert_with(|| name_of(dev))
                    .name
                    .clone()
            };
            let (device, disk) = (name(dev), name(disk));
            if reading.profiles.find(&disk, layer).is_some() {
                let profile = reading.profiles.entry(&disk, layer, Table::default);
                profile.top.add(&comm, ProcessShare { ios, bytes });
            }
            let threads = threads.get(&(index as u32)).copied().unwrap_or(0);
            let process = Process {
                device,
                disk,
                pid,
                comm,
                cgroup,
                command_line,
                ios,
                written_back,
                bytes,
                threads,
                by_alignment,
            };
            if let Some(at) = rows.get(&dev_tgid) {
                // It got a second entry, when one before its own became free.
                reading.processes[*at].add(process);
                continue;
            }
            rows.insert(dev_tgid, reading.processes.len());
            reading.processes.push(process);
        }
        reading
            .processes
            .small_sort_by_key(|process| std::cmp::Reverse(process.ios));
    }

    /// The disk of each disk and partition that was seen, by number, and its layer.
    fn disks(&self) -> BTreeMap<u32, (u32, Layer)> {
        let places = self
            .counters
            .places
            .iter()
            .map(|place| now(&place.dev_device));
        places
            .filter(|place| *place != 0)
            .filter_map(|place| {
                let disk = self.counters.devices.get((place >> 32) as usize)?;
                let known = (disk.dev.load(Ordering::Relaxed), layer_of(disk));
                Some((place as u32, known))
            })
            .collect()
    }
}

/// Processes by index that I/O in flight name.
fn processes_in_flight(counters: &BlockCounters) -> BTreeSet<u32> {
    let in_flight = counters.flights();
    in_flight
        .filter(|flight| now(&flight.address) != 0)
        .map(|flight| flight.process.load(Ordering::Acquire))
        .collect()
}

/// Whether one of the slowest or the failed I/O names a process, by its index.
fn is_kept(counters: &BlockCounters, process: u32) -> bool {
    let mut kept = counters.kept.iter();
    kept.any(|io| io.process.load(Ordering::Acquire) == process)
}

/// Gives the entry of a process free for another one.
fn forget(process: &abi::Process, last_sent_ns: &mut u64) {
    *last_sent_ns = 0;
    process.dev_tgid.store(0, Ordering::Release);
}

/// The file of an I/O, if the kernel's programs saw it.
fn file(io: &abi::Kept) -> Option<IoFile> {
    let (inode, name) = (now(&io.inode), text_of(&io.name));
    (inode > 0).then(|| IoFile {
        inode,
        name: Some(name).filter(|name| !name.is_empty()),
    })
}

/// How often a single place was touched is counted by disk: no place of a partition was touched more often.
fn bound_starts(profile: &mut Profile) {
    let Places {
        read_heads,
        write_heads,
        ..
    } = &profile.places;
    for part in profile.partitions.values_mut() {
        part.read_heads.merge(read_heads);
        part.write_heads.merge(write_heads);
    }
}

/// Distinct threads of each process, by its index, that sent an I/O after a time. One that did so less than
/// 2^[`abi::SEEN_BITS`] ns before may count as well.
fn threads_since(threads: &[abi::Thread], since_ns: u64) -> BTreeMap<u32, u64> {
    let mut by_process = BTreeMap::new();
    for thread in threads {
        let (who, seen_ns) = (now(&thread.process_thread), now(&thread.seen_ns));
        if who != 0 && seen_ns >> abi::SEEN_BITS >= since_ns >> abi::SEEN_BITS {
            *by_process.entry((who >> 32) as u32).or_insert(0) += 1;
        }
    }
    by_process
}

/// Converts a bucket of a device's histograms to that of the profile.
fn put(profile: &mut Profile, histogram: usize, bucket: usize, weight: u64) {
    let ordered = &mut profile.ordered;
    match histogram {
        abi::DEVICE_NS..abi::QUEUE_NS => profile.ops[histogram - abi::DEVICE_NS]
            .device_ns
            .add(bucket, weight),
        abi::QUEUE_NS..abi::INTERARRIVAL_NS => {
            profile.ops[histogram - abi::QUEUE_NS]
                .queue_ns
                .add(bucket, weight);
        }
        abi::INTERARRIVAL_NS => ordered.interarrival_ns.add(bucket, weight),
        abi::DEPTH_NS | abi::DEPTH_LEFT_NS => ordered.in_flight.depth_ns.add(bucket, weight),
        abi::HEADS if bucket < 256 => profile.places.read_heads.add_counted(bucket, weight),
        abi::HEADS => profile.places.write_heads.add_counted(bucket - 256, weight),
        _ if bucket >= abi::RUNS_AT => ordered.runs_reaching.add(bucket - abi::RUNS_AT, weight),
        _ if bucket < abi::SEEK_BUCKETS => ordered.seeks.backward.add(bucket, weight),
        _ if bucket < 2 * abi::SEEK_BUCKETS => {
            ordered
                .seeks
                .forward
                .add(bucket - abi::SEEK_BUCKETS, weight);
        }
        _ => ordered.seeks.none += weight,
    }
}

/// The sum of squares; its halves are read until nothing was carried between them.
fn squared(row: &abi::KernelRow) -> u128 {
    loop {
        let (high, low) = (now(&row.ns_squared_high), now(&row.ns_squared_low));
        if now(&row.ns_squared_high) == high {
            return u128::from(high) << 64 | u128::from(low);
        }
    }
}

impl PreviousRow {
    /// The growth of the row; `None` without any.
    fn grown(&mut self, row: &abi::KernelRow, timed: Timed) -> Option<Row> {
        let next = PreviousRow {
            ios: now(&row.ios),
            sectors: now(&row.sectors),
            timed,
        };
        let before = std::mem::replace(self, next);
        let sums = Row {
            ios: next.ios - before.ios,
            timed: timed.ios - before.timed.ios,
            ns_sum: u128::from(timed.ns_sum.wrapping_sub(before.timed.ns_sum)),
            ns_squared_sum: timed.ns_squared.saturating_sub(before.timed.ns_squared),
            regions: now(&row.regions),
        };
        (sums.ios > 0 || sums.timed > 0).then_some(sums)
    }
}
