//! The units under systemd: the rights of their processes, an action for each directive of their sandboxes, and the memory of the
//! agent with 128 possible processors: see `lab/systemd-guest`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plumb_testkit::require;

use crate::in_guests::{program, run_lab};

const UNITS: [(&str, &str); 2] = [
    (
        "agent",
        include_str!("../../../../../packaging/systemd/plumb-agent.service"),
    ),
    (
        "survey",
        include_str!("../../../../../packaging/systemd/plumb-survey.service"),
    ),
];

/// Directives of a service that limit nothing: the start, the end, the folder for the document, and the priority of the survey.
const NO_SANDBOX: [&str; 14] = [
    "Type",
    "ExecStart",
    "ExecReload",
    "Restart",
    "RestartSec",
    "WatchdogSec",
    "SuccessExitStatus",
    "TimeoutStartSec",
    "survey RuntimeDirectory",
    "survey RuntimeDirectoryMode",
    "survey RuntimeDirectoryPreserve",
    "survey UMask",
    "survey Nice",
    "survey IOSchedulingClass",
];

/// `CAP_PERFMON` (38) and `CAP_BPF` (39).
const PROGRAMS: u64 = 1 << 38 | 1 << 39;

/// The limit of the memory of the agent, as docs/history.md states it.
const MEMORY_MAX: u64 = 160 << 20;

/// The result of an action in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
    /// The unit did not get to it.
    Missing,
}

impl Outcome {
    fn from_words(words: &str) -> Outcome {
        match words {
            "done" => Outcome::Done,
            "" => Outcome::Missing,
            // By an error, or by the end of the process.
            _ => Outcome::Refused,
        }
    }
}

fn text(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The directives of a sandbox, each with its words.
fn sandbox_of(unit: &str, source: &'static str) -> BTreeMap<&'static str, Vec<&'static str>> {
    let (_, service) = source.split_once("[Service]").expect("a service");
    let (service, _) = service.split_once("[Install]").unwrap_or((service, ""));
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in service.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let in_unit = format!("{unit} {name}");
        if !NO_SANDBOX.contains(&name) && !NO_SANDBOX.contains(&in_unit.as_str()) {
            found
                .entry(name)
                .or_default()
                .extend(value.split_whitespace());
        }
    }
    found
}

#[test]
fn units_are_confined_under_systemd() {
    require!(Qemu, Tool("apt-get"), Tool("cc"));
    let out = plumb_testkit::temp_dir("systemd-guest");
    run_lab(
        "systemd-guest",
        [out.path().as_os_str(), program().as_os_str()],
    );
    let directory = out.path();
    assert_eq!(
        text(directory, "start.status").trim(),
        "0",
        "{}",
        text(directory, "journal")
    );
    let failed = fs::read_to_string(directory.join("failed")).unwrap_or_default();
    assert_eq!(failed, "", "{}", text(directory, "journal"));
    check_service(directory);
    check_folders(directory, &check_rights(directory));
    check_memory(directory);
    check_actions(directory);
}

/// Start, metrics, survey, reload, watchdog and stop.
fn check_service(directory: &Path) {
    for command in [
        "metrics", "survey", "reload", "security", "restart", "history", "stop",
    ] {
        let status = text(directory, &format!("{command}.status"));
        assert_eq!(
            status.trim(),
            "0",
            "{command}: {}",
            text(directory, command)
        );
    }
    for (name, expected) in [
        ("state", &["ActiveState=active", "SubState=running"][..]),
        ("after-reload", &["ActiveState=active", "NRestarts=0"]),
        // Signs of life came in time before the agent was stopped.
        ("watched", &["NRestarts=0", "WatchdogUSec=1min"]),
        ("result", &["ActiveState=inactive", "Result=success"]),
    ] {
        let found = text(directory, name);
        for property in expected {
            let has_it = found.lines().any(|line| line == *property);
            assert!(has_it, "{name}: no {property} in {found}");
        }
    }
    // Each of the disks was read 1,009 times.
    let metrics = text(directory, "metrics");
    let exact = metrics
        .lines()
        .filter(|line| line.starts_with("plumb_ios_total{") && line.ends_with(" 1009"));
    assert!(exact.count() >= 3, "{metrics}");
    let journal = text(directory, "journal");
    assert!(journal.contains("Watchdog timeout"), "{journal}");
}

/// The state and the requests are for the agent alone, and the survey is for all users.
fn check_folders(directory: &Path, user: &str) {
    let expected = format!("700 {user} directory\n700 {user} directory\n");
    assert_eq!(text(directory, "state-owner"), expected);
    let expected = format!("600 {user} regular file\n");
    assert_eq!(text(directory, "history-owner"), expected);
    assert_eq!(text(directory, "survey-owner"), "644 0 regular file\n");
}

