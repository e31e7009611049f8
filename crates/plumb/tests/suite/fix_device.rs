//! `plumb fix` on block devices: the kernel is updated, and devices in use are left alone.

use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::opener::Opener;
use plumb_testkit::require;
use plumb_testkit::tempdir::TempDir;
use plumb_testkit::wait::RunLimited;

use crate::common::{assert_sgdisk_agrees, recorded};

/// O_EXCL of Linux, on all processors.
const EXCLUSIVE: i32 = 0o200;

struct LabelledDisk {
    device: LoopDevice,
    dir: TempDir,
}

impl LabelledDisk {
    /// A disk of 64 MiB with partitions from these sectors on, to before the next.
    fn new(starts: &[u64], options: &[&str]) -> LabelledDisk {
        let dir = plumb_testkit::temp_dir("fix-device");
        let image = dir.path().join("disk.img");
        std::fs::File::create(&image)
            .and_then(|file| file.set_len(64 << 20))
            .expect("room");
        let mut sgdisk = Command::new("sgdisk");
        sgdisk.arg("-a1");
        for (at, start) in starts.iter().enumerate() {
            let last = starts.get(at + 1).map_or(131_038, |next| next - 1);
            sgdisk.arg(format!("-n{}:{start}:{last}", at + 1));
        }
        run(sgdisk.arg(&image));
        let device = LoopDevice::attach(&image, options);
        if !starts.is_empty() {
            assert_eq!(device.add_partitions(), starts.len());
        }
        LabelledDisk { device, dir }
    }

    fn node(&self, number: u32) -> PathBuf {
        PathBuf::from(format!("{}p{number}", self.device.path().display()))
    }

    fn saved(&self) -> PathBuf {
        self.dir.path().join("old.plumb-label")
    }

    /// A new file for each label that `undo` takes the place of.
    fn undone(&self) -> PathBuf {
        let path = (1..).map(|count| self.dir.path().join(format!("undone-{count}.plumb-label")));
        { path }.find(|path| !path.exists()).expect("a name")
    }

    /// First sector of a partition, as the kernel has it.
    fn start(&self, number: u32) -> Option<u64> {
        let name = self.device.name();
        let path = format!("/sys/class/block/{name}/{name}p{number}/start");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    fn fix(&self, what: &str, args: &[&str]) -> Output {
        self.fix_by(Command::new(env!("CARGO_BIN_EXE_plumb")), what, args)
    }

    /// By a program that does not see the processes of this one, as in a container: it does not see their open files.
    fn fix_unseeing(&self, what: &str, args: &[&str]) -> Output {
        let mut command = Command::new("unshare");
        command.args([
            "--pid",
            "--fork",
            "--mount-proc",
            env!("CARGO_BIN_EXE_plumb"),
        ]);
        self.fix_by(command, what, args)
    }

    fn fix_by(&self, mut command: Command, what: &str, args: &[&str]) -> Output {
        command.args(["fix", what]);
        match what {
            "undo" => command.arg(self.saved()).arg("--save").arg(self.undone()),
            _ => command
                .arg(self.device.path())
                .arg("--save")
                .arg(self.saved()),
        };
        command
            .args(args)
            .args(["--yes", &self.device.name()])
            .limited_output()
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.dir.path().join("disk.img")).expect("the image")
    }
}

/// The message about a process with the device open.
fn open_notice(opener: &Opener, node: &Path) -> String {
    let name = node.file_name().expect("a node").to_string_lossy();
    format!("{name} is open in {} ({})", opener.command(), opener.pid())
}

fn assert_done(output: &Output) {
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn assert_refused(output: &Output, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains(why), "{said}");
}

fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
}

#[test]
fn the_kernel_learns_of_a_relabelled_partition() {
    require!(Loop, Tool("sgdisk"));
    for options in [&["--sector-size", "512"][..], &[]] {
        let disk = LabelledDisk::new(&[34, 65_536], options);
        chown(disk.node(1), Some(12_345), None).expect("root");
        assert_done(&disk.fix("relabel", &["--number", "1"]));
        assert_eq!((disk.start(1), disk.start(2)), (Some(2_048), Some(65_536)));
        assert!(is_block_device(&disk.node(1)));
        let owner = std::fs::metadata(disk.node(1)).expect("the node").uid();
        assert_eq!(
            owner, 12_345,
            "a database opens its raw device as its own user"
        );
        run(Command::new("sfdisk")
            .arg("--verify")
            .arg(disk.device.path()));
        assert_done(&disk.fix("undo", &[]));
        assert_eq!(disk.start(1), Some(34));
    }
}

