//! `plumb diagnose`: a layout and the I/O through it as one, and its message without rights.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, plumb, recorded, recorded_lines};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};
use serde_json::{Value, json};

/// Two partitions: the first at sector 34, right behind a GPT, the second at 100 MiB.
const LABEL: &str = "label: gpt\nfirst-lba: 34\nstart=34, size=163840\nstart=204800, size=163840\n";
const SIZE: usize = 200 << 20;

/// A disk with both partitions. Its file has no holes, so that bytes are followed to the device of the file.
struct Lab {
    disk: LoopDevice,
}

impl Lab {
    fn within(folder: &Folder) -> Lab {
        let image = folder.file("disk", vec![0; SIZE]);
        fs::File::open(&image)
            .and_then(|file| file.sync_all())
            .expect("room for a file");
        let label = folder.file("label", LABEL);
        let label = fs::File::open(label).expect("the label");
        run(Command::new("sfdisk")
            .arg("--quiet")
            .arg(&image)
            .stdin(label));
        // Plumb finds the label by the name of the disk, so the node stays where other programs see it too.
        let disk = LoopDevice::attach(&image, &[]);
        assert_eq!(disk.add_partitions(), 2);
        Lab { disk }
    }

    /// Reads and writes that the kernel has counted on a partition.
    fn counted(&self, number: u32) -> u64 {
        let file = Path::new("/sys/class/block")
            .join(self.name(number))
            .join("stat");
        let text = fs::read_to_string(file).expect("counters of a partition");
        let values: Vec<u64> = text
            .split_whitespace()
            .map(|value| value.parse().expect("a count"))
            .collect();
        values[0] + values[4]
    }

    /// A diagnosis with these arguments while `load` sends a number of I/O to each partition. It is repeated if the
    /// kernel has counted more: another program has read the disk in the meantime, as udev does.
    fn diagnose(
        &self,
        args: &[&str],
        expected: [u64; 2],
        load: impl Fn(),
    ) -> (Option<i32>, String) {
        for _ in 0..5 {
            let diagnosing = Diagnosing::begin(args);
            let before = [1, 2].map(|number| self.counted(number));
            load();
            let after = [1, 2].map(|number| self.counted(number));
            let ended = diagnosing.end();
            if [after[0] - before[0], after[1] - before[1]] == expected {
                return ended;
            }
        }
        panic!(
            "other programs read {} in each of five attempts",
            self.disk.path().display()
        );
    }

    fn part(&self, number: u32) -> PathBuf {
        self.disk.partition(number)
    }

    fn name(&self, number: u32) -> String {
        format!("{}p{number}", self.disk.name())
    }
}

fn is_block(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
}

/// `dd` with O_DIRECT: `count` reads of 4 KiB from `skip` bytes on.
fn read(device: &Path, count: u64, skip: u64) {
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", device.display()));
    dd.args([
        "of=/dev/null",
        "iflag=direct,skip_bytes",
        "bs=4096",
        "status=none",
    ]);
    run(dd.args([format!("count={count}"), format!("skip={skip}")]));
}

/// As many writes of zeros, where nothing else is.
fn write(device: &Path, count: u64) {
    assert!(is_block(device), "never a file of that name");
    let mut dd = Command::new("dd");
    dd.args([
        "if=/dev/zero",
        "oflag=direct",
        "bs=4096",
        "seek=1000",
        "conv=notrunc",
        "status=none",
    ]);
    run(dd.args([format!("of={}", device.display()), format!("count={count}")]));
}

/// A diagnosis that watches until it is ended.
struct Diagnosing(Child);

