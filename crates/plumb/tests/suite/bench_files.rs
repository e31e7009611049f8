//! `plumb bench` by parameter files of Vdbench and fio, and its study: measurements, conclusions and refusals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::recording::read;
use crate::common::{Folder, Ran, plumb, recorded_lines};
use plumb_testkit::charging::ChargedCells;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{Machine, require};
use serde_json::Value;

/// The published parameters on another device; nothing else of the file is changed.
fn published(folder: &Folder, device: &Path) -> PathBuf {
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/offset-sweep.vdb"
    ));
    let text = text
        .expect("the example")
        .replace("/dev/sdX", device.to_str().expect("a plain name"));
    folder.file("sweep.vdb", text)
}

fn bench(flag: &str, file: &Path, flags: &str) -> Ran {
    let file = file.to_str().expect("a plain name");
    plumb(
        ["bench", flag, file]
            .into_iter()
            .chain(flags.split_whitespace()),
    )
}

fn disk(folder: &Folder) -> PathBuf {
    folder.file("disk", vec![7; 4 << 20])
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("found {value}, expected a number"))
}

/// Nine runs of two seconds on cells of 4 KiB that charge a ratio for a miss. A busy machine may leave the question open: it is
/// asked again then, up to three times.
fn swept(phase_bytes: u64, ratio: f64) -> (i32, Value) {
    let folder = Folder::new("bench-sweep");
    let device = ChargedCells::of_ratio(4096, phase_bytes, ratio).up();
    let file = published(&folder, device.path());
    let ask = || {
        let ran = bench("--vdbench", &file, "--for 2s --interval 250ms --json");
        (ran.code, ran.json()["result"]["sweep"].clone())
    };
    let mut answers = std::iter::repeat_with(ask).take(3);
    let first = answers.next().expect("three answers");
    if first.0 == 3 {
        answers.find(|(code, _)| *code != 3).unwrap_or(first)
    } else {
        first
    }
}

