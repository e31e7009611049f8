//! `plumb analyze` on real traces, against numbers that others have counted.

use crate::common::{Folder, Ran, analyze, msr, pages, plumb, real, recorded, recorded_lines};
use plumb_testkit::require;
use serde_json::Value;

const VSCSI: &str = "vscsi/cloudPhysicsIO.vscsi";
const MSR: &str = "msr/msr-cambridge1-sample.csv";
const DISKSIM: &str = "mqsim/wsrch-small.trace";
const BLKPARSE: &str = "blkparse/leveldb_blk_data.txt";

#[test]
fn a_misaligned_guest() {
    require!(RealTraces);
    let ran = analyze(&real(VSCSI), "--shift +1s");
    let (judged, counted) = ran.ends(1).out.split_once("\nSource").expect("a source");
    let counted = recorded_lines(counted, &[" reads ", " writes ", "note: "]);
    insta::assert_snapshot!([recorded(judged), counted].join("\n\n"));
    let json = analyze(&real(VSCSI), "--shift +1s --json").json();
    let device = &json["result"]["profiles"][0]["places"][0];
    let verdict = &device["inference"]["verdict"];
    // Nothing is claimed above 4 KiB: at 8 KiB already a third of the heads sit elsewhere.
    assert_eq!(verdict["verdict"], "one");
    assert_eq!(verdict["phase"]["granularity_bytes"], 4096);
    assert_eq!(verdict["phase"]["offset_bytes"], 7 * 512);
    // Counted apart from this program, by a window of 256 ends.
    let other = &device["inference"]["other_offsets"][0];
    assert_eq!(
        (&other["ios"], &other["heads"]),
        (&17_736.into(), &127.into())
    );
    let shifted = &json["result"]["profiles"][0]["what_if"]["shifted"][0];
    assert_eq!(shifted["tally"]["misaligned"], 23_300);
    assert_eq!(shifted["class"], "exact-for-these-requests");
}

/// Pieces and bytes by member, counted apart from this program by cutting each I/O at the chunks.
#[test]
fn a_stripe_that_is_no_power_of_two() {
    require!(RealTraces);
    for (members, pieces, bytes) in [
        (
            3,
            vec![60_246, 58_038, 59_394],
            vec![1_410_188_800_u64, 1_390_852_608, 1_404_936_704],
        ),
        (
            4,
            vec![46_614, 44_295, 43_408, 43_361],
            vec![1_056_643_584, 1_055_781_376, 1_048_295_936, 1_045_257_216],
        ),
    ] {
        let json = analyze(
            &real(VSCSI),
            &format!("--chunk 64k --members {members} --json"),
        )
        .json();
        let striped = &json["result"]["profiles"][0]["what_if"]["striped"];
        assert_eq!(
            (&striped["tally"]["split"], &striped["tally"]["crossing"]),
            (&52_579.into(), &63_130.into())
        );
        let loads = striped["members"].as_array().expect("loads");
        let column = |name: &str| {
            loads
                .iter()
                .map(|load| unsigned(&load[name]))
                .collect::<Vec<u64>>()
        };
        assert_eq!(
            (column("pieces"), column("bytes")),
            (pieces, bytes),
            "{members} members"
        );
        // The other questions are answered as ever.
        assert_eq!(json["result"]["profiles"][0]["lengths_rounded"], false);
    }
}

/// Sums a number over the devices of a document.
fn sum(json: &Value, number: impl Fn(&Value) -> u64) -> u64 {
    json["result"]["profiles"]
        .as_array()
        .expect("profiles")
        .iter()
        .map(number)
        .sum()
}

