//! `plumb agent` as a service: its configuration, its messages to systemd, and its rights.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::attached::await_programs;
use crate::common::direct::DirectReader;
use crate::common::schema::Schema;
use crate::common::{Folder, Ran, copy_program, plumb, recorded, recorded_lines, without_lists};
use crate::fleet_windows;

mod access;
mod durability;
mod flood;
mod metrics;
mod recording;

/// Time for the agent to do something.
const LIMIT: Duration = Duration::from_secs(60);

/// The beginning of the message of an agent without room for its history.
const NOT_STORED: &str = "the history cannot be stored: ";

/// The beginning of the first message of an agent that counts.
const COUNTS: &str = "counting the I/O of all disks";

fn check(file: &Path) -> Ran {
    plumb([
        "agent",
        "--check-config",
        "--config",
        &file.display().to_string(),
    ])
}

#[test]
fn a_configuration_is_checked() {
    let folder = Folder::new("agent-config");
    let good = folder.file("good.toml", "interval = \"5s\"\nhistory_max = \"1g\"\n");
    let ran = check(&good);
    let mut shown = vec![recorded_lines(&ran.ends(0).out, &["=", "#"])];
    assert!(!ran.out.contains("[Service]"), "{}", ran.out);
    // The output is a configuration.
    let printed = folder.file("printed.toml", &ran.out);
    assert_eq!(check(&printed).ends(0).out, ran.out);
    let elsewhere = folder.file("elsewhere.toml", "state_dir = \"/srv/plumb\"\n");
    let ran = check(&elsewhere);
    shown.push(recorded_lines(&ran.ends(0).out, &["#"]));
    assert!(!ran.out.contains("ProtectHome"), "{}", ran.out);
    // Comments are no part of a configuration.
    let printed = folder.file("printed-elsewhere.toml", &ran.out);
    assert_eq!(check(&printed).ends(0).out, ran.out);
    let hidden = folder.file("hidden.toml", "state_dir = \"/home/plumb/5%\"\n");
    shown.push(recorded_lines(&check(&hidden).ends(0).out, &["#"]));
    let listening = folder.file("listening.toml", "listen = \"[::1]:9974\"\n");
    let ran = check(&listening);
    shown.push(recorded_lines(&ran.ends(0).out, &["listen", "#"]));
    let printed = folder.file("printed-listening.toml", &ran.out);
    assert_eq!(check(&printed).ends(0).out, ran.out);
    for open in ["0.0.0.0:9974", "localhost:9974", "127.0.0.1"] {
        let open = folder.file("open.toml", format!("listen = \"{open}\"\n"));
        shown.push(check(&open).ends(2).complaint());
    }
    let control = folder.file("control.toml", "state_dir = \"/srv/a\\nb\"\n");
    shown.push(check(&control).ends(2).complaint());
    let long = plumb(["agent", "--interval", "10m"]);
    shown.push(long.ends(2).complaint());
    let bad = folder.file(
        "bad.toml",
        "# the disks of the database\nintervall = \"5s\"\n",
    );
    shown.push(check(&bad).ends(2).complaint_without_lists());
    shown.push(check(&folder.path("absent.toml")).ends(5).complaint());
    // An agent does not start with a mistake.
    let bad = plumb(["agent", "--config", &bad.display().to_string()]);
    shown.push(bad.ends(2).complaint_without_lists());
    insta::assert_snapshot!(shown.join("\n\n"));
}

/// An export needs a user with rights for the folder, or the network for a command.
#[test]
fn exports_have_drop_ins() {
    let folder = Folder::new("agent-export-config");
    let write = folder.file("folder.toml", "[export]\nfolder = \"/home/fleet\"\n");
    let to_folder = check(&write);
    assert!(
        !to_folder.out.contains("PrivateNetwork"),
        "{}",
        to_folder.out
    );
    let printed = folder.file("printed.toml", &to_folder.ends(0).out);
    assert_eq!(check(&printed).ends(0).out, to_folder.out);
    let text = "export = { command = [\"/bin/put\", \"{file}\", \"{key}\"], tiers = [\"1d\"] }\n";
    let run = folder.file("command.toml", text);
    let by_command = check(&run);
    by_command.ends(0);
    assert!(
        !by_command.out.contains("ReadWritePaths"),
        "{}",
        by_command.out
    );
    let shown = [to_folder, by_command].map(|ran| recorded_lines(&ran.out, &["export", "#"]));
    insta::assert_snapshot!(shown.join("\n\n"));
}

