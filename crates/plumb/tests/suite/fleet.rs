//! `plumb fleet`: one pass and shards give the same bytes, bad inputs are named, and the ranking is that of arithmetic.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use plumb_testkit::fake_sysfs::FakeDisk;
use plumb_testkit::fleet::{self, PlantedFleet};
use plumb_testkit::workload::Mixed;
use plumb_testkit::{Rng, require, wait};
use serde_json::Value;

use crate::common::collection::{FORM, Lab, NO_ANSWERS, NO_DEVICES, pack};
use crate::common::schema::Schema;
use crate::common::terminal::Terminal;
use crate::common::{Folder, Ran, command, msr, pages, plumb, real};
use crate::fleet_shards;

/// `plumb fleet profile`, with flags parted by spaces.
pub fn profile(source: &Path, output: &Path, flags: &str) -> Ran {
    let args = ["fleet", "profile"].map(PathBuf::from);
    let flags = flags.split_whitespace().map(PathBuf::from);
    let paths = [source.to_owned(), "-o".into(), output.to_owned()];
    plumb(args.into_iter().chain(flags).chain(paths))
}

pub fn merge(files: &[PathBuf], output: &Path) -> Ran {
    let args = ["fleet", "merge", "-o"].map(PathBuf::from);
    plumb(
        args.into_iter()
            .chain([output.to_owned()])
            .chain(files.iter().cloned()),
    )
}

pub fn report(source: &Path, flags: &str) -> Ran {
    let args = ["fleet", "report"].map(PathBuf::from);
    let flags = flags.split_whitespace().map(PathBuf::from);
    plumb(args.into_iter().chain(flags).chain([source.to_owned()]))
}

pub fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("a file")
}

/// One pass over a folder, and shards of it that are merged in several orders: the files are equal. Returns the folder with
/// the result of one pass, `whole.fleet`.
pub fn compare_shards(source: &Path, shards: &[u32], flags: &str, statuses: &[i32]) -> Folder {
    let folder = Folder::new("fleet-shards");
    let whole = folder.path("whole.fleet");
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
        let mut random = Rng::new(of.into());
        for order in ["ascending", "descending", "random"] {
            match order {
                "ascending" => {}
                "descending" => files.reverse(),
                _ => shuffle(&mut files, &mut random),
            }
            let done = merge(&files, &merged);
            assert!(statuses.contains(&done.code), "{}{}", done.out, done.err);
            assert!(read(&merged) == whole, "{of} shards, {order}");
        }
        // A shard that ran twice, and the result itself.
        files.extend([files[0].clone(), merged.clone()]);
        let again = folder.path("again");
        assert!(statuses.contains(&merge(&files, &again).code));
        assert!(read(&again) == whole, "{of} shards, one of them twice");
    }
    folder
}

fn shuffle(files: &mut [PathBuf], random: &mut Rng) {
    for at in (1..files.len()).rev() {
        files.swap(at, random.below(at as u64 + 1) as usize);
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
    let text = msr(pages(4, 512, 8192));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).expect("room");
    let packed = packed.finish().expect("room");
    let folder = ten_thousand("csv", text.as_bytes(), &packed[..packed.len() / 2]);
    check_one_of_ten_thousand(&folder, "csv", 4);
}

#[test]
fn a_truncated_parquet_file_among_ten_thousand_is_named() {
    let original = Folder::new("fleet-original");
    let path = original.path("one.parquet");
    let workload = Mixed {
        events: 32,
        devices: 1,
        ..Mixed::default()
    };
    let ios = fleet_shards::parquet(&path, 0, &workload);
    let whole = read(&path);
    let folder = ten_thousand("parquet", &whole, &whole[..whole.len() / 2]);
    check_one_of_ten_thousand(&folder, "parquet", ios);
}

/// A folder with 10,000 recordings of 100 hosts in `in`; that of number 4,242 is broken.
fn ten_thousand(extension: &str, whole: &[u8], broken: &[u8]) -> Folder {
    let folder = Folder::new("fleet-many");
    for at in 0..10_000 {
        let place = folder.path(&format!("in/{}", at / 100));
        if at % 100 == 0 {
            fs::create_dir_all(&place).expect("room");
        }
        let bytes = if at == 4242 { broken } else { whole };
        fs::write(place.join(format!("{at}.{extension}")), bytes).expect("room");
    }
    folder
}

