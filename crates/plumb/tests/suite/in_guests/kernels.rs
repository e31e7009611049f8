//! The commands of Plumb on other kernels: see `lab/kernels-guest` and `docs/kernels.md`. `make test-kernels` runs them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use plumb_testkit::require::record_skip;
use plumb_testkit::{require, test_name};
use serde_json::Value;

use crate::in_guests::{lab, run_lab};

/// Commands that Linux before 5.12 cannot run: its BPF programs lack atomic operations that return a value.
const NEED_ATOMICS: [&str; 3] = ["record", "watch --app", "watch --cgroup"];

/// Kernels of Debian's archive: old, stable, and the newest backport.
const SERIES: [&str; 4] = ["5.10", "6.1", "6.12", "7.3"];

#[test]
#[ignore = "needs a static binary that PLUMB_STATIC_X86_64 names: run by make test-kernels"]
fn commands_work_on_kernels_of_x86_64() {
    require!(Qemu, Tool("apt-get"));
    work_on_each_kernel("amd64", "PLUMB_STATIC_X86_64", &test_name!());
}

#[test]
#[ignore = "needs a static binary that PLUMB_STATIC_AARCH64 names: run by make test-kernels"]
fn commands_work_on_kernels_of_arm64() {
    require!(Tool("apt-get"));
    work_on_each_kernel("arm64", "PLUMB_STATIC_AARCH64", &test_name!());
}

#[test]
#[ignore = "captures the I/O of the whole host, with a static binary that PLUMB_STATIC names: run by make test-kernels"]
fn commands_work_on_this_kernel() {
    require!(Root, Loop, Bpf);
    let out = results_folder();
    run_lab(
        "kernels-guest",
        [out.as_os_str(), "host".as_ref(), &program("PLUMB_STATIC")],
    );
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let series: Vec<&str> = release.split('.').take(2).collect();
    assert_works(&out, "host", &series.join("."));
}

/// Boots each kernel for a processor. A kernel that the archive no longer has is skipped.
fn work_on_each_kernel(arch: &str, variable: &str, test: &str) {
    let out = results_folder();
    let program = program(variable);
    for series in SERIES {
        let words: [&OsStr; 4] = [out.as_os_str(), arch.as_ref(), series.as_ref(), &program];
        let (is_success, said) = lab("kernels-guest", words);
        if !is_success && said.contains("Debian's archive has no kernel") {
            record_skip(
                test,
                &format!("Debian's archive has no kernel {series} for {arch}"),
            );
            continue;
        }
        assert!(is_success, "{arch} {series}: {said}");
        assert_works(&out, arch, series);
    }
}

/// Asserts that each command works on a kernel, or says before its start that the kernel is too old.
fn assert_works(out: &Path, arch: &str, series: &str) {
    let file = out.join(format!("{arch}-{series}.json"));
    let text = std::fs::read_to_string(file).expect("the results");
    let results: Value = serde_json::from_str(&text).expect("JSON");
    let commands = results["commands"].as_object().expect("commands");
    assert!(commands.len() >= 19, "{commands:?}");
    for (command, row) in commands {
        let is_too_old = series == "5.10" && NEED_ATOMICS.contains(&command.as_str());
        assert_eq!(
            row["works"], !is_too_old,
            "{command} on {series} {arch}: {row}"
        );
        if is_too_old {
            let message = row["message"].as_str().expect("a message");
            assert!(message.contains("or later"), "{message}");
        }
    }
    // Each emulated guest has a disk that takes twice as long off 4 KiB.
    if arch != "host" {
        let seen = commands["probe"]["seen"].as_str().expect("a verdict");
        assert!(
            seen.contains("grid of 4096 bytes"),
            "{series} {arch}: {seen}"
        );
    }
}

/// The folder that gets the results of all kernels.
fn results_folder() -> PathBuf {
    std::env::var_os("PLUMB_KERNELS")
        .expect("PLUMB_KERNELS names the folder of the results")
        .into()
}

fn program(variable: &str) -> std::ffi::OsString {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names the static binary"))
}
