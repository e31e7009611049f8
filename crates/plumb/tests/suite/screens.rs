//! The first screen of a new user, on terminals of four sizes, with UTF-8, without it, and without any control of the screen. tmux
//! is the terminal: it joins the lines that it had to wrap, so a line that is too long shows.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};

use crate::common::Folder;
use crate::common::terminal::Terminal;
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::require;
use plumb_testkit::wait::PATIENCE;

const SIZES: [(u16, u16); 4] = [(60, 20), (80, 24), (120, 40), (200, 50)];

/// The heading of the layers in a long report.
const STACK: &str = "Stack, from the devices up";

/// Runs a command as a user without rights.
const USER: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";

/// Findings that depend on the settings of this host or on the reads of a test.
const IGNORED: &str = "--ignore queue-setting --ignore read-ahead-off --ignore looks-sequential";

const ENVIRONMENTS: [&str; 3] = [
    "LC_ALL=C.UTF-8 TERM=screen",
    "LC_ALL=C LANG=C TERM=screen",
    "LC_ALL=C.UTF-8 TERM=dumb",
];

/// Lines of a healthy host at 80 columns.
const LINES_FEW: usize = 22;

/// Lines of three findings at 80 columns.
const LINES_OF_THREE: usize = 40;

/// Shows a command on each terminal: it has to begin and end with the verdict, stay within the width, use only signs that the
/// terminal has, and have at most that number of lines at 80 columns. Returns the text at 80 columns.
#[track_caller]
fn show(name: &str, command: &str, (verdict, status): (&str, i32), lines_max: usize) -> String {
    let mut at_80_columns = String::new();
    let program = env!("CARGO_BIN_EXE_plumb");
    let command = command.replace("plumb ", &format!("{program} "));
    for (width, height) in SIZES {
        for (at, environment) in ENVIRONMENTS.into_iter().enumerate() {
            let terminal =
                Terminal::open(&format!("{name}-{width}-{at}"), width, height, environment);
            // The marks are no words of the command line that is shown.
            let typed = format!("clear; echo 'be''gin'; {command}; echo 'sta''tus' $?");
            terminal.press(&[&typed, "Enter"]);
            terminal.until("the end of the command", |screen| {
                screen.contains("\nstatus ")
            });
            let all = terminal.tmux(&["capture-pane", "-p", "-J", "-S", "-1000"]);
            let all = all.trim_end();
            let what = format!("{width} x {height}, {environment}:\n{all}");
            let (_, shown) = all.split_once("begin\n").expect("the mark");
            let (shown, ended) = shown.rsplit_once("\nstatus ").expect("the other mark");
            let ended = ended.lines().next().map(str::trim);
            assert_eq!(ended, Some(status.to_string().as_str()), "{what}");
            let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
            assert!(lines[0].starts_with(verdict), "{what}");
            assert!(
                width != 80 || lines.len() <= lines_max,
                "{} lines, {what}",
                lines.len()
            );
            let last = lines.iter().rfind(|line| !line.starts_with("  "));
            assert!(
                lines.len() < 10 || last.is_some_and(|line| line.starts_with(verdict)),
                "{what}"
            );
            // A command is never broken.
            let is_command = |line: &&&str| {
                let line = line.trim_start();
                ["plumb ", "sudo ", "echo ", "/"]
                    .iter()
                    .any(|first| line.starts_with(first))
            };
            for line in lines.iter().filter(|line| !is_command(line)) {
                assert!(line.chars().count() <= usize::from(width), "{line}\n{what}");
            }
            assert!(at == 0 || shown.is_ascii(), "{what}");
            if width == 80 {
                at_80_columns = shown.to_owned();
            }
        }
    }
    at_80_columns
}

/// A disk with partitions that start at these sectors.
struct PartitionedDisk {
    disk: LoopDevice,
    folder: Folder,
}

impl PartitionedDisk {
    fn new(name: &str, sector: u64) -> PartitionedDisk {
        PartitionedDisk::with(name, &[sector], 32_768)
    }

