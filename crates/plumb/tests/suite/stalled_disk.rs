//! A disk whose server is stopped: `watch`, `diagnose` and `check` end in time and say that it does not answer.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::slow_disk::SlowDisk;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};
use serde_json::Value;

use crate::common::command;
use crate::common::recording::number;

/// Sector at which the reads begin that find the server stopped, and their length in sectors.
const SECTOR: u64 = 2048;
const SECTORS: u64 = 16;
/// A label is waited for 5 s, and a watch lasts 3 s.
const IN_TIME: Duration = Duration::from_secs(20);

/// A loop device over a file that a server shows.
pub struct ServedDisk {
    // Dropped first.
    pub disk: LoopDevice,
    pub server: SlowDisk,
}

impl Drop for ServedDisk {
    /// A disk is not detached while a read of it waits.
    fn drop(&mut self) {
        self.server.go_on();
    }
}

impl ServedDisk {
    pub fn new() -> ServedDisk {
        let server = SlowDisk::new(64 << 20, "1ms");
        let disk = LoopDevice::attach_hidden(server.path(), &[]);
        ServedDisk { disk, server }
    }

    /// Starts reads of 8 KiB past the page cache, one after the other.
    fn start_reads(&self, count: u32, sector: u64) -> Child {
        let skip = format!("skip={}", sector / SECTORS);
        Command::new("dd")
            .arg(format!("if={}", self.disk.path().display()))
            .args(["of=/dev/null", "bs=8k", "iflag=direct", &skip])
            .arg(format!("count={count}"))
            .stderr(Stdio::null())
            .spawn()
            .expect("dd runs")
    }

    /// Stops the server under a read.
    pub fn stop(&self) -> Child {
        self.server.stop();
        let reads = self.start_reads(1, SECTOR);
        let stat = Path::new("/sys/block").join(self.disk.name()).join("stat");
        wait::until("a read is in flight", wait::PATIENCE, || {
            in_flight(&stat) > 0
        });
        reads
    }
}

/// The ninth number of `stat`.
pub fn in_flight(stat: &Path) -> u64 {
    let text = std::fs::read_to_string(stat).expect("counters of a disk");
    let word = text.split_ascii_whitespace().nth(8).expect("nine counters");
    word.parse().expect("a number")
}

/// Runs Plumb in a mount namespace in which the hidden disk has its node in `/dev`, where only this process finds it.
pub fn run(disk: &LoopDevice, args: &[&str]) -> (Output, Duration) {
    const SCRIPT: &str = "mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod \"/dev/$0\" b $1 $2 && shift 2 && exec \"$@\"";
    let name = disk.name();
    let number = std::fs::read_to_string(Path::new("/sys/block").join(&name).join("dev"));
    let number = number.expect("the number of a disk");
    let (major, minor) = number.trim().split_once(':').expect("two numbers");
    let plumb = command();
    let began = Instant::now();
    let child = Command::new("unshare")
        .args(["--mount", "sh", "-c", SCRIPT, &name, major, minor])
        .arg(plumb.get_program())
        .args(args)
        .envs(
            plumb
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("plumb runs");
    (
        wait::output("plumb", wait::PATIENCE, child),
        began.elapsed(),
    )
}

fn stalled(document: &Value, disk: &str) -> Value {
    let findings = document["findings"].as_array().expect("findings");
    let of_disk = |one: &&Value| one["rule"] == "stalled-io" && one["target"]["device"] == disk;
    let found = findings.iter().find(of_disk);
    found
        .unwrap_or_else(|| panic!("no stalled-io of {disk}: {findings:?}"))
        .clone()
}

/// Both do not hang with the disk, and both find that it hangs although it looks idle to its counters of completed I/O.
#[test]
fn a_hung_disk_is_reported_in_time() {
    require!(Bpf, Loop, Tool("nbdkit"), Tool("nbdfuse"));
    let served = ServedDisk::new();
    let name = served.disk.name();
    let mut reads = served.stop();

    let (output, took) = run(
        &served.disk,
        &["watch", &name, "--json", "--interval", "1s", "--count", "3"],
    );
    assert!(took < IN_TIME, "watch took {took:?}");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).expect("text");
    let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    let finding = stalled(&last, &name);
    assert_eq!(finding["severity"], "critical");
    let stall = &finding["facts"]["stall"];
    assert_eq!(stall["kind"], "silent");
    assert!(number(&stall["in_flight"]) >= 1, "{stall}");
    let for_ns = number(&stall["for_ns"]);
    assert!(
        (2_000_000_000..4_000_000_000).contains(&for_ns),
        "{for_ns} of the 3 s of the watch"
    );

    let (output, took) = run(&served.disk, &["diagnose", &name, "--for", "3s", "--json"]);
    assert!(took < IN_TIME, "diagnose took {took:?}");
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        stalled(&document, &name)["facts"]["stall"]["kind"],
        "silent"
    );
    let (output, _) = run(&served.disk, &["diagnose", &name, "--for", "3s"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let unread = format!("labels and superblocks of {name} (no answer within 5 s)");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&unread), "{text}");

    let (output, took) = run(&served.disk, &["check", &name]);
    assert!(took < IN_TIME, "check took {took:?}");
    assert_eq!(output.status.code(), Some(3));

    served.server.go_on();
    assert!(wait::exit("the reads", wait::PATIENCE, &mut reads).success());
}