#[test]
fn a_disk_without_a_label_gets_one() {
    require!(Loop, Tool("sgdisk"));
    let disk = LabelledDisk::new(&[], &[]);
    run(Command::new("sgdisk").arg("-Z").arg(disk.device.path()));
    assert_done(&disk.fix("relabel", &[]));
    assert_eq!(disk.start(1), Some(2_048));
    assert!(is_block_device(&disk.node(1)));
    assert_done(&disk.fix("undo", &[]));
    assert_eq!(disk.start(1), None, "the kernel has forgotten it");
}

/// A label of 4 KiB blocks counts in them; the kernel counts in sectors of 512 bytes.
#[test]
fn blocks_of_4_kib() {
    require!(Loop, Tool("parted"));
    let dir = plumb_testkit::temp_dir("fix-4k");
    let image = dir.path().join("disk.img");
    std::fs::File::create(&image)
        .and_then(|file| file.set_len(64 << 20))
        .expect("room");
    let device = LoopDevice::attach(&image, &["--sector-size", "4096"]);
    let disk = LabelledDisk { device, dir };
    assert_done(&disk.fix("relabel", &[]));
    assert_eq!(disk.start(1), Some(2_048));
    let printed = run(Command::new("parted")
        .args(["-s", "-m"])
        .arg(disk.device.path())
        .args(["unit", "s", "print"]));
    assert!(printed.contains("\n1:256s:"), "{printed}");
}

#[test]
fn devices_in_use_are_refused() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = LabelledDisk::new(&[34, 65_536], &[]);
    let at = disk.dir.path().join("at");
    std::fs::create_dir(&at).expect("room");
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(2)));
    let mounted = Mounted::mount(&disk.node(2), &at);
    let words = format!("is mounted at {}", at.display());
    assert_refused(&disk.fix("relabel", &["--number", "1"]), &words);
    drop(mounted);
    assert_refused(&disk.fix("relabel", &["--number", "1"]), "holds ext4");
    run(Command::new("wipefs").args(["-q", "-a"]).arg(disk.node(2)));
    let held = std::fs::File::options()
        .read(true)
        .custom_flags(EXCLUSIVE)
        .open(disk.node(2));
    let held = held.expect("a partition that nobody has");
    assert_refused(&disk.fix("relabel", &["--number", "1"]), "in use");
    drop(held);
    assert_eq!(disk.start(1), Some(34));
    assert!(!disk.saved().exists());
    let partition = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "relabel"])
        .arg(disk.node(1))
        .output();
    assert_refused(&partition.expect("plumb runs"), "is a partition");
}

/// A disk grows while its partition is mounted: that is when the backup is stranded.
#[test]
fn a_stranded_backup_is_moved_under_a_mounted_partition() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = LabelledDisk::new(&[2_048], &[]);
    let at = disk.dir.path().join("at");
    std::fs::create_dir(&at).expect("room");
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let mounted = Mounted::mount(&disk.node(1), &at);
    std::fs::write(at.join("file"), "content").expect("room");
    let image = std::fs::File::options()
        .write(true)
        .open(disk.dir.path().join("disk.img"));
    image
        .and_then(|image| image.set_len(96 << 20))
        .expect("room");
    run(Command::new("losetup")
        .arg("--set-capacity")
        .arg(disk.device.path()));
    let grown = disk.bytes();
    assert_done(&disk.fix("backup-label", &[]));
    assert_eq!(disk.start(1), Some(2_048));
    assert_eq!(
        std::fs::read_to_string(at.join("file")).expect("the file"),
        "content"
    );
    // The way back leaves it where it is as well.
    let last = (64 << 20) - 512..64 << 20;
    assert_done(&disk.fix("undo", &[]));
    assert_eq!(
        disk.bytes()[last.clone()],
        grown[last],
        "the header is where it was"
    );
    let opener = Opener::start(disk.device.path());
    assert_refused(
        &disk.fix("undo", &[]),
        &open_notice(&opener, disk.device.path()),
    );
    drop(opener);
    std::fs::remove_file(disk.saved()).expect("it was saved");
    assert_done(&disk.fix("backup-label", &[]));
    drop(mounted);
    let verified = run(Command::new("sgdisk").arg("-v").arg(disk.device.path()));
    assert_sgdisk_agrees(&verified);
}

