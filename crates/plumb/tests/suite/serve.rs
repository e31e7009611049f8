//! The HTTP API of `plumb serve`, for a history with known numbers: they equal those of `plumb history --json`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use plumb_history::{DeviceIncrement, FindingKey, FindingStep, Settings, Span, Writer};
use plumb_profile::Profile;
use plumb_testkit::wait;
use plumb_trace::Op;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::schema::Schema;
use crate::common::store::{BEGIN, DAY, HOUR, IDENTITY, SECOND, WINDOW, add_ios, empty, store};
use crate::common::{Folder, Ran, command, plumb};

mod access;

/// Windows of 5 minutes with I/O.
const WINDOWS: i64 = 30;

/// 71 reads of 4 KiB a sector past a page that take 100 µs, and 13 writes of 64 KiB that take 3 ms.
fn ios_of_window(name: &str) -> Profile {
    let mut profile = empty(name);
    add_ios(&mut profile, Op::Read, 71, (512, 4096), 100_000);
    add_ios(&mut profile, Op::Write, 13, (0, 65_536), 3_000_000);
    profile
}

/// A finding of `plumb analyze`, about the device sda.
fn finding(folder: &Folder) -> Value {
    // 200 reads a sector past a page, one each second.
    let line = |at: u64| {
        let ticks = (11_644_473_600 + at) * 10_000_000;
        format!("{ticks},host,0,Read,{},8192,1000\n", at * 81_920 + 512)
    };
    let trace = folder.file("trace.csv", (0..200).map(line).collect::<String>());
    let document = plumb(["analyze", "--json", &trace.display().to_string()]).json();
    let mut finding = document["findings"][0].clone();
    let members = finding.as_object_mut().expect("a finding");
    members.remove("summary");
    finding["target"]["device"] = json!("sda");
    finding
}

/// A history of two devices: sda was sdz before, and sdb has few I/O.
fn make(folder: &Path) -> Writer {
    std::fs::create_dir_all(folder).expect("room");
    let mut writer = Writer::open(folder, Settings::default()).expect("a store");
    for window in 0..WINDOWS {
        let name = if window == 0 { "sdz" } else { "sda" };
        store(
            &mut writer,
            IDENTITY,
            BEGIN + window * WINDOW,
            &ios_of_window(name),
        );
    }
    let mut few = empty("sdb");
    add_ios(&mut few, Op::Read, 5, (0, 512), 1_000);
    store(&mut writer, "serial b", BEGIN + 3 * WINDOW, &few);
    writer
        .checkpoint(BEGIN + WINDOWS * WINDOW)
        .expect("a checkpoint");
    writer
}

/// A running `plumb serve`.
struct Serving {
    child: Child,
    address: SocketAddr,
}

impl Serving {
    fn begin(args: &[&str]) -> Serving {
        let has_address = args.iter().any(|arg| arg.starts_with("--listen="));
        let address = (!has_address).then_some("--listen=127.0.0.1:0");
        let mut child = command()
            .arg("serve")
            .args(args)
            .args(address)
            .env("TZ", "UTC-2")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let line = wait::Lines::of("plumb serve", child.stderr.take().expect("a pipe")).next();
        let line = line.expect("a line");
        let address = line.trim().strip_suffix("/api/v1/devices");
        let address = address.and_then(|line| line.rsplit_once("://"));
        let address = address.unwrap_or_else(|| panic!("no address in {line}")).1;
        Serving {
            child,
            address: address.parse().expect("an address"),
        }
    }

    /// Header and body of the answer to the text of a request.
    fn answer(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        let limit = Some(wait::PATIENCE);
        stream.set_read_timeout(limit).expect("a limit");
        stream.write_all(request.as_bytes()).expect("a reader");
        let mut response = String::new();
        match stream.read_to_string(&mut response) {
            Ok(_) => {}
            // The server closed while bytes of the client were on their way.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("no answer: {error}"),
        }
        let (head, body) = response.split_once("\r\n\r\n").expect("a header");
        (head.to_owned(), body.to_owned())
    }

