//! Comparisons of made-up data with a known right verdict.

use plumb_diagnose::Share;
use plumb_diagnose::compare::{
    BenchDocument, CompareOutcome, Comparison, Law, Observed, Sampling, Stratum, Terms, TimeSlice,
    compare, of_bench, of_profile, of_series,
};
use plumb_profile::Settings;
use plumb_profile::table::ROWS_MAX_LEAST;
use plumb_testkit::rng::Rng;
use plumb_trace::series::{self, FirstReport, Span};
use plumb_trace::{Event, Layer, Op};

use crate::common::{Random, RuleBench};

/// Reads of 8 KiB: a rate and a latency for each report.
fn reads(rates: &[f64], ms: &[f64]) -> Observed {
    let slices = rates.iter().zip(ms).map(|(rate, ms)| TimeSlice {
        seconds: 1.0,
        ios: [*rate, 0.0],
        bytes: [Some(rate * 8192.0), Some(0.0)],
        timed: *rate,
        ns_sum: rate * ms * 1e6,
        in_flight_seconds: Some(rate * ms / 1e3),
        ..TimeSlice::default()
    });
    Observed {
        device: "sda".to_owned(),
        source: "made up".to_owned(),
        size_bytes: None,
        layer: None,
        span: Span::Device,
        is_closed_loop: false,
        sampling: Sampling {
            unit: "report",
            seconds: None,
            seen: rates.len() as u64,
        },
        slices: slices.collect(),
        strata: vec![stratum(Op::Read, 8192, 100.0, 1.0)],
        has_lengths: true,
        are_lengths_rounded: false,
        quantiles: [None, None],
        stretches: [Vec::new(), Vec::new()],
        random: None,
        grids: Vec::new(),
        law: None,
        lost: Share::new(0, 0),
        doubts: Vec::new(),
    }
}

fn stratum(op: Op, len_bytes: u64, ios: f64, ms: f64) -> Stratum {
    Stratum {
        op,
        len_bytes,
        ios,
        mean_ns: Some(ms * 1e6),
        ns_mean_variance: Some(1e6),
    }
}

fn verdict(before: &Observed, after: &Observed) -> Comparison {
    compare(before, after, &Terms::default())
}

#[track_caller]
fn check(before: &Observed, after: &Observed, outcome: CompareOutcome, words: &str) -> Comparison {
    let found = verdict(before, after);
    assert_eq!(found.verdict.outcome, outcome, "{:?}", found.verdict);
    assert!(
        found.verdict.why.join("; ").contains(words),
        "no `{words}` in {:?}",
        found.verdict.why
    );
    found
}

const BEFORE: ([f64; 3], [f64; 3]) = ([15_639.6, 15_887.3, 15_437.0], [4.0, 3.9, 4.1]);
const AFTER: ([f64; 3], [f64; 3]) = ([20_233.6, 19_382.3, 20_226.4], [3.1, 3.2, 3.1]);

/// The interval was worked out apart, by Simpson's rule over the density of t.
#[test]
fn a_published_case_both_ways() {
    let (before, after) = (reads(&BEFORE.0, &BEFORE.1), reads(&AFTER.0, &AFTER.1));
    let found = check(&before, &after, CompareOutcome::Better, "");
    let rate = found.verdict.rate.expect("the mix is the same");
    assert!((rate.value - 1.274_219).abs() < 1e-6, "{rate:?}");
    assert!(
        (rate.low.expect("n = 3") - 1.211_814).abs() < 1e-6,
        "{rate:?}"
    );
    assert!(
        (rate.high.expect("n = 3") - 1.339_837).abs() < 1e-6,
        "{rate:?}"
    );
    let latency = found.verdict.latency.expect("timed");
    assert!((latency.value - 0.783_333).abs() < 1e-6, "{latency:?}");
    let measure = found
        .measures
        .iter()
        .find(|measure| measure.name == "latency_mean_ns")
        .expect("it is there");
    assert_eq!(measure.n, [3, 3]);
    check(&after, &before, CompareOutcome::Worse, "");
}

