//! Commands that a check prints are run as they stand, and the next check is clean.

mod common;

use std::path::Path;
use std::process::Command;

use common::plumb;
use plumb_testkit::require;
use serde_json::Value;

fn shell(script: &str, directory: &Path) {
    let done =
        Command::new("sh").args(["-e", "-c", script]).current_dir(directory).output().expect("a shell");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{script}\n{}{}", said(&done.stdout), said(&done.stderr));
}

fn of<'a>(document: &'a Value, id: &str) -> Vec<&'a Value> {
    let findings = document["findings"].as_array().expect("findings");
    findings.iter().filter(|finding| finding["id"] == id).collect()
}

/// Every start that is wrong on 4 KiB, on an image with a table of either kind.
#[test]
fn a_partition_is_put_right_by_what_is_printed() {
    require!(Tool("sgdisk"), Tool("sfdisk"));
    let folder = tempfile::tempdir().expect("a directory");
    let image = folder.path().join("disk.img");
    let name = image.to_str().expect("a path");
    for (label, start) in [("gpt", 34), ("gpt", 63), ("gpt", 2049), ("dos", 63), ("dos", 2047)] {
        let make = match label {
            "gpt" => format!("sgdisk -a 1 -n 1:{start}:+32M -c 1:'my data' {name}"),
            _ => format!("echo 'start={start}, size=65536' | sfdisk -q --label dos {name}"),
        };
        shell(&format!("rm -f {name} && truncate -s 64M {name} && {make}"), folder.path());
        let found = plumb(["check", "--image", name, "--grid", "4k", "--json"]);
        found.ends(1);
        let document = found.json();
        let wrong = of(&document, "misaligned-partition");
        assert_eq!(wrong.len(), 1, "{label} {start}: {}", found.out);
        let steps = wrong[0]["fix"].as_array().expect("steps");
        assert!(!steps.is_empty(), "{label} {start}: {}", found.out);
        let changing =
            steps.iter().find(|step| !step["risk"].as_str().expect("a risk").starts_with("none: "));
        let risk = changing.expect("a step that changes something")["risk"].as_str().expect("a risk");
        assert!(risk.contains("data there are not taken along"), "{risk}");
        let commands: Vec<&str> = steps.iter().filter_map(|step| step["command"].as_str()).collect();
        shell(&commands.join("\n"), folder.path());
        let after = plumb(["check", "--image", name, "--grid", "4k", "--json"]);
        after.ends(0);
        if label == "gpt" {
            shell(&format!("sgdisk -i 1 {name} | grep -q \"^Partition name: 'my data'\""), folder.path());
        }
        assert!(of(&after.json(), "misaligned-partition").is_empty(), "{}", after.out);
    }
}
