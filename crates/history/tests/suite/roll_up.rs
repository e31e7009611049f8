//! Windows of any tier add up to the profile of the raw events: exactly if no cap was reached, else within the
//! printed range.

use proptest::prelude::*;

use plumb_geometry::{Bytes, Grid};
use plumb_history::{DeviceIncrement, Glance, Reader, Settings, Span, Tier, Writer};
use plumb_profile::Profile;
use plumb_profile::fit::Select;
use plumb_testkit::temp_dir;
use plumb_trace::{Event, Op};

use crate::support::{BEGIN, DAY, EVER, HOUR, Load, MINUTE, feed, is_sound, plain, read};

/// The names of the device differ: a store returns its present name.
fn same(found: &Profile, expected: &Profile) {
    let mut found = plain(found.clone());
    let caps = |profile: &Profile| profile.places.table.clone().with_rows_max(1 << 14);
    found.places.table = caps(&found);
    let mut expected = expected.clone();
    expected.places.table = caps(&expected);
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn all_windows_are_the_profile_of_the_events(seed: u64, minutes in 1i64..200, late in 0i64..90) {
        let room = temp_dir("roll-up");
        let load = Load::new(seed, BEGIN + DAY - late * MINUTE, minutes, 20, 64);
        let mut writer = Writer::open(room.path(), crate::support::exact()).expect("a store");
        feed(&mut writer, &load);
        let found = read(room.path(), EVER).expect("windows");
        same(&found.profile, &load.whole());
        prop_assert!(is_sound(room.path()));
        // Everything closes two days later, and is the same.
        writer.checkpoint(BEGIN + 4 * DAY).expect("a checkpoint");
        let found = read(room.path(), EVER).expect("windows");
        same(&found.profile, &load.whole());
        prop_assert_eq!(found.damaged + found.untabled_ios, 0);
        let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
        let series = reader.series().expect("devices");
        let end_ns = load.increments.last().map_or(0, |(span, _)| span.to_ns);
        prop_assert_eq!(reader.upto_ns().expect("a time"), end_ns);
        for tier in Tier::ALL {
            // Each window by itself.
            prop_assert!(!reader.has_open(tier, EVER).expect("sound files"));
            let rows = reader.glance(tier, EVER, None).expect("sound files");
            let windows = rows.iter().map(|row| {
                let closed = reader.closed_window(&series[0], row.window);
                closed.expect("sound files").expect("a window").profile
            });
            let sum = windows.reduce(|mut sum, next| {
                sum.merge(&next);
                sum
            });
            same(&sum.expect("windows"), &load.whole());
        }
    }

    #[test]
    fn an_open_window_is_not_over(seed: u64) {
        let room = temp_dir("open");
        let load = Load::new(seed, BEGIN, 30, 20, 64);
        let mut writer = Writer::open(room.path(), crate::support::exact()).expect("a store");
        feed(&mut writer, &load);
        let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
        let hour = Span { from_ns: BEGIN, to_ns: BEGIN + HOUR };
        let later = Span { from_ns: BEGIN + HOUR, to_ns: BEGIN + DAY };
        prop_assert!(reader.has_open(Tier::Hour, hour).expect("sound files"));
        prop_assert!(!reader.has_open(Tier::Hour, later).expect("sound files"));
        prop_assert!(reader.has_open(Tier::Day, later).expect("sound files"));
        let series = reader.series().expect("devices");
        let open = plumb_history::Window::at(Tier::Hour, BEGIN);
        prop_assert!(reader.closed_window(&series[0], open).expect("sound files").is_none());
    }

    #[test]
    fn any_span_is_the_sum_of_its_increments(seed: u64, from in 0i64..40, windows in 1i64..60) {
        let room = temp_dir("span");
        let load = Load::new(seed, BEGIN + DAY - 90 * MINUTE, 300, 12, 64);
        let mut writer = Writer::open(room.path(), crate::support::exact()).expect("a store");
        feed(&mut writer, &load);
        let from_ns = BEGIN + DAY - 90 * MINUTE + from * 5 * MINUTE;
        let span = Span { from_ns, to_ns: from_ns + windows * 5 * MINUTE };
        match (read(room.path(), span), load.within(span)) {
            (Some(found), Some(expected)) => same(&found.profile, &expected),
            (found, expected) => prop_assert_eq!(found.is_some(), expected.is_some()),
        }
    }
}

