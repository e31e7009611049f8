//! Recordings that the agent triggers, and the helper that makes them.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;

use plumb_testkit::loop_device::Mounted;
use plumb_testkit::slow_disk::SlowDisk;

use super::metrics::get;
use super::*;
use crate::common::{analyze, exposition};

/// A name that the agent gives, for tests that do not depend on the time.
const FILE: &str = "plumb-20261129T230507Z-misfit";

/// Reads of a known place and number.
struct Load<'a> {
    reader: DirectReader,
    service: &'a Service,
}

impl<'a> Load<'a> {
    fn of(disk: &LoopDevice, service: &'a Service) -> Load<'a> {
        Load {
            reader: DirectReader::open(disk.path(), 4096),
            service,
        }
    }

    /// Reads of 4 KiB in random order, this far past a page.
    fn read(&mut self, count: u64, past: u64) {
        for number in 0..count {
            let at = number * 7919 % 2039 * 4096 + past;
            self.reader.read_at(at).expect("a read");
        }
    }

    /// Reads until the agent says these words.
    fn read_until(&mut self, past: u64, words: &str) {
        wait::until(words, LIMIT, || {
            self.read(100, past);
            std::thread::sleep(Duration::from_millis(50));
            self.service.said().contains(words)
        });
    }
}

/// The children of a process.
fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let text = text.unwrap_or_default();
    let numbers = text.split_whitespace();
    numbers.map(|one| one.parse().expect("a number")).collect()
}

/// The helper of an agent, which has no other child.
fn helper_of(service: &Service) -> u32 {
    let mut all = Vec::new();
    wait::until("the helper", LIMIT, || {
        all = children(service.child.id());
        !all.is_empty()
    });
    let [helper] = all[..] else {
        panic!("one child: {all:?}");
    };
    // It has left the rights of a common process when it filters system calls.
    wait::until("the filter of the helper", LIMIT, || {
        status(helper, "Seccomp:") == "2"
    });
    helper
}

/// A field of the status of a process.
fn status(pid: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap_or_default().trim().to_owned()
}

fn is_there(pid: u32) -> bool {
    // One that nobody waits for stays as a zombie.
    !matches!(status(pid, "State:").chars().next(), None | Some('Z'))
}

/// The file that a line of the log names behind these words.
fn file_behind(said: &str, words: &str) -> PathBuf {
    let line = said.lines().find_map(|line| line.split_once(words));
    let (_, rest) = line.unwrap_or_else(|| panic!("no {words:?} in {said}"));
    let (path, _) = rest.split_once(": ").expect("the end of a path");
    PathBuf::from(path)
}

fn address_of(service: &Service) -> std::net::SocketAddr {
    let said = service.said();
    let address = file_behind(&said.replace("/metrics", ": "), "metrics at http://");
    let address = address.display().to_string();
    address.parse().expect("an address")
}

/// The counts of recordings in the metrics: made, refused, failed.
fn counts(service: &Service) -> [f64; 3] {
    let (_, text) = get(address_of(service), "/metrics", "");
    exposition::check_by_promtool(&text);
    let series = exposition::series(&text);
    ["made", "refused", "failed"]
        .map(|result| exposition::sum(&series, "plumb_recordings_total", &[("result", result)]))
}

fn wait_for_counts(service: &Service, expected: [f64; 3]) {
    wait::until("the counts of recordings", LIMIT, || {
        counts(service) == expected
    });
}

