//! Exports the windows that are over to the folder of a fleet, or by a command to an object store.
//!
//! The history is the backlog: a small file names the time up to which each tier is exported, and everything later is exported as long as
//! the history keeps it. So nothing waits in memory, and one object at a time is on the disk for the command. A thread of its own does
//! the work, since a store that hangs must not delay the counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use plumb_geometry::plural;
use plumb_history::{Reader, Settings, Tier};
use plumb_quoting::{json, visible};
use plumb_report::exports::ExportMetrics;
use serde::{Deserialize, Serialize};

use super::command::CommandRun;
use crate::failure::Failure;
use crate::history::now_ns;
use crate::history::objects::{FleetObject, each_object, put_into_folder, times_over};
use crate::history::span::{self, time_words};
use crate::output;

/// Time between two looks for windows that are over.
const LOOK: Duration = Duration::from_secs(60);
/// Wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Time for a command with one object.
const COMMAND_MAX: Duration = Duration::from_secs(300);
/// Time for the end of the thread at the end of the agent.
const END_MAX: Duration = Duration::from_secs(5);
/// The file in the folder of the history with the time up to which the windows are exported.
const DONE: &str = "exported.json";
/// The object that a command reads, in the folder of the history.
const SPOOL: &str = "export.parquet";

/// The export of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The place for the objects.
    pub target: ExportTarget,
    /// The tiers, each once.
    pub tiers: Vec<Tier>,
}

/// The place of exported objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportTarget {
    /// A folder.
    Folder(PathBuf),
    /// A program with its arguments, with `{file}` for the path of an object and `{key}` for its name.
    Command(Vec<String>),
}

impl ExportTarget {
    /// The target for messages.
    fn name(&self) -> String {
        match self {
            ExportTarget::Folder(folder) => format!("folder {}", folder.display()),
            ExportTarget::Command(words) => format!(
                "command {}",
                visible(words.first().map_or("", String::as_str))
            ),
        }
    }
}

/// The exported time. Of another target nothing is exported yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    target: Vec<String>,
    /// End of the exported time of each tier by its word, ns since 1970.
    upto_ns: BTreeMap<String, i64>,
}

impl Done {
    /// The state in the folder of a history. Without a sound file everything is exported again, which changes no object.
    fn read(state_dir: &Path, export: &Export) -> Done {
        let target = match &export.target {
            ExportTarget::Folder(folder) => vec![folder.display().to_string()],
            ExportTarget::Command(words) => words.clone(),
        };
        let bytes = fs::read(state_dir.join(DONE)).unwrap_or_default();
        let known: Option<Done> = json::from_slice(&bytes).ok();
        known.filter(|done| done.target == target).unwrap_or(Done {
            target,
            upto_ns: BTreeMap::new(),
        })
    }

    fn write(&self, state_dir: &Path) -> Result<(), Failure> {
        let text = json::exact(self).map_err(|error| Failure::failed(&error))?;
        output::write_file(&state_dir.join(DONE), text.as_bytes())
    }
}

/// The work of the thread.
struct ExportWork {
    export: Export,
    state_dir: PathBuf,
    settings: Settings,
    /// Of all exports since the agent started.
    counts: Arc<Mutex<ExportMetrics>>,
}

