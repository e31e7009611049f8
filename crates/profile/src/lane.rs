//! What goes on on one device at one layer: its profile in the making, and beside it what depends on order.
//!
//! Events come in blocks, and a block goes through one measure after the other. What is counted per event is
//! counted in plain arrays, and put into the profile when it is taken.

use std::sync::Arc;

use plumb_trace::{Batch, DeviceId, Layer, Names, Op, UNKNOWN_NS, UNKNOWN_PID, flags};
use rustc_hash::FxHashMap;

use crate::columns::{BLOCK_EVENTS, Ios};
use crate::histogram::{LOG_LINEAR_BUCKETS, log_linear_index, power_index};
use crate::in_flight::{NO_THREAD, Pending};
use crate::profile::{Ordered, Places, Profile, TimeBase};
use crate::streams::{RUN_LENGTH_MIN, Streams};
use crate::table::Table;
use crate::timeline::Open;
use crate::top::Share;

/// Commands with a lower number are counted by number, others in a map: numbers are shared with file names, of
/// which there may be many.
const NUMBERED_MAX: usize = 256;

/// Most entries of a map that waits to go into the list of processes.
const WAITING_MAX: usize = 4096;

type LogLinear = [u64; LOG_LINEAR_BUCKETS];

/// One device at one layer; see the module.
pub(crate) struct Lane {
    profile: Profile,
    /// Known partitions by their first bytes.
    parts: Vec<Part>,
    streams: Streams,
    pending: Pending,
    open: Open,
    last_issue_ns: Option<i64>,
    last_end: Option<u64>,
    /// Whether each I/O of the block continues a stream.
    continues: Vec<bool>,
    /// Reads and writes; the rare others are counted in the profile.
    device_ns: Box<[LogLinear; 2]>,
    queue_ns: Box<[LogLinear; 2]>,
    interarrival_ns: Box<LogLinear>,
    seeks: Seeks,
    names: Arc<Names>,
    numbered: Vec<Share>,
    named: FxHashMap<u32, Share>,
    unnamed: FxHashMap<i32, Share>,
}

struct Part {
    name: String,
    places: Places,
}

impl Lane {
    pub(crate) fn new(
        batch: &Batch,
        device: DeviceId,
        layer: Layer,
        table: &Table,
        time_base: TimeBase,
    ) -> Lane {
        let known = batch.names.devices().get(device as usize).cloned().unwrap_or_default();
        let mut table = table.clone();
        if let Some(size) = known.size_bytes {
            table.set_region_shift((64 - size.saturating_sub(1).leading_zeros()).saturating_sub(6));
        }
        let mut profile = Profile::new(&known.name, layer, table);
        // The piece counts where it begins: a window that is cut out later is no piece of its own.
        profile.pieces = 1;
        profile.size_bytes = known.size_bytes;
        profile.logical_block_bytes = known.logical_block_bytes;
        profile.time_base = time_base;
        Lane {
            profile,
            parts: Vec::new(),
            streams: Streams::default(),
            pending: Pending::default(),
            open: Open::default(),
            last_issue_ns: None,
            last_end: None,
            continues: Vec::new(),
            device_ns: Box::new([[0; LOG_LINEAR_BUCKETS]; 2]),
            queue_ns: Box::new([[0; LOG_LINEAR_BUCKETS]; 2]),
            interarrival_ns: Box::new([0; LOG_LINEAR_BUCKETS]),
            seeks: Seeks::default(),
            names: Arc::default(),
            numbered: Vec::new(),
            named: FxHashMap::default(),
            unnamed: FxHashMap::default(),
        }
    }

    /// Takes note of what the source has revealed since.
    pub(crate) fn learn(&mut self, batch: &Batch, device: DeviceId, table: &Table) {
        if Arc::ptr_eq(&self.names, &batch.names) {
            return;
        }
        self.names = batch.names.clone();
        let Some(known) = batch.names.devices().get(device as usize) else { return };
        for (name, first_byte) in &known.partitions {
            if self.parts.iter().all(|part| part.name != *name) {
                let places = Places::with_table(table.clone(), *first_byte);
                let at = self.parts.partition_point(|part| part.places.first_byte <= *first_byte);
                self.parts.insert(at, Part { name: name.clone(), places });
            }
        }
    }

