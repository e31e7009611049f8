//! The user that this process works for.

use rustix::process::geteuid;

/// Whether the effective user is root.
#[must_use]
pub fn is_root() -> bool {
    geteuid().is_root()
}
