//! One piece gives one profile, for any ends of its batches, any windows cut out of it, and any order of their merge.

use proptest::prelude::*;

use plumb_profile::ProfileSet;
use plumb_testkit::Rng;
use plumb_testkit::workload::Mixed;
use plumb_trace::{Counts, Event, Layer, Op, SourceInfo};

use crate::model::support::{Recording, Spread, bytes_of, collector, merge_anyhow, only, random};

fn info() -> SourceInfo {
    let counts = Counts {
        lost: 3,
        damaged: 5,
        late_completions: 7,
        ..Counts::default()
    };
    SourceInfo {
        completions_only: true,
        counts,
        ..SourceInfo::default()
    }
}

/// Batches of random sizes, some of them empty.
fn split(events: &[Event], rng: &mut Rng) -> Vec<Vec<Event>> {
    let mut pieces = Vec::new();
    let mut rest = events;
    while !rest.is_empty() {
        let at = rng.below(rest.len() as u64 / 3 + 3).min(rest.len() as u64) as usize;
        pieces.push(rest[..at].to_vec());
        rest = &rest[at..];
    }
    pieces
}

fn check(recording: &Recording, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut whole = collector(1 << 20);
    whole.fold(&recording.batch(&recording.events));
    let whole = whole.finish(&info());
    let mut cut = collector(1 << 20);
    let mut windows = Vec::new();
    for events in split(&recording.events, &mut rng) {
        cut.fold(&recording.batch(&events));
        if rng.percent(60) {
            windows.push(cut.cut());
        }
    }
    if rng.percent(50) {
        // The end of the piece may find nothing new since the last cut.
        windows.push(cut.cut());
    }
    windows.push(cut.finish(&info()));
    let merged = merge_anyhow(windows, &mut rng, |into, set| into.merge(&set));
    assert_eq!(merged, whole);
    assert_eq!(bytes_of(&merged), bytes_of(&whole));
}

proptest! {
    #![proptest_config(crate::model::support::cases(60))]

    #[test]
    fn windows_add_up_to_the_whole(seed: u64, events in 1usize..900) {
        check(&random(Spread { events, ..Spread::SMALL }, seed), seed);
    }
}

#[test]
fn windows_of_a_busy_host_add_up_to_the_whole() {
    let load = Mixed {
        events: 30_000,
        devices: 5,
        ..Mixed::default()
    };
    let recording = Recording::from_workload(load.iter());
    (0..4).for_each(|seed| check(&recording, seed));
}

#[test]
fn batches_may_end_anywhere() {
    let load = Mixed {
        events: 20_000,
        devices: 4,
        ..Mixed::default()
    };
    let recording = Recording::from_workload(load.iter());
    let whole = bytes_of(&recording.profiles(usize::MAX));
    for size in [1, 7, 4096] {
        assert_eq!(
            bytes_of(&recording.profiles(size)),
            whole,
            "batches of {size}"
        );
    }
}

/// A column that is not there says the same as one that says nothing.
#[test]
fn absent_columns_are_unknown_throughout() {
    let mut recording = random(
        Spread {
            events: 800,
            ..Spread::SMALL
        },
        6,
    );
    for event in &mut recording.events {
        (event.device_ns, event.queue_ns, event.pid, event.comm) = (None, None, None, 0);
        event.tid = None;
    }
    let expected = bytes_of(&recording.profiles(100));
    let mut collector = collector(1 << 20);
    for mut batch in recording.batches(100) {
        (batch.device_ns, batch.queue_ns, batch.pid, batch.comm) = Default::default();
        (batch.tid, batch.cgroup, batch.file) = Default::default();
        collector.fold(&batch);
    }
    assert_eq!(
        bytes_of(&collector.finish(&SourceInfo::default())),
        expected
    );
}

