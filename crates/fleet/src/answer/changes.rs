//! Changes of a fleet since an earlier file, and hosts that stopped reporting.

use plumb_model::Severity;
use serde::Serialize;

use super::FleetCause;

/// A finding that is not as it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetChange {
    /// The host.
    pub host: String,
    /// The device.
    pub device: String,
    /// Layer at which its I/O were seen.
    pub layer: &'static str,
    /// The cause.
    pub cause: FleetCause,
    /// Its severity in the earlier file; absent if it was not found there.
    pub before: Option<Severity>,
    /// Its severity now; absent if it is gone.
    pub after: Option<Severity>,
    /// Wasted cells for each second, before and now, if these changed: the parts that are sure.
    pub wasted_per_second: Option<WasteChange>,
}

/// Wasted cells of a device in each second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WasteChange {
    /// In the earlier file.
    pub before: f64,
    /// Now.
    pub after: f64,
}

/// Some of the changes of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetChangeList {
    /// How many there are.
    pub all: u64,
    /// The first ones, by host and device.
    pub listed: Vec<FleetChange>,
}

impl FleetChangeList {
    /// Adds a change. At most `top` are kept.
    pub fn add(&mut self, change: FleetChange, top: usize) {
        self.all += 1;
        if self.listed.len() < top {
            self.listed.push(change);
        }
    }
}

/// Some of the hosts of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetHostList {
    /// How many there are.
    pub all: u64,
    /// The first ones, by name.
    pub listed: Vec<String>,
}

impl FleetHostList {
    /// Adds a host. At most `top` are kept.
    pub fn add(&mut self, host: &str, top: usize) {
        self.all += 1;
        if self.listed.len() < top {
            self.listed.push(host.to_owned());
        }
    }
}

/// The changes since an earlier fleet file or a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetChanges {
    /// The time that parts earlier recordings from the others, UTC; absent if the earlier findings are those of a fleet file.
    pub since: Option<String>,
    /// Findings that the device did not have.
    pub new: FleetChangeList,
    /// Findings that the device does not have any more, though the rule could judge it.
    pub gone: FleetChangeList,
    /// Findings with a higher severity, or with a quarter more of wasted I/O.
    pub worse: FleetChangeList,
    /// Hosts that the earlier file does not have.
    pub hosts_new: FleetHostList,
    /// Hosts that only the earlier file has.
    pub hosts_gone: FleetHostList,
}

/// A host without I/O of late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SilentHost {
    /// The host.
    pub host: String,
    /// Time of its newest I/O, UTC.
    pub newest: String,
}

/// Hosts that stopped reporting.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetSilence {
    /// Time of the newest I/O of the fleet, UTC; absent if no host has a time of day. Of twenty hosts and more it is the newest time that
    /// at least 5 % of them reach, so that a clock that is ahead does not count.
    pub newest: Option<String>,
    /// A host is silent if its newest I/O are older by more than this.
    pub limit_seconds: u64,
    /// Silent hosts.
    pub all: u64,
    /// The first ones, by name.
    pub listed: Vec<SilentHost>,
    /// Hosts whose times are not times of day.
    pub undated: u64,
}
