//! Tests of `saturated-device`.

use plumb_trace::Op::Read;
use plumb_trace::{Event, Layer};

use crate::common::{Judged, RuleBench};
use crate::facts;

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
