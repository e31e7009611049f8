//! A guest joined with its host: the positions of its bytes on the host's disks follow from the construction of both.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::collection::{FORM, LIO_IDENTITY, Lab, NO_ANSWERS, NO_DEVICES};
use crate::common::{Ran, node, plumb};
use plumb_testkit::fake_sysfs::FakeDisk;
use plumb_testkit::require;
use serde_json::{Value, json};

const SECTORS: u64 = 1 << 22;

fn check(flags: &[&str], from: &[&PathBuf]) -> Ran {
    let mut args: Vec<String> = vec!["check".to_owned()];
    // A document has everything.
    if !flags.contains(&"--json") {
        args.push("-vv".to_owned());
    }
    args.extend(flags.iter().map(|flag| (*flag).to_owned()));
    args.push("--from".to_owned());
    args.extend(from.iter().map(|path| path.display().to_string()));
    plumb(args)
}

/// The verdict of a layer on blocks of 4 KiB, with its disk.
fn on_blocks(document: &Value, name: &str) -> Vec<(String, String, Option<u64>)> {
    let nodes = document["result"]["stack"]["nodes"]
        .as_array()
        .expect("nodes");
    let name_of =
        |id: &Value| nodes.iter().find(|node| node["id"] == *id).expect("it")["name"].clone();
    let verdicts = node(document, name)["verdicts"]
        .as_array()
        .expect("verdicts")
        .iter();
    let on_block = verdicts.filter(|on| on["what"] == "physical-block");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    on_block
        .map(|on| {
            (
                text(&name_of(&on["node"])),
                text(&on["verdict"]),
                on["by_bytes"].as_u64(),
            )
        })
        .collect()
}

#[test]
fn an_offset_of_the_host_is_one_of_the_guest() {
    for (start, pv_start, verdict, by) in [
        (2048, 2048, "aligned", None),
        (2048, 2049, "misaligned", Some(512)),
        (63, 2048, "misaligned", Some(63 * 512 % 4096)),
        (63, 2049, "aligned", None),
    ] {
        let lab = Lab::new();
        let (guest, kvm) = (
            lab.guest("web1", SECTORS, start),
            lab.kvm("kvm3", SECTORS, pv_start),
        );
        let flags = ["--json", "--join", "web1:vda=kvm3:/dev/vg/guest1"];
        let ran = check(&flags, &[&guest, &kvm]);
        ran.ends(i32::from(by.is_some()));
        let document = ran.json();
        let expected = [("kvm3:sda".to_owned(), verdict.to_owned(), by)];
        for layer in ["web1:vda1", "web1:/srv"] {
            assert_eq!(
                on_blocks(&document, layer),
                expected,
                "{layer} at {start} on {pv_start}"
            );
        }
        assert_eq!(node(&document, "web1:vda")["host"], "web1");
        // Of each host its own disk of the same name.
        assert_ne!(
            node(&document, "web1:sda")["id"],
            node(&document, "kvm3:sda")["id"]
        );
    }
}

#[test]
fn without_the_join_nothing_is_known_below() {
    let lab = Lab::new();
    let (guest, kvm) = (
        lab.guest("web1", SECTORS, 2048),
        lab.kvm("kvm3", SECTORS, 2049),
    );
    let ran = check(&["--json", "--fail-on", "none"], &[&guest, &kvm]);
    ran.ends(3);
    let expected = [("web1:vda".to_owned(), "unknown".to_owned(), None)];
    assert_eq!(on_blocks(&ran.json(), "web1:/srv"), expected);
    let ran = check(&["--join", "web1:vda=kvm3:vg/guest1"], &[&guest, &kvm]);
    // 2055 and the 2048 and 2049 below are 8 times 769.
    insta::assert_snapshot!(ran.ends(1).screen());
}

/// Names of devices mean nothing on another host: commands are for the host whose partition they recreate.
#[test]
fn commands_name_the_host_that_they_change() {
    let lab = Lab::new();
    let (guest, kvm) = (
        lab.guest_of_disk("web2", SECTORS),
        lab.kvm_of_partition("kvm3", SECTORS, 63),
    );
    let join = ["--json", "--join", "web2:vda=kvm3:sdb1"];
    let document = check(&join, &[&guest, &kvm]).json();
    let findings = document["findings"].as_array().expect("findings").iter();
    let off: Vec<&Value> = findings
        .filter(|finding| finding["rule"] == "misaligned-partition")
        .collect();
    let [off] = off[..] else {
        panic!("one start is off: {off:#?}")
    };
    let commands = off["fix"].to_string();
    assert!(commands.contains("/dev/sdb"), "{commands}");
    let advice = off["advice"].as_array().expect("advice").iter();
    let hosts: Vec<&Value> = advice.filter(|one| one["kind"] == "run-on").collect();
    let expected = json!({"kind": "run-on", "host": "kvm3", "changes": "kvm3:sdb1"});
    assert_eq!(hosts, [&expected]);
    assert_eq!(off["target"]["host"], "web2");
}

