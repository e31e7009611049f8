//! `saturated-device`: more I/O are sent than the device can serve, so that each waits for others.

use plumb_model::facts::SaturatedDevice;
use plumb_model::{Confidence, Facts, RuleId, Severity};
use plumb_profile::Profile;
use plumb_profile::histogram::{Counts, log_linear_bounds};
use plumb_trace::{Layer, Op};

use super::{Context, IoRule, Outcome};

/// Share of the time with I/O in flight.
const BUSY_MIN: f64 = 0.95;
/// Mean number of I/O in flight.
const DEPTH_MIN: f64 = 4.0;
/// Mean time of an I/O, with waiting. A person notices it in a page of a database that takes ten of them.
const MEAN_NS_MIN: f64 = 20_000_000.0;
/// Shorter bursts are the business of caches.
const OBSERVED_NS_MIN: u64 = 3_000_000_000;
/// The mean of fewer I/O says little. A slow device serves few, so the limit is low.
const SERVED_MIN: u64 = 30;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::SaturatedDevice,
    thresholds: || {
        vec![
            "busy 95 % of at least 3 s".to_owned(),
            "4 I/O in flight on average".to_owned(),
            "20 ms for an I/O on average".to_owned(),
            format!("{SERVED_MIN} I/O"),
        ]
    },
    judge,
};

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let profile = context.profile;
    let has_depth = profile.ordered.in_flight.depth_ns.total() > 0;
    if profile.layer == Layer::Vfs
        || !has_depth
        || context.analysis.pairing_unsound
        || profile.timed_ios() < SERVED_MIN
    {
        return vec![Outcome::NotAsked];
    }
    let Some(facts) = saturation(profile) else {
        return vec![Outcome::Silent];
    };
    let finding = context.finding(
        Facts::SaturatedDevice(facts),
        Severity::Warning,
        Confidence::Medium,
    );
    vec![Outcome::found(finding)]
}

fn saturation(profile: &Profile) -> Option<SaturatedDevice> {
    let depths = &profile.ordered.in_flight.depth_ns;
    let observed_ns = depths.total();
    let busy_ns = observed_ns - depths.get(0);
    let busy_share = busy_ns as f64 / observed_ns.max(1) as f64;
    if observed_ns < OBSERVED_NS_MIN || busy_share < BUSY_MIN {
        return None;
    }
    let depth_mean = low_sum(depths) / observed_ns as f64;
    let (mut ios, mut ns_sum) = (0, 0.0);
    for op in [Op::Read, Op::Write] {
        let totals = profile.op(op);
        ios += totals.device_ns.total();
        ns_sum += low_sum(&totals.device_ns) + low_sum(&totals.queue_ns);
    }
    let mean_ns = ns_sum / ios.max(1) as f64;
    (depth_mean >= DEPTH_MIN && mean_ns >= MEAN_NS_MIN).then(|| SaturatedDevice {
        busy_share,
        depth_mean,
        mean_ns,
        served_ns: busy_ns as f64 / ios as f64,
        ios_per_second: ios as f64 * 1e9 / observed_ns as f64,
        bytes_per_second: profile.bytes() as f64 * 1e9 / observed_ns as f64,
    })
}

/// The least that the values of a histogram come to.
fn low_sum(histogram: &Counts) -> f64 {
    let lows = histogram
        .iter()
        .map(|(bucket, weight)| log_linear_bounds(bucket).0 as f64 * weight as f64);
    lows.sum()
}
