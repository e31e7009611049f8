//! From events to profiles.
//!
//! A collector takes the batches of one piece (a file, a recording) in issue order. What depends on order is kept
//! beside the profiles and outlives [`Collector::cut`], so that windows cut out of one piece add up to the
//! profile of the whole.

use plumb_trace::{
    Batch, Clock, DeviceId, Fill, IOS_MAX, Layer, Op, SourceInfo, UNKNOWN_NS, UNKNOWN_PID, flags,
};

use crate::histogram::{log_linear_index, power_index};
use crate::in_flight::{NO_THREAD, Pending};
use crate::profile::{Losses, Places, Profile, ProfileSet, TimeBase};
use crate::streams::{RUN_LENGTH_MIN, Streams};
use crate::table::{MODULUS_BYTES, ModulusError, Row, Table};
use crate::timeline::Seen;
use crate::top::Share;

/// Layers that a device may have events of.
const LAYERS: usize = Layer::ALL.len();

/// How profiles are to be made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// M of the residue tables, in bytes.
    pub modulus_bytes: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { modulus_bytes: MODULUS_BYTES }
    }
}

/// What goes on on one device at one layer.
struct Lane {
    profile: Profile,
    streams: Streams,
    pending: Pending,
    last_issue_ns: Option<i64>,
    last_end: Option<u64>,
    processes: Vec<Share>,
    unnamed: rustc_hash::FxHashMap<i32, Share>,
}

/// Columns of the events of one lane, gathered from a batch that mixes lanes.
#[derive(Default)]
struct Scratch {
    time_ns: Vec<i64>,
    op: Vec<Op>,
    flags: Vec<i32>,
    start_bytes: Vec<u64>,
    len_bytes: Vec<u64>,
    queue_ns: Vec<i64>,
    device_ns: Vec<i64>,
    pid: Vec<i32>,
    comm: Vec<u32>,
    chain: Vec<u64>,
}

/// Makes profiles of one piece; see the module.
pub struct Collector {
    table: Table,
    lanes: Vec<Option<Box<Lane>>>,
    rows_of: Vec<Vec<u32>>,
    scratch: Scratch,
    ready_made: ProfileSet,
    time_base: TimeBase,
}

impl Collector {
    /// An empty collector.
    ///
    /// # Errors
    /// When the modulus is not one that a table can have.
    pub fn new(settings: &Settings) -> Result<Collector, ModulusError> {
        Ok(Collector {
            table: Table::new(settings.modulus_bytes)?,
            lanes: Vec::new(),
            rows_of: Vec::new(),
            scratch: Scratch::default(),
            ready_made: ProfileSet::default(),
            time_base: TimeBase::Unknown,
        })
    }

    /// Says what the times of the events count from.
    pub fn set_clock(&mut self, clock: Clock) {
        self.time_base = match clock {
            Clock::Unix => TimeBase::Unix,
            Clock::Boot => TimeBase::Boot,
            Clock::Start => TimeBase::Start,
            Clock::Unknown => TimeBase::Unknown,
        };
    }

    /// Takes events in, in issue order.
    pub fn fold(&mut self, batch: &Batch) {
        if batch.is_empty() {
            return;
        }
        self.group(batch);
        for lane in 0..self.rows_of.len() {
            if self.rows_of[lane].is_empty() {
                continue;
            }
            let rows = std::mem::take(&mut self.rows_of[lane]);
            self.scratch.gather(batch, &rows);
            self.rows_of[lane] = rows;
            self.fold_lane(lane, batch);
        }
    }

    /// Takes in what a source hands over ready-made.
    pub fn fold_ready_made(&mut self, given: &Fill, layer: Layer) {
        let table = || self.table.clone();
        match given {
            Fill::Residue(residues) => {
                let modulus = residues.modulus_bytes;
                for row in &residues.rows {
                    let table = || Table::new(modulus).unwrap_or_else(|_| table());
                    let profile = self.ready_made.entry(&row.device, layer, table);
                    let sums = Row {
                        ios: row.ios,
                        timed: row.timed_ios,
                        ns_sum: row.device_ns_sum,
                        ..Row::default()
                    };
                    profile.add_residue(row.op, row.residue_bytes, row.len_bytes, &sums);
                }
            }
            Fill::Distribution(histogram) => {
                self.ready_made.entry(&histogram.subject, layer, table).imported.add_histogram(histogram);
            }
            Fill::Totals(totals) => {
                self.ready_made.entry("all devices", layer, table).imported.add_totals(totals);
            }
            Fill::Events | Fill::End => {}
        }
    }

