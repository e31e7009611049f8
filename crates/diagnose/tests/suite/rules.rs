//! Three fixtures for each rule: it fires, it stays silent, there is not enough to tell.

use crate::common::{Io, Judged, Random, RuleBench, few, number};
use crate::facts;
use plumb_diagnose::{Flow, Reason, RuleId, Severity, Throughput};
use plumb_geometry::{Bounds, Bytes, Grid};
use plumb_model::Confidence;
use plumb_model::facts::{
    Direction, FailedIos, FailingOp, GridSource, OfLength, RecordMismatch, Stall,
};
use plumb_model::reason::Counting;
use plumb_profile::fit::Unknown;
use plumb_profile::{Answers, Profile, SingleIo, Table};
use plumb_trace::Op::{Read, Write};
use plumb_trace::{Event, Layer, Op, flags};

/// Places far enough apart that none continues another, over 64 GiB, at multiples of `unit` sectors.
fn spread(count: u64, unit: u64, seed: u64) -> impl Iterator<Item = u64> {
    let mut random = Random(seed);
    let slots = (1 << 27) / count / unit;
    (0..count).map(move |at| (at * slots + random.below(slots / 2)) * unit)
}

fn reads(count: u64, unit: u64, past: u64, sectors: u64) -> Vec<Io> {
    spread(count, unit, 1)
        .map(|start| Io(Read, start + past, sectors))
        .collect()
}

#[test]
fn misaligned_io() {
    let (rule, bench) = ("misaligned-io", RuleBench::grid("4k"));
    let judged = bench.judge_ios([reads(700, 8, 7, 8), reads(300, 8, 0, 8)].concat());
    let finding = judged.finding(rule);
    let facts = facts!(finding, MisalignedIo);
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(700), 1000)
    );
    assert_eq!(
        (facts.grid, facts.grid_source),
        (Grid::ASSUMED, GridSource::User)
    );
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.confidence, Confidence::High);
    // 700 of them touch two cells where one would do.
    assert_eq!(finding.cost.as_ref().expect("a cost").value, 1.7);
    assert!(bench.judge_ios(reads(1000, 8, 0, 8)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(reads(199, 8, 7, 8)).unknown(rule),
        few(199)
    );
    assert_eq!(
        *bench.judge_ios([]).unknown(rule),
        Reason::Table { why: Unknown::NoIo }
    );
}

/// Unaligned I/O that took less time than aligned ones of the same kind are no warning, and slower ones are.
#[test]
fn misaligned_io_that_costs_nothing_is_a_note() {
    let judged = |unaligned_ns: i64| {
        let io = |at: u64, off: u64, ns: i64| {
            let mut event = Event::new(
                at as i64 * 1_000_000,
                0,
                Layer::Request,
                Read,
                (at * 7 % 1_000 * 64 + off) * 512,
                4096,
            );
            event.device_ns = Some(ns + at as i64 % 50);
            event
        };
        let events =
            (0..600).flat_map(|at| [io(2 * at, 0, 100_000), io(2 * at + 1, 7, unaligned_ns)]);
        RuleBench::grid("4k").judge_events(events)
    };
    let severity = |ns| judged(ns).finding("misaligned-io").severity;
    assert_eq!(severity(90_000), Severity::Note);
    // The difference is below 3 %.
    assert_eq!(severity(100_000), Severity::Note);
    assert_eq!(severity(104_000), Severity::Warning);
    assert_eq!(severity(150_000), Severity::Warning);
    let facts = judged(90_000);
    let facts = facts!(facts.finding("misaligned-io"), MisalignedIo);
    let latency = facts.latency.as_ref().expect("timed");
    assert!(latency.shows_no_cost(), "{latency:?}");
}

#[test]
fn misaligned_io_on_the_assumed_grid() {
    let (rule, bench) = ("misaligned-io", RuleBench::default());
    let finding = bench.judge_ios(reads(1000, 8, 7, 8));
    let finding = finding.finding(rule);
    assert_eq!(
        facts!(finding, MisalignedIo).grid_source,
        GridSource::Assumed
    );
    assert_eq!(finding.confidence, Confidence::Medium);
    // On the assumed grid nothing is known of larger ones: that is no silence.
    let reason = Reason::BeyondAssumed {
        count: 0,
        of: 1000,
        granularity_bytes: Bytes(4096),
    };
    assert_eq!(*bench.judge_ios(reads(1000, 8, 0, 8)).unknown(rule), reason);
}

