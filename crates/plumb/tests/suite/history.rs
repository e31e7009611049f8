//! `plumb agent` and `plumb history`: I/O that are counted are stored once, and found again by their time.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use plumb_testkit::cgroup::Cgroup;
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{Rng, require, skip, wait};
use serde_json::Value;

use crate::common::attached::await_programs;
use crate::common::direct::DirectReader;
use crate::common::{Folder, Ran, plumb, recorded, without_times};

/// Seconds between the epochs of Windows and Unix.
const FILETIME_ZERO: u64 = 11_644_473_600;

/// Yesterday at 10:00 UTC, in seconds since 1970.
fn yesterday() -> u64 {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("a clock");
    (now.as_secs() / 86_400 - 1) * 86_400 + 36_000
}

/// Reads of 8 KiB that start a sector past a page, one each second from a time on, in the MSR format.
fn trace(folder: &Folder, name: &str, from: u64, count: u64) -> String {
    trace_past(folder, name, from, count, 512)
}

/// The same with starts this number of bytes past a page.
fn trace_past(folder: &Folder, name: &str, from: u64, count: u64, past: u64) -> String {
    let mut rng = Rng::new(from);
    let line = |at: u64| {
        let time = (FILETIME_ZERO + from + at) * 10_000_000;
        let start = rng.below(1 << 20) * 8192 + past;
        format!("{time},host,0,Read,{start},8192,{}\n", 1000 + at % 7)
    };
    let lines: String = (0..count).map(line).collect();
    folder.file(name, lines).display().to_string()
}

fn history(folder: &Folder, args: &[&str]) -> Ran {
    let store = folder.path("store").display().to_string();
    let args: Vec<&str> = [&["history"], args, &["--state-dir", &store]].concat();
    plumb(args)
}

/// The bound that `plumb history estimate` names. The length in use follows the release of SQLite.
fn bound(ran: &Ran) -> String {
    let passage = ran.ends(0).passages(&["in use"]);
    passage.split_once(" of ").expect("a bound").1.to_owned()
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("a number: {value}"))
}

/// Saves the profile of a trace and adds it to the history.
fn import(folder: &Folder, name: &str, from: u64, count: u64) {
    let trace = trace(folder, &format!("{name}.csv"), from, count);
    let saved = folder.path(name).display().to_string();
    plumb(["analyze", &trace, "--save", &saved]).ends(1);
    history(folder, &["import", &saved]).ends(0);
}

