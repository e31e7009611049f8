//! The answer of a fleet: its devices by wasted I/O and by lost time, its findings by rule, groups of hosts, and changes. The
//! shape is that of the JSON document (`docs/schema/fleet.json`). `report` prints it.

use std::cmp::Ordering;

use plumb_geometry::{Bounds, Grid, SmallSort};
use plumb_model::facts::GridSource;
use plumb_model::{Finding, RuleId, Severity};
use serde::Serialize;

mod changes;
mod grouped;

pub use changes::{
    FleetChange, FleetChangeList, FleetChanges, FleetHostList, FleetSilence, SilentHost,
    WasteChange,
};
pub use grouped::{
    FleetAttribute, FleetCause, FleetGroup, FleetHost, FleetOutlier, FleetOutliers, FleetRemedy,
    FleetRest, RatioWithin,
};

/// Why a figure of a device is not known. It is never 0 then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetUnknown {
    /// No read or write was seen.
    NoIo,
    /// Nothing states a grid, and all I/O are on the assumed 4 KiB.
    NoGrid,
    /// The recording has no times.
    NoTime,
    /// The profile does not have the starts of the I/O on this grid.
    NotCounted,
    /// No latency was recorded.
    NoLatency,
    /// There are not enough like I/O on and off the grid.
    NotComparable,
}

/// A device in a ranking.
#[derive(Clone, Debug, Serialize)]
pub struct RankedDevice {
    /// Its host.
    pub host: String,
    /// Its name on that host.
    pub device: String,
    /// Layer at which its I/O were seen.
    pub layer: &'static str,
    /// I/O.
    pub ios: u64,
    /// I/O each second of the observed time; absent when unknown.
    pub ios_per_second: Option<f64>,
    /// The grid.
    pub grid: Grid,
    /// Its source.
    pub grid_source: GridSource,
    /// The figure that is ranked: cells, or ns, for each second.
    pub per_second: Bounds<f64>,
}

impl RankedDevice {
    /// Whether it comes before another one: by the part of the figure that is sure, then by the rest.
    fn order(&self, other: &RankedDevice) -> Ordering {
        let (mine, theirs) = (self.per_second, other.per_second);
        theirs
            .low
            .total_cmp(&mine.low)
            .then(theirs.high.total_cmp(&mine.high))
            .then_with(|| self.name().cmp(&other.name()))
    }

    fn name(&self) -> (&str, &str, &str) {
        (&self.host, &self.device, self.layer)
    }
}

/// Devices whose figure is unknown.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UnrankedDevices {
    /// The reason.
    pub reason: FleetUnknown,
    /// How many.
    pub devices: u64,
}

/// Devices by a figure.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FleetRanking {
    /// The first ones.
    pub devices: Vec<RankedDevice>,
    /// Devices that have a place in the ranking; more than it lists.
    pub ranked: u64,
    /// Devices without any waste or loss.
    pub without: u64,
    /// The others, by reason.
    pub unknown: Vec<UnrankedDevices>,
}

impl FleetRanking {
    /// Adds a device. At most `top` of them are kept.
    pub fn add(&mut self, device: Result<RankedDevice, FleetUnknown>, top: usize) {
        let device = match device {
            Ok(device) if device.per_second.high > 0.0 => device,
            Ok(_) => {
                self.without += 1;
                return;
            }
            Err(reason) => return self.leave_out(reason),
        };
        self.ranked += 1;
        let before = |one: &RankedDevice| one.order(&device) == Ordering::Less;
        let at = self.devices.partition_point(before);
        if at < top {
            self.devices.insert(at, device);
            self.devices.truncate(top);
        }
    }

    fn leave_out(&mut self, reason: FleetUnknown) {
        match self.unknown.iter_mut().find(|one| one.reason == reason) {
            Some(known) => known.devices += 1,
            None => self.unknown.push(UnrankedDevices { reason, devices: 1 }),
        }
    }
}

/// The findings of a rule on a fleet.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FleetRule {
    /// The rule.
    pub rule: RuleId,
    /// The worst severity; absent without a finding.
    pub worst: Option<Severity>,
    /// Findings.
    pub findings: u64,
    /// Devices with one, each layer of a device for itself.
    pub devices: u64,
    /// Hosts with one.
    pub hosts: u64,
    /// Devices on which the rule could not judge.
    pub unknown: u64,
}

/// Everything that the report prints.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FleetAnswer {
    /// Hosts.
    pub hosts: u64,
    /// Devices, each layer of a device for itself.
    pub devices: u64,
    /// Devices with a finding.
    pub with_findings: u64,
    /// Inputs that were read.
    pub inputs: u64,
    /// Of these, collections of the layers of a host.
    pub collections: u64,
    /// Of these, inputs that were read only in part.
    pub partial: u64,
    /// Inputs that could not be read.
    pub unread: u64,
    /// I/O; those that were seen at two layers count twice.
    pub ios: u64,
    /// Devices by the cells that their I/O touch beyond those that they need, each second.
    pub by_waste: FleetRanking,
    /// Devices by the time that misaligned I/O take longer, ns each second.
    pub by_time_lost: FleetRanking,
    /// Rules that found something or could not judge.
    pub rules: Vec<FleetRule>,
    /// Attributes that explain a finding, by their wasted I/O.
    pub groups: Vec<FleetGroup>,
    /// Findings that no attribute explains.
    pub ungrouped: Vec<FleetRest>,
    /// Devices that are slower than like devices.
    pub outliers: FleetOutliers,
    /// Hosts that stopped reporting.
    pub silence: FleetSilence,
    /// Changes since an earlier file; absent without one.
    pub changes: Option<FleetChanges>,
    /// The worst finding of each rule.
    #[serde(skip)]
    pub examples: Vec<Finding>,
}

impl FleetAnswer {
    /// The counts of a rule.
    pub fn rule(&mut self, rule: RuleId) -> &mut FleetRule {
        let at = self.rules.iter().position(|one| one.rule == rule);
        let at = at.unwrap_or_else(|| {
            self.rules.push(FleetRule {
                rule,
                worst: None,
                findings: 0,
                devices: 0,
                hosts: 0,
                unknown: 0,
            });
            self.rules.len() - 1
        });
        &mut self.rules[at]
    }

    /// Keeps a finding if it is the worst one of its rule.
    pub fn show(&mut self, finding: Finding) {
        let counts = self.rule(finding.rule());
        if counts.worst >= Some(finding.severity) {
            return;
        }
        counts.worst = Some(finding.severity);
        self.examples.retain(|one| one.rule() != finding.rule());
        self.examples.push(finding);
    }

    /// Sorts the rules: the worst first, then those on most devices.
    pub fn settle(&mut self) {
        let key = |one: &FleetRule| std::cmp::Reverse((one.worst, one.devices, one.unknown));
        self.rules
            .small_sort_by(|one, other| key(one).cmp(&key(other)).then(one.rule.cmp(&other.rule)));
        let rules = &self.rules;
        let place = |finding: &Finding| rules.iter().position(|one| one.rule == finding.rule());
        self.examples.small_sort_by_key(place);
        for ranking in [&mut self.by_waste, &mut self.by_time_lost] {
            ranking.unknown.small_sort_by_key(|one| one.reason);
        }
    }
}