    /// Status and document of a path.
    fn ask(&self, path: &str) -> (u16, Value) {
        // A busy host takes longer than the budget of an answer.
        let mut answer = self.answer(&request(path, ""));
        wait::until("an answer in time", wait::PATIENCE, || {
            let is_late = answer.0.starts_with("HTTP/1.1 503 ");
            if is_late {
                answer = self.answer(&request(path, ""));
            }
            !is_late
        });
        let (head, body) = answer;
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        let document = serde_json::from_str(&body);
        let document = document.unwrap_or_else(|error| panic!("{path}: {error}: {head}\n{body}"));
        let faults = Schema::read("api").faults(&document);
        assert_eq!(faults, [""; 0], "{path}");
        (status.expect("a status"), document)
    }

    /// The document of a path.
    fn get(&self, path: &str) -> Value {
        let (status, document) = self.ask(path);
        assert_eq!(status, 200, "{path}: {document}");
        document
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        wait::stop(&mut self.child);
    }
}

fn request(path: &str, header: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n")
}

fn header<'h>(head: &'h str, name: &str) -> &'h str {
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    fields.find(|(field, _)| *field == name).expect(name).1
}

/// The answer of `plumb history` to the same question.
fn history(store: &Path, args: &[&str]) -> Value {
    let store = store.display().to_string();
    let ran: Ran = plumb([&["history"], args, &["--json", "--state-dir", &store]].concat());
    ran.ends(0).json()["result"].clone()
}

/// The finest windows of a span, as `plumb history export` prints them.
fn exported(store: &Path, span: &str) -> Value {
    let store = store.display().to_string();
    let ran = plumb([
        "history",
        "export",
        span,
        "--as",
        "json",
        "--state-dir",
        &store,
    ]);
    ran.ends(0).json()["result"].clone()
}

