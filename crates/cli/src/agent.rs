//! `plumb agent`: counts the I/O of all disks all the time, and stores them in a history.
//!
//! Flow: the programs in the kernel count; every 10 s the counts are read and added to the open windows in memory, and to the windows of the last hour;
//! every 60 s the open windows are stored; every 5 min the I/O since the last time are judged, and changes of findings are reported. A new survey of the layout is judged as soon as
//! it is there, and a changed layout requests one. A full or read-only file system is
//! reported once and tried again each time, also at the start; the I/O stay in memory until then.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumb_capture::{BlockWatch, CaptureError, Options, OwnReads, Process};
use plumb_diagnose::Questions;
use plumb_history::{
    DeviceIncrement, HistoryError, HostFactRow, Notice, Sender, Senders, Span, Writer,
};
use plumb_http::Server;
use plumb_model::facts::{HostFact, HostFactSource, HostValue};
use plumb_profile::top::ProcessShare;
use plumb_quoting::{Command, json, visible};
use sd_notify::NotifyState;
use serde::Serialize;

use crate::api::Api;
use crate::cli::{Agent, STATE_DIR};
use crate::config::Config;
use crate::device_names::DeviceNames;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::history::now_ns;
use crate::listen::AccessFiles;
use crate::signals::{service_flags, stop_flag};
use crate::watch::{refused, wait_until};
use crate::{output, privilege};

mod command;
pub mod config;
mod export;
pub mod identity;
pub mod judge;
mod layout;
mod log;
mod notify;
mod packages;
mod packed;
mod publish;
pub mod recent;
mod recording;
pub mod survey;

use config::AgentConfig;
use export::{ExportTarget, Exporter};
use judge::{Change, Judge};
use layout::LayoutWatch;
use log::ChangeLog;
use notify::Notifier;
use packages::PackageLists;
use publish::Board;
use recent::RecentWindows;
use recording::Recordings;
pub use recording::helper::{ARGUMENT as RECORDING_HELPER, serve as serve_recordings};
use survey::SurveyFile;

/// Time between two checkpoints: a kill loses at most the I/O since the last one.
const CHECKPOINT: Duration = Duration::from_secs(60);

/// Changes of findings after which a survey stores them: the history keeps a limited number in memory.
const CHANGES_AT_ONCE: usize = 500;

/// A clock that went further than this within a reading was set, or the host slept: the I/O count at the present time.
const JUMP_NS: i64 = 5_000_000_000;