impl Diagnosing {
    /// Returns when its programs count: it then holds the links that keep them attached, and no more of them come.
    fn begin(args: &[&str]) -> Diagnosing {
        let mut command = crate::common::command();
        command.arg("diagnose").args(args).args(["--for", "300s"]);
        // A document has everything.
        if !args.contains(&"--json") {
            command.arg("-vv");
        }
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("plumb runs");
        let descriptors = format!("/proc/{}/fd", child.id());
        let mut diagnosing = Diagnosing(child);
        let began = Instant::now();
        let is_link = |entry: &fs::DirEntry| {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            target.to_string_lossy().contains("bpf_link")
                || target.to_string_lossy().contains("raw-tracepoint")
        };
        // To attach one takes a moment in which the kernel waits for all its processors.
        let (mut before, mut since) = (0, Instant::now());
        loop {
            let links = fs::read_dir(&descriptors)
                .into_iter()
                .flatten()
                .flatten()
                .filter(is_link)
                .count();
            if links != before {
                (before, since) = (links, Instant::now());
            }
            if links >= 3 && since.elapsed() > Duration::from_secs(3) {
                return diagnosing;
            }
            let ended = diagnosing.0.try_wait().expect("a child");
            assert!(
                ended.is_none() && began.elapsed() < Duration::from_secs(60),
                "it never watched: {ended:?}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ctrl-C; the report comes all the same, and soon.
    fn end(mut self) -> (Option<i32>, String) {
        let pid = self.0.id().to_string();
        run(Command::new("kill").args(["-INT", &pid]));
        let began = Instant::now();
        let lines = wait::Lines::of("plumb diagnose", self.0.stdout.take().expect("its output"));
        let out: Vec<String> = lines.collect();
        let code = wait::exit("plumb diagnose", wait::PATIENCE, &mut self.0).code();
        assert!(began.elapsed() < Duration::from_secs(60), "it ended late");
        (code, out.join("\n"))
    }
}

impl Drop for Diagnosing {
    fn drop(&mut self) {
        wait::stop(&mut self.0);
    }
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

/// Findings of a rule about a device, or a part of it.
fn findings<'a>(document: &'a Value, id: &str, device: &str) -> Vec<&'a Value> {
    let all = document["findings"].as_array().expect("findings").iter();
    all.filter(|finding| finding["rule"] == id && finding["target"]["device"] == device)
        .collect()
}

/// I/O off the grid and all, of those that were seen through a layer.
fn seen(finding: &Value) -> (Option<u64>, Option<u64>) {
    let fit = &finding["seen"]["fit"];
    (fit["misaligned"].as_u64(), fit["ios"].as_u64())
}

/// 211 reads and 101 writes through the partition that is off, 307 through the one that is not: one finding tells the
/// start, the I/O and the commands.
#[test]
fn a_start_and_the_io_through_it_are_one_finding() {
    require!(Bpf, Loop, Tool("dd"), Tool("sfdisk"), Tool("partx"));
    let folder = Folder::new("diagnose-one");
    let lab = Lab::within(&folder);
    let (name, first) = (lab.disk.name(), lab.name(1));
    let saved = folder.path("saved.profile");
    let saved = saved.to_str().expect("text");
    let args = [&name, "--grid", "4k", "--json", "--save", saved];
    let (code, text) = lab.diagnose(&args, [312, 307], || {
        read(&lab.part(1), 211, 0);
        write(&lab.part(1), 101);
        read(&lab.part(2), 307, 0);
    });
    assert_eq!(code, Some(1), "{text}");
    let document = document(&text);
    let found = findings(&document, "misaligned-partition", &first);
    let [finding] = found.as_slice() else {
        panic!("{} findings about {first}", found.len())
    };
    assert_eq!(seen(finding), (Some(312), Some(312)));
    assert_eq!(finding["facts"]["past_bytes"], 1024);
    let counted = &finding["seen"];
    assert!(
        counted["mean_ns"].as_f64().is_some_and(|ns| ns > 0.0),
        "{finding}"
    );
    assert_eq!(
        (&counted["reads"], &counted["writes"]),
        (&211.into(), &101.into())
    );
    assert_eq!(counted["moved_bytes"], 312 * 4096);
    let moved = json!({"by_bytes": 3072, "ios": 312, "misaligned": 0});
    assert_eq!(counted["fit"]["moved"], moved);
    assert_eq!(counted["senders"], json!([{"comm": "dd", "ios": 312}]));
    assert!(
        finding["fix"].as_array().is_some_and(|fix| !fix.is_empty()),
        "{finding}"
    );
    assert!(
        findings(&document, "misaligned-io", &name).is_empty(),
        "told twice: {text}"
    );
    // Counted independently: the profile that was saved.
    let again = plumb(["analyze", saved, "--device", &name, "--json"]).json();
    let places = again["result"]["profiles"][0]["places"]
        .as_array()
        .expect("places");
    let ios: Vec<u64> = places
        .iter()
        .filter_map(|place| place["grids"][0]["all"]["ios"].as_u64())
        .collect();
    // Others may look for a label on the disk meanwhile, but nobody else reads the partitions.
    assert!(ios[0] >= 619, "{ios:?}");
    assert_eq!(ios[1..], [312, 307]);
}

/// 401 reads that begin 512 bytes past every block of an aligned partition stay a separate finding.
#[test]
fn io_that_no_layout_explains_are_a_finding_of_their_own() {
    require!(Bpf, Loop, Tool("dd"), Tool("sfdisk"), Tool("partx"));
    let folder = Folder::new("diagnose-own");
    let lab = Lab::within(&folder);
    let (name, first, second) = (lab.disk.name(), lab.name(1), lab.name(2));
    let args = [&name, "--grid", "4k", "--json"];
    let (code, text) = lab.diagnose(&args, [307, 401], || {
        read(&lab.part(1), 307, 0);
        read(&lab.part(2), 401, 512);
    });
    assert_eq!(code, Some(1), "{text}");
    let document = document(&text);
    let found = findings(&document, "misaligned-partition", &first);
    assert_eq!(
        found.iter().map(|one| seen(one).0).collect::<Vec<_>>(),
        [Some(307)]
    );
    let found = findings(&document, "misaligned-io", &name);
    let [finding] = found.as_slice() else {
        panic!("{} findings about {name}: {text}", found.len())
    };
    assert_eq!(finding["target"]["part"], json!({"partition": second}));
    let counted = &finding["facts"]["counted"];
    assert_eq!(
        (&counted["count"], &counted["of"]),
        (&401.into(), &401.into())
    );
}

/// As a person reads it: the summary first, and a partition through which nothing went says so. The page has the same.
#[test]
fn text_for_80_columns_and_a_page() {
    require!(Bpf, Loop, Tool("dd"), Tool("sfdisk"), Tool("partx"));
    let folder = Folder::new("diagnose-text");
    let lab = Lab::within(&folder);
    let (name, first, second) = (lab.disk.name(), lab.name(1), lab.name(2));
    let page = folder.path("page.html");
    let html = page.to_str().expect("text");
    let args = [&name, "--grid", "4k", "--html", html];
    let (code, text) = lab.diagnose(&args, [0, 307], || read(&lab.part(2), 307, 0));
    assert_eq!(code, Some(1), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let headline = text.lines().next().unwrap_or_default();
    assert!(
        headline.starts_with("MISFIT: ") && flat.contains("watched for "),
        "{text}"
    );
    for said in [
        &format!("WARNING misaligned-partition: 1 of 2, {first}"),
        &format!("No I/O passed through {first} in "),
        &format!("{second} 307 1.20 MiB 0 of 307 (0 %)"),
        &format!("dd (307 I/O to {second})"),
        "Stack, from the devices up",
    ] {
        assert!(flat.contains(said), "no `{said}` in\n{text}");
    }
    let is_command = |line: &str| {
        line.starts_with("    ") && !line.starts_with("     ")
            || line.starts_with("      way back: ")
    };
    assert!(
        text.lines()
            .all(|line| line.chars().count() <= 80 || is_command(line)),
        "{text}"
    );
    let page = fs::read_to_string(page).expect("the page");
    for said in [
        "<h2 id=\"findings\"",
        "misaligned-partition",
        "class=\"tree\"",
        "word-critical",
        "<svg",
    ] {
        assert!(page.contains(said), "no `{said}` in the page");
    }
}

/// The verdict of each layer. Numbers of nodes count other devices as well, which come and go.
fn stands(document: &Value) -> Vec<(String, String)> {
    let nodes = document["result"]["stack"]["nodes"]
        .as_array()
        .expect("nodes")
        .iter();
    let mut stands: Vec<_> = nodes
        .map(|node| (node["name"].to_string(), node["overall"].to_string()))
        .collect();
    stands.sort();
    assert!(stands.len() >= 3, "{stands:?}");
    stands
}

/// Without the watch it has the same result for a layout as a check.
#[test]
fn no_time_is_the_layout_alone() {
    require!(Loop, Tool("sfdisk"), Tool("partx"));
    let folder = Folder::new("diagnose-0");
    let lab = Lab::within(&folder);
    let name = lab.disk.name();
    let diagnosed = plumb(["diagnose", &name, "--grid", "4k", "--for", "0", "--json"]);
    let checked = plumb(["check", &name, "--grid", "4k", "--json"]);
    assert_eq!(diagnosed.code, checked.code);
    let (diagnosed, checked) = (diagnosed.json(), checked.json());
    assert_eq!(diagnosed["findings"], checked["findings"]);
    assert!(
        !findings(&diagnosed, "misaligned-partition", &lab.name(1)).is_empty(),
        "{diagnosed}"
    );
    assert_eq!(diagnosed["result"]["watched"], Value::Null);
    assert_eq!(stands(&diagnosed), stands(&checked));
}

#[test]
fn a_user_without_rights_sees_the_rest() {
    require!(Root, Loop, Tool("setpriv"), Tool("sfdisk"), Tool("partx"));
    let folder = Folder::new("diagnose-nobody");
    let lab = Lab::within(&folder);
    let as_nobody = |flag: &str| {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ]);
        command
            .arg(env!("CARGO_BIN_EXE_plumb"))
            .args(["diagnose", "--for", "1s", flag]);
        let done = command.limited_output();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let code = done.status.code();
        assert!(
            matches!(code, Some(1 | 3)),
            "{code:?}: not watched is never clean: {said}"
        );
        String::from_utf8(done.stdout).expect("text")
    };
    let text = as_nobody("-vv");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("I/O not watched") && flat.contains("expected CAP_BPF and CAP_PERFMON"),
        "{text}"
    );
    let is_repeated =
        |line: &str| line.starts_with("    sudo ") && line.ends_with("diagnose --for 1s -vv");
    assert!(text.lines().any(is_repeated), "{text}");
    let document = document(&as_nobody("--json"));
    assert_eq!(document["result"]["watched"], Value::Null);
    let unseen = document["result"]["unseen"].as_array().expect("a list");
    let has_command = |one: &&Value| {
        one["commands"][0]
            .as_str()
            .is_some_and(|command| command.starts_with("sudo "))
    };
    assert!(unseen.iter().filter(has_command).count() >= 1, "{unseen:?}");
    // Partitions are known from the contents of their disk.
    let unread = document["result"]["unread"].as_array().expect("a list");
    for (name, layer) in [(lab.disk.name(), "loop"), (lab.name(1), "partition")] {
        let of_name = unread.iter().find(|one| one["device"] == name.as_str());
        let one = of_name.unwrap_or_else(|| panic!("{name} in {unread:?}"));
        assert_eq!(one["layer"], layer);
    }
}

