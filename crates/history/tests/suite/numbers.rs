//! Numbers of devices: they are free again when all windows of a device are deleted.

use std::path::Path;

use plumb_history::{DeviceIncrement, HistoryError, Reader, Settings, Span, Writer};
use plumb_testkit::temp_dir;
use rusqlite::Connection;

use crate::support::{BEGIN, DAY, EVER, HOUR, Load, MINUTE};

/// Adds I/O of a device at a time.
fn add(writer: &mut Writer, load: &Load, identity: &str, at_ns: i64) -> Result<(), HistoryError> {
    let increment = DeviceIncrement {
        identity,
        name: identity,
        profile: &load.increments[0].1,
        senders: None,
    };
    let span = Span {
        from_ns: at_ns,
        to_ns: at_ns + MINUTE,
    };
    writer.add(span, &increment)
}

/// Numbers and identities of a store.
fn series(folder: &Path) -> Vec<(u32, String)> {
    let reader = Reader::open(folder, &Settings::default()).expect("a store");
    let series = reader.series().expect("devices").into_iter();
    series.map(|one| (one.number, one.identity)).collect()
}

fn short() -> Settings {
    let mut settings = Settings::default();
    for (tier, keep_ns) in settings.tiers.iter_mut().zip([HOUR, DAY, 2 * DAY]) {
        tier.keep_ns = keep_ns;
    }
    settings
}

#[test]
fn a_device_goes_with_its_last_window() {
    let room = temp_dir("numbers-aged");
    let load = Load::new(1, BEGIN, 1, 10, 32);
    let mut writer = Writer::open(room.path(), short()).expect("a store");
    for identity in ["gone", "pruned", "stays"] {
        let at_ns = if identity == "gone" {
            BEGIN
        } else {
            BEGIN + DAY
        };
        add(&mut writer, &load, identity, at_ns).expect("room");
    }
    let named = |list: &[(u32, &str)]| -> Vec<(u32, String)> {
        list.iter()
            .map(|(number, of)| (*number, (*of).to_owned()))
            .collect()
    };
    writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
    assert_eq!(
        series(room.path()),
        named(&[(0, "gone"), (1, "pruned"), (2, "stays")])
    );
    writer.checkpoint(BEGIN + 3 * DAY).expect("a checkpoint");
    assert_eq!(series(room.path()), named(&[(1, "pruned"), (2, "stays")]));
    add(&mut writer, &load, "stays", BEGIN + 3 * DAY).expect("room");
    writer.prune(BEGIN + 2 * DAY).expect("pruned");
    assert_eq!(series(room.path()), named(&[(2, "stays")]));
    // One that comes back is another device, and both files agree.
    add(&mut writer, &load, "gone", BEGIN + 3 * DAY).expect("room");
    writer
        .checkpoint(BEGIN + 3 * DAY + HOUR)
        .expect("a checkpoint");
    drop(writer);
    let mut writer = Writer::open(room.path(), short()).expect("a store");
    assert_eq!(writer.take_notices(), []);
    assert_eq!(series(room.path()), named(&[(2, "stays"), (3, "gone")]));
}

/// A reader that read one file before, and the other after, would take one device for another.
#[test]
fn the_last_number_is_not_used_again() {
    let room = temp_dir("numbers-last");
    let load = Load::new(1, BEGIN, 1, 10, 32);
    let mut writer = Writer::open(room.path(), short()).expect("a store");
    add(&mut writer, &load, "stays", BEGIN + DAY).expect("room");
    add(&mut writer, &load, "gone", BEGIN).expect("room");
    writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
    add(&mut writer, &load, "stays", BEGIN + 3 * DAY).expect("room");
    writer.checkpoint(BEGIN + 3 * DAY).expect("a checkpoint");
    assert_eq!(series(room.path()), [(0, "stays".to_owned())]);
    drop(writer);
    let mut writer = Writer::open(room.path(), short()).expect("a store");
    add(&mut writer, &load, "new", BEGIN + 3 * DAY).expect("room");
    writer
        .checkpoint(BEGIN + 3 * DAY + HOUR)
        .expect("a checkpoint");
    let expected = [(0, "stays".to_owned()), (2, "new".to_owned())];
    assert_eq!(series(room.path()), expected);
}

#[test]
fn a_refused_device_gets_a_number_that_is_free() {
    let room = temp_dir("numbers-full");
    let load = Load::new(1, BEGIN, 1, 10, 32);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    add(&mut writer, &load, "stored", BEGIN).expect("room");
    writer.checkpoint(BEGIN + DAY).expect("a checkpoint");
    drop(writer);
    for file in ["recent.db", "history.db"] {
        let connection = Connection::open(room.path().join(file)).expect("a database");
        connection
            .execute_batch(
                "WITH RECURSIVE more(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM more WHERE number < 4095)
                     INSERT INTO series SELECT number, 'old-' || number, (SELECT layer FROM series WHERE series = 0) FROM more;
                 INSERT INTO name SELECT series, 0, identity FROM series WHERE series > 0;",
            )
            .expect("devices without windows");
    }
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    add(&mut writer, &load, "old-4095", BEGIN + DAY).expect("a known device");
    let refused = add(&mut writer, &load, "new", BEGIN + DAY);
    assert!(
        matches!(refused, Err(HistoryError::TooManySeries { .. })),
        "{refused:?}"
    );
    writer
        .checkpoint(BEGIN + DAY + MINUTE)
        .expect("a checkpoint");
    add(&mut writer, &load, "new", BEGIN + DAY + MINUTE).expect("a free number");
    writer.checkpoint(BEGIN + 3 * DAY).expect("a checkpoint");
    let expected = [(0, "stored"), (1, "new"), (4095, "old-4095")];
    let expected = expected.map(|(number, identity)| (number, identity.to_owned()));
    assert_eq!(series(room.path()), expected);
    let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
    for one in reader.series().expect("devices") {
        let found = reader.profile(&one, EVER).expect("sound files");
        let ios = found.map(|found| found.profile.ios());
        assert_eq!(ios, Some(load.whole().ios()), "{}", one.identity);
    }
    for file in ["recent.db", "history.db"] {
        let connection = Connection::open(room.path().join(file)).expect("a database");
        let names: u32 = connection
            .query_row("SELECT count(*) FROM name", [], |row| row.get(0))
            .expect("names");
        assert_eq!(names, 3, "{file}");
    }
}

/// A question about one device needs no open window of another one.
#[test]
fn a_question_reads_the_open_windows_of_its_device_alone() {
    let room = temp_dir("numbers-open");
    let load = Load::new(1, BEGIN, 1, 10, 32);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    add(&mut writer, &load, "one", BEGIN).expect("room");
    add(&mut writer, &load, "other", BEGIN).expect("room");
    writer.checkpoint(BEGIN + MINUTE).expect("a checkpoint");
    drop(writer);
    let connection = Connection::open(room.path().join("history.db")).expect("a database");
    connection
        .execute("UPDATE open SET profile = 'no bytes' WHERE series = 1", [])
        .expect("a damaged window");
    let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
    let series = reader.series().expect("both devices");
    let found = reader.profile(&series[0], EVER).expect("a sound window");
    assert_eq!(found.expect("I/O").profile.ios(), load.whole().ios());
    assert!(reader.profile(&series[1], EVER).is_err());
    // Nor does a question about another time.
    let before = Span {
        from_ns: 0,
        to_ns: BEGIN,
    };
    assert!(
        reader
            .profile(&series[1], before)
            .expect("no window")
            .is_none()
    );
}
