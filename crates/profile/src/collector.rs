//! From events to profiles.
//!
//! A collector reads the batches of one piece (a file, a recording) in issue order. State that depends on order is kept
//! beside the profiles and outlives [`Collector::cut`], so that windows cut out of one piece add up to the profile of
//! the whole.

use plumb_geometry::{Grid, gcd};
use plumb_trace::{Batch, Clock, DeviceId, Fill, IOS_MAX, Layer, SourceInfo};

use crate::columns::{GatheredRows, Ios};
use crate::imported;
use crate::lane::Lane;
use crate::profile::{Losses, ProfileSet, TimeBase};
use crate::table::{MODULUS_BYTES, MODULUS_BYTES_MAX, ModulusError, ROWS_MAX, Row, Table};

/// Layers that a device may have events of.
const LAYERS: usize = Layer::ALL.len();

/// How profiles are to be made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// M of the residue tables, in bytes.
    pub modulus_bytes: u64,
    /// Cap on the rows of a table.
    pub rows_max: usize,
    /// Grids on which sums stay exact when a table is full.
    pub grids: Vec<Grid>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            modulus_bytes: MODULUS_BYTES,
            rows_max: ROWS_MAX,
            grids: Vec::new(),
        }
    }
}

impl Settings {
    /// An empty table for these questions.
    ///
    /// # Errors
    /// When the modulus is not one that a table can have.
    pub fn table(&self) -> Result<Table, ModulusError> {
        let table = Table::new(self.modulus_bytes)?;
        Ok(table.with_rows_max(self.rows_max).with_grids(&self.grids))
    }
}

/// Makes profiles of one piece; see the module.
pub struct Collector {
    table: Table,
    lanes: Vec<Option<Box<Lane>>>,
    rows_of: Vec<Vec<u32>>,
    gathered: GatheredRows,
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
            table: settings.table()?,
            lanes: Vec::new(),
            rows_of: Vec::new(),
            gathered: GatheredRows::default(),
            ready_made: ProfileSet::default(),
            time_base: TimeBase::Unknown,
        })
    }

    /// Sets the origin of the events' times.
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
        if let Some(lane) = only_lane(batch) {
            self.make_lanes(lane);
            self.lane(lane, batch).fold(&Ios::from_batch(batch));
            return;
        }
        self.group(batch);
        for lane in 0..self.rows_of.len() {
            if self.rows_of[lane].is_empty() {
                continue;
            }
            let (rows, mut gathered) = (
                std::mem::take(&mut self.rows_of[lane]),
                std::mem::take(&mut self.gathered),
            );
            self.lane(lane, batch).fold(&gathered.take(batch, &rows));
            (self.rows_of[lane], self.gathered) = (rows, gathered);
        }
    }

    /// Adds a source's ready-made results.
    pub fn fold_ready_made(&mut self, given: &Fill, layer: Layer) {
        let table = || self.table.clone();
        match given {
            Fill::Residue(residues) => {
                // Separate first: the present ones may have another modulus.
                let mut set = ProfileSet::default();
                let found = table_for(residues.modulus_bytes);
                for row in &residues.rows {
                    let sums = Row {
                        ios: row.ios,
                        timed: row.timed_ios.min(row.ios),
                        ns_sum: row.device_ns_sum,
                        ..Row::default()
                    };
                    let profile =
                        set.entry(&row.device, layer, || found.clone().unwrap_or_else(table));
                    match found {
                        Some(_) => profile.add_residue(
                            row.op,
                            row.residue_bytes,
                            row.len_bytes,
                            false,
                            &sums,
                        ),
                        None => profile.add_unplaced(row.op, row.len_bytes, &sums),
                    }
                }
                self.ready_made.merge(&set);
            }
            Fill::Distribution(histogram) => {
                let profile = self.ready_made.entry(&histogram.subject, layer, table);
                profile.imported.add_histogram(histogram);
                if let Some(time) = histogram.interval
                    && let Some(window) = imported::window_of(histogram)
                {
                    profile.time_base = TimeBase::Start;
                    profile
                        .timeline
                        .add_counted(time.from_ns, time.to_ns, &window);
                }
            }
            Fill::Totals(totals) => {
                self.ready_made
                    .entry(&totals.subject, layer, table)
                    .imported
                    .add_totals(totals);
            }
            Fill::Events | Fill::End => {}
        }
    }

    /// The profiles since the last cut. Streams and I/O in flight go on.
    pub fn cut(&mut self) -> ProfileSet {
        self.take(false)
    }

    /// The profiles since the last cut; at the end also those without I/O, because I/O in flight have ended.
    fn take(&mut self, ended: bool) -> ProfileSet {
        let mut set = ProfileSet::default();
        for lane in self.lanes.iter_mut().flatten() {
            let done = lane.take(&self.table);
            if done.ios() > 0 || ended {
                set.absorb(done);
            }
        }
        set
    }

    /// Ends the piece: I/O in flight complete, and the source's facts about itself go into the profiles.
    #[must_use]
    pub fn finish(mut self, info: &SourceInfo) -> ProfileSet {
        for lane in self.lanes.iter_mut().flatten() {
            lane.finish();
        }
        let mut set = self.take(true);
        for mut given in std::mem::take(&mut self.ready_made) {
            // A device with events has counted the piece already.
            let known = set.find(&given.device, given.layer).is_some();
            given.pieces += u64::from(!known);
            set.absorb(given);
        }
        for (at, profile) in set.iter_mut().enumerate() {
            profile.completion_order = info.completions_only;
            if at == 0 {
                // Losses of a source have no device; they are reported once.
                profile.losses = losses_of(info);
            }
        }
        set
    }

    /// Sorts the rows of a batch by lane, keeping their order.
    fn group(&mut self, batch: &Batch) {
        for rows in &mut self.rows_of {
            rows.clear();
        }
        for (row, (&device, &layer)) in batch.device.iter().zip(&batch.layer).enumerate() {
            let lane = lane_of(device, layer);
            self.make_lanes(lane);
            self.rows_of[lane].push(row as u32);
        }
    }

    fn make_lanes(&mut self, lane: usize) {
        if lane >= self.rows_of.len() {
            self.rows_of.resize_with(lane + 1, Vec::new);
            self.lanes.resize_with(lane + 1, || None);
        }
    }

    fn lane(&mut self, lane: usize, batch: &Batch) -> &mut Lane {
        let (layer, device) = (Layer::ALL[lane % LAYERS], (lane / LAYERS) as DeviceId);
        let lane = self.lanes[lane].get_or_insert_with(|| {
            Box::new(Lane::new(batch, device, layer, &self.table, self.time_base))
        });
        lane.learn(batch, device, &self.table);
        lane
    }
}