#[test]
fn imported_profiles_are_found_by_their_time() {
    let folder = Folder::new("history-import");
    let begin = yesterday();
    import(&folder, "first", begin, 200);
    import(&folder, "second", begin + 7_200, 250);
    let list = history(&folder, &["list", "--json"]).json();
    let devices = &list["result"]["is"];
    assert_eq!(list["result"]["kind"], "devices");
    assert_eq!(devices.as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(devices[0]["device"], "host_0");
    // The whole time, and each of the two windows alone.
    let time = |seconds: u64| {
        humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    };
    let hour = |from: u64| format!("history:host_0@{}..{}", time(from), time(from + 3_600));
    let analyzed = |span: &str| {
        let store = folder.path("store").display().to_string();
        let document = plumb(["analyze", "--json", span, "--state-dir", &store]).json();
        number(&document["result"]["profiles"][0]["ios"])
    };
    assert_eq!(analyzed("history:host_0"), 450);
    assert_eq!(analyzed(&hour(begin)), 200);
    assert_eq!(analyzed(&hour(begin + 7_200)), 250);
    // The totals over time, for a person and for another program.
    let csv = history(&folder, &["export", "host_0"]).ends(0).out.clone();
    let columns: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let sum = |name: &str| -> u64 {
        let at = columns[0]
            .iter()
            .position(|column| *column == name)
            .expect(name);
        columns[1..]
            .iter()
            .map(|row| row[at].parse::<u64>().expect("a count"))
            .sum()
    };
    let open = history(&folder, &["show", "host_0", "--json"]).json();
    let course = &open["result"]["is"][0];
    let open = course["open"]["ios"].as_u64().unwrap_or(0);
    assert_eq!(sum("ios") + open, 450, "{csv}{course}");
    assert_eq!(sum("ios"), sum("misaligned_4k"), "all start off 4 KiB");
    assert_eq!(columns[1][3], "300", "the finest windows: {csv}");
    let faults = crate::common::schema::Schema::read("history").faults(&list);
    assert_eq!(faults, [""; 0]);
    history(&folder, &["verify"]).ends(0).says("sound");
    insta::assert_snapshot!(bound(&history(&folder, &["estimate"])));
    // A copy is as good.
    let copy = folder.path("copy");
    std::fs::create_dir(&copy).expect("room");
    let to = copy.display().to_string();
    history(&folder, &["backup", &to]).ends(0);
    let copied = plumb(["analyze", "--json", "history:host_0", "--state-dir", &to]).json();
    assert_eq!(number(&copied["result"]["profiles"][0]["ios"]), 450);
    // The same time on both sides.
    let store = folder.path("store").display().to_string();
    let same = plumb(["compare", &hour(begin), &hour(begin), "--state-dir", &store]);
    assert!(
        !same.out.contains("BETTER") && !same.out.contains("WORSE"),
        "{}",
        same.out
    );
    assert!(same.out.contains("host_0"), "{}{}", same.out, same.err);
}

/// Devices, their identities and names of a history.
fn devices(folder: &Folder) -> Vec<(String, Vec<String>)> {
    let list = history(folder, &["list", "--json"]).ends(0).json();
    let devices = list["result"]["is"].as_array().expect("devices");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let names = |device: &Value| {
        let names = device["names"].as_array().expect("names");
        names.iter().map(|name| text(&name["name"])).collect()
    };
    let described = devices
        .iter()
        .map(|device| (text(&device["identity"]), names(device)));
    described.collect()
}

/// A profile joins the device that had its name, or the device that the command names.
#[test]
fn imported_profiles_join_their_device() {
    let folder = Folder::new("history-as");
    let begin = yesterday();
    let save = |name: &str, from: u64, host: &str| {
        let trace = trace(&folder, &format!("{name}.csv"), from, 200);
        let text = std::fs::read_to_string(&trace).expect("the trace");
        std::fs::write(&trace, text.replace(",host,", &format!(",{host},"))).expect("room");
        let saved = folder.path(name).display().to_string();
        plumb(["analyze", &trace, "--save", &saved]).ends(1);
        saved
    };
    let (first, second) = (
        save("first", begin, "host"),
        save("second", begin + 7_200, "host"),
    );
    let (other, later) = (
        save("other", begin + 3_600, "db"),
        save("later", begin + 14_400, "db"),
    );
    let mut messages = vec![
        history(&folder, &["import", &first, "--as", "naa.5"])
            .ends(0)
            .complaint(),
    ];
    history(&folder, &["import", &second]).ends(0);
    let of_host = vec!["host_0".to_owned()];
    assert_eq!(devices(&folder), [("naa.5".to_owned(), of_host.clone())]);
    // A profile of another host changes the name of no device.
    history(&folder, &["import", &other, "--as", "naa.5"]).ends(0);
    assert_eq!(devices(&folder), [("naa.5".to_owned(), of_host.clone())]);
    history(&folder, &["import", &later]).ends(0);
    let of_db = ("db_0".to_owned(), vec!["db_0".to_owned()]);
    assert_eq!(devices(&folder), [of_db, ("naa.5".to_owned(), of_host)]);
    messages.push(
        history(&folder, &["import", &first, &other, "--as", "naa.5"])
            .ends(2)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
    let store = folder.path("store").display().to_string();
    let document = plumb(["analyze", "--json", "history:naa.5", "--state-dir", &store]).json();
    assert_eq!(number(&document["result"]["profiles"][0]["ios"]), 600);
}

/// The identity of a LUN names all paths to it, and one path is named by its whole identity.
#[test]
fn an_identity_names_all_its_paths() {
    let folder = Folder::new("history-paths");
    for (name, path) in [
        ("first", "naa.5/2:0:0:1"),
        ("second", "naa.5/3:0:0:1"),
        ("other", "naa.55"),
    ] {
        let trace = trace(&folder, &format!("{name}.csv"), yesterday(), 200);
        let saved = folder.path(name).display().to_string();
        plumb(["analyze", &trace, "--save", &saved]).ends(1);
        history(&folder, &["import", &saved, "--as", path]).ends(0);
    }
    let shown = |device: &str| -> Vec<String> {
        let shown = history(&folder, &["show", device, "--json"]).ends(0).json();
        let courses = shown["result"]["is"].as_array().expect("courses");
        let identity = |course: &Value| course["identity"].as_str().expect("text").to_owned();
        courses.iter().map(identity).collect()
    };
    assert_eq!(shown("naa.5"), ["naa.5/2:0:0:1", "naa.5/3:0:0:1"]);
    assert_eq!(shown("naa.5/3:0:0:1"), ["naa.5/3:0:0:1"]);
    assert_eq!(shown("naa.55"), ["naa.55"]);
}

/// The bounds and the folder are those of the agent's configuration.
#[test]
fn the_configuration_bounds_the_history() {
    let folder = Folder::new("history-config");
    let store = folder.path("store").display().to_string();
    let text = format!("state_dir = \"{store}\"\nhistory_max = \"512m\"\nkeep_days = \"1000d\"\n");
    let config = folder.file("agent.toml", text).display().to_string();
    let configured =
        |args: &[&str]| -> Ran { plumb([&["history"], args, &["--config", &config]].concat()) };
    let begin = yesterday() - 800 * 86_400;
    let trace = trace(&folder, "old.csv", begin, 200);
    let saved = folder.path("old").display().to_string();
    plumb(["analyze", &trace, "--save", &saved]).ends(1);
    let refused = history(&folder, &["import", &saved]).ends(2).complaint();
    let mut messages = vec![without_times(&refused)];
    // Twice: the second one deletes windows that are past their time.
    configured(&["import", &saved]).ends(0);
    configured(&["import", &saved]).ends(0);
    let list = history(&folder, &["list", "--json"]).json();
    let from = list["result"]["is"][0]["from"].as_str().expect("a begin");
    let day =
        humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(begin));
    assert_eq!(from[..10], day.to_string()[..10]);
    messages.push(bound(&configured(&["estimate"])));
    configured(&["verify"]).ends(0).says("sound");
    let pruned = configured(&["prune", "--keep", "900d"]).ends(0).complaint();
    messages.push(without_times(&pruned));
    let copy = folder.path("copy");
    std::fs::create_dir(&copy).expect("room");
    configured(&["backup", &copy.display().to_string()]).ends(0);
    assert!(copy.join("history.db").exists());
    // Named flags come first, and a mistake is an error.
    configured(&["estimate", "--state-dir", "/absent"]).ends(5);
    let bad = folder
        .file("bad.toml", "keep_day = \"1d\"\n")
        .display()
        .to_string();
    messages.push(
        plumb(["history", "estimate", "--config", &bad])
            .ends(2)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Without `--state-dir` the commands read the folder of `/etc/plumb/agent.toml`.
#[test]
fn the_agent_names_the_folder() {
    require!(Root, Tool("unshare"));
    let folder = Folder::new("history-folder");
    let trace = trace(&folder, "one.csv", yesterday(), 200);
    let saved = folder.path("one").display().to_string();
    plumb(["analyze", &trace, "--save", &saved]).ends(1);
    history(&folder, &["import", &saved]).ends(0);
    let store = folder.path("store").display().to_string();
    let with_file = |text: &str, args: &[&str]| -> Ran {
        let script = "mount -t tmpfs none /etc && mkdir /etc/plumb && echo \"$0\" >/etc/plumb/agent.toml && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "sh",
            "-c",
            script,
            text,
            env!("CARGO_BIN_EXE_plumb"),
        ]);
        Ran::from_output(wait::output_of(command.args(args)))
    };
    let names_it = format!("state_dir = \"{store}\"");
    let named = history(&folder, &["list"]);
    assert_eq!(
        with_file(&names_it, &["history", "list"]).ends(0).out,
        named.out
    );
    let device = history(&folder, &["list", "--json"]).json()["result"]["is"][0]["device"].clone();
    let span = format!("history:{}", device.as_str().expect("a name"));
    with_file(&names_it, &["analyze", &span]).ends(1);
    // A named folder needs no configuration, and neither does a file.
    let mistake = "state_dri = 1";
    with_file(mistake, &["history", "list", "--state-dir", &store]).ends(0);
    with_file(mistake, &["analyze", &saved]).ends(1);
    insta::assert_snapshot!(with_file(mistake, &["history", "list"]).ends(2).complaint());
}

#[test]
fn mistakes_are_named() {
    let folder = Folder::new("history-mistakes");
    let mut messages = vec![history(&folder, &["list"]).ends(5).complaint()];
    import(&folder, "first", yesterday(), 200);
    messages.push(history(&folder, &["show", "sdx"]).ends(5).complaint());
    messages.push(
        history(&folder, &["show", "host_0@monday"])
            .ends(2)
            .complaint(),
    );
    let old = trace(&folder, "old.csv", 1_000_000_000, 200);
    let saved = folder.path("old").display().to_string();
    plumb(["analyze", &old, "--save", &saved]).ends(1);
    messages.push(history(&folder, &["import", &saved]).ends(2).complaint());
    messages.push(history(&folder, &["import", &old]).ends(2).complaint());
    let store = folder.path("store").display().to_string();
    messages.push(
        plumb([
            "analyze",
            "history:host_0@3d",
            "--since",
            "10s",
            "--state-dir",
            &store,
        ])
        .ends(2)
        .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
}

fn agent(store: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["agent", "--interval", "1s", "--state-dir"])
        .arg(store)
        .stderr(Stdio::piped())
        .spawn()
        .expect("plumb runs")
}

/// An agent stores every I/O once: those before the signal that ends it too. A second agent on the same folder is refused.
#[test]
fn an_agent_stores_every_io() {
    require!(Bpf, Loop, Root);
    let folder = Folder::new("history-agent");
    let image = folder.file("disk", vec![1; 8 << 20]);
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let store = folder.path("store");
    let running = agent(&store);
    await_programs(running.id());
    wait::until("the history is open", wait::PATIENCE, || {
        store.join("history.db").exists()
    });
    let second = wait::output("the second agent", wait::PATIENCE, agent(&store));
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(5), "{said}");
    insta::assert_snapshot!(recorded(&said));
    let mut reader = DirectReader::open(disk.path(), 4096);
    for number in 0..500 {
        reader.read_at(number % 1024 * 4096).expect("a read");
        if number % 100 == 0 {
            // Over several readings of the counts.
            std::thread::sleep(Duration::from_millis(700));
        }
    }
    let pid = rustix::process::Pid::from_raw(running.id().cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let done = wait::output("the agent", wait::PATIENCE, running);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    let span = format!("history:{}", disk.name());
    let document = plumb([
        "analyze",
        "--json",
        &span,
        "--state-dir",
        &store.display().to_string(),
    ])
    .json();
    let profile = &document["result"]["profiles"][0];
    // Partition tables are looked for when a disk appears, which is before the agent.
    assert_eq!(number(&profile["ios"]), 500, "{profile}");
    // The windows of five minutes that are over, and the one that is not: a window may have ended while the disk was read.
    let shown = history(&folder, &["show", &disk.name(), "--json"]).json();
    let course = &shown["result"]["is"][0];
    let windows = course["windows"].as_array().expect("windows");
    let ended: u64 = windows.iter().map(|window| number(&window["ios"])).sum();
    let open = course["open"]["ios"].as_u64().unwrap_or(0);
    assert_eq!(ended + open, 500, "{course}");
    let shown = history(&folder, &["show", &disk.name()]);
    shown.ends(0);
    if open > 0 {
        shown.says(&format!("{open} I/O"));
        shown.says("its window is not over");
    }
    history(&folder, &["verify"]).ends(0);
}

/// The senders of a time are those that read, each with its cgroup, also one that began after the agent did.
#[test]
fn senders_of_a_time_are_listed() {
    require!(Bpf, Loop, Root, Tool("dd"));
    if Cgroup::new().is_none() {
        skip!("no cgroup of version 2 can be made");
    }
    let folder = Folder::new("history-senders");
    let image = folder.file("disk", vec![1; 8 << 20]);
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let store = folder.path("store");
    let running = agent(&store);
    await_programs(running.id());
    // The agent does not know it as yet.
    let cgroup = Cgroup::new().expect("another one");
    let from = disk.path().display();
    for (enter, count) in [(String::new(), 500), (cgroup.enter("/inner"), 97)] {
        let dd = format!(
            "{enter} exec dd if={from} of=/dev/null iflag=direct bs=4096 count={count} status=none"
        );
        run(Command::new("sh").args(["-c", &dd]));
    }
    let pid = rustix::process::Pid::from_raw(running.id().cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let done = wait::output("the agent", wait::PATIENCE, running);
    assert_eq!(done.status.code(), Some(0));
    let ran = history(&folder, &["senders", &disk.name(), "--json"]);
    let document = ran.ends(0).json();
    let faults = crate::common::schema::Schema::read("history").faults(&document);
    assert_eq!(faults, [""; 0]);
    let list = &document["result"]["is"][0];
    if number(&list["unknown"]) > 0 {
        plumb_testkit::undecided!("other processes of the host filled the table of senders");
    }
    let senders = list["senders"].as_array().expect("senders");
    let sent: Vec<(&str, u64, u64)> = senders
        .iter()
        .map(|sender| {
            let (ios, bytes) = (number(&sender["ios"]), number(&sender["bytes"]));
            (sender["command"].as_str().expect("a word"), ios, bytes)
        })
        .collect();
    assert_eq!(
        sent,
        [("dd", 500, 500 * 4096), ("dd", 97, 97 * 4096)],
        "{list}"
    );
    let inner = cgroup.inner_name();
    assert_ne!(senders[0]["cgroup"], inner, "{list}");
    assert_eq!(senders[1]["cgroup"], inner, "{list}");
    assert_eq!(senders[1]["owner"]["cgroup"], inner, "{list}");
    let rest = ["others", "damaged", "unknown"].map(|of| &list[of]);
    assert_eq!(number(&rest[0]["ios"]), 0, "{list}");
    assert_eq!((number(rest[1]), number(rest[2])), (0, 0), "{list}");
    history(&folder, &["senders", &disk.name()])
        .ends(0)
        .says(&format!("dd of cgroup {inner}"));
    history(&folder, &["senders", "sdx"]).ends(5);
}

/// Thirty days on the grid, then ten off it: the report names the day; with a short history it says how many windows it needs.
#[test]
fn a_misfit_that_rose_is_found_in_the_history() {
    let folder = Folder::new("history-changes");
    let first_day = yesterday() - 40 * 86_400;
    let saved: Vec<String> = (0..40)
        .map(|day| {
            let past = if day < 30 { 0 } else { 512 };
            let from = first_day + day * 86_400;
            let trace = trace_past(&folder, &format!("{day}.csv"), from, 240, past);
            let saved = folder.path(&format!("{day}.plumb")).display().to_string();
            // Unknown beyond the assumed grid, or a warning.
            let status = if past == 0 { 3 } else { 1 };
            plumb(["analyze", &trace, "--save", &saved]).ends(status);
            saved
        })
        .collect();
    let import = |days: &[String]| {
        let args: Vec<&str> = std::iter::once("import")
            .chain(days.iter().map(String::as_str))
            .collect();
        history(&folder, &args).ends(0);
    };
    import(&saved[..7]);
    let few = history(&folder, &["changes"]);
    import(&saved[7..]);
    let text = history(&folder, &["changes"]);
    let day = |day: u64| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(first_day + day * 86_400);
        humantime::format_rfc3339_seconds(at).to_string()[..10].to_owned()
    };
    let rose = text
        .ends(1)
        .says(&day(30))
        .passages(&["misfit-rose", "Since"]);
    let mut messages = vec![
        few.ends(3).passages(&["unknown:"]),
        rose.replace(&day(30), "DAY"),
        text.passages(&["no change"]),
    ];
    let ran = history(&folder, &["changes", "host_0", "--json"]);
    let document = ran.ends(1).json();
    let faults = crate::common::schema::Schema::read("history").faults(&document);
    assert_eq!(faults, [""; 0]);
    let findings = document["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{document}");
    let time = &findings[0]["facts"]["time"];
    let midnight = (first_day + 30 * 86_400) / 86_400 * 86_400;
    assert_eq!(time["since_ns"], midnight * 1_000_000_000, "{time}");
    assert_eq!(
        (
            number(&time["windows_before"]),
            number(&time["windows_after"])
        ),
        (30, 10)
    );
    let searched = &document["result"]["is"][0];
    assert_eq!(
        (
            number(&searched["windows"]),
            number(&searched["window_seconds"])
        ),
        (40, 86_400)
    );
    // Before that day nothing changed.
    let span = format!("host_0@{}..{}", day(0), day(30));
    let before = history(&folder, &["changes", &span]);
    messages.push(before.ends(0).passages(&["no change"]));
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A dump has the I/O of its time and is a profile like others; after a prune older windows are gone, and nothing else.
#[test]
fn dumps_and_prunes_take_their_time_alone() {
    let folder = Folder::new("history-dump");
    let first = yesterday() - 8 * 86_400;
    for day in 0..9 {
        import(
            &folder,
            &format!("day{day}"),
            first + day * 86_400,
            200 + day,
        );
    }
    let ios = |file: &Path| {
        let document = plumb(["analyze".as_ref(), file.as_os_str(), "--json".as_ref()]).json();
        number(&document["result"]["profiles"][0]["ios"])
    };
    let of_span = |span: &str| {
        let store = folder.path("store").display().to_string();
        let ran = plumb(["analyze", "--json", span, "--state-dir", &store]);
        number(&ran.json()["result"]["profiles"][0]["ios"])
    };
    let out = folder.path("dump.plumb");
    let to = out.display().to_string();
    history(&folder, &["dump", "host_0", "-o", &to]).ends(0);
    assert_eq!(ios(&out), (0..9).map(|day| 200 + day).sum::<u64>());
    let day = |day: u64| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(first + day * 86_400);
        humantime::format_rfc3339_seconds(at).to_string()[..10].to_owned()
    };
    let span = format!("host_0@{}..{}", day(2), day(4));
    history(&folder, &["dump", &span, "-o", &to])
        .ends(0)
        .complains("wrote 1 profile");
    assert_eq!(ios(&out), 202 + 203);
    // From yesterday at 10:00 it is less than two days to now, and more than one to the day before.
    history(&folder, &["dump", "--last", "60h", "-o", &to]).ends(0);
    assert!((208..=207 + 208).contains(&ios(&out)), "{}", ios(&out));
    history(&folder, &["dump", "--last", "1s", "-o", &to]).ends(3);
    history(&folder, &["dump", "--last", "soon", "-o", &to]).ends(2);
    history(&folder, &["dump", "-o", &to]).ends(2);
    let twice = history(&folder, &["dump", "host_0@2d", "host_0@1d", "-o", &to]);
    let mut messages = vec![twice.ends(2).complaint()];

    // The windows of the last five days, and of the day that is cut.
    history(&folder, &["prune", "--keep", "5d"])
        .ends(0)
        .complains(" windows that ended before ");
    let left = of_span("history:host_0");
    let kept = |days: std::ops::Range<u64>| days.map(|day| 200 + day).sum::<u64>();
    assert!([kept(3..9), kept(4..9)].contains(&left), "{left}");
    history(&folder, &["verify"]).ends(0).says("sound");
    history(&folder, &["prune", "--keep", "5d"])
        .ends(0)
        .complains("deleted 0 windows");
    // A bare number would be seconds, and a time behind the history would leave nothing.
    for keep in ["0d", "90", "90s", "59m", "0.5h"] {
        history(&folder, &["prune", "--keep", keep]).ends(2);
    }
    assert_eq!(of_span("history:host_0"), left);
    // Yesterday's window ended at midnight, which may be less than an hour ago; that of an older day did not.
    let old = Folder::new("history-dump-old");
    import(&old, "old", first, 200);
    let all = history(&old, &["prune", "--keep", "1h"])
        .ends(2)
        .complaint();
    let (refusal, _) = all.split_once(" ends at ").expect("a time");
    messages.push(refusal.to_owned());
    insta::assert_snapshot!(messages.join("\n\n"));
    history(&old, &["list"]).ends(0).says("host_0");
    let nowhere = folder.path("nowhere").display().to_string();
    plumb(["history", "prune", "--keep", "5d", "--state-dir", &nowhere]).ends(5);
    assert!(!Path::new(&nowhere).exists());
}

/// Dates are those of the zone of this host: `EST5` is five hours behind UTC.
#[test]
fn dates_are_local() {
    let folder = Folder::new("history-zone");
    let begin = yesterday();
    import(&folder, "two", begin - 8 * 3_600, 250);
    import(&folder, "ten", begin, 200);
    let store = folder.path("store").display().to_string();
    let day = |days: u64| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(begin + days * 86_400);
        humantime::format_rfc3339_seconds(at).to_string()[..10].to_owned()
    };
    let ios = |zone: &str, from: &str, to: &str| {
        let span = format!("history:host_0@{}{from}..{}{to}", day(0), day(0));
        let mut command = crate::common::command();
        command
            .args(["analyze", "--json", &span, "--state-dir", &store])
            .env("TZ", zone);
        let ran = Ran::from_output(command.limited_output());
        match ran.code {
            0 | 1 => number(&ran.json()["result"]["profiles"][0]["ios"]),
            code => {
                ran.ends(3).complains("no I/O of host_0 in that time");
                u64::from(code != 3)
            }
        }
    };
    // 10:00 UTC is 05:00 there.
    assert_eq!(ios("UTC0", "T10:00", "T11:00"), 200);
    assert_eq!(ios("UTC0", "T05:00", "T06:00"), 0);
    assert_eq!(ios("EST5", "T05:00", "T06:00"), 200);
    assert_eq!(ios("EST5", "T10:00", "T11:00"), 0);
    assert_eq!(ios("EST5", "T10:00Z", "T11:00Z"), 200);
    assert_eq!(ios("EST5", "T11:00+01:00", "T12:00:00+01:00"), 200);
    assert_eq!(ios("EST5", "", "T06:00"), 200);
}

