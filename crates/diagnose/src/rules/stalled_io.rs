//! `stalled-io`: the device answers nothing, or leaves an I/O unanswered.

use plumb_model::facts::{Stall, StalledIo};
use plumb_model::{Confidence, Facts, RuleId, Severity};
use plumb_profile::Profile;
use plumb_profile::answers::Answers;
use plumb_profile::histogram::log_linear_bounds;
use plumb_trace::{Layer, Op};

use super::{Context, IOS_MIN, IoRule, Outcome};

/// A device stalls if it completes nothing for this time with I/O in flight. A disk that spins up takes longer; a working one
/// answers within a second even with a full queue.
const SILENCE_NS_MIN: u64 = 2_000_000_000;
/// An I/O of this age has been left behind if others complete meanwhile.
const AGE_NS_MIN: u64 = 5_000_000_000;
/// If more than one in this number of I/O has no completion, the oldest I/O says nothing.
const IOS_OF_MISS_MIN: u64 = 10_000_000;
/// I/O are slow if they took this multiple of the median.
const TIMES_MEDIAN_MIN: u64 = 50;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::StalledIo,
    thresholds: || {
        vec![
            "2 s with I/O in flight and no completion".to_owned(),
            "an I/O in flight for 5 s".to_owned(),
            format!("an I/O of 2 s that took {TIMES_MEDIAN_MIN} times the median of {IOS_MIN} I/O"),
        ]
    },
    judge,
};

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let profile = context.profile;
    if profile.layer == Layer::Vfs {
        return vec![Outcome::NotAsked];
    }
    let stall = match &profile.answers {
        Some(answers) => by_watch(profile, answers).or_else(|| by_latency(context)),
        None => by_latency(context),
    };
    let Some(stall) = stall else {
        let is_known = profile.answers.is_some() || profile.timed_ios() >= IOS_MIN;
        return vec![match is_known {
            true => Outcome::Silent,
            false => Outcome::NotAsked,
        }];
    };
    let severity = match stall {
        Stall::Silent { .. } | Stall::LeftBehind { .. } => Severity::Critical,
        Stall::WasSilent { .. } | Stall::Slow { .. } => Severity::Warning,
    };
    let facts = Facts::StalledIo(StalledIo { stall });
    let finding = context.finding(facts, severity, Confidence::High);
    vec![Outcome::found(finding)]
}

fn by_watch(profile: &Profile, answers: &Answers) -> Option<Stall> {
    let Answers {
        in_flight,
        present_silence_ns,
        longest_silence_ns,
        oldest,
        slowest,
        ..
    } = answers;
    if *in_flight > 0 && *present_silence_ns >= SILENCE_NS_MIN {
        return Some(Stall::Silent {
            in_flight: *in_flight,
            for_ns: *present_silence_ns,
            oldest: oldest.clone(),
        });
    }
    // The kernel's own count decides whether anything is in flight. If the completions of other I/O are missed now and then, that of
    // the oldest may have been.
    let misses = profile.losses.unmatched_issues;
    if *in_flight > 0
        && (misses == 0 || profile.ios() / misses >= IOS_OF_MISS_MIN)
        && let Some(oldest) = oldest.clone().filter(|oldest| oldest.ns >= AGE_NS_MIN)
    {
        return Some(Stall::LeftBehind {
            in_flight: *in_flight,
            oldest,
        });
    }
    (*longest_silence_ns >= SILENCE_NS_MIN).then(|| Stall::WasSilent {
        for_ns: *longest_silence_ns,
        slowest: slowest.first().cloned(),
    })
}

/// A few I/O took far longer than most. If all are slow, the device is saturated: another finding.
fn by_latency(context: &Context<'_>) -> Option<Stall> {
    let profile = context.profile;
    if context.analysis.pairing_unsound || profile.timed_ios() < IOS_MIN {
        return None;
    }
    let (ios, longest_ns) = slow(profile)?;
    let median_ns = median_ns(profile)?;
    (median_ns.saturating_mul(TIMES_MEDIAN_MIN) <= SILENCE_NS_MIN).then(|| Stall::Slow {
        ios,
        limit_ns: SILENCE_NS_MIN,
        longest_ns,
        median_ns,
        slowest: profile
            .answers
            .as_ref()
            .and_then(|answers| answers.slowest.first().cloned()),
    })
}

/// Reads and writes that took at least the limit for sure, and the least that the longest of them took.
fn slow(profile: &Profile) -> Option<(u64, u64)> {
    let slow = [Op::Read, Op::Write].into_iter().flat_map(|op| {
        let buckets = profile.op(op).device_ns.iter();
        buckets.filter_map(|(bucket, ios)| {
            let low = log_linear_bounds(bucket).0;
            (low >= SILENCE_NS_MIN).then_some((ios, low))
        })
    });
    slow.reduce(|(ios, longest), (more, low)| (ios + more, longest.max(low)))
}

/// Upper end of the bucket in which half of the reads and writes are reached.
fn median_ns(profile: &Profile) -> Option<u64> {
    let mut all = profile.op(Op::Read).device_ns.clone();
    all.merge(&profile.op(Op::Write).device_ns);
    all.log_linear_quantile(1, 2).map(|(_, high)| high)
}
