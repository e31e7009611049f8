//! The measurements of the agent over HTTP: metrics for Prometheus, and the state of the agent. `crate::api` has the history.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_capture::{Layers, Reading};
use plumb_geometry::Grid;
use plumb_history::{Reader, Settings, Tier};
use plumb_http::{Access, Answer, Bytes, Limits, Request, Server};
use plumb_model::facts::GridSource;
use plumb_profile::{Profile, Select, Unknown};
use plumb_report::exports::{
    AgentMetrics, DeviceMetrics, ExportMetrics, FitMetrics, GridMetrics, HistoryMetrics,
    MetricsFormat, RecordingMetrics, agent_metrics,
};
use plumb_trace::{Layer, Op};

use super::identity;
use super::judge::PresentFinding;
use crate::api::{self, Api};
use crate::output;

/// The grid of the counters of fit: nobody states one to the agent.
const GRID: Grid = match Grid::unit(plumb_geometry::Bytes(4096)) {
    Ok(grid) => grid,
    Err(_) => panic!("4096 is a granularity"),
};

/// Paths that are answered beside those of the API.
const PATHS: [&str; 2] = ["/metrics", "/healthz"];

/// A reading may come later than its time on a busy host.
const LATE: Duration = Duration::from_secs(5);

/// The measurements that the server reads and the agent writes.
pub struct Board {
    state: Arc<Mutex<State>>,
}

struct State {
    metrics: AgentMetrics,
    /// Texts of the present measurements, made at the first request for them.
    made: [Option<Bytes>; MetricsFormat::ALL.len()],
    interval: Duration,
    read_at: Instant,
}