impl ExportWork {
    fn count(&self, change: impl FnOnce(&mut ExportMetrics)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Exports everything that is over and not exported yet. Returns the number of objects.
    fn export_new(&self, say: &dyn Fn(&str), is_over: &dyn Fn() -> bool) -> Result<u64, Failure> {
        let reader = span::open_with(&self.state_dir, &self.settings)?;
        let upto_ns = reader.upto_ns().map_err(|error| Failure::failed(&error))?;
        let mut done = Done::read(&self.state_dir, &self.export);
        let mut objects = 0;
        for tier in &self.export.tiers {
            let word = tier.word();
            let known_ns = done.upto_ns.get(word).copied();
            let from_ns = known_ns.unwrap_or(0);
            let times = times_over(&reader, *tier, from_ns, upto_ns)?;
            if let Some(known_ns) = known_ns {
                note_lost(&reader, *tier, known_ns, say)?;
            }
            for time in times {
                if is_over() {
                    return Ok(objects);
                }
                let damaged = each_object(&reader, *tier, time, &mut |object| {
                    self.put(object, is_over)?;
                    objects += 1;
                    self.count(|counts| counts.objects += 1);
                    Ok(())
                })?;
                if damaged > 0 {
                    let windows = plural(damaged, "damaged window");
                    say(&format!("the export left out {windows}"));
                }
                done.upto_ns.insert(word.to_owned(), time.span().to_ns);
                done.write(&self.state_dir)?;
            }
        }
        Ok(objects)
    }

    fn put(&self, object: &FleetObject, is_over: &dyn Fn() -> bool) -> Result<(), Failure> {
        let words = match &self.export.target {
            ExportTarget::Folder(folder) => return put_into_folder(folder, object).map(drop),
            ExportTarget::Command(words) => words,
        };
        let file = self.state_dir.join(SPOOL);
        output::write_file(&file, &object.bytes)?;
        let path = file.display().to_string();
        let words: Vec<String> = words
            .iter()
            .map(|word| word.replace("{file}", &path).replace("{key}", &object.key))
            .collect();
        let run = CommandRun {
            limit: COMMAND_MAX,
            takes_stderr: true,
            is_over: Some(is_over),
            ..CommandRun::default()
        };
        let ran = run.run(&words);
        let _ = fs::remove_file(&file);
        ran.map_err(Failure::unknown)
    }
}

/// Reports windows that the history has deleted before they were exported.
fn note_lost(
    reader: &Reader,
    tier: Tier,
    known_ns: i64,
    say: &dyn Fn(&str),
) -> Result<(), Failure> {
    let oldest_ns = reader
        .oldest(tier)
        .map_err(|error| Failure::failed(&error))?;
    if let Some(oldest_ns) = oldest_ns.filter(|oldest_ns| *oldest_ns > known_ns) {
        say(&format!(
            "windows of {} from {} to {} are not exported: the history has deleted them",
            tier.word(),
            time_words(known_ns),
            time_words(oldest_ns)
        ));
    }
    Ok(())
}

/// Tells the thread to end, and the agent that it has.
#[derive(Default)]
struct ExportEnd {
    is_over: AtomicBool,
    has_ended: Mutex<bool>,
    changed: Condvar,
}

impl ExportEnd {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.has_ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn begin(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Waits for the end of the agent, or for a time.
    fn pause(&self, wait: Duration) {
        let goes_on = |_: &mut bool| !self.is_over();
        drop(self.changed.wait_timeout_while(self.lock(), wait, goes_on));
    }

    /// Waits for the end of the thread.
    fn wait(&self, limit: Duration) {
        let runs = |has_ended: &mut bool| !*has_ended;
        drop(self.changed.wait_timeout_while(self.lock(), limit, runs));
    }
}

/// The wait after a failure.
fn next_wait(before: Option<Duration>, first: Duration) -> Duration {
    before.map_or(first, |before| (before * 2).min(WAIT_MAX))
}

/// Exports until the end. `say` gets the lines for the log.
fn export_all(
    work: &ExportWork,
    end: &ExportEnd,
    look: Duration,
    first_wait: Duration,
    say: &dyn Fn(&str),
) {
    let name = work.export.target.name();
    let mut wait = None;
    while !end.is_over() {
        let known = Done::read(&work.state_dir, &work.export);
        let exported = work.export_new(say, &|| end.is_over());
        let pause = match exported {
            Ok(_) => {
                if !end.is_over() {
                    work.count(|counts| counts.last_success_ns = Some(now_ns()));
                }
                if wait.take().is_some() {
                    say(&format!("the {name} takes windows again"));
                }
                look
            }
            Err(_) if end.is_over() => break,
            Err(failure) => {
                work.count(|counts| counts.failures += 1);
                if wait.is_none() {
                    let why = failure.text("");
                    say(&format!(
                        "the {name} took no window: {}; the next tries follow after 1 s to 5 min, and the history keeps the windows meanwhile",
                        why.trim_end()
                    ));
                }
                // A target that takes some windows is there: only failures without any double the wait.
                let has_taken = known != Done::read(&work.state_dir, &work.export);
                let this_wait = next_wait(wait.filter(|_| !has_taken), first_wait);
                wait = Some(this_wait);
                this_wait
            }
        };
        end.pause(pause);
    }
    *end.lock() = true;
    end.changed.notify_all();
}

/// The export at work.
pub struct Exporter {
    running: Option<(Export, Settings, Arc<ExportEnd>)>,
    state_dir: PathBuf,
    counts: Arc<Mutex<ExportMetrics>>,
}

impl Exporter {
    /// Starts the thread, if the configuration has an export.
    pub fn start(state_dir: &Path, export: Option<&Export>, settings: &Settings) -> Exporter {
        let mut exporter = Exporter {
            running: None,
            state_dir: state_dir.to_owned(),
            counts: Arc::default(),
        };
        exporter.change(export, settings);
        exporter
    }

