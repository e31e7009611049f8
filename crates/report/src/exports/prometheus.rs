//! Metrics in the text format of Prometheus, for the textfile collector of node_exporter.
//!
//! The collector refuses a file in which a series is there twice, so findings that have all labels in common are one series.

use std::collections::BTreeMap;

use plumb_model::Severity;
use plumb_model::result::verdict::Word;

use super::exposition::{Exposition, Kind, MetricsFormat};
use super::{State, device, number_of, stated};
use crate::check::Check;

const SEVERITIES: [Severity; 3] = [Severity::Critical, Severity::Warning, Severity::Note];
const WORDS: [Word; 4] = [Word::Ok, Word::Misfit, Word::Problem, Word::Unknown];

/// The metrics of a check.
#[must_use]
pub fn prometheus(check: &Check<'_>) -> String {
    let mut metrics = Exposition::new(MetricsFormat::Classic);
    let host = check.host().unwrap_or_default();
    metrics.begin(
        "plumb_check",
        Kind::Info,
        "Version of Plumb and name of the checked host.",
    );
    metrics.series(&[("version", &check.run.version), ("host", host)], 1);

    let word = check.verdict().word;
    metrics.begin(
        "plumb_check_verdict",
        Kind::Gauge,
        "1 for the verdict of the check, 0 for the others.",
    );
    for one in WORDS {
        metrics.series(&[("verdict", one.text())], u64::from(one == word));
    }

    metrics.begin(
        "plumb_check_findings",
        Kind::Gauge,
        "Findings that count, by severity.",
    );
    for severity in SEVERITIES {
        let number = number_of(check, severity) as u64;
        metrics.series(&[("severity", severity.word())], number);
    }

    metrics.begin(
        "plumb_check_finding",
        Kind::Gauge,
        "Findings by rule, device, severity and state.",
    );
    let mut findings: BTreeMap<(&str, &str, Severity, &str), u64> = BTreeMap::new();
    for (finding, state) in stated(check) {
        let key = (
            finding.rule().name(),
            device(finding),
            finding.severity,
            State::word(state),
        );
        *findings.entry(key).or_default() += 1;
    }
    for ((rule, device, severity, state), number) in findings {
        let labels = [
            ("rule", rule),
            ("device", device),
            ("severity", severity.word()),
            ("state", state),
        ];
        metrics.series(&labels, number);
    }

    let (devices, _) = check.extent();
    metrics.begin(
        "plumb_check_devices",
        Kind::Gauge,
        "Devices at the bottom of the checked stacks.",
    );
    metrics.series(&[], devices as u64);

    metrics.begin(
        "plumb_check_layers",
        Kind::Gauge,
        "Layers by kind and alignment.",
    );
    let tallies = check.survey.tallies(check.stack, |id| check.wants(id));
    for (kind, tally) in tallies {
        for (alignment, number) in [
            ("aligned", tally.aligned),
            ("misaligned", tally.misaligned),
            ("unknown", tally.unknown),
        ] {
            let labels = [("kind", kind.text()), ("alignment", alignment)];
            metrics.series(&labels, number);
        }
    }
    metrics.into_text()
}
