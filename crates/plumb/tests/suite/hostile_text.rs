//! Names as an attacker chooses them, from the input to the terminal: no byte of them reaches it raw, and no command that is
//! printed runs a part of them.

use std::fs;
use std::path::Path;

use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::hostile::{TOOLS, run_by};
use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;
use serde_json::Value;

use crate::common::{Folder, Ran, msr, passages, plumb, real};

/// Writes to the clipboard, clears the screen, changes the colour, turns the direction of writing, ends the line.
const CONTROLS: [&str; 6] = [
    "\x1b]52;c;AAAA\x07",
    "\x1b[2J",
    "\u{9b}31m",
    "\u{202e}",
    "\u{2066}",
    "\u{2028}",
];

const INJECTIONS: [&str; 8] = [
    "$(canary)",
    "`canary`",
    ";canary;",
    "' canary '",
    "\"$(canary)\"",
    "|canary",
    "&canary&",
    "\ncanary\n",
];

/// No control, and no character that a terminal shows otherwise than it is.
#[track_caller]
fn is_plain(ran: &Ran, what: &str) {
    for text in [&ran.out, &ran.err] {
        let is_odd = |letter: &char| {
            letter.is_control() && *letter != '\n'
                || ('\u{200b}'..='\u{200f}').contains(letter)
                || ('\u{2028}'..='\u{202e}').contains(letter)
                || ('\u{2060}'..='\u{2069}').contains(letter)
        };
        let odd = text.chars().find(is_odd);
        assert_eq!(odd, None, "{what}: {text:?}");
    }
}

/// All commands and ways back of a document.
fn commands(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_str() {
                    Some(line) if name == "command" || name == "undo" => {
                        found.push(line.to_owned())
                    }
                    _ => commands(field, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| commands(value, found)),
        _ => {}
    }
}

/// That these commands start nothing but tools; a way back in words starts none and is left out.
#[track_caller]
fn start_tools_only(lines: &[String]) {
    let is_command = |line: &&String| {
        let first = line.split_whitespace().next().unwrap_or_default();
        TOOLS.contains(&first) || first == "echo" || first == "printf"
    };
    let lines: Vec<&String> = lines.iter().filter(is_command).collect();
    for shell in ["sh", "bash"] {
        let folder = plumb_testkit::temp_dir("printed");
        fs::create_dir(folder.path().join("work")).expect("a folder");
        let started = run_by(shell, folder.path(), &TOOLS, &lines);
        for (line, started) in lines.iter().zip(started) {
            let is_canary = |words: &Vec<Vec<u8>>| words[0] == b"canary";
            assert!(!started.iter().any(is_canary), "{shell}: {line}");
        }
    }
}

/// A file with a partition of that name at sector 34, which holds nothing.
fn image(folder: &Folder, file: &str, name: &str) -> std::path::PathBuf {
    let image = folder.file(file, "");
    let file = fs::File::options()
        .write(true)
        .open(&image)
        .expect("it is there");
    file.set_len(64 << 20).expect("a length");
    let made = std::process::Command::new("sgdisk")
        .args(["-a", "1", "-n", "1:34:+32M", "-c", &format!("1:{name}")])
        .arg(&image)
        .limited_output();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stdout)
    );
    image
}

#[test]
fn names_of_partitions_show_as_escapes() {
    require!(Tool("sgdisk"));
    let folder = Folder::new("names");
    for control in CONTROLS {
        let image = image(&folder, "disk.img", &format!("a{control}b"));
        let name = image.to_str().expect("a plain path");
        for flags in ["", "--json", "--color=always", "--tree"] {
            let flags = flags.split_whitespace();
            let ran = plumb(
                ["check", "--image", name, "--grid", "4k"]
                    .into_iter()
                    .chain(flags.clone()),
            );
            let what = format!("{control:?} {flags:?}");
            if flags.clone().any(|flag| flag == "--color=always") {
                // Colours are the program's own; anything else that a terminal obeys is not.
                assert!(!ran.out.contains(control), "{what}: {:?}", ran.out);
                continue;
            }
            is_plain(&ran, &what);
        }
    }
}

