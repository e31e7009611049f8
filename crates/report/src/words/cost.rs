//! Costs in words.

use plumb_model::{Basis, Cost, CostOf};

/// `1.50 times as many blocks touched as needed (estimated, not measured)`.
#[must_use]
pub fn cost(cost: &Cost) -> String {
    let basis = match cost.basis {
        Basis::Measured => "measured",
        Basis::Estimated => "estimated, not measured",
    };
    let value = if cost.value.fract() == 0.0 {
        format!("{}", cost.value)
    } else {
        format!("{:.2}", cost.value)
    };
    format!("{value} {} ({basis})", of(cost.of))
}

const fn of(of: CostOf) -> &'static str {
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
