//! Findings that a configuration or a flag accepts: counted, without influence on verdict and status, until their day is over.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::schema::Schema;
use crate::common::{Folder, Ran, plumb};
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};

/// Two disks of 4 KiB blocks, each with a partition at sector 34: 17,408 bytes, 1,024 past a block.
fn host(folder: &Folder) -> PathBuf {
    let root = folder.path("host");
    let mut host = FakeHost::new(&root);
    for disk in ["sdx", "sdy"] {
        host.disk(&FakeDisk::named(disk));
        host.partition(disk, 1, 34, 1 << 20);
    }
    root
}

/// A guest with one virtual disk that states 4 KiB, and an aligned partition.
fn guest(folder: &Folder) -> PathBuf {
    let root = folder.path("guest");
    let mut host = FakeHost::new(&root);
    host.disk(&FakeDisk {
        vendor: String::new(),
        model: String::new(),
        place: Some("sys/devices/pci0000:00/0000:00:04.0/virtio2/block/vda".to_owned()),
        ..FakeDisk::named("vda")
    });
    host.partition("vda", 1, 2048, 1 << 20);
    root
}

fn check(root: &Path, flags: &[&str]) -> Ran {
    let mut args = vec!["check", "--root", root.to_str().expect("a plain path")];
    args.extend(flags);
    plumb(args)
}

fn config(folder: &Folder, text: &str) -> String {
    let path = folder.file("config.toml", text);
    path.to_str().expect("a plain path").to_owned()
}

fn accept(device: &str, until: &str) -> String {
    format!(
        "[[accept]]\nrule = \"misaligned-partition\"\ndevice = \"{device}\"\nreason = \"read-only archive\"\nuntil = {until}\n"
    )
}

#[test]
fn accepted_findings_do_not_count() {
    let folder = Folder::new("accept");
    let root = host(&folder);
    check(&root, &[])
        .ends(1)
        .says("MISFIT: 2 findings on 2 devices.");
    let both = accept("sdx1", "2999-12-31") + &accept("/dev/sdy1", "2999-12-31");
    let file = config(&folder, &both);
    check(&root, &["--config", &file])
        .ends(0)
        .says("OK: 2 devices and 2 layers checked; 2 accepted.")
        .says("Accepted until 2999-12-31: misaligned-partition on sdx1 (\"read-only archive\").")
        .says("Accepted until 2999-12-31: misaligned-partition on sdy1 (\"read-only archive\").");
    let file = config(&folder, &accept("sdx1", "2999-12-31"));
    let ran = check(&root, &["--config", &file]);
    ran.ends(1)
        .says("MISFIT: sdy1 starts")
        .says("Accepted until 2999-12-31: misaligned-partition on sdx1");
    assert!(!ran.out.contains("on sdy1 (\""), "{}", ran.out);

    let document = check(&root, &["--config", &file, "--json"]).json();
    assert_eq!(Schema::read("check").faults(&document), [""; 0]);
    let accepted = &document["result"]["accepted"];
    assert_eq!(
        accepted["findings"][0]["finding"]["target"]["device"],
        "sdx1"
    );
    assert_eq!(accepted["findings"][0]["by"]["until"], "2999-12-31");
    assert_eq!(document["findings"].as_array().map(Vec::len), Some(1));
}

#[test]
fn expired_findings_return() {
    let folder = Folder::new("accept");
    let root = host(&folder);
    let file = config(&folder, &accept("sdx1", "2020-02-29"));
    check(&root, &["--config", &file])
        .ends(1)
        .says("MISFIT: 2 findings on 2 devices.")
        .says(&format!(
            "Expired on 2020-02-29: the acceptance of misaligned-partition on sdx1 ({file}:1)."
        ));
    // The last day counts: a clock of the test and one of the program may see midnight between them.
    let today = Command::new("date").args(["-u", "+%F"]).limited_output();
    let today = String::from_utf8(today.stdout).expect("a day");
    let file = config(&folder, &accept("sdx1", today.trim()));
    let ran = check(&root, &["--config", &file]);
    let later = Command::new("date").args(["-u", "+%F"]).limited_output();
    if String::from_utf8(later.stdout).expect("a day") == today {
        ran.says("Accepted until").says("MISFIT: sdy1");
    }
}

