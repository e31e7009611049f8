//! Exported windows: the names of objects, and each I/O once.

use std::collections::BTreeSet;

use plumb_fleet::{WindowChoice, WindowName, file_name, object_key};
use plumb_testkit::Rng;

const SECOND: i64 = 1_000_000_000;

#[test]
fn names_are_those_of_the_content() {
    let key = |host: &str, bytes: &[u8]| object_key(host, "2026-11-01", "1h", bytes);
    // XXH64 of nothing with seed 0, as the reference implementation prints it.
    assert_eq!(
        key("db1.example-x", b""),
        "host=db1.example-x/date=2026-11-01/tier=1h/ef46db3751d8e999.parquet"
    );
    assert_ne!(key("db1", b"a"), key("db1", b"b"));
    // A name never leads to another folder.
    assert!(key("../a b%", b"").starts_with("host=..%2Fa%20b%25/date="));
}

/// A window of one device: begin and length in seconds, I/O.
type Version = (i64, i64, i64);

fn chosen(versions: &[Version]) -> Vec<usize> {
    let mut choice = WindowChoice::default();
    for (row, (from, seconds, ios)) in versions.iter().enumerate() {
        let window = WindowName {
            identity: "disk".to_owned(),
            layer: "request".to_owned(),
            from_ns: from * SECOND,
            seconds: *seconds,
        };
        choice.add(window, *ios, &ios.to_le_bytes(), row);
    }
    choice.rows()
}

/// The slow model: a version counts if no other one of its window has more I/O, and no coarser window contains it.
fn modelled(versions: &[Version]) -> BTreeSet<Version> {
    let counts = |&(from, seconds, ios): &Version| {
        let is_beaten = |&(other, length, more): &Version| {
            let contains = other <= from && other + length >= from + seconds;
            contains && (length > seconds || length == seconds && more > ios)
        };
        !versions.iter().any(is_beaten)
    };
    versions.iter().copied().filter(counts).collect()
}

#[test]
fn each_time_counts_once() {
    let mut rng = Rng::new(25);
    for _ in 0..500 {
        let versions: Vec<Version> = (0..rng.below(60))
            .map(|_| {
                let seconds = [300, 3600, 86_400][rng.below(3) as usize];
                let numbers = [600, 50, 2][[300, 3600, 86_400]
                    .iter()
                    .position(|one| *one == seconds)
                    .expect("one")];
                let from = seconds * rng.below(numbers) as i64;
                (from, seconds, 64 + rng.below(3) as i64)
            })
            .collect();
        let rows = chosen(&versions);
        let found: BTreeSet<Version> = rows.iter().map(|row| versions[*row]).collect();
        assert_eq!(found.len(), rows.len(), "each window once");
        assert_eq!(found, modelled(&versions), "{versions:?}");
        let mut reversed = versions.clone();
        reversed.reverse();
        let again: Vec<Version> = chosen(&reversed).iter().map(|row| reversed[*row]).collect();
        let first: Vec<Version> = rows.iter().map(|row| versions[*row]).collect();
        assert_eq!(again, first, "the order of the objects changes nothing");
    }
}

#[test]
fn devices_are_apart() {
    let mut choice = WindowChoice::default();
    for (row, (identity, layer)) in [("a", "bio"), ("a", "request"), ("b", "bio")]
        .into_iter()
        .enumerate()
    {
        let window = WindowName {
            identity: identity.to_owned(),
            layer: layer.to_owned(),
            from_ns: 0,
            seconds: 3600,
        };
        choice.add(window, 1, b"", row);
    }
    assert_eq!(choice.rows(), [0, 1, 2]);
}

/// Names of files are plain, and differ as the hosts do.
#[test]
fn file_names_of_hosts_are_no_paths() {
    let long = "x".repeat(300);
    let hosts = [
        ("db-1.example", "db-1.example.json"),
        ("../etc/passwd", "%2E.%2Fetc%2Fpasswd.json"),
        ("..", "%2E..json"),
        ("", "%.json"),
        ("\0", "%00.json"),
        ("-rf", "%2Drf.json"),
        ("%2Drf", "%252Drf.json"),
        (".hidden", "%2Ehidden.json"),
        ("a b\n", "a%20b%0A.json"),
        ("é", "%C3%A9.json"),
    ];
    for (host, expected) in hosts {
        assert_eq!(file_name(host, ".json"), expected, "{host:?}");
    }
    let one = file_name(&long, ".json");
    let other = file_name(&(long.clone() + "y"), ".json");
    assert!(one.len() <= 255 && other.len() <= 255 && one != other);
}
