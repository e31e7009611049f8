//! The names of senders that the kernel's programs do not read: paths of cgroups, and command lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Cgroups of one host: more are not looked through.
const CGROUPS_MAX: usize = 1 << 16;
/// A search of all cgroups is repeated no sooner than this many times the time that it took.
const REST: u32 = 100;
/// Threads of a process whose names are read.
const THREADS_MAX: usize = 1024;
/// Bytes of a command line.
const COMMAND_LINE_MAX: u64 = 4096;

/// Time that a reading waits for command lines.
const PATIENCE: Duration = Duration::from_millis(50);
/// Inode of the namespace of process numbers that the kernel starts with (PROC_PID_INIT_INO).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// A process by its number and command.
type Key = (u32, String);

/// Names that were found, for the next readings.
pub(crate) struct SenderNames {
    /// Mount point of cgroup version 2.
    root: Option<PathBuf>,
    paths: BTreeMap<u64, String>,
    /// Numbers without a directory. The kernel gives no number twice.
    gone: BTreeSet<u64>,
    /// The next search is not before this.
    search_at: Instant,
    reads_command_lines: bool,
    command_lines: BTreeMap<Key, Option<String>>,
    /// Those of the reading before.
    earlier_command_lines: BTreeMap<Key, Option<String>>,
    /// Begun with the first question, when all capabilities are dropped.
    reader: Option<CommandLineReader>,
    /// A reading waits no longer than until then.
    wait_until: Instant,
}

/// A thread that reads command lines. The memory of a process that hangs cannot be read, and the read cannot be interrupted: such
/// a thread stays behind, and no further lines are read.
struct CommandLineReader {
    questions: Sender<Key>,
    answers: Receiver<(Key, Option<String>)>,
    /// Questions without an answer.
    open: BTreeSet<Key>,
    /// Whether no answer came since the reading before, though questions are open.
    hangs: bool,
}

impl CommandLineReader {
    /// `None` if the host has no room for a thread.
    fn start() -> Option<CommandLineReader> {
        let (questions, asked) = channel::<Key>();
        let (answered, answers) = channel();
        let started = thread::Builder::new().spawn(move || {
            for key in asked {
                let line = command_line(Path::new("/proc"), key.0, &key.1);
                if answered.send((key, line)).is_err() {
                    break;
                }
            }
        });
        started.is_ok().then_some(CommandLineReader {
            questions,
            answers,
            open: BTreeSet::new(),
            hangs: false,
        })
    }

    /// Late answers to the questions of earlier readings.
    fn late_answers(&mut self) -> Vec<(Key, Option<String>)> {
        let late: Vec<_> = self.answers.try_iter().collect();
        for (key, _) in &late {
            self.open.remove(key);
        }
        self.hangs = late.is_empty() && !self.open.is_empty();
        late
    }
}

impl SenderNames {
    /// Finds the cgroups of now: one of them may be gone by the first reading.
    pub(crate) fn new(reads_command_lines: bool) -> SenderNames {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut names = SenderNames {
            root: mounts.lines().find_map(cgroup2_mount),
            paths: BTreeMap::new(),
            gone: BTreeSet::new(),
            search_at: Instant::now(),
            reads_command_lines: reads_command_lines && numbers_are_those_of_the_host(),
            command_lines: BTreeMap::new(),
            earlier_command_lines: BTreeMap::new(),
            reader: None,
            wait_until: Instant::now(),
        };
        names.search();
        names
    }

    /// Forgets the processes that sent nothing in the last reading.
    pub(crate) fn begin_reading(&mut self) {
        self.earlier_command_lines = std::mem::take(&mut self.command_lines);
        self.wait_until = Instant::now() + PATIENCE;
        if let Some(reader) = &mut self.reader {
            self.earlier_command_lines.extend(reader.late_answers());
        }
    }

    /// The path of a cgroup below the root of its hierarchy, if it can be found.
    pub(crate) fn cgroup(&mut self, number: u64) -> Option<String> {
        let is_unknown =
            number != 0 && !self.paths.contains_key(&number) && !self.gone.contains(&number);
        if is_unknown && Instant::now() >= self.search_at {
            self.search();
            if !self.paths.contains_key(&number) {
                if self.gone.len() >= CGROUPS_MAX {
                    self.gone.clear();
                }
                self.gone.insert(number);
            }
        }
        self.paths.get(&number).cloned()
    }

    /// The arguments of a process, if they are asked for and it still runs.
    pub(crate) fn command_line(&mut self, pid: u32, comm: &str) -> Option<String> {
        if !self.reads_command_lines {
            return None;
        }
        let key = (pid, comm.to_owned());
        if let Some(line) = self.command_lines.get(&key) {
            return line.clone();
        }
        let line = match self.earlier_command_lines.remove(&key) {
            Some(line) => line,
            None => self.ask(&key)?,
        };
        self.command_lines.insert(key, line.clone());
        line
    }

