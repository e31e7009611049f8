//! `--json` prints documents that match `docs/schema/`. Documents that need a special device are compared there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::attached::await_programs;
use crate::common::collection::{LIO_IDENTITY, Lab};
use crate::common::probed::{probe, probe_until_decided};
use crate::common::schema::{Schema, list};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::wait;
use plumb_testkit::wait::RunLimited;
use serde_json::Value;

/// The document that `plumb analyze --json` prints.
fn analyze(file: &Path, flags: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .arg("analyze")
        .arg(file)
        .arg("--json")
        .args(flags.split_whitespace());
    let done = command.limited_output();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|error| {
        let said = String::from_utf8_lossy(&done.stderr);
        panic!(
            "{} {flags}: no JSON document: {error}; it said: {said}",
            file.display()
        )
    })
}

fn check(schema: &Schema, file: &Path, flags: &str) {
    let faults = schema.faults(&analyze(file, flags));
    assert!(
        faults.is_empty(),
        "{} {flags}:\n{}",
        file.display(),
        faults.join("\n")
    );
}

/// Flags that bring every part of the document about.
const QUESTIONS: [&str; 6] = [
    "",
    "--grid 8k --grid 4k@1024 --shift +2s",
    "--chunk 64k --members 4",
    "--chunk 48k --members 7 --record 8k",
    "--grid 3000",
    "--op flush --range 0-1g",
];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/traces")
        .join(name)
}

#[test]
fn output_of_analyze_is_as_promised() {
    let schema = Schema::read("analyze");
    for flags in QUESTIONS {
        check(&schema, &example("guest-blktrace"), flags);
    }
    check(
        &schema,
        &example("guest-blktrace/blkparse.txt.gz"),
        "--layer bio --until 1s",
    );
}

#[test]
fn output_for_real_traces_is_as_promised() {
    plumb_testkit::require!(RealTraces);
    let traces = plumb_testkit::require::real_traces().expect("checked above");
    let schema = Schema::read("analyze");
    for (file, flags) in [
        ("vscsi/cloudPhysicsIO.vscsi", "--shift +1s"),
        ("fio-iolog/local_v3.iolog", "--record 128k"),
        ("blkparse/leveldb_blk_data.txt", "--chunk 64k --members 4"),
        ("bcc/biosnoop_example.txt", ""),
        ("vscsiStats/algonquin.csv", ""),
        ("etw/wpaexporter-head.csv", ""),
        ("blktrace", ""),
    ] {
        check(&schema, &traces.join(file), flags);
    }
}

/// The document that `plumb check --json` prints of dumps.
fn check_dumps(dumps: &[PathBuf], flags: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["check", "--json"])
        .args(flags.split_whitespace())
        .arg("--from")
        .args(dumps);
    let done = command.limited_output();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|error| {
        panic!(
            "no JSON document: {error}; it said: {}",
            String::from_utf8_lossy(&done.stderr)
        )
    })
}

fn example_dumps() -> Vec<PathBuf> {
    let names = ["prtvtoc-c2t0d0.txt", "prtvtoc-c2t1d0.txt", "metastat-p.txt"];
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dumps");
    names.map(|name| dumps.join(name)).to_vec()
}

#[test]
fn output_of_check_is_as_promised() {
    let schema = Schema::read("check");
    for flags in [
        "",
        "--grid 8k --segment 48k",
        "--disk-type sun-t3-32k",
        "d12",
        "--page 8k --grid 4k@512",
    ] {
        let faults = schema.faults(&check_dumps(&example_dumps(), flags));
        assert!(faults.is_empty(), "{flags}:\n{}", faults.join("\n"));
    }
    let (typed, shown) = (Lab::new(), Lab::new());
    let sectors = 1 << 22;
    let pair = [
        typed.guest("web1", sectors, 2048),
        typed.kvm("kvm3", sectors, 2049),
    ];
    let by_identity = shown.shown_by_lio(sectors, (LIO_IDENTITY, sectors));
    for (hosts, flags) in [(pair, "--join web1:vda=kvm3:vg/guest1"), (by_identity, "")] {
        let document = check_dumps(&hosts, flags);
        assert!(
            document.to_string().contains("\"host\":\"web1\""),
            "hosts are told apart"
        );
        let faults = schema.faults(&document);
        assert!(faults.is_empty(), "{flags}:\n{}", faults.join("\n"));
    }
    plumb_testkit::require!(RealTraces);
    let traces = plumb_testkit::require::real_traces().expect("checked above");
    for folder in ["solaris-svm", "solaris-prints"] {
        let files = std::fs::read_dir(traces.join(folder)).expect("a readable folder");
        let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        files.sort();
        let faults = schema.faults(&check_dumps(&files, ""));
        assert!(faults.is_empty(), "{folder}:\n{}", faults.join("\n"));
    }
}

