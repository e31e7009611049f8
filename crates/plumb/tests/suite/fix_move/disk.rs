//! A disk with a partition that is moved, its content, and the check of all of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use flate2::Crc;
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::rng::noise;
use plumb_testkit::tempdir::TempDir;
use plumb_testkit::wait;
use plumb_testkit::wait::RunLimited;

pub const MIB: u64 = 1 << 20;
/// The space of a GPT in front.
const FIRST_USABLE: u64 = 34;

/// A disk with a partition, a neighbour behind it, and files on the partition.
pub struct MoveDisk {
    pub device: LoopDevice,
    pub dir: TempDir,
    pub format: DiskFormat,
    len_mib: u64,
    files: BTreeMap<String, Vec<u8>>,
    /// If only moves change the disk.
    kept: Option<KeptContent>,
}

/// All that is on a partition and around it.
struct KeptContent {
    /// Sums of the partition, a MiB each.
    sums: Vec<u32>,
    /// First bytes of the ranges in front of both its places and behind them, with their content: some of it shares
    /// blocks with the partition's ends.
    around: Vec<(u64, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFormat {
    Ext4,
    Xfs,
    Ntfs,
}

impl DiskFormat {
    fn make(self, node: &Path) {
        let mut command = match self {
            DiskFormat::Ext4 => Command::new("mkfs.ext4"),
            DiskFormat::Xfs => Command::new("mkfs.xfs"),
            DiskFormat::Ntfs => Command::new("mkfs.ntfs"),
        };
        match self {
            // Data in free space stay there.
            DiskFormat::Ext4 => command.args(["-q", "-F", "-E", "nodiscard"]),
            DiskFormat::Xfs => command.args(["-q", "-f", "-K"]),
            DiskFormat::Ntfs => command.args(["-q", "-f", "-F"]),
        };
        run(command.arg(node));
    }

    /// The format's own check, which has to find nothing.
    fn check(self, node: &Path) {
        let mut command = match self {
            DiskFormat::Ext4 => Command::new("e2fsck"),
            DiskFormat::Xfs => Command::new("xfs_repair"),
            DiskFormat::Ntfs => Command::new("ntfsfix"),
        };
        match self {
            DiskFormat::Ext4 => command.args(["-f", "-n"]),
            DiskFormat::Xfs | DiskFormat::Ntfs => command.arg("-n"),
        };
        run(command.arg(node));
    }

    /// Options of a mount that writes nothing.
    fn read_only(self) -> &'static str {
        match self {
            // It would rewrite the free part of its log.
            DiskFormat::Xfs => "ro,norecovery",
            DiskFormat::Ext4 | DiskFormat::Ntfs => "ro",
        }
    }
}

impl MoveDisk {
    /// A partition of this number of MiB from a sector on, and another one of noise behind the room for its move.
    pub fn new(format: DiskFormat, start: u64, mib: u64, options: &[&str]) -> MoveDisk {
        let mut disk = MoveDisk::labelled(format, start, mib, options);
        disk.format.make(&disk.node(1));
        disk.fill();
        disk
    }

    /// For moves between two places, starting at the first: the same with noise in free space and around it as well,
    /// more files, and every byte recorded.
    pub fn full(
        format: DiskFormat,
        places: [u64; 2],
        mib: u64,
        files: &[(u64, usize)],
    ) -> MoveDisk {
        let start = places[0];
        let mut disk = MoveDisk::labelled(format, start, mib, &[]);
        disk.cover_with_noise(start);
        let front = FIRST_USABLE * 512..start.min(places[1]) * 512;
        let behind = start.max(places[1]) * 512 + mib * MIB;
        let around = [front, behind..behind + MIB].map(|range| {
            let bytes = noise((range.end - range.start) as usize, range.end);
            disk.image_file()
                .write_all_at(&bytes, range.start)
                .expect("room");
            (range.start, bytes)
        });
        disk.format.make(&disk.node(1));
        disk.fill();
        disk.fill_with(files);
        disk.kept = Some(KeptContent {
            sums: disk.sums_at(start),
            around: around.into(),
        });
        disk
    }

