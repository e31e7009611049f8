//! `plumb fix relabel`, `undo` and `backup-label` on images, compared with sgdisk, sfdisk and parted.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::require;
use plumb_testkit::tempdir::TempDir;
use plumb_testkit::wait::RunLimited;
use serde_json::Value;

use crate::common::{assert_sfdisk_agrees, assert_sgdisk_agrees, passages, recorded};

const MIB: u64 = 1 << 20;

struct LabelImage(TempDir);

impl LabelImage {
    fn new(size_bytes: u64) -> LabelImage {
        let image = LabelImage(plumb_testkit::temp_dir("fix"));
        image.resize(size_bytes);
        image
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("disk.img")
    }

    fn saved(&self) -> PathBuf {
        self.0.path().join("old.plumb-label")
    }

    fn resize(&self, size_bytes: u64) {
        let file = std::fs::File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path());
        file.and_then(|file| file.set_len(size_bytes))
            .expect("room for an image");
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("the image")
    }

    fn tool(&self, program: &str, args: &[&str]) -> String {
        run(Command::new(program)
            .args(args)
            .arg(self.path())
            .env("LC_ALL", "C"))
    }

    fn sfdisk(&self, script: &str) {
        use std::io::Write;
        let mut command = Command::new("sfdisk");
        command
            .args(["--quiet", "--no-reread", "--no-tell-kernel"])
            .arg(self.path());
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("sfdisk starts");
        child
            .stdin
            .take()
            .expect("its input")
            .write_all(script.as_bytes())
            .expect("it reads");
        assert!(
            plumb_testkit::wait::exit("sfdisk", plumb_testkit::wait::PATIENCE, &mut child)
                .success(),
            "{script}"
        );
    }

    /// Start and size of each partition, as sfdisk reads them.
    fn rows(&self) -> Vec<(u64, u64)> {
        let table: Value =
            serde_json::from_str(&self.tool("sfdisk", &["--json"])).expect("JSON of sfdisk");
        let parts = table["partitiontable"]["partitions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let number = |part: &Value, key: &str| part[key].as_u64().expect("a number");
        parts
            .iter()
            .map(|part| (number(part, "start"), number(part, "size")))
            .collect()
    }

    /// The label that `undo` replaced.
    fn undone(&self) -> PathBuf {
        self.0.path().join("undone.plumb-label")
    }

    /// Runs `plumb fix WHAT IMAGE …`.
    fn fix(&self, what: &str, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", what])
            .arg(self.path())
            .args(args)
            .arg("--save")
            .arg(self.saved());
        command.limited_output()
    }

    /// Runs it so that it acts, which it must do.
    fn fixed(&self, what: &str, args: &[&str]) -> String {
        let done = self.fix(what, &[args, &["--yes", "disk.img"]].concat());
        assert_eq!(
            done.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).expect("text")
    }

    fn undo(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", "undo"])
            .arg(self.saved())
            .arg(self.path())
            .args(args);
        command.arg("--save").arg(self.undone()).limited_output()
    }

    /// The command that an `undo` has printed.
    fn way_back(&self, undone: &Output) -> Output {
        let printed = String::from_utf8_lossy(&undone.stdout).into_owned();
        let words: Vec<&str> = printed
            .lines()
            .filter_map(|line| line.split_once("plumb fix undo "))
            .map(|(_, words)| words)
            .collect();
        let [words] = words[..] else {
            panic!("one command, not: {printed}")
        };
        let saved = self.0.path().join("again.plumb-label");
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", "undo"])
            .args(words.split(' '))
            .arg("--save")
            .arg(saved)
            .limited_output()
    }
}

fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// sgdisk repairs a copy in memory, and says so before it finds no more problems. The wanted end of a partition is no
/// such message.
fn complains(verified: &str) -> bool {
    let words = ["Caution", "Warning", "Problem:", "invalid", "corrupt"];
    let mut lines = verified
        .lines()
        .filter(|line| !line.contains("doesn't end on a"));
    lines.any(|line| words.iter().any(|word| line.contains(word)))
}

