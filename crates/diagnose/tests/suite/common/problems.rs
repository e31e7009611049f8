//! Problems that a reader notices.

use plumb_diagnose::{Finding, RuleId, Severity};
use plumb_model::Facts;
use plumb_model::facts::NoticedProblem;
use plumb_stack::{Problem, ProblemId, Source};

use crate::common::lab::Lab;

/// The facts of a finding about a label, or about sources that contradict each other.
pub(crate) fn facts(finding: &Finding) -> &NoticedProblem {
    match &finding.facts {
        Facts::BrokenLabel(facts)
        | Facts::StrandedBackupLabel(facts)
        | Facts::Contradiction(facts) => facts,
        other => panic!("found {other:?}"),
    }
}

/// A disk with this problem.
pub(crate) fn noticed(id: ProblemId) -> Lab {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let source = Source::OnDisk {
        format: "gpt".to_owned(),
    };
    let text = "the primary header has another checksum".to_owned();
    lab.builder.problem(Problem {
        node: Some(disk),
        id,
        text,
        source,
    });
    lab
}

/// A problem is a finding of its name with its severity, and none of another name. Without the problem a rule on labels is silent; the
/// others are not asked, since not every host has what they are about.
pub(crate) fn assert_becomes_its_finding(problem: ProblemId, severity: Severity) {
    let judged = noticed(problem).judge();
    let id = RuleId::from(problem).name();
    assert_eq!(judged.finding(id).severity, severity, "{id}");
    assert_eq!(judged.finding(id).target.device, "sda");
    let other = match problem {
        ProblemId::BrokenLabel => "stranded-backup-label",
        _ => "broken-label",
    };
    assert!(judged.is_silent(other), "{id} is another problem");
    let mut lab = Lab::default();
    lab.disk("sda", 4096, 0);
    let without = lab.judge();
    match problem {
        ProblemId::BrokenLabel | ProblemId::StrandedBackupLabel => assert!(without.is_silent(id)),
        _ => assert!(without.is_not_asked(id)),
    }
    assert!(Lab::default().judge().is_not_asked(id), "nothing was read");
}
