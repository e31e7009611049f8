//! Triggered recordings: when the p99 latency or the misfit of a device crosses a line, a helper records every I/O of it for a minute.
//!
//! The agent has no capabilities while it counts, so a helper with two of them waits at a socket ([`helper`]). The agent measures
//! ([`trigger`]), keeps the limits of the rate, and reports. Without a line in the configuration there is no helper. One device is
//! recorded at a time. If the helper ends, each further trigger is a failed recording until the agent starts again.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plumb_capture::{Reading, number_of};
use plumb_geometry::{SmallSort, group_digits, plural};
use plumb_report::exports::RecordingMetrics;
use plumb_report::format::bytes;
use plumb_trace::Layer;

use super::identity::is_path_of;
use super::log::ChangeLog;
use crate::history::now_ns;
use crate::output;

mod folder;
pub mod helper;
mod trigger;

use folder::{Measure, RecordingName};
use helper::HelperRequest;
use trigger::{Begun, Course};

/// The folder within that of the history.
const FOLDER: &str = "recordings";
/// Time after which a device without I/O is forgotten, and after which a recording no longer belongs to a new change of a finding.
const RECENT: Duration = Duration::from_secs(3600);
/// Time for the last recording to become whole when the agent ends, on a busy disk.
const END_MAX: Duration = Duration::from_secs(20);
/// Time between two looks at a helper that ends.
const GLANCE: Duration = Duration::from_millis(10);
/// A recording is late if it has not ended this long after its time.
const LATE: Duration = Duration::from_secs(60);
/// Longest answer of a helper.
const ANSWER_MAX: usize = 64 << 10;

/// A share in hundredths of a percent, above 0 and up to 10,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub u32);

impl Percent {
    /// Reads `20%` or `0.5 %`; `None` for anything else.
    pub fn from_words(text: &str) -> Option<Percent> {
        let digits = text.strip_suffix('%')?.trim_end();
        let is_number = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let percent: f64 = digits.parse().ok().filter(|_| is_number)?;
        let hundredths = (percent * 100.0).round();
        ((1.0..=10_000.0).contains(&hundredths)).then_some(Percent(hundredths as u32))
    }

    /// As the configuration has it.
    pub fn words(self) -> String {
        format!("{}%", f64::from(self.0) / 100.0)
    }
}

/// The settings of triggered recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSettings {
    /// Line of the p99 latency of reads and writes.
    pub p99: Option<Duration>,
    /// Line of the share of reads and writes that start off 4 KiB.
    pub misfit: Option<Percent>,
    /// Names or identities of the devices that are recorded; all of them when empty.
    pub devices: Vec<String>,
    /// Length of a recording.
    pub duration: Duration,
    /// Least time between the begins of two recordings of a device.
    pub pause: Duration,
    /// Most recordings within 24 hours.
    pub per_day: u32,
    /// Most bytes of the folder.
    pub bytes_max: u64,
}

impl Default for RecordingSettings {
    fn default() -> RecordingSettings {
        RecordingSettings {
            p99: None,
            misfit: None,
            devices: Vec::new(),
            duration: Duration::from_secs(60),
            pause: Duration::from_secs(3600),
            per_day: 12,
            bytes_max: 1 << 30,
        }
    }
}

impl RecordingSettings {
    /// Whether anything triggers a recording.
    pub fn is_on(&self) -> bool {
        self.p99.is_some() || self.misfit.is_some()
    }

    /// Whether a device is among those that are recorded; the identity of a disk is that of all paths to it.
    fn is_about(&self, name: &str, identity: &str) -> bool {
        let is_one = |one: &String| one == name || is_path_of(identity, one);
        self.devices.is_empty() || self.devices.iter().any(is_one)
    }
}

/// A recording that runs.
struct Running {
    device: String,
    path: PathBuf,
    late_at: Instant,
}

