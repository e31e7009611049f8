//! Files that are cut, damaged, foreign or newer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plumb_history::{
    FileState, Glance, HistoryError, Notice, Reader, Settings, Span, Tier, Window, Writer,
};
use plumb_profile::Profile;
use plumb_testkit::{Rng, temp_dir};
use rusqlite::Connection;

use crate::support::{BEGIN, DAY, EVER, HOUR, Load, add, exact, feed, ios_of_tier, plain};

fn filled(folder: &Path) -> u64 {
    let load = Load::new(11, BEGIN, 100, 30, 64);
    let mut writer = Writer::open(folder, Settings::default()).expect("a store");
    feed(&mut writer, &load);
    writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
    load.whole().ios()
}

/// The day of the I/O in [`filled`], and that before and behind it.
const LOADED: Span = Span {
    from_ns: BEGIN - DAY,
    to_ns: BEGIN + 2 * DAY,
};

fn copy(from: &Path, to: &Path) {
    for name in ["recent.db", "history.db"] {
        fs::copy(from.join(name), to.join(name)).expect("a copy");
    }
}

/// Reads and writes all that can be; nothing may panic, and the writer must end with a store that takes new I/O.
fn use_it(folder: &Path) -> Vec<Notice> {
    if let Ok(reader) = Reader::open(folder, &Settings::default()) {
        for series in reader.series().unwrap_or_default() {
            let _ = reader.profile(&series, EVER);
        }
        let _ = reader.verify();
        let _ = reader.estimate(&Settings::default());
    }
    let Ok(mut writer) = Writer::open(folder, exact()) else {
        return Vec::new();
    };
    let load = Load::new(12, BEGIN + 3 * DAY, 3, 30, 64);
    for (span, profile) in &load.increments {
        add(&mut writer, *span, profile);
    }
    writer
        .checkpoint(BEGIN + 3 * DAY)
        .expect("damage ends no writer");
    writer.take_notices()
}

#[test]
fn a_cut_file_is_set_aside_and_the_other_is_whole() {
    let whole = temp_dir("whole");
    let expected = filled(whole.path());
    let mut rng = Rng::new(31);
    for (name, tier) in [("recent.db", Tier::Hour), ("history.db", Tier::FiveMinutes)] {
        for _ in 0..6 {
            let room = temp_dir("cut");
            copy(whole.path(), room.path());
            let file = fs::File::options()
                .write(true)
                .open(room.path().join(name))
                .expect("its file");
            let len = file.metadata().expect("its length").len();
            file.set_len(1 + rng.below(len / 2))
                .expect("a shorter file");
            drop(file);
            use_it(room.path());
            assert!(ios_of_tier(room.path(), tier) >= expected, "{name}");
        }
    }
}

/// All figures of a store, by the place to which a reader assigns them.
#[derive(Default)]
struct Figures {
    totals: BTreeMap<(Tier, i64, u32), Glance>,
    /// I/O of single windows, as far as no record of them is damaged; and of all time.
    profiles: BTreeMap<(i64, i64, u32), Profile>,
}

/// The spans of all windows of the written store.
fn spans_of(written: &Figures) -> BTreeSet<(i64, i64)> {
    written
        .profiles
        .keys()
        .map(|(from, to, _)| (*from, *to))
        .collect()
}

/// Reads all figures; the profiles of these spans, or of all windows. `None` if the store names a fault.
fn figures(folder: &Path, spans: Option<&BTreeSet<(i64, i64)>>) -> Option<Figures> {
    let reader = Reader::open(folder, &Settings::default()).ok()?;
    let mut found = Figures::default();
    for tier in Tier::ALL {
        for row in reader.glance(tier, LOADED, None).ok()? {
            let place = (tier, row.window.number, row.series);
            found.totals.insert(place, row.glance);
        }
    }
    let windows = found.totals.keys().map(|(tier, number, _)| {
        let span = Window {
            tier: *tier,
            number: *number,
        }
        .span();
        (span.from_ns, span.to_ns)
    });
    let open = Tier::ALL.map(|tier| {
        let span = Window::at(tier, BEGIN + 2 * DAY).span();
        (span.from_ns, span.to_ns)
    });
    let spans = spans
        .cloned()
        .unwrap_or_else(|| windows.chain(open).collect());
    for series in reader.series().ok()? {
        for (from_ns, to_ns) in &spans {
            let span = Span {
                from_ns: *from_ns,
                to_ns: *to_ns,
            };
            // A damaged record is counted, and so is one that is not there.
            if let Some(read) = reader.profile(&series, span).ok()?
                && read.damaged == 0
                && read.span == span
            {
                found
                    .profiles
                    .insert((*from_ns, *to_ns, series.number), plain(read.profile));
            }
        }
    }
    Some(found)
}

