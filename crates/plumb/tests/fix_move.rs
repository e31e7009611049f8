//! `plumb fix move` on real disks: files keep their bytes, tools and kernel find the file system at its new place, and
//! killing the process between any two writes loses nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::require;
use plumb_testkit::tempdir::TempDir;

const MIB: u64 = 1 << 20;

/// A disk with a partition, a neighbour behind it, and files on the partition.
struct Disk {
    device: LoopDevice,
    dir: TempDir,
    format: Format,
    sums: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Ext4,
    Xfs,
    Ntfs,
}

impl Format {
    fn make(self, node: &Path) {
        let mut command = match self {
            Format::Ext4 => Command::new("mkfs.ext4"),
            Format::Xfs => Command::new("mkfs.xfs"),
            Format::Ntfs => Command::new("mkfs.ntfs"),
        };
        match self {
            Format::Ext4 => command.args(["-q", "-F"]),
            Format::Xfs => command.args(["-q", "-f"]),
            Format::Ntfs => command.args(["-q", "-f", "-F"]),
        };
        run(command.arg(node));
    }

    /// The format's own check, which has to find nothing.
    fn check(self, node: &Path) {
        let mut command = match self {
            Format::Ext4 => Command::new("e2fsck"),
            Format::Xfs => Command::new("xfs_repair"),
            Format::Ntfs => Command::new("ntfsfix"),
        };
        match self {
            Format::Ext4 => command.args(["-f", "-n"]),
            Format::Xfs | Format::Ntfs => command.arg("-n"),
        };
        run(command.arg(node));
    }
}

/// Noise, the same for the same seed.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let words = (0..len.div_ceil(8)).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(len).collect()
}

impl Disk {
    /// A partition of so many MiB from a sector on, and another one of noise behind the room that it may move in.
    fn new(format: Format, start: u64, mib: u64, options: &[&str]) -> Disk {
        let dir = plumb_testkit::temp_dir("fix-move");
        let image = dir.path().join("disk.img");
        let len = mib * MIB / 512;
        let neighbour = start + len + 4 * MIB / 512 + 1;
        let size = (neighbour + 8 * MIB / 512) * 512;
        fs::File::create(&image).and_then(|file| file.set_len(size)).expect("room");
        let one = format!("-n1:{start}:{}", start + len - 1);
        let two = format!("-n2:{neighbour}:{}", neighbour + 2 * MIB / 512);
        run(Command::new("sgdisk").args(["-a1", &one, &two, "-c1:data"]).arg(&image));
        let device = LoopDevice::attach(&image, options);
        assert_eq!(device.add_partitions(), 2);
        let mut disk = Disk { device, dir, format, sums: BTreeMap::new() };
        fs::write(disk.node(2), noise(2 * MIB as usize, 7)).expect("room");
        format.make(&disk.node(1));
        disk.fill();
        disk
    }

    fn fill(&mut self) {
        if self.format == Format::Ntfs {
            for (at, len) in [3 * MIB as usize, 100_001, 1].into_iter().enumerate() {
                let (name, bytes) = (format!("file{at}"), noise(len, at as u64 + 1));
                let from = self.dir.path().join(&name);
                fs::write(&from, &bytes).expect("room");
                run(Command::new("ntfscp").arg("-q").arg(self.node(1)).arg(&from).arg(&name));
                self.sums.insert(name, bytes);
            }
            return;
        }
        let mounted = self.mount();
        for (at, len) in [9 * MIB as usize, 100_001, 1, 4096].into_iter().enumerate() {
            let (name, bytes) = (format!("file{at}"), noise(len, at as u64 + 1));
            fs::write(self.at().join(&name), &bytes).expect("room");
            self.sums.insert(name, bytes);
        }
        drop(mounted);
    }

    fn node(&self, number: u32) -> PathBuf {
        PathBuf::from(format!("{}p{number}", self.device.path().display()))
    }

    fn at(&self) -> PathBuf {
        let at = self.dir.path().join("at");
        fs::create_dir_all(&at).expect("room");
        at
    }

    fn mount(&self) -> Mounted {
        Mounted::mount(&self.node(1), &self.at())
    }

    fn journal(&self) -> PathBuf {
        self.dir.path().join("journal")
    }

