//! Outputs: documents, colours, pipes, saved profiles, other formats.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use crate::common::{
    Folder, Ran, analyze, analyze_input, command, msr, pages, passages, plumb, real,
};
use plumb_testkit::{require, wait};
use serde_json::Value;

/// The heading of a histogram of DTrace.
const DISTRIBUTION: &str = "           value  ------------- Distribution ------------- count    \n";
const VSCSI: &str = "vscsi/cloudPhysicsIO.vscsi";

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .map(|object| object.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

#[test]
fn the_document() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let ran = analyze(&file, "--json --grid 4k");
    ran.ends(1);
    assert_eq!(ran.err, "", "nothing but the document");
    let json = ran.json();
    assert_eq!(
        keys(&json),
        [
            "command", "findings", "host", "inputs", "result", "schema", "time", "verdict",
            "version"
        ]
    );
    assert_eq!(json["schema"], "plumb.analyze/2");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    assert_eq!(json["host"], host.trim());
    assert!(humantime::parse_rfc3339(json["time"].as_str().expect("a time")).is_ok());
    let command = json["command"].as_array().expect("words");
    assert_eq!(command[1], "analyze");
    assert_eq!(command.last(), Some(&"4k".into()));
    let finding = &json["findings"][0];
    assert_eq!(
        keys(finding),
        [
            "advice",
            "confidence",
            "cost",
            "facts",
            "fix",
            "remedies",
            "rule",
            "seen",
            "severity",
            "summary",
            "target"
        ]
    );
    assert_eq!(
        (&finding["rule"], &finding["severity"]),
        (&"misaligned-io".into(), &"warning".into())
    );
    assert_eq!(
        keys(&finding["facts"]["counted"]),
        ["count", "lost", "of", "share_high", "share_low"]
    );
    assert_eq!(keys(&finding["cost"]), ["basis", "of", "value"]);
    assert_eq!(finding["cost"]["basis"], "estimated");
    assert_eq!(
        keys(&finding["fix"][0]),
        ["command", "effect", "risk", "undo"]
    );
    assert_eq!(json["inputs"][0]["format"], "msr");
    // Absent is null, and a rule that was not asked is neither silent nor unknown.
    assert_eq!(json["result"]["profiles"][0]["size_bytes"], Value::Null);
    assert_eq!(
        json["result"]["profiles"][0]["what_if"]["striped"],
        Value::Null
    );
    assert!(
        !json["result"]["silent"]
            .as_array()
            .expect("rules")
            .contains(&"split-io".into())
    );
}

#[test]
fn colour_appears_only_on_request() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let coloured = |flags: &str| analyze(&file, flags).out.contains('\x1b');
    assert!(!coloured(""), "a pipe is no terminal");
    assert!(coloured("--color always"));
    assert!(!coloured("--color never"));
    let asked = command()
        .arg("analyze")
        .arg(&file)
        .args(["--color", "always"])
        .env("NO_COLOR", "1")
        .output();
    let asked = asked.expect("the program starts").stdout;
    assert!(
        asked.contains(&0x1b),
        "who says always on the command line means it"
    );
    // Colour changes no line: a terminal shows the same columns.
    let plain = analyze(&file, "--color always").out;
    let plain = plain
        .replace("\x1b[1;33m", "")
        .replace("\x1b[1;36m", "")
        .replace("\x1b[0m", "");
    assert_eq!(
        plain
            .replace(" --color always", "")
            .lines()
            .skip(1)
            .collect::<Vec<_>>(),
        analyze(&file, "").out.lines().skip(1).collect::<Vec<_>>()
    );
}

/// `plumb … | head -1`: the reader goes away, which is no failure and no message.
#[test]
fn a_reader_that_goes_away() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    for flags in [vec![], vec!["--json"]] {
        let mut child = command()
            .arg("analyze")
            .arg(&file)
            .args(&flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let ran = wait::output("plumb", wait::PATIENCE, child);
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
        assert_eq!(ran.status.code(), Some(1));
    }
    let mut child = command()
        .arg("--help")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let some = child.stdout.take().expect("a pipe").take(100);
    wait::Lines::of("plumb", some).next().expect("a line");
    assert_eq!(
        wait::exit("plumb", wait::PATIENCE, &mut child).code(),
        Some(0)
    );
}

/// Everything but its origin.
fn judged(json: &Value) -> (Value, Value) {
    let mut result = json["result"].clone();
    result.as_object_mut().expect("an object").remove("notes");
    (json["findings"].clone(), result)
}