#[test]
fn like_sides_do_not_differ() {
    let rates: Vec<f64> = (0..10).map(|n| 1000.0 + f64::from(n % 3)).collect();
    let ms: Vec<f64> = rates.iter().map(|rate| 32_000.0 / rate).collect();
    let (one, mut other) = (reads(&rates, &ms), reads(&rates, &ms));
    other.slices.rotate_left(4);
    check(&one, &other, CompareOutcome::NoDifference, "");
    // The same latency under twice the load.
    let more = reads(
        &rates.iter().map(|rate| rate * 2.0).collect::<Vec<_>>(),
        &ms,
    );
    check(
        &one,
        &more,
        CompareOutcome::NoDifference,
        "more I/O a second at the same latency: the load may have been set so",
    );
}

#[test]
fn too_little_is_inconclusive() {
    let one = reads(&[1000.0, 1300.0, 800.0], &[32.0, 24.0, 40.0]);
    let other = reads(&[1100.0, 900.0, 1400.0], &[29.0, 35.0, 23.0]);
    check(
        &one,
        &other,
        CompareOutcome::Inconclusive,
        "holds both none and one of more than 3.0 %: 3 reports before and 3 after",
    );
    let alone = reads(&[1000.0], &[32.0]);
    check(
        &alone,
        &other,
        CompareOutcome::NotComparable,
        "1 report before: an interval needs at least 2",
    );
}

#[test]
fn another_load_is_not_comparable() {
    let one = reads(&[1000.0, 1001.0, 1002.0], &[1.0, 1.01, 1.0]);
    let other = reads(&[2000.0, 2001.0, 2002.0], &[2.0, 2.01, 2.0]);
    check(
        &one,
        &other,
        CompareOutcome::NotComparable,
        "the load differs: 1.0 I/O in flight before, 4.0 after",
    );
    check(
        &other,
        &one,
        CompareOutcome::NotComparable,
        "the load differs",
    );
}

#[test]
fn measures_of_different_kinds_are_refused() {
    let one = reads(&BEFORE.0, &BEFORE.1);
    let other = || reads(&AFTER.0, &AFTER.1);
    let not = |change: &dyn Fn(&mut Observed, &mut Observed), words: &str| {
        let (mut before, mut after) = (one.clone(), other());
        change(&mut before, &mut after);
        check(&before, &after, CompareOutcome::NotComparable, words);
    };
    let sizes: [u64; 2] = [1 << 30, 1 << 31];
    not(
        &|before, after| (before.size_bytes, after.size_bytes) = (Some(sizes[0]), Some(sizes[1])),
        "the devices are not of one size: sda is 1 GiB before, sda is 2 GiB after",
    );
    not(
        &|before, after| (before.layer, after.layer) = (Some(Layer::Vfs), Some(Layer::Request)),
        "other layers were seen: vfs before, request after",
    );
    not(
        &|_, after| after.lost = Share::new(2, 100),
        "2.0 % of the I/O after were lost",
    );
    not(
        &|before, _| before.strata.clear(),
        "no read or write of sda before",
    );
    not(
        &|_, after| after.slices.iter_mut().for_each(|slice| slice.timed = 0.0),
        "latencies are not known on both sides",
    );
    let law = Law {
        in_flight: 62.9,
        expected: 627.3,
        checked: 3,
        broken: 1,
        line: Some(9),
    };
    not(
        &|before, _| before.law = Some(law),
        "62.9 I/O in flight, and 627.3 by rate times latency (Little's law)",
    );
    not(
        &|_, after| after.device = "sdb".to_owned(),
        "sda before and sdb after have different names",
    );
    not(
        &|before, after| {
            (before.device, after.device) = ("0".to_owned(), "0".to_owned());
        },
        "`0` is a number that any trace may have",
    );
    // The user may say that two devices of other sizes are to be compared.
    let (mut before, mut after) = (one.clone(), other());
    (before.size_bytes, after.size_bytes) = (Some(sizes[0]), Some(sizes[1]));
    let by_user = Terms {
        paired_by_user: true,
        ..Terms::default()
    };
    assert_eq!(
        compare(&before, &after, &by_user).verdict.outcome,
        CompareOutcome::Better
    );
}