/// The triggered recordings of an agent.
pub struct Recordings {
    settings: RecordingSettings,
    folder: PathBuf,
    /// The helper; `None` without a line at the start, and after the end of the helper.
    helper: Option<Helper>,
    begun: Begun,
    courses: BTreeMap<String, Course>,
    running: Option<Running>,
    /// The last recording of each device.
    last: BTreeMap<String, (Instant, PathBuf)>,
    counts: RecordingMetrics,
}

impl Recordings {
    /// Starts the helper if the settings have a line. An agent without one counts all the same. This is called before the agent drops its
    /// capabilities, and while it has one thread.
    pub fn start(settings: &RecordingSettings, state_dir: &Path) -> Recordings {
        let folder = state_dir.join(FOLDER);
        let started = settings
            .is_on()
            .then(|| Helper::start(&folder, settings.bytes_max));
        let helper = match started {
            Some(Err(error)) => {
                output::say(&format!("no recordings: the helper cannot start: {error}"));
                None
            }
            Some(Ok(helper)) => Some(helper),
            None => None,
        };
        let earlier = folder::recordings(&folder).into_iter();
        Recordings {
            settings: settings.clone(),
            helper,
            begun: Begun::of_earlier(earlier.map(|(name, _)| name)),
            folder,
            courses: BTreeMap::new(),
            running: None,
            last: BTreeMap::new(),
            counts: RecordingMetrics::default(),
        }
    }

    /// Takes new settings. A helper needs capabilities, so none starts now.
    pub fn change(&mut self, settings: &RecordingSettings) {
        if settings.is_on() && self.helper.is_none() {
            output::say("record_p99, record_misfit: recordings begin when the agent starts again");
        }
        if settings.bytes_max != self.settings.bytes_max {
            output::say("record_max: a changed size counts when the agent starts again");
        }
        self.settings = settings.clone();
    }

    /// The counts for metrics; `None` if nothing triggers a recording.
    pub fn counts(&self) -> Option<RecordingMetrics> {
        self.settings.is_on().then_some(self.counts)
    }

    /// The file of a recording of a device that began within the last hour. It has this name once it is whole.
    pub fn file_of(&self, device: &str) -> Option<&Path> {
        let (at, path) = self.last.get(device)?;
        (at.elapsed() < RECENT).then_some(path)
    }

    /// Looks at the I/O of a reading, and at the answers of the helper.
    pub fn look(
        &mut self,
        reading: &Reading,
        identities: &BTreeMap<String, String>,
        log: &ChangeLog,
    ) {
        self.receive(log);
        let now = Instant::now();
        if let Some(running) = &mut self.running
            && now >= running.late_at
        {
            // Once.
            running.late_at = now + Duration::from_secs(86_400);
            let (device, path) = (&running.device, running.path.display());
            output::say(&format!(
                "the recording of {device} into {path} has not ended in time; no other one begins before"
            ));
        }
        let mut crossed: Vec<(Layer, String, Measure, String)> = Vec::new();
        for profile in reading.profiles.iter() {
            let name = &profile.device;
            // A device without a name.
            if number_of(name).is_some() || !profile.has_io() {
                continue;
            }
            let identity = identities.get(name).unwrap_or(name);
            if !self.settings.is_about(name, identity) {
                continue;
            }
            let course = self.courses.entry(name.clone()).or_default();
            if let Some((measure, why)) = course.add(identity, profile, &self.settings, now) {
                crossed.push((profile.layer, name.clone(), measure, why));
            }
        }
        self.courses
            .retain(|_, course| course.is_recent(now, RECENT));
        self.last.retain(|_, (at, _)| at.elapsed() < RECENT);
        // A disk first: the volumes on it cross their lines with it.
        crossed.small_sort_by_key(|(layer, ..)| *layer != Layer::Request);
        for (_, device, measure, why) in crossed {
            self.begin(&device, measure, &why, log);
        }
    }