/// Runs the command.
///
/// # Errors
/// When the configuration has a mistake, the disks cannot be watched, or the history cannot be opened.
pub fn run(args: &Agent) -> Result<Exit, Failure> {
    let mut config = AgentConfig::read(args)?;
    if args.check_config {
        Config::read(None, true)?;
        config.access.access()?;
        let lack = BlockWatch::lack_of_types(&Options::default());
        output::print(&checked(&config, lack.as_ref()))?;
        return Ok(Exit::Clean);
    }
    // Counting goes before accepting.
    let accepted = Config::read(None, true).unwrap_or_else(|failure| {
        let why = failure.text("");
        output::say(&format!("no finding is accepted: {}", why.trim_end()));
        Config::default()
    });
    // A person who closes the terminal wants the agent to end; systemd asks for a reload by the same signal.
    let (ended, reload) = match std::io::stdin().is_terminal() {
        true => (stop_flag()?, Arc::default()),
        false => service_flags()?,
    };
    let (mut writer, no_writes) =
        Writer::open_or_begin_in_memory(&config.state_dir, config.history.clone())
            .map_err(|error| Failure::failed(&error))?;
    let options = Options {
        tables: Questions::default().settings(),
        own_reads: OwnReads::LeftOut,
        ..Options::default()
    };
    let mut block = BlockWatch::attach(&options).map_err(|error| match error {
        CaptureError::NoWay { .. } => Failure::failed(&error)
            .with_help("`plumb agent --check-config` prints the rights for trace events"),
        other => refused(other),
    })?;
    let listener = publish::listener(config.listen);
    let recordings = Recordings::start(&config.recording, &config.state_dir);
    let mut written = vec![config.state_dir.join("history.db")];
    if let Some(ExportTarget::Folder(folder)) = config.export.as_ref().map(|one| &one.target) {
        written.push(folder.join("host="));
    }
    // The files of access are read again after SIGHUP.
    privilege::drop_to(&config.access.paths(), &written)?;
    output::say(&format!(
        "counting the I/O of all disks into {}",
        config.state_dir.display()
    ));
    let board = Board::new(config.interval);
    let recent = Arc::new(RecentWindows::new(config.interval));
    let api = Arc::new(Api {
        state_dir: config.state_dir.clone(),
        survey: Some(config.survey.clone()),
        recent: Some(Arc::clone(&recent)),
    });
    let server = listener.and_then(|listener| match config.access.access() {
        Ok(access) => board.serve(listener, access, api),
        // Counting goes before answering.
        Err(failure) => {
            output::say(&format!("no metrics: {}", failure.text("").trim_end()));
            None
        }
    });
    let earlier = writer
        .present_findings()
        .map_err(|error| Failure::failed(&error))?;
    let mut agent = RunningAgent {
        identities: BTreeMap::new(),
        refusals: Refusals::default(),
        fault: None,
        judge: Judge::resume(&earlier),
        survey: SurveyFile::default(),
        packages: PackageLists::of_host(),
        layout: LayoutWatch::new(layout::request_folder(), Path::new(identity::DISKS)),
        recent,
        log: ChangeLog::open(),
        recordings,
        notifier: Notifier::start(&config.receivers, crate::this_run::host()),
        exporter: Exporter::start(&config.state_dir, config.export.as_ref(), &config.history),
        board,
    };
    agent.note_fault(no_writes.map(|error| Failure::failed(&error).text("")));
    agent.report(&mut writer);
    agent.publish(&config);
    agent.accept(accepted);
    note_kernel(&mut writer);
    tell_systemd(&[NotifyState::Ready]);
    let has_watchdog = sd_notify::watchdog_enabled().is_some();
    let mut judged = Instant::now();
    let end = args.duration.map(|duration| Instant::now() + duration);
    let mut stored = Instant::now();
    let mut from_ns = now_ns();
    let mut names = DeviceNames::of_present();
    let mut is_over = false;
    while !is_over {
        let next = Instant::now() + until_reading(now_ns(), config.interval);
        let next = end.map_or(next, |end| next.min(end));
        wait_until(next, &ended, || block.keep_up());
        is_over = ended.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end);
        if is_over {
            tell_systemd(&[NotifyState::Stopping]);
            block.end();
        }
        names.learn();
        let mut reading = block.read();
        names.restore(&mut reading);
        let to_ns = now_ns();
        let span = span_of(from_ns, to_ns, config.interval);
        agent.add(&mut writer, span, &reading);
        agent.board.add(&reading, &agent.identities);
        agent.record(&reading);
        from_ns = to_ns;
        if is_over || judged.elapsed() >= config.judge_every {
            judged = Instant::now();
            agent.publish(&config);
            agent.judge(&mut writer, to_ns);
        }
        if !is_over {
            agent.survey(&mut writer, &config.survey, to_ns);
            agent.note_packages(&mut writer, to_ns);
            agent.look_at_layout();
        }
        if is_over || stored.elapsed() >= CHECKPOINT {
            stored = Instant::now();
            agent.store(&mut writer, to_ns);
        }
        if reload.swap(false, Ordering::Relaxed) {
            let (taken, accepted) = read_again(args, config, &mut writer, server.as_ref());
            config = taken;
            agent.notifier.change(&config.receivers);
            agent
                .exporter
                .change(config.export.as_ref(), &config.history);
            agent.recordings.change(&config.recording);
            agent.board.set_interval(config.interval);
            agent.recent.set_interval(config.interval);
            if let Some(accepted) = accepted {
                agent.accept(accepted);
            }
        }
        if has_watchdog {
            tell_systemd(&[NotifyState::Watchdog]);
        }
    }
    agent.recordings.end(&agent.log);
    agent.exporter.end();
    agent.notifier.end();
    match agent.fault {
        None => Ok(Exit::Clean),
        Some(fault) => Err(Failure::unknown(format!(
            "the I/O since the last checkpoint are not stored: {fault}"
        ))),
    }
}

