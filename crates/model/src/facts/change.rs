//! Facts about changes over time.

use plumb_geometry::{Bounds, Bytes};
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
    /// Other changes of the host from the window with I/O before to a day after that window, in order: a survey sees them once a day.
    pub beside: Vec<HostChange>,
    /// Changes of packages at that time that are left out of the list.
    #[serde(default)]
    pub left_out: u64,
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
    /// A fact about the host has another value.
    Fact {
        /// The fact.
        of: HostFact,
        /// Its value before; absent if the thing is new.
        before: Option<HostValue>,
        /// Its value now; absent if the thing is gone.
        after: Option<HostValue>,
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

/// A fact about a host that the agent follows over time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "kebab-case")]
pub enum HostFact {
    /// The kernel that runs.
    Kernel,
    /// The file system at a place of the tree.
    Mount {
        /// The place.
        path: String,
    },
    /// A partition.
    Partition {
        /// Its name.
        device: String,
    },
    /// The I/O scheduler of a device.
    Scheduler {
        /// Its name.
        device: String,
    },
    /// The layers below a volume: of md, LVM, dm-crypt or multipath.
    Volume {
        /// Its name.
        device: String,
    },
    /// An installed package.
    Package {
        /// Its name.
        name: String,
    },
}

/// The source of a fact about a host. Its first look at the host shows no change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFactSource {
    /// The kernel itself.
    Kernel,
    /// The survey of the layout.
    Survey,
    /// The list of the package manager.
    Packages,
}

impl HostFact {
    /// The source of the fact.
    #[must_use]
    pub const fn source(&self) -> HostFactSource {
        match self {
            HostFact::Kernel => HostFactSource::Kernel,
            HostFact::Package { .. } => HostFactSource::Packages,
            HostFact::Mount { .. }
            | HostFact::Partition { .. }
            | HostFact::Scheduler { .. }
            | HostFact::Volume { .. } => HostFactSource::Survey,
        }
    }
}

/// The value of a fact about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HostValue {
    /// A file system on a device.
    FileSystem {
        /// Its type.
        file_system: String,
        /// The device.
        device: String,
        /// Mount options.
        options: Vec<String>,
    },
    /// A place on a disk.
    Place {
        /// The disk.
        disk: String,
        /// First byte.
        start_bytes: Bytes,
        /// Length.
        len_bytes: Bytes,
    },
    /// A volume on other devices.
    Volume {
        /// Its kind: `stripe`.
        volume: String,
        /// The length of a chunk, if it has chunks.
        chunk_bytes: Option<Bytes>,
        /// The devices below, in order.
        members: Vec<String>,
    },
    /// A name or a version.
    Name(String),
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

rule! {
    MISFIT_ROSE: MisfitRose(MisfitRose) "misfit-rose", Io, false, None,
        "the share of I/O off 4 KiB rose and stayed up", "a history";
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

rule! {
    SIZES_CHANGED: SizesChanged(SizesChanged) "sizes-changed", Io, false, None,
        "the mix of I/O sizes changed and stayed so", "a history";
}

/// `latency-grew`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyGrew {
    /// The time.
    pub time: ChangeTime,
    /// The median latency since then as a multiple of that before, at equal load; an interval of 99 %.
    pub ratio: Bounds<f64>,
    /// Middle one of the medians of the compared windows before, ns.
    pub median_before_ns: u64,
    /// The same since then.
    pub median_after_ns: u64,
    /// Loads that were compared: classes of operation, rate and size.
    pub loads: u64,
}

rule! {
    LATENCY_GREW: LatencyGrew(LatencyGrew) "latency-grew", Io, false, None,
        "latency at equal load grew and stayed up", "a history";
}

/// `little-headroom`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LittleHeadroom {
    /// The time.
    pub time: ChangeTime,
    /// The rate since then as a multiple of that before; an interval of 99 %.
    pub ratio: Bounds<f64>,
    /// Mean I/O a second in the windows before.
    pub rate_before: f64,
    /// The same since then.
    pub rate_after: f64,
    /// The highest rate that the device has sustained: three windows reached it.
    pub highest_rate: f64,
    /// Middle one of the medians of latency in these windows, ns.
    pub median_highest_ns: u64,
    /// Middle one of the medians of latency in the half of the windows with the lowest rates, ns.
    pub median_low_ns: u64,
}

rule! {
    LITTLE_HEADROOM: LittleHeadroom(LittleHeadroom) "little-headroom", Io, false, None,
        "the rate nears the highest that the device has sustained", "a history";
}