    /// Takes events in, in issue order.
    pub(crate) fn fold(&mut self, ios: &Ios<'_>) {
        for first in (0..ios.len()).step_by(BLOCK_EVENTS) {
            let ios = ios.part(first..ios.len().min(first + BLOCK_EVENTS));
            self.order(&ios);
            self.profile.places.add_all(&ios, &self.continues);
            self.part(&ios);
            self.course(&ios);
            self.queue(&ios);
            self.space(&ios);
            if ios.may_be_timed() {
                self.flights(&ios);
            }
            if ios.may_have_processes() {
                self.processes(&ios);
            }
        }
        if self.named.len().max(self.unnamed.len()) > WAITING_MAX {
            self.name_processes();
        }
    }

    /// The end of the piece: what is in flight completes.
    pub(crate) fn finish(&mut self) {
        self.pending.finish(&mut self.profile.ordered.in_flight);
    }

    /// The profile since it was last taken. Streams and I/O in flight go on.
    pub(crate) fn take(&mut self, table: &Table) -> Profile {
        self.close();
        let mut next = Profile::new(&self.profile.device, self.profile.layer, table.clone());
        next.time_base = self.profile.time_base;
        next.size_bytes = self.profile.size_bytes;
        next.logical_block_bytes = self.profile.logical_block_bytes;
        let mut done = std::mem::replace(&mut self.profile, next);
        for part in &mut self.parts {
            let next = Places::with_table(table.clone(), part.places.first_byte);
            done.partitions.insert(part.name.clone(), std::mem::replace(&mut part.places, next));
        }
        done
    }

    /// Puts everything that is counted beside the profile into it.
    fn close(&mut self) {
        self.profile.timeline.close(&mut self.open);
        let profile = &mut self.profile;
        let [reads, writes, ..] = &mut profile.ops;
        // The windows hold all reads and writes, since they are as old as the profile.
        for (_, window) in profile.timeline.iter() {
            for (totals, sizes, bytes) in [
                (&mut *reads, &window.read_sizes, window.read_bytes),
                (&mut *writes, &window.write_sizes, window.write_bytes),
            ] {
                totals.sizes.merge(sizes);
                totals.bytes = totals.bytes.saturating_add(bytes);
            }
        }
        for (op, totals) in profile.ops.iter_mut().enumerate().take(2) {
            totals.ios = totals.sizes.total();
            totals.device_ns.take_from(&mut self.device_ns[op]);
            totals.timed = totals.device_ns.total();
            totals.queue_ns.take_from(&mut self.queue_ns[op]);
        }
        profile.ordered.interarrival_ns.take_from(&mut self.interarrival_ns[..]);
        self.seeks.put_into(&mut profile.ordered);
        self.name_processes();
    }

    /// Streams, runs and seeks.
    fn order(&mut self, ios: &Ios<'_>) {
        let ordered = &mut self.profile.ordered;
        self.continues.clear();
        for ((&op, &start), &len) in ios.op.iter().zip(ios.start_bytes).zip(ios.len_bytes) {
            if len == 0 {
                self.continues.push(false);
                continue;
            }
            let (continues, chain) = self.streams.issue(op, start, len);
            self.continues.push(continues);
            ordered.continuing += u64::from(continues);
            if chain >= RUN_LENGTH_MIN {
                count_run(ordered, chain);
            }
            if let Some(last_end) = self.last_end {
                self.seeks.add(last_end, start);
            }
            self.last_end = Some(start.saturating_add(len));
        }
    }

