//! A store of schema version 1 whose upgrade ends at any write: it opens afterwards with every row once.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_history::{FindingKey, FindingStep, HostFactRow, Reader, Settings, Writer};
use plumb_testkit::faulty_vfs::{Fault, FaultPlan, FaultyVfs};
use plumb_testkit::wait;
use plumb_testkit::{require, temp_dir};
use rusqlite::Connection;

use crate::support::{BEGIN, IDENTITY, Load, MINUTE, add, feed, ios, is_sound};

/// The columns of totals in version 1.
const TOTALS: &str = "ios, reads, writes, read_bytes, write_bytes, off_4k, timed, p50_ns, p99_ns,
    max_ns, to_4k, to_16k, to_64k, to_256k, longer";

/// The tables of both files in version 1, but for those of a tier.
const BOTH_FILES: &str = "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE series (
        series INTEGER PRIMARY KEY, identity TEXT NOT NULL, layer TEXT NOT NULL,
        UNIQUE (identity, layer));
    CREATE TABLE name (
        series INTEGER NOT NULL, from_ns INTEGER NOT NULL, name TEXT NOT NULL,
        PRIMARY KEY (series, from_ns)) WITHOUT ROWID;";

/// The tables that `history.db` has besides.
const HISTORY_FILE: &str = "CREATE TABLE open (
        tier TEXT NOT NULL, series INTEGER NOT NULL, number INTEGER NOT NULL,
        base BLOB, profile BLOB NOT NULL, senders BLOB NOT NULL,
        PRIMARY KEY (tier, series));
    CREATE TABLE finding (
        id INTEGER PRIMARY KEY, rule TEXT NOT NULL, target TEXT NOT NULL,
        severity TEXT NOT NULL, facts TEXT NOT NULL,
        appeared_ns INTEGER NOT NULL, changed_ns INTEGER NOT NULL, went_ns INTEGER);
    CREATE INDEX finding_now ON finding (rule, target) WHERE went_ns IS NULL;";

const FILES: [(&str, &[&str]); 2] = [("recent.db", &["5m"]), ("history.db", &["1h", "1d"])];

/// The fact that version 3 adds to `meta`; the columns `sum` are new in it too.
const SUMS_FROM: &str = "sums_from_ns";

/// The store and the call at which the child is held, which this test is again.
const FOLDER: &str = "PLUMB_HISTORY_UPGRADE";
const CALL: &str = "PLUMB_HISTORY_UPGRADE_CALL";

/// Makes a store of version 1 with windows of each tier, open ones, a finding and names, and returns its I/O.
fn version_1(folder: &Path, journal: &str) -> u64 {
    let room = temp_dir("upgrade-rows");
    let load = Load::new(21, BEGIN - 80 * MINUTE, 163, 10, 64);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    let key = FindingKey {
        rule: "misaligned-io".to_owned(),
        place: "sda".to_owned(),
    };
    let step = FindingStep::Found {
        severity: "warning".to_owned(),
        facts: "{}".to_owned(),
    };
    writer.note_finding(BEGIN, key, step);
    feed(&mut writer, &load);
    drop(writer);
    std::fs::create_dir_all(folder).expect("room");
    for (name, tiers) in FILES {
        let file = Connection::open(folder.join(name)).expect("a file");
        let begin = format!(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = {journal};
             PRAGMA application_id = {}; PRAGMA user_version = 1;",
            0x504c_4d42
        );
        file.execute_batch(&begin).expect("an empty file");
        file.execute_batch(BOTH_FILES).expect("tables");
        for tier in tiers {
            let tables = format!(
                "CREATE TABLE glance_{tier} (id INTEGER PRIMARY KEY, {TOTALS});
                 CREATE TABLE histograms_{tier} (id INTEGER PRIMARY KEY, profile BLOB, senders BLOB);
                 CREATE TABLE table_{tier} (id INTEGER PRIMARY KEY, residues BLOB);"
            );
            file.execute_batch(&tables).expect("tables");
        }
        if name == "history.db" {
            file.execute_batch(HISTORY_FILE).expect("tables");
        }
        let rows = room.path().join(name);
        file.execute("ATTACH ? AS rows", [rows.display().to_string()])
            .expect("the rows");
        for table in tables(&file) {
            let columns = columns(&file, &table).join(", ");
            let copy = format!("INSERT INTO main.{table} SELECT {columns} FROM rows.{table}");
            file.execute(&copy, []).expect("rows");
        }
        let of_sums = format!("DELETE FROM main.meta WHERE name = '{SUMS_FROM}'");
        file.execute(&of_sums, []).expect("a row of version 3");
    }
    assert!(rows(folder)["open"].len() >= 3, "open windows");
    load.whole().ios()
}

fn tables(connection: &Connection) -> Vec<String> {
    let sql = "SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut statement = connection.prepare(sql).expect("a file of SQLite");
    let names = statement.query_map([], |row| row.get(0)).expect("names");
    names.map(|name| name.expect("text")).collect()
}

/// The columns of a table in version 1.
fn columns(connection: &Connection, table: &str) -> Vec<String> {
    let sql = "SELECT name FROM pragma_table_info(?, 'main') WHERE name <> 'sum'";
    let mut statement = connection.prepare(sql).expect("a file of SQLite");
    let names = statement.query_map([table], |row| row.get(0));
    let names = names.expect("names").map(|name| name.expect("text"));
    names.collect()
}

