//! Commands that a check prints are run unchanged, and the next check is clean.

use std::path::Path;
use std::process::Command;

use crate::common::plumb;
use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;
use serde_json::Value;

fn shell(script: &str, directory: &Path) {
    let done = Command::new("sh")
        .args(["-e", "-c", script])
        .current_dir(directory)
        .limited_output();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        done.status.success(),
        "{script}\n{}{}",
        said(&done.stdout),
        said(&done.stderr)
    );
}

fn findings_of<'a>(document: &'a Value, id: &str) -> Vec<&'a Value> {
    let findings = document["findings"].as_array().expect("findings");
    findings
        .iter()
        .filter(|finding| finding["rule"] == id)
        .collect()
}

/// Every start that is wrong on 4 KiB, on an image with a table of either kind.
#[test]
fn printed_commands_align_a_partition() {
    require!(Tool("sgdisk"), Tool("sfdisk"));
    let folder = tempfile::tempdir().expect("a directory");
    let image = folder.path().join("disk.img");
    let name = image.to_str().expect("a path");
    for (label, start) in [
        ("gpt", 34),
        ("gpt", 63),
        ("gpt", 2049),
        ("dos", 63),
        ("dos", 2047),
    ] {
        let make = match label {
            "gpt" => format!("sgdisk -a 1 -n 1:{start}:+32M -c 1:'my data' {name}"),
            _ => format!("echo 'start={start}, size=65536' | sfdisk -q --label dos {name}"),
        };
        shell(
            &format!("rm -f {name} && truncate -s 64M {name} && {make}"),
            folder.path(),
        );
        let found = plumb(["check", "--image", name, "--grid", "4k", "--json"]);
        found.ends(1);
        let document = found.json();
        let wrong = findings_of(&document, "misaligned-partition");
        assert_eq!(wrong.len(), 1, "{label} {start}: {}", found.out);
        let steps = wrong[0]["fix"].as_array().expect("steps");
        assert!(!steps.is_empty(), "{label} {start}: {}", found.out);
        let commands: Vec<&str> = steps
            .iter()
            .filter_map(|step| step["command"].as_str())
            .collect();
        shell(&commands.join("\n"), folder.path());
        let after = plumb(["check", "--image", name, "--grid", "4k", "--json"]);
        after.ends(0);
        if label == "gpt" {
            shell(
                &format!("sgdisk -i 1 {name} | grep -q \"^Partition name: 'my data'\""),
                folder.path(),
            );
        }
        assert!(
            findings_of(&after.json(), "misaligned-partition").is_empty(),
            "{}",
            after.out
        );
    }
}

/// One block of data, a file system or a neighbour that ends inside: the partition is not known to be empty, and a
/// command that destroys its data is not printed.
#[test]
fn a_partition_with_data_is_not_recreated() {
    require!(Tool("sgdisk"));
    let folder = tempfile::tempdir().expect("a directory");
    let image = folder.path().join("disk.img");
    let name = image.to_str().expect("a path");
    // Sector 34 is the first one of the partition, 65569 the last.
    for sector in [34, 40_000, 65_569] {
        shell(
            &format!(
                "rm -f {name}; truncate -s 64M {name}; sgdisk -a 1 -n 1:34:65569 {name}
                 printf x | dd of={name} bs=512 seek={sector} conv=notrunc"
            ),
            folder.path(),
        );
        let found = plumb(["check", "--image", name, "--grid", "4k", "--json"]);
        found.ends(1);
        let document = found.json();
        let wrong = findings_of(&document, "misaligned-partition");
        assert_eq!(wrong.len(), 1, "{sector}: {}", found.out);
        let steps = wrong[0]["fix"].as_array().expect("steps");
        assert!(steps.is_empty(), "{sector}: {steps:?}");
    }
}

/// A tool that changes one entry of a damaged label writes it all again: no command may be printed.
#[test]
fn a_damaged_label_is_repaired_before_its_partitions() {
    require!(Tool("sgdisk"), Tool("sfdisk"));
    let folder = tempfile::tempdir().expect("a directory");
    let gpt = "sgdisk -a 1 -n 1:2049:40007";
    let logical = "printf 'start=63, size=20000\nstart=20063, size=80000, type=5\nstart=20126, size=1000\n\
                   start=30063, size=1000\n' | sfdisk -q --label dos";
    for (name, make, damage, id) in [
        (
            "primary",
            gpt,
            "printf '\\0\\0\\0\\0' | dd of=$0 bs=1 seek=528 conv=notrunc",
            "broken-label",
        ),
        ("cut", gpt, "truncate -s 40M $0", "broken-label"),
        // The second EBR leads back to the first: its link is the second entry, with its start at byte 470.
        (
            "loop",
            logical,
            "at=$(od -An -tu4 -j$((20063*512+470)) -N4 $0); printf '\\5' | dd of=$0 bs=1 conv=notrunc \
             seek=$(((20063+at)*512+466)); printf '\\0\\0\\0\\0\\350\\3\\0\\0' | \
             dd of=$0 bs=1 conv=notrunc seek=$(((20063+at)*512+470))",
            "broken-label",
        ),
    ] {
        let image = folder.path().join(format!("{name}.img"));
        let image = image.to_str().expect("a path");
        let script = format!(
            "truncate -s 64M {image}; {make} {image}; {}",
            damage.replace("$0", image)
        );
        shell(&script, folder.path());
        let found = plumb(["check", "--image", image, "--grid", "4k", "--json"]);
        found.ends(1);
        let document = found.json();
        assert!(
            !findings_of(&document, id).is_empty(),
            "{name}: {}",
            found.out
        );
        let wrong = findings_of(&document, "misaligned-partition");
        assert!(!wrong.is_empty(), "{name}: {}", found.out);
        for finding in wrong {
            assert_eq!(
                finding["fix"].as_array().map_or(0, Vec::len),
                0,
                "{name}: {finding:#}"
            );
            let why = format!("repair the label of {image} first ({id})");
            let advice = serde_json::json!([{"kind": "no-plan", "why": why}]);
            assert_eq!(finding["advice"], advice, "{name}: {finding:#}");
        }
        if name == "loop" {
            // A label without a second copy; the words of the finding depend on it.
            let source = &findings_of(&document, id)[0]["facts"]["source"];
            assert_eq!(source["format"], "MBR");
        }
    }
}