fn lane_of(device: DeviceId, layer: Layer) -> usize {
    device as usize * LAYERS + layer as usize
}

/// The lane of all events of a batch, if it has but one.
fn only_lane(batch: &Batch) -> Option<usize> {
    let (&device, &layer) = (batch.device.first()?, batch.layer.first()?);
    // Without an early exit the comparisons run many to the instruction.
    let other_device = batch
        .device
        .iter()
        .fold(0, |other, &next| other | next ^ device);
    let other_layer = batch
        .layer
        .iter()
        .fold(0, |other, &next| other | next as u8 ^ layer as u8);
    (other_device == 0 && other_layer == 0).then_some(lane_of(device, layer))
}

/// A table for residues of a source's own modulus: if that is too large, of its largest divisor that is not. `None`
/// without one.
fn table_for(modulus_bytes: u64) -> Option<Table> {
    let table = Table::new(modulus_bytes);
    table
        .or_else(|_| Table::new(gcd(modulus_bytes, MODULUS_BYTES_MAX)))
        .ok()
}

/// Bounded, since a source may claim any number.
fn losses_of(info: &SourceInfo) -> Losses {
    let bounded = |count: u64| count.min(IOS_MAX);
    Losses {
        lost: bounded(info.counts.lost),
        damaged: bounded(info.counts.damaged),
        unmatched_issues: bounded(info.counts.unmatched_issues),
        doubtful_latencies: bounded(info.counts.doubtful_latencies),
        unmatched_completions: bounded(info.counts.unmatched_completions),
        late_completions: bounded(info.counts.late_completions),
        out_of_order: bounded(info.counts.out_of_order),
        missing_files: bounded(info.counts.missing_files),
    }
}
