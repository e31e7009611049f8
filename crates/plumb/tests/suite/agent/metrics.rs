//! The metrics of an agent, against reads of a known number and place.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;
use crate::common::exposition::{self, Samples};

/// An agent on a loop device whose sectors have 512 bytes.
pub(super) struct Metered {
    pub(super) folder: Folder,
    pub(super) disk: LoopDevice,
    pub(super) service: Service,
    pub(super) address: SocketAddr,
}

impl Metered {
    pub(super) fn begin(name: &str) -> Metered {
        Metered::begin_in(Folder::new(name))
    }

    fn begin_in(folder: Folder) -> Metered {
        let image = folder.file("disk", vec![1; 8 << 20]);
        let disk = LoopDevice::attach_hidden(&image, &[]);
        let keys = "listen = \"127.0.0.1:0\"\njudge_every = \"2s\"\nexport = { folder = \"FOLDER/fleet\" }\n";
        let file = configured(&folder, keys);
        let service = Service::ready(&folder, &file);
        Metered {
            address: service.address(),
            folder,
            disk,
            service,
        }
    }

    /// Reads 4 KiB each at these bytes.
    fn read(&self, starts: impl Iterator<Item = u64>) {
        let mut reader = DirectReader::open(self.disk.path(), 4096);
        for start in starts {
            reader.read_at(start).expect("a read");
        }
    }

    pub(super) fn get(&self, path: &str, accept: &str) -> (String, String) {
        get(self.address, path, accept)
    }

    pub(super) fn series(&self) -> Samples {
        let (head, text) = self.get("/metrics", "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        exposition::check_by_promtool(&text);
        exposition::series(&text)
    }

    /// A counter of reads of the device.
    pub(super) fn reads(&self, series: &Samples, name: &str) -> f64 {
        let labels = [("device", self.disk.name()), ("op", "read".to_owned())];
        let labels = labels
            .each_ref()
            .map(|(label, text)| (*label, text.as_str()));
        exposition::sum(series, name, &labels)
    }

    /// The series once these reads are counted.
    pub(super) fn series_with(&self, reads: f64) -> Samples {
        let mut series = Samples::new();
        wait::until("the reads in the metrics", LIMIT, || {
            series = self.series();
            self.reads(&series, "plumb_ios_total") >= reads
        });
        series
    }
}

/// Header and body of the answer to a request.
pub fn get(address: SocketAddr, path: &str, accept: &str) -> (String, String) {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    answer(address, &request)
}

/// The same for the text of a request.
fn answer(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    stream.write_all(request.as_bytes()).expect("a reader");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("an answer");
    let (head, body) = response.split_once("\r\n\r\n").expect("a header");
    (head.to_owned(), body.to_owned())
}

/// A file system in memory, which is unmounted in any case.
pub(super) struct Mounted(PathBuf);

impl Mounted {
    /// Makes the folder, and mounts a file system of some MiB there.
    pub(super) fn mount(at: PathBuf, mib: u32) -> Mounted {
        fs::create_dir(&at).expect("room");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m,mode=0700")]);
        run(mount.arg("plumb-agent").arg(&at));
        Mounted(at)
    }