/// For an agent that posts to a webhook.
const WEBHOOK: &str = "
# With this webhook the unit needs a drop-in (systemctl edit plumb-agent):
#
# [Service]
# PrivateNetwork=no
# RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
";

/// For an agent whose export runs a command.
const COMMAND: &str = "
# With this command of `export` the unit needs a drop-in (systemctl edit plumb-agent). The command shares the memory of the unit:
#
# [Service]
# PrivateNetwork=no
# RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
# MemoryMax=512M
";

/// For an agent that opens its socket itself.
const NETWORK: &str = "
# With this address the unit needs a drop-in (systemctl edit plumb-agent), or plumb-agent.socket in place of it:
#
# [Service]
# PrivateNetwork=no
# RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
# IPAddressDeny=any
# IPAddressAllow=localhost
";

/// For an agent that records: the helper encodes every I/O.
const RECORDING: &str = "
# Recordings of busy disks lose I/O without a drop-in for the unit (systemctl edit plumb-agent):
#
# [Service]
# MemoryMax=400M
# CPUQuota=100%
";

/// For an agent that opens a socket for other hosts itself.
const NETWORK_OF_OTHERS: &str = "
# With this address the unit needs a drop-in (systemctl edit plumb-agent), or plumb-agent.socket with this address in place of it:
#
# [Service]
# PrivateNetwork=no
# RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
";

/// The configuration, and the drop-ins that the unit needs for it and for the types of this kernel.
fn checked(config: &AgentConfig, lack: Option<&CaptureError>) -> String {
    let mut text = config.text();
    let mut user = "plumb-agent";
    if let Some(lack) = lack {
        user = "root";
        let why = lack.to_string();
        text += &format!(
            "
# Plumb's programs do not fit this kernel ({}), so that the agent reads trace events, and recordings fail.
# For these events the unit needs a drop-in (systemctl edit plumb-agent):
#
# [Service]
# DynamicUser=no
# User=root
# ProtectKernelTunables=no
",
            visible(&why)
        );
    }
    let target = config.export.as_ref().map(|export| &export.target);
    match &config.receivers.webhook {
        // Each needs more than the address, so that its drop-in serves both.
        _ if matches!(target, Some(ExportTarget::Command(_))) => text += COMMAND,
        Some(_) => text += WEBHOOK,
        None => match config.listen {
            Some(address) if address.ip().is_loopback() => text += NETWORK,
            Some(_) => text += NETWORK_OF_OTHERS,
            None => {}
        },
    }
    text += &access_words(&config.access);
    if config.recording.is_on() {
        text += RECORDING;
    }
    let mut folders = Vec::new();
    let mut shared = "";
    if config.state_dir != Path::new(STATE_DIR) {
        let install = match user {
            "root" => "install -d -m 700 -o root",
            _ => "install -d -m 700 -o plumb-agent",
        };
        folders.push(("state_dir", install, config.state_dir.as_path()));
    }
    if let Some(ExportTarget::Folder(folder)) = target {
        let install = match user {
            "root" => "install -d -m 755 -o root",
            _ => "install -d -m 755 -o plumb-agent",
        };
        folders.push(("export folder", install, folder.as_path()));
        shared = "# UMask=0022\n";
    }
    if folders.is_empty() {
        return text;
    }
    let names: Vec<&str> = folders.iter().map(|(name, ..)| *name).collect();
    let names = names.join(" and this ");
    let (mut made, mut written) = (String::new(), String::new());
    let mut seen = BTreeSet::new();
    for (_, install, folder) in folders {
        if let Ok(line) = Command::new(install).path(folder).line() {
            made += &format!("#   {line}\n");
        }
        seen.extend(HIDDEN.iter().filter(|(above, _)| folder.starts_with(above)));
        // A percent sign begins a specifier of systemd.
        let folder = folder.display().to_string().replace('%', "%%");
        written += &format!("# ReadWritePaths=\"{folder}\"\n");
    }
    let keys: BTreeSet<&str> = seen.into_iter().map(|(_, key)| key).collect();
    let keys: String = keys.iter().map(|key| format!("# {key}=no\n")).collect();
    let useradd = match user {
        "root" => "",
        _ => "#   useradd --system plumb-agent\n",
    };
    format!(
        "{text}
# For this {names} the unit needs a user that keeps its number, and a drop-in (systemctl edit plumb-agent):
#
{useradd}{made}#
# [Service]
# DynamicUser=no
# User={user}
{shared}{keys}{written}"
    )
}