/// The messages of the tools for a kind of label about a good one.
fn assert_tools_are_content(image: &LabelImage, has_gpt: bool) {
    let verified = image.tool("sfdisk", &["--verify"]);
    assert_sfdisk_agrees(&verified);
    if has_gpt {
        let verified = image.tool("sgdisk", &["-v"]);
        assert_sgdisk_agrees(&verified);
        assert!(!complains(&verified), "{verified}");
    }
    let path = image.path();
    let printed = Command::new("parted")
        .args(["-s"])
        .arg(&path)
        .args(["unit", "s", "print"])
        .output();
    let printed = printed.expect("parted runs");
    assert!(
        printed.status.success() && printed.stderr.is_empty(),
        "{printed:?}"
    );
}

#[test]
fn new_labels_are_ones_that_the_tools_read() {
    require!(Tool("sfdisk"), Tool("sgdisk"), Tool("parted"));
    let last = 64 * MIB / 512;
    type Made<'a> = (&'a [&'a str], bool, &'a [(u64, u64)]);
    let made: [Made; 3] = [
        // Up to the last whole MiB.
        (&[], true, &[(2_048, last - 4_096)]),
        (
            &["--label", "dos", "--size", "8m"],
            false,
            &[(2_048, 16_384)],
        ),
        // Solaris keeps 8 MiB at the end.
        (
            &["--label", "efi", "--start", "256s"],
            true,
            &[
                (256, last - 33 - 16_384 - 256),
                (last - 33 - 16_384, 16_384),
            ],
        ),
    ];
    for (args, has_gpt, rows) in made {
        let image = LabelImage::new(64 * MIB);
        let empty = image.bytes();
        let shown = image.fix("relabel", args);
        assert_eq!(shown.status.code(), Some(0), "{}", stderr_text(&shown));
        assert_eq!(image.bytes(), empty, "nothing is written without --yes");
        assert!(!image.saved().exists());
        image.fixed("relabel", args);
        assert_eq!(image.rows(), rows, "{args:?}");
        assert_tools_are_content(&image, has_gpt);
        let verified = if args.is_empty() {
            image.tool("sgdisk", &["-v"])
        } else {
            String::new()
        };
        assert!(!verified.contains("Caution"), "{verified}");
        let made = image.bytes();
        let undone = image.undo(&["--yes", "disk.img"]);
        assert_eq!(undone.status.code(), Some(0), "{}", stderr_text(&undone));
        assert_eq!(image.bytes(), empty, "{args:?}: the way back");
        let again = image.way_back(&undone);
        assert_eq!(again.status.code(), Some(0), "{}", stderr_text(&again));
        assert!(image.bytes() == made, "{args:?}: and back again");
    }
}

/// An unsupported label is refused by its name, and nothing is written.
#[test]
fn a_new_smi_label_of_x86_is_refused() {
    let image = LabelImage::new(64 * MIB);
    let before = image.bytes();
    let refused = image.fix(
        "relabel",
        &[
            "--label",
            "smi-x86",
            "--geometry",
            "16x64",
            "--yes",
            "disk.img",
        ],
    );
    assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
    insta::assert_snapshot!(recorded(&stderr_text(&refused)));
    assert!(image.bytes() == before && !image.saved().exists());
}