#[test]
fn answers_equal_those_of_history() {
    let folder = Folder::new("serve");
    let at = folder.path("store");
    drop(make(&at));
    let serving = Serving::begin(&[&at.display().to_string()]);

    let devices = serving.get("/api/v1/devices");
    assert_eq!(devices["result"], history(&at, &["list"]));
    let sda = &devices["result"]["is"][0];
    assert_eq!(sda["names"][0]["name"], "sdz");
    assert_eq!(sda["from"], "2026-11-01T00:00:00Z");

    for device in ["sda", "sdz", IDENTITY] {
        let glance = serving.get(&format!("/api/v1/glance?device={device}"));
        assert_eq!(glance["result"], exported(&at, device), "{device}");
        assert_eq!(glance["next"], Value::Null);
    }
    let glance = serving.get("/api/v1/glance?device=sda");
    let course = &glance["result"]["is"][0];
    let windows = course["windows"].as_array().expect("windows");
    let open = course["open"]["ios"].as_u64().unwrap_or(0);
    let sum: u64 = windows.iter().filter_map(|one| one["ios"].as_u64()).sum();
    assert_eq!(sum + open, 30 * 84);
    assert_eq!(windows[0]["misaligned_4k"], 71);

    // Half of an hour, whose ends are not those of windows.
    let span = "2026-11-01T00:31Z..2026-11-01T00:59Z";
    let (from, to) = span.split_once("..").expect("two times");
    let glance = serving.get(&format!("/api/v1/glance?device=sda&from={from}&to={to}"));
    assert_eq!(
        glance["result"],
        history(&at, &["show", &format!("sda@{span}")])
    );
    assert_eq!(glance["from"], "2026-11-01T00:30:00Z");
    assert_eq!(glance["to"], "2026-11-01T01:00:00Z");
    // The same time by the clock of this process, which is two hours ahead.
    let local = "from=2026-11-01T02:31&to=2026-11-01T02:59";
    assert_eq!(
        serving.get(&format!("/api/v1/glance?device=sda&{local}")),
        glance
    );
    let hours = serving.get("/api/v1/glance?device=sda&tier=1h");
    assert_eq!(hours["result"], history(&at, &["show", "sda"]));
    assert_eq!(hours["result"]["is"][0]["window_seconds"], 3600);
    assert_eq!(hours["result"]["is"][0]["windows"][0]["ios"], 12 * 84);

    let whole = "device=sda";
    let histograms = serving.get(&format!("/api/v1/histograms?{whole}"));
    // 100,000 ns are in the bucket from 24 · 2^12 on, 3,000,000 in that from 22 · 2^17 on.
    assert_eq!(
        histograms["result"]["is"][0]["ops"],
        json!([
            {
                "op": "read", "ios": 2130, "bytes": 2130 * 4096, "failed": 0, "timed": 2130,
                "sizes": [{"len_min_bytes": 2049, "len_max_bytes": 4096, "ios": 2130}],
                "device": [{"min_ns": 98_304, "max_ns": 102_399, "ios": 2130}],
                "queue": [],
            },
            {
                "op": "write", "ios": 390, "bytes": 390 * 65_536, "failed": 0, "timed": 390,
                "sizes": [{"len_min_bytes": 32_769, "len_max_bytes": 65_536, "ios": 390}],
                "device": [{"min_ns": 2_883_584, "max_ns": 3_014_655, "ios": 390}],
                "queue": [],
            },
        ])
    );
    let tables = serving.get(&format!("/api/v1/tables?{whole}"));
    let table = &tables["result"]["is"][0];
    assert_eq!(table["senders"], history(&at, &["senders", "sda"])["is"][0]);
    assert_eq!(table["senders"]["senders"][0]["ios"], 30 * 71);
    assert_eq!(
        table["rows"],
        json!([
            {
                "op": "read", "residue_bytes": 512, "len_bytes": 4096, "continues": false,
                "ios": 2130, "timed": 2130, "device_ns_sum": 2130 * 100_000,
            },
            {
                "op": "write", "residue_bytes": 0, "len_bytes": 65_536, "continues": false,
                "ios": 390, "timed": 390, "device_ns_sum": 390u64 * 3_000_000,
            },
        ])
    );
    assert_eq!(
        (&table["rows_total"], &table["untabled_ios"]),
        (&json!(2), &json!(0))
    );
    // The open window of the day has the latencies of each row; a closed hour has those of each length.
    assert_eq!(table["are_latencies_shared"], json!(false));
    let hour = "device=sda&from=2026-11-01T00:00Z&to=2026-11-01T01:00Z";
    let tables = serving.get(&format!("/api/v1/tables?{hour}"));
    let table = &tables["result"]["is"][0];
    assert_eq!(table["are_latencies_shared"], json!(true));
    let sums = [0, 1].map(|row| table["rows"][row]["device_ns_sum"].as_u64());
    assert_eq!(sums, [Some(12 * 71 * 100_000), Some(12 * 13 * 3_000_000)]);

    // A time without I/O has an answer, and it is empty.
    let empty = "device=sda&from=2027-01-01&to=2027-01-02";
    for path in ["histograms", "tables"] {
        let document = serving.get(&format!("/api/v1/{path}?{empty}"));
        assert_eq!(document["result"]["is"], json!([]));
        assert_eq!(document["from"], Value::Null);
    }
    let glance = serving.get(&format!("/api/v1/glance?{empty}"));
    assert_eq!(glance["result"]["is"][0]["windows"], json!([]));
}

