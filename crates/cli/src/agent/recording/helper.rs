//! The helper of the agent: a process that records one device at a time into the folder that it got at its start.
//!
//! The agent starts it before it drops its own capabilities. The helper keeps `CAP_BPF` and `CAP_PERFMON` and nothing else, sees no
//! files beside the folder, sysfs and procfs, and has no system calls for programs and sockets. It trusts the agent in nothing but the
//! choice of the device and the time: it checks the device, the time and the name of the file of each request.
//!
//! Requests and answers are lines on a pair of sockets. Requests: `record MILLISECONDS FILE DEVICE` and `stop`. Answers: `ready`,
//! then for each recording `done IOS LOST BYTES WHY` or `failed WHY`. The helper ends when the agent's socket is closed, after the recording
//! that runs has become a whole file.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use plumb_capture::number_of;
use rustix::thread::CapabilitySet;

use super::folder::{RecordingName, keep_unfinished, make_room, part_of};
use crate::cli::{FailOn, LayerChoice, Record};
use crate::failure::Failure;
use crate::{privilege, record, sandbox, signals};

/// The first argument of a helper. The folder and the most bytes in it follow.
pub const ARGUMENT: &str = "__record-devices";

/// Longest recording.
pub const DURATION_MAX: Duration = Duration::from_secs(600);
/// Share of the bytes of the folder that one recording may take: the others stay when one is long.
const SHARE_OF_FOLDER: u64 = 4;
/// Room for I/O that completed, as in `plumb record`.
const RING_BYTES: u32 = 16 << 20;
/// Longest line of a request.
const REQUEST_MAX: u64 = 1024;
/// Longest name of a device.
const DEVICE_MAX: usize = 64;

/// A request of the agent.
#[derive(Debug, PartialEq, Eq)]
pub enum HelperRequest {
    /// Record a device.
    Record {
        /// Time.
        duration: Duration,
        /// Name of the file in the folder.
        file: RecordingName,
        /// Name of the device.
        device: String,
    },
    /// End the recording that runs.
    Stop,
}

impl HelperRequest {
    /// The line of the request with its end.
    pub fn line(&self) -> String {
        match self {
            HelperRequest::Record {
                duration,
                file,
                device,
            } => {
                let ms = duration.as_millis();
                format!("record {ms} {} {device}\n", file.file_name())
            }
            HelperRequest::Stop => "stop\n".to_owned(),
        }
    }

    /// Reads a line without its end; `None` for anything but a request.
    fn from_line(line: &str) -> Option<HelperRequest> {
        if line == "stop" {
            return Some(HelperRequest::Stop);
        }
        let mut words = line.strip_prefix("record ")?.splitn(3, ' ');
        let duration = Duration::from_millis(words.next()?.parse().ok()?);
        let file = RecordingName::from_file_name(words.next()?)?;
        let device = words.next()?;
        // The kernel's names are relative to /sys/block, and a number is none.
        let is_name = !device.is_empty()
            && device.len() <= DEVICE_MAX
            && !device.starts_with(['/', '.'])
            && !device.contains("..")
            && !device.chars().any(char::is_control)
            && number_of(device).is_none();
        let is_fitting = is_name && file.is_of(device) && duration <= DURATION_MAX;
        (is_fitting && !duration.is_zero()).then(|| HelperRequest::Record {
            duration,
            file,
            device: device.to_owned(),
        })
    }
}

/// Serves requests until the agent closes its socket, which is standard input.
///
/// # Errors
/// If there is no socket.
pub fn serve(arguments: &[std::ffi::OsString]) -> io::Result<()> {
    let unfit = || io::Error::from(io::ErrorKind::InvalidInput);
    let [folder, bytes_max] = arguments else {
        return Err(unfit());
    };
    let folder = PathBuf::from(folder);
    let bytes_max = bytes_max.to_str().and_then(|text| text.parse().ok());
    let bytes_max: u64 = bytes_max.ok_or_else(unfit)?;
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // A service manager signals all processes of the agent; the agent ends this one by the socket.
    let _ = signals::stop_flag();
    if let Err(failure) = enter(&folder) {
        return socket.write_all(failed(&failure).as_bytes());
    }
    keep_unfinished(&folder);
    socket.write_all(b"ready\n")?;
    let state = Arc::<State>::default();
    // No second request comes while one is served.
    let (requests, taken) = sync_channel(1);
    let of_reader = Arc::clone(&state);
    let from = socket.try_clone()?;
    std::thread::spawn(move || of_reader.receive(from, &requests));
    for (duration, file, device) in taken {
        let done = record(&folder, bytes_max, (duration, &file, device), &state.ends);
        let answer = match done {
            Ok(done) => format!(
                "done {} {} {} {}\n",
                done.ios, done.lost, done.bytes, done.why
            ),
            Err(failure) => failed(&failure),
        };
        state.is_busy.store(false, Ordering::SeqCst);
        // Without a reader the requests are over as well.
        let _ = socket.write_all(answer.as_bytes());
    }
    Ok(())
}

/// The answer for a failure, in one line.
fn failed(failure: &Failure) -> String {
    format!("failed {}\n", failure.text("").replace('\n', " "))
}

/// The thread that reads requests, and the thread that serves them.
#[derive(Default)]
struct State {
    is_busy: AtomicBool,
    /// Whether the recording that runs is to end.
    ends: AtomicBool,
}