fn schema_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/schema")
        .canonicalize()
        .expect("the schemas")
}

/// A reference to another schema is looked for beside the `$id` of the one that has it: that is the name of the file.
#[test]
fn schemas_are_called_as_their_files() {
    for entry in std::fs::read_dir(schema_folder()).expect("the schemas") {
        let path = entry.expect("a file").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name")
            .to_owned();
        let text = std::fs::read_to_string(&path).expect("a readable schema");
        let schema: Value = serde_json::from_str(&text).expect("a schema in JSON");
        assert_eq!(
            schema["$id"],
            name.as_str(),
            "a validator looks beside it for what it refers to"
        );
    }
}

/// The validator of Python accepts them, with all of their references, and refuses violations.
#[test]
fn another_validator_agrees() {
    plumb_testkit::require!(Tool("jsonschema"));
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("document.json");
    let judge = |command: &str, document: &Value| {
        std::fs::write(&file, document.to_string()).expect("a file");
        let schema = schema_folder().join(format!("{command}.json"));
        let beside = format!("file://{}/", schema_folder().display());
        let mut validator = Command::new("jsonschema");
        let done = validator
            .args(["--base-uri", &beside, "--instance"])
            .arg(&file)
            .arg(schema)
            .output();
        let done = done.expect("the validator");
        (
            done.status.success(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    let mut diagnose = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let done = diagnose
        .args(["diagnose", "--json", "--for", "0"])
        .limited_output();
    let analyzed = analyze(
        &example("guest-blktrace"),
        "--grid 8k --chunk 64k --members 4",
    );
    let mut diagnosed: Value = serde_json::from_slice(&done.stdout).expect("a document");
    // Profiles and findings of I/O are those of analyze, which the schema refers to.
    diagnosed["result"]["profiles"] = analyzed["result"]["profiles"].clone();
    diagnosed["findings"] = analyzed["findings"].clone();
    let documents = [
        ("analyze", analyzed),
        ("diagnose", diagnosed),
        ("check", check_dumps(&example_dumps(), "")),
        ("watch", interval()),
    ];
    for (command, mut document) in documents {
        let (is_valid, said) = judge(command, &document);
        assert!(is_valid, "{command}: {said}");
        document["findings"] = serde_json::json!([{"rule": "no-such-rule"}]);
        let (is_valid, said) = judge(command, &document);
        assert!(
            !is_valid && said.contains("no-such-rule"),
            "{command}: {said}"
        );
    }
}

/// A line of watch, with profiles as analyze has them.
fn interval() -> Value {
    let analyzed = analyze(&example("guest-blktrace"), "");
    serde_json::json!({
        "schema": "plumb.watch/2",
        "version": "0.1.0",
        "host": "web1",
        "time": "2026-01-31T08:00:00Z",
        "command": ["plumb", "watch", "--json"],
        "inputs": [],
        "findings": analyzed["findings"],
        "result": {
            "seconds": 1.0, "until": null, "profiles": analyzed["result"]["profiles"],
            "processes": [], "apart": [], "seen_again": [], "filter": null, "app": null, "notes": [],
            "whole": {"seconds": 2.0, "unknown": analyzed["result"]["unknown"], "silent": [], "app": null},
        },
    })
}

#[test]
fn the_schema_names_the_rules() {
    let schema = Schema::read("finding");
    let named = list(&schema.root["$defs"]["rule"]["enum"]);
    let rules: Vec<&str> = plumb_model::RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(named, rules);
}

type DocumentChange<'a> = &'a dyn Fn(&mut Value);

#[test]
fn undocumented_output_is_detected() {
    let schema = Schema::read("analyze");
    let good = analyze(&example("guest-blktrace"), "");
    let bent = |change: DocumentChange<'_>| {
        let mut document = good.clone();
        change(&mut document);
        schema.faults(&document).join("\n")
    };
    assert_eq!(bent(&|_| {}), "");
    let checks: [(DocumentChange<'_>, &str); 6] = [
        (
            &|document| document["more"] = 1.into(),
            "/more: nothing is allowed here",
        ),
        (
            &|document| drop(document.as_object_mut().map(|all| all.remove("inputs"))),
            "\"inputs\" is required",
        ),
        (
            &|document| document["inputs"][0]["records"] = (-1).into(),
            "/inputs/0/records: -1 is against minimum 0",
        ),
        (
            &|document| document["findings"][0]["severity"] = "bad".into(),
            "/findings/0/severity: \"bad\" is against enum",
        ),
        (
            &|document| document["result"]["profiles"][0]["ios"] = Value::Null,
            "against type \"integer\"",
        ),
        (
            &|document| document["findings"][0]["facts"] = Value::Array(vec![]),
            "/findings/0/facts: [] is against type \"object\"",
        ),
    ];
    for (change, words) in checks {
        let faults = bent(change);
        assert!(
            faults.contains(words),
            "expected {words:?}, found {faults:?}"
        );
    }
}

/// One plan of each kind, and one that is refused.
const PLANS: [&str; 11] = [
    "filesystem /dev/sdb --type btrfs --page 8k",
    "partition /dev/sdb --size 10g --disk-size 1g",
    "partition /dev/sdb --grid 8k --current 34s --size 10g --holds lvm=vg0",
    "partition c1t0d0 --label smi --geometry 27x107 --disk-size 100g",
    "stripe --io 8k --segment 48k --chunk 1m",
    "softpart d10 --unit 256k --existing d11:1s:1g --new d12:1g",
    "filesystem /dev/md0 --type ext4 --chunk 64k --members 4 --parity 1",
    "record tank/db --page 8k --current 128k",
    "resync --maxphys 256k --mirror 100g",
    "disks --writes 265 --disk-rate 80 --response 50ms",
    "writes --record 512 --gather 16 --random 80 --sequential 409",
];

#[test]
fn output_of_plan_is_as_promised() {
    let schema = Schema::read("plan");
    for args in PLANS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        let done = command
            .arg("plan")
            .args(args.split_whitespace())
            .arg("--json")
            .limited_output();
        let document =
            serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{args}: {error}"));
        let faults = schema.faults(&document);
        assert!(faults.is_empty(), "{args}:\n{}", faults.join("\n"));
    }
}

#[test]
fn output_of_compare_is_as_promised() {
    let schema = Schema::read("compare");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let capture = |name: &str| examples.join("iostat").join(name);
    let trace = examples.join("traces/record-sector34.parquet");
    for (before, after) in [
        (capture("misaligned.txt"), capture("aligned.txt")),
        (trace.clone(), trace.clone()),
    ] {
        let ran = crate::common::plumb([
            "compare".as_ref(),
            before.as_os_str(),
            after.as_os_str(),
            "--json".as_ref(),
        ]);
        let faults = schema.faults(&ran.json());
        assert!(
            faults.is_empty(),
            "{}:\n{}",
            before.display(),
            faults.join("\n")
        );
    }
    let folder = tempfile::tempdir().expect("a directory");
    let results = folder.path().join("results.txt");
    let line = |offset: u64, rate: f64| {
        let mib = rate / 256.0;
        format!("offset={offset} avg_2-3 {rate:.2} {mib:.2} 4096 100.00 1.5 2.8 0.2 1.1 0.9\n")
    };
    let text = [(0, 200.0), (512, 100.0), (1024, 101.0), (4096, 201.0)];
    let text: String = text
        .iter()
        .map(|(offset, rate)| line(*offset, *rate))
        .collect();
    std::fs::write(&results, text).expect("room");
    let sweep = crate::common::plumb(["compare".as_ref(), results.as_os_str(), "--json".as_ref()]);
    let faults = schema.faults(&sweep.json());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn output_of_record_is_as_promised() {
    plumb_testkit::require!(Bpf, Root);
    let schema = Schema::read("record");
    let folder = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["record", "--json", "--duration", "3s", "--output"])
        .arg(folder.path().join("all.parquet"));
    let recording = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("plumb runs");
    let file = folder.path().join("written");
    await_programs(recording.id());
    std::fs::write(&file, vec![1; 1 << 20]).expect("room");
    std::fs::File::open(&file)
        .and_then(|file| file.sync_all())
        .expect("written");
    let done = wait::output("plumb", wait::PATIENCE, recording);
    let document = serde_json::from_slice(&done.stdout).expect("a document");
    let faults = schema.faults(&document);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(
        document["result"]["devices"]
            .as_array()
            .is_some_and(|devices| !devices.is_empty()),
        "{document}"
    );
}

/// One that shows a grid, and one that shows nothing.
#[test]
fn output_of_probe_is_as_promised() {
    plumb_testkit::require!(Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let schema = Schema::read("probe");
    let device = plumb_testkit::charging::ChargedCells::of_ratio(4096, 1024, 2.0).up();
    let machine = plumb_testkit::Machine::watched();
    let grid = probe_until_decided(device.path(), "--grid 8k@512");
    crate::undecided_on_a_busy_machine!(machine, grid);
    let nothing = probe(device.path(), "--limit 100ms");
    for (probed, verdict) in [(grid, "misaligned"), (nothing, "inconclusive")] {
        assert_eq!(probed.verdict(), verdict, "{}", probed.document);
        let faults = schema.faults(&probed.document);
        assert!(faults.is_empty(), "{verdict}:\n{}", faults.join("\n"));
    }
}

#[test]
fn output_of_bench_is_as_promised() {
    let folder = crate::common::Folder::new("schema-bench");
    let target = folder.path("disk");
    std::fs::write(&target, vec![0; 1 << 20]).expect("a target");
    let target = target.display().to_string();
    let schema = Schema::read("bench");
    let writes =
        "--write --yes disk --read 50 --rate 500 --open --for 1s --interval 200ms --warmup 200ms";
    for flags in ["--ios 101", writes] {
        let arguments = ["bench", &target, "--json"]
            .into_iter()
            .chain(flags.split_whitespace());
        let ran = crate::common::plumb(arguments);
        assert_eq!(
            schema.faults(&ran.ends(0).json()),
            Vec::<String>::new(),
            "{flags}"
        );
    }
    let sds: String = (0..3)
        .map(|at| format!("sd=s{at},lun={target},offset={}\n", at * 512))
        .collect();
    let rds: String = (0..3)
        .map(|at| format!("rd=r{at},wd=w,sd=s{at},iorate=max\n"))
        .collect();
    let file = folder.path("sweep.vdb");
    std::fs::write(&file, format!("{sds}wd=w,sd=s0\n{rds}")).expect("a parameter file");
    let file = file.display().to_string();
    let short = ["--for", "400ms", "--interval", "100ms", "--json"];
    let several = [
        vec!["bench", "--vdbench", &file],
        vec![
            "bench",
            &target,
            "--study=gather",
            "--at-threads=2",
            "--gather=1,4",
        ],
    ];
    for arguments in several {
        let ran = crate::common::plumb(arguments.iter().copied().chain(short));
        assert_eq!(
            schema.faults(&ran.json()),
            Vec::<String>::new(),
            "{arguments:?}"
        );
    }
    // An operation that is not promised is noticed.
    let mut document = crate::common::plumb(["bench", &target, "--json", "--ios", "11"])
        .ends(0)
        .json();
    document["result"]["runs"][0]["total"]["failures"] =
        serde_json::json!([{"op": "trim", "kind": "x", "ios": 1}]);
    assert_eq!(schema.faults(&document).len(), 1);
}

#[test]
fn output_of_replay_is_as_promised() {
    let folder = crate::common::Folder::new("schema-replay");
    let target = folder.path("disk");
    std::fs::write(&target, vec![0; 4 << 20]).expect("a target");
    let ios = (0..400).map(|at| (if at % 4 == 0 { 'W' } else { 'R' }, at * 8192, 4096));
    let trace = folder.file("trace.csv", crate::common::msr(ios));
    let schema = Schema::read("replay");
    let writes = "--speed max --depth 4 --write --yes disk";
    for flags in [
        "--speed 10",
        writes,
        "--compare --speed max --depth 4 --shift +1s --pairs 12",
    ] {
        let paths = [trace.display().to_string(), target.display().to_string()];
        let flags = flags.split_whitespace().map(str::to_owned);
        let ran = crate::common::plumb(
            ["replay".to_owned(), "--json".to_owned()]
                .into_iter()
                .chain(paths)
                .chain(flags),
        );
        let mut document = ran.json();
        assert_eq!(schema.faults(&document), Vec::<String>::new());
        document["result"]["mood"] = Value::from("fine");
        assert_eq!(
            schema.faults(&document).len(),
            1,
            "what is not promised is noticed"
        );
    }
}

#[test]
fn output_of_watch_is_as_promised() {
    plumb_testkit::require!(Bpf, Root);
    let schema = Schema::read("watch");
    let folder = tempfile::tempdir().expect("a directory");
    for args in ["", "--grid 8k@512 --grid 4k", "--app", "--app --sync"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["watch", "--json", "--interval", "700ms", "--count", "2"])
            .args(args.split_whitespace());
        let watching = command
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("plumb runs");
        let file = folder.path().join("written");
        std::fs::write(&file, vec![1; 1 << 20]).expect("room");
        std::fs::File::open(&file)
            .and_then(|file| file.sync_all())
            .expect("written");
        let done = wait::output("plumb", wait::PATIENCE, watching);
        let text = String::from_utf8(done.stdout).expect("text");
        assert_eq!(text.lines().count(), 2, "{text}");
        for (number, line) in text.lines().enumerate() {
            let document: Value = serde_json::from_str(line).expect("a document");
            let faults = schema.faults(&document);
            assert!(faults.is_empty(), "{args}:\n{}", faults.join("\n"));
            let whole = &document["result"]["whole"];
            assert_eq!(
                whole.is_null(),
                number == 0,
                "{args}: in the last line alone"
            );
            assert!(
                whole.is_null() || whole["app"].is_null() != args.contains("--app"),
                "{args}: {whole}"
            );
        }
    }
}

#[test]
fn output_of_diagnose_is_as_promised() {
    let schema = Schema::read("diagnose");
    let folder = tempfile::tempdir().expect("a directory");
    for args in [
        "--for 0",
        "--for 700ms",
        "/ --for 300ms --grid 8k@512 --page 8k",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["diagnose", "--json"])
            .args(args.split_whitespace());
        let running = command
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("plumb runs");
        let file = folder.path().join("written");
        std::fs::write(&file, vec![1; 1 << 20]).expect("room");
        std::fs::File::open(&file)
            .and_then(|file| file.sync_all())
            .expect("written");
        let done = wait::output("plumb", wait::PATIENCE, running);
        let document = serde_json::from_slice(&done.stdout).expect("a document");
        let faults = schema.faults(&document);
        assert!(faults.is_empty(), "{args}:\n{}", faults.join("\n"));
    }
}

/// Of labels, on an image.
#[test]
fn output_of_fix_is_as_promised() {
    let schema = Schema::read("fix");
    let folder = tempfile::tempdir().expect("a directory");
    let [image, saved, undone] =
        ["disk.img", "saved", "undone"].map(|name| folder.path().join(name));
    std::fs::File::create(&image)
        .and_then(|file| file.set_len(64 << 20))
        .expect("room");
    let names = [&image, &saved, &undone].map(|path| path.to_str().expect("text").to_owned());
    for args in [
        vec!["relabel", &names[0]],
        vec![
            "relabel", &names[0], "--save", &names[1], "--yes", "disk.img",
        ],
        vec!["backup-label", &names[0]],
        vec!["undo", &names[1]],
        vec!["undo", &names[1], "--save", &names[2], "--yes", "disk.img"],
    ] {
        let done = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .arg("fix")
            .args(&args)
            .arg("--json")
            .output();
        let done = done.expect("plumb runs");
        assert_eq!(
            done.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        let document = serde_json::from_slice(&done.stdout).expect("a document");
        let faults = schema.faults(&document);
        assert!(faults.is_empty(), "{args:?}:\n{}", faults.join("\n"));
    }
}

#[test]
fn output_of_a_move_is_as_promised() {
    plumb_testkit::require!(Loop, Tool("sgdisk"));
    let schema = Schema::read("fix");
    let folder = tempfile::tempdir().expect("a directory");
    let (image, journal) = (
        folder.path().join("disk.img"),
        folder.path().join("journal"),
    );
    std::fs::File::create(&image)
        .and_then(|file| file.set_len(64 << 20))
        .expect("room");
    run(Command::new("sgdisk")
        .args(["-a1", "-n1:34:40000"])
        .arg(&image));
    let device = LoopDevice::attach(&image, &[]);
    assert_eq!(device.add_partitions(), 1);
    let (node, name) = (
        format!("{}p1", device.path().display()),
        format!("{}p1", device.name()),
    );
    for yes in [&[][..], &["--yes", &name]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args([
            "fix",
            "move",
            &node,
            "--aligned",
            "--json",
            "--journal-same-disk",
            "--journal",
        ]);
        let done = command.arg(&journal).args(yes).limited_output();
        assert_eq!(
            done.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let document: Value = serde_json::from_slice(&done.stdout).expect("a document");
        let faults = schema.faults(&document);
        assert!(faults.is_empty(), "{yes:?}:\n{}", faults.join("\n"));
        assert_eq!(document["result"]["to_bytes"], 2_048 * 512);
    }
}