impl Board {
    pub fn new(interval: Duration) -> Board {
        let state = State {
            metrics: AgentMetrics::default(),
            made: Default::default(),
            interval,
            read_at: Instant::now(),
        };
        Board {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Changes the measurements.
    fn change(&self, change: impl FnOnce(&mut AgentMetrics)) {
        lock(&self.state).change(change);
    }

    /// Adds a reading; `identities` are those of its devices.
    pub fn add(&self, reading: &Reading, identities: &BTreeMap<String, String>) {
        let mut state = lock(&self.state);
        state.read_at = Instant::now();
        state.change(|metrics| {
            let misses = reading.misses.values();
            let unplaced: u64 = misses.map(|misses| misses.unplaced).sum();
            metrics.events_lost += reading.lost + reading.unlisted + unplaced;
            metrics.calls_skipped += reading.skipped_calls;
            for profile in reading.profiles.iter() {
                let name = &profile.device;
                // A device without a name.
                if plumb_capture::number_of(name).is_some() {
                    continue;
                }
                let identity = identities.get(name).unwrap_or(name);
                let device = metrics.devices.entry(name.clone());
                let device = device.or_insert_with(|| empty(profile.layer, identity));
                if device.identity != *identity {
                    // The name is that of another disk by now, whose counters begin at 0.
                    *device = empty(profile.layer, identity);
                }
                let flushes = reading.misses.get(name).map_or(0, |misses| misses.flushes);
                add(device, profile, flushes);
            }
        });
    }

    /// Notes the time between two readings.
    pub fn set_interval(&self, interval: Duration) {
        let mut state = lock(&self.state);
        state.interval = interval;
        state.read_at = Instant::now();
    }

    /// Notes the findings that are present; one that I/O show counts while its device is there.
    pub fn set_findings(&self, findings: impl Iterator<Item = PresentFinding>) {
        self.change(|metrics| {
            let devices: BTreeSet<&str> = metrics
                .devices
                .values()
                .map(|device| device.identity.as_str())
                .collect();
            let is_there = |present: &PresentFinding| {
                let on = present.seen_on.as_deref();
                on.is_none_or(|identity| devices.contains(identity))
            };
            let findings = findings.filter(is_there).map(|present| present.finding);
            metrics.findings = findings.collect();
        });
    }

    /// Leaves out devices that the host no longer has, and adds disks without I/O: their counters have begun at 0.
    pub fn set_devices(&self) {
        self.set_devices_in(Path::new(identity::DISKS));
    }

    fn set_devices_in(&self, disks: &Path) {
        let present: BTreeMap<String, DeviceMetrics> = present_disks(disks).collect();
        self.change(|metrics| {
            metrics.devices.retain(|name, _| present.contains_key(name));
            for (name, device) in present {
                // The name is that of another disk by now, whose counters begin at 0.
                let is_another = |known: &DeviceMetrics| known.identity != device.identity;
                if metrics.devices.get(&name).is_none_or(is_another) {
                    metrics.devices.insert(name, device);
                }
            }
        });
    }

    /// Notes the size and the begin of the history.
    pub fn set_history(&self, folder: &Path, settings: &Settings) {
        let history = history_metrics(folder, settings);
        self.change(|metrics| metrics.history = history);
    }

    /// Notes the counts of triggered recordings; `None` if nothing triggers one.
    pub fn set_recordings(&self, recordings: Option<RecordingMetrics>) {
        self.change(|metrics| metrics.recordings = recordings);
    }

    /// Notes the state of the export; `None` without one.
    pub fn set_export(&self, export: Option<ExportMetrics>) {
        self.change(|metrics| metrics.export = export);
    }

    /// Notes the fault of the history; `None` while it is stored.
    pub fn set_fault(&self, fault: Option<&str>) {
        self.change(|metrics| metrics.history_fault = fault.map(str::to_owned));
    }

    /// Starts to answer requests. An agent that cannot do so counts all the same.
    pub fn serve(&self, listener: TcpListener, access: Access, api: Arc<Api>) -> Option<Server> {
        let state = Arc::clone(&self.state);
        let answer = move |request: &Request<'_>| match api.reply(request) {
            Some(reply) => reply,
            None => lock(&state).answer(request).into(),
        };
        match Server::start(listener, Limits::default(), access, Arc::new(answer)) {
            Ok(server) => {
                output::say(&format!("metrics at {}/metrics", server.url()));
                Some(server)
            }
            Err(error) => {
                output::say(&format!("no metrics: {error}"));
                None
            }
        }
    }
}

/// The disks of the host that have a size.
fn present_disks(disks: &Path) -> impl Iterator<Item = (String, DeviceMetrics)> {
    let identities = identity::present(disks);
    let entries = fs::read_dir(disks).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
        let sectors: u64 = read("size")?.trim().parse().ok()?;
        let number = plumb_capture::number_of(read("dev")?.trim())?;
        let layer = Layers::default().layer_of(number);
        let name = entry.file_name().to_string_lossy().replace('!', "/");
        let identity = identities.get(&name).unwrap_or(&name);
        let device = empty(layer, identity);
        (sectors > 0).then_some((name, device))
    })
}

/// No reader of a half-written state can exist: a panic of the agent ends it.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn change(&mut self, change: impl FnOnce(&mut AgentMetrics)) {
        self.made = Default::default();
        change(&mut self.metrics);
    }

    fn answer(&mut self, request: &Request<'_>) -> Answer {
        match request.path {
            "/metrics" => {
                let format = MetricsFormat::accepted(request.accept);
                let version = env!("CARGO_PKG_VERSION");
                let made = || agent_metrics(&self.metrics, version, format).into();
                Answer {
                    content_type: format.content_type(),
                    body: self.made[format as usize].get_or_insert_with(made).clone(),
                    ..Answer::text(200, "")
                }
            }
            "/healthz" => match self.illness() {
                None => Answer::text(200, "ok\n"),
                Some(illness) => Answer::text(503, illness + "\n"),
            },
            other => Answer::not_found(other, &[&PATHS[..], &api::PATHS].concat()),
        }
    }

    /// The reason for which the agent does not do its work.
    fn illness(&self) -> Option<String> {
        let since = self.read_at.elapsed();
        if since > 2 * self.interval + LATE {
            return Some(format!(
                "the last reading of the counts was {} s ago",
                since.as_secs()
            ));
        }
        let fault = self.metrics.history_fault.as_ref()?;
        Some(format!("the history cannot be stored: {fault}"))
    }
}

/// A device without I/O.
fn empty(layer: Layer, identity: &str) -> DeviceMetrics {
    DeviceMetrics {
        identity: identity.to_owned(),
        layer,
        in_flight: 0,
        ops: Default::default(),
        latency_ns_sums: [0; 6],
        fit: GridMetrics {
            unit_bytes: GRID.granularity().0,
            source: GridSource::Assumed,
            ops: [FitMetrics::default(); 2],
        },
    }
}

