//! The Profile: the summary of the I/O seen at one layer of one device in one window.
//!
//! Every part merges by adding, so windows roll up to a year and hosts to a fleet, in any order and grouping.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use plumb_geometry::{SmallSort, natural};
use plumb_trace::{Layer, Op};

use crate::answers::Answers;
use crate::codec;
use crate::histogram::{Counts, Distances};
use crate::imported::Imported;
use crate::in_flight::InFlight;
use crate::starts::Starts;
use crate::table::{Row, Table};
use crate::timeline::{Timeline, Window};
use crate::top::Top;

/// The meaning of time 0 of a profile's times. Profiles of different clocks merge, but not their timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimeBase {
    /// Nothing was timed yet.
    Empty,
    /// Unix time.
    Unix,
    /// Since a boot.
    Boot,
    /// Since the start of the trace.
    Start,
    /// The source does not say.
    Unknown,
    /// Of several kinds: the course over time was given up.
    Mixed,
}

/// Totals of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpTotals {
    /// I/O.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// I/O that completed with an error.
    pub failed: u64,
    /// I/O with a known latency.
    pub timed: u64,
    /// By power of two of the length in bytes: index n holds lengths above 2^(n−1) up to 2^n.
    pub sizes: Counts,
    /// Issue to complete, log-linear, ns.
    pub device_ns: Counts,
    /// Insert to issue, log-linear, ns.
    pub queue_ns: Counts,
}

impl OpTotals {
    /// Adds the totals of other I/O.
    pub fn merge(&mut self, other: &OpTotals) {
        self.ios = self.ios.saturating_add(other.ios);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.failed = self.failed.saturating_add(other.failed);
        self.timed = self.timed.saturating_add(other.timed);
        self.sizes.merge(&other.sizes);
        self.device_ns.merge(&other.device_ns);
        self.queue_ns.merge(&other.queue_ns);
    }

    /// Whether an I/O was issued, completed or failed; see [`Profile::has_io`].
    #[must_use]
    pub fn has_io(&self) -> bool {
        self.ios > 0 || self.failed > 0 || self.timed > 0 || self.device_ns.total() > 0
    }
}

/// The starts of I/O: the residue table and the other input of offset inference. For the whole device and for each
/// known part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Places {
    /// First byte of the part; 0 for the device. Residues count from the start of the device all the same.
    pub first_byte: u64,
    /// I/O by residue.
    pub table: Table,
    /// Starts of the reads that are stream heads; for a part perhaps those of all of the device, complete in any case.
    pub read_heads: Starts,
    /// Starts of the writes that are stream heads, likewise.
    pub write_heads: Starts,
}

impl Places {
    /// Empty, with a table of modulus M.
    #[must_use]
    pub fn with_table(table: Table, first_byte: u64) -> Places {
        Places {
            first_byte,
            table,
            read_heads: Starts::default(),
            write_heads: Starts::default(),
        }
    }

    fn merge(&mut self, other: &Places) {
        self.first_byte = self.first_byte.max(other.first_byte);
        self.table.merge(&other.table);
        self.read_heads.merge(&other.read_heads);
        self.write_heads.merge(&other.write_heads);
    }
}

/// Measures that depend on the order of I/O.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// I/O that continue a stream.
    pub continuing: u64,
    /// I/O that belong to a run: a chain of at least three.
    pub run_ios: u64,
    /// How many runs grew to at least 2^n I/O (index n; index 0: runs, that is to three).
    pub runs_reaching: Counts,
    /// Distances from the end of an I/O to the start of the next.
    pub seeks: Distances,
    /// Time between two issues, log-linear, ns.
    pub interarrival_ns: Counts,
    /// I/O and threads in flight.
    pub in_flight: InFlight,
}

impl Ordered {
    /// How many runs there were.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs_reaching.get(0)
    }

    fn merge(&mut self, other: &Ordered) {
        self.continuing = self.continuing.saturating_add(other.continuing);
        self.run_ios = self.run_ios.saturating_add(other.run_ios);
        self.runs_reaching.merge(&other.runs_reaching);
        self.seeks.merge(&other.seeks);
        self.interarrival_ns.merge(&other.interarrival_ns);
        self.in_flight.merge(&other.in_flight);
    }
}

/// As many I/O may well be in flight when a recording ends: the usual depth of the queue of a disk.
const IN_FLIGHT_MAX: u64 = 32;

/// One latency in this number that is another one's moves the highest percentile that is printed, 99.9 %.
const DOUBTFUL_MIN: u64 = 1000;

