//! Messages of every command that loads a target about a missing one, a wrong kind, a too small or read-only one, about
//! one that disappears or fails under load, and about impossible parameter files. Each ends with a status other than 0.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, Ran, command, msr, plumb};
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::slow_disk::SlowDisk;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// A way to load a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadCommand {
    Bench,
    Vdbench,
    Fio,
    Replay,
    ReplayCompare,
    Probe,
}

use LoadCommand::{Bench, Fio, Probe, Replay, ReplayCompare, Vdbench};

const ALL: [LoadCommand; 6] = [Bench, Vdbench, Fio, Replay, ReplayCompare, Probe];

/// The options of a load beside reads of 4 KiB.
#[derive(Clone, Copy, Debug, Default)]
struct LoadOptions {
    /// At an offset of 512 bytes.
    is_off: bool,
    writes: bool,
    seconds: u32,
}

impl LoadCommand {
    /// The command that loads a target, with its files in a folder.
    fn command(self, folder: &Folder, target: &Path, asked: LoadOptions) -> Command {
        let LoadOptions {
            is_off,
            writes,
            seconds,
        } = asked;
        let name = target.to_str().expect("a plain name");
        let mut command = command();
        let time = if seconds == 0 {
            "100ms".to_owned()
        } else {
            format!("{seconds}s")
        };
        let timed = ["--for", &time, "--interval", "100ms"];
        let either = |wanted: bool, words: &'static str| if wanted { words } else { "" };
        match self {
            Bench => {
                let flags = either(is_off, "--shift 512 ").to_owned() + either(writes, "--read 0");
                command
                    .args(["bench", name])
                    .args(timed)
                    .args(flags.split_whitespace());
            }
            Vdbench => {
                let (offset, rdpct) = (either(is_off, ",offset=512"), either(writes, ",rdpct=0"));
                let text = format!(
                    "sd=s,lun={name}{offset}\nsd=t,lun={name},offset=1024\nwd=w,sd=s{rdpct}\n\
                     rd=r1,wd=w,iorate=max\nrd=r2,wd=w,sd=t,iorate=max\n"
                );
                command
                    .args(["bench", "--vdbench"])
                    .arg(folder.file("p", text))
                    .args(timed);
            }
            Fio => {
                let (offset, rw) = (
                    either(is_off, "offset=512\n"),
                    if writes { "randwrite" } else { "randread" },
                );
                let text = format!("[a]\nfilename={name}\nrw={rw}\n{offset}");
                command
                    .args(["bench", "--fio"])
                    .arg(folder.file("j", text))
                    .args(timed);
            }
            Replay | ReplayCompare => {
                let op = if writes { 'W' } else { 'R' };
                let places = (0..50_000u64).map(|number| (op, number * 7919 % 3900 * 4096, 4096));
                let trace = folder.file("trace.csv", msr(places));
                command.args(["replay".as_ref(), trace.as_os_str(), target.as_os_str()]);
                command.args(["--speed", "max", "--depth", "1"]);
                if is_off || self == ReplayCompare {
                    command.args(["--shift", "512"]);
                }
                if self == ReplayCompare {
                    command.arg("--compare");
                }
            }
            Probe => {
                command.args(["probe", name, "--limit", "20s"]);
            }
        }
        if writes && self != Probe {
            command.args(["--write", "--yes", name]);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The position of the target's name in its message, for those that read it from a file.
    fn place(self) -> &'static str {
        match self {
            Vdbench => "p:1: ",
            Fio => "j:2: ",
            _ => "",
        }
    }

    #[track_caller]
    fn refuses(self, target: &Path, asked: LoadOptions, code: i32, words: &str) {
        let folder = Folder::new("refused");
        let done = self.command(&folder, target, asked).limited_output();
        let ran = Ran::from_output(done);
        assert_eq!(
            ran.code,
            code,
            "{self:?} of {}:\n{}{}",
            target.display(),
            ran.out,
            ran.err
        );
        ran.complains(words)
            .complains(self.place())
            .complains(target.to_str().expect("a plain name"));
        assert_eq!(
            ran.out, "",
            "{self:?} told something of what it had refused"
        );
    }
}

/// A regular file where a device should be; gone with the test, well or not.
struct Stray(PathBuf);

impl Stray {
    fn new(bytes: u64) -> Stray {
        let path = PathBuf::from(format!("/dev/plumb-no-disk-{}", std::process::id()));
        fs::write(&path, vec![7; bytes as usize]).expect("root may write there");
        Stray(path)
    }
}

impl Drop for Stray {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Parts that are too short, and grids within a logical block, cannot be measured.
#[test]
fn invalid_probes_are_refused() {
    let folder = Folder::new("not-probed");
    let target = folder.file("disk", vec![7; 2 << 20]);
    let name = target.to_str().expect("a plain name");
    for (flags, words) in [
        ("--range 0-64k", "--range: found 64 KiB of"),
        (
            "--range 1m-5m",
            "--range: found an end at 5 MiB, expected at most 2 MiB",
        ),
        (
            "--grid 700",
            "--grid: found a granularity of 700 bytes, expected a multiple of",
        ),
        (
            "--grid 4k@100",
            "--grid: found an offset of 100 bytes, expected a multiple of",
        ),
    ] {
        let ran = plumb(["probe", name].into_iter().chain(flags.split(' ')));
        ran.ends(2).complains(words).complains(name);
        assert_eq!(ran.out, "", "{flags}");
    }
    let messages = [
        plumb(["probe", "null"]).ends(5).complaint(),
        plumb(["probe", "/dev/plumb-no-such-disk"])
            .ends(5)
            .complaint(),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn non_devices_are_refused() {
    let folder = Folder::new("no-target");
    let dangling = folder.path("dangling");
    symlink(folder.path("nowhere"), &dangling).expect("a link");
    for way in ALL {
        for (target, words) in [
            (Path::new("/dev/plumb-no-such-disk"), "nothing is there"),
            (&folder.path("missing"), "nothing is there"),
            (&dangling, "nothing is there"),
            (
                folder.path("").as_path(),
                "found a directory, expected a block device or a regular file",
            ),
            (
                Path::new("/dev/null"),
                "found a character device, expected a block device or a regular file",
            ),
        ] {
            let is_missing = words == "nothing is there";
            let status = if is_missing { 5 } else { 2 };
            way.refuses(target, LoadOptions::default(), status, words);
        }
    }
}

#[test]
fn a_file_made_by_mistake_among_the_devices() {
    require!(Root);
    let (folder, stray) = (Folder::new("stray"), Stray::new(2 * MIB));
    let link = folder.path("link");
    symlink(&stray.0, &link).expect("a link");
    for way in ALL {
        for target in [&stray.0, &link] {
            let words =
                "found a regular file among the devices, expected a block device: remove the file";
            way.refuses(target, LoadOptions::default(), 2, words);
            way.refuses(
                target,
                LoadOptions {
                    writes: way != Probe,
                    ..LoadOptions::default()
                },
                2,
                words,
            );
        }
    }
    let content = fs::read(&stray.0).expect("it is still there");
    assert!(
        content.len() as u64 == 2 * MIB && content.iter().all(|byte| *byte == 7),
        "it was written to"
    );
}

#[test]
fn small_targets_are_refused() {
    let folder = Folder::new("small");
    for bytes in [0, 512] {
        let target = folder.file(&format!("disk-{bytes}"), vec![7; bytes]);
        for way in ALL {
            let words = match way {
                Probe => "expected 1 MiB or more",
                Replay | ReplayCompare => "too small for I/O 1 of the trace",
                _ => "which is too small: expected room for one I/O of 4,096 bytes",
            };
            way.refuses(&target, LoadOptions::default(), 2, words);
        }
    }
}

#[test]
fn writes_to_read_only_devices_are_refused() {
    require!(Loop);
    let folder = Folder::new("read-only");
    let image = folder.file("image", vec![7; 2 * MIB as usize]);
    let device = LoopDevice::attach(&image, &["--read-only"]);
    for way in ALL.into_iter().filter(|way| *way != Probe) {
        way.refuses(
            device.path(),
            LoadOptions {
                writes: true,
                ..LoadOptions::default()
            },
            5,
            "is read-only",
        );
    }
    assert!(
        fs::read(&image)
            .expect("the image")
            .iter()
            .all(|byte| *byte == 7),
        "it was written to"
    );
    let reads = Bench
        .command(&folder, device.path(), LoadOptions::default())
        .limited_output();
    assert!(reads.status.success(), "reads are no writes: {reads:?}");
}

#[test]
fn a_sector_is_less_than_a_logical_block_of_4_kib() {
    require!(Loop);
    let folder = Folder::new("4kn");
    let image = folder.file("image", vec![7; 16 * MIB as usize]);
    let device = LoopDevice::attach(&image, &["--sector-size", "4096"]);
    for way in ALL.into_iter().filter(|way| *way != Probe) {
        let asked = LoadOptions {
            is_off: true,
            ..LoadOptions::default()
        };
        way.refuses(device.path(), asked, 2, "logical block of 4,096 bytes");
    }
}

/// How long a command may go on behind the blow: some seconds, and longer where the machine has other work.
const PATIENCE: Duration = Duration::from_secs(30);

/// The fate of a disk under load.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Every I/O fails.
    Fails,
    /// The server is gone.
    Dies,
}

/// Loads a disk, applies the fate, and returns the output and the exit status.
fn struck(way: LoadCommand, fate: Fate) -> Ran {
    let folder = Folder::new("struck");
    let disk = SlowDisk::new(16 * MIB, "4ms");
    let mut command = way.command(
        &folder,
        disk.path(),
        LoadOptions {
            seconds: 60,
            ..LoadOptions::default()
        },
    );
    let running = command.arg("--json").spawn().expect("the program starts");
    std::thread::sleep(Duration::from_millis(2500));
    match fate {
        Fate::Fails => disk.fail(),
        Fate::Dies => disk.die(),
    }
    let struck = Instant::now();
    let ran = Ran::from_output(wait::output("plumb", wait::PATIENCE, running));
    assert!(
        struck.elapsed() < PATIENCE,
        "{way:?} {fate:?}: it went on for {:?}",
        struck.elapsed()
    );
    ran
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("found {value}, expected words"))
}

/// The rate of successful I/O may be any; the message must say that some I/O failed, and that it is incomplete.
#[track_caller]
fn counts_failures(measured: &Value) {
    let ios = |value: &Value| {
        value["ios"]
            .as_u64()
            .unwrap_or_else(|| panic!("no number in {value}"))
    };
    assert!(ios(measured) > 20, "{measured}");
    let failures = measured["failures"].as_array().expect("failures");
    assert!(failures.iter().map(ios).sum::<u64>() > 0, "{measured}");
    assert!(
        failures.iter().all(|failure| failure["op"] == "read"),
        "{measured}"
    );
}

#[test]
fn disks_that_fail_or_die_meanwhile() {
    require!(Patience, Tool("nbdkit"), Tool("nbdfuse"), Tool("umount"));
    // They mostly wait: side by side they take as long as one.
    std::thread::scope(|scope| {
        let cases = ALL
            .into_iter()
            .flat_map(|way| [(way, Fate::Fails), (way, Fate::Dies)]);
        let all: Vec<_> = cases
            .map(|(way, fate)| scope.spawn(move || after_the_blow(way, fate)))
            .collect();
        all.into_iter()
            .for_each(|one| one.join().expect("as it should be"));
    });
}

fn after_the_blow(way: LoadCommand, fate: Fate) {
    let ran = struck(way, fate);
    let document = ran.json();
    let result = &document["result"];
    assert_eq!(ran.code, 3, "{way:?} {fate:?}: {result:#}");
    match way {
        Bench | Vdbench | Fio => {
            let runs = result["runs"].as_array().expect("runs");
            assert_eq!(runs.len(), 1, "nothing is left to measure in a second run");
            let target = &runs[0]["targets"][0];
            assert_eq!(target["is_whole"], false, "{target}");
            assert!(text(&target["ended"]).starts_with("early"), "{target}");
            counts_failures(&target["measured"]);
            let verdict = if way == Vdbench {
                Value::from("inconclusive")
            } else {
                Value::Null
            };
            assert_eq!(result["sweep"]["verdict"], verdict, "{result:#}");
            assert!(
                way != Vdbench || text(&result["sweep"]["why"]).contains("I/O failed"),
                "{result:#}"
            );
            is_no_side_of_a_comparison(&ran.out);
        }
        Replay => {
            counts_failures(&result["replayed"]["measured"]);
            assert!(
                text(&result["replayed"]["ended"]).starts_with("early"),
                "{result:#}"
            );
        }
        ReplayCompare => {
            let comparison = &result["comparison"];
            assert_eq!(comparison["verdict"], "inconclusive", "{comparison:#}");
            assert_eq!(comparison["why"], "some I/O failed");
            assert!(
                text(&comparison["ended"]).starts_with("early"),
                "{comparison:#}"
            );
            let failed = |side: &str| {
                comparison[side]["measured"]["failures"]
                    .as_array()
                    .map_or(0, Vec::len)
            };
            assert!(failed("today") + failed("planned") > 0, "{comparison:#}");
        }
        Probe => {
            assert_eq!(result["verdict"], "inconclusive", "{result:#}");
            let reason = text(&result["reason"]);
            assert!(reason.contains("failed, expected none"), "{reason}");
            assert_eq!(
                (&result["grid"], &result["penalty"]),
                (&Value::Null, &Value::Null)
            );
        }
    }
}

/// Even beside itself a run that failed leaves the answer open.
fn is_no_side_of_a_comparison(document: &str) {
    let folder = Folder::new("struck-compare");
    let file = folder.file("broken.json", document);
    let ran = plumb(["compare".as_ref(), file.as_os_str(), file.as_os_str()]);
    ran.ends(3)
        .says("I/O failed or never came back")
        .says("ended early for a target's sake");
}

/// The same for a block device: the kernel passes on the fate of the file below it.
#[test]
fn a_device_whose_file_is_gone() {
    require!(Loop, Tool("nbdkit"), Tool("nbdfuse"), Tool("umount"));
    let folder = Folder::new("struck-device");
    let disk = SlowDisk::new(16 * MIB, "4ms");
    let device = LoopDevice::attach(disk.path(), &["--direct-io=on"]);
    let asked = LoadOptions {
        seconds: 60,
        ..LoadOptions::default()
    };
    let mut command = Bench.command(&folder, device.path(), asked);
    let running = command.arg("--json").spawn().expect("the program starts");
    std::thread::sleep(Duration::from_millis(1500));
    disk.die();
    let ran = Ran::from_output(wait::output("plumb", wait::PATIENCE, running));
    let target = &ran.ends(3).json()["result"]["runs"][0]["targets"][0];
    assert_eq!(target["is_whole"], false, "{target}");
    counts_failures(&target["measured"]);
}

/// Each kind of error in a parameter file: file, line, the text found, the text expected. The readers' own tests have
/// one of each parameter.
#[test]
fn parameter_files_with_each_kind_of_error() {
    let folder = Folder::new("files-refused");
    let disk = folder.file("disk", vec![7; 2 * MIB as usize]);
    let (sd, job) = (
        format!("sd=s,lun={}\n", disk.display()),
        format!("[a]\nfilename={}\n", disk.display()),
    );
    let long = "* \n".repeat(1 << 19);
    let rows: &[(&str, &str, &str, &str)] = &[
        (
            "--vdbench",
            &sd,
            "wd=w,sd=s,fred=1",
            "p:2: found unknown parameter `fred=` of wd=w, expected one of: sd",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w,sd=s,hotband=(1,2)",
            "p:2: found `hotband=` of wd=w, which skews starts",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w,sd=s,xf=4x",
            "p:2: xfersize of wd=w: found `4x`, expected numbers",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w,sd=s\nrd=r,wd=w,dist=spike",
            "p:3: distribution of rd=r: found `spike`, expected",
        ),
        (
            "--vdbench",
            &sd,
            "sd=s,lun=/x",
            "p:2: found sd=s a second time, expected it once: it is in line 1",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w,sd=s\nrd=r,wd=v,io=max",
            "p:3: found wd=v, which is not defined, expected one of: w",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w\nrd=r,wd=w,io=max",
            "p:3: found rd=r with wd=w without sd=, expected it in one",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w,sd=(s",
            "p:2: found `(` without its `)`, expected parentheses in pairs",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w,sd=s",
            "p: found nothing to run, expected a run: rd=NAME",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w,sd=s\nrd=r,wd=w,io=max,forth=(1-4000,1),forxf=(1k-9k,1k)",
            "p:3: found more than 10000",
        ),
        (
            "--vdbench",
            &sd,
            "include=other",
            "p:2: include=other: cannot be read",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w,sd=s,rhpct=5\nrd=r,wd=w,io=max,hitarea=2m",
            "p:1: ",
        ),
        (
            "--vdbench",
            &sd,
            "wd=w,sd=s,rhpct=5\nrd=r,wd=w,io=max,hitarea=2m",
            "in the hit area of 2,097,152 bytes",
        ),
        (
            "--vdbench",
            &long,
            "",
            "p: found more than 1048576 bytes, expected a parameter file",
        ),
        (
            "--fio",
            &job,
            "fred=1",
            "j:3: found unknown parameter `fred` of [a], expected one of: filename",
        ),
        (
            "--fio",
            &job,
            "verify=md5",
            "j:3: found `verify` of [a], which checks data",
        ),
        (
            "--fio",
            &job,
            "bs=4x",
            "j:3: bs of [a]: found `4x`, expected lengths",
        ),
        (
            "--fio",
            &job,
            "time_based",
            "j:1: found [a] without runtime=, expected runtime=SECONDS",
        ),
        ("--fio", "", "[a", "j:1: found"),
        ("--fio", "", "bs=4k", "j:1: found"),
        (
            "--fio",
            "",
            "",
            "j: found nothing to run, expected a job: [NAME]",
        ),
        (
            "--fio",
            &long,
            "",
            "j: found more than 1048576 bytes, expected a parameter file",
        ),
    ];
    for (flag, begin, line, words) in rows {
        let file = folder.file(
            if *flag == "--fio" { "j" } else { "p" },
            format!("{begin}{line}\n"),
        );
        let ran = plumb(["bench", flag, file.to_str().expect("a plain name")]);
        let is_file_missing = line.starts_with("include=");
        ran.ends(if is_file_missing { 5 } else { 2 })
            .complains(words)
            .complains(file.to_str().expect("plain"));
        assert_eq!(ran.out, "", "{line}: something was measured");
    }
    let mut messages = Vec::new();
    for flag in ["--vdbench", "--fio"] {
        let missing = folder.path("none");
        messages.push(
            plumb(["bench".as_ref(), flag.as_ref(), missing.as_os_str()])
                .ends(5)
                .complaint(),
        );
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}