/// Devices that nothing shows to be one are compared by force, and numbers if their sizes are equal.
#[test]
fn other_devices_need_force() {
    let before = reads(&[1000.0, 1002.0, 998.0, 1001.0], &[2.0, 2.01, 1.99, 2.0]);
    let mut after = reads(&[1000.0, 1002.0, 998.0, 1001.0], &[1.0, 1.01, 0.99, 1.0]);
    after.device = "sdb".to_owned();
    assert_eq!(
        verdict(&before, &after).verdict.outcome,
        CompareOutcome::NotComparable
    );
    let forced = Terms {
        is_forced: true,
        ..Terms::default()
    };
    assert_eq!(
        compare(&before, &after, &forced).verdict.outcome,
        CompareOutcome::Better
    );
    let numbered = |side: &Observed| Observed {
        device: "0".to_owned(),
        size_bytes: Some(1 << 30),
        ..side.clone()
    };
    let found = verdict(&numbered(&before), &numbered(&after));
    assert_eq!(found.verdict.outcome, CompareOutcome::Better);
}

/// A record of 128 KiB becomes one of 8 KiB: as many I/O move a sixteenth. By hand: 1,000 × 8,192 of 1,000 × 131,072.
#[test]
fn lengths_that_changed_are_judged_by_bytes() {
    let side = |len: f64, rate: f64, random: u64| {
        let rates: Vec<f64> = (0..10).map(|n| rate + f64::from(n % 3)).collect();
        let mut side = reads(&rates, &[1.0; 10]);
        for slice in &mut side.slices {
            slice.bytes[0] = Some(slice.ios[0] * len);
        }
        side.strata = vec![stratum(Op::Read, len as u64, 10_000.0, 1.0)];
        side.random = Some(Share::new(random, 10_000));
        side
    };
    let (long, short) = (131_072.0, 8192.0);
    for (before, after, expected) in [
        (
            side(long, 1000.0, 1000),
            side(short, 1000.0, 8000),
            CompareOutcome::Better,
        ),
        (
            side(short, 1000.0, 8000),
            side(long, 1000.0, 1000),
            CompareOutcome::Worse,
        ),
        // As many bytes in shorter I/O: the same work may have been cut up, or more was asked for.
        (
            side(long, 1000.0, 0),
            side(short, 16_000.0, 0),
            CompareOutcome::Inconclusive,
        ),
        (
            side(long, 1000.0, 0),
            side(short, 500.0, 0),
            CompareOutcome::Inconclusive,
        ),
    ] {
        let found = verdict(&before, &after);
        assert_eq!(found.verdict.outcome, expected, "{:?}", found.verdict.why);
        assert!(found.verdict.latency.is_none());
        assert!(
            found.verdict.why[0].contains("128 KiB"),
            "{:?}",
            found.verdict.why
        );
    }
    // Ten of 1,000, 1,001 and 1,002 on each side: no difference of a tenth of a percent, and the lengths are those of before.
    let found = verdict(&side(long, 1000.0, 1000), &side(short, 1000.0, 8000));
    let find = |name: &str| found.measures.iter().find(|measure| measure.name == name);
    let ratio = |name: &str| {
        find(name)
            .and_then(|measure| measure.ratio)
            .expect("a ratio")
    };
    assert!((ratio("bytes_per_second").value - 0.0625).abs() < 1e-9);
    assert!((ratio("len_bytes_mean").value - 0.0625).abs() < 1e-9);
    // Both means are 1,000.9 with a standard deviation of 0.876 (of 1000, 1001 and 1002, 4, 3 and 3 times). Welch on logarithms, 18
    // degrees of freedom: 2.101 × 0.000875 × (2 ÷ 10)^0.5 = 0.000822.
    for name in ["bytes_per_second", "ios_per_second"] {
        let rate = ratio(name);
        let [low, high] = [rate.low, rate.high].map(|end| end.expect("an end") / rate.value);
        assert!((low - 0.999_178).abs() < 2e-6, "{name}: {low}");
        assert!((high - 1.000_822).abs() < 2e-6, "{name}: {high}");
    }
    let why = found.verdict.why.join("\n");
    for said in [
        "128 KiB before and 8 KiB after",
        // Wilson's intervals of all 10,000 and of none: 3.84 of 10,003.84.
        "I/O above 64 KiB up to 128 KiB: 100.0 % (100.0 % to 100.0 %) before, 0.0 % (0.0 % to 0.04 %) after",
        "I/O above 4 KiB up to 8 KiB: 0.0 % (0.0 % to 0.04 %) before, 100.0 % (100.0 % to 100.0 %) after",
        "bytes a second: −93.8 % (−93.8 % to −93.7 %)",
        "random share: +700.0 %",
    ] {
        assert!(why.contains(said), "no `{said}` in {why}");
    }
    // Wilson's intervals of 1,000 and 8,000 of 10,000: 0.0943 to 0.1060, 0.7920 to 0.8077.
    let random = ratio("random_share");
    assert!((random.value - 8.0).abs() < 1e-9);
    assert!((random.low.expect("an end") - 0.7920 / 0.1060).abs() < 0.01);
    assert!((random.high.expect("an end") - 0.8077 / 0.0943).abs() < 0.01);
}

