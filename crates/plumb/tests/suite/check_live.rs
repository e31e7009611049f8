//! `plumb check` of the host that it runs on: on every host it answers, and never calls an invisible layer good.

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, Ran, copy_program, paragraph, plumb, recorded, recorded_lines};
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::require;

/// The paragraphs of a screen above those of the layers.
fn findings(ran: &Ran) -> String {
    let screen = ran.screen();
    let findings = screen.split("\n\nSummary").next();
    findings.unwrap_or_default().to_owned()
}

/// The heading of a finding.
const WARNING: &str = "WARNING  misaligned-partition";

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
fn files_without_a_device_are_refused() {
    let refused = ["/proc", "/dev/null"];
    let messages = refused.map(|target| plumb(["check", target]).ends(3).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
    // The names of the devices of this host follow.
    plumb(["check", "no-such-device"])
        .ends(5)
        .complains("no `no-such-device` in the input");
}

#[test]
fn files_that_are_no_disks() {
    let mut messages = ["no-such-file", "/proc/self/maps"]
        .map(|name| {
            let complaint = plumb(["check", name, "--image"]).ends(5).complaint();
            // The error is that of the kernel.
            let (what, _) = complaint.split_once(" because: ").expect("an error");
            what.to_owned()
        })
        .to_vec();
    let folder = Folder::new("check-image");
    let image = |path: &Path| plumb(["check".as_ref(), path.as_os_str(), "--image".as_ref()]);
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("zeros", vec![0; 1 << 20]),
        ("ones", vec![0xff; 5000]),
    ] {
        let ran = image(&folder.file(name, bytes));
        messages.push(ran.ends(3).complaint());
    }
    // A pipe that nobody writes to.
    let pipe = folder.path("pipe");
    run(Command::new("mkfifo").arg(&pipe));
    messages.push(image(&pipe).ends(5).complaint());
    messages.push(image(&folder.path("")).ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
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
    let counts = recorded_lines(&ran.ends(1).out, &[" layers above"]);
    let summary = recorded(paragraph(&ran.out, "Summary"));
    insta::assert_snapshot!([counts, summary].join("\n\n"));
    plumb(["check", "--root", "/nowhere"]).ends(5);
}

/// Disks with partitions at sector 34: all misfit alike.
fn many(folder: &Folder, names: &[&str]) -> std::path::PathBuf {
    let root = folder.path("host");
    let mut host = FakeHost::new(&root);
    for name in names {
        host.disk(&FakeDisk::named(name));
        host.partition(name, 1, 34, 1 << 20);
    }
    root
}

/// The command beside a shortened list shows the rest.
#[test]
fn findings_that_are_left_out_are_shown_by_a_command() {
    let folder = Folder::new("check-many");
    let root = many(&folder, &["sda", "sdb", "sdc", "sdd", "sde"]);
    let path = root.to_str().expect("a plain path");
    let ran = plumb(["check", "--root", path, "-v"]);
    let all = plumb(["check", "--root", path, "-vv"]);
    assert_eq!(all.out.matches(WARNING).count(), 5, "{}", all.out);
    let last = all.out.rfind(WARNING).expect("the last one");
    let last = paragraph(&all.out[last..], WARNING);
    let causes = recorded_lines(&all.said(), &["Equal misfits", "The same "]);
    insta::assert_snapshot!([ran.ends(1).screen(), recorded(last), causes].join("\n\n"));
}

/// Equal misfits are one block with their likely cause, and unequal ones are apart.
#[test]
fn equal_misfits_are_one_block() {
    let folder = Folder::new("check-equal");
    let root = folder.path("host");
    let mut host = FakeHost::new(&root);
    for (name, start) in [("sda", 34), ("sdb", 63), ("sdc", 34), ("sdd", 63)] {
        host.disk(&FakeDisk::named(name));
        host.partition(name, 1, start, 1 << 20);
    }
    let path = root.to_str().expect("a plain path");
    let screens = [&[][..], &["-v"]].map(|detail| {
        let ran = plumb(["check", "--root", path].iter().chain(detail));
        assert_eq!(ran.out.matches(WARNING).count(), 2, "{}", ran.out);
        findings(ran.ends(1))
    });
    insta::assert_snapshot!(screens.join("\n\n"));
}

/// More unequal misfits of one rule than `-v` prints in full are named, with the command that shows them.
#[test]
fn unequal_misfits_are_named_where_they_are_many() {
    let folder = Folder::new("check-unequal");
    let root = folder.path("host");
    let mut host = FakeHost::new(&root);
    for (name, start) in [
        ("sda", 34),
        ("sdb", 35),
        ("sdc", 36),
        ("sdd", 37),
        ("sde", 38),
    ] {
        host.disk(&FakeDisk::named(name));
        host.partition(name, 1, start, 1 << 20);
    }
    let path = root.to_str().expect("a plain path");
    let detailed = plumb(["check", "--root", path, "-v"]);
    let short = plumb(["check", "--root", path]);
    let screens = [detailed, short].map(|ran| findings(ran.ends(1)));
    insta::assert_snapshot!(screens.join("\n\n"));
}

#[test]
fn devices_are_listed_as_people_count() {
    let folder = Folder::new("check-natural");
    let root = many(&folder, &["nvme10n1", "nvme2n1", "nvme1n1"]);
    let path = root.to_str().expect("a plain path");
    let ran = plumb(["check", "--root", path]);
    insta::assert_snapshot!(ran.ends(1).screen());
    let document = plumb(["check", "--root", path, "--json"]).json();
    let findings = document["findings"].as_array().expect("findings");
    let devices: Vec<&str> = findings
        .iter()
        .filter_map(|one| one["target"]["device"].as_str())
        .collect();
    assert_eq!(devices, ["nvme1n1p1", "nvme2n1p1", "nvme10n1p1"]);
}

/// Root is not sent to root, and others are.
#[test]
fn advice_to_be_root_is_for_others() {
    plumb_testkit::require!(Root, Tool("setpriv"));
    let folder = Folder::new("check-root");
    let program = folder.path("plumb");
    copy_program(&program);
    run(Command::new("chmod")
        .args(["755"])
        .arg(folder.path(""))
        .arg(&program));
    let check = |user: &str| {
        let mut command = Command::new("setpriv");
        command.args([
            &format!("--reuid={user}"),
            "--regid=65534",
            "--clear-groups",
        ]);
        let done = command.arg(&program).args(["check", "-vv"]).output();
        String::from_utf8(done.expect("it runs").stdout).expect("text")
    };
    let (own, other) = (check("0"), check("65534"));
    assert!(!own.contains("run Plumb as root"), "{own}");
    let flat = other.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("run Plumb as root, or as a member of the group disk"),
        "{other}"
    );
}

