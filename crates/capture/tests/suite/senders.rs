//! The senders of I/O: processes whose pages a worker of the kernel writes back, their cgroups and files, and the reads of
//! the watch itself.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{LoopDisk, SIZE};
use plumb_capture::{
    Attached, BlockWatch, Filter, Layers, Options, OwnReads, Process, Reading, disk_of,
};
use plumb_testkit::cgroup::Cgroup;
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::slow_disk::SlowDisk;
use plumb_testkit::{require, skip, wait};
use plumb_trace::{Layer, Op};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// Most bytes of a file system's own data that an operation on a file may cause.
const METADATA_MAX: u64 = MIB / 2;

/// Each layer, by each way to attach.
const WAYS: [(Layers, Layer, Attached); 4] = [
    (Layers::Request, Layer::Request, Attached::TypedTracepoints),
    (Layers::Request, Layer::Request, Attached::RawTracepoints),
    (Layers::Bio, Layer::Bio, Attached::TypedTracepoints),
    (Layers::Bio, Layer::Bio, Attached::RawTracepoints),
];

/// An ext4 without a journal, so that nothing but files and their metadata is written.
struct MountedFileSystem {
    disk: LoopDisk,
    point: TempDir,
}

impl MountedFileSystem {
    fn new() -> MountedFileSystem {
        let disk = LoopDisk::new();
        run(Command::new("mkfs.ext4")
            .args(["-q", "-F", "-b", "4096", "-O", "^has_journal"])
            .args(["-E", "lazy_itable_init=0"])
            .arg(disk.device.path()));
        let point = tempfile::tempdir().expect("a directory");
        let system = MountedFileSystem { disk, point };
        system.mount();
        system
    }

    fn mount(&self) {
        run(Command::new("mount")
            .args(["-t", "ext4"])
            .arg(self.disk.device.path())
            .arg(self.point.path()));
    }

    fn unmount(&self) {
        run(Command::new("umount").arg(self.point.path()));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.point.path().join(name)
    }

    /// A process other than that which made pages dirty has the kernel write them.
    fn write_out(&self) {
        run(Command::new("sync").arg("-f").arg(self.point.path()));
    }
}

impl Drop for MountedFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.point.path()).status();
    }
}

fn shell(command: &str) {
    run(Command::new("sh").args(["-c", command]));
}

/// Writes through the page cache.
fn dd(enter: &str, to: &Path, mib: u64) {
    let to = to.display();
    shell(&format!(
        "{enter} exec dd if=/dev/zero of={to} bs=64k count={} status=none",
        16 * mib
    ));
}

fn process<'a>(reading: &'a Reading, comm: &str) -> &'a Process {
    let found = reading.processes.iter().find(|of| of.comm == comm);
    found.unwrap_or_else(|| panic!("no I/O by {comm}: {:?}", reading.processes))
}

/// The workers write the pages of two processes that have ended; each gets its own bytes.
#[test]
fn pages_belong_to_the_process_that_made_them_dirty() {
    require!(Bpf, Loop, Tool("dd"), Tool("mkfs.ext4"));
    let Some(cgroup) = Cgroup::new() else {
        skip!("no cgroup of version 2 can be made");
    };
    let (enter, expected) = (cgroup.enter("/inner"), cgroup.inner_name());
    let system = MountedFileSystem::new();
    for (at, (layers, _, attach)) in WAYS.into_iter().enumerate() {
        let mut block = system.disk.watch_with(Options {
            attach: Some(attach),
            layers,
            ..Options::default()
        });
        dd(&enter, &system.file(&format!("dd-{at}")), 8);
        // It opens its file itself: a file that a shell opens is made by a process of the name of the shell.
        shell(&format!(
            "head -c {} /dev/zero | tee {} >/dev/null",
            3 * MIB,
            system.file(&format!("tee-{at}")).display()
        ));
        system.write_out();
        let reading = block.read();
        let (dd, tee) = (process(&reading, "dd"), process(&reading, "tee"));
        for (process, bytes) in [(dd, 8 * MIB), (tee, 3 * MIB)] {
            let more = process.bytes.checked_sub(bytes);
            assert!(more.is_some_and(|more| more <= METADATA_MAX), "{process:?}");
            assert!(process.written_back > 0, "{process:?}");
            assert!(process.written_back <= process.ios, "{process:?}");
        }
        assert_eq!(dd.cgroup.as_deref(), Some(expected.as_str()));
        assert_ne!(tee.cgroup.as_deref(), Some(expected.as_str()));
        let workers = reading
            .processes
            .iter()
            .filter(|of| of.comm.starts_with("kworker"));
        let of_workers: u64 = workers.map(|of| of.bytes).sum();
        assert!(of_workers <= METADATA_MAX, "{:?}", reading.processes);
        for name in ["dd", "tee"] {
            fs::remove_file(system.file(&format!("{name}-{at}"))).expect("room for the next");
        }
        system.write_out();
    }
}

