//! `plumb fleet`: one pass and shards give the same bytes, bad inputs are named, and the ranking is that of arithmetic.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use plumb_testkit::{require, wait};
use serde_json::Value;

use crate::common::schema::Schema;
use crate::common::{Folder, Ran, command, msr, pages, plumb, real};

/// `plumb fleet profile`, with flags parted by spaces.
fn profile(source: &Path, output: &Path, flags: &str) -> Ran {
    let args = ["fleet", "profile"].map(PathBuf::from);
    let flags = flags.split_whitespace().map(PathBuf::from);
    let paths = [source.to_owned(), "-o".into(), output.to_owned()];
    plumb(args.into_iter().chain(flags).chain(paths))
}

fn merge(files: &[PathBuf], output: &Path) -> Ran {
    let args = ["fleet", "merge", "-o"].map(PathBuf::from);
    plumb(
        args.into_iter()
            .chain([output.to_owned()])
            .chain(files.iter().cloned()),
    )
}

fn report(source: &Path, flags: &str) -> Ran {
    let args = ["fleet", "report"].map(PathBuf::from);
    let flags = flags.split_whitespace().map(PathBuf::from);
    plumb(args.into_iter().chain(flags).chain([source.to_owned()]))
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("a file")
}

/// One pass over a folder, and 1, 7 and 64 shards of it that are merged in several orders: the files are equal.
fn compare_shards(source: &Path, shards: &[u32], flags: &str, statuses: &[i32]) {
    let folder = Folder::new("fleet-shards");
    let whole = folder.path("whole");
    let done = profile(source, &whole, flags);
    assert!(statuses.contains(&done.code), "{}{}", done.out, done.err);
    let whole = read(&whole);
    for &of in shards {
        let mut files = Vec::new();
        for shard in 0..of {
            let file = folder.path(&format!("{shard}-of-{of}"));
            let done = profile(source, &file, &format!("{flags} --shard {shard}/{of}"));
            assert!(statuses.contains(&done.code), "{}{}", done.out, done.err);
            files.push(file);
        }
        let merged = folder.path("merged");
        for _ in 0..2 {
            let done = merge(&files, &merged);
            assert!(statuses.contains(&done.code), "{}{}", done.out, done.err);
            assert!(read(&merged) == whole, "{of} shards");
            files.reverse();
        }
        // A shard that ran twice, and the result itself.
        files.extend([files[0].clone(), merged.clone()]);
        let again = folder.path("again");
        assert!(statuses.contains(&merge(&files, &again).code));
        assert!(read(&again) == whole, "{of} shards, one of them twice");
    }
}

#[test]
fn shards_of_real_traces_are_one_pass() {
    require!(RealTraces);
    // The folder also has dumps of tools, which are no traces.
    compare_shards(&real(""), &[1, 7, 64], "--skip-bad", &[0, 3]);
}

/// Hosts with two disks each, and several recordings of the same disk.
fn generated(folder: &Folder, hosts: u64) -> PathBuf {
    let root = folder.path("in");
    for host in 0..hosts {
        let place = root.join(format!("day={}/host=db{host}", host % 2));
        fs::create_dir_all(&place).expect("room");
        for (at, past) in [(0, 0), (1, 512), (2, 1024)] {
            let ios = pages(50 + 20 * host + at, past, 4096 << (host % 3));
            fs::write(place.join(format!("{at}.csv")), msr(ios)).expect("room");
        }
    }
    root
}

#[test]
fn shards_of_generated_events_are_one_pass() {
    let folder = Folder::new("fleet-generated");
    let root = generated(&folder, 12);
    compare_shards(&root, &[1, 7, 64], "--grid 8k", &[0]);
    // Nothing of the place or the run is in the file.
    let (one, other) = (folder.path("one"), folder.path("other"));
    profile(&root, &one, "").ends(0);
    fs::rename(&root, folder.path("elsewhere")).expect("a folder");
    profile(&folder.path("elsewhere"), &other, "").ends(0);
    assert!(read(&one) == read(&other));
    let bytes = read(&one);
    let place = folder.path("");
    let place = place.as_os_str().as_encoded_bytes();
    assert!(!bytes.windows(place.len()).any(|window| window == place));
}