#[test]
fn odd_length_io() {
    let (rule, bench) = ("odd-length-io", RuleBench::grid("4k"));
    let judged = bench.judge_ios([reads(600, 8, 0, 8), reads(400, 8, 0, 3)].concat());
    let finding = judged.finding(rule);
    let facts = facts!(finding, OddLengthIo);
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(400), 1000)
    );
    assert_eq!(facts.unit_bytes, Bytes(4096));
    let odd = OfLength {
        len_bytes: Bytes(1536),
        ios: 400,
    };
    assert_eq!(facts.commonest, [odd]);
    // 1000 cells of 8 sectors for 600 × 8 + 400 × 3 of them.
    assert_eq!(
        finding.cost.as_ref().expect("a cost").value,
        8000.0 / 6000.0
    );
    assert!(judged.is_silent("misaligned-io"));
    assert!(bench.judge_ios(reads(1000, 8, 0, 16)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(reads(150, 8, 0, 3)).unknown(rule),
        few(150)
    );
}

#[test]
fn split_io() {
    let (rule, bench) = ("split-io", RuleBench::chunk(64 << 10, None));
    let judged = bench.judge_ios([reads(900, 128, 0, 16), reads(100, 128, 120, 16)].concat());
    let finding = judged.finding(rule);
    let counted = facts!(finding, SplitIo).counted.expect("counts");
    assert_eq!((counted.count, counted.of), (Bounds::exact(100), 1000));
    assert_eq!(number(finding, "chunk_bytes"), 65_536.0);
    // A random sector of 128 lets 8 KiB spill over from 113 on: 15 of 128.
    assert_eq!(number(finding, "trace.random_share"), 15.0 / 128.0);
    assert_eq!(number(finding, "trace.longer"), 0.0, "no other crosses");
    assert!(bench.judge_ios(reads(1000, 128, 64, 64)).is_silent(rule));
    // Two whole chunks are two because of their length, which is no defect of place.
    assert!(bench.judge_ios(reads(1000, 128, 0, 256)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(reads(20, 128, 120, 16)).unknown(rule),
        few(20)
    );
    assert!(
        RuleBench::default()
            .judge_ios(reads(1000, 128, 120, 16))
            .findings(rule)
            .next()
            .is_none(),
        "not asked"
    );
}

#[test]
fn record_mismatch() {
    let (rule, bench) = ("record-mismatch", RuleBench::record(128 << 10));
    let judged = bench.judge_ios([reads(500, 256, 0, 256), reads(500, 256, 16, 16)].concat());
    let finding = judged.finding(rule);
    let RecordMismatch::Requests(facts) = facts!(finding, RecordMismatch) else {
        panic!("found {:?}", finding.facts);
    };
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(500), 1000)
    );
    assert_eq!(facts.record_bytes, Bytes(128 << 10));
    assert_eq!(finding.severity, Severity::Warning);
    // 1000 records of 256 sectors for 500 × 256 + 500 × 16 of them.
    assert_eq!(number(finding, "read_amplification"), 256_000.0 / 136_000.0);
    assert!(bench.judge_ios(reads(1000, 256, 0, 512)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(reads(199, 256, 1, 16)).unknown(rule),
        few(199)
    );
    let below = RuleBench {
        layer: plumb_trace::Layer::Request,
        ..RuleBench::record(128 << 10)
    };
    let layer = Layer::Request;
    assert_eq!(
        *below.judge_ios(reads(1000, 256, 16, 16)).unknown(rule),
        Reason::BelowRecords { layer }
    );
}

#[test]
fn record_mismatch_advises_only_records_that_exist() {
    let advice = |sectors: u64, record: u64, past: u64| {
        let judged = RuleBench::record(record).judge_ios(reads(1000, record / 512, past, sectors));
        judged
            .finding("record-mismatch")
            .fix
            .first()
            .map(|step| step.command.clone())
    };
    let command = advice(16, 128 << 10, 16).expect("a command");
    assert!(
        command.starts_with("zfs set recordsize=8192 DATASET"),
        "{command}"
    );
    // 8.5 KiB is no record; 512 bytes would cost more metadata than they save; 128 KiB is the present record.
    for (sectors, past) in [(17, 16), (1, 16), (256, 16)] {
        assert_eq!(advice(sectors, 128 << 10, past), None, "{sectors} sectors");
    }
}

