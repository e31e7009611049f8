//! `plumb watch`: its output for known I/O, and its message without rights.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::attached::await_programs;
use crate::common::{Folder, Ran, command, plumb, recorded};
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};
use serde_json::Value;

const SIZE: u64 = 64 << 20;

/// `dd` with O_DIRECT: `count` reads of `block`, `skip` bytes into the device.
fn read(device: &Path, block: u64, count: u64, skip: u64) {
    let done = Command::new("dd")
        .arg(format!("if={}", device.display()))
        .args(["of=/dev/null", "iflag=direct,skip_bytes", "status=none"])
        .args([
            format!("bs={block}"),
            format!("count={count}"),
            format!("skip={skip}"),
        ])
        .status();
    assert!(done.expect("dd").success());
}

fn disk(folder: &Folder) -> LoopDevice {
    let image = folder.path("disk");
    File::create(&image)
        .and_then(|file| file.set_len(SIZE))
        .expect("room for a sparse file");
    LoopDevice::attach_hidden(&image, &[])
}

/// A watch whose lines are read as they come.
struct Watching {
    child: Child,
    lines: wait::Lines,
}

impl Watching {
    fn begin(args: &[&str]) -> Watching {
        Watching::spawn(
            Command::new(env!("CARGO_BIN_EXE_plumb"))
                .arg("watch")
                .args(args)
                .stdout(Stdio::piped()),
        )
    }

    fn spawn(command: &mut Command) -> Watching {
        let mut child = command.spawn().expect("plumb runs");
        let lines = wait::Lines::of("plumb watch", child.stdout.take().expect("its output"));
        Watching { child, lines }
    }

    fn next(&mut self) -> Value {
        let line = self.lines.next().expect("one more interval");
        serde_json::from_str(&line).expect("a document")
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        wait::stop(&mut self.child);
    }
}

fn ios(document: &Value) -> u64 {
    let profiles = document["result"]["profiles"].as_array().expect("profiles");
    profiles
        .iter()
        .map(|profile| profile["ios"].as_u64().expect("a count"))
        .sum()
}

/// 211 reads of 8 KiB from sector 34 on, over several intervals: none is lost between two of them.
#[test]
fn intervals_add_up_and_ctrl_c_ends_with_the_totals() {
    require!(Bpf, Loop, Tool("dd"));
    let folder = Folder::new("watch-sum");
    let disk = disk(&folder);
    let saved = folder.path("saved.profile");
    let name = disk.name();
    let mut watching = Watching::begin(&[
        &name,
        "--json",
        "--interval",
        "300ms",
        "--save",
        saved.to_str().expect("text"),
    ]);
    // Programs are at work when the first interval is over.
    assert_eq!(ios(&watching.next()), 0);
    (0..211)
        .step_by(30)
        .for_each(|at: u64| read(disk.path(), 8192, 30.min(211 - at), 34 * 512 + at * 8192));
    let mut seen = 0;
    let mut misaligned = 0;
    for _ in 0..10 {
        let document = watching.next();
        seen += ios(&document);
        let processes = document["result"]["processes"]
            .as_array()
            .expect("processes")
            .clone();
        assert!(
            processes
                .iter()
                .all(|process| process["comm"] == "dd" && process["device"] == *name)
        );
        misaligned += processes
            .iter()
            .map(|process| process["misaligned"].as_u64().expect("a count"))
            .sum::<u64>();
        if seen >= 211 {
            break;
        }
    }
    assert_eq!((seen, misaligned), (211, 211));
    let pid = watching.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .limited_status()
            .success()
    );
    assert_eq!(
        wait::exit("plumb watch", wait::PATIENCE, &mut watching.child).code(),
        Some(1)
    );
    let again = plumb(["analyze".as_ref(), saved.as_os_str(), "--json".as_ref()])
        .ends(1)
        .json();
    let profile = &again["result"]["profiles"][0];
    assert_eq!(
        (profile["ios"].as_u64(), profile["timed"].as_u64()),
        (Some(211), Some(211))
    );
    assert_eq!(again["findings"][0]["rule"], "misaligned-io");
}