    /// The residue tables of known partitions. One reaches to the next; several that begin at one place hold the
    /// same.
    fn part(&mut self, ios: &Ios<'_>) {
        if self.parts.is_empty() {
            return;
        }
        for row in 0..ios.len() {
            let (op, start, len) = (ios.op[row], ios.start_bytes[row], ios.len_bytes[row]);
            let mut at = self.parts.partition_point(|part| part.places.first_byte <= start);
            let Some(first_byte) = at.checked_sub(1).map(|at| self.parts[at].places.first_byte) else {
                continue;
            };
            while len > 0 && at > 0 && self.parts[at - 1].places.first_byte == first_byte {
                at -= 1;
                self.parts[at].places.add(op, start, len, self.continues[row], ios.device_ns(row));
            }
        }
    }

    /// The course over time; totals of reads and writes come from it.
    fn course(&mut self, ios: &Ios<'_>) {
        let Profile { timeline, ops, .. } = &mut self.profile;
        timeline.make_ready(ios.start_bytes.iter().copied().max().unwrap_or(0), &mut self.open);
        let region_shift = timeline.region_shift();
        let any_failed = ios.flags.iter().fold(0, |all, flags| all | flags) & flags::FAILED != 0;
        for row in 0..ios.len() {
            let (op, len, ns) = (ios.op[row], ios.len_bytes[row], ios.device_ns(row));
            // The windows also hold the totals, so I/O of unknown time need one: the first.
            let time_ns = ios.time_ns[row];
            timeline.go_to(if time_ns == UNKNOWN_NS { 0 } else { time_ns }, &mut self.open);
            if op as usize > 1 {
                self.open.other_ios += 1;
                let totals = &mut ops[op as usize];
                totals.ios += 1;
                totals.bytes = totals.bytes.saturating_add(len);
                totals.sizes.add(power_index(len), 1);
                if ns != UNKNOWN_NS {
                    totals.timed += 1;
                    totals.device_ns.add(log_linear_index(ns.max(0).unsigned_abs()), 1);
                }
                continue;
            }
            self.open.place(op, ios.start_bytes[row], len, region_shift);
            if ns != UNKNOWN_NS {
                let ns = ns.max(0).unsigned_abs();
                self.open.time(ns);
                self.device_ns[op as usize & 1][log_linear_index(ns)] += 1;
            }
        }
        if any_failed {
            for (op, flags) in ios.op.iter().zip(ios.flags) {
                ops[*op as usize].failed += u64::from(flags & flags::FAILED != 0);
            }
        }
        let known = ios.time_ns.iter().copied().filter(|&time_ns| time_ns != UNKNOWN_NS);
        let (first, last) = (known.clone().min(), known.max());
        self.profile.first_ns = [self.profile.first_ns, first].into_iter().flatten().min();
        self.profile.last_ns = self.profile.last_ns.max(last);
    }

    /// Insert to issue.
    fn queue(&mut self, ios: &Ios<'_>) {
        for (&op, &ns) in ios.op.iter().zip(ios.queue_ns()) {
            if ns == UNKNOWN_NS {
                continue;
            }
            let index = log_linear_index(ns.max(0).unsigned_abs());
            match self.queue_ns.get_mut(op as usize) {
                Some(counts) => counts[index] += 1,
                None => self.profile.ops[op as usize].queue_ns.add(index, 1),
            }
        }
    }

    /// Time between issues, of those whose time is known.
    fn space(&mut self, ios: &Ios<'_>) {
        for &time_ns in ios.time_ns {
            if time_ns == UNKNOWN_NS {
                continue;
            }
            if let Some(last_ns) = self.last_issue_ns {
                let waited = time_ns.saturating_sub(last_ns).max(0).unsigned_abs();
                self.interarrival_ns[log_linear_index(waited)] += 1;
            }
            self.last_issue_ns = Some(time_ns);
        }
    }

    fn flights(&mut self, ios: &Ios<'_>) {
        let sums = &mut self.profile.ordered.in_flight;
        for (row, &time_ns) in ios.time_ns.iter().enumerate() {
            let ns = ios.device_ns(row);
            if ns != UNKNOWN_NS && time_ns != UNKNOWN_NS {
                let pid = ios.pid(row);
                let thread = if pid == UNKNOWN_PID { NO_THREAD } else { pid };
                self.pending.issue(time_ns, ns, thread, sums);
            }
        }
    }