/// A command in a mount namespace in which the kernel states no types: it takes no programs there.
fn without_types(folder: &Folder, program: &[&str]) -> Command {
    let none = folder.file("no-types", "");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg("mount --bind \"$0\" /sys/kernel/btf/vmlinux && exec \"$@\"");
    command.arg(none).args(program);
    command
}

/// A kernel without types is watched by trace events, for which the unit needs root and no capability.
#[test]
fn trace_events_have_a_drop_in() {
    require!(Bpf, Root, Tracefs, Tool("unshare"), Tool("setpriv"));
    let folder = Folder::new("agent-trace-events");
    let program = env!("CARGO_BIN_EXE_plumb");
    let file = folder.file("agent.toml", "state_dir = \"/srv/plumb\"\n");
    let file = file.display().to_string();
    let printed_without = |args: &[&str]| {
        let ran = without_types(&folder, args).limited_output();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).expect("text")
    };
    let said = printed_without(&[program, "agent", "--check-config", "--config", &file]);
    for line in [
        "# User=root",
        "# DynamicUser=no",
        "# ProtectKernelTunables=no",
        "#   install -d -m 700 -o root /srv/plumb",
    ] {
        assert!(said.lines().any(|one| one == line), "{line}: {said}");
    }
    assert!(
        !said.contains("User=plumb-agent") && !said.contains("useradd"),
        "{said}"
    );
    // The printed text is a file, and a kernel with types needs none of it.
    let printed = folder.file("printed.toml", &said).display().to_string();
    let again = printed_without(&[program, "agent", "--check-config", "--config", &printed]);
    assert_eq!(again, said);
    let here = check(Path::new(&file)).ends(0).out.clone();
    assert!(!here.contains("trace events"), "{here}");

    // Root without a capability counts; another user with those of the unit does not, and learns of the drop-in.
    let store = folder.path("store").display().to_string();
    let agent = [program, "agent", "--duration", "1s", "--state-dir", &store];
    let rootless = [
        "setpriv",
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--no-new-privs",
    ];
    let ran = without_types(&folder, &[&rootless[..], &agent].concat()).limited_output();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    assert!(said.contains(COUNTS), "{said}");
    let user = [
        "setpriv",
        "--reuid=65534",
        "--clear-groups",
        "--inh-caps=-all,+bpf,+perfmon",
        "--ambient-caps=-all,+bpf,+perfmon",
    ];
    for path in [folder.path(""), folder.path("store")] {
        std::os::unix::fs::chown(&path, Some(65_534), None).expect("root may");
    }
    let copy = folder.path("plumb");
    copy_program(&copy);
    let copy = copy.display().to_string();
    let other = folder.path("other").display().to_string();
    let agent = [
        copy.as_str(),
        "agent",
        "--duration",
        "1s",
        "--state-dir",
        &other,
    ];
    let ran = without_types(&folder, &[&user[..], &agent].concat()).limited_output();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(5), "{said}");
    insta::assert_snapshot!(recorded(&said));
}

/// A configuration with a store in a folder, readings each second, and these keys; FOLDER in them is the folder.
fn configured(folder: &Folder, keys: &str) -> PathBuf {
    let text = format!("state_dir = \"FOLDER/store\"\ninterval = \"1s\"\n{keys}");
    let path = folder.path("").display().to_string();
    let text = text.replace("FOLDER", path.trim_end_matches('/'));
    folder.file("agent.toml", text)
}

/// An agent whose messages go to a file, and whose states go to a socket.
struct Service {
    child: Child,
    /// The states that it sent, each in a line, and the number of bytes of them that a test has waited for.
    states: Arc<Mutex<(String, usize)>>,
    is_over: Arc<AtomicBool>,
    messages: PathBuf,
}