    /// The state for metrics; `None` without an export.
    pub fn metrics(&self) -> Option<ExportMetrics> {
        self.running.as_ref()?;
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let spool = fs::metadata(self.state_dir.join(SPOOL));
        Some(ExportMetrics {
            spool_bytes: spool.map_or(0, |file| file.len()),
            ..counts
        })
    }

    /// Takes the export of a new configuration.
    pub fn change(&mut self, export: Option<&Export>, settings: &Settings) {
        let is_same = match (&self.running, export) {
            (Some((running, known, _)), Some(export)) => running == export && known == settings,
            (None, None) => true,
            _ => false,
        };
        if is_same {
            return;
        }
        if let Some((_, _, end)) = self.running.take() {
            // Two threads would write the same object and the same file.
            end.begin();
            end.wait(END_MAX);
        }
        let Some(export) = export else { return };
        let work = ExportWork {
            export: export.clone(),
            state_dir: self.state_dir.clone(),
            settings: settings.clone(),
            counts: Arc::clone(&self.counts),
        };
        let end = Arc::<ExportEnd>::default();
        let of_thread = Arc::clone(&end);
        let body = move || export_all(&work, &of_thread, LOOK, FIRST_WAIT, &output::say);
        match thread::Builder::new().name("export".to_owned()).spawn(body) {
            Ok(_) => self.running = Some((export.clone(), settings.clone(), end)),
            Err(error) => output::say(&format!("no window is exported: {error}")),
        }
    }