/// The agent has the rights of its unit. A misfit above the line makes one recording, which has exactly the I/O of its time; a second
/// trigger within the pause makes none, also after a start. Finding, notification and metrics tell of it.
#[test]
fn a_misfit_is_recorded_once() {
    require!(Bpf, Loop, Root, Tool("setpriv"));
    let folder = Folder::new("agent-misfit");
    let image = folder.file("disk", vec![1; 16 << 20]);
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let keys = format!(
        "listen = \"127.0.0.1:0\"\njudge_every = \"1s\"\nrecord_misfit = \"20%\"\nrecord_devices = [\"{}\"]\nrecord_duration = \"12s\"\n\
         command = [\"/bin/sh\", \"-c\", \"cat >>FOLDER/got; echo $PLUMB_RULE $PLUMB_RECORDING >>FOLDER/words\"]\n",
        disk.name()
    );
    let file = configured(&folder, &keys);
    fs::create_dir(folder.path("store")).expect("room");
    let nobody = Some(65_534);
    for path in [folder.path(""), folder.path("store")] {
        std::os::unix::fs::chown(&path, nobody, nobody).expect("root may");
    }
    let program = folder.path("plumb");
    copy_program(&program);
    let begin = || {
        // Each start has a socket of its own.
        let of_service = Folder::new("agent-misfit-service");
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .args(["--no-new-privs", "--inh-caps=-all,+bpf,+perfmon"])
            .args(["--ambient-caps=-all,+bpf,+perfmon"])
            .arg("--bounding-set=-all,+bpf,+perfmon")
            .arg(&program)
            .args(["agent", "--config"])
            .arg(&file);
        let service = Service::begin(&of_service, &mut command);
        for path in [of_service.path(""), of_service.path("notify")] {
            std::os::unix::fs::chown(&path, nobody, nobody).expect("root may");
        }
        service.says(COUNTS);
        service.says("http://");
        await_programs(service.child.id());
        (service, of_service)
    };
    let (service, _of_service) = begin();
    let helper = helper_of(&service);
    // CAP_PERFMON and CAP_BPF have the numbers 38 and 39.
    let (two, none) = ("000000c000000000", "0000000000000000");
    for (field, expected) in [
        ("CapInh:", none),
        ("CapPrm:", two),
        ("CapEff:", two),
        ("CapBnd:", two),
        ("CapAmb:", none),
        ("NoNewPrivs:", "1"),
        ("Uid:", "65534\t65534\t65534\t65534"),
    ] {
        assert_eq!(status(helper, field), expected, "{field}");
    }
    assert_eq!(status(service.child.id(), "CapEff:"), none);

    let mut load = Load::of(&disk, &service);
    load.read(1009, 0);
    std::thread::sleep(Duration::from_secs(3));
    assert!(!service.said().contains("recording "), "{}", service.said());
    load.read_until(512, &format!("recording {} for 12 s", disk.name()));
    // Reads before this moment are not recorded: the programs are not attached yet.
    await_programs(helper);
    load.read(997, 512);
    service.says(&format!("recorded {} into ", disk.name()));
    let said = service.said();
    let path = file_behind(&said, &format!("recorded {} into ", disk.name()));
    let line = said.lines().find(|line| line.starts_with("recorded "));
    let line = line.expect("the line");
    assert!(line.contains(": 997 I/O in "), "{line}");
    let (_, end) = line.rsplit_once(" I/O in ").expect("its bytes");
    let (_, end) = end.split_once(", ").expect("the lost I/O");
    let (end, _) = end.split_once(" See: ").expect("a command");
    insta::assert_snapshot!(recorded(end));
    let document = analyze(&path, "--json").json();
    let profiles = document["result"]["profiles"].as_array().expect("profiles");
    let [profile] = &profiles[..] else {
        panic!("one device: {profiles:?}");
    };
    assert_eq!(profile["target"]["device"], disk.name().as_str());
    assert_eq!(profile["ios"], 997);
    let findings = document["findings"].as_array().expect("findings");
    assert!(
        findings.iter().any(|one| one["rule"] == "misaligned-io"),
        "{findings:?}"
    );
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    let made = path.parent().expect("a folder");
    assert_eq!((mode(&path), mode(made)), (0o600, 0o700));
    assert_eq!(made, folder.path("store/recordings"));
    assert_eq!(fs::read_dir(made).expect("the folder").count(), 1);

    // Below the line, and above it again.
    let refused = format!("no recording of {}: ", disk.name());
    load.read(1009, 0);
    std::thread::sleep(Duration::from_secs(3));
    load.read_until(512, &refused);
    wait_for_counts(&service, [1.0, 1.0, 0.0]);
    let said = service.end();
    assert!(said.contains("(record_pause)"), "{said}");
    assert_eq!(said.matches(&refused).count(), 1, "{said}");

    // The receivers of notifications get the file.
    let got = fs::read_to_string(folder.path("got")).expect("the command's file");
    let schema = Schema::read("finding-change");
    let documents = got.lines().map(|line| {
        let document: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(schema.faults(&document), Vec::<String>::new());
        document
    });
    let is_of_disk = |document: &serde_json::Value| {
        let finding = &document["finding"];
        finding["rule"] == "misaligned-io" && finding["target"]["device"] == disk.name().as_str()
    };
    let first = documents.clone().find(is_of_disk).expect("a notification");
    let recording = first["recording"].as_str().expect("a file");
    assert_eq!(Path::new(recording), path);
    assert!(
        documents
            .filter(|one| !is_of_disk(one))
            .all(|one| one["recording"].is_null())
    );
    let words = fs::read_to_string(folder.path("words")).expect("the command's file");
    let line = format!("misaligned-io {}\n", path.display());
    assert!(words.contains(&line), "{words}");

    // The pause is that of the files, so that an agent that starts again and again does not record each time.
    let (service, _of_service) = begin();
    Load::of(&disk, &service).read_until(512, &refused);
    wait_for_counts(&service, [0.0, 1.0, 0.0]);
    service.end();
}

