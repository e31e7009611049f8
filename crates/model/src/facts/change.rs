//! Facts about changes over time.

use plumb_geometry::Bounds;
use serde::{Deserialize, Serialize};

use crate::rule::RuleId;

/// The time of a change, and the windows that show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeTime {
    /// Begin of the first window with the new level, ns since 1970.
    pub since_ns: i64,
    /// Length of a window, s.
    pub window_seconds: u64,
    /// Windows before the change.
    pub windows_before: u64,
    /// Windows since then.
    pub windows_after: u64,
    /// Other changes of the host in that window or the one before, in order.
    pub beside: Vec<HostChange>,
}

/// A change of the host that may be the reason of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostChange {
    /// The time at which it was seen, ns since 1970.
    pub at_ns: i64,
    /// The change.
    #[serde(flatten)]
    pub is: HostChangeKind,
}

/// A kind of change of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HostChangeKind {
    /// Another kernel runs.
    Kernel {
        /// Its version before.
        before: String,
        /// Its version now.
        after: String,
    },
    /// A finding appeared.
    Appeared {
        /// The rule.
        rule: RuleId,
        /// The device.
        device: String,
    },
    /// A finding went.
    Gone {
        /// The rule.
        rule: RuleId,
        /// The device.
        device: String,
    },
}

/// `misfit-rose`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MisfitRose {
    /// The time.
    pub time: ChangeTime,
    /// Mean share of I/O off 4 KiB in the windows before.
    pub share_before: f64,
    /// The same since then.
    pub share_after: f64,
    /// The rise, an interval of 99 %.
    pub rise: Bounds<f64>,
}

/// `sizes-changed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizesChanged {
    /// The time.
    pub time: ChangeTime,
    /// The class of sizes that changed most, by its place in the lists.
    pub most_changed: usize,
    /// The change of its share, an interval of 99 %.
    pub change: Bounds<f64>,
    /// Mean shares of I/O of up to 4, 16, 64 and 256 KiB, and of longer ones, in the windows before.
    pub shares_before: [f64; 5],
    /// The same since then.
    pub shares_after: [f64; 5],
}

/// `latency-grew`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyGrew {
    /// The time.
    pub time: ChangeTime,
    /// The median latency since then as a multiple of that before, at equal load; an interval of 99 %.
    pub ratio: Bounds<f64>,
    /// Middle one of the medians of the windows before, ns.
    pub median_before_ns: u64,
    /// The same since then.
    pub median_after_ns: u64,
    /// Loads that were compared: classes of rate, size and share of reads.
    pub loads: u64,
}
