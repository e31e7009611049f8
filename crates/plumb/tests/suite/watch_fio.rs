//! `plumb watch` against the senders of the I/O and against another counter: fio and bpftrace, in the same run.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Folder, command};
use plumb_profile::codec;
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, require::tool, wait};
use plumb_trace::{Layer, Op};
use serde_json::Value;

const MODULUS: u64 = 1 << 20;
const IOS: u64 = 10_007;

/// (whether it writes, start modulo 1 MiB, length) to I/O.
type IoCounts = BTreeMap<(bool, u64, u64), u64>;

/// The rows of one device in the output of `residue.bt`: `@[7, 0, RS, 34, 16]: 5`, in sectors.
fn rows_of_bpftrace(text: &str, device: &str) -> IoCounts {
    let mut counted = IoCounts::new();
    for line in text.lines() {
        let Some((keys, ios)) = line
            .strip_prefix("@[")
            .and_then(|row| row.split_once("]: "))
        else {
            continue;
        };
        let Some(keys) = keys.strip_prefix(device) else {
            continue;
        };
        let keys: Vec<&str> = keys.split(", ").skip(1).collect();
        let [op, residue, length] = keys[..] else {
            panic!("{line}")
        };
        let sectors = |word: &str| word.parse::<u64>().expect("a number") * 512;
        let key = (op.starts_with('W'), sectors(residue), sectors(length));
        *counted.entry(key).or_default() += ios.parse::<u64>().expect("a count");
    }
    counted
}

/// The rows that a watch has saved.
fn rows_of_plumb(saved: &Path, device: &str) -> IoCounts {
    let saved = codec::decode(&std::fs::read(saved).expect("the profile")).expect("a profile");
    let profile = saved
        .profiles
        .find(device, Layer::Request)
        .expect("the disk");
    let mut counted = IoCounts::new();
    for (key, row) in profile.places.table.iter() {
        let at = (
            key.op() == Op::Write,
            key.residue() * 512,
            key.length() * 512,
        );
        *counted.entry(at).or_default() += row.ios;
    }
    counted
}

#[test]
fn fio_sent_as_many_and_bpftrace_saw_the_same_rows() {
    require!(Bpf, Loop, Tool("fio"), Tool("bpftrace"));
    let folder = Folder::new("watch-fio");
    let image = folder.path("disk");
    File::create(&image)
        .and_then(|file| file.set_len(256 << 20))
        .expect("room for a sparse file");
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let name = disk.name();
    let of_disk = |what: &str| Path::new("/sys/class/block").join(&name).join(what);
    // The driver receives the same I/O that fio sends: nothing is merged, and 64 KiB are let through whole.
    disk.set_queue("nomerges", "2");
    disk.set_queue("max_sectors_kb", "64");
    let number = std::fs::read_to_string(of_disk("dev"))
        .expect("its number")
        .trim()
        .replace(':', ", ");

    let saved = folder.path("saved.profile");
    let mut watching = command()
        .args([
            "watch",
            &name,
            "--json",
            "--interval",
            "500ms",
            "--fail-on",
            "none",
            "--save",
        ])
        .arg(&saved)
        .stdout(Stdio::piped())
        .spawn()
        .expect("plumb runs");
    let mut lines = wait::Lines::of("plumb watch", watching.stdout.take().expect("its output"));
    // Its programs are at work.
    lines.next().expect("an interval");

    let said = folder.path("fio.json");
    let fio = format!(
        "{} --name=load --filename={} --direct=1 --rw=randrw --bssplit=512/20:4k/40:8k/20:64k/20 --blockalign=8k \
         --offset=17408 --norandommap --io_size=1t --number_ios={IOS} --ioengine=libaio --iodepth=16 --output-format=json --output={}",
        tool("fio").expect("asked for before").display(),
        disk.path().display(),
        said.display()
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../collectors/residue.bt");
    let traced = Command::new("bpftrace")
        .env("BPFTRACE_MAP_KEYS_MAX", "65536")
        .args(["-c", &fio])
        .arg(script)
        .limited_output();
    assert!(
        traced.status.success(),
        "{}",
        String::from_utf8_lossy(&traced.stderr)
    );
    let pid = watching.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .limited_status()
            .success()
    );
    let intervals: Vec<Value> = lines
        .map(|line| serde_json::from_str(&line).expect("a document"))
        .collect();
    wait::exit("plumb watch", wait::PATIENCE, &mut watching);

    // fio begins its output with its complaints.
    let text = std::fs::read_to_string(said).expect("what fio said");
    let fio: Value =
        serde_json::from_str(&text[text.find('{').expect("a document")..]).expect("a document");
    let sent =
        ["read", "write"].map(|op| fio["jobs"][0][op]["total_ios"].as_u64().expect("a count"));
    assert_eq!(sent.iter().sum::<u64>(), IOS);
    let profiles = intervals
        .iter()
        .flat_map(|one| one["result"]["profiles"].as_array().into_iter().flatten());
    let ops: Vec<&Value> = profiles
        .flat_map(|one| one["ops"].as_array().into_iter().flatten())
        .collect();
    let seen = ["read", "write"].map(|op| {
        ops.iter()
            .filter(|one| one["op"] == op)
            .map(|one| one["ios"].as_u64().expect("a count"))
            .sum::<u64>()
    });
    assert_eq!(seen, sent);

    let by_bpftrace = rows_of_bpftrace(&String::from_utf8_lossy(&traced.stdout), &number);
    assert!(by_bpftrace.len() > 500, "{} rows", by_bpftrace.len());
    assert!(
        by_bpftrace
            .keys()
            .all(|&(_, residue, _)| residue < MODULUS && residue % 8192 == 1024)
    );
    assert_eq!(rows_of_plumb(&saved, &name), by_bpftrace);
}
