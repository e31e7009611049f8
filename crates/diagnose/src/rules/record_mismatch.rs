//! `record-mismatch`: the application asks for parts of records, so whole records are moved for them.
//!
//! Takes the requests of the application (the vfs layer): below the file system they have the size of the records
//! already.

use plumb_profile::fit::FitTally;
use plumb_profile::what_if::Recorded;

use super::{Context, Outcome, Rule, of, severity_of, too_few};
use crate::finding::{Basis, Confidence, Cost, Step};
use crate::share::Share;

/// The rule.
pub const RULE: Rule =
    Rule { id: "record-mismatch", title: "requests and file-system records differ in size or place", judge };

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let Some(recorded) = &context.analysis.what_if.recorded else { return vec![Outcome::NotAsked] };
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(why) => return vec![Outcome::Unknown(why.to_string())],
    };
    let sum = |value: fn(&FitTally) -> u64| -> u64 {
        [&recorded.reads, &recorded.writes].into_iter().flatten().map(value).sum()
    };
    let known = sum(FitTally::known_length);
    if let Some(unknown) = too_few(known) {
        return vec![unknown];
    }
    let share = Share::new(sum(|tally| tally.partial), known);
    let Some(severity) = severity_of(share) else { return vec![Outcome::Silent] };
    let (read, write) = (amplification(recorded, false), amplification(recorded, true));
    let summary = format!("{} requests cover a record of {} only in part", of(share), recorded.record_bytes);
    let worst = read.unwrap_or(1.0).max(write.unwrap_or(1.0));
    let mut finding =
        context.share_finding(&RULE, severity, Confidence::Medium, share, summary).with_cost(Some(Cost {
            value: worst,
            unit: "bytes moved per byte asked for",
            basis: Basis::Estimated,
        }));
    for (name, words, value) in
        [("read_amplification", "reads move", read), ("write_amplification", "writes move", write)]
    {
        if let Some(value) = value {
            finding = finding
                .with_evidence(context.evidence(name, value, "ratio"))
                .explained(format!("{words} up to {value:.1} bytes for each byte asked for"));
        }
    }
    if let Some((length, _, _)) = context.analysis.lengths.iter().find(|(_, rounded, _)| !rounded) {
        finding = finding
            .explained(format!("the commonest request has {}", plumb_geometry::Bytes(*length)))
            .explained("an upper bound: a cache may hold the record already; replay or compare has to prove the gain")
            .with_fix(Step {
                command: format!("zfs set recordsize={length} DATASET, then write the files anew"),
                risk: "applies to files written afterwards only; smaller records compress less",
                undo: "zfs inherit recordsize DATASET",
            });
    }
    vec![Outcome::Found(finding)]
}

fn amplification(recorded: &Recorded, writes: bool) -> Option<f64> {
    let tally = if writes { &recorded.writes } else { &recorded.reads }.as_ref()?;
    let moved = tally.touched_bytes + tally.read_first_bytes;
    (tally.bytes > 0).then(|| moved as f64 / tally.bytes as f64)
}
