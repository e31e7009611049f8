//! The commands that a check recommends for a mounted partition keep its data when they are run as printed.

use std::process::Command;

use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;
use serde_json::Value;

use crate::fix_move::disk::{DiskFormat, MoveDisk};

fn misaligned_partition(disk: &MoveDisk) -> Value {
    let checked = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["check", "--grid", "4k", "--json"])
        .arg(disk.device.path())
        .limited_output();
    let document: Value = serde_json::from_slice(&checked.stdout).expect("a document");
    let findings = document["findings"].as_array().expect("findings");
    let of_partition = findings.iter().find(|finding| {
        finding["rule"] == "misaligned-partition" && finding["target"]["device"] == disk.name()
    });
    of_partition.expect("the partition is misaligned").clone()
}

#[test]
fn a_mounted_partition_is_unmounted_and_moved() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = MoveDisk::new(DiskFormat::Ext4, 34, 24, &[]);
    let mounted = disk.mount();
    let finding = misaligned_partition(&disk);
    let commands: Vec<&str> = finding["fix"]
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|step| step["command"].as_str())
        .collect();
    let (node, name) = (disk.node(1).display().to_string(), disk.name());
    assert_eq!(
        commands,
        [
            format!("umount {}", disk.mount_point().display()),
            format!("plumb fix move {node} --to 40s"),
            format!("plumb fix move {node} --to 40s --yes {name}"),
            format!("plumb check {node}"),
        ]
    );
    // As printed, except for the journal: the loop device and the machine's own folder are on one disk.
    let journal = disk.journal();
    let journal = format!(
        " --to 40s --journal '{}' --journal-same-disk",
        journal.display()
    );
    let script = commands[..3].join("\n").replace(" --to 40s", &journal);
    let program = env!("CARGO_BIN_EXE_plumb");
    let done = Command::new("sh")
        .args([
            "-e",
            "-c",
            &format!("plumb() {{ '{program}' \"$@\"; }}\n{script}"),
        ])
        .limited_output();
    assert!(
        done.status.success(),
        "{}",
        crate::fix_move::disk::output_text(&done)
    );
    // The script has unmounted it.
    std::mem::forget(mounted);
    disk.assert_right(40);
}
