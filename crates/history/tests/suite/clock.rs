//! A clock that goes back or sleeps, and devices that change their names.

use std::collections::BTreeMap;

use plumb_history::{DeviceIncrement, HistoryError, Reader, Settings, Span, Tier, Writer};
use plumb_profile::table::Row;
use plumb_profile::{Profile, Table};
use plumb_testkit::faulty_vfs::FaultyVfs;
use plumb_testkit::temp_dir;
use plumb_trace::{Layer, Op};
use proptest::prelude::*;
use rusqlite::Connection;

use crate::support::{
    BEGIN, DAY, EVER, HOUR, IDENTITY, Load, MINUTE, SECOND, add, exact, feed, ios, is_sound, read,
};

#[test]
fn a_clock_that_goes_back_counts_nothing_twice() {
    for back in [MINUTE, 7 * MINUTE, 3 * HOUR, 2 * DAY] {
        let room = temp_dir("clock");
        let first = Load::new(1, BEGIN + 5 * DAY, 90, 10, 32);
        let second = Load::new(2, BEGIN + 5 * DAY + 90 * MINUTE - back, 90, 10, 32);
        let mut writer = Writer::open(room.path(), exact()).expect("a store");
        feed(&mut writer, &first);
        feed(&mut writer, &second);
        let mut whole = first.whole();
        whole.merge(&second.whole());
        // Closed, and read by each tier.
        writer.checkpoint(BEGIN + 9 * DAY).expect("a checkpoint");
        let found = read(room.path(), EVER).expect("windows");
        assert_eq!(found.profile.ops, whole.ops, "{back}");
        assert_eq!(
            found
                .profile
                .places
                .table
                .iter()
                .map(|(_, row)| row.ios)
                .sum::<u64>(),
            whole.ios(),
            "{back}"
        );
        for tier in Tier::ALL {
            let reader = Reader::open(room.path(), &exact()).expect("a store");
            let rows = reader.glance(tier, EVER, None).expect("rows");
            let sum: u64 = rows.iter().map(|row| row.glance.ios).sum();
            assert_eq!(sum, whole.ios(), "{back} {tier:?}");
        }
    }
}

/// The store knows how far it is also if no disk had an I/O.
#[test]
fn time_without_io_is_stored() {
    let room = temp_dir("quiet");
    let mut writer = Writer::open(room.path(), exact()).expect("a store");
    let load = Load::new(4, BEGIN, 3, 10, 32);
    feed(&mut writer, &load);
    writer.end_reading(BEGIN + HOUR);
    writer.checkpoint(BEGIN + HOUR).expect("a checkpoint");
    drop(writer);
    let reader = Reader::open(room.path(), &exact()).expect("a store");
    assert_eq!(reader.upto_ns().expect("a sound file"), BEGIN + HOUR);
}

/// A disk ends I/O in another window than the one that counted them.
#[test]
fn latencies_of_an_earlier_window_are_stored() {
    let room = temp_dir("late");
    let minute = |number: i64| Span {
        from_ns: BEGIN + number * MINUTE,
        to_ns: BEGIN + (number + 1) * MINUTE,
    };
    let part = |ios: u64, timed: u64| {
        let table = Table::default();
        let mut profile = Profile::new("sda", Layer::Request, table);
        let row = Row {
            ios,
            timed,
            ns_sum: u128::from(timed) * 1_000,
            ns_squared_sum: u128::from(timed) * 1_000_000,
            regions: 1,
        };
        profile.add_residue(Op::Read, 0, 4096, false, &row);
        profile
    };
    let mut writer = Writer::open(room.path(), exact()).expect("a store");
    add(&mut writer, minute(4), &part(7, 4));
    add(&mut writer, minute(5), &part(0, 3));
    writer.checkpoint(minute(5).to_ns).expect("a checkpoint");
    drop(writer);
    let sums = |span: Span| {
        let found = read(room.path(), span).expect("windows");
        let sum = |of: fn(&Row) -> u64| {
            let rows = found.profile.places.table.iter();
            rows.map(|(_, row)| of(&row)).sum::<u64>()
        };
        (sum(|row| row.ios), sum(|row| row.timed), found.damaged)
    };
    assert_eq!(sums(EVER), (7, 7, 0));
    // Open windows, after a kill, and closed ones.
    let mut writer = Writer::open(room.path(), exact()).expect("a store");
    assert_eq!(writer.take_notices(), []);
    assert_eq!(sums(EVER), (7, 7, 0));
    add(&mut writer, minute(3 * 1440), &part(1, 1));
    writer
        .checkpoint(minute(3 * 1440).to_ns)
        .expect("a checkpoint");
    let earlier = Span {
        from_ns: minute(5).from_ns,
        to_ns: minute(10).from_ns,
    };
    assert_eq!(sums(earlier), (0, 3, 0));
    assert_eq!(sums(EVER), (8, 8, 0));
    assert!(is_sound(room.path()));
}