/// Rows of a Parquet file, each as its columns by name; a null is an empty text, as in CSV.
pub fn parquet_rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let file = std::fs::File::open(file).expect("a file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(word) => word.clone(),
        Field::Long(number) => number.to_string(),
        other => panic!("an unexpected type: {other:?}"),
    };
    let row = |row: parquet::record::Row| {
        let columns = row.get_column_iter();
        columns
            .map(|(name, field)| (name.clone(), text(field)))
            .collect()
    };
    rows.map(|one| row(one.expect("a row"))).collect()
}

/// An export as Parquet has the cells of that as CSV, of several devices as well, and all exports can go to a file.
#[test]
fn exports_of_all_forms_have_the_same_windows() {
    let folder = Folder::new("history-export");
    let first = yesterday() - 4 * 86_400;
    for day in 0..4 {
        import(
            &folder,
            &format!("day{day}"),
            first + day * 86_400,
            200 + day,
        );
    }
    let csv = history(&folder, &["export", "host_0"]).ends(0).out.clone();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("names");
    let lines: Vec<Vec<&str>> = lines.collect();
    assert_eq!(lines.len(), 4, "{csv}");
    let out = folder.path("out.parquet");
    let to = out.display().to_string();
    for args in [
        &["export", "host_0", "--as", "parquet", "-o", &to][..],
        &["export", "--last", "30d", "--as", "parquet", "-o", &to],
    ] {
        history(&folder, args).ends(0).complains("wrote 4 windows");
        let rows = parquet_rows(&out);
        assert_eq!(rows.len(), lines.len());
        for (row, cells) in rows.iter().zip(&lines) {
            for (name, cell) in names.iter().zip(cells) {
                let expected = match *name {
                    "from" => {
                        let time = humantime::parse_rfc3339(cell).expect("a time");
                        let since = time.duration_since(SystemTime::UNIX_EPOCH);
                        since.expect("after 1970").as_nanos().to_string()
                    }
                    _ => (*cell).to_owned(),
                };
                assert_eq!(row[*name], expected, "{name} of {row:?}");
            }
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("procfs");
            assert_eq!(row["host"], host.trim());
            assert_eq!(row["identity"], "host_0");
            assert_eq!(row.len(), names.len() + 2, "{row:?}");
        }
    }
    // A time without I/O is an answer, of names alone.
    let empty = history(&folder, &["export", "host_0@2019-01-01..2019-01-02"]);
    assert_eq!(empty.ends(0).out.lines().count(), 1, "{}", empty.out);
    let file = folder.path("out.csv").display().to_string();
    history(&folder, &["export", "host_0", "-o", &file]).ends(0);
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), csv);
    history(&folder, &["export", "host_0", "--as", "json", "-o", &file]).ends(0);
    let json = std::fs::read_to_string(&file).expect("a file");
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["result"]["kind"], "courses");
    history(&folder, &["export", "host_0", "--as", "parquet"])
        .ends(2)
        .complains("expected -o FILE");
    history(&folder, &["export"]).ends(2);
}

