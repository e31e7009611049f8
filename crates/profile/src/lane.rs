//! The activity on one device at one layer: its profile in the making, and beside it the state that depends on order.
//!
//! Events come in blocks, and a block goes through one measure after the other. Counts for each event are in plain
//! arrays, and go into the profile when it is taken.

use pulp::{Arch, NullaryFnOnce};

use plumb_trace::{Batch, DeviceId, Layer, Op, UNKNOWN_NS, flags};

use crate::columns::{BLOCK_EVENTS, Ios};
use crate::histogram::{LOG_LINEAR_BUCKETS, log_linear_index, power_index};
use crate::in_flight::InFlightIos;
use crate::profile::{OpTotals, Ordered, Places, Profile, TimeBase};
use crate::starts::Heads;
use crate::streams::{RUN_LENGTH_MIN, Streams, Told};
use crate::table::{Room, Table};
use crate::timeline::Open;

mod processes;
mod seeks;

use processes::Processes;
use seeks::Seeks;

/// Places for log-linear buckets: a power of two, so that a bucket with its operation is a place.
const LOG_LINEAR_PLACES: usize = LOG_LINEAR_BUCKETS.next_power_of_two();

type LogLinear = [u64; LOG_LINEAR_PLACES];

/// One device at one layer; see the module.
pub(crate) struct Lane {
    profile: Profile,
    /// Known partitions by their first bytes.
    parts: Vec<LanePart>,
    streams: Streams,
    pending: InFlightIos,
    open: Open,
    last_issue_ns: Option<i64>,
    /// The stream relation of each I/O of the block.
    told: Box<Told>,
    /// Into which bucket each I/O of the block goes, of the measure that is at work.
    buckets: Box<[u16; BLOCK_EVENTS]>,
    /// The number that the current measure sums for each I/O of the block.
    numbers: Box<[u64; BLOCK_EVENTS]>,
    /// Of the residue table.
    room: Box<Room>,
    /// Reads and writes; the rare others are counted in the profile.
    device_ns: Box<[LogLinear; 2]>,
    queue_ns: Box<[LogLinear; 2]>,
    interarrival_ns: Box<LogLinear>,
    heads: Heads,
    seeks: Seeks,
    processes: Processes,
}

