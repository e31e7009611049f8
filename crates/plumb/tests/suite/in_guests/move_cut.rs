//! A virtual machine is killed while `plumb fix move` runs in it, and its disks lose unflushed writes: QEMU logs every
//! write and flush of both, the moved one and the one with the journal. From the logs the test makes several possible
//! results of a power cut at that moment, torn blocks included; each time it resumes the move or rolls it back, and
//! compares every byte.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use plumb_testkit::log_writes::{Survived, Tear, WriteLog};
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::tempdir::TempDir;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{Rng, require};

use super::driven::{Boot, Guest, LoggedDisk, PATIENCE};

const MIB: u64 = 1 << 20;
const SECTOR: u64 = 512;
const DISK_BYTES: u64 = 64 * MIB;
const JOURNAL_DISK_BYTES: u64 = 32 * MIB;
const LEN: u64 = 40 * MIB;
const NEIGHBOUR: u64 = 48 * MIB;
const NEIGHBOUR_LEN: u64 = MIB;
/// The unit that a power cut destroys at once, for any statement of the disk: a move assumes no less.
const PHYSICAL_BLOCK: u64 = 4_096;
/// The space of a GPT at either end.
const LABEL: u64 = 34 * SECTOR;

/// A disk whose partition is a file system with files, from one MiB to another.
struct CutDisk {
    dir: TempDir,
    from: u64,
    to: u64,
}

impl CutDisk {
    fn new(from: u64, to: u64) -> CutDisk {
        let before = CutDisk {
            dir: plumb_testkit::temp_dir("move-cut"),
            from,
            to,
        };
        let files = before.dir.path().join("files");
        fs::create_dir(&files).expect("room");
        let mut rng = Rng::new(from);
        for (at, len) in [20 * MIB, 5 * MIB, 4_097, 1].into_iter().enumerate() {
            let noise: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            fs::write(files.join(format!("file{at}")), noise).expect("room");
        }
        let (partition, disk, journal) = (
            before.file("partition"),
            before.file("disk"),
            before.file("journal"),
        );
        for (path, len) in [
            (&partition, LEN),
            (&disk, DISK_BYTES),
            (&journal, JOURNAL_DISK_BYTES),
        ] {
            File::create(path)
                .and_then(|file| file.set_len(len))
                .expect("room");
        }
        run(Command::new("mkfs.ext4")
            .args(["-q", "-F", "-d"])
            .arg(&files)
            .arg(&partition));
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&journal));
        let sectors =
            |start: u64, len: u64| format!("{}:{}", start / SECTOR, (start + len) / SECTOR - 1);
        let one = format!("-n1:{}", sectors(from, LEN));
        let two = format!("-n2:{}", sectors(NEIGHBOUR, NEIGHBOUR_LEN));
        run(Command::new("sgdisk").args(["-a1", &one, &two]).arg(&disk));
        let image = File::options().write(true).open(&disk).expect("the disk");
        image
            .write_all_at(&fs::read(&partition).expect("it"), from)
            .expect("room");
        let noise: Vec<u8> = (0..NEIGHBOUR_LEN).map(|_| rng.next_u64() as u8).collect();
        image.write_all_at(&noise, NEIGHBOUR).expect("room");
        before
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn copy(&self, name: &str, to: &Path) {
        run(Command::new("cp")
            .arg("--sparse=always")
            .arg(self.file(name))
            .arg(to));
    }
}

/// The moment of the kill: after a number of bytes written to the disk, and a number of further writes.
#[derive(Debug, Clone, Copy)]
struct When {
    bytes: u64,
    writes: u64,
}

impl When {
    /// Two in four in the data, one while label and signatures come back, one while they are hidden.
    fn draw(number: u64, rng: &mut Rng) -> When {
        match number % 4 {
            1 => When {
                bytes: LEN,
                writes: 1 + rng.below(20),
            },
            3 => When {
                bytes: 0,
                writes: 1 + rng.below(12),
            },
            _ => When {
                bytes: rng.below(LEN),
                writes: 1,
            },
        }
    }

    fn has_come(self, log: &WriteLog) -> bool {
        let mut bytes = 0;
        let writes = log.entries().iter().filter(|entry| entry.len_bytes > 0);
        let behind = writes.filter(|entry| {
            bytes += entry.len_bytes;
            bytes > self.bytes
        });
        behind.count() as u64 >= self.writes
    }
}