/// `make test` has three runs, `PLUMB_ALARM_RUNS` says another number.
#[test]
fn a_stall_is_found_every_time() {
    require!(Bpf, Loop, Tool("nbdkit"), Tool("nbdfuse"));
    let served = ServedDisk::new();
    let name = served.disk.name();
    let mut reads = served.stop();
    for _ in 0..crate::alarms::runs() {
        let (output, _) = run(&served.disk, &["diagnose", &name, "--for", "3s", "--json"]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        stalled(&document, &name);
    }
    served.server.go_on();
    assert!(wait::exit("the reads", wait::PATIENCE, &mut reads).success());
}

/// A stall that is over by the end is a finding too, and names the I/O that waited: its place, its length and its sender.
#[test]
fn a_stall_that_is_over_names_the_io_that_waited() {
    require!(Bpf, Loop, Tool("nbdkit"), Tool("nbdfuse"));
    let served = ServedDisk::new();
    let name = served.disk.name();
    let mut watching = command()
        .args(["watch", &name, "--json", "--interval", "1s"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("plumb runs");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(
        watching.stdout.take().expect("its output"),
    ));
    // The programs are loaded when the first interval is over.
    lines.next().expect("an interval").expect("a line");
    assert!(
        wait::exit(
            "fifty reads",
            wait::PATIENCE,
            &mut served.start_reads(50, 0)
        )
        .success()
    );
    let mut reads = served.stop();
    std::thread::sleep(Duration::from_secs(3));
    served.server.go_on();
    assert!(wait::exit("the reads", wait::PATIENCE, &mut reads).success());
    let reader = reads.id();
    // One more interval, so that the end is seen.
    let mut documents = vec![lines.next().expect("an interval").expect("a line")];
    assert!(
        Command::new("kill")
            .args(["-INT", &watching.id().to_string()])
            .limited_status()
            .success()
    );
    documents.extend(lines.map(|line| line.expect("text")));
    assert_eq!(
        wait::exit("the watch", wait::PATIENCE, &mut watching).code(),
        Some(1)
    );
    let documents: Vec<Value> = documents
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    // It completed in an interval in which none was issued.
    let answered = documents.iter().find_map(|document| {
        let profile = &document["result"]["profiles"][0];
        (profile["ios"] == 0 && profile["timed"] == 1).then(|| profile["ops"][0].clone())
    });
    let answered = answered.unwrap_or_else(|| panic!("no interval has it: {documents:?}"));
    assert_eq!(answered["op"], "read");
    // The histogram is read last, and may have it in the interval before.
    let longest = documents.iter().filter_map(|document| {
        document["result"]["profiles"][0]["ops"][0]["device"]["max_ns"].as_u64()
    });
    assert!(longest.max() >= Some(3_000_000_000), "{documents:?}");
    let finding = stalled(documents.last().expect("a line"), &name);
    assert_eq!(finding["severity"], "warning");
    let stall = &finding["facts"]["stall"];
    assert_eq!(stall["kind"], "was-silent");
    assert!(
        (2_000_000_000..20_000_000_000).contains(&number(&stall["for_ns"])),
        "{stall}"
    );
    let slowest = &stall["slowest"];
    assert_eq!(slowest["op"], "read");
    assert_eq!(number(&slowest["start_bytes"]), SECTOR * 512);
    assert_eq!(number(&slowest["len_bytes"]), SECTORS * 512);
    assert_eq!(slowest["sender"]["comm"], "dd");
    assert_eq!(number(&slowest["sender"]["pid"]), u64::from(reader));
    assert!(number(&slowest["ns"]) >= 3_000_000_000, "{slowest}");
}

/// Reads of 5 ms each, 16 in flight on a disk that serves one after the other, saturate it; one at a time does not.
#[test]
fn a_slow_disk_with_a_queue_is_saturated() {
    require!(Bpf, Loop, Tool("nbdkit"), Tool("nbdfuse"), Tool("fio"));
    let server = SlowDisk::new(64 << 20, "50ms");
    let disk = LoopDevice::attach_hidden(server.path(), &[]);
    let name = disk.name();
    for (depth, is_saturated) in [("32", true), ("1", false)] {
        let mut fio = Command::new("fio")
            .args(["--name=load", "--rw=randread", "--bs=8k", "--direct=1"])
            .args([
                "--thread",
                "--time_based",
                "--runtime=60",
                "--ioengine=io_uring",
            ])
            .arg(format!("--iodepth={depth}"))
            .arg(format!("--filename={}", disk.path().display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("fio runs");
        let stat = Path::new("/sys/block").join(&name).join("stat");
        wait::until("fio reads", wait::PATIENCE, || in_flight(&stat) > 0);
        let (output, _) = run(&disk, &["diagnose", &name, "--for", "5s", "--json"]);
        wait::killed("fio", &mut fio);
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let findings = document["findings"].as_array().expect("findings");
        let found = findings
            .iter()
            .find(|one| one["rule"] == "saturated-device");
        assert_eq!(found.is_some(), is_saturated, "depth {depth}: {findings:?}");
        let rules = findings.iter().any(|one| one["rule"] == "stalled-io");
        assert!(!rules, "{findings:?}");
    }
}