#[test]
fn findings_are_cut_and_go_on() {
    let folder = Folder::new("serve-findings");
    let at = folder.path("store");
    let finding = finding(&folder);
    let mut writer = make(&at);
    for number in 0..250 {
        let key = FindingKey {
            rule: "misaligned-io".to_owned(),
            place: format!("place {number}"),
        };
        let step = FindingStep::Found {
            severity: "warning".to_owned(),
            facts: finding.to_string(),
        };
        writer.note_finding(BEGIN + i64::from(number) * SECOND, key.clone(), step);
        if number < 100 {
            writer.note_finding(BEGIN + HOUR, key, FindingStep::Gone);
        }
    }
    writer.checkpoint(BEGIN + 3 * HOUR).expect("a checkpoint");
    let serving = Serving::begin(&["--state-dir", &at.display().to_string()]);
    let all = history(&at, &["findings"])["is"].clone();
    let all = all.as_array().expect("findings");
    assert_eq!(all.len(), 250);
    for question in ["", "?device=sda"] {
        let first = serving.get(&format!("/api/v1/findings{question}"));
        let next = first["next"].as_str().expect("a link");
        let second = serving.get(next);
        let mut found = first["result"]["is"].as_array().expect("findings").clone();
        assert_eq!(found.len(), 200);
        found.extend(second["result"]["is"].as_array().expect("findings").clone());
        assert_eq!(&found, all);
        assert_eq!(second["next"], Value::Null);
    }
    let counted = |question: &str| {
        let document = serving.get(&format!("/api/v1/findings?{question}"));
        document["result"]["is"].as_array().map(Vec::len)
    };
    // 100 of them went after an hour.
    assert_eq!(counted("from=2026-11-01T01:00Z"), Some(150));
    assert_eq!(counted("to=2026-11-01T00:00:10Z"), Some(10));
    assert_eq!(counted("device=sdb"), Some(0));
}

/// Long answers are cut, and their links lead to all of the rest.
#[test]
fn long_answers_are_cut() {
    let folder = Folder::new("serve-limits");
    let at = folder.path("store");
    std::fs::create_dir(&at).expect("room");
    let mut settings = Settings::default();
    settings.tiers[0].keep_ns = 60 * DAY;
    let mut writer = Writer::open(&at, settings).expect("a store");
    // 2,000 windows of 5 minutes are not quite 7 days.
    for day in 0..20 {
        store(
            &mut writer,
            IDENTITY,
            BEGIN + day * DAY,
            &ios_of_window("sda"),
        );
    }
    // The last window is open, and keeps each row.
    let mut many = empty("sda");
    for residue in 0..1500 {
        add_ios(&mut many, Op::Read, 1, (residue * 512, 4096), 100_000);
    }
    let span = Span {
        from_ns: BEGIN + 20 * DAY,
        to_ns: BEGIN + 20 * DAY + SECOND,
    };
    let increment = DeviceIncrement {
        identity: IDENTITY,
        name: "sda",
        profile: &many,
        senders: None,
    };
    writer.add(span, &increment).expect("an increment");
    writer.checkpoint(span.to_ns).expect("a checkpoint");
    drop(writer);
    let serving = Serving::begin(&[&at.display().to_string()]);

    let first = serving.get("/api/v1/glance?device=sda");
    assert_eq!(first["next"], Value::Null);
    assert_eq!(first["result"]["is"][0]["window_seconds"], 3600);
    let (mut next, mut ios, mut pages) = ("/api/v1/glance?device=sda&tier=5m".to_owned(), 0, 0);
    loop {
        let document = serving.get(&next);
        let course = &document["result"]["is"][0];
        let windows = course["windows"].as_array().expect("windows").iter();
        ios += windows.filter_map(|one| one["ios"].as_u64()).sum::<u64>();
        ios += course["open"]["ios"].as_u64().unwrap_or(0);
        pages += 1;
        match document["next"].as_str() {
            Some(link) => next = link.to_owned(),
            None => break,
        }
    }
    // 5,761 windows, the open one included.
    assert_eq!((ios, pages), (20 * 84 + 1500, 3));

    let open = "device=sda&from=2026-11-21T00:00Z";
    let first = serving.get(&format!("/api/v1/tables?{open}"));
    let second = serving.get(first["next"].as_str().expect("a link"));
    let rows = |document: &Value| document["result"]["is"][0]["rows"].as_array().map(Vec::len);
    assert_eq!((rows(&first), rows(&second)), (Some(1000), Some(500)));
    assert_eq!(first["result"]["is"][0]["rows_total"], 1500);
    assert_eq!(second["next"], Value::Null);
}

