//! What only a guest's kernel has: md, the device mapper, scsi_debug, targets, other kernels. One program, so that guests run
//! side by side; each is as slow as an emulated processor, and waits a good part of the time.

mod check;
mod driven;
mod move_cut;
mod move_phases;
mod plan;
mod probe;
mod targets;
mod watch;

use std::path::PathBuf;

/// The static binary that `make test` builds for guests and hosts without libraries, where it can: it is fast there.
fn static_binary() -> Option<PathBuf> {
    std::env::var_os("PLUMB_STATIC").map(PathBuf::from)
}

/// What runs in a guest.
fn program() -> PathBuf {
    static_binary().unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_plumb")))
}
