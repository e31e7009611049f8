//! `record-mismatch`: the application asks for parts of records, so whole records are moved for them.
//!
//! Takes the requests of the application (the vfs layer): below the file system they have the size of the records
//! already.

use plumb_geometry::{Bytes, Grid};
use plumb_model::facts::{OfLength, RecordMismatch, RequestsAndRecords};
use plumb_model::{
    Confidence, Cost, CostOf, Effect, Facts, Finding, Fix, Reason, RuleId, Severity,
};
use plumb_profile::fit::{FitTally, Select};
use plumb_profile::what_if::{Recorded, Refusal};
use plumb_quoting::Command;

use super::context::table;
use super::{Context, IoRule, Outcome, lengths_unknown, severity_of, thresholds_with_warning};
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
    let sum = |value: fn(&FitTally) -> u64| -> u64 {
        [&recorded.reads, &recorded.writes]
            .into_iter()
            .flatten()
            .map(value)
            .sum()
    };
    let all = sum(|tally| tally.ios);
    if let Some(unknown) = context.too_few(all) {
        return vec![unknown];
    }
    if let Some(why) = lengths_unknown(all, sum(|tally| tally.unknown_length)) {
        return vec![Outcome::Unknown(why)];
    }
    let share = Share::new(sum(|tally| tally.partial), sum(FitTally::known_length));
    let Some(severity) = severity_of(share) else {
        return vec![context.none_found(share)];
    };
    // Parts of one record that follow each other are gathered by the cache before the record goes to the disk.
    let alone = partial_heads(context, record);
    let severity = match severity_of(Share::new(alone, share.whole)) {
        Some(Severity::Warning) => severity,
        _ => Severity::Note,
    };
    let lengths = context.profile.places.table.lengths(Select::DATA);
    let commonest = lengths.iter().find(|(_, rounded, _)| !rounded);
    let commonest = commonest.map(|&(length, _, ios)| OfLength {
        len_bytes: Bytes(length),
        ios,
    });
    let facts = RequestsAndRecords {
        record_bytes: recorded.record_bytes,
        counted: context.counted(share),
        read_amplification: amplification(recorded, false),
        write_amplification: amplification(recorded, true),
        following: share.part.saturating_sub(alone),
        commonest,
    };
    let (read, write) = (facts.read_amplification, facts.write_amplification);
    let cost = read.unwrap_or(1.0).max(write.unwrap_or(1.0));
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
fn partial_heads(context: &Context<'_>, record: &Grid) -> u64 {
    context
        .profile
        .places
        .table
        .fit(record, Select::HEADS)
        .map_or(0, |tally| tally.partial)
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

fn amplification(recorded: &Recorded, writes: bool) -> Option<f64> {
    let tally = if writes {
        &recorded.writes
    } else {
        &recorded.reads
    }
    .as_ref()?;
    let moved = tally.touched_bytes + tally.read_first_bytes;
    (tally.bytes > 0).then(|| moved as f64 / tally.bytes as f64)
}
