//! Files that the program makes: their names, their owners, and their state after a signal.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plumb_testkit::{require, wait};

use crate::common::terminal::Terminal;
use crate::common::{Folder, Ran, command, msr, pages, plumb};

/// A user that is neither root nor this one.
const OTHER: u32 = 65_534;
/// Ways to write a file. The last one holds data of disks.
const WAYS: [&str; 4] = ["--html", "--save", "convert", "--collect"];

/// A trace, and a directory that every user can write to.
struct PlantedPaths {
    folder: Folder,
    trace: PathBuf,
    public: PathBuf,
}

impl PlantedPaths {
    fn new() -> PlantedPaths {
        let folder = Folder::new("output-files");
        let trace = folder.file("trace.csv", msr(pages(1000, 512, 8192)));
        let public = folder.path("public");
        fs::create_dir(&public).expect("room");
        fs::set_permissions(&public, Permissions::from_mode(0o1777)).expect("mine");
        PlantedPaths {
            folder,
            trace,
            public,
        }
    }

    /// A command that writes this file, by the word that names it.
    fn write(&self, word: &str, output: &Path) -> Ran {
        let (trace, to) = (self.trace.as_os_str(), output.as_os_str());
        let convert: [&OsStr; 5] = [
            word.as_ref(),
            trace,
            to,
            "--to".as_ref(),
            "parquet".as_ref(),
        ];
        match word {
            "--collect" => plumb(["check".as_ref(), word.as_ref(), to]),
            "convert" => plumb(convert),
            _ => plumb(["analyze".as_ref(), trace, word.as_ref(), to]),
        }
    }

