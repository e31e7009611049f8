//! The measurements of the agent over HTTP: metrics for Prometheus, and the state of the agent.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_capture::Reading;
use plumb_geometry::{Bytes, Grid};
use plumb_history::{Reader, Settings, Tier};
use plumb_http::{Answer, Limits, Request, Server};
use plumb_model::facts::GridSource;
use plumb_model::{RuleId, Severity};
use plumb_profile::{Profile, Select, Unknown};
use plumb_report::exports::{
    AgentMetrics, DeviceMetrics, FitMetrics, GridMetrics, HistoryMetrics, MetricsFormat,
    agent_metrics,
};
use plumb_trace::Op;

use crate::failure::Failure;
use crate::output;

/// The grid of the counters of fit: nobody states one to the agent.
const GRID: Grid = match Grid::unit(Bytes(4096)) {
    Ok(grid) => grid,
    Err(_) => panic!("4096 is a granularity"),
};

/// Paths that are answered.
const PATHS: [&str; 2] = ["/metrics", "/healthz"];

/// A reading may come later than its time on a busy host.
const LATE: Duration = Duration::from_secs(5);

/// The measurements that the server reads and the agent writes.
pub struct Board {
    state: Arc<Mutex<State>>,
}

struct State {
    metrics: AgentMetrics,
    interval: Duration,
    read_at: Instant,
    fault: Option<String>,
}

impl Board {
    pub fn new(interval: Duration) -> Board {
        let state = State {
            metrics: AgentMetrics {
                history_is_stored: true,
                ..AgentMetrics::default()
            },
            interval,
            read_at: Instant::now(),
            fault: None,
        };
        Board {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Adds a reading; `identities` are those of its devices.
    pub fn add(
        &self,
        reading: &Reading,
        identities: &BTreeMap<String, String>,
        interval: Duration,
    ) {
        let mut state = lock(&self.state);
        state.read_at = Instant::now();
        state.interval = interval;
        let metrics = &mut state.metrics;
        metrics.events_lost += reading.lost + reading.unlisted;
        metrics.calls_skipped += reading.skipped_calls;
        for profile in reading.profiles.iter() {
            let name = &profile.device;
            let identity = identities.get(name).unwrap_or(name);
            let device = metrics.devices.entry(name.clone());
            let device = device.or_insert_with(|| empty(profile, identity));
            if device.identity != *identity {
                // The name is that of another disk by now, whose counters begin at 0.
                *device = empty(profile, identity);
            }
            add(device, profile);
        }
    }

    /// Notes the findings that are present.
    pub fn set_findings(&self, findings: impl Iterator<Item = (RuleId, Severity, String)>) {
        lock(&self.state).metrics.findings = findings.collect();
    }

    /// Leaves out devices that the host no longer has.
    pub fn forget_gone(&self) {
        let is_there = |name: &String| super::sysfs_folder(name).exists();
        let mut state = lock(&self.state);
        state.metrics.devices.retain(|name, _| is_there(name));
    }

    /// Notes the size and the begin of the history.
    pub fn set_history(&self, folder: &Path, settings: &Settings) {
        let history = history_metrics(folder, settings);
        lock(&self.state).metrics.history = history;
    }

    /// Notes the fault of the history; `None` while it is stored.
    pub fn set_fault(&self, fault: Option<&str>) {
        let mut state = lock(&self.state);
        state.metrics.history_is_stored = fault.is_none();
        state.fault = fault.map(str::to_owned);
    }

    /// Starts to answer requests.
    pub fn serve(&self, listener: TcpListener) -> Result<Server, Failure> {
        let state = Arc::clone(&self.state);
        let answer = move |request: &Request<'_>| lock(&state).answer(request);
        Server::start(listener, Limits::default(), Arc::new(answer))
            .map_err(|error| Failure::failed(&error))
    }
}

/// No reader of a half-written state can exist: a panic of the agent ends it.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn answer(&self, request: &Request<'_>) -> Answer {
        match request.path {
            "/metrics" => {
                let format = match request.accept.contains("application/openmetrics-text") {
                    true => MetricsFormat::OpenMetrics,
                    false => MetricsFormat::Classic,
                };
                let text = agent_metrics(&self.metrics, env!("CARGO_PKG_VERSION"), format);
                Answer {
                    status: 200,
                    content_type: format.content_type(),
                    body: text.into_bytes(),
                }
            }
            "/healthz" => match self.illness() {
                None => Answer::text(200, "ok\n"),
                Some(illness) => Answer::text(503, illness + "\n"),
            },
            other => Answer::not_found(other, &PATHS),
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
        let fault = self.fault.as_ref()?;
        Some(format!("the history cannot be stored: {fault}"))
    }
}

/// A device without I/O.
fn empty(profile: &Profile, identity: &str) -> DeviceMetrics {
    DeviceMetrics {
        identity: identity.to_owned(),
        layer: profile.layer,
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

fn add(device: &mut DeviceMetrics, profile: &Profile) {
    device.in_flight = profile.answers.as_ref().map_or(0, |all| all.in_flight);
    for (totals, added) in device.ops.iter_mut().zip(&profile.ops) {
        totals.merge(added);
    }
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
    let passed = listenfd::ListenFd::from_env().take_tcp_listener(0);
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
