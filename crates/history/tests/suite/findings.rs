//! Findings over time: each is one interval, whatever happens in between.

use std::ops::ControlFlow;

use plumb_history::{FindingInterval, FindingKey, FindingStep, Reader, Settings, Span, Writer};
use plumb_testkit::temp_dir;

use crate::support::{BEGIN, DAY, MINUTE};

fn key(place: &str) -> FindingKey {
    FindingKey {
        rule: "misaligned-io".to_owned(),
        place: place.to_owned(),
    }
}

fn found(severity: &str) -> FindingStep {
    FindingStep::Found {
        severity: severity.to_owned(),
        facts: format!("{{\"severity\":\"{severity}\"}}"),
    }
}

/// Severity, appeared, changed and went of each, in minutes after the begin.
fn intervals(folder: &std::path::Path) -> Vec<(String, i64, i64, Option<i64>)> {
    let reader = Reader::open(folder, &Settings::default()).expect("a store");
    let minutes = |ns: i64| (ns - BEGIN) / MINUTE;
    let all = reader.findings().expect("a sound file");
    all.into_iter()
        .map(|one| {
            (
                one.severity,
                minutes(one.appeared_ns),
                minutes(one.changed_ns),
                one.went_ns.map(minutes),
            )
        })
        .collect()
}

#[test]
fn a_finding_is_an_interval() {
    let folder = temp_dir("findings");
    let mut writer = Writer::open(folder.path(), Settings::default()).expect("a store");
    let at = |minutes: i64| BEGIN + minutes * MINUTE;
    writer.note_finding(at(1), key("a"), found("warning"));
    writer.note_finding(at(2), key("b"), found("warning"));
    writer.note_finding(at(3), key("a"), found("critical"));
    // Nothing is stored before a checkpoint, and nothing twice by the next one.
    assert_eq!(intervals(folder.path()), []);
    writer.checkpoint(at(4)).expect("a checkpoint");
    writer.checkpoint(at(5)).expect("a checkpoint");
    let (a, b) = (
        ("critical".to_owned(), 1, 3, None),
        ("warning".to_owned(), 2, 2, None),
    );
    assert_eq!(intervals(folder.path()), [a.clone(), b.clone()]);
    drop(writer);

    // A restart: the same finding goes on, another one goes, and comes again.
    let mut writer = Writer::open(folder.path(), Settings::default()).expect("the store");
    let present = writer.present_findings().expect("findings");
    assert_eq!(
        present.iter().map(|one| &one.key).collect::<Vec<_>>(),
        [&key("a"), &key("b")]
    );
    writer.note_finding(at(10), key("b"), FindingStep::Gone);
    writer.note_finding(at(11), key("b"), found("warning"));
    writer.note_finding(at(12), key("unknown"), FindingStep::Gone);
    // A clock that went back ends no finding before its last change.
    writer.note_finding(at(0), key("a"), FindingStep::Gone);
    writer.checkpoint(at(13)).expect("a checkpoint");
    assert_eq!(
        intervals(folder.path()),
        [
            ("critical".to_owned(), 1, 3, Some(3)),
            ("warning".to_owned(), 2, 2, Some(10)),
            ("warning".to_owned(), 11, 11, None),
        ]
    );
    assert_eq!(writer.present_findings().expect("findings").len(), 1);

    // Findings that went are kept as long as the days are.
    let keep_ns = Settings::default().tiers[2].keep_ns;
    writer
        .checkpoint(at(10) + keep_ns - MINUTE)
        .expect("a checkpoint");
    assert_eq!(intervals(folder.path()).len(), 2);
    writer
        .checkpoint(at(20) + keep_ns + DAY)
        .expect("a checkpoint");
    assert_eq!(
        intervals(folder.path()),
        [("warning".to_owned(), 11, 11, None)]
    );
}

/// Against a filter of all findings: ends that touch, findings that are present, and many that appear at one time.
#[test]
fn findings_of_a_span_are_those_present_in_it() {
    let folder = temp_dir("findings-span");
    let mut writer = Writer::open(folder.path(), Settings::default()).expect("a store");
    let mut rng = plumb_testkit::Rng::new(3);
    for number in 0..120 {
        let place = format!("sd{number}");
        let from = BEGIN + rng.below(20) as i64;
        writer.note_finding(from, key(&place), found("warning"));
        if rng.percent(80) {
            let to = from + 1 + rng.below(20) as i64;
            writer.note_finding(to, key(&place), FindingStep::Gone);
        }
    }
    writer.checkpoint(BEGIN + MINUTE).expect("a checkpoint");
    let reader = Reader::open(folder.path(), &Settings::default()).expect("a store");
    let all = reader.findings().expect("a sound file");
    assert_eq!(all.len(), 120);
    assert!(all.is_sorted_by_key(|one| one.appeared_ns));
    for (from, to) in [
        (0, 41),
        (5, 6),
        (7, 15),
        (19, 20),
        (20, 40),
        (40, 60),
        (-9, 0),
        (-9, 1),
    ] {
        let span = Span {
            from_ns: BEGIN + from,
            to_ns: BEGIN + to,
        };
        let mut read = Vec::new();
        let take = |one: FindingInterval| {
            read.push(one);
            ControlFlow::Continue(())
        };
        reader.each_finding(span, take).expect("a sound file");
        let is_present = |one: &&FindingInterval| {
            one.appeared_ns < span.to_ns && one.went_ns.is_none_or(|went| went > span.from_ns)
        };
        let expected: Vec<FindingInterval> = all.iter().filter(is_present).cloned().collect();
        assert_eq!(read, expected, "{from} to {to}");
    }
}

/// A device near a limit does not fill the store.
#[test]
fn the_number_of_findings_is_bounded() {
    let folder = temp_dir("findings-bound");
    let mut writer = Writer::open(folder.path(), Settings::default()).expect("a store");
    for at in 0..10_500 {
        writer.note_finding(BEGIN + at, key("a"), found("warning"));
        writer.note_finding(BEGIN + at, key("a"), FindingStep::Gone);
        if at % 250 == 0 {
            writer.checkpoint(BEGIN + at).expect("a checkpoint");
        }
    }
    writer.checkpoint(BEGIN + 10_500).expect("a checkpoint");
    let reader = Reader::open(folder.path(), &Settings::default()).expect("a store");
    let all = reader.findings().expect("a sound file");
    assert_eq!(all.len(), 10_000);
    assert_eq!(
        all.last().map(|one| one.appeared_ns),
        Some(BEGIN + 10_499),
        "the newest are kept"
    );
}
