//! Facts about the host over time: only another value is stored, and the last one of each fact is kept.

use plumb_history::{FindingKey, FindingStep, HostFactRow, Reader, Settings, Writer};
use plumb_testkit::temp_dir;

use crate::support::{BEGIN, MINUTE};

fn row(minutes: i64, name: &str, value: Option<&str>) -> HostFactRow {
    HostFactRow {
        at_ns: BEGIN + minutes * MINUTE,
        name: name.to_owned(),
        value: value.map(str::to_owned),
    }
}

fn stored(folder: &std::path::Path) -> Vec<HostFactRow> {
    let reader = Reader::open(folder, &Settings::default()).expect("a store");
    reader.host_facts().expect("a sound file")
}

#[test]
fn only_other_values_are_stored() {
    let folder = temp_dir("host");
    let mut writer = Writer::open(folder.path(), Settings::default()).expect("a store");
    writer.note_host(row(1, "kernel", Some("6.1")));
    writer.note_host(row(1, "mount /data", Some("ext4")));
    // A thing that is gone, and was never there.
    writer.note_host(row(1, "mount /srv", None));
    assert_eq!(stored(folder.path()), []);
    writer.checkpoint(BEGIN + 2 * MINUTE).expect("a checkpoint");
    writer.note_host(row(3, "kernel", Some("6.1")));
    writer.checkpoint(BEGIN + 4 * MINUTE).expect("a checkpoint");
    drop(writer);
    let mut writer = Writer::open(folder.path(), Settings::default()).expect("the store");
    writer.note_host(row(5, "kernel", Some("6.12")));
    writer.note_host(row(5, "mount /data", None));
    writer.note_host(row(6, "mount /data", None));
    writer.note_host(row(7, "mount /data", Some("xfs")));
    writer.checkpoint(BEGIN + 8 * MINUTE).expect("a checkpoint");
    assert_eq!(
        stored(folder.path()),
        [
            row(1, "kernel", Some("6.1")),
            row(1, "mount /data", Some("ext4")),
            row(5, "kernel", Some("6.12")),
            row(5, "mount /data", None),
            row(7, "mount /data", Some("xfs")),
        ]
    );
    let mut present = writer.present_host_facts().expect("a sound file");
    present.sort_unstable();
    assert_eq!(present, ["kernel", "mount /data"]);
}

/// A mount that comes and goes does not fill the store, and does not push out the kernel.
#[test]
fn many_values_push_out_old_ones_and_no_last_one() {
    let folder = temp_dir("host-many");
    let mut writer = Writer::open(folder.path(), Settings::default()).expect("a store");
    writer.note_host(row(0, "kernel", Some("6.1")));
    for round in 0..5 {
        for at in 0..5_000 {
            let value = format!("{}", round * 5_000 + at);
            writer.note_host(row(at, "mount /run/x", Some(&value)));
        }
        writer.checkpoint(BEGIN + round).expect("a checkpoint");
    }
    let rows = stored(folder.path());
    assert_eq!(rows.len(), 20_001);
    assert_eq!(rows[0], row(0, "kernel", Some("6.1")));
    assert_eq!(rows[20_000].value.as_deref(), Some("24999"));
    // Things that are gone leave nothing behind in the end.
    for at in 0..15_000 {
        writer.note_host(row(at, &format!("mount /run/{at}"), Some("tmpfs")));
        writer.note_host(row(at, &format!("mount /run/{at}"), None));
        if at % 4_000 == 0 {
            writer.checkpoint(BEGIN).expect("a checkpoint");
        }
    }
    writer.checkpoint(BEGIN).expect("a checkpoint");
    let rows = stored(folder.path());
    // The kernel and the first mount are still there.
    assert_eq!(rows.len(), 20_002);
    assert_eq!(rows[0], row(0, "kernel", Some("6.1")));
}

/// A reader accepts a file of version 1, and the next writer converts it to the newest; nothing else changes in it.
#[test]
fn files_of_version_1_are_converted() {
    let folder = temp_dir("host-version");
    drop(Writer::open(folder.path(), Settings::default()).expect("a store"));
    let file = folder.path().join("history.db");
    let connection = rusqlite::Connection::open(&file).expect("a file of SQLite");
    connection
        .execute_batch(
            "DROP TABLE host_fact; PRAGMA user_version = 1; DELETE FROM meta WHERE name = 'sums_from_ns';
             ALTER TABLE open DROP COLUMN sum;
             ALTER TABLE glance_1h DROP COLUMN sum; ALTER TABLE histograms_1h DROP COLUMN sum;
             ALTER TABLE glance_1d DROP COLUMN sum; ALTER TABLE histograms_1d DROP COLUMN sum;",
        )
        .expect("they are there");
    let tables = || -> i64 {
        connection
            .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
            .expect("a count")
    };
    let before = tables();
    assert_eq!(stored(folder.path()), []);
    let mut writer = Writer::open(folder.path(), Settings::default()).expect("the store");
    writer.note_host(row(1, "kernel", Some("6.1")));
    writer.checkpoint(BEGIN + MINUTE).expect("a checkpoint");
    assert_eq!(stored(folder.path()), [row(1, "kernel", Some("6.1"))]);
    // The table and its index.
    assert_eq!(tables(), before + 2);
}

/// A prune deletes values that were replaced before its time, findings that went before it, and no value that still held then.
#[test]
fn a_prune_keeps_values_of_its_time() {
    let folder = temp_dir("host-prune");
    let mut writer = Writer::open(folder.path(), Settings::default()).expect("a store");
    writer.note_host(row(1, "kernel", Some("6.1")));
    writer.note_host(row(2, "kernel", Some("6.6")));
    writer.note_host(row(9, "kernel", Some("6.12")));
    writer.note_host(row(1, "mount /data", Some("ext4")));
    writer.note_host(row(1, "mount /srv", Some("xfs")));
    writer.note_host(row(3, "mount /srv", None));
    for (place, from, to) in [("early", 1, 3), ("late", 1, 7)] {
        let key = || FindingKey {
            rule: "misaligned-io".to_owned(),
            place: place.to_owned(),
        };
        let found = FindingStep::Found {
            severity: "warning".to_owned(),
            facts: "{}".to_owned(),
        };
        writer.note_finding(BEGIN + from * MINUTE, key(), found);
        writer.note_finding(BEGIN + to * MINUTE, key(), FindingStep::Gone);
    }
    writer
        .checkpoint(BEGIN + 10 * MINUTE)
        .expect("a checkpoint");
    assert_eq!(writer.prune(BEGIN + 5 * MINUTE).expect("a sound store"), 0);
    let mut left = stored(folder.path());
    left.sort_by(|one, other| (&one.name, one.at_ns).cmp(&(&other.name, other.at_ns)));
    assert_eq!(
        left,
        [
            row(2, "kernel", Some("6.6")),
            row(9, "kernel", Some("6.12")),
            row(1, "mount /data", Some("ext4")),
        ]
    );
    let reader = Reader::open(folder.path(), &Settings::default()).expect("a store");
    let findings = reader.findings().expect("a sound file");
    let places: Vec<&str> = findings.iter().map(|one| one.key.place.as_str()).collect();
    assert_eq!(places, ["late"]);
}