/// Saves two profiles of one load with a command, and compares them: they have a course over time. The load is a read of one sector
/// every 2 ms.
fn compare_two_of_one_load(command: impl Fn(&str, &str) -> Vec<String>) {
    let folder = Folder::new("watch-compare");
    let disk = disk(&folder);
    let (device, path) = (disk.name(), disk.path().to_owned());
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let saved = ["before", "after"].map(|name| folder.path(name));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::os::unix::fs::{FileExt, OpenOptionsExt};
            let mut options = std::fs::OpenOptions::new();
            let file = options
                .read(true)
                .custom_flags(0o40000)
                .open(&path)
                .expect("the device");
            let mut bytes = vec![0u8; 8192];
            // Direct I/O needs a buffer on a boundary of sectors.
            let from = bytes.as_ptr().align_offset(512);
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                file.read_exact_at(&mut bytes[from..from + 512], 4096)
                    .expect("a sector");
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        for path in &saved {
            plumb(command(&device, path.to_str().expect("text")));
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let ran = plumb([
        "compare".as_ref(),
        "--json".as_ref(),
        saved[0].as_os_str(),
        saved[1].as_os_str(),
    ]);
    let json = ran.json();
    let one = &json["result"]["comparisons"][0];
    // 5 s of a watch in windows of 0.54 s, 8 s of a diagnosis in windows of 1.07 s; or windows of twice that where a reading came
    // late, without the first and the last.
    for side in 0..2 {
        let observations = one["sides"][side]["observations"]
            .as_u64()
            .expect("a number");
        assert!((3..=9).contains(&observations), "{one}");
    }
    assert_ne!(one["verdict"]["outcome"], "not-comparable", "{one}");
    let rate = one["measures"].as_array().expect("measures").iter();
    let rate = rate
        .clone()
        .find(|measure| measure["name"] == "ios_per_second")
        .expect("a rate");
    let ratio = rate["ratio"]["value"].as_f64().expect("a ratio");
    assert!((0.5..2.0).contains(&ratio), "one load: {rate}");
    // A page of the saved profile draws the course.
    let page = folder.path("page.html");
    plumb([
        "analyze".as_ref(),
        saved[0].as_os_str(),
        "--html".as_ref(),
        page.as_os_str(),
    ]);
    has_courses(&page);
}

/// The pictures over time that need no positions.
fn has_courses(page: &std::path::Path) {
    let page = std::fs::read_to_string(page).expect("the page");
    for title in [
        "Size mix over time",
        "Throughput over time",
        "Latency over time",
    ] {
        let (_, behind) = page.split_once(title).expect(title);
        let figure = behind.split_once("</figure>").expect(title).0;
        assert!(figure.contains("<svg"), "{title}: {figure}");
    }
}

#[test]
fn saved_watches_are_comparable() {
    require!(Bpf, Loop);
    compare_two_of_one_load(|device, path| {
        let args = [
            "watch",
            device,
            "--interval",
            "100ms",
            "--count",
            "50",
            "--save",
            path,
        ];
        args.map(str::to_owned).to_vec()
    });
}

/// The page of a diagnosis has the same pictures.
#[test]
fn saved_diagnoses_are_comparable() {
    require!(Bpf, Loop);
    let pages = Folder::new("diagnose-compare");
    let page = pages.path("page.html");
    compare_two_of_one_load(|device, path| {
        let page = page.to_str().expect("text");
        let args = [
            "diagnose", device, "--for", "8s", "--save", path, "--html", page,
        ];
        args.map(str::to_owned).to_vec()
    });
    has_courses(&page);
}

/// As a person reads it: a block for the interval, then the findings.
#[test]
fn text_for_80_columns() {
    require!(Bpf, Loop, Tool("dd"));
    let folder = Folder::new("watch-text");
    let disk = disk(&folder);
    let name = disk.name();
    let watching = command()
        .args(["watch", &name, "--interval", "4s", "--count", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("plumb runs");
    await_programs(watching.id());
    read(disk.path(), 4096, 401, 512);
    let ran = Ran::from_output(wait::output("plumb watch", wait::PATIENCE, watching));
    ran.ends(1);
    verdicts_stand_above_intervals(&ran.out, 1);
    assert!(ran.out.starts_with("MISFIT so far: "), "{}", ran.out);
    for words in [
        "401 reads          1.57 MiB",
        "401 I/O misaligned (100 %), mean offset 512 bytes (1 sector)",
        "dd  ",
        "this host: request layer by typed tracepoints",
        "WARNING  misaligned-io: device",
    ] {
        assert!(ran.out.contains(words), "no {words:?} in\n{}", ran.out);
    }
    assert!(
        ran.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.out
    );
}

#[test]
fn nothing_seen_is_not_clean() {
    require!(Bpf, Loop);
    let folder = Folder::new("watch-nothing");
    let disk = disk(&folder);
    let ran = plumb(["watch", &disk.name(), "--interval", "200ms", "--count", "2"]);
    ran.ends(3).says("no I/O");
    verdicts_stand_above_intervals(&ran.out, 2);
}

/// Asserts that the output begins with a verdict on the time so far, and that each interval follows one.
fn verdicts_stand_above_intervals(out: &str, intervals: usize) {
    let is_verdict = |line: &str| {
        let word = line.split(" so far: ").next().unwrap_or_default();
        ["OK", "MISFIT", "PROBLEM", "UNKNOWN"].contains(&word)
    };
    assert!(out.lines().next().is_some_and(is_verdict), "{out}");
    let blocks: Vec<&str> = out.split("\n\n").collect();
    let above = blocks.windows(2).filter(|pair| {
        let heading = pair[1].lines().next().unwrap_or_default();
        is_verdict(pair[0]) && heading.starts_with("20") && heading.ends_with(" s")
    });
    assert_eq!(above.count(), intervals, "{out}");
}

#[test]
fn without_rights_the_command_is_printed() {
    require!(Root, Tool("setpriv"));
    let done = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ])
        .arg(env!("CARGO_BIN_EXE_plumb"))
        .args(["watch", "--count", "1"])
        .limited_output();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{said}");
    insta::assert_snapshot!(recorded(&said));
}

#[test]
fn invalid_watches_are_refused() {
    let mut messages = vec![plumb(["watch", "no-such-disk"]).ends(5).complaint()];
    messages.push(plumb(["watch", "--interval", "50ms"]).ends(2).complaint());
    plumb(["watch", "--count", "0"]).ends(2);
    messages.push(
        plumb(["watch", "--save", "/no/such/folder/x.profile"])
            .ends(5)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A device without requests is watched by bios; by requests there is nothing to watch.
#[test]
fn a_device_without_requests() {
    let disks = std::fs::read_dir("/sys/block").expect("sysfs").flatten();
    let Some(disk) = disks
        .map(|disk| disk.path())
        .find(|disk| !disk.join("mq").exists())
    else {
        let why = "this host has no dm, md or zram device";
        plumb_testkit::skip!(why);
    };
    let name = disk
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let refused = plumb(["watch", &name, "--layer", "request"]);
    insta::assert_snapshot!(refused.ends(3).complaint().replace(&name, "DISK"));
    require!(Bpf);
    plumb(["watch", &name, "--count", "1", "--interval", "100ms"])
        .ends(3)
        .says("this host: bio layer by");
}

/// I/O outside the filter are in no figure, and the output names the filter.
#[test]
fn filtered_by_operation_and_command() {
    require!(Bpf, Loop, Tool("dd"));
    let folder = Folder::new("watch-filter");
    let disk = disk(&folder);
    let name = disk.name();
    for layer in ["request", "bio"] {
        let args = [
            &name,
            "--json",
            "--interval",
            "1s",
            "--layer",
            layer,
            "--op",
            "read,flush",
            "--comm",
            "dd",
        ];
        let mut watching = Watching::begin(&args);
        watching.next();
        read(disk.path(), 4096, 101, 0);
        let done = Command::new("dd")
            .args([
                "if=/dev/zero",
                "bs=4096",
                "count=53",
                "oflag=direct",
                "status=none",
            ])
            .arg(format!("of={}", disk.path().display()))
            .status();
        assert!(done.expect("dd").success());
        std::fs::write("/proc/thread-self/comm", "another").expect("a name of this thread");
        let mut bytes = vec![0; 4096];
        File::open(disk.path())
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes))
            .expect("a read");
        let document = watching.next();
        assert_eq!(
            document["result"]["filter"],
            "operation read or flush, command dd"
        );
        assert_eq!(ios(&document), 101, "{document}");
        assert_eq!(document["result"]["profiles"][0]["target"]["layer"], layer);
    }
    let watch_init = || {
        plumb([
            "watch",
            &name,
            "--pid",
            "1",
            "--interval",
            "100ms",
            "--count",
            "1",
        ])
    };
    // On a busy machine an interval of 100 ms may end late.
    let mut runs = (0..20).map(|_| watch_init());
    let ran = runs.find(|ran| ran.flat().contains(", 0.1 s, "));
    let ran = ran.expect("an interval that ended in time");
    ran.ends(3)
        .says("filtered: only process 1")
        .says("layer by typed tracepoints, 0.1 s, only process 1");
    plumb(["watch", "--cgroup", "/no/such/group", "--count", "1"])
        .ends(5)
        .complains("/no/such/group: ");
    plumb(["watch", "--pid", "0"]).ends(2);
    plumb(["watch", "--comm", ""]).ends(2);
}

/// A line of /proc/PID/status.
fn status(pid: u32, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a line of that name")
        .split_whitespace()
        .next()
        .expect("a value")
        .to_owned()
}

/// A watch in `directory` as root, or through sudo by user 65533; its privileges while it watches, and the owner of its
/// saved files.
fn held(directory: &Path, by_sudo: bool) -> ([String; 5], u32) {
    let saved = directory.join("saved.profile");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["watch", "--json", "--interval", "100ms", "--save"])
        .arg(&saved)
        .stdout(Stdio::piped());
    if by_sudo {
        command.env("SUDO_UID", "65533").env("SUDO_GID", "65532");
    }
    let mut watching = Watching::spawn(&mut command);
    watching.next();
    let pid = watching.child.id();
    let held = ["CapEff", "CapPrm", "CapBnd", "NoNewPrivs", "Uid"].map(|name| status(pid, name));
    if held[4] != "0" {
        assert_eq!(status(pid, "Groups"), "65532");
    }
    assert!(
        Command::new("kill")
            .args(["-INT", &pid.to_string()])
            .limited_status()
            .success()
    );
    let ended = wait::exit("plumb watch", wait::PATIENCE, &mut watching.child).code();
    assert!(matches!(ended, Some(0 | 1 | 3)), "{ended:?}");
    let found = std::fs::metadata(&saved).expect("what was saved");
    assert!(found.len() > 0);
    (held, std::os::unix::fs::MetadataExt::uid(&found))
}

/// A watch keeps no unneeded privileges, and saves its files wherever root could.
#[test]
fn privileges_are_dropped_once_it_watches() {
    require!(Bpf, Root);
    let none = "0000000000000000";
    let folder = Folder::new("watch-privileges");
    let own = |name: &str, owner: u32| {
        let path = folder.path(name);
        std::fs::create_dir(&path).expect("room");
        std::os::unix::fs::chown(&path, Some(owner), Some(owner)).expect("an owner");
        path
    };
    let (of_root, of_user, of_other) = (own("root", 0), own("user", 65_533), own("other", 65_531));
    let dropped = |uid: &str| [none, none, none, "1", uid].map(str::to_owned);
    assert_eq!(held(&of_root, false), (dropped("0"), 0));
    assert_eq!(
        held(&of_root, true),
        (dropped("0"), 0),
        "only root may write there"
    );
    assert_eq!(held(&of_user, true), (dropped("65533"), 65_533));
    // Only the right to write anywhere permits it.
    let writer = "0000000000000002";
    let kept = [writer, writer, writer, "1", "0"].map(str::to_owned);
    assert_eq!(held(&of_other, false), (kept, 0));
}
