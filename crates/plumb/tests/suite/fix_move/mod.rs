//! `plumb fix move` on real disks: files keep their bytes, tools and kernel find the file system at its new place, and
//! killing the process between any two writes loses nothing.

mod disk;
mod kills;
mod recommended;

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::require;
use plumb_testkit::rng::noise;
use plumb_testkit::wait;
use plumb_testkit::wait::RunLimited;

use crate::common::{MOVE_VERIFIED, passages, recorded};
use disk::{DiskFormat, MIB, MoveDisk, assert_done, output_text};

/// blkid's result at a byte of the disk.
fn found_at(disk: &MoveDisk, sector: u64) -> String {
    let offset = (sector * 512).to_string();
    let probed = Command::new("blkid")
        .args(["-p", "-O", &offset])
        .arg(disk.device.path())
        .output();
    String::from_utf8_lossy(&probed.expect("blkid runs").stdout).into_owned()
}

#[test]
fn file_systems_come_along() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"), Tool("blkid"));
    let mut messages = Vec::new();
    for (start, options) in [(34, &["--sector-size", "512"][..]), (63, &[])] {
        let disk = MoveDisk::new(DiskFormat::Ext4, start, 48, options);
        let info = disk.info();
        for number in [1, 2] {
            // Closing writes it back, except for a reader at that moment.
            fs::File::open(disk.node(number))
                .and_then(|node| node.sync_all())
                .expect("a disk");
        }
        let image = fs::read(disk.image()).expect("the image");
        let shown = disk.command(&["--aligned"]).limited_output();
        assert_done(&shown);
        assert!(
            fs::read(disk.image()).expect("the image") == image,
            "only shown"
        );
        assert!(!disk.journal().exists());
        messages.push(passages(&output_text(&shown), &["farther away"]));
        assert_done(&disk.moved(&["--aligned", "--scan"]));
        disk.assert_right(2_048);
        assert_eq!(disk.info(), info, "type, identity and name stay");
        assert!(!disk.journal().exists(), "the move has ended");
        assert_eq!(found_at(&disk, start), "", "nothing is left where it was");
        let checked = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["check", "--json"])
            .arg(disk.node(1))
            .output();
        let document: serde_json::Value =
            serde_json::from_slice(&checked.expect("plumb runs").stdout).expect("a document");
        let findings = document["findings"].as_array().expect("findings");
        // Those on the queues of the layers below are the machine's.
        let own = findings
            .iter()
            .find(|one| one["target"]["device"] == disk.name());
        assert_eq!(own, None, "{findings:?}");
        // And back to the left, by a shift that no window of its own length has room for.
        assert_done(&disk.moved(&["--to", "2040s"]));
        disk.assert_right(2_040);
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn hidden_sectors_of_ntfs_follow() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ntfs"), Tool("ntfscat"));
    let disk = MoveDisk::new(DiskFormat::Ntfs, 63, 24, &[]);
    let hidden = |disk: &MoveDisk| {
        let boot = fs::read(disk.node(1)).expect("the partition");
        u32::from_le_bytes([boot[28], boot[29], boot[30], boot[31]])
    };
    let before = hidden(&disk);
    assert_done(&disk.moved(&["--to", "2048s"]));
    disk.assert_right(2_048);
    // mkfs.ntfs asks the kernel for the start of the partition; if that was not 63, it stays.
    assert_eq!(hidden(&disk), if before == 63 { 2_048 } else { before });
}

/// A signal stops it where it can go on; the disk itself leads to its journal.
#[test]
fn a_signal_stops_it_at_a_safe_point() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = MoveDisk::new(DiskFormat::Ext4, 34, 256, &[]);
    let mut child = disk.begun(2_048);
    wait::until_while_runs("the move copies data", wait::PATIENCE, &mut child, || {
        output_text(&disk.go("status")).contains("copying")
    });
    run(Command::new("kill").args(["-INT", &child.id().to_string()]));
    let output = wait::output("a move that was told to stop", wait::PATIENCE, child);
    assert_eq!(output.status.code(), Some(6), "{}", output_text(&output));
    let words = output_text(&output);
    assert!(
        words.contains(&format!("plumb fix resume {}", disk.journal().display())),
        "{words}"
    );
    assert_eq!(found_at(&disk, 34), "", "nothing can be mounted meanwhile");
    let resumed = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "resume"])
        .arg(disk.device.path())
        .args(["--yes", &disk.device.name()])
        .limited_output();
    assert_done(&resumed);
    disk.assert_right(2_048);
    let again = disk.go("resume");
    assert_eq!(again.status.code(), Some(5), "{}", output_text(&again));
}