/// A loop device of a number of its own, which is taken away altogether.
struct Passing {
    number: u32,
}

/// From linux/loop.h: LOOP_CTL_ADD and LOOP_CTL_REMOVE.
fn loop_control(request: u32, number: u32) -> bool {
    let script = format!(
        "open F, '+<', '/dev/loop-control' or exit 1; ioctl(F, {request}, {number}) or exit 1;"
    );
    Command::new("perl")
        .args(["-e", &script])
        .status()
        .is_ok_and(|status| status.success())
}

impl Passing {
    fn new(image: &Path) -> Passing {
        let number = 3000 + std::process::id() % 1000;
        assert!(
            loop_control(0x4C80, number),
            "no loop device of number {number}"
        );
        let passing = Passing { number };
        run(Command::new("losetup").arg(passing.path()).arg(image));
        passing
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/loop{}", self.number))
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // Fails where it is gone already.
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(self.path())
            .output();
        loop_control(0x4C81, self.number);
    }
}

#[test]
fn a_disk_that_goes_away_keeps_its_name_and_counts() {
    require!(Bpf, Loop, Tool("dd"), Tool("perl"));
    let folder = Folder::new("diagnose-gone");
    let image = folder.file("disk", vec![0; 4 << 20]);
    let disk = Passing::new(&image);
    let name = format!("loop{}", disk.number);
    let diagnosing = Diagnosing::begin(&[&name, "--json"]);
    read(&disk.path(), 223, 0);
    let number = disk.number;
    drop(disk);
    assert!(
        !Path::new(&format!("/sys/class/block/loop{number}")).exists(),
        "it is still there"
    );
    let (code, text) = diagnosing.end();
    assert!(matches!(code, Some(0 | 1 | 3)), "{code:?}: {text}");
    let document = document(&text);
    let profiles = document["result"]["profiles"].as_array().expect("profiles");
    // Others may look for a label on it meanwhile.
    let mine = profiles
        .iter()
        .find(|profile| profile["target"]["device"] == name);
    assert!(
        mine.and_then(|profile| profile["ios"].as_u64()) >= Some(223),
        "{profiles:?}"
    );
    let senders = document["result"]["watched"]["processes"]
        .as_array()
        .expect("processes")
        .iter();
    let mut mine = senders.filter(|one| one["comm"] == "dd" && one["device"] == name);
    assert_eq!(
        mine.next().map(|one| &one["ios"]),
        Some(&Value::from(223)),
        "{text}"
    );
    let notes = document["result"]["notes"].as_array().expect("notes");
    let mut notes = notes.iter().filter_map(Value::as_str);
    let note = notes.find(|note| note.contains("went away") && note.contains(&name));
    insta::assert_snapshot!(recorded(note.expect("a note")));
}