#[test]
fn capped_tables_give_ranges_with_the_truth() {
    let room = temp_dir("capped");
    // Many odd lengths, far more rows than any cap.
    let load = Load::new(7, BEGIN, 150, 60, 3000);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    feed(&mut writer, &load);
    writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
    let (found, whole) = (read(room.path(), EVER).expect("windows"), load.whole());
    assert_eq!(found.windows, [0, 0, 1]);
    assert_eq!(found.profile.ops, whole.ops);
    assert_eq!(found.profile.ordered, whole.ordered);
    assert_eq!(found.profile.top, whole.top);
    let table = &found.profile.places.table;
    assert!(table.len() <= 1024 && table.are_lengths_rounded());
    assert!(whole.places.table.len() > 4096);
    for bytes in [512, 1024, 4096] {
        let grid = Grid::unit(Bytes(bytes)).expect("a grid");
        let truth = whole
            .places
            .table
            .fit(&grid, Select::DATA)
            .expect("a full table");
        let Ok(found) = table.fit(&grid, Select::DATA) else {
            continue;
        };
        for (range, truth) in [
            (found.misaligned, truth.misaligned),
            (found.partial, truth.partial),
            (found.split, truth.split),
        ] {
            let truth = truth.known().expect("an exact number");
            assert!(
                range.low <= truth && truth <= range.high,
                "{bytes}: {range:?} {truth}"
            );
        }
    }
}

/// The additive measures of events, counted one by one.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    ios: u64,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    timed: u64,
    /// Of reads and writes, ns.
    ns_sum: u128,
    /// Up to 4, 16, 64 and 256 KiB, and longer; a length counts as the next power of two.
    mix: [u64; 5],
    /// Reads and writes whose start is no multiple of 512, 1,024, 4,096 and 65,536 bytes.
    off: [u64; 4],
}

const UNITS: [u64; 4] = [512, 1024, 4096, 65_536];

fn count<'e>(events: impl Iterator<Item = &'e Event>) -> Counted {
    let mut counted = Counted::default();
    for event in events {
        counted.ios += 1;
        let (ios, bytes) = match event.op {
            Op::Read => (&mut counted.reads, &mut counted.read_bytes),
            Op::Write => (&mut counted.writes, &mut counted.write_bytes),
            _ => continue,
        };
        *ios += 1;
        *bytes += event.len_bytes;
        if let Some(ns) = event.device_ns {
            counted.timed += 1;
            counted.ns_sum += ns as u128;
        }
        let class = match event.len_bytes.next_power_of_two() >> 10 {
            0..=4 => 0,
            5..=16 => 1,
            17..=64 => 2,
            65..=256 => 3,
            _ => 4,
        };
        counted.mix[class] += 1;
        for (off, unit) in counted.off.iter_mut().zip(UNITS) {
            *off += u64::from(event.start_bytes % unit != 0);
        }
    }
    counted
}

/// Every window of every tier under the usual bounds, against its raw events: additive measures are exact, also those of a table that
/// has lost detail, and a figure that needs the lost detail is a range that contains the truth.
#[test]
fn each_window_is_the_sum_of_its_events() {
    let (mut exact, mut ranges) = ([0; 3], [0; 3]);
    // A quiet device reaches no cap before its day, a busy one in each window, and aligned starts of few lengths reach none.
    for (seed, ios_by_minute, lengths) in [(21, 2, 16), (22, 90, 600), (23, 30, 2)] {
        let room = temp_dir("each-window");
        let load = Load::new(seed, BEGIN + 20 * HOUR, 5 * 60, ios_by_minute, lengths);
        let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
        feed(&mut writer, &load);
        writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
        let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
        let series = reader.series().expect("devices").remove(0);
        for tier in Tier::ALL {
            let rows = reader.glance(tier, EVER, None).expect("rows");
            let of_tier: u64 = rows.iter().map(|row| row.glance.ios).sum();
            assert_eq!(of_tier, load.whole().ios(), "{tier:?}");
            for row in rows {
                let span = row.window.span();
                let truth = count(load.events_in(span));
                let glance = row.glance;
                assert_eq!(
                    (glance.ios, glance.reads, glance.writes),
                    (truth.ios, truth.reads, truth.writes)
                );
                assert_eq!(
                    (glance.read_bytes, glance.write_bytes, glance.timed),
                    (truth.read_bytes, truth.write_bytes, truth.timed)
                );
                assert_eq!(glance.mix, truth.mix);
                // It is counted before a table loses detail.
                assert_eq!(glance.off_4k, Some(truth.off[2]));
                let found = reader.profile(&series, span).expect("sound files");
                let found = found.expect("a window");
                assert_eq!(found.span, span);
                assert_eq!(
                    found.windows.map(|windows| windows > 0),
                    Tier::ALL.map(|of| of == tier)
                );
                assert_eq!(
                    Glance {
                        off_4k: glance.off_4k,
                        ..Glance::of_profile(&found.profile)
                    },
                    glance
                );
                let has_table = found.untabled_ios == 0;
                assert_eq!(has_table, tier == Tier::Day || truth.ios >= 64);
                if !has_table {
                    continue;
                }
                let table = &found.profile.places.table;
                let data = table.iter().filter(|(key, _)| key.op() != Op::Flush);
                assert_eq!(data.map(|(_, row)| row.ns_sum).sum::<u128>(), truth.ns_sum);
                let is_whole = !table.are_lengths_rounded() && !table.is_modulus_lowered();
                for (unit, truth) in UNITS.into_iter().zip(truth.off) {
                    let grid = Grid::unit(Bytes(unit)).expect("a grid");
                    // A modulus below the unit cannot answer, and says so.
                    let Ok(fit) = table.fit(&grid, Select::DATA) else {
                        assert!(table.modulus_bytes() < unit);
                        continue;
                    };
                    let range = fit.misaligned;
                    assert!(
                        range.low <= truth && truth <= range.high,
                        "{unit}: {range:?} {truth}"
                    );
                    if is_whole {
                        assert_eq!(range.known(), Some(truth));
                    }
                }
                let counter = if is_whole { &mut exact } else { &mut ranges };
                counter[tier as usize] += 1;
            }
        }
    }
    assert!(
        exact.iter().chain(&ranges).all(|windows| *windows > 0),
        "{exact:?} {ranges:?}"
    );
}