impl Service {
    fn begin(folder: &Folder, command: &mut Command) -> Service {
        let address = folder.path("notify");
        let socket = UnixDatagram::bind(&address).expect("a socket");
        let glance = Duration::from_millis(100);
        socket.set_read_timeout(Some(glance)).expect("a limit");
        // A sender waits while nobody reads, so everything is read at once, as systemd does.
        let (states, is_over) = (
            Arc::<Mutex<(String, usize)>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (received, ends) = (Arc::clone(&states), Arc::clone(&is_over));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !ends.load(Ordering::Relaxed) {
                if let Ok(length) = socket.recv(&mut bytes) {
                    let sent = String::from_utf8_lossy(&bytes[..length]);
                    let mut received = received.lock().expect("the lock");
                    received.0.push_str(sent.trim_end());
                    received.0.push('\n');
                }
            }
        });
        let messages = folder.path("messages");
        let child = command
            .env("NOTIFY_SOCKET", &address)
            .env("WATCHDOG_USEC", "300000000")
            .stdin(Stdio::null())
            .stderr(fs::File::create(&messages).expect("room"))
            .spawn()
            .expect("the command starts");
        Service {
            child,
            states,
            is_over,
            messages,
        }
    }

    /// An agent that counts, with a configuration.
    fn ready(folder: &Folder, configuration: &Path) -> Service {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["agent", "--config"]).arg(configuration);
        let service = Service::begin(folder, &mut command);
        service.sends("READY=1");
        service
    }

    /// Waits until the agent sends this state, after those that a test has waited for before.
    fn sends(&self, state: &str) {
        wait::until(state, LIMIT, || {
            let mut states = self.states.lock().expect("the lock");
            let line = format!("{state}\n");
            let found = states.0[states.1..].find(&line);
            states.1 += found.map_or(0, |at| at + line.len());
            found.is_some()
        });
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.messages).expect("messages")
    }

    /// The address at which it answers.
    fn address(&self) -> SocketAddr {
        let said = self.said();
        let address = said.lines().find_map(|line| {
            line.split_once("metrics at http://")?
                .1
                .strip_suffix("/metrics")
        });
        let address = address.unwrap_or_else(|| panic!("no address in {said}"));
        address.parse().expect("an address")
    }

    fn says(&self, words: &str) {
        wait::until(words, LIMIT, || self.said().contains(words));
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        kill_process(pid, signal).expect("it runs");
    }

    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        self.sends("STOPPING=1");
        let status = wait::exit("the agent", LIMIT, &mut self.child);
        assert_eq!(status.code(), Some(0), "{}", self.said());
        self.said()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        plumb_testkit::wait::stop(&mut self.child);
    }
}

/// Reads of a device that the history of a folder has.
fn stored(store: &Path, disk: &LoopDevice) -> u64 {
    let span = format!("history:{}", disk.name());
    let store = store.display().to_string();
    let document = plumb(["analyze", "--json", &span, "--state-dir", &store]).json();
    let ios = &document["result"]["profiles"][0]["ios"];
    ios.as_u64()
        .unwrap_or_else(|| panic!("no count in {document}"))
}

