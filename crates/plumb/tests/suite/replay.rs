//! `plumb replay`: its I/O, their times, and its verdict on a plan. Traces are made here; the I/O are read from its own
//! trace and from `plumb record`'s view of the disk.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::recording::{Recording, read};
use crate::common::{Folder, Ran, plumb};
use plumb_testkit::charging::ChargedCells;
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::{Rng, require};
use plumb_trace::{Batch, Clock, Event, Layer, Op, SourceInfo, write};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// An I/O as a test means it.
#[derive(Clone, Copy, Debug)]
struct TracedIo {
    at_ns: i64,
    op: Op,
    start: u64,
    len: u64,
    pid: i32,
    took_ns: Option<i64>,
}

impl TracedIo {
    fn read(at_ns: i64, start: u64, len: u64) -> TracedIo {
        TracedIo {
            at_ns,
            op: Op::Read,
            start,
            len,
            pid: 7,
            took_ns: Some(1000),
        }
    }
}

fn trace(folder: &Folder, name: &str, ios: &[(&str, TracedIo)]) -> PathBuf {
    let path = folder.path(name);
    let info = SourceInfo {
        clock: Clock::Start,
        one_layer_a_device: true,
        ..SourceInfo::default()
    };
    let mut writer = write::create(&path, None, &info).expect("a place for a trace");
    let mut batch = Batch::default();
    let names = std::sync::Arc::make_mut(&mut batch.names);
    let ids: Vec<u32> = ios.iter().map(|(device, _)| names.device(device)).collect();
    for ((_, io), id) in ios.iter().zip(ids) {
        batch.push(&Event {
            pid: Some(io.pid),
            device_ns: io.took_ns,
            ..Event::new(io.at_ns, id, Layer::Request, io.op, io.start, io.len)
        });
    }
    writer.write(&batch).expect("room");
    writer.finish(&info).expect("room");
    path
}

fn on_sda(ios: &[TracedIo]) -> Vec<(&'static str, TracedIo)> {
    ios.iter().map(|&io| ("sda", io)).collect()
}

fn target(folder: &Folder, bytes: u64) -> PathBuf {
    let mut content = vec![0; bytes as usize];
    let mut rng = Rng::new(5);
    content
        .chunks_mut(8)
        .for_each(|word| word.copy_from_slice(&rng.next_u64().to_le_bytes()[..word.len()]));
    folder.file("disk", content)
}

fn replay(trace: &Path, target: &Path, flags: &str) -> Ran {
    let paths = [trace, target].map(|path| path.to_str().expect("a plain name").to_owned());
    let flags = flags.split_whitespace().map(str::to_owned);
    plumb(["replay".to_owned()].into_iter().chain(paths).chain(flags))
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("found {value}, expected a whole number"))
}

/// Operation, start and length of all events of a trace, in its order.
fn sent(path: &Path) -> Vec<(Op, u64, u64)> {
    read(path)
        .events
        .iter()
        .map(|event| (event.op, event.start_bytes, event.len_bytes))
        .collect()
}

/// 1,009 reads of three lengths that no kernel would join with their neighbours.
fn mixed_reads(ios: u64, size: u64) -> Vec<TracedIo> {
    let mut rng = Rng::new(11);
    let read = |number: u64| {
        let len = [4096, 8192, 512][rng.below(3) as usize];
        TracedIo::read(
            number as i64 * 100_000,
            rng.below((size - len) / 512) * 512,
            len,
        )
    };
    (0..ios).map(read).collect()
}

