//! `plumb check` of the host that it runs on: whatever that is, it answers, and says nothing good of what it cannot see.

mod common;

use common::{Folder, plumb};

#[test]
fn this_host() {
    let ran = plumb(["check", "--json"]);
    assert!([0, 1, 3].contains(&ran.code), "{}: {}", ran.code, ran.err);
    let document = ran.json();
    for node in document["result"]["stack"]["nodes"].as_array().expect("nodes") {
        let assumed =
            node["verdicts"].as_array().expect("verdicts").iter().filter(|on| on["what"] == "assumed");
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
    let nodes = document["result"]["stack"]["nodes"].as_array().expect("nodes");
    let is_it = |node: &serde_json::Value| node["kind"] == "file" && node["name"].as_str() == file.to_str();
    assert!(nodes.iter().any(is_it), "{nodes:#?}");
}

#[test]
fn what_is_on_no_device() {
    plumb(["check", "/proc"])
        .ends(3)
        .complains("/proc is on a file system without a block device of this host");
    plumb(["check", "/dev/null"]).ends(3).complains("/dev/null is no block device, directory or file");
    plumb(["check", "no-such-device"]).ends(3).complains("no `no-such-device` in what was read");
    plumb(["check", "/proc/self/maps", "--image"]).ends(3).complains("cannot read a file as a disk");
}