/// SIGHUP makes the agent read its configuration again. A mistake leaves the old one in force, and no I/O is lost meanwhile.
#[test]
fn a_reload_loses_no_io() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("agent-reload");
    let image = folder.file("disk", vec![1; 8 << 20]);
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let store = folder.path("store");
    let first = format!("state_dir = \"{}\"\ninterval = \"1s\"\n", store.display());
    let file = folder.file("agent.toml", &first);
    let service = Service::ready(&folder, &file);
    let mut reader = DirectReader::open(disk.path(), 4096);
    let mut read = |count: u64| {
        for number in 0..count {
            reader.read_at(number * 4096).expect("a read");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    read(200);
    fs::write(&file, format!("{first}keep_day = \"1d\"\n")).expect("room");
    service.signal(Signal::HUP);
    read(200);
    service.says("`keep_days`");
    fs::write(&file, format!("{first}keep_days = \"1d\"\n")).expect("room");
    service.signal(Signal::HUP);
    service.sends("RELOADING=1");
    service.sends("READY=1");
    service.sends("WATCHDOG=1");
    fs::write(&file, "state_dir = \"/srv/another\"\ninterval = \"1s\"\n").expect("room");
    service.signal(Signal::HUP);
    service.says("state_dir: ");
    read(200);
    let said = service.end();
    let of_reloads = recorded_lines(&without_lists(&said), &["configuration", "state_dir"]);
    insta::assert_snapshot!(of_reloads);
    assert_eq!(stored(&store, &disk), 600);
}

/// The agent exports the days of its history that are over, with the names and bytes of an export by hand. A reload changes the folder.
#[test]
fn days_that_are_over_are_exported() {
    require!(Bpf, Root);
    let folder = Folder::new("agent-export");
    fleet_windows::import(&folder, fleet_windows::day_before(3) + 36_000, 500);
    let file = configured(&folder, "");
    // Its checkpoint at the end names the time up to which the history is whole.
    Service::ready(&folder, &file).end();
    let by_hand = folder.path("by-hand");
    fleet_windows::export(&folder, &by_hand, &[]).ends(0);
    let expected = fleet_windows::files(&by_hand);
    assert_eq!(expected.len(), 2);
    let has_all = |name: &str| {
        expected.iter().all(|(path, bytes)| {
            let key = path.strip_prefix(&by_hand).expect("below");
            fs::read(folder.path(name).join(key)).is_ok_and(|found| found == *bytes)
        })
    };
    fs::remove_file(folder.path("notify")).expect("a socket");
    configured(&folder, "[export]\nfolder = \"FOLDER/first\"\n");
    let service = Service::ready(&folder, &file);
    wait::until("the first export", LIMIT, || has_all("first"));
    configured(&folder, "[export]\nfolder = \"FOLDER/second\"\n");
    service.signal(Signal::HUP);
    wait::until("the second export", LIMIT, || has_all("second"));
    let said = service.end();
    assert!(!said.contains("took no window"), "{said}");
}

/// A misaligned load is in the log once, whatever its length, and so is its end.
#[test]
fn findings_are_logged_once() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("agent-findings");
    let image = folder.file("disk", vec![1; 64 << 20]);
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let file = configured(&folder, "judge_every = \"2s\"\n");
    let service = Service::ready(&folder, &file);
    let mut reader = DirectReader::open(disk.path(), 8192);
    // Reads in random order until the log has these words, and as long again.
    let mut read = |past: u64, words: &str| {
        let begun = std::time::Instant::now();
        let mut needed = None;
        for number in 0u64.. {
            reader
                .read_at(number * 7919 % 8191 * 8192 + past)
                .expect("a read");
            if number % 100 == 0 {
                std::thread::sleep(Duration::from_millis(20));
                let elapsed = begun.elapsed();
                assert!(
                    elapsed < wait::PATIENCE,
                    "no {words:?} in {}",
                    service.said()
                );
                if needed.is_none() && service.said().contains(words) {
                    needed = Some(elapsed + Duration::from_secs(5));
                }
                if needed.is_some_and(|needed| elapsed > needed) {
                    return;
                }
            }
        }
    };
    // The agent watches the disks of other tests, too.
    let name = format!(" on {} ", disk.name());
    let lines_of_disk = |said: &str| {
        let lines = said.lines();
        let of_disk = lines.filter(|line| line.contains("misaligned-io") && line.contains(&name));
        of_disk.count()
    };
    read(0, COUNTS);
    let said = service.said();
    assert_eq!(lines_of_disk(&said), 0, "{said}");
    read(512, &format!("I/O{name}start off the grid of 4 KiB"));
    read(
        0,
        &format!("misaligned-io is gone: the latest I/O{name}do not show it"),
    );
    let said = service.end();
    assert_eq!(lines_of_disk(&said), 2, "{said}");

    // The history has it as one interval that is over.
    let store = folder.path("store").display().to_string();
    let findings = |span: &str| {
        let args = ["history", "findings", span, "--json", "--state-dir", &store];
        let document = plumb(args).ends(0).json();
        let all = document["result"]["is"].as_array().expect("findings");
        let of_rule = all
            .iter()
            .filter(|one| one["finding"]["rule"] == "misaligned-io");
        of_rule.cloned().collect::<Vec<_>>()
    };
    let [one] = &findings(&disk.name())[..] else {
        panic!("one finding: {:?}", findings(&disk.name()));
    };
    assert_eq!(one["finding"]["target"]["device"], disk.name());
    let time = |name: &str| one[name].as_str().expect("a time").to_owned();
    assert!(time("appeared") <= time("changed") && time("changed") <= time("went"));
    assert_eq!(findings(&format!("{}@..2020-01-01", disk.name())).len(), 0);
    let args = ["history", "findings", &disk.name(), "--state-dir", &store];
    let text = plumb(args).ends(0).out.clone();
    let line = format!(
        " to {}: warning misaligned-io on {}",
        time("went"),
        disk.name()
    );
    assert!(text.contains(&line), "{text}");
}

/// Runs `plumb check` as the unit of the survey does: with its capabilities alone.
fn survey(file: &Path, disk: &LoopDevice) {
    let unit = include_str!("../../../../packaging/systemd/plumb-survey.service");
    let kept = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="))
        .expect("the capabilities of the unit");
    let kept = kept.replace("CAP_", "+").replace(' ', ",").to_lowercase();
    let done = wait::output_of(
        Command::new("setpriv")
            .arg("--no-new-privs")
            .arg(format!("--bounding-set=-all,{kept}"))
            .arg(env!("CARGO_BIN_EXE_plumb"))
            .args(["check", &disk.name(), "--json", "--fail-on", "none"])
            .arg("--output")
            .arg(file),
    );
    // A loop device has layers below that are not visible.
    let status = done.status.code();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(matches!(status, Some(0 | 3)), "{status:?}: {said}");
    let text = fs::read_to_string(file).expect("a survey");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let unread = document["result"]["unread"].as_array().expect("a list");
    let is_unread = unread
        .iter()
        .any(|one| one["device"] == disk.name().as_str());
    assert!(!is_unread, "{unread:?}");
}