fn unsigned(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// A number of the tallies on the grid at a place in the list, over all devices. Devices without such I/O have none.
fn tally(json: &Value, grid: usize, side: &str, name: &str) -> u64 {
    sum(json, |profile| {
        unsigned(&profile["places"][0]["grids"][grid][side][name])
    })
}

const GRIDS: [u64; 7] = [4096, 8192, 16_384, 65_536, 131_072, 1_048_576, 512];

/// One section of the expectations (all I/O, reads or writes) against one side of the tallies.
fn check_section(json: &Value, expected: &Value, side: &str) {
    let count = |name: String| unsigned(&expected[name.as_str()]["count"]);
    for (at, grid) in GRIDS.into_iter().enumerate() {
        let found = |name| tally(json, at, side, name);
        assert_eq!(found("ios"), unsigned(&expected["n"]), "{side} {grid}");
        assert_eq!(
            found("misaligned"),
            count(format!("start_not_mod_{grid}")),
            "{side} {grid}"
        );
        if [512, 4096, 8192].contains(&grid) {
            assert_eq!(
                found("odd_length"),
                count(format!("len_not_mult_{grid}")),
                "{side} {grid}"
            );
        }
        if [4096, 8192].contains(&grid) {
            assert_eq!(
                found("partial"),
                count(format!("start_or_end_not_mod_{grid}")),
                "{side} {grid}"
            );
        }
    }
    assert_eq!(
        tally(json, 0, side, "cells"),
        unsigned(&expected["blocks4k_touched"])
    );
    assert_eq!(
        tally(json, 0, side, "cells_min"),
        unsigned(&expected["blocks4k_minimum_ceil_len"])
    );
}

/// The offsets of the starts in 4 KiB, found by asking for each offset.
fn check_offsets(name: &str, expected: &Value) {
    let flags: String = (0..8)
        .map(|sector| format!(" --grid 4k@{sector}s"))
        .collect();
    let json = analyze(&real(name), &format!("--json{flags}")).json();
    for sector in 0..8 {
        for (side, section) in [("all", "all"), ("reads", "R"), ("writes", "W")] {
            let at = tally(&json, sector, side, "ios") - tally(&json, sector, side, "misaligned");
            let expected =
                unsigned(&expected[section]["start_mod_4096_in_sectors"][&sector.to_string()]);
            assert_eq!(at, expected, "{name}: {side} at sector {sector}");
        }
    }
}

fn check_lengths(json: &Value, expected: &Value) {
    let ops = |letter: &str, name: &str| {
        let word = if letter == "R" { "read" } else { "write" };
        sum(json, |profile| {
            let ops = profile["ops"].as_array().expect("operations");
            ops.iter()
                .filter(|op| op["op"] == word)
                .map(|op| unsigned(&op[name]))
                .sum()
        })
    };
    for letter in ["R", "W"] {
        assert_eq!(
            ops(letter, "bytes"),
            unsigned(&expected["bytes_by_op"][letter]),
            "bytes {letter}"
        );
        assert_eq!(
            ops(letter, "ios"),
            unsigned(&expected["ops"][letter]),
            "I/O {letter}"
        );
    }
    let classes = expected["all"]["size_hist_pow2_upper"]
        .as_object()
        .expect("classes");
    for (top, ios) in classes {
        let found = sum(json, |profile| {
            let ops = profile["ops"].as_array().expect("operations").iter();
            let sizes = ops.flat_map(|op| op["sizes"].as_array().expect("sizes"));
            sizes
                .filter(|size| Some(unsigned(&size["len_max_bytes"])) == top.parse().ok())
                .map(|size| unsigned(&size["ios"]))
                .sum()
        });
        assert_eq!(found, unsigned(ios), "up to {top} bytes");
    }
    if json["result"]["profiles"].as_array().map(Vec::len) == Some(1) {
        for length in json["result"]["profiles"][0]["lengths"]
            .as_array()
            .expect("lengths")
        {
            let exact = &expected["all"]["size_hist_top20_exact"][&length["len_bytes"].to_string()];
            assert_eq!(&length["ios"], exact, "{} bytes", length["len_bytes"]);
        }
    }
}

fn check(name: &str) -> Ran {
    let text = std::fs::read_to_string(real("EXPECTED.json")).expect("expectations");
    let expected: Value = serde_json::from_str(&text).expect("JSON");
    let expected = &expected[name];
    let flags: String = GRIDS.iter().map(|grid| format!(" --grid {grid}")).collect();
    let ran = analyze(&real(name), &format!("--json{flags}"));
    let json = ran.json();
    check_section(&json, &expected["all"], "all");
    for (side, section) in [("reads", "R"), ("writes", "W")] {
        if expected[section].is_object() {
            check_section(&json, &expected[section], side);
        }
    }
    check_offsets(name, expected);
    check_lengths(&json, expected);
    let profiles = json["result"]["profiles"].as_array().expect("profiles");
    let devices = expected["devices"].as_object().expect("devices");
    assert_eq!(profiles.len(), devices.len(), "{name}");
    for profile in profiles {
        let device = profile["target"]["device"].as_str().expect("a name");
        assert_eq!(profile["ios"], devices[device], "{name}: {device}");
    }
    ran
}

#[test]
fn vscsi_as_others_counted_it() {
    require!(RealTraces);
    let json = check(VSCSI).json();
    // From 5,633,898,368,802 to 5,641,098,458,687 µs.
    assert_eq!(
        json["result"]["profiles"][0]["span_ns"],
        7_200_089_885_000_u64
    );
}

#[test]
fn msr_as_others_counted_it() {
    require!(RealTraces);
    let json = check(MSR).json();
    assert_eq!(json["result"]["profiles"][0]["timed"], 1000);
    assert_eq!(
        json["result"]["profiles"][0]["span_ns"],
        127_233_494_100_u64
    );
    let latency = &json["result"]["profiles"][0]["ops"];
    let longest = latency
        .as_array()
        .expect("operations")
        .iter()
        .map(|op| unsigned(&op["device"]["max_ns"]))
        .max();
    // 284,125 × 100 ns, and the histogram's bucket is a sixteenth of a power of two wide.
    let longest = longest.expect("a latency");
    assert!(
        (28_412_500..=28_412_500 * 17 / 16).contains(&longest),
        "{longest}"
    );
}

#[test]
fn disksim_as_others_counted_it() {
    require!(RealTraces);
    check(DISKSIM);
}

#[test]
fn blkparse_as_others_counted_it() {
    require!(RealTraces);
    let ran = check(BLKPARSE);
    let json = ran.json();
    assert_eq!(json["inputs"][0]["completions_only"], true);
}

#[test]
fn fio_iolog_as_others_counted_it() {
    require!(RealTraces);
    let json = analyze(&real("fio-iolog/local_v3.iolog"), "--json --grid 4k").json();
    assert_eq!(tally(&json, 0, "all", "ios"), 206);
    assert_eq!(tally(&json, 0, "all", "misaligned"), 171);
    assert_eq!(tally(&json, 0, "all", "odd_length"), 195);
    assert_eq!(tally(&json, 0, "all", "bytes"), 4_165_443);
}

#[test]
fn no_line_is_wider_than_80_columns() {
    require!(RealTraces);
    let mut files = vec![real("")];
    let mut traces = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                std::fs::read_dir(path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
            continue;
        }
        let ran = analyze(
            &path,
            "--chunk 64k --members 3 --record 64k --shift -3s --grid 4k --grid 8k@1k",
        );
        traces += usize::from(ran.code != 5);
        let folder = path.parent().expect("in a folder").display().to_string();
        for line in ran.out.lines().filter(|line| line.chars().count() > 80) {
            assert!(line.contains(&folder), "{}:\n{line}", path.display());
        }
    }
    assert!(traces >= 20, "{traces} traces were understood");
}

