//! The history of an agent that is killed, that has no room, and whose clock is set: against a load with a known number of I/O.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use plumb_history::{Reader, Settings, Span, Writer};
use plumb_testkit::Rng;
use plumb_testkit::undecided;

use super::metrics::{Mounted, get};
use super::*;
use crate::common::exposition;

/// Kills in `make test`. `PLUMB_AGENT_KILLS` is another number of them.
const KILLS: u64 = 6;
/// Agents that run side by side, each with a device and a history of its own.
const AGENTS: u64 = 3;
/// Reads of a burst.
const BURST: u64 = 97;
/// Time between two checkpoints, with the reading after which the agent makes one.
const CHECKPOINT_NS: i64 = 61_000_000_000;
/// A reading that is later than this says that the machine was busy.
const LATE_NS: i64 = 10_000_000_000;

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.expect("a time after 1970").as_nanos()).expect("a time before 2262")
}

/// The I/O of a device that a history has in a span; 0 without the device.
fn found(store: &Path, disk: &LoopDevice, span: Span) -> u64 {
    let Ok(reader) = Reader::open(store, &Settings::default()) else {
        return 0;
    };
    let series = reader.series().expect("devices");
    let name = disk.name();
    let profiles = series.iter().filter(|one| one.name() == name);
    let profiles = profiles.filter_map(|one| reader.profile(one, span).expect("sound files"));
    profiles.map(|found| found.profile.ios()).sum()
}

const EVER: Span = Span {
    from_ns: 0,
    to_ns: i64::MAX,
};

/// A device, and the folder of a history of its I/O.
struct Host {
    folder: Folder,
    disk: LoopDevice,
    reader: DirectReader,
}

impl Host {
    fn new(name: &str) -> Host {
        let folder = Folder::new(name);
        let image = folder.file("disk", vec![1; 8 << 20]);
        let disk = LoopDevice::attach_hidden(&image, &[]);
        Host {
            reader: DirectReader::open(disk.path(), 4096),
            folder,
            disk,
        }
    }

    fn store(&self) -> PathBuf {
        self.folder.path("store")
    }

    fn configuration(&self) -> PathBuf {
        configured(&self.folder, "listen = \"127.0.0.1:0\"\n")
    }

    fn found(&self) -> u64 {
        found(&self.store(), &self.disk, EVER)
    }

    fn read(&mut self, count: u64) {
        for number in 0..count {
            self.reader.read_at(number * 4096).expect("a read");
        }
    }

    /// Waits until the agent has counted this number of reads of the device since its start.
    fn is_counted(&self, service: &Service, reads: u64) {
        let address = service.address();
        let name = self.disk.name();
        let labels = [("device", name.as_str()), ("op", "read")];
        wait::until("the reads in the metrics", LIMIT, || {
            let (_, text) = get(address, "/metrics", "");
            let series = exposition::series(&text);
            exposition::sum(&series, "plumb_ios_total", &labels) >= reads as f64
        });
    }
}

/// Runs an agent until a random moment of the first and second checkpoint, kills it, and compares. Returns whether all readings were in time.
fn kill_repeatedly(seed: u64, kills: u64) -> bool {
    let mut host = Host::new(&format!("agent-kills-{seed}"));
    let mut rng = Rng::new(seed);
    let mut is_in_time = true;
    let file = host.configuration();
    for kill in 0..kills {
        let before = host.found();
        let begun_ns = now_ns();
        let of_service = Folder::new("agent-kills-service");
        let mut service = Service::ready(&of_service, &file);
        // The counted reads at times at which the agent had them in memory.
        let (mut issued, mut counted) = (0, vec![(begun_ns, 0)]);
        let life = Duration::from_millis(2_000 + rng.below(88_000));
        let begun = Instant::now();
        while begun.elapsed() < life {
            host.read(BURST);
            issued += BURST;
            host.is_counted(&service, issued);
            counted.push((now_ns(), issued));
        }
        // The kill meets reads that the agent has not seen.
        host.read(BURST);
        issued += BURST;
        wait::killed("the agent", &mut service.child);
        let killed_ns = now_ns();
        // The next writer finds no damage.
        let mut writer = Writer::open(&host.store(), Settings::default()).expect("the store opens");
        let upto_ns = writer.upto_ns().max(begun_ns);
        assert_eq!(writer.take_notices(), [], "kill {kill}");
        drop(writer);
        let found = host.found() - before;
        let stored = counted.iter().filter(|(at_ns, _)| *at_ns <= upto_ns);
        let stored = stored.map(|(_, reads)| *reads).max().unwrap_or(0);
        assert!(
            (stored..=issued).contains(&found),
            "kill {kill} of agent {seed}: found {found} reads, {stored} were stored, {issued} issued"
        );
        assert!(upto_ns <= killed_ns, "kill {kill}");
        is_in_time &= killed_ns - upto_ns <= CHECKPOINT_NS + LATE_NS;
    }
    let before = host.found();
    let of_service = Folder::new("agent-kills-service");
    let service = Service::ready(&of_service, &file);
    host.read(BURST);
    service.end();
    assert_eq!(host.found(), before + BURST);
    is_in_time
}

