//! Better, worse, no difference, or the reason for no verdict.
//!
//! Latency decides; the rate does if the number of I/O in flight was the same, because it is then the limit of the
//! device. A rate alone may be that of the load. If both rise, or both fall, the load was different.

use serde::Serialize;

use plumb_geometry::{Bytes, group_digits};
use plumb_stats::equivalence::{Difference, Margin, difference};

use super::measures::{BYTES, IN_FLIGHT, LATENCY, LENGTH, Measure, RANDOM, RATE, Ratio};
use super::mix::{self, Mix};
use super::{Observed, Terms};

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompareOutcome {
    /// It helped.
    Better,
    /// It did harm.
    Worse,
    /// Any difference is within the margin.
    NoDifference,
    /// The interval holds both no difference and one beyond the margin.
    Inconclusive,
    /// The sides are not of a kind.
    NotComparable,
}

/// An outcome with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareVerdict {
    /// The result.
    pub outcome: CompareOutcome,
    /// The reason, or facts to know beside it.
    pub why: Vec<String>,
    /// Latency after ÷ before over the same mix of I/O; absent where it is not known on both sides.
    pub latency: Option<Ratio>,
    /// I/O a second after ÷ before; absent where the mix differs.
    pub rate: Option<Ratio>,
}

/// More lost than this share leaves a side unknown.
const LOST_SHARE_MAX: f64 = 0.01;

/// As many were in flight where the numbers differ by no more than this share.
const LOAD_SHARE_MAX: f64 = 0.05;

/// Judges a comparison by its measures and its mix of I/O.
pub fn judge(
    sides: [&Observed; 2],
    measures: &[Measure],
    mix: Option<&Mix>,
    terms: &Terms,
) -> CompareVerdict {
    let latency = mix.and_then(|mix| latency(measures, mix));
    let rate = mix
        .filter(|mix| mix.overlap >= mix::SAME)
        .and_then(|_| ratio_of(measures, RATE));
    let is_resized = mix.is_some_and(Mix::is_resized);
    let why = not_comparable(sides, mix, latency.is_some(), terms);
    if is_resized && why.is_empty() {
        return judge_sizes(sides, measures, terms);
    }
    if !why.is_empty() {
        return CompareVerdict {
            outcome: CompareOutcome::NotComparable,
            why,
            latency,
            rate,
        };
    }
    let is_loaded_alike = sides.iter().all(|side| side.is_closed_loop)
        || in_flight(sides, measures).is_some_and(|[before, after]| {
            (after - before).abs() <= LOAD_SHARE_MAX * before.max(after)
        });
    let (outcome, mut why) = decide(
        latency.map(|latency| change(&latency, terms.margin)),
        rate.map(|rate| change(&rate, terms.margin)),
        is_loaded_alike,
    );
    if outcome == CompareOutcome::Inconclusive {
        why.extend(unclear(latency.or(rate).as_ref(), sides, terms));
    }
    if outcome == CompareOutcome::NotComparable {
        why.extend(in_flight(sides, measures).map(|[before, after]| {
            format!("the load differs: {before:.1} I/O in flight before, {after:.1} after")
        }));
    }
    if let Some(mix) = mix.filter(|mix| mix.overlap < mix::SAME) {
        why.push(format!(
            "only {} of the I/O are alike: latencies are those of that part, rates are not compared",
            percent(mix.overlap)
        ));
    }
    CompareVerdict {
        outcome,
        why,
        latency,
        rate,
    }
}

/// Judges sides whose I/O have other lengths by the bytes that they move, if the I/O are as many as before. Latencies and
/// rates of I/O of different lengths tell nothing about the device.
fn judge_sizes(sides: [&Observed; 2], measures: &[Measure], terms: &Terms) -> CompareVerdict {
    let changed = |name: &str| {
        ratio_of(measures, name).map_or(Difference::Unclear, |ratio| change(&ratio, terms.margin))
    };
    let mut why = Vec::new();
    if let Some(length) = measures.iter().find(|measure| measure.name == LENGTH)
        && let (Some(before), Some(after)) = (length.before, length.after)
    {
        why.push(format!(
            "the I/O have other lengths: {} before and {} after on average; their latencies are not compared",
            Bytes(before as u64),
            Bytes(after as u64)
        ));
    }
    why.extend(mix::changed_sizes(sides).iter().map(|size| {
        let [before, after] = size.shares.map(|share| {
            let (low, high) = share.interval();
            format!(
                "{} ({} to {})",
                percent(share.value()),
                percent(low),
                percent(high)
            )
        });
        let upper = Bytes(size.upper_bytes);
        let lower = Bytes(size.upper_bytes / 2);
        format!("I/O above {lower} up to {upper}: {before} before, {after} after")
    }));
    for (name, what) in [
        (BYTES, "bytes a second"),
        (RATE, "I/O a second"),
        (RANDOM, "random share"),
    ] {
        let Some(ratio) = ratio_of(measures, name) else {
            continue;
        };
        if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
            why.push(format!(
                "{what}: {} ({} to {})",
                signed(ratio.value),
                signed(low),
                signed(high)
            ));
        }
    }
    let outcome = match (changed(BYTES), changed(RATE)) {
        (Difference::Less, Difference::Within | Difference::More) => CompareOutcome::Better,
        (Difference::More, Difference::Within | Difference::Less) => CompareOutcome::Worse,
        (Difference::Within, Difference::Within) => CompareOutcome::NoDifference,
        _ => CompareOutcome::Inconclusive,
    };
    if outcome == CompareOutcome::Inconclusive {
        why.push(
            "whether the same work was done is not known: bytes and I/O a second changed together, or not clearly".to_owned(),
        );
    }
    CompareVerdict {
        outcome,
        why,
        latency: None,
        rate: ratio_of(measures, RATE),
    }
}

