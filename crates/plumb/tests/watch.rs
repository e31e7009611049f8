//! `plumb watch`: what it prints of I/O that are known, and what it says where it may not look.

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{Folder, plumb};
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::require;
use serde_json::Value;

const SIZE: u64 = 64 << 20;

/// `dd` with O_DIRECT: `count` reads of `block`, `skip` bytes into the device.
fn read(device: &Path, block: u64, count: u64, skip: u64) {
    let done = Command::new("dd")
        .arg(format!("if={}", device.display()))
        .args(["of=/dev/null", "iflag=direct,skip_bytes", "status=none"])
        .args([format!("bs={block}"), format!("count={count}"), format!("skip={skip}")])
        .status();
    assert!(done.expect("dd").success());
}

fn disk(folder: &Folder) -> LoopDevice {
    let image = folder.path("disk");
    File::create(&image).and_then(|file| file.set_len(SIZE)).expect("room for a sparse file");
    LoopDevice::attach(&image, &[])
}

/// A watch whose lines are read as they come.
struct Watching {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Watching {
    fn begin(args: &[&str]) -> Watching {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .arg("watch")
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("plumb runs");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        Watching { child, lines }
    }

    fn next(&mut self) -> Value {
        let line = self.lines.next().expect("one more interval").expect("text");
        serde_json::from_str(&line).expect("a document")
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ios(document: &Value) -> u64 {
    let profiles = document["result"]["profiles"].as_array().expect("profiles");
    profiles.iter().map(|profile| profile["ios"].as_u64().expect("a count")).sum()
}

/// 211 reads of 8 KiB from sector 34 on, over several intervals: none is lost between two of them.
#[test]
fn intervals_add_up_and_ctrl_c_ends_with_the_totals() {
    require!(Bpf, Loop, Tool("dd"));
    let folder = Folder::new("watch-sum");
    let disk = disk(&folder);
    let saved = folder.path("saved.profile");
    let name = disk.name();
    let mut watching =
        Watching::begin(&[&name, "--json", "--interval", "300ms", "--save", saved.to_str().expect("text")]);
    // Programs are at work when the first interval is over.
    assert_eq!(ios(&watching.next()), 0);
    (0..211).step_by(30).for_each(|at: u64| read(disk.path(), 8192, 30.min(211 - at), 34 * 512 + at * 8192));
    let mut seen = 0;
    let mut misaligned = 0;
    for _ in 0..10 {
        let document = watching.next();
        seen += ios(&document);
        let processes = document["result"]["processes"].as_array().expect("processes").clone();
        assert!(processes.iter().all(|process| process["comm"] == "dd" && process["device"] == *name));
        misaligned +=
            processes.iter().map(|process| process["misaligned"].as_u64().expect("a count")).sum::<u64>();
        if seen >= 211 {
            break;
        }
    }
    assert_eq!((seen, misaligned), (211, 211));
    let pid = watching.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    assert_eq!(watching.child.wait().expect("an end").code(), Some(1));
    let again = plumb(["analyze".as_ref(), saved.as_os_str(), "--json".as_ref()]).ends(1).json();
    let profile = &again["result"]["profiles"][0];
    assert_eq!((profile["ios"].as_u64(), profile["timed"].as_u64()), (Some(211), Some(211)));
    assert_eq!(again["findings"][0]["id"], "misaligned-io");
}

/// As a person reads it: a block for the interval, then the findings.
#[test]
fn text_for_80_columns() {
    require!(Bpf, Loop, Tool("dd"));
    let folder = Folder::new("watch-text");
    let disk = disk(&folder);
    let name = disk.name();
    let reader = disk.path().to_owned();
    let reading = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        read(&reader, 4096, 401, 512);
    });
    let ran = plumb(["watch", &name, "--interval", "4s", "--count", "1"]);
    ran.ends(1);
    reading.join().expect("dd");
    for words in [
        "401 reads          1.57 MiB",
        "401 I/O misaligned (100 %), mean 1 block, 512 byte offset",
        "dd  ",
        "this host: request layer by typed tracepoints",
        "WARNING  misaligned-io: device",
    ] {
        assert!(ran.out.contains(words), "no {words:?} in\n{}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
}

#[test]
fn nothing_seen_is_not_clean() {
    require!(Bpf, Loop);
    let folder = Folder::new("watch-nothing");
    let disk = disk(&folder);
    plumb(["watch", &disk.name(), "--interval", "200ms", "--count", "2"]).ends(3).says("no I/O");
}

#[test]
fn who_may_not_is_told_the_command() {
    require!(Root, Tool("setpriv"));
    let done = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"])
        .arg(env!("CARGO_BIN_EXE_plumb"))
        .args(["watch", "--count", "1"])
        .output()
        .expect("setpriv");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{said}");
    assert!(said.contains("expected CAP_BPF and CAP_PERFMON"), "{said}");
    assert!(said.contains("help: run: sudo ") && said.contains("watch --count 1"), "{said}");
}

#[test]
fn what_cannot_be_watched() {
    plumb(["watch", "no-such-disk"]).ends(2).complains("no-such-disk: found no such device");
    plumb(["watch", "--interval", "50ms"]).ends(2).complains("expected a time of 100ms or more");
    plumb(["watch", "--count", "0"]).ends(2);
    plumb(["watch", "--save", "/no/such/folder/x.profile"])
        .ends(2)
        .complains("/no/such/folder: found no such directory");
}

#[test]
fn a_device_without_requests_names_those_below() {
    let disks = std::fs::read_dir("/sys/block").expect("sysfs").flatten();
    let Some(disk) = disks.map(|disk| disk.path()).find(|disk| !disk.join("mq").exists()) else {
        let why = "this host has no dm, md or zram device";
        return plumb_testkit::require::record_skip(
            "watch::a_device_without_requests_names_those_below",
            why,
        );
    };
    let name = disk.file_name().expect("a name").to_string_lossy().into_owned();
    plumb(["watch", &name]).ends(3).complains("hands its I/O on as it comes");
}
