//! `plumb compare` as a user runs it.

use std::path::{Path, PathBuf};

use crate::common::{Folder, Ran, paragraph, plumb, recorded, recorded_lines};
use plumb_testkit::charging::ChargedCells;
use plumb_testkit::{Rng, require};
use serde_json::Value;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/iostat")
        .join(name)
}

fn compare(before: &Path, after: &Path, flags: &[&str]) -> Ran {
    let files = [before.as_os_str().to_owned(), after.as_os_str().to_owned()];
    plumb(
        std::iter::once("compare".into())
            .chain(files)
            .chain(flags.iter().map(Into::into)),
    )
}

/// The heading of a flat file of Vdbench.
const FLAT_HEADING: &str = "tod timestamp Run Interval reqrate rate MB/sec bytes/io read% resp read_resp write_resp resp_max queue_depth xfersize threads\n";

/// I/O a second of the sweep that the author of Vdbench published in 2010: 4 KiB reads at offsets in steps of 512 bytes.
const PUBLISHED_SWEEP: [f64; 8] = [
    19223.00, 3655.50, 3634.00, 3633.00, 3614.50, 3604.00, 3602.50, 3597.50,
];

/// Average lines of Vdbench, a run each: the rate at `offset + shift` is that of the published sweep at `offset`.
fn sweep_results(label: impl Fn(u64) -> String, shift: usize, offsets: usize) -> String {
    (0..offsets)
        .map(|at| {
            let rate = PUBLISHED_SWEEP[(at + 8 - shift) % 8];
            let mib = rate / 256.0;
            format!("{}   avg_2-3   {rate:.2}   {mib:.2}   4096 100.00   1.580   2.803   0.231   1.1   0.9\n", label(at as u64 * 512))
        })
        .collect()
}