/// Folders that the unit does not see, and the key that shows them.
const HIDDEN: [(&str, &str); 5] = [
    ("/home", "ProtectHome"),
    ("/root", "ProtectHome"),
    ("/run/user", "ProtectHome"),
    ("/tmp", "PrivateTmp"),
    ("/var/tmp", "PrivateTmp"),
];

/// The rights that the unit needs to read the files that protect the answers, also when they are renewed.
fn access_words(files: &AccessFiles) -> String {
    let secrets = [&files.key, &files.tokens].into_iter().flatten();
    let mut chgrp = Command::new("chgrp plumb-agent-tls");
    let mut chmod = Command::new("chmod 640");
    let mut has_some = false;
    for path in secrets {
        (chgrp, chmod) = (chgrp.path(path), chmod.path(path));
        has_some = true;
    }
    if !has_some {
        return String::new();
    }
    let line = |command: Command| {
        let line = command.line();
        line.map_or_else(|_| String::new(), |line| line.to_string())
    };
    format!(
        "
# To read these files the unit needs a group, and a drop-in (systemctl edit plumb-agent):
#
#   groupadd --system plumb-agent-tls
#   {}
#   {}
#
# [Service]
# SupplementaryGroups=plumb-agent-tls
",
        line(chgrp),
        line(chmod)
    )
}

/// Notes the kernel that runs.
fn note_kernel(writer: &mut Writer) {
    let release = rustix::system::uname();
    let release = HostValue::Name(release.release().to_string_lossy().into_owned());
    writer.note_host(host_row(now_ns(), &HostFact::Kernel, Some(&release)));
}

/// Notes all facts of a source; those of an earlier look that it does not have are gone.
fn note_host(
    writer: &mut Writer,
    at_ns: i64,
    source: HostFactSource,
    facts: &BTreeMap<HostFact, HostValue>,
) {
    for (fact, value) in facts {
        writer.note_host(host_row(at_ns, fact, Some(value)));
    }
    let is_gone = |fact: &HostFact| fact.source() == source && !facts.contains_key(fact);
    // Without them nothing is noted as gone; the next look does it.
    for name in writer.present_host_facts().unwrap_or_default() {
        let known: Option<HostFact> = json::from_slice(name.as_bytes()).ok();
        if let Some(fact) = known.filter(is_gone) {
            writer.note_host(host_row(at_ns, &fact, None));
        }
    }
}

fn host_row(at_ns: i64, fact: &HostFact, value: Option<&HostValue>) -> HostFactRow {
    HostFactRow {
        at_ns,
        name: json_words(fact),
        value: value.map(json_words),
    }
}

/// JSON of a value that has no map with other keys than words: it can always be written.
fn json_words(value: &impl Serialize) -> String {
    json::exact(value).unwrap_or_default()
}

/// The configuration after SIGHUP, and the findings that are accepted. The programs in the kernel go on counting meanwhile. A
/// mistake is reported, and the configuration before it stays.
fn read_again(
    args: &Agent,
    before: AgentConfig,
    writer: &mut Writer,
    server: Option<&Server>,
) -> (AgentConfig, Option<Config>) {
    let reloading = NotifyState::monotonic_usec_now().ok();
    let states: Vec<NotifyState<'_>> = [NotifyState::Reloading]
        .into_iter()
        .chain(reloading)
        .collect();
    tell_systemd(&states);
    let read = AgentConfig::read(args).and_then(|config| Ok((config, Config::read(None, true)?)));
    let taken = read.and_then(|(mut config, accepted)| {
        let access = config.access.access()?;
        if config.state_dir != before.state_dir {
            output::say(&format!(
                "state_dir: the history stays in {} until the agent starts again",
                before.state_dir.display()
            ));
            config.state_dir.clone_from(&before.state_dir);
        }
        if config.listen != before.listen {
            output::say("listen: a changed address counts when the agent starts again");
            config.listen = before.listen;
        }
        writer
            .set_settings(config.history.clone())
            .map_err(|error| Failure::failed(&error))?;
        if let Some(server) = server {
            let set = server.set_access(access);
            set.map_err(|error| Failure::failed(&error).at("listen"))?;
        }
        Ok((config, accepted))
    });
    tell_systemd(&[NotifyState::Ready]);
    match taken {
        Ok((config, accepted)) => {
            output::say("read the configuration again");
            (config, Some(accepted))
        }
        Err(failure) => {
            let why = failure.text("");
            output::say(&format!(
                "the configuration stays as it was: {}",
                why.trim_end()
            ));
            (before, None)
        }
    }
}

