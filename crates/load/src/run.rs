//! Carries a plan out.

use std::sync::atomic::AtomicBool;

use plumb_sys::SysError;
use thiserror::Error;

use crate::outcome::{Interval, Outcome};
use crate::plan::Plan;
use crate::workload::WorkloadError;

/// Why a plan cannot be carried out.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It does not fit its target.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The system refuses what is needed for it.
    #[error(transparent)]
    System(#[from] SysError),
}

/// Carries a plan out. `stop` ends it early; `tell` is called once an interval.
///
/// # Errors
/// When the plan does not fit its targets, before anything is read or written.
pub fn run(
    plan: &Plan<'_>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Interval<'_>),
) -> Result<Outcome, LoadError> {
    let _ = (plan, stop, tell);
    todo!()
}