    /// Asks for the command line of a process; `None` if the answer does not come in time.
    fn ask(&mut self, key: &Key) -> Option<Option<String>> {
        if self.reader.is_none() {
            self.reader = CommandLineReader::start();
            self.reads_command_lines = self.reader.is_some();
        }
        let reader = self.reader.as_mut()?;
        if reader.hangs || !reader.open.insert(key.clone()) {
            return None;
        }
        reader.questions.send(key.clone()).ok()?;
        loop {
            let rest = self.wait_until.saturating_duration_since(Instant::now());
            let (of, line) = reader.answers.recv_timeout(rest).ok()?;
            reader.open.remove(&of);
            if of == *key {
                return Some(line);
            }
            self.command_lines.insert(of, line);
        }
    }

    /// Reads the numbers of all cgroups. Paths of removed ones stay: their processes may still have I/O in a reading.
    fn search(&mut self) {
        let Some(root) = &self.root else { return };
        let begun = Instant::now();
        let found = cgroups_below(root);
        if self.paths.len() + found.len() > 2 * CGROUPS_MAX {
            self.paths.clear();
        }
        self.paths.extend(found);
        self.search_at = Instant::now() + begun.elapsed().min(Duration::from_secs(6)) * REST;
    }
}

/// Whether this process has the number that the kernel's programs see: in a container it has another one.
pub(crate) fn numbers_are_those_of_the_host() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|of| of == Path::new(FIRST_PID_NAMESPACE))
}

/// The mount point in a line of mountinfo, if it is one of cgroup version 2. See `proc_pid_mountinfo(5)`.
fn cgroup2_mount(line: &str) -> Option<PathBuf> {
    let (mount, source) = line.split_once(" - ")?;
    if source.split(' ').next() != Some("cgroup2") {
        return None;
    }
    mount.split(' ').nth(4).map(PathBuf::from)
}

/// All cgroups by number, which is the inode of the directory.
fn cgroups_below(root: &Path) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    let mut to_read = vec![(root.to_owned(), String::new())];
    while let Some((directory, path)) = to_read.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if found.len() >= CGROUPS_MAX {
                return found;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let path = format!("{path}/{}", entry.file_name().to_string_lossy());
                found.insert(entry.ino(), path.clone());
                to_read.push((entry.path(), path));
            }
        }
    }
    found
}

/// The arguments of a process, separated by spaces; `None` if it has ended, or if none of its threads has that command.
fn command_line(proc: &Path, pid: u32, comm: &str) -> Option<String> {
    let of_process = proc.join(pid.to_string());
    let is_called = |folder: &Path| {
        let present = fs::read(folder.join("comm")).unwrap_or_default();
        String::from_utf8_lossy(&present).trim_end_matches('\n') == comm
    };
    let of_threads = || {
        let threads = fs::read_dir(of_process.join("task")).into_iter().flatten();
        let mut threads = threads.flatten().take(THREADS_MAX);
        threads.any(|thread| is_called(&thread.path()))
    };
    if !is_called(&of_process) && !of_threads() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(of_process.join("cmdline")).ok()?;
    file.take(COMMAND_LINE_MAX).read_to_end(&mut bytes).ok()?;
    let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let line = line.trim_end();
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_version_2_is_found() {
        let v1 = "33 24 0:29 / /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu";
        let v2 = "42 24 0:38 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(cgroup2_mount(v1), None);
        let expected = PathBuf::from("/sys/fs/cgroup/unified");
        assert_eq!(cgroup2_mount(v2), Some(expected));
    }

    #[test]
    fn a_process_that_is_another_command_has_no_command_line() {
        let folder = tempfile::tempdir().expect("a directory");
        let of_process = folder.path().join("4711");
        fs::create_dir(&of_process).expect("a directory");
        fs::write(of_process.join("comm"), "postgres\n").expect("a file");
        fs::write(of_process.join("cmdline"), b"postgres:\0checkpointer\0\0").expect("a file");
        let line = |pid, comm| command_line(folder.path(), pid, comm);
        let expected = Some("postgres: checkpointer".to_owned());
        assert_eq!(line(4711, "postgres"), expected);
        assert_eq!(line(4711, "bash"), None);
        let thread = of_process.join("task/4713");
        fs::create_dir_all(&thread).expect("a directory");
        fs::write(thread.join("comm"), "IO iothread1\n").expect("a file");
        assert_eq!(line(4711, "IO iothread1"), expected);
        assert_eq!(line(4712, "postgres"), None);
    }

    #[test]
    fn cgroups_are_found_by_their_inodes() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().expect("a directory");
        let inner = folder.path().join("system.slice/nginx.service");
        fs::create_dir_all(&inner).expect("directories");
        fs::write(inner.join("cgroup.procs"), "").expect("a file");
        let number = fs::metadata(&inner).expect("it exists").ino();
        let found = cgroups_below(folder.path());
        assert_eq!(found.len(), 2);
        assert_eq!(found[&number], "/system.slice/nginx.service");
    }
}
