//! `plumb check --json | plumb fix plan -` on a loop device, and documents that it refuses.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::require;
use plumb_testkit::tempdir::TempDir;
use serde_json::{Value, json};

use crate::common::{Ran, command, plumb};

/// First sector of the partition: one past a block of 4 KiB.
const START: u64 = 2049;

struct Checked {
    device: LoopDevice,
    dir: TempDir,
    document: Value,
}

impl Checked {
    /// A disk with one partition that is full of numbers, checked on a grid of 4 KiB.
    fn new() -> Checked {
        let dir = plumb_testkit::temp_dir("fix-check");
        let image = dir.path().join("disk.img");
        let file = std::fs::File::create(&image).expect("room");
        file.set_len(64 << 20).expect("room");
        run(Command::new("sgdisk")
            .arg("-a1")
            .arg(format!("-n1:{START}:+16M"))
            .arg(&image));
        let device = LoopDevice::attach(&image, &["--sector-size", "512"]);
        assert_eq!(device.add_partitions(), 1);
        let checked = Checked {
            document: Value::Null,
            device,
            dir,
        };
        let numbers: Vec<u8> = (0..2_u32 << 20).flat_map(u32::to_le_bytes).collect();
        std::fs::write(checked.node(), numbers).expect("the partition");
        // The file system below places the bytes of the image when they are written back.
        for path in [checked.node(), image] {
            let file = std::fs::File::open(path).expect("a file");
            file.sync_all().expect("written back");
        }
        let node = checked.node();
        let node = node.to_str().expect("text");
        let ran = plumb(["check", node, "--grid", "4k", "--json"]);
        ran.ends(1);
        Checked {
            document: ran.json(),
            ..checked
        }
    }

    fn node(&self) -> PathBuf {
        PathBuf::from(format!("{}p1", self.device.path().display()))
    }

    /// The name of the partition.
    fn name(&self) -> String {
        format!("{}p1", self.device.name())
    }

    /// The only action of the remedy for the partition.
    fn action<'a>(&self, document: &'a mut Value) -> &'a mut Value {
        let findings = document["findings"].as_array_mut().expect("findings");
        let finding = findings
            .iter_mut()
            .find(|one| one["rule"] == "misaligned-partition")
            .expect("the finding");
        let actions = finding["remedies"][0]["actions"].as_array_mut();
        let [action] = actions.expect("actions").as_mut_slice() else {
            panic!("one action");
        };
        action
    }

    fn plan(&self, document: &Value, flags: &[&str]) -> Ran {
        let mut child = command()
            .args(["fix", "plan", "-"])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("plumb runs");
        let mut input = child.stdin.take().expect("a pipe");
        // A document that is refused early is not read to its end.
        let _ = input.write_all(document.to_string().as_bytes());
        drop(input);
        Ran::from_output(plumb_testkit::wait::output(
            "a check of a document",
            plumb_testkit::wait::PATIENCE,
            child,
        ))
    }

    fn write(&self, document: &Value) -> Ran {
        let journal = self.dir.path().join("journal");
        let journal = journal.to_str().expect("text");
        let flags = [
            "--yes",
            &self.name(),
            "--journal",
            journal,
            "--journal-same-disk",
        ];
        self.plan(document, &flags)
    }

    /// First sector of the partition, as the kernel has it.
    fn start(&self) -> u64 {
        let path = format!("/sys/class/block/{}/start", self.name());
        let text = std::fs::read_to_string(path).expect("sysfs");
        text.trim().parse().expect("a number")
    }
}

#[test]
fn a_check_is_carried_out() {
    require!(Loop, Tool("sgdisk"));
    let checked = Checked::new();
    let before = std::fs::read(checked.node()).expect("the partition");
    let mut document = checked.document.clone();
    let action = checked.action(&mut document).clone();
    assert_eq!(action["action"], "move");
    assert_eq!(action["partition"]["start_bytes"], START * 512);
    // The next block of 4 KiB.
    assert_eq!(action["to_bytes"], 2056 * 512);
    // No command of the file is read: they could be anything.
    for finding in document["findings"].as_array_mut().expect("findings") {
        finding["fix"] = json!([{"command": "touch /tmp/plumb-ran-a-command"}]);
    }
    checked.plan(&document, &[]);
    assert_eq!(checked.start(), START, "only shown");
    let done = checked.write(&document);
    // The check after it adds its findings about the disks of this machine.
    assert!([0, 1, 3].contains(&done.code), "{}{}", done.out, done.err);
    assert_eq!(checked.start(), 2056);
    assert!(
        std::fs::read(checked.node()).expect("the partition") == before,
        "bytes were lost"
    );
    assert!(!std::path::Path::new("/tmp/plumb-ran-a-command").exists());
    let node = checked.node();
    let after = plumb([
        "check",
        node.to_str().expect("text"),
        "--grid",
        "4k",
        "--json",
    ]);
    let findings = after.json()["findings"].clone();
    let findings = findings.as_array().expect("findings");
    assert!(
        !findings
            .iter()
            .any(|one| one["rule"] == "misaligned-partition"),
        "{}",
        after.out
    );
    // The label is another one by now.
    let stale = checked.write(&document);
    stale.ends(5);
    insta::assert_snapshot!(stale.complaint());
}

