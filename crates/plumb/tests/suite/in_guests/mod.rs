//! Features of a guest's kernel only: md, the device mapper, scsi_debug, targets, other kernels. One program, so that
//! guests run side by side; each is as slow as an emulated processor, and waits a good part of the time.

mod check;
mod driven;
mod faults;
mod kernels;
mod move_cut;
mod move_phases;
mod plan;
mod prints;
mod probe;
mod systemd;
mod targets;
mod watch;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_testkit::wait;

/// Runs a script of `lab/` to its end, and returns both of its outputs.
pub fn run_lab<Word: AsRef<OsStr>>(script: &str, args: impl IntoIterator<Item = Word>) -> String {
    let (is_success, said) = lab(script, args);
    assert!(is_success, "{said}");
    said
}

/// Runs a script of `lab/` to its end, and returns whether it succeeded, and both of its outputs.
pub fn lab<Word: AsRef<OsStr>>(
    script: &str,
    args: impl IntoIterator<Item = Word>,
) -> (bool, String) {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab");
    let mut command = Command::new(lab.join(script));
    let done = wait::output_within(
        wait::GUEST_PATIENCE,
        command.args(args).stdin(Stdio::null()),
    );
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    (done.status.success(), said)
}

/// The program that runs in a guest, with the libraries that it is linked to.
fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_plumb"))
}
