//! Commands that only read files give up their privileges before they read.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, temp_dir, wait};

fn plumb() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plumb"))
}

fn protections() -> String {
    let told = plumb().args(["version", "--verbose"]).output();
    String::from_utf8(told.expect("plumb runs").stdout).expect("text")
}

/// The kernel's own words on a process that waits for more input.
#[test]
fn a_reader_has_no_capability_and_a_filter() {
    let mut child = plumb()
        .args(["analyze", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("plumb starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"8,0 1 1 0.0").expect("it reads");
    let path = format!("/proc/{}/status", child.id());
    let field = |name: &str| {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name).map(str::to_owned));
        line.unwrap_or_default().trim().to_owned()
    };
    wait::until("the filter of system calls", wait::PATIENCE, || {
        field("Seccomp:") == "2"
    });
    let none = "0000000000000000";
    let found = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"].map(field);
    assert_eq!(found, [none; 4]);
    assert_eq!(field("NoNewPrivs:"), "1");
    drop(input);
    wait::exit("plumb", wait::PATIENCE, &mut child);
}

/// A directory of traces with a link that leads out of it.
#[test]
fn a_link_out_of_the_inputs_leads_nowhere() {
    require!(Landlock);
    let dir = temp_dir("sandbox");
    let (inputs, elsewhere) = (dir.path().join("inputs"), dir.path().join("elsewhere"));
    for made in [&inputs, &elsewhere] {
        fs::create_dir(made).expect("room");
    }
    let trace =
        "8,0 1 1 0.000000000 100 D R 2048 + 8 [fio]\n8,0 1 2 0.000100000 100 C R 2048 + 8 [0]\n";
    let secret = elsewhere.join("trace.txt");
    fs::write(&secret, trace).expect("room");
    let link = inputs.join("trace.txt");
    let status = |path: &std::path::Path| {
        let done = plumb().arg("analyze").arg(path).limited_output();
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    let (plain, said) = status(&secret);
    assert!(matches!(plain, Some(0 | 1 | 3)), "{said}");
    symlink(&secret, &link).expect("room");
    // A link that the caller named is the input itself.
    assert_eq!(status(&link).0, plain);
    // One within a directory that was named is none.
    fs::rename(&secret, elsewhere.join("sda.blktrace.0")).expect("room");
    symlink(
        elsewhere.join("sda.blktrace.0"),
        inputs.join("sda.blktrace.0"),
    )
    .expect("room");
    fs::remove_file(&link).expect("room");
    let (refused, said) = status(&inputs);
    assert_eq!(refused, Some(4), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
}

#[test]
fn the_protections_are_listed() {
    let told = protections();
    for words in [
        "plumb ",
        "commit ",
        &format!("target    {}-unknown-linux-", std::env::consts::ARCH),
        "features ",
        "capabilities ",
        "other files closed ",
        "system calls ",
    ] {
        assert!(told.contains(words), "{told}");
    }
    let plain = plumb().arg("version").limited_output();
    let plain = String::from_utf8(plain.stdout).expect("text");
    assert_eq!(plain.lines().count(), 1, "{plain}");
}
