//! `plumb check` of the host that it runs on: on every host it answers, and never calls an invisible layer good.

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, plumb};
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::loop_device::run;

#[test]
fn this_host() {
    let ran = plumb(["check", "--json"]);
    assert!([0, 1, 3].contains(&ran.code), "{}: {}", ran.code, ran.err);
    let document = ran.json();
    for node in document["result"]["stack"]["nodes"]
        .as_array()
        .expect("nodes")
    {
        let assumed = node["verdicts"]
            .as_array()
            .expect("verdicts")
            .iter()
            .filter(|on| on["what"] == "assumed");
        for on in assumed {
            assert_ne!(on["verdict"], "aligned", "{node}");
        }
    }
}

#[test]
fn a_file_is_followed_down() {
    let folder = Folder::new("check-live");
    let file = folder.file("data", vec![b'x'; 200_000]);
    let ran = plumb(["check".as_ref(), file.as_os_str(), "--json".as_ref()]);
    assert!([0, 1, 3].contains(&ran.code), "{}: {}", ran.code, ran.err);
    let document = ran.json();
    let nodes = document["result"]["stack"]["nodes"]
        .as_array()
        .expect("nodes");
    let is_it =
        |node: &serde_json::Value| node["kind"] == "file" && node["name"].as_str() == file.to_str();
    assert!(nodes.iter().any(is_it), "{nodes:#?}");
}

#[test]
fn what_is_on_no_device() {
    plumb(["check", "/proc"])
        .ends(3)
        .complains("/proc is on a file system without a block device of this host");
    plumb(["check", "/dev/null"])
        .ends(3)
        .complains("/dev/null is no block device, directory or file");
    plumb(["check", "no-such-device"])
        .ends(3)
        .complains("no `no-such-device` in the input");
}

#[test]
fn files_that_are_no_disks() {
    plumb(["check", "no-such-file", "--image"])
        .ends(5)
        .complains("cannot read no-such-file as a disk");
    plumb(["check", "/proc/self/maps", "--image"])
        .ends(5)
        .complains("cannot read /proc/self/maps as a disk");
    let folder = Folder::new("check-image");
    let image = |path: &Path| plumb(["check".as_ref(), path.as_os_str(), "--image".as_ref()]);
    for (name, bytes, words) in [
        (
            "empty",
            Vec::new(),
            "empty is empty, expected a label, a file system or a virtual disk",
        ),
        (
            "zeros",
            vec![0; 1 << 20],
            "found nothing known in 1 MiB, expected a label, a file system or a virtual",
        ),
        ("ones", vec![0xff; 5000], "found nothing known in 5,000 B"),
    ] {
        image(&folder.file(name, bytes)).ends(3).complains(words);
    }
    // A pipe that nobody writes to.
    let pipe = folder.path("pipe");
    run(Command::new("mkfifo").arg(&pipe));
    image(&pipe)
        .ends(5)
        .complains("found a pipe, expected a file or a device");
    let ran = image(&folder.path(""));
    ran.ends(2)
        .complains("is a directory, expected a file to be read as a disk")
        .complains("without --image");
}

/// Another tree than that of this host, as large as hosts get.
#[test]
fn ten_thousand_devices() {
    plumb_testkit::require!(Patience);
    let folder = Folder::new("check-root");
    let root = folder.path("host");
    let mut host = FakeHost::new(&root);
    for number in 0..5_000 {
        let name = format!("sd{number}x");
        host.disk(&FakeDisk::named(&name));
        // One in a hundred begins at sector 63.
        host.partition(&name, 1, if number % 100 == 0 { 63 } else { 2048 }, 1 << 20);
    }
    let ran = plumb([
        "check".as_ref(),
        "-vv".as_ref(),
        "--root".as_ref(),
        root.as_os_str(),
    ]);
    ran.ends(1)
        .says("50 findings in 5,000 devices and 5,000 layers above");
    ran.says(
        "partition: 50 of 5,000 misaligned, 4,950 of 5,000 aligned on every grid that is known",
    );
    plumb(["check", "--root", "/nowhere"]).ends(5);
}