/// Both disks as QEMU had them, with their logs.
struct Killed {
    data: WriteLog,
    journal: WriteLog,
    is_over: bool,
}

/// Boots a guest, has it move, and kills it.
fn kill(boot: &Boot, before: &CutDisk, when: When, is_direct: bool) -> Killed {
    let room = plumb_testkit::temp_dir("move-cut");
    let disk = |name: &str, size| {
        let mut disk = LoggedDisk::new(room.path().join(name), size);
        before.copy(name, &disk.image());
        disk.is_direct = is_direct;
        disk
    };
    let (data, journal) = (
        disk("disk", DISK_BYTES),
        disk("journal", JOURNAL_DISK_BYTES),
    );
    let mut guest: Guest = boot.start(&[&data, &journal]);
    guest.begin(&format!("cut {}", before.to / SECTOR));
    guest.until("begun");
    let (mut log, began, mut is_over) = (None, Instant::now(), false);
    while !log.as_ref().is_some_and(|log| when.has_come(log)) && !is_over {
        is_over = guest.has_said("ready");
        assert!(began.elapsed() < PATIENCE, "{}", guest.printed());
        std::thread::sleep(Duration::from_micros(200));
        match &mut log {
            Some(log) => log.read_on().expect("the log"),
            // It has no head before the first write.
            None => log = data.log().ok(),
        }
    }
    guest.kill();
    let of = |disk: &LoggedDisk| disk.log().expect("a log");
    Killed {
        data: of(&data),
        journal: of(&journal),
        is_over,
    }
}

/// A possible result of a power cut on both disks, and its outcome.
struct Left<'a> {
    before: &'a CutDisk,
    // Taken down in this order.
    mounted: Mounted,
    device: LoopDevice,
    _journal_device: LoopDevice,
    dir: TempDir,
}

impl<'a> Left<'a> {
    fn new(before: &'a CutDisk, killed: &Killed, rng: &mut Rng) -> (Left<'a>, [Survived; 2]) {
        let dir = plumb_testkit::temp_dir("move-cut");
        let mut image = |name: &str, log: &WriteLog, tear: Tear| {
            let path = dir.path().join(name);
            before.copy(name, &path);
            let file = File::options()
                .read(true)
                .write(true)
                .open(&path)
                .expect("the copy");
            log.cut(log.entries().len(), tear, rng, &file)
                .expect("room")
        };
        let data = image("disk", &killed.data, Tear::Blocks(PHYSICAL_BLOCK));
        // Parts of a file system without a copy may not become garbage: our journal could not repair that.
        let journal = image("journal", &killed.journal, Tear::Sectors);
        let device = LoopDevice::attach(&dir.path().join("disk"), &["--direct-io=on"]);
        let at = dir.path().join("at");
        fs::create_dir(&at).expect("room");
        let journal_device = LoopDevice::attach(&dir.path().join("journal"), &[]);
        let mounted = Mounted::mount(journal_device.path(), &at);
        (
            Left {
                before,
                mounted,
                device,
                _journal_device: journal_device,
                dir,
            },
            [data, journal],
        )
    }

    fn fix(&self, what: &str) -> Output {
        let mut command = crate::common::command();
        command
            .args(["fix", what])
            .arg(self.dir.path().join("at/journal"));
        if what != "status" {
            command.arg("--disk").arg(self.device.path());
            // Directories for temporary files let others write: the caller vouches for the journal.
            command.arg("--yes").arg(self.device.name());
        }
        command.limited_output()
    }

    /// Resumes or rolls back, and returns the result and the right place of the partition.
    fn go(&self, what: &str) -> (&'static str, u64) {
        if !self.dir.path().join("at/journal").exists() {
            return ("no journal", self.start());
        }
        let said = output_text(&self.fix("status"));
        if ["never begun", "no good record"]
            .iter()
            .any(|words| said.contains(words))
        {
            return ("not begun", self.before.from);
        }
        let (what, is_complete) = match said.contains("the move is complete") {
            true => ("resume", true),
            false => (what, false),
        };
        // Once the last signature has begun to come back it does not go back any more.
        let what = if said.contains("fix rollback") {
            what
        } else {
            "resume"
        };
        let gone = self.fix(what);
        assert_eq!(
            gone.status.code(),
            Some(0),
            "{what}: {said}\n{}",
            self::output_text(&gone)
        );
        match what {
            _ if is_complete => ("complete", self.before.to),
            "resume" => ("resumed", self.before.to),
            _ => ("rolled back", self.before.from),
        }
    }