/// Sizes of the data sources that an I/O on a disk can have, in bytes.
fn sizes() -> impl Iterator<Item = u64> {
    (9..22).map(|power| 1 << power)
}

/// A dump with rows of an hour that end at this time, in seconds since 1970. The reads of 4 KiB have these means, all other classes 0 where
/// the mean is known.
fn rrd_dump(folder: &Folder, name: &str, end: u64, means: &[&str]) -> String {
    let names = ["read", "write"]
        .iter()
        .flat_map(|op| sizes().map(move |size| format!("{op}-{size}")));
    let names: Vec<String> = names.collect();
    let source = |name: &String| format!("<ds><name> {name} </name><type> GAUGE </type></ds>\n");
    let sources: String = names.iter().map(source).collect();
    let row = |mean: &&str| {
        let value = |name: &String| match (name.as_str(), *mean) {
            ("read-4096", mean) => format!("<v>{mean}</v>"),
            (_, "NaN") => "<v>NaN</v>".to_owned(),
            _ => "<v>0.0000000000e+00</v>".to_owned(),
        };
        format!(
            "<row>{}</row>\n",
            names.iter().map(value).collect::<String>()
        )
    };
    let rows: String = means.iter().map(row).collect();
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- Round Robin Database Dump -->\n<rrd><version>0003</version>\n<step>300</step>\n\
         <lastupdate>{}</lastupdate>\n{sources}<rra><cf>AVERAGE</cf><pdp_per_row>12</pdp_per_row><database>\n{rows}</database></rra></rrd>\n",
        end + 17
    );
    folder.file(name, text).display().to_string()
}