#[test]
fn a_window_is_opened_again_after_a_restart() {
    let room = temp_dir("again");
    let mut expected = 0;
    for seed in 0..5 {
        let load = Load::new(seed, BEGIN + 3 * MINUTE, 4, 10, 32);
        expected += load.whole().ios();
        let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
        feed(&mut writer, &load);
        writer.checkpoint(BEGIN + DAY).expect("a checkpoint");
    }
    assert_eq!(ios(room.path()), expected);
}

#[test]
fn a_device_keeps_its_history_under_another_name() {
    let room = temp_dir("names");
    let load = Load::new(4, BEGIN, 20, 10, 32);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    feed(&mut writer, &load);
    let later = Load::new(5, BEGIN + DAY, 20, 10, 32);
    for (span, profile) in &later.increments {
        let increment = DeviceIncrement {
            identity: IDENTITY,
            name: "sdb",
            profile,
            senders: None,
        };
        writer.add(*span, &increment).expect("an increment");
    }
    writer.checkpoint(BEGIN + DAY + HOUR).expect("a checkpoint");
    let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
    let series = reader.series().expect("devices");
    assert_eq!(series.len(), 1);
    let names: Vec<&str> = series[0]
        .names
        .iter()
        .map(|(_, name)| name.as_str())
        .collect();
    assert_eq!(names, ["sda", "sdb"]);
    assert_eq!(ios(room.path()), load.whole().ios() + later.whole().ios());
}

/// Adds the first increment of a load at a time under a name.
fn add_named(writer: &mut Writer, load: &Load, at_ns: i64, identity: &str, name: &str) {
    let increment = DeviceIncrement {
        identity,
        name,
        profile: &load.increments[0].1,
        senders: None,
    };
    let span = Span {
        from_ns: at_ns,
        to_ns: at_ns + MINUTE,
    };
    writer.add(span, &increment).expect("an increment");
}

#[test]
fn the_names_of_a_device_are_bounded() {
    let room = temp_dir("many-names");
    let load = Load::new(5, BEGIN, 1, 10, 32);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    for number in 0..200 {
        let name = format!("sd{number}");
        add_named(&mut writer, &load, BEGIN + number * MINUTE, IDENTITY, &name);
        if number % 50 == 0 {
            writer.checkpoint(BEGIN + number * MINUTE).expect("room");
        }
    }
    writer.checkpoint(BEGIN + DAY).expect("a checkpoint");
    let expected: Vec<String> = (136..200).map(|number| format!("sd{number}")).collect();
    for file in ["recent.db", "history.db"] {
        let connection = Connection::open(room.path().join(file)).expect("a database");
        let mut statement = connection
            .prepare("SELECT name FROM name ORDER BY from_ns")
            .expect("its table");
        let names = statement.query_map([], |row| row.get(0)).expect("names");
        let names: Vec<String> = names.map(|name| name.expect("text")).collect();
        assert_eq!(names, expected, "{file}");
    }
}

#[test]
fn names_are_written_once() {
    let room = temp_dir("written-names");
    let load = Load::new(5, BEGIN, 1, 10, 32);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    add_named(&mut writer, &load, BEGIN, "one", "sda");
    writer.checkpoint(BEGIN + MINUTE).expect("a checkpoint");
    // A name that is written again would replace the mark.
    let change = |sql: &str| {
        for file in ["recent.db", "history.db"] {
            let connection = Connection::open(room.path().join(file)).expect("a database");
            assert_eq!(connection.execute(sql, []).expect("a change"), 1, "{file}");
        }
    };
    change("UPDATE name SET name = 'mark'");
    add_named(&mut writer, &load, BEGIN + MINUTE, "one", "sdb");
    add_named(&mut writer, &load, BEGIN + MINUTE, "other", "sda");
    writer.checkpoint(BEGIN + 2 * MINUTE).expect("a checkpoint");
    drop(writer);
    // Nor does a restart write them.
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    add_named(&mut writer, &load, BEGIN + 2 * MINUTE, "other", "sdc");
    writer.checkpoint(BEGIN + 3 * MINUTE).expect("a checkpoint");
    let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
    let series = reader.series().expect("devices");
    let names = |at: usize| -> Vec<&str> {
        let names = series[at].names.iter();
        names.map(|(_, name)| name.as_str()).collect()
    };
    assert_eq!(
        (names(0), names(1)),
        (vec!["mark", "sdb"], vec!["sda", "sdc"])
    );
    change("DELETE FROM name WHERE name = 'mark'");
}

#[test]
fn the_second_writer_is_refused() {
    let room = temp_dir("two");
    let first = Writer::open(room.path(), Settings::default()).expect("a store");
    let second = Writer::open(room.path(), Settings::default());
    assert!(matches!(second, Err(HistoryError::InUse { .. })));
    drop(first);
    Writer::open(room.path(), Settings::default()).expect("the folder is free");
}