#[test]
fn sweeps_of_offsets_are_judged() {
    let folder = Folder::new("compare-sweep");
    let judge = |text: &str, flags: &[&str]| {
        let file = folder.file("results.txt", text);
        let flags = flags.iter().map(|flag| flag.as_ref());
        plumb(
            ["compare".as_ref(), file.as_os_str()]
                .into_iter()
                .chain(flags),
        )
    };
    let on_grid = sweep_results(|offset| format!("offset={offset:04}"), 0, 9);
    judge(&on_grid, &[])
        .ends(0)
        .says("4 KiB")
        .says("offset 0 bytes");
    let sweep = judge(&on_grid, &["--json"]).json()["result"]["sweep"].clone();
    assert_eq!(sweep["verdict"], "grid");
    assert_eq!(sweep["grid"]["granularity_bytes"], 4096);
    assert_eq!(sweep["ops"], "reads");
    // The two fast runs are both 19,223 here; the seven slow ones add up to 25,341.
    let penalty = sweep["penalty"]["estimate"].as_f64().expect("a ratio");
    assert!(
        (penalty - 19_223.0 / (25_341.0 / 7.0)).abs() < 1e-9,
        "{penalty}"
    );
    // A volume that starts 1.5 KiB past a boundary: the fast runs are those that start there.
    let off_grid = sweep_results(|offset| format!("rd_{offset:04}"), 3, 12);
    judge(&off_grid, &[]).ends(1).says("offset 1,536 bytes");
    let runs = judge(
        "rd1 avg_2-3 100.00 0.39 4096 100.00 1.5 2.8 0.2 1.1 0.9\nrd2 avg_2-3 100.00 0.39 4096 100.00 1.5 2.8 0.2 1.1 0.9\n",
        &[],
    );
    // The flat file of the same runs has an interval in each row. The first is warm-up.
    let mut flat = FLAT_HEADING.to_owned();
    for (run, rate) in PUBLISHED_SWEEP.iter().enumerate() {
        for interval in 1..=3 {
            let second = run * 3 + interval;
            // 16 threads wait for an I/O each.
            let (mib, ms) = (rate / 256.0, 16_000.0 / rate);
            flat.push_str(&format!(
                "10:00:{second:02}.018 11/20/2025-10:00:{second:02}-UTC rd1_(offset={}) {interval} 9999988 {rate:.2} {mib:.2} 4096 \
                 100.00 {ms:.3} {ms:.3} 0.000 9.0 16.0 4096 16\n",
                run * 512
            ));
        }
    }
    let sweep = judge(&flat, &["--json"]).ends(0).json()["result"]["sweep"].clone();
    assert_eq!(sweep["verdict"], "grid", "{sweep}");
    assert_eq!(sweep["grid"]["granularity_bytes"], 4096);
    let penalty = sweep["penalty"]["estimate"].as_f64().expect("a ratio");
    let expected = PUBLISHED_SWEEP[0] / (25_341.0 / 7.0);
    assert!((penalty - expected).abs() < 0.01, "{penalty}");
    let trace = folder.file("in.csv", closed_loop(1, 100, 1.0, 0));
    let alone = plumb(["compare".as_ref(), trace.as_os_str()]);
    let messages = [runs.ends(5).complaint(), alone.ends(2).complaint()];
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Eight reads of 8 KiB always in flight, in lines of the MSR format: each takes `ms` on average, and begins `past` bytes
/// behind a multiple of 8 KiB.
fn closed_loop(seed: u64, ios: usize, ms: f64, past: u64) -> String {
    let mut random = Rng::new(seed);
    let mut free = [0u64; 8];
    let mut lines: Vec<(u64, String)> = Vec::new();
    while lines.len() < ios {
        let slot = (0..8).min_by_key(|slot| free[*slot]).expect("eight");
        let ticks = (ms * 1e4 * (0.5 + random.below(1000) as f64 / 1000.0)) as u64;
        let start = random.below(1 << 20) * 8192 + past;
        let at = 128_166_372_003_061_629 + free[slot];
        lines.push((at, format!("{at},host,0,Read,{start},8192,{ticks}\n")));
        free[slot] += ticks;
    }
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The published case: figures 2 and 6 of Oracle's paper on the alignment of LUNs.
#[test]
fn the_paper() {
    let (before, after) = (example("misaligned.txt"), example("aligned.txt"));
    let ran = compare(&before, &after, &[]);
    insta::assert_snapshot!(ran.ends(0).screen());
    assert!(
        ran.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.out
    );
    compare(&after, &before, &[]).ends(1).says("WORSE c0t6d0");
    let json = compare(&before, &after, &["--json"]).json();
    let verdict = &json["result"]["comparisons"][0]["verdict"];
    assert_eq!(verdict["outcome"], "better");
    let ratio = verdict["rate"]["value"].as_f64().expect("a ratio");
    assert!(
        (ratio - 1.274_091_6).abs() < 1e-6,
        "reads and writes: {ratio}"
    );
}

/// A run, cut in half, and a change by a tenth.
#[test]
fn halves_of_a_run_do_not_differ() {
    let folder = Folder::new("compare-halves");
    let trace = closed_loop(1, 40_000, 1.0, 0);
    let middle = trace
        .char_indices()
        .filter(|(_, letter)| *letter == '\n')
        .nth(19_999)
        .expect("lines")
        .0
        + 1;
    let one = folder.file("one.csv", &trace[..middle]);
    let other = folder.file("other.csv", &trace[middle..]);
    let halves = compare(&one, &other, &[]);
    halves.ends(0).says("p99 of reads");
    let slower = folder.file("slower.csv", closed_loop(2, 20_000, 1.1, 0));
    compare(&one, &slower, &[]).ends(1).says("WORSE host_0");
    compare(&slower, &one, &[]).ends(0).says("BETTER host_0");
    // A tenth is no difference with that margin.
    let tenth = compare(&one, &slower, &["--margin", "20%"]);
    let verdicts = [&halves, tenth.ends(0)].map(|ran| recorded(paragraph(&ran.out, "NO")));
    insta::assert_snapshot!(verdicts.join("\n"));
    // The true ratio of each percentile is 1.
    for (before, after, truth) in [(&one, &other, 1.0), (&one, &slower, 1.1)] {
        let measures =
            compare(before, after, &["--json"]).json()["result"]["comparisons"][0]["measures"]
                .clone();
        for name in ["read_p50_ns", "read_p90_ns", "read_p99_ns"] {
            let measures = measures.as_array().expect("measures");
            let ratio = &measures
                .iter()
                .find(|measure| measure["name"] == name)
                .expect("it is there")["ratio"];
            let end = |name: &str| ratio[name].as_f64().expect("an interval");
            // To the steps that latencies are known in.
            assert!(
                end("low") <= truth * 1.01 && truth * 0.99 <= end("high"),
                "{name}: {ratio}"
            );
            assert!(end("high") / end("low") < 1.06, "{name}: {ratio}");
        }
    }
    // A saved profile says the same as its trace, but for percentiles, which it knows to a sixteenth and without an interval.
    let saved = folder.path("one.plumb");
    plumb([
        "analyze".as_ref(),
        one.as_os_str(),
        "--save".as_ref(),
        saved.as_os_str(),
    ]);
    let measures = |before: &Path| {
        let json = compare(before, &slower, &["--json"]).json();
        let mut measures = json["result"]["comparisons"][0]["measures"]
            .as_array()
            .expect("measures")
            .clone();
        let (percentiles, others): (Vec<Value>, Vec<Value>) =
            measures.drain(..).partition(|measure| {
                measure["name"]
                    .as_str()
                    .is_some_and(|name| name.contains("_p") && name.ends_with("_ns"))
            });
        (percentiles, others)
    };
    let (saved, traced) = (measures(&saved), measures(&one));
    assert_eq!(saved.1, traced.1);
    for (saved, traced) in saved.0.iter().zip(&traced.0) {
        let before = |measure: &Value| measure["before"].as_f64().expect("a percentile");
        assert!(
            (before(saved) / before(traced) - 1.0).abs() < 0.07,
            "{saved} {traced}"
        );
        assert!(
            saved["ratio"]["low"].is_null() && traced["ratio"]["low"].is_f64(),
            "{saved} {traced}"
        );
    }
}

/// A device made to take two turns for a read off its grid: the true ratio is 2.00.
#[test]
fn a_device_that_charges_for_a_miss() {
    let (off, on) = (example("linux-off.txt"), example("linux-on-1.txt"));
    let ran = compare(&off, &on, &[]);
    let changed = ran.ends(0).screen();
    for before in [off, example("linux-off.json")] {
        let json = compare(&before, &on, &["--json"]).json();
        let verdict = &json["result"]["comparisons"][0]["verdict"];
        let number = |name: &str, end: &str| verdict[name][end].as_f64().expect("an interval");
        assert!(
            number("rate", "low") <= 2.0 && 2.0 <= number("rate", "high"),
            "{verdict:#}"
        );
        assert!(
            number("rate", "high") / number("rate", "low") < 1.06,
            "{verdict:#}"
        );
        // Four are in flight for fio; the time to send the next one is not in the kernel's latency.
        assert!(
            (number("latency", "value") / 0.5 - 1.0).abs() < 0.03,
            "{verdict:#}"
        );
    }
    let same = compare(&on, &example("linux-on-2.txt"), &[]);
    insta::assert_snapshot!([changed, same.ends(0).screen()].join("\n\n"));
}

#[test]
fn placement_is_printed_beside_throughput() {
    let folder = Folder::new("compare-grid");
    let before = folder.file("before.csv", closed_loop(3, 20_000, 2.0, 17 * 1024));
    let after = folder.file("after.csv", closed_loop(4, 20_000, 1.0, 0));
    let ran = compare(&before, &after, &["--grid", "8k"]);
    ran.ends(0).says("BETTER");
    let placement = [" off 8 KiB", "moved per "];
    insta::assert_snapshot!(recorded_lines(&ran.out, &placement));
    let page = folder.path("page.html");
    compare(&before, &after, &["--html", page.to_str().expect("text")]).ends(0);
    let html = std::fs::read_to_string(page).expect("a page");
    assert!(html.contains("BETTER") && html.contains("<svg") && html.ends_with("</html>\n"));
}

#[test]
fn kinds_of_sources_may_differ() {
    let folder = Folder::new("compare-kinds");
    // 20,000 reads a second of 0.4 ms after 15,655 of 4.0 ms: the same length and operation.
    let after = folder.file("after.csv", closed_loop(5, 20_000, 0.4, 0));
    let ran = compare(
        &example("misaligned.txt"),
        &after,
        &["--device", "c0t6d0=host_0"],
    );
    insta::assert_snapshot!(ran.ends(0).screen());
}

/// The output of `plumb bench --json`, with its own rate.
#[test]
fn a_benchmark_is_read() {
    let folder = Folder::new("compare-bench");
    let disk = folder.file("disk", vec![7; 16 << 20]);
    let bench = |name: &str| {
        let flags = "--ios 2000 --rate 1000 --interval 250ms --json"
            .split(' ')
            .map(Into::into);
        let ran = plumb(
            ["bench".into(), disk.as_os_str().to_owned()]
                .into_iter()
                .chain(flags),
        );
        (
            ran.json()["result"]["runs"][0]["total"]["ios_per_second"].as_f64(),
            folder.file(name, ran.ends(0).out.as_bytes()),
        )
    };
    let ((rate, one), (_, other)) = (bench("one.json"), bench("other.json"));
    let json = compare(&one, &other, &["--json"]).json();
    let comparison = &json["result"]["comparisons"][0];
    assert_eq!(comparison["sides"][0]["sampling"]["unit"], "interval");
    assert_eq!(comparison["sides"][1]["size_bytes"], 16 << 20);
    let seen = comparison["measures"][0]["before"]
        .as_f64()
        .zip(rate)
        .expect("rates");
    assert!((seen.0 / seen.1 - 1.0).abs() < 0.2, "{seen:?}");
    let text = std::fs::read_to_string(&one).expect("a document");
    let cut = folder.file("cut.json", &text[..text.len() / 2]);
    let cut = compare(&cut, &other, &[]);
    let newer = folder.file(
        "newer.json",
        text.replacen("plumb.bench/2", "plumb.bench/9", 1),
    );
    let newer = compare(&newer, &other, &[]);
    // The cut is at another line in each run.
    let cut = cut.ends(5).complaint();
    let (cut, _) = cut.split_once(" because: ").expect("a reason");
    insta::assert_snapshot!([cut, &newer.ends(5).complaint()].join("\n\n"));
}

/// A benchmark of a disk that takes two turns for a read off its grid, off the grid and on it, and two halves of one.
#[test]
fn benchmarks_of_a_device_that_charges() {
    require!(Patience, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let folder = Folder::new("compare-charging");
    // Slow enough for the delays of a busy machine.
    let device = ChargedCells {
        units_per_second: 500,
        ..ChargedCells::of_ratio(4096, 0, 2.0)
    }
    .up();
    let disk = device.path().to_str().expect("text");
    let bench = |name: &str, flags: &str| {
        let flags = flags.split(' ').map(str::to_owned);
        let ran = plumb(
            ["bench".to_owned(), "--json".to_owned()]
                .into_iter()
                .chain(flags),
        );
        folder.file(name, ran.ends(0).out.as_bytes())
    };
    let how = "--for 3s --warmup 500ms --interval 250ms --threads 4";
    let off = bench("off.json", &format!("{disk} {how} --shift +1s"));
    let on = bench("on.json", &format!("{disk} {how}"));
    let json = compare(&off, &on, &["--json"]).ends(0).json();
    let comparison = &json["result"]["comparisons"][0];
    assert_eq!(comparison["verdict"]["outcome"], "better");
    let ends = |of: &Value| {
        (
            of["low"].as_f64().expect("an interval"),
            of["high"].as_f64().expect("an interval"),
        )
    };
    let holds = |(low, high): (f64, f64), truth: f64| low <= truth * 1.02 && truth <= high * 1.02;
    assert!(
        holds(ends(&comparison["verdict"]["rate"]), 2.0),
        "{}",
        comparison["verdict"]
    );
    assert!(
        holds(ends(&comparison["verdict"]["latency"]), 0.5),
        "{}",
        comparison["verdict"]
    );
    let measures = comparison["measures"].as_array().expect("measures");
    let p50 = measures
        .iter()
        .find(|measure| measure["name"] == "read_p50_ns")
        .expect("it is there");
    assert!(holds(ends(&p50["ratio"]), 0.5), "{p50}");
    // One run in two halves: the second continues the first. A busy machine may leave it open, but makes no difference
    // of them.
    let text = format!(
        "sd=disk,lun={disk},openflags=o_direct,threads=4\nwd=reads,sd=disk,xfersize=4k,seekpct=100,rdpct=100\n\
         rd=default,wd=reads,iorate=max,elapsed=3,interval=1\nrd=first\nrd=second\n"
    );
    let file = folder.file("halves.vdb", text);
    let outcomes = (0..3).map(|_| {
        let halves = bench(
            "halves.json",
            &format!("--vdbench {} --interval 250ms", file.display()),
        );
        let ran = compare(
            &halves,
            &halves,
            &["--device", "first=second", "--margin", "10%", "--json"],
        );
        ran.json()["result"]["comparisons"][0]["verdict"]["outcome"].clone()
    });
    let decided = outcomes
        .inspect(|outcome| println!("{outcome}"))
        .find(|outcome| *outcome != "inconclusive");
    assert_eq!(decided, Some("no-difference".into()), "of three runs");
}

/// One capture in two halves, at every report that it could be cut at.
#[test]
fn halves_of_a_capture_do_not_differ() {
    let folder = Folder::new("compare-capture");
    let text = std::fs::read_to_string(example("linux-on-1.txt")).expect("an example");
    let starts: Vec<usize> = text
        .match_indices("\n2026-")
        .map(|(at, _)| at + 1)
        .collect();
    assert!(starts.len() > 10, "{}", starts.len());
    for cut in 5..starts.len() - 3 {
        let one = folder.file("one.txt", &text[..starts[cut]]);
        let other = folder.file("other.txt", &text[starts[cut]..]);
        let json = compare(&one, &other, &["--json", "--margin", "5%"]).json();
        let verdict = &json["result"]["comparisons"][0]["verdict"];
        assert_eq!(verdict["outcome"], "no-difference", "{cut}: {verdict:#}");
    }
}

#[test]
fn incomparable_measures_give_a_reason() {
    let folder = Folder::new("compare-why");
    let one = folder.file("one.csv", closed_loop(6, 20_000, 1.0, 0));
    let long = folder.file(
        "long.csv",
        closed_loop(7, 20_000, 1.0, 0).replace(",8192,", ",65536,"),
    );
    let longer = compare(&one, &long, &[]);
    longer.ends(1).says("WORSE");
    let untimed = folder.file("untimed.txt", crate::common::msr([('R', 0, 4096)]));
    let untimed = compare(&one, &untimed, &[]);
    let empty = folder.file("empty", "");
    let words = folder.file("words", "neither a trace nor a capture\n");
    let unreadable = [
        compare(&one, &one.with_file_name("none.csv"), &[]),
        compare(&empty, &one, &[]),
        compare(&words, &one, &[]),
        compare(&one, &one, &["--device", "sda"]),
    ];
    let renamed = compare(&example("aligned.txt"), &one, &[]);
    let verdicts = [&longer, untimed.ends(3), renamed.ends(3)];
    let mut texts = verdicts
        .map(|ran| recorded(paragraph(&ran.out, "")))
        .to_vec();
    texts.push(recorded_lines(&renamed.out, &["note: "]));
    texts.extend(unreadable.map(|ran| ran.ends(5).complaint_without_lists()));
    // The user knows more.
    for flag in [&["--force"][..], &["--device", "c0t6d0=host_0"]] {
        let ran = compare(&example("aligned.txt"), &one, flag);
        assert!(!ran.flat().contains("different names"), "{}", ran.out);
    }
    // Devices that a trace numbers may be any, and two traces of one form have the same numbers.
    let numbered = |name: &str, ms: f64| {
        let rows = closed_loop(6, 20_000, ms, 0);
        let rows = rows.lines().map(|line| {
            let [time, _, _, _, start, len, _] = line.split(',').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let (time, start, len): (u64, u64, u64) = (
                time.parse().expect("a number"),
                start.parse().expect("a number"),
                len.parse().expect("a number"),
            );
            format!(
                "0,R,{start},{len},{}\n",
                (time - 128_166_372_003_061_629) / 10
            )
        });
        folder.file(name, rows.collect::<String>())
    };
    let (fast, slow) = (numbered("fast.csv", 0.1), numbered("slow.csv", 75.7));
    let why = "`0` is a number that any trace may have";
    compare(&slow, &fast, &[]).ends(3).says(why);
    let forced = compare(&slow, &fast, &["--force"]);
    assert!(!forced.flat().contains(why), "{}", forced.out);
    let more = one.with_file_name("more.csv");
    std::fs::write(
        &more,
        closed_loop(8, 9000, 1.0, 0)
            + &closed_loop(9, 9000, 1.0, 0).replace(",host,0,", ",host,1,"),
    )
    .expect("a file");
    let apart = compare(&example("aligned.txt"), &more, &[]);
    texts.push(apart.ends(3).complaint());
    let page = one.to_str().expect("text");
    for flags in [["--margin", "3"], ["--device", "=x"], ["--html", page]] {
        texts.push(compare(&one, &one, &flags).ends(2).complaint());
    }
    insta::assert_snapshot!(texts.join("\n\n"));
}

/// The same disk in the output of each tool: 100 I/O a second of 10 ms before, 200 of 5 ms after. One is in flight in both.
#[test]
fn results_of_other_tools_are_compared() {
    let folder = Folder::new("compare-tools");
    // Without any spread the ratio would have no interval.
    let rates = |rate: f64| (0..6).map(move |at| (at, rate * (1.0 + f64::from(at) / 1000.0)));
    let sar = |rate: f64, ms: f64| {
        let head =
            "DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util";
        let mut text = format!(
            "Linux 6.1.0 (host) \t11/20/25 \t_x86_64_\t(2 CPU)\n\n12:00:01 AM       {head}\n"
        );
        for (at, rate) in rates(rate) {
            let kib = rate * 4.0;
            text += &format!(
                "12:{at}0:02 AM       sda    {rate:.2}    {kib:.2}    0.00      0.00      4.00      {:.2}      {ms:.2}     50.00\n",
                rate * ms / 1000.0
            );
        }
        text
    };
    let sadf = |rate: f64, ms: f64| {
        let mut text =
            "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util\n"
                .to_owned();
        for (at, rate) in rates(rate) {
            let (kib, queue) = (rate * 4.0, rate * ms / 1000.0);
            text += &format!(
                "host;600;2025-11-20 00:{at}0:01 UTC;sda;{rate:.2};{kib:.2};0.00;0.00;4.00;{queue:.2};{ms:.2};50.00\n"
            );
        }
        text
    };
    let fio = |rate: f64, ms: f64| {
        let (mut text, mut reads) = (String::new(), 0.0);
        for (at, rate) in rates(rate) {
            reads += (rate * 10.0).round();
            let (kib, seconds) = (reads * 4.0, (at + 1) * 10);
            text += &format!(
                r#"{{"fio version": "fio-3.33", "timestamp_ms": {seconds}000, "time": "Thu Nov 20 10:00:00 2025", "jobs": [{{
                "jobname": "job", "error": 0, "job options": {{}},
                "read": {{"io_bytes": {}, "io_kbytes": {kib}, "runtime": {seconds}000, "total_ios": {reads},
                  "lat_ns": {{"min": 0, "max": 0, "mean": {}, "stddev": 0, "N": {reads}}}}},
                "write": {{"io_bytes": 0, "io_kbytes": 0, "runtime": 0, "total_ios": 0,
                  "lat_ns": {{"min": 0, "max": 0, "mean": 0, "stddev": 0, "N": 0}}}}}}]}}
                "#,
                kib * 1024.0,
                ms * 1e6
            );
        }
        text
    };
    let vdbench = |rate: f64, ms: f64| {
        let mut text = FLAT_HEADING.to_owned();
        for (at, rate) in rates(rate) {
            text += &format!(
                "10:00:0{at}.018 11/20/2025-10:00:0{at}-UTC rd1 {} 9999988 {rate:.2} {:.3} 4096 100.00 {ms:.3} {ms:.3} 0.000 9.0 1.0 4096 1\n",
                at + 1,
                rate / 256.0
            );
        }
        text
    };
    let solaris = |rate: f64, ms: f64| {
        let mut text =
            "   tty        sd0            cpu\n tin tout kps tps serv   us sy dt id\n".to_owned();
        for (_, rate) in rates(rate * 10.0) {
            text += &format!(
                "   0   42   {:.0}   {rate:.0}  {ms:.0}    0  4  0 96\n",
                rate * 4.0
            );
        }
        text
    };
    // The first report of sysstat is since boot. It prints no latency.
    let sysstat = |rate: f64, _: f64| {
        let mut text = "Linux 6.1.0 (host) \t11/20/25 \t_x86_64_\t(2 CPU)\n\n".to_owned();
        for (_, rate) in std::iter::once((0, 1.0)).chain(rates(rate)) {
            let kib = rate * 4.0;
            text += &format!(
                "Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd\n\
                 sda             {rate:.2}         {kib:.2}         0.00         0.00       0          0          0\n\n"
            );
        }
        text
    };
    type Text<'a> = &'a dyn Fn(f64, f64) -> String;
    let tools: [(&str, Text<'_>, bool); 6] = [
        ("sar", &sar, true),
        ("sadf", &sadf, true),
        ("fio", &fio, true),
        ("vdbench", &vdbench, true),
        ("iostat of Solaris", &solaris, true),
        ("iostat of sysstat", &sysstat, false),
    ];
    for (tool, text, has_latency) in tools {
        let before = folder.file("before", text(100.0, 10.0));
        let after = folder.file("after", text(200.0, 5.0));
        let ran = compare(&before, &after, &["--json"]);
        let json = ran.json();
        let one = &json["result"]["comparisons"][0];
        let ratio = |name: &str| {
            let all = one["measures"].as_array().expect("measures");
            let of_name = all.iter().find(|measure| measure["name"] == name);
            of_name.and_then(|measure| measure["ratio"]["value"].as_f64())
        };
        let is = |found: Option<f64>, expected: f64| {
            found.is_some_and(|found| (found / expected - 1.0).abs() < 0.002)
        };
        assert!(is(ratio("ios_per_second"), 2.0), "{tool}: {one}");
        assert!(is(ratio("bytes_per_second"), 2.0), "{tool}: {one}");
        let (outcome, status) = match has_latency {
            true => ("better", 0),
            false => ("not-comparable", 3),
        };
        assert_eq!(
            is(ratio("latency_mean_ns"), 0.5),
            has_latency,
            "{tool}: {one}"
        );
        assert_eq!(one["verdict"]["outcome"], outcome, "{tool}: {one}");
        ran.ends(status);
        // The other way round the disk is slower.
        if has_latency {
            compare(&after, &before, &[]).ends(1).says("WORSE");
        }
    }
}

/// Read only in part is never 0, and the place is said.
#[test]
fn damage_is_reported() {
    let folder = Folder::new("compare-damage");
    let text = std::fs::read_to_string(example("aligned.txt")).expect("an example");
    let cut = folder.file("cut.txt", text.replacen("161002.7", "161O02.7", 1));
    let ran = compare(&example("misaligned.txt"), &cut, &[]);
    insta::assert_snapshot!(ran.ends(3).screen());
}

#[test]
fn the_first_report_is_left_out_where_it_is_since_boot() {
    let folder = Folder::new("compare-first");
    let text = std::fs::read_to_string(example("aligned.txt")).expect("an example");
    let boot = folder.file(
        "boot.txt",
        text.replacen("20233.6", "   12.5", 1)
            .replacen("62.8", " 0.0", 1),
    );
    let far = compare(&example("aligned.txt"), &boot, &[]);
    let dropped = compare(
        &example("aligned.txt"),
        &example("aligned.txt"),
        &["--first", "drop"],
    );
    let kept = compare(&example("aligned.txt"), &boot, &["--first", "keep"]);
    let screens = [far, dropped, kept].map(|ran| ran.screen());
    insta::assert_snapshot!(screens.join("\n\n"));
}