#[test]
fn looks_sequential() {
    let (rule, bench) = ("looks-sequential", RuleBench::default());
    let judged = bench.judge_ios([reads(900, 8, 0, 8), reads(100, 8, 0, 256)].concat());
    let finding = judged.finding(rule);
    let facts = facts!(finding, LooksSequential);
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(100), 1000)
    );
    assert_eq!(facts.of_that_size, 100);
    assert_eq!(
        finding.severity,
        Severity::Note,
        "a tenth is nothing to mend"
    );
    assert!(
        bench.judge_ios(reads(1000, 8, 0, 120)).is_silent(rule),
        "60 KiB is not yet large"
    );
    let stream = (0..1000).map(|at| Io(Read, at * 256, 256));
    assert!(
        bench.judge_ios(stream).is_silent(rule),
        "a stream is sequential, and does not only look so"
    );
    assert_eq!(
        *bench.judge_ios(reads(199, 8, 0, 256)).unknown(rule),
        few(199)
    );
}

#[test]
fn small_random_writes() {
    let (rule, bench) = ("small-random-writes", RuleBench::default());
    let writes: Vec<Io> = reads(1000, 8, 0, 16)
        .into_iter()
        .map(|io| Io(Write, io.1, io.2))
        .collect();
    let judged = bench.judge_ios(writes.clone());
    let finding = judged.finding(rule);
    let facts = facts!(finding, SmallRandomWrites);
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(1000), 1000)
    );
    assert_eq!(facts.gathered_writes, 63, "1,000 / 16, rounded up");
    // 1000 writes in 999 ms.
    assert_eq!(number(finding, "per_second").round(), 1001.0);
    assert!(
        bench.judge_ios(reads(1000, 8, 0, 16)).is_silent(rule),
        "reads are no writes"
    );
    let stream = (0..1000).map(|at| Io(Write, at * 16, 16));
    assert!(
        bench.judge_ios(stream).is_silent(rule),
        "a log is no random I/O"
    );
    assert_eq!(
        *bench.judge_ios(writes.into_iter().take(50)).unknown(rule),
        few(50)
    );
}

#[test]
fn member_skew() {
    let (rule, bench) = ("member-skew", RuleBench::chunk(64 << 10, Some(4)));
    let evenly =
        |from: u64, to: u64| (from..to).map(|at| Io(Read, at * 7 % 4 * 128 + at / 4 * 512, 16));
    let hot = (0..500).map(|at| Io(Read, (at + 1000) * 512 + 256, 16));
    let judged = bench.judge_ios(evenly(0, 2000).chain(hot));
    let finding = judged.finding(rule);
    let facts = facts!(finding, MemberSkew);
    assert_eq!((facts.member, facts.members), (2, 4));
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(1000), 2500)
    );
    assert_eq!(number(finding, "ratio"), 1.6);
    assert!(bench.judge_ios(evenly(0, 2000)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(evenly(0, 199)).unknown(rule),
        few(199),
        "too few I/O for anything"
    );
    let many = RuleBench::chunk(4 << 10, Some(64));
    let pieces = Reason::TooFew {
        what: Counting::Pieces { members: 64 },
        seen: 400,
        needed: 3200,
    };
    assert_eq!(*many.judge_ios(reads(400, 8, 0, 8)).unknown(rule), pieces);
}

/// One failed read, write or flush is a finding. A refused discard is none, and calls on files fail for other reasons.
#[test]
fn failing_io() {
    let rule = "failing-io";
    let failing = |ops: &[Op], layer: Layer| {
        let bench = RuleBench {
            layer,
            ..RuleBench::default()
        };
        let event = |(at, op): (u64, &Op)| Event {
            flags: if at == 0 { flags::FAILED } else { 0 },
            ..Event::new(at as i64, 0, layer, *op, at * 8192, 8192)
        };
        bench.judge_events((0..).zip(ops).map(event))
    };
    let judged = failing(&[Op::Write, Op::Write, Read], Layer::Request);
    let finding = judged.finding(rule);
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(
        facts!(finding, FailingIo).ops,
        [FailedIos {
            op: FailingOp::Write,
            failed: 1,
            ios: Some(2)
        }]
    );
    for (ops, layer) in [
        (&[Op::Discard, Read][..], Layer::Request),
        (&[Op::WriteZeroes], Layer::Request),
        (&[Read], Layer::Vfs),
    ] {
        assert!(
            failing(ops, layer).findings(rule).next().is_none(),
            "{ops:?}"
        );
    }
}

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

