//! Groups of a fleet with their hosts and remedies, and devices that are slow without a group.

use std::path::Path;

use plumb_model::RuleId;
use plumb_model::rule::RULES;
use plumb_quoting::{Command, CommandLine};
use serde::{Serialize, Serializer};

/// A defect whose hosts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FleetCause {
    /// A finding of this rule.
    Rule(RuleId),
    /// Latencies far above those of like devices of the fleet.
    SlowDevice,
}

impl FleetCause {
    /// Its name in all outputs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FleetCause::Rule(rule) => rule.name(),
            FleetCause::SlowDevice => "slow-device",
        }
    }

    /// The remedy of all hosts of a group.
    #[must_use]
    pub fn remedy(self) -> FleetRemedy {
        let has_plan = |rule: RuleId| {
            let entry = RULES.iter().find(|entry| entry.id == rule);
            entry.is_some_and(|entry| entry.plan.is_some())
        };
        match self {
            // Its cause is the start of a partition, if a check finds no other.
            FleetCause::Rule(RuleId::MisalignedIo) => FleetRemedy::CarryOutPlan,
            FleetCause::Rule(rule) if has_plan(rule) => FleetRemedy::CarryOutPlan,
            _ => FleetRemedy::Diagnose,
        }
    }
}

impl Serialize for FleetCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The work on each host of a group. Recordings have no layers, so the plan is made on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetRemedy {
    /// Check the host, and carry out the plan of its findings; without `--yes` that is a dry run.
    CarryOutPlan,
    /// Diagnose the host: the rule has no plan of its own.
    Diagnose,
}

impl FleetRemedy {
    /// The command on a host.
    fn local(self) -> Command {
        match self {
            FleetRemedy::CarryOutPlan => {
                Command::new("plumb check --json").pipe(Command::new("plumb fix plan -"))
            }
            FleetRemedy::Diagnose => Command::new("plumb diagnose"),
        }
    }

    /// The command for one host, as another one runs it; `None` if no command can hold the name. With a plan in a file, the command prints
    /// the dry run of this plan.
    #[must_use]
    pub fn on(self, host: &str, plan: Option<&Path>) -> Option<CommandLine> {
        let local = match plan {
            Some(_) => Command::new("plumb fix plan -"),
            None => self.local(),
        };
        let there = Command::new("ssh").operand(host).arg(local.line().ok()?);
        let there = match plan {
            Some(plan) => there.from_file(plan),
            None => there,
        };
        there.line().ok()
    }
}

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FleetAttribute {
    /// The name, for instance `image`.
    pub name: String,
    /// The value.
    pub value: String,
}

/// A ratio with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioWithin {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The devices of a host that have the cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetHost {
    /// The host.
    pub host: String,
    /// Its devices, by name and layer.
    pub devices: Vec<String>,
    /// The file with the plan of the host; absent without a proven remedy, and if no plans are asked for.
    pub plan: Option<String>,
    /// The remedy as a command; absent if no command can hold the name of the host.
    pub command: Option<CommandLine>,
}

/// Hosts with one value of an attribute that have a cause more often than the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetGroup {
    /// The cause.
    pub cause: FleetCause,
    /// The attribute that explains most.
    pub attribute: FleetAttribute,
    /// Attributes with exactly the same devices.
    pub same: Vec<FleetAttribute>,
    /// Hosts with the attribute.
    pub hosts: u64,
    /// Of these, hosts with the cause.
    pub hosts_with: u64,
    /// Hosts with another value.
    pub other_hosts: u64,
    /// Of these, hosts with the cause.
    pub other_hosts_with: u64,
    /// The share of hosts with the cause over that of the others.
    pub lift: RatioWithin,
    /// The chance of the group, corrected for the number of tests.
    pub chance: f64,
    /// How many times as long the I/O take as on the median device; for slow devices, if six hosts are known.
    pub times: Option<RatioWithin>,
    /// Devices with the cause.
    pub devices: u64,
    /// Cells that these devices waste in each second: the part that is sure. Absent if it is unknown of each device, and for causes other
    /// than misaligned I/O.
    pub wasted_per_second: Option<f64>,
    /// Time that they lose in each second, ns, likewise.
    pub lost_ns_per_second: Option<f64>,
    /// The remedy.
    pub remedy: FleetRemedy,
    /// The hosts with the cause.
    pub on: Vec<FleetHost>,
}

/// A cause outside of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FleetRest {
    /// The cause.
    pub cause: FleetCause,
    /// Hosts.
    pub hosts: u64,
    /// Devices.
    pub devices: u64,
}

/// A device far from the like devices of the fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetOutlier {
    /// Its host.
    pub host: String,
    /// Its name on the host.
    pub device: String,
    /// Layer at which its I/O were seen.
    pub layer: &'static str,
    /// How many times as long its I/O take as on the median device.
    pub times: f64,
}

/// The slow devices of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetOutliers {
    /// Devices that were compared.
    pub compared: u64,
    /// Devices with at least this many times the latency of the median one are slow; absent if none was compared.
    pub limit_times: Option<f64>,
    /// Slow devices.
    pub slow: u64,
    /// Of these, devices that no group explains.
    pub alone: u64,
    /// The slowest of those.
    pub devices: Vec<FleetOutlier>,
}