    /// The profiles since the last cut. Streams and I/O in flight go on.
    pub fn cut(&mut self) -> ProfileSet {
        let mut set = ProfileSet::default();
        let table = self.table.clone();
        for lane in self.lanes.iter_mut().flatten() {
            let next = Profile::new(&lane.profile.device, lane.profile.layer, table.clone());
            let next = next.with_parts_of(&lane.profile, &table);
            let done = std::mem::replace(&mut lane.profile, next);
            if done.ios() > 0 {
                set.add(&done);
            }
        }
        set
    }

    /// Ends the piece: what is in flight completes, what the source knows of itself goes into the profiles.
    #[must_use]
    pub fn finish(mut self, info: &SourceInfo) -> ProfileSet {
        for lane in self.lanes.iter_mut().flatten() {
            lane.pending.finish(&mut lane.profile.ordered.in_flight);
        }
        let first = self.lanes.iter().flatten().position(|lane| lane.profile.ios() > 0);
        for (at, lane) in self.lanes.iter_mut().flatten().enumerate() {
            lane.profile.pieces = 1;
            lane.profile.completion_order = info.completions_only;
            if Some(at) == first {
                // Losses of a source cannot be told by device; they are said once.
                lane.profile.losses = losses_of(info);
            }
        }
        let mut set = self.cut();
        set.merge(&self.ready_made.with_pieces());
        set
    }

    /// Sorts the rows of a batch by lane, keeping their order.
    fn group(&mut self, batch: &Batch) {
        for rows in &mut self.rows_of {
            rows.clear();
        }
        for row in 0..batch.len() {
            let lane = batch.device[row] as usize * LAYERS + batch.layer[row] as usize;
            if lane >= self.rows_of.len() {
                self.rows_of.resize_with(lane + 1, Vec::new);
                self.lanes.resize_with(lane + 1, || None);
            }
            self.rows_of[lane].push(row as u32);
        }
    }

    fn fold_lane(&mut self, index: usize, batch: &Batch) {
        let layer = Layer::ALL[index % LAYERS];
        let device = (index / LAYERS) as DeviceId;
        let (table, time_base) = (&self.table, self.time_base);
        let lane = self.lanes[index]
            .get_or_insert_with(|| Box::new(Lane::new(batch, device, layer, table, time_base)));
        lane.learn(batch, device, table);
        lane.fold(&mut self.scratch, batch);
    }
}

/// Bounded, since a source may claim any number.
fn losses_of(info: &SourceInfo) -> Losses {
    let bounded = |count: u64| count.min(IOS_MAX);
    Losses {
        lost: bounded(info.counts.lost),
        damaged: bounded(info.counts.damaged),
        unmatched_issues: bounded(info.counts.unmatched_issues),
        unmatched_completions: bounded(info.counts.unmatched_completions),
        late_completions: bounded(info.counts.late_completions),
        out_of_order: bounded(info.counts.out_of_order),
    }
}

impl ProfileSet {
    fn with_pieces(self) -> ProfileSet {
        let mut set = ProfileSet::default();
        for profile in self.iter() {
            let mut profile = profile.clone();
            profile.pieces = 1;
            set.add(&profile);
        }
        set
    }
}

impl Profile {
    /// What a lane's next profile knows already of the device.
    fn with_parts_of(mut self, before: &Profile, table: &Table) -> Profile {
        self.time_base = before.time_base;
        self.size_bytes = before.size_bytes;
        self.logical_block_bytes = before.logical_block_bytes;
        self.completion_order = before.completion_order;
        for (name, places) in &before.partitions {
            self.partitions.insert(name.clone(), Places::with_table(table.clone(), places.first_byte));
        }
        self
    }
}

