//! Tests that submit I/O by `io_submit`, kept apart from tests of `watch --app`.
//!
//! `watch --app` cannot see the file system of an `io_submit`: such a call of any process makes the bytes of every file system
//! unknown while it is watched.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static AIO: RwLock<()> = RwLock::new(());

/// Hold this while the test calls `io_submit`.
pub fn submit() -> RwLockWriteGuard<'static, ()> {
    AIO.write().unwrap_or_else(PoisonError::into_inner)
}

/// Hold this while the test expects that no other test calls `io_submit`.
pub fn exclude() -> RwLockReadGuard<'static, ()> {
    AIO.read().unwrap_or_else(PoisonError::into_inner)
}