/// A label of cylinders: 16 heads of 63 sectors make 1,008 of them, with 63 as the greatest odd part.
#[test]
fn a_new_smi_label_begins_at_a_cylinder() {
    require!(Tool("sfdisk"), Tool("parted"));
    let image = LabelImage::new(64 * MIB);
    image.fixed("relabel", &["--label", "smi", "--geometry", "16x64"]);
    // 2,048 sectors are two cylinders of 1,024; two more are kept at the end.
    let cylinders = 64 * MIB / 512 / 1_024;
    let rows = image.rows();
    assert!(
        rows.contains(&(2_048, (cylinders - 2) * 1_024 - 2_048)),
        "{rows:?}"
    );
    let text = image.tool("sfdisk", &["--dump"]);
    assert!(text.contains("label: sun"), "{text}");
    // It ends with 0. It names the gap before the slice, and parted's own geometry.
    image.tool("sfdisk", &["--verify"]);
    let slices = Command::new("parted")
        .args(["-s", "-m"])
        .arg(image.path())
        .args(["unit", "s", "print"])
        .output();
    let slices = String::from_utf8(slices.expect("parted runs").stdout).expect("text");
    assert!(
        slices.contains(":sun:") && slices.contains("\n1:2048s:129023s:126976s:"),
        "{slices}"
    );
    let odd = image.fix(
        "relabel",
        &[
            "--label",
            "smi",
            "--new-label",
            "--geometry",
            "16x63",
            "--start",
            "2048s",
        ],
    );
    assert_eq!(odd.status.code(), Some(5), "{}", stderr_text(&odd));
    assert!(
        stderr_text(&odd).contains("cylinder"),
        "{}",
        stderr_text(&odd)
    );
}

/// The dialogue of the white paper: slice 0 begins at 34 and is to begin at 256; slice 8 stays.
#[test]
fn a_slice_of_an_efi_label_begins_elsewhere() {
    require!(Tool("sfdisk"), Tool("sgdisk"), Tool("parted"));
    let image = LabelImage::new(64 * MIB);
    image.tool(
        "sgdisk",
        &[
            "-a1",
            "-n1:34:114654",
            "-t1:bf01",
            "-c1:usr",
            "-n9:114655:131038",
            "-t9:bf07",
        ],
    );
    let (before, bytes) = (image.tool("sgdisk", &["-i1"]), image.bytes());
    let shown = image.fixed("relabel", &["--start", "256s"]);
    insta::assert_snapshot!(passages(&shown, &["slice 0"]));
    assert_eq!(image.rows(), [(256, 114_399), (114_655, 16_384)]);
    let kept = |text: &str| -> Vec<String> {
        let is_kept = |line: &&str| line.contains("GUID") || line.contains("name");
        text.lines().filter(is_kept).map(str::to_owned).collect()
    };
    let after = image.tool("sgdisk", &["-i1"]);
    assert_eq!(kept(&after), kept(&before), "type, identity and name stay");
    assert_tools_are_content(&image, true);
    assert_eq!(image.undo(&["--yes", "disk.img"]).status.code(), Some(0));
    assert_eq!(image.bytes(), bytes);
}

#[test]
fn partitions_of_an_mbr_begin_elsewhere() {
    require!(Tool("sfdisk"), Tool("parted"));
    let script = "label: dos\nlabel-id: 0xdeadbeef\n\
                  start=63, size=16065, type=7\n\
                  start=32768, size=81920, type=f\n\
                  start=32831, size=16000, type=83\n\
                  start=65599, size=16000, type=83\n";
    let image = LabelImage::new(64 * MIB);
    image.sfdisk(script);
    let before = image.rows();
    assert_eq!(before.len(), 4, "{before:?}");
    let several = image.fix("relabel", &["--start", "2048s"]);
    assert_eq!(several.status.code(), Some(2), "{}", stderr_text(&several));
    image.fixed(
        "relabel",
        &["--number", "1", "--start", "2048s", "--size", "8192s"],
    );
    std::fs::remove_file(image.saved()).expect("the saved label");
    image.fixed("relabel", &["--number", "5", "--start", "34816s"]);
    let mut expected = before.clone();
    expected[0] = (2_048, 8_192);
    expected[2] = (34_816, 32_831 + 16_000 - 34_816);
    assert_eq!(image.rows(), expected, "the others stay");
    let dump = image.tool("sfdisk", &["--dump"]);
    assert!(
        dump.contains("label-id: 0xdeadbeef") && dump.contains("type=7"),
        "{dump}"
    );
    assert_tools_are_content(&image, false);
    // The link of the next logical partition precedes it.
    let over = image.fix(
        "relabel",
        &["--number", "5", "--start", "34816s", "--size", "30784s"],
    );
    assert_eq!(over.status.code(), Some(5), "{}", stderr_text(&over));
    let extended = image.fix("relabel", &["--number", "2", "--start", "34816s"]);
    assert_eq!(
        extended.status.code(),
        Some(2),
        "{}",
        stderr_text(&extended)
    );
}