impl Lane {
    fn new(batch: &Batch, device: DeviceId, layer: Layer, table: &Table, time_base: TimeBase) -> Lane {
        let known = batch.names.devices().get(device as usize).cloned().unwrap_or_default();
        let mut table = table.clone();
        if let Some(size) = known.size_bytes {
            table.set_region_shift(64 - size.saturating_sub(1).leading_zeros().min(63) - 6.min(64));
        }
        let mut profile = Profile::new(&known.name, layer, table);
        profile.size_bytes = known.size_bytes;
        profile.logical_block_bytes = known.logical_block_bytes;
        profile.time_base = time_base;
        Lane {
            profile,
            streams: Streams::default(),
            pending: Pending::default(),
            last_issue_ns: None,
            last_end: None,
            processes: Vec::new(),
            unnamed: rustc_hash::FxHashMap::default(),
        }
    }

    /// Takes note of partitions that the source has revealed since.
    fn learn(&mut self, batch: &Batch, device: DeviceId, table: &Table) {
        let Some(known) = batch.names.devices().get(device as usize) else { return };
        if known.partitions.len() == self.profile.partitions.len() {
            return;
        }
        for (name, first_byte) in &known.partitions {
            self.profile
                .partitions
                .entry(name.clone())
                .or_insert_with(|| Places::with_table(table.clone(), *first_byte));
        }
    }

    fn fold(&mut self, ios: &mut Scratch, batch: &Batch) {
        self.order(ios);
        self.place(ios);
        self.total(ios);
        self.flights(ios);
        self.processes(ios, batch);
        let seen = (0..ios.time_ns.len()).map(|row| Seen {
            time_ns: ios.time_ns[row],
            op: ios.op[row],
            start_bytes: ios.start_bytes[row],
            len_bytes: ios.len_bytes[row],
            device_ns: known(ios.device_ns[row]),
        });
        self.profile.timeline.add_all(seen);
    }

    /// Streams, runs, seeks and the time between issues.
    fn order(&mut self, ios: &mut Scratch) {
        let ordered = &mut self.profile.ordered;
        ios.chain.clear();
        for row in 0..ios.time_ns.len() {
            let (start, len) = (ios.start_bytes[row], ios.len_bytes[row]);
            if len == 0 {
                ios.chain.push(0);
                continue;
            }
            let chain = self.streams.issue(ios.op[row], start, len);
            ios.chain.push(chain);
            if chain > 1 {
                ordered.continuing += 1;
                if chain >= RUN_LENGTH_MIN {
                    count_run(ordered, chain);
                }
            }
            if let Some(last_end) = self.last_end {
                ordered.seeks.add(last_end, start);
            }
            self.last_end = Some(start.saturating_add(len));
        }
        for &time_ns in &ios.time_ns {
            if let Some(last_ns) = self.last_issue_ns {
                let waited = time_ns.saturating_sub(last_ns).max(0).unsigned_abs();
                ordered.interarrival_ns.add(log_linear_index(waited), 1);
            }
            self.last_issue_ns = Some(time_ns);
        }
        let first = ios.time_ns.iter().min().copied();
        let last = ios.time_ns.iter().max().copied();
        self.profile.first_ns = [self.profile.first_ns, first].into_iter().flatten().min();
        self.profile.last_ns = self.profile.last_ns.max(last);
    }

    /// The residue tables of the device and of its known partitions.
    fn place(&mut self, ios: &Scratch) {
        add_places(&mut self.profile.places, ios, 0..u64::MAX);
        if self.profile.partitions.is_empty() {
            return;
        }
        let mut firsts: Vec<u64> = self.profile.partitions.values().map(|places| places.first_byte).collect();
        firsts.sort_unstable();
        for places in self.profile.partitions.values_mut() {
            let next = firsts.iter().copied().find(|&first| first > places.first_byte).unwrap_or(u64::MAX);
            let range = places.first_byte..next;
            add_places(places, ios, range);
        }
    }

