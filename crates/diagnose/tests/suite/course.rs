//! Rules on I/O over time: a planted change is found on its day, and a course without one is silent.

use plumb_diagnose::course::{Course, CourseWindow, diagnose};
use plumb_diagnose::{Diagnosis, Reason, RuleId, Severity, Target};
use plumb_model::Facts;
use plumb_model::facts::{ChangeTime, HostChange, HostChangeKind, HostFact, HostValue};
use plumb_model::reason::Counting;
use plumb_testkit::Rng;
use plumb_trace::Layer;

pub(crate) const DAY_NS: i64 = 86_400_000_000_000;

/// Days of a web server, each with some spread: 8 KiB reads and a few 64 KiB writes on the grid, with a median near 400 µs.
pub(crate) fn days(count: usize, seed: u64) -> Vec<CourseWindow> {
    let mut rng = Rng::new(seed);
    let day = |day: usize| {
        let reads = 400_000 + rng.below(100_000);
        let writes = 20_000 + rng.below(5_000);
        CourseWindow {
            from_ns: day as i64 * DAY_NS,
            reads,
            writes,
            bytes: reads * 8192 + writes * 65_536,
            misaligned: Some(rng.below(reads / 100)),
            median_ns: Some(380_000 + rng.below(40_000)),
            lengths: [0, reads, writes, 0, 0],
        }
    };
    (0..count).map(day).collect()
}

pub(crate) fn judged(windows: Vec<CourseWindow>) -> Diagnosis {
    judged_beside(windows, Vec::new())
}

pub(crate) fn judged_beside(windows: Vec<CourseWindow>, host: Vec<HostChange>) -> Diagnosis {
    judged_of(86_400, windows, host)
}

pub(crate) fn judged_of(
    window_seconds: u64,
    windows: Vec<CourseWindow>,
    host: Vec<HostChange>,
) -> Diagnosis {
    diagnose(&Course {
        target: Target::seen("sda", None, Layer::Request),
        window_seconds,
        windows,
        host,
    })
}

pub(crate) const ALL: [RuleId; 4] = [
    RuleId::MisfitRose,
    RuleId::LatencyGrew,
    RuleId::LittleHeadroom,
    RuleId::SizesChanged,
];

/// The day of the first finding and its facts; the other rules are silent.
pub(crate) fn only(found: &Diagnosis, rule: RuleId) -> (&Facts, Severity) {
    let rules: Vec<RuleId> = found
        .findings
        .iter()
        .map(|finding| finding.rule())
        .collect();
    assert_eq!(rules, [rule], "{found:?}");
    let others: Vec<RuleId> = ALL.into_iter().filter(|other| *other != rule).collect();
    assert_eq!(found.silent, others);
    (&found.findings[0].facts, found.findings[0].severity)
}

pub(crate) fn assert_day(time: &ChangeTime, day: i64, of: u64) {
    assert_eq!(time.since_ns, day * DAY_NS, "{time:?}");
    assert_eq!(time.windows_before, day as u64);
    assert_eq!(time.windows_after, of - day as u64);
}

/// Multiplies the I/O of some days, and their latency.
pub(crate) fn load(windows: &mut [CourseWindow], ios: u64, latency: u64) {
    for window in windows {
        window.reads *= ios;
        window.writes *= ios;
        window.bytes *= ios;
        window.lengths = window.lengths.map(|count| count * ios);
        window.misaligned = window.misaligned.map(|count| count * ios);
        window.median_ns = window.median_ns.map(|ns| ns * latency);
    }
}

#[test]
fn courses_without_a_change_are_silent() {
    for seed in 0..20 {
        let found = judged(days(60, seed));
        assert_eq!(
            (found.findings.len(), found.silent),
            (0, ALL.to_vec()),
            "{seed}"
        );
    }
}