struct LanePart {
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
        let name = batch
            .names
            .devices()
            .get(device as usize)
            .map_or("", |device| &device.name);
        let mut profile = Profile::new(name, layer, table.clone());
        // The piece counts in its first window: a later one is no separate piece.
        profile.pieces = 1;
        profile.time_base = time_base;
        Lane {
            profile,
            parts: Vec::new(),
            streams: Streams::default(),
            pending: InFlightIos::default(),
            open: Open::default(),
            last_issue_ns: None,
            told: Box::default(),
            buckets: Box::new([0; BLOCK_EVENTS]),
            numbers: Box::new([0; BLOCK_EVENTS]),
            room: Box::default(),
            device_ns: Box::new([[0; LOG_LINEAR_PLACES]; 2]),
            queue_ns: Box::new([[0; LOG_LINEAR_PLACES]; 2]),
            interarrival_ns: Box::new([0; LOG_LINEAR_PLACES]),
            heads: Heads::default(),
            seeks: Seeks::default(),
            processes: Processes::default(),
        }
    }

    /// Records new facts from the source. I/O of a partition count from the batch on that reveals it.
    pub(crate) fn learn(&mut self, batch: &Batch, device: DeviceId, table: &Table) {
        if !self.processes.learn(&batch.names) {
            return;
        }
        let Some(known) = batch.names.devices().get(device as usize) else {
            return;
        };
        let profile = &mut self.profile;
        profile.logical_block_bytes = profile.logical_block_bytes.max(known.logical_block_bytes);
        if known.size_bytes > profile.size_bytes {
            profile.size_bytes = known.size_bytes;
            let bits = 64
                - known
                    .size_bytes
                    .unwrap_or(0)
                    .saturating_sub(1)
                    .leading_zeros();
            profile
                .places
                .table
                .set_region_shift(bits.saturating_sub(6));
        }
        for (name, first_byte) in &known.partitions {
            if self.parts.iter().all(|part| part.name != *name) {
                let places = Places::with_table(table.clone(), *first_byte);
                let at = self
                    .parts
                    .partition_point(|part| part.places.first_byte <= *first_byte);
                self.parts.insert(
                    at,
                    LanePart {
                        name: name.clone(),
                        places,
                    },
                );
            }
        }
    }

    /// Takes events in, in issue order.
    pub(crate) fn fold(&mut self, ios: &Ios<'_>) {
        match known_span(ios.time_ns) {
            Some(span_ns) => self.fold_alike(ios, Some(span_ns)),
            None => self.fold_runs(ios),
        }
        self.processes.put_surplus_into(&mut self.profile.top);
    }

    /// Adds events with some unknown times.
    fn fold_runs(&mut self, ios: &Ios<'_>) {
        let mut first = 0;
        while let Some(&time_ns) = ios.time_ns.get(first) {
            let known = time_ns != UNKNOWN_NS;
            let alike = ios.time_ns[first..]
                .iter()
                .position(|&time_ns| (time_ns != UNKNOWN_NS) != known);
            let end = alike.map_or(ios.len(), |rows| first + rows);
            let ios = ios.part(first..end);
            self.fold_alike(&ios, known_span(ios.time_ns));
            first = end;
        }
    }

    /// Adds events with all times known, or none: the first and last of them. Without times, the time between issues,
    /// the I/O in flight and the timeline are unknown.
    fn fold_alike(&mut self, ios: &Ios<'_>, span_ns: Option<(i64, i64)>) {
        self.make_ready(ios, span_ns);
        for first in (0..ios.len()).step_by(BLOCK_EVENTS) {
            let ios = ios.part(first..ios.len().min(first + BLOCK_EVENTS));
            Arch::new().dispatch(FoldBlock {
                lane: self,
                ios,
                times_known: span_ns.is_some(),
            });
        }
    }

    #[inline(always)]
    fn fold_block(&mut self, ios: &Ios<'_>, times_known: bool) {
        self.order(ios);
        self.ways(ios);
        self.profile
            .places
            .table
            .add_block(ios, &self.told.continues, &mut self.room);
        self.part(ios);
        self.course(ios, times_known);
        if times_known {
            self.space(ios);
        }
        if times_known && ios.may_be_timed() {
            self.flights(ios);
        }
        if ios.may_have_processes() {
            self.processes.add(ios);
        }
    }

    /// The end of the piece: I/O in flight complete.
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
            done.partitions
                .insert(part.name.clone(), std::mem::replace(&mut part.places, next));
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
        profile
            .ordered
            .interarrival_ns
            .take_from(&mut self.interarrival_ns[..]);
        self.seeks.put_into(&mut profile.ordered.seeks);
        self.pending.put_into(&mut profile.ordered.in_flight);
        let Places {
            read_heads,
            write_heads,
            ..
        } = &mut profile.places;
        self.heads.put_into(read_heads, write_heads);
        self.processes.put_into(&mut profile.top);
    }

    /// Streams and runs.
    #[inline(always)]
    fn order(&mut self, ios: &Ios<'_>) {
        let (told, ordered) = (&mut *self.told, &mut self.profile.ordered);
        self.streams
            .issue_block(ios.op, ios.start_bytes, ios.len_bytes, told);
        let rows = ios.len().min(BLOCK_EVENTS);
        let (continues, chains) = (&told.continues[..rows], &told.chains[..rows]);
        ordered.continuing += continues
            .iter()
            .fold(0, |sum, &continues| sum + u64::from(continues));
        ordered.run_ios += chains
            .iter()
            .fold(0, |sum, &chain| sum + u64::from(chain >= RUN_LENGTH_MIN));
        // The chains that are to be counted move to the front, which takes no branch.
        let (chains, mut count) = (&mut told.chains, 0);
        for row in 0..rows {
            let chain = chains[row];
            chains[count % BLOCK_EVENTS] = chain;
            // Short chains become 5 or 7.
            let long = chain | (u64::from(chain < RUN_LENGTH_MIN) * 5);
            count += usize::from(long.is_power_of_two() | (long == RUN_LENGTH_MIN));
        }
        chains[..count]
            .iter()
            .for_each(|&chain| ordered.count_run(chain));
    }

    /// Seeks, and the starts of stream heads. Without branches, because heads are hard to predict.
    #[inline(always)]
    fn ways(&mut self, ios: &Ios<'_>) {
        self.heads
            .add_block(ios, &self.told.continues, &mut self.buckets);
        self.seeks.add_block(ios, &self.told.ends_bytes);
    }

    /// The residue tables of known partitions. One reaches to the next; several that begin at one place hold the
    /// same.
    #[inline(never)]
    fn part(&mut self, ios: &Ios<'_>) {
        if self.parts.is_empty() {
            return;
        }
        for row in 0..ios.len() {
            let (op, start, len) = (ios.op[row], ios.start_bytes[row], ios.len_bytes[row]);
            let mut at = self
                .parts
                .partition_point(|part| part.places.first_byte <= start);
            let Some(first_byte) = at.checked_sub(1).map(|at| self.parts[at].places.first_byte)
            else {
                continue;
            };
            while len > 0 && at > 0 && self.parts[at - 1].places.first_byte == first_byte {
                at -= 1;
                self.parts[at].places.add(
                    op,
                    start,
                    len,
                    self.told.continues[row],
                    ios.device_ns(row),
                );
            }
        }
    }

    /// Makes the timeline ready for events, and takes note of the first and last time.
    fn make_ready(&mut self, ios: &Ios<'_>, span_ns: Option<(i64, i64)>) {
        let (first_ns, last_ns) = span_ns.unwrap_or((0, 0));
        let starts = ios.start_bytes.iter().fold(0, |bits, start| bits | start);
        let profile = &mut self.profile;
        if span_ns.is_some() {
            profile.first_ns = Some(
                profile
                    .first_ns
                    .map_or(first_ns, |first| first.min(first_ns)),
            );
            profile.last_ns = Some(profile.last_ns.map_or(last_ns, |last| last.max(last_ns)));
        }
        profile.timeline.make_ready(starts, &mut self.open);
        profile.timeline.widen_to(first_ns, last_ns, &mut self.open);
        if ios.flags.iter().fold(0, |all, flags| all | flags) & flags::FAILED != 0 {
            for (op, flags) in ios.op.iter().zip(ios.flags) {
                profile.ops[*op as usize].failed += u64::from(flags & flags::FAILED != 0);
            }
        }
    }

    /// The course over time, from which the totals of reads and writes come, and latencies. Since the windows also
    /// hold the totals, I/O without a time need one as well: that of time 0.
    #[inline(always)]
    fn course(&mut self, ios: &Ios<'_>, times_known: bool) {
        let mut row = 0;
        while row < ios.len() {
            let times_ns = if times_known {
                &ios.time_ns[row..]
            } else {
                &[0]
            };
            let seen = self.profile.timeline.go_to(times_ns, &mut self.open);
            let rows = if times_known { seen } else { ios.len() };
            self.window(&ios.part(row..row + rows));
            row += rows;
        }
    }

    /// I/O of one window.
    #[inline(always)]
    fn window(&mut self, ios: &Ios<'_>) {
        let region_shift = self.profile.timeline.region_shift();
        self.open
            .place_all(ios, region_shift, &mut self.buckets, &mut self.numbers);
        self.open
            .time_all(ios.op, ios.devices_ns(), &mut self.numbers);
        count_times(
            ios.op,
            ios.devices_ns(),
            &mut self.device_ns,
            &mut self.buckets,
        );
        count_times(
            ios.op,
            ios.queues_ns(),
            &mut self.queue_ns,
            &mut self.buckets,
        );
        if ios
            .op
            .iter()
            .fold(false, |any, &op| any | (op as usize > 1))
        {
            self.others(ios);
        }
    }

    /// I/O of the rare operations.
    #[inline(never)]
    fn others(&mut self, ios: &Ios<'_>) {
        for (row, &op) in ios
            .op
            .iter()
            .enumerate()
            .filter(|&(_, &op)| op as usize > 1)
        {
            self.open.other_ios += 1;
            self.profile.ops[op as usize].add(
                ios.len_bytes[row],
                ios.device_ns(row),
                ios.queue_ns(row),
            );
        }
    }

    /// Time between issues.
    #[inline(always)]
    fn space(&mut self, ios: &Ios<'_>) {
        let (Some(&first_ns), Some(&last_ns)) = (ios.time_ns.first(), ios.time_ns.last()) else {
            return;
        };
        let bucket = |from_ns: i64, time_ns: i64| {
            let waited = if time_ns > from_ns {
                time_ns.wrapping_sub(from_ns) as u64
            } else {
                0
            };
            log_linear_index(waited.min(i64::MAX.unsigned_abs())) as u16
        };
        if let Some(from_ns) = self.last_issue_ns.replace(last_ns) {
            self.interarrival_ns[usize::from(bucket(from_ns, first_ns))] += 1;
        }
        let pairs = ios.time_ns.iter().zip(&ios.time_ns[1..]);
        for (at, (&from_ns, &time_ns)) in self.buckets.iter_mut().zip(pairs) {
            *at = bucket(from_ns, time_ns);
        }
        for &at in &self.buckets[..(ios.len() - 1).min(BLOCK_EVENTS)] {
            self.interarrival_ns[usize::from(at) % LOG_LINEAR_PLACES] += 1;
        }
    }

    #[inline(never)]
    fn flights(&mut self, ios: &Ios<'_>) {
        let timed = ios
            .time_ns
            .iter()
            .enumerate()
            .filter_map(|(row, &time_ns)| {
                let device_ns = ios.device_ns(row);
                (device_ns != UNKNOWN_NS).then_some((time_ns, device_ns, ios.thread(row)))
            });
        self.pending.issue_all(timed);
    }
}