/// The names and values of facts about this host in a history, in order.
fn host_facts(store: &Path) -> Vec<(String, Option<String>)> {
    let reader = plumb_history::Reader::open(store, &plumb_history::Settings::default());
    let rows = reader.and_then(|reader| reader.host_facts());
    let rows = rows.expect("a sound store");
    rows.into_iter().map(|row| (row.name, row.value)).collect()
}

/// The kernel is noted at the start, mounts at each survey: a file system that another option is mounted with, and one that is gone.
#[test]
fn changes_of_the_host_are_stored() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("agent-host");
    let surveyed = folder.path("check.json");
    let file = configured(&folder, "survey = \"FOLDER/check.json\"\n");
    let write = |mounts: &str| {
        let text = format!(
            r#"{{"schema": "plumb.check/2", "findings": [], "result": {{"stack": {{"nodes": [
            {{"id": 1, "name": "sdq", "kind": "disk", "placing": {{"kind": "leaf"}}, "facts": {{}}}}{mounts}]}},
            "unknown": [], "accepted": {{"findings": [], "expired": []}}, "unread": []}}}}"#
        );
        let new = folder.file("new", text);
        fs::rename(new, &surveyed).expect("renamed");
    };
    let mounted = |option: &str| {
        format!(
            r#", {{"id": 2, "name": "/data", "kind": "file-system", "placing": {{"kind": "parts", "parts":
            [{{"upper_bytes": 0, "node": 1, "start_bytes": 0, "len_bytes": 4096}}]}}, "facts": {{
            "content": {{"value": "ext4"}}, "mount": {{"value": "/data"}}, "mount_options": {{"value": ["{option}"]}}}}}}"#
        )
    };
    let run = |mounts: &str| {
        write(mounts);
        // Each start has a socket of its own.
        let of_service = Folder::new("agent-host-service");
        let service = Service::ready(&of_service, &file);
        std::thread::sleep(Duration::from_secs(3));
        let said = service.end();
        assert!(!said.contains("the survey cannot be read"), "{said}");
    };
    run(&mounted("rw"));
    run(&mounted("rw"));
    run(&mounted("sync"));
    run("");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("procfs");
    let mount = r#"{"fact":"mount","path":"/data"}"#.to_owned();
    let value = |option: &str| {
        Some(format!(
            r#"{{"file_system":"ext4","device":"sdq","options":["{option}"]}}"#
        ))
    };
    let facts = host_facts(&folder.path("store")).into_iter();
    let (packages, others): (Vec<_>, Vec<_>) =
        facts.partition(|(name, _)| name.contains("\"fact\":\"package\""));
    // The version that dpkg states. A host without dpkg notes no package.
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f", "${Version}", "bash"]);
    let version = query.output().map_or(String::new(), |out| {
        String::from_utf8(out.stdout).expect("text")
    });
    let of_bash = packages
        .iter()
        .filter(|(name, _)| name.contains("\"bash\""));
    let of_bash: Vec<_> = of_bash.map(|(_, value)| value.clone()).collect();
    match version.as_str() {
        "" => assert_eq!(of_bash, []),
        version => assert_eq!(of_bash, [Some(format!("\"{version}\""))]),
    }
    assert_eq!(
        others,
        [
            (
                r#"{"fact":"kernel"}"#.to_owned(),
                Some(format!("\"{}\"", release.trim()))
            ),
            (mount.clone(), value("rw")),
            (mount.clone(), value("sync")),
            (mount, None),
        ]
    );
}

/// A service that takes notifications until one has these words, and returns them.
fn webhook(last: &'static str) -> (String, std::thread::JoinHandle<String>) {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let work = move || {
        let mut taken = String::new();
        while !taken.contains(last) {
            let what = format!("a notification with {last}");
            let stream = wait::client(&what, LIMIT, &listener);
            let mut reader = BufReader::new(stream);
            let mut len = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    len = value.trim_end().parse().expect("a length");
                }
                if line.trim_end().is_empty() {
                    break;
                }
            }
            let body = reader.by_ref().take(len);
            taken += &std::io::read_to_string(body).expect("a body");
            let answer = b"HTTP/1.1 200 OK\r\n\r\n";
            reader.get_mut().write_all(answer).expect("an answer");
        }
        taken
    };
    (format!("http://{address}/hook"), std::thread::spawn(work))
}

