//! The scripts of `collectors/` for bpftrace, held against I/O of known number. Those for DTrace need a host that has it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Folder, analyze, recorded_lines};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::require;
use serde_json::Value;

fn collector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../collectors")
        .join(name)
}

/// A disk, and a shell script that reads and writes it.
struct DiskLoad {
    folder: Folder,
    disk: LoopDevice,
}

impl DiskLoad {
    fn new(name: &str) -> DiskLoad {
        let folder = Folder::new(name);
        let image = folder.path("disk");
        File::create(&image)
            .and_then(|file| file.set_len(64 << 20))
            .expect("room for a sparse file");
        let disk = LoopDevice::attach_hidden(&image, &[]);
        DiskLoad { folder, disk }
    }

    /// `major` and `minor`, with that between them.
    fn number(&self, between: &str) -> String {
        let path = Path::new("/sys/class/block")
            .join(self.disk.name())
            .join("dev");
        std::fs::read_to_string(path)
            .expect("its number")
            .trim()
            .replace(':', between)
    }

    /// 211 reads of 8 KiB from sector 34 on and 101 writes of 4 KiB from sector 63 on, and then that.
    ///
    /// bpftrace starts the script when its programs are at work, and ends with it.
    fn under(&self, script: &str, arguments: &[&str], then: &str) -> String {
        let disk = self.disk.path().display();
        let load = self.folder.file(
            "load",
            format!(
                "dd if={disk} of=/dev/null bs=8192 count=211 iflag=direct,skip_bytes skip=17408 status=none\n\
                 dd if=/dev/zero of={disk} bs=4096 count=101 oflag=direct,seek_bytes seek=32256 status=none\n{then}\n"
            ),
        );
        let mut command = Command::new("bpftrace");
        command
            .arg("-c")
            .arg(format!("/bin/sh {}", load.display()))
            .arg(collector(script))
            .args(arguments);
        run(&mut command)
    }
}

/// I/O in all, and those off the grid of each question, of one operation.
fn counts(document: &Value, device: &str, op: &str) -> (u64, Vec<u64>) {
    let profiles = document["result"]["profiles"].as_array().expect("profiles");
    let mut of_device = profiles
        .iter()
        .filter(|profile| profile["target"]["device"] == device);
    let profile = of_device.next().expect("the disk");
    assert!(of_device.next().is_none(), "one profile a device");
    let ops = profile["ops"].as_array().expect("operations");
    let ios = ops
        .iter()
        .find(|one| one["op"] == op)
        .and_then(|one| one["ios"].as_u64())
        .unwrap_or(0);
    let grids = profile["places"][0]["grids"].as_array().expect("grids");
    (
        ios,
        grids
            .iter()
            .map(|grid| grid[format!("{op}s")]["misaligned"].as_u64().unwrap_or(0))
            .collect(),
    )
}

#[test]
fn a_residue_table_of_bpftrace_is_read_back() {
    require!(Bpf, Loop, Tool("bpftrace"), Tool("dd"));
    let load = DiskLoad::new("residue");
    let printed = load.under("residue.bt", &[], "");
    let file = load.folder.file("host.residue", printed);
    // Sector 34 is 2 sectors off 4 KiB and 8 KiB is off it as often; sector 63 is 7 off.
    let document = analyze(&file, "--grid 4k --grid 4k@1k --grid 4k@3584 --json")
        .ends(1)
        .json();
    let device = load.number(",");
    assert_eq!(counts(&document, &device, "read"), (211, vec![211, 0, 211]));
    assert_eq!(
        counts(&document, &device, "write"),
        (101, vec![101, 101, 0])
    );
}

/// The output of `align.bt` about a device.
#[derive(Default)]
struct Blocks {
    /// Intervals that the load fell into.
    intervals: u32,
    issued: u64,
    misaligned: u64,
    /// Mean offset times I/O: less than a byte an I/O is lost by rounding down.
    off_bytes: u64,
    odd: u64,
}

fn blocks(printed: &str, device: &str) -> Blocks {
    let mut blocks = Blocks::default();
    for block in printed.split(&format!("device {device}\n")).skip(1) {
        let lines: Vec<Vec<&str>> = block
            .lines()
            .take(3)
            .map(|line| line.split_whitespace().collect())
            .collect();
        let number = |line: usize, word: usize| lines[line][word].parse::<u64>().expect("a count");
        assert_eq!(
            (lines[0][2], lines[1][2], lines[2][2]),
            ("issued", "misaligned,", "of"),
            "{block}"
        );
        blocks.intervals += 1;
        blocks.issued += number(0, 0);
        blocks.misaligned += number(1, 0);
        blocks.off_bytes += number(1, 6) * number(0, 0);
        blocks.odd += number(2, 0);
    }
    blocks
}

/// I/O in the rows of the histograms of a device that begin so.
fn in_rows(printed: &str, device: &str, row: &str) -> u64 {
    let heading = format!("@sectors_off[{device}]: \n");
    let histograms = printed.split(&heading).skip(1);
    let rows =
        histograms.flat_map(|histogram| histogram.lines().take_while(|line| !line.is_empty()));
    rows.filter_map(|line| {
        line.strip_prefix(row)?
            .split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()
    })
    .sum()
}

