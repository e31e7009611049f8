//! A target that is read or written at starts that somebody else chose: for measurements that decide, slice by slice, where
//! the next I/O goes.

use std::time::Duration;

use crate::outcome::Means;
use crate::permission::MayWrite;
use crate::run::LoadError;
use crate::target::Target;

/// A target with all that is needed to send it I/O.
pub struct Session<'a> {
    target: &'a Target,
}

/// What came of one slice of I/O.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// From the first issue to the last completion; where writes take turns with reads, of the writes alone.
    pub elapsed: Duration,
    /// I/O that failed; their places in the latencies hold `u64::MAX`.
    pub failed: u64,
    /// How the first of them failed.
    pub failure: Option<crate::IoFailure>,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes without a meaning: what was there is lost.
    Noise,
    /// What was read there just before. Only while nobody else writes there.
    AsRead,
}

impl<'a> Session<'a> {
    /// Makes ready for I/O of up to `len_bytes_max` with up to `depth_max` in flight.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn open(target: &'a Target, len_bytes_max: u32, depth_max: u32) -> Result<Session<'a>, LoadError> {
        let _ = (len_bytes_max, depth_max);
        Ok(Session { target })
    }

    /// How I/O are made.
    #[must_use]
    pub fn means(&self) -> Means {
        todo!()
    }

    /// Reads `len_bytes` at each start, in this order, with up to `depth` in flight; `latencies_ns` has one entry a start
    /// afterwards, in the order of the starts.
    ///
    /// # Errors
    /// When starts or length do not fit the target or this session.
    pub fn read_each(
        &mut self,
        starts: &[u64],
        len_bytes: u32,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Slice, LoadError> {
        let _ = (starts, len_bytes, depth, latencies_ns, self.target);
        todo!()
    }

    /// Writes `len_bytes` at each start, as [`Session::read_each`] reads.
    ///
    /// # Errors
    /// When the permission is for another target, or starts or length do not fit.
    pub fn write_each(
        &mut self,
        may_write: &MayWrite,
        content: Content,
        starts: &[u64],
        len_bytes: u32,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Slice, LoadError> {
        let _ = (may_write, content, starts, len_bytes, depth, latencies_ns);
        todo!()
    }
}
