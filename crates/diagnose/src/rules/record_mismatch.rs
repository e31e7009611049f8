//! `record-mismatch`: the application asks for parts of records, so whole records are moved for them.
//!
//! Takes the requests of the application (the vfs layer): below the file system they have the size of the records
//! already.

use plumb_geometry::{Bounds, Bytes, Grid};
use plumb_model::facts::{OfLength, RecordMismatch, RequestsAndRecords};
use plumb_model::{
    Confidence, Cost, CostOf, Effect, Facts, Finding, Fix, Reason, RuleId, Severity,
};
use plumb_profile::fit::{FitTally, Select};
use plumb_profile::what_if::Refusal;
use plumb_quoting::Command;

use super::context::table;
use super::{Context, IoRule, Outcome, severity_of, thresholds_with_warning};
use crate::share::Share;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::RecordMismatch,
    thresholds: thresholds_with_warning,
    judge,
};

/// Record sizes that ZFS takes without further settings and that are worth their metadata.
const ADVISED_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=1 << 20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let Some(record) = &context.questions.record else {
        return vec![Outcome::NotAsked];
    };
    let Some(recorded) = &context.analysis.what_if.recorded else {
        return vec![Outcome::NotAsked];
    };
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(why) => return vec![Outcome::Unknown(refused(why))],
    };
    let mut all = FitTally::default();
    for tally in [&recorded.reads, &recorded.writes].into_iter().flatten() {
        all.merge(tally);
    }
    if let Some(unknown) = context.too_few(all.ios) {
        return vec![unknown];
    }
    let share = Share::between(all.partial, all.ios);
    let Some(severity) = severity_of(share) else {
        return vec![context.none_found_of(share, || all.lengths_dropped())];
    };
    // Parts of one record that follow each other are gathered by the cache before the record goes to the disk.
    let alone = partial_heads(context, record);
    let severity = match severity_of(Share::between(alone, share.whole)) {
        Some(Severity::Warning) => severity,
        _ => Severity::Note,
    };
    let table = &context.profile.places.table;
    let commonest = table.commonest_length(Select::DATA);
    let commonest = commonest.map(|(length, ios)| OfLength {
        len_bytes: Bytes(length),
        ios,
    });
    let facts = RequestsAndRecords {
        record_bytes: recorded.record_bytes,
        counted: context.counted(share),
        read_amplification: amplification(recorded.reads.as_ref(), record),
        write_amplification: amplification(recorded.writes.as_ref(), record),
        following: Bounds {
            low: share.part.low.saturating_sub(alone.high),
            high: share.part.high.saturating_sub(alone.low),
        },
        commonest,
    };
    let (read, write) = (facts.read_amplification, facts.write_amplification);
    let at_least = |ratio: Option<Bounds<f64>>| ratio.map_or(1.0, |ratio| ratio.low);
    let cost = at_least(read).max(at_least(write));
    let confidence = context.confidence(&facts.counted, Confidence::Medium);
    let facts = Facts::RecordMismatch(RecordMismatch::Requests(facts));
    let finding = context
        .finding(facts, severity, confidence)
        .with_cost(Cost::estimated(CostOf::MovedBytes, cost));
    vec![Outcome::found(advise(finding, commonest, record))]
}

fn refused(why: &Refusal) -> Reason {
    match why {
        Refusal::LayerAbove { layer } => Reason::BelowRecords { layer: *layer },
        Refusal::Unknown(why) => table(why.clone()),
    }
}

/// Requests that cover a record in part and continue no stream.
fn partial_heads(context: &Context<'_>, record: &Grid) -> Bounds<u64> {
    context
        .profile
        .places
        .table
        .fit(record, Select::HEADS)
        .map_or(Bounds::exact(0), |tally| tally.partial)
}

/// Adds the record size that the commonest request asks for.
fn advise(finding: Finding, commonest: Option<OfLength>, record: &Grid) -> Finding {
    let Some(OfLength { len_bytes, .. }) = commonest else {
        return finding;
    };
    let is_offered = len_bytes.0.is_power_of_two() && ADVISED_BYTES.contains(&len_bytes.0);
    if record.granularity() == len_bytes || !is_offered {
        return finding;
    }
    finding.with_fix(Fix::new(
        Command::new("zfs set")
            .arg(format!("recordsize={}", len_bytes.0))
            .flags("DATASET")
            .remark("then write the files once more"),
        Effect::ChangesSetting,
        "applies to files written afterwards only; smaller records compress less",
        Command::new("zfs inherit recordsize DATASET"),
    ))
}

fn amplification(tally: Option<&FitTally>, record: &Grid) -> Option<Bounds<f64>> {
    tally.and_then(|tally| tally.amplification(record))
}
