//! `plumb fix move` on a terminal: its progress, the effect of Ctrl-C, and its continuation.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::Folder;
use crate::common::terminal::Terminal;
use plumb_testkit::Rng;
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::require;
use plumb_testkit::slow_disk::SlowDisk;

const MIB: u64 = 1 << 20;
/// Length of the partition: some seconds on the disk below, even if a fast machine reads sixteen pieces at a time.
const MIBS: u64 = 80;

/// A partition of noise at sector 34 of a disk that takes its time. Fields are dropped in this order.
struct NoiseDisk {
    loops: LoopDevice,
    _slow: SlowDisk,
    folder: Folder,
    data: Vec<u8>,
}

impl NoiseDisk {
    fn new() -> NoiseDisk {
        let slow = SlowDisk::new((MIBS + 16) * MIB, "40ms");
        let one = format!("-n1:34:{}", 33 + MIBS * MIB / 512);
        run(Command::new("sgdisk").args(["-a1", &one]).arg(slow.path()));
        let loops = LoopDevice::attach(slow.path(), &["--direct-io=on", "--sector-size", "512"]);
        assert_eq!(loops.add_partitions(), 1);
        let mut random = Rng::new(34);
        let noise: Vec<u8> = (0..MIB / 8)
            .flat_map(|_| random.next_u64().to_le_bytes())
            .collect();
        let mut data = noise.repeat(MIBS as usize);
        // So that no piece is like another one.
        for (number, block) in data.chunks_mut(4096).enumerate() {
            block[..8].copy_from_slice(&(number as u64).to_le_bytes());
        }
        let disk = NoiseDisk {
            loops,
            _slow: slow,
            folder: Folder::new("fix-terminal"),
            data,
        };
        std::fs::write(disk.node(), &disk.data).expect("room");
        run(Command::new("blockdev").arg("--flushbufs").arg(disk.node()));
        disk
    }

    fn node(&self) -> PathBuf {
        Path::new("/dev").join(self.name())
    }

    fn name(&self) -> String {
        format!("{}p1", self.loops.name())
    }

    fn start(&self) -> String {
        let path = format!("/sys/class/block/{}/start", self.name());
        std::fs::read_to_string(path)
            .expect("the partition")
            .trim()
            .to_owned()
    }
}

/// The text of a line that is rewritten in place must be gone before other output.
#[track_caller]
fn assert_no_progress(screen: &str) {
    let stages = ["reading the", "hiding", "copying", "verifying"];
    let left = screen
        .lines()
        .find(|line| stages.iter().any(|stage| line.starts_with(stage)));
    assert_eq!(left, None, "{screen}");
}

#[test]
fn progress_and_control_c() {
    require!(
        Loop,
        Tool("tmux"),
        Tool("sgdisk"),
        Tool("nbdkit"),
        Tool("nbdfuse")
    );
    let disk = NoiseDisk::new();
    let plumb = env!("CARGO_BIN_EXE_plumb");
    let journal = disk.folder.path("journal");
    let terminal = Terminal::open("fix", 80, 24, "");
    let (node, name) = (disk.node(), disk.name());
    let begin = format!(
        "clear; {plumb} fix move {} --to 6144s --scan --journal {} --journal-same-disk --yes {name}; echo status $?",
        node.display(),
        journal.display()
    );
    terminal.press(&[&begin, "Enter"]);
    // Rate and time left, on a line of its own that is not longer than the terminal is wide.
    let measured = |stage: &'static str| {
        move |screen: &str| {
            let is_it = |line: &str| {
                line.starts_with(stage) && line.ends_with(" left") && line.contains("/s, ")
            };
            screen.lines().any(is_it)
        }
    };
    let screen = terminal.until(
        "how far the reading is",
        measured("reading the partition: "),
    );
    assert!(screen.contains(" of 80 MiB, "), "{screen}");
    terminal.until("how far the copying is", measured("copying: "));
    terminal.press(&["C-c"]);
    let screen = terminal.shows("status 6");
    assert_no_progress(&screen);
    for words in [
        "incomplete: copying, ",
        "plumb fix resume ",
        "plumb fix rollback ",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!node.exists(), "nobody finds it meanwhile");
    terminal.press(&[
        &format!(
            "clear; {plumb} fix resume {} --yes {}; echo status $?",
            journal.display(),
            disk.loops.name()
        ),
        "Enter",
    ]);
    terminal.until("how far the verifying is", measured("verifying: "));
    let screen = terminal.shows("status 0");
    assert_no_progress(&screen);
    assert!(screen.contains(crate::common::MOVE_VERIFIED), "{screen}");
    assert_eq!(disk.start(), "6144");
    assert!(std::fs::read(&node).expect("the partition") == disk.data);
    terminal.is_restored();
}