/// The broken recording is named with status 5 and no result, and `--skip-bad` counts the others, each with this many I/O.
fn check_one_of_ten_thousand(folder: &Folder, extension: &str, ios: u64) {
    let root = folder.path("in");
    let output = folder.path("out");
    let name = format!("42/4242.{extension}");
    profile(&root, &output, "").ends(5).complains(&name);
    report(&root, "--json").ends(5).complains(&name);
    assert!(!output.exists());
    assert_eq!(fs::read_dir(folder.path("")).expect("it").count(), 1);
    let check = |ran: &Ran| {
        ran.ends(3)
            .complains("skipped: ")
            .complains(&name)
            .complains("1 input could not be read");
    };
    check(&profile(&root, &output, "--skip-bad"));
    let saved = report(&output, "--json").ends(3).json();
    let direct = report(&root, "--json --skip-bad");
    check(&direct);
    let direct = direct.json();
    for document in [saved, direct] {
        let result = &document["result"];
        assert_eq!(
            [
                &result["inputs"],
                &result["unread"],
                &result["hosts"],
                &result["ios"]
            ]
            .map(Value::as_u64),
            [9_999, 1, 100, 9_999 * ios].map(Some)
        );
    }
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
    let mut messages = vec![profile(&root, &output, "--shard 7/7").ends(2).complaint()];
    profile(&folder.path("absent"), &output, "").ends(5);
    let inside = root.join("day=0/host=db0/0.csv");
    messages.push(profile(&root, &inside, "").ends(2).complaint());
    messages.push(
        merge(std::slice::from_ref(&inside), &output)
            .ends(5)
            .complaint(),
    );
    profile(&root, &output, "").ends(0);
    messages.push(
        plumb([
            "fleet".as_ref(),
            "report".as_ref(),
            output.as_os_str(),
            inside.as_os_str(),
        ])
        .ends(2)
        .complaint(),
    );
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
    messages.push(
        plumb([
            "fleet".as_ref(),
            "report".as_ref(),
            one.as_os_str(),
            other.as_os_str(),
        ])
        .ends(2)
        .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
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
    insta::assert_snapshot!(report(&root, "").ends(3).passages(&["cells a"]));
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
    insta::assert_snapshot!(report(&root, &flags).ends(5).complaint());
    assert!(read(&state) == read(&whole));
    report(&state, &flags).ends(2);
}

/// A report with the same words on unchanged files prints the kept answer: here one that no report makes.
#[test]
fn unchanged_files_have_the_kept_answer() {
    let folder = Folder::new("fleet-kept");
    let (root, state) = (generated(&folder, 3), folder.path("state"));
    let flags = format!("--as csv --state {}", state.display());
    let made = report(&root, &flags).out.clone();
    let file = folder.path("state.answer");
    // Eight bytes of a name, sixteen of a digest, the exit status and a check are before the text.
    let whole = read(&file);
    assert_eq!(&whole[33..], made.as_bytes());
    let other = b"an answer of no report";
    let check = twox_hash::XxHash64::oneshot(0, other).to_le_bytes();
    let kept = [&whole[..25], &check, other].concat();
    let keep = |bytes: &[u8]| fs::write(&file, bytes).expect("room");
    keep(&kept);
    assert_eq!(report(&root, &flags).out.as_bytes(), other);
    assert_eq!(report(&root, &(flags.clone() + " --top 3")).out, made);
    keep(&kept);
    let mut damaged = kept.clone();
    damaged[40] ^= 1;
    keep(&damaged);
    assert_eq!(report(&root, &flags).out, made);
    keep(&kept);
    let set = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
    set(0o666);
    assert_eq!(report(&root, &flags).out, made);
    // The new file has the mode of the old one.
    set(0o644);
    keep(&kept);
    let touched = fs::File::options()
        .append(true)
        .open(root.join("day=0/host=db0/0.csv"));
    let now = std::time::SystemTime::now();
    touched.expect("a file").set_modified(now).expect("a time");
    assert_eq!(report(&root, &flags).out, made);
    keep(&kept);
    // The kept digest is that of the time before.
    assert_eq!(report(&root, &flags).out, made);
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

/// The numbers of seeds that a test runs: one, or `PLUMB_FLEET_SEEDS` of them.
fn seeds() -> std::ops::Range<u64> {
    let wanted = std::env::var("PLUMB_FLEET_SEEDS").ok();
    0..wanted.map_or(1, |wanted| wanted.parse().expect("a number of seeds"))
}

/// The report on a planted fleet.
fn planted(seed: u64, has_faults: bool) -> Value {
    let folder = Folder::new("fleet-planted");
    let fleet = PlantedFleet {
        hosts: 2000,
        seed,
        has_faults,
    };
    fleet.write(&folder.path("")).expect("room");
    let inventory = folder.path("inventory.csv");
    let flags = format!("--json --grid 8k --inventory {}", inventory.display());
    let document = report(&folder.path("in"), &flags).ends(0).json();
    assert_eq!(Schema::read("fleet").faults(&document), [""; 0]);
    let silent = document["result"]["silence"]["listed"].as_array();
    let silent: Vec<&str> = silent
        .expect("a list")
        .iter()
        .filter_map(|one| one["host"].as_str())
        .collect();
    assert_eq!(silent, fleet::SILENT.map(|host| format!("h{host:04}")));
    document
}

/// Causes with the attribute that explains them.
fn named(document: &Value) -> Vec<String> {
    let groups = document["result"]["groups"].as_array().expect("groups");
    let mut named: Vec<String> = groups
        .iter()
        .map(|group| {
            let attribute = &group["attribute"];
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let same = group["same"].as_array().expect("a list").len();
            assert_eq!(same, 0, "{group:#}");
            let [cause, name] = [&group["cause"], &attribute["name"]].map(text);
            format!("{cause} {name} {}", text(&attribute["value"]))
        })
        .collect();
    named.sort_unstable();
    named
}

/// 3 % of the hosts have a misaligned image, 6 % an array whose unit is not the assumed one, 8 % a kernel that splits writes, and one rack a
/// slow path: all of these are groups, and nothing else is.
#[test]
fn planted_faults_are_groups() {
    for seed in seeds() {
        let document = planted(seed, true);
        let expected = [
            "misaligned-io image web-3",
            "misaligned-io kernel 6.1.0-9",
            "misaligned-io model AX-20",
            "odd-length-io kernel 6.1.0-9",
            "slow-device rack r17",
        ];
        assert_eq!(named(&document), expected, "seed {seed}");
        for group in document["result"]["groups"].as_array().expect("groups") {
            // All hosts of a group have its cause, and so have at most 1 % and the other planted ones of the rest.
            assert_eq!(
                group["hosts"], group["hosts_with"],
                "seed {seed}: {group:#}"
            );
            // The figure is unknown: these devices have no like I/O on the grid.
            assert_eq!(group["lost_ns_per_second"], Value::Null, "{group:#}");
            let low = group["lift"]["low"].as_f64().expect("a lift");
            assert!(low > 3.0, "seed {seed}: {group:#}");
            let on = group["on"].as_array().expect("hosts");
            assert_eq!(Some(on.len() as u64), group["hosts_with"].as_u64());
            let command = on[0]["command"].as_str().expect("a command");
            assert!(command.starts_with("ssh h"), "{command}");
        }
        let slow = &document["result"]["groups"];
        let slow = slow.as_array().expect("groups").iter();
        let slow = slow.filter(|group| group["cause"] == "slow-device");
        for group in slow {
            assert_eq!(group["hosts"], 25);
            let [low, high] = ["low", "high"].map(|end| group["times"][end].as_f64());
            assert!(low <= Some(3.1) && high >= Some(2.9), "{group:#}");
        }
    }
}

#[test]
fn a_healthy_fleet_has_no_group() {
    for seed in seeds() {
        let document = planted(seed, false);
        assert_eq!(named(&document), [""; 0], "seed {seed}");
        let result = &document["result"];
        // A partition at sector 34 on one host in 100, and one slow device in 400.
        let ungrouped = result["ungrouped"].as_array().expect("findings");
        let of = |cause: &str| ungrouped.iter().find(|one| one["cause"] == cause);
        let strays = of("misaligned-io").and_then(|one| one["hosts"].as_u64());
        assert!(
            strays.is_some_and(|hosts| (5..50).contains(&hosts)),
            "{ungrouped:?}"
        );
        let alone = result["outliers"]["alone"].as_u64();
        assert!(
            alone.is_some_and(|devices| (2..30).contains(&devices)),
            "{alone:?}"
        );
    }
}

/// Ten hosts with image a and ten with image b, by path or by inventory: those with b are misaligned.
#[test]
fn attributes_come_from_paths_and_inventories() {
    let folder = Folder::new("fleet-attributes");
    let mut csv = "host,image\r\n".to_owned();
    for host in 0..20 {
        let (image, past) = if host < 10 { ("a", 0) } else { ("b", 512) };
        let text = msr(pages(240, past, 8192));
        for root in ["paths", "plain"] {
            let part = if root == "paths" {
                format!("image={image}")
            } else {
                format!("x{image}")
            };
            let place = folder
                .path(root)
                .join(part)
                .join(format!("date={host}/host=h{host:02}"));
            fs::create_dir_all(&place).expect("room");
            fs::write(place.join("x.csv"), &text).expect("room");
        }
        csv += &format!("h{host:02},{image}\r\n");
    }
    let inventory = folder.file("hosts.csv", &csv);
    let flags = format!("--json --grid 4k --inventory {}", inventory.display());
    let by_path = report(&folder.path("paths"), "--json --grid 4k").json();
    let by_inventory = report(&folder.path("plain"), &flags).json();
    for document in [&by_path, &by_inventory] {
        assert_eq!(named(document), ["misaligned-io image b"]);
        assert_eq!(document["result"]["groups"][0]["hosts_with"], 10);
    }
    let nothing = report(&folder.path("plain"), "--json --grid 4k").json();
    assert_eq!(named(&nothing), [""; 0]);
    assert_eq!(nothing["result"]["ungrouped"][0]["hosts"], 10);
    // A fleet file keeps the attributes of paths.
    let kept = folder.path("kept.fleet");
    profile(&folder.path("paths"), &kept, "").ends(0);
    let document = report(&kept, "--json --grid 4k").json();
    assert_eq!(document["result"]["groups"], by_path["result"]["groups"]);
    // The page is written beside the other output, and never over an input.
    let page = folder.path("page.html");
    let mut messages = vec![
        report(
            &kept,
            &format!("--grid 4k --as csv --html {}", page.display()),
        )
        .ends(0)
        .passages(&["h10,", "ssh h10"]),
    ];
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("misaligned-io: image=b"), "{page}");
    messages.push(
        report(&kept, &format!("--html {}", kept.display()))
            .ends(2)
            .complaint(),
    );
    messages.push(
        report(&kept, "--grid 4k --as openmetrics")
            .ends(0)
            .passages(&["plumb_fleet_group_hosts"]),
    );
    let text = report(&kept, "--grid 4k");
    messages.push(text.passages(&["image=b", "others (", "ssh h10"]));
    let bad = folder.file("bad.csv", "host,image\nh00\n");
    messages.push(
        report(&kept, &format!("--inventory {}", bad.display()))
            .ends(5)
            .complaint(),
    );
    messages.push(report(&kept, "--inventory /nowhere").ends(5).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Collections have kernels and models: of twelve hosts, the sdb of six is another model and misaligned.
#[test]
fn collections_are_an_inventory() {
    let lab = Lab::new();
    let folder = Folder::new("fleet-collections");
    fs::create_dir_all(folder.path("collections")).expect("room");
    for at in 0..12 {
        let name = format!("h{at:02}");
        let mut host = lab.host(&name);
        host.write("proc/sys/kernel/osrelease", "6.1.0-9\n");
        let model = if at < 6 { "AX-20" } else { "AX-10" };
        for (device, model) in [("sda", "BOOT"), ("sdb", model)] {
            host.disk(&FakeDisk {
                model: model.to_owned(),
                ..FakeDisk::named(device)
            });
        }
        let file = folder.path(&format!("collections/{name}.tar.zst"));
        pack(&file, FORM, &lab.path(&name), &[NO_ANSWERS, NO_DEVICES]);
        let past = if at < 6 { 1 } else { 0 };
        let text = format!(
            "# plumb-residue 1 unit=512 modulus=2048\nsda R 0 16 1000\nsdb R {past} 16 1000\n"
        );
        fs::create_dir_all(folder.path("in").join(&name)).expect("room");
        fs::write(folder.path("in").join(&name).join("x"), text).expect("room");
    }
    let csv = folder.file("hosts.csv", "host,kernel\nh00,from-file\n");
    let flags = format!(
        "--json --grid 4k --inventory {} --inventory {}",
        csv.display(),
        folder.path("collections").display()
    );
    let document = report(&folder.path("in"), &flags).json();
    let groups = document["result"]["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 1, "{groups:#?}");
    let attribute = &groups[0]["attribute"];
    assert_eq!(attribute["name"], "model", "{groups:#?}");
    let value = attribute["value"].as_str();
    assert!(
        value.is_some_and(|value| value.ends_with("AX-20")),
        "{value:?}"
    );
    assert_eq!(groups[0]["on"][0]["devices"], Value::from(vec!["sdb"]));
    let damaged = read(&folder.path("collections/h03.tar.zst"));
    fs::write(
        folder.path("collections/h03.tar.zst"),
        &damaged[..damaged.len() / 2],
    )
    .expect("room");
    report(&folder.path("in"), &flags)
        .ends(5)
        .complains("h03.tar.zst");
}

/// Since an earlier file: a disk that was repaired, one that became misaligned, one that wastes twice as much, and hosts that come and go.
#[test]
fn changes_since_an_earlier_file_are_named() {
    let folder = Folder::new("fleet-since");
    let week = |name: &str, hosts: &[(&str, u64)]| {
        for (host, off) in hosts {
            let place = folder.path(name).join(host);
            fs::create_dir_all(&place).expect("room");
            fs::write(place.join("x"), mixed(*off, 10_001 - off, 3000)).expect("room");
        }
        let file = folder.path(&format!("{name}.fleet"));
        profile(&folder.path(name), &file, "").ends(0);
        file
    };
    let earlier = week(
        "47",
        &[
            ("broken", 0),
            ("old", 0),
            ("repaired", 6_000),
            ("same", 4_000),
            ("worse", 4_000),
        ],
    );
    let now = week(
        "48",
        &[
            ("broken", 6_000),
            ("new", 6_000),
            ("repaired", 0),
            ("same", 4_400),
            ("worse", 8_000),
        ],
    );
    let flags = format!("--json --grid 4k --since {}", earlier.display());
    for source in [now.clone(), folder.path("48")] {
        let document = report(&source, &flags).ends(0).json();
        assert_eq!(Schema::read("fleet").faults(&document), [""; 0]);
        let changes = &document["result"]["changes"];
        for (list, host, before, after) in [
            ("new", "broken", Value::Null, "warning".into()),
            ("gone", "repaired", "warning".into(), Value::Null),
            ("worse", "worse", "warning".into(), "warning".into()),
        ] {
            assert_eq!(changes[list]["all"], 1, "{changes:#}");
            let one = &changes[list]["listed"][0];
            assert_eq!([&one["host"], &one["cause"]], [host, "misaligned-io"]);
            assert_eq!([&one["before"], &one["after"]], [&before, &after], "{one}");
        }
        let wasted = &changes["worse"]["listed"][0]["wasted_per_second"];
        assert_eq!([&wasted["before"], &wasted["after"]], [400.0, 800.0]);
        assert_eq!(changes["hosts_new"]["listed"], Value::from(vec!["new"]));
        assert_eq!(changes["hosts_gone"]["listed"], Value::from(vec!["old"]));
    }
    let document = report(&now, "--json").json();
    assert_eq!(document["result"]["changes"], Value::Null);
    let recording = folder.path("48/new/x");
    insta::assert_snapshot!(
        report(&now, &format!("--since {}", recording.display()))
            .ends(5)
            .complaint()
    );
}

/// Since a time: recordings before it are those that the others are compared with.
#[test]
fn changes_since_a_time_are_named() {
    let folder = Folder::new("fleet-since-time");
    let root = folder.path("in");
    // The later recordings are of 2008, the earlier ones of February 2007.
    let add = |name: &str, off: u64, is_later: bool| {
        let text = mixed(off, 10_001 - off, 3000);
        let text = match is_later {
            true => text.replace("1281663", "1285663"),
            false => text,
        };
        fs::create_dir_all(root.join(name)).expect("room");
        fs::write(root.join(name).join(format!("{is_later}.csv")), text).expect("room");
    };
    for (host, before, after) in [
        ("broken", Some(0), Some(6_000)),
        ("new", None, Some(6_000)),
        ("old", Some(6_000), None),
        ("repaired", Some(6_000), Some(0)),
        ("worse", Some(4_000), Some(8_000)),
    ] {
        for (off, is_later) in [(before, false), (after, true)] {
            if let Some(off) = off {
                add(host, off, is_later);
            }
        }
    }
    let flags = "--json --grid 4k --since 2008-01-01T00:00Z";
    let document = report(&root, flags).ends(0).json();
    assert_eq!(Schema::read("fleet").faults(&document), [""; 0]);
    let result = &document["result"];
    assert_eq!([&result["hosts"], &result["inputs"]], [4, 4]);
    let changes = &result["changes"];
    assert_eq!(changes["since"], "2008-01-01T00:00:00Z");
    for (list, host) in [("new", "broken"), ("gone", "repaired"), ("worse", "worse")] {
        assert_eq!(changes[list]["all"], 1, "{changes:#}");
        assert_eq!(changes[list]["listed"][0]["host"], host);
    }
    let wasted = &changes["worse"]["listed"][0]["wasted_per_second"];
    assert_eq!([&wasted["before"], &wasted["after"]], [400.0, 800.0]);
    assert_eq!(changes["hosts_new"]["listed"], Value::from(vec!["new"]));
    assert_eq!(changes["hosts_gone"]["listed"], Value::from(vec!["old"]));
    report(&root, "--grid 4k --since 2008-01-01T00:00Z").says("Changes since 2008-01-01T00:00:00Z");
    // All of them are older than an hour.
    let document = report(&root, "--json --since 1h").ends(3).json();
    assert_eq!(document["result"]["hosts"], 0);
    assert_eq!(document["result"]["changes"]["hosts_gone"]["all"], 5);
    let file = folder.path("sums.fleet");
    profile(&root, &file, "").ends(0);
    report(&file, "--since 1h").ends(2).complains("no dates");
}

/// The rest of a fleet file comes late: the terminal shows how much is read.
#[test]
fn a_terminal_shows_the_progress() {
    require!(Tool("tmux"));
    let folder = Folder::new("fleet-progress");
    let whole = folder.path("whole.fleet");
    profile(&generated(&folder, 3), &whole, "").ends(0);
    let pipe = folder.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo of coreutils").success());
    let both = fs::File::options().read(true).write(true).open(&pipe);
    let mut both = both.expect("a pipe");
    both.write_all(&read(&whole)[..500]).expect("room");
    let terminal = Terminal::open("fleet-progress", 200, 20, "");
    let plumb = env!("CARGO_BIN_EXE_plumb");
    let output = folder.path("out.fleet");
    let line = format!(
        "{plumb} fleet merge {} -o {}",
        pipe.display(),
        output.display()
    );
    terminal.press(&[&line, "Enter"]);
    terminal.shows(" read, ");
    drop(both);
    terminal.shows("damaged fleet file");
}

/// A host is silent from an age on, and one with a clock that is ahead makes no other one silent.
#[test]
fn hosts_that_stopped_are_named() {
    let folder = Folder::new("fleet-silent");
    let text = mixed(0, 300, 0);
    // 10^11 of 100 ns are 10,000 s.
    for (host, time) in (0..24)
        .map(|host| (host, 0))
        .chain([(24, -2), (25, 30_000), (26, -1)])
    {
        let place = folder.path(&format!("in/h{host:02}"));
        fs::create_dir_all(&place).expect("room");
        let text = text.replace("1281663", &(1_281_663 + time).to_string());
        fs::write(place.join("x"), text).expect("room");
    }
    let silent = |flags: &str| -> Vec<String> {
        let document = report(&folder.path("in"), &format!("--json {flags}")).json();
        let listed = document["result"]["silence"]["listed"].as_array();
        let hosts = listed
            .expect("a list")
            .iter()
            .map(|one| one["host"].to_string());
        hosts.collect()
    };
    assert_eq!(silent(""), [""; 0], "six hours are fewer than 36");
    assert_eq!(silent("--silent-after 15000"), ["\"h24\""]);
    assert_eq!(silent("--silent-after 9000s"), ["\"h24\"", "\"h26\""]);
    report(&folder.path("in"), "--silent-after 15000").says("h24: newest I/O 2007-02-22T");
    report(&folder.path("in"), "--silent-after 0").ends(2);
}