    fn with(name: &str, sectors: &[u64], length: u64) -> PartitionedDisk {
        let folder = Folder::new(name);
        let image = folder.path("disk");
        // A hole has no place on the disk below, and is rightly unknown.
        let mut file = File::create(&image).expect("room for a file");
        file.write_all(&vec![1; 20 << 20])
            .and_then(|()| file.sync_all())
            .expect("room for 20 MiB");
        let partitions = sectors
            .iter()
            .map(|sector| format!("{sector},{length},L\n"));
        let partitions: String = partitions.collect();
        let script = folder.file("script", format!("label: dos\n{partitions}"));
        run(Command::new("sh").arg("-c").arg(format!(
            "sfdisk -q {} < {}",
            image.display(),
            script.display()
        )));
        let disk = LoopDevice::attach_hidden(&image, &[]);
        disk.add_partitions();
        PartitionedDisk { disk, folder }
    }

    fn path(&self) -> String {
        self.disk.path().display().to_string()
    }

    /// Reads 8 KiB at a time from the first partition until the result is dropped.
    fn read(&self) -> Reads {
        let script = format!(
            "while :; do dd if={}p1 of=/dev/null bs=8k count=500 iflag=direct status=none; done",
            self.path()
        );
        let shell = Command::new("sh").args(["-c", &script]).spawn();
        let reads = Reads(shell.expect("a shell starts"));
        let stat = format!("/sys/block/{}/stat", self.disk.name());
        plumb_testkit::wait::until("500 reads of the disk", PATIENCE, || {
            let counts = std::fs::read_to_string(&stat).expect("counts of the disk");
            let ios = counts.split_whitespace().next().map(str::parse::<u64>);
            ios.is_some_and(|ios| ios.is_ok_and(|ios| ios > 500))
        });
        reads
    }
}

/// A shell that reads.
struct Reads(Child);

impl Drop for Reads {
    fn drop(&mut self) {
        plumb_testkit::wait::stop(&mut self.0);
    }
}

#[test]
fn a_misaligned_partition() {
    require!(Loop, Tool("tmux"), Tool("sfdisk"), Tool("partx"));
    let disk = PartitionedDisk::new("screen-misfit", 34);
    let command = format!("plumb check --ignore queue-setting {}", disk.path());
    show("misfit", &command, ("MISFIT: ", 1), LINES_OF_THREE);
}

/// A disk in a file is on the disk of this machine, and layers below that may not be visible.
#[test]
fn a_disk_fits_all_visible_layers() {
    require!(Loop, Tool("tmux"), Tool("sfdisk"), Tool("partx"));
    let disk = PartitionedDisk::new("screen-visible", 2048);
    let config = disk.folder.file("config.toml", "accept_unseen = true\n");
    let command = format!(
        "plumb check --ignore queue-setting --config {} {}",
        config.display(),
        disk.path()
    );
    show("visible", &command, ("OK: ", 0), LINES_FEW);
}

#[test]
fn a_healthy_host() {
    require!(Tool("tmux"));
    let folder = Folder::new("screen-healthy");
    let mut host = FakeHost::new(&folder.path("host"));
    for name in ["sda", "sdb"] {
        host.disk(&FakeDisk::named(name));
        host.partition(name, 1, 2048, 1 << 20);
    }
    let command = format!("plumb check --root {}", folder.path("host").display());
    show("healthy", &command, ("OK: ", 0), LINES_FEW);
}

#[test]
fn a_user_without_rights() {
    require!(
        Loop,
        Root,
        Tool("tmux"),
        Tool("sfdisk"),
        Tool("partx"),
        Tool("setpriv")
    );
    let disk = PartitionedDisk::new("screen-user", 34);
    // The partition is in sysfs, which all may read.
    let command = format!("{USER} plumb check --ignore queue-setting {}", disk.path());
    show("user", &command, ("MISFIT: ", 1), LINES_OF_THREE);
}

/// A short watch without I/O of the disk: the layout alone decides.
#[test]
fn a_live_diagnosis() {
    require!(Bpf, Loop, Tool("tmux"), Tool("sfdisk"), Tool("partx"));
    let disk = PartitionedDisk::new("screen-live", 63);
    let command = format!(
        "plumb diagnose --for 200ms --ignore queue-setting {} 2>/dev/null",
        disk.path()
    );
    show("live", &command, ("MISFIT: ", 1), LINES_OF_THREE);
}