#[test]
fn unsupported_moves_are_refused() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = MoveDisk::new(DiskFormat::Ext4, 34, 24, &[]);
    let refused = |disk: &MoveDisk, args: &[&str], code: i32, why: &str| {
        let done = disk.moved(args);
        assert_eq!(
            done.status.code(),
            Some(code),
            "{args:?}: {}",
            output_text(&done)
        );
        assert!(
            output_text(&done).contains(why),
            "{args:?}: {}",
            output_text(&done)
        );
    };
    let mounted = disk.mount();
    refused(&disk, &["--to", "2048s"], 5, "is mounted at");
    refused(
        &disk,
        &["--to", "2048s"],
        5,
        &format!("umount {}", disk.node(1).display()),
    );
    drop(mounted);
    refused(&disk, &["--to", "2048"], 2, "without a unit");
    refused(&disk, &[], 2, "--to");
    refused(
        &disk,
        &["--to", "34s"],
        0,
        "begins at sector 34 already: nothing to do",
    );
    refused(&disk, &["--to", "30000s"], 5, "partition 2 begins at");
    refused(&disk, &["--to", "1s"], 5, "expected it within");
    let elsewhere = |journal: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        let name = disk.name();
        command
            .args(["fix", "move"])
            .arg(disk.node(1))
            .args(["--to", "2048s", "--yes", &name]);
        let done = command
            .args(["--journal", journal])
            .args(args)
            .limited_output();
        assert_eq!(
            done.status.code(),
            Some(5),
            "{journal}: {}",
            output_text(&done)
        );
        output_text(&done)
    };
    let same = elsewhere(disk.journal().to_str().expect("text"), &[]);
    let in_memory = elsewhere("/dev/shm/plumb-journal", &["--journal-same-disk"]);
    // The disk below the tests has another name on each machine.
    let same = passages(&same, &["destroy both"]);
    let same = same.rsplit_once(": ").expect("a reason").1;
    let messages = [same, &recorded(&in_memory)];
    insta::assert_snapshot!(messages.join("\n\n"));
    fs::write(disk.journal(), "mine").expect("room");
    refused(&disk, &["--to", "2048s"], 5, "a file of that name");
    assert_eq!(fs::read(disk.journal()).expect("it"), b"mine");
    // O_EXCL: alone.
    let held = fs::File::options()
        .read(true)
        .custom_flags(0o200)
        .open(disk.node(1))
        .expect("nobody has it");
    fs::remove_file(disk.journal()).expect("it");
    refused(&disk, &["--to", "2048s"], 5, "in use");
    drop(held);
    let done = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "move"])
        .arg(disk.device.path())
        .args(["--to", "2048s"])
        .limited_output();
    assert_eq!(done.status.code(), Some(2), "{}", output_text(&done));
    disk.assert_right(34);
    assert!(!disk.journal().exists());
}

/// A neighbour that is mounted does not hinder it, and sees nothing of it.
#[test]
fn a_neighbour_may_be_in_use() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = MoveDisk::new(DiskFormat::Ext4, 34, 24, &[]);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(2)));
    let at = disk.dir.path().join("neighbour");
    fs::create_dir(&at).expect("room");
    let mounted = Mounted::mount(&disk.node(2), &at);
    fs::write(at.join("file"), noise(100_000, 3)).expect("room");
    assert_done(&disk.moved(&["--aligned"]));
    assert!(fs::read(at.join("file")).expect("the file") == noise(100_000, 3));
    drop(mounted);
    run(Command::new("e2fsck").args(["-f", "-n"]).arg(disk.node(2)));
    fs::write(disk.node(2), noise(2 * MIB as usize, 7)).expect("room");
    disk.assert_right(2_048);
}

/// The requests of a plan are done: a move, and a hint to the file system; the result is checked.
#[test]
fn a_plan_is_carried_out() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"), Tool("dumpe2fs"));
    let disk = MoveDisk::new(DiskFormat::Ext4, 34, 24, &[]);
    let (device, node) = (
        disk.device.path().display().to_string(),
        disk.node(1).display().to_string(),
    );
    let file = disk.dir.path().join("plan.json");
    let planned = |args: &[&str]| {
        let plan = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .arg("plan")
            .args(args)
            .arg("--json")
            .output();
        fs::write(&file, plan.expect("plumb runs").stdout).expect("room");
    };
    let fix = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", "plan"])
            .arg(&file)
            .arg("--journal")
            .arg(disk.journal())
            .arg("--journal-same-disk");
        command.args(args).limited_output()
    };
    // One that was made for another partition, or before this one was moved.
    for (current, size, found) in [
        (
            "63s",
            "24m",
            "found partition 1 at sector 34, expected partition 1 at sector 63",
        ),
        (
            "34s",
            "20m",
            "found partition 1 of 49,152 sectors, expected partition 1 of 40,960 sectors",
        ),
    ] {
        planned(&[
            "partition",
            &device,
            "--current",
            current,
            "--size",
            size,
            "--grid",
            "64k",
        ]);
        let refused = fix(&["--yes", &disk.name()]);
        assert_eq!(refused.status.code(), Some(5), "{}", output_text(&refused));
        assert!(
            output_text(&refused).contains(found),
            "{}",
            output_text(&refused)
        );
        assert!(disk.start() == Some(34) && !disk.journal().exists());
    }
    planned(&[
        "partition",
        &device,
        "--current",
        "34s",
        "--size",
        "24m",
        "--grid",
        "64k",
    ]);
    let shown = fix(&[]);
    assert_done(&shown);
    let mut messages = vec![passages(&output_text(&shown), &["nothing was"])];
    assert_eq!(disk.start(), Some(34));
    let other = fix(&["--yes", "sda1"]);
    assert_eq!(other.status.code(), Some(2), "{}", output_text(&other));
    let done = fix(&["--yes", &disk.name()]);
    assert!(
        output_text(&done).contains(MOVE_VERIFIED),
        "{}",
        output_text(&done)
    );
    disk.assert_right(128);
    planned(&[
        "filesystem",
        &node,
        "--type",
        "ext4",
        "--chunk",
        "64k",
        "--members",
        "3",
        "--block",
        "1k",
    ]);
    let shown = fix(&[]);
    messages.push(passages(&output_text(&shown), &["tune2fs"]));
    insta::assert_snapshot!(messages.join("\n\n"));
    fix(&["--yes", &disk.name()]);
    let told = run(Command::new("dumpe2fs").arg("-h").arg(disk.node(1)));
    let says = |name: &str| {
        told.lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(says("RAID stride").ends_with(" 64"), "{told}");
    assert!(says("RAID stripe width").ends_with(" 192"), "{told}");
}