    /// Writes a file that takes all the room, and returns its path.
    pub(super) fn fill(&self) -> PathBuf {
        let filler = self.0.join("filler");
        let mut file = fs::File::create(&filler).expect("a file");
        while file.write_all(&[1; 4096]).is_ok() {}
        filler
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// An agent that starts without room for its history counts in memory, says so once, and stores everything once there is room.
#[test]
fn an_agent_without_room_counts() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("agent-full");
    let store = folder.path("store");
    let mounted = Mounted::mount(store.clone(), 16);
    let filler = mounted.fill();
    let metered = Metered::begin_in(folder);
    let (head, body) = metered.get("/healthz", "");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(body.starts_with(NOT_STORED), "{body}");
    metered.read((0..100).map(|number| number * 4096));
    let series = metered.series_with(100.0);
    assert_eq!(exposition::sum(&series, "plumb_history_stored", &[]), 0.0);
    fs::remove_file(&filler).expect("room again");
    let Metered { disk, service, .. } = metered;
    let said = service.end();
    let times = |words: &str| said.matches(words).count();
    assert_eq!(times(NOT_STORED), 1, "{said}");
    assert_eq!(times("stored again"), 1, "{said}");
    insta::assert_snapshot!(recorded_lines(&said, &["stored again"]));
    assert_eq!(stored(&store, &disk), 100);
    // The folder goes after its file system.
    drop(mounted);
}

#[test]
fn metrics_count_each_io() {
    require!(Bpf, Loop, Root, Tool("promtool"));
    let agent = Metered::begin("agent-metrics");
    // A disk has series before its first I/O, so that its counters begin at 0.
    let series = agent.series();
    assert_eq!(agent.reads(&series, "plumb_ios_total"), 0.0);
    let names = [("device", agent.disk.name())];
    let names = names
        .each_ref()
        .map(|(label, text)| (*label, text.as_str()));
    assert_eq!(exposition::sum(&series, "plumb_device_info", &names), 1.0);
    // 300 reads on the grid of 4 KiB touch one cell each, 200 off it two.
    agent.read((0..300).map(|number| number * 4096));
    agent.read((0..200).map(|number| number * 8192 + 512));
    let series = agent.series_with(500.0);
    let of = |name| agent.reads(&series, name);
    assert_eq!(of("plumb_ios_total"), 500.0);
    assert_eq!(of("plumb_io_bytes_total"), 500.0 * 4096.0);
    assert_eq!(of("plumb_ios_failed_total"), 0.0);
    assert_eq!(of("plumb_unfit_ios_total"), 200.0);
    assert_eq!(of("plumb_undecided_ios_total"), 0.0);
    assert_eq!(of("plumb_cells_touched_total"), 700.0);
    assert_eq!(of("plumb_cells_needed_total"), 500.0);
    // The completion of a few may be invisible to programs; each that was seen is in one bucket.
    let timed = of("plumb_io_latency_seconds_count");
    assert!((400.0..=500.0).contains(&timed), "{timed} timed");
    let bucket = |end: &str| {
        let name = agent.disk.name();
        let labels = [("device", name.as_str()), ("op", "read"), ("le", end)];
        exposition::sum(&series, "plumb_io_latency_seconds_bucket", &labels)
    };
    let ends = [
        "0.000016384",
        "0.001048576",
        "0.067108864",
        "17.179869184",
        "+Inf",
    ];
    let counts = ends.map(bucket);
    assert!(counts.is_sorted(), "{counts:?}");
    assert_eq!(counts[4], timed);
    let sum = of("plumb_io_latency_seconds_sum");
    assert!(sum > 0.0 && sum < 60.0, "{sum} s");
    let writes = [("device", agent.disk.name()), ("op", "write".to_owned())];
    let writes = writes
        .each_ref()
        .map(|(label, text)| (*label, text.as_str()));
    assert_eq!(exposition::sum(&series, "plumb_ios_total", &writes), 0.0);
    let device = agent.disk.name();
    let of_device = |labels: &BTreeMap<String, String>| labels.get("device") == Some(&device);
    let count = series
        .keys()
        .filter(|(_, labels)| of_device(labels))
        .count();
    assert!(count <= 60, "{count} series of a device");
    let layer = [("device", device.as_str()), ("layer", "request")];
    assert_eq!(exposition::sum(&series, "plumb_device_info", &layer), 1.0);
    assert!(exposition::sum(&series, "plumb_history_bytes", &[]) > 0.0);
    assert_eq!(exposition::sum(&series, "plumb_history_stored", &[]), 1.0);
    assert_eq!(
        exposition::sum(
            &series,
            "plumb_build_info",
            &[("version", env!("CARGO_PKG_VERSION"))]
        ),
        1.0
    );

    // The counters go on.
    agent.read((0..100).map(|number| number * 4096));
    let series = agent.series_with(600.0);
    assert_eq!(agent.reads(&series, "plumb_ios_total"), 600.0);
    assert_eq!(agent.reads(&series, "plumb_unfit_ios_total"), 200.0);
    agent.service.end();
}

#[test]
fn findings_are_metrics_while_they_are_present() {
    require!(Bpf, Loop, Root);
    let agent = Metered::begin("agent-metrics-findings");
    let device = agent.disk.name();
    let labels = [
        ("finding", "misaligned-io"),
        ("severity", "warning"),
        ("device", device.as_str()),
    ];
    let is_there = || exposition::sum(&agent.series(), "plumb_finding", &labels) == 1.0;
    assert!(!is_there());
    wait::until("the finding", LIMIT, || {
        agent.read((0..500).map(|number| number * 7919 % 1023 * 8192 + 512));
        is_there()
    });
    wait::until("its end", LIMIT, || {
        agent.read((0..500).map(|number| number * 7919 % 1023 * 8192));
        !is_there()
    });
    agent.service.end();
}

#[test]
fn other_formats_and_paths_are_answered() {
    require!(Bpf, Loop, Root);
    let agent = Metered::begin("agent-metrics-paths");
    let (head, text) = agent.get(
        "/metrics",
        "application/openmetrics-text;version=1.0.0,*/*;q=0.1",
    );
    let content = recorded_lines(&head, &["content-type: "]);
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    let families = recorded_lines(&text, &["TYPE plumb_ios "]);
    let (head, text) = agent.get("/healthz", "");
    assert!(
        head.starts_with("HTTP/1.1 200 ") && text == "ok\n",
        "{head}{text}"
    );
    let (head, text) = agent.get("/", "");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    insta::assert_snapshot!([content, families, without_lists(&text)].join("\n"));
    agent.service.end();
}

/// A port that another process has is no reason not to count.
#[test]
fn an_agent_without_its_port_counts() {
    require!(Bpf, Root);
    let folder = Folder::new("agent-metrics-port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let file = configured(&folder, &format!("listen = \"{address}\"\n"));
    let service = Service::ready(&folder, &file);
    let said = service.end().replace(&address.to_string(), "ADDRESS");
    insta::assert_snapshot!(recorded_lines(&said, &["no metrics"]));
}

/// An agent that gets a socket when somebody connects to it, as systemd starts it.
fn activated(folder: &Folder, listen: &str) -> (SocketAddr, Service) {
    let port = std::net::TcpListener::bind((listen, 0)).expect("a port");
    let address = port.local_addr().expect("an address");
    drop(port);
    let mut command = Command::new("systemd-socket-activate");
    command
        .args(["--listen", &address.to_string(), "--setenv=NOTIFY_SOCKET"])
        .arg(env!("CARGO_BIN_EXE_plumb"))
        .args(["agent", "--state-dir"])
        .arg(folder.path("store"));
    let service = Service::begin(folder, &mut command);
    let near = SocketAddr::from(([127, 0, 0, 1], address.port()));
    wait::until("a listener", LIMIT, || TcpStream::connect(near).is_ok());
    service.sends("READY=1");
    (address, service)
}

/// A service manager passes a socket, so the agent needs no right to open one.
#[test]
fn a_socket_of_the_service_manager_is_used() {
    require!(Bpf, Root, Tool("systemd-socket-activate"));
    let folder = Folder::new("agent-metrics-socket");
    let (address, service) = activated(&folder, "127.0.0.1");
    service.says(&format!("http://{address}/metrics"));
    let (head, _) = get(address, "/healthz", "");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    service.end();
}

/// An export without anything to do has succeeded: its time is that of this test.
#[test]
fn the_export_is_measured() {
    require!(Bpf, Loop, Root);
    let now = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("a clock").as_secs() as f64
    };
    let begun = now();
    let agent = Metered::begin("agent-export-metrics");
    let of = |name: &str| exposition::sum(&agent.series(), name, &[]);
    let last = "plumb_export_last_success_timestamp_seconds";
    wait::until("the first export", LIMIT, || of(last) >= begun);
    assert!(of(last) <= now());
    for name in [
        "plumb_export_objects_total",
        "plumb_export_failures_total",
        "plumb_export_spool_bytes",
    ] {
        assert!(
            agent.series().keys().any(|(family, _)| family == name),
            "{name}"
        );
        assert_eq!(of(name), 0.0, "{name}");
    }
    agent.service.end();
}