/// Events that should be in a profile and are not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Lost at the source, as the source itself says.
    pub lost: u64,
    /// Damaged lines or records of the input.
    pub damaged: u64,
    /// Issues whose completion never came.
    pub unmatched_issues: u64,
    /// Latencies that may be those of other I/O.
    #[serde(deserialize_with = "codec::since_version_3")]
    pub doubtful_latencies: u64,
    /// Completions without an issue.
    pub unmatched_completions: u64,
    /// Completions that came too late to be counted.
    pub late_completions: u64,
    /// Events that were out of time order beyond repair.
    pub out_of_order: u64,
    /// Files that belong to a recording and were not there to be read.
    pub missing_files: u64,
}

impl Losses {
    /// Whether I/O that belong into the profile are not in it.
    #[must_use]
    pub fn is_part_missing(&self) -> bool {
        self.lost > 0 || self.damaged > 0 || self.missing_files > 0
    }

    /// Whether completions may be paired with the wrong I/O, because some are missing. Example: two equal I/O at one
    /// place; the first lost its completion. The first is then paired with the completion of the second, at any later
    /// time. Either more than one I/O in 1,000 of the source may be such a one, or a tenth has no completion.
    ///
    /// `untimed` of `ios` have no latency. A few wait at the end of any recording.
    #[must_use]
    pub fn is_pairing_unsound(&self, untimed: u64, ios: u64) -> bool {
        let is_many = |lone: u64, of: u64| lone > IN_FLIGHT_MAX && lone > ios / of;
        is_many(self.unmatched_issues, 10) && is_many(untimed, 10)
            || is_many(self.doubtful_latencies, DOUBTFUL_MIN)
    }

    /// Adds the losses of another part.
    pub fn merge(&mut self, other: &Losses) {
        self.lost = self.lost.saturating_add(other.lost);
        self.damaged = self.damaged.saturating_add(other.damaged);
        self.unmatched_issues = self.unmatched_issues.saturating_add(other.unmatched_issues);
        self.doubtful_latencies = self
            .doubtful_latencies
            .saturating_add(other.doubtful_latencies);
        self.unmatched_completions = self
            .unmatched_completions
            .saturating_add(other.unmatched_completions);
        self.late_completions = self.late_completions.saturating_add(other.late_completions);
        self.out_of_order = self.out_of_order.saturating_add(other.out_of_order);
        self.missing_files = self.missing_files.saturating_add(other.missing_files);
    }
}

/// The summary; see the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Device as the source names it.
    pub device: String,
    /// Layer.
    pub layer: Layer,
    /// Size of the device in bytes; `None` when the source does not say.
    pub size_bytes: Option<u64>,
    /// Logical block in bytes; `None` when the source does not say.
    pub logical_block_bytes: Option<u32>,
    /// How many recordings it is made of.
    pub pieces: u64,
    /// The origin of its times.
    pub time_base: TimeBase,
    /// Time of the first issue, ns; `None` without events.
    pub first_ns: Option<i64>,
    /// Time of the last issue, ns; `None` without events.
    pub last_ns: Option<i64>,
    /// Times are those of completion: only completions were recorded.
    pub completion_order: bool,
    /// Totals by operation, in the order of [`Op::ALL`].
    pub ops: [OpTotals; 6],
    /// The starts of I/O on the device.
    pub places: Places,
    /// The same for each partition that the source revealed, by name.
    pub partitions: BTreeMap<String, Places>,
    /// Measures that depend on order.
    pub ordered: Ordered,
    /// Processes.
    pub top: Top,
    /// Course over time; empty when clocks were mixed.
    pub timeline: Timeline,
    /// The losses.
    pub losses: Losses,
    /// Ready-made data, which cannot be broken down further.
    pub imported: Imported,
    /// How the device answered, if a live watch tells. It is not saved.
    #[serde(skip)]
    pub answers: Option<Box<Answers>>,
}

impl Profile {
    /// An empty profile with tables of the given modulus.
    #[must_use]
    pub fn new(device: &str, layer: Layer, table: Table) -> Profile {
        Profile {
            device: device.to_owned(),
            layer,
            size_bytes: None,
            logical_block_bytes: None,
            pieces: 0,
            time_base: TimeBase::Empty,
            first_ns: None,
            last_ns: None,
            completion_order: false,
            ops: Default::default(),
            places: Places::with_table(table, 0),
            partitions: BTreeMap::new(),
            ordered: Ordered::default(),
            top: Top::default(),
            timeline: Timeline::default(),
            losses: Losses::default(),
            imported: Imported::default(),
            answers: None,
        }
    }

    /// I/O of all operations.
    #[must_use]
    pub fn ios(&self) -> u64 {
        sum(self.ops.iter().map(|op| op.ios))
    }