/// The kernel shows nothing of a program that has a raw device open, and O_EXCL does not see it.
#[test]
fn open_devices_are_refused() {
    require!(Loop, Tool("sgdisk"));
    let disk = LabelledDisk::new(&[34, 65_536], &[]);
    let nodes = [disk.node(1), disk.node(2), disk.device.path().to_owned()];
    let before = disk.bytes();
    for node in &nodes {
        let opener = Opener::start(node);
        assert_refused(
            &disk.fix("relabel", &["--number", "1"]),
            &open_notice(&opener, node),
        );
        assert!(
            disk.bytes() == before && !disk.saved().exists(),
            "{}",
            node.display()
        );
    }
    assert_done(&disk.fix("relabel", &["--number", "1"]));
    let after = disk.bytes();
    for node in &nodes {
        let opener = Opener::start(node);
        assert_refused(&disk.fix("undo", &[]), &open_notice(&opener, node));
        assert!(disk.bytes() == after, "{}", node.display());
    }
    assert_done(&disk.fix("undo", &[]));
    assert!(disk.bytes() == before);
}

/// The kernel does not forget a partition that is open.
#[test]
fn a_label_that_the_kernel_does_not_take_can_be_undone() {
    require!(Loop, Tool("sgdisk"), Tool("unshare"));
    let disk = LabelledDisk::new(&[34], &[]);
    let before = disk.bytes();
    let opener = Opener::start(&disk.node(1));
    let refused = disk.fix_unseeing("relabel", &[]);
    assert_refused(&refused, "does not take the partitions of the label");
    assert!(
        disk.bytes() != before,
        "the label is written before the kernel is told"
    );
    let (saved, device, name) = (
        disk.saved(),
        disk.device.path().display(),
        disk.device.name(),
    );
    let command = format!(
        "help: run: plumb fix undo {} {device} --yes {name}\n",
        saved.display()
    );
    assert_refused(&refused, &command);
    drop(opener);
    assert_done(&disk.fix("undo", &[]));
    assert!(disk.bytes() == before);
    assert_eq!(disk.start(1), Some(34));
}

/// The group disk may write to a disk, and may not tell the kernel of partitions.
#[test]
fn without_rights_to_update_the_kernel_nothing_is_written() {
    require!(Loop, Tool("sgdisk"), Tool("setpriv"));
    let disk = LabelledDisk::new(&[34], &[]);
    let before = disk.bytes();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin", env!("CARGO_BIN_EXE_plumb")]);
    let refused = disk.fix_by(command, "relabel", &[]);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{words}");
    insta::assert_snapshot!(recorded(&words));
    assert!(disk.bytes() == before && !disk.saved().exists());
}

/// A backup label may be written beside partitions in use, and not beside a user of the whole disk.
#[test]
fn a_backup_label_is_not_written_beside_a_user_of_the_disk() {
    require!(Loop, Tool("sgdisk"), Tool("unshare"));
    let disk = LabelledDisk::new(&[2_048], &[]);
    let grow = |bytes| {
        let image = std::fs::File::options()
            .write(true)
            .open(disk.dir.path().join("disk.img"));
        image.and_then(|image| image.set_len(bytes)).expect("room");
        run(Command::new("losetup")
            .arg("--set-capacity")
            .arg(disk.device.path()));
        disk.bytes()
    };
    let before = grow(96 << 20);
    let opener = Opener::start(disk.device.path());
    assert_refused(
        &disk.fix("backup-label", &[]),
        &open_notice(&opener, disk.device.path()),
    );
    assert!(disk.bytes() == before && !disk.saved().exists());
    drop(opener);
    let database = Opener::start(&disk.node(1));
    assert_done(&disk.fix("backup-label", &[]));
    drop(database);
    let verified = run(Command::new("sgdisk").arg("-v").arg(disk.device.path()));
    assert_sgdisk_agrees(&verified);
    std::fs::remove_file(disk.saved()).expect("it was saved");
    let before = grow(128 << 20);
    let held = std::fs::File::options()
        .read(true)
        .custom_flags(EXCLUSIVE)
        .open(disk.device.path());
    let _held = held.expect("a disk that nobody has");
    assert_refused(&disk.fix_unseeing("backup-label", &[]), "in use");
    assert!(disk.bytes() == before && !disk.saved().exists());
}