/// The command and the webhook get the same notifications, as the schema promises them.
fn check_notifications(got: &str, posted: &str, disk: &LoopDevice) {
    let schema = Schema::read("finding-change");
    // The disk below may have findings of its own.
    let of_rule = |text: &str| -> Vec<serde_json::Value> {
        let documents = text.lines().map(|line| {
            let document: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(schema.faults(&document), Vec::<String>::new());
            document
        });
        documents
            .filter(|document| document["finding"]["rule"] == "misaligned-partition")
            .collect()
    };
    let documents = of_rule(got);
    assert_eq!(documents, of_rule(posted));
    for document in &documents {
        let device = format!("{}p1", disk.name());
        assert_eq!(document["finding"]["target"]["device"], device.as_str());
        let url = "https://wiki.example.org/misaligned-partition";
        assert_eq!(document["runbook_url"], url);
    }
    let changes: Vec<&str> = documents
        .iter()
        .map(|document| document["change"].as_str().expect("a word"))
        .collect();
    assert_eq!(changes, ["appeared", "gone"]);
}

/// A partition that begins off the grid is in the log once, and so is its end; the history has both, and so have the receivers of
/// notifications.
#[test]
fn a_survey_is_judged() {
    require!(Bpf, Loop, Root, Tool("setpriv"), Tool("sfdisk"));
    let folder = Folder::new("agent-survey");
    let image = folder.file("disk", vec![0; 64 << 20]);
    let disk = LoopDevice::attach(&image, &[]);
    let partition = |start: u32| {
        let label = format!("label: dos\nstart={start}, size=60000, type=83\n");
        let label = fs::File::open(folder.file("label", label)).expect("the label");
        let mut sfdisk = Command::new("sfdisk");
        sfdisk.args(["--quiet", "--no-reread", "--no-tell-kernel"]);
        run(sfdisk.arg(disk.path()).stdin(label));
        assert_eq!(disk.add_partitions(), 1);
    };
    partition(63);
    let part = format!("{}p1", disk.name());
    let surveyed = folder.path("check.json");
    let (url, posted) = webhook("misaligned-partition is gone");
    let keys = format!(
        "survey = \"FOLDER/check.json\"\nwebhook = \"{url}\"\nrunbook_url = \"https://wiki.example.org/{{rule}}\"\n\
         command = [\"/bin/sh\", \"-c\", \"cat >>FOLDER/got; echo $PLUMB_CHANGE $PLUMB_RULE >>FOLDER/words\"]\n"
    );
    let file = configured(&folder, &keys);
    let service = Service::ready(&folder, &file);
    survey(&surveyed, &disk);
    service.says(&format!(
        "misaligned-partition appeared (warning): {part} starts"
    ));
    // The same is no news. The agent has read it before the next file, which is broken.
    survey(&surveyed, &disk);
    std::thread::sleep(Duration::from_secs(3));
    fs::write(&surveyed, "{").expect("room");
    service.says("survey cannot");
    run(Command::new("partx").arg("--delete").arg(disk.path()));
    partition(2048);
    survey(&surveyed, &disk);
    let is_gone = "misaligned-partition is gone";
    service.says(is_gone);
    let said = service.end();
    let of_survey = ["survey cannot", is_gone];
    insta::assert_snapshot!(recorded_lines(&said, &of_survey));
    let lines = said
        .lines()
        .filter(|line| line.contains("misaligned-partition"));
    assert_eq!(lines.count(), 2, "{said}");
    let got = fs::read_to_string(folder.path("got")).expect("the command's file");
    wait::until("the last notification", LIMIT, || posted.is_finished());
    let posted = posted.join().expect("the service");
    check_notifications(&got, &posted, &disk);
    let words = fs::read_to_string(folder.path("words")).expect("the command's file");
    let words = words
        .lines()
        .filter(|line| line.contains("misaligned-partition"));
    let expected = ["appeared misaligned-partition", "gone misaligned-partition"];
    assert_eq!(words.collect::<Vec<_>>(), expected);

    let store = folder.path("store").display().to_string();
    let args = [
        "history",
        "findings",
        &part,
        "--json",
        "--state-dir",
        &store,
    ];
    let document = plumb(args).ends(0).json();
    let all = document["result"]["is"].as_array().expect("findings");
    let [one] = &all[..] else {
        panic!("one finding: {all:?}");
    };
    assert_eq!(one["finding"]["rule"], "misaligned-partition");
    assert!(one["went"].is_string(), "{one}");
}