    /// The profile as it would be if one of its partitions began elsewhere and received the same I/O. `None` where it is
    /// not known of every I/O in which partition it was.
    #[must_use]
    pub fn with_part_moved(&self, part: &str, by_bytes: i128) -> Option<Profile> {
        let count = |places: &Places| sum(places.table.iter().map(|(_, row)| row.ios));
        let parted = sum(self.partitions.values().map(count));
        if !self.partitions.contains_key(part) || parted != count(&self.places) {
            return None;
        }
        let mut moved = self.clone();
        let place = moved.partitions.get_mut(part)?;
        place.table = place.table.moved(by_bytes)?;
        place.first_byte = u64::try_from(i128::from(place.first_byte) + by_bytes).ok()?;
        let mut whole = Table::new(self.places.table.modulus_bytes()).ok()?;
        for places in moved.partitions.values() {
            whole.merge(&places.table);
        }
        moved.places.table = whole;
        Some(moved)
    }

    /// I/O with an extent: all but flushes and the like.
    #[must_use]
    pub fn placed_ios(&self) -> u64 {
        sum(self
            .places
            .table
            .iter()
            .filter(|(key, _)| key.length() > 0)
            .map(|(_, row)| row.ios))
    }

    /// Bytes of all operations that move data.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.op(Op::Read)
            .bytes
            .saturating_add(self.op(Op::Write).bytes)
    }

    /// Whether its latencies may be those of other I/O; see [`Losses::is_pairing_unsound`].
    #[must_use]
    pub fn is_pairing_unsound(&self) -> bool {
        let untimed = self.ios().saturating_sub(self.timed_ios());
        self.losses.is_pairing_unsound(untimed, self.ios())
    }

    /// I/O with a known latency.
    #[must_use]
    pub fn timed_ios(&self) -> u64 {
        sum(self.ops.iter().map(|op| op.timed))
    }

    /// Whether an I/O was issued, completed or failed. One that was issued in an earlier interval completes in this one, and one that
    /// completes while the sums are read may be in its histogram and not yet in its row.
    #[must_use]
    pub fn has_io(&self) -> bool {
        self.ops.iter().any(OpTotals::has_io)
    }

    /// Totals of one operation.
    #[must_use]
    pub fn op(&self, op: Op) -> &OpTotals {
        &self.ops[op as usize]
    }

    /// Puts all that was counted into the course over time, as counted between two times.
    pub fn put_into_course(&mut self, from_ns: i64, to_ns: i64) {
        let (reads, writes) = (self.op(Op::Read), self.op(Op::Write));
        let others = self.ios() - reads.ios.saturating_add(writes.ios).min(self.ios());
        let data = self.places.table.iter();
        let data = data.filter(|(key, _)| matches!(key.op(), Op::Read | Op::Write));
        let ns_sum: u128 = data.map(|(_, row)| row.ns_sum).sum();
        let longest = [reads, writes].into_iter().filter_map(|totals| {
            let (bucket, _) = totals.device_ns.iter().next_back()?;
            Some(crate::histogram::log_linear_bounds(bucket).1)
        });
        let counted = Window {
            read_sizes: reads.sizes.clone(),
            write_sizes: writes.sizes.clone(),
            read_bytes: reads.bytes,
            write_bytes: writes.bytes,
            other_ios: others,
            timed: reads.timed.saturating_add(writes.timed),
            ns_sum: u64::try_from(ns_sum).unwrap_or(u64::MAX),
            ns_max: longest.max().unwrap_or(0),
            regions: Counts::default(),
        };
        self.timeline.add_counted(from_ns, to_ns, &counted);
    }

    /// Counts I/O that a source has already summed up by residue. Order and sizes over time stay unknown.
    pub fn add_residue(
        &mut self,
        op: Op,
        residue_bytes: u64,
        len_bytes: u64,
        continues: bool,
        row: &Row,
    ) {
        self.add_unplaced(op, len_bytes, row);
        self.places
            .table
            .add_row(op, residue_bytes, len_bytes, continues, row);
    }

    /// Lowers the cap on the rows of its tables, and merges rows of a table that has more.
    pub fn limit_rows(&mut self, rows_max: usize) {
        let tables = self.partitions.values_mut().chain([&mut self.places]);
        for Places { table, .. } in tables {
            *table = std::mem::take(table).with_rows_max(rows_max);
        }
    }

    /// Counts I/O that a source has already summed, with unknown starts.
    pub(crate) fn add_unplaced(&mut self, op: Op, len_bytes: u64, row: &Row) {
        let totals = &mut self.ops[op as usize];
        totals.ios = totals.ios.saturating_add(row.ios);
        totals.bytes = totals
            .bytes
            .saturating_add(len_bytes.saturating_mul(row.ios));
        totals.timed = totals.timed.saturating_add(row.timed);
        totals
            .sizes
            .add(crate::histogram::power_index(len_bytes), row.ios);
    }

    /// Adds a profile of the same device and layer.
    pub fn merge(&mut self, other: &Profile) {
        debug_assert!(
            self.device == other.device && self.layer == other.layer,
            "only like profiles merge"
        );
        self.size_bytes = self.size_bytes.max(other.size_bytes);
        self.logical_block_bytes = self.logical_block_bytes.max(other.logical_block_bytes);
        self.pieces = self.pieces.saturating_add(other.pieces);
        self.first_ns = [self.first_ns, other.first_ns].into_iter().flatten().min();
        self.last_ns = self.last_ns.max(other.last_ns);
        self.completion_order |= other.completion_order;
        for (mine, theirs) in self.ops.iter_mut().zip(&other.ops) {
            mine.merge(theirs);
        }
        self.places.merge(&other.places);
        for (name, theirs) in &other.partitions {
            match self.partitions.get_mut(name) {
                Some(mine) => mine.merge(theirs),
                None => {
                    self.partitions.insert(name.clone(), theirs.clone());
                }
            }
        }
        self.ordered.merge(&other.ordered);
        self.top.merge(&other.top);
        self.losses.merge(&other.losses);
        self.imported.merge(&other.imported);
        match (&mut self.answers, &other.answers) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, theirs) => mine.clone_from(theirs),
            (Some(_), None) => {}
        }
        self.merge_times(other);
    }

    fn merge_times(&mut self, other: &Profile) {
        self.time_base = match (self.time_base, other.time_base) {
            (TimeBase::Empty, base) | (base, TimeBase::Empty) => base,
            (mine, theirs) if mine == theirs => mine,
            _ => TimeBase::Mixed,
        };
        if self.time_base == TimeBase::Mixed {
            self.timeline = Timeline::default();
            self.first_ns = None;
            self.last_ns = None;
        } else {
            self.timeline.merge(&other.timeline);
        }
    }
}