/// The agent answers the API beside its metrics.
#[test]
fn the_history_is_answered() {
    require!(Bpf, Loop, Root);
    let agent = Metered::begin("agent-api");
    let document = |path: &str, status: &str| -> serde_json::Value {
        let (head, body) = agent.get(path, "");
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{head}\n{body}"
        );
        serde_json::from_str(&body).expect("JSON")
    };
    let devices = document("/api/v1/devices", "200");
    let schema = crate::common::schema::Schema::read("api");
    assert_eq!(schema.faults(&devices), [""; 0]);
    assert_eq!(devices["result"]["kind"], "devices");
    let unknown = document("/api/v1/glance?device=no-such-disk", "404");
    assert_eq!(schema.faults(&unknown), [""; 0]);
    agent.service.end();
}

/// The windows of the last hour have each read once, at its time, also before the history has the device.
#[test]
fn the_last_hour_is_answered_in_windows_of_ten_seconds() {
    require!(Bpf, Loop, Root);
    let agent = Metered::begin("agent-recent");
    let name = agent.disk.name();
    let schema = crate::common::schema::Schema::read("api");
    let now = || humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let ask = |path: &str| -> serde_json::Value {
        let (head, body) = agent.get(path, "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}\n{body}");
        let document = serde_json::from_str(&body).expect("JSON");
        assert_eq!(schema.faults(&document), [""; 0], "{document}");
        document
    };
    // The second in which the agent began is not in the windows in whole.
    std::thread::sleep(Duration::from_secs(2));
    let begun = now();
    agent.read((0..509).map(|number| number * 8192 + 512));
    // Some seconds later: a window begins.
    std::thread::sleep(Duration::from_secs(11));
    agent.read((0..211).map(|number| number * 8192));
    let path = format!("/api/v1/glance?device={name}&tier=10s");
    let mut windows = Vec::new();
    let sum = |windows: &[serde_json::Value], column: &str| -> u64 {
        let counts = windows.iter().filter_map(|one| one[column].as_u64());
        counts.sum()
    };
    wait::until("the reads in the windows", LIMIT, || {
        // The agent does not know the device before its first reading with I/O.
        if agent.get(&path, "").0.starts_with("HTTP/1.1 404 ") {
            return false;
        }
        let document = ask(&path);
        let course = &document["result"]["is"][0];
        assert!(
            course.is_null() || course["window_seconds"] == 10,
            "{course}"
        );
        windows = course["windows"].as_array().cloned().unwrap_or_default();
        windows.extend(Some(course["open"].clone()).filter(|open| open.is_object()));
        // The agent reads counts and latencies one after the other, and I/O go on meanwhile.
        sum(&windows, "ios") >= 720 && sum(&windows, "timed") >= 720
    });
    for (column, expected) in [
        ("ios", 720),
        ("reads", 720),
        ("read_bytes", 720 * 4096),
        ("misaligned_4k", 509),
        ("timed", 720),
        ("writes", 0),
    ] {
        assert_eq!(sum(&windows, column), expected, "{column}: {windows:?}");
    }
    assert!(windows.len() > 1, "{windows:?}");
    for window in &windows {
        let from = window["from"].as_str().expect("a time");
        // Windows begin at multiples of 10 s: the first one is that of the first read.
        assert!(from.ends_with("0Z"), "{from}");
        assert!(
            from <= now().as_str() && from[..18] >= begun[..18],
            "{from}, {begun}"
        );
    }

    // A short time is answered with these windows, a long one with those of the history.
    let of = |from: &str| ask(&format!("/api/v1/glance?device={name}&from={from}"));
    let short = of(&begun);
    assert_eq!(short["result"]["is"][0]["window_seconds"], 10, "{short}");
    assert!(short["next"].is_null());
    let histograms = ask(&format!("/api/v1/histograms?device={name}&from={begun}"));
    let from = histograms["from"].as_str().expect("a time");
    assert!(from.ends_with("0Z") && from <= begun.as_str(), "{from}");
    let ops = &histograms["result"]["is"][0]["ops"];
    let sums = ["sizes", "device", "queue"].map(|of| {
        let buckets = ops[0][of].as_array().expect("buckets");
        sum(buckets, "ios")
    });
    assert_eq!(
        (&ops[0]["op"], &ops[0]["ios"]),
        (&"read".into(), &720.into())
    );
    assert_eq!(sums, [720; 3], "{ops}");
    wait::until("the device in the history", LIMIT, || {
        let path = format!("/api/v1/glance?device={name}&tier=5m");
        agent.get(&path, "").0.starts_with("HTTP/1.1 200 ")
    });
    let long = of("2020-01-01");
    assert_eq!(long["result"]["is"][0]["window_seconds"], 300, "{long}");
    let (head, _) = agent.get("/api/v1/glance?device=no-such-disk&tier=10s", "");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    agent.service.end();
}