/// The facts that a source reveals about a device over time.
#[test]
fn sizes_and_partitions_may_be_learned_later() {
    let mut names = plumb_trace::Names::default();
    let device = names.device("sda");
    let events: Vec<Event> = (0..4)
        .map(|n| Event::new(n, device, Layer::Bio, Op::Write, n as u64 * 4096, 4096))
        .collect();
    let before = std::sync::Arc::new(names.clone());
    let known = names.device_mut(device).expect("just made");
    known.size_bytes = Some(1 << 40);
    known.partitions = vec![("sda1".to_owned(), 4096), ("sda2".to_owned(), 12288)];
    let after = std::sync::Arc::new(names);
    let mut collector = collector(1 << 20);
    let both = [(before, &events[..]), (after, &events[..])];
    for (names, events) in both {
        collector.fold(
            &Recording {
                events: events.to_vec(),
                names,
            }
            .batch(events),
        );
    }
    let profile = only(&collector.finish(&info()));
    assert_eq!(
        (profile.size_bytes, profile.places.table.region_shift()),
        (Some(1 << 40), 34)
    );
    let ios = |name: &str| {
        profile.partitions[name]
            .table
            .iter()
            .map(|(_, row)| row.ios)
            .sum::<u64>()
    };
    assert_eq!((profile.ios(), ios("sda1"), ios("sda2")), (8, 2, 1));
}

#[test]
fn a_piece_and_its_losses_are_counted_once() {
    let recording = random(
        Spread {
            events: 500,
            ..Spread::SMALL
        },
        3,
    );
    let mut collector = collector(1 << 20);
    collector.fold(&recording.batch(&recording.events));
    let mut set = collector.cut();
    set.merge(&collector.finish(&info()));
    assert!(set.len() > 2);
    assert!(
        set.iter()
            .all(|profile| profile.pieces == 1 && profile.completion_order)
    );
    assert_eq!(
        set.iter()
            .map(|profile| profile.losses.damaged)
            .sum::<u64>(),
        5
    );
    assert_eq!(
        set.iter().map(|profile| profile.losses.lost).sum::<u64>(),
        3
    );
}

#[test]
fn a_file_with_events_and_ready_made_counts_is_one_piece() {
    use plumb_trace::{Fill, ResidueRow, ResidueTable};
    let mut recording = random(
        Spread {
            events: 50,
            devices: 1,
            ..Spread::SMALL
        },
        3,
    );
    recording
        .events
        .iter_mut()
        .for_each(|event| event.layer = Layer::Request);
    let (device, op) = (recording.names.devices()[0].name.clone(), Op::Read);
    let row = |device_ns_sum| ResidueRow {
        device: device.clone(),
        op,
        residue_bytes: 512,
        len_bytes: 4096,
        ios: 10,
        timed_ios: 4,
        device_ns_sum,
    };
    let table = ResidueTable {
        unit_bytes: 512,
        modulus_bytes: 1 << 20,
        rows: vec![row(400), row(500)],
    };
    let mut collector = collector(1 << 20);
    collector.fold(&recording.batch(&recording.events));
    collector.fold_ready_made(&Fill::Residue(table), Layer::Request);
    let profile = only(&collector.finish(&info()));
    assert_eq!((profile.pieces, profile.ios()), (1, 70));
}

/// Residues modulo something else are not put into a table of the usual modulus.
#[test]
fn ready_made_residues_keep_their_modulus() {
    use plumb_geometry::{Bounds, Bytes, Grid};
    use plumb_profile::Select;
    use plumb_trace::{Fill, ResidueRow, ResidueTable};
    let give = |collector: &mut plumb_profile::Collector, modulus_bytes, residue_bytes| {
        let row = ResidueRow {
            device: "sda".to_owned(),
            op: Op::Write,
            residue_bytes,
            len_bytes: 4096,
            ios: 10,
            timed_ios: 0,
            device_ns_sum: 0,
        };
        let table = ResidueTable {
            unit_bytes: 512,
            modulus_bytes,
            rows: vec![row],
        };
        collector.fold_ready_made(&Fill::Residue(table), Layer::Request);
    };
    // Moduli given, the common one, and whether the residues are placed at all.
    let cases: [(&[u64], u64, bool); 5] = [
        (&[48 << 10], 48 << 10, true),
        (&[48 << 10, 1 << 20, 80 << 10], 16 << 10, true),
        (&[32 << 20], 16 << 20, true),
        (&[3 << 24], 1 << 24, true),
        (&[1000], 1 << 20, false),
    ];
    for (moduli, modulus, placed) in cases {
        let mut collector = collector(1 << 20);
        moduli
            .iter()
            .for_each(|&modulus| give(&mut collector, modulus, modulus - 512));
        let profile = only(&collector.finish(&info()));
        assert_eq!(profile.ios(), 10 * moduli.len() as u64);
        assert_eq!(profile.placed_ios(), if placed { profile.ios() } else { 0 });
        assert_eq!(profile.places.table.modulus_bytes(), modulus, "{moduli:?}");
        let grid = Grid::unit(Bytes(8192)).expect("a grid");
        let heads = profile
            .places
            .table
            .fit(&grid, Select::DATA)
            .map(|tally| tally.head_bytes_sum);
        assert_eq!(
            heads.ok(),
            placed.then_some(Bounds::exact(10 * moduli.len() as u128 * 7680))
        );
    }
}