    fn start(&self) -> Option<u64> {
        let name = self.device.name();
        let path = format!("/sys/class/block/{name}/{name}p1/start");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["fix", "move"]).arg(self.node(1)).arg("--journal").arg(self.journal());
        // The loop device and the journal are on one disk of the machine.
        command.arg("--journal-same-disk").args(args);
        command
    }

    fn name(&self) -> String {
        format!("{}p1", self.device.name())
    }

    fn moved(&self, args: &[&str]) -> Output {
        self.command(args).args(["--yes", &self.name()]).output().expect("plumb runs")
    }

    fn go(&self, what: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["fix", what]).arg(self.journal()).output().expect("plumb runs")
    }

    /// The whole of it is right: at that start, by its own tools, file by file, and the neighbour as well.
    fn assert_right(&self, start: u64) {
        assert_eq!(self.start(), Some(start));
        self.format.check(&self.node(1));
        if self.format == Format::Ntfs {
            for (name, bytes) in &self.sums {
                let read = Command::new("ntfscat").arg("-q").arg(self.node(1)).arg(name).output();
                assert!(read.expect("ntfscat runs").stdout == *bytes, "{name}");
            }
        } else {
            let mounted = self.mount();
            for (name, bytes) in &self.sums {
                assert!(fs::read(self.at().join(name)).expect("a file") == *bytes, "{name}");
            }
            drop(mounted);
        }
        let neighbour = fs::read(self.node(2)).expect("the neighbour");
        assert!(neighbour[..2 * MIB as usize] == noise(2 * MIB as usize, 7), "the neighbour");
        let verified = run(Command::new("sgdisk").arg("-v").arg(self.device.path()));
        assert!(verified.contains("No problems found"), "{verified}");
    }

    fn info(&self) -> String {
        let info = run(Command::new("sgdisk").arg("-i1").arg(self.device.path()));
        let kept = |line: &&str| line.contains("GUID") || line.contains("name");
        info.lines().filter(kept).collect::<Vec<_>>().join("\n")
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
fn assert_done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
}

/// What blkid finds at a byte of the disk.
fn found_at(disk: &Disk, sector: u64) -> String {
    let offset = (sector * 512).to_string();
    let probed = Command::new("blkid").args(["-p", "-O", &offset]).arg(disk.device.path()).output();
    String::from_utf8_lossy(&probed.expect("blkid runs").stdout).into_owned()
}

#[test]
fn file_systems_come_along() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"), Tool("blkid"));
    for (start, options) in [(34, &["--sector-size", "512"][..]), (63, &[])] {
        let disk = Disk::new(Format::Ext4, start, 48, options);
        let info = disk.info();
        let image = fs::read(disk.dir.path().join("disk.img")).expect("the image");
        let shown = disk.command(&["--aligned"]).output().expect("plumb runs");
        assert_done(&shown);
        assert!(fs::read(disk.dir.path().join("disk.img")).expect("the image") == image, "only shown");
        assert!(!disk.journal().exists());
        assert_done(&disk.moved(&["--aligned", "--scan"]));
        disk.assert_right(2_048);
        assert_eq!(disk.info(), info, "type, identity and name stay");
        assert!(!disk.journal().exists(), "the move has ended");
        assert_eq!(found_at(&disk, start), "", "nothing is left where it was");
        let checked =
            Command::new(env!("CARGO_BIN_EXE_plumb")).args(["check", "--json"]).arg(disk.node(1)).output();
        let document: serde_json::Value =
            serde_json::from_slice(&checked.expect("plumb runs").stdout).expect("a document");
        let findings = document["findings"].as_array().expect("findings");
        let is_off = |one: &&serde_json::Value| {
            one["id"] == "misaligned-partition" && one["target"]["device"] == disk.name()
        };
        assert!(findings.iter().find(is_off).is_none(), "{findings:?}");
        // And back to the left, by a shift that no window of its own length has room for.
        assert_done(&disk.moved(&["--to", "2040s"]));
        disk.assert_right(2_040);
    }
}

#[test]
fn hidden_sectors_of_ntfs_follow() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ntfs"), Tool("ntfscat"));
    let disk = Disk::new(Format::Ntfs, 63, 24, &[]);
    let hidden = |disk: &Disk| {
        let boot = fs::read(disk.node(1)).expect("the partition");
        u32::from_le_bytes([boot[28], boot[29], boot[30], boot[31]])
    };
    let before = hidden(&disk);
    assert_done(&disk.moved(&["--to", "2048s"]));
    disk.assert_right(2_048);
    // mkfs.ntfs asks the kernel where the partition begins; where that was not 63 it stays.
    assert_eq!(hidden(&disk), if before == 63 { 2_048 } else { before });
}

