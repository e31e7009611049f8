//! The names of senders that the kernel's programs do not read: paths of cgroups, and command lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Cgroups of one host: more are not looked through.
const CGROUPS_MAX: usize = 1 << 16;
/// A search of all cgroups is repeated no sooner than this many times the time that it took.
const REST: u32 = 100;
/// Bytes of a command line.
const COMMAND_LINE_MAX: u64 = 4096;

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
    /// By number and command of a process.
    command_lines: BTreeMap<(u32, String), Option<String>>,
    /// Those of the reading before.
    earlier_command_lines: BTreeMap<(u32, String), Option<String>>,
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
            reads_command_lines,
            command_lines: BTreeMap::new(),
            earlier_command_lines: BTreeMap::new(),
        };
        names.search();
        names
    }

    /// Forgets the processes that sent nothing in the last reading.
    pub(crate) fn begin_reading(&mut self) {
        self.earlier_command_lines = std::mem::take(&mut self.command_lines);
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
        let line = self
            .earlier_command_lines
            .remove(&key)
            .unwrap_or_else(|| command_line(Path::new("/proc"), pid, comm));
        self.command_lines.insert(key, line.clone());
        line
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

/// The arguments of a process, separated by spaces; `None` if it has ended or has become another command.
fn command_line(proc: &Path, pid: u32, comm: &str) -> Option<String> {
    let of_process = proc.join(pid.to_string());
    let present = fs::read(of_process.join("comm")).ok()?;
    if String::from_utf8_lossy(&present).trim_end_matches('\n') != comm {
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