    fn processes(&mut self, ios: &Ios<'_>) {
        for (row, &len) in ios.len_bytes.iter().enumerate() {
            let (comm, pid) = (ios.comm(row), ios.pid(row));
            let share = if let Some(share) = self.numbered.get_mut(comm as usize).filter(|_| comm > 0) {
                share
            } else if comm > 0 {
                self.rare_process(comm)
            } else if pid != UNKNOWN_PID {
                self.unnamed.entry(pid).or_default()
            } else {
                continue;
            };
            share.ios += 1;
            share.bytes = share.bytes.saturating_add(len);
        }
    }

    #[cold]
    fn rare_process(&mut self, comm: u32) -> &mut Share {
        let number = comm as usize;
        if number < NUMBERED_MAX {
            self.numbered.resize(number + 1, Share::default());
            return &mut self.numbered[number];
        }
        self.named.entry(comm).or_default()
    }

    /// Puts what was counted by number under the names.
    fn name_processes(&mut self) {
        let top = &mut self.profile.top;
        let numbered = self.numbered.iter_mut().map(std::mem::take).enumerate();
        let numbered = numbered.map(|(number, share)| (number as u32, share));
        for (number, share) in numbered.chain(self.named.drain()).filter(|(_, share)| share.ios > 0) {
            if let Some(name) = self.names.word_of(number) {
                top.add(name, share);
            }
        }
        for (pid, share) in self.unnamed.drain() {
            top.add(&format!("pid {pid}"), share);
        }
    }
}

impl Places {
    /// Counts I/O of the device.
    fn add_all(&mut self, ios: &Ios<'_>, continues: &[bool]) {
        self.table.add_all(ios, continues);
        for (row, (&start, continues)) in ios.start_bytes.iter().zip(continues).enumerate() {
            if !continues && ios.len_bytes[row] > 0 {
                self.add_head(ios.op[row], start);
            }
        }
    }

    /// Counts one I/O with an extent.
    fn add(&mut self, op: Op, start_bytes: u64, len_bytes: u64, continues: bool, device_ns: i64) {
        let device_ns = if device_ns == UNKNOWN_NS { None } else { Some(device_ns) };
        self.table.add(op, start_bytes, len_bytes, continues, device_ns);
        if !continues {
            self.add_head(op, start_bytes);
        }
    }

    #[inline(always)]
    fn add_head(&mut self, op: Op, start_bytes: u64) {
        match op {
            Op::Read => self.read_heads.add(start_bytes),
            Op::Write => self.write_heads.add(start_bytes),
            _ => {}
        }
    }
}

fn count_run(ordered: &mut Ordered, chain: u64) {
    if chain == RUN_LENGTH_MIN {
        ordered.run_ios += RUN_LENGTH_MIN;
        ordered.runs_reaching.add(0, 1);
    } else {
        ordered.run_ios += 1;
        if chain.is_power_of_two() {
            ordered.runs_reaching.add(chain.trailing_zeros() as usize, 1);
        }
    }
}

/// Distances by direction and power of two, in one array so that counting takes no branch.
struct Seeks(Box<[u64; 3 * SEEK_BUCKETS]>);

/// Powers of two of 64 bits: one more than there are bits.
const SEEK_BUCKETS: usize = 65;

impl Default for Seeks {
    fn default() -> Seeks {
        Seeks(Box::new([0; 3 * SEEK_BUCKETS]))
    }
}

impl Seeks {
    #[inline(always)]
    fn add(&mut self, from: u64, to: u64) {
        let direction = if to > from { 1 } else { 0 };
        let direction = if to == from { 2 } else { direction };
        self.0[direction * SEEK_BUCKETS + power_index(to.abs_diff(from))] += 1;
    }

    fn put_into(&mut self, ordered: &mut Ordered) {
        let seeks = &mut ordered.seeks;
        let (backward, rest) = self.0.split_at_mut(SEEK_BUCKETS);
        let (forward, none) = rest.split_at_mut(SEEK_BUCKETS);
        seeks.backward.take_from(backward);
        seeks.forward.take_from(forward);
        seeks.none += std::mem::take(&mut none[0]);
    }
}
