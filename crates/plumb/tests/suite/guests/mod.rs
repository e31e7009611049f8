//! What only a guest's kernel has: md, the device mapper, scsi_debug, targets, other kernels. One program, so that guests run
//! side by side; each is as slow as an emulated processor, and waits a good part of the time.

mod check;
mod driven;
mod faults;
mod move_cut;
mod move_phases;
mod plan;
mod probe;
mod targets;
mod watch;

use std::path::PathBuf;

/// The program that runs in a guest, with the libraries that it is linked to.
fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_plumb"))
}