#[test]
fn bad_requests_are_named() {
    let folder = Folder::new("serve-bad");
    let at = folder.path("store");
    drop(make(&at));
    let serving = Serving::begin(&[&at.display().to_string()]);
    let long = format!("/api/v1/glance?device={}", "x".repeat(3000));
    for (path, status, place, found, expected) in [
        (
            "/api/v1/devices?x=1",
            400,
            "query",
            "parameter `x`",
            "no parameter",
        ),
        (
            "/api/v1/glance?divice=sda",
            400,
            "query",
            "parameter `divice`",
            "one of device, from, to, tier",
        ),
        (
            "/api/v1/glance",
            400,
            "parameter `device`",
            "",
            "a name or an identity",
        ),
        (
            "/api/v1/glance?device=sda&device=sdb",
            400,
            "parameter `device`",
            "sdb",
            "once",
        ),
        (
            "/api/v1/glance?device=%zz",
            400,
            "parameter `device`",
            "%zz",
            "hexadecimal",
        ),
        (
            "/api/v1/glance?device=%00",
            400,
            "parameter `device`",
            "\\0",
            "control characters",
        ),
        (
            "/api/v1/glance?device=%ff",
            400,
            "parameter `device`",
            "%ff",
            "UTF-8",
        ),
        (
            "/api/v1/glance?device=sdx",
            404,
            "parameter `device`",
            "sdx",
            "one of sda, sdb",
        ),
        (
            "/api/v1/findings?device=sdx",
            404,
            "parameter `device`",
            "sdx",
            "one of sda, sdb",
        ),
        (
            &long,
            404,
            "parameter `device`",
            &"x".repeat(80),
            "one of sda, sdb",
        ),
        (
            "/api/v1/glance?device=sda&tier=1m",
            400,
            "parameter `tier`",
            "1m",
            "5m, 1h or 1d",
        ),
        (
            "/api/v1/glance?device=sda&tier=10s",
            400,
            "parameter `tier`",
            "10s",
            "5m, 1h or 1d: windows of 10 s are in the memory of an agent",
        ),
        (
            "/api/v1/tables?device=sda&skip=-1",
            400,
            "parameter `skip`",
            "-1",
            "whole number",
        ),
        (
            "/api/v1/histograms?device=sda&from=monday",
            400,
            "parameter `from`",
            "monday",
            "2026-11-01T08:00",
        ),
        (
            "/api/v1/tables?device=sda&from=2026-11-02&to=2026-11-01",
            400,
            "parameter `from`",
            "2026-11-02",
            "a time before `to`",
        ),
        (
            "/api/v1/findings?from=2026-11-01&to=2026-11-01",
            400,
            "parameter `from`",
            "2026-11-01",
            "a time before `to`",
        ),
        (
            "/api/v1/stack",
            404,
            "/api/v1/stack",
            "without an agent",
            "a request to the agent",
        ),
    ] {
        let (found_status, document) = serving.ask(path);
        let error = &document["error"];
        assert_eq!(found_status, status, "{path}: {document}");
        assert_eq!(error["place"], place, "{path}");
        let words = |of: &str| error[of].as_str().unwrap_or_default().to_owned();
        assert!(words("found").contains(found), "{path}: {document}");
        assert!(words("expected").contains(expected), "{path}: {document}");
    }
    for (request_text, status) in [
        (request("/metrics", ""), "404"),
        (request("/api/v1/", ""), "404"),
        (request("/healthz", ""), "200"),
        (
            request("/api/v1/devices", &format!("X: {}\r\n", "x".repeat(20_000))),
            "431",
        ),
        (
            request("/api/v1/devices", "").replace("localhost", "evil.example"),
            "421",
        ),
        (request("/api/v1/devices", "").replace("GET", "POST"), "405"),
    ] {
        let (head, body) = serving.answer(&request_text);
        assert_eq!(head.get(9..12), Some(status), "{head}\n{body}");
    }
}