/// 1,000 reads of 1 ms each at four places; of every second one the completion is missing, or of two in all. The reads of
/// one place then get the completions of others, 4 ms later. A comparison judges none of these latencies.
#[test]
fn latencies_of_a_torn_recording_are_not_known() {
    let folder = Folder::new("torn");
    let text = |lost: &[u64]| -> String {
        let line = |ns: u64, action: char, sector: u64| {
            format!(
                "  8,0    0 {ns:>8} {:>5}.{:09} 100 {action}   R {sector} + 8 {}\n",
                ns / 1_000_000_000,
                ns % 1_000_000_000,
                if action == 'C' { "[0]" } else { "[fio]" }
            )
        };
        (0..1000u64)
            .map(|number| {
                let (ns, sector) = (number * 1_100_000, number / 2 % 4 * 8);
                let done = line(ns + 1_000_000, 'C', sector);
                line(ns, 'D', sector) + if lost.contains(&number) { "" } else { &done }
            })
            .collect()
    };
    let whole = folder.file("whole.txt", text(&[]));
    let every_second: Vec<u64> = (0..1000).step_by(2).collect();
    // Name, and reads without a completion.
    let cases: [(&str, &[u64]); 3] = [
        ("again.txt", &[]),
        ("torn.txt", &every_second),
        ("two.txt", &[200, 603]),
    ];
    let mut timed = Vec::new();
    for (name, lost) in cases {
        let is_torn = !lost.is_empty();
        let file = folder.file(name, text(lost));
        let ran = analyze(&file, "");
        timed.push(recorded_lines(&ran.out, &["timed"]));
        assert_eq!(ran.out.contains("99.9 %"), !is_torn, "{}", ran.out);
        let profile = &analyze(&file, "--json").json()["result"]["profiles"][0];
        assert_eq!(profile["pairing_unsound"], is_torn);
        assert_eq!(profile["ops"][0]["device"].is_null(), is_torn);
        assert_eq!(profile["in_flight"].is_null(), is_torn);
        assert_eq!(profile["timed"], 1000 - lost.len());
        let copy = folder.path("copy.csv");
        plumb(["convert".as_ref(), file.as_os_str(), copy.as_os_str()]).ends(0);
        let copied = &analyze(&copy, "--json").json()["result"]["profiles"][0];
        assert_eq!(copied["pairing_unsound"], is_torn, "{name}");
        std::fs::remove_file(&copy).expect("the copy");
        let compared = plumb([
            "compare".as_ref(),
            whole.as_os_str(),
            file.as_os_str(),
            "--json".as_ref(),
        ]);
        let compared = compared.json();
        let one = &compared["result"]["comparisons"][0];
        let latency = &one["verdict"]["latency"];
        assert_eq!(latency.is_null(), is_torn, "{name}: {one:#}");
        assert_eq!(one["verdict"]["outcome"] == "no-difference", !is_torn);
        let page = folder.path("page.html");
        analyze(&file, &format!("--html {}", page.display()));
        let page = std::fs::read_to_string(page).expect("a page");
        let why = "completions are missing: the others may belong to other I/O";
        assert_eq!(page.contains(why), is_torn, "{name}");
    }
    insta::assert_snapshot!(timed.join("\n"));
}