/// A warning on a unit that is only assumed names the measurement that confirms it.
#[test]
fn low_confidence_comes_with_a_measurement() {
    let folder = Folder::new("check-low");
    let root = folder.path("host");
    let mut host = FakeHost::new(&root);
    host.disk(&FakeDisk {
        physical: 512,
        minimum_io: 512,
        ..FakeDisk::named("sdx")
    });
    host.partition("sdx", 1, 34, 1 << 20);
    let root = root.to_str().expect("a plain path");
    let document = plumb(["check", "--root", root, "--json"]).json();
    let finding = &document["findings"][0];
    assert_eq!(finding["rule"], "misaligned-partition");
    assert_eq!(finding["severity"], "warning");
    assert_eq!(finding["confidence"], "low");
    assert_eq!(finding["confirm"], "plumb probe /dev/sdx");
    insta::assert_snapshot!(plumb(["check", "--root", root]).ends(1).screen());
}

/// An image may be for any disk, so the measurement is of that one, also if no command can hold the name of the image.
#[test]
fn low_confidence_of_an_image() {
    require!(Tool("sfdisk"));
    let folder = Folder::new("check-low-image");
    let screens = ["disk.img", "a\nb.img"].map(|name| {
        let image = folder.file(name, vec![0; 2 << 20]);
        let mut sfdisk = Command::new("sfdisk");
        sfdisk.args(["-q", "-X", "dos"]).arg(&image);
        let script = folder.file("script", "34,1000,L\n");
        run(sfdisk.stdin(std::fs::File::open(script).expect("the script")));
        let ran = plumb(["check".as_ref(), image.as_os_str(), "--image".as_ref()]);
        ran.ends(1).screen()
    });
    insta::assert_snapshot!(screens.join("\n\n"));
}

