//! A file with a configurable delay that stops, fails or dies on request: nbdkit's memory with a delay, shown as a file
//! by nbdfuse. Both end with the test, well or not.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::loop_device::run;
use crate::tempdir::{TempDir, temp_dir};
use crate::wait;

/// Time for each of the two to begin.
const PATIENCE: Duration = Duration::from_secs(60);
const ATTEMPTS: u32 = 3;

/// A disk in memory with a delay on each I/O. Reads side by side wait side by side.
#[derive(Debug)]
pub struct SlowDisk {
    server: Logged,
    shown: Logged,
    path: PathBuf,
    /// While it is there every I/O fails.
    failing: PathBuf,
    _room: TempDir,
}

impl SlowDisk {
    /// A disk of this size; reads wait for `read_delay`, in nbdkit's form of times: `1ms`.
    ///
    /// A server that ends before it serves is started again, with a new directory: nothing has used it yet. On a machine
    /// with little memory or many processes a start may fail where the next one does not.
    ///
    /// # Panics
    /// If it does not begin, with the words of nbdkit and nbdfuse: a test asks for `Tool("nbdkit")` and `Tool("nbdfuse")`
    /// first.
    #[must_use]
    pub fn new(size_bytes: u64, read_delay: &str) -> SlowDisk {
        let mut failures = Vec::new();
        for _ in 0..ATTEMPTS {
            match SlowDisk::start(size_bytes, read_delay) {
                Ok(disk) => return disk,
                Err(failure) => {
                    eprintln!("slow disk: {failure}; starting it again");
                    failures.push(failure);
                }
            }
        }
        panic!("no slow disk after {ATTEMPTS} attempts: {failures:#?}");
    }

    fn start(size_bytes: u64, read_delay: &str) -> Result<SlowDisk, String> {
        let room = temp_dir("slow-disk");
        let (socket, path) = (room.path().join("socket"), room.path().join("disk"));
        std::fs::write(&path, "").expect("a place for it");
        let mut server = Command::new("nbdkit");
        server
            .args([
                "--foreground",
                "--exit-with-parent",
                "--threads",
                "16",
                "--unix",
            ])
            .arg(&socket);
        let failing = room.path().join("failing");
        server.args([
            "--filter=error",
            "--filter=delay",
            "memory",
            &size_bytes.to_string(),
        ]);
        server.arg(format!("rdelay={read_delay}"));
        server
            .args(["error=EIO", "error-rate=100%"])
            .arg(format!("error-file={}", failing.display()));
        let mut server = Logged::start("nbdkit", &mut server, room.path());
        server.begins("its socket", || socket.exists())?;
        let mut client = Command::new("nbdfuse");
        client.arg(&path).arg("--unix").arg(&socket);
        let mut shown = Logged::start("nbdfuse", &mut client, room.path());
        let begun = shown.begins("a file of that size", || {
            std::fs::metadata(&path).is_ok_and(|found| found.len() == size_bytes)
        });
        let disk = SlowDisk {
            server,
            shown,
            path,
            failing,
            _room: room,
        };
        begun.map(|()| disk)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers nothing more until it is continued.
    pub fn stop(&self) {
        self.signal("STOP");
    }

    /// Goes on.
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    /// Lets every I/O fail from now on, with EIO.
    ///
    /// # Panics
    /// When there is no room for an empty file.
    pub fn fail(&self) {
        std::fs::write(&self.failing, "").expect("a place for it");
    }

    /// Ends the server: every I/O fails from now on.
    pub fn die(&self) {
        self.signal("KILL");
    }

    fn signal(&self, name: &str) {
        run(Command::new("kill").args(["-s", name, &self.server.child.id().to_string()]));
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // A stopped server would keep the other one waiting. Both may be gone already.
        self.server.end();
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.path)
            .stderr(Stdio::null())
            .status();
        self.shown.end();
    }
}

/// A process whose output goes to a file; ended with the value.
#[derive(Debug)]
pub(crate) struct Logged {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Logged {
    pub(crate) fn start(name: &'static str, command: &mut Command, room: &Path) -> Logged {
        let log = room.join(format!("{name}.log"));
        let file = File::create(&log).expect("a log");
        let both = file.try_clone().expect("a log");
        let command = command.stdin(Stdio::null()).stdout(file).stderr(both);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Logged { name, child, log }
    }

    /// Waits until it serves.
    pub(crate) fn begins(&mut self, what: &str, is_there: impl Fn() -> bool) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let ended = self.child.try_wait().expect("a child");
            if is_there() {
                return Ok(());
            }
            let how = match ended {
                Some(status) => format!("ended with {status}"),
                None if began.elapsed() > PATIENCE => format!("did not begin in {PATIENCE:?}"),
                None => {
                    sleep(Duration::from_millis(5));
                    continue;
                }
            };
            let said = std::fs::read_to_string(&self.log).unwrap_or_default();
            return Err(format!(
                "{} {how} before {what} was there: {}",
                self.name,
                said.trim()
            ));
        }
    }

    pub(crate) fn end(&mut self) {
        wait::stop(&mut self.child);
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        self.end();
    }
}
