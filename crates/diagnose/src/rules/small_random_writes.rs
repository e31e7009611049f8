//! `small-random-writes`: writes that are small and continue no stream. Disks and parity arrays suffer most from them.

use plumb_geometry::Bytes;
use plumb_model::facts::SmallRandomWrites;
use plumb_model::{Confidence, Cost, CostOf, Facts, RuleId, Severity};
use plumb_profile::fit::Select;
use plumb_trace::Op;

use super::{Context, IoRule, Outcome, severity_of, thresholds_of_shares};
use crate::share::Share;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::SmallRandomWrites,
    thresholds: || {
        let size = format!("writes of at most {} KiB", SMALL_BYTES_MAX >> 10);
        [thresholds_of_shares(), vec![size]].concat()
    },
    judge,
};

/// Longest write that is small. At 16 KiB a disk spends far more time on its way than on data.
pub const SMALL_BYTES_MAX: u64 = 16 << 10;

/// Below this share writing them otherwise would change little.
const SHARE_WARNING: f64 = 0.25;

/// How many small writes one gathered write might hold; the number tried in the 307 Corporation case.
const GATHERED: u64 = 16;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let table = &context.profile.places.table;
    if let Some(unknown) = context.streams_unknown() {
        return vec![unknown];
    }
    let data = table.count(Select::DATA);
    if let Some(unknown) = context.too_few(data) {
        return vec![unknown];
    }
    let writes = Select {
        op: Some(Op::Write),
        continues: Some(false),
        len_bytes_min: 0,
    };
    let longer = Select {
        len_bytes_min: SMALL_BYTES_MAX + 1,
        ..writes
    };
    let small = table.count(writes).saturating_sub(table.count(longer));
    let share = Share::new(small, data);
    let Some(severity) = severity_of(share) else {
        return vec![context.none_found(share)];
    };
    let severity = if share.value() < SHARE_WARNING {
        Severity::Note
    } else {
        severity
    };
    let counted = context.counted(share);
    let confidence = context.confidence(&counted, Confidence::Medium);
    let span_ns = context.analysis.span_ns;
    let facts = Facts::SmallRandomWrites(SmallRandomWrites {
        longest_bytes: Bytes(SMALL_BYTES_MAX),
        counted,
        gathered: GATHERED,
        gathered_writes: small.div_ceil(GATHERED),
        per_second: span_ns.map(|span_ns| small as f64 * 1e9 / span_ns as f64),
    });
    let finding = context
        .finding(facts, severity, confidence)
        .with_cost(Cost::estimated(CostOf::GatheredWrites, GATHERED as f64));
    vec![Outcome::found(finding)]
}