#[test]
fn all_of_it_is_sent_in_its_order() {
    let folder = Folder::new("replay-order");
    let disk = target(&folder, 8 * MIB);
    let mut ios = mixed_reads(1009, 8 * MIB);
    for (number, io) in ios.iter_mut().enumerate() {
        io.op = [
            Op::Read,
            Op::Write,
            Op::Read,
            Op::Discard,
            Op::Flush,
            Op::WriteZeroes,
        ][number % 6];
        io.len = if io.op == Op::Flush { 0 } else { io.len };
        io.start = if io.op == Op::Flush { 0 } else { io.start };
    }
    let file = trace(&folder, "in.parquet", &on_sda(&ios));
    let of = |op: Op| ios.iter().filter(|io| io.op == op).count() as u64;
    for (flags, is_written) in [
        ("--depth 1", false),
        ("--depth 4 --engine blocking", false),
        ("--write --yes disk", true),
    ] {
        let before = fs::read(&disk).expect("a file");
        let out = folder.path(&format!("out-{}.parquet", flags.len()));
        let json = replay(
            &file,
            &disk,
            &format!("--speed max --json --trace {} {flags}", out.display()),
        );
        let result = json.ends(0).json()["result"].clone();
        let counts = &result["replayed"]["counts"];
        let expected: Vec<(Op, u64, u64)> = ios
            .iter()
            .filter_map(|io| match io.op {
                Op::Read => Some((Op::Read, io.start, io.len)),
                Op::Write if is_written => Some((Op::Write, io.start, io.len)),
                Op::Write => Some((Op::Read, io.start, io.len)),
                Op::Flush if is_written => Some((Op::Flush, 0, 0)),
                _ => None,
            })
            .collect();
        assert_eq!(sent(&out), expected, "{flags}");
        let told = [
            "reads",
            "writes",
            "writes_as_reads",
            "flushes",
            "flushes_left_out",
            "discards",
            "zeroes",
        ];
        let told = told.map(|name| number(&counts[name]));
        let (writes, flushes) = (of(Op::Write), of(Op::Flush));
        let either = |all: u64| if is_written { [all, 0] } else { [0, all] };
        let ([w, as_reads], [f, left_out]) = (either(writes), either(flushes));
        let expected = [
            of(Op::Read),
            w,
            as_reads,
            f,
            left_out,
            of(Op::Discard),
            of(Op::WriteZeroes),
        ];
        assert_eq!(told, expected, "{flags}: {counts}");
        assert_eq!(
            fs::read(&disk).expect("a file") == before,
            !is_written,
            "{flags}"
        );
    }
}

