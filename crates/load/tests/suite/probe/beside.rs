//! Caches, throttles and other influences beside the reads: they are found, and no verdict that they make wrong stays.

use std::time::Duration;

use plumb_load::probe::beside::{Against, Beside, against};
use plumb_load::probe::{ProbeVerdict, Probed, Reason, Settings, probe};
use plumb_stats::equivalence::Margin;

use super::device::{Charge, Noise, SimulatedDevice};
use super::settings;

/// The same device with and without a grid, as a throttle that sets in or a cache that fills changes it.
fn device(ratio: f64, seed: u64, noise: Noise) -> SimulatedDevice {
    let mut device = SimulatedDevice::throttled(4096, 3072, ratio, seed);
    device.noise = Noise {
        spread: 0.05,
        outliers: 5,
        ..noise
    };
    device
}

fn run(device: &mut SimulatedDevice, settings: &Settings) -> (Probed, Option<Against>) {
    let probed = probe(device, settings).expect("no read fails");
    let against = against(&probed, Beside::default());
    (probed, against)
}

/// The reach of a cache is between the kept and the lost distances: by lines of 4 KiB; each read takes one or two, and
/// some more if the sweep itself reads.
#[test]
fn the_size_of_a_cache_is_found_between_two_distances() {
    for lines in [600, 1_500, 5_000] {
        let mut bracketed = 0;
        for seed in 0..20 {
            let mut device = device(
                1.5,
                seed,
                Noise {
                    cached_lines: lines,
                    ..Noise::default()
                },
            );
            let (probed, against) = run(&mut device, &settings(seed));
            let cache = probed.cache.expect("a sweep");
            assert_eq!(
                (probed.grid.map(|grid| grid.offset_bytes), against),
                (Some(3072), None)
            );
            let kib = |bytes: u64| bytes >> 10;
            let Some(held) = cache.held else { continue };
            // Between a read and its repetition there are the reads of the sweep itself as well.
            let is_lost = cache
                .lost
                .is_none_or(|lost| kib(lost.bytes) / 4 + 400 > lines as u64);
            bracketed += u32::from(kib(held.bytes) / 4 < lines as u64 && is_lost);
            assert!(
                cache.first_ns > 100_000 && cache.again_ns < 20_000,
                "{cache:?}"
            );
            assert!(cache.fast_share < 0.2, "{cache:?}");
        }
        eprintln!("{lines} lines: {bracketed} of 20");
        assert!(bracketed >= 19, "{lines}: {bracketed}");
    }
}

/// Without a cache, none is seen, with any disturbance.
#[test]
fn uncached_disks_show_no_cache() {
    let mut seen = 0;
    for (name, noise) in [
        ("even", Noise::default()),
        (
            "wide",
            Noise {
                spread: 0.6,
                ..Noise::default()
            },
        ),
        (
            "outliers",
            Noise {
                spread: 0.1,
                outliers: 200,
                ..Noise::default()
            },
        ),
        (
            "waves",
            Noise {
                spread: 0.1,
                drift: 0.5,
                ..Noise::default()
            },
        ),
    ] {
        for seed in 0..25 {
            let mut device = SimulatedDevice::throttled(4096, 3072, 2.0, seed);
            device.noise = noise;
            let probed = probe(&mut device, &settings(seed)).expect("no read fails");
            let is_seen = probed.cache.is_some_and(|cache| cache.held.is_some());
            if is_seen {
                eprintln!("{name} {seed}: {:?}", probed.cache);
            }
            seen += u32::from(is_seen);
        }
    }
    assert!(seen <= 1, "{seen} of 100");
}

