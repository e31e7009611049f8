//! Logical partitions: the link to one keeps its place, and states the new start.

use std::process::Command;

use plumb_testkit::loop_device::run;
use plumb_testkit::require;
use serde_json::Value;

use crate::fix_preflight::disk::{PreflightDisk, assert_done, assert_refused, stop};

/// sfdisk puts the links into sectors 4,096, 30,782 and 57,406.
const SCRIPT: &str = "label: dos
1: start=63, size=2000, type=83
2: start=4096, size=90000, type=5
5: start=4159, size=16000, type=83
6: start=30783, size=16000, type=83
7: start=57407, size=16000, type=83
";

/// Start and size of each partition, as sfdisk reads them.
fn rows(disk: &PreflightDisk) -> Vec<(String, u64, u64)> {
    let printed = run(Command::new("sfdisk").arg("--json").arg(disk.device.path()));
    let table: Value = serde_json::from_str(&printed).expect("JSON of sfdisk");
    let parts = table["partitiontable"]["partitions"]
        .as_array()
        .expect("partitions");
    let number = |part: &Value, key: &str| part[key].as_u64().expect("a number");
    let name = |part: &Value| {
        part["node"]
            .as_str()
            .expect("a node")
            .rsplit('p')
            .next()
            .expect("a number")
            .to_owned()
    };
    parts
        .iter()
        .map(|part| (name(part), number(part, "start"), number(part, "size")))
        .collect()
}

/// The same by parted, which follows the chain by itself.
fn rows_of_parted(disk: &PreflightDisk) -> Vec<(String, u64, u64)> {
    let printed = run(Command::new("parted")
        .args(["-s", "-m"])
        .arg(disk.device.path())
        .args(["unit", "s", "print"]));
    let number = |text: &str| text.trim_end_matches('s').parse().expect("a number");
    let lines = printed
        .lines()
        .skip(2)
        .map(|line| line.split(':').collect::<Vec<_>>());
    lines
        .map(|words| (words[0].to_owned(), number(words[1]), number(words[3])))
        .collect()
}

#[test]
fn the_chain_stays_whole() {
    require!(Loop, Tool("sfdisk"), Tool("parted"));
    let disk = PreflightDisk::sfdisk(120_000, SCRIPT);
    let mut expected = rows(&disk);
    assert_eq!(expected.len(), 5, "{expected:?}");
    let data: Vec<Vec<u8>> = [1, 5, 6, 7].map(|number| disk.fill(number)).into();
    for (number, to) in [(6, 32_768), (5, 8_192), (7, 61_440), (6, 30_784)] {
        assert_done(&disk.fix_move(
            number,
            &["--to", &format!("{to}s"), "--yes", &disk.name(number)],
        ));
        let row = expected
            .iter_mut()
            .find(|row| row.0 == number.to_string())
            .expect("it");
        row.1 = to;
        assert_eq!(rows(&disk), expected, "{number} to {to}");
        assert_eq!(rows_of_parted(&disk), expected, "{number} to {to}");
        assert_eq!(disk.start(number), Some(to));
        let verified = run(Command::new("sfdisk")
            .arg("--verify")
            .arg(disk.device.path())
            .env("LC_ALL", "C"));
        crate::common::assert_sfdisk_agrees(&verified);
        for (number, data) in [1, 5, 6, 7].iter().zip(&data) {
            assert!(disk.bytes_of(*number) == *data, "{number}");
        }
    }
    // Stopped in the middle and gone back from.
    stop(disk.begun(5, 12_288));
    assert_done(&disk.go("rollback"));
    assert_eq!(
        (rows(&disk), rows_of_parted(&disk)),
        (expected.clone(), expected.clone())
    );
    for (number, data) in [1, 5, 6, 7].iter().zip(&data) {
        assert!(disk.bytes_of(*number) == *data, "{number}");
    }
}

/// Linux has the first two sectors of an extended partition as one of its own, and adds no other partition there.
#[test]
fn the_sector_right_behind_the_first_link() {
    require!(Loop, Tool("sfdisk"));
    let disk = PreflightDisk::sfdisk(120_000, SCRIPT);
    let size = std::fs::read_to_string(format!("/sys/class/block/{}/size", disk.name(2)));
    assert_eq!(size.expect("its size").trim(), "2");
    let words = [
        "partition 5 would begin at byte 2097664",
        "expected byte 2098176",
    ];
    for args in [
        &["--to", "4097s"][..],
        &["--to", "4097s", "--yes", &disk.name(5)],
    ] {
        assert_refused(&disk.fix_move(5, args), 5, &words);
    }
    assert!(disk.start(5) == Some(4_159) && !disk.journal().exists());
    let data = disk.fill(5);
    assert_done(&disk.fix_move(5, &["--to", "4098s", "--yes", &disk.name(5)]));
    assert!(disk.start(5) == Some(4_098) && disk.bytes_of(5) == data);
    // Other links have no partition of Linux's.
    assert_done(&disk.fix_move(6, &["--to", "30784s", "--yes", &disk.name(6)]));
    assert_done(&disk.fix_move(6, &["--to", "30783s", "--yes", &disk.name(6)]));
    assert_eq!(disk.start(6), Some(30_783));
}

#[test]
fn chains_that_cannot_be_kept() {
    require!(Loop, Tool("sfdisk"));
    let disk = PreflightDisk::sfdisk(120_000, SCRIPT);
    let link = "a link of the chain of logical partitions";
    let cases: [(u32, &str, &[&str]); 5] = [
        (
            2,
            "8192s",
            &["holds the chain of logical partitions", "one by one"],
        ),
        // Its end would be on the next link, at 30,782.
        (5, "14783s", &[link]),
        // Its own link is at 30,782; the space before it belongs to the one before.
        (6, "30720s", &["partition 6"]),
        (6, "24576s", &["partition 6"]),
        // Behind the extended partition.
        (7, "90000s", &["partition 7"]),
    ];
    for (number, to, words) in cases {
        assert_refused(
            &disk.fix_move(number, &["--to", to, "--yes", &disk.name(number)]),
            5,
            words,
        );
    }
    // One before an extended partition does not move into it.
    assert_refused(
        &disk.fix_move(1, &["--to", "4000s"]),
        5,
        &["partition 2 begins at"],
    );
}