#[test]
fn commands_for_hostile_files_run_nothing_else() {
    require!(Tool("bash"), Tool("sgdisk"));
    let folder = Folder::new("files");
    let mut lines = Vec::new();
    for injection in INJECTIONS {
        let named = image(&folder, &format!("a{injection}b"), "data");
        let ran = plumb([
            "check".as_ref(),
            "--image".as_ref(),
            named.as_os_str(),
            "--grid".as_ref(),
            "4k".as_ref(),
            "--json".as_ref(),
        ]);
        is_plain(&ran, injection);
        let before = lines.len();
        commands(&ran.json(), &mut lines);
        let has_some = lines[before..].iter().any(|line| line.contains("canary"));
        // A line feed cannot be typed.
        assert_eq!(
            has_some,
            !injection.contains('\n'),
            "{injection:?}: {}",
            ran.out
        );
        // A probe of a file without media names commands that write and probe it.
        let hole = folder.file(&format!("a{injection}hole"), "");
        let file = fs::File::options()
            .write(true)
            .open(&hole)
            .expect("it is there");
        file.set_len(4 << 20).expect("a length");
        let ran = plumb(["probe".as_ref(), hole.as_os_str()]);
        let named = ran.err.lines().chain(ran.out.lines()).map(str::trim);
        let named: Vec<String> = named
            .filter(|line| line.starts_with("dd "))
            .map(str::to_owned)
            .collect();
        assert_eq!(
            named.is_empty(),
            injection.contains('\n'),
            "{}{}",
            ran.out,
            ran.err
        );
        lines.extend(named);
        is_plain(&ran, injection);
    }
    start_tools_only(&lines);
}

#[test]
fn commands_for_hostile_devices_run_nothing_else() {
    require!(Tool("bash"));
    let folder = Folder::new("sysfs");
    let mut lines = Vec::new();
    for (number, injection) in INJECTIONS.iter().chain(&["\u{202e}"]).enumerate() {
        let name = format!("sd{injection}a");
        let mut host = FakeHost::new(&folder.path(&number.to_string()));
        host.disk(&FakeDisk::named(&name));
        host.attribute(&name, "queue/read_ahead_kb", "65536");
        let root = host.root().to_owned();
        let ran = plumb([
            "check".as_ref(),
            "--root".as_ref(),
            root.as_os_str(),
            "--json".as_ref(),
        ]);
        is_plain(&ran, injection);
        let found = ran.json();
        let findings = found["findings"].as_array().expect("findings");
        let setting = findings
            .iter()
            .find(|finding| finding["rule"] == "queue-setting");
        let setting = setting.unwrap_or_else(|| panic!("{injection:?}: {}", ran.out));
        let mut own = Vec::new();
        commands(setting, &mut own);
        let can_be_typed = !injection
            .chars()
            .any(|letter| letter.is_control() || letter == '\u{202e}');
        assert_eq!(!own.is_empty(), can_be_typed, "{injection:?}: {setting}");
        assert_eq!(
            setting.to_string().contains("no command is given"),
            !can_be_typed,
            "{injection:?}: {setting}"
        );
        commands(&found, &mut lines);
    }
    assert!(
        lines
            .iter()
            .any(|line| line.contains("/sys/block/sd$(canary)a/queue")),
        "{lines:?}"
    );
    start_tools_only(&lines);
}

fn prtvtoc(disk: &str) -> String {
    format!(
        "* {disk} partition map\n*\n* Dimensions:\n*     512 bytes/sector\n* 2925506559 sectors\n* 2925506492 accessible \
         sectors\n*\n*                          First     Sector    Last\n* Partition  Tag  Flags    Sector     Count    Sector  \
         Mount Directory\n       0      4    00         34    262144    262177   /data\n"
    )
}

#[test]
fn commands_for_disks_of_a_print_run_nothing_else() {
    require!(Tool("bash"));
    let folder = Folder::new("prints");
    let mut lines = Vec::new();
    for injection in INJECTIONS
        .iter()
        .chain(&["", "s2 -x", "\u{202e}", "\x1b[2J"])
    {
        for disk in [
            format!("/dev/rdsk/c1t0{injection}d0"),
            format!("/dev/rdsk/c1t0d0{injection}"),
            format!("/dev/rdsk/{injection}/c1t0d0"),
        ] {
            let file = folder.file("prtvtoc.txt", prtvtoc(&disk));
            let ran = plumb([
                "check".as_ref(),
                "--from".as_ref(),
                file.as_os_str(),
                "--grid".as_ref(),
                "8k".as_ref(),
                "--json".as_ref(),
            ]);
            is_plain(&ran, &disk);
            if ran.out.is_empty() {
                // Refused as no output of prtvtoc.
                ran.ends(5);
                continue;
            }
            commands(&ran.json(), &mut lines);
            let text = plumb([
                "check".as_ref(),
                "--from".as_ref(),
                file.as_os_str(),
                "--grid".as_ref(),
                "8k".as_ref(),
            ]);
            is_plain(&text, &disk);
        }
    }
    start_tools_only(&lines);
}