/// A block's way through the measures, compiled for each kind of machine.
struct FoldBlock<'a> {
    lane: &'a mut Lane,
    ios: Ios<'a>,
    times_known: bool,
}

impl NullaryFnOnce for FoldBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.lane.fold_block(&self.ios, self.times_known);
    }
}

/// Counts the times of reads and writes that are known.
#[inline(always)]
fn count_times(
    op: &[Op],
    times_ns: &[i64],
    counts: &mut [LogLinear; 2],
    buckets: &mut [u16; BLOCK_EVENTS],
) {
    // Bucket, operation and whether it counts, each in some bits: worked out several at a time.
    for (at, (&op, &ns)) in buckets.iter_mut().zip(op.iter().zip(times_ns)) {
        let (op, counts) = (op as usize, op as usize <= 1 && ns != UNKNOWN_NS);
        let place = (op & 1) * LOG_LINEAR_PLACES + log_linear_index(ns.max(0).unsigned_abs());
        *at = (place | (usize::from(counts) * 2 * LOG_LINEAR_PLACES)) as u16;
    }
    let counts = counts.as_flattened_mut();
    for &at in &buckets[..times_ns.len().min(BLOCK_EVENTS)] {
        let at = usize::from(at);
        counts[at % (2 * LOG_LINEAR_PLACES)] += (at / (2 * LOG_LINEAR_PLACES)) as u64;
    }
}