/// A filter by command takes the pages that the command made dirty, and leaves out those of another.
#[test]
fn a_filter_takes_pages_that_are_written_back() {
    require!(Bpf, Loop, Tool("dd"), Tool("mkfs.ext4"));
    let system = MountedFileSystem::new();
    for (at, (layers, layer, attach)) in WAYS.into_iter().enumerate() {
        let mut block = system.disk.watch_with(Options {
            attach: Some(attach),
            layers,
            filter: Filter {
                comm: Some("dd".to_owned()),
                ..Filter::default()
            },
            ..Options::default()
        });
        let file = system.file(&format!("file-{at}"));
        dd("", &file, 4);
        // By itself: the kernel joins neighbouring pages of two files in one request.
        system.write_out();
        shell(&format!(
            "exec head -c {MIB} /dev/zero >{}.other",
            file.display()
        ));
        system.write_out();
        let reading = block.read();
        let written = system.disk.profile_at(layer, &reading).op(Op::Write).bytes;
        let more = written.checked_sub(4 * MIB);
        assert!(more.is_some_and(|more| more <= METADATA_MAX), "{written}");
        assert_eq!(system.disk.misses(&reading).unmatched_completions, 0);
    }
}

/// The slowest reads name the file whose pages they fill.
#[test]
fn files_of_single_io() {
    require!(Bpf, Loop, Tool("dd"), Tool("mkfs.ext4"));
    let system = MountedFileSystem::new();
    let file = system.file("accounts.db");
    dd("", &file, 4);
    let inode = fs::metadata(&file).expect("the file").ino();
    for (layers, layer, attach) in WAYS {
        system.unmount();
        let mut block = system.disk.watch_with(Options {
            attach: Some(attach),
            layers,
            ..Options::default()
        });
        system.mount();
        let from = file.display();
        shell(&format!("exec dd if={from} of=/dev/null bs=1M status=none"));
        let reading = block.read();
        let profile = system.disk.profile_at(layer, &reading);
        let answers = profile.answers.as_ref().expect("a live watch has them");
        let of_file: Vec<_> = answers
            .slowest
            .iter()
            .filter(|io| io.file.is_some())
            .collect();
        assert!(!of_file.is_empty(), "{:?}", answers.slowest);
        for io in of_file {
            let found = io.file.as_ref().expect("filtered");
            let name = found.name.as_deref();
            assert_eq!((found.inode, name), (inode, Some("accounts.db")), "{io:?}");
            assert_eq!(io.op, Op::Read);
            assert_eq!(io.sender.as_ref().map(|of| of.comm.as_str()), Some("dd"));
        }
    }
}

/// A process that still runs has its command line; one that has ended has none.
#[test]
fn command_lines_of_running_processes() {
    require!(Bpf, Loop, Tool("dd"));
    let disk = LoopDisk::new();
    let mut block = disk.watch_with(Options {
        command_lines: true,
        ..Options::default()
    });
    let input = format!("if={}", disk.device.path().display());
    let arguments = [
        &input,
        "iflag=direct",
        "bs=4096",
        "count=16384",
        "status=none",
    ];
    // It waits while the pipe is full, so that each piece that is taken out of it makes some reads.
    let mut child = Command::new("dd")
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("dd");
    let mut output = child.stdout.take().expect("a pipe");
    let (pid, mut piece) = (child.id(), vec![0; 64 << 10]);
    let mut found = None;
    // On a busy machine the line comes with a later reading.
    wait::until("the command line of dd", Duration::from_secs(30), || {
        output.read_exact(&mut piece).expect("dd runs");
        let reading = block.read();
        let of_dd = reading.processes.iter().find(|of| of.pid == pid);
        found = of_dd.and_then(|of| of.command_line.clone());
        found.is_some()
    });
    child.kill().expect("it runs");
    wait::exit("dd ends", Duration::from_secs(30), &mut child);
    let expected = format!("dd {}", arguments.join(" "));
    assert_eq!(found, Some(expected));
    block.read();
    shell(&format!(
        "exec dd {input} of=/dev/null iflag=direct bs=4096 count=3 status=none"
    ));
    let reading = block.read();
    assert_eq!(process(&reading, "dd").command_line, None);
}

/// More processes than the programs have room for: those that sent nothing since the last reading make room for others.
#[test]
fn processes_that_send_nothing_are_forgotten() {
    require!(Bpf, Loop, Tool("dd"));
    const EACH: u64 = 200;
    let disk = LoopDisk::new();
    let mut block = disk.watch_with(Options {
        forget_after: Duration::ZERO,
        ..Options::default()
    });
    let path = disk.device.path().display();
    for round in 0..25 {
        shell(&format!(
            "for n in $(seq {EACH}); do dd if={path} of=/dev/null iflag=direct bs=4096 count=1 status=none; done"
        ));
        let reading = block.read();
        let ios: u64 = reading.processes.iter().map(|of| of.ios).sum();
        let unlisted = reading.of_unlisted_process;
        assert_eq!((ios, unlisted), (EACH, 0), "round {round}");
        assert_eq!(reading.processes.len() as u64, EACH, "round {round}");
        // All of them have sent nothing since.
        assert!(block.read().processes.is_empty(), "round {round}");
    }
}

