//! A disk with partitions whose data are moved, and the program's commands on them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::rng::noise;
use plumb_testkit::tempdir::TempDir;
use plumb_testkit::wait;
use plumb_testkit::wait::RunLimited;

const SECTOR: u64 = 512;

/// A loop device of 512 on 4,096 bytes, with the journal beside its file.
pub struct PreflightDisk {
    pub device: LoopDevice,
    dir: TempDir,
}

impl PreflightDisk {
    /// Partitions of a GPT, by their first and last sectors.
    pub fn gpt(parts: &[(u64, u64)]) -> PreflightDisk {
        let last = parts
            .iter()
            .map(|(_, last)| *last)
            .max()
            .expect("a partition");
        let dir = PreflightDisk::image((last + 16_384) * SECTOR);
        let mut sgdisk = Command::new("sgdisk");
        sgdisk.arg("-a1");
        for (at, (first, last)) in parts.iter().enumerate() {
            sgdisk.arg(format!("-n{}:{first}:{last}", at + 1));
        }
        run(sgdisk.arg(dir.path().join("disk.img")));
        PreflightDisk::attached(dir)
    }

    /// The result of a script of sfdisk, on this number of sectors.
    pub fn sfdisk(sectors: u64, script: &str) -> PreflightDisk {
        let dir = PreflightDisk::image(sectors * SECTOR);
        let mut command = Command::new("sfdisk");
        command
            .args(["--quiet", "--no-reread", "--no-tell-kernel"])
            .arg(dir.path().join("disk.img"));
        let mut child = command
            .stdin(Stdio::piped())
            .spawn()
            .expect("sfdisk starts");
        child
            .stdin
            .take()
            .expect("its input")
            .write_all(script.as_bytes())
            .expect("it reads");
        assert!(
            wait::exit("sfdisk", wait::PATIENCE, &mut child).success(),
            "{script}"
        );
        PreflightDisk::attached(dir)
    }

    fn image(bytes: u64) -> TempDir {
        let dir = plumb_testkit::root_dir("fix");
        let image = fs::File::create(dir.path().join("disk.img"));
        image.and_then(|image| image.set_len(bytes)).expect("room");
        dir
    }

    fn attached(dir: TempDir) -> PreflightDisk {
        let device = LoopDevice::attach(&dir.path().join("disk.img"), &["--direct-io=on"]);
        assert!(device.add_partitions() > 0);
        PreflightDisk { device, dir }
    }

    /// A directory for the files of the test.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A directory to mount on.
    pub fn at(&self) -> PathBuf {
        let at = self.dir.path().join("at");
        fs::create_dir_all(&at).expect("room");
        at
    }

    pub fn image_file(&self) -> fs::File {
        let path = self.dir.path().join("disk.img");
        fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .expect("the image")
    }

    pub fn journal(&self) -> PathBuf {
        self.dir.path().join("journal")
    }

    pub fn name(&self, number: u32) -> String {
        format!("{}p{number}", self.device.name())
    }

    pub fn node(&self, number: u32) -> PathBuf {
        Path::new("/dev").join(self.name(number))
    }

