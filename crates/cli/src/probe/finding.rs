//! The finding of a probe.

use plumb_geometry::Bytes;
use plumb_load::probe::conclusion::Conclusion;
use plumb_load::result::probe::ProbeReport;
use plumb_model::facts::{Direction, MisalignedTarget, Penalty};
use plumb_model::{Confidence, Cost, CostOf, Facts, Finding, Fix, Severity, Target, TargetLayer};
use plumb_quoting::Command;
use plumb_stack::Kind;

/// The defect, if the grid is at an offset.
pub fn finding(shown: &ProbeReport<'_>, layer: Kind) -> Option<Finding> {
    let grid = shown
        .grid
        .filter(|_| shown.verdict == Conclusion::Misaligned)?;
    let target = Target {
        host: None,
        device: shown.target.to_owned(),
        part: None,
        layer: TargetLayer::Stack(layer),
        identity: None,
        node: None,
    };
    let of = match shown.op {
        Direction::Read => CostOf::ReadTimes,
        Direction::Write => CostOf::WriteTimes,
    };
    let penalty = shown.penalty.map(|penalty| Penalty {
        ratio: penalty.ratio,
        low: penalty.low,
        high: penalty.high,
    });
    let facts = Facts::MisalignedTarget(MisalignedTarget {
        granularity_bytes: Bytes(grid.granularity_bytes),
        offset_bytes: Bytes(grid.offset_bytes),
        op: shown.op,
        measured: shown.measured(),
        penalty,
    });
    let command = Command::new("plumb check").path(shown.target);
    Some(
        Finding::new(facts, target, Severity::Warning, Confidence::High)
            .with_cost(penalty.map(|penalty| Cost::measured(of, penalty.ratio)))
            .with_fix(Fix::look(command)),
    )
}