/// A flipped bit is found, or every figure that is read is the written one: in the totals, and in each window by itself, also in
/// those that are not over.
#[test]
fn a_flipped_bit_gives_no_other_figure() {
    let whole = temp_dir("figures");
    filled(whole.path());
    // The windows of these I/O are not over.
    let mut writer = Writer::open(whole.path(), Settings::default()).expect("a store");
    for (span, profile) in &Load::new(13, BEGIN + 2 * DAY, 3, 30, 64).increments {
        add(&mut writer, *span, profile);
        writer.checkpoint(span.to_ns).expect("a checkpoint");
    }
    drop(writer);
    let written = figures(whole.path(), None).expect("a sound store");
    let spans = spans_of(&written);
    assert!(written.totals.len() > 20 && written.profiles.len() == written.totals.len() + 1);
    let (mut found, mut equal) = (0, 0);
    let mut rng = Rng::announced("flipped bits", 33);
    for round in 0..300 {
        let room = temp_dir("one-bit");
        copy(whole.path(), room.path());
        let path = room.path().join(["recent.db", "history.db"][round % 2]);
        let mut bytes = fs::read(&path).expect("its file");
        // Most bytes of a page are free, and a flipped one of them is no damage: those that are not zero are met more often.
        let mut at = rng.below(bytes.len() as u64) as usize;
        while round % 8 != 0 && bytes[at] == 0 {
            at = rng.below(bytes.len() as u64) as usize;
        }
        let bit = rng.below(8);
        bytes[at] ^= 1 << bit;
        fs::write(&path, bytes).expect("its file");
        let place = format!("bit {bit} of byte {at} of {}", path.display());
        match figures(room.path(), Some(&spans)) {
            None => found += 1,
            Some(read) => {
                let is_sound = || {
                    let reader =
                        Reader::open(room.path(), &Settings::default()).expect("it opened");
                    reader
                        .verify()
                        .is_ok_and(|state| state.files.iter().all(|file| file.is_sound()))
                };
                let is_whole = compare(&read, &written, &place);
                assert!(
                    is_whole || !is_sound(),
                    "a figure is gone, and no check says so: {place}"
                );
                *if is_whole { &mut equal } else { &mut found } += 1;
            }
        }
    }
    eprintln!("{found} flipped bits were found, {equal} changed no figure");
    assert!(found > 20 && equal > 20, "{found} {equal}");
}

/// Fails if a figure is another one, and returns whether all are there.
fn compare(read: &Figures, written: &Figures, place: &str) -> bool {
    for (key, glance) in &read.totals {
        let mut expected = *written
            .totals
            .get(key)
            .unwrap_or_else(|| panic!("{key:?}: {place}"));
        // Totals that are made from the histograms may not know it.
        if glance.off_4k.is_none() {
            expected.off_4k = None;
        }
        assert_eq!(*glance, expected, "{key:?}: {place}");
    }
    for (key, profile) in &read.profiles {
        let expected = written
            .profiles
            .get(key)
            .unwrap_or_else(|| panic!("{key:?}: {place}"));
        let mut expected = expected.clone();
        // Names are no figures.
        expected.device.clone_from(&profile.device);
        assert_eq!(*profile, expected, "{key:?}: {place}");
    }
    read.totals.len() == written.totals.len() && read.profiles.len() == written.profiles.len()
}