#[test]
fn an_answer_that_is_known_is_not_sent_again() {
    let folder = Folder::new("serve-tag");
    let at = folder.path("store");
    let mut writer = make(&at);
    let serving = Serving::begin(&[&at.display().to_string()]);
    let path = "/api/v1/glance?device=sda";
    let (head, whole) = serving.answer(&request(path, ""));
    let tag = header(&head, "etag").to_owned();
    let known = request(path, &format!("If-None-Match: {tag}\r\n"));
    let (head, body) = serving.answer(&known);
    assert_eq!((head.get(9..12), body.as_str()), (Some("304"), ""));
    let (head, body) = serving.answer(&request(path, "").replace("GET", "HEAD"));
    assert_eq!((head.get(9..12), body.as_str()), (Some("200"), ""));
    assert_eq!(header(&head, "content-length"), whole.len().to_string());
    // The agent has stored more meanwhile.
    store(
        &mut writer,
        IDENTITY,
        BEGIN + WINDOWS * WINDOW,
        &ios_of_window("sda"),
    );
    let (head, body) = serving.answer(&known);
    assert_eq!(head.get(9..12), Some("200"));
    assert_ne!(body, whole);
}

/// A copy that nobody may write is served, by a process without the rights of root, and stays as it is.
#[test]
fn a_copy_that_nobody_may_write_is_served() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("serve-copy");
    let (at, copy) = (folder.path("store"), folder.path("copy"));
    drop(make(&at));
    std::fs::create_dir(&copy).expect("room");
    let to = copy.display().to_string();
    let from = at.display().to_string();
    plumb(["history", "backup", &to, "--state-dir", &from]).ends(0);
    let names = || {
        let entries = std::fs::read_dir(&copy).expect("a folder");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("a file").file_name())
            .collect();
        names.sort();
        names
    };
    let before = names();
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&copy, mode).expect("an owner");
    };
    mode(0o500);
    let serving = Serving::begin(&[&to]);
    let glance = serving.get("/api/v1/glance?device=sda");
    drop(serving);
    mode(0o700);
    assert_eq!(glance["result"], exported(&at, "sda"));
    assert_eq!(names(), before);
}

#[test]
fn the_command_names_its_mistakes_and_ends_by_a_signal() {
    let folder = Folder::new("serve-command");
    let at = folder.path("store");
    let mut messages = vec![
        plumb(["serve", &at.display().to_string()])
            .ends(5)
            .complaint(),
    ];
    drop(make(&at));
    let to = at.display().to_string();
    for open in ["0.0.0.0:9975", "192.0.2.1:9975", "[::]:0", "localhost:1"] {
        messages.push(plumb(["serve", &to, "--listen", open]).ends(2).complaint());
    }
    plumb(["serve", &to, "--state-dir", &to]).ends(2);
    let mut serving = Serving::begin(&[&to]);
    let address = serving.address.to_string();
    let taken = plumb(["serve", &to, "--listen", &address]);
    messages.push(taken.ends(5).complaint().replace(&address, "ADDRESS"));
    insta::assert_snapshot!(messages.join("\n\n"));
    let pid = Pid::from_child(&serving.child);
    kill_process(pid, Signal::TERM).expect("a process");
    let status = wait::exit("plumb serve", wait::PATIENCE, &mut serving.child);
    assert_eq!(status.code(), Some(0));
}