#[test]
fn a_sweep_finds_the_grid_and_its_penalty() {
    require!(Patience, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    for (phase, offset, code) in [(0, 0, 0), (1024, 3072, 1)] {
        let machine = Machine::watched();
        let (ended, sweep) = swept(phase, 2.0);
        let penalty = sweep["penalty"]["estimate"].as_f64().unwrap_or(0.0);
        let width = sweep["penalty"]["high"].as_f64().unwrap_or(0.0)
            - sweep["penalty"]["low"].as_f64().unwrap_or(0.0);
        // A machine without time makes reads of any offset slower, and some more than others.
        if (ended == 3 || (penalty - 2.0).abs() >= 0.1 || width >= 0.4)
            && let Some(why) = machine.was_busy()
        {
            plumb_testkit::undecided!(why);
        }
        assert_eq!(
            (ended, &sweep["verdict"]),
            (code, &Value::from("grid")),
            "{sweep:#}"
        );
        let grid = &sweep["grid"];
        assert_eq!(
            (&grid["granularity_bytes"], &grid["granularity_bytes_max"]),
            (&4096.into(), &4096.into())
        );
        assert_eq!(
            grid["offset_bytes"], offset,
            "the device begins {phase} bytes past a boundary"
        );
        assert!((penalty - 2.0).abs() < 0.1, "{penalty}");
        assert!(width > 0.0 && width < 0.4, "{sweep:#}");
    }
}

#[test]
fn without_a_penalty_there_is_no_grid() {
    require!(Patience, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let (ended, sweep) = swept(0, 1.0);
    // A busy machine may leave it open, but must not make a grid of it.
    let verdict = sweep["verdict"].as_str().expect("a verdict");
    assert!(
        matches!((verdict, ended), ("no-difference", 0) | ("inconclusive", 3)),
        "{ended} {sweep:#}"
    );
    assert_eq!(
        (&sweep["grid"], &sweep["penalty"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn the_verdict_is_in_words() {
    require!(Patience, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let folder = Folder::new("bench-words");
    let device = ChargedCells::of_ratio(4096, 3584, 2.0).up();
    let page = folder.path("page.html");
    let flags = format!("--for 2s --interval 250ms --html {}", page.display());
    let file = published(&folder, device.path());
    let mut answers = std::iter::repeat_with(|| bench("--vdbench", &file, &flags)).take(3);
    let ran = answers
        .find(|ran| ran.code != 3)
        .expect("a verdict in one of three runs");
    ran.ends(1).says("times (99 %:");
    // Ratios and rates vary.
    let said = ran.said();
    let (_, verdict) = said.split_once("verdict: ").expect("a verdict");
    let (verdict, _) = verdict.split_once(" are ").expect("a ratio");
    let (_, advice) = said.split_once("; set ").expect("advice");
    let advice = advice.lines().next().expect("a sentence");
    let mut notes = said.split("note: ").filter(|note| note.contains("jvms="));
    let (note, _) = notes
        .next()
        .and_then(|note| note.split_once(", "))
        .expect("a note");
    let lasting = recorded_lines(&ran.out, &["run 9 ", "Nothing was"]);
    insta::assert_snapshot!([verdict, advice, note, &lasting].join("\n"));
    let averages = ran
        .out
        .lines()
        .filter(|line| line.contains("avg_2-"))
        .count();
    assert_eq!(
        averages, 18,
        "one behind each run, and all of them at the end:\n{}",
        ran.out
    );
    let summary = ran
        .out
        .lines()
        .skip_while(|line| !line.starts_with("run 9 of 9"))
        .skip_while(|line| !line.contains("avg_2-"));
    let wide: Vec<&str> = summary
        .skip(1)
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert_eq!(
        wide,
        Vec::<&str>::new(),
        "what is not in Vdbench's columns stays on a terminal"
    );
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("starts at offset 512 bytes") && page.contains("I/O a second by offset"));
}

#[test]
fn the_average_leaves_the_first_interval_out() {
    let folder = Folder::new("bench-average");
    let text = format!(
        "sd=a,lun={},th=3\nwd=w,sd=a,xf=4k\nrd=r,wd=w,iorate=(400,800),el=4,forxf=(4k,8k)\n",
        disk(&folder).display()
    );
    let document = bench(
        "--vdbench",
        &folder.file("p", text),
        "--for 1s --interval 250ms --json",
    )
    .ends(0)
    .json();
    let runs = document["result"]["runs"].as_array().expect("runs").clone();
    let names: Vec<&str> = runs
        .iter()
        .map(|run| run["name"].as_str().expect("a name"))
        .collect();
    let expected = [
        "xfersize=4k iorate=400",
        "xfersize=4k iorate=800",
        "xfersize=8k iorate=400",
        "xfersize=8k iorate=800",
    ];
    assert_eq!(names, expected.map(|overrides| format!("r {overrides}")));
    for (run, (bytes, rate)) in
        runs.iter()
            .zip([(4096, 400.0), (4096, 800.0), (8192, 400.0), (8192, 800.0)])
    {
        let intervals = run["intervals"].as_array().expect("intervals");
        let counted: f64 = intervals[1..]
            .iter()
            .map(|interval| number(&interval["ios"]))
            .sum();
        let average = &run["average"];
        assert_eq!(number(&average["interval"]["ios"]), counted);
        assert_eq!(
            (&average["first"], &average["interval"]["number"]),
            (&2.into(), &intervals.len().into())
        );
        assert_eq!(
            number(&run["total"]["bytes"]),
            number(&run["total"]["ios"]) * f64::from(bytes)
        );
        // Arrivals are random: 400 of them spread by 20.
        let found = number(&run["total"]["ios_per_second"]);
        assert!(
            (found - rate).abs() < rate * 0.25,
            "{found}, asked for {rate}"
        );
    }
    assert_eq!(document["result"]["sweep"], Value::Null);
}

#[test]
fn several_storages_share_a_run() {
    let folder = Folder::new("bench-several");
    let (one, two) = (
        folder.file("d1", vec![1; 1 << 20]),
        folder.file("d2", vec![2; 1 << 20]),
    );
    let base = one
        .to_str()
        .expect("a plain name")
        .trim_end_matches('1')
        .to_owned();
    let text =
        "sd=d,lun=$base,count=(1,2)\nwd=w,sd=d*,xf=8k\nrd=r,wd=w,iorate=max,el=2,forth=(1-4,d)\n";
    let file = folder.file("p", text);
    let flags = format!("--set base={base} --for 200ms --interval 100ms --json");
    let document = bench("--vdbench", &file, &flags).ends(0).json();
    let runs = document["result"]["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 3);
    for run in runs {
        let targets: Vec<&str> = run["targets"]
            .as_array()
            .expect("targets")
            .iter()
            .filter_map(|one| one["target"].as_str())
            .collect();
        assert_eq!(
            targets,
            [one.to_str().expect("plain"), two.to_str().expect("plain")]
        );
    }
    insta::assert_snapshot!(bench("--vdbench", &file, "").ends(2).complaint());
}

#[test]
fn nothing_is_written_without_permission() {
    let folder = Folder::new("bench-writes");
    let target = disk(&folder);
    let text = format!(
        "sd=a,lun={}\nwd=w,sd=a,rdpct=0\nrd=r,wd=w,iorate=max,el=2\n",
        target.display()
    );
    let file = folder.file("p", text);
    let ran = bench("--vdbench", &file, "--for 100ms --interval 100ms");
    insta::assert_snapshot!(ran.ends(2).complaint());
    assert!(
        fs::read(&target)
            .expect("the file")
            .iter()
            .all(|byte| *byte == 7),
        "it was written to"
    );
    bench(
        "--vdbench",
        &file,
        "--for 100ms --interval 100ms --write --yes disk",
    )
    .ends(0);
    let written = fs::read(&target).expect("the file");
    assert!(written.iter().any(|byte| *byte != 7), "now it was");
    assert!(
        written[..4096] != [7; 4096] || !target.starts_with("/dev"),
        "a file has no label to spare"
    );
}

#[test]
fn invalid_jobs_are_reported_with_their_line() {
    let folder = Folder::new("bench-refused");
    let target = disk(&folder);
    let lun = target.display();
    let refused = [
        (
            format!("sd=a,lun={lun}\nwd=w,sd=a\nrd=r,wd=w,iorate=max,fwd=x\n"),
            2,
        ),
        (
            format!("sd=a,lun={lun}x\nwd=w,sd=a\nrd=r,wd=w,iorate=max\n"),
            5,
        ),
        (
            format!("sd=a,lun={lun},range=(1m,1g)\nwd=w,sd=a\nrd=r,wd=w,iorate=max\n"),
            2,
        ),
        (
            format!("sd=a,lun={lun}\nwd=w,sd=a,xf=8m\nrd=r,wd=w,iorate=max\n"),
            2,
        ),
    ];
    let mut messages = refused
        .map(|(text, code)| {
            let ran = bench("--vdbench", &folder.file("p", text), "");
            ran.ends(code).complaint()
        })
        .to_vec();
    let absent = bench("--vdbench", &folder.path("none"), "");
    messages.push(absent.ends(5).complaint());
    let unknown = bench("--fio", &folder.file("j", "[a]\nfred=1\n"), "");
    messages.push(unknown.ends(2).complaint_without_lists());
    insta::assert_snapshot!(messages.join("\n\n"));
    plumb(["bench", "--vdbench", "p", "--fio", "j"]).ends(2);
    plumb(["bench", "--vdbench", "p", "--depth", "4"]).ends(2);
}

/// Starts of a trace, in the order of their issue.
fn starts(trace: &Path) -> Vec<u64> {
    read(trace)
        .events
        .iter()
        .map(|event| event.start_bytes)
        .collect()
}

/// Each run has a file of its own, with all of its I/O and no others.
#[test]
fn each_run_has_a_trace() {
    let folder = Folder::new("bench-traces");
    let text = format!(
        "sd=s,lun={},th=1\nsd=t,lun={0},th=1,offset=512\nwd=w,sd=s\nrd=a,wd=w,iorate=max,el=2\n\
         rd=b,wd=w,sd=t,iorate=max,el=2\n",
        disk(&folder).display()
    );
    let (file, trace) = (folder.file("p", text), folder.path("t.parquet"));
    let flags = format!(
        "--for 200ms --interval 100ms --json --trace {}",
        trace.display()
    );
    // Two short runs leave a sweep open.
    let document = bench("--vdbench", &file, &flags).json();
    for (number, phase) in [(1, 0), (2, 512)] {
        let starts = starts(&folder.path(&format!("t-{number}.parquet")));
        let total = &document["result"]["runs"][number - 1]["total"]["ios"];
        assert_eq!(
            starts.len() as u64,
            total.as_u64().expect("a number"),
            "run {number}"
        );
        assert!(
            !starts.is_empty() && starts.iter().all(|start| start % 4096 == phase),
            "run {number}"
        );
    }
    assert!(!trace.exists(), "no run has the name alone");
    let taken = bench("--vdbench", &file, &flags);
    insta::assert_snapshot!(taken.ends(2).complaint());
    let job = folder.file(
        "j",
        format!(
            "[a]\nfilename={}\nsize=1m\nrw=read\n",
            disk(&folder).display()
        ),
    );
    bench("--fio", &job, &format!("--trace {}", trace.display()))
        .ends(0)
        .says("t.parquet: 256 I/O");
    assert_eq!(
        starts(&trace),
        (0..256).map(|at| at * 4096).collect::<Vec<_>>()
    );
}

/// In sequence once to the end of each storage, without a time limit; or over and over, from some place on.
#[test]
fn sequences_begin_and_end_as_asked() {
    let folder = Folder::new("bench-sequences");
    let (disk, trace) = (disk(&folder), folder.path("t.parquet"));
    let run = |wd: &str, trace: &Path| {
        let text = format!(
            "sd=s,lun={},th=1,size=1m\nsd=t,lun={0},th=1\nwd=w,sd=({}),xf=16k,seekpct={wd}\nrd=r,wd=w,iorate=max\n",
            disk.display(),
            if wd == "eof" { "s,t" } else { "s" }
        );
        let flags = format!(
            "--for 30s --interval 100ms --json --trace {}",
            trace.display()
        );
        let flags = if wd == "eof" {
            flags
        } else {
            flags.replace("30s", "200ms")
        };
        bench("--vdbench", &folder.file("p", text), &flags)
            .ends(0)
            .json()["result"]["runs"][0]
            .clone()
    };
    let ended = run("eof", &trace);
    let ios: Vec<&Value> = ended["targets"]
        .as_array()
        .expect("targets")
        .iter()
        .map(|one| &one["measured"]["ios"])
        .collect();
    assert_eq!(ios, [64, 256], "16 KiB to the end of 1 MiB, and of 4 MiB");
    let mut seen = starts(&trace);
    seen.sort_unstable();
    let mut expected: Vec<u64> = (0..64).chain(0..256).map(|at| at * 16_384).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected, "each place once");
    let around = folder.path("around.parquet");
    run("seqnz", &around);
    let seen = starts(&around);
    let first = seen[0] / 16_384;
    assert!(
        seen.len() > 64 && first > 0,
        "{} I/O from {first} on",
        seen.len()
    );
    for (number, start) in (first..).zip(&seen) {
        assert_eq!(*start, number % 64 * 16_384, "I/O {number}");
    }
}

/// The same job file, run by fio.
#[test]
fn a_job_file_gives_the_figures_of_fio() {
    require!(
        Patience,
        Tool("qemu-storage-daemon"),
        Tool("fusermount3"),
        Tool("fio")
    );
    let folder = Folder::new("bench-fio");
    let device = ChargedCells::of_ratio(4096, 0, 2.0).up();
    let text = format!(
        "[global]\nfilename={}\nioengine=libaio\ndirect=1\nnorandommap\nruntime=2\ntime_based\nsize=512m\n\
         [on]\nrw=randread\niodepth=8\n[off]\nstonewall\nrw=randread\niodepth=4\noffset=512\nbs=4k\n",
        device.path().display()
    );
    let file = folder.file("j.fio", text);
    let machine = plumb_testkit::Machine::watched();
    let fio = Command::new("fio")
        .args(["--output-format=json"])
        .arg(&file)
        .limited_output();
    let theirs: Value = serde_json::from_slice(&fio.stdout).expect("its JSON");
    let theirs: Vec<f64> = (0..2)
        .map(|job| number(&theirs["jobs"][job]["read"]["iops"]))
        .collect();
    let document = bench("--fio", &file, "--json").ends(0).json();
    let ours: Vec<f64> = (0..2)
        .map(|run| number(&document["result"]["runs"][run]["average"]["ios_per_second"]))
        .collect();
    let is_close = |(ours, theirs): (&f64, &f64)| (ours / theirs - 1.0).abs() < 0.1;
    // Only a wrong result needs the excuse of a busy machine.
    if !ours.iter().zip(&theirs).all(is_close)
        && let Some(why) = machine.was_busy()
    {
        plumb_testkit::undecided!(why);
    }
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!(is_close((ours, theirs)), "{ours:?}, fio {theirs:?}");
    }
    assert!(
        (ours[0] / ours[1] - 2.0).abs() < 0.2,
        "each job off the grid reads two cells: {ours:?}"
    );
}

#[test]
fn a_job_without_a_time_ends_after_its_size() {
    let folder = Folder::new("bench-pass");
    let text = format!(
        "[a]\nfilename={}\nsize=1m\nbs=4k\ndirect=1\n",
        disk(&folder).display()
    );
    let document = bench("--fio", &folder.file("j.fio", text), "--json")
        .ends(0)
        .json();
    assert_eq!(
        document["result"]["runs"][0]["total"]["ios"], 256,
        "1 MiB by 4 KiB"
    );
}

#[test]
fn the_study_counts_records() {
    let folder = Folder::new("bench-study");
    let target = disk(&folder).display().to_string();
    let flags = "--study gather --at-threads 1,2 --gather 1,16 --for 300ms --interval 100ms";
    let ran = plumb(
        ["bench", &target, "--json"]
            .into_iter()
            .chain(flags.split_whitespace()),
    );
    let study = ran.ends(0).json()["result"]["study"].clone();
    let rows = study["rows"].as_array().expect("rows");
    let seen: Vec<(u64, &str, u64)> = rows
        .iter()
        .map(|row| {
            let whole = |name: &str| row[name].as_u64().expect("a whole number");
            (
                whole("threads"),
                row["order"].as_str().expect("a word"),
                whole("records"),
            )
        })
        .collect();
    let of = |threads| {
        [
            ("random", 1),
            ("random", 16),
            ("sequential", 1),
            ("sequential", 16),
        ]
        .map(|(order, records)| (threads, order, records))
    };
    assert_eq!(seen, [of(1), of(2)].concat());
    for row in rows {
        let records = number(&row["records"]) * number(&row["ios_per_second"]);
        assert!(
            (number(&row["records_per_second"]) / records - 1.0).abs() < 1e-9,
            "{row}"
        );
    }
    assert_eq!(number(&rows[0]["gain"]), 1.0);
    assert_eq!(study["ops"], "reads");
    plumb(["bench", &target, "--gather", "4"]).ends(2);
    let two = plumb(["bench", &target, &target, "--study", "gather"]);
    insta::assert_snapshot!(two.ends(2).complaint());
}