#[test]
fn joins_in_a_file() {
    let lab = Lab::new();
    let (guest, kvm) = (
        lab.guest("web1", SECTORS, 2048),
        lab.kvm("kvm3", SECTORS, 2049),
    );
    let known = |text: &str| {
        std::fs::write(lab.path("known.toml"), text).expect("a file");
        let path = lab.path("known.toml").display().to_string();
        check(&["--json", "--known", &path], &[&guest, &kvm])
    };
    let joined = "[[join]]\ndisk = 'web1:vda'\ndevice = 'kvm3:/dev/vg/guest1'\n";
    let ran = known(&format!(
        "[[join]]\ndisk = 'db7:vda'\ndevice = 'kvm3:vg/other'\n\n{joined}"
    ));
    let expected = [("kvm3:sda".to_owned(), "misaligned".to_owned(), Some(512))];
    assert_eq!(
        on_blocks(&ran.json(), "web1:vda1"),
        expected,
        "of others it says nothing"
    );
    let unfit = known("\n[[join]]\ndisk = 'vda'\ndevice = 'kvm3:vg/guest1'\n");
    let missing = known("[[join]]\ndisk = 'web1:vda'\n");
    let messages = [unfit.ends(2).complaint(), missing.ends(5).complaint()];
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn wrong_joins_name_place_and_reason() {
    let lab = Lab::new();
    let (guest, kvm) = (
        lab.guest("web1", SECTORS, 2048),
        lab.kvm("kvm3", SECTORS + 8, 2048),
    );
    let refused = [
        // 2,147,483,648 bytes, 8 sectors less than the volume.
        "web1:vda=kvm3:vg/guest1",
        "web1:vdz=kvm3:vg/guest1",
        "web1:vda=kvm3:vg/none",
        "web2:vda=kvm3:vg/guest1",
        "web1:vda1=kvm3:vg/guest1",
        "web1:vda=web1:sda",
        "vda",
    ];
    let messages = refused.map(|join| check(&["--join", join], &[&guest, &kvm]));
    let one = ["--join", "web1:vda=kvm3:vg/guest1"];
    let of_one_host = [
        check(&one, &[&guest]),
        plumb(["check", "--join", "vda=/dev/vg/a"]),
    ];
    let text = lab.path("swaps");
    std::fs::write(
        &text,
        "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 8 0 -2\n",
    )
    .expect("a file");
    let beside = check(&[], &[&guest, &kvm, &text]);
    let all = messages.iter().chain(&of_one_host).chain([&beside]);
    let messages = all.map(|ran| ran.ends(2).complaint_without_lists());
    let messages: Vec<String> = messages.collect();
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A guest that is the host of its host: each would be below itself.
#[test]
fn a_circle_of_joins_is_refused() {
    let lab = Lab::new();
    let (one, other) = (lab.guest("a", SECTORS, 2048), lab.guest("b", SECTORS, 2048));
    let circle = check(
        &["--join", "a:vda=b:vda", "--join", "b:vda=a:vda"],
        &[&one, &other],
    );
    insta::assert_snapshot!(circle.ends(2).complaint());
    let document = check(&["--json", "--join", "a:vda=b:vda"], &[&one, &other]).json();
    let grids = node(&document, "a:vda")["grids"].as_array().expect("grids");
    let doubts: Vec<&Value> = grids
        .iter()
        .map(|grid| &grid["belief"]["why"])
        .filter(|why| !why.is_null())
        .collect();
    let expected = json!({"kind": "stated-by-virtual-disk", "made_of": "b:vda"});
    assert_eq!(doubts, [&expected]);
}

#[test]
fn one_collection_is_one_host() {
    let lab = Lab::new();
    let guest = lab.guest("web1", SECTORS, 2048);
    let copy = lab.path("copy.tar.zst");
    std::fs::copy(&guest, &copy).expect("a copy");
    let messages = [&guest, &copy].map(|second| {
        let ran = check(&[], &[&guest, second]);
        assert!(ran.out.is_empty());
        ran.ends(2).complaint()
    });
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A unit of LIO is the disk with its identity, and only if it has the same length.
#[test]
fn luns_of_a_target_join_by_identity() {
    let identity = LIO_IDENTITY;
    for (seen, sectors, verdict) in [
        (identity, SECTORS, Some("misaligned")),
        (identity, SECTORS + 8, None),
        ("naa.60014056f1d1c0e92a54f7cb6a00e1f1", SECTORS, None),
    ] {
        let lab = Lab::new();
        let [guest, kvm] = lab.shown_by_lio(SECTORS, (seen, sectors));
        let document = check(&["--json"], &[&guest, &kvm]).json();
        let on_host = on_blocks(&document, "web1:sdc1")
            .into_iter()
            .find(|on| on.0 == "kvm3:sda");
        assert_eq!(
            on_host.map(|on| on.1).as_deref(),
            verdict,
            "{seen} {sectors}"
        );
        let by = &node(&document, "web1:sdc")["placed_by"];
        assert_eq!(by["id"].as_str(), verdict.map(|_| identity));
        let notes = document["result"]["notes"].to_string();
        assert_eq!(
            notes.contains("was not joined"),
            sectors != SECTORS,
            "{notes}"
        );
    }
}

/// This host as the host: an image on its disk, read in place.
#[test]
fn an_image_of_this_host() {
    require!(Tool("qemu-img"));
    let lab = Lab::new();
    let guest = lab.guest("web1", SECTORS, 2048);
    let size = (SECTORS * 512).to_string();
    for format in ["raw", "qcow2"] {
        let image = lab.path(&format!("disk.{format}"));
        let made = Command::new("qemu-img")
            .args(["create", "-q", "-f", format])
            .arg(&image)
            .arg(&size)
            .status();
        assert!(made.expect("qemu-img").success());
        let join = format!("web1:vda={}", image.display());
        let ran = check(&["--json", "--fail-on", "none", "--join", &join], &[&guest]);
        let document = ran.json();
        let whole = std::fs::canonicalize(&image)
            .expect("it")
            .display()
            .to_string();
        let name = if format == "raw" {
            whole
        } else {
            format!("{whole}:disk")
        };
        let parts = node(&document, "web1:vda")["placing"]["parts"].clone();
        assert_eq!(parts[0]["node"], node(&document, &name)["id"], "{format}");
        assert_eq!(parts[0]["len_bytes"], SECTORS * 512);
        let clusters = node(&document, "web1:vda1")["verdicts"]
            .as_array()
            .expect("verdicts")
            .clone();
        let on_cluster = clusters.iter().find(|on| on["what"] == "cluster");
        assert_eq!(
            on_cluster.map(|on| on["verdict"] == "aligned"),
            (format == "qcow2").then_some(true)
        );
    }
    let other = lab.path("other.raw");
    std::fs::write(&other, [0; 512]).expect("a file");
    check(
        &["--join", &format!("web1:vda={}", other.display())],
        &[&guest],
    )
    .ends(2)
    .complains("expected 512");
}

/// An image in a collection, on the collecting machine and elsewhere.
#[test]
fn an_image_in_a_collection() {
    require!(Tool("qemu-img"), Root);
    let lab = Lab::new();
    let guest = lab.guest("web1", SECTORS, 2048);
    let (image, kvm) = (lab.path("disk.qcow2"), lab.path("here.tar.zst"));
    let size = (SECTORS * 512).to_string();
    let options = ["create", "-q", "-f", "qcow2", "-o", "cluster_size=4k"];
    let made = Command::new("qemu-img")
        .args(options)
        .arg(&image)
        .arg(size)
        .status();
    assert!(made.expect("qemu-img").success());
    let paths: [&Path; 2] = [&kvm, &image];
    let args = [
        "check".as_ref(),
        "--collect".as_ref(),
        paths[0].as_os_str(),
        "--images".as_ref(),
        paths[1].as_os_str(),
    ];
    plumb(args)
        .ends(0)
        .says("bytes of labels and superblocks of");
    let whole = std::fs::canonicalize(&image)
        .expect("it")
        .display()
        .to_string();
    let document = check(
        &["--json", "--join", &format!("web1:vda=here:{whole}")],
        &[&guest, &kvm],
    )
    .json();
    let vda = node(&document, "web1:vda");
    let nodes = document["result"]["stack"]["nodes"]
        .as_array()
        .expect("nodes");
    let disk = nodes
        .iter()
        .find(|node| node["id"] == vda["placing"]["parts"][0]["node"])
        .expect("what it is on");
    assert!(
        disk["name"]
            .as_str()
            .is_some_and(|name| name.ends_with(&format!("{whole}:disk"))),
        "{disk}"
    );
    assert_eq!(disk["placing"]["block_bytes"], 4096);
    std::fs::remove_file(&image).expect("it is gone");
    let again = check(
        &["--json", "--join", &format!("web1:vda=here:{whole}")],
        &[&guest, &kvm],
    )
    .json();
    assert_eq!(
        again["result"], document["result"],
        "the collection alone counts"
    );
}

/// This host as the guest: its own disk on a volume of a host that was collected.
#[test]
fn a_disk_of_this_host() {
    let live = plumb(["check", "--json", "--fail-on", "none"]).json();
    let nodes = live["result"]["stack"]["nodes"].as_array().expect("nodes");
    let is_disk = |node: &&Value| {
        ["disk", "virtual-disk"].contains(&node["kind"].as_str().unwrap_or_default())
    };
    let Some(disk) = nodes.iter().find(is_disk) else {
        plumb_testkit::skip!("this host has no disk");
    };
    let name = disk["name"].as_str().expect("a name");
    let lab = Lab::new();
    let kvm = lab.kvm(
        "kvm3",
        disk["size_bytes"].as_u64().expect("a size") / 512,
        2049,
    );
    for join in [
        format!("{name}=/dev/vg/guest1"),
        format!("{name}=kvm3:vg/guest1"),
    ] {
        let document = check(&["--json", "--join", &join], &[&kvm]).json();
        let expected = [("kvm3:sda".to_owned(), "misaligned".to_owned(), Some(512))];
        assert_eq!(on_blocks(&document, name), expected);
    }
}

/// A guest of QEMU that runs on this host: its disk is known by the machine's UUID and the serial number that it was given.
#[test]
fn a_guest_that_runs_here() {
    require!(Qemu, Tool("qemu-img"), Root);
    let lab = Lab::new();
    let machine = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0";
    let image = lab.path("root.qcow2");
    let size = (SECTORS * 512).to_string();
    let made = Command::new("qemu-img")
        .args(["create", "-q", "-f", "qcow2"])
        .arg(&image)
        .arg(size)
        .status();
    assert!(made.expect("qemu-img").success());
    let qemu = format!("qemu-system-{}", std::env::consts::ARCH);
    let drive = format!("file={},if=none,id=d0,format=qcow2", image.display());
    let flags = [
        "-S",
        "-display",
        "none",
        "-nodefaults",
        "-uuid",
        machine,
        "-drive",
        &drive,
        "-device",
    ];
    let device = "virtio-blk-pci,drive=d0,serial=web1-root";
    let mut running = Command::new(qemu)
        .args(flags)
        .arg(device)
        .spawn()
        .expect("QEMU starts");
    let host = lab.path("here.tar.zst");
    // Its command line is there as soon as it is started.
    let args = ["check".as_ref(), "--collect".as_ref(), host.as_os_str()];
    let ran = plumb(args);
    plumb_testkit::wait::killed("QEMU", &mut running);
    ran.ends(0);
    for (serial, is_joined) in [("web1-root", true), ("web1-data", false)] {
        let mut guest = lab.host(serial);
        guest.disk(&FakeDisk {
            sectors: SECTORS,
            model: String::new(),
            ..FakeDisk::named("vda")
        });
        guest.attribute("vda", "serial", serial);
        guest.write(
            "sys/devices/virtual/dmi/id/product_uuid",
            &format!("{machine}\n"),
        );
        guest.partition("vda", 1, 2048, 1 << 20);
        let guest = lab.pack(&guest, serial, FORM, &[NO_ANSWERS, NO_DEVICES]);
        let document = check(&["--json", "--fail-on", "none"], &[&guest, &host]).json();
        let by = &node(&document, &format!("{serial}:vda"))["placed_by"];
        let expected = format!("smbios.{machine}.{serial}");
        assert_eq!(
            by["id"].as_str(),
            is_joined.then_some(expected.as_str()),
            "{document:#}"
        );
    }
}