/// `kill -9` at random moments loses the I/O of at most 60 s, and no I/O counts twice.
#[test]
fn a_killed_agent_loses_at_most_a_minute() {
    require!(Bpf, Loop, Root);
    let words = std::env::var("PLUMB_AGENT_KILLS").ok();
    let kills = words.map_or(KILLS, |words| words.parse().expect("a number of kills"));
    let agents = (0..AGENTS).map(|seed| {
        let mine = kills / AGENTS + u64::from(seed < kills % AGENTS);
        std::thread::spawn(move || kill_repeatedly(seed, mine))
    });
    let agents: Vec<_> = agents.collect();
    let in_time: Vec<bool> = agents
        .into_iter()
        .map(|agent| agent.join().expect("exact counts"))
        .collect();
    if in_time.contains(&false) {
        undecided!("a checkpoint was more than 10 s late");
    }
}

/// The file system of the history fills while the agent runs: it says so once, keeps the stored I/O, and stores the others once there is room. A
/// kill without room loses those since the last checkpoint that succeeded.
#[test]
fn an_agent_stays_exact_on_a_full_disk() {
    require!(Bpf, Loop, Root);
    let mut host = Host::new("agent-fills");
    let mounted = Mounted::mount(host.store(), 64);
    let file = host.configuration();
    let of_service = Folder::new("agent-fills-service");
    let mut service = Service::ready(&of_service, &file);
    let minutes = 3 * LIMIT;
    host.read(101);
    wait::until("a checkpoint", minutes, || host.found() == 101);
    let filler = mounted.fill();
    host.read(103);
    wait::until("a report of the full disk", minutes, || {
        service.said().contains(NOT_STORED)
    });
    assert_eq!(host.found(), 101);
    // A second agent is refused, and changes nothing.
    let mut second = Command::new(env!("CARGO_BIN_EXE_plumb"));
    second.args(["agent", "--config"]).arg(&file);
    let refused = wait::output_within(LIMIT, &mut second);
    assert_eq!(refused.status.code(), Some(5));
    fs::remove_file(&filler).expect("room again");
    wait::until("the end of the fault", minutes, || {
        service.said().contains("stored again")
    });
    assert_eq!(host.found(), 204);
    let filler = mounted.fill();
    host.read(107);
    host.is_counted(&service, 311);
    wait::killed("the agent", &mut service.child);
    assert_eq!(service.said().matches(NOT_STORED).count(), 1);
    assert_eq!(host.found(), 204);
    fs::remove_file(&filler).expect("room again");
    let of_service = Folder::new("agent-fills-service");
    let service = Service::ready(&of_service, &file);
    host.read(109);
    service.end();
    assert_eq!(host.found(), 313);
    // The folder goes after its file system.
    drop(mounted);
}

/// A library that adds the seconds in a file to the clock of the day; the monotonic clock stays. A host that sleeps shows the same two clocks.
const CLOCK: &str = r#"
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *offset;
__attribute__((constructor)) static void begin(void) {
    int fd = open(getenv("PLUMB_TEST_CLOCK"), O_RDONLY | O_CLOEXEC);
    void *at = fd < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) offset = at;
}
int clock_gettime(clockid_t id, struct timespec *time) {
    int done = syscall(SYS_clock_gettime, id, time);
    if (done == 0 && id == CLOCK_REALTIME && offset) time->tv_sec += *offset;
    return done;
}
"#;

/// A clock that goes back an hour and forward a day, as after a sleep: each I/O counts once, at the time of the clock.
#[test]
fn a_clock_that_is_set_counts_each_io_once() {
    require!(Bpf, Loop, Root, Tool("cc"));
    let mut host = Host::new("agent-clock");
    let source = host.folder.file("clock.c", CLOCK);
    let library = host.folder.path("clock.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]);
    run(compiler.arg(&library).arg(&source));
    let offset = host.folder.file("offset", 0i64.to_ne_bytes());
    let file = host.configuration();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["agent", "--config"])
        .arg(&file)
        .env("LD_PRELOAD", &library)
        .env("PLUMB_TEST_CLOCK", &offset);
    let of_service = Folder::new("agent-clock-service");
    let service = Service::begin(&of_service, &mut command);
    service.sends("READY=1");
    let begun_ns = now_ns();
    let (mut reads, mut expected) = (0, Vec::new());
    for (seconds, count) in [
        (0, 101),
        (-3600, 103),
        (86_400, 107),
        (-3600, 109),
        (0, 113),
    ] {
        // In place: the library has mapped the file.
        let place = fs::File::options().write(true).open(&offset);
        let place = place.expect("the file");
        let bytes = i64::to_ne_bytes(seconds);
        std::os::unix::fs::FileExt::write_all_at(&place, &bytes, 0).expect("room");
        host.read(count);
        reads += count;
        host.is_counted(&service, reads);
        expected.push((seconds, count));
    }
    let end_ns = now_ns();
    service.end();
    assert_eq!(host.found(), reads);
    // The times of the clocks do not meet: the test takes less than an hour.
    const SECOND_NS: i64 = 1_000_000_000;
    const FIVE_MINUTES_NS: i64 = 300 * SECOND_NS;
    for offset in [0, -3600, 86_400] {
        // A span that begins before the first window of a history is widened to the whole day.
        let begun_ns = begun_ns + offset * SECOND_NS;
        let from_ns = begun_ns.div_euclid(FIVE_MINUTES_NS) * FIVE_MINUTES_NS;
        let to_ns = end_ns + offset * SECOND_NS + FIVE_MINUTES_NS;
        let span = Span { from_ns, to_ns };
        let of_clock = expected.iter().filter(|(at, _)| *at == offset);
        let of_clock: u64 = of_clock.map(|(_, count)| count).sum();
        assert_eq!(found(&host.store(), &host.disk, span), of_clock, "{offset}");
    }
}