fn ratio_of(measures: &[Measure], name: &str) -> Option<Ratio> {
    measures
        .iter()
        .find(|measure| measure.name == name)?
        .ratio
        .filter(|ratio| ratio.low.is_some())
}

/// The ratio of latencies over the same mix. If the mix is not the same, it is that of the weighted means, with the
/// wider interval of windows and of single I/O.
fn latency(measures: &[Measure], mix: &Mix) -> Option<Ratio> {
    let seen = ratio_of(measures, LATENCY)?;
    if mix.overlap >= mix::SAME {
        return Some(seen);
    }
    let [before, after] = mix.mean_ns?;
    let value = after / before;
    /// Width of the interval in standard errors: 95 of 100.
    const Z: f64 = 1.96;
    let of_windows = (seen.high?.ln() - seen.low?.ln()) / 2.0;
    let reach = of_windows.max(Z * mix.log_variance.sqrt());
    Some(Ratio {
        value,
        low: Some(value * (-reach).exp()),
        high: Some(value * reach.exp()),
    })
}

/// I/O in flight on both sides: as the source has them, or by Little's law.
fn in_flight(sides: [&Observed; 2], measures: &[Measure]) -> Option<[f64; 2]> {
    let find = |name: &str| measures.iter().find(|measure| measure.name == name);
    if let Some(both) = find(IN_FLIGHT).and_then(|measure| measure.before.zip(measure.after)) {
        return Some([both.0, both.1]);
    }
    if let [Some(before), Some(after)] = sides.map(|side| side.law) {
        return Some([before.in_flight, after.in_flight]);
    }
    let (rate, latency) = (find(RATE)?, find(LATENCY)?);
    Some([
        rate.before? * latency.before? / 1e9,
        rate.after? * latency.after? / 1e9,
    ])
}

fn change(ratio: &Ratio, margin: Margin) -> Difference {
    ratio
        .low
        .zip(ratio.high)
        .map_or(Difference::Unclear, |(low, high)| {
            difference([low, high], margin)
        })
}

/// From how latency and rate changed; `None` where that is not known, or not to be compared.
fn decide(
    latency: Option<Difference>,
    rate: Option<Difference>,
    is_loaded_alike: bool,
) -> (CompareOutcome, Vec<String>) {
    use CompareOutcome::{Better, Inconclusive, NoDifference, NotComparable, Worse};
    use Difference::{Less, More, Unclear, Within};
    let asked = |more: &str| {
        vec![format!(
            "{more} I/O a second at the same latency: the load may have been set so"
        )]
    };
    match (latency, rate) {
        (Some(Less), Some(Less)) | (Some(More), Some(More)) => (NotComparable, Vec::new()),
        (Some(Less), _) => (Better, Vec::new()),
        (Some(More), _) => (Worse, Vec::new()),
        (Some(Within), Some(More)) => (NoDifference, asked("more")),
        (Some(Within), Some(Less)) => (NoDifference, asked("fewer")),
        (Some(Within), _) => (NoDifference, Vec::new()),
        (None | Some(Unclear), Some(More)) if is_loaded_alike => (Better, Vec::new()),
        (None | Some(Unclear), Some(Less)) if is_loaded_alike => (Worse, Vec::new()),
        (None | Some(Unclear), Some(Within)) if is_loaded_alike => (NoDifference, Vec::new()),
        (None | Some(Unclear), _) => (Inconclusive, Vec::new()),
    }
}

fn unclear(ratio: Option<&Ratio>, sides: [&Observed; 2], terms: &Terms) -> Option<String> {
    let ratio = ratio?;
    let [before, after] = sides.map(|side| side.slices.len());
    Some(format!(
        "a change by {} to {} holds both none and one of more than {}: {before} {}s before and {after} after are too few",
        signed(ratio.low?),
        signed(ratio.high?),
        percent(terms.margin.share()),
        sides[0].sampling.unit,
    ))
}

