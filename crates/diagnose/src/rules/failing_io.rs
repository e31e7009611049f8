//! `failing-io`: the device, or the path to it, fails reads, writes or flushes.

use plumb_model::facts::{FailedIos, FailingIo, FailingOp};
use plumb_model::{Confidence, Facts, RuleId, Severity};
use plumb_trace::{Layer, Op};

use super::{Context, IoRule, Outcome};

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::FailingIo,
    thresholds: || vec!["one failed read, write or flush".to_owned()],
    judge,
};

/// No share and no interval: a device that works fails no read. The kernel has tried again by the time it reports an error.
fn judge(context: &Context<'_>) -> Vec<Outcome> {
    // Calls on files fail for reasons of the file: its end, its limits, its mode.
    if context.profile.layer == Layer::Vfs {
        return vec![Outcome::NotAsked];
    }
    let ops: Vec<FailedIos> = [
        (Op::Read, FailingOp::Read),
        (Op::Write, FailingOp::Write),
        (Op::Flush, FailingOp::Flush),
    ]
    .into_iter()
    .map(|(op, failing)| {
        let totals = &context.profile.ops[op as usize];
        FailedIos {
            op: failing,
            failed: totals.failed,
            // A watch counts only the flushes that fail, and failures of I/O that were issued before it began.
            ios: (totals.ios >= totals.failed).then_some(totals.ios),
        }
    })
    .filter(|ios| ios.failed > 0)
    .collect();
    // Most formats of traces note no errors: without one, nothing is known.
    if ops.is_empty() {
        return vec![Outcome::NotAsked];
    }
    let answers = context.profile.answers.as_ref();
    let first = answers.map_or_else(Vec::new, |answers| answers.failed.clone());
    let facts = Facts::FailingIo(FailingIo { ops, first });
    vec![Outcome::found(context.finding(
        facts,
        Severity::Critical,
        Confidence::High,
    ))]
}
