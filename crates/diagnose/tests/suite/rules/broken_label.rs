//! Tests of `broken-label`.

use plumb_diagnose::Severity;
use plumb_model::facts::NoticedProblem;
use plumb_stack::{ProblemId, Source};

use crate::common::problems::{assert_becomes_its_finding, facts, noticed};

#[test]
fn the_problem_is_a_finding() {
    assert_becomes_its_finding(ProblemId::BrokenLabel, Severity::Warning);
}

/// The facts are the words of the reader and their source.
#[test]
fn the_facts_name_the_source() {
    let judged = noticed(ProblemId::BrokenLabel).judge();
    assert_eq!(
        *facts(judged.finding("broken-label")),
        NoticedProblem {
            text: "the primary header has another checksum".to_owned(),
            source: Source::OnDisk {
                format: "gpt".to_owned()
            },
            is_move_unfinished: false,
        }
    );
}
