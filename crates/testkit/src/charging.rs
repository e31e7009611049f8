//! Files that really charge for I/O off a grid, without root: servers that are ended with the value.
//!
//! The cost of a read is known by construction: a throttle counts whole cells, or every block takes a delay. A
//! measurement can be compared with that; a declared geometry alone costs nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::loop_device::run;
use crate::tempdir::{TempDir, temp_dir};
use crate::wait;

/// How long a server may take to come up, or to go: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// A file behind a server, in a directory of its own.
#[derive(Debug)]
pub struct Charging {
    server: Child,
    path: PathBuf,
    _room: TempDir,
}

/// Cells behind a throttle, by QEMU's storage daemon: a read moves whole cells, and the throttle lets a number of units
/// pass a second. A read of one cell off the grid then takes 2 · `cell_bytes` / `unit_bytes` times as long as one on
/// it. For reading only: its export mixes concurrent writes up.
#[derive(Clone, Copy, Debug)]
pub struct ChargedCells<'a> {
    /// Length of a cell: a power of two.
    pub cell_bytes: u64,
    /// Distance of the file's start past a boundary: the first boundary in it is at `cell_bytes` − `phase_bytes`.
    pub phase_bytes: u64,
    /// The unit of the throttle.
    pub unit_bytes: u64,
    /// Units a second.
    pub units_per_second: u64,
    /// The content of the file; zeros without it.
    pub image: Option<&'a Path>,
    /// A throttle before all this, which knows nothing of cells.
    pub credits: Option<Credits>,
}

/// This number of reads pass at once, then a number a second.
#[derive(Clone, Copy, Debug)]
pub struct Credits {
    /// Reads that pass at first.
    pub reads: u64,
    /// Afterwards.
    pub per_second: u64,
}

impl ChargedCells<'_> {
    /// Cells with a cost ratio of a misaligned read of `ratio`, from 1 to 2; 2,000 units a second, zeros.
    #[must_use]
    pub fn of_ratio(cell_bytes: u64, phase_bytes: u64, ratio: f64) -> ChargedCells<'static> {
        let unit_bytes = (2.0 * cell_bytes as f64 / ratio).round() as u64;
        ChargedCells {
            cell_bytes,
            phase_bytes,
            unit_bytes,
            units_per_second: 2000,
            image: None,
            credits: None,
        }
    }

    /// Starts the server.
    ///
    /// # Panics
    /// When it does not come up: a test asks for its tool first.
    #[must_use]
    pub fn up(self) -> Charging {
        const ZEROS_BYTES: u64 = 1 << 30;
        let room = temp_dir("cells");
        let path = room.path().join("device");
        fs::write(&path, "").expect("a file to serve over");
        let (base, size_bytes) = match self.image {
            None => (
                format!("driver=null-co,size={ZEROS_BYTES},read-zeroes=on"),
                ZEROS_BYTES,
            ),
            Some(image) => {
                let image = fs::canonicalize(image).expect("an image");
                let size_bytes = fs::metadata(&image).expect("an image").len();
                (
                    format!("driver=file,read-only=on,filename={}", image.display()),
                    size_bytes,
                )
            }
        };
        let read_only = if self.image.is_some() {
            ",read-only=on"
        } else {
            ""
        };
        let ChargedCells {
            cell_bytes,
            phase_bytes,
            unit_bytes,
            units_per_second,
            ..
        } = self;
        let throttle = format!(
            "throttle-group,id=rate,x-iops-read={units_per_second},x-iops-size={unit_bytes}"
        );
        let mut nodes = vec![
            format!("{base},node-name=base"),
            format!("driver=throttle,throttle-group=rate,file=base,node-name=throttled{read_only}"),
            format!("driver=blkdebug,align={cell_bytes},image=throttled,node-name=top{read_only}"),
        ];
        if phase_bytes != 0 {
            nodes[2] = format!(
                "driver=blkdebug,align={cell_bytes},image=throttled,node-name=whole{read_only}"
            );
            let rest = size_bytes.saturating_sub(64 << 10);
            nodes.push(format!(
                "driver=raw,file=whole,offset={phase_bytes},size={rest},node-name=top{read_only}"
            ));
        }
        let mut command = Command::new("qemu-storage-daemon");
        // In order: the daemon takes one argument after the other.
        command.args(["--object", &throttle]);
        let mut shown = "top";
        if let Some(Credits { reads, per_second }) = self.credits {
            let front = format!(
                "throttle-group,id=front,x-iops-read={per_second},x-iops-read-max={reads},x-iops-read-max-length=1"
            );
            command.args(["--object", &front]);
            nodes.push(format!(
                "driver=throttle,throttle-group=front,file=top,node-name=front{read_only}"
            ));
            shown = "front";
        }
        for node in &nodes {
            command.args(["--blockdev", node]);
        }
        let export = format!(
            "type=fuse,id=e,node-name={shown},mountpoint={}",
            path.display()
        );
        command.args(["--export", &export]);
        Charging::serve(command, path, room)
    }
}

