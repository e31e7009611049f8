//! The result of a check, and the measurements of an agent, in the formats of other programs: one file a format.
//!
//! Names and sentences can come from anywhere. Each format escapes them by its own rules.

use plumb_model::{Finding, Severity};
use plumb_stack::survey::Tally;

use crate::check::Check;

mod agent;
mod csv;
mod exposition;
mod junit;
mod markdown;
mod nagios;
mod prometheus;
mod protobuf;

pub use agent::{
    AgentMetrics, DeviceMetrics, ExportMetrics, FindingMetrics, FitMetrics, GridMetrics,
    HistoryMetrics, RecordingMetrics, agent_metrics,
};
pub(crate) use csv::cell;
pub use csv::csv;
pub use exposition::MetricsFormat;
pub(crate) use exposition::{Exposition, Kind};
pub use junit::junit;
pub use markdown::markdown;
pub use nagios::{PluginStatus, nagios, nagios_failure};
pub use prometheus::prometheus;

/// Whether a finding counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It counts.
    Open,
    /// Somebody accepts it, and it does not count.
    Accepted,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Accepted => "accepted",
        }
    }
}

/// All findings with their states, open ones first.
fn stated<'a>(check: &'a Check<'_>) -> impl Iterator<Item = (&'a Finding, State)> {
    let open = check.diagnosis.findings.iter();
    let accepted = check.accepted.findings.iter();
    let open = open.map(|finding| (finding, State::Open));
    open.chain(accepted.map(|one| (&one.finding, State::Accepted)))
}

/// The number of open findings of a severity.
fn number_of(check: &Check<'_>, severity: Severity) -> usize {
    let findings = check.diagnosis.findings.iter();
    findings.filter(|one| one.severity == severity).count()
}

/// The states of all layers.
fn layers(check: &Check<'_>) -> Tally {
    let mut sum = Tally::default();
    for tally in check
        .survey
        .tallies(check.stack, |id| check.wants(id))
        .into_values()
    {
        sum.nodes += tally.nodes;
        sum.aligned += tally.aligned;
        sum.misaligned += tally.misaligned;
        sum.unknown += tally.unknown;
    }
    sum
}

/// The device of a finding, or the host.
fn device(finding: &Finding) -> &str {
    match finding.target.is_host() {
        true => "host",
        false => &finding.target.device,
    }
}
