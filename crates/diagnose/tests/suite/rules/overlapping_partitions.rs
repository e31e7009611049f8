//! Tests of `overlapping-partitions`.

use plumb_diagnose::Severity;
use plumb_stack::{Kind, ProblemId};

use crate::common::lab::Lab;
use crate::common::problems::assert_becomes_its_finding;

/// Two soft partitions of a component, the second one over the end of the first.
#[test]
fn overlapping_soft_partitions() {
    let rule = "overlapping-partitions";
    for (offset, found) in [(1001, true), (1009, false)] {
        let mut lab = Lab::default();
        let disk = lab.bare("c1t0d0");
        lab.runs(Kind::SoftPartition, "d1", &[(disk, 8, 1000)]);
        lab.runs(Kind::SoftPartition, "d2", &[(disk, offset, 100)]);
        let judged = lab.judge();
        assert_eq!(
            judged.found_on(rule),
            if found { vec!["d2"] } else { Vec::new() },
            "{offset}"
        );
    }
}

#[test]
fn the_problem_is_a_finding() {
    assert_becomes_its_finding(ProblemId::OverlappingPartitions, Severity::Critical);
}