/// A disk of 30 ms crosses a line of 20 ms, and its recording has these latencies.
#[test]
fn a_slow_disk_is_recorded() {
    require!(Bpf, Loop, Root, Tool("nbdkit"), Tool("nbdfuse"));
    let server = SlowDisk::new(16 << 20, "30ms");
    let disk = LoopDevice::attach_hidden(server.path(), &[]);
    let folder = Folder::new("agent-slow");
    let keys = format!(
        "record_p99 = \"20ms\"\nrecord_devices = [\"{}\"]\nrecord_duration = \"4s\"\n",
        disk.name()
    );
    let service = Service::ready(&folder, &configured(&folder, &keys));
    let words = format!("recorded {} into ", disk.name());
    std::thread::scope(|scope| {
        let is_over = Arc::<AtomicBool>::default();
        for _ in 0..8 {
            let is_over = Arc::clone(&is_over);
            let path = disk.path();
            scope.spawn(move || {
                let mut reader = DirectReader::open(path, 4096);
                for number in 0u64.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    reader.read_at(number * 7919 % 4093 * 4096).expect("a read");
                }
            });
        }
        let begin = std::time::Instant::now();
        while !service.said().contains(&words) && begin.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(100));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let said = service.end();
    let path = file_behind(&said, &words);
    let name = path.file_name().and_then(|name| name.to_str());
    let end = format!("-p99-{}.parquet", disk.name());
    assert!(name.is_some_and(|name| name.ends_with(&end)), "{path:?}");
    let document = analyze(&path, "--json").json();
    let profile = &document["result"]["profiles"][0];
    let (ios, p50_ns) = (&profile["ios"], &profile["ops"][0]["device"]["p50_ns"]);
    assert!(ios.as_u64().is_some_and(|ios| ios > 100), "{ios}");
    // The server waits for 30 ms before each answer.
    assert!(
        p50_ns.as_u64().is_some_and(|ns| ns >= 29_000_000),
        "{profile}"
    );
}

/// Without a line there is no helper, and a line that comes later needs a start.
#[test]
fn no_line_no_helper() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("agent-no-line");
    let file = configured(&folder, "");
    let service = Service::ready(&folder, &file);
    assert_eq!(children(service.child.id()).len(), 0);
    configured(&folder, "record_p99 = \"50ms\"\n");
    service.signal(Signal::HUP);
    service.says("record_p99, record_misfit: ");
    assert_eq!(children(service.child.id()).len(), 0);
    let said = service.end();
    assert!(!folder.path("store/recordings").exists(), "{said}");
    insta::assert_snapshot!(recorded_lines(&said, &["record_"]));
}

/// A helper that is killed ends the recordings, and nothing else.
#[test]
fn an_agent_without_its_helper_counts() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("agent-no-helper");
    let image = folder.file("disk", vec![1; 16 << 20]);
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let keys = format!(
        "listen = \"127.0.0.1:0\"\nrecord_misfit = \"20%\"\nrecord_devices = [\"{}\"]\n",
        disk.name()
    );
    let service = Service::ready(&folder, &configured(&folder, &keys));
    let mut load = Load::of(&disk, &service);
    let helper = Pid::from_raw(helper_of(&service).cast_signed()).expect("a process");
    kill_process(helper, Signal::KILL).expect("it runs");
    service.says("SIGKILL");
    load.read(307, 512);
    wait_for_counts(&service, [0.0, 0.0, 1.0]);
    let said = service.end();
    let refused = recorded_lines(&said, &["no recording of "]);
    let (_, why) = refused.split_once(", but ").expect("a reason");
    let ended = recorded_lines(&said, &["SIGKILL"]);
    insta::assert_snapshot!([&ended, why].join("\n"));
    assert_eq!(stored(&folder.path("store"), &disk), 307);
}

