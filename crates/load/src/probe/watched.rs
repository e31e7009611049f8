//! A reader that others follow and may end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::{ProbeReader, Sliced};

/// A reader with a flag that ends the probe, and a count that tells how far it has come.
pub struct Watched<'a, R> {
    reader: &'a mut R,
    stop: &'a AtomicBool,
    reads: &'a AtomicU64,
}

impl<'a, R> Watched<'a, R> {
    /// Ends the probe once `stop` is set, and adds every read to `reads`.
    pub fn new(reader: &'a mut R, stop: &'a AtomicBool, reads: &'a AtomicU64) -> Watched<'a, R> {
        Watched {
            reader,
            stop,
            reads,
        }
    }

    fn count(&self, starts: &[u64]) {
        self.reads.fetch_add(starts.len() as u64, Ordering::Relaxed);
    }
}

impl<R: ProbeReader> ProbeReader for Watched<'_, R> {
    type Error = R::Error;

    fn read_each(
        &mut self,
        starts: &[u64],
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Duration, Self::Error> {
        let elapsed = self
            .reader
            .read_each(starts, len_bytes, depth, latencies_ns)?;
        self.count(starts);
        Ok(elapsed)
    }

    fn slice(
        &mut self,
        starts: &[u64],
        lead: usize,
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Sliced, Self::Error> {
        let sliced = self
            .reader
            .slice(starts, lead, len_bytes, depth, latencies_ns)?;
        self.count(starts);
        Ok(sliced)
    }

    fn is_ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
