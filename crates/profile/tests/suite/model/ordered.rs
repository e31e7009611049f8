//! Everything in a profile against the slow model, event by event, and streams with known answers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use plumb_profile::{Collector, ProfileSet, Settings};
use plumb_testkit::workload::{Mixed, Oltp, Streams};
use plumb_trace::{Batch, Event, Layer, Names, Op, SourceInfo, UNKNOWN_NS};

use crate::model::slow;
use crate::model::support::{Recording, Spread, random};

/// Holds each profile against the events of its device and layer.
pub fn check_all(set: &ProfileSet, recording: &Recording) {
    let mut lanes: BTreeMap<(String, Layer), Vec<Event>> = BTreeMap::new();
    for event in &recording.events {
        let device = recording.names.devices()[event.device as usize]
            .name
            .clone();
        lanes.entry((device, event.layer)).or_default().push(*event);
    }
    assert_eq!(set.len(), lanes.len());
    for (profile, ((device, layer), events)) in set.iter().zip(&lanes) {
        assert_eq!((&profile.device, profile.layer), (device, *layer));
        slow::check(profile, events, &recording.names);
    }
}

proptest! {
    #![proptest_config(crate::model::support::cases(40))]

    #[test]
    fn a_profile_equals_its_definitions(
        seed: u64, events in 1usize..700, devices in 1u64..4, starts in prop::sample::select(vec![40u64, 5_000]),
        odd: bool,
    ) {
        let unit = if odd { 1 } else { 512 };
        let recording = random(Spread { events, devices, unit, starts, lengths: 40 }, seed);
        check_all(&recording.profiles(64), &recording);
    }
}

#[test]
fn a_busy_host_equals_the_definitions() {
    let load = Mixed {
        events: 12_000,
        devices: 3,
        mean_gap_ns: 30_000,
        ..Mixed::default()
    };
    let recording = Recording::from_workload(load.iter());
    check_all(&recording.profiles(4096), &recording);
}

#[test]
fn deep_queues_equal_the_definitions() {
    let load = Mixed {
        events: 3_000,
        devices: 1,
        mean_gap_ns: 800,
        ..Mixed::default()
    };
    let recording = Recording::from_workload(load.iter());
    let set = recording.profiles(4096);
    let depth_max = set
        .iter()
        .next()
        .expect("a profile")
        .ordered
        .in_flight
        .depth_max;
    assert!(depth_max > 200, "{depth_max} in flight are not deep");
    check_all(&set, &recording);
}

#[test]
fn streams_have_the_heads_that_were_planted() {
    for streams in [1, 7, 255, 256, 257] {
        let load = Streams {
            events: 3_000,
            streams,
            ..Streams::default()
        };
        let profile = Recording::from_workload(load.iter()).profile();
        assert_eq!(
            profile.ios() - profile.ordered.continuing,
            load.heads(256),
            "{streams} streams"
        );
    }
    let load = Oltp {
        events: 5_000,
        ..Oltp::default()
    };
    let profile = Recording::from_workload(load.iter()).profile();
    assert_eq!(profile.ios() - profile.ordered.continuing, load.heads());
    assert_eq!(
        (profile.ordered.runs(), profile.ordered.run_ios),
        (2, load.stream_events())
    );
}

/// Runs and the I/O in them, of reads given as (first sector, sectors).
fn runs(reads: &[(u64, u64)]) -> (u64, u64) {
    let events = reads.iter().enumerate().map(|(at, (start, len))| {
        Event::new(
            at as i64 * 1000,
            0,
            Layer::Bio,
            Op::Read,
            start * 512,
            len * 512,
        )
    });
    let mut names = plumb_trace::Names::default();
    names.device("sda");
    let recording = Recording {
        events: events.collect(),
        names: std::sync::Arc::new(names),
    };
    let profile = recording.profile();
    assert!(profile.ordered.run_ios <= profile.ios());
    (profile.ordered.runs(), profile.ordered.run_ios)
}

#[test]
fn an_io_is_in_one_run_at_most() {
    assert_eq!(runs(&[(0, 8), (8, 8)]), (0, 0));
    assert_eq!(runs(&[(0, 8), (8, 8), (16, 8)]), (1, 3));
    assert_eq!(runs(&[(0, 8), (8, 8), (16, 8), (24, 1), (25, 3)]), (1, 5));
    // The tail of a log written again and again: only one of its versions goes on.
    assert_eq!(
        runs(&[(0, 8), (8, 8), (8, 8), (16, 8), (16, 8), (16, 8)]),
        (1, 3)
    );
    // Two readers of the same place, side by side.
    assert_eq!(
        runs(&[(0, 8), (0, 8), (8, 8), (8, 8), (16, 8), (16, 8)]),
        (2, 6)
    );
}

/// A source without times gives no time between issues, no I/O in flight and no span.
#[test]
fn unknown_times_count_for_nothing() {
    let mut batch = Batch::default();
    let mut names = Names::default();
    let device = names.device("sd0");
    for io in 0..10 {
        let mut event = Event::new(UNKNOWN_NS, device, Layer::Bio, Op::Read, io * 8192, 4096);
        event.device_ns = Some(1_000);
        batch.push(&event);
    }
    batch.names = std::sync::Arc::new(names);
    let mut collector = Collector::new(&Settings::default()).expect("a modulus of 1 MiB");
    collector.fold(&batch);
    let profiles = collector.finish(&SourceInfo::default());
    let profile = profiles.iter().next().expect("one device");
    assert_eq!(profile.op(Op::Read).ios, 10);
    assert_eq!(profile.op(Op::Read).timed, 10);
    assert_eq!((profile.first_ns, profile.last_ns), (None, None));
    assert_eq!(profile.ordered.interarrival_ns.total(), 0);
    assert_eq!(profile.ordered.in_flight.depth_max, 0);
}
