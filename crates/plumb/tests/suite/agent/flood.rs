//! The agent among hostile clients and senders: it counts each I/O, its memory is bounded, and a good client gets its answer.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::metrics::Metered;
use super::*;
use crate::common::exposition;

/// Memory of the agent that is not of a file, on two processors.
const ANONYMOUS_MAX: u64 = 80 << 20;

/// `MemoryMax` of the unit.
const CGROUP_MAX: u64 = 160 << 20;

/// Clients that send their header a byte at a time.
const SLOW: usize = 2_000;

/// Connections of other hostile clients.
const CONNECTIONS: usize = 10_000;

/// Commands that a terminal, a label of Prometheus or a line of a log would take for something else, and their text in a report. The
/// kernel keeps 15 bytes.
const HOSTILE: [(&[u8], &str); 7] = [
    (b"a\nplumb_ios_to", r"a\u{a}plumb_ios_to"),
    (b"q\"u'o`te}", "q\"u'o`te}"),
    (b"back\\slash\\", r"back\slash\"),
    (b"\x1b[2J\x07\r\t", r"\u{1b}[2J\u{7}\u{d}\u{9}"),
    (b"\xff\xfe\xc3(", "\u{fffd}\u{fffd}\u{fffd}("),
    (b"\xe2\x80\xae<script>", r"\u{202e}<script>"),
    (b"${PATH};$(id)", "${PATH};$(id)"),
];

/// Processes that send I/O beside each other, on the disks by turns.
const SENDERS: usize = 3_001;

/// Reads of each process with such a command.
const READS_OF_HOSTILE: u64 = 101;

/// Bytes of memory of a process that is not of a file.
fn anonymous_bytes(service: &Service) -> u64 {
    let status = format!("/proc/{}/status", service.child.id());
    let status = fs::read_to_string(status).expect("the agent runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let text = line.and_then(|line| line.strip_suffix(" kB"));
    let kib: u64 = text
        .and_then(|text| text.trim().parse().ok())
        .expect("RssAnon");
    kib << 10
}

fn open_files(service: &Service) -> usize {
    let folder = format!("/proc/{}/fd", service.child.id());
    fs::read_dir(folder).expect("the agent runs").count()
}

/// A program that the kernel calls by a name of these bytes.
fn program_called(folder: &Folder, name: &[u8]) -> PathBuf {
    let link = folder.path("").join(OsStr::from_bytes(name));
    let dd = plumb_testkit::require::tool("dd").expect("asked for");
    std::os::unix::fs::symlink(dd, &link).expect("room");
    link
}

/// Starts reads of 4 KiB each by `dd` under another name, from a block on.
fn begin_reads(program: &Path, disk: &LoopDevice, from: u64, count: u64) -> Child {
    let mut command = Command::new(program);
    command.arg(format!("if={}", disk.path().display())).args([
        "of=/dev/null",
        "bs=4096",
        "iflag=direct",
        "status=none",
    ]);
    command.arg(format!("skip={from}"));
    let child = command.arg(format!("count={count}")).spawn();
    child.expect("dd starts")
}

/// Raises the limit of open files to the most that the process may have, and returns it.
fn open_files_max() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the limit of this process");
    let most = limit.maximum.unwrap_or(1 << 20);
    usize::try_from(most).unwrap_or(usize::MAX)
}

fn connect(to: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect(to).ok()?;
    // A server that does not read must not keep a hostile client.
    let glance = Duration::from_millis(100);
    stream.set_write_timeout(Some(glance)).ok()?;
    Some(stream)
}

/// A request that the server refuses, by its number.
fn unfit_request(number: usize) -> Vec<u8> {
    let head = b"GET /metrics HTTP/1.1\r\n";
    let rest: Vec<u8> = match number % 6 {
        0 => [
            b"Host: localhost\r\nX-Long: ".to_vec(),
            vec![b'a'; 64 << 10],
        ]
        .concat(),
        1 => [
            b"Host: localhost\r\n".to_vec(),
            b"X-Line: a\r\n".repeat(2_000),
        ]
        .concat(),
        2 => b"Host: evil.example\r\nAuthorization: Bearer wrong\r\n\r\n".to_vec(),
        3 => b"Host: localhost\x00\xff\"\r\n\r\n".to_vec(),
        4 => return vec![0xff; 4096],
        _ => Vec::new(),
    };
    [head.to_vec(), rest].concat()
}

/// Opens connections one after the other until a number of them is reached and a flag is set; the last ones stay open.
fn flood(to: SocketAddr, held_max: usize, is_over: &AtomicBool) -> usize {
    let mut held = VecDeque::new();
    let mut opened = 0;
    while opened < CONNECTIONS || !is_over.load(Ordering::Relaxed) {
        let Some(mut stream) = connect(to) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        // The server may have closed it by now.
        let _ = stream.write_all(&unfit_request(opened));
        opened += 1;
        held.push_back(stream);
        if held.len() > held_max {
            held.pop_front();
        }
        if opened % 50 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    opened
}

/// Keeps slow clients connected until a flag is set, and returns the number of bytes that they have sent.
fn be_slow(to: SocketAddr, is_over: &AtomicBool) -> usize {
    let mut clients: Vec<Option<TcpStream>> = (0..SLOW).map(|_| None).collect();
    let mut sent = 0;
    while !is_over.load(Ordering::Relaxed) {
        for client in &mut clients {
            let is_open = client
                .as_mut()
                .is_some_and(|stream| stream.write_all(b"a").is_ok());
            if is_open {
                sent += 1;
                continue;
            }
            *client = connect(to);
            let head = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
            let _ = client.as_mut().map(|stream| stream.write_all(head));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    sent
}

/// Asks for a path until the answer has status 200, and returns the time of the whole; `None` for a connection that ended without an answer.
fn ask(to: SocketAddr, path: &str) -> Option<Duration> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(to).ok()?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).ok()?;
    response
        .starts_with(b"HTTP/1.1 200 ")
        .then(|| begun.elapsed())
}

/// The answers that a good client got during a flood.
struct Seen {
    times: Vec<Duration>,
    /// Connections that ended without an answer.
    unanswered: usize,
    anonymous_bytes: u64,
    open_files: usize,
}

/// Asks again and again until a flag is set.
fn be_good(agent: &Metered, is_over: &AtomicBool) -> Seen {
    let mut seen = Seen {
        times: Vec::new(),
        unanswered: 0,
        anonymous_bytes: 0,
        open_files: 0,
    };
    for path in ["/metrics", "/healthz", "/api/v1/devices"]
        .into_iter()
        .cycle()
    {
        match ask(agent.address, path) {
            Some(time) => seen.times.push(time),
            None => seen.unanswered += 1,
        }
        seen.anonymous_bytes = anonymous_bytes(&agent.service).max(seen.anonymous_bytes);
        seen.open_files = open_files(&agent.service).max(seen.open_files);
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    seen.times.sort_unstable();
    seen
}

/// Clients by the thousand and senders with hostile names, during a load of a known number of reads.
#[test]
fn a_flood_loses_no_io_and_no_good_client() {
    require!(Bpf, Loop, Root, Tool("dd"));
    let agent = Metered::begin("agent-flood");
    // The slow clients, and the client that is good.
    let held_max = (open_files_max() / 2)
        .saturating_sub(SLOW)
        .clamp(64, CONNECTIONS);
    let is_over = AtomicBool::new(false);
    let reads = 20_011;
    let (seen, opened, slow_bytes) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| flood(agent.address, held_max, &is_over));
        let slow = scope.spawn(|| be_slow(agent.address, &is_over));
        let good = scope.spawn(|| be_good(&agent, &is_over));
        // Each process has places of its own: at one place at one moment two processes may count for each other.
        let mut from = 0;
        let children = HOSTILE.map(|(name, _)| {
            let program = program_called(&agent.folder, name);
            from += READS_OF_HOSTILE;
            begin_reads(
                &program,
                &agent.disk,
                from - READS_OF_HOSTILE,
                READS_OF_HOSTILE,
            )
        });
        let mut reader = DirectReader::open(agent.disk.path(), 4096);
        for number in 0..reads {
            reader
                .read_at((1024 + number * 7919 % 1024) * 4096)
                .expect("a read");
            if number % 20 == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        for mut child in children {
            let status = wait::exit("dd", LIMIT, &mut child);
            assert!(status.success(), "{status}");
        }
        is_over.store(true, Ordering::Relaxed);
        let joined = (good.join(), flood.join(), slow.join());
        (
            joined.0.expect("no panic"),
            joined.1.expect("no panic"),
            joined.2.expect("no panic"),
        )
    });
    let median = seen.times.get(seen.times.len() / 2);
    let report = format!(
        "{opened} connections, {slow_bytes} slow bytes; {} answers, median {median:?}, longest {:?}, {} without an answer; {} KiB anonymous, \
         {} open files",
        seen.times.len(),
        seen.times.last(),
        seen.unanswered,
        seen.anonymous_bytes >> 10,
        seen.open_files
    );
    eprintln!("{report}");
    assert!(opened >= CONNECTIONS && slow_bytes >= SLOW, "{report}");
    assert!(seen.times.len() >= 10, "{report}");
    assert_eq!(seen.unanswered, 0, "{report}");
    assert!(seen.anonymous_bytes <= ANONYMOUS_MAX, "{report}");
    // 128 clients, as many that end, and the maps, programs and files of the agent.
    assert!(seen.open_files < 400, "{report}");

    // After the flood: each read is counted, and the text is whole.
    let all = (reads + READS_OF_HOSTILE * HOSTILE.len() as u64) as f64;
    let series = agent.series_with(all);
    assert_eq!(agent.reads(&series, "plumb_ios_total"), all);
    assert_eq!(agent.reads(&series, "plumb_undecided_ios_total"), 0.0);
    let of_process = |(name, labels): &(String, BTreeMap<String, String>)| {
        let values = labels.values();
        let mut words = values.chain([name]);
        words.any(|word| word.contains("script") || word.contains("\u{1b}"))
    };
    assert_eq!(series.keys().filter(|key| of_process(key)).count(), 0);
    assert_eq!(exposition::sum(&series, "plumb_history_stored", &[]), 1.0);

    // The history has each sender by its name.
    let store = agent.folder.path("store");
    let device = agent.disk.name();
    agent.service.end();
    assert_eq!(stored(&store, &agent.disk), all as u64);
    let store = store.display().to_string();
    let args = ["history", "senders", &device, "--state-dir", &store];
    let document = plumb([&args[..], &["--json"]].concat()).ends(0).json();
    let senders = &document["result"]["is"][0]["senders"];
    let senders = senders.as_array().expect("a list");
    for (_, expected) in HOSTILE {
        let found = senders.iter().find(|one| one["command"] == expected);
        let found = found.unwrap_or_else(|| panic!("no {expected:?} in {document}"));
        assert_eq!(found["ios"], READS_OF_HOSTILE, "{found}");
    }
    let text = plumb(args).ends(0).out.clone();
    assert!(
        !text.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']),
        "{text:?}"
    );
}

/// Disks with thousands of senders and as many different I/O as the tables have rows for.
#[test]
fn memory_is_bounded_with_many_disks_and_senders() {
    require!(Bpf, Loop, Root, Tool("dd"));
    let agent = Metered::begin("agent-memory");
    let others: Vec<LoopDevice> = (0..3)
        .map(|number| {
            let image = agent
                .folder
                .file(&format!("disk-{number}"), vec![1; 8 << 20]);
            LoopDevice::attach_hidden(&image, &[])
        })
        .collect();
    let disks: Vec<&LoopDevice> = others.iter().chain([&agent.disk]).collect();
    let mut most = 0;
    let mut look = || most = anonymous_bytes(&agent.service).max(most);
    let mut running = VecDeque::new();
    for number in 0..SENDERS {
        let program = program_called(&agent.folder, format!("sender-{number}").as_bytes());
        running.push_back(begin_reads(&program, disks[number % disks.len()], 0, 1));
        if running.len() > 8 {
            let mut first = running.pop_front().expect("one");
            assert!(wait::exit("dd", LIMIT, &mut first).success());
            look();
        }
    }
    for mut child in running {
        assert!(wait::exit("dd", LIMIT, &mut child).success());
    }
    // 16 lengths at each start modulo 1 MiB: half of the rows of two processors.
    let different = 32_749;
    for disk in &disks {
        for len in 1..=16 {
            let mut reader = DirectReader::open(disk.path(), len << 9);
            for start in 0..different / disks.len() as u64 / 16 {
                reader.read_at(start * 2048).expect("a read");
            }
            look();
        }
    }
    let labels = [("op", "read")];
    let of_disk = different / disks.len() as u64 / 16 * 16;
    let expected = (of_disk * disks.len() as u64 + SENDERS as u64) as f64;
    let mut counted = 0.0;
    wait::until("the reads in the metrics", LIMIT, || {
        let series = agent.series();
        let of = |disk: &LoopDevice| {
            let name = disk.name();
            let labels = [labels[0], ("device", name.as_str())];
            exposition::sum(&series, "plumb_ios_total", &labels)
        };
        counted = disks.iter().map(|disk| of(disk)).sum();
        counted >= expected
    });
    assert_eq!(counted, expected);
    for disk in &disks {
        let path = format!("/api/v1/tables?device={}", disk.name());
        // A device is in the history from the first checkpoint on.
        let _ = agent.get(&path, "");
        look();
    }
    eprintln!("{} KiB anonymous", most >> 10);
    assert!(most <= ANONYMOUS_MAX, "{most} bytes");

    // On a host with 128 possible processors, even if the buffers of this one are added to those of that one.
    let there = plumb_capture::WatchMemory::new(128, 64);
    let all = (there.map_bytes + there.buffer_bytes) as u64 + most;
    assert!(all <= CGROUP_MAX, "{all} bytes");
    agent.service.end();
}
