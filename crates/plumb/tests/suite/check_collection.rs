//! Collections: a check of one has the same result as on the host itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::collection::{FORM, FORM_OF_FILES, Lab, NO_ANSWERS, NO_DEVICES, table};
use crate::common::plumb;
use plumb_testkit::fake_sysfs::FakeDisk;
use plumb_testkit::require;
use serde_json::Value;

const MIB: u64 = 1 << 20;

fn run(program: &str, args: &[&str]) -> String {
    let done = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .output()
        .expect(program);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{program} {args:?}: {said}");
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Loop devices on sparse files, detached at the end.
struct Loops {
    lab: Lab,
    devices: Vec<String>,
}

impl Loops {
    fn new() -> Loops {
        Loops {
            lab: Lab::new(),
            devices: Vec::new(),
        }
    }

    fn attach(&mut self, name: &str, len: u64, prepare: impl Fn(&str)) -> String {
        let path = self.lab.path(name);
        std::fs::File::create(&path)
            .and_then(|file| file.set_len(len))
            .expect("a sparse file");
        let path = path.display().to_string();
        prepare(&path);
        let device = run("losetup", &["-f", "--show", &path]);
        self.devices.push(device.clone());
        device
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for device in &self.devices {
            // Most have no partitions.
            let _ = Command::new("partx").args(["-d", device]).output();
            let _ = Command::new("losetup").args(["-d", device]).status();
        }
    }
}

/// Overwrites the primary header of a GPT.
fn break_primary(path: &str) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("an image");
    file.write_all_at(&[0xa5; 92], 512)
        .expect("bytes in an image");
}

fn parts(document: &Value) -> [Value; 2] {
    ["findings", "result"].map(|part| document[part].clone())
}

/// The results of the host before and after its collection, and of its collection; again if other programs of the
/// machine changed its devices in the meantime.
fn live_and_collected(to: &Path) -> ([Value; 2], [Value; 2]) {
    for _ in 0..10 {
        let live = || parts(&plumb(["check", "--json", "--fail-on", "none"]).json());
        let before = live();
        if to.exists() {
            std::fs::remove_file(to).expect("it is gone");
        }
        let args = ["check".as_ref(), "--collect".as_ref(), to.as_os_str()];
        plumb(args).ends(0).says("no content of files and no keys");
        let after = live();
        let args = [
            "check",
            "--json",
            "--fail-on",
            "none",
            "--from",
            to.to_str().expect("a path"),
        ];
        let collected = parts(&plumb(args).json());
        if before == after {
            return (after, collected);
        }
    }
    panic!("the devices of this machine never stay the same");
}

#[test]
fn a_collection_gives_the_findings_of_its_host() {
    require!(
        Loop,
        Tool("partx"),
        Tool("sgdisk"),
        Tool("mkfs.ext4"),
        Tool("mkfs.xfs"),
        Tool("mkswap"),
        Tool("cryptsetup"),
        Tool("pvcreate")
    );
    let mut loops = Loops::new();
    let disk = loops.attach("gpt.img", 512 * MIB, |path| {
        run(
            "sgdisk",
            &["-a", "1", "-n", "1:2048:+64M", "-n", "2:200001:+320M", path],
        );
    });
    run("partx", &["-a", &disk]);
    run("mkfs.ext4", &["-q", "-F", &format!("{disk}p1")]);
    run("mkfs.xfs", &["-q", "-f", &format!("{disk}p2")]);
    break_primary(&disk);
    let secret = loops.lab.path("secret");
    std::fs::write(&secret, "a secret of this test").expect("a key");
    let secret = secret.display().to_string();
    let quick = [
        "luksFormat",
        "-q",
        "--type=luks1",
        "--pbkdf-force-iterations=1000",
        "--key-file",
    ];
    let luks = loops.attach("luks.img", 64 * MIB, |path| {
        run("cryptsetup", &[&quick[..], &[&secret, path]].concat());
    });
    let quick2 = [
        "luksFormat",
        "-q",
        "--type=luks2",
        "--pbkdf=pbkdf2",
        "--pbkdf-force-iterations=1000",
        "--key-file",
    ];
    loops.attach("luks2.img", 64 * MIB, |path| {
        run("cryptsetup", &[&quick2[..], &[&secret, path]].concat());
    });
    loops.attach("swap.img", 64 * MIB, |path| {
        run("mkswap", &["-q", path]);
    });
    // No reader recognizes it: private content.
    loops.attach("data.img", 8 * MIB, |path| {
        std::fs::write(path, b"content of somebody ".repeat(400_000)).expect("an image");
    });
    let pv = loops.attach("pv.img", 64 * MIB, |_| {});
    let lvm = "devices { use_devicesfile = 0 }";
    run("pvcreate", &["-q", "-q", "--config", lvm, &pv]);
    let to = loops.lab.path("host.tar.zst");
    let (live, collected) = live_and_collected(&to);
    assert_eq!(live[0], collected[0], "findings");
    assert_eq!(live[1], collected[1], "result");
    let nodes = live[1]["stack"]["nodes"].to_string();
    for words in [
        "LUKS on loop",
        "swap on loop",
        "\"LVM2 PV\"",
        "\"gpt\"",
        "gpt.img",
        "ext4 on loop",
        "xfs on loop",
    ] {
        assert!(nodes.contains(words), "{words} is part of this");
    }
    assert!(
        live[0].to_string().contains("broken-label"),
        "the primary label is broken"
    );
    assert!(
        nodes.matches("LUKS on loop").count() >= 2,
        "both versions of LUKS are recognized"
    );
    assert!(
        nodes.contains("\"extents of "),
        "loop devices are followed into their files"
    );
    let without = unpacked(&to);
    assert!(
        !without
            .windows(20)
            .any(|bytes| bytes == b"content of somebody "),
        "no content goes along"
    );
    // Key slots of LUKS 1 begin behind the header, at 4096 at the earliest (its on-disk format, 2.2).
    let name = luks.trim_start_matches("/dev/");
    let whole = std::fs::read(loops.lab.path("luks.img")).expect("the image");
    let slot = whole[4096..4096 + 64].to_vec();
    assert!(
        slot.iter().any(|byte| *byte != 0),
        "the first slot of {name} is in use"
    );
    let must_stay = |bytes: &[u8], name: &str| {
        let found = without.windows(bytes.len()).any(|window| window == bytes);
        assert!(!found, "{name} of LUKS stays out");
    };
    must_stay(&slot, "key material");
    // The digest of the master key and its salt, and the salt of the first slot (its on-disk format, 2.1 and 2.2).
    for (at, len, name) in [
        (112, 20, "the digest"),
        (132, 32, "its salt"),
        (216, 32, "a slot's salt"),
    ] {
        must_stay(&whole[at..at + len], name);
    }
    let dump = ["luksDump", "--dump-json-metadata"];
    let path = loops.lab.path("luks2.img").display().to_string();
    let header = run("cryptsetup", &[&dump[..], &[&path]].concat());
    let header: Value = serde_json::from_str(&header).expect("JSON");
    for (part, field) in [("digests", "salt"), ("digests", "digest")] {
        let text = header[part]["0"][field].as_str().expect("a text");
        must_stay(text.as_bytes(), field);
    }
    let salt = header["keyslots"]["0"]["kdf"]["salt"].as_str();
    must_stay(salt.expect("a text").as_bytes(), "a slot's salt");
    // The salt of the binary header (LUKS2 on-disk format, 2.1).
    let whole = std::fs::read(&path).expect("the image");
    must_stay(&whole[104..104 + 64], "the header's salt");
}