/// The windows of a device by their begin.
fn windows_of(document: &Value) -> BTreeMap<String, Value> {
    let windows = document["result"]["is"][0]["windows"].as_array();
    let windows = windows.unwrap_or_else(|| panic!("windows: {document}"));
    let begin = |one: &Value| one["from"].as_str().expect("a time").to_owned();
    windows
        .iter()
        .map(|one| (begin(one), one.clone()))
        .collect()
}

/// The means of an RRD are ranges in the history; an unknown hour is absent, and one without I/O is there.
#[test]
fn means_of_io_profiler_are_ranges() {
    let folder = Folder::new("history-rrd");
    // Four hours until 10:00.
    let end = yesterday();
    let dump = rrd_dump(
        &folder,
        "iosizesd0.xml",
        end,
        &["1.0500000000e+01", "NaN", "0", "2.5e-01"],
    );
    let ran = history(&folder, &["import", &dump]);
    insta::assert_snapshot!(ran.ends(0).complaint());
    let list = history(&folder, &["list", "--json"]).json();
    assert_eq!(list["result"]["is"][0]["device"], "sd0");
    assert_eq!(list["result"]["is"][0]["layer"], "bio");
    let time = |hour: u64| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(end - hour * 3_600);
        humantime::format_rfc3339_seconds(at).to_string()
    };
    let span = format!("sd0@{}..{}", time(4), time(0));
    let document = history(&folder, &["show", &span, "--json"]).json();
    let schema = crate::common::schema::Schema::read("history");
    assert_eq!(schema.faults(&document), Vec::<String>::new());
    let windows = windows_of(&document);
    let known: Vec<&String> = windows.keys().collect();
    assert_eq!(known, [&time(4), &time(2), &time(1)]);
    // 10.5 in each 300 s are 126 in an hour. A class is at most one I/O off, and its I/O have 4,096 to 8,191 bytes. The 12 other classes of
    // reads have at most one I/O each; the lengths of 13 classes end at 2^23 - 2^10 - 13 bytes together.
    let first = &windows[&time(4)];
    let others = (1u64 << 23) - (1 << 10) - 13;
    assert_eq!(first["ios"], 0);
    assert_eq!(
        first["averages"],
        serde_json::json!({
            "ios": {"low": 125, "high": 127 + 12 + 13},
            "bytes": {"low": 125 * 4096, "high": 127 * 8191 + (others - 8191) + others},
            "reads": {"low": 125, "high": 127 + 12},
            "writes": {"low": 0, "high": 13},
        })
    );
    assert_eq!(windows[&time(2)]["averages"]["reads"]["low"], 0);
    // 3 I/O of the hour.
    assert_eq!(windows[&time(1)]["averages"]["reads"]["low"], 2);
    let text = history(&folder, &["show", &span]);
    text.ends(0).says("means over an hour").says("0.03");
    // No column of these is a range.
    let csv = history(&folder, &["export", &span]).ends(0).out.clone();
    assert_eq!(csv.lines().count(), 1, "{csv}");
    // The whole day: sums of the means are still within one I/O for each class.
    let report = history_analyze(&folder, &span);
    report.says("as the source counted").says("129");
}