    /// First sector, as the kernel has it.
    pub fn start(&self, number: u32) -> Option<u64> {
        let path = format!("/sys/class/block/{}/start", self.name(number));
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    pub fn bytes_of(&self, number: u32) -> Vec<u8> {
        fs::read(self.node(number)).expect("the partition")
    }

    /// Fills a partition with noise, which it returns.
    pub fn fill(&self, number: u32) -> Vec<u8> {
        let path = format!("/sys/class/block/{}/size", self.name(number));
        let sectors: u64 = fs::read_to_string(path)
            .expect("a size")
            .trim()
            .parse()
            .expect("a number");
        let data = noise((sectors * SECTOR) as usize, u64::from(number) + 100);
        let file = fs::File::options()
            .write(true)
            .open(self.node(number))
            .expect("the node");
        file.write_all_at(&data, 0)
            .and_then(|()| file.sync_all())
            .expect("room");
        data
    }

    /// `plumb fix move` of a partition, with the journal beside the image: all is on one disk of the machine.
    pub fn command(&self, number: u32, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", "move"])
            .arg(self.node(number))
            .arg("--journal")
            .arg(self.journal());
        command.arg("--journal-same-disk").args(args);
        command
    }

    pub fn fix_move(&self, number: u32, args: &[&str]) -> Output {
        self.command(number, args).limited_output()
    }

    /// Starts a move, and waits until the partition is taken away: from then on it may write.
    pub fn begun(&self, number: u32, to: u64) -> Child {
        self.begun_with(number, to, &[])
    }

    fn begun_with(&self, number: u32, to: u64, args: &[&str]) -> Child {
        let (to, name) = (format!("{to}s"), self.name(number));
        let mut command = self.command(number, &["--to", &to, "--yes", &name]);
        let mut child = command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("plumb starts");
        let node = self.node(number);
        let mut has_ended = false;
        let what = format!("{} is taken away", node.display());
        wait::until(&what, wait::PATIENCE, || {
            has_ended = child.try_wait().expect("a child").is_some();
            has_ended || !node.exists()
        });
        if has_ended && node.exists() {
            let output = wait::output("plumb fix move", wait::PATIENCE, child);
            panic!("it ended before it was seen: {}", output_text(&output));
        }
        child
    }

    /// A move that was begun, and stopped while data are copied. One that was too fast is taken back and tried again.
    pub fn stopped(&self, number: u32, to: u64) -> Output {
        self.stopped_with(number, to, &[])
    }

    /// The same of a move with more arguments.
    pub fn stopped_with(&self, number: u32, to: u64, args: &[&str]) -> Output {
        let from = self.start(number).expect("a partition");
        for _ in 0..8 {
            let mut child = self.begun_with(number, to, args);
            wait::until("the move copies data", wait::PATIENCE, || {
                let has_ended = child.try_wait().expect("a child").is_some();
                let is_copying = !has_ended && output_text(&self.go("status")).contains("copying");
                if is_copying {
                    run(Command::new("kill").args(["-INT", &child.id().to_string()]));
                }
                has_ended || is_copying
            });
            let output = wait::output("plumb fix move", wait::PATIENCE, child);
            if output.status.code() == Some(6) {
                return output;
            }
            assert_done(&output);
            assert_done(&self.fix_move(
                number,
                &["--to", &format!("{from}s"), "--yes", &self.name(number)],
            ));
        }
        panic!("every move ended before it was seen to copy");
    }

    /// `resume`, `rollback` or `status` of the journal.
    pub fn go(&self, what: &str) -> Output {
        fix(what, &self.journal())
    }
}

/// Stops a move at the next safe point, which must come before its end.
#[track_caller]
pub fn stop(child: Child) -> Output {
    run(Command::new("kill").args(["-INT", &child.id().to_string()]));
    let output = wait::output("a move that was told to stop", wait::PATIENCE, child);
    assert_eq!(output.status.code(), Some(6), "{}", output_text(&output));
    output
}

/// All of a disk, below the kernel's view of it.
pub fn disk_bytes(disk: &PreflightDisk) -> Vec<u8> {
    let image = disk.image_file();
    let mut bytes = vec![0; image.metadata().expect("the image").len() as usize];
    image.read_exact_at(&mut bytes, 0).expect("the image");
    bytes
}

/// `plumb fix WHAT ON`, where a mark on the disk leads to the journal: the caller has seen the places, and names the disk.
pub fn fix_marked(what: &str, on: &Path, disk: &PreflightDisk) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", what])
        .arg(on)
        .args(["--yes", &disk.device.name()])
        .limited_output()
}

/// `plumb fix WHAT ON`.
pub fn fix(what: &str, on: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", what])
        .arg(on)
        .limited_output()
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

/// That it ended so, and said all of this.
#[track_caller]
pub fn assert_refused(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{}", output_text(output));
    for word in words {
        assert!(
            output_text(output).contains(word),
            "no `{word}` in: {}",
            output_text(output)
        );
    }
}