/// The measurement comes before the preview of a fix. Memory states no block.
#[test]
fn low_confidence_with_a_fix_comes_with_a_measurement() {
    require!(Loop, Root, Tool("sfdisk"), Tool("partx"));
    let folder = Folder::new("check-low-fix");
    let place = folder.path("memory");
    std::fs::create_dir(&place).expect("a folder");
    let _mounted = Mounted::tmpfs(64 << 20, &place);
    let image = place.join("disk");
    std::fs::write(&image, vec![1; 20 << 20]).expect("20 MiB of memory");
    let image = image.to_str().expect("a plain path");
    let script = format!("echo 34,8000,L | sfdisk -q -X dos {image}");
    run(Command::new("sh").args(["-c", &script]));
    let disk = LoopDevice::attach(Path::new(image), &[]);
    disk.add_partitions();
    let path = disk.path().display().to_string();
    let ran = plumb(["check", "--ignore", "queue-setting", &path]);
    insta::assert_snapshot!(recorded(paragraph(&ran.ends(1).out, WARNING)));
}

/// A block that the disk states needs no confirmation.
#[test]
fn high_confidence_needs_no_measurement() {
    let folder = Folder::new("check-high");
    let root = many(&folder, &["sda"]);
    let path = root.to_str().expect("a plain path");
    let document = plumb(["check", "--root", path, "--json"]).json();
    assert_eq!(document["findings"][0]["confidence"], "high");
    assert_eq!(document["findings"][0].get("confirm"), None);
}

/// Only the target and the layers below and above it count; other devices are one line.
#[test]
fn only_the_target_counts() {
    let folder = Folder::new("check-target");
    let root = folder.path("host");
    let mut host = FakeHost::new(&root);
    for (disk, start) in [("sda", 2048), ("sdb", 34)] {
        host.disk(&FakeDisk::named(disk));
        host.partition(disk, 1, start, 1 << 20);
    }
    let path = root.to_str().expect("a plain path");
    let check = |target: &str| plumb(["check", "--root", path, target]);
    let screens = [("sda", 0), ("sdb", 1)].map(|(target, code)| check(target).ends(code).screen());
    insta::assert_snapshot!(screens.join("\n\n"));
    let document = plumb(["check", "--root", path, "sda", "--json"]).json();
    assert_eq!(document["result"]["elsewhere"]["warnings"], 1);
    assert_eq!(document["verdict"]["word"], "OK");
}

/// A chunk with a bad sector is read piece by piece, and a disk that answers no read is left alone after a few.
#[test]
fn disks_that_cannot_be_read() {
    require!(Loop, Tool("sfdisk"));
    let folder = Folder::new("unreadable");
    let image = folder.file("disk", vec![0; 64 << 20]);
    let label = folder.file("label", "label: dos\nstart=34, size=100000, type=83\n");
    run(Command::new("sfdisk")
        .arg("--quiet")
        .arg(&image)
        .stdin(std::fs::File::open(label).expect("the label")));
    let disk = LoopDevice::attach(&image, &[]);
    let file = std::fs::OpenOptions::new().write(true).open(&image);
    let file = file.expect("the image");
    let stat = Path::new("/sys/block").join(disk.name()).join("stat");
    let reads = || -> u64 {
        let text = std::fs::read_to_string(&stat).expect("counters of a disk");
        let first = text.split_ascii_whitespace().next().expect("counters");
        first.parse().expect("a number")
    };
    let check = || {
        let before = reads();
        let ran = plumb(["check", "--json", &disk.name()]);
        (ran.json(), reads() - before)
    };
    // Notes on this disk.
    let notes = |document: &serde_json::Value| -> String {
        let all = document["result"]["notes"].as_array().expect("notes");
        let words = all.iter().filter_map(serde_json::Value::as_str);
        let own = words.filter(|note| note.starts_with(&disk.name()));
        own.collect::<Vec<_>>().join("\n")
    };
    // The label is in the first 4 KiB; nothing behind 40 KiB can be read.
    file.set_len(40 << 10).expect("a shorter file");
    let (document, _) = check();
    let nodes = document["result"]["stack"]["nodes"].as_array();
    let node = nodes
        .expect("nodes")
        .iter()
        .find(|node| node["name"] == disk.name());
    assert_eq!(node.expect("the disk")["facts"]["label"]["value"], "dos");
    assert!(!notes(&document).contains("byte 0 "), "{document}");

    file.set_len(0).expect("an empty file");
    run(Command::new("blockdev").arg("--flushbufs").arg(disk.path()));
    let (document, few) = check();
    let words = "byte 0 cannot be read: Input/output error (os error 5)";
    assert!(notes(&document).contains(words), "{document}");
    // Plumb stops after 16 reads; the kernel may try each of them twice. Without the limit it reads 90 times and more.
    assert!(few <= 40, "{few} reads");
}
