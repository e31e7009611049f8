//! Tests of `throughput-inflation`.

use plumb_diagnose::{Flow, Reason, Severity, Throughput};
use plumb_geometry::Bytes;
use plumb_model::Confidence;
use plumb_model::facts::Direction;
use plumb_model::reason::Counting;

use crate::common::{RuleBench, number};
use crate::facts;
use crate::rules::reads;

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