#[test]
fn a_plan_is_carried_out() {
    require!(Tool("sfdisk"), Tool("sgdisk"));
    let image = LabelImage::new(64 * MIB);
    // 10 MiB.
    image.tool("sgdisk", &["-a1", "-n1:34:20513"]);
    let (path, file) = (image.path(), image.0.path().join("plan.json"));
    let planned = |device: &Path, current: &str, size: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["plan", "partition"])
            .arg(device)
            .args(["--grid", "64k", "--json"]);
        let plan = command
            .args(["--current", current, "--size", size])
            .limited_output();
        assert_eq!(plan.status.code(), Some(0), "{}", stderr_text(&plan));
        std::fs::write(&file, plan.stdout).expect("room");
    };
    let plan = file.to_str().expect("text");
    let before = image.bytes();
    for (device, current, size, found) in [
        (
            Path::new("/dev/sdx"),
            "34s",
            "10m",
            format!("found {}, expected /dev/sdx", path.display()),
        ),
        (
            &path,
            "63s",
            "10m",
            "found partition 1 at sector 34, expected partition 1 at sector 63".to_owned(),
        ),
        (
            &path,
            "34s",
            "12m",
            "found partition 1 of 20,480 sectors, expected partition 1 of 24,576".to_owned(),
        ),
        (
            &path,
            "34s",
            "8m",
            "found partition 1 of 20,480 sectors, expected partition 1 of 16,384".to_owned(),
        ),
    ] {
        planned(device, current, size);
        let refused = image.fix("relabel", &["--plan", plan, "--yes", "disk.img"]);
        assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
        assert!(
            stderr_text(&refused).contains(&found),
            "{}",
            stderr_text(&refused)
        );
        assert!(image.bytes() == before && !image.saved().exists());
    }
    planned(&path, "34s", "10m");
    let absent = image.fix("relabel", &["--plan", plan, "--number", "2"]);
    assert_eq!(absent.status.code(), Some(5), "{}", stderr_text(&absent));
    image.fixed("relabel", &["--plan", plan]);
    assert_eq!(image.rows(), [(128, 20_480)]);
    std::fs::write(&file, "{\"schema\": \"plumb.check/1\"}").expect("room");
    let other = image.fix("relabel", &["--plan", file.to_str().expect("text")]);
    assert_eq!(other.status.code(), Some(2), "{}", stderr_text(&other));
}