/// Reads of `ns` each, `depth` of them in flight at any time: by Little's law the device serves `depth` of them in `ns`.
fn queue_of(depth: i64, ns: i64, count: i64) -> Judged {
    RuleBench::default().judge_events((0..count).map(|number| Event {
        device_ns: Some(ns),
        ..Event::new(
            number * ns / depth,
            0,
            Layer::Request,
            Read,
            number as u64 * 1_000_000,
            8192,
        )
    }))
}

/// Busy, with a queue, and slow: all three.
#[test]
fn saturated_device() {
    let rule = "saturated-device";
    // 8 at a time, 40 ms each: one every 5 ms, over 5 s.
    let judged = queue_of(8, 40_000_000, 1000);
    let facts = *facts!(judged.finding(rule), SaturatedDevice);
    assert!(facts.busy_share > 0.99, "{facts:?}");
    assert!((7.5..=8.0).contains(&facts.depth_mean), "{facts:?}");
    assert!((37.5e6..=40e6).contains(&facts.mean_ns), "{facts:?}");
    assert!((4.9e6..=5.1e6).contains(&facts.served_ns), "{facts:?}");
    assert!((196.0..=204.0).contains(&facts.ios_per_second), "{facts:?}");
    for (words, judged) in [
        ("fast", queue_of(8, 400_000, 100_000)),
        ("one at a time", queue_of(1, 40_000_000, 300)),
        ("a burst", queue_of(8, 40_000_000, 400)),
    ] {
        assert!(judged.findings(rule).next().is_none(), "{words}");
    }
    // Half of the time nothing is in flight.
    let pauses = (0..1000_i64).map(|number| Event {
        device_ns: Some(40_000_000),
        ..Event::new(
            number / 8 * 80_000_000 + number % 8,
            0,
            Layer::Request,
            Read,
            number as u64 * 1_000_000,
            8192,
        )
    });
    let judged = RuleBench::default().judge_events(pauses);
    assert!(judged.findings(rule).next().is_none());
}

/// The fullest of many members has more than its part by chance alone: in 99 of 100 cases that is no finding.
#[test]
fn member_skew_is_not_fooled_by_many_members() {
    let mut fired = 0;
    for members in [8, 16, 32] {
        for seed in 1..=100 {
            let mut random = Random(seed * 1000 + members);
            let ios = (0..50 * members).map(|_| Io(Read, random.below(1 << 30) * 8, 8));
            let bench = RuleBench::chunk(4 << 10, u32::try_from(members).ok());
            fired += bench
                .judge_ios(ios.collect::<Vec<_>>())
                .findings("member-skew")
                .count();
        }
    }
    assert!(fired <= 6, "{fired} of 300 even stripes were called uneven");
}

/// Silent rules never spoke: not on another grid, nor on another device.
#[test]
fn a_rule_that_spoke_is_not_silent() {
    let mut bench = RuleBench::grid("4k");
    bench
        .questions
        .grids
        .extend(RuleBench::grid("64k").questions.grids);
    let judged = bench.judge_ios(reads(1000, 8, 0, 8));
    assert_eq!(
        judged.findings("misaligned-io").count(),
        1,
        "on 64 KiB alone"
    );
    assert!(!judged.diagnosis.silent.contains(&RuleId::MisalignedIo));
    let mut all = RuleBench::grid("4k")
        .judge_ios(reads(1000, 8, 0, 8))
        .diagnosis;
    assert!(all.silent.contains(&RuleId::MisalignedIo));
    all.absorb(
        RuleBench::grid("4k")
            .judge_ios(reads(1000, 8, 7, 8))
            .diagnosis,
    );
    assert!(!all.silent.contains(&RuleId::MisalignedIo));
    all.absorb(
        RuleBench::grid("4k")
            .judge_ios(reads(1000, 8, 0, 8))
            .diagnosis,
    );
    assert!(!all.silent.contains(&RuleId::MisalignedIo));
    assert_eq!(
        all.silent
            .iter()
            .filter(|rule| **rule == RuleId::LooksSequential)
            .count(),
        1,
        "named once"
    );
}

/// Requested and moved KiB, in a number of calls.
fn flow(calls: u64, asked: u64, direct: u64, device: u64) -> Flow {
    Flow {
        calls,
        asked_bytes: asked << 10,
        direct_bytes: direct << 10,
        device_bytes: device << 10,
    }
}