/// From here on a ratio is said as a factor: nobody reads +174,281 %.
const FACTOR_MIN: f64 = 10.0;

/// A ratio as a change: `+27.4 %`, `−21.7 %`, `× 174`.
#[must_use]
pub fn signed(ratio: f64) -> String {
    if ratio >= FACTOR_MIN {
        return format!("× {}", group_digits(ratio.round() as u64));
    }
    let change = (ratio - 1.0) * 100.0;
    let sign = if change < 0.0 { '−' } else { '+' };
    format!("{sign}{:.1} %", change.abs())
}

/// Everything that makes the sides not of a kind.
fn not_comparable(
    sides: [&Observed; 2],
    mix: Option<&Mix>,
    has_latency: bool,
    terms: &Terms,
) -> Vec<String> {
    let mut why = Vec::new();
    let [before, after] = sides;
    if let (Some(mine), Some(theirs)) = (before.size_bytes, after.size_bytes)
        && mine != theirs
        && !terms.paired_by_user
        && !terms.is_forced
    {
        why.push(format!(
            "the devices are not of one size: {} is {} before, {} is {} after",
            before.device,
            Bytes(mine),
            after.device,
            Bytes(theirs)
        ));
    }
    if why.is_empty() && !terms.paired_by_user && !terms.is_forced {
        why.extend(other_device(before, after));
    }
    if let (Some(mine), Some(theirs)) = (before.layer, after.layer)
        && mine != theirs
    {
        why.push(format!(
            "other layers were seen: {} before, {} after",
            mine.word(),
            theirs.word()
        ));
    }
    for (side, word) in [(before, "before"), (after, "after")] {
        why.extend(of_side(side, word));
    }
    let is_resized = mix.is_some_and(Mix::is_resized);
    if let Some(mix) = mix.filter(|_| !is_resized) {
        why.extend(unlike(mix));
    }
    if why.is_empty()
        && !is_resized
        && !has_latency
        && !sides.iter().all(|side| side.is_closed_loop)
    {
        why.push(
            "latencies are not known on both sides, and a rate alone may have been set so"
                .to_owned(),
        );
    }
    why
}

/// Why both sides may be of different devices; `None` where they are of one name that tells devices apart, or of one size.
fn other_device(before: &Observed, after: &Observed) -> Option<String> {
    let (mine, theirs) = (&before.device, &after.device);
    let are_of_one_size = before.size_bytes.is_some() && before.size_bytes == after.size_bytes;
    if mine == theirs && (are_of_one_size || !is_number(mine)) {
        return None;
    }
    let why = if mine == theirs {
        format!("`{mine}` is a number that any trace may have, and no size is known on both sides")
    } else {
        format!("{mine} before and {theirs} after have different names")
    };
    Some(format!(
        "nothing shows that both sides are of one device: {why}. Pass --force if they are, or --device {mine}={theirs}"
    ))
}

/// Whether a name is a bare number, which the format gives to the devices of a trace.
fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// The faults that make one side useless.
fn of_side(side: &Observed, word: &str) -> Vec<String> {
    let mut why = Vec::new();
    let unit = side.sampling.unit;
    if side.strata.is_empty() {
        why.push(format!("no read or write of {} {word}", side.device));
    } else if side.slices.len() < 2 {
        let n = side.slices.len();
        why.push(format!(
            "{n} {unit}{} {word}: an interval needs at least 2",
            if n == 1 { "" } else { "s" }
        ));
    }
    if side.lost.value() > LOST_SHARE_MAX {
        why.push(format!(
            "{} of the I/O {word} were lost",
            percent(side.lost.value())
        ));
    }
    if let Some(law) = side.law.filter(|law| law.checked > 1 && !law.holds()) {
        why.push(format!(
            "{word} the source contradicts itself: {:.1} I/O in flight, and {:.1} by rate times latency (Little's law)",
            law.in_flight, law.expected
        ));
    }
    why
}

fn unlike(mix: &Mix) -> Option<String> {
    if let Some((op, [before, after])) = mix.unlike_lengths {
        return Some(format!(
            "the I/O are not of one length: a {} has {} before and {} after on average",
            op.word(),
            Bytes(before),
            Bytes(after)
        ));
    }
    if mix.overlap < mix::ALIKE_MIN {
        return Some(format!(
            "the I/O are not of a kind: {} of them agree in {}",
            percent(mix.overlap),
            mix.by
        ));
    }
    (mix.overlap < mix::SAME && mix.mean_ns.is_none()).then(|| {
        format!(
            "the I/O differ in {} ({} of them agree), and latencies are not known for each kind",
            mix.by,
            percent(mix.overlap)
        )
    })
}

/// `7.6 %`; small shares keep two digits.
fn percent(value: f64) -> String {
    if value > 0.0 && value < 0.01 {
        format!("{:.2} %", value * 100.0)
    } else {
        format!("{:.1} %", value * 100.0)
    }
}
