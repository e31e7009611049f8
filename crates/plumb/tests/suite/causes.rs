//! Misaligned I/O on a disk whose partition begins on the grid: `plumb diagnose` names the cause, the blocks of the file system or
//! the offsets that the application chooses, and advises no move of the partition.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::{require, wait};
use serde_json::Value;

use crate::common::{Folder, command};

const LABEL: &str = "label: gpt\nstart=2048, size=204800\n";

/// An ext4 file system on a partition at sector 2,048, mounted. The last is dropped last.
struct MountedDisk {
    at: PathBuf,
    disk: LoopDevice,
    _folder: Folder,
}

impl MountedDisk {
    fn new(block: &str) -> MountedDisk {
        let folder = Folder::new("causes");
        let image = folder.file("disk", vec![0; 128 << 20]);
        let label = std::fs::File::open(folder.file("label", LABEL)).expect("the label");
        run(Command::new("sfdisk")
            .arg("--quiet")
            .arg(&image)
            .stdin(label));
        let disk = LoopDevice::attach(&image, &[]);
        assert_eq!(disk.add_partitions(), 1);
        let part = disk.partition(1);
        run(Command::new("mkfs.ext4")
            .args(["-q", "-b", block])
            .arg(&part));
        let at = folder.path("mounted");
        std::fs::create_dir(&at).expect("a directory");
        run(Command::new("mount").arg(&part).arg(&at));
        MountedDisk {
            at,
            disk,
            _folder: folder,
        }
    }

    fn load(&self, args: &[&str]) -> Child {
        let fio = Command::new("fio")
            .args(["--name=load", "--thread", "--direct=1", "--size=32m"])
            .args(["--time_based", "--runtime=60", "--ioengine=psync"])
            .arg(format!("--directory={}", self.at.display()))
            .args(args)
            .stdout(Stdio::null())
            .spawn();
        let fio = fio.expect("fio runs");
        let written = self.at.join("load.0.0");
        wait::until("fio has laid out its file", wait::PATIENCE, || {
            std::fs::metadata(&written).is_ok_and(|file| file.len() >= 32 << 20)
        });
        fio
    }

    /// The findings on its disk while fio sends I/O.
    fn findings(&self, args: &[&str]) -> Vec<Value> {
        let mut fio = self.load(args);
        // The pages that fio wrote to lay out its file are no load of interest.
        run(Command::new("sync").arg("-f").arg(&self.at));
        let name = self.disk.name();
        let output = command()
            .args(["diagnose", &name, "--for", "3s", "--grid", "4k", "--json"])
            .output();
        wait::killed("fio", &mut fio);
        let document: Value =
            serde_json::from_slice(&output.expect("plumb runs").stdout).expect("JSON");
        let findings = document["findings"].as_array().expect("findings").clone();
        let of_disk = |one: &Value| one["target"]["device"] == name.as_str();
        findings.into_iter().filter(of_disk).collect()
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}

/// The offset in `misaligned-io`, which names a file system with blocks of this length and advises no move.
fn offset_within_blocks(findings: &[Value], block_bytes: u64) -> &Value {
    let found = findings.iter().find(|one| one["rule"] == "misaligned-io");
    let finding = found.unwrap_or_else(|| panic!("no misaligned-io: {findings:?}"));
    let offset = &finding["facts"]["offset"];
    assert_eq!(offset["advice"]["kind"], "within-file-systems");
    assert_eq!(
        offset["advice"]["file_systems"][0]["block_bytes"],
        block_bytes
    );
    assert_eq!(finding["fix"].as_array().map(Vec::len), Some(0));
    offset
}

/// By the block size alone: writes of 1 KiB are at multiples of 1 KiB, three quarters of them off 4 KiB.
#[test]
fn short_blocks_of_a_file_system_are_named() {
    require!(
        Bpf,
        Loop,
        Tool("fio"),
        Tool("sfdisk"),
        Tool("partx"),
        Tool("mkfs.ext4")
    );
    let disk = MountedDisk::new("1024");
    let findings = disk.findings(&["--rw=randwrite", "--bs=1k"]);
    offset_within_blocks(&findings, 1024);
    // One cause, reported once.
    let odd = findings.iter().find(|one| one["rule"] == "odd-length-io");
    assert_eq!(odd, None);
}

/// Reads of 4 KiB at 512 bytes past each multiple of 4 KiB in a file whose blocks are on the grid.
#[test]
fn offsets_that_the_application_chooses_are_no_fault_of_the_partition() {
    require!(
        Bpf,
        Loop,
        Tool("fio"),
        Tool("sfdisk"),
        Tool("partx"),
        Tool("mkfs.ext4")
    );
    let disk = MountedDisk::new("4096");
    let findings = disk.findings(&["--rw=randread", "--bs=4k", "--offset=512"]);
    let offset = offset_within_blocks(&findings, 4096);
    assert_eq!(offset["known_starts"], serde_json::json!([null]));
    assert_eq!(offset["partitions"][0]["past_bytes"], 0);
}
