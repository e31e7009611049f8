//! A file that answers as slowly as it is told to, and stops, fails or dies when it is told to: nbdkit's memory with a delay,
//! shown as a file by nbdfuse. Both end with the test, well or not.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::loop_device::run;
use crate::tempdir::{TempDir, temp_dir};

/// How long the two may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// A disk in memory with a delay on each I/O. Reads side by side wait side by side.
#[derive(Debug)]
pub struct SlowDisk {
    server: Child,
    shown: Child,
    path: PathBuf,
    /// While it is there every I/O fails.
    failing: PathBuf,
    _room: TempDir,
}

impl SlowDisk {
    /// A disk of so many bytes; reads wait for `read_delay`, as nbdkit writes times: `1ms`.
    ///
    /// # Panics
    /// When it does not begin: a test asks for `Tool("nbdkit")` and `Tool("nbdfuse")` first.
    #[must_use]
    pub fn new(size_bytes: u64, read_delay: &str) -> SlowDisk {
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
        let mut server = quietly(&mut server);
        let until = Instant::now() + PATIENCE;
        wait(until, &mut server, || socket.exists());
        let mut shown = quietly(
            Command::new("nbdfuse")
                .arg(&path)
                .arg("--unix")
                .arg(&socket),
        );
        wait(until, &mut shown, || {
            std::fs::metadata(&path).is_ok_and(|found| found.len() == size_bytes)
        });
        SlowDisk {
            server,
            shown,
            path,
            failing,
            _room: room,
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers nothing more until it is told to go on.
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
        run(Command::new("kill").args(["-s", name, &self.server.id().to_string()]));
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // A stopped server would keep the other one waiting. Both may be gone already.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.path)
            .stderr(Stdio::null())
            .status();
        let _ = self.shown.kill();
        let _ = self.shown.wait();
    }
}

fn quietly(command: &mut Command) -> Child {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn wait(until: Instant, child: &mut Child, is_there: impl Fn() -> bool) {
    while !is_there() {
        if let Ok(Some(status)) = child.try_wait() {
            panic!("it ended before it began: {status}");
        }
        assert!(Instant::now() < until, "it does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
}