/// A plan that makes the label names its kind, and it need not be repeated.
#[test]
fn a_plan_makes_the_label_that_it_names() {
    require!(Tool("sfdisk"), Tool("sgdisk"));
    for (kind, made) in [("dos", "dos"), ("gpt", "gpt")] {
        let image = LabelImage::new(64 * MIB);
        // In the place of one of the other kind, without partitions.
        image.sfdisk(if kind == "dos" {
            "label: gpt\n"
        } else {
            "label: dos\n"
        });
        let file = image.0.path().join("plan.json");
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["plan", "partition"]).arg(image.path());
        command.args([
            "--label",
            kind,
            "--new-label",
            "--disk-size",
            "64m",
            "--size",
            "10m",
            "--json",
        ]);
        let plan = command.limited_output();
        assert_eq!(plan.status.code(), Some(0), "{}", stderr_text(&plan));
        std::fs::write(&file, plan.stdout).expect("room");
        let carried_out = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["fix", "plan"])
            .arg(&file)
            .output();
        let carried_out = carried_out.expect("plumb runs");
        assert_eq!(
            carried_out.status.code(),
            Some(0),
            "{}",
            stderr_text(&carried_out)
        );
        image.fixed("relabel", &["--plan", file.to_str().expect("text")]);
        let table: Value =
            serde_json::from_str(&image.tool("sfdisk", &["--json"])).expect("JSON of sfdisk");
        assert_eq!(table["partitiontable"]["label"], made);
        assert_eq!(image.rows(), [(2_048, 20_480)]);
        // The earlier output equals the write.
        let shown = String::from_utf8_lossy(&carried_out.stdout);
        let then = if kind == "dos" {
            "label then: MBR"
        } else {
            "label then: GPT"
        };
        assert!(shown.contains(then), "{shown}");
    }
}

#[test]
fn partitions_with_data_are_refused() {
    require!(Tool("sgdisk"), Tool("mkfs.ext4"));
    let image = LabelImage::new(64 * MIB);
    image.tool("sgdisk", &["-a1", "-n1:34:100000"]);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F", "-E", "offset=17408"])
        .arg(image.path())
        .arg("16m"));
    let bytes = image.bytes();
    for args in [
        &["--yes", "disk.img"][..],
        &[],
        &["--new-label", "--yes", "disk.img"],
    ] {
        let refused = image.fix("relabel", args);
        assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
        assert!(
            stderr_text(&refused).contains("holds ext4"),
            "{}",
            stderr_text(&refused)
        );
    }
    assert_eq!(image.bytes(), bytes);
    // A format with a signature and no more.
    let image = LabelImage::new(64 * MIB);
    image.tool("sgdisk", &["-a1", "-n1:34:100000"]);
    let mut bytes = image.bytes();
    bytes[34 * 512 + 32_768..][..4].copy_from_slice(b"JFS1");
    std::fs::write(image.path(), bytes).expect("room");
    let refused = image.fix("relabel", &[]);
    assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
    insta::assert_snapshot!(recorded(&stderr_text(&refused)));
    // One that the label does not know of any more, where the partition is to begin.
    let image = LabelImage::new(64 * MIB);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F", "-E", "offset=1048576"])
        .arg(image.path())
        .arg("16m"));
    let refused = image.fix("relabel", &[]);
    assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
}

#[test]
fn a_wrong_confirmation_writes_nothing() {
    require!(Tool("sgdisk"));
    let image = LabelImage::new(64 * MIB);
    image.tool("sgdisk", &["-a1", "-n1:34:40000"]);
    let bytes = image.bytes();
    for (args, code) in [
        (&["--yes", "sda"][..], 2),
        (&["--start", "2048"], 2),
        (&["--start", "2048s", "--number", "3"], 2),
        (&["--start", "33s", "--yes", "disk.img"], 5),
        (&["--start", "1000001", "--yes", "disk.img"], 2),
        (&["--start", "50000s", "--yes", "disk.img"], 5),
        (
            &["--start", "2048s", "--size", "65m", "--yes", "disk.img"],
            5,
        ),
        (&["--start", "2049b", "--yes", "disk.img"], 2),
        (&["--new-label", "--label", "smi", "--yes", "disk.img"], 2),
        // An existing label is changed, and keeps its kind.
        (&["--label", "efi", "--yes", "disk.img"], 2),
        (
            &["--label", "dos", "--start", "2048s", "--yes", "disk.img"],
            2,
        ),
    ] {
        let refused = image.fix("relabel", args);
        assert_eq!(
            refused.status.code(),
            Some(code),
            "{args:?}: {}",
            stderr_text(&refused)
        );
        assert_eq!(image.bytes(), bytes, "{args:?}");
    }
    let missing = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "relabel", "/dev/plumb-none"])
        .output();
    assert_eq!(missing.expect("plumb runs").status.code(), Some(5));
}

