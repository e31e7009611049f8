//! Images of disks: unknown ones are never called aligned, and their faults are findings.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use plumb_testkit::wait::RunLimited;
use serde_json::json;

use crate::common::{Ran, node, paragraph, plumb, recorded};
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
    let unknown = ["raw", "vhdx"].map(|name| {
        let found = check(folder, name, "");
        recorded(paragraph(&found.ends(3).out, "Unknown"))
    });
    let noted = check(folder, "vhdx", "--grid 4k");
    let note = recorded(paragraph(&noted.ends(0).out, "NOTE"));
    insta::assert_snapshot!([unknown.join("\n\n"), note].join("\n\n"));
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
    // A missing device is a failure, without a document.
    let missing = plumb(["check", "sdz9", "--from", &dump, "--json"]);
    let mut messages = vec![missing.ends(5).complaint()];
    for name in ["nothing", "empty"] {
        let found = check(folder, name, "--json");
        let message = found.ends(3).complaint();
        let document = found.json();
        assert_eq!(document["schema"], "plumb.check/2");
        let note = document["result"]["notes"][0].as_str().expect("a note");
        messages.extend([message, recorded(note)]);
        assert_eq!(
            document["result"]["stack"]["nodes"]
                .as_array()
                .map(Vec::len),
            Some(0)
        );
        assert_eq!(document["findings"].as_array().map(Vec::len), Some(0));
    }
    insta::assert_snapshot!(messages.join("\n\n"));
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
    let off = check(folder.path(), "pv.img", "--grid 2m");
    insta::assert_snapshot!(recorded(paragraph(&off.ends(1).out, "MISFIT")));
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
    insta::assert_snapshot!(recorded(paragraph(&found.ends(1).out, "WARNING")));
    for words in ["rdsk", "format -e", "fmthard"] {
        assert!(!found.out.contains(words), "{words} in\n{}", found.out);
    }
}