    fn total(&mut self, ios: &Scratch) {
        for row in 0..ios.time_ns.len() {
            let totals = &mut self.profile.ops[ios.op[row] as usize];
            totals.ios += 1;
            totals.bytes = totals.bytes.saturating_add(ios.len_bytes[row]);
            totals.failed += u64::from(ios.flags[row] & flags::FAILED != 0);
            totals.sizes.add(power_index(ios.len_bytes[row]), 1);
            if let Some(ns) = known(ios.device_ns[row]) {
                totals.timed += 1;
                totals.device_ns.add(log_linear_index(ns.max(0).unsigned_abs()), 1);
            }
            if let Some(ns) = known(ios.queue_ns[row]) {
                totals.queue_ns.add(log_linear_index(ns.max(0).unsigned_abs()), 1);
            }
        }
    }

    fn flights(&mut self, ios: &Scratch) {
        let sums = &mut self.profile.ordered.in_flight;
        for row in 0..ios.time_ns.len() {
            if let Some(ns) = known(ios.device_ns[row]) {
                let pid = ios.pid[row];
                let thread = if pid == UNKNOWN_PID { NO_THREAD } else { pid };
                self.pending.issue(ios.time_ns[row], ns, thread, sums);
            }
        }
    }

    fn processes(&mut self, ios: &Scratch, batch: &Batch) {
        for row in 0..ios.time_ns.len() {
            let comm = ios.comm[row] as usize;
            let share = if comm > 0 {
                if comm >= self.processes.len() {
                    self.processes.resize(comm + 1, Share::default());
                }
                &mut self.processes[comm]
            } else if ios.pid[row] != UNKNOWN_PID {
                self.unnamed.entry(ios.pid[row]).or_default()
            } else {
                continue;
            };
            share.ios += 1;
            share.bytes = share.bytes.saturating_add(ios.len_bytes[row]);
        }
        for (comm, share) in self.processes.iter_mut().enumerate() {
            if share.ios > 0
                && let Some(name) = batch.names.word_of(comm as u32)
            {
                self.profile.top.add(name, std::mem::take(share));
            }
        }
        for (pid, share) in self.unnamed.drain() {
            self.profile.top.add(&format!("pid {pid}"), share);
        }
    }
}

fn known(ns: i64) -> Option<i64> {
    if ns == UNKNOWN_NS { None } else { Some(ns) }
}

fn count_run(ordered: &mut crate::profile::Ordered, chain: u64) {
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

fn add_places(places: &mut Places, ios: &Scratch, range: std::ops::Range<u64>) {
    let whole = range.start == 0 && range.end == u64::MAX;
    for row in 0..ios.time_ns.len() {
        let (op, start, len) = (ios.op[row], ios.start_bytes[row], ios.len_bytes[row]);
        if !whole && (len == 0 || !range.contains(&start)) {
            continue;
        }
        let continues = ios.chain[row] > 1;
        places.table.add(op, start, len, continues, known(ios.device_ns[row]));
        if !continues && len > 0 {
            match op {
                Op::Read => places.read_heads.add(start),
                Op::Write => places.write_heads.add(start),
                _ => {}
            }
        }
    }
}

impl Scratch {
    fn gather(&mut self, batch: &Batch, rows: &[u32]) {
        gather(&mut self.time_ns, &batch.time_ns, rows, 0);
        gather(&mut self.op, &batch.op, rows, Op::Other);
        gather(&mut self.flags, &batch.flags, rows, 0);
        gather(&mut self.start_bytes, &batch.start_bytes, rows, 0);
        gather(&mut self.len_bytes, &batch.len_bytes, rows, 0);
        gather(&mut self.queue_ns, &batch.queue_ns, rows, UNKNOWN_NS);
        gather(&mut self.device_ns, &batch.device_ns, rows, UNKNOWN_NS);
        gather(&mut self.pid, &batch.pid, rows, UNKNOWN_PID);
        gather(&mut self.comm, &batch.comm, rows, 0);
    }
}

/// Takes rows out of a column; an absent column gives `absent` for each.
fn gather<T: Copy>(to: &mut Vec<T>, column: &[T], rows: &[u32], absent: T) {
    to.clear();
    if column.is_empty() {
        to.resize(rows.len(), absent);
    } else if rows.len() == column.len() {
        to.extend_from_slice(column);
    } else {
        to.extend(rows.iter().map(|&row| column[row as usize]));
    }
}
