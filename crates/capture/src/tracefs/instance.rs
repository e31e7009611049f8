//! An instance of the kernel's tracing: buffers and switches of its own, which disturb no other tracing.
//!
//! It is a directory, which must be removed with the necessary right. The watching process gives that right up, and may
//! be killed: so a separate process keeps it, and only waits for that end. The next watch removes directories that
//! outlive even that process.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, WaitOptions, setsid, waitpid};

use crate::error::CaptureError;

const TRACEFS: &str = "/sys/kernel/tracing";
/// Its place before Linux 4.1, and still in a mounted debugfs.
const WITHIN_DEBUGFS: &str = "/sys/kernel/debug/tracing";
/// Longer than any text that is read here.
const TEXT_MAX: usize = 64 << 10;
const PREFIX: &str = "plumb-";
/// A buffer that somebody has open cannot be removed: a process that was killed closes its files within this.
const REMOVALS: usize = 500;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(10);
/// Files that the keeper may have inherited.
const FILES_MAX: i32 = 1024;

unsafe extern "C" {
    fn fork() -> i32;
    fn close(fd: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// An instance, which is removed when this is dropped: close its open files before.
pub(super) struct Instance {
    path: PathBuf,
    keeper: Option<(Pid, PipeWriter)>,
}

impl Instance {
    /// Makes one, and removes those of watches that have ended.
    pub(super) fn new() -> Result<Instance, CaptureError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let instances = instances()?;
        remove_leftovers(&instances);
        let mut name = format!("{PREFIX}{}", std::process::id());
        match MADE.fetch_add(1, Ordering::Relaxed) {
            0 => {}
            number => name += &format!("-{number}"),
        }
        let path = instances.join(name);
        // Before there is anything to remove.
        let keeper = keep(&path).map_err(|source| failed(&path, source))?;
        let instance = Instance {
            path,
            keeper: Some(keeper),
        };
        fs::create_dir(&instance.path).map_err(|source| failed(&instance.path, source))?;
        Ok(instance)
    }

    pub(super) fn read(&self, name: &str) -> Result<String, CaptureError> {
        let path = self.path.join(name);
        read_in_one(&path).map_err(|source| failed(&path, source))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), CaptureError> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(|source| failed(&path, source))
    }

    pub(super) fn open(&self, name: &str) -> Result<File, CaptureError> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.path.join(name);
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options()
            .read(true)
            .custom_flags(nonblocking)
            .open(&path);
        file.map_err(|source| failed(&path, source))
    }

    /// Numbers of the processors that have a buffer.
    pub(super) fn cpus(&self) -> Result<Vec<u32>, CaptureError> {
        let path = self.path.join("per_cpu");
        let entries = fs::read_dir(&path).map_err(|source| failed(&path, source))?;
        let number = |name: &str| name.strip_prefix("cpu")?.parse().ok();
        Ok(entries
            .flatten()
            .filter_map(|entry| number(entry.file_name().to_str()?))
            .collect())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some((keeper, mut end)) = self.keeper.take() {
            // If it has ended already, there is nothing to notify or wait for.
            let _ = end.write_all(&[0]);
            drop(end);
            wait_for(keeper);
        }
        // Mostly it is gone by now; else this process may still be able to.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Waits until the process that removes an instance has ended; one that was stopped is left alone, and removes it later.
fn wait_for(keeper: Pid) {
    for _ in 0..2 * REMOVALS {
        match waitpid(Some(keeper), WaitOptions::NOHANG) {
            Ok(None) => std::thread::sleep(BETWEEN_REMOVALS),
            _ => return,
        }
    }
}

/// The headers are handed out in one piece, as much as is asked for at first, and nothing after it.
fn read_in_one(path: &Path) -> io::Result<String> {
    let mut bytes = vec![0; TEXT_MAX];
    let (mut file, mut len) = (File::open(path)?, 0);
    while len < bytes.len() {
        match file.read(&mut bytes[len..])? {
            0 => break,
            more => len += more,
        }
    }
    Ok(String::from_utf8_lossy(&bytes[..len]).into_owned())
}

fn failed(path: &Path, source: io::Error) -> CaptureError {
    CaptureError::Tracefs {
        path: path.to_owned(),
        source,
    }
}

/// The directory of instances; tracefs is mounted where it belongs if it is nowhere.
fn instances() -> Result<PathBuf, CaptureError> {
    let proper = Path::new(TRACEFS).join("instances");
    if !proper.is_dir() {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        // If that is not permitted, the other place is left.
        let _ = mount("tracefs", TRACEFS, "tracefs", flags, None);
    }
    let within_debugfs = Path::new(WITHIN_DEBUGFS).join("instances");
    if !proper.is_dir() && within_debugfs.is_dir() {
        return Ok(within_debugfs);
    }
    fs::metadata(&proper).map_err(|source| failed(&proper, source))?;
    Ok(proper)
}

/// Removes instances whose process has ended. One that is in use cannot be removed, for any state of its process.
fn remove_leftovers(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let of_process = name.to_str().and_then(process_of);
        if of_process.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The process that made an instance of this name.
fn process_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// Starts the process that removes the directory on request, or when this process ends.
fn keep(path: &Path) -> io::Result<(Pid, PipeWriter)> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let (end, told) = io::pipe()?;
    // SAFETY: the child calls nothing but `wait_and_remove`, which keeps to system calls: it allocates nothing and takes no
    // lock, which another thread may have held at the fork.
    match unsafe { fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => wait_and_remove(end, &path),
        child => Ok((Pid::from_raw(child).ok_or(io::ErrorKind::Other)?, told)),
    }
}

fn wait_and_remove(mut end: PipeReader, path: &CString) -> ! {
    // A key that ends all of a terminal's processes is not for this one.
    let _ = setsid();
    let keep = end.as_raw_fd();
    for other in (0..FILES_MAX).filter(|fd| *fd != keep) {
        // SAFETY: this process uses no other file, and nothing that owned one runs in it.
        unsafe { close(other) };
    }
    let mut byte = [0];
    while end
        .read(&mut byte)
        .is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
    {}
    for _ in 0..REMOVALS {
        if rustix::fs::rmdir(path.as_c_str()) != Err(rustix::io::Errno::BUSY) {
            break;
        }
        std::thread::sleep(BETWEEN_REMOVALS);
    }
    // SAFETY: ends this process without its parent's exit handlers.
    unsafe { _exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_instances() {
        assert_eq!(process_of("plumb-4711"), Some(4711));
        assert_eq!(process_of("plumb-4711-2"), Some(4711));
        assert_eq!(process_of("plumb-x"), None);
        assert_eq!(process_of("4711"), None);
    }
}