/// Starts a move, and waits until the partition is taken away: from then on it may write.
fn begun(disk: &Disk, to: u64) -> std::process::Child {
    let mut command = disk.command(&["--to", &format!("{to}s"), "--yes", &disk.name()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("plumb starts");
    while disk.node(1).exists() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it began");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

const KILLS: u32 = 6;

/// Kills moves at six moments between their first and their last write, and goes on or back.
fn survives(format: Format, mib: u64, start: u64, to: u64) {
    // How long one takes that is left alone.
    let disk = Disk::new(format, start, mib, &[]);
    let mut child = begun(&disk, to);
    let began = Instant::now();
    assert!(child.wait().expect("a child").success());
    let mut whole = began.elapsed();
    disk.assert_right(to);
    drop(disk);
    let (mut killed, mut stages) = (0, Vec::new());
    for _ in 0..4 * KILLS {
        if killed == KILLS {
            break;
        }
        let disk = Disk::new(format, start, mib, &[]);
        let mut child = begun(&disk, to);
        std::thread::sleep(whole.mul_f64((f64::from(killed) + 0.5) / f64::from(KILLS)));
        let _ = child.kill();
        let ended = child.wait().expect("a child").success() || !disk.journal().exists();
        if ended {
            // The machine has become faster, or the kill came behind the last write.
            whole = whole.mul_f64(0.8);
            disk.assert_right(to);
            continue;
        }
        let stands = disk.go("status");
        if ["never begun", "no good record"].iter().any(|words| said(&stands).contains(words)) {
            whole = whole.mul_f64(1.3);
            run(Command::new("partx").args(["--add", "--nr", "1"]).arg(disk.device.path()));
            disk.assert_right(start);
            continue;
        }
        if said(&stands).contains("the move is complete") {
            // Behind the last write, and before the kernel learned of it: going on does no more than that.
            whole = whole.mul_f64(0.9);
            assert_done(&disk.go("resume"));
            disk.assert_right(to);
            continue;
        }
        assert_eq!(stands.status.code(), Some(6), "{}", said(&stands));
        let words = said(&stands);
        stages.push(words.lines().find(|line| line.starts_with("incomplete")).unwrap_or_default().to_owned());
        let (what, at) = if killed % 2 == 0 { ("resume", to) } else { ("rollback", start) };
        killed += 1;
        assert_done(&disk.go(what));
        disk.assert_right(at);
    }
    println!("{format:?}: {killed} killed while they moved: {stages:#?}");
    assert_eq!(killed, KILLS, "{format:?}: too few were killed while they moved");
}

/// In batches through the journal, since the shift is short.
#[test]
fn ext4_survives_kills() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    survives(Format::Ext4, 160, 34, 2_048);
}

/// In windows straight from place to place.
#[test]
fn xfs_survives_kills() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.xfs"));
    survives(Format::Xfs, 320, 63, 4_096);
}

#[test]
fn ntfs_survives_kills() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ntfs"), Tool("ntfscat"));
    survives(Format::Ntfs, 24, 63, 4_096);
}

/// A signal stops it where it can go on; the disk itself leads to its journal.
#[test]
fn a_signal_stops_it_at_a_safe_point() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = Disk::new(Format::Ext4, 34, 256, &[]);
    let mut child = begun(&disk, 2_048);
    while !said(&disk.go("status")).contains("copying") {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it was seen to copy");
    }
    run(Command::new("kill").args(["-INT", &child.id().to_string()]));
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    let words = said(&output);
    assert!(words.contains(&format!("plumb fix resume {}", disk.journal().display())), "{words}");
    assert_eq!(found_at(&disk, 34), "", "nothing can be mounted meanwhile");
    let resumed = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "resume"])
        .arg(disk.device.path())
        .output()
        .expect("plumb runs");
    assert_done(&resumed);
    disk.assert_right(2_048);
    let again = disk.go("resume");
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
}