/// Adds the I/O of a reading; flushes have no place, and the profile does not have them.
fn add(device: &mut DeviceMetrics, profile: &Profile, flushes: u64) {
    device.in_flight = profile.answers.as_ref().map_or(0, |all| all.in_flight);
    for (totals, added) in device.ops.iter_mut().zip(&profile.ops) {
        totals.merge(added);
    }
    device.ops[Op::Flush as usize].ios += flushes;
    let table = &profile.places.table;
    for (key, row) in table.iter() {
        device.latency_ns_sums[key.op() as usize] += row.ns_sum;
    }
    for (op, fit) in [Op::Read, Op::Write].into_iter().zip(&mut device.fit.ops) {
        match table.fit(&GRID, Select::op(op)) {
            Ok(tally) => fit.add(tally.misaligned, tally.cells, tally.cells_min),
            Err(Unknown::NoIo) => {}
            // Nothing is known of any of them.
            Err(_) => fit.undecided_ios += profile.op(op).ios,
        }
    }
}

fn history_metrics(folder: &Path, settings: &Settings) -> Option<HistoryMetrics> {
    let files = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let bytes = files.filter_map(|file| file.metadata().ok());
    let reader = Reader::open(folder, settings).ok()?;
    let tiers = Tier::ALL.into_iter();
    let oldest = tiers.filter_map(|tier| reader.oldest(tier).ok().flatten());
    Some(HistoryMetrics {
        bytes: bytes.map(|file| file.len()).sum(),
        oldest_ns: oldest.min(),
    })
}