/// All rows of a store by table, each as its values in version 1; the tables of the two files have names of their own but for three.
fn rows(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::<String, Vec<String>>::new();
    for (name, _) in FILES {
        let file = Connection::open(folder.join(name)).expect("a file");
        for table in tables(&file) {
            let mut statement = file
                .prepare(&format!(
                    "SELECT {} FROM {table}",
                    columns(&file, &table).join(", ")
                ))
                .expect("a table");
            let columns = statement.column_count();
            let mut found = statement.query([]).expect("rows");
            let list = all.entry(table).or_default();
            while let Some(row) = found.next().expect("a sound file") {
                let values = (0..columns).map(|at| format!("{:?}", row.get_ref(at)));
                list.push(values.collect::<Vec<_>>().join(" "));
            }
        }
    }
    all
}

/// Upgrades a store without a fault, and compares it with the one of version 1. Then it takes facts and I/O.
fn is_upgraded(folder: &Path, before: &BTreeMap<String, Vec<String>>, ios_before: u64) {
    let writer = Writer::open(folder, Settings::default()).expect("the upgraded store");
    drop(writer);
    let mut after = rows(folder);
    assert_eq!(after.remove("host_fact"), Some(Vec::new()));
    let meta = after.get_mut("meta").expect("a table");
    let since = meta.len();
    let name = format!("{:?}", SUMS_FROM.as_bytes());
    meta.retain(|row| !row.contains(&name));
    assert_eq!(since - meta.len(), FILES.len(), "one in each file");
    assert_eq!(after, *before);
    for (name, _) in FILES {
        let file = Connection::open(folder.join(name)).expect("a file");
        let version: i64 = file
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .expect("its header");
        assert_eq!(version, 4, "{name}");
    }
    assert_eq!(ios(folder), ios_before);
    let mut writer = Writer::open(folder, Settings::default()).expect("the store");
    let fact = HostFactRow {
        at_ns: BEGIN,
        name: "kernel".to_owned(),
        value: Some("6.1".to_owned()),
    };
    writer.note_host(fact.clone());
    let later = Load::new(22, BEGIN + 90 * MINUTE, 3, 10, 64);
    for (span, profile) in &later.increments {
        add(&mut writer, *span, profile);
    }
    writer
        .checkpoint(BEGIN + 95 * MINUTE)
        .expect("a checkpoint");
    drop(writer);
    assert_eq!(ios(folder), ios_before + later.whole().ios());
    let reader = Reader::open(folder, &Settings::default()).expect("a store");
    assert_eq!(reader.host_facts().expect("a sound file"), [fact]);
    assert_eq!(reader.series().expect("devices")[0].identity, IDENTITY);
    assert!(is_sound(folder));
}

fn copy(from: &Path, to: &Path) {
    for (name, _) in FILES {
        std::fs::copy(from.join(name), to.join(name)).expect("a copy");
    }
}

fn through(vfs: &FaultyVfs) -> Settings {
    Settings {
        vfs: Some(vfs.name()),
        ..Settings::default()
    }
}

/// All writes fail from each one of the upgrade on.
#[test]
fn an_upgrade_ends_at_any_write() {
    let vfs = FaultyVfs::register("upgrade");
    for journal in ["DELETE", "WAL"] {
        let old = temp_dir("upgrade-old");
        let expected = version_1(old.path(), journal);
        let before = rows(old.path());
        for fault in [Fault::Full, Fault::Torn] {
            let mut at = 0;
            loop {
                let room = temp_dir("upgrade");
                copy(old.path(), room.path());
                vfs.set(Some(FaultPlan {
                    at,
                    lasts: true,
                    fault,
                    file: "",
                }));
                let opened = Writer::open(room.path(), through(&vfs));
                let is_over = vfs.failed() == 0;
                assert!(!is_over || opened.is_ok());
                drop(opened);
                vfs.set(None);
                is_upgraded(room.path(), &before, expected);
                if is_over {
                    break;
                }
                at += 1;
            }
            assert!(at > 10, "{at} calls");
        }
    }
}

/// The process that is killed in the middle of an upgrade.
fn upgrade_until_killed(folder: &Path) -> ! {
    let words = std::env::var(CALL).expect("the number of a call");
    let at = words.parse().expect("a number");
    let vfs: &'static FaultyVfs = Box::leak(Box::new(FaultyVfs::register("killed")));
    vfs.set(Some(FaultPlan {
        at,
        lasts: true,
        fault: Fault::Hold,
        file: "",
    }));
    std::thread::spawn(|| {
        wait::until("the call", wait::PATIENCE, || vfs.is_held());
        let _ = writeln!(std::io::stdout(), "\nheld");
    });
    let opened = Writer::open(folder, through(vfs)).expect("a store");
    drop(opened);
    let _ = writeln!(std::io::stdout(), "\nupgraded");
    std::process::exit(0);
}

/// A process that upgrades is killed at each of its writes.
#[test]
fn a_killed_upgrade_is_repeated() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        upgrade_until_killed(&PathBuf::from(folder));
    }
    require!(Patience);
    let old = temp_dir("upgrade-old");
    let expected = version_1(old.path(), "WAL");
    let before = rows(old.path());
    for at in 0u64.. {
        let room = temp_dir("upgrade-killed");
        copy(old.path(), room.path());
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--exact",
                "upgrade::a_killed_upgrade_is_repeated",
                "--nocapture",
            ])
            .env(FOLDER, room.path())
            .env(CALL, at.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let mut words = wait::Lines::of("the child", child.stdout.take().expect("its output"));
        let said = words.find(|line| line == "held" || line == "upgraded");
        let is_over = said.expect("a word of the child") == "upgraded";
        if !is_over {
            wait::killed("the process that upgrades", &mut child);
        }
        wait::exit("the process that upgrades", wait::PATIENCE, &mut child);
        is_upgraded(room.path(), &before, expected);
        if is_over {
            assert!(at > 10, "{at} calls");
            break;
        }
    }
}
