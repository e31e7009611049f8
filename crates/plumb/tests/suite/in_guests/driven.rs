//! A guest that takes commands, whose disks' writes are logged, and that can be killed: see `lab/move-guest`.
//!
//! Commands and answers have a channel of their own. On the console the kernel prints whenever it likes, also in the middle
//! of a line of somebody else.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use plumb_testkit::log_writes::WriteLog;
use plumb_testkit::loop_device::run;
use plumb_testkit::tempdir::TempDir;

/// Time for each command: an emulated processor of a busy machine is slow. The guest itself prints the state of its
/// processes after 300 s in one step of a command.
pub const PATIENCE: Duration = Duration::from_secs(900);

/// The files that a guest boots from.
pub struct Boot {
    dir: TempDir,
    started: Cell<u32>,
}

impl Boot {
    pub fn new() -> Boot {
        let dir = plumb_testkit::temp_dir("move-guest");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/move-guest");
        run(Command::new(script)
            .arg(dir.path())
            .arg(crate::in_guests::program()));
        Boot {
            dir,
            started: Cell::new(0),
        }
    }

    /// Starts it with disks, as SCSI targets from 0 on, and waits until it takes commands.
    pub fn start(&self, disks: &[&LoggedDisk]) -> Guest {
        let number = self.started.get();
        self.started.set(number + 1);
        let console = self.dir.path().join(format!("console-{number}"));
        let mut command = Command::new(self.dir.path().join("run"));
        command
            .arg("-serial")
            .arg(format!("file:{}", console.display()));
        command.args([
            "-nodefaults",
            "-m",
            "1024",
            "-smp",
            "1",
            "-device",
            "virtio-scsi-pci,id=scsi",
        ]);
        for (target, disk) in disks.iter().enumerate() {
            command.args(["-blockdev", &disk.node(target)]);
            command.args(["-device", &disk.device(target)]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("QEMU starts");
        let input = child.stdin.take().expect("a pipe");
        let output = child.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
            for line in lines {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut guest = Guest {
            child,
            input,
            lines,
            console,
            given: "boot".to_owned(),
            said: Vec::new(),
            begun_at: 0,
        };
        guest.until("ready");
        guest
    }
}

/// A disk of a guest: an image, and the log of its writes.
pub struct LoggedDisk {
    dir: PathBuf,
    /// Whether QEMU goes past the page cache (`cache=none`), or through it (`writeback`).
    pub is_direct: bool,
}

impl LoggedDisk {
    /// In a directory of its own, in which the image may be already.
    pub fn new(dir: PathBuf, size_bytes: u64) -> LoggedDisk {
        fs::create_dir_all(&dir).expect("room");
        let disk = LoggedDisk {
            dir,
            is_direct: false,
        };
        let image = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(disk.image());
        image
            .and_then(|image| image.set_len(size_bytes))
            .expect("room");
        File::create(disk.log_path()).expect("room");
        disk
    }

    pub fn image(&self) -> PathBuf {
        self.dir.join("image")
    }

    fn log_path(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// The writes so far.
    ///
    /// # Errors
    /// When nothing was.
    pub fn log(&self) -> io::Result<WriteLog> {
        WriteLog::open(&self.log_path())
    }

    fn node(&self, target: usize) -> String {
        let direct = if self.is_direct { "on" } else { "off" };
        format!(
            "driver=blklogwrites,node-name=disk{target},file.driver=file,file.filename={},file.cache.direct={direct},\
             log.driver=file,log.filename={},log-super-update-interval=1",
            self.image().display(),
            self.log_path().display()
        )
    }

    fn device(&self, target: usize) -> String {
        format!("scsi-hd,drive=disk{target},bus=scsi.0,scsi-id={target},serial=plumb{target}")
    }
}

/// A running guest.
pub struct Guest {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// The log of its console.
    console: PathBuf,
    /// The last command.
    given: String,
    /// All of its answers.
    said: Vec<String>,
    /// The length of its output before the last input line.
    begun_at: usize,
}

impl Guest {
    /// Gives it a line, and returns its output until it is ready again.
    #[track_caller]
    pub fn tell(&mut self, words: &str) -> Vec<String> {
        self.begin(words);
        self.until("ready")
    }

    /// Gives it a line.
    pub fn begin(&mut self, words: &str) {
        self.begun_at = self.said.len();
        words.clone_into(&mut self.given);
        writeln!(self.input, "{words}").expect("the guest listens");
    }

    /// Its output for the host, up to the awaited words.
    #[track_caller]
    pub fn until(&mut self, last: &str) -> Vec<String> {
        let (began, mut found) = (Instant::now(), Vec::new());
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE.saturating_sub(began.elapsed()));
            let line = match line {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => panic!(
                    "waited {PATIENCE:?} in vain for `{last}` after `{}`:\n{}",
                    self.given,
                    self.printed()
                ),
                Err(RecvTimeoutError::Disconnected) => panic!(
                    "QEMU ended while it was waited for `{last}` after `{}`:\n{}",
                    self.given,
                    self.printed()
                ),
            };
            self.said.push(line.clone());
            let Some(words) = line.strip_prefix("GUEST: ") else {
                continue;
            };
            assert!(!words.starts_with("failed"), "{}", self.said_and_more());
            if words == last {
                return found;
            }
            found.push(words.to_owned());
        }
    }

    /// A failure comes before the output of the tool.
    fn said_and_more(&mut self) -> String {
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(2)) {
            self.said.push(line);
        }
        self.printed()
    }

    /// Whether it said this since the last line that it was given.
    #[track_caller]
    pub fn has_said(&mut self, words: &str) -> bool {
        self.said.extend(self.lines.try_iter());
        let mut since = self.said[self.begun_at..].iter();
        assert!(
            !since.clone().any(|line| line.starts_with("GUEST: failed")),
            "{}",
            self.printed()
        );
        since.any(|line| line.strip_prefix("GUEST: ") == Some(words))
    }

    /// All answers, and the console.
    pub fn printed(&self) -> String {
        let console = fs::read(&self.console).unwrap_or_default();
        format!(
            "{}\non its console:\n{}",
            self.said.join("\n"),
            String::from_utf8_lossy(&console)
        )
    }

    /// Ends the virtual machine between two instructions.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        plumb_testkit::wait::stop(&mut self.child);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}
