//! The scripts of `collectors/` for bpftrace, held against I/O of known number. Those for DTrace need a host that has it.

mod common;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Folder, analyze};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::require;
use serde_json::Value;

fn collector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../collectors").join(name)
}

/// A disk, and a shell script that reads and writes it.
struct Load {
    folder: Folder,
    disk: LoopDevice,
}

impl Load {
    fn new(name: &str) -> Load {
        let folder = Folder::new(name);
        let image = folder.path("disk");
        File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("room for a sparse file");
        let disk = LoopDevice::attach(&image, &[]);
        Load { folder, disk }
    }

    /// `major` and `minor`, with that between them.
    fn number(&self, between: &str) -> String {
        let path = Path::new("/sys/class/block").join(self.disk.name()).join("dev");
        std::fs::read_to_string(path).expect("its number").trim().replace(':', between)
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
        command.arg("-c").arg(format!("/bin/sh {}", load.display())).arg(collector(script)).args(arguments);
        run(&mut command)
    }
}

/// I/O in all, and those off the grid of each question, of one operation.
fn counts(document: &Value, device: &str, op: &str) -> (u64, Vec<u64>) {
    let profiles = document["result"]["profiles"].as_array().expect("profiles");
    let mut of_device = profiles.iter().filter(|profile| profile["target"]["device"] == device);
    let profile = of_device.next().expect("the disk");
    assert!(of_device.next().is_none(), "one profile a device");
    let ops = profile["ops"].as_array().expect("operations");
    let ios = ops.iter().find(|one| one["op"] == op).and_then(|one| one["ios"].as_u64()).unwrap_or(0);
    let grids = profile["places"][0]["grids"].as_array().expect("grids");
    (ios, grids.iter().map(|grid| grid[format!("{op}s")]["misaligned"].as_u64().unwrap_or(0)).collect())
}

#[test]
fn a_residue_table_of_bpftrace_is_read_back() {
    require!(Bpf, Loop, Tool("bpftrace"), Tool("dd"));
    let load = Load::new("residue");
    let printed = load.under("residue.bt", &[], "");
    let file = load.folder.file("host.residue", printed);
    // Sector 34 is 2 sectors off 4 KiB and 8 KiB is off it as often; sector 63 is 7 off.
    let document = analyze(&file, "--grid 4k --grid 4k@1k --grid 4k@3584 --json").ends(1).json();
    let device = load.number(",");
    assert_eq!(counts(&document, &device, "read"), (211, vec![211, 0, 211]));
    assert_eq!(counts(&document, &device, "write"), (101, vec![101, 101, 0]));
}

#[test]
fn each_device_has_its_block() {
    require!(Bpf, Loop, Tool("bpftrace"), Tool("dd"));
    let load = Load::new("align");
    // An interval is 5 s. 211 * 2 + 101 * 7 = 1,129 sectors, 3 and 1,852 bytes of which fall on each of 312 I/O.
    let printed = load.under("align.bt", &[], "sleep 6");
    let block = format!(
        "device {}\n     312 I/O issued\n     312 I/O misaligned, 3 block offset, 1852 byte offset\n       0 I/O of odd \
         length (0 percent)\n",
        load.number(",")
    );
    assert!(printed.contains(&block), "no {block} in\n{printed}");
    let histogram = printed.split(&format!("@sectors_off[{}]: \n", load.number(", "))).nth(1);
    let rows: Vec<&str> =
        histogram.expect("a histogram").lines().take_while(|line| !line.is_empty()).collect();
    assert!(rows[0].starts_with("[2, 4)               211 |"), "{rows:?}");
    assert!(rows[1].starts_with("[4, 8)               101 |") && rows.len() == 2, "{rows:?}");
    // By units of 8 KiB every write is of odd length too.
    let printed = load.under("align.bt", &["16"], "sleep 6");
    assert!(printed.contains("     101 I/O of odd length (32 percent)"), "{printed}");
}

#[test]
fn lengths_by_operation() {
    require!(Bpf, Loop, Tool("bpftrace"), Tool("dd"));
    let load = Load::new("io-profiler");
    let printed = load.under("io-profiler.bt", &[], "");
    let number = load.number(", ");
    for (op, len, ios, bytes) in [("R", "[8K, 16K)", 211, 211 * 8192), ("WS", "[4K, 8K)", 101, 101 * 4096)] {
        let histogram =
            printed.lines().skip_while(|line| !line.contains(&format!("@len_bytes[{number}, {op}")));
        let row = histogram.clone().nth(1).expect("a row");
        assert!(row.starts_with(len) && row.split_whitespace().nth(2) == Some(&ios.to_string()), "{printed}");
        assert!(printed.contains(&format!("@ios[{number}, {op}")), "{printed}");
        let sum = printed.lines().find(|line| line.starts_with(&format!("@bytes[{number}, {op}")));
        assert!(sum.is_some_and(|line| line.ends_with(&format!(": {bytes}"))), "{printed}");
    }
}
