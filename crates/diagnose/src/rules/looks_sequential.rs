//! `looks-sequential`: random I/O so large that an array may take it for sequential, and treat it so.

use plumb_geometry::{Bytes, group_digits};
use plumb_profile::fit::Select;

use super::{Context, Outcome, Rule, of, severity_of, too_few};
use crate::finding::{Confidence, Severity};
use crate::share::Share;

/// The rule.
pub const RULE: Rule =
    Rule { id: "looks-sequential", title: "random I/O of a size that passes for sequential", judge };

/// From this length on. Requests of 64 to 128 KiB were taken for sequential by the array of the ZFS case.
pub const LARGE_BYTES_MIN: u64 = 64 << 10;

/// Below this share large random I/O is nothing that an array would have to be tuned for.
const SHARE_WARNING: f64 = 0.25;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let table = &context.profile.places.table;
    let data = table.count(Select::DATA);
    if let Some(unknown) = too_few(data) {
        return vec![unknown];
    }
    if context.profile.completion_order {
        return vec![Outcome::Unknown("streams cannot be told from completions alone".to_owned())];
    }
    let large = table.count(Select { len_bytes_min: LARGE_BYTES_MIN, ..Select::HEADS });
    let share = Share::new(large, data);
    let Some(severity) = severity_of(share) else { return vec![Outcome::Silent] };
    let severity = if share.value() < SHARE_WARNING { Severity::Note } else { severity };
    let summary = format!("{} I/O are random and of {} or more", of(share), Bytes(LARGE_BYTES_MIN));
    let of_that_size = table.count(Select { len_bytes_min: LARGE_BYTES_MIN, ..Select::DATA });
    let finding = context
        .share_finding(&RULE, severity, Confidence::Medium, share, summary)
        .with_evidence(context.evidence("large_ios", of_that_size as f64, "ios"))
        .explained(format!(
            "of {} I/O of that size, {} continue no stream; an array that judges by size caches or prefetches them wrongly",
            group_digits(of_that_size),
            group_digits(large),
        ))
        .explained("a file-system record larger than the application's request is a usual cause: compare --record");
    vec![Outcome::Found(finding)]
}