/// The end of the agent ends the helper and the recording, which is a whole file: SIGTERM, and a kill.
#[test]
fn the_helper_ends_with_the_agent() {
    require!(Bpf, Loop, Root);
    for signal in [Signal::TERM, Signal::KILL] {
        let folder = Folder::new("agent-ends");
        let image = folder.file("disk", vec![1; 16 << 20]);
        let disk = LoopDevice::attach_hidden(&image, &[]);
        let keys = format!(
            "record_misfit = \"20%\"\nrecord_devices = [\"{}\"]\nrecord_duration = \"10m\"\n",
            disk.name()
        );
        let service = Service::ready(&folder, &configured(&folder, &keys));
        let helper = helper_of(&service);
        // A service manager signals all processes of the unit.
        let pid = Pid::from_raw(helper.cast_signed()).expect("a process");
        kill_process(pid, Signal::TERM).expect("it runs");
        let mut load = Load::of(&disk, &service);
        let words = format!("recording {} for 600 s into ", disk.name());
        load.read_until(512, &words);
        await_programs(helper);
        load.read(499, 512);
        let path = file_behind(&service.said(), &words);
        assert!(!path.exists(), "a file that is not whole");
        if signal == Signal::TERM {
            let said = service.end();
            assert!(said.contains(": 499 I/O in "), "{said}");
        } else {
            service.signal(signal);
        }
        wait::until("the end of the helper", LIMIT, || !is_there(helper));
        let document = analyze(&path, "--json").json();
        assert_eq!(document["result"]["profiles"][0]["ios"], 499, "{signal:?}");
    }
}

/// A helper without an agent, on a socket of the test.
struct Helper {
    child: Child,
    requests: Option<UnixStream>,
    answers: BufReader<UnixStream>,
}

impl Helper {
    fn begin(folder: &Path, bytes_max: u64) -> Helper {
        let (socket, of_child) = UnixStream::pair().expect("sockets");
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        let child = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .arg("__record-devices")
            .arg(folder)
            .arg(bytes_max.to_string())
            .stdin(OwnedFd::from(of_child))
            .spawn()
            .expect("it starts");
        Helper {
            child,
            answers: BufReader::new(socket.try_clone().expect("a socket")),
            requests: Some(socket),
        }
    }

    fn send(&mut self, request: &str) {
        let requests = self.requests.as_mut().expect("a socket");
        requests.write_all(request.as_bytes()).expect("a reader");
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        line
    }

    fn ask(&mut self, request: &str) -> String {
        self.send(request);
        self.answer()
    }

    /// Closes the socket.
    fn end(mut self) {
        let socket = self.requests.take().expect("a socket");
        socket.shutdown(std::net::Shutdown::Both).expect("open");
        let ended = wait::exit("the helper", LIMIT, &mut self.child);
        assert!(ended.success(), "{ended}");
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The helper trusts the agent in the choice of a device and a time alone.
#[test]
fn the_helper_refuses_other_requests() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("helper-requests");
    let recordings = folder.path("recordings");
    let mut helper = Helper::begin(&recordings, 64 << 20);
    assert_eq!(helper.answer(), "ready\n");
    let refused = [
        "exec /bin/sh".to_owned(),
        "record 1000 /etc/passwd loop0".to_owned(),
        format!("record 1000 ../{FILE}-loop0.parquet loop0"),
        format!("record 1000 {FILE}-loop0.parquet /dev/loop0"),
        format!("record 600001 {FILE}-loop0.parquet loop0"),
        format!("record 1000 {FILE}-loop0.parquet loop1"),
    ];
    let mut answers = refused
        .map(|request| helper.ask(&format!("{request}\n")))
        .to_vec();
    // A device that has gone away meanwhile.
    let answer = helper.ask(&format!("record 1000 {FILE}-gone7.parquet gone7\n"));
    answers.push(answer);
    let names = fs::read_dir(&recordings).expect("the folder").count();
    assert_eq!(names, 0);
    // A name that is taken.
    let taken = format!("{FILE}-loop0.parquet");
    fs::write(recordings.join(&taken), "mine").expect("room");
    let answer = helper.ask(&format!("record 1000 {taken} loop0\n"));
    answers.push(answer);
    insta::assert_snapshot!(recorded_lines(&answers.concat(), &[""]));
    let kept = fs::read_to_string(recordings.join(&taken)).expect("the file");
    assert_eq!(kept, "mine");
    helper.end();

    // A line without an end.
    let mut helper = Helper::begin(&recordings, 64 << 20);
    assert_eq!(helper.answer(), "ready\n");
    helper.send(&"x".repeat(2000));
    let ended = wait::exit("the helper", LIMIT, &mut helper.child);
    assert!(ended.success(), "{ended}");

    // A link in the place of the folder.
    let link = folder.path("link");
    symlink(&recordings, &link).expect("room");
    let mut helper = Helper::begin(&link, 64 << 20);
    let answer = helper.answer();
    assert!(answer.starts_with("failed "), "{answer}");
}

/// The oldest recordings go for a new one, files of others stay, and a request to stop makes the recording shorter.
#[test]
fn the_bytes_of_the_folder_are_bounded() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("helper-bounds");
    let image = folder.file("disk", vec![1; 16 << 20]);
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let recordings = folder.path("recordings");
    fs::create_dir(&recordings).expect("room");
    let old =
        |number: u32| recordings.join(format!("plumb-2025010{number}T000000Z-p99-sda.parquet"));
    for number in 1..=4 {
        fs::write(old(number), vec![1; 5 << 20]).expect("room");
    }
    let mine = recordings.join("mine.parquet");
    fs::write(&mine, vec![1; 32 << 20]).expect("room");
    // A recording that a kill cut short.
    let unfinished = recordings.join(format!("{FILE}-sdq.parquet.part"));
    fs::write(&unfinished, "its rows").expect("room");