/// The bytes of the archive without its frame.
fn unpacked(path: &Path) -> Vec<u8> {
    zstd::decode_all(&std::fs::read(path).expect("a file")[..]).expect("a frame")
}

#[test]
fn the_first_form_is_still_read() {
    let lab = Lab::new();
    let mut host = lab.host("old");
    host.disk(&FakeDisk::named("sda"));
    host.partition("sda", 1, 2049, 1 << 30);
    host.mapped(
        "dm-0",
        "vg-guest1",
        "LVM-u3BhU2dfVh6tcXcPyO9ZKfpBmVyCGRnH",
        1 << 22,
        &["sda1"],
    );
    let below = host.number("sda1");
    let dump = format!("vg-guest1: 0 {} linear {below} 2048\n", 1 << 22);
    let old = lab.pack(
        &host,
        "old",
        FORM_OF_FILES,
        &[("dumps/dmsetup-table", &dump)],
    );
    let ran = plumb(["check", "-vv", "--from", old.to_str().expect("a path")]);
    insta::assert_snapshot!(ran.ends(1).screen());
}

#[test]
fn damage_is_reported_with_its_position() {
    let lab = Lab::new();
    let mut host = lab.host("kvm3");
    host.disk(&FakeDisk::named("sda"));
    host.partition("sda", 1, 2048, 1 << 30);
    host.mapped(
        "dm-0",
        "vg-guest1",
        "LVM-u3BhU2dfVh6tcXcPyO9ZKfpBmVyCGRnH",
        1 << 22,
        &["sda1"],
    );
    let answers = (NO_ANSWERS.0, table(&host, 1 << 22));
    let answers = (answers.0, answers.1.as_str());
    let device = |folder: &str, rest: &str| {
        format!(
            "{{\"devices\": [{{\"name\": \"sda\", \"folder\": \"{folder}\", \"size_bytes\": 4096, \"read\": [[0, 4096]], \
             \"failed\": [], \"refused\": null{rest}}}], \"images\": []}}"
        )
    };
    let good = device("0-sda", "");
    let cases: [&[(&str, &str)]; 9] = [
        &[NO_DEVICES],
        &[answers],
        &[("answers.json", "{\"tables\": 3}"), NO_DEVICES],
        &[answers, ("devices.json", "{\"devices\": [")],
        &[answers, ("devices.json", &device("..", ""))],
        &[answers, ("devices.json", &device("0-sda", ", \"more\": 1"))],
        &[answers, ("devices.json", &good), ("sectors/0-sda/x", "y")],
        &[
            answers,
            ("devices.json", &good),
            ("sectors/0-sda/4090", "12345678"),
        ],
        &[answers, NO_DEVICES, ("identify/nvme0n1/namespace", "short")],
    ];
    let messages = cases.map(|entries| {
        let path = lab.pack(&host, "damaged", FORM, entries);
        let ran = plumb(["check", "--from", path.to_str().expect("a path")]);
        ran.ends(5).complaint()
    });
    insta::assert_snapshot!(messages.join("\n\n"));
    let whole = lab.pack(
        &host,
        "whole",
        FORM,
        &[
            answers,
            ("devices.json", &good),
            ("sectors/0-sda/8", "12345678"),
        ],
    );
    plumb(["check", "--from", whole.to_str().expect("a path")]).ends(0);
    // Cut off anywhere it is an error and no panic.
    let bytes = std::fs::read(&whole).expect("a file");
    for at in (0..16).map(|part| bytes.len() * part / 16) {
        let cut: PathBuf = lab.path("cut.tar.zst");
        std::fs::write(&cut, &bytes[..at]).expect("a file");
        plumb(["check", "--from", cut.to_str().expect("a path")]).ends(5);
    }
}