/// A label counts in the sectors of another disk, or of this one in another enclosure: the advice helps.
#[test]
fn a_label_of_other_sectors() {
    require!(Root, Loop, Tool("sfdisk"), Tool("sgdisk"));
    let image = LabelImage::new(64 * MIB);
    let large = LoopDevice::attach(&image.path(), &["--sector-size", "4096"]);
    run(Command::new("sgdisk")
        .args(["-a1", "-n1:6:4000"])
        .arg(large.path()));
    drop(large);
    let disk = LoopDevice::attach(&image.path(), &["--sector-size", "512"]);
    let relabel = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", "relabel"])
            .arg(disk.path())
            .args(args)
            .args(["--yes", &disk.name()]);
        command.arg("--save").arg(image.saved()).limited_output()
    };
    let refused = relabel(&["--start", "2048s"]);
    assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
    let mut messages = vec![recorded(&stderr_text(&refused))];
    let made = relabel(&["--new-label"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr_text(&made));
    let verified = run(Command::new("sgdisk").arg("-v").arg(disk.path()));
    assert_sgdisk_agrees(&verified);
    // backup-label repairs a broken copy.
    std::fs::remove_file(image.saved()).expect("the saved label");
    let mut bytes = image.bytes();
    bytes[64 * MIB as usize - 512] ^= 0xff;
    std::fs::write(image.path(), bytes).expect("room");
    run(Command::new("blockdev").arg("--flushbufs").arg(disk.path()));
    let refused = relabel(&["--start", "4096s"]);
    messages.push(recorded(&stderr_text(&refused)));
    insta::assert_snapshot!(messages.join("\n\n"));
    let node = format!(" {}\n", disk.path().display());
    assert!(stderr_text(&refused).contains(&node), "{refused:?}");
}

/// Relabelling a disk that is as it should be writes nothing.
#[test]
fn finished_fixes_are_not_repeated() {
    require!(Tool("sgdisk"));
    let image = LabelImage::new(64 * MIB);
    image.fixed("relabel", &[]);
    std::fs::remove_file(image.saved()).expect("the saved label");
    let bytes = image.bytes();
    let again = image.fixed("relabel", &["--start", "2048s"]);
    insta::assert_snapshot!(recorded(&again));
    assert_eq!(image.bytes(), bytes);
    assert!(!image.saved().exists());
}

#[test]
fn a_broken_or_stranded_copy_is_rewritten() {
    require!(Tool("sfdisk"), Tool("sgdisk"), Tool("parted"));
    let made = || {
        let image = LabelImage::new(64 * MIB);
        image.tool("sgdisk", &["-n1:2048:40000", "-c1:data"]);
        image
    };
    let change = |image: &LabelImage, at: u64| {
        let mut bytes = image.bytes();
        bytes[usize::try_from(at).expect("small") + 60] ^= 0xff;
        std::fs::write(image.path(), bytes).expect("room");
    };
    let last = 64 * MIB - 512;
    type LabelDamage<'a> = (&'a str, &'a dyn Fn(&LabelImage));
    let damages: [LabelDamage; 4] = [
        ("the primary header", &|image| change(image, 512)),
        ("the backup header", &|image| change(image, last)),
        ("the primary array", &|image| change(image, 1024)),
        ("a disk that grew", &|image| image.resize(96 * MIB)),
    ];
    let mut messages = Vec::new();
    for (what, damage) in damages {
        let image = made();
        let rows = image.rows();
        damage(&image);
        let bytes = image.bytes();
        let before = Command::new("sgdisk")
            .arg("-v")
            .arg(image.path())
            .limited_output();
        let before = format!(
            "{}{}",
            String::from_utf8_lossy(&before.stdout),
            stderr_text(&before)
        );
        assert!(complains(&before), "{what}: sgdisk sees it: {before}");
        let shown = image.fix("backup-label", &[]);
        assert_eq!(
            shown.status.code(),
            Some(0),
            "{what}: {}",
            stderr_text(&shown)
        );
        assert_eq!(
            image.bytes(),
            bytes,
            "{what}: nothing is written without --yes"
        );
        image.fixed("backup-label", &[]);
        assert_eq!(image.rows(), rows, "{what}");
        assert_tools_are_content(&image, true);
        let again = image.fix("backup-label", &["--yes", "disk.img"]);
        let said = String::from_utf8_lossy(&again.stdout);
        messages.push(passages(&said, &["to do"]));
        assert_eq!(
            image.undo(&["--yes", "disk.img"]).status.code(),
            Some(0),
            "{what}"
        );
        assert_eq!(image.bytes(), bytes, "{what}: the way back");
    }
    insta::assert_snapshot!(messages.join("\n\n"));
    let broken = made();
    change(&broken, 512);
    change(&broken, last);
    let refused = broken.fix("backup-label", &[]);
    assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
}

