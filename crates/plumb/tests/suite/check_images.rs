//! Images of disks: unknown ones are never called aligned, and their faults are findings.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use plumb_testkit::wait::RunLimited;
use serde_json::json;

use crate::common::{Ran, node, plumb};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::require;

/// Runs a script in a directory.
fn shell(script: &str, directory: &Path) {
    let done = Command::new("sh")
        .args(["-e", "-c", script])
        .current_dir(directory)
        .limited_output();
    assert!(
        done.status.success(),
        "{script}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn check(folder: &Path, name: &str, flags: &str) -> Ran {
    let image = folder.join(name);
    let image = ["check", "--image", image.to_str().expect("a path")];
    // A document has everything.
    let detail = (!flags.contains("--json")).then_some("-vv");
    plumb(
        image
            .into_iter()
            .chain(detail)
            .chain(flags.split_whitespace()),
    )
}

/// Clusters of qcow2 that are compressed begin at any byte, and of those in a backing file nothing is known here.
#[test]
fn other_placements_of_clusters_are_unknown() {
    require!(Tool("qemu-img"), Tool("qemu-io"), Tool("sfdisk"));
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    shell(
        "truncate -s 64M raw; printf '2048,20480\n22528,\n' | sfdisk -q raw
         yes plumb | dd of=raw bs=64k seek=32 count=64 conv=notrunc iflag=fullblock
         qemu-img convert -f raw -O qcow2 -c raw packed
         cp packed mixed; qemu-io -c 'write 0 1M' -c 'write 32M 64k' mixed
         qemu-img convert -f raw -O qcow2 -o preallocation=metadata raw own
         qemu-img create -q -f qcow2 -b raw -F raw empty
         cp empty partly; qemu-io -f qcow2 -c 'write 32M 64k' partly
         qemu-img create -q -f qcow2 -b raw -F raw whole; qemu-io -f qcow2 -c 'write 0 64M' whole
         qemu-img create -q -f qcow2 -b raw -F raw -o extended_l2=on sub; qemu-io -f qcow2 -c 'write 0 4k' sub",
        folder,
    );
    for (name, fault) in [
        ("packed", "all-compressed"),
        ("mixed", "some-compressed"),
        ("empty", "all-in-backing"),
        ("partly", "some-in-backing"),
        ("sub", "some-in-backing"),
    ] {
        let path = folder.join(name).display().to_string();
        for grid in ["--grid 4k", "--grid 512k", ""] {
            let found = check(folder, name, &format!("{grid} --json"));
            // Blocks in the file are off by their own distance.
            let is_off = grid == "--grid 512k" && matches!(name, "mixed" | "partly" | "sub");
            let expected = if is_off { "misaligned" } else { "unknown" };
            let document = found.json();
            let disk = node(&document, &format!("{path}:disk"));
            assert_eq!(disk["overall"], expected, "{name} {grid}: {disk:#}");
            assert_eq!(
                found.code,
                if is_off { 1 } else { 3 },
                "{name} {grid}: {}",
                found.out
            );
            let why = &disk["lost"][0]["why"];
            assert_eq!(
                *why,
                json!({"kind": "image", "fault": fault}),
                "{name} {grid}"
            );
        }
    }
    for name in ["own", "whole"] {
        let found = check(folder, name, "--grid 4k --json");
        found.ends(0);
    }
}

/// A note on the blocks of a virtual disk hides no unknown of their file.
#[test]
fn a_note_hides_nothing_that_is_unknown() {
    require!(Tool("qemu-img"), Tool("sfdisk"));
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    shell(
        "truncate -s 64M raw; printf '2048,20480\n' | sfdisk -q raw
         qemu-img convert -f raw -O vhdx raw vhdx",
        folder,
    );
    for name in ["raw", "vhdx"] {
        let found = check(folder, name, "");
        found.ends(3).says("Unknown").says(&format!(
            "{}#1: nothing is known of",
            folder.join(name).display()
        ));
    }
    check(folder, "vhdx", "--grid 4k")
        .ends(0)
        .says("NOTE misaligned-partition");
    check(folder, "vhdx", "--grid 4k --fail-on note").ends(1);
}

/// A script gets a document even if nothing can be judged, with the sentence that a person gets.
#[test]
fn a_refusal_is_a_document_too() {
    require!(Tool("sfdisk"));
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    shell(
        "truncate -s 1M nothing; truncate -s 0 empty; truncate -s 64M raw; echo 2048 | sfdisk -q raw; sfdisk -d raw > dump",
        folder,
    );
    let dump = folder.join("dump").display().to_string();
    let ran = [
        (check(folder, "nothing", "--json"), "found nothing known"),
        (check(folder, "empty", "--json"), "is empty"),
    ];
    // A missing device is a failure, without a document.
    plumb(["check", "sdz9", "--from", &dump, "--json"])
        .ends(5)
        .complains("no `sdz9` in the input");
    for (found, words) in ran {
        found.ends(3).complains(words);
        let document = found.json();
        assert_eq!(document["schema"], "plumb.check/2");
        assert!(
            document["result"]["notes"][0]
                .as_str()
                .expect("a note")
                .contains(words),
            "{}",
            found.out
        );
        assert_eq!(
            document["result"]["stack"]["nodes"]
                .as_array()
                .map(Vec::len),
            Some(0)
        );
        assert_eq!(document["findings"].as_array().map(Vec::len), Some(0));
    }
}

/// A physical volume on all of an image, without a volume on it: a given grid decides about the position of its data.
#[test]
fn an_image_that_is_a_physical_volume() {
    require!(Loop, Tool("pvcreate"));
    let folder = tempfile::tempdir().expect("a directory");
    let image = folder.path().join("pv.img");
    File::create(&image)
        .and_then(|file| file.set_len(64 << 20))
        .expect("room for a sparse file");
    let device = LoopDevice::attach(&image, &[]);
    let lvm = "devices { use_devicesfile = 0 }";
    run(Command::new("pvcreate")
        .args(["-q", "-q", "--config", lvm, "--dataalignment", "1m"])
        .arg(device.path()));
    drop(device);
    check(folder.path(), "pv.img", "--grid 1m")
        .ends(0)
        .says("no finding");
    check(folder.path(), "pv.img", "--grid 2m")
        .ends(1)
        .says("starts 1 MiB (2,048 sectors) past a boundary");
    check(folder.path(), "pv.img", "").ends(3);
}

/// Slices of a Solaris label in a file: no command names them as if the file were a disk of Solaris.
#[test]
fn an_image_with_a_solaris_label_gets_no_commands() {
    require!(Tool("parted"));
    let folder = tempfile::tempdir().expect("a directory");
    // parted uses cylinders of 128 sectors for a file.
    shell(
        "truncate -s 64M sun.img; parted -s -a none sun.img mklabel sun unit s mkpart 128s 65535s",
        folder.path(),
    );
    let found = check(folder.path(), "sun.img", "--grid 128k");
    found
        .ends(1)
        .says("misaligned-partition")
        .says("Plumb prints no commands")
        .says("an image in a file");
    for words in ["rdsk", "format -e", "fmthard"] {
        assert!(!found.out.contains(words), "{words} in\n{}", found.out);
    }
}