#[test]
fn a_trace_with_findings() {
    require!(Tool("tmux"));
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/traces/postgres-sector34.txt.gz");
    let command = format!("plumb analyze {}", trace.display());
    show("trace", &command, ("MISFIT: ", 1), usize::MAX);
}

/// Three disks that a host states to be wrong in three ways.
#[test]
fn three_findings_of_a_host() {
    require!(Tool("tmux"));
    let folder = Folder::new("screen-three");
    let mut host = FakeHost::new(&folder.path("host"));
    for (name, start) in [("sda", 34), ("sdb", 63), ("sdc", 36)] {
        host.disk(&FakeDisk::named(name));
        host.partition(name, 1, start, 1 << 20);
    }
    let command = format!("plumb check --root {}", folder.path("host").display());
    let shown = show(
        "three",
        &command,
        ("MISFIT: 3 findings on 3 devices", 1),
        LINES_OF_THREE,
    );
    assert_eq!(shown.matches("WARNING  ").count(), 3, "{shown}");
}

/// The layers below the disk of a guest are not visible.
#[test]
fn a_guest() {
    require!(Tool("tmux"));
    let folder = Folder::new("screen-guest");
    let mut host = FakeHost::new(&folder.path("host"));
    host.disk(&FakeDisk::named("vda"));
    host.partition("vda", 1, 2048, 1 << 20);
    let command = format!("plumb check --root {}", folder.path("host").display());
    let shown = show("guest", &command, ("UNKNOWN: ", 3), LINES_FEW);
    for words in ["plumb check --collect host.tar.zst", "accept_unseen = true"] {
        assert!(shown.contains(words), "{shown}");
    }
}

#[test]
fn forty_disks() {
    require!(Tool("tmux"));
    let folder = Folder::new("screen-forty");
    let mut host = FakeHost::new(&folder.path("host"));
    for number in 0..40 {
        let name = format!("sd{number}x");
        host.disk(&FakeDisk::named(&name));
        host.partition(&name, 1, if number % 4 == 0 { 34 } else { 2048 }, 1 << 20);
    }
    let command = format!("plumb check --root {}", folder.path("host").display());
    show("forty", &command, ("MISFIT: ", 1), LINES_OF_THREE);
}

#[test]
fn three_findings_of_a_disk() {
    require!(Loop, Tool("tmux"), Tool("sfdisk"), Tool("partx"));
    let disk = PartitionedDisk::with("screen-three-live", &[34, 8_227, 16_389], 8_000);
    let command = format!("plumb check --ignore queue-setting {}", disk.path());
    let verdict = ("MISFIT: 3 findings on 3 devices", 1);
    let shown = show("three-live", &command, verdict, LINES_OF_THREE);
    assert_eq!(shown.matches("WARNING  ").count(), 3, "{shown}");
}

#[test]
fn a_diagnosis_with_io() {
    require!(Bpf, Loop, Tool("tmux"), Tool("sfdisk"), Tool("partx"));
    let disk = PartitionedDisk::new("screen-io", 63);
    let _reads = disk.read();
    let command = format!("plumb diagnose --for 300ms {IGNORED} {}", disk.path());
    show("io", &command, ("MISFIT: ", 1), LINES_OF_THREE);
}

/// A user without rights sees the layout, and reads the command that shows the rest.
#[test]
fn a_diagnosis_without_rights() {
    require!(
        Loop,
        Root,
        Tool("tmux"),
        Tool("sfdisk"),
        Tool("partx"),
        Tool("setpriv")
    );
    let disk = PartitionedDisk::new("screen-user-live", 34);
    let command = format!(
        "{USER} plumb diagnose --for 200ms --ignore queue-setting {}",
        disk.path()
    );
    let shown = show("user-live", &command, ("MISFIT: ", 1), LINES_OF_THREE);
    assert!(
        shown.contains("sudo ") && shown.contains("the I/O ("),
        "{shown}"
    );
}

/// All I/O fit the visible layers.
#[test]
fn a_diagnosis_of_io_that_fit() {
    require!(Bpf, Loop, Tool("tmux"), Tool("sfdisk"), Tool("partx"));
    let disk = PartitionedDisk::new("screen-fit", 2048);
    let _reads = disk.read();
    let config = disk.folder.file("config.toml", "accept_unseen = true\n");
    let command = format!(
        "plumb diagnose --for 300ms {IGNORED} --config {} {}",
        config.display(),
        disk.path()
    );
    show("fit", &command, ("OK: ", 0), LINES_FEW);
}

