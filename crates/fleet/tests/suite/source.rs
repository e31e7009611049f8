//! Inputs of a fleet: their order, names, hosts and shards.

use std::fs;
use std::path::{Path, PathBuf};

use plumb_fleet::{Shard, SourceError, find_sources};
use plumb_testkit::temp_dir;

fn file(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("room");
    fs::write(&path, name).expect("room");
    path
}

fn names(roots: &[PathBuf]) -> Vec<(String, String)> {
    let found = find_sources(roots).expect("inputs").found;
    let pair = |source: plumb_fleet::Source| (source.host, source.name);
    found.into_iter().map(pair).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(host, name): &(&str, &str)| (host.to_string(), name.to_string());
    expected.iter().map(owned).collect()
}

#[test]
fn the_host_is_named_by_the_path() {
    let folder = temp_dir("fleet-hosts");
    let root = folder.path();
    for name in [
        "db2/sda.csv",
        "db2/day=1/sda.csv",
        "day=1/host=db1/sdb.csv",
        "host=x/host=db1/sda.csv",
        "host=/sda.csv",
        "alone.csv",
        "_SUCCESS",
        ".unfinished",
        "db2/_temporary/sda.csv",
    ] {
        file(root, name);
    }
    let expected = pairs(&[
        ("alone.csv", "alone.csv"),
        ("db1", "day=1/host=db1/sdb.csv"),
        ("db1", "host=x/host=db1/sda.csv"),
        ("db2", "db2/day=1/sda.csv"),
        ("db2", "db2/sda.csv"),
        ("host=", "host=/sda.csv"),
    ]);
    assert_eq!(names(&[root.to_owned()]), expected);
    // A path above SOURCE names the host as well, and a file is named by itself.
    let inner = root.join("day=1/host=db1");
    assert_eq!(
        names(std::slice::from_ref(&inner)),
        pairs(&[("db1", "sdb.csv")])
    );
    let single = [inner.join("sdb.csv"), root.join("alone.csv")];
    assert_eq!(
        names(&single),
        pairs(&[("alone.csv", "alone.csv"), ("db1", "sdb.csv")])
    );
}

#[test]
fn files_of_cpus_are_one_input() {
    let folder = temp_dir("fleet-cpus");
    for name in ["a/sda.blktrace.0", "a/sda.blktrace.1", "b/sda.blktrace.0"] {
        file(folder.path(), name);
    }
    let found = find_sources(&[folder.path().to_owned()])
        .expect("inputs")
        .found;
    let files: Vec<_> = found
        .iter()
        .map(|one| (one.name.as_str(), one.piece.files.len()))
        .collect();
    assert_eq!(files, [("a/sda", 2), ("b/sda.blktrace.0", 1)]);
}

#[test]
fn nothing_counts_twice() {
    let folder = temp_dir("fleet-twice");
    let root = folder.path().to_owned();
    let [one, other] = ["a/x.csv", "b/x.csv"].map(|name| file(&root, name));
    for roots in [
        vec![root.clone(), one.clone()],
        vec![one.clone(), one.clone()],
        vec![root.join("a"), root.clone()],
    ] {
        let refused = find_sources(&roots).expect_err("twice");
        assert!(matches!(refused, SourceError::Nested { .. }), "{refused}");
    }
    let refused = find_sources(&[one, other]).expect_err("one name");
    assert!(matches!(refused, SourceError::Twice { .. }), "{refused}");
    // A folder whose name begins like that of another one is not inside it.
    file(&root, "a-b/y.csv");
    assert_eq!(names(&[root.join("a"), root.join("a-b")]).len(), 2);
    for absent in [root.join("absent"), PathBuf::from("-")] {
        let refused = find_sources(&[absent]).expect_err("nothing");
        assert!(matches!(refused, SourceError::Missing { .. }), "{refused}");
    }
}

#[test]
fn links_to_folders_are_named_and_not_followed() {
    let folder = temp_dir("fleet-links");
    let root = folder.path();
    file(root, "a/x.csv");
    std::os::unix::fs::symlink(root, root.join("a/circle")).expect("a link");
    std::os::unix::fs::symlink(root.join("a/x.csv"), root.join("a/y.csv")).expect("a link");
    std::os::unix::fs::symlink("absent", root.join("a/z.csv")).expect("a link");
    let sources = find_sources(&[root.to_owned()]).expect("inputs");
    assert_eq!(sources.passed_over, [root.join("a/circle")]);
    let names: Vec<_> = sources.found.iter().map(|one| one.name.as_str()).collect();
    // The link without an end fails when it is read.
    assert_eq!(names, ["a/x.csv", "a/y.csv", "a/z.csv"]);
}

#[test]
fn every_input_is_in_one_shard() {
    for of in [1, 7, 64] {
        let shards: Vec<Shard> = (0..of)
            .map(|index| format!("{index}/{of}").parse().expect("a shard"))
            .collect();
        let mut sizes = vec![0; of];
        for at in 0..6400 {
            let name = format!("host{at}/sda.csv");
            let taking: Vec<usize> = (0..of)
                .filter(|&shard| shards[shard].takes(&name))
                .collect();
            assert_eq!(taking.len(), 1, "{name}");
            sizes[taking[0]] += 1;
        }
        let even = 6400 / of;
        assert!(
            sizes.iter().all(|&size| size > even / 2 && size < even * 2),
            "{sizes:?}"
        );
    }
    // Shards of two versions of Plumb are shards of one fleet. The number is by another program: zstd writes the low half of XXH64.
    let shard: Shard = format!("{}/64", LOW_HALF % 64).parse().expect("a shard");
    assert!(shard.takes("db1/sda.csv"));
    for wrong in ["", "1", "7/7", "-1/7", "0/0", "1/x", "0/1000001", "1/2/3"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}

/// `printf db1/sda.csv | zstd -qc --check | tail -c 4`, as a little-endian number.
const LOW_HALF: u32 = 0xdb4f_7202;

/// The objects of a day are one input, since a window may be in several of them; other files stay inputs of their own.
#[test]
fn exported_windows_of_a_day_are_one_input() {
    let folder = temp_dir("fleet-tiers");
    let root = folder.path();
    for name in [
        "host=db1/date=2026-11-01/tier=1d/aa.parquet",
        "host=db1/date=2026-11-01/tier=1h/bb.parquet",
        "host=db1/date=2026-11-01/tier=1h/cc.parquet",
        "host=db1/date=2026-11-01/tier=1h/.dd.parquet",
        "host=db1/date=2026-11-01/sda.csv",
        "host=db1/date=2026-11-02/tier=1d/aa.parquet",
        "host=db2/date=2026-11-01/tier=1d/ee.parquet",
    ] {
        file(root, name);
    }
    let found = find_sources(&[root.to_owned()]).expect("inputs").found;
    let found: Vec<(&str, &str, usize, bool)> = found
        .iter()
        .map(|one| {
            (
                &*one.host,
                &*one.name,
                one.piece.files.len(),
                one.has_windows,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("db1", "host=db1/date=2026-11-01", 3, true),
            ("db1", "host=db1/date=2026-11-01/sda.csv", 0, false),
            ("db1", "host=db1/date=2026-11-02", 1, true),
            ("db2", "host=db2/date=2026-11-01", 1, true),
        ]
    );
    // A day and a tier may be a SOURCE.
    let day = root.join("host=db1/date=2026-11-02");
    assert_eq!(names(&[day]), pairs(&[("db1", "date=2026-11-02")]));
    let tier = root.join("host=db1/date=2026-11-01/tier=1h");
    assert_eq!(names(&[tier]), pairs(&[("db1", "tier=1h")]));
}