#[test]
fn invalid_questions_are_refused() {
    let short = plumb(["diagnose", "--for", "50ms"]).ends(2).complaint();
    let unknown = plumb(["diagnose", "no-such-device", "--for", "0"]);
    // The names of the devices of this host follow.
    let unknown = unknown.ends(5).err.lines().take(1);
    let page = plumb(["diagnose", "--for", "0", "--html", "/no/such/folder/x.html"]);
    let page = page.ends(5).complaint();
    insta::assert_snapshot!([short, unknown.collect(), page].join("\n\n"));
    plumb(["diagnose", "--for", "0", "--known", "/dev/null/x"]).ends(5);
}

/// A directory in memory: its files are on no disk of this machine, so that reports are alike anywhere.
struct MemoryFolder {
    folder: Folder,
}

impl MemoryFolder {
    fn new(name: &str) -> MemoryFolder {
        let folder = Folder::new(name);
        run(Command::new("mount")
            .args(["-t", "tmpfs", "tmpfs"])
            .arg(folder.path("")));
        MemoryFolder { folder }
    }
}

impl Drop for MemoryFolder {
    fn drop(&mut self) {
        // Out of sight at least, and gone when its last user is.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.folder.path(""))
            .status();
    }
}

/// Words without parts that differ between runs: numbers of loop devices, times, latency comparisons, and the marks of
/// a tree before each line, because line breaks depend on the lengths of names.
fn lasting(text: &str) -> Vec<String> {
    let is_time =
        |word: &str| ["s", "ms", "µs", "ns"].contains(&word.trim_end_matches([',', ';', ':', '.']));
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| *word != "│")
        .collect();
    let mut lasting: Vec<String> = Vec::new();
    let mut is_compared = false;
    for (at, word) in words.iter().enumerate() {
        is_compared = (is_compared || *word == "Unaligned") && *word != "-";
        if is_compared {
            continue;
        }
        let is_number = word.starts_with(|letter: char| letter.is_ascii_digit());
        if is_number && words.get(at + 1).is_some_and(|next| is_time(next)) {
            lasting.push("TIME".to_owned());
            continue;
        }
        lasting.push(match word.split_once("loop") {
            Some((head, tail)) => {
                format!(
                    "{head}loop{}",
                    tail.trim_start_matches(|c: char| c.is_ascii_digit())
                )
            }
            None => (*word).to_owned(),
        });
    }
    lasting
}