impl State {
    /// Reads requests until the socket is closed or has something else.
    fn receive(
        &self,
        socket: UnixStream,
        requests: &SyncSender<(Duration, RecordingName, String)>,
    ) {
        let mut answers = socket.try_clone().ok();
        let mut lines = BufReader::new(socket);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = lines
                .by_ref()
                .take(REQUEST_MAX)
                .read_until(b'\n', &mut line);
            if read.is_err() || line.pop() != Some(b'\n') {
                break;
            }
            let request = std::str::from_utf8(&line).ok();
            let why = match request.and_then(HelperRequest::from_line) {
                Some(HelperRequest::Stop) => {
                    self.ends.store(true, Ordering::SeqCst);
                    continue;
                }
                Some(HelperRequest::Record { .. }) if self.is_busy.load(Ordering::SeqCst) => {
                    "found a request, expected none during a recording"
                }
                Some(HelperRequest::Record {
                    duration,
                    file,
                    device,
                }) => {
                    self.is_busy.store(true, Ordering::SeqCst);
                    self.ends.store(false, Ordering::SeqCst);
                    if requests.send((duration, file, device)).is_err() {
                        break;
                    }
                    continue;
                }
                None => "found no request, expected record or stop",
            };
            let answer = format!("failed {why}\n");
            let sent = answers.as_mut().map(|to| to.write_all(answer.as_bytes()));
            if !matches!(sent, Some(Ok(()))) {
                break;
            }
        }
        self.ends.store(true, Ordering::SeqCst);
    }
}

/// Gives up all rights but those of a recorder. The folder is made if it is missing.
fn enter(folder: &Path) -> Result<(), Failure> {
    privilege::drop_all_but(CapabilitySet::BPF | CapabilitySet::PERFMON, folder)?;
    let io_failed = |error: io::Error| {
        Failure::failed(&io::Error::new(
            error.kind(),
            format!("{}: {error}", folder.display()),
        ))
    };
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io_failed(error)),
        _ => {}
    }
    // A link would lead the recordings elsewhere.
    if !fs::symlink_metadata(folder).map_err(io_failed)?.is_dir() {
        return Err(io_failed(io::ErrorKind::NotADirectory.into()));
    }
    sandbox::confine_with_programs(&sandbox::Files {
        inputs: vec!["/sys".into(), "/proc".into()],
        outputs: vec![folder.join("recording")],
    });
    Ok(())
}

/// Records a device into a file of the folder, which gets its name when it is whole.
fn record(
    folder: &Path,
    bytes_max: u64,
    (duration, file, device): (Duration, &RecordingName, String),
    ends: &AtomicBool,
) -> Result<record::FileRecorded, Failure> {
    let path = folder.join(file.file_name());
    if path.symlink_metadata().is_ok() {
        let found = format!("{}: found a file, expected a free name", path.display());
        return Err(Failure::failed(&io::Error::other(found)));
    }
    let of_file = bytes_max / SHARE_OF_FOLDER;
    make_room(folder, bytes_max - of_file).map_err(|error| Failure::failed(&error))?;
    let part = part_of(&path);
    let recorded = record::to_file(
        Record {
            devices: vec![device],
            output: part.clone(),
            duration: Some(duration),
            max_size: Some(of_file),
            files: None,
            buffer: RING_BYTES,
            layer: LayerChoice::Auto,
            op: Vec::new(),
            pid: Vec::new(),
            json: false,
            fail_on: FailOn::None,
        },
        ends,
    );
    let named = recorded.and_then(|recorded| {
        fs::rename(&part, &path).map_err(|error| Failure::failed(&error))?;
        Ok(recorded)
    });
    if named.is_err() {
        // A full file system gets its space back.
        let _ = fs::remove_file(&part);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "plumb-20261129T230507Z-p99-sda.parquet";

    #[test]
    fn requests_are_read_back() {
        for (line, device) in [
            (format!("record 60000 {FILE} sda"), "sda"),
            (
                "record 1 plumb-20261129T230507Z-misfit-cciss!c0d0.parquet cciss/c0d0".to_owned(),
                "cciss/c0d0",
            ),
        ] {
            let request = HelperRequest::from_line(&line).expect("a request");
            let HelperRequest::Record { device: read, .. } = &request else {
                panic!("{request:?}");
            };
            assert_eq!(read, device);
            assert_eq!(request.line(), format!("{line}\n"));
        }
        let stop = HelperRequest::from_line("stop").expect("a request");
        assert_eq!(stop.line(), "stop\n");
    }

    #[test]
    fn other_lines_are_no_requests() {
        for line in [
            "",
            "stop now",
            "record",
            "exec /bin/sh",
            &format!("record 0 {FILE} sda"),
            &format!("record 600001 {FILE} sda"),
            &format!("record -1 {FILE} sda"),
            &format!("record 60000 {FILE} sdb"),
            &format!("record 60000 {FILE} "),
            &format!("record 60000 {FILE}"),
            &format!("record 60000 ../{FILE} sda"),
            &format!("record 60000 /etc/{FILE} sda"),
            "record 60000 /etc/passwd sda",
            "record 60000 plumb-20261129T230507Z-p99-!dev!sda.parquet /dev/sda",
            "record 60000 plumb-20261129T230507Z-p99-..!sda.parquet ../sda",
            "record 60000 plumb-20261129T230507Z-p99-a!..!sda.parquet a/../sda",
            "record 60000 plumb-20261129T230507Z-p99-8:0.parquet 8:0",
        ] {
            assert_eq!(HelperRequest::from_line(line), None, "{line}");
        }
    }
}