/// A cache of long lines that holds all of a small target in the end: the result is then not the medium's.
#[test]
fn a_cache_that_fills_hides_no_grid() {
    let mut ends = [0; 3];
    for seed in 0..8 {
        let noise = Noise {
            cached_lines: 1 << 20,
            line_bytes: 128 << 10,
            ..Noise::default()
        };
        let mut device = device(1.05, seed, noise);
        device.size_bytes = 160 << 20;
        let settings = Settings {
            ranges: vec![(0, 160 << 20)],
            limit: Duration::from_secs(6),
            ..settings(seed)
        };
        let (probed, against) = run(&mut device, &settings);
        match (&probed.verdict, against) {
            (ProbeVerdict::Inconclusive(_), None) => ends[0] += 1,
            (_, Some(_)) => ends[1] += 1,
            (_, None) if probed.grid.is_some_and(|grid| grid.offset_bytes == 3072) => ends[2] += 1,
            (verdict, None) => panic!("{seed}: {verdict:?} {:?} {:?}", probed.grid, probed.cache),
        }
    }
    eprintln!("open {}, doubted {}, right {}", ends[0], ends[1], ends[2]);
    assert!(ends[1] > 0, "what fills is seen in some");
}

/// Credits that run out: the throttle hides the penalty, which does not prove that there is no penalty.
#[test]
fn a_throttle_that_sets_in_hides_no_grid() {
    let mut slower = 0;
    for seed in 0..20 {
        for (ratio, at_ms) in [(1.2, 250), (1.2, 600), (1.5, 250)] {
            let throttle = Some((Duration::from_millis(at_ms), 2.5e6));
            let mut device = device(
                ratio,
                seed,
                Noise {
                    throttle,
                    ..Noise::default()
                },
            );
            let margin = Margin::new(0.1).expect("a share");
            let (probed, against) = run(
                &mut device,
                &Settings {
                    margin,
                    ..settings(seed)
                },
            );
            match (&probed.verdict, against) {
                (ProbeVerdict::Inconclusive(_), _) => {}
                (_, Some(Against::Slower(change))) => {
                    slower += 1;
                    assert!((2.5..10.0).contains(&change.factor()), "{change:?}");
                    let moment = change.at.as_secs_f64() - at_ms as f64 / 1e3;
                    assert!((-0.2..0.4).contains(&moment), "{change:?}");
                }
                (verdict, against) => {
                    let is_right = probed.grid.is_some_and(|grid| grid.offset_bytes == 3072);
                    assert!(
                        is_right && against.is_none(),
                        "{ratio} {seed}: {verdict:?} {against:?} {:?}",
                        probed.course
                    );
                }
            }
        }
    }
    eprintln!("{slower} of 60 would have been without a penalty");
    assert!(slower > 0);
}

/// A stated cache leaves nothing to measure in a range that is not twice as large, and is not searched.
#[test]
fn a_stated_cache_is_taken_for_true() {
    for (cache_bytes, is_measured) in [
        (0, true),
        (512 << 20, true),
        ((512 << 20) + 1, false),
        (1 << 40, false),
    ] {
        let mut device = device(2.0, 1, Noise::default());
        let stated = Settings {
            cache_bytes: Some(cache_bytes),
            ..settings(1)
        };
        let (probed, _) = run(&mut device, &stated);
        assert_eq!(probed.cache, None);
        let expected = if is_measured {
            ProbeVerdict::Misaligned
        } else {
            ProbeVerdict::Inconclusive(Reason::Cache)
        };
        assert_eq!(
            (probed.verdict, probed.reads > 0),
            (expected, is_measured),
            "{cache_bytes}"
        );
    }
}

/// The looks at the pace and the sweep of a cache take a small part of the time of a usual verdict.
#[test]
fn side_measurements_take_little_time() {
    let even = Charge::Commands {
        more: 0.0,
        bytes_for_1: 1e9,
    };
    let mut device = SimulatedDevice::new(4096, 0, even, 1);
    let (probed, _) = run(&mut device, &settings(1));
    let looks = probed.course.paces().len() as f64;
    let look_seconds = looks * 10.0 * 500e-6;
    let share = look_seconds / probed.spent.as_secs_f64();
    eprintln!("{looks} looks: {share:.3} of {:?}", probed.spent);
    assert!(share < 0.06, "{share}");
}