/// A changed partition table makes the agent write the file that starts the survey, once in ten minutes.
#[test]
fn a_changed_layout_requests_a_survey() {
    require!(Bpf, Loop, Root, Tool("unshare"), Tool("sfdisk"));
    let folder = Folder::new("agent-layout");
    let image = folder.file("disk", vec![0; 64 << 20]);
    let disk = LoopDevice::attach(&image, &[]);
    let partition = |start: u32| {
        let label = format!("label: dos\nstart={start}, size=60000, type=83\n");
        let label = fs::File::open(folder.file("label", label)).expect("the label");
        let mut sfdisk = Command::new("sfdisk");
        sfdisk.args(["--quiet", "--no-reread", "--no-tell-kernel"]);
        run(sfdisk.arg(disk.path()).stdin(label));
        assert_eq!(disk.add_partitions(), 1);
    };
    let remove = || run(Command::new("partx").arg("--delete").arg(disk.path()));
    partition(63);
    // The agent sees no disk of other tests.
    let (disks, runtime) = (folder.path("disks"), folder.path("runtime"));
    for made in [&disks, &runtime] {
        fs::create_dir(made).expect("room");
    }
    let device = Path::new("/sys/devices/virtual/block").join(disk.name());
    std::os::unix::fs::symlink(device, disks.join(disk.name())).expect("room");
    let file = configured(&folder, "");
    let mut command = Command::new("unshare");
    let script = "mount --bind \"$1\" /sys/block && exec \"$2\" agent --config \"$3\"";
    command
        .args(["--mount", "sh", "-c", script, "-"])
        .args([&disks, Path::new(env!("CARGO_BIN_EXE_plumb")), &file])
        .env("RUNTIME_DIRECTORY", &runtime);
    let service = Service::begin(&folder, &mut command);
    service.sends("READY=1");
    // Some readings: a layout that stays requests nothing.
    std::thread::sleep(Duration::from_secs(3));
    let request = runtime.join("survey-request");
    assert!(!request.exists());
    remove();
    service.says("layout has");
    let text = || fs::read_to_string(&request).expect("a request");
    let first = text();
    assert_eq!(first, format!("{}p1 is gone\n", disk.name()));
    partition(2048);
    std::thread::sleep(Duration::from_secs(3));
    let said = service.end();
    insta::assert_snapshot!(recorded_lines(&said, &["layout has"]));
    assert_eq!(text(), first);
}

/// The values of the fields of a message to journald, by its native protocol.
fn fields(message: &[u8]) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let mut rest = message;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').expect("a line");
        let line = String::from_utf8(rest[..end].to_vec()).expect("text");
        rest = &rest[end + 1..];
        if let Some((name, value)) = line.split_once('=') {
            fields.insert(name.to_owned(), value.to_owned());
            continue;
        }
        let (len, behind) = rest.split_first_chunk::<8>().expect("a length");
        let len = usize::try_from(u64::from_le_bytes(*len)).expect("a length");
        let value = String::from_utf8(behind[..len].to_vec()).expect("text");
        assert_eq!(behind[len], b'\n');
        fields.insert(line, value);
        rest = &behind[len + 1..];
    }
    fields
}

/// If standard error is the stream that systemd named, the findings go to journald with fields, and else they are lines.
#[test]
fn the_journal_has_fields() {
    require!(Bpf, Loop, Root, Tool("unshare"), Tool("sfdisk"));
    let folder = Folder::new("agent-journal");
    let image = folder.file("disk", vec![0; 64 << 20]);
    let disk = LoopDevice::attach(&image, &[]);
    let label = fs::File::open(folder.file("label", "label: dos\nstart=63, size=60000, type=83\n"));
    let mut sfdisk = Command::new("sfdisk");
    sfdisk.args(["--quiet", "--no-reread", "--no-tell-kernel"]);
    run(sfdisk.arg(disk.path()).stdin(label.expect("the label")));
    assert_eq!(disk.add_partitions(), 1);
    let surveyed = folder.path("check.json");
    survey(&surveyed, &disk);
    // The agent sees a /run of its own, in which the test is journald.
    let own = folder.path("run");
    fs::create_dir_all(own.join("systemd/journal")).expect("room");
    let journal = UnixDatagram::bind(own.join("systemd/journal/socket")).expect("a socket");
    journal.set_read_timeout(Some(LIMIT)).expect("a limit");
    let file = configured(&folder, "survey = \"FOLDER/check.json\"\n");
    let mut command = Command::new("unshare");
    let script = "mount --bind \"$1\" /run && JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec \"$2\" agent --config \"$3\"";
    command.args(["--mount", "sh", "-c", script, "-"]).args([
        &own,
        Path::new(env!("CARGO_BIN_EXE_plumb")),
        &file,
    ]);
    let service = Service::begin(&folder, &mut command);
    service.sends("READY=1");
    let mut bytes = vec![0; 1 << 20];
    let found = loop {
        let len = journal.recv(&mut bytes).expect("a message");
        let found = fields(&bytes[..len]);
        // The agent watches the disks of other tests, too.
        if found["PLUMB_RULE"] == "misaligned-partition" {
            break found;
        }
    };
    let device = format!("{}p1", disk.name());
    let begin = format!("misaligned-partition appeared (warning): {device} starts");
    assert!(found["MESSAGE"].starts_with(&begin), "{found:?}");
    for (name, value) in [
        ("PRIORITY", "4"),
        ("SYSLOG_IDENTIFIER", "plumb"),
        ("PLUMB_CHANGE", "appeared"),
        ("PLUMB_SEVERITY", "warning"),
        ("PLUMB_DEVICE", &device),
    ] {
        assert_eq!(found[name], value, "{name}");
    }
    let json: serde_json::Value = serde_json::from_str(&found["PLUMB_FINDING"]).expect("JSON");
    assert_eq!(json["target"]["device"], device.as_str());
    let said = service.end();
    assert!(!said.contains("misaligned-partition"), "{said}");
}