/// More short I/O after a change lower the mean, and help nobody.
#[test]
fn latencies_are_those_of_the_same_mix() {
    let side = |short: f64, factor: f64| {
        let mean = factor * (short * 1.0 + (1.0 - short) * 3.0);
        let ms: Vec<f64> = (0..10)
            .map(|n| mean * (1.0 + f64::from(n % 3) * 0.002))
            .collect();
        let mut side = reads(&[1000.0; 10], &ms);
        side.strata = vec![
            stratum(Op::Read, 4096, short, factor),
            stratum(Op::Read, 65_536, 1.0 - short, 3.0 * factor),
        ];
        side
    };
    let found = check(
        &side(0.5, 1.0),
        &side(0.8, 1.0),
        CompareOutcome::NoDifference,
        "only 70.0 % of the I/O are alike",
    );
    let raw = found
        .measures
        .iter()
        .find(|measure| measure.name == "latency_mean_ns")
        .and_then(|m| m.ratio);
    assert!(
        (raw.expect("timed").value - 0.7).abs() < 0.01,
        "1.4 ms after 2.0 ms: {raw:?}"
    );
    assert!((found.verdict.latency.expect("timed").value - 1.0).abs() < 1e-9);
    assert_eq!(
        found.verdict.rate, None,
        "rates of other I/O are not compared"
    );
    check(&side(0.5, 1.0), &side(0.8, 1.2), CompareOutcome::Worse, "");
    check(&side(0.8, 1.0), &side(0.5, 0.8), CompareOutcome::Better, "");
}

/// How often sides that are the same are said to differ, and how often a change by a tenth is found.
#[test]
fn error_rates() {
    /// Standard deviations of 2.4 % and of 0.8 % of a report.
    const WIDE: f64 = 0.06;
    const NARROW: f64 = 0.02;
    let mut rng = Rng::announced("comparisons", 0x77);
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let mut draw = |factor: f64, spread: f64| {
        let rates: Vec<f64> = (0..10)
            .map(|_| 1000.0 * factor * (1.0 + spread * (uniform() + uniform() - 1.0)))
            .collect();
        let ms: Vec<f64> = rates.iter().map(|rate| 32_000.0 / rate).collect();
        reads(&rates, &ms)
    };
    let mut count = |factor: f64, spread: f64, outcome: CompareOutcome| {
        (0..1000)
            .filter(|_| {
                verdict(&draw(1.0, spread), &draw(factor, spread))
                    .verdict
                    .outcome
                    == outcome
            })
            .count()
    };
    let false_alarms =
        count(1.0, WIDE, CompareOutcome::Better) + count(1.0, WIDE, CompareOutcome::Worse);
    // Five of a hundred intervals miss, half of them on either side: 50 of 2,000 draws, and four standard errors more.
    assert!(false_alarms <= 78, "{false_alarms} of 2,000");
    assert!(
        count(1.0, NARROW, CompareOutcome::NoDifference) >= 990,
        "within 3 % of each other, and said so"
    );
    assert!(count(1.1, WIDE, CompareOutcome::Better) >= 990);
    assert_eq!(count(1.1, WIDE, CompareOutcome::Worse), 0);
}

