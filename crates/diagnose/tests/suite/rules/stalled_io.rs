//! Tests of `stalled-io`.

use plumb_diagnose::Severity;
use plumb_model::facts::Stall;
use plumb_profile::{Answers, Profile, SingleIo, Table};
use plumb_trace::Op::Read;
use plumb_trace::{Event, Layer};

use crate::common::{Judged, RuleBench};
use crate::facts;

fn one_io(ns: u64) -> SingleIo {
    SingleIo {
        ns,
        at_ns: 0,
        op: Read,
        start_bytes: 8192,
        len_bytes: 8192,
        sender: None,
        file: None,
        error: None,
    }
}

/// A device with these answers in a watch, without an I/O whose issue and completion the watch saw.
fn judge_answers(answers: Answers) -> Judged {
    let mut profile = Profile::new("8,0", Layer::Request, Table::default());
    profile.answers = Some(Box::new(answers));
    RuleBench::default().judge(profile)
}

/// 300 reads, one after the other; those of the first `slow` take `slow_ns`, all others `ns`.
fn reads_that_take(slow: u64, slow_ns: i64, ns: i64) -> Judged {
    let mut at_ns = 0;
    RuleBench::default().judge_events((0..300).map(|number| {
        let device_ns = if number < slow { slow_ns } else { ns };
        let event = Event {
            device_ns: Some(device_ns),
            ..Event::new(at_ns, 0, Layer::Request, Read, number * 1_000_000, 8192)
        };
        at_ns += device_ns + 1000;
        event
    }))
}

/// A silence counts while I/O are in flight: 2 s of it, or one I/O that is 5 s old. The kernel's count decides whether any is.
#[test]
fn stalled_io_of_a_watch() {
    let second = 1_000_000_000;
    let hung = judge_answers(Answers {
        in_flight: 3,
        present_silence_ns: 2 * second,
        longest_silence_ns: 2 * second,
        oldest: Some(one_io(9 * second)),
        ..Answers::default()
    });
    let finding = hung.finding("stalled-io");
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(
        facts!(finding, StalledIo).stall,
        Stall::Silent {
            in_flight: 3,
            for_ns: 2 * second,
            oldest: Some(one_io(9 * second))
        }
    );
    let left_behind = judge_answers(Answers {
        in_flight: 1,
        oldest: Some(one_io(5 * second)),
        ..Answers::default()
    });
    assert!(matches!(
        facts!(left_behind.finding("stalled-io"), StalledIo).stall,
        Stall::LeftBehind { in_flight: 1, .. }
    ));
    // If the completions of other I/O were missed, that of the oldest may have been.
    let mut profile = Profile::new("8,0", Layer::Request, Table::default());
    profile.losses.unmatched_issues = 1;
    profile.answers = Some(Box::new(Answers {
        in_flight: 1,
        oldest: Some(one_io(5 * second)),
        ..Answers::default()
    }));
    let missed = RuleBench::default().judge(profile);
    assert!(missed.findings("stalled-io").next().is_none());
    let over = judge_answers(Answers {
        longest_silence_ns: 3 * second,
        ..Answers::default()
    });
    let finding = over.finding("stalled-io");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(
        facts!(finding, StalledIo).stall,
        Stall::WasSilent {
            for_ns: 3 * second,
            slowest: None
        }
    );
    for quiet in [
        Answers {
            in_flight: 3,
            present_silence_ns: 2 * second - 1,
            longest_silence_ns: 2 * second - 1,
            ..Answers::default()
        },
        // Its completion was missed: the kernel has nothing in flight.
        Answers {
            oldest: Some(one_io(60 * second)),
            ..Answers::default()
        },
    ] {
        let judged = judge_answers(quiet);
        assert!(judged.findings("stalled-io").next().is_none());
    }
}

/// A trace with a few I/O of 2 s among fast ones shows a stall. A trace in which all take as long shows none.
#[test]
fn stalled_io_of_a_trace() {
    let (slow_ns, fast_ns) = (3_000_000_000, 200_000);
    let judged = reads_that_take(2, slow_ns, fast_ns);
    let Stall::Slow {
        ios,
        longest_ns,
        median_ns,
        ..
    } = facts!(judged.finding("stalled-io"), StalledIo).stall
    else {
        panic!("a stall of another kind");
    };
    assert_eq!(ios, 2);
    // Buckets are a sixteenth of a power of two wide.
    assert!(
        (2_812_500_000..=3_000_000_000).contains(&longest_ns),
        "{longest_ns}"
    );
    assert!((200_000..=212_500).contains(&median_ns), "{median_ns}");
    for (slow, ns) in [(0, fast_ns), (300, fast_ns), (2, 50_000_000)] {
        let judged = reads_that_take(slow, slow_ns, ns);
        assert!(
            judged.findings("stalled-io").next().is_none(),
            "{slow} of 3 s, the others {ns} ns"
        );
    }
}