fn history_analyze(folder: &Folder, span: &str) -> Ran {
    let store = folder.path("store").display().to_string();
    plumb(["analyze", &format!("history:{span}"), "--state-dir", &store])
}

/// A class that is unknown leaves no upper bound, counts of 10 s are more, and old rows go.
#[test]
fn rrds_are_read_as_their_user_says() {
    let folder = Folder::new("history-rrd-flags");
    let end = yesterday();
    let dump = rrd_dump(&folder, "lun.xml", end, &["2"]);
    let text = std::fs::read_to_string(&dump).expect("the dump");
    let row = text.find("<row>").expect("a row") + "<row>".len();
    // The first class is that of reads of 512 bytes.
    let unknown =
        text[..row].to_owned() + "<v>NaN</v>" + &text[row + "<v>0.0000000000e+00</v>".len()..];
    let unknown = folder.file("part.xml", unknown).display().to_string();
    let args = ["import", &unknown, "--as", "naa.5", "--counted-over", "10s"];
    history(&folder, &args).ends(0);
    let windows = windows_of(&history(&folder, &["show", "naa.5", "--json"]).json());
    let averages = &windows.values().next().expect("a window")["averages"];
    // 2 in 10 s are 720 in an hour.
    assert_eq!(
        averages["reads"],
        serde_json::json!({"low": 719, "high": null})
    );
    assert_eq!(averages["ios"]["high"], Value::Null);
    assert_eq!(averages["writes"]["high"], 13);
    history(&folder, &["show", "naa.5"]).says("unknown");
    let old = rrd_dump(&folder, "old.xml", 1_400_000_400, &["1"]);
    let refused = history(&folder, &["import", &old]).ends(2).complaint();
    let mut messages = vec![without_times(&refused)];
    let future = rrd_dump(&folder, "future.xml", 4_000_000_000, &["1"]);
    messages.push(history(&folder, &["import", &future]).ends(2).complaint());
    let wrong = folder.file("wrong.xml", "<rrd>\n<step>5m</step></rrd>");
    messages.push(
        history(&folder, &["import", &wrong.display().to_string()])
            .ends(5)
            .complaint(),
    );
    messages.push(
        history(&folder, &["import", &dump, "--counted-over", "1.5s"])
            .ends(2)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// The archives of rrdtool itself, as io-profiler creates them: each hour has the sum of its counts.
#[test]
fn archives_of_rrdtool_are_sums() {
    require!(Tool("rrdtool"));
    let folder = Folder::new("history-rrdtool");
    let rrdtool = |args: &[String]| {
        let ran = Command::new("rrdtool").args(args).limited_output();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{args:?}: {said}");
        String::from_utf8(ran.stdout).expect("text")
    };
    let words =
        |words: &[&str]| -> Vec<String> { words.iter().map(|one| (*one).to_owned()).collect() };
    let file = folder.path("iosizesd1.rrd").display().to_string();
    let begin = yesterday();
    // Sources from 8 bytes on. Those below 512 never have a value.
    let sources = (3..22).flat_map(|power| {
        ["read", "write"].map(|op| format!("DS:{op}-{}:GAUGE:600:U:U", 1u64 << power))
    });
    let archives = ["1:24", "6:48", "12:168", "12:2016", "288:365"];
    let archives = archives.map(|one| format!("RRA:AVERAGE:0.5:{one}"));
    let mut create = words(&["create", &file, "--start", &begin.to_string()]);
    create.extend(sources.chain(archives));
    rrdtool(&create);
    let names: Vec<String> = sizes()
        .flat_map(|size| ["read", "write"].map(|op| format!("{op}-{size}")))
        .collect();
    // Four hours of counts over 300 s each.
    let reads = |at: u64| at * at % 311;
    for at in 1..=48 {
        let value = |name: &String| match name.as_str() {
            "read-8192" => reads(at).to_string(),
            "write-65536" => (at % 7).to_string(),
            _ => "0".to_owned(),
        };
        let values: Vec<String> = names.iter().map(value).collect();
        let time = begin + at * 300;
        let update = format!("{time}:{}", values.join(":"));
        rrdtool(&words(&[
            "update",
            &file,
            "--template",
            &names.join(":"),
            &update,
        ]));
    }
    let dump = folder.file("iosizesd1.xml", rrdtool(&words(&["dump", &file])));
    let dump = dump.display().to_string();
    history(&folder, &["import", &dump]).ends(0);
    let time = |seconds: u64| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(begin + seconds);
        humantime::format_rfc3339_seconds(at).to_string()
    };
    let span = format!("sd1@{}..{}", time(0), time(4 * 3_600));
    let windows = windows_of(&history(&folder, &["show", &span, "--json"]).json());
    // The last two hours have rows of 300 s, those before rows of 30 min.
    assert_eq!(windows.len(), 4, "{windows:?}");
    for hour in 0..4u64 {
        let averages = &windows[&time(hour * 3_600)]["averages"];
        let counted =
            |of: &dyn Fn(u64) -> u64| -> u64 { (hour * 12 + 1..=hour * 12 + 12).map(of).sum() };
        for (op, exact) in [
            ("reads", counted(&reads)),
            ("writes", counted(&|at| at % 7)),
        ] {
            let (low, high) = (number(&averages[op]["low"]), number(&averages[op]["high"]));
            // The class with I/O is one off in both directions, and 12 have at most one.
            assert_eq!(
                (low, high),
                (exact - 1, exact + 1 + 12),
                "{op} in hour {hour}"
            );
        }
    }
}