#[test]
fn a_label_is_not_undone_over_the_work_of_others() {
    require!(Tool("sgdisk"));
    let image = LabelImage::new(64 * MIB);
    image.fixed("relabel", &[]);
    let bytes = image.bytes();
    image.tool("sgdisk", &["-c1:other"]);
    let others = image.bytes();
    let refused = image.undo(&["--yes", "disk.img"]);
    assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
    assert_eq!(image.bytes(), others);
    let forced = image.undo(&["--force", "--yes", "disk.img"]);
    assert_eq!(forced.status.code(), Some(0), "{}", stderr_text(&forced));
    assert_eq!(image.bytes(), vec![0; bytes.len()]);
    let again = image.undo(&["--yes", "disk.img"]);
    let said = String::from_utf8_lossy(&again.stdout);
    insta::assert_snapshot!(passages(&said, &["to do"]));
    // A smaller disk is another one.
    image.resize(32 * MIB);
    assert_eq!(image.undo(&["--yes", "disk.img"]).status.code(), Some(5));
    std::fs::write(image.saved(), "PLUMBLBL").expect("room");
    assert_eq!(image.undo(&[]).status.code(), Some(5));
}

/// Newer content of the partition would be invisible.
#[test]
fn a_label_is_not_undone_over_new_content() {
    require!(Tool("sgdisk"), Tool("mkfs.ext4"));
    let relabelled = || {
        let image = LabelImage::new(64 * MIB);
        image.tool("sgdisk", &["-a1", "-n1:34:100000"]);
        image.fixed("relabel", &["--start", "2048s"]);
        image
    };
    type Fill<'a> = (&'a dyn Fn(&LabelImage), &'a str);
    let fills: [Fill; 2] = [
        (
            &|image| {
                let mut mkfs = Command::new("mkfs.ext4");
                run(mkfs
                    .args(["-q", "-F", "-E", "offset=1048576"])
                    .arg(image.path())
                    .arg("16m"));
            },
            "byte 1048576 of disk.img holds ext4",
        ),
        // Of a database that has no signature.
        (
            &|image| {
                let mut bytes = image.bytes();
                bytes[2 * MIB as usize - 1] = 1;
                std::fs::write(image.path(), bytes).expect("room");
            },
            "byte 2097151 of disk.img is not zero",
        ),
    ];
    for (fill, found) in fills {
        let image = relabelled();
        fill(&image);
        let filled = image.bytes();
        for args in [&["--yes", "disk.img"][..], &[]] {
            let refused = image.undo(args);
            assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
            assert!(
                stderr_text(&refused).contains(found) && stderr_text(&refused).contains("--force"),
                "{}",
                stderr_text(&refused)
            );
        }
        assert!(
            image.bytes() == filled && !image.undone().exists(),
            "nothing is written"
        );
        let forced = image.undo(&["--force", "--yes", "disk.img"]);
        assert_eq!(forced.status.code(), Some(0), "{}", stderr_text(&forced));
        assert_eq!(image.rows(), [(34, 99_967)]);
        let again = image.way_back(&forced);
        assert_eq!(again.status.code(), Some(0), "{}", stderr_text(&again));
        assert!(
            image.bytes() == filled,
            "the label is there again, and what is in its partition"
        );
    }
    // The earlier content is reported when the label is changed.
    let image = LabelImage::new(64 * MIB);
    image.tool("sgdisk", &["-a1", "-n1:34:100000"]);
    let mut bytes = image.bytes();
    bytes[MIB as usize + 7] = 1;
    std::fs::write(image.path(), bytes).expect("room");
    let told = image.fixed("relabel", &["--start", "2048s"]);
    insta::assert_snapshot!(passages(&told, &["byte 1048583"]));
    assert_eq!(image.undo(&["--yes", "disk.img"]).status.code(), Some(5));
    assert_eq!(
        image.undo(&["--force", "--yes", "disk.img"]).status.code(),
        Some(0)
    );
    // Behind the first MiB nobody looks.
    let image = relabelled();
    let mut bytes = image.bytes();
    bytes[2 * MIB as usize] = 1;
    std::fs::write(image.path(), bytes).expect("room");
    assert_eq!(image.undo(&["--yes", "disk.img"]).status.code(), Some(0));
}