    fn labelled(format: DiskFormat, start: u64, mib: u64, options: &[&str]) -> MoveDisk {
        let dir = plumb_testkit::root_dir("fix-move");
        let image = dir.path().join("disk.img");
        let len = mib * MIB / 512;
        let neighbour = start + len + 4 * MIB / 512 + 1;
        let size = (neighbour + 8 * MIB / 512) * 512;
        fs::File::create(&image)
            .and_then(|file| file.set_len(size))
            .expect("room");
        let one = format!("-n1:{start}:{}", start + len - 1);
        let two = format!("-n2:{neighbour}:{}", neighbour + 2 * MIB / 512);
        run(Command::new("sgdisk")
            .args(["-a1", &one, &two, "-c1:data"])
            .arg(&image));
        let device = LoopDevice::attach(&image, options);
        assert_eq!(device.add_partitions(), 2);
        let disk = MoveDisk {
            device,
            dir,
            format,
            len_mib: mib,
            files: BTreeMap::new(),
            kept: None,
        };
        fs::write(disk.node(2), noise(2 * MIB as usize, 7)).expect("room");
        disk
    }

    /// No two sectors are alike: a misplaced one shows, even in free space.
    fn cover_with_noise(&self, start: u64) {
        let image = self.image_file();
        let mut piece = noise(MIB as usize, 11);
        for number in 0..self.len_mib {
            for (sector, bytes) in (number * MIB / 512..).zip(piece.chunks_mut(512)) {
                bytes[..8].copy_from_slice(&sector.to_le_bytes());
            }
            image
                .write_all_at(&piece, start * 512 + number * MIB)
                .expect("room");
        }
    }

    fn sums_at(&self, start: u64) -> Vec<u32> {
        let image = self.image_file();
        let mut piece = vec![0; MIB as usize];
        let sum = |number| {
            image
                .read_exact_at(&mut piece, start * 512 + number * MIB)
                .expect("the partition");
            if self.format == DiskFormat::Ntfs {
                // Boot sector and its copy contain the start of the partition.
                let ends = [(0, 0), (self.len_mib - 1, MIB as usize - 512)];
                for (_, sector) in ends.into_iter().filter(|(of, _)| *of == number) {
                    piece[sector + 28..sector + 32].fill(0);
                }
            }
            let mut crc = Crc::new();
            crc.update(&piece);
            crc.sum()
        };
        (0..self.len_mib).map(sum).collect()
    }

    fn fill(&mut self) {
        match self.format {
            DiskFormat::Ntfs => self.fill_with(&[(0, 3 * MIB as usize), (1, 100_001), (2, 1)]),
            _ => self.fill_with(&[(0, 9 * MIB as usize), (1, 100_001), (2, 1), (3, 4096)]),
        }
    }

    /// Files of this number of bytes, each with a separate number.
    fn fill_with(&mut self, files: &[(u64, usize)]) {
        let mounted = (self.format != DiskFormat::Ntfs).then(|| self.mount());
        for (number, len) in files {
            let (name, bytes) = (format!("file{number}"), noise(*len, number + 1));
            if mounted.is_some() {
                fs::write(self.mount_point().join(&name), &bytes).expect("room");
            } else {
                let from = self.dir.path().join(&name);
                fs::write(&from, &bytes).expect("room");
                run(Command::new("ntfscp")
                    .arg("-q")
                    .arg(self.node(1))
                    .arg(&from)
                    .arg(&name));
                fs::remove_file(&from).expect("the file");
            }
            self.files.insert(name, bytes);
        }
    }

    pub fn image(&self) -> PathBuf {
        self.dir.path().join("disk.img")
    }

    fn image_file(&self) -> fs::File {
        fs::File::options()
            .read(true)
            .write(true)
            .open(self.image())
            .expect("the image")
    }

    pub fn node(&self, number: u32) -> PathBuf {
        PathBuf::from(format!("{}p{number}", self.device.path().display()))
    }

    /// The directory that [`MoveDisk::mount`] mounts the first partition on.
    pub fn mount_point(&self) -> PathBuf {
        let at = self.dir.path().join("at");
        fs::create_dir_all(&at).expect("room");
        at
    }

