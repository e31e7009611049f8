//! Reads of a probe by a [`Session`], and the handling of failed I/O.

use std::time::Duration;

use plumb_geometry::{group_digits, plural};
use thiserror::Error;

use super::ProbeReader;
use crate::run::LoadError;
use crate::session::{FAILED_NS, Session, SessionSlice};
use crate::tally::IoFailure;

/// Why a probe ends without a verdict.
#[derive(Debug, Error)]
pub enum ReadError {
    /// I/O failed.
    #[error("{} failed, expected none: the first one at byte {}: {failure}", plural(*failed, if *is_write { "write" } else { "read" }), group_digits(*at))]
    Failed {
        /// How many, of those that were in flight then.
        failed: u64,
        /// Whether they were writes.
        is_write: bool,
        /// The start of the first of them.
        at: u64,
        /// How one of them failed.
        failure: IoFailure,
    },
    /// They could not be made.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl ProbeReader for Session<'_> {
    type Error = ReadError;

    fn read_each(
        &mut self,
        starts: &[u64],
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Duration, ReadError> {
        // Lengths of a probe are a few MiB at most.
        let len_bytes = u32::try_from(len_bytes).unwrap_or(u32::MAX);
        let slice = Session::read_each(self, starts, len_bytes, depth, latencies_ns)?;
        must_be_whole(slice, starts, latencies_ns).map(|slice| slice.elapsed)
    }
}

/// A slice without failures.
pub(super) fn must_be_whole(
    slice: SessionSlice,
    starts: &[u64],
    latencies_ns: &[u64],
) -> Result<SessionSlice, ReadError> {
    let Some(failure) = slice.failure else {
        return Ok(slice);
    };
    let first = latencies_ns.iter().position(|&ns| ns == FAILED_NS);
    let at = first
        .and_then(|number| starts.get(number))
        .copied()
        .unwrap_or_default();
    Err(ReadError::Failed {
        failed: slice.failed,
        is_write: slice.is_write,
        at,
        failure,
    })
}