/// A saved profile stands for its trace.
#[test]
fn saved_profiles_and_compressed_traces_are_inputs() {
    let folder = Folder::new("fleet-inputs");
    let trace = folder.file("trace.csv", msr(pages(300, 512, 8192)));
    for host in ["a", "b", "c"] {
        fs::create_dir_all(folder.path("in").join(host)).expect("room");
    }
    fs::copy(&trace, folder.path("in/a/x.csv")).expect("room");
    let saved = folder.path("in/b/x.plumb");
    plumb([
        "analyze".as_ref(),
        trace.as_os_str(),
        "--save".as_ref(),
        saved.as_os_str(),
    ])
    .ends(1);
    let packed = fs::File::create(folder.path("in/c/x.csv.gz")).expect("room");
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
    packed.write_all(&read(&trace)).expect("room");
    packed.finish().expect("room");
    let document = report(&folder.path("in"), "--json").json();
    let ranked = document["result"]["by_waste"]["devices"].as_array();
    let rates: Vec<&Value> = ranked
        .expect("a ranking")
        .iter()
        .map(|one| &one["per_second"])
        .collect();
    assert_eq!(rates.len(), 3);
    assert!(rates.iter().all(|rate| *rate == rates[0]), "{rates:?}");
}

#[test]
fn a_truncated_file_among_ten_thousand_is_named() {
    let folder = Folder::new("fleet-many");
    let root = folder.path("in");
    let text = msr(pages(4, 512, 8192));
    for at in 0..10_000 {
        let place = root.join(format!("{}", at / 100));
        if at % 100 == 0 {
            fs::create_dir_all(&place).expect("room");
        }
        fs::write(place.join(format!("{at}.csv")), &text).expect("room");
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).expect("room");
    let packed = packed.finish().expect("room");
    fs::write(root.join("42/4242.csv"), &packed[..packed.len() / 2]).expect("room");
    let output = folder.path("out");
    profile(&root, &output, "").ends(5).complains("42/4242.csv");
    assert!(!output.exists());
    assert_eq!(fs::read_dir(folder.path("")).expect("it").count(), 1);
    profile(&root, &output, "--skip-bad")
        .ends(3)
        .complains("skipped: ")
        .complains("42/4242.csv")
        .complains("1 input could not be read");
    let document = report(&output, "--json").ends(3).json();
    let result = &document["result"];
    assert_eq!(
        [
            &result["inputs"],
            &result["unread"],
            &result["hosts"],
            &result["ios"]
        ]
        .map(Value::as_u64),
        [9_999, 1, 100, 39_996].map(Some)
    );
}

#[test]
fn a_killed_shard_leaves_no_file() {
    let folder = Folder::new("fleet-killed");
    fs::create_dir_all(folder.path("in/a")).expect("room");
    fs::create_dir_all(folder.path("out")).expect("room");
    // A pipe without a writer keeps the command from coming to its end. The folder of such files may be read.
    let pipe = folder.path("in/a/sda.blktrace.0");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo of coreutils").success());
    let output = folder.path("out/shard");
    let earlier = b"an earlier result";
    for has_earlier in [false, true] {
        if has_earlier {
            fs::write(&output, earlier).expect("room");
        }
        let names = || fs::read_dir(folder.path("out")).expect("it").count();
        let before = names();
        let mut child = command()
            .args(["fleet", "profile"])
            .arg(&pipe)
            .arg("-o")
            .arg(&output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        wait::until("the unfinished file", wait::PATIENCE, || names() > before);
        wait::killed("the program", &mut child);
        match has_earlier {
            false => assert!(!output.exists()),
            true => assert_eq!(read(&output), earlier),
        }
    }
}

#[test]
fn commands_that_cannot_be() {
    let folder = Folder::new("fleet-usage");
    let root = generated(&folder, 1);
    let output = folder.path("out");
    profile(&root, &output, "--shard 7/7")
        .ends(2)
        .complains("I/N");
    profile(&folder.path("absent"), &output, "").ends(5);
    let inside = root.join("day=0/host=db0/0.csv");
    profile(&root, &inside, "").ends(2).complains("is read too");
    merge(std::slice::from_ref(&inside), &output)
        .ends(5)
        .complains("not a fleet file");
    profile(&root, &output, "").ends(0);
    plumb([
        "fleet".as_ref(),
        "report".as_ref(),
        output.as_os_str(),
        inside.as_os_str(),
    ])
    .ends(2)
    .complains("expected nothing but fleet files");
    let twice = folder.path("twice");
    fs::create_dir_all(&twice).expect("room");
    fs::copy(&inside, twice.join("0.csv")).expect("room");
    plumb([
        "fleet".as_ref(),
        "report".as_ref(),
        inside.as_os_str(),
        twice.join("0.csv").as_os_str(),
    ])
    .ends(3);
    let (one, other) = (folder.path("x.csv"), twice.join("x.csv"));
    for path in [&one, &other] {
        fs::copy(&inside, path).expect("room");
    }
    plumb([
        "fleet".as_ref(),
        "report".as_ref(),
        one.as_os_str(),
        other.as_os_str(),
    ])
    .ends(2)
    .complains("expected different ones");
}

/// Ten seconds of one I/O a millisecond: each is 8 KiB and starts past a boundary of 4 KiB, so it touches three cells where two are
/// needed. `slow` of the latencies, in units of 100 ns, are those off the grid.
fn mixed(off: u64, on: u64, slow: u64) -> String {
    let mut lines = String::new();
    for at in 0..off + on {
        let time = 128_166_372_003_061_629 + at * 10_000;
        let (past, latency) = if at % (off + on) < off {
            (512, slow)
        } else {
            (0, 1000)
        };
        let start = (at * 7919 % 100_000) * 65_536 + past;
        lines.push_str(&format!(
            "{time},host,0,Read,{start},8192,{}\n",
            latency + at % 10
        ));
    }
    lines
}

fn device<'a>(document: &'a Value, ranking: &str, host: &str) -> Option<&'a Value> {
    let devices = document["result"][ranking]["devices"].as_array()?;
    devices.iter().find(|one| one["host"] == host)
}

