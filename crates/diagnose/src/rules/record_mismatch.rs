//! `record-mismatch`: the application asks for parts of records, so whole records are moved for them.
//!
//! Takes the requests of the application (the vfs layer): below the file system they have the size of the records
//! already.

use plumb_geometry::{Bytes, Grid, group_digits};
use plumb_profile::fit::{FitTally, Select};
use plumb_profile::what_if::Recorded;
use plumb_quoting::Command;

use super::{
    Context, IoRule, Outcome, lengths_unknown, severity_of, share_text, thresholds_with_warning,
};
use crate::finding::{Basis, Confidence, Cost, Finding, Fix, Severity};
use crate::share::Share;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: "record-mismatch",
    title: "requests and file-system records differ in size or place",
    needs: "`--record`, a trace of the vfs layer",
    decides: true,
    thresholds: thresholds_with_warning,
    plan: None,
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
        Err(why) => return vec![Outcome::Unknown(why.to_string())],
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
    let summary = format!(
        "{} requests cover a record of {} only in part",
        share_text(share),
        recorded.record_bytes
    );
    let (read, write) = (
        amplification(recorded, false),
        amplification(recorded, true),
    );
    let mut finding = context
        .share_finding(&RULE, severity, Confidence::Medium, share, summary)
        .with_cost(Some(Cost {
            value: read.unwrap_or(1.0).max(write.unwrap_or(1.0)),
            unit: "bytes moved per byte asked for",
            basis: Basis::Estimated,
        }));
    for (name, words, value) in [
        ("read_amplification", "reads move", read),
        ("write_amplification", "writes move", write),
    ] {
        if let Some(value) = value {
            finding = finding
                .with_evidence(context.evidence(name, value, "ratio"))
                .explained(format!(
                    "{words} up to {value:.1} bytes for each byte asked for"
                ));
        }
    }
    if alone < share.part {
        finding = finding.explained(format!(
            "{} of them follow another request without a gap: a cache may make whole records of those",
            group_digits(share.part - alone)
        ));
    }
    vec![Outcome::Found(advise(finding, context, record))]
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

fn advise(finding: Finding, context: &Context<'_>, record: &Grid) -> Finding {
    let lengths = context.profile.places.table.lengths(Select::DATA);
    let Some(&(length, _, ios)) = lengths.iter().find(|(_, rounded, _)| !rounded) else {
        return finding;
    };
    let finding = finding
        .explained(format!("the commonest request has {} ({} I/O)", Bytes(length), group_digits(ios)))
        .explained(
            "an upper bound: a cache may hold the record already; replay or compare has to prove the gain",
        );
    if record.granularity() == Bytes(length) {
        return finding.explained(
            "that is the size of a record: it is the place in the file that does not fit, not the size",
        );
    }
    if !length.is_power_of_two() || !ADVISED_BYTES.contains(&length) {
        return finding;
    }
    finding.with_fix(Fix::new(
        Command::new("zfs set")
            .arg(format!("recordsize={length}"))
            .flags("DATASET")
            .remark("then write the files once more"),
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