    /// Begins a recording unless something is against it.
    fn begin(&mut self, device: &str, measure: Measure, why: &str, log: &ChangeLog) {
        let at_ns = now_ns();
        let refusal = match &self.running {
            Some(running) => Some(format!("{} is being recorded", running.device)),
            None => self.begun.refusal(device, at_ns, &self.settings),
        };
        if let Some(refusal) = refusal {
            self.counts.refused += 1;
            log.note_recording(
                device,
                None,
                &format!("no recording of {device}: {why}, but {refusal}"),
            );
            return;
        }
        let Some(name) = RecordingName::new(at_ns, measure, device) else {
            self.counts.failed += 1;
            output::say(&format!(
                "no recording of {device}: the clock is set to a time before 1970"
            ));
            return;
        };
        let path = self.folder.join(name.file_name());
        let request = HelperRequest::Record {
            duration: self.settings.duration,
            file: name.clone(),
            device: device.to_owned(),
        };
        let sent = self.helper.as_mut().map(|helper| helper.send(&request));
        match sent {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.counts.failed += 1;
                let words = format!(
                    "no recording of {device}: {why}, but the helper takes no request: {error}"
                );
                return log.note_recording(device, None, &words);
            }
            None => {
                self.counts.failed += 1;
                let words = format!("no recording of {device}: {why}, but the helper is not there");
                return log.note_recording(device, None, &words);
            }
        }
        self.begun.add(name);
        let seconds = self.settings.duration.as_secs_f64();
        let words = format!(
            "recording {device} for {seconds} s into {}: {why}",
            path.display()
        );
        log.note_recording(device, Some(&path), &words);
        let now = Instant::now();
        self.last.insert(device.to_owned(), (now, path.clone()));
        self.running = Some(Running {
            device: device.to_owned(),
            path,
            late_at: now + self.settings.duration + LATE,
        });
    }

    /// Takes the answers of the helper, and notes its end.
    fn receive(&mut self, log: &ChangeLog) {
        let Some(helper) = &mut self.helper else {
            return;
        };
        let is_over = !helper.receive();
        let answers = std::mem::take(&mut helper.answers);
        for answer in answers {
            self.note(&answer, log);
        }
        if is_over && let Some(helper) = self.helper.take() {
            let how = helper.end(Duration::from_secs(1));
            output::say(&format!(
                "the helper for recordings has ended ({how}): no recording begins before the agent starts again; the counts go on"
            ));
            self.note("failed the helper has ended", log);
        }
    }

    /// Notes an answer of the helper.
    fn note(&mut self, answer: &str, log: &ChangeLog) {
        let (word, rest) = answer.split_once(' ').unwrap_or((answer, ""));
        let Some(running) = self.running.take_if(|_| word != "ready") else {
            if word == "failed" {
                output::say(&format!("no recordings: {rest}"));
            }
            return;
        };
        let (device, path) = (&running.device, running.path.display());
        if let Some(Finished {
            ios,
            lost,
            bytes: of_file,
            why,
        }) = Finished::from_words(rest).filter(|_| word == "done")
        {
            self.counts.made += 1;
            let (ios, lost) = (group_digits(ios), group_digits(lost));
            let of_file = bytes(of_file);
            let words = format!(
                "recorded {device} into {path}: {ios} I/O in {of_file}, {lost} lost; it ended {why}. See: plumb analyze {path}"
            );
            log.note_recording(device, Some(&running.path), &words);
        } else {
            self.counts.failed += 1;
            self.last.remove(device);
            log.note_recording(
                device,
                None,
                &format!("the recording of {device} into {path} failed: {rest}"),
            );
        }
    }

    /// Ends the helper. A recording that runs becomes a whole file that is shorter.
    pub fn end(mut self, log: &ChangeLog) {
        let Some(helper) = &mut self.helper else {
            return;
        };
        let end = Instant::now() + END_MAX;
        // Without a socket it ends, too.
        let _ = helper.socket.shutdown(Shutdown::Write);
        while helper.receive() && Instant::now() < end {
            std::thread::sleep(GLANCE);
        }
        let answers = std::mem::take(&mut helper.answers);
        for answer in answers {
            self.note(&answer, log);
        }
        if let Some(helper) = self.helper.take() {
            helper.end(end.saturating_duration_since(Instant::now()));
        }
        if let Some(running) = &self.running {
            let (device, path) = (&running.device, folder::part_of(&running.path));
            let path = path.display();
            output::say(&format!("the recording of {device} was cut short: {path}"));
        }
    }
}