#[test]
fn devices_are_ranked_by_arithmetic() {
    let folder = Folder::new("fleet-rank");
    for (host, text) in [
        ("bad", mixed(6_000, 4_001, 3000)),
        ("worse", mixed(9_000, 1_001, 1000)),
        ("good", mixed(0, 10_001, 0)),
        (
            "untimed",
            "# plumb-residue 1 unit=512 modulus=2048\nsda R 1 16 1000\n".to_owned(),
        ),
    ] {
        fs::create_dir_all(folder.path("in").join(host)).expect("room");
        fs::write(folder.path("in").join(host).join("x"), text).expect("room");
    }
    let root = folder.path("in");
    let document = report(&root, "--json").ends(3).json();
    let schema = Schema::read("fleet");
    assert_eq!(schema.faults(&document), [""; 0]);
    let rate = |ranking, host| device(&document, ranking, host).map(|one| &one["per_second"]);
    assert_eq!(rate("by_waste", "bad"), Some(&600.0.into()));
    assert_eq!(rate("by_waste", "worse"), Some(&900.0.into()));
    let ranking = &document["result"]["by_waste"];
    assert_eq!(ranking["devices"][0]["host"], "worse");
    // All I/O of the good disk are on 4 KiB, and its true grid may be larger.
    let unknown = [("no-grid", 1), ("no-time", 1)];
    for (at, (reason, devices)) in unknown.into_iter().enumerate() {
        assert_eq!(ranking["unknown"][at]["reason"], reason);
        assert_eq!(ranking["unknown"][at]["devices"], devices);
    }
    // 600 I/O a second off the grid take 200 µs longer: 120 ms of each second. The interval contains it.
    let lost = rate("by_time_lost", "bad").expect("measured");
    let [low, high] = ["low", "high"].map(|end| lost[end].as_f64().expect("a range"));
    assert!(low < 120e6 && 120e6 < high && high - low < 1e6, "{lost}");
    let rule = &document["result"]["rules"][0];
    assert_eq!(rule["rule"], "misaligned-io");
    assert_eq!([&rule["hosts"], &rule["devices"]], [3, 3]);
    assert!(document["findings"][0]["target"]["host"].is_string());
    // With a grid, none is a number.
    let document = report(&root, "--json --grid 4k --fail-on warning")
        .ends(1)
        .json();
    assert_eq!(schema.faults(&document), [""; 0]);
    assert_eq!(document["result"]["by_waste"]["without"], 1);
    report(&root, "")
        .ends(3)
        .says("2 host_0 of bad (request layer): 600 cells a second");
}

/// Two recordings of ten seconds, a year apart: the rate is that of the recordings.
#[test]
fn pauses_are_not_observed_time() {
    let folder = Folder::new("fleet-pauses");
    fs::create_dir_all(folder.path("in/db")).expect("room");
    let text = mixed(10_001, 0, 1000);
    let later = text.replace("1281663", "1285663");
    assert_ne!(text, later);
    for (name, text) in [("a", text), ("b", later)] {
        fs::write(folder.path("in/db").join(name), text).expect("room");
    }
    let document = report(&folder.path("in"), "--json").ends(0).json();
    let one = device(&document, "by_waste", "db").expect("ranked");
    assert_eq!(one["per_second"], 1000.1);
    assert_eq!(one["ios"], 20_002);
}

