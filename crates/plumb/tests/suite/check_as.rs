//! `plumb check --as`: each format as its own readers want it. Python's parsers of CSV and XML read it, and strict ones of the
//! line of a plugin and of metrics that were written here from the documents of their formats.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Folder, Ran, exposition, plumb};
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::require;
use serde_json::Value;

/// A host with an aligned and a misaligned partition of one disk, and another misaligned one.
fn host(folder: &Folder) -> PathBuf {
    let root = folder.path("host");
    let mut host = FakeHost::new(&root);
    host.disk(&FakeDisk::named("sdx"));
    host.partition("sdx", 1, 2048, 1 << 20);
    host.partition("sdx", 2, (1 << 20) + 4098, 1 << 20);
    host.disk(&FakeDisk::named("sdy"));
    host.partition("sdy", 1, 34, 1 << 20);
    root
}

/// A host without a finding.
fn clean(folder: &Folder) -> PathBuf {
    let root = folder.path("clean");
    let mut host = FakeHost::new(&root);
    host.disk(&FakeDisk::named("sdx"));
    host.partition("sdx", 1, 2048, 1 << 20);
    root
}

fn check(root: &Path, flags: &[&str]) -> Ran {
    let mut args = vec!["check".into(), "--root".into(), root.as_os_str().to_owned()];
    args.extend(flags.iter().map(std::ffi::OsString::from));
    plumb(args)
}