/// A socket that other hosts reach is not served, and the agent counts all the same.
#[test]
fn a_socket_for_other_hosts_is_refused() {
    require!(Bpf, Root, Tool("systemd-socket-activate"));
    let folder = Folder::new("agent-metrics-open");
    let (address, service) = activated(&folder, "0.0.0.0");
    let said = service.end().replace(&address.to_string(), "ADDRESS");
    insta::assert_snapshot!(recorded_lines(&said, &["no metrics"]));
}

/// A file of `contrib/prometheus`.
pub fn contrib(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/prometheus");
    fs::read_to_string(folder.join(name)).expect("a file of contrib")
}

/// The scrape configuration for an agent on loopback.
fn scrape_of(agent: SocketAddr) -> String {
    let scrape = contrib("scrape.yml");
    assert!(scrape.contains("localhost:9974"), "{scrape}");
    scrape.replace("localhost:9974", &agent.to_string())
}

/// Debian's Prometheus with the rules of `contrib/`, their times shortened.
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: Folder,
}

impl Prometheus {
    pub fn begin(program: &Path, scrape: &str, args: &[&str]) -> Prometheus {
        let folder = Folder::new("agent-prometheus");
        let rules = contrib("rules.yml").replace("[15m]", "[20s]");
        let rules = rules
            .replace("for: 15m", "for: 1s")
            .replace("for: 10m", "for: 1s");
        folder.file("rules.yml", rules);
        let global =
            "global: { scrape_interval: 1s, evaluation_interval: 1s }\nrule_files: [rules.yml]\n";
        let configuration = folder.file("prometheus.yml", format!("{global}{scrape}"));
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = port.local_addr().expect("an address");
        drop(port);
        let child = Command::new(program)
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path("series").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .args(args)
            .stderr(fs::File::create(folder.path("log")).expect("room"))
            .spawn()
            .expect("Prometheus starts");
        let mut prometheus = Prometheus {
            child,
            address,
            _folder: folder,
        };
        wait::until_while_runs("Prometheus", LIMIT, &mut prometheus.child, || {
            let is_listening = TcpStream::connect(address).is_ok();
            is_listening && get(address, "/-/ready", "").0.starts_with("HTTP/1.1 200 ")
        });
        prometheus
    }

