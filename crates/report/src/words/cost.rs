//! Costs in words.

use plumb_model::{Basis, Cost, CostOf};

/// `1.50 times as many blocks touched as needed (estimated, not measured)`; a range where detail was lost.
#[must_use]
pub fn cost(cost: &Cost) -> String {
    let basis = match cost.basis {
        Basis::Measured => "measured",
        Basis::Estimated => "estimated, not measured",
    };
    let value = match cost.value_max {
        Some(most) => format!("{} to {}", number(cost.value), number(most)),
        None => number(cost.value),
    };
    format!("{value} {} ({basis})", measured_cost(cost.of))
}

fn number(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value}"),
        false => format!("{value:.2}"),
    }
}

const fn measured_cost(of: CostOf) -> &'static str {
    match of {
        CostOf::Cells => "times as many blocks touched as needed",
        CostOf::Commands => "commands per command needed",
        CostOf::MovedBytes => "bytes moved per byte asked for",
        CostOf::CellBytes => "bytes touched per byte asked for, if all starts were on the grid",
        CostOf::DeviceBytes => "bytes at the device per byte asked",
        CostOf::WrittenBytes => "bytes moved per byte written",
        CostOf::ProgrammedBytes => "bytes programmed per byte written",
        CostOf::DiskOperations => "disk operations per small write",
        CostOf::GatheredWrites => "writes that one gathered write could hold",
        CostOf::MemberLoad => "times the load of an even share, on the busiest member",
        CostOf::SideReads => "times the reads of an even share, on the busiest side",
        CostOf::KeptUnits => "units kept per discarded range",
        CostOf::IdleResponses => "times the mean response of an idle disk",
        CostOf::ReadTimes => "times the time of a read on the grid",
        CostOf::WriteTimes => "times the time of a write on the grid",
    }
}