/// A wrongly scanned digit is noticed: 62.9 in flight are not 1,563.9 a second of 4.0 ms.
#[test]
fn a_slip_of_the_scan_is_found() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/iostat/misaligned.txt");
    let text = std::fs::read_to_string(path).expect("an example");
    let observe = |text: &str| {
        let series = series::read("capture", text.as_bytes()).expect("a capture");
        of_series(&series, "c0t6d0", FirstReport::Keep)
    };
    let law = observe(&text).law.expect("actv is there");
    assert_eq!((law.checked, law.broken), (3, 0));
    let slip = observe(&text.replace("15639.6", "1563.96"));
    let law = slip.law.expect("actv is there");
    assert_eq!((law.checked, law.broken, law.line), (3, 1, Some(9)));
    check(
        &slip,
        &observe(&text),
        CompareOutcome::NotComparable,
        "before the source contradicts itself",
    );
}

/// The part of a benchmark's document that is read: a warm-up, whole intervals of `rate` reads of 4 KiB, and a short last one.
fn bench(rate: u64, ms: f64) -> Observed {
    let interval = |number: u64, seconds: f64, is_warmup: bool, ios: u64| {
        serde_json::json!({
            "number": number, "at_seconds": number as f64, "seconds": seconds, "is_warmup": is_warmup,
            "ios": ios, "bytes": ios * 4096, "failed": 0, "read_share": 1.0, "in_flight_mean": 8.0,
            "time": {"ios": ios, "mean_ns": ms * 1e6, "deviation_ns": 1e5, "max_ns": 9_000_000},
            // Percentiles of an interval are around those of the run.
            "read_time": {"ios": ios, "p50_ns": 890_000 + number % 3 * 10_000, "p90_ns": 1_000_000,
                "p99_ns": 2_000_000 - number % 2 * 400_000},
        })
    };
    let mut intervals = vec![interval(1, 1.0, true, rate * 9)];
    intervals.extend((2..12).map(|number| interval(number, 1.0, false, rate + number % 3)));
    intervals.push(interval(12, 0.2, false, 1));
    let times = serde_json::json!({"mean_ns": ms * 1e6, "deviation_ns": 1e5, "p50_ns": 900_000, "p90_ns": 1_000_000,
        "p99_ns": 2_000_000, "p999_ns": 3_000_000, "max_ns": 9_000_000, "buckets": []});
    let side = |ios: u64, times: serde_json::Value| serde_json::json!({"ios": ios, "bytes": ios * 4096, "latency": times, "response": null});
    let total = serde_json::json!({"ios": rate * 10, "all": side(rate * 10, times.clone()), "reads": side(rate * 10, times),
        "writes": side(0, serde_json::Value::Null), "failures": [], "never_back": 0});
    let run = serde_json::json!({"name": null, "workload": "random reads of 4 KiB", "intervals": intervals, "total": total,
        "targets": [{"target": "/dev/loop1", "size_bytes": 1 << 30, "is_whole": true}]});
    let bench: BenchDocument =
        serde_json::from_value(serde_json::json!({"runs": [run], "notes": []}))
            .expect("a benchmark");
    of_bench(&bench.runs[0])
}