/// Reads of the watching process and its children are no load; those of a grandchild are.
#[test]
fn own_reads_do_not_count() {
    require!(Bpf, Loop, Tool("dd"));
    let disk = LoopDisk::new();
    disk.set("max_sectors_kb", "64");
    for (layers, layer, attach) in WAYS {
        let mut block = disk.watch_with(Options {
            attach: Some(attach),
            layers,
            own_reads: OwnReads::LeftOut,
            ..Options::default()
        });
        let mut file = disk.open();
        (0..53).for_each(|at| file.io(Op::Read, at * 8192, 4096));
        // Each is cut in four.
        (0..11).for_each(|at| file.io(Op::Read, at << 18, 256 << 10));
        (0..7).for_each(|at| file.io(Op::Write, at * 8192, 4096));
        let path = disk.device.path().display();
        let read = |count| {
            format!("dd if={path} of=/dev/null iflag=direct bs=4096 count={count} status=none")
        };
        shell(&format!("exec {}", read(31)));
        // The shell is the child, and waits for dd, which then is a grandchild.
        shell(&format!("{}; true", read(101)));
        let reading = block.read();
        let profile = disk.profile_at(layer, &reading);
        let counted = (profile.op(Op::Read).ios, profile.op(Op::Write).ios);
        assert_eq!(counted, (101, 7), "{layers:?} {attach:?}");
        let misses = disk.misses(&reading);
        let unmatched = (misses.unmatched_completions, misses.unmatched_issues);
        assert_eq!(unmatched, (0, 0), "{layers:?} {attach:?}");
        let others = (misses.splits, misses.requeues, reading.of_unknown_sender);
        assert_eq!(others, (0, 0, 0), "{layers:?} {attach:?}");
    }
}

/// Four requests of a disk that has stopped are on their way, and four more I/O wait for a request. Meanwhile 200,000 I/O of another
/// disk come, many more than there is room for notes: they displace no note of an I/O that waits.
#[test]
fn other_disks_displace_no_sender() {
    require!(
        Bpf,
        Loop,
        Tool("nbdkit"),
        Tool("nbdfuse"),
        Tool("fio"),
        Tool("dd")
    );
    if fs::read_to_string("/proc/self/stack").is_ok_and(|stack| stack.is_empty()) {
        skip!("the kernel shows no stacks");
    }
    let server = SlowDisk::new(SIZE, "0ms");
    let stopping = LoopDevice::attach_hidden(server.path(), &[]);
    stopping.set_queue("nr_requests", "4");
    let busy = LoopDisk::new();
    let mut block = BlockWatch::attach(&Options {
        devices: vec![disk_of(&stopping.name()).expect("its number")],
        ..Options::default()
    })
    .expect("programs that this kernel takes");
    assert_ne!(block.attached(), Attached::Tracefs);
    server.stop();
    let readers: Vec<_> = (0..8)
        .map(|at| {
            Command::new("dd")
                .arg(format!("if={}", stopping.path().display()))
                .args(["of=/dev/null", "bs=4096", "count=1", "iflag=direct"])
                .arg(format!("skip={}", at * 100))
                .stderr(Stdio::null())
                .spawn()
                .expect("dd")
        })
        .collect();
    wait::until("four I/O wait for a request", wait::PATIENCE, || {
        let waits = |reader: &&Child| {
            let stack = fs::read_to_string(format!("/proc/{}/stack", reader.id()));
            stack.is_ok_and(|stack| stack.contains("blk_mq_get_tag"))
        };
        readers.iter().filter(waits).count() == 4
    });
    run(Command::new("fio")
        .args(["--name=busy", "--rw=randread", "--bs=512", "--direct=1"])
        .args(["--ioengine=io_uring", "--iodepth=64", "--norandommap"])
        .args(["--number_ios=200000", "--io_size=1g"])
        .arg(format!("--filename={}", busy.device.path().display())));
    server.go_on();
    for mut reader in readers {
        assert!(wait::exit("dd", wait::PATIENCE, &mut reader).success());
    }
    let reading = block.read();
    let of_dd = reading.processes.iter().filter(|of| of.comm == "dd");
    assert_eq!(
        of_dd.map(|of| of.ios).sum::<u64>(),
        8,
        "{:?}",
        reading.processes
    );
    assert_eq!(reading.of_unknown_sender, 0);
}