/// Sums saturate instead of wrapping, for any source.
fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Profiles of several devices and layers, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileSet {
    profiles: BTreeMap<(String, Layer), Profile>,
}

impl IntoIterator for ProfileSet {
    type Item = Profile;
    type IntoIter = std::collections::btree_map::IntoValues<(String, Layer), Profile>;

    /// All profiles, by device and layer.
    fn into_iter(self) -> Self::IntoIter {
        self.profiles.into_values()
    }
}

impl ProfileSet {
    /// Adds a profile to that of the same device and layer.
    pub fn add(&mut self, profile: &Profile) {
        let key = (profile.device.clone(), profile.layer);
        match self.profiles.get_mut(&key) {
            Some(mine) => mine.merge(profile),
            None => {
                self.profiles.insert(key, profile.clone());
            }
        }
    }

    /// Adds a profile, and keeps it instead of a copy if it is the first of its device and layer.
    pub fn absorb(&mut self, profile: Profile) {
        match self.profiles.entry((profile.device.clone(), profile.layer)) {
            Entry::Occupied(mut mine) => mine.get_mut().merge(&profile),
            Entry::Vacant(free) => {
                free.insert(profile);
            }
        }
    }

    /// Adds all profiles of another set.
    pub fn merge(&mut self, other: &ProfileSet) {
        other.iter().for_each(|profile| self.add(profile));
    }

    /// All profiles by device and layer, `sda2` before `sda10`.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        let mut profiles: Vec<&Profile> = self.profiles.values().collect();
        // The map has layers of one device in order already.
        profiles.small_sort_by(|one, other| natural(&one.device, &other.device));
        profiles.into_iter()
    }

    /// The profile of a device and layer, if there is one.
    #[must_use]
    pub fn find(&self, device: &str, layer: Layer) -> Option<&Profile> {
        self.profiles.get(&(device.to_owned(), layer))
    }

    /// All profiles, by device and layer, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Profile> {
        self.profiles.values_mut()
    }

    /// Whether each profile is found under its own name, as the encoded form of somebody else may claim.
    pub(crate) fn is_keyed(&self) -> bool {
        self.profiles
            .iter()
            .all(|((device, layer), profile)| *device == profile.device && *layer == profile.layer)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.profiles.len()
    }

    /// Whether it has no I/O.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.profiles.is_empty()
    }

    /// The profile of a device and layer, empty if new.
    pub fn entry(
        &mut self,
        device: &str,
        layer: Layer,
        table: impl FnOnce() -> Table,
    ) -> &mut Profile {
        self.profiles
            .entry((device.to_owned(), layer))
            .or_insert_with(|| Profile::new(device, layer, table()))
    }
}
