//! Files that are cut, damaged, foreign or newer.

use std::fs;
use std::path::Path;

use plumb_history::{HistoryError, Notice, Reader, Settings, Tier, Writer};
use plumb_testkit::{Rng, temp_dir};
use rusqlite::Connection;

use crate::support::{BEGIN, DAY, EVER, Load, add, exact, feed, ios_of_tier};

fn filled(folder: &Path) -> u64 {
    let load = Load::new(11, BEGIN, 100, 30, 64);
    let mut writer = Writer::open(folder, Settings::default()).expect("a store");
    feed(&mut writer, &load);
    writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
    load.whole().ios()
}

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
            HistoryError::Newer { found, newest, .. } => newer && (*found, *newest) == (99, 2),
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