#[test]
fn a_saved_profile_goes_to_the_windows_that_contain_it() {
    let room = temp_dir("import");
    let load = Load::new(6, BEGIN + 10 * MINUTE, 30, 10, 32);
    let whole = load.whole();
    let increment = DeviceIncrement {
        identity: IDENTITY,
        name: "sda",
        profile: &whole,
        senders: None,
    };
    let mut writer = Writer::open(room.path(), exact()).expect("a store");
    let span = |from, to| Span {
        from_ns: BEGIN + from * MINUTE,
        to_ns: BEGIN + to * MINUTE,
    };
    writer.import(span(10, 40), &increment).expect("room");
    let over_midnight = writer.import(span(23 * 60, 25 * 60), &increment);
    assert!(matches!(over_midnight, Err(HistoryError::TooLong { .. })));
    let next = Load::new(8, BEGIN + 50 * MINUTE, 5, 10, 32);
    for (span, profile) in &next.increments {
        add(&mut writer, *span, profile);
    }
    writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
    assert_eq!(ios(room.path()), whole.ios() + next.whole().ios());
}

/// Something that happens to a writer and its clock.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Some I/O in the ten seconds before the present time.
    Add(u64),
    /// The clock goes on, is set forward, or is set back.
    Clock(i64),
    Checkpoint,
    /// The writer ends without a checkpoint, and another one begins.
    Kill,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let steps = prop_oneof![
        4 => Just(10 * SECOND),
        2 => 0..10 * MINUTE,
        2 => -10 * MINUTE..0,
        2 => prop::sample::select(vec![-HOUR, HOUR, -DAY, DAY, 1 - 5 * MINUTE, 5 * MINUTE - 1]),
        1 => -40 * DAY..40 * DAY,
    ];
    let event = prop_oneof![
        6 => (1..20u64).prop_map(Event::Add),
        5 => steps.prop_map(Event::Clock),
        3 => Just(Event::Checkpoint),
        1 => Just(Event::Kill),
    ];
    prop::collection::vec(event, 1..40)
}

/// I/O of windows by tier and number.
type Model = BTreeMap<(Tier, i64), u64>;

/// The width of a window of each tier.
const WIDTHS: [(Tier, i64); 3] = [
    (Tier::FiveMinutes, 5 * MINUTE),
    (Tier::Hour, HOUR),
    (Tier::Day, DAY),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each I/O is in one window of each tier, that of its time, for any steps of the clock; a kill loses those since the last checkpoint.
    #[test]
    fn any_clock_counts_each_io_once(events in events()) {
        let room = temp_dir("any-clock");
        // Its syncs do nothing, which saves time.
        let vfs = FaultyVfs::register(&room.path().display().to_string());
        let settings = || {
            let mut settings = Settings { vfs: Some(vfs.name()), ..exact() };
            // A clock that is years ahead deletes no window here.
            settings.tiers.iter_mut().for_each(|tier| tier.keep_ns = i64::MAX);
            settings
        };
        let open = || Writer::open(room.path(), settings()).expect("a store");
        let mut writer = open();
        let (mut taken, mut stored) = (Model::new(), Model::new());
        let mut now_ns = BEGIN;
        for event in events {
            match event {
                Event::Add(ios) => {
                    let mut profile = Profile::new("sda", Layer::Request, Table::default());
                    let row = plumb_profile::table::Row { ios, ..Default::default() };
                    profile.add_residue(plumb_trace::Op::Read, 512, 4096, false, &row);
                    let span = Span { from_ns: now_ns - 10 * SECOND, to_ns: now_ns };
                    add(&mut writer, span, &profile);
                    for (tier, width) in WIDTHS {
                        *taken.entry((tier, span.from_ns.max(0) / width)).or_default() += ios;
                    }
                }
                Event::Clock(step) => now_ns += step,
                Event::Checkpoint => {
                    writer.checkpoint(now_ns).expect("a checkpoint");
                    stored.clone_from(&taken);
                }
                Event::Kill => {
                    drop(writer);
                    writer = open();
                    taken.clone_from(&stored);
                }
            }
        }
        let now = || -> u64 {
            let of_fine = taken.iter().filter(|((tier, _), _)| *tier == Tier::FiveMinutes);
            of_fine.map(|(_, ios)| ios).sum()
        };
        writer.checkpoint(now_ns).expect("a checkpoint");
        prop_assert_eq!(ios(room.path()), now());
        writer.checkpoint(BEGIN + 40_000 * DAY).expect("a checkpoint");
        drop(writer);
        prop_assert_eq!(ios(room.path()), now());
        let reader = Reader::open(room.path(), &settings()).expect("a store");
        let mut found = Model::new();
        for (tier, width) in WIDTHS {
            for row in reader.glance(tier, EVER, None).expect("sound files") {
                let span = row.window.span();
                prop_assert_eq!(span.from_ns, row.window.number * width);
                prop_assert_eq!(span.to_ns - span.from_ns, width);
                let before = found.insert((tier, row.window.number), row.glance.ios);
                prop_assert_eq!(before, None, "two rows of one window");
            }
        }
        prop_assert_eq!(found, taken);
        prop_assert!(is_sound(room.path()));
    }
}
