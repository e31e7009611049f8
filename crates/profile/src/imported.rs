//! A source's ready-made results: histograms of its own buckets, totals. Kept unchanged, because finer data do not
//! exist.

use serde::{Deserialize, Serialize};

use plumb_trace::{AlignTotals, Distribution, Op};

/// A histogram as a source made it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ForeignHistogram {
    /// The measure.
    pub measured: Measured,
    /// Operation; `None` for all.
    pub op: Option<Op>,
    /// (lowest, highest, how many) by bucket; `None` is open.
    pub buckets: Vec<(Option<i64>, Option<i64>, u64)>,
    /// Smallest, largest and mean value, where the source gives them.
    pub min_max_mean: Option<(i64, i64, i64)>,
}

/// The measure of a ready-made histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Measured {
    /// Length, bytes.
    LenBytes,
    /// Distance to the next I/O, bytes.
    SeekBytes,
    /// Issue to complete, ns.
    DeviceNs,
    /// Between issues, ns.
    InterarrivalNs,
    /// I/O in flight at an issue.
    Depth,
    /// Start modulo a unit, bytes.
    ResidueBytes,
}

impl From<plumb_trace::Measured> for Measured {
    fn from(measured: plumb_trace::Measured) -> Measured {
        match measured {
            plumb_trace::Measured::LenBytes => Measured::LenBytes,
            plumb_trace::Measured::SeekBytes => Measured::SeekBytes,
            plumb_trace::Measured::DeviceNs => Measured::DeviceNs,
            plumb_trace::Measured::InterarrivalNs => Measured::InterarrivalNs,
            plumb_trace::Measured::Depth => Measured::Depth,
            plumb_trace::Measured::ResidueBytes => Measured::ResidueBytes,
        }
    }
}

/// Totals as `align.d` prints them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Totals {
    /// Length of the observation, ns; `None` when unknown.
    pub elapsed_ns: Option<i64>,
    /// I/O issued.
    pub ios: u64,
    /// Of these, off the unit.
    pub misaligned_ios: u64,
    /// Unit of the start, bytes.
    pub start_unit_bytes: u64,
    /// Mean distance from the unit, bytes.
    pub mean_offset_bytes: u64,
    /// I/O whose length is no multiple of the length unit.
    pub odd_length_ios: u64,
    /// Unit of the length, bytes.
    pub len_unit_bytes: u64,
}

/// Everything ready-made of one device, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Histograms.
    pub histograms: Vec<ForeignHistogram>,
    /// Totals, one for each observation.
    pub totals: Vec<Totals>,
}

impl Imported {
    /// Takes a histogram in.
    pub fn add_histogram(&mut self, given: &Distribution) {
        let histogram = ForeignHistogram {
            measured: given.measured.into(),
            op: given.op,
            buckets: given
                .buckets
                .iter()
                .map(|bucket| (bucket.low, bucket.high, bucket.ios))
                .collect(),
            min_max_mean: given.min_max_mean,
        };
        let at = self.histograms.partition_point(|kept| *kept < histogram);
        self.histograms.insert(at, histogram);
    }

    /// Takes totals in.
    pub fn add_totals(&mut self, given: &AlignTotals) {
        let totals = Totals {
            elapsed_ns: given.elapsed_ns,
            ios: given.ios,
            misaligned_ios: given.misaligned_ios,
            start_unit_bytes: given.start_unit_bytes,
            mean_offset_bytes: given.mean_offset_bytes,
            odd_length_ios: given.odd_length_ios,
            len_unit_bytes: given.len_unit_bytes,
        };
        let at = self.totals.partition_point(|kept| *kept < totals);
        self.totals.insert(at, totals);
    }

    /// Whether nothing came ready-made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.histograms.is_empty() && self.totals.is_empty()
    }

    pub(crate) fn merge(&mut self, other: &Imported) {
        self.histograms.extend(other.histograms.iter().cloned());
        self.histograms.sort();
        self.totals.extend(other.totals.iter().cloned());
        self.totals.sort();
    }
}
