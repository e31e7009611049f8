//! Keeps `examples/watch.md` true: makes the page's disk, runs its commands, and compares their output.
//!
//! Times, latencies and PIDs are another run's; so may be the number of the loop device. All else has to be as on the page:
//! fio draws the same random numbers each time.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::Folder;
use crate::common::attached::await_programs;
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::{require, wait};

/// The device on the page.
const NAME: &str = "loop0";

struct WatchSession {
    folder: Folder,
    disk: LoopDevice,
    /// A command that runs while the next watch does.
    load: Option<String>,
    status: i32,
}

impl WatchSession {
    fn new() -> WatchSession {
        let folder = Folder::new("example-watch");
        let image = folder.path("disk");
        File::create(&image)
            .and_then(|file| file.set_len(256 << 20))
            .expect("room for a sparse file");
        WatchSession {
            disk: LoopDevice::attach_hidden(&image, &[]),
            folder,
            load: None,
            status: 0,
        }
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        // Paths of the disk and of its partition: both are hidden from other programs.
        let path = self.disk.path().display().to_string();
        command
            .arg("-c")
            .arg(line.replace(&format!("/dev/{NAME}"), &path))
            .current_dir(self.folder.path(""));
        command.stdin(Stdio::null());
        command
    }

    /// A line that begins with `# `: of root, in another window where it is a load.
    fn as_root(&mut self, line: &str) {
        if line.starts_with("fio ") {
            self.load = Some(line.to_owned());
        } else {
            run(&mut self.shell(line));
            if line.starts_with("partx ") {
                self.await_partition();
            }
        }
    }

    /// A tool that writes to a node that is not there makes a regular file of it.
    fn await_partition(&self) {
        let node = PathBuf::from(format!("{}p1", self.disk.path().display()));
        let what = format!("{} is a block device", node.display());
        wait::until(&what, Duration::from_secs(30), || {
            self.disk.hide_partitions();
            std::fs::metadata(&node).is_ok_and(|found| found.file_type().is_block_device())
        });
    }

    /// The output of a line that begins with `$ plumb `.
    fn plumb(&mut self, line: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        let line = line.replace(NAME, &self.disk.name());
        command
            .args(line.split(' ').skip(1))
            .current_dir(self.folder.path(""))
            .stdin(Stdio::null());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("plumb runs");
        if let Some(load) = self.load.take() {
            await_programs(child.id());
            run(&mut self.shell(&load));
        }
        self.ended(child)
    }

    fn ended(&mut self, child: Child) -> String {
        let done = wait::output("plumb watch", wait::PATIENCE, child);
        self.status = done.status.code().unwrap_or(-1);
        assert!(
            done.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout)
            .expect("text")
            .replace(&self.disk.name(), NAME)
    }

    /// The page with the present output of its commands.
    fn replayed(&mut self, page: &str) -> String {
        let mut now = String::new();
        let (mut fenced, mut dropping) = (false, false);
        for line in page.lines() {
            let is_fence = line.starts_with("```");
            let is_command = fenced && (line.starts_with("# ") || line.starts_with("$ "));
            dropping &= !is_fence && !is_command;
            fenced ^= is_fence;
            if dropping {
                continue;
            }
            now += &format!("{line}\n");
            if !is_command {
                continue;
            }
            if let Some(line) = line.strip_prefix("# ") {
                self.as_root(line);
            } else if line == "$ echo $?" {
                now += &format!("{}\n", self.status);
            } else {
                now += &self.plumb(&line[2..]);
            }
            dropping = true;
        }
        now
    }
}

/// The parts that have to be alike: words and counts, without times and line breaks.
fn comparable_lines(page: &str) -> Vec<String> {
    let mut told = Vec::new();
    let mut in_times = false;
    for line in page.lines() {
        let trimmed = line.trim_start();
        let is_heading = ["Latency, ", "Slowest I/O"]
            .iter()
            .any(|w| trimmed.starts_with(w));
        in_times = (in_times && !trimmed.is_empty()) || is_heading;
        let is_timed = in_times && !is_heading;
        let is_timed = is_timed
            || [
                "from first to last issue",
                "up to the last issue",
                "typed tracepoints, ",
                "Z, ",
            ]
            .iter()
            .any(|w| line.contains(w));
        if is_timed || trimmed.starts_with('─') {
            continue;
        }
        // The kernel may skip a few times on a busy machine: the page has an idle one.
        let line = match line.split_once(" of ") {
            Some((before, after)) if after.ends_with(" timed)") => {
                let (words, _) = before.rsplit_once('(').unwrap_or((before, ""));
                let ios = after.split_whitespace().next().unwrap_or_default();
                format!("{words}({ios} I/O timed)")
            }
            _ => line.to_owned(),
        };
        let mut words: Vec<&str> = line.split_whitespace().collect();
        // The PID follows the name of the process.
        if words.first() == Some(&"fio") && words.len() > 5 {
            words.remove(1);
        }
        told.extend(words.into_iter().map(str::to_owned));
    }
    told
}

#[test]
fn the_session_prints_the_text_of_the_page() {
    require!(Bpf, Loop, Tool("fio"), Tool("sgdisk"), Tool("partx"));
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/watch.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let now = WatchSession::new().replayed(&page);
    if std::env::var_os("PLUMB_BLESS").is_some() {
        return std::fs::write(&path, now).expect("a writable page");
    }
    // On a busy machine the kernel may skip the program for a completion; the page is that of an idle one.
    if now.contains("whose completion was not seen") {
        plumb_testkit::undecided!("the kernel skipped completions");
    }
    let (was, is) = (comparable_lines(&page), comparable_lines(&now));
    let differs = was
        .iter()
        .zip(&is)
        .position(|(was, is)| was != is)
        .or((was.len() != is.len()).then_some(was.len().min(is.len())));
    if let Some(at) = differs {
        let around =
            |words: &[String]| words[at.saturating_sub(8)..(at + 8).min(words.len())].join(" ");
        panic!(
            "the page says: … {} …\n it prints now: … {} …\nif that is wanted: PLUMB_BLESS=1 cargo test --workspace \
             --test suite example_watch::",
            around(&was),
            around(&is)
        );
    }
}