    /// The document of its API at this path.
    fn ask(&self, path: &str) -> serde_json::Value {
        // An answer of this version is not cut into chunks, however long it is.
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let (head, body) = answer(self.address, &request);
        assert!(head.starts_with("HTTP/1.0 200 "), "{head}\n{body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error} in {head}\n{body}"))
    }

    /// The series of an expression at the present time.
    fn query(&self, expression: &str) -> Vec<serde_json::Value> {
        let encoded: String = expression
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        let document = self.ask(&format!("/api/v1/query?query={encoded}"));
        document["data"]["result"]
            .as_array()
            .expect("series")
            .clone()
    }

    /// The value of an expression with one series.
    pub fn value(&self, expression: &str) -> Option<f64> {
        self.query(expression).first()?["value"][1]
            .as_str()?
            .parse()
            .ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        plumb_testkit::wait::stop(&mut self.child);
    }
}

/// With native histograms Prometheus asks for protobuf. Its counters and sums are those of the text, and its quantiles are in the wide
/// buckets of the text.
#[test]
fn prometheus_reads_native_histograms() {
    require!(Bpf, Loop, Root, Tool("prometheus"));
    let program = plumb_testkit::require::tool("prometheus").expect("asked for above");
    let agent = Metered::begin("agent-metrics-native");
    let device = agent.disk.name();
    let begun = std::time::Instant::now();
    agent.read((0..300).map(|number| number * 8192));
    let took = begun.elapsed().as_secs_f64();
    agent.series_with(300.0);
    let native = ["--enable-feature=native-histograms"];
    let scrape = scrape_of(agent.address);
    let (text, native) = (
        Prometheus::begin(&program, &scrape, &[]),
        Prometheus::begin(&program, &scrape, &native),
    );
    let labels = format!("{{device=\"{device}\",op=\"read\"}}");
    let latency = format!("plumb_io_latency_seconds{labels}");
    let of_native = |function: &str| native.value(&format!("{function}({latency})"));
    wait::until("the reads as a native histogram", LIMIT, || {
        of_native("histogram_count") == Some(300.0)
    });
    let of_text = |suffix: &str| text.value(&format!("plumb_io_latency_seconds_{suffix}{labels}"));
    wait::until("the reads in the text", LIMIT, || {
        of_text("count") == Some(300.0)
    });
    let (sum, sum_of_text) = (of_native("histogram_sum"), of_text("sum").expect("a sum"));
    let sum = sum.expect("a sum");
    assert!(
        (sum / sum_of_text - 1.0).abs() < 1e-9,
        "{sum}, {sum_of_text}"
    );
    // The reads have 4,096 bytes, the end of a bucket.
    let sizes = format!("plumb_io_size_bytes{labels}");
    let of_sizes = |function: &str| native.value(&format!("{function}, {sizes})"));
    assert_eq!(of_sizes("histogram_quantile(1"), Some(4096.0));
    assert_eq!(of_sizes("histogram_fraction(2048, 4096"), Some(1.0));
    assert_eq!(text.query(&sizes).len(), 0);
    // Each read waits between its making and its issue, and all of them no longer than the reads took.
    let queue = format!("plumb_io_queue_seconds{labels}");
    let of_queue = |function: &str| native.value(&format!("{function}({queue})"));
    assert_eq!(of_queue("histogram_count"), Some(300.0));
    let waited = of_queue("histogram_sum").expect("a sum");
    assert!(0.0 < waited && waited < took, "{waited} s of {took} s");
    assert_eq!(text.query(&queue).len(), 0);
    for family in ["plumb_ios_total", "plumb_io_bytes_total"] {
        let series = format!("{family}{labels}");
        assert_eq!(native.value(&series), text.value(&series), "{family}");
    }
    assert_eq!(native.query("plumb_build_info").len(), 1);

    let buckets = text.query(&format!("plumb_io_latency_seconds_bucket{labels}"));
    let number = |value: &serde_json::Value| -> f64 {
        value.as_str().expect("text").parse().expect("a number")
    };
    let mut buckets: Vec<(f64, f64)> = buckets
        .iter()
        .map(|one| (number(&one["metric"]["le"]), number(&one["value"][1])))
        .collect();
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    for share in [0.1, 0.5, 0.9] {
        let quantile = native.value(&format!("histogram_quantile({share}, {latency})"));
        let quantile = quantile.expect("a quantile");
        let end = buckets
            .iter()
            .position(|(_, below)| *below >= share * 300.0)
            .expect("a bucket");
        let begin = end.checked_sub(1).map_or(0.0, |before| buckets[before].0);
        // The native bucket of a latency near a boundary is an eighth of a power of two wide.
        let range = begin / 1.1..=buckets[end].0 * 1.1;
        assert!(
            range.contains(&quantile),
            "{share}: {quantile} in {range:?}"
        );
    }
}