/// The parts of a report about the misaligned partition, about the I/O through both, and the tree.
fn parts(report: &str) -> [String; 3] {
    let part = |from: &str| {
        let begin = report
            .find(from)
            .unwrap_or_else(|| panic!("no `{from}` in\n{report}"));
        let len = report[begin..].find("\n\n").unwrap_or(report.len() - begin);
        report[begin..begin + len].to_owned()
    };
    // Others may look for a label on the disk meanwhile, so its own line is left out.
    let is_of_part = |line: &&str| {
        let name = line.split_whitespace().next().unwrap_or_default();
        let disk = name
            .trim_end_matches(|letter: char| letter.is_ascii_digit())
            .strip_suffix('p');
        disk.is_some_and(|disk| disk.ends_with(|letter: char| letter.is_ascii_digit()))
    };
    let io = part("\nI/O seen in")
        .lines()
        .filter(is_of_part)
        .collect::<Vec<_>>()
        .join("\n");
    [
        part("\nWARNING  misaligned-partition"),
        io,
        part("\nStack, from"),
    ]
}

/// `examples/diagnose.md`: a disk and I/O as on the page, and the output for them.
#[test]
fn the_worked_session_is_true() {
    require!(
        Bpf,
        Loop,
        Root,
        Tool("dd"),
        Tool("sfdisk"),
        Tool("partx"),
        Tool("mount")
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/diagnose.md");
    let page = fs::read_to_string(page).expect("the page");
    let memory = MemoryFolder::new("diagnose-session");
    let lab = Lab::within(&memory.folder);
    let dd = |args: &str| run(Command::new("sh").args(["-c", args]));
    let is_io = |line: &&str| line.starts_with("# dd ") && line.contains("/dev/loop0p");
    let sessions: Vec<&str> = page.lines().filter(is_io).collect();
    assert_eq!(sessions.len(), 3, "{sessions:?}");
    assert!(
        is_block(&lab.part(1)) && is_block(&lab.part(2)),
        "dd never makes a file of that name"
    );
    // 1,511 reads and 503 writes through the first partition, 1,009 reads through the second.
    let (code, text) = lab.diagnose(&[&lab.disk.name()], [2014, 1009], || {
        for line in &sessions {
            dd(&line
                .trim_start_matches("# ")
                .replace("/dev/loop0", &lab.disk.path().display().to_string()));
        }
    });
    assert_eq!(code, Some(1), "{text}");
    let image = memory.folder.path("disk").display().to_string();
    let now = text.replace(&image, "/mnt/lab/disk");
    for (now, was) in parts(&now).into_iter().zip(parts(&page)) {
        assert_eq!(
            lasting(&now),
            lasting(&was),
            "\nit prints now:{now}\n\nthe page says:{was}"
        );
    }
}

/// `plumb diagnose DEVICE` judges the device, and the layers below and above it: a finding on another disk is one line. A
/// configuration and a flag accept findings of a diagnosis too, until their last day.
#[test]
fn only_the_target_is_diagnosed() {
    require!(Loop, Root, Tool("sfdisk"), Tool("partx"));
    let (folder, other) = (
        Folder::new("diagnose-target"),
        Folder::new("diagnose-other"),
    );
    let (lab, beside) = (Lab::within(&folder), Lab::within(&other));
    let ignored = ["--ignore", "queue-setting", "--ignore", "read-ahead-off"];
    let diagnose = |target: &str, flags: &[&str]| {
        let args = ["diagnose", "--for", "0", target].into_iter();
        plumb(args.chain(ignored).chain(flags.iter().copied()))
    };
    let (first, second) = (lab.name(1), lab.name(2));
    diagnose(&lab.disk.name(), &[])
        .ends(1)
        .says(&format!("MISFIT: {first} starts 1 KiB (2 sectors) past"))
        .says(&beside.name(1))
        .says("`plumb diagnose` without a device shows them.");
    // The second partition starts on a block, and the first is neither below nor above it.
    let aligned = diagnose(&second, &[]);
    assert_ne!(aligned.code, 1, "{}", aligned.out);
    aligned.says("Not asked").says(&first);
    let config = |until: &str| {
        let text = format!(
            "[[accept]]\nrule = \"misaligned-partition\"\ndevice = \"{first}\"\nreason = \"read-only archive\"\nuntil = {until}\n"
        );
        folder.file("config.toml", text).display().to_string()
    };
    let accepted = diagnose(&first, &["--config", &config("2999-12-31")]);
    assert_ne!(accepted.code, 1, "{}", accepted.out);
    let lines = recorded_lines(&accepted.said(), &["Accepted until"]);
    insta::assert_snapshot!(lines);
    diagnose(&first, &["--config", &config("2020-01-31")]).ends(1);
    let rule = format!("misaligned-partition:{first}");
    let by_flag = diagnose(&first, &["--ignore", &rule]);
    assert_ne!(by_flag.code, 1, "{}", by_flag.out);
    diagnose(
        &first,
        &["--ignore", &format!("misaligned-partition:{second}")],
    )
    .ends(1);
}