#[test]
fn losses_stay_when_there_were_no_events() {
    use plumb_trace::{AlignTotals, Fill};
    let totals = AlignTotals {
        subject: plumb_trace::ALL_DEVICES.to_owned(),
        elapsed_ns: None,
        ios: 10,
        misaligned_ios: 4,
        start_unit_bytes: 4096,
        mean_offset_bytes: 512,
        odd_length_ios: 0,
        len_unit_bytes: 8192,
    };
    let mut collector = collector(1 << 20);
    collector.fold_ready_made(&Fill::Totals(totals), Layer::Request);
    let set = collector.finish(&info());
    assert_eq!(
        set.iter()
            .map(|profile| profile.losses.damaged)
            .sum::<u64>(),
        5
    );
    assert_eq!(
        set.iter().map(|profile| profile.pieces).collect::<Vec<_>>(),
        [1]
    );
    assert_eq!(
        ProfileSet::default(),
        crate::model::support::collector(1 << 20).finish(&info())
    );
}

/// Sizes that a damaged or strange source may give.
#[test]
fn a_device_of_any_size_has_regions() {
    let sizes =
        (0..64).chain((6..64).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]));
    for size in sizes.chain([u64::MAX]) {
        let mut names = plumb_trace::Names::default();
        let device = names.device("sda");
        names.device_mut(device).expect("just made").size_bytes = Some(size);
        let event = Event::new(0, device, Layer::Bio, Op::Read, size.saturating_sub(1), 1);
        let recording = Recording {
            events: vec![event],
            names: std::sync::Arc::new(names),
        };
        let table = recording.profile().places.table;
        let region = (size.saturating_sub(1)) >> table.region_shift();
        // On a device larger than 64 smallest regions the last byte is in the upper half of the mask.
        let expected = if size > 64 << 20 { 32..64 } else { 0..64 };
        assert!(expected.contains(&region), "{size} bytes: region {region}");
    }
}

#[test]
fn impossible_events_are_harmless() {
    let numbers = [
        0u64,
        1,
        511,
        1 << 35,
        1 << 44,
        1 << 55,
        u64::MAX - 511,
        u64::MAX,
    ];
    let times = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX];
    let mut rng = Rng::new(1);
    let mut events = Vec::new();
    for _ in 0..5_000 {
        let mut pick = |from: &[u64]| from[rng.below(from.len() as u64) as usize];
        let (start, len) = (pick(&numbers), pick(&numbers));
        let op = Op::ALL[pick(&[0, 1, 2, 3, 4, 5]) as usize];
        let mut time = || times[pick(&[0, 1, 2, 3, 4, 5]) as usize];
        let mut event = Event::new(time(), 0, Layer::Bio, op, start, len);
        (event.device_ns, event.queue_ns) = (Some(time()), Some(time()));
        event.pid = Some(time() as i32);
        events.push(event);
    }
    let recording = Recording {
        events,
        names: plumb_trace::Names::default().into(),
    };
    let set = recording.profiles(100);
    assert_eq!(only(&set).ios(), 5_000);
    let mut twice = set.clone();
    twice.merge(&set);
    assert_eq!(only(&twice).ios(), 10_000);
    check(&recording, 4);
    let saved = plumb_profile::codec::Saved {
        profiles: twice,
        ..Default::default()
    };
    let bytes = plumb_profile::codec::encode(&saved).expect("room to encode");
    assert_eq!(
        plumb_profile::codec::decode(&bytes).expect("just written"),
        saved
    );
}