/// Prometheus reads the metrics, and an alert fires while a load is off the grid.
#[test]
fn prometheus_reads_the_metrics_and_alerts() {
    require!(Bpf, Loop, Root, Tool("prometheus"));
    let program = plumb_testkit::require::tool("prometheus").expect("asked for above");
    let agent = Metered::begin("agent-metrics-alert");
    let device = agent.disk.name();
    agent.read((0..100).map(|number| number * 8192));
    agent.series_with(100.0);
    let prometheus = Prometheus::begin(&program, &scrape_of(agent.address), &[]);
    let ios = format!("plumb_ios_total{{device=\"{device}\",op=\"read\"}}");
    wait::until("the reads in Prometheus", LIMIT, || {
        prometheus.value(&ios) == Some(100.0)
    });
    let has_alert = || {
        let document = prometheus.ask("/api/v1/alerts");
        let alerts = document["data"]["alerts"]
            .as_array()
            .expect("a list")
            .clone();
        alerts.iter().any(|alert| {
            let labels = &alert["labels"];
            labels["alertname"] == "PlumbUnfitIo"
                && labels["device"] == device.as_str()
                && alert["state"] == "firing"
        })
    };
    assert!(!has_alert());
    wait::until("the alert", LIMIT, || {
        agent.read((0..100).map(|number| number * 8192 + 512));
        has_alert()
    });

    // The panels of the dashboard show this load.
    let text = include_str!("../../../../../contrib/grafana/plumb.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let expressions: Vec<&str> = targets
        .map(|target| target["expr"].as_str().expect("an expression"))
        .collect();
    assert!(expressions.len() > 8, "{expressions:?}");
    for expression in expressions {
        let ours = expression
            .replace("$__rate_interval", "20s")
            .replace("$device", &device)
            .replace("$instance", ".+")
            .replace("$job", "plumb");
        let is_finding = expression.starts_with("plumb_finding");
        wait::until(&ours, LIMIT, || {
            agent.read((0..100).map(|number| number * 8192 + 512));
            !prometheus.query(&ours).is_empty() || is_finding
        });
    }
    agent.service.end();
}

#[test]
fn the_alert_rules_hold_in_their_own_tests() {
    require!(Tool("promtool"));
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/prometheus");
    for args in [
        &["check", "rules", "rules.yml"][..],
        &["check", "config", "scrape.yml"],
        // The files of the certificate and of the token are on no other host.
        &["check", "config", "--syntax-only", "scrape-tls.yml"],
        &["test", "rules", "rules.test.yml"],
    ] {
        run(Command::new("promtool").args(args).current_dir(&contrib));
    }
}
