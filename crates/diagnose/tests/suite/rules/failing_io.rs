//! Tests of `failing-io`.

use plumb_diagnose::Severity;
use plumb_model::facts::{FailedIos, FailingOp};
use plumb_trace::Op::Read;
use plumb_trace::{Event, Layer, Op, flags};

use crate::common::RuleBench;
use crate::facts;

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