/// The two capabilities of the unit are enough, without any other right.
#[test]
fn two_capabilities_are_enough() {
    require!(Bpf, Loop, Root, Tool("setpriv"));
    let folder = Folder::new("agent-capabilities");
    let image = folder.file("disk", vec![1; 8 << 20]);
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let store = folder.path("store");
    fs::create_dir(&store).expect("room");
    let nobody = Some(65_534);
    for path in [folder.path(""), store.clone()] {
        std::os::unix::fs::chown(&path, nobody, nobody).expect("root may");
    }
    // The user must reach the program.
    let program = folder.path("plumb");
    copy_program(&program);
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--no-new-privs",
        ])
        .args([
            "--inh-caps=-all,+bpf,+perfmon",
            "--ambient-caps=-all,+bpf,+perfmon",
        ])
        .arg("--bounding-set=-all,+bpf,+perfmon")
        .arg(&program)
        .args(["agent", "--interval", "1s", "--state-dir"])
        .arg(&store);
    let service = Service::begin(&folder, &mut command);
    let socket = folder.path("notify");
    std::os::unix::fs::chown(&socket, nobody, nobody).expect("root may");
    service.says(COUNTS);
    await_programs(service.child.id());
    let status =
        fs::read_to_string(format!("/proc/{}/status", service.child.id())).expect("it runs");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        let line = status.lines().find(|line| line.starts_with(set));
        let bits = line.and_then(|line| line.split_whitespace().nth(1));
        assert_eq!(
            bits,
            Some("0000000000000000"),
            "{set} after the start: {status}"
        );
    }
    let mut reader = DirectReader::open(disk.path(), 4096);
    for number in 0..300 {
        reader.read_at(number * 4096).expect("a read");
    }
    std::thread::sleep(Duration::from_millis(1500));
    service.end();
    assert_eq!(stored(&store, &disk), 300);
}

/// The units have no mistake. systemd's own review puts the exposure of the agent below 2.0 of 10, and that of the survey, which
/// runs as root and needs the disks and the mounts of the host, below 5.0.
#[test]
fn the_units_are_confined() {
    require!(Tool("systemd-analyze"));
    let folder = Folder::new("agent-unit");
    let units = [
        (
            "plumb-agent.service",
            include_str!("../../../../packaging/systemd/plumb-agent.service"),
        ),
        (
            "plumb-agent.socket",
            include_str!("../../../../packaging/systemd/plumb-agent.socket"),
        ),
        (
            "plumb-survey.service",
            include_str!("../../../../packaging/systemd/plumb-survey.service"),
        ),
        (
            "plumb-survey.timer",
            include_str!("../../../../packaging/systemd/plumb-survey.timer"),
        ),
        (
            "plumb-survey.path",
            include_str!("../../../../packaging/systemd/plumb-survey.path"),
        ),
    ];
    for (name, unit) in units {
        let unit = unit
            .replace("@BINDIR@", "/bin")
            .replace("/bin/plumb", "/bin/true");
        folder.file(name, unit);
    }
    let review = |name: &str, args: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        let done = wait::output_of(command.args(args).arg(folder.path(name)));
        let said =
            [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(done.status.success(), "{args:?} {name}: {}", said.concat());
        said.concat()
    };
    for (name, threshold) in [("plumb-agent.service", 20), ("plumb-survey.service", 50)] {
        let threshold = format!("--threshold={threshold}");
        let said = review(
            name,
            &["security", "--offline=yes", &threshold, "--no-pager"],
        );
        assert!(said.contains("Overall exposure level"), "{said}");
    }
    for (name, _) in units {
        let said = review(name, &["verify", "--man=no"]);
        assert!(!said.contains("plumb-"), "{said}");
    }
}
