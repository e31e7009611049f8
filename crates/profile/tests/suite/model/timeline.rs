//! The course over time: windows that widen, regions for a heat map, merging.

use std::collections::BTreeMap;

use proptest::prelude::*;

use plumb_profile::histogram::power_index;
use plumb_profile::timeline::{Timeline, TimelineIo, WINDOWS_MAX};
use plumb_testkit::Rng;
use plumb_trace::{Event, Layer, Op};

use crate::model::support::{Recording, Spread, merge_anyhow, only, random as random_events};

fn timeline_of(ios: &[TimelineIo]) -> Timeline {
    let mut timeline = Timeline::default();
    timeline.add_all(ios.iter().copied());
    timeline
}

fn random(count: u64, span_ns: u64, far: u64, seed: u64) -> Vec<TimelineIo> {
    let mut rng = Rng::new(seed);
    let origin = rng.next_u64() as i64 >> rng.between(2, 40);
    (0..count)
        .map(|_| TimelineIo {
            time_ns: origin + rng.below(span_ns) as i64,
            op: Op::ALL[rng.below(6) as usize],
            start_bytes: rng.below(far) * 512,
            len_bytes: rng.below(100) * 512,
            device_ns: rng.percent(70).then(|| rng.below(1_000_000) as i64),
        })
        .collect()
}

/// The expected content of one window and region, from all I/O at once.
#[derive(Default, Debug, PartialEq)]
struct Slow {
    sizes: BTreeMap<(Op, usize), u64>,
    bytes: (u64, u64),
    other: u64,
    latency: (u64, u64, u64),
    regions: BTreeMap<usize, u64>,
}

fn slow(ios: &[TimelineIo], width_ns: i64, region_shift: u32) -> BTreeMap<i64, Slow> {
    let mut windows: BTreeMap<i64, Slow> = BTreeMap::new();
    for io in ios {
        let window = windows
            .entry(io.time_ns.div_euclid(width_ns) * width_ns)
            .or_default();
        match io.op {
            Op::Read => window.bytes.0 += io.len_bytes,
            Op::Write => window.bytes.1 += io.len_bytes,
            _ => {
                window.other += 1;
                continue;
            }
        }
        *window
            .sizes
            .entry((io.op, power_index(io.len_bytes)))
            .or_default() += 1;
        *window
            .regions
            .entry((io.start_bytes >> region_shift) as usize)
            .or_default() += 1;
        if let Some(ns) = io.device_ns {
            let (timed, sum, max) = window.latency;
            window.latency = (timed + 1, sum + ns as u64, max.max(ns as u64));
        }
    }
    windows
}

fn shown(timeline: &Timeline) -> BTreeMap<i64, Slow> {
    let windows = timeline.iter().map(|(start_ns, window)| {
        let reads = window
            .read_sizes
            .iter()
            .map(|(size, ios)| ((Op::Read, size), ios));
        let writes = window
            .write_sizes
            .iter()
            .map(|(size, ios)| ((Op::Write, size), ios));
        let slow = Slow {
            sizes: reads.chain(writes).collect(),
            bytes: (window.read_bytes, window.write_bytes),
            other: window.other_ios,
            latency: (window.timed, window.ns_sum, window.ns_max),
            regions: window.regions.iter().collect(),
        };
        (start_ns, slow)
    });
    windows.collect()
}

proptest! {
    #![proptest_config(crate::model::support::cases(64))]

    #[test]
    fn windows_hold_their_events_in_any_order_of_merging(
        seed: u64, count in 1u64..400, span in 0u32..62, far in 0u32..54,
    ) {
        let ios = random(count, 1 << span, 1 << far, seed);
        let whole = timeline_of(&ios);
        prop_assert!(whole.iter().count() <= WINDOWS_MAX);
        let width_ns = i64::try_from(whole.width_ns()).expect("a width that fits");
        prop_assert_eq!(shown(&whole), slow(&ios, width_ns, whole.region_shift()));
        let furthest = ios.iter().map(|io| io.start_bytes).max().unwrap_or(0);
        prop_assert!(furthest >> whole.region_shift() < 64);
        let mut rng = Rng::new(seed);
        let parts: Vec<Timeline> = ios.chunks(7).map(timeline_of).collect();
        let merged = merge_anyhow(parts, &mut rng, |into, timeline| into.merge(&timeline));
        prop_assert_eq!(merged, whole);
    }

    /// A collector counts blocks of I/O at once, some possibly of other operations or without a latency.
    #[test]
    fn a_collector_counts_the_same(seed: u64, events in 1usize..2_000, size in 1usize..1_500) {
        let recording = random_events(Spread { events, devices: 1, ..Spread::SMALL }, seed);
        for profile in recording.profiles(size).iter() {
            let of_layer = recording.events.iter().filter(|event| event.layer == profile.layer);
            let ios: Vec<TimelineIo> = of_layer.map(seen).collect();
            let timeline = &profile.timeline;
            let width_ns = i64::try_from(timeline.width_ns()).expect("a width that fits");
            prop_assert_eq!(shown(timeline), slow(&ios, width_ns, timeline.region_shift()));
        }
    }
}

fn seen(event: &Event) -> TimelineIo {
    let Event {
        time_ns,
        op,
        start_bytes,
        len_bytes,
        device_ns,
        ..
    } = *event;
    TimelineIo {
        time_ns,
        op,
        start_bytes,
        len_bytes,
        device_ns,
    }
}

/// The width is the least power of two, from a millisecond on, at which all windows fit.
#[test]
fn windows_are_no_wider_than_they_must_be() {
    let at = |time_ns| TimelineIo {
        time_ns,
        op: Op::Flush,
        start_bytes: 0,
        len_bytes: 0,
        device_ns: None,
    };
    for (last, width) in [
        (0, 20),
        (511 << 20, 20),
        (512 << 20, 21),
        ((1024 << 20) - 1, 21),
        (1024 << 20, 22),
    ] {
        assert_eq!(
            timeline_of(&[at(0), at(last)]).width_ns(),
            1 << width,
            "{last} ns"
        );
    }
    // Nor does a collector, which looks ahead in a batch, make them so.
    for (last, width) in [(511 << 20, 20), (512 << 20, 21)] {
        let mut names = plumb_trace::Names::default();
        let device = names.device("sda");
        let event = |time_ns| Event::new(time_ns, device, Layer::Bio, Op::Read, 0, 512);
        let recording = Recording {
            events: vec![event(0), event(last)],
            names: names.into(),
        };
        for size in [1, 2] {
            let profiles = recording.profiles(size);
            assert_eq!(
                only(&profiles).timeline.width_ns(),
                1 << width,
                "{last} ns in batches of {size}"
            );
        }
    }
    // Windows start at multiples of their width, so that a start elsewhere may take one more.
    assert_eq!(
        timeline_of(&[at(-1), at((511 << 20) - 1)]).width_ns(),
        1 << 20
    );
    assert_eq!(timeline_of(&[at(-1), at(511 << 20)]).width_ns(), 1 << 21);
}