    // 16 MiB without a quarter have room for two files of 5 MiB.
    let mut helper = Helper::begin(&recordings, 16 << 20);
    assert_eq!(helper.answer(), "ready\n");
    assert!(!unfinished.exists());
    assert!(recordings.join(format!("{FILE}-sdq.parquet")).exists());
    let name = format!("{FILE}-{}.parquet", disk.name());
    helper.send(&format!("record 600000 {name} {}\n", disk.name()));
    await_programs(helper.child.id());
    let mut reader = DirectReader::open(disk.path(), 4096);
    for number in 0..211 {
        reader.read_at(number * 4096).expect("a read");
    }
    let answer = helper.ask(&format!("record 1000 {name} {}\n", disk.name()));
    insta::assert_snapshot!(answer);
    let answer = helper.ask("stop\n");
    assert!(answer.starts_with("done 211 0 "), "{answer}");
    let there: Vec<bool> = (1..=4).map(|number| old(number).exists()).collect();
    assert_eq!(there, [false, false, true, true]);
    assert!(mine.exists());
    let document = analyze(&recordings.join(&name), "--json").json();
    assert_eq!(document["result"]["profiles"][0]["ios"], 211);
    helper.end();
}

/// A file system without space takes no recording, and the next one is tried again.
#[test]
fn a_full_file_system_takes_no_recording() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("helper-full");
    let image = folder.file("disk", vec![1; 16 << 20]);
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let at = folder.path("recordings");
    fs::create_dir(&at).expect("room");
    let mounted = Mounted::tmpfs(8 << 20, &at);
    let filler = at.join("filler");
    fs::write(&filler, vec![1; 7 << 20]).expect("room");
    let mut helper = Helper::begin(&at, 64 << 20);
    assert_eq!(helper.answer(), "ready\n");
    let request = format!("record 1000 {FILE}-{0}.parquet {0}\n", disk.name());
    let answer = helper.ask(&request);
    assert!(
        answer.starts_with("failed ") && answer.contains("of free space"),
        "{answer}"
    );
    fs::remove_file(&filler).expect("room");
    let answer = helper.ask(&request);
    assert!(answer.starts_with("done "), "{answer}");
    helper.end();
    drop(mounted);
}

#[test]
fn recordings_are_configured() {
    let folder = Folder::new("agent-record-config");
    let file = folder.file("agent.toml", "record_p99 = \"50ms\"\nrecord_per_day = 4\n");
    let ran = check(&file);
    let shown = recorded_lines(&ran.ends(0).out, &["record_", "#"]);
    let printed = folder.file("printed.toml", &ran.out);
    assert_eq!(check(&printed).ends(0).out, ran.out);
    let file = folder.file("off.toml", "record_per_day = 4\n");
    let out = check(&file).ends(0).out.clone();
    assert!(!out.contains("MemoryMax"), "{out}");
    let file = folder.file("bad.toml", "record_missfit = \"5%\"\n");
    let unknown = check(&file).ends(2).complaint_without_lists();
    insta::assert_snapshot!([shown, unknown].join("\n\n"));
}