    /// First byte of partition 1 by its label.
    fn start(&self) -> u64 {
        let info = run(Command::new("sgdisk").arg("-i1").arg(self.device.path()));
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("First sector: "))
            .expect("a partition");
        line.split(' ')
            .next()
            .expect("a number")
            .parse::<u64>()
            .expect("a number")
            * SECTOR
    }

    /// Every byte of the partition, its neighbour and the label.
    fn assert_right(self, at: u64, why: &str) {
        let Left {
            before,
            dir,
            device,
            mounted,
            _journal_device,
        } = self;
        let verified = run(Command::new("sgdisk").arg("-v").arg(device.path()));
        crate::common::assert_sgdisk_agrees(&format!("{why}: {verified}"));
        let other = before.from + before.to - at;
        let found = Command::new("blkid")
            .args(["-p", "-O", &other.to_string()])
            .arg(device.path())
            .output();
        let found = String::from_utf8_lossy(&found.expect("blkid runs").stdout).into_owned();
        assert_eq!(found, "", "{why}: nothing is left at the other place");
        drop((mounted, device));
        let (is, was) = (
            fs::read(dir.path().join("disk")).expect("it"),
            fs::read(before.file("disk")).expect("it"),
        );
        let same = |start: u64, len: u64, old: u64| {
            is[start as usize..(start + len) as usize] == was[old as usize..(old + len) as usize]
        };
        assert!(same(at, LEN, before.from), "{why}: the partition's bytes");
        assert!(
            same(NEIGHBOUR, DISK_BYTES - LABEL - NEIGHBOUR, NEIGHBOUR),
            "{why}: its neighbour's"
        );
        if at == before.from {
            let end = DISK_BYTES - LABEL;
            assert!(
                same(0, LABEL, 0) && same(end, LABEL, end),
                "{why}: the label"
            );
        }
    }
}

fn output_text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Kills a number of machines, and makes of each a number of pairs of disks.
fn survives(kills: u64, draws: u64, seed: u64) {
    let boot = Boot::new();
    let befores = [
        CutDisk::new(2 * MIB, 4 * MIB),
        CutDisk::new(4 * MIB, 2 * MIB),
    ];
    let mut rng = Rng::announced("power cuts", seed);
    let (mut killed_under_way, mut lost, mut states) = (0, 0, 0);
    for number in 0..2 * kills {
        if killed_under_way == kills {
            break;
        }
        // Right and left, past the page cache and through it, in every pairing.
        let before = &befores[(number % 2) as usize];
        let when = When::draw(number / 2 + number % 2, &mut rng);
        let killed = kill(&boot, before, when, number / 2 % 2 == 0);
        killed_under_way += u64::from(!killed.is_over);
        for draw in 0..draws {
            let (left, survived) = Left::new(before, &killed, &mut rng);
            let (what, at) = left.go(if draw % 2 == 0 { "resume" } else { "rollback" });
            let why = format!("{number}.{draw}, {when:?}: {survived:?}: {what}");
            println!("{why}");
            lost += survived
                .iter()
                .map(|disk| disk.lost + disk.torn)
                .sum::<usize>();
            states += 1;
            left.assert_right(at, &why);
        }
    }
    println!(
        "{killed_under_way} machines killed while they moved, {states} pairs of disks, {lost} writes lost or torn"
    );
    assert_eq!(
        killed_under_way, kills,
        "too few were killed while they moved"
    );
    assert!(lost > 0, "nothing was lost: that would have shown nothing");
}

/// Half a minute.
#[test]
fn a_killed_machine_loses_nothing() {
    require!(
        Qemu,
        Loop,
        Tool("apt-get"),
        Tool("sgdisk"),
        Tool("mkfs.ext4"),
        Tool("blkid")
    );
    survives(2, 6, 1);
}

/// `PLUMB_KILLS` of them, 50 when not given: about ten minutes.
#[test]
#[ignore = "long: make soak"]
fn many_killed_machines_lose_nothing() {
    require!(
        Qemu,
        Loop,
        Tool("apt-get"),
        Tool("sgdisk"),
        Tool("mkfs.ext4"),
        Tool("blkid")
    );
    let kills = std::env::var("PLUMB_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(50);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock");
    survives(kills, 8, now.as_secs());
}