/// `-v` adds the evidence: intervals, the table of I/O and the stack.
#[test]
fn a_diagnosis_with_evidence() {
    require!(Bpf, Loop, Tool("tmux"), Tool("sfdisk"), Tool("partx"));
    let disk = PartitionedDisk::new("screen-evidence", 63);
    let _reads = disk.read();
    let flags = ["diagnose", "--for", "300ms", "-v"];
    let ignored = IGNORED.split(' ');
    let path = disk.path();
    let ran = crate::common::plumb(flags.into_iter().chain(ignored).chain([path.as_str()]));
    let name = disk.disk.name();
    ran.ends(1)
        .says(&format!("- I/O through {name}p1 in "))
        .says("confidence: ")
        .says("I/O seen in ")
        .says(STACK)
        .says(&format!("{name}p1: partition"));
    // A wide terminal has more columns: the table beyond 120, the sentences up to there.
    let terminal = Terminal::open("evidence-200", 200, 50, "LC_ALL=C.UTF-8 TERM=screen");
    let command = format!(
        "{} diagnose --for 300ms -v {IGNORED} {path}",
        env!("CARGO_BIN_EXE_plumb")
    );
    terminal.press(&[
        &format!("clear; {command} 2>/dev/null; echo 'sta''tus' $?"),
        "Enter",
    ]);
    terminal.until("the end", |screen| screen.contains("\nstatus 1"));
    let all = terminal.tmux(&["capture-pane", "-p", "-J", "-S", "-1000"]);
    let head = all
        .lines()
        .find(|line| line.trim_start().starts_with("device "));
    let head = head.unwrap_or_else(|| panic!("{all}"));
    assert!((121..=200).contains(&head.chars().count()), "{head}");
    let mut lines = ran.out.lines();
    let narrow = lines.find(|line| line.trim_start().starts_with("device "));
    let narrow = narrow.expect("the same table for 80 columns");
    for column in ["reads", "writes", "I/O/s", "90 %", "99.9 %", "largest"] {
        assert!(
            head.contains(column) && !narrow.contains(column),
            "{head}\n{narrow}"
        );
    }
    let brief = crate::common::plumb(
        ["diagnose", "--for", "300ms"]
            .into_iter()
            .chain(IGNORED.split(' '))
            .chain([path.as_str()]),
    );
    assert!(!brief.out.contains(STACK), "{}", brief.out);
}