/// The fields of a plugin's line, by the guidelines of the Monitoring Plugins: `NAME STATUS - text | label=value;;;min …`.
fn plugin_line(out: &str) -> (String, BTreeMap<String, u64>) {
    let line = out.strip_suffix('\n').expect("one line");
    assert!(!line.contains('\n'), "{out}");
    let (text, data) = line.split_once(" | ").expect("performance data");
    assert!(!data.contains('|'), "{out}");
    let (head, _) = text.split_once(" - ").expect("a status");
    let status = head.strip_prefix("PLUMB ").expect("the name");
    let data = data.split(' ').map(|field| {
        let (label, rest) = field.split_once('=').expect("a label");
        assert!(label.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        let parts: Vec<&str> = rest.split(';').collect();
        assert_eq!(
            (parts.len(), &parts[1..]),
            (4, &["", "", "0"][..]),
            "{field}"
        );
        (label.to_owned(), parts[0].parse().expect("a number"))
    });
    (status.to_owned(), data.collect())
}

#[test]
fn a_plugin_of_nagios() {
    let folder = Folder::new("check-as");
    let ran = check(&host(&folder), &["--as", "nagios"]);
    let (status, data) = plugin_line(&ran.out);
    assert_eq!((ran.code, status.as_str()), (1, "WARNING"));
    let number = |label: &str| data[label];
    assert_eq!((number("warnings"), number("critical")), (2, 0));
    assert_eq!((number("devices"), number("layers")), (2, 3));
    assert_eq!(
        (number("misaligned_layers"), number("unknown_layers")),
        (2, 0)
    );
    let ran = check(
        &host_again(&folder),
        &["--as", "nagios", "--ignore", "misaligned-partition"],
    );
    let (status, data) = plugin_line(&ran.out);
    assert_eq!((ran.code, status.as_str(), data["accepted"]), (0, "OK", 2));
}

/// The same host: building it twice in one place is refused.
fn host_again(folder: &Folder) -> PathBuf {
    folder.path("host")
}

/// Status 1 and 2 would be findings to a monitoring system: every failure is 3, and standard output says why.
#[test]
fn failures_of_a_plugin_are_unknown() {
    let folder = Folder::new("check-as");
    let root = clean(&folder);
    let (status, _) = plugin_line(&check(&root, &["--as", "nagios"]).ends(0).out);
    assert_eq!(status, "OK");
    for flags in [
        &["--as", "nagios", "--no-such-flag"][..],
        &["--as=nagios", "--grid", "4MB"],
        &["--as", "nagios", "--config", "/no/such/file"],
        &["--as", "nagios", "sdz"],
        &["--as", "nagios", "--ignore", "no-such-rule"],
    ] {
        let ran = check(&root, flags);
        ran.ends(3);
        assert!(
            ran.out.starts_with("PLUMB UNKNOWN - "),
            "{flags:?}: {}",
            ran.out
        );
        assert_eq!(ran.out.lines().count(), 1, "{flags:?}: {}", ran.out);
    }
    // Without it a mistake of the command line is 2 as ever.
    check(&root, &["--no-such-flag"]).ends(2);
    check(&root, &["--as", "csv", "--no-such-flag"]).ends(2);
}

/// Runs a Python script on the output, and reads the JSON that it prints.
fn python(script: &str, input: &str) -> Value {
    use std::io::Write;
    let mut child = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(input.as_bytes()).expect("it reads");
    drop(pipe);
    let done = plumb_testkit::wait::output("python3", plumb_testkit::wait::PATIENCE, child);
    assert!(done.status.success(), "python refuses:\n{input}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

#[test]
fn csv_as_python_reads_it() {
    require!(Tool("python3"));
    let folder = Folder::new("check-as");
    let ran = check(
        &host(&folder),
        &["--as", "csv", "--ignore", "misaligned-partition:sdy1"],
    );
    ran.ends(1);
    assert!(ran.out.ends_with("\r\n"));
    let script = "import csv,io,json,sys\n\
                  text=sys.stdin.buffer.read().decode()\n\
                  print(json.dumps(list(csv.DictReader(io.StringIO(text,newline=''),strict=True))))";
    let rows = python(script, &ran.out);
    let rows = rows.as_array().expect("rows");
    let states: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().expect("a cell");
            (text("device"), text("state"))
        })
        .collect();
    assert_eq!(states, [("sdx2", "open"), ("sdy1", "accepted")]);
    assert_eq!(rows[0]["rule"], "misaligned-partition");
    assert_eq!(rows[0].as_object().map(serde_json::Map::len), Some(9));
}

/// The shape that the schema of Apache Ant's JUnit task demands: attributes, their types, and the order of children.
const JUNIT: &str = r#"
import sys, json, re
import xml.etree.ElementTree as E
root = E.fromstring(sys.stdin.buffer.read())
assert root.tag == 'testsuites' and not root.attrib
[suite] = list(root)
assert suite.tag == 'testsuite'
need = {'name', 'timestamp', 'hostname', 'tests', 'failures', 'errors', 'time', 'package', 'id'}
assert need <= set(suite.attrib) <= need | {'skipped'}, suite.attrib
assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d', suite.get('timestamp')), suite.get('timestamp')
tags = [child.tag for child in suite]
cases = [child for child in suite if child.tag == 'testcase']
assert tags == ['properties'] + ['testcase'] * len(cases) + ['system-out', 'system-err'], tags
for one in suite[0]:
    assert one.tag == 'property' and set(one.attrib) == {'name', 'value'} and one.get('name')
ends = {}
for case in cases:
    assert set(case.attrib) == {'name', 'classname', 'time'}, case.attrib
    float(case.get('time'))
    assert len(case) <= 1
    tag = case[0].tag if len(case) else 'passed'
    if tag in ('failure', 'error'):
        assert 'type' in case[0].attrib and set(case[0].attrib) <= {'type', 'message'}
    ends.setdefault(tag, []).append(case.get('name'))
for key, tag in (('failures', 'failure'), ('errors', 'error'), ('skipped', 'skipped')):
    assert int(suite.get(key)) == len(ends.get(tag, [])), (key, ends)
assert int(suite.get('tests')) == len(cases)
print(json.dumps(ends))
"#;

#[test]
fn junit_as_python_reads_it() {
    require!(Tool("python3"));
    let folder = Folder::new("check-as");
    let root = host(&folder);
    let ran = check(
        &root,
        &["--as", "junit", "--ignore", "misaligned-partition:sdy1"],
    );
    let ends = python(JUNIT, &ran.ends(1).out);
    let expected = serde_json::json!({
        "failure": ["sdx2"], "skipped": ["sdy1"], "passed": ["sdx", "sdx1", "sdy"]
    });
    assert_eq!(ends, expected);
    // Misaligned layers without a finding of their own do not pass. By the dumps, d11 and d12 are on d1, a stripe of two
    // slices from sector 34 on.
    let dumps = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dumps");
    let dump = |name: &str| dumps.join(name).into_os_string();
    let mut args: Vec<std::ffi::OsString> =
        ["check", "--as", "junit", "--from"].map(Into::into).into();
    args.extend(["metastat-p.txt", "prtvtoc-c2t0d0.txt", "prtvtoc-c2t1d0.txt"].map(dump));
    let ends = python(JUNIT, &crate::common::plumb(args).ends(1).out);
    let passed = ends["passed"].to_string();
    for off in ["c2t0d0s0", "d1", "d11", "d12"] {
        assert!(
            !passed.contains(&format!("\"{off}\"")),
            "{off} passed: {ends}"
        );
    }
    // Below --fail-on nothing fails.
    let ran = check(&root, &["--as", "junit", "--fail-on", "critical"]);
    let ends = python(JUNIT, &ran.ends(0).out);
    assert_eq!(ends["failure"], Value::Null);
}

#[test]
fn metrics_of_prometheus() {
    let folder = Folder::new("check-as");
    let root = host(&folder);
    let file = folder.path("plumb.prom");
    let name = file.to_str().expect("a plain path");
    let flags = [
        "--as",
        "prometheus",
        "--output",
        name,
        "--ignore",
        "misaligned-partition:sdy1",
    ];
    let ran = check(&root, &flags);
    ran.ends(1);
    assert_eq!(ran.out, "");
    let text = std::fs::read_to_string(&file).expect("metrics");
    let series = exposition::series(&text);
    let of = |name: &str, labels: &[(&str, &str)]| exposition::sum(&series, name, labels);
    assert_eq!(of("plumb_check_verdict", &[("verdict", "MISFIT")]), 1.0);
    assert_eq!(of("plumb_check_verdict", &[]), 1.0);
    assert_eq!(of("plumb_check_findings", &[("severity", "warning")]), 1.0);
    assert_eq!(
        of(
            "plumb_check_finding",
            &[("state", "accepted"), ("device", "sdy1")]
        ),
        1.0
    );
    assert_eq!(
        of(
            "plumb_check_finding",
            &[("state", "open"), ("device", "sdx2")]
        ),
        1.0
    );
    assert_eq!(
        of("plumb_check_layers", &[("alignment", "misaligned")]),
        2.0
    );
    assert_eq!(of("plumb_check_layers", &[("kind", "partition")]), 3.0);
    assert_eq!(of("plumb_check_devices", &[]), 2.0);
    exposition::check_by_promtool(&text);
}

#[test]
fn a_table_of_markdown() {
    let folder = Folder::new("check-as");
    let ran = check(&host(&folder), &["--as", "markdown"]);
    ran.ends(1);
    let lines: Vec<&str> = ran.out.lines().collect();
    insta::assert_snapshot!(lines[..4].join("\n"));
    let rows = &lines[4..];
    assert_eq!(rows.len(), 2, "{}", ran.out);
    for row in rows {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 6, "{row}");
        assert!(row.contains("`misaligned-partition`"), "{row}");
    }
}

#[test]
fn formats_exclude_each_other() {
    let folder = Folder::new("check-as");
    let root = clean(&folder);
    check(&root, &["--as", "csv", "--json"]).ends(2);
    check(&root, &["--as", "csv", "-v"]).ends(2);
    check(&root, &["--output", "x"]).ends(2).complains("--as");
    check(&root, &["--as", "yaml"])
        .ends(2)
        .complains("prometheus");
}