/// A full table loses lengths: on a grid that nobody asked about before, a figure is a range that contains the truth.
#[test]
fn a_figure_without_detail_is_a_range() {
    let folder = Folder::new("fleet-range");
    let mut random = plumb_testkit::Rng::new(5);
    // More pairs of a place and a length than a table has rows.
    let ios: Vec<(char, u64, u64)> = (0..400_000)
        .map(|_| {
            let start = 512 * random.below(1 << 24);
            ('R', start, 512 * (1 + random.below(2000)))
        })
        .collect();
    let cells = |&(_, start, len): &(char, u64, u64)| {
        let touched = (start + len).div_ceil(16_384) - start / 16_384;
        touched - len.div_ceil(16_384)
    };
    let seconds = (ios.len() - 1) as f64 / 1000.0;
    let truth = ios.iter().map(cells).sum::<u64>() as f64 / seconds;
    fs::create_dir_all(folder.path("in/db")).expect("room");
    fs::write(folder.path("in/db/x.csv"), msr(ios)).expect("room");
    let output = folder.path("out");
    profile(&folder.path("in"), &output, "").ends(0);
    let document = report(&output, "--grid 16k --json").json();
    let rate = &device(&document, "by_waste", "db").expect("ranked")["per_second"];
    let [low, high] = ["low", "high"].map(|end| rate[end].as_f64().expect("a range"));
    assert!(
        low <= truth && truth <= high && low < high,
        "{low} {truth} {high}"
    );
    // Asked beforehand it is exact.
    let document = report(&folder.path("in"), "--grid 16k --json").json();
    let rate = &device(&document, "by_waste", "db").expect("ranked")["per_second"];
    assert_eq!(rate.as_f64(), Some(truth));
}

/// The next report reads only new inputs: those that are known are replaced by bytes of the same length that are no trace.
#[test]
fn a_state_keeps_the_inputs_that_were_read() {
    let folder = Folder::new("fleet-state");
    let (root, state, whole) = (
        generated(&folder, 6),
        folder.path("state"),
        folder.path("whole"),
    );
    profile(&root, &whole, "").ends(0);
    let flags = format!("--json --state {}", state.display());
    let later = [
        "day=0/host=db2/1.csv",
        "day=1/host=db5/0.csv",
        "day=0/host=db0/2.csv",
    ];
    let aside = later.map(|name| (root.join(name), folder.path(&name.replace('/', "-"))));
    for (from, to) in &aside {
        fs::rename(from, to).expect("room");
    }
    fs::rename(root.join("day=1/host=db3"), folder.path("db3")).expect("room");
    report(&root, &flags).ends(3);
    for day in ["day=0", "day=1"] {
        for host in fs::read_dir(root.join(day)).expect("hosts").flatten() {
            for file in fs::read_dir(host.path()).expect("files").flatten() {
                let len = file.metadata().expect("a file").len();
                fs::write(file.path(), vec![0; len as usize]).expect("room");
            }
        }
    }
    for (from, to) in &aside {
        fs::rename(to, from).expect("room");
    }
    fs::rename(folder.path("db3"), root.join("day=1/host=db3")).expect("room");
    let result = |ran: &Ran| ran.json()["result"].clone();
    let known = result(report(&root, &flags).ends(3));
    assert!(read(&state) == read(&whole));
    assert_eq!(known, result(report(&whole, "--json").ends(3)));
    // Nothing is new, and the answer is the same.
    assert_eq!(known, result(report(&root, &flags).ends(3)));
    assert!(read(&state) == read(&whole));
    // A recording that goes on is not what the sums hold.
    let grown = fs::OpenOptions::new().append(true).open(&aside[0].0);
    grown.expect("a file").write_all(b"x").expect("room");
    report(&root, &flags)
        .ends(5)
        .complains("has another length");
    assert!(read(&state) == read(&whole));
    report(&state, &flags).ends(2);
}

#[test]
fn a_ranking_lists_as_many_as_asked_for() {
    let folder = Folder::new("fleet-top");
    let root = generated(&folder, 9);
    let all = report(&root, "--json --grid 4k").json();
    let few = report(&root, "--json --grid 4k --top 3").json();
    let [all, few] = [&all, &few].map(|document| &document["result"]["by_waste"]);
    assert_eq!(few["ranked"], all["ranked"]);
    let devices = all["devices"].as_array().expect("devices");
    assert!(devices.len() > 3);
    assert_eq!(few["devices"], Value::from(&devices[..3]));
}