/// The output of `align.bt` for a load within one interval, of 5 s: an I/O that comes while one is printed may be
/// cleared with it.
fn within_an_interval(load: &DiskLoad, arguments: &[&str]) -> (String, Blocks) {
    for _ in 0..4 {
        let printed = load.under("align.bt", arguments, "sleep 6");
        let seen = blocks(&printed, &load.number(","));
        if seen.intervals == 1 {
            return (printed, seen);
        }
        eprintln!("the load fell into {} intervals, once more", seen.intervals);
    }
    panic!("no load fell into one interval");
}

#[test]
fn each_device_has_its_block() {
    require!(Bpf, Loop, Tool("bpftrace"), Tool("dd"));
    let load = DiskLoad::new("align");
    let (printed, seen) = within_an_interval(&load, &[]);
    let device = load.number(", ");
    // No I/O of the load begins on the grid: these are another program that probes the disk.
    let others = in_rows(&printed, &device, "[0] ");
    assert_eq!(
        (seen.issued, seen.misaligned, seen.odd),
        (312 + others, 312, 0),
        "{printed}"
    );
    for (len, ios) in [(8192, 211), (4096, 101)] {
        let row = format!("@lengths[{device}, {len}]: ");
        let count = printed.lines().find_map(|line| line.strip_prefix(&row));
        let count: u64 = count.and_then(|count| count.parse().ok()).expect("exact");
        // Another program may have probed the disk.
        assert!((ios..=ios + others).contains(&count), "{printed}");
    }
    let file = load.folder.file("host.align", &printed);
    let device_flag = format!("--device {}", load.number(","));
    analyze(&file, &device_flag)
        .ends(1)
        .says(&format!("312 of {}", 312 + others))
        .says("312 I/O misaligned, mean");
    let document = analyze(&file, &format!("{device_flag} --json")).json();
    let finding = &document["findings"][0];
    assert_eq!(finding["rule"], "misaligned-io");
    assert_eq!(finding["target"]["device"], load.number(",").as_str());
    assert_eq!(finding["facts"]["counted"]["count"], 312);
    let off_bytes = (211 * 2 + 101 * 7) * 512;
    assert!(
        (off_bytes - seen.issued..=off_bytes).contains(&seen.off_bytes),
        "{printed}"
    );
    assert_eq!(
        ["[2, 4) ", "[4, 8) "].map(|row| in_rows(&printed, &device, row)),
        [211, 101],
        "{printed}"
    );
    // By units of 8 KiB every write is of odd length too.
    let (printed, seen) = within_an_interval(&load, &["16"]);
    assert!(
        seen.issued >= 312 && seen.odd >= 101 && seen.issued - seen.odd >= 211,
        "{printed}"
    );
    // Sectors 63, 79, … are 15 past a unit, every other write 7.
    assert_eq!(
        ["[2, 4) ", "[4, 8) "].map(|row| in_rows(&printed, &device, row)),
        [211, 50],
        "{printed}"
    );
    assert!(in_rows(&printed, &device, "[8, 16) ") >= 51, "{printed}");
}

#[test]
fn lengths_by_operation() {
    require!(Bpf, Loop, Tool("bpftrace"), Tool("dd"));
    let load = DiskLoad::new("io-profiler");
    let printed = load.under("io-profiler.bt", &[], "");
    let file = load.folder.file("host.profile", &printed);
    let analyzed = analyze(&file, &format!("--device {}", load.number(",")));
    let lengths = recorded_lines(&analyzed.out, &["Length ", "no I/O"]);
    insta::assert_snapshot!(lengths);
    for (row, ios) in [("to 16.0 KiB", "211"), ("to 8.00 KiB", "101")] {
        let counted = analyzed
            .out
            .lines()
            .find(|line| line.trim_start().starts_with(row) && line.ends_with(&format!(" {ios}")));
        assert!(counted.is_some(), "{row}: {}", analyzed.out);
    }
    let number = load.number(", ");
    for (op, len, ios, bytes) in [
        ("R", "[8K, 16K)", 211, 211 * 8192),
        ("WS", "[4K, 8K)", 101, 101 * 4096),
    ] {
        let histogram = printed
            .lines()
            .skip_while(|line| !line.contains(&format!("@len_bytes[{number}, {op}")));
        let row = histogram.clone().nth(1).expect("a row");
        assert!(
            row.starts_with(len) && row.split_whitespace().nth(2) == Some(&ios.to_string()),
            "{printed}"
        );
        assert!(
            printed.contains(&format!("@ios[{number}, {op}")),
            "{printed}"
        );
        let sum = printed
            .lines()
            .find(|line| line.starts_with(&format!("@bytes[{number}, {op}")));
        assert!(
            sum.is_some_and(|line| line.ends_with(&format!(": {bytes}"))),
            "{printed}"
        );
    }
}