#[test]
fn flipped_bits_end_nothing() {
    let whole = temp_dir("sound");
    filled(whole.path());
    let mut rng = Rng::new(32);
    for _ in 0..40 {
        let room = temp_dir("flipped");
        copy(whole.path(), room.path());
        for name in ["recent.db", "history.db"] {
            let path = room.path().join(name);
            let mut bytes = fs::read(&path).expect("its file");
            for _ in 0..1 + rng.below(8) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
            // The first page decides about everything, so it is damaged more often than its share.
            if rng.percent(30) {
                bytes[rng.below(200) as usize] ^= 1 << rng.below(8);
            }
            fs::write(&path, bytes).expect("its file");
        }
        use_it(room.path());
    }
}

fn change(folder: &Path, name: &str, sql: &str) {
    let connection = Connection::open(folder.join(name)).expect("a database");
    connection.execute_batch(sql).expect(sql);
}

fn hours(folder: &Path) -> Result<Vec<Glance>, HistoryError> {
    let reader = Reader::open(folder, &Settings::default()).expect("a store");
    let rows = reader.glance(Tier::Hour, EVER, None)?;
    Ok(rows.into_iter().map(|row| row.glance).collect())
}

fn damage(folder: &Path) -> (u64, u64) {
    let reader = Reader::open(folder, &Settings::default()).expect("a store");
    let files = reader.verify().expect("readable files").files;
    let count = |of: fn(&FileState) -> u64| files.iter().map(of).sum();
    (count(|file| file.damaged), count(|file| file.differing))
}

/// Damaged totals come from the histograms of their window. Without sound histograms the error names the window.
#[test]
fn damaged_totals_are_made_from_histograms() {
    let room = temp_dir("totals");
    filled(room.path());
    let read = || {
        let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
        reader.glance(Tier::FiveMinutes, EVER, None)
    };
    let written = read().expect("sound totals");
    assert_eq!((written.len(), damage(room.path())), (20, (0, 0)));
    let window = written[7].window;
    let id = window.number * 4096;
    let change = |sql: &str| change(room.path(), "recent.db", &format!("{sql} WHERE id = {id}"));
    change("UPDATE glance_5m SET off_4k = off_4k + 1, p99_ns = 7");
    assert_eq!(read().expect("totals"), written);
    assert_eq!(damage(room.path()), (0, 1));
    change("UPDATE glance_5m SET ios = 'many'");
    assert_eq!(read().expect("totals"), written);
    change("UPDATE histograms_5m SET id = id + 1");
    let error = read().expect_err("no totals");
    assert!(
        matches!(&error, HistoryError::DamagedTotals { series: 0, window: found, .. } if *found == window),
        "{error}"
    );
    // The window itself, and the histograms without a window.
    assert_eq!(damage(room.path()), (2, 0));
}

/// A window that a flipped bit moved millions of years away makes no question long: the history ends with its last sound record.
#[test]
fn a_window_of_another_time_is_no_end_of_the_history() {
    let room = temp_dir("far");
    let ios = filled(room.path());
    let sound = |folder: &Path| {
        let reader = Reader::open(folder, &Settings::default()).expect("a store");
        let series = reader.series().expect("devices").remove(0);
        let rows = reader
            .glance(Tier::FiveMinutes, EVER, Some(0))
            .expect("rows");
        (
            series.span,
            rows.len(),
            reader
                .profile(&series, EVER)
                .expect("files")
                .map(|found| found.profile.ios()),
        )
    };
    let (span, rows, _) = sound(room.path());
    for tier in ["1h", "1d"] {
        let sql = format!(
            "UPDATE glance_{tier} SET id = id + (1 << 41) WHERE id = (SELECT max(id) FROM glance_{tier})"
        );
        change(room.path(), "history.db", &sql);
    }
    change(
        room.path(),
        "recent.db",
        "UPDATE glance_5m SET id = id + (1 << 41) WHERE id = (SELECT max(id) FROM glance_5m)",
    );
    let (found, of_rows, of_ios) = sound(room.path());
    assert_eq!(of_rows, rows - 1);
    let (found, span) = (found.expect("a span"), span.expect("a span"));
    assert!(
        found.from_ns >= span.from_ns && found.to_ns <= span.to_ns,
        "{found:?}"
    );
    // The 5 minutes have no place for those whose rows are elsewhere.
    assert!(of_ios.expect("I/O") < ios);
    assert_ne!(damage(room.path()), (0, 0));
}