/// The kernel's view of a disk equals the trace.
#[test]
fn the_disk_receives_the_trace() {
    require!(Bpf, Loop);
    let folder = Folder::new("replay-disk");
    let image = target(&folder, 8 * MIB);
    let disk = LoopDevice::attach(&image, &[]);
    let ios = mixed_reads(499, 8 * MIB);
    let file = trace(&folder, "in.parquet", &on_sda(&ios));
    let out = folder.path("seen.parquet");
    let recording = Recording::begin(
        &out,
        &["--output", out.to_str().expect("text"), &disk.name()],
    );
    replay(&file, disk.path(), "--speed max --depth 1").ends(0);
    recording.end(0);
    let seen: Vec<_> = read(&out)
        .events_of("plumb")
        .iter()
        .map(|event| (event.op, event.start_bytes, event.len_bytes))
        .collect();
    let expected: Vec<_> = ios.iter().map(|io| (Op::Read, io.start, io.len)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn times_are_kept_within_the_stated_lateness() {
    let folder = Folder::new("replay-times");
    let disk = target(&folder, MIB);
    let ios: Vec<TracedIo> = (0..211)
        .map(|number| TracedIo::read(number * 5_000_000 + number % 3 * 700_000, 4096, 4096))
        .collect();
    let file = trace(&folder, "in.parquet", &on_sda(&ios));
    for (speed, times) in [("1", 1), ("4", 4)] {
        let out = folder.path(&format!("out-{speed}.parquet"));
        let ran = replay(
            &file,
            &disk,
            &format!("--speed {speed} --json --trace {}", out.display()),
        );
        let replayed = ran.ends(0).json()["result"]["replayed"].clone();
        let late_max = replayed["lateness"]["max_ns"].as_i64().expect("a lateness");
        let events = read(&out).events;
        assert_eq!(events.len(), ios.len());
        for (event, io) in events.iter().zip(&ios) {
            let due_ns = io.at_ns / times;
            let late_ns = event.time_ns - due_ns;
            assert!(
                (0..=late_max).contains(&late_ns),
                "{speed}: {late_ns} ns behind {due_ns}, told {late_max}"
            );
            assert_eq!(event.queue_ns, Some(late_ns), "the trace tells it too");
        }
        let response = replayed["measured"]["reads"]["response"]["mean_ns"]
            .as_f64()
            .expect("a time");
        let latency = replayed["measured"]["reads"]["latency"]["mean_ns"]
            .as_f64()
            .expect("a time");
        let lateness = replayed["lateness"]["mean_ns"].as_f64().expect("a time");
        assert!(
            (response - latency - lateness).abs() < 2.0,
            "{response} is not {latency} and {lateness}"
        );
    }
}

/// Two processes that each waited for their own I/O: at full speed no I/O is issued before its predecessors have ended.
#[test]
fn processes_wait_for_their_own() {
    let folder = Folder::new("replay-threads");
    let disk = target(&folder, 4 * MIB);
    let mut rng = Rng::new(3);
    let ios: Vec<TracedIo> = (0..400)
        .map(|number| {
            let took_ns = Some(1_000 + rng.below(40_000) as i64);
            TracedIo {
                pid: 1 + rng.below(2) as i32,
                took_ns,
                ..TracedIo::read(number * 10_000, number as u64 * 4096, 4096)
            }
        })
        .collect();
    let file = trace(&folder, "in.parquet", &on_sda(&ios));
    for engine in ["io_uring", "blocking"] {
        let out = folder.path(&format!("{engine}.parquet"));
        replay(
            &file,
            &disk,
            &format!("--speed max --engine {engine} --trace {}", out.display()),
        )
        .ends(0);
        let events = read(&out).events;
        // Starts are those of the trace, and each is there once.
        let of = |io: &TracedIo| {
            events
                .iter()
                .find(|event| event.start_bytes == io.start)
                .expect("it was sent")
        };
        assert_eq!(events.len(), ios.len());
        let mut waited = 0;
        for (at, later) in ios.iter().enumerate() {
            for earlier in &ios[..at] {
                let had_ended = earlier.at_ns + earlier.took_ns.unwrap_or(0) <= later.at_ns;
                if earlier.pid == later.pid && had_ended {
                    let (earlier, later) = (of(earlier), of(later));
                    let ended_ns = earlier.time_ns + earlier.device_ns.expect("a latency");
                    assert!(ended_ns <= later.time_ns, "{engine}: {earlier:?} {later:?}");
                    waited += 1;
                }
            }
        }
        assert!(waited > 1000, "{waited}");
    }
}

#[test]
fn a_small_target_keeps_residues() {
    let folder = Folder::new("replay-fold");
    let disk = target(&folder, 5 * MIB + 512 * 9);
    let mut rng = Rng::new(9);
    let ios: Vec<TracedIo> = (0..307)
        .map(|number| TracedIo::read(number, rng.below(1 << 31) * 512, 8192))
        .collect();
    let file = trace(&folder, "in.parquet", &on_sda(&ios));
    let out = folder.path("out.parquet");
    let flags = format!(
        "--speed max --depth 2 --shift +3s --json --trace {}",
        out.display()
    );
    let result = replay(&file, &disk, &flags).ends(0).json()["result"].clone();
    assert_eq!(number(&result["replayed"]["counts"]["folded"]), 307);
    for ((_, start, len), io) in sent(&out).into_iter().zip(&ios) {
        assert_eq!((start % MIB, len), ((io.start + 3 * 512) % MIB, 8192));
        assert!(start + len <= 5 * MIB + 512 * 9, "{start}");
    }
}

#[test]
fn a_layout_moves_its_ranges() {
    let folder = Folder::new("replay-layout");
    let disk = target(&folder, 8 * MIB);
    let starts = [0, 62 * 512, 63 * 512, 100 * 512, 3 * MIB];
    let ios: Vec<TracedIo> = starts
        .iter()
        .zip(0..)
        .map(|(&start, at)| TracedIo::read(at, start, 512))
        .collect();
    let file = trace(&folder, "in.parquet", &on_sda(&ios));
    let out = folder.path("out.parquet");
    let flags = format!(
        "--speed max --depth 1 --layout 63s=2048s --layout 3m=5m --trace {}",
        out.display()
    );
    replay(&file, &disk, &flags).ends(0);
    let expected = [0, 62 * 512, 2048 * 512, (2048 + 37) * 512, 5 * MIB];
    assert_eq!(
        sent(&out)
            .into_iter()
            .map(|(_, start, _)| start)
            .collect::<Vec<_>>(),
        expected
    );
}

/// Reads of 4 KiB at an odd phase, on a device whose misaligned reads cost twice as much.
#[test]
fn a_plan_that_fits_is_better() {
    require!(Patience, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let folder = Folder::new("replay-compare");
    let device = ChargedCells::of_ratio(4096, 0, 2.0).up();
    let mut rng = Rng::new(17);
    let ios: Vec<TracedIo> = (0..1200)
        .map(|number| TracedIo::read(number * 500_000, rng.below(200_000) * 4096 + 1024, 4096))
        .collect();
    let file = trace(&folder, "in.parquet", &on_sda(&ios));
    let of = |flags: &str| {
        replay(
            &file,
            device.path(),
            &format!("--compare --speed max --depth 4 {flags}"),
        )
    };
    let machine = plumb_testkit::Machine::watched();
    let better = of("--shift=-2s --json");
    let comparison = better.json()["result"]["comparison"].clone();
    let end = |name: &str| comparison["gain"][name].as_f64().unwrap_or(f64::NAN);
    let is_as_charged = end("low") <= 2.05 && end("high") >= 1.95 && end("high") - end("low") < 0.4;
    // Only a wrong result needs the excuse of a busy machine.
    if !is_as_charged && let Some(why) = machine.was_busy() {
        plumb_testkit::undecided!(why);
    }
    better.ends(0);
    assert_eq!(comparison["verdict"], "better", "{comparison}");
    assert!(is_as_charged, "{}", comparison["gain"]);
    assert_eq!(comparison["pairs"].as_array().map(Vec::len), Some(30));
    let equal = of("--layout 0=1s --margin 10%");
    insta::assert_snapshot!(equal.ends(0).passages(&["NO DIFFERENCE"]));
    // The reverse: I/O on the grid today.
    let fitting: Vec<TracedIo> = ios
        .iter()
        .map(|io| TracedIo {
            start: io.start - 1024,
            ..*io
        })
        .collect();
    let file = trace(&folder, "fitting.parquet", &on_sda(&fitting));
    let worse = replay(
        &file,
        device.path(),
        "--compare --speed max --depth 4 --pairs 14 --shift +1s",
    );
    worse.ends(1).says("WORSE the planned places");
}

/// The throttle charges an I/O to the next one. At the start of a slice that is an I/O of the other side: 16 misaligned
/// reads with one aligned read before them take 15.5 times 1 ms, and the ratio of all slices was 1.9.
#[test]
fn slices_do_not_pay_for_each_other() {
    require!(Patience, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let folder = Folder::new("replay-short-slices");
    let device = ChargedCells::of_ratio(4096, 0, 2.0).up();
    let mut rng = Rng::new(29);
    // 30 slices of 16 I/O, the shortest ones.
    let ios: Vec<TracedIo> = (0..480)
        .map(|number| TracedIo::read(number * 500_000, rng.below(200_000) * 4096 + 1024, 4096))
        .collect();
    let file = trace(&folder, "in.parquet", &on_sda(&ios));
    let machine = plumb_testkit::Machine::watched();
    let ran = replay(
        &file,
        device.path(),
        "--compare --speed max --depth 1 --shift=-2s --json",
    );
    let comparison = ran.json()["result"]["comparison"].clone();
    assert_eq!(number(&comparison["slice_events"]), 16);
    assert_eq!(number(&comparison["pairs"][0]["ios"]), 14, "two lead");
    assert_eq!(number(&comparison["today"]["counts"]["reads"]) % 480, 0);
    let gain = comparison["gain"]["estimate"].as_f64().unwrap_or(f64::NAN);
    let is_as_charged = (gain - 2.0).abs() < 0.05;
    if !is_as_charged && let Some(why) = machine.was_busy() {
        plumb_testkit::undecided!(why);
    }
    assert!(is_as_charged, "{}", comparison["gain"]);
}

/// The page shows the document's content: I/O that were sent and those that were not, the course, the gains.
#[test]
fn pages_show_the_content_of_the_document() {
    let folder = Folder::new("replay-page");
    let disk = target(&folder, 8 * MIB);
    let mut ios = mixed_reads(601, 8 * MIB);
    ios.iter_mut().step_by(3).for_each(|io| io.op = Op::Discard);
    let file = trace(&folder, "in.parquet", &on_sda(&ios));
    let page = folder.path("page.html");
    let of = |flags: &str| {
        let ran = replay(
            &file,
            &disk,
            &format!("--json --html {} {flags}", page.display()),
        );
        (
            ran.json()["result"].clone(),
            fs::read_to_string(&page).expect("a page"),
        )
    };
    let (result, html) = of("--speed 2");
    let course = &result["replayed"]["course"];
    let windows = course["windows"].as_array().expect("windows");
    let told: u64 = windows.iter().map(|window| number(&window["ios"])).sum();
    assert_eq!(told, 400, "each that was sent is in one of them");
    // Due every 50 µs: the windows are as full as they are long.
    let full = course["window_seconds"].as_f64().expect("a length") / 50e-6 * 2.0 / 3.0;
    let is_full = |window: &Value| (number(&window["ios"]) as f64 - full).abs() < 2.0;
    assert!(windows[..windows.len() - 1].iter().all(is_full), "{course}");
    for words in [
        "Mean time over time",
        "behind schedule",
        "<td class=\"text\">discards</td><td>201</td>",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    let (result, html) = of("--compare --speed max --depth 4 --shift +1s --pairs 12");
    let pairs = result["comparison"]["pairs"]
        .as_array()
        .expect("pairs")
        .len();
    let (from, to) = (
        html.find("Gain of each pair").expect("a picture"),
        html.rfind("</svg>").expect("an end"),
    );
    assert_eq!(
        html[from..to].matches("h0M").count() + 2,
        pairs,
        "a dot a pair, in two paths"
    );
    assert!(
        html.contains(">planned</td><td class=\"text\">reads</td>") && html.ends_with("</html>\n")
    );
    let mut messages = vec![
        replay(&file, &disk, &format!("--html {}", file.display()))
            .ends(2)
            .complaint(),
    ];
    messages.push(
        replay(&file, &disk, &format!("--html {}", disk.display()))
            .ends(2)
            .complaint(),
    );
    let both = folder.path("both");
    let flags = format!("--html {} --trace {}", both.display(), both.display());
    messages.push(replay(&file, &disk, &flags).ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn invalid_replays_are_refused_before_any_io() {
    let folder = Folder::new("replay-refused");
    let disk = target(&folder, 2 * MIB);
    let one = on_sda(&[TracedIo::read(0, 0, 512), TracedIo::read(1, 512, 1536)]);
    let file = trace(&folder, "one.parquet", &one);
    let mut messages = vec![
        replay(&file, &folder.path("missing"), "")
            .ends(5)
            .complaint(),
    ];
    messages.push(replay(Path::new("-"), &disk, "").ends(2).complaint());
    messages.push(replay(&folder.path("none.parquet"), &disk, "").complaint());
    messages.push(replay(&file, &disk, "--compare").ends(2).complaint());
    messages.push(replay(&file, &disk, "--write").ends(2).complaint());
    replay(&file, &disk, "--write --yes other").ends(2);
    messages.push(
        replay(&file, &disk, "--layout 1s=2s --layout 1s=3s")
            .ends(2)
            .complaint(),
    );
    messages.push(replay(&file, &disk, "--speed 0").ends(2).complaint());
    messages.push(replay(&file, &disk, "--device sdx").ends(5).complaint());
    messages.push(replay(&file, &disk, "--op discard").ends(3).complaint());
    messages.push(
        replay(&file, &disk, "--modulus 4m --shift 8m")
            .ends(2)
            .complaint(),
    );
    let two = trace(
        &folder,
        "two.parquet",
        &[
            ("sda", TracedIo::read(0, 0, 512)),
            ("sdb", TracedIo::read(1, 0, 512)),
        ],
    );
    messages.push(replay(&two, &disk, "").ends(2).complaint());
    messages.push(
        replay(&two, &disk, "--device sdb")
            .ends(0)
            .passages(&["sent 1"]),
    );
    let untimed = TracedIo {
        took_ns: None,
        ..TracedIo::read(0, 0, 512)
    };
    let untimed = trace(&folder, "untimed.parquet", &on_sda(&[untimed]));
    messages.push(replay(&untimed, &disk, "--speed max").ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn a_logical_block_of_4_kib_takes_no_512_bytes() {
    require!(Loop);
    let folder = Folder::new("replay-4k");
    let image = target(&folder, 2 * MIB);
    let disk = LoopDevice::attach(&image, &["--sector-size", "4096"]);
    let file = trace(
        &folder,
        "in.parquet",
        &on_sda(&[TracedIo::read(0, 4096, 4096), TracedIo::read(1, 1536, 4096)]),
    );
    let refused = replay(&file, disk.path(), "");
    insta::assert_snapshot!(refused.ends(2).complaint());
}
