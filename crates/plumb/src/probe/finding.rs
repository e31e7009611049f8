//! The finding of a probe.

use plumb_diagnose::finding::{Basis, Confidence, Cost, Evidence, Fix};
use plumb_diagnose::{Finding, MISALIGNED_TARGET, Severity, Target as Of, TargetLayer};
use plumb_quoting::Command;
use plumb_report::format;
use plumb_report::probe as report;
use plumb_stack::Kind;

/// The defect, where the grid lies at an offset.
pub fn finding(shown: &report::ProbeReport<'_>, layer: Kind) -> Option<Finding> {
    let grid = shown
        .grid
        .filter(|_| shown.verdict == report::ReportedVerdict::Misaligned)?;
    let of = Of {
        device: shown.target.to_owned(),
        part: None,
        layer: TargetLayer::Stack(layer),
    };
    let (granularity, offset) = (
        format::bytes(grid.granularity_bytes),
        format::bytes(grid.offset_bytes),
    );
    let summary = format!(
        "blocks of {granularity} begin {offset} past its beginning: what starts on multiples of {granularity} misses all of them"
    );
    let source = format!("{} {}", format::count(shown.measured()), shown.op.all());
    let evidence = |name, value: u64| Evidence {
        name,
        value: value as f64,
        unit: "bytes",
        source: source.clone(),
    };
    let begin = Evidence {
        ..evidence("offset", grid.offset_bytes)
    };
    let mut finding = Finding::new(
        MISALIGNED_TARGET,
        Severity::Warning,
        &of,
        Confidence::High,
        summary,
        begin,
    )
    .with_evidence(evidence("granularity", grid.granularity_bytes));
    if let Some(penalty) = shown.penalty {
        for (name, value) in [
            ("penalty", penalty.ratio),
            ("penalty_low", penalty.low),
            ("penalty_high", penalty.high),
        ] {
            finding = finding.with_evidence(Evidence {
                name,
                value,
                unit: "ratio",
                source: source.clone(),
            });
        }
        let unit = match shown.op {
            report::Op::Read => "times the time of a read on the grid",
            report::Op::Write => "times the time of a write on the grid",
        };
        finding = finding.with_cost(Some(Cost {
            value: penalty.ratio,
            unit,
            basis: Basis::Measured,
        }));
    }
    let risk = "none: reads only; it shows which layer begins off, and plans where it should";
    let command = Command::new("plumb check").path(shown.target);
    Some(finding.with_fix(Fix::new(command, risk, "")))
}