    pub fn mount(&self) -> Mounted {
        Mounted::mount(&self.node(1), &self.mount_point())
    }

    pub fn journal(&self) -> PathBuf {
        self.dir.path().join("journal")
    }

    pub fn start(&self) -> Option<u64> {
        let name = self.device.name();
        let path = format!("/sys/class/block/{name}/{name}p1/start");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", "move"])
            .arg(self.node(1))
            .arg("--journal")
            .arg(self.journal());
        // The loop device and the journal are on one disk of the machine.
        command.arg("--journal-same-disk").args(args);
        command
    }

    pub fn name(&self) -> String {
        format!("{}p1", self.device.name())
    }

    pub fn moved(&self, args: &[&str]) -> Output {
        self.command(args)
            .args(["--yes", &self.name()])
            .limited_output()
    }

    pub fn go(&self, what: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", what])
            .arg(self.journal())
            .limited_output()
    }

    /// Starts a move, and waits until the partition is taken away: from then on it may write.
    pub fn begun(&self, to: u64) -> Child {
        let mut command = self.command(&["--to", &format!("{to}s"), "--yes", &self.name()]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("plumb starts");
        let node = self.node(1);
        let what = format!("{} is taken away", node.display());
        wait::until_while_runs(&what, wait::PATIENCE, &mut child, || !node.exists());
        child
    }

    /// Writes since it was attached, in sectors.
    pub fn sectors_written(&self) -> u64 {
        let told = fs::read_to_string(format!("/sys/class/block/{}/stat", self.device.name()));
        let fields = told.expect("statistics");
        fields
            .split_whitespace()
            .nth(6)
            .and_then(|field| field.parse().ok())
            .expect("sectors written")
    }

    /// The whole of it is right: at that start, by its own tools, file by file, and the neighbour as well.
    pub fn assert_right(&self, start: u64) {
        assert_eq!(self.start(), Some(start));
        self.assert_bytes_right(start);
        self.format.check(&self.node(1));
        self.assert_files_right();
        let neighbour = fs::read(self.node(2)).expect("the neighbour");
        assert!(
            neighbour[..2 * MIB as usize] == noise(2 * MIB as usize, 7),
            "the neighbour"
        );
        let verified = run(Command::new("sgdisk").arg("-v").arg(self.device.path()));
        crate::common::assert_sgdisk_agrees(&verified);
    }

    fn assert_bytes_right(&self, start: u64) {
        let Some(KeptContent { sums, around }) = &self.kept else {
            return;
        };
        let found = self.sums_at(start);
        let wrong: Vec<usize> = (0..sums.len())
            .filter(|at| found[*at] != sums[*at])
            .collect();
        assert!(
            wrong.is_empty(),
            "{:?}: these MiB are not what they were: {wrong:?}",
            self.format
        );
        for (at, bytes) in around {
            let mut found = vec![0; bytes.len()];
            self.image_file()
                .read_exact_at(&mut found, *at)
                .expect("the image");
            assert!(
                found == *bytes,
                "{:?}: what is around it, from byte {at} on",
                self.format
            );
        }
    }

    fn assert_files_right(&self) {
        if self.format == DiskFormat::Ntfs {
            for (name, bytes) in &self.files {
                let read = Command::new("ntfscat")
                    .arg("-q")
                    .arg(self.node(1))
                    .arg(name)
                    .output();
                assert!(read.expect("ntfscat runs").stdout == *bytes, "{name}");
            }
            return;
        }
        let options = if self.kept.is_some() {
            self.format.read_only()
        } else {
            "defaults"
        };
        let mounted = Mounted::mount_with(options, &self.node(1), &self.mount_point());
        for (name, bytes) in &self.files {
            assert!(
                fs::read(self.mount_point().join(name)).expect("a file") == *bytes,
                "{name}"
            );
        }
        drop(mounted);
    }

    pub fn info(&self) -> String {
        let info = run(Command::new("sgdisk").arg("-i1").arg(self.device.path()));
        let kept = |line: &&str| line.contains("GUID") || line.contains("name");
        info.lines().filter(kept).collect::<Vec<_>>().join("\n")
    }
}

pub fn output_text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[track_caller]
pub fn assert_done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", output_text(output));
}
