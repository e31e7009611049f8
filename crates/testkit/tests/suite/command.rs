//! The program itself: its output, and its exit status.

#![forbid(unsafe_code)]

use plumb_testkit::temp_dir;
use plumb_testkit::wait::RunLimited;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plumb-testkit"))
        .args(arguments)
        .limited_output()
}

#[test]
fn a_file_for_each_cpu_and_the_same_for_the_same_seed() {
    let dir = temp_dir("command");
    let base = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let mut seeds = Vec::new();
    for name in ["a", "b"] {
        let out = run(&[
            "generate",
            "blktrace",
            "--events",
            "1_000",
            "--seed",
            "7",
            "--cpus",
            "3",
            "--out",
            &base(name),
        ]);
        assert!(out.status.success());
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        seeds.extend(
            text.lines()
                .filter(|line| line.contains("seed"))
                .map(str::to_owned),
        );
    }
    insta::assert_snapshot!(seeds.join("\n"));
    for cpu in 0..3 {
        let read = |name: &str| {
            std::fs::read(format!("{}.blktrace.{cpu}", base(name))).expect("a file a CPU")
        };
        assert!(!read("a").is_empty());
        assert!(read("a") == read("b"));
    }
    assert!(!dir.path().join("a.blktrace.3").exists());
}

#[test]
fn converted_stream_is_the_generated_one() {
    let dir = temp_dir("command");
    let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let generate = |name: &str, more: &[&str]| {
        let (out, mut arguments) = (
            path(name),
            vec!["generate", "blktrace", "--events", "500", "--shapes", "all"],
        );
        arguments.extend(more);
        // One CPU, so its file is the merged stream too.
        arguments.extend(["--cpus", "1", "--out", &out]);
        assert!(run(&arguments).status.success());
    };
    generate("little", &[]);
    generate("big", &["--version", "8", "--endian", "big"]);
    let (from, to) = (path("little.blktrace.0"), path("converted"));
    assert!(
        run(&[
            "convert-blktrace",
            &from,
            &to,
            "--version",
            "8",
            "--endian",
            "big"
        ])
        .status
        .success()
    );
    let read = |name: &str| std::fs::read(path(name)).expect("just written");
    assert!(read("converted") == read("big.blktrace.0"));
    // It is of version 8 now, which is not converted from.
    let again = run(&["convert-blktrace", &to, "-"]);
    assert_eq!(again.status.code(), Some(5));
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("byte 0: found 0x8746165"),
        "{again:?}"
    );
}

#[test]
fn wrong_usage_is_2() {
    for arguments in [
        &["generate", "msr"][..],
        &["generate", "nonsense", "--events", "1"],
        &["generate", "msr", "--events", "many"],
        &["generate", "msr", "--events", "1", "--workload", "nonsense"],
        &["generate", "msr", "--nonsense", "1"],
        &["generate", "msr", "--events"],
        &["convert-vscsi", "one"],
        &[],
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

/// Before anything is served.
#[test]
fn a_drive_that_cannot_be_is_not_served() {
    for (arguments, why) in [
        (
            &[
                "nvme-target",
                "127.0.0.1:0",
                "nqn.2014-08.example:a",
                "lba=520",
            ][..],
            "lba=520",
        ),
        (
            &["nvme-target", "127.0.0.1:0", &"n".repeat(224)],
            "223 bytes",
        ),
        (&["nvme-target", "127.0.0.1:0"], "not understood"),
    ] {
        let done = run(arguments);
        assert_eq!(done.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&done.stderr).contains(why), "{why}");
    }
}
