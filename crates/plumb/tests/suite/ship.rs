//! Packages, installed in small systems of their own: `scripts/test-ship` has the steps.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs parts of the script with the program of these tests. Debug information stays out of the package.
#[track_caller]
fn run_parts(parts: &[&str], steps: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = folder.path().join("plumb");
    let stripped = Command::new("strip")
        .arg("-o")
        .args([&binary, Path::new(env!("CARGO_BIN_EXE_plumb"))])
        .status();
    assert!(stripped.expect("strip starts").success());
    let done = Command::new("timeout")
        .args(["--kill-after=20", "420"])
        .arg(project().join("scripts/test-ship"))
        .arg(&binary)
        .args(parts)
        .limited_output();
    let out = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && out.ends_with(&format!("{steps} steps passed\n")),
        "{}: expected {steps} steps\n{out}\n{}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn a_deb_in_a_system_of_its_own() {
    require!(
        Root,
        Tool("debootstrap"),
        Tool("dpkg-deb"),
        Tool("man"),
        Tool("strip")
    );
    run_parts(&["deb-bookworm"], 40);
}

#[test]
fn an_rpm_in_a_system_of_its_own() {
    require!(
        Root,
        Tool("debootstrap"),
        Tool("rpmbuild"),
        Tool("man"),
        Tool("strip"),
        Patience
    );
    run_parts(&["rpm"], 31);
}

#[test]
fn a_tarball_in_a_home_directory() {
    require!(Root, Tool("debootstrap"), Tool("strip"));
    run_parts(&["tarball"], 20);
}

#[test]
fn the_install_section_of_the_readme() {
    require!(
        Root,
        Tool("debootstrap"),
        Tool("rpmbuild"),
        Tool("strip"),
        Patience
    );
    run_parts(&["readme"], 15);
}

/// apt installs from its repository, and both refuse changed files.
#[test]
fn signed_repositories() {
    require!(
        Root,
        Tool("debootstrap"),
        Tool("apt-ftparchive"),
        Tool("createrepo_c"),
        Tool("gpg"),
        Tool("rpmsign"),
        Tool("strip")
    );
    run_parts(&["apt-tree", "yum-tree"], 20);
}

/// A new user with the binary and README.md: a verdict, and the first fix as a dry run.
#[test]
fn the_first_three_minutes() {
    require!(
        Root,
        Loop,
        Tool("debootstrap"),
        Tool("sfdisk"),
        Tool("partx"),
        Tool("strip")
    );
    run_parts(&["first"], 5);
}
