//! `looks-sequential`: random I/O so large that an array may take it for sequential, and treat it so.

use plumb_geometry::Bytes;
use plumb_model::facts::LooksSequential;
use plumb_model::{Confidence, Facts, RuleId, Severity};
use plumb_profile::fit::Select;

use super::{Context, IoRule, Outcome, severity_of, thresholds_of_shares};
use crate::share::Share;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::LooksSequential,
    thresholds: || {
        let sizes = [
            format!("requests of {} KiB or more", LARGE_BYTES_MIN >> 10),
            format!("less than {} MiB", HUGE_BYTES_MIN >> 20),
        ];
        [thresholds_of_shares(), sizes.to_vec()].concat()
    },
    judge,
};

/// From this length on. Requests of 64 to 128 KiB were taken for sequential by the array of the ZFS case.
pub const LARGE_BYTES_MIN: u64 = 64 << 10;

/// From this length on a request is as good as sequential: its transfer takes a disk as long as the positioning, and
/// prefetch or a bypassed cache of an array do no harm.
pub const HUGE_BYTES_MIN: u64 = 1 << 20;

/// Below this share large random I/O is nothing that an array would have to be tuned for.
const SHARE_WARNING: f64 = 0.25;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let table = &context.profile.places.table;
    if let Some(unknown) = context.streams_unknown() {
        return vec![unknown];
    }
    let data = table.count(Select::DATA);
    if let Some(unknown) = context.too_few(data) {
        return vec![unknown];
    }
    // Both bounds are powers of two, and a rounded length is for certain on one side.
    let between = |select: Select| {
        let at_least = |len_bytes_min| {
            table.count(Select {
                len_bytes_min,
                ..select
            })
        };
        at_least(LARGE_BYTES_MIN).saturating_sub(at_least(HUGE_BYTES_MIN))
    };
    let large = between(Select::HEADS);
    let share = Share::new(large, data);
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
    let facts = Facts::LooksSequential(LooksSequential {
        from_bytes: Bytes(LARGE_BYTES_MIN),
        below_bytes: Bytes(HUGE_BYTES_MIN),
        counted,
        of_that_size: between(Select::DATA),
    });
    vec![Outcome::found(context.finding(facts, severity, confidence))]
}