#[test]
fn the_ends_of_a_span_are_widened_to_windows() {
    let room = temp_dir("widened");
    let load = Load::new(3, BEGIN, 26 * 60, 2, 16);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    feed(&mut writer, &load);
    let asked = Span {
        from_ns: BEGIN + 7 * MINUTE,
        to_ns: BEGIN + 3 * HOUR + MINUTE,
    };
    let found = read(room.path(), asked).expect("windows");
    let whole = Span {
        from_ns: BEGIN + 5 * MINUTE,
        to_ns: BEGIN + 3 * HOUR + 5 * MINUTE,
    };
    assert_eq!(found.span, whole);
    assert_eq!(found.windows, [12, 2, 0]);
    let expected = load.within(whole).expect("I/O");
    assert_eq!(found.profile.ops, expected.ops);
    // Without the file of 5 minutes the hours have the ends.
    drop(writer);
    std::fs::remove_file(room.path().join("recent.db")).expect("its file");
    let found = read(room.path(), asked).expect("windows");
    assert_eq!(
        found.span,
        Span {
            from_ns: BEGIN,
            to_ns: BEGIN + 4 * HOUR
        }
    );
    assert_eq!(found.windows, [0, 4, 0]);
}

/// The totals of one device are those that it has among the totals of all, in any part of the time.
#[test]
fn the_totals_of_a_device_are_its_part_of_all() {
    let room = temp_dir("totals");
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    let load = Load::new(7, BEGIN, 3 * 60, 4, 16);
    for (span, profile) in &load.increments {
        for device in 0..3 {
            // The second device pauses for an hour.
            if device == 1 && (60..120).contains(&(span.from_ns - BEGIN).div_euclid(MINUTE)) {
                continue;
            }
            let name = format!("sd{device}");
            let increment = DeviceIncrement {
                identity: &name,
                name: &name,
                profile,
                senders: None,
            };
            writer.add(*span, &increment).expect("room");
        }
    }
    writer.checkpoint(BEGIN + DAY).expect("a checkpoint");
    drop(writer);
    let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
    let numbers: Vec<u32> = reader
        .series()
        .expect("series")
        .iter()
        .map(|one| one.number)
        .collect();
    assert_eq!(numbers.len(), 3);
    let part = Span {
        from_ns: BEGIN + 50 * MINUTE + 1,
        to_ns: BEGIN + 130 * MINUTE,
    };
    let nothing = Span {
        from_ns: 5,
        to_ns: 5,
    };
    for tier in Tier::ALL {
        for (span, is_empty) in [(EVER, false), (part, false), (nothing, true)] {
            let all = reader.glance(tier, span, None).expect("rows");
            assert_eq!(all.is_empty(), is_empty, "{tier:?}");
            for number in &numbers {
                let mut expected = all.clone();
                expected.retain(|row| row.series == *number);
                let found = reader.glance(tier, span, Some(*number)).expect("rows");
                assert_eq!(found, expected, "{tier:?} {span:?}");
            }
        }
    }
    let five = |number| {
        reader
            .glance(Tier::FiveMinutes, EVER, Some(number))
            .expect("rows")
            .len()
    };
    assert_eq!(
        numbers
            .iter()
            .map(|number| five(*number))
            .collect::<Vec<_>>(),
        [36, 24, 36]
    );
}