/// Tells systemd the state of the service; without systemd it does nothing.
fn tell_systemd(states: &[NotifyState<'_>]) {
    // A manager that does not listen is no reason to stop counting.
    let _ = sd_notify::notify(states);
}

/// The time until the next reading, which ends with a window: at a multiple of the interval by the clock, and not at once.
fn until_reading(now_ns: i64, interval: Duration) -> Duration {
    let interval_ns = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
    let left_ns = interval_ns - now_ns.rem_euclid(interval_ns.max(1));
    // A wait can end some ms early by a clock that is slewed.
    let is_now = left_ns < interval_ns / 20;
    Duration::from_nanos(left_ns.unsigned_abs()) + if is_now { interval } else { Duration::ZERO }
}

/// The time of a reading. If the clock was set meanwhile, it is the interval before the present time.
fn span_of(from_ns: i64, to_ns: i64, interval: Duration) -> Span {
    let expected_ns = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
    let is_near = (0..=expected_ns.saturating_add(JUMP_NS)).contains(&(to_ns - from_ns));
    Span {
        from_ns: if is_near {
            from_ns
        } else {
            to_ns.saturating_sub(expected_ns)
        },
        to_ns,
    }
}

/// Devices whose I/O the history refuses.
#[derive(Default)]
struct Refusals {
    /// Identities of devices for which the history has no number. Each reading would report them again.
    without_number: BTreeSet<String>,
}

impl Refusals {
    /// The line for the log about an increment; `None` if it is stored, or refused as the one before.
    fn note(
        &mut self,
        increment: &DeviceIncrement<'_>,
        added: Result<(), HistoryError>,
    ) -> Option<String> {
        let DeviceIncrement { identity, name, .. } = *increment;
        let Err(error) = added else {
            self.without_number.remove(identity);
            return None;
        };
        let is_without_number = matches!(error, HistoryError::TooManySeries { .. });
        let why = Failure::failed(&error).text("");
        let why = why.trim_end();
        if !is_without_number {
            let ios = increment.profile.ios();
            return Some(format!("{name}: {ios} I/O are not stored: {why}"));
        }
        let is_new = self.without_number.insert(identity.to_owned());
        is_new.then(|| {
            format!(
                "{name}: its I/O are not stored until another device has no history left: {why}"
            )
        })
    }
}

struct RunningAgent {
    /// Identities by name.
    identities: BTreeMap<String, String>,
    refusals: Refusals,
    /// The fault of the last checkpoint, which was reported.
    fault: Option<String>,
    judge: Judge,
    survey: SurveyFile,
    packages: PackageLists,
    layout: LayoutWatch,
    recent: Arc<RecentWindows>,
    log: ChangeLog,
    recordings: Recordings,
    notifier: Notifier,
    exporter: Exporter,
    board: Board,
}

impl RunningAgent {
    fn add(&mut self, writer: &mut Writer, span: Span, reading: &plumb_capture::Reading) {
        // A name may be that of another disk by now.
        self.identities
            .extend(identity::present(Path::new(identity::DISKS)));
        for profile in reading.profiles.iter() {
            let name = &profile.device;
            let identity = self.identity(name);
            self.judge.add(&identity, profile);
            if !profile.has_io() {
                continue;
            }
            self.recent.add(span, &identity, name, profile);
            let senders = senders(&reading.processes, name);
            let increment = DeviceIncrement {
                identity: &identity,
                name,
                profile,
                senders: Some(&senders),
            };
            let added = writer.add(span, &increment);
            if let Some(line) = self.refusals.note(&increment, added) {
                output::say(&line);
            }
        }
        writer.end_reading(span.to_ns);
        self.recent.end_reading(span);
    }

    /// Begins a recording of a device that has crossed a line.
    fn record(&mut self, reading: &plumb_capture::Reading) {
        self.recordings.look(reading, &self.identities, &self.log);
        self.board.set_recordings(self.recordings.counts());
        self.board.set_export(self.exporter.metrics());
    }

    /// Requests a survey if the layout has changed.
    fn look_at_layout(&mut self) {
        let disks = Path::new(identity::DISKS);
        if let Some(line) = self.layout.look(disks, Instant::now()) {
            output::say(&line);
        }
    }

    /// Reports and stores the findings that have appeared, changed or gone since the last call.
    fn judge(&mut self, writer: &mut Writer, at_ns: i64) {
        for change in self.judge.end_period() {
            self.note(writer, at_ns, &change);
        }
        self.board.set_findings(self.judge.present());
    }

    /// Accepts findings from now on.
    fn accept(&mut self, accepted: Config) {
        self.judge.accept(accepted);
        self.board.set_findings(self.judge.present());
    }

    /// Publishes the figures that change rarely.
    fn publish(&self, config: &AgentConfig) {
        self.board.set_history(&config.state_dir, &config.history);
        self.board.set_devices();
    }

    /// Notes the packages of the host, if some of them are new.
    fn note_packages(&mut self, writer: &mut Writer, at_ns: i64) {
        match self.packages.read_new() {
            Ok(Some(packages)) => note_host(writer, at_ns, HostFactSource::Packages, &packages),
            Ok(None) => {}
            Err(why) => output::say(&format!("the packages of the host cannot be read: {why}")),
        }
    }

    /// Judges the layout by a survey that is new.
    fn survey(&mut self, writer: &mut Writer, path: &Path, at_ns: i64) {
        let survey = match self.survey.read_new(path) {
            Ok(Some(survey)) => survey,
            Ok(None) => return,
            Err(why) => return output::say(&format!("the survey cannot be read: {why}")),
        };
        if let Some(facts) = &survey.host {
            note_host(writer, at_ns, HostFactSource::Survey, facts);
        }
        let changes = self.judge.survey(survey);
        for changes in changes.chunks(CHANGES_AT_ONCE) {
            for change in changes {
                self.note(writer, at_ns, change);
            }
            if changes.len() == CHANGES_AT_ONCE {
                self.store(writer, at_ns);
            }
        }
        self.board.set_findings(self.judge.present());
    }

    /// Logs a change of a finding, and notes it for the history.
    fn note(&self, writer: &mut Writer, at_ns: i64, change: &Change) {
        let recording = self.recordings.file_of(&change.finding.target.device);
        self.log.note(change, recording);
        let time = crate::history::span::time_words(at_ns);
        self.notifier.note(change, &time, recording);
        if let Some((key, step)) = change.step() {
            writer.note_finding(at_ns, key, step);
        }
    }

    /// Stores everything that is in memory.
    fn store(&mut self, writer: &mut Writer, at_ns: i64) {
        let was_in_memory = writer.is_in_memory();
        let done = writer.checkpoint(at_ns);
        if was_in_memory && !writer.is_in_memory() {
            // Without them, the findings of the run before would never go.
            self.judge
                .recall(&writer.present_findings().unwrap_or_default());
        }
        self.note_fault(done.err().map(|error| Failure::failed(&error).text("")));
        self.report(writer);
    }

    /// The identity of a disk; of one that has gone away the last known, and of one without any its name.
    fn identity(&mut self, name: &str) -> String {
        let known = self.identities.entry(name.to_owned());
        known.or_insert_with(|| name.to_owned()).clone()
    }

    /// Reports a fault when it appears, and its end.
    fn note_fault(&mut self, fault: Option<String>) {
        match (&self.fault, &fault) {
            (None, Some(fault)) => output::say(&format!(
                "the history cannot be stored: {fault}; the I/O stay in memory, and the next try follows in 60 s"
            )),
            (Some(_), None) => output::say("the history is stored again"),
            _ => {}
        }
        self.board.set_fault(fault.as_deref());
        self.fault = fault;
    }

    fn report(&mut self, writer: &mut Writer) {
        for notice in writer.take_notices() {
            output::say(&notice_words(&notice));
        }
    }
}

/// A notice of the store for a person.
pub fn notice_words(notice: &Notice) -> String {
    match notice {
        Notice::SetAside { aside } => format!(
            "a damaged file of the history is {} now, and a new one was begun",
            aside.display()
        ),
        Notice::DamagedWindow { series, window } => format!(
            "a damaged open window is lost: device {series}, {} from {}",
            window.tier.word(),
            crate::history::span::time_words(window.span().from_ns)
        ),
        Notice::Evicted { windows } => {
            format!("{windows} of the oldest windows were deleted: the history is at its cap")
        }
        Notice::LogKept { file, cause } => format!(
            "the log of {} stays as it is: {cause}; nothing is lost, and the next try follows in 60 s",
            file.display()
        ),
        Notice::Dropped { windows } => format!(
            "{windows} windows are lost: too many had to wait for the file system; coarser windows have their I/O"
        ),
    }
}

/// The senders of the I/O of a device.
fn senders(processes: &[Process], device: &str) -> Senders {
    let mut senders = Senders::default();
    for process in processes.iter().filter(|process| process.disk == device) {
        let sender = Sender {
            command: process.comm.clone(),
            cgroup: process.cgroup.clone().unwrap_or_default(),
        };
        let share = ProcessShare {
            ios: process.ios,
            bytes: process.bytes,
        };
        senders.add(sender, share);
    }
    senders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_a_number_is_reported_once() {
        let table = plumb_profile::Settings::default().table();
        let mut profiles = plumb_profile::ProfileSet::default();
        let layer = plumb_trace::Layer::Request;
        let profile = &*profiles.entry("sda", layer, || table.expect("a modulus"));
        let of = |identity| DeviceIncrement {
            identity,
            name: "sda",
            profile,
            senders: None,
        };
        let refused = || {
            Err(HistoryError::TooManySeries {
                found: 4097,
                most: 4096,
            })
        };
        let mut refusals = Refusals::default();
        let line = refusals.note(&of("one"), refused()).expect("a line");
        insta::assert_snapshot!(line);
        assert_eq!(refusals.note(&of("one"), refused()), None);
        assert!(refusals.note(&of("other"), refused()).is_some());
        // After it was stored, a refusal is news again.
        assert_eq!(refusals.note(&of("one"), Ok(())), None);
        assert!(refusals.note(&of("one"), refused()).is_some());
    }

    #[test]
    fn readings_end_with_windows() {
        let second = 1_000_000_000;
        for (now_s, interval_s, left_s) in [
            (100, 10, 10),
            (103, 10, 7),
            (109, 10, 1),
            (100, 60, 20),
            (7, 1, 1),
        ] {
            let left = until_reading(now_s * second, Duration::from_secs(interval_s));
            assert_eq!(
                left,
                Duration::from_secs(left_s),
                "{now_s} s, {interval_s} s"
            );
        }
        // 3 ms before a multiple the reading is over.
        let left = until_reading(110 * second - 3_000_000, Duration::from_secs(10));
        assert_eq!(left, Duration::from_millis(10_003));
    }

    #[test]
    fn a_clock_that_jumps_does_not_stretch_a_reading() {
        let ten = Duration::from_secs(10);
        let second = 1_000_000_000;
        let from = |from_ns, to_ns| span_of(from_ns, to_ns, ten).from_ns;
        assert_eq!(from(100 * second, 110 * second), 100 * second);
        // A busy host reads late.
        assert_eq!(from(100 * second, 114 * second), 100 * second);
        // The clock was set back, or the host slept for a day.
        assert_eq!(from(100 * second, 50 * second), 40 * second);
        assert_eq!(from(100 * second, 86_500 * second), 86_490 * second);
    }
}