/// Blocks of 4 KiB in memory, by nbdkit: each request of blocks takes a delay, and a request that does not begin or end
/// on a block is done in parts. Safe to write to.
///
/// # Panics
/// When it does not come up: a test asks for its tools first.
#[must_use]
pub fn delayed_blocks(mib: u64, delay: &str) -> Charging {
    blocks(
        &[],
        &["memory", &format!("{mib}M"), &format!("rdelay={delay}")],
    )
}

/// The same with other bytes than zeros behind a cache that keeps reads, of `cache_mib` if given. For reading only.
///
/// # Panics
/// When it does not come up: a test asks for its tools first.
#[must_use]
pub fn cached_blocks(mib: u64, delay: &str, cache_mib: Option<u64>) -> Charging {
    let (size, delay) = (format!("{mib}M"), format!("rdelay={delay}"));
    let mut flags = vec![
        "pattern",
        &size,
        &delay,
        "cache-on-read=true",
        "cache-min-block-size=4096",
    ];
    let most = cache_mib.map(|mib| format!("cache-max-size={mib}M"));
    flags.extend(most.as_deref());
    blocks(&["--filter=cache"], &flags)
}

fn blocks(before: &[&str], flags: &[&str]) -> Charging {
    let room = temp_dir("blocks");
    let path = room.path().join("device");
    fs::write(&path, "").expect("a file to serve over");
    let mut command = Command::new("nbdfuse");
    command.arg(&path).args([
        "--command",
        "nbdkit",
        "-s",
        "--exit-with-parent",
        "-t",
        "16",
    ]);
    command
        .args(before)
        .args(["--filter=blocksize", "--filter=delay"])
        .args(flags)
        .arg("minblock=4096");
    Charging::serve(command, path, room)
}

/// Blocks of 4 KiB in memory that nbdkit writes as a whole, each after a delay, and reads the unwritten part of a block
/// first. The first block begins a number of bytes before the served range.
///
/// # Panics
/// When it does not come up: a test asks for its tools first.
#[must_use]
pub fn delayed_writes(mib: u64, delay: &str, bytes_before: u64) -> Charging {
    let room = temp_dir("writes");
    let path = room.path().join("device");
    fs::write(&path, "").expect("a file to serve over");
    let mut command = Command::new("nbdfuse");
    command.arg(&path).args([
        "--command",
        "nbdkit",
        "-s",
        "--exit-with-parent",
        "-t",
        "16",
    ]);
    command.args([
        "--filter=offset",
        "--filter=blocksize",
        "--filter=delay",
        "memory",
        &format!("{mib}M"),
    ]);
    command.args([
        "minblock=4096".to_owned(),
        format!("wdelay={delay}"),
        format!("offset={bytes_before}"),
    ]);
    Charging::serve(command, path, room)
}

impl Charging {
    pub(crate) fn serve(mut command: Command, path: PathBuf, room: TempDir) -> Charging {
        let log = fs::File::create(room.path().join("log")).expect("a log");
        let both = log.try_clone().expect("a log");
        let server = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(both)
            .spawn();
        let server = server.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut charging = Charging {
            server,
            path,
            _room: room,
        };
        let until = Instant::now() + PATIENCE;
        while fs::metadata(&charging.path).map_or(0, |found| found.len()) == 0 {
            let is_gone = charging
                .server
                .try_wait()
                .is_ok_and(|ended| ended.is_some());
            let log = || fs::read_to_string(charging._room.path().join("log")).unwrap_or_default();
            assert!(!is_gone && Instant::now() < until, "{command:?}: {}", log());
            sleep(Duration::from_millis(5));
        }
        charging
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stops answering, or goes on.
    pub fn hold(&self, is_held: bool) {
        let signal = if is_held { "-STOP" } else { "-CONT" };
        run(Command::new("kill").args([signal, &self.server.id().to_string()]));
    }
}

impl Drop for Charging {
    fn drop(&mut self) {
        let is_mounted = |path: &Path| {
            let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
            mounts
                .lines()
                .any(|line| line.split(' ').nth(1) == path.to_str())
        };
        // Either tool unmounts; the daemon of one ends by that, that of the other on request.
        for unmount in [["fusermount3", "-u", "-q"], ["umount", "-l", "-q"]] {
            if is_mounted(&self.path) {
                let [tool, flags @ ..] = unmount;
                let _ = Command::new(tool).args(flags).arg(&self.path).status();
            }
        }
        wait::stop(&mut self.server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_with_the_value() {
        crate::require!(Tool("qemu-storage-daemon"), Tool("fusermount3"));
        let device = ChargedCells::of_ratio(4096, 1024, 1.25).up();
        let path = device.path().to_owned();
        assert_eq!(
            fs::metadata(&path).map(|found| found.len()).ok(),
            Some((1 << 30) - (64 << 10))
        );
        drop(device);
        assert!(!path.exists(), "{} is left", path.display());
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        assert!(!mounts.contains(path.to_str().expect("text")), "{mounts}");
    }

    #[test]
    fn units_follow_from_ratios() {
        // As fio has measured them: see the table of the manual on devices that charge.
        for (ratio, unit_bytes) in [(2.0, 4096), (1.25, 6554), (1.1, 7447), (1.0, 8192)] {
            assert_eq!(
                ChargedCells::of_ratio(4096, 0, ratio).unit_bytes,
                unit_bytes
            );
        }
    }
}