/// A file without checksums is read, and converted by the next writer: records that it has are read without them, later ones are not.
#[test]
fn files_of_version_2_keep_their_records() {
    let room = temp_dir("version-2");
    filled(room.path());
    let written = hours(room.path()).expect("sound totals");
    for (name, tiers) in [("recent.db", &["5m"][..]), ("history.db", &["1h", "1d"])] {
        for tier in tiers {
            change(
                room.path(),
                name,
                &format!(
                    "ALTER TABLE glance_{tier} DROP COLUMN sum; ALTER TABLE histograms_{tier} DROP COLUMN sum"
                ),
            );
        }
        change(
            room.path(),
            name,
            "DELETE FROM meta WHERE name = 'sums_from_ns'; PRAGMA user_version = 2",
        );
    }
    change(
        room.path(),
        "history.db",
        "ALTER TABLE open DROP COLUMN sum",
    );
    assert_eq!(hours(room.path()).expect("totals"), written);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    assert_eq!(hours(room.path()).expect("totals"), written);
    for (span, profile) in &Load::new(14, BEGIN + 5 * HOUR, 40, 30, 64).increments {
        add(&mut writer, *span, profile);
    }
    writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
    drop(writer);
    assert_eq!(hours(room.path()).expect("totals").len(), 3);
    assert_eq!(damage(room.path()), (0, 0));
    // The record of the new window lacks its checksum now.
    change(
        room.path(),
        "history.db",
        "UPDATE glance_1h SET sum = NULL, ios = 3",
    );
    let mut expected = hours(room.path()).expect("totals");
    assert_ne!(expected.pop().expect("three").ios, 3);
    assert_eq!(
        expected.iter().map(|glance| glance.ios).collect::<Vec<_>>(),
        [3, 3]
    );
}

#[test]
fn no_database_at_all_is_set_aside() {
    let room = temp_dir("garbage");
    fs::write(room.path().join("history.db"), vec![0x55; 20_000]).expect("a file");
    let notices = use_it(room.path());
    let aside = room.path().join("history.db.damaged-1");
    assert_eq!(
        notices,
        [Notice::SetAside {
            aside: aside.clone()
        }]
    );
    assert_eq!(fs::read(aside).expect("kept").len(), 20_000);
}

#[test]
fn newer_and_foreign_files_are_refused_and_not_changed() {
    for (sql, newer) in [
        ("PRAGMA user_version = 99", true),
        ("PRAGMA application_id = 7", false),
    ] {
        let room = temp_dir("newer");
        filled(room.path());
        let path = room.path().join("history.db");
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch(sql).expect("another header");
        connection
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .expect("one file");
        drop(connection);
        let before = fs::read(&path).expect("its file");
        let as_expected = |error: &HistoryError| match error {
            HistoryError::Newer { found, newest, .. } => newer && (*found, *newest) == (99, 4),
            HistoryError::Foreign { found, .. } => !newer && *found == 7,
            _ => false,
        };
        let written = Writer::open(room.path(), Settings::default()).err();
        assert!(written.as_ref().is_some_and(as_expected), "{written:?}");
        let read = Reader::open(room.path(), &Settings::default()).err();
        assert!(read.as_ref().is_some_and(as_expected), "{read:?}");
        assert_eq!(fs::read(&path).expect("its file"), before);
    }
}

#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let room = temp_dir("mode");
    let _writer = Writer::open(room.path(), Settings::default()).expect("a store");
    for name in ["recent.db", "history.db", "history.db-wal"] {
        let found = fs::metadata(room.path().join(name)).expect("its file");
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
}