#[test]
fn benchmarks() {
    let (before, after) = (bench(8000, 1.0), bench(10_000, 0.8));
    assert_eq!(
        (before.device.as_str(), before.size_bytes),
        ("/dev/loop1", Some(1 << 30))
    );
    assert_eq!(
        (before.sampling.seen, before.slices.len()),
        (10, 10),
        "neither the warm-up nor what is left over"
    );
    let found = check(&before, &after, CompareOutcome::Better, "");
    let rate = found.verdict.rate.expect("one mix");
    assert!((rate.value - 1.25).abs() < 1e-3, "{rate:?}");
    let p99 = found
        .measures
        .iter()
        .find(|measure| measure.name == "read_p99_ns")
        .expect("it is there");
    assert_eq!(p99.before, Some(2e6));
    let of = |name: &str| {
        let measure = found
            .measures
            .iter()
            .find(|measure| measure.name == name)
            .expect("it is there");
        (
            measure.ratio.and_then(|ratio| ratio.low.zip(ratio.high)),
            measure.n,
        )
    };
    // Those of ten intervals, by hand: half of them ln 1.25 below the whole of each side, none above.
    let variance = 5.0 * 1.25f64.ln().powi(2) / 9.0 / 10.0;
    let reach = 2.101 * (2.0 * variance).sqrt();
    let (interval, n) = of("read_p99_ns");
    let (low, high) = interval.expect("intervals tell it");
    assert!(
        (high.ln() - reach).abs() < 1e-3 && (low.ln() + reach).abs() < 1e-3,
        "{low} to {high}, {reach}"
    );
    assert_eq!(n, [10, 10]);
    let (low, high) = of("read_p90_ns").0.expect("intervals tell it");
    assert!(
        (low - 1.0).abs() < 1e-9 && (high - 1.0).abs() < 1e-9,
        "all alike: {low} to {high}"
    );
    assert!(
        found
            .measures
            .iter()
            .all(|measure| !measure.name.starts_with("write")),
        "nothing was written"
    );
    check(&after, &before, CompareOutcome::Worse, "");
    check(&before, &before, CompareOutcome::NoDifference, "");
    // Below 500 I/O an interval has too few above its 99 of 100.
    let rare = check(
        &bench(400, 1.0),
        &bench(400, 1.0),
        CompareOutcome::NoDifference,
        "",
    );
    let of = |name: &str| {
        rare.measures
            .iter()
            .find(|measure| measure.name == name)
            .expect("it is there")
            .n
    };
    assert_eq!((of("read_p90_ns"), of("read_p99_ns")), ([10, 10], [0, 0]));
}

/// One load in a table that keeps each length, and in a full one: lengths are compared by powers of two, and nothing differs.
#[test]
fn a_full_table_compares_by_powers_of_two() {
    let side = |rows_max: fn(&mut Settings)| {
        let bench = RuleBench {
            change_settings: rows_max,
            ..RuleBench::default()
        };
        let mut random = Random(4);
        let events = (0..40_000).map(|at| {
            let (start, len) = (random.below(1 << 24) * 512, (65 + random.below(60)) * 512);
            let mut event = Event::new(at * 1_000_000, 0, Layer::Request, Op::Read, start, len);
            event.device_ns = Some(100_000 + at % 77 * 100);
            event
        });
        let judged = bench.judge_events(events);
        of_profile(&judged.profile, &judged.analysis)
    };
    let exact = side(|_| {});
    let full = side(|settings| settings.rows_max = ROWS_MAX_LEAST);
    assert!(!exact.are_lengths_rounded && full.are_lengths_rounded);
    let same = verdict(&exact, &full);
    let mix = same.mix.as_ref().expect("a mix");
    assert!(mix.overlap > 0.999, "{mix:?}");
    assert_eq!(
        same.verdict.outcome,
        CompareOutcome::NoDifference,
        "{same:?}"
    );
    let own = verdict(&exact, &exact).mix.expect("a mix");
    insta::assert_debug_snapshot!((mix.by, &same.doubts, own.by));
}