/// Every command that prints a table or a page fits a terminal of 60 columns. Commands stay whole, since people copy them.
#[test]
fn every_text_fits_60_columns() {
    require!(Tool("tmux"), Tool("sfdisk"));
    let folder = Folder::new("screen-narrow");
    let image = folder.path("disk.img");
    let file = File::create(&image).expect("a file");
    file.set_len(64 << 20).expect("64 MiB");
    drop(file);
    let script = format!("echo 2050,100000 | sfdisk -q -X gpt {}", image.display());
    run(Command::new("sh").args(["-c", &script]));
    let image = image.display();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (iostat, trace) = (
        examples.join("iostat"),
        examples.join("traces/postgres-sector34.txt.gz"),
    );
    let (iostat, trace, dumps) = (iostat.display(), trace.display(), examples.join("dumps"));
    let dumps = dumps.display();
    let commands = [
        "explain".to_owned(),
        "explain misaligned-partition".to_owned(),
        "explain parity-small-writes".to_owned(),
        "plan writes --record 8k --gather 16 --random 400".to_owned(),
        "plan disks --reads 1000 --writes 500 --disk-rate 150".to_owned(),
        format!("plan softpart --from {dumps}/metastat-p.txt {dumps}/prtvtoc-c2t0d0.txt"),
        format!("compare {iostat}/misaligned.txt {iostat}/aligned.txt"),
        format!("watch --plain --from {trace}"),
        format!("analyze {trace} --chunk 64k --members 4"),
        format!("check -vv --from {dumps}/metastat-p.txt"),
        format!("fix relabel {image} --start 2048s"),
        format!("bench {image} --for 1s --depth 2"),
        format!("replay {trace} {image} --speed max"),
        format!("probe {image} --limit 2s"),
    ];
    let terminal = Terminal::open("narrow", 60, 20, "LC_ALL=C.UTF-8 TERM=screen PAGER=cat");
    terminal.tmux(&["set-option", "-g", "history-limit", "20000"]);
    let program = env!("CARGO_BIN_EXE_plumb");
    let mut too_long = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        terminal.tmux(&["clear-history"]);
        let typed = format!("clear; echo 'be''gin'; {program} {command}; echo 'sta''tus' {at}: $?");
        terminal.press(&[&typed, "Enter"]);
        terminal.until(&format!("the end of {command}"), |screen| {
            screen.contains(&format!("\nstatus {at}: "))
        });
        let all = terminal.tmux(&["capture-pane", "-p", "-J", "-S", "-20000"]);
        let (_, shown) = all.rsplit_once("begin\n").expect("the mark");
        let (shown, status) = shown.rsplit_once("\nstatus ").expect("the other mark");
        let ended = status
            .lines()
            .next()
            .and_then(|line| line.split(": ").nth(1))
            .map(str::trim);
        assert!(
            ["0", "1", "3"].iter().any(|code| ended == Some(*code)),
            "{command}: {all}"
        );
        assert!(shown.lines().count() > 2, "{command}: {all}");
        // Commands of a report are behind spaces, or behind the words of a way back.
        let is_command = |line: &&str| {
            let line = line.trim_start();
            let line = line.strip_prefix("way back: ").unwrap_or(line);
            let first = line.split([' ', '=', '(']).next().unwrap_or_default();
            FIRST_WORDS.contains(&first) || first.contains('/') || first == "#"
        };
        // A path is not broken either.
        let has_path = |line: &&str| {
            line.split(' ')
                .any(|word| word.starts_with(['/', '(']) && word.contains('/'))
        };
        let is_long =
            |line: &&str| line.chars().count() > 60 && !is_command(line) && !has_path(line);
        let long = shown.lines().filter(is_long);
        too_long.extend(long.map(|line| format!("{command}: {line}")));
    }
    assert!(too_long.is_empty(), "{too_long:#?}");
}

/// First words of commands that reports print.
const FIRST_WORDS: [&str; 14] = [
    "plumb",
    "sudo",
    "echo",
    "mdadm",
    "metainit",
    "metaclear",
    "stat",
    "find",
    "newfs",
    "dd",
    "mount",
    "info",
    "{",
    "chown",
];

/// Commands that take seconds show their rate and the time left on a terminal, and take that line away.
#[test]
fn long_commands_show_their_progress() {
    require!(Bpf, Loop, Tool("tmux"), Tool("sfdisk"), Tool("partx"));
    let disk = PartitionedDisk::new("screen-progress", 63);
    let _reads = disk.read();
    let file = disk.folder.file("file", vec![1; 4 << 20]);
    let file = file.display();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/traces/postgres-sector34.txt.gz");
    let trace = trace.display();
    let commands = [
        (
            format!("diagnose --for 5s {}", disk.path()),
            ["watching ", " I/O, ", "/s; ", " left; Ctrl-C"],
        ),
        (
            format!("bench {file} --for 5s --json"),
            [" I/O/s; ", " of 5 s, ", " left", ""],
        ),
        (
            format!("replay {trace} {file} --speed 5"),
            [" of 6,806 I/O", " %, ", "/s, ", " left"],
        ),
    ];
    for (at, (command, progress)) in commands.iter().enumerate() {
        let terminal = Terminal::open(
            &format!("progress-{at}"),
            120,
            40,
            "LC_ALL=C.UTF-8 TERM=screen",
        );
        let program = env!("CARGO_BIN_EXE_plumb");
        terminal.press(&[
            &format!("clear; {program} {command}; echo 'sta''tus' $?"),
            "Enter",
        ]);
        let is_progress =
            |line: &str| progress.iter().all(|part| line.contains(part)) && !line.contains(program);
        terminal.until(&format!("the progress of {command}"), |screen| {
            screen.lines().any(is_progress)
        });
        let screen = terminal.until("the end", |screen| screen.contains("\nstatus "));
        assert!(!screen.lines().any(is_progress), "{screen}");
    }
}