/// The socket to listen at: that of the service manager, else one at the address of the configuration. An agent that cannot listen
/// counts all the same.
pub fn listener(address: Option<SocketAddr>) -> Option<TcpListener> {
    let mut passed = listenfd::ListenFd::from_env();
    for further in 1..passed.len() {
        // Closed: a client would wait for an answer.
        drop(passed.take_tcp_listener(further));
        output::say("only the first socket that the service manager passed is used");
    }
    let passed = passed.take_tcp_listener(0);
    match (passed, address) {
        (Ok(Some(listener)), None) => Some(listener),
        (Ok(Some(listener)), Some(address)) => {
            output::say(&format!(
                "listen: {address} is not used, because the service manager passed a socket"
            ));
            Some(listener)
        }
        (Err(error), _) => {
            output::say(&format!(
                "no metrics: the service manager passed a socket that cannot be used: {error}"
            ));
            None
        }
        (Ok(None), None) => None,
        (Ok(None), Some(address)) => match TcpListener::bind(address) {
            Ok(listener) => Some(listener),
            Err(error) => {
                output::say(&format!("no metrics: cannot listen at {address}: {error}"));
                None
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use plumb_report::exports::FindingMetrics;

    use super::*;

    fn reading(device: &str, reads: u64) -> Reading {
        let mut reading = Reading::default();
        let table = || {
            plumb_profile::Settings::default()
                .table()
                .expect("a modulus")
        };
        let profile = reading.profiles.entry(device, Layer::Request, table);
        profile.ops[Op::Read as usize].ios = reads;
        reading
    }

    fn reads(board: &Board, device: &str) -> Option<u64> {
        let state = lock(&board.state);
        let device = state.metrics.devices.get(device)?;
        Some(device.ops[Op::Read as usize].ios)
    }

    fn get(board: &Board, path: &str) -> Answer {
        let request = Request {
            path,
            query: None,
            accept: "",
        };
        lock(&board.state).answer(&request)
    }

    #[test]
    fn devices_come_and_go() {
        let disks = plumb_testkit::temp_dir("publish-disks");
        let disk = |name: &str, sectors: u64, number: &str| {
            let folder = disks.path().join(name);
            fs::create_dir_all(&folder).expect("room");
            fs::write(folder.join("size"), format!("{sectors}\n")).expect("room");
            fs::write(folder.join("dev"), format!("{number}\n")).expect("room");
        };
        disk("plumb-a", 100, "259:77");
        disk("plumb-idle", 100, "259:76");
        disk("plumb!b", 100, "259:78");
        disk("plumb-empty", 0, "259:79");
        let board = Board::new(Duration::from_secs(10));
        board.set_devices_in(disks.path());
        assert_eq!(reads(&board, "plumb-a"), Some(0));
        assert_eq!(reads(&board, "plumb/b"), Some(0));
        assert_eq!(reads(&board, "plumb-empty"), None);

        let mut identities = BTreeMap::new();
        board.add(&reading("plumb-a", 5), &identities);
        board.add(&reading("plumb-a", 2), &identities);
        board.add(&reading("259:80", 9), &identities);
        board.set_devices_in(disks.path());
        assert_eq!(reads(&board, "plumb-a"), Some(7), "counters go on");
        board.add(&reading("259:80", 9), &identities);
        assert_eq!(reads(&board, "259:80"), None, "a number is no name");
        // A disk that another one replaced begins at 0 before its first I/O.
        let old = BTreeMap::from([("plumb-idle".to_owned(), "old".to_owned())]);
        board.add(&reading("plumb-idle", 4), &old);
        assert_eq!(reads(&board, "plumb-idle"), Some(4));
        board.set_devices_in(disks.path());
        assert_eq!(reads(&board, "plumb-idle"), Some(0));
        // The name is that of another disk, then of none.
        identities.insert("plumb-a".to_owned(), "another".to_owned());
        board.add(&reading("plumb-a", 3), &identities);
        assert_eq!(reads(&board, "plumb-a"), Some(3));
        disk("plumb-a", 0, "259:77");
        board.set_devices_in(disks.path());
        assert_eq!(reads(&board, "plumb-a"), None);
    }

    #[test]
    fn findings_of_io_go_with_their_device() {
        let board = Board::new(Duration::from_secs(10));
        let identities = BTreeMap::from([("plumb-a".to_owned(), "wwn".to_owned())]);
        board.add(&reading("plumb-a", 5), &identities);
        let finding = |seen_on: Option<&str>| PresentFinding {
            finding: FindingMetrics {
                rule: plumb_model::RuleId::MisalignedIo,
                severity: plumb_model::Severity::Warning,
                device: seen_on.unwrap_or("layout").to_owned(),
                part: String::new(),
            },
            seen_on: seen_on.map(str::to_owned),
        };
        let all = [finding(None), finding(Some("wwn")), finding(Some("gone"))];
        board.set_findings(all.into_iter());
        let state = lock(&board.state);
        let findings = state.metrics.findings.iter();
        let devices: Vec<&str> = findings.map(|one| one.device.as_str()).collect();
        assert_eq!(devices, ["layout", "wwn"]);
    }

    #[test]
    fn an_agent_that_stops_is_reported() {
        let board = Board::new(Duration::from_secs(1));
        let health = || get(&board, "/healthz");
        assert_eq!(health(), Answer::text(200, "ok\n"));
        board.set_fault(Some("no room"));
        let words = "the history cannot be stored: no room\n";
        assert_eq!(health(), Answer::text(503, words));
        board.set_fault(None);
        lock(&board.state).read_at -= Duration::from_secs(20);
        let answer = health();
        assert_eq!(answer.status, 503);
        let words = String::from_utf8(answer.body.to_vec()).expect("text");
        // 20 s before, or a bit more.
        assert!(words.contains(" was 2"), "{words}");
        insta::assert_snapshot!(words.replace(|c: char| c.is_ascii_digit(), "9"));
        board.set_interval(Duration::from_secs(60));
        assert_eq!(health(), Answer::text(200, "ok\n"));
    }

    /// A text is made once, and again after a change.
    #[test]
    fn requests_share_a_text() {
        let board = Board::new(Duration::from_secs(1));
        let text = || get(&board, "/metrics").body;
        let first = text();
        assert_eq!(text().as_ptr(), first.as_ptr());
        board.add(&reading("plumb-a", 5), &BTreeMap::new());
        let second = String::from_utf8(text().to_vec()).expect("text");
        let line = "plumb_ios_total{device=\"plumb-a\",op=\"read\"} 5\n";
        assert!(second.contains(line), "{second}");
    }
}
