//! Findings that a configuration or a flag accepts: counted, without influence on verdict and status, until their day is over.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::schema::Schema;
use crate::common::{Folder, Ran, paragraph, plumb, recorded};
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
    let neither = check(&root, &[]).ends(1).screen();
    let both = accept("sdx1", "2999-12-31") + &accept("/dev/sdy1", "2999-12-31");
    let file = config(&folder, &both);
    let both = check(&root, &["--config", &file]).ends(0).screen();
    let file = config(&folder, &accept("sdx1", "2999-12-31"));
    let one = check(&root, &["--config", &file]).ends(1).screen();
    insta::assert_snapshot!([neither, both, one].join("\n\n"));

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
    let expired = check(&root, &["--config", &file]).ends(1).screen();
    insta::assert_snapshot!(expired);
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
    let ran = check(&root, &["--config", &file, "-vv"]);
    insta::assert_snapshot!(recorded(paragraph(&ran.ends(1).out, "Source")));
}

#[test]
fn rules_can_be_ignored() {
    let folder = Folder::new("accept");
    let root = host(&folder);
    let ignore = |findings: &str| check(&root, &["--ignore", findings]);
    let all = ignore("misaligned-partition").ends(0).screen();
    let one = ignore("misaligned-partition:sdx1").ends(1).screen();
    ignore("misaligned-partition:sdx").ends(1);
    ignore("narrow-stripe").ends(1);
    let unknown = ignore("misaligned-partitoin").ends(2).complaint();
    insta::assert_snapshot!([all, one, unknown].join("\n\n"));
}

#[test]
fn mistakes_of_the_file_end_with_5() {
    let folder = Folder::new("accept");
    let root = host(&folder);
    let missing = folder.path("none.toml");
    let missing = check(&root, &["--config", missing.to_str().expect("plain")]);
    let file = config(&folder, "\n[[accept]]\nrul = \"no-logging\"\n");
    let unknown = check(&root, &["--config", &file]);
    let messages = [missing, unknown].map(|ran| ran.ends(5).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn a_guest_can_be_accepted_as_it_is() {
    let folder = Folder::new("accept");
    let root = guest(&folder);
    let unknown = check(&root, &[]).ends(3).screen();
    let file = config(&folder, "accept_unseen = true\n");
    let ran = check(&root, &["--config", &file]);
    insta::assert_snapshot!([unknown, ran.ends(0).screen()].join("\n\n"));
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
    insta::assert_snapshot!(inside(&["check"]).ends(5).complaint());
    inside(&["diagnose", "--for", "0"]).ends(5);
    inside(&["check", "--root", root.to_str().expect("plain")]).ends(1);
}