fn judge_throughput(throughput: &Throughput) -> crate::common::Judged {
    let bench = RuleBench {
        layer: plumb_trace::Layer::Vfs,
        ..RuleBench::default()
    };
    let mut judged = bench.judge_ios(reads(1000, 8, 0, 8));
    assert!(
        judged.findings("throughput-inflation").next().is_none(),
        "one layer alone asks nothing"
    );
    judged.diagnosis = plumb_diagnose::diagnose_throughput(
        &judged.profile,
        &judged.analysis,
        &bench.questions,
        throughput,
    );
    judged
}

#[test]
fn throughput_inflation() {
    let rule = "throughput-inflation";
    // 8 KiB pages out of records of 128 KiB, past the cache.
    let mut throughput = Throughput {
        reads: flow(1000, 8000, 8000, 96_000),
        ..Throughput::default()
    };
    let judged = judge_throughput(&throughput);
    let finding = judged.finding(rule);
    let facts = facts!(finding, ThroughputInflation);
    assert_eq!((facts.direction, facts.ratio), (Direction::Read, 12.0));
    assert_eq!(facts.device_bytes, Bytes(96_000 << 10));
    assert!(!facts.is_cached);
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Warning, Confidence::High)
    );
    assert_eq!(finding.cost.as_ref().expect("a cost").value, 12.0);
    assert_eq!(number(finding, "asked_bytes"), 8000.0 * 1024.0);
    // The same through the cache is said to be so.
    throughput.reads.direct_bytes = 0;
    let judged = judge_throughput(&throughput);
    assert_eq!(judged.finding(rule).confidence, Confidence::Medium);
    assert!(facts!(judged.finding(rule), ThroughputInflation).is_cached);
    // A journal is no inflation, and a little metadata neither, for any ratio.
    throughput.reads = flow(1000, 8000, 8000, 15_999);
    assert!(judge_throughput(&throughput).is_silent(rule));
    throughput.reads = flow(200, 100, 100, 1100);
    assert!(judge_throughput(&throughput).is_silent(rule));
    throughput.reads = flow(1000, 8000, 8000, 24_000);
    assert_eq!(
        judge_throughput(&throughput).finding(rule).severity,
        Severity::Note
    );
}

#[test]
fn throughput_inflation_of_writes_needs_a_synced_window() {
    let rule = "throughput-inflation";
    let mut throughput = Throughput {
        writes: flow(500, 250, 0, 4000),
        ..Throughput::default()
    };
    throughput.reads.device_bytes = 2000 << 10;
    assert_eq!(
        *judge_throughput(&throughput).unknown(rule),
        Reason::NotSynced
    );
    throughput.is_synced = true;
    let judged = judge_throughput(&throughput);
    let facts = facts!(judged.finding(rule), ThroughputInflation);
    assert_eq!((facts.direction, facts.ratio), (Direction::Write, 16.0));
    assert_eq!(facts.read_first_bytes, Some(Bytes(2_000 << 10)));
    // Past the cache nothing is kept for later.
    throughput = Throughput {
        writes: flow(500, 2000, 2000, 2000),
        ..Throughput::default()
    };
    assert!(judge_throughput(&throughput).is_silent(rule));
}

#[test]
fn throughput_inflation_needs_both_sides_whole() {
    let rule = "throughput-inflation";
    let inflated = Throughput {
        reads: flow(1000, 8000, 8000, 96_000),
        ..Throughput::default()
    };
    let few = Throughput {
        reads: flow(199, 8000, 8000, 96_000),
        ..Throughput::default()
    };
    let reason = Reason::TooFew {
        what: Counting::Calls,
        seen: 199,
        needed: 200,
    };
    assert_eq!(*judge_throughput(&few).unknown(rule), reason);
    let mapped = Throughput {
        uncounted: vec!["mapped files".into()],
        ..inflated.clone()
    };
    let ways = vec!["mapped files".to_owned()];
    assert_eq!(
        *judge_throughput(&mapped).unknown(rule),
        Reason::Uncounted { ways }
    );
    let shared = Throughput {
        device_unknown: Some("its device is shared".into()),
        ..inflated
    };
    let why = "its device is shared".to_owned();
    assert_eq!(
        *judge_throughput(&shared).unknown(rule),
        Reason::DeviceUnknown { why }
    );
}