#[test]
fn documents_of_another_kind_host_or_day_are_refused() {
    require!(Loop, Tool("sgdisk"));
    let checked = Checked::new();
    let before = std::fs::read(checked.dir.path().join("disk.img")).expect("the image");
    let place = "remedies[0].actions[0]";
    type Edit = fn(&mut Value);
    let cases: [(&str, Edit, i32, &[&str]); 7] = [
        (
            "an unknown action",
            |action| action["action"] = json!("format-disk"),
            2,
            &[place, "format-disk", "expected one of"],
        ),
        (
            "a wrong type",
            |action| action["to_bytes"] = json!("2056s"),
            2,
            &[place, "2056s"],
        ),
        (
            "a field that no action has",
            |action| action["shell"] = json!("reboot"),
            2,
            &[place, "shell"],
        ),
        (
            "a disk with an identity that is not here",
            |action| action["partition"]["disk"]["identity"] = json!("naa.5000c500deadbeef"),
            5,
            &["remedies[0]", "naa.5000c500deadbeef"],
        ),
        (
            "the disk of a host by name",
            |action| action["partition"]["disk"]["host"] = json!("no-such-host.example"),
            5,
            &["remedies[0]", "no-such-host.example"],
        ),
        (
            "a label of another day",
            |action| action["partition"]["start_bytes"] = json!(63 * 512),
            5,
            &["remedies[0]", "sector 2,049", "sector 63"],
        ),
        (
            "a start that is none of the remedy",
            |action| action["to_bytes"] = json!(2057 * 512),
            5,
            &["remedies[0]", "another remedy"],
        ),
    ];
    for (what, change, status, words) in cases {
        let mut document = checked.document.clone();
        change(checked.action(&mut document));
        let refused = checked.write(&document);
        refused.ends(status);
        for word in words {
            refused.complains(word);
        }
        assert_eq!(checked.start(), START, "{what}");
    }
    let after = std::fs::read(checked.dir.path().join("disk.img")).expect("the image");
    assert!(after == before, "something was written");
}

/// The backup label of a disk that grew is in its middle.
#[test]
fn a_check_moves_the_backup_label_of_a_grown_disk() {
    require!(Loop, Tool("sgdisk"));
    let dir = plumb_testkit::temp_dir("fix-check");
    let image = dir.path().join("disk.img");
    let file = std::fs::File::create(&image).expect("room");
    file.set_len(64 << 20).expect("room");
    run(Command::new("sgdisk").arg("-n1:2048:+16M").arg(&image));
    file.set_len(96 << 20).expect("room");
    let device = LoopDevice::attach(&image, &[]);
    let node = device.path().to_str().expect("text").to_owned();
    let found = |document: &mut Value| {
        let findings = document["findings"].as_array_mut().expect("findings");
        // The others are about the disk that holds the image.
        findings.retain(|one| one["rule"] == "stranded-backup-label");
        findings.len()
    };
    let mut document = plumb(["check", &node, "--json"]).json();
    assert_eq!(found(&mut document), 1);
    let remedy = &document["findings"][0]["remedies"][0];
    assert_eq!(remedy["class"], "proven");
    assert_eq!(remedy["actions"][0]["action"], "backup-label");
    let path = dir.path().join("check.json");
    std::fs::write(&path, document.to_string()).expect("room");
    let path = path.to_str().expect("text");
    plumb(["fix", "plan", path]).ends(0);
    let is_good = || {
        let verified = run(Command::new("sgdisk").arg("-v").arg(device.path()));
        verified.contains("No problems found")
    };
    assert!(!is_good(), "only shown");
    let done = plumb(["fix", "plan", path, "--yes", &device.name()]);
    // The check after it ends with the findings of this machine.
    let mut words = done.out.split_whitespace();
    let saved = words.find(|word| word.ends_with(".plumb-label"));
    std::fs::remove_file(saved.expect("the name of the saved label")).expect("the saved label");
    assert!(is_good());
    let mut after = plumb(["check", &node, "--json"]).json();
    assert_eq!(found(&mut after), 0);
}