#[test]
fn statements_about_nothing_are_named() {
    let folder = Folder::new("accept");
    let root = host(&folder);
    let file = config(&folder, &accept("sdz1", "2999-12-31"));
    check(&root, &["--config", &file, "-vv"])
        .ends(1)
        .says(&format!(
            "note: {file}:1 accepts misaligned-partition on sdz1, which was not found"
        ));
}

#[test]
fn rules_can_be_ignored() {
    let folder = Folder::new("accept");
    let root = host(&folder);
    check(&root, &["--ignore", "misaligned-partition"])
        .ends(0)
        .says("Ignored: misaligned-partition on sdx1, sdy1 (--ignore).");
    check(&root, &["--ignore", "misaligned-partition:sdx1"])
        .ends(1)
        .says("MISFIT: sdy1 starts");
    check(&root, &["--ignore", "misaligned-partition:sdx"]).ends(1);
    check(&root, &["--ignore", "narrow-stripe"]).ends(1);
    check(&root, &["--ignore", "misaligned-partitoin"])
        .ends(2)
        .complains("found `misaligned-partitoin`, expected the name of a finding; did you mean `misaligned-partition`?");
}

#[test]
fn mistakes_of_the_file_end_with_5() {
    let folder = Folder::new("accept");
    let root = host(&folder);
    let missing = folder.path("none.toml");
    check(&root, &["--config", missing.to_str().expect("plain")])
        .ends(5)
        .complains("none.toml")
        .complains("No such file");
    let file = config(&folder, "\n[[accept]]\nrul = \"no-logging\"\n");
    check(&root, &["--config", &file]).ends(5).complains(&format!(
        "{file}:3: found key `rul`, expected one of rule, device, reason, until; did you mean `rule`?"
    ));
}

#[test]
fn a_guest_can_be_accepted_as_it_is() {
    let folder = Folder::new("accept");
    let root = guest(&folder);
    check(&root, &[])
        .ends(3)
        .says("UNKNOWN: ")
        .says("accept_unseen = true");
    let file = config(&folder, "accept_unseen = true\n");
    let ran = check(&root, &["--config", &file]);
    ran.ends(0)
        .says("OK: 1 device and 1 layer checked; layers below are not visible (accepted).");
    assert!(!ran.out.contains("accept_unseen"), "{}", ran.out);
    let document = check(&root, &["--config", &file, "--json"]).json();
    assert_eq!(document["result"]["accepted"]["unseen"], true);
    // The same of a host whose disks are real accepts nothing: its misaligned partitions are visible.
    check(&host(&folder), &["--config", &file]).ends(1);
}

/// A disk that states nothing larger than 512 bytes hides its blocks itself: that is not below a guest.
#[test]
fn a_silent_disk_stays_unknown() {
    let folder = Folder::new("accept");
    let root = folder.path("silent");
    let mut host = FakeHost::new(&root);
    host.disk(&FakeDisk {
        physical: 512,
        minimum_io: 512,
        ..FakeDisk::named("sdx")
    });
    host.partition("sdx", 1, 2048, 1 << 20);
    let before = check(&root, &[]).code;
    assert_eq!(before, 3);
    let file = config(&folder, "accept_unseen = true\n");
    check(&root, &["--config", &file]).ends(3);
}

/// `/etc/plumb/config.toml` counts for this host, and not for files of others.
#[test]
fn the_file_of_the_host() {
    require!(Root);
    require!(Tool("unshare"));
    let folder = Folder::new("accept");
    let root = host(&folder);
    let script = "mount -t tmpfs none /etc && mkdir /etc/plumb && echo 'acept = 1' > /etc/plumb/config.toml && exec \"$@\"";
    let inside = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_plumb")])
            .args(args);
        Ran::from_output(wait::output_of(&mut command))
    };
    inside(&["check"]).ends(5).complains(
        "/etc/plumb/config.toml:1: found key `acept`, expected one of accept, accept_unseen; did you mean `accept`?",
    );
    inside(&["diagnose", "--for", "0"]).ends(5);
    inside(&["check", "--root", root.to_str().expect("plain")]).ends(1);
}