    fn names(&self) -> Vec<String> {
        names_in(&self.public)
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries
        .map(|entry| name(entry.expect("an entry")))
        .collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o7777
}

/// Somebody waits for root to write a report into /tmp.
#[test]
fn a_link_in_a_directory_for_all() {
    let places = PlantedPaths::new();
    let victim = places.folder.file("victim", "precious");
    let link = places.public.join("out");
    symlink(&victim, &link).expect("room");
    for flag in WAYS {
        let ran = places.write(flag, &link);
        let status = if flag == "--collect" { 2 } else { 4 };
        assert_eq!(ran.code, status, "{flag}: {}", ran.err);
        ran.complains("symbolic link");
        assert_eq!(fs::read(&victim).expect("it stays"), b"precious", "{flag}");
        assert_eq!(places.names(), ["out"], "{flag}");
    }
    fs::remove_file(&link).expect("mine");
    // One without an end would make a file wherever it leads.
    symlink(places.folder.path("made"), &link).expect("room");
    for flag in WAYS {
        let ran = places.write(flag, &link);
        assert!(ran.code == 2 || ran.code == 4, "{flag}: {}", ran.err);
        assert!(!places.folder.path("made").exists(), "{flag}");
    }
}

/// Data of disks are not written through a link of the user either.
#[test]
fn a_collection_goes_through_no_link() {
    let places = PlantedPaths::new();
    let link = places.folder.path("own");
    symlink(places.folder.path("made"), &link).expect("room");
    for flag in WAYS {
        let ran = places.write(flag, &link);
        let is_collection = flag == "--collect";
        assert_eq!(ran.code == 2, is_collection, "{flag}: {}", ran.err);
        let made = places.folder.path("made");
        assert_eq!(made.exists(), !is_collection, "{flag}");
        assert!(link.is_symlink(), "{flag}");
        let _ = fs::remove_file(made);
    }
}

/// Another user has made the file before, and could read and change its content.
#[test]
fn a_file_of_another_user_in_a_directory_for_all() {
    require!(Root);
    let places = PlantedPaths::new();
    let file = places.public.join("out");
    fs::write(&file, "theirs").expect("room");
    fs::set_permissions(&file, Permissions::from_mode(0o666)).expect("mine");
    chown(&file, Some(OTHER), None).expect("root may");
    for flag in WAYS {
        let ran = places.write(flag, &file);
        let status = if flag == "--collect" { 2 } else { 4 };
        assert_eq!(ran.code, status, "{flag}: {}", ran.err);
        assert_eq!(fs::read(&file).expect("it stays"), b"theirs", "{flag}");
    }
}

#[test]
fn data_of_disks_are_for_their_owner_alone() {
    let places = PlantedPaths::new();
    let to = places.public.join("host.tar.zst");
    let script = "umask 0; exec \"$0\" check --collect \"$1\"";
    let collected = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_plumb")])
        .arg(&to)
        .output();
    let ran = Ran::from_output(collected.expect("a shell"));
    ran.ends(0);
    assert_eq!(mode(&to), 0o600);
    // An older collection is not replaced.
    let again = plumb(["check".as_ref(), "--collect".as_ref(), to.as_os_str()]);
    insta::assert_snapshot!(again.ends(2).complaint());
}

/// A conversion whose input never ends, with its unfinished file beside `out.csv`.
fn converting(places: &PlantedPaths, shell: &str) -> (Child, std::process::ChildStdin) {
    let out = places.public.join("out.csv");
    let mut child = Command::new("sh")
        .args(["-c", shell, env!("CARGO_BIN_EXE_plumb")])
        .arg(&out)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let mut input = child.stdin.take().expect("a pipe");
    let trace = fs::read(&places.trace).expect("the trace");
    // Enough for every buffer on the way.
    for _ in 0..20 {
        input.write_all(&trace).expect("it reads");
    }
    let is_begun = || !places.names().is_empty();
    wait::until_while_runs("the unfinished file", wait::PATIENCE, &mut child, is_begun);
    (child, input)
}

const CONVERT: &str = "exec \"$0\" convert - \"$1\" --format msr";

#[test]
fn a_signal_leaves_no_unfinished_file() {
    let places = PlantedPaths::new();
    for (name, number) in [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ABRT", 6),
        ("USR1", 10),
        ("ALRM", 14),
        ("TERM", 15),
        ("XCPU", 24),
    ] {
        let (mut child, input) = converting(&places, CONVERT);
        let killed = Command::new("kill")
            .args(["-s", name, &child.id().to_string()])
            .status();
        assert!(killed.expect("kill of procps or the shell").success());
        let status = wait::exit("plumb convert", wait::PATIENCE, &mut child);
        assert_eq!(status.signal(), Some(number), "{name}");
        assert_eq!(places.names(), [""; 0], "{name}");
        drop(input);
    }
}

/// Signals that were ignored when the program began stay so: nohup.
#[test]
fn a_signal_that_is_ignored_ends_nothing() {
    let places = PlantedPaths::new();
    let (mut child, input) = converting(&places, &format!("trap '' HUP; {CONVERT}"));
    let killed = Command::new("kill")
        .args(["-s", "HUP", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill").success());
    drop(input);
    let status = wait::exit("plumb convert", wait::PATIENCE, &mut child);
    assert_eq!(status.signal(), None);
    assert_eq!(places.names(), ["out.csv"]);
}

/// `ulimit -f`: the kernel would end the program in the middle of its file.
#[test]
fn a_file_that_may_not_grow_is_an_error() {
    let places = PlantedPaths::new();
    // Blocks of 512 or 1024 bytes, by the shell.
    let mut messages = Vec::new();
    for shell in [
        "ulimit -f 2; exec \"$0\" convert \"$2\" \"$1\"",
        "ulimit -f 2; exec \"$0\" analyze \"$2\" --html \"$1\"",
        "ulimit -f 0; exec \"$0\" check --collect \"$1\"",
    ] {
        let ran = Command::new("sh")
            .args(["-c", shell, env!("CARGO_BIN_EXE_plumb")])
            .arg(places.public.join("out.csv"))
            .arg(&places.trace)
            .output();
        let ran = Ran::from_output(ran.expect("a shell"));
        messages.push(ran.ends(5).complaint());
        assert_eq!(places.names(), [""; 0], "{shell}");
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Nobody reads the report any more: the page is whole all the same.
#[test]
fn a_closed_pipe_leaves_a_whole_page() {
    let places = PlantedPaths::new();
    let page = places.public.join("page.html");
    let mut child = command()
        .arg("analyze")
        .arg(&places.trace)
        .arg("--html")
        .arg(&page)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    wait::exit("plumb analyze", wait::PATIENCE, &mut child);
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.trim_end().ends_with("</html>"));
    assert_eq!(places.names(), ["page.html"]);
}

/// The way through a link of the user to another directory, under the rules that the process gives itself.
#[test]
fn an_own_link_leads_to_another_directory() {
    let places = PlantedPaths::new();
    let elsewhere = places.folder.path("elsewhere");
    fs::create_dir(&elsewhere).expect("room");
    let link = places.folder.path("page.html");
    symlink(elsewhere.join("page.html"), &link).expect("room");
    let args = [
        "analyze".as_ref(),
        places.trace.as_os_str(),
        "--html".as_ref(),
        link.as_os_str(),
    ];
    plumb(args).ends(1);
    assert!(link.is_symlink());
    assert_eq!(names_in(&elsewhere), ["page.html"]);
}

/// Each written file is reported once, with the same words.
#[test]
fn every_file_is_reported_once() {
    require!(Tool("tmux"));
    let folder = Folder::new("output-told");
    folder.file("trace.csv", msr(pages(1000, 512, 8192)));
    folder.file("target", vec![1; 1 << 20]);
    let terminal = Terminal::open("told", 120, 50, "");
    let within = format!("cd {}; clear", folder.path("").display());
    terminal.press(&[&within, "Enter"]);
    let commands = [
        (
            "analyze trace.csv --html page.html --save sums.plumb",
            &["page.html", "sums.plumb"][..],
        ),
        ("convert trace.csv one.parquet", &["one.parquet"]),
        (
            "compare trace.csv trace.csv --html both.html",
            &["both.html"],
        ),
        ("check --collect host.tar.zst", &["host.tar.zst"]),
        (
            "check --root / --as junit --output junit.xml",
            &["junit.xml"],
        ),
        (
            "bench target --for 200ms --html bench.html --trace bench.parquet",
            &["bench.html", "bench.parquet"],
        ),
    ];
    for (number, (command, names)) in commands.into_iter().enumerate() {
        // The number tells the end of this command from that of the one before, which is on the screen until it is cleared.
        let command = format!(
            "clear; tmux -L {} clear-history; {} {command}; echo 'sta''tus' {number} $?",
            terminal.server(),
            env!("CARGO_BIN_EXE_plumb")
        );
        terminal.press(&[&command, "Enter"]);
        terminal.shows(&format!("\nstatus {number} "));
        let all = terminal.tmux(&["capture-pane", "-p", "-J", "-S", "-1000"]);
        for name in names {
            assert!(folder.path(name).exists(), "{name}: {all}");
            let told = all.lines().map(|line| line.trim_start());
            let told = told.map(|line| line.strip_prefix("note: ").unwrap_or(line));
            let told = told.filter(|line| {
                let words = line
                    .strip_prefix("wrote ")
                    .and_then(|line| line.strip_prefix(name));
                words.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            });
            assert_eq!(told.count(), 1, "{name}: {all}");
        }
    }
}
