//! Reads of a probe by a [`Session`].

use std::time::Duration;

use thiserror::Error;

use super::Reader;
use crate::run::LoadError;
use crate::session::Session;
use crate::tally::IoFailure;

/// Why a probe ends without a verdict.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Reads failed.
    #[error("{failed} of {reads} reads failed, expected none: {}", failure.as_ref().map_or_else(String::new, ToString::to_string))]
    Failed {
        /// How many of the slice.
        failed: u64,
        /// Reads of the slice.
        reads: usize,
        /// The first failure.
        failure: Option<IoFailure>,
    },
    /// They could not be made.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl Reader for Session<'_> {
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
        match slice.failed {
            0 => Ok(slice.elapsed),
            failed => Err(ReadError::Failed { failed, reads: starts.len(), failure: slice.failure }),
        }
    }
}