/// All threads of the agent have no capability, and all of the helper the two of a recorder. Returns the number of their user.
fn check_rights(directory: &Path) -> String {
    let mut users = BTreeSet::new();
    for (folder, kinds) in [
        ("processes", &["agent"][..]),
        ("processes-recording", &["agent", "helper"]),
    ] {
        let mut seen = BTreeSet::new();
        for entry in fs::read_dir(directory.join(folder)).expect("the threads") {
            let name = entry.expect("an entry").file_name();
            let name = name.to_str().expect("a name");
            let status = text(directory, &format!("{folder}/{name}"));
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                let words = line.unwrap_or_else(|| panic!("no {name} in {status}"));
                words.split_whitespace().collect::<Vec<_>>()
            };
            let set = |name: &str| u64::from_str_radix(field(name)[0], 16).expect("a set");
            let (kind, _) = name.split_once('-').expect("kind and number");
            let kept = if kind == "helper" { PROGRAMS } else { 0 };
            let sets = ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:", "CapBnd:"].map(set);
            assert_eq!(sets, [kept, kept, 0, 0, PROGRAMS], "{folder}/{name}");
            assert_eq!(field("NoNewPrivs:"), ["1"], "{folder}/{name}");
            // A filter.
            assert_eq!(field("Seccomp:"), ["2"], "{folder}/{name}");
            for ids in [field("Uid:"), field("Gid:")] {
                // The numbers that systemd gives to users without a name of their own.
                let is_dynamic = |id: &&str| (61_184..=65_519).contains(&id.parse().unwrap_or(0));
                assert!(ids.iter().all(is_dynamic), "{folder}/{name}: {ids:?}");
                users.extend(ids.into_iter().map(str::to_owned));
            }
            seen.insert(kind.to_owned());
        }
        let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
        assert_eq!(seen, kinds, "{folder}");
    }
    // The group has the number of the user, also after a restart.
    assert_eq!(users.len(), 1, "{users:?}");
    users.pop_first().expect("a user")
}

/// The memory of the cgroup stays below the limit by itself, with the counters for 128 processors.
fn check_memory(directory: &Path) {
    assert_eq!(text(directory, "possible").trim(), "0-127");
    let number = |name: &str| -> u64 {
        let text = text(directory, &format!("memory/{name}"));
        text.trim().parse().expect("a number")
    };
    let (peak, current) = (number("peak"), number("current"));
    assert!(current <= peak && peak <= MEMORY_MAX, "{peak} bytes");
    // The maps of the programs have room for each possible processor. With two, they take some MiB.
    let stat = text(directory, "memory/stat");
    let maps = stat.lines().find_map(|line| line.strip_prefix("vmalloc "));
    let maps: u64 = maps.expect("a line").parse().expect("a number");
    assert!(maps >= 32 << 20, "{stat}");
    // The kernel had nothing to take back at the limit of the unit.
    let events = text(directory, "memory/events");
    for line in ["max 0", "oom 0", "oom_kill 0"] {
        assert!(events.lines().any(|found| found == line), "{events}");
    }
}

/// Each directive of a sandbox has an action; and that is refused, or done, because of the directive.
fn check_actions(directory: &Path) {
    let text = text(directory, "tries.tsv");
    let mut tried = BTreeSet::new();
    let mut wrong = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [unit, directive, kind, _action, whole, without, neither] = fields[..] else {
            panic!("{line}");
        };
        tried.insert((unit, directive));
        // The unit, the unit without directives that forbid the same, and that one without the directive.
        let expected = match kind {
            "forbids" => [Outcome::Refused, Outcome::Refused, Outcome::Done],
            "allows" => [Outcome::Done, Outcome::Done, Outcome::Refused],
            _ => panic!("{line}"),
        };
        if [whole, without, neither].map(Outcome::from_words) != expected {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (unit, source) in UNITS {
        for (directive, words) in sandbox_of(unit, source) {
            // A group of system calls is tried as a whole.
            let is_list = [
                "AmbientCapabilities",
                "CapabilityBoundingSet",
                "SystemCallFilter",
            ];
            let is_word = |word: &&str| is_list.contains(&directive) && !word.starts_with('@');
            let rows = words.iter().filter(|word| is_word(word));
            let rows = rows.map(|word| format!("{directive}:{word}"));
            let is_granted = directive == "AmbientCapabilities";
            for row in rows.chain((!is_granted).then(|| directive.to_owned())) {
                assert!(
                    tried.contains(&(unit, row.as_str())),
                    "{unit}: no action for {row}"
                );
            }
        }
    }
}