#[test]
fn what_cannot_be_moved_is_refused() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = Disk::new(Format::Ext4, 34, 24, &[]);
    let refused = |disk: &Disk, args: &[&str], code: i32, why: &str| {
        let done = disk.moved(args);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}", said(&done));
        assert!(said(&done).contains(why), "{args:?}: {}", said(&done));
    };
    let mounted = disk.mount();
    refused(&disk, &["--to", "2048s"], 5, "is mounted at");
    drop(mounted);
    refused(&disk, &["--to", "2048"], 2, "without a unit");
    refused(&disk, &[], 2, "--to");
    refused(&disk, &["--to", "34s"], 5, "begins there already");
    refused(&disk, &["--to", "30000s"], 5, "partition 2 begins at");
    refused(&disk, &["--to", "1s"], 5, "expected it within");
    let elsewhere = |journal: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        let name = disk.name();
        command.args(["fix", "move"]).arg(disk.node(1)).args(["--to", "2048s", "--yes", &name]);
        let done = command.args(["--journal", journal]).args(args).output().expect("plumb runs");
        assert_eq!(done.status.code(), Some(5), "{journal}: {}", said(&done));
        said(&done)
    };
    assert!(
        elsewhere(disk.journal().to_str().expect("text"), &[]).contains("one broken disk would take both")
    );
    assert!(elsewhere("/dev/shm/plumb-journal", &["--journal-same-disk"]).contains("no place for a journal"));
    fs::write(disk.journal(), "mine").expect("room");
    refused(&disk, &["--to", "2048s"], 5, "a file of that name");
    assert_eq!(fs::read(disk.journal()).expect("it"), b"mine");
    // O_EXCL: alone.
    let held = fs::File::options().read(true).custom_flags(0o200).open(disk.node(1)).expect("nobody has it");
    fs::remove_file(disk.journal()).expect("it");
    refused(&disk, &["--to", "2048s"], 5, "in use");
    drop(held);
    let done = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "move"])
        .arg(disk.device.path())
        .args(["--to", "2048s"])
        .output()
        .expect("plumb runs");
    assert_eq!(done.status.code(), Some(5), "{}", said(&done));
    disk.assert_right(34);
    assert!(!disk.journal().exists());
}

/// A neighbour that is mounted does not hinder it, and sees nothing of it.
#[test]
fn a_neighbour_may_be_in_use() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = Disk::new(Format::Ext4, 34, 24, &[]);
    run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(disk.node(2)));
    let at = disk.dir.path().join("neighbour");
    fs::create_dir(&at).expect("room");
    let mounted = Mounted::mount(&disk.node(2), &at);
    fs::write(at.join("file"), noise(100_000, 3)).expect("room");
    assert_done(&disk.moved(&["--aligned"]));
    assert!(fs::read(at.join("file")).expect("the file") == noise(100_000, 3));
    drop(mounted);
    run(Command::new("e2fsck").args(["-f", "-n"]).arg(disk.node(2)));
    fs::write(disk.node(2), noise(2 * MIB as usize, 7)).expect("room");
    disk.assert_right(2_048);
}

/// What a plan asks for is done: a move, and a hint to the file system; what is done is checked.
#[test]
fn a_plan_is_carried_out() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"), Tool("dumpe2fs"));
    let disk = Disk::new(Format::Ext4, 34, 24, &[]);
    let (device, node) = (disk.device.path().display().to_string(), disk.node(1).display().to_string());
    let file = disk.dir.path().join("plan.json");
    let planned = |args: &[&str]| {
        let plan = Command::new(env!("CARGO_BIN_EXE_plumb")).arg("plan").args(args).arg("--json").output();
        fs::write(&file, plan.expect("plumb runs").stdout).expect("room");
    };
    let fix = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", "plan"])
            .arg(&file)
            .arg("--journal")
            .arg(disk.journal())
            .arg("--journal-same-disk");
        command.args(args).output().expect("plumb runs")
    };
    planned(&["partition", &device, "--current", "34s", "--size", "24m", "--grid", "64k"]);
    let shown = fix(&[]);
    assert_done(&shown);
    assert!(said(&shown).contains("nothing was written"), "{}", said(&shown));
    assert_eq!(disk.start(), Some(34));
    let other = fix(&["--yes", "sda1"]);
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    let done = fix(&["--yes", &disk.name()]);
    assert!(said(&done).contains("moved and verified"), "{}", said(&done));
    disk.assert_right(128);
    planned(&["filesystem", &node, "--type", "ext4", "--chunk", "64k", "--members", "3", "--block", "1k"]);
    let shown = fix(&[]);
    assert!(said(&shown).contains("tune2fs -E stride=64,stripe_width=192"), "{}", said(&shown));
    fix(&["--yes", &disk.name()]);
    let told = run(Command::new("dumpe2fs").arg("-h").arg(disk.node(1)));
    let says = |name: &str| told.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(says("RAID stride").ends_with(" 64"), "{told}");
    assert!(says("RAID stripe width").ends_with(" 192"), "{told}");
}