/// The first and last of some times; `None` if one is unknown, or the list is empty.
fn known_span(times_ns: &[i64]) -> Option<(i64, i64)> {
    // The smallest number stands for an unknown time, so one pass without a branch tells both.
    let (first_ns, last_ns) = Arch::new().dispatch(|| {
        times_ns
            .iter()
            .fold((i64::MAX, UNKNOWN_NS), |(first, last), &ns| {
                (first.min(ns), last.max(ns))
            })
    });
    (!times_ns.is_empty() && first_ns != UNKNOWN_NS).then_some((first_ns, last_ns))
}

impl OpTotals {
    /// Counts an I/O of an operation that is rare.
    #[inline(never)]
    fn add(&mut self, len_bytes: u64, device_ns: i64, queue_ns: i64) {
        self.ios += 1;
        self.bytes = self.bytes.saturating_add(len_bytes);
        self.sizes.add(power_index(len_bytes), 1);
        if device_ns != UNKNOWN_NS {
            self.timed += 1;
            self.device_ns
                .add(log_linear_index(device_ns.max(0).unsigned_abs()), 1);
        }
        if queue_ns != UNKNOWN_NS {
            self.queue_ns
                .add(log_linear_index(queue_ns.max(0).unsigned_abs()), 1);
        }
    }
}

impl Places {
    /// Counts one I/O with an extent.
    fn add(&mut self, op: Op, start_bytes: u64, len_bytes: u64, continues: bool, device_ns: i64) {
        let device_ns = if device_ns == UNKNOWN_NS {
            None
        } else {
            Some(device_ns)
        };
        self.table
            .add(op, start_bytes, len_bytes, continues, device_ns);
        match op {
            Op::Read if !continues => self.read_heads.add(start_bytes),
            Op::Write if !continues => self.write_heads.add(start_bytes),
            _ => {}
        }
    }
}

impl Ordered {
    /// A chain has come to three I/O, which makes the two before part of a run, or to a power of two.
    #[cold]
    fn count_run(&mut self, chain: u64) {
        if chain == RUN_LENGTH_MIN {
            self.run_ios += RUN_LENGTH_MIN - 1;
            self.runs_reaching.add(0, 1);
        } else {
            self.runs_reaching.add(chain.trailing_zeros() as usize, 1);
        }
    }
}
