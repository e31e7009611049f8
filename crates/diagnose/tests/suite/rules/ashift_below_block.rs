//! Tests of `ashift-below-block`.

use plumb_diagnose::Severity;
use plumb_stack::ProblemId;

use crate::common::problems::assert_becomes_its_finding;

#[test]
fn the_problem_is_a_finding() {
    assert_becomes_its_finding(ProblemId::AshiftBelowBlock, Severity::Warning);
}