#[test]
fn a_saved_profile_gives_the_same_answers() {
    require!(RealTraces);
    let folder = Folder::new("outputs");
    let saved = folder.path("guest");
    let asked = "--grid 4k --grid 8k@1k --chunk 64k --members 4 --shift +1s --json";
    let trace = analyze(&real(VSCSI), &format!("{asked} --save {}", saved.display()));
    let profile = analyze(&saved, asked);
    assert_eq!(profile.code, trace.code);
    assert_eq!(judged(&profile.json()), judged(&trace.json()));
    assert_eq!(
        profile.json()["inputs"],
        Value::Array(Vec::new()),
        "a profile is no trace"
    );
    assert_eq!(
        profile.json()["result"]["notes"],
        trace.json()["result"]["notes"]
    );
    assert!(std::fs::metadata(&saved).expect("saved").len() < 200_000);
    // A question beyond the kept data is unknown and no rounded figure.
    let messages = [
        analyze(&saved, "--grid 7m").ends(3).passages(&["7 MiB"]),
        analyze(&saved, "--layer bio")
            .ends(3)
            .passages(&["no finding"]),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn a_profile_and_a_trace_add_up() {
    let folder = Folder::new("outputs");
    let one = folder.file("one.csv", msr(pages(1000, 512, 8192)));
    let two = folder.file("two.csv", msr(pages(500, 0, 8192)));
    let saved = folder.path("saved");
    analyze(&one, &format!("--save {}", saved.display())).ends(1);
    let mut messages = Vec::new();
    for files in [[&one, &two], [&two, &one], [&saved, &two], [&two, &saved]] {
        let together = Path::new("--together");
        let ran = plumb([Path::new("analyze"), together, files[0], files[1]]);
        // Both kinds have the same latencies.
        messages.push(ran.ends(0).passages(&["MISFIT:"]));
    }
    let both = folder.path("both");
    plumb([
        Path::new("analyze"),
        Path::new("--together"),
        &saved,
        &two,
        Path::new("--save"),
        &both,
    ])
    .ends(0);
    messages.push(analyze(&both, "").passages(&["MISFIT:", "one.csv", "two.csv"]));
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Devices of equal names are one device in pieces of one recording alone: recordings of one time are of two hosts.
#[test]
fn equal_names_are_kept_apart() {
    let folder = Folder::new("outputs");
    let row = |ticks: u64, start: u64| {
        let time = 128_166_372_003_061_629 + ticks;
        format!("{time},host,0,Read,{start},8192,100\n")
    };
    let rows = |from: u64, past: u64| -> String {
        (0..300)
            .map(|at| row((from + at) * 1000, at * 65_536 + past))
            .collect()
    };
    let monday = folder.file("monday.csv", rows(0, 0));
    let tuesday = folder.file("tuesday.csv", rows(300, 0));
    let other = folder.file("other.csv", rows(100, 512));
    let ios = |files: &[&Path], flag: &str| {
        let mut args = vec![Path::new("analyze"), Path::new("--json")];
        args.extend((!flag.is_empty()).then_some(Path::new(flag)));
        args.extend(files);
        let json = plumb(args).json();
        let profiles = json["result"]["profiles"]
            .as_array()
            .expect("profiles")
            .iter();
        let found = profiles.map(|profile| {
            let device = profile["target"]["device"]
                .as_str()
                .expect("a name")
                .to_owned();
            (device, profile["ios"].as_u64().expect("a number"))
        });
        found.collect::<Vec<_>>()
    };
    let named = |name: &str, ios: u64| (name.to_owned(), ios);
    assert_eq!(ios(&[&monday, &tuesday], ""), [named("host_0", 600)]);
    let apart = format!("host_0 in {}", other.display());
    let expected = [named("host_0", 600), named(&apart, 300)];
    assert_eq!(ios(&[&monday, &tuesday, &other], ""), expected);
    assert_eq!(
        ios(&[&monday, &tuesday, &other], "--together"),
        [named("host_0", 900)]
    );
    let mut messages =
        vec![plumb([Path::new("analyze"), &monday, &tuesday]).passages(&["taken together"])];
    let ran = plumb([Path::new("analyze"), &monday, &other]);
    messages.push(ran.ends(1).passages(&["times overlap", "MISFIT:"]));
    let ran = plumb([
        Path::new("analyze"),
        Path::new("--device"),
        Path::new("host_0"),
        &monday,
        &other,
    ]);
    messages.push(ran.passages(&["MISFIT:"]));
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Files of one recording are one device in any order of the command line; a file from long after them is another
/// recording.
#[test]
fn pieces_of_a_recording_come_in_any_order() {
    let folder = Folder::new("outputs-order");
    let seconds = |from: u64, seconds: u64| -> String {
        (from..from + seconds)
            .map(|at| {
                let time = 128_166_372_003_061_629 + at * 10_000_000;
                format!("{time},host,0,Read,{},8192,100\n", at * 65_536)
            })
            .collect()
    };
    let file = |name: &str, from: u64| folder.file(name, seconds(from, 100));
    let [a, b, c, d] = [("a", 0), ("b", 100), ("c", 200), ("d", 300)].map(|(n, at)| file(n, at));
    let far = file("far", 1_000_000);
    let devices = |files: &[&Path]| {
        let json = plumb(
            ["analyze".as_ref(), "--json".as_ref()]
                .into_iter()
                .chain(files.iter().copied()),
        )
        .json();
        let profiles = json["result"]["profiles"]
            .as_array()
            .expect("profiles")
            .clone();
        let ios = profiles
            .iter()
            .map(|one| one["ios"].as_u64().expect("a number"));
        ios.collect::<Vec<_>>()
    };
    for files in [
        [&a, &b, &c, &d],
        [&a, &d, &b, &c],
        [&d, &c, &b, &a],
        [&c, &a, &d, &b],
    ] {
        let files: Vec<&Path> = files.into_iter().map(|path| path.as_path()).collect();
        assert_eq!(devices(&files), [400], "{files:?}");
    }
    assert_eq!(devices(&[&far, &b, &a]), [200, 100]);
    insta::assert_snapshot!(
        plumb(["analyze".as_ref(), far.as_os_str(), a.as_os_str()]).passages(&["the pause"])
    );
}

/// Thirteen disks with one misalignment are one block of text and thirteen findings in JSON.
#[test]
fn equal_findings_are_one_block() {
    let folder = Folder::new("outputs");
    let rows: String = (0..13 * 300u64)
        .map(|at| {
            let (time, disk) = (128_166_372_003_061_629 + at * 1000, at % 13);
            let start = 32_256 + at * 65_536 * 7919 % (1 << 40);
            format!("{time},host,{disk},Read,{start},4096,100\n")
        })
        .collect();
    let file = folder.file("disks.csv", rows);
    let ran = analyze(&file, "");
    let words = ["13 places", "same holds", "device host_"];
    insta::assert_snapshot!(ran.ends(1).passages(&words));
    assert_eq!(
        ran.out.matches("misaligned-io: device").count(),
        0,
        "{}",
        ran.out
    );
    let json = analyze(&file, "--json").json();
    let findings = json["findings"].as_array().expect("findings").iter();
    assert_eq!(
        findings
            .filter(|finding| finding["rule"] == "misaligned-io")
            .count(),
        13
    );
}

#[test]
fn standard_input_packed_or_not() {
    use std::io::Write;
    let text = msr(pages(1000, 512, 8192));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).expect("packs");
    let zstd = zstd::encode_all(text.as_bytes(), 1).expect("packs");
    let mut messages = Vec::new();
    for bytes in [
        text.clone().into_bytes(),
        gzip.finish().expect("packs"),
        zstd,
    ] {
        messages.push(
            analyze_input(&bytes, "")
                .ends(1)
                .passages(&["MISFIT:", "standard input"]),
        );
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A day of blkparse text: two partitions; the first begins at sector 63.
fn parted() -> String {
    let mut random = plumb_testkit::Rng::new(8);
    let (mut text, mut ns) = (String::new(), 0u64);
    for at in 0..2000u64 {
        let (first, part) = if at % 4 == 0 { (63, 1) } else { (1 << 26, 2) };
        let sector = first + random.below(1 << 22) * 8;
        let op = if at % 2 == 0 { 'R' } else { 'W' };
        for (action, rest) in [
            (
                'A',
                format!("{sector} + 8 <- (8,{part}) {}", sector - first),
            ),
            ('Q', format!("{sector} + 8 [db]")),
            ('D', format!("{sector} + 8 [db]")),
            ('C', format!("{sector} + 8 [0]")),
        ] {
            ns += 250_000;
            let time = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            text.push_str(&format!(
                "  8,0    1 {at:8} {time:>14}   100  {action}   {op} {rest}\n"
            ));
        }
    }
    text
}

#[test]
fn some_of_the_io() {
    let folder = Folder::new("outputs");
    let file = folder.file("parted.txt", parted());
    let counted = |flags: &str| {
        let ran = analyze(&file, &format!("--json --grid 4k {flags}"));
        let json = ran.json();
        let profile = &json["result"]["profiles"][0];
        let misaligned = profile["places"][0]["grids"][0]["all"]["misaligned"].as_u64();
        (
            profile["ios"].as_u64(),
            misaligned,
            profile["target"]["layer"].as_str().map(str::to_owned),
        )
    };
    let check = |flags: &str, ios: u64, misaligned: u64, layer: &str| {
        assert_eq!(
            counted(flags),
            (Some(ios), Some(misaligned), Some(layer.to_owned())),
            "{flags}"
        );
    };
    check("", 2000, 500, "request");
    check("--layer bio", 2000, 500, "bio");
    check("--op read", 1000, 500, "request");
    check("--op W", 1000, 0, "request");
    check("--op read,write", 2000, 500, "request");
    check("--partition 1", 500, 500, "request");
    check("--partition 2", 1500, 0, "request");
    check("--range 63s-32g", 500, 500, "request");
    check("--range 67108864s-1t", 1500, 0, "request");
    // An I/O each millisecond: issues are 750 µs after the first event, and the first issue is time 0.
    check("--since 1", 1000, 250, "request");
    check("--until 500ms", 500, 125, "request");
    check("--since 0.5s --until 1500ms", 1000, 250, "request");
    check("--format blkparse", 2000, 500, "request");
    check("--device 8,0", 2000, 500, "request");
    let ran = analyze(&file, "--grid 4k --op read --since 1 --partition 1");
    let messages = [
        ran.passages(&["asked for", "WARNING"]),
        analyze(&file, "--since 2026-01-01T00:00:00Z")
            .ends(5)
            .complaint(),
        analyze(&file, "--format msr").ends(5).complaint(),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// blktrace notes the time of day: conversion to CSV keeps it, and `--since` takes it.
#[test]
fn time_of_day_of_blktrace() {
    let folder = Folder::new("time-of-day");
    let recording =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/guest-blktrace");
    let recording = recording.display().to_string();
    let csv = folder.path("guest.csv");
    let converted = plumb(["convert", &recording, &csv.display().to_string()]);
    insta::assert_snapshot!(passages(&converted.ends(0).err, &["not in"]));
    // FILETIME counts 100 ns from 1601 on, 11,644,473,600 s before 1970.
    let text = std::fs::read_to_string(&csv).expect("a file");
    let seconds: Vec<u64> = text
        .lines()
        .filter_map(|line| line.split(',').next()?.parse::<u64>().ok())
        .map(|ticks| ticks / 10_000_000 - 11_644_473_600)
        .collect();
    let (first, last) = (seconds[0], seconds[seconds.len() - 1]);
    assert!(
        first > 1_577_836_800 && last > first,
        "{first} to {last}: after 2020"
    );
    for since in [first + 1, last] {
        let time = humantime::format_rfc3339_seconds(
            std::time::UNIX_EPOCH + std::time::Duration::from_secs(since),
        );
        let ran = plumb([
            "analyze",
            "--json",
            "--op",
            "read,write",
            "--since",
            &time.to_string(),
            &recording,
        ]);
        let json = ran.json();
        let ios = json["result"]["profiles"]
            .as_array()
            .expect("profiles")
            .iter();
        let ios: u64 = ios.filter_map(|profile| profile["ios"].as_u64()).sum();
        let expected = seconds.iter().filter(|&&second| second >= since).count();
        assert_eq!(ios, expected as u64, "since {time}");
    }
}

#[test]
fn partitions_are_judged_apart() {
    let folder = Folder::new("outputs");
    let file = folder.file("parted.txt", parted());
    let ran = analyze(&file, "--grid 4k");
    let messages = [
        ran.ends(1)
            .passages(&["WARNING", "MISFIT:", "plumb analyze"]),
        // The advice, taken.
        analyze(&file, "--partition 1 --shift +1s --grid 4k").passages(&["would start"]),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
    let saved = folder.path("saved");
    let with_save = analyze(
        &file,
        &format!("--grid 4k --json --save {}", saved.display()),
    );
    assert_eq!(
        judged_without_commands(&analyze(&saved, "--grid 4k --json")),
        judged_without_commands(&with_save)
    );
}

#[test]
fn sums_cannot_be_taken_apart() {
    let table = "# plumb-residue 1 unit=512 modulus=2048\nsda R 7 16 1000\nsda W 0 16 1000\n";
    let mut messages = vec![
        analyze_input(table.as_bytes(), "")
            .ends(1)
            .passages(&["MISFIT:"]),
    ];
    for flags in ["--op read", "--range 0-1g", "--since 1"] {
        messages.push(analyze_input(table.as_bytes(), flags).ends(2).complaint());
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// 400,000 I/O of 2,000 lengths at any sector are more rows than a residue table has. The figures that need the length are ranges, and
/// the counts that these lines give are within them.
#[test]
fn figures_of_a_full_table_are_ranges() {
    let folder = Folder::new("outputs-full");
    let mut random = plumb_testkit::Rng::new(11);
    let ios: Vec<(char, u64, u64)> = (0..400_000)
        .map(|at| {
            let op = if at % 4 == 0 { 'W' } else { 'R' };
            (
                op,
                random.below(1 << 22) * 512,
                512 * random.between(1, 2000),
            )
        })
        .collect();
    let file = folder.file("full.csv", msr(ios.iter().copied()));
    let bounds = |value: &Value| match value.as_u64() {
        Some(exact) => [exact, exact],
        None => ["low", "high"].map(|end| value[end].as_u64().expect("an end of a range")),
    };
    let cells = |io: &(char, u64, u64), size: u64| (io.1 + io.2 - 1) / size - io.1 / size + 1;
    let figures = |op: Option<char>, size: u64| {
        let ios: Vec<_> = ios
            .iter()
            .filter(|io| op.is_none_or(|op| op == io.0))
            .collect();
        let count =
            |is: &dyn Fn(&(char, u64, u64)) -> bool| ios.iter().filter(|io| is(io)).count() as u64;
        [
            ("misaligned", count(&|io| io.1 % size != 0)),
            ("odd_length", count(&|io| io.2 % size != 0)),
            ("split", count(&|io| cells(io, size) > io.2.div_ceil(size))),
            ("crossing", count(&|io| cells(io, size) > 1)),
            ("cells", ios.iter().map(|io| cells(io, size)).sum()),
            ("bytes", ios.iter().map(|io| io.2).sum()),
        ]
    };
    // Checks the figures on some grids, and returns the number of those that are ranges.
    let check = |json: &Value, grids: [u64; 2]| {
        let profile = &json["result"]["profiles"][0];
        assert_eq!(profile["lengths_rounded"], true);
        let mut ranges = 0;
        for (at, size) in grids.into_iter().enumerate() {
            let by = &profile["places"][0]["grids"][at];
            for (part, op) in [("all", None), ("reads", Some('R')), ("writes", Some('W'))] {
                for (name, truth) in figures(op, size) {
                    let [low, high] = bounds(&by[part][name]);
                    assert!(
                        (low..=high).contains(&truth),
                        "{part} {name} on {size}: {low} to {high}, not {truth}"
                    );
                    ranges += u64::from(low < high);
                    // A part is no more than the whole.
                    let whole = bounds(&by["all"][name])[1];
                    assert!(high <= whole, "{part} {name} on {size}: {high} of {whole}");
                }
            }
        }
        ranges
    };
    let saved = folder.path("saved");
    let save = format!("--save {}", saved.display());
    let json = analyze(&file, &format!("--grid 64k --grid 4k --json {save}")).json();
    // The requested grids have counters of their own, so that every figure is exact.
    assert_eq!(check(&json, [65_536, 4096]), 0);
    // Those of a later question are ranges.
    let json = analyze(&saved, "--grid 16k --grid 128k --json").json();
    assert!(check(&json, [16_384, 131_072]) > 0, "{json}");
    let mut messages = vec![analyze(&saved, "--grid 16k").passages(&["rounded up"])];
    // A stripe of four chunks of 32 KiB was not asked for either: splits, and the I/O and bytes of each member.
    let (chunk, members) = (32_768, 4);
    let json = analyze(&saved, "--chunk 32k --members 4 --json").json();
    let striped = &json["result"]["profiles"][0]["what_if"]["striped"];
    assert_eq!(striped["class"], "range-for-these-requests");
    let split = ios
        .iter()
        .filter(|io| cells(io, chunk) > io.2.div_ceil(chunk))
        .count() as u64;
    let [low, high] = bounds(&striped["tally"]["split"]);
    assert!(
        (low..=high).contains(&split) && low < high,
        "{low} to {high}, not {split}"
    );
    let mut loads = [[0u64; 2]; 4];
    for (_, start, len) in &ios {
        for piece in start / chunk..=(start + len - 1) / chunk {
            let end = ((piece + 1) * chunk).min(start + len);
            let load = &mut loads[(piece % members) as usize];
            load[0] += 1;
            load[1] += end - (piece * chunk).max(*start);
        }
    }
    let shown = striped["members"].as_array().expect("members");
    assert_eq!(shown.len(), 4);
    for (shown, [pieces, bytes]) in shown.iter().zip(loads) {
        for (name, truth) in [("pieces", pieces), ("bytes", bytes)] {
            let [low, high] = bounds(&shown[name]);
            assert!(
                (low..=high).contains(&truth),
                "{name}: {low} to {high}, not {truth}"
            );
        }
    }
    messages.push(analyze(&saved, "--chunk 32k --members 4").passages(&["(a range"]));
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Lines of align.d that cannot all be true: two sectors past a block, 3,000 of them, and none misaligned. The lengths are printed as
/// they are.
#[test]
fn contradictions_of_a_source_are_reported() {
    let rows = "  -1 | 0\n   0 |@@@@ 9000\n   1 | 0\n   2 |@@ 3000\n   4 | 0\n";
    let totals = "5.000000000 seconds elapsed\n\n   12000 IOs issued\n       0 IOs misaligned,        0 block offset        0 byte \
                  offset\n    3000 IOs non-multiple of 8KB\n      25 Percent non-8k IOs\n\n\n";
    let text = format!(
        "{totals}{DISTRIBUTION}{rows}\nTotals\n\n IO size Count\n\n    8192     9000\n    8704     3000\n\n IO misalignment Count\n\n\
         {DISTRIBUTION}{rows}\n{totals}"
    );
    let ran = analyze_input(text.as_bytes(), "");
    // 3,000 of 12,000 I/O are 2 or 3 sectors past a block: 256 to 384 bytes on average.
    insta::assert_snapshot!(ran.passages(&["contradicts itself", "mean offset"]));
    for (length, ios) in [("8 KiB |", "9,000"), ("8,704 B |", "3,000")] {
        let is_row = |line: &str| line.trim_start().starts_with(length) && line.ends_with(ios);
        assert!(ran.out.lines().any(is_row), "{}", ran.out);
    }
    assert_ne!(
        ran.code, 0,
        "a source that contradicts itself is never clean"
    );
    let json = analyze_input(text.as_bytes(), "--json").json();
    let found = json["inputs"][0]["contradictions"]
        .as_array()
        .expect("a list");
    let kinds: Vec<_> = found
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["misaligned", "mean-offset"]);
}

/// The counts of the rows up to 8 KiB in the histograms of a report.
fn counts_up_to_8k(ran: &Ran) -> Vec<String> {
    let rows = ran.out.lines().map(str::trim_start);
    let rows = rows.filter(|line| line.starts_with("to 8.00 KiB |"));
    let last = |line: &str| line.split_whitespace().last().map(str::to_owned);
    rows.filter_map(last).collect()
}

/// Two intervals of io-profiler.d, 10 s each: 12 and 5 reads of 4 KiB to 8 KiB are 17, and have a course over time.
#[test]
fn intervals_of_the_profiler_add_up() {
    let folder = Folder::new("outputs-profiler");
    let interval = |time: &str, ios: u64| {
        format!("{time}\nsd0 R\n\n{DISTRIBUTION}  2048 | 0\n  4096 |@@ {ios}\n  8192 | 0\n\n")
    };
    let text = interval("2026 Nov 24 23:59:58", 12) + &interval("2026 Nov 25 00:00:08", 5);
    let file = folder.file("profile.txt", text);
    let page = folder.path("page.html");
    let ran = analyze(&file, &format!("--html {}", page.display()));
    let sums = counts_up_to_8k(&ran);
    assert_eq!(sums, ["17"], "{}", ran.out);
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, behind) = page.split_once("Size mix over time").expect("a picture");
    let figure = behind.split_once("</figure>").expect("a figure").0;
    assert!(figure.contains("<svg"), "{figure}");
}

/// Ready-made counts of two hosts that name a disk alike are not added up.
#[test]
fn counts_of_equal_names_are_kept_apart() {
    let folder = Folder::new("outputs-counts");
    let file = |name: &str, ios: u64| {
        let rows = format!("  2048 | 0\n  4096 |@@ {ios}\n  8192 | 0\n\n");
        folder.file(
            name,
            format!("2026 Nov 24 23:59:58\nsd0 R\n\n{DISTRIBUTION}{rows}"),
        )
    };
    let (one, other) = (file("one.txt", 12), file("two.txt", 5));
    let sums = |flags: &[&str]| {
        let files = [one.as_os_str(), other.as_os_str()];
        let flags = flags.iter().map(AsRef::as_ref);
        let ran = plumb(
            std::iter::once("analyze".as_ref())
                .chain(flags)
                .chain(files),
        );
        (counts_up_to_8k(&ran), ran)
    };
    let (apart, ran) = sums(&[]);
    assert_eq!(apart, ["12", "5"], "{}", ran.out);
    let mut messages = vec![ran.passages(&["kept apart"])];
    assert_eq!(ran.out.matches("Device sd0").count(), 2);
    let (together, ran) = sums(&["--together"]);
    // One device: counts of the same buckets add up.
    assert_eq!(together, ["17"], "{}", ran.out);
    assert_eq!(ran.out.matches("Device sd0").count(), 1);
    messages.push(ran.passages(&["--together"]));
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A recording that lost events leaves streams open, and so does a copy of it in another format.
#[test]
fn holes_survive_conversion() {
    let folder = Folder::new("outputs-holes");
    let lines: Vec<(char, u64, u64)> = (0..2000).map(|at| ('R', at * 8192, 8192)).collect();
    let whole = msr(lines);
    let parts = |path: &Path| judged_without_commands(&analyze(path, "--json"));
    let holes = folder.file(
        "holes.csv",
        whole.clone() + "# plumb: lost=300 missing_files=1\n",
    );
    let original = parts(&holes);
    assert_ne!(original, parts(&folder.file("whole.csv", whole)));
    for name in ["again.csv", "again.iolog"] {
        let copy = folder.path(name);
        plumb([Path::new("convert"), &holes, &copy]);
        let text = std::fs::read_to_string(&copy).expect("the copy");
        assert!(text.contains("lost=300 missing_files=1"), "{name}");
        let again = analyze(&copy, "--json").json();
        let unknown = again["result"]["unknown"].to_string();
        assert!(unknown.contains("looks-sequential"), "{name}: {unknown}");
        assert!(
            !again["findings"].to_string().contains("looks-sequential"),
            "{name}"
        );
    }
}

/// Without times nothing is known of the order of the writes, in no copy either.
#[test]
fn a_trace_without_times_stays_without() {
    let folder = Folder::new("outputs-untimed");
    let write = |at: u64| format!(",host,0,Write,{},4096,\n", at * 7919 % 20_011 * 4096);
    let original = folder.file("untimed.csv", (0..2000).map(write).collect::<String>());
    let answers = |path: &Path| {
        let ran = analyze(path, "--grid 4k --json");
        (ran.code, judged_without_commands(&ran))
    };
    let expected = answers(&original);
    let unknown = expected.1.1["unknown"].to_string();
    assert!(unknown.contains("small-random-writes"), "{unknown}");
    for name in ["copy.csv", "copy.iolog", "copy.parquet"] {
        let copy = folder.path(name);
        let ran = plumb([Path::new("convert"), &original, &copy]);
        ran.ends(0);
        assert!(!ran.err.contains("1970"), "{}", ran.err);
        let (code, (findings, result)) = answers(&copy);
        assert_eq!((code, &findings), (expected.0, &expected.1.0), "{name}");
        assert_eq!(result["unknown"], expected.1.1["unknown"], "{name}");
    }
    let timed = folder.file(
        "timed.csv",
        msr((0..2000).map(|at| ('W', at * 7919 % 20_011 * 4096, 4096))),
    );
    assert!(
        analyze(&timed, "--grid 4k --json").json()["findings"]
            .to_string()
            .contains("small-random-writes")
    );
}

/// CSV does not tell the layer.
#[test]
fn a_lost_layer_is_named() {
    let folder = Folder::new("outputs-layer");
    let log = "fio version 3 iolog\n0 f add\n0 f open\n1 f read 0 4096\n2 f close\n";
    let log = folder.file("vfs.iolog", log);
    let messages = ["copy.csv", "copy.parquet"].map(|name| {
        let ran = plumb([Path::new("convert"), &log, &folder.path(name)]);
        ran.ends(0).complaint()
    });
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn a_directory_of_one_recording() {
    require!(RealTraces);
    let json = analyze(&real("blktrace"), "--json --grid 512").json();
    assert_eq!(json["inputs"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["inputs"][0]["missing_files"], 8, "CPU 2 to 9");
    // Without all CPUs nothing can be said of streams, and it is never clean.
    let ran = analyze(&real("blktrace"), "--grid 512 --fail-on none");
    insta::assert_snapshot!(ran.ends(3).passages(&["looks-sequential"]));
}

#[test]
fn a_trace_in_another_format_gives_the_same_answers() {
    require!(RealTraces);
    let folder = Folder::new("outputs");
    let asked = "--grid 4k --grid 64k --chunk 64k --members 4 --shift +1s --json";
    let numbers = |path: &Path| judged(&analyze(path, asked).json());
    let direct = numbers(&real(VSCSI));
    let parquet = folder.path("guest.parquet");
    let ran = plumb([Path::new("convert"), &real(VSCSI), &parquet]);
    ran.ends(0).complains("113,872 I/O of");
    assert_eq!(numbers(&parquet), direct);
    // MSR's CSV names a host beside the disk, and a job for fio is an application's request: the same I/O elsewhere.
    for (name, code) in [("guest.csv", 0), ("guest.iolog", 0)] {
        let path = folder.path(name);
        plumb([Path::new("convert"), &real(VSCSI), &path]).ends(code);
        let json = analyze(&path, "--grid 4k --json").json();
        let tally = &json["result"]["profiles"][0]["places"][0]["grids"][0]["all"];
        let expected = &direct.1["profiles"][0]["places"][0]["grids"][0]["all"];
        assert_eq!(tally, expected, "{name}");
    }
    plumb([
        Path::new("convert"),
        &real(VSCSI),
        &folder.path("guest.unknown"),
    ])
    .ends(2)
    .complains(".parquet");
}

#[test]
fn converting_a_missing_file() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let to = folder.path("n.parquet");
    let convert = |flags: &[&str]| {
        let paths = ["convert".as_ref(), file.as_os_str(), to.as_os_str()];
        plumb(
            paths
                .into_iter()
                .chain(flags.iter().map(|flag| flag.as_ref())),
        )
    };
    let mut messages = vec![convert(&["--device=sdq"]).ends(5).complaint()];
    messages.push(convert(&["--partition=3"]).ends(3).complaint());
    assert!(!to.exists());
    messages.push(
        convert(&["--device=sdq", "--device=host_0"])
            .ends(3)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
    convert(&["--device=host_0"]).ends(0);
}

/// Two layers are no sum of I/O; a damaged source reports its fault.
#[test]
fn convert_reports_its_output() {
    let folder = Folder::new("outputs");
    let file = folder.file("parted.txt", parted());
    let to = folder.path("n.parquet");
    let both = plumb([Path::new("convert"), &file, &to]);
    let mut messages = vec![both.ends(0).complaint()];
    let damaged = folder.file("damaged.csv", msr(pages(10, 0, 512)) + "garbage\n");
    let ran = plumb([Path::new("convert"), &damaged, &to]);
    messages.push(ran.ends(3).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn a_trace_whose_reader_goes_away() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(200_000, 512, 8192)));
    for format in ["fio-iolog", "msr-csv", "parquet"] {
        let mut child = command()
            .arg("convert")
            .arg(&file)
            .args(["-", "--to", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let ran = wait::output("plumb", wait::PATIENCE, child);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!((&*said, ran.status.code()), ("", Some(0)), "{format}");
    }
}

/// Findings and result. The commands of a finding repeat the command line, so they are left out.
fn judged_without_commands(ran: &Ran) -> (Value, Value) {
    let (mut findings, result) = judged(&ran.json());
    for finding in findings.as_array_mut().expect("findings") {
        finding["fix"].take();
    }
    (findings, result)
}

#[test]
fn saved_profiles_come_packed_and_by_pipe_too() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let saved = folder.path("saved");
    analyze(&file, &format!("--save {}", saved.display())).ends(1);
    let bytes = std::fs::read(&saved).expect("saved");
    let expected = judged_without_commands(&analyze(&saved, "--json"));
    let piped = analyze_input(&bytes, "--json");
    assert_eq!(judged_without_commands(&piped), expected);
    let packed = folder.file("saved.gz", gzip(&bytes));
    assert_eq!(
        judged_without_commands(&analyze(&packed, "--json")),
        expected
    );
    insta::assert_snapshot!(analyze_input(&bytes, "--op read").ends(2).complaint());
    analyze_input(&bytes[..bytes.len() / 2], "").ends(5);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, bytes).expect("packs");
    packed.finish().expect("packs")
}

/// A grid given twice is one.
#[test]
fn a_grid_given_twice_is_judged_once() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let (once, twice) = (
        analyze(&file, "--grid 4k --json"),
        analyze(&file, "--grid 4k --grid 4k --json"),
    );
    assert_eq!(
        judged_without_commands(&twice),
        judged_without_commands(&once)
    );
}

/// Names of a trace appear in the report, and move no cursor.
#[test]
fn names_reach_no_terminal_as_commands() {
    let folder = Folder::new("outputs");
    let evil = "sd\u{1b}]0;owned\u{7}\u{1b}[2J";
    let text = msr(pages(1000, 512, 8192)).replace(",host,", &format!(",{evil},"));
    let file = folder.file("evil.csv", &text);
    let ran = analyze(&file, "");
    ran.ends(1).says("device sd\\u{1b}]0;owned");
    let sent = folder.file("sent.txt", parted().replace("[db]", "[d\u{1b}[2Jb]"));
    let sent = analyze(&sent, "");
    sent.ends(1).says("d\\u{1b}[2Jb");
    let named = analyze(&file, "--device nothing");
    named.ends(5).complains("sd\\u{1b}]0;owned");
    let bad = folder.file("\u{1b}[31mname", "nonsense");
    let failed = analyze(&bad, "");
    let converted = plumb([
        Path::new("convert"),
        &file,
        &folder.path("\u{1b}[2Jx.iolog"),
    ]);
    converted.ends(0);
    for said in [
        &ran.out,
        &ran.err,
        &sent.out,
        &sent.err,
        &named.out,
        &named.err,
        &failed.err,
        &converted.err,
    ] {
        assert!(
            !said
                .chars()
                .any(|letter| letter.is_control() && letter != '\n'),
            "{said:?}"
        );
    }
    assert!(
        ran.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.out
    );
}