/// A forgotten `k` is refused with the size that was likely meant, before anything is judged.
#[test]
fn a_grid_of_eight_bytes_is_refused() {
    let folder = Folder::new("grid-8");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let ran = analyze(&file, "--grid 8");
    insta::assert_snapshot!(ran.ends(2).complaint());
    assert_eq!(ran.out, "");
}

/// Four threads of one process that each have an I/O in flight at the same time are four, and one thread with four I/O is one.
#[test]
fn threads_of_a_process_are_counted_apart() {
    let folder = Folder::new("lwps");
    let dashes = "---------------- ---------------- ----- ----- ---------- --- ------------------------- ------------------------";
    for threads in [1, 4] {
        let mut text = format!(
            "probe\ttnf_name: \"strategy\" tnf_string: \"keys io blockio;\\\n\tfile ../../common/os/bio.c;line 1\"\n{dashes}\n\
             \x20   Elapsed (ms)       Delta (ms)   PID LWPID    TID     CPU Probe Name                Data / Description . . .\n{dashes}\n"
        );
        for round in 0..300u64 {
            for (probe, at) in [("strategy", 0.0), ("biodone", 0.5)] {
                for io in 0..4u64 {
                    let ms = round as f64 + at + io as f64 / 1000.0;
                    let (lwp, block) = (1 + io % threads, (round * 4 + io) * 64);
                    let size = if probe == "strategy" {
                        "size: 4096 "
                    } else {
                        ""
                    };
                    text += &format!(
                        "{ms:>16.6} {:>16.6}   323 {lwp:>5} 0xf5a 0 {probe} device: 8388610 block: {block} {size}buf: 0xf5{io}0 flags: 257\n",
                        0.0
                    );
                }
            }
        }
        let ran = analyze(&folder.file("tnf.txt", text), "");
        let words = format!("on average while any, {threads} at most");
        assert!(ran.out.contains(&words), "{}{}", ran.out, ran.err);
    }
}

/// Processes are counted apart in the same way.
#[test]
fn processes_in_flight_are_counted_apart() {
    let folder = Folder::new("threads");
    let mut in_flight = Vec::new();
    for threads in [1, 4] {
        let mut text = String::new();
        for round in 0..300u64 {
            for (action, at) in [('D', 0), ('C', 500_000)] {
                for io in 0..4u64 {
                    let (ns, sector) = (round * 1_000_000 + at + io * 1_000, (round * 4 + io) * 64);
                    let pid = 100 + io % threads;
                    text += &format!(
                        "  8,0    0 {ns:>8} {:>5}.{:09} {pid} {action}   R {sector} + 8 [fio]\n",
                        ns / 1_000_000_000,
                        ns % 1_000_000_000
                    );
                }
            }
        }
        let ran = analyze(&folder.file("threads.txt", text), "");
        let words = format!("on average while any, {threads} at most");
        assert!(ran.out.contains(&words), "{}", ran.out);
        in_flight.push(recorded_lines(&ran.out, &["in flight: "]));
    }
    insta::assert_snapshot!(in_flight.join("\n"));
}

/// Disk 2 goes before disk 10 in every list.
#[test]
fn devices_are_listed_as_people_count() {
    let folder = Folder::new("natural");
    let lines = msr(pages(1000, 512, 8192));
    let mixed: String = lines
        .lines()
        .enumerate()
        .map(|(at, line)| {
            let disk = if at % 2 == 0 { ",host,10," } else { ",host,2," };
            line.replace(",host,0,", disk) + "\n"
        })
        .collect();
    let file = folder.file("mixed.csv", mixed);
    let document = analyze(&file, "--json").json();
    let devices = |at: &str, name: &str| -> Vec<String> {
        let list = document.pointer(at).and_then(serde_json::Value::as_array);
        let list = list.expect("a list").iter();
        list.map(|one| {
            one.pointer(name)
                .and_then(serde_json::Value::as_str)
                .expect("a name")
                .to_owned()
        })
        .collect()
    };
    assert_eq!(
        devices("/result/profiles", "/target/device"),
        ["host_2", "host_10"]
    );
    assert_eq!(
        devices("/findings", "/target/device"),
        ["host_2", "host_10"]
    );
    let other = analyze(&file, "--device none");
    insta::assert_snapshot!(other.ends(5).complaint());
}