/// The figures of a recording that has ended.
struct Finished<'a> {
    ios: u64,
    lost: u64,
    bytes: u64,
    why: &'a str,
}

impl Finished<'_> {
    /// Reads `IOS LOST BYTES WHY`.
    fn from_words(text: &str) -> Option<Finished<'_>> {
        let mut words = text.splitn(4, ' ');
        let mut number = || words.next()?.parse().ok();
        let (ios, lost, bytes) = (number()?, number()?, number()?);
        let why = words.next()?;
        Some(Finished {
            ios,
            lost,
            bytes,
            why,
        })
    }
}

/// The helper, seen from the agent.
struct Helper {
    child: Child,
    socket: UnixStream,
    /// Bytes of an answer whose end has not come.
    received: Vec<u8>,
    answers: Vec<String>,
}

impl Helper {
    fn start(folder: &Path, bytes_max: u64) -> io::Result<Helper> {
        let (socket, of_child) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let child = Command::new(std::env::current_exe()?)
            .arg(helper::ARGUMENT)
            .arg(folder)
            .arg(bytes_max.to_string())
            .stdin(OwnedFd::from(of_child))
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Helper {
            child,
            socket,
            received: Vec::new(),
            answers: Vec::new(),
        })
    }

    fn send(&mut self, request: &HelperRequest) -> io::Result<()> {
        self.socket.write_all(request.line().as_bytes())
    }

    /// Takes the answers that have come; whether further ones may come.
    fn receive(&mut self) -> bool {
        let mut bytes = [0; 1024];
        let goes_on = loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => break false,
                Ok(read) if self.received.len() + read <= ANSWER_MAX => {
                    self.received.extend_from_slice(&bytes[..read]);
                }
                Ok(_) => break false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error.kind() == io::ErrorKind::WouldBlock,
            }
        };
        while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            self.answers.push(line);
        }
        goes_on
    }

    /// Waits for its end, and kills it after this time. Returns how it ended.
    fn end(mut self, limit: Duration) -> String {
        drop(self.socket);
        let end = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.to_string(),
                Err(error) => return error.to_string(),
                Ok(None) if Instant::now() < end => std::thread::sleep(GLANCE),
                Ok(None) => break,
            }
        }
        let _ = self.child.kill();
        // One that waits for a device ends when that answers.
        match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => plural(limit.as_secs(), "second") + " without an end, then killed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_devices_are_recorded_alone() {
        let settings = |devices: &[&str]| RecordingSettings {
            devices: devices.iter().map(|one| (*one).to_owned()).collect(),
            ..RecordingSettings::default()
        };
        for (devices, name, identity, expected) in [
            (&[][..], "sda", "naa.1", true),
            (&["sda"], "sda", "naa.1", true),
            (&["sdb", "naa.1"], "sda", "naa.1/2:0:0:1", true),
            (&["naa.1"], "sda", "naa.11", false),
            (&["sda"], "sdaa", "sdaa", false),
        ] {
            let found = settings(devices).is_about(name, identity);
            assert_eq!(found, expected, "{devices:?} {name} {identity}");
        }
    }

    #[test]
    fn shares_are_read() {
        for (text, hundredths) in [
            ("20%", Some(2000)),
            ("20 %", Some(2000)),
            ("0.5%", Some(50)),
            ("0.01%", Some(1)),
            ("100%", Some(10_000)),
            ("0%", None),
            ("0.001%", None),
            ("101%", None),
            ("20", None),
            ("-5%", None),
            ("+5%", None),
            ("inf%", None),
            ("%", None),
        ] {
            let share = Percent::from_words(text);
            assert_eq!(share.map(|share| share.0), hundredths, "{text}");
            let again = share.map(|share| Percent::from_words(&share.words()));
            assert_eq!(again, share.map(Some), "{text}");
        }
    }
}