/// Of a thousand packages beside a change some are named, and all other changes.
#[test]
fn packages_beside_a_change_are_limited() {
    let change = |of| HostChange {
        at_ns: 20 * DAY_NS,
        is: HostChangeKind::Fact {
            of,
            before: None,
            after: Some(HostValue::Name("1".to_owned())),
        },
    };
    let package = |number: u32| {
        change(HostFact::Package {
            name: format!("p{number}"),
        })
    };
    let mut host: Vec<HostChange> = (0..1000).map(package).collect();
    host.push(change(HostFact::Kernel));
    let mut windows = days(40, 27);
    for window in &mut windows[20..] {
        window.misaligned = Some(window.placed());
    }
    let found = judged_beside(windows, host);
    let Facts::MisfitRose(facts) = only(&found, RuleId::MisfitRose).0 else {
        panic!("{found:?}");
    };
    assert_eq!((facts.time.beside.len(), facts.time.left_out), (51, 950));
    assert_eq!(facts.time.beside[50], change(HostFact::Kernel));
}

/// Windows without enough I/O or without the figure are no observations.
#[test]
fn a_short_course_is_unknown() {
    let too_few = |what, seen| Reason::TooFew {
        what,
        seen,
        needed: 10,
    };
    let mut windows = days(30, 13);
    for window in &mut windows[9..] {
        (window.reads, window.writes) = (100, 99);
    }
    let found = judged(windows);
    let reasons: Vec<&Reason> = found.unknown.iter().map(|one| &one.reason).collect();
    let [windows_alone, timed] =
        [Counting::Windows, Counting::TimedWindows].map(|what| too_few(what, 9));
    assert_eq!(reasons, [&windows_alone, &timed, &timed, &windows_alone]);
    let mut windows = days(30, 14);
    for window in &mut windows {
        (window.misaligned, window.median_ns) = (None, None);
    }
    let found = judged(windows);
    let unknown: Vec<(RuleId, &Reason)> = found
        .unknown
        .iter()
        .map(|one| (one.rule, &one.reason))
        .collect();
    assert_eq!(
        unknown,
        [
            (RuleId::MisfitRose, &too_few(Counting::Windows, 0)),
            (RuleId::LatencyGrew, &too_few(Counting::TimedWindows, 0)),
            (RuleId::LittleHeadroom, &too_few(Counting::TimedWindows, 0)),
        ]
    );
}

/// Only changes of the host from the window before the change to a day after its window are named.
#[test]
fn changes_of_the_host_are_named_beside_it() {
    let kernel = |at_ns| HostChange {
        at_ns,
        is: HostChangeKind::Fact {
            of: HostFact::Kernel,
            before: Some(HostValue::Name("6.1".to_owned())),
            after: Some(HostValue::Name("6.12".to_owned())),
        },
    };
    let mut windows = days(40, 15);
    for window in &mut windows[20..] {
        window.misaligned = Some(window.placed());
    }
    let times = [19 * DAY_NS - 1, 19 * DAY_NS, 22 * DAY_NS - 1, 22 * DAY_NS];
    let found = judged_beside(windows, times.map(kernel).to_vec());
    let Facts::MisfitRose(facts) = only(&found, RuleId::MisfitRose).0 else {
        panic!("{found:?}");
    };
    assert_eq!(facts.time.beside, [kernel(times[1]), kernel(times[2])]);
}

/// A disk with I/O on one day a week: a change of the host in the pause is beside that of the I/O.
#[test]
fn changes_of_the_host_in_a_pause_are_named() {
    let mut windows = days(20, 19);
    for (week, window) in windows.iter_mut().enumerate() {
        window.from_ns = week as i64 * 7 * DAY_NS;
        if week >= 10 {
            window.misaligned = Some(window.placed());
        }
    }
    let moved = HostChange {
        at_ns: (9 * 7 + 4) * DAY_NS,
        is: HostChangeKind::Gone {
            rule: RuleId::SinglePath,
            device: "sda".to_owned(),
        },
    };
    let found = judged_beside(windows, vec![moved.clone()]);
    let Facts::MisfitRose(facts) = only(&found, RuleId::MisfitRose).0 else {
        panic!("{found:?}");
    };
    assert_eq!(facts.time.beside, [moved]);
}
