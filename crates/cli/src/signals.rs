//! Commands that a signal ends in good order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::failure::Failure;

/// A flag that becomes true when SIGINT, SIGTERM or SIGHUP asks for an end. From now on these do nothing else.
///
/// # Errors
/// When the kernel refuses.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    plumb_sys::signals::stop_flag().map_err(|error| Failure::failed(&error))
}

/// The flags of a service: one for an end (SIGINT, SIGTERM), one for a reload (SIGHUP). From now on these signals do nothing else.
///
/// # Errors
/// When the kernel refuses.
pub fn service_flags() -> Result<(Arc<AtomicBool>, Arc<AtomicBool>), Failure> {
    plumb_sys::signals::service_flags().map_err(|error| Failure::failed(&error))
}