/// XFS accepts a hint if it has one, and keeps the options of its mount. If it cannot be mounted with it, it stays
/// mounted.
#[test]
fn a_mount_states_the_geometry_of_xfs() {
    require!(Loop, Tool("mkfs.xfs"), Tool("findmnt"));
    let dir = plumb_testkit::temp_dir("fix-xfs");
    let (image, at, file) = (
        dir.path().join("disk.img"),
        dir.path().join("at"),
        dir.path().join("plan.json"),
    );
    fs::File::create(&image)
        .and_then(|image| image.set_len(640 * MIB))
        .expect("room");
    fs::create_dir(&at).expect("room");
    let device = LoopDevice::attach(&image, &[]);
    let _unmounted = Unmount(at.clone());
    let node = device.path().display().to_string();
    let place = at.display().to_string();
    let plumb = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(args)
            .limited_output()
    };
    let fix =
        |args: &[&str]| plumb(&[&["fix", "plan", file.to_str().expect("text")], args].concat());
    let stripe = [
        "--type",
        "xfs",
        "--chunk",
        "64k",
        "--members",
        "3",
        "--mount",
        &place,
        "--json",
    ];
    fs::write(
        &file,
        plumb(&[&["plan", "filesystem", &node], &stripe[..]].concat()).stdout,
    )
    .expect("room");
    let options = |at: &Path| {
        run(Command::new("findmnt")
            .args(["-n", "-o", "OPTIONS"])
            .arg(at))
    };
    let mount = || {
        run(Command::new("mount")
            .args(["-o", "noatime,nosuid"])
            .arg(device.path())
            .arg(&at));
        options(&at)
    };
    let made = |args: &[&str]| {
        run(Command::new("mkfs.xfs")
            .args(["-q", "-f"])
            .args(args)
            .arg(device.path()))
    };

    made(&["-d", "agcount=4"]);
    let before = mount();
    let mut messages = Vec::new();
    for (args, code) in [(&[][..], 3), (&["--yes", &device.name()], 5)] {
        let refused = fix(args);
        assert_eq!(
            refused.status.code(),
            Some(code),
            "{}",
            output_text(&refused)
        );
        messages.push(passages(&output_text(&refused), &["without any"]));
        assert_eq!(options(&at), before, "nothing was unmounted");
    }
    run(Command::new("umount").arg(&at));

    made(&["-d", "agcount=4,su=64k,sw=2"]);
    let before = mount();
    assert!(before.contains("sunit=128,swidth=256"), "{before}");
    // A chunk that does not fit its allocation groups is refused by the kernel.
    let plan = fs::read_to_string(&file).expect("the plan");
    fs::write(
        &file,
        plan.replace("\"unit_bytes\": 65536", "\"unit_bytes\": 61440")
            .replace("\"width_bytes\": 196608", "\"width_bytes\": 184320"),
    )
    .expect("room");
    let refused = fix(&["--yes", &device.name()]);
    assert_eq!(refused.status.code(), Some(5), "{}", output_text(&refused));
    // The options of the mount depend on the kernel.
    let said = passages(&output_text(&refused), &["mounted as"]);
    messages.push(said.rsplit_once(": ").expect("a status").1.to_owned());
    insta::assert_snapshot!(messages.join("\n\n"));
    assert_eq!(options(&at), before);
    fs::write(&file, &plan).expect("room");
    assert_done(&fix(&[]));
    assert_eq!(options(&at), before, "only shown");
    let done = fix(&["--yes", &device.name()]);
    assert_eq!(
        options(&at),
        before.replace("swidth=256", "swidth=384"),
        "{}",
        output_text(&done)
    );
}

/// Mounts there are unmounted when a test ends, well or not.
struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}