#[test]
fn names_in_a_trace_show_as_escapes() {
    let folder = Folder::new("trace");
    for control in CONTROLS {
        // The second column is the name of the host.
        let text: String = msr((0..200).map(|at| ('R', at * 8192 + 512, 8192)))
            .lines()
            .map(|line| {
                let mut fields: Vec<&str> = line.split(',').collect();
                let name = format!("a<script>{control}b");
                fields[1] = &name;
                fields.join(",") + "\n"
            })
            .collect();
        let trace = folder.file("trace.csv", text);
        let page = folder.path("page.html");
        let name = trace.to_str().expect("a plain path");
        for flags in ["", "--json"] {
            let ran = plumb(
                ["analyze", name]
                    .into_iter()
                    .chain(flags.split_whitespace()),
            );
            assert!(
                ran.out.contains("script"),
                "the name is there: {}{}",
                ran.out,
                ran.err
            );
            is_plain(&ran, &format!("{control:?} {flags}"));
        }
        plumb([
            "analyze".as_ref(),
            trace.as_os_str(),
            "--html".as_ref(),
            page.as_os_str(),
        ]);
        let page = fs::read_to_string(&page).expect("a page");
        assert!(
            !page.contains("<script") && !page.contains(control),
            "{control:?}"
        );
    }
}

#[test]
fn a_file_that_is_no_plan_and_a_trace_that_is_no_dump() {
    let folder = Folder::new("raw");
    for control in CONTROLS {
        let hostile = format!("a{control}b");
        let plan = serde_json::json!({
            "schema": "plumb.plan/2",
            "result": {"plans": [{
                "title": hostile,
                "found": [], "notes": [hostile],
                "remedies": [{"title": hostile, "steps": [{"command": hostile, "why": hostile, "risk": hostile, "undo": hostile}]}],
            }]},
        });
        for text in [
            plan.to_string(),
            hostile.clone(),
            format!("{{\"schema\": \"{}\"}}", "a\\u001b[2Jb"),
        ] {
            let file = folder.file("plan.json", text);
            is_plain(
                &plumb(["fix".as_ref(), "plan".as_ref(), file.as_os_str()]),
                control,
            );
            is_plain(
                &plumb(["check".as_ref(), "--from".as_ref(), file.as_os_str()]),
                control,
            );
            is_plain(&plumb(["analyze".as_ref(), file.as_os_str()]), control);
        }
    }
}

#[test]
fn bytes_of_a_trace_are_not_printed() {
    require!(RealTraces);
    let trace = real("blktrace/sdb.blktrace.0");
    let ran = plumb(["check".as_ref(), "--from".as_ref(), trace.as_os_str()]);
    ran.ends(5);
    is_plain(&ran, "blktrace");
}

#[test]
fn a_benchmark_names_the_file_system_that_it_overwrites() {
    require!(Tool("mkfs.ext4"));
    let folder = Folder::new("holds");
    let image = folder.file("disk.img", "");
    let file = fs::File::options()
        .write(true)
        .open(&image)
        .expect("it is there");
    file.set_len(16 << 20).expect("a length");
    let bench = |yes: bool| {
        let path: &Path = &image;
        let words = ["bench", "--write", "--read", "0", "--for", "100ms"].map(AsRef::as_ref);
        let yes: &[&std::ffi::OsStr] = match yes {
            true => &["--yes".as_ref(), "disk.img".as_ref()],
            false => &[],
        };
        plumb(
            words
                .into_iter()
                .chain([path.as_os_str()])
                .chain(yes.iter().copied()),
        )
    };
    let plain = bench(false);
    let mut messages = vec![plain.ends(2).complaint()];
    let made = std::process::Command::new("mkfs.ext4")
        .arg("-q")
        .arg(&image)
        .status();
    assert!(made.expect("mkfs.ext4").success());
    messages.push(bench(false).ends(2).complaint());
    messages.push(passages(&bench(true).err, &["holds"]));
    insta::assert_snapshot!(messages.join("\n\n"));
}