    /// Ends the thread.
    pub fn end(self) {
        if let Some((_, _, end)) = self.running {
            end.begin();
            end.wait(END_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use plumb_history::{DeviceIncrement, Span, Writer};
    use plumb_profile::Collector;
    use plumb_testkit::tempdir::TempDir;
    use plumb_testkit::wait;
    use plumb_trace::{Batch, Clock, Event, Layer, Names, Op, SourceInfo};

    use super::*;

    const HOUR_NS: i64 = 3_600_000_000_000;
    /// 2026-11-01, a begin of a day.
    const BEGIN_NS: i64 = 1_793_491_200_000_000_000;

    /// Adds an hour with this number of I/O to a history, and stores it.
    fn add_hour(writer: &mut Writer, hour: i64, ios: u64) {
        let span = Span {
            from_ns: BEGIN_NS + hour * HOUR_NS,
            to_ns: BEGIN_NS + (hour + 1) * HOUR_NS,
        };
        let mut names = Names::default();
        let device = names.device("sda");
        let mut batch = Batch {
            names: Arc::new(names),
            ..Batch::default()
        };
        for at in 0..ios {
            let time_ns = span.from_ns + at.cast_signed() * 1_000_000;
            let (start, len) = (at * 8192 + 512, 8192);
            batch.push(&Event::new(
                time_ns,
                device,
                Layer::Request,
                Op::Read,
                start,
                len,
            ));
        }
        let collector = Collector::new(&plumb_profile::Settings::default());
        let mut collector = collector.expect("a modulus");
        collector.set_clock(Clock::Unix);
        collector.fold(&batch);
        let profiles = collector.finish(&SourceInfo::default());
        let profile = profiles.iter().next().expect("a profile");
        let increment = DeviceIncrement {
            identity: "wwn-1",
            name: "sda",
            profile,
            senders: None,
        };
        writer.add(span, &increment).expect("I/O");
        writer.checkpoint(span.to_ns).expect("room");
    }

    /// A history of two days and one hour.
    fn store() -> (TempDir, Writer) {
        let folder = plumb_testkit::temp_dir("export");
        let mut writer = Writer::open(folder.path(), Settings::default()).expect("a store");
        for hour in 0..49 {
            add_hour(&mut writer, hour, 100 + hour.unsigned_abs());
        }
        (folder, writer)
    }

    fn work(state_dir: &Path, target: ExportTarget) -> ExportWork {
        ExportWork {
            export: Export {
                target,
                tiers: vec![Tier::Hour, Tier::Day],
            },
            state_dir: state_dir.to_owned(),
            settings: Settings::default(),
            counts: Arc::default(),
        }
    }

    fn silent(line: &str) {
        panic!("an unexpected line: {line}");
    }

    /// The files below a folder by their paths in it.
    fn files(root: &Path, folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                found.extend(files(root, &path));
            } else {
                let name = path
                    .strip_prefix(root)
                    .expect("below")
                    .display()
                    .to_string();
                found.insert(name, fs::read(path).expect("a file"));
            }
        }
        found
    }

    /// The objects in a folder: the result without faults.
    fn exported(state_dir: &Path) -> BTreeMap<String, Vec<u8>> {
        let folder = plumb_testkit::temp_dir("exported");
        let target = ExportTarget::Folder(folder.path().to_owned());
        let work = work(state_dir, target);
        work.export_new(&silent, &|| false).expect("an export");
        files(folder.path(), folder.path())
    }

    #[test]
    fn days_that_are_over_are_exported_once() {
        let (history, mut writer) = store();
        let folder = plumb_testkit::temp_dir("folder");
        let target = ExportTarget::Folder(folder.path().to_owned());
        let work = work(history.path(), target);
        let export = || work.export_new(&silent, &|| false).expect("an export");
        // Two days, in windows of an hour and of a day. The third has begun.
        assert_eq!(export(), 4);
        let first = files(folder.path(), folder.path());
        let names: Vec<&str> = first.keys().map(String::as_str).collect();
        let tiers: Vec<bool> = names
            .iter()
            .map(|name| name.contains("/date=2026-11-02/tier=1d/"))
            .collect();
        assert_eq!(tiers.iter().filter(|is_it| **is_it).count(), 1, "{names:?}");
        assert_eq!(export(), 0);
        // Without the file that names the exported time everything is exported again, which changes nothing.
        fs::remove_file(history.path().join(DONE)).expect("a file");
        assert_eq!(export(), 4);
        assert_eq!(files(folder.path(), folder.path()), first);
        for hour in 49..73 {
            add_hour(&mut writer, hour, 7);
        }
        assert_eq!(export(), 2);
        let all = files(folder.path(), folder.path());
        assert_eq!(all.len(), 6);
        assert!(
            first
                .iter()
                .all(|(name, bytes)| all.get(name) == Some(bytes))
        );
    }

    /// A time that the history has deleted meanwhile is reported, and the rest is exported.
    #[test]
    fn lost_windows_are_reported() {
        let (history, mut writer) = store();
        let folder = plumb_testkit::temp_dir("folder");
        let work = work(
            history.path(),
            ExportTarget::Folder(folder.path().to_owned()),
        );
        let mut done = Done::read(history.path(), &work.export);
        done.upto_ns.insert("1h".to_owned(), BEGIN_NS - HOUR_NS);
        done.write(history.path()).expect("room");
        writer.prune(BEGIN_NS + 24 * HOUR_NS).expect("a prune");
        let said = Mutex::new(Vec::new());
        let say = |line: &str| said.lock().expect("a list").push(line.to_owned());
        assert_eq!(work.export_new(&say, &|| false).expect("an export"), 2);
        let said = said.into_inner().expect("a list");
        insta::assert_snapshot!(said.join("\n\n"));
    }

    /// Reads a request of curl, and returns its path and its body.
    fn request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
        let mut reader = BufReader::new(stream);
        let (mut path, mut len) = (None, 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let line = line.trim_end();
            if let Some(rest) = line.strip_prefix("PUT /") {
                path = rest.split(' ').next().map(str::to_owned);
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                len = value.parse().ok()?;
            }
            if line.eq_ignore_ascii_case("expect: 100-continue") {
                let mut to: &TcpStream = stream;
                to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; len];
        reader.read_exact(&mut body).ok()?;
        Some((path?, body))
    }

    #[test]
    fn waits_double_up_to_five_minutes() {
        let mut wait = None;
        let waits = [(); 11].map(|()| {
            wait = Some(next_wait(wait, FIRST_WAIT));
            wait.map_or(0, |wait| wait.as_secs())
        });
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    /// An object store that fails four of five requests gets the same objects as a folder, with at most one of them on the disk. Of the
    /// failures one comes after the store has taken the object: it gets this object again, under the same name.
    #[test]
    fn a_store_with_faults_gets_the_same_objects() {
        plumb_testkit::require!(Tool("curl"));
        let (history, _writer) = store();
        let expected = exported(history.path());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let command = [
            "/usr/bin/curl",
            "-sS",
            "--fail",
            "-T",
            "{file}",
            &format!("http://{address}/{{key}}"),
        ];
        let command = command.map(str::to_owned).to_vec();
        let work = work(history.path(), ExportTarget::Command(command));
        let end = ExportEnd::default();
        let begun_ns = now_ns();
        let said = Mutex::new(Vec::new());
        let got: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::default();
        let taken_again = Mutex::new(0);
        let waiting_max = Mutex::new(0);
        let waiting = || {
            let entries = fs::read_dir(history.path()).expect("a folder").flatten();
            let names = entries.map(|entry| entry.file_name());
            let is_object = |name: &str| name.contains(".parquet");
            names
                .filter(|name| is_object(&name.to_string_lossy()))
                .count()
        };
        thread::scope(|scope| {
            let say = |line: &str| said.lock().expect("a list").push(line.to_owned());
            let (work, end, got) = (&work, &end, &got);
            let (taken_again, waiting_max, waiting) = (&taken_again, &waiting_max, &waiting);
            scope.spawn(move || {
                let millisecond = Duration::from_millis(1);
                export_all(work, end, millisecond, millisecond, &say);
            });
            scope.spawn(move || {
                for number in 0.. {
                    let mut stream = wait::client("the next object", wait::PATIENCE, &listener);
                    if end.is_over() {
                        return;
                    }
                    if number % 5 == 2 {
                        // The connection breaks in the middle of the object.
                        let _ = stream.read(&mut [0; 16]);
                        continue;
                    }
                    let Some((path, body)) = request(&stream) else {
                        continue;
                    };
                    let status = match number % 5 {
                        0 => "500 Internal Server Error",
                        1 => "503 Service Unavailable",
                        _ => "200 OK",
                    };
                    let mut most = waiting_max.lock().expect("a number");
                    *most = waiting().max(*most);
                    if status == "200 OK" {
                        let earlier = got.lock().expect("a list").insert(path, body.clone());
                        if let Some(earlier) = earlier {
                            assert_eq!(earlier, body);
                            *taken_again.lock().expect("a number") += 1;
                        }
                    }
                    if number % 5 == 3 {
                        // The connection breaks before the answer.
                        continue;
                    }
                    let answer = format!(
                        "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    );
                    let _ = stream.write_all(answer.as_bytes());
                }
            });
            let is_whole = || {
                let known = Done::read(history.path(), &work.export).upto_ns;
                // The thread counts its success after it has written the state.
                let has_succeeded = work
                    .counts
                    .lock()
                    .expect("counts")
                    .last_success_ns
                    .is_some();
                let is_upto = |upto: &i64| *upto == BEGIN_NS + 48 * HOUR_NS;
                has_succeeded && known.len() == 2 && known.values().all(is_upto)
            };
            let waited = catch_unwind(AssertUnwindSafe(|| {
                wait::until("the last object", wait::PATIENCE, is_whole);
            }));
            // Also after a failure: the scope waits for both threads.
            end.begin();
            drop(TcpStream::connect(address));
            if let Err(failure) = waited {
                resume_unwind(failure);
            }
        });
        let got = got.into_inner().expect("a list");
        assert_eq!(got, expected);
        assert_eq!(
            taken_again.into_inner().expect("a number"),
            expected.len(),
            "each object's first answer is lost"
        );
        assert_eq!(waiting_max.into_inner().expect("a number"), 1);
        assert_eq!(waiting(), 0);
        let counts = *work.counts.lock().expect("counts");
        // Four of five requests failed: as many tries for each object.
        let objects = got.len() as u64;
        assert_eq!((counts.objects, counts.failures), (objects, 4 * objects));
        assert!(
            counts
                .last_success_ns
                .is_some_and(|at_ns| begun_ns <= at_ns && at_ns <= now_ns())
        );
        let said = said.into_inner().expect("a list");
        let name = "the command /usr/bin/curl";
        let first = format!(
            "{name} took no window: it ended with exit status: 22; the end of its standard error: curl:"
        );
        assert!(said[0].starts_with(&first), "{said:?}");
        assert!(said[0].contains("500"), "{said:?}");
        insta::assert_snapshot!(said[1]);
    }

    /// The end of the agent ends a command that hangs, and the next start exports the object.
    #[test]
    fn a_command_that_hangs_does_not_keep_the_agent() {
        let (history, _writer) = store();
        let started = history.path().join("started");
        let script = format!("echo $0 $1 >{}; exec sleep 1000", started.display());
        let words = ["/bin/sh", "-c", &script, "{file}", "{key}"].map(str::to_owned);
        let target = ExportTarget::Command(words.to_vec());
        let export = Export {
            target,
            tiers: vec![Tier::Day],
        };
        let exporter = Exporter::start(history.path(), Some(&export), &Settings::default());
        wait::until("the start of the command", wait::PATIENCE, || {
            started.exists()
        });
        let metrics = exporter.metrics().expect("an export");
        let object = fs::metadata(history.path().join(SPOOL)).expect("the object");
        let expected = ExportMetrics {
            spool_bytes: object.len(),
            ..ExportMetrics::default()
        };
        assert_eq!(metrics, expected);
        assert!(object.len() > 0);
        exporter.end();
        assert_eq!(Done::read(history.path(), &export).upto_ns, BTreeMap::new());
        assert!(!history.path().join(SPOOL).exists());
    }
}