/// A saved file is not written over, and without it nothing is.
#[test]
fn without_a_way_back_nothing_is_written() {
    let image = LabelImage::new(64 * MIB);
    let bytes = image.bytes();
    std::fs::write(image.saved(), "another label").expect("room");
    let refused = image.fix("relabel", &["--yes", "disk.img"]);
    assert_eq!(refused.status.code(), Some(5), "{}", stderr_text(&refused));
    assert_eq!(image.bytes(), bytes);
    assert_eq!(
        std::fs::read(image.saved()).expect("the file"),
        b"another label"
    );
    assert!(Path::new(&image.path()).exists());
}

/// The room for the image ends behind the backup label: the first write succeeds, and a later one does not.
#[test]
fn a_label_that_is_written_in_part_can_be_undone() {
    require!(Root);
    const PAGE: u64 = 4096;
    let image = LabelImage::new(0);
    let at = image.0.path().join("memory");
    std::fs::create_dir(&at).expect("room");
    let _mounted = Mounted::tmpfs(64 * PAGE, &at);
    let disk = at.join("disk.img");
    std::fs::File::create(&disk)
        .and_then(|file| file.set_len(64 * MIB))
        .expect("holes take no room");
    // A copy of the label is in five pages.
    std::fs::write(at.join("other"), vec![1; 57 * PAGE as usize]).expect("room for as much");
    let plumb = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .arg("fix")
            .args(args)
            .args(["--yes", "disk.img"])
            .limited_output()
    };
    let (path, saved) = (disk.to_str().expect("text"), image.saved());
    let saved = saved.to_str().expect("text");
    let failed = plumb(&["relabel", path, "--save", saved]);
    let words = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(5), "{words}");
    let way_back = format!("fix undo {saved} {path} --yes disk.img\n");
    assert!(words.contains(&way_back), "{words}");
    insta::assert_snapshot!(recorded(&words));
    let zeros = || {
        std::fs::read(&disk)
            .expect("the image")
            .iter()
            .all(|byte| *byte == 0)
    };
    assert!(!zeros(), "the backup was written");
    std::fs::remove_file(at.join("other")).expect("it is there");
    let undone = plumb(&[
        "undo",
        saved,
        path,
        "--save",
        image.undone().to_str().expect("text"),
    ]);
    assert_eq!(undone.status.code(), Some(0), "{}", stderr_text(&undone));
    assert!(zeros());
}
