//! Writes of a probe: at each place the bytes that were read there just before, so that the target keeps its content,
//! for any end of the probe. They replace reads; the search is the same.

use std::time::Duration;

use super::media::{MEMORY_NS, is_charged};
use super::session::{ReadError, must_be_whole};
use super::{Broken, ProbeReader, Probed, Sliced};
use crate::permission::MayWrite;
use crate::session::{APART_BYTES, Session, SessionSlice};

/// Slots for a session that writes back: a slice of writes that take 125 µs or more is then read whole before it is written,
/// and nothing comes between its writes.
pub const SLOTS: u32 = 66;
/// Of the parts that are written to, this much for each write in flight: the places of a probe are then far enough
/// apart that none has to wait for its neighbour, which would look more expensive.
const ROOM_BYTES: u64 = 15 * APART_BYTES / 4;

/// Writes that are made alone.
const LONE_MAX: usize = 48;

/// Writes in the place of reads.
pub struct WriteBack<'s, 'a> {
    session: &'s mut Session<'a>,
    may_write: &'s MayWrite,
}

impl<'s, 'a> WriteBack<'s, 'a> {
    /// Writes by a session with [`SLOTS`] or more.
    pub fn new(session: &'s mut Session<'a>, may_write: &'s MayWrite) -> WriteBack<'s, 'a> {
        WriteBack { session, may_write }
    }

    /// Median time of a short write alone, at the beginning of some of these parts; `None` without any.
    ///
    /// # Errors
    /// When one fails.
    pub fn lone_ns(&mut self, parts: &[(u64, u64)]) -> Result<Option<u64>, Broken<ReadError>> {
        let block = u64::from(self.session.target().block_bytes().max(512));
        let has_room = |start: &u64, end: u64| *start + block <= end;
        let starts = parts.iter().filter_map(|&(start, end)| {
            Some(start.next_multiple_of(block)).filter(|start| has_room(start, end))
        });
        let starts: Vec<u64> = starts.take(LONE_MAX).collect();
        let mut latencies_ns = Vec::new();
        self.slice(&starts, 0, block, 1, &mut latencies_ns)
            .map_err(|error| Broken {
                error,
                reads: 0,
                bytes: 0,
            })?;
        latencies_ns.sort_unstable();
        Ok(latencies_ns.get(latencies_ns.len() / 2).copied())
    }
}

impl ProbeReader for WriteBack<'_, '_> {
    type Error = ReadError;

    fn read_each(
        &mut self,
        starts: &[u64],
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Duration, ReadError> {
        self.slice(starts, 0, len_bytes, depth, latencies_ns)
            .map(|sliced| sliced.timed)
    }

    fn slice(
        &mut self,
        starts: &[u64],
        lead: usize,
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Sliced, ReadError> {
        // Lengths of a probe are a few MiB at most.
        let len_bytes = u32::try_from(len_bytes).unwrap_or(u32::MAX);
        let written = self.session.write_back_each(
            self.may_write,
            starts,
            lead,
            len_bytes,
            depth,
            latencies_ns,
        )?;
        let SessionSlice {
            elapsed, beside, ..
        } = must_be_whole(written, starts, latencies_ns)?;
        Ok(Sliced {
            timed: elapsed,
            beside,
        })
    }
}

/// As many writes in flight as are wanted, or as the parts have room for.
#[must_use]
pub fn depth_within(space_bytes: u64, wanted: u32) -> u32 {
    let room = u32::try_from(space_bytes / ROOM_BYTES).unwrap_or(u32::MAX);
    wanted.min(room).max(1)
}

/// Why a measurement of writes would not be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteDoubt {
    /// They take no longer than memory would.
    Memory {
        /// Time of a write.
        ns: u64,
    },
    /// They go through the page cache, which writes whole pages by itself.
    PageCache,
}

/// The reason against a measurement of writes: `lone_ns` is the time of a lone one at first, `passes_cache` whether
/// they are known to use a page cache.
#[must_use]
pub fn doubt(probed: &Probed, lone_ns: Option<u64>, passes_cache: bool) -> Option<WriteDoubt> {
    let stays = probed
        .settled_ns
        .is_none_or(|settled_ns| settled_ns <= MEMORY_NS as f64);
    match lone_ns {
        Some(ns) if ns < MEMORY_NS && stays => Some(WriteDoubt::Memory { ns }),
        _ if passes_cache && !is_charged(probed) => Some(WriteDoubt::PageCache),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_have_room_for_few() {
        for (space_mib, wanted, expected) in [
            (1, 4, 1),
            (29, 4, 1),
            (30, 4, 2),
            (64, 4, 4),
            (1024, 256, 68),
        ] {
            assert_eq!(
                depth_within(space_mib << 20, wanted),
                expected,
                "{space_mib} MiB"
            );
        }
    }
}
