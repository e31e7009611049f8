//! Rules on I/O over time: a planted change is found on its day, and a course without one is silent.

use plumb_diagnose::course::{Course, CourseWindow, diagnose};
use plumb_diagnose::{Diagnosis, Reason, RuleId, Severity, Target};
use plumb_model::Facts;
use plumb_model::facts::{ChangeTime, HostChange, HostChangeKind, HostFact, HostValue};
use plumb_model::reason::Counting;
use plumb_testkit::Rng;
use plumb_trace::Layer;

const DAY_NS: i64 = 86_400_000_000_000;

/// Days of a web server, each with some spread: 8 KiB reads and a few 64 KiB writes on the grid, with a median near 400 µs.
fn days(count: usize, seed: u64) -> Vec<CourseWindow> {
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

fn judged(windows: Vec<CourseWindow>) -> Diagnosis {
    judged_beside(windows, Vec::new())
}

fn judged_beside(windows: Vec<CourseWindow>, host: Vec<HostChange>) -> Diagnosis {
    judged_of(86_400, windows, host)
}

fn judged_of(window_seconds: u64, windows: Vec<CourseWindow>, host: Vec<HostChange>) -> Diagnosis {
    diagnose(&Course {
        target: Target::seen("sda", None, Layer::Request),
        window_seconds,
        windows,
        host,
    })
}

const ALL: [RuleId; 4] = [
    RuleId::MisfitRose,
    RuleId::LatencyGrew,
    RuleId::LittleHeadroom,
    RuleId::SizesChanged,
];

/// The day of the first finding and its facts; the other rules are silent.
fn only(found: &Diagnosis, rule: RuleId) -> (&Facts, Severity) {
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

fn assert_day(time: &ChangeTime, day: i64, of: u64) {
    assert_eq!(time.since_ns, day * DAY_NS, "{time:?}");
    assert_eq!(time.windows_before, day as u64);
    assert_eq!(time.windows_after, of - day as u64);
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

#[test]
fn a_misfit_that_rose_is_found_on_its_day() {
    for (off, severity) in [(30, Severity::Warning), (8, Severity::Note)] {
        let mut windows = days(40, 7);
        for window in &mut windows[23..] {
            window.misaligned = Some(window.placed() * off / 100);
        }
        let found = judged(windows);
        let (facts, judged) = only(&found, RuleId::MisfitRose);
        let Facts::MisfitRose(facts) = facts else {
            panic!("{facts:?}");
        };
        assert_eq!(judged, severity);
        assert_day(&facts.time, 23, 40);
        let share = off as f64 / 100.0;
        assert!((facts.share_after - share).abs() < 0.001, "{facts:?}");
        assert!(facts.share_before < 0.01, "{facts:?}");
        let rise = facts.share_after - facts.share_before;
        assert!(
            facts.rise.low <= rise && rise <= facts.rise.high,
            "{facts:?}"
        );
    }
}

/// A misfit that fell is no defect, nor is one of a single day.
#[test]
fn a_misfit_that_fell_is_no_finding() {
    let mut windows = days(40, 8);
    for window in &mut windows[..20] {
        window.misaligned = Some(window.placed() / 2);
    }
    assert_eq!(judged(windows).findings, []);
    let mut windows = days(40, 9);
    windows[20].misaligned = Some(windows[20].placed());
    assert_eq!(judged(windows).findings, []);
}

#[test]
fn a_latency_that_grew_at_equal_load_is_found() {
    let mut windows = days(40, 10);
    for window in &mut windows[15..] {
        window.median_ns = window.median_ns.map(|ns| ns * 2);
    }
    let found = judged(windows);
    let (facts, severity) = only(&found, RuleId::LatencyGrew);
    let Facts::LatencyGrew(facts) = facts else {
        panic!("{facts:?}");
    };
    assert_eq!(severity, Severity::Warning);
    assert_day(&facts.time, 15, 40);
    assert!(
        facts.ratio.low > 1.8 && facts.ratio.low <= 2.0 && facts.ratio.high >= 2.0,
        "{facts:?}"
    );
    assert!(
        (760_000..840_000).contains(&facts.median_after_ns),
        "{facts:?}"
    );
    assert!(facts.loads >= 1);
}

/// Four times the load with a longer latency, on some days before the change as well: at equal load nothing grew.
#[test]
fn a_latency_that_grew_with_the_load_is_no_finding() {
    let mut windows = days(60, 11);
    for (day, window) in windows.iter_mut().enumerate() {
        let is_busy = (day < 30) == day.is_multiple_of(6);
        if is_busy {
            window.reads *= 4;
            window.lengths[1] *= 4;
            window.bytes = window.reads * 8192 + window.writes * 65_536;
            window.median_ns = window.median_ns.map(|ns| ns * 3);
        }
    }
    let found = judged(windows);
    assert!(found.silent.contains(&RuleId::LatencyGrew), "{found:?}");
}

#[test]
fn sizes_that_changed_are_found_with_their_mix() {
    let mut windows = days(40, 12);
    for window in &mut windows[30..] {
        window.lengths = [
            0,
            window.reads / 2,
            window.writes,
            0,
            window.reads - window.reads / 2,
        ];
    }
    let found = judged(windows);
    let (facts, severity) = only(&found, RuleId::SizesChanged);
    let Facts::SizesChanged(facts) = facts else {
        panic!("{facts:?}");
    };
    assert_eq!(severity, Severity::Note);
    assert_day(&facts.time, 30, 40);
    // Half of some 95 % of the I/O went from the second class to the last.
    assert!([1, 4].contains(&facts.most_changed), "{facts:?}");
    assert!((facts.shares_after[1] - 0.475).abs() < 0.03, "{facts:?}");
    assert!((facts.shares_before[1] - 0.95).abs() < 0.03, "{facts:?}");
    assert_eq!(facts.shares_before[4], 0.0);
    for shares in [facts.shares_before, facts.shares_after] {
        assert!(
            (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9,
            "{shares:?}"
        );
    }
}

/// Multiplies the I/O of some days, and their latency.
fn load(windows: &mut [CourseWindow], ios: u64, latency: u64) {
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
fn little_headroom() {
    let mut windows = days(40, 22);
    load(&mut windows[25..], 3, 2);
    let mut by_rate: Vec<u64> = windows.iter().map(CourseWindow::placed).collect();
    by_rate.sort_unstable();
    let third_highest = by_rate[37] as f64 / 86_400.0;
    let found = judged(windows);
    let (facts, severity) = only(&found, RuleId::LittleHeadroom);
    let Facts::LittleHeadroom(facts) = facts else {
        panic!("{facts:?}");
    };
    assert_eq!(severity, Severity::Note);
    assert_day(&facts.time, 25, 40);
    assert_eq!(facts.highest_rate, third_highest);
    assert!(
        facts.ratio.low > 2.5 && facts.ratio.low <= 3.0 && facts.ratio.high >= 3.0,
        "{facts:?}"
    );
    // Some 470,000 I/O a day, and three times as many.
    assert!((5.2..5.7).contains(&facts.rate_before), "{facts:?}");
    assert!((15.6..17.1).contains(&facts.rate_after), "{facts:?}");
    assert!(
        (380_000..420_000).contains(&facts.median_low_ns),
        "{facts:?}"
    );
    assert!(
        (760_000..840_000).contains(&facts.median_highest_ns),
        "{facts:?}"
    );
}

/// A higher rate with the latency of before, or one far from a rate that was sustained, leaves room.
#[test]
fn headroom_is_left() {
    let mut windows = days(40, 23);
    load(&mut windows[25..], 3, 1);
    assert_eq!(judged(windows).findings, []);
    // Three days reached a rate, and all days since the fortieth have three times the first one.
    let with_limit = |ios, latency| {
        let mut windows = days(60, 24);
        for day in [2, 9, 16] {
            load(&mut windows[day..=day], ios, latency);
        }
        load(&mut windows[40..], 3, 2);
        let found = judged(windows);
        let is_told = |rule: RuleId| found.findings.iter().any(|finding| finding.rule() == rule);
        is_told(RuleId::LittleHeadroom)
    };
    assert!(with_limit(3, 2));
    assert!(!with_limit(8, 4));
    // Three days alone had a latency as that of others.
    let mut windows = days(40, 25);
    load(&mut windows[25..], 3, 2);
    windows.sort_by_key(CourseWindow::placed);
    for window in &mut windows[37..] {
        window.median_ns = Some(400_000);
    }
    windows.sort_by_key(|window| window.from_ns);
    assert_eq!(judged(windows).findings, []);
}

/// Reads of 512 KiB at a high rate of bytes are no limit of reads of 8 KiB, and the other way round.
#[test]
fn other_io_have_another_limit() {
    let mut windows = days(60, 26);
    for window in &mut windows[..8] {
        window.lengths = [0, 0, 0, 0, window.placed()];
        window.bytes = window.placed() * 524_288;
        window.median_ns = Some(9_000_000);
    }
    load(&mut windows[..8], 9, 1);
    load(&mut windows[40..], 3, 2);
    let found = judged(windows);
    let is_told = |rule: RuleId| found.findings.iter().any(|finding| finding.rule() == rule);
    assert!(is_told(RuleId::LittleHeadroom), "{found:?}");
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

/// Reads take 200 µs and writes 20 µs, and half of the I/O, then nearly all, are reads: the common median grows, and no I/O got slower.
#[test]
fn a_median_that_follows_the_share_of_reads_is_no_finding() {
    let mut windows = days(40, 16);
    for (day, window) in windows.iter_mut().enumerate() {
        let all = window.placed();
        window.reads = all * if day < 20 { 56 } else { 89 } / 100;
        window.writes = all - window.reads;
        window.median_ns = Some(if day < 20 { 120_000 } else { 190_000 } + day as u64 * 7 % 5);
    }
    let found = judged(windows);
    let is_told = |rule: RuleId| found.findings.iter().any(|finding| finding.rule() == rule);
    assert!(!is_told(RuleId::LatencyGrew), "{found:?}");
    assert!(
        found
            .unknown
            .iter()
            .any(|one| one.rule == RuleId::LatencyGrew)
    );
}

/// A misfit that fell, and rose again later: the rise is found.
#[test]
fn a_rise_behind_a_fall_is_found() {
    let mut windows = days(60, 17);
    for (day, window) in windows.iter_mut().enumerate() {
        let off = match day {
            0..20 => 80,
            20..45 => 0,
            _ => 50,
        };
        window.misaligned = Some(window.placed() * off / 100);
    }
    let found = judged(windows);
    let Facts::MisfitRose(facts) = only(&found, RuleId::MisfitRose).0 else {
        panic!("{found:?}");
    };
    assert_eq!(facts.time.since_ns, 45 * DAY_NS);
    // From the fall on.
    assert_eq!(
        (facts.time.windows_before, facts.time.windows_after),
        (25, 15)
    );
    assert_eq!(facts.share_before, 0.0);
}

/// A misfit that rose and is gone again, is no finding; one that rose twice is found from the second day on.
#[test]
fn a_rise_that_is_gone_again_is_no_finding() {
    let with = |second: u64| {
        let mut windows = days(60, 20);
        for (day, window) in windows.iter_mut().enumerate() {
            let off = match day {
                20..35 => 80,
                50.. => second,
                _ => 0,
            };
            window.misaligned = Some(window.placed() * off / 100);
        }
        judged(windows)
    };
    assert_eq!(with(0).findings, []);
    let found = with(70);
    let Facts::MisfitRose(facts) = only(&found, RuleId::MisfitRose).0 else {
        panic!("{found:?}");
    };
    assert_eq!(facts.time.since_ns, 50 * DAY_NS);
    // The last days of it, too few to be levels of their own.
    let mut windows = days(45, 21);
    for window in &mut windows[30..40] {
        window.misaligned = Some(window.placed() * 80 / 100);
    }
    assert_eq!(judged(windows).findings, []);
}

/// The first night of a backup is no change; hours need two days on each side.
#[test]
fn hours_need_two_days_on_each_side() {
    let hours = |count: usize| {
        let mut windows = days(count, 18);
        for (hour, window) in windows.iter_mut().enumerate() {
            window.from_ns = hour as i64 * DAY_NS / 24;
            let off = if hour % 24 < 15 { 2 } else { 60 };
            window.misaligned = Some(window.placed() * off / 100);
        }
        windows
    };
    for (count, is_unknown) in [
        (21, true),
        (40, true),
        (95, true),
        (96, false),
        (200, false),
    ] {
        let found = judged_of(3600, hours(count), Vec::new());
        assert_eq!(found.findings, [], "{count} hours");
        let unknown = found
            .unknown
            .iter()
            .any(|one| one.rule == RuleId::MisfitRose);
        assert_eq!(unknown, is_unknown, "{count} hours");
    }
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
