//! Problems noticed while reading become findings; and the JSON of a finding on a layout.

use plumb_diagnose::{Finding, RuleId, Severity};
use plumb_geometry::{Bytes, SECTOR};
use plumb_model::Facts;
use plumb_model::facts::NoticedProblem;
use plumb_stack::{Kind, Part, Placing, Problem, ProblemId, Source};

use crate::layout::lab::{Lab, kernel};

fn facts(finding: &Finding) -> &NoticedProblem {
    match &finding.facts {
        Facts::BrokenLabel(facts)
        | Facts::StrandedBackupLabel(facts)
        | Facts::Contradiction(facts) => facts,
        other => panic!("found {other:?}"),
    }
}

fn noticed(id: ProblemId) -> Lab {
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

#[test]
fn broken_and_stranded_labels() {
    for (problem, severity) in [
        (ProblemId::BrokenLabel, Severity::Warning),
        (ProblemId::StrandedBackupLabel, Severity::Note),
    ] {
        let judged = noticed(problem).judge();
        let id = RuleId::from(problem).name();
        let finding = judged.finding(id);
        assert_eq!(finding.severity, severity);
        assert_eq!(
            *facts(finding),
            NoticedProblem {
                text: "the primary header has another checksum".to_owned(),
                source: Source::OnDisk {
                    format: "gpt".to_owned()
                },
                is_move_unfinished: false,
            }
        );
        assert_eq!(finding.target.device, "sda");
        let mut lab = Lab::default();
        lab.disk("sda", 4096, 0);
        assert!(lab.judge().is_silent(id));
        assert!(Lab::default().judge().is_not_asked(id), "nothing was read");
    }
}

/// Those without their own rule keep their names, and each has advice.
#[test]
fn other_problems_keep_their_names() {
    for (problem, severity) in [
        (ProblemId::OverlappingPartitions, Severity::Critical),
        (ProblemId::UnfinishedMove, Severity::Critical),
        (ProblemId::SectorSizeMismatch, Severity::Warning),
        (ProblemId::BrokenSuperblock, Severity::Warning),
        (ProblemId::AshiftBelowBlock, Severity::Warning),
        (ProblemId::HiddenSectors, Severity::Note),
    ] {
        let judged = noticed(problem).judge();
        let id = RuleId::from(problem).name();
        assert_eq!(judged.finding(id).severity, severity, "{id}");
        assert!(judged.is_silent("broken-label"), "{id} is another matter");
    }
}

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
fn beyond_device() {
    let rule = "beyond-device";
    for (sectors, found) in [(1000, false), (1001, true)] {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        lab.builder.size(disk, Bytes(1008 * SECTOR), &kernel());
        let partition = lab.node(Kind::Partition, "sda1");
        let len = Some(Bytes(sectors * SECTOR));
        let part = Part {
            upper: Bytes(0),
            node: disk,
            start: Bytes(8 * SECTOR),
            len,
        };
        lab.builder
            .place(partition, Placing::Parts { parts: vec![part] }, &kernel());
        let judged = lab.judge();
        assert_eq!(judged.is_silent(rule), !found);
        if found {
            assert_eq!(judged.finding(rule).severity, Severity::Critical);
            assert_eq!(judged.finding(rule).target.device, "sda1");
        }
    }
}

#[test]
fn contradiction() {
    let rule = "contradiction";
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.builder.size(disk, Bytes(1 << 30), &kernel());
    lab.builder.size(disk, Bytes(1 << 31), &Source::User);
    let judged = lab.judge();
    let facts = facts(judged.finding(rule));
    assert_eq!(facts.text, "sda is 1 GiB and 2 GiB long");
    assert_eq!(facts.source, Source::User);
    let mut lab = Lab::default();
    lab.disk("sda", 4096, 0);
    assert!(lab.judge().is_silent(rule));
}

/// `target` and `layer` keep their places; a layer of a stack is named by its kind.
#[test]
fn the_shape_of_a_finding() {
    let mut lab = noticed(ProblemId::BrokenLabel);
    lab.host(plumb_stack::node::keys::NMD, 1_u64);
    let disk = lab.bare("d0");
    let soft = lab.runs(Kind::SoftPartition, "d1", &[(disk, 8, 8)]);
    lab.fact(soft, plumb_stack::node::keys::MANAGER, "svm");
    let judged = lab.judge();
    let json = |rule: &str| serde_json::to_value(judged.finding(rule)).expect("a finding");
    let label = json("broken-label");
    assert_eq!(
        label["target"],
        serde_json::json!({"host": null, "device": "sda", "part": null, "layer": "disk", "identity": null})
    );
    assert_eq!(label["rule"], "broken-label");
    assert_eq!(label["facts"]["source"]["format"], "gpt");
    let host = json("too-many-metadevices");
    assert_eq!(
        (&host["target"]["layer"], &host["target"]["device"]),
        (&"host".into(), &"(host)".into())
    );
}
