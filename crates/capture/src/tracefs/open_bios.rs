//! Bios that have not ended, by their ends: their completion is not always a separate event.

use std::collections::BTreeMap;

use plumb_trace::Op;

use super::event::Event;

/// Bios that are remembered; the end of further ones is not seen.
const BIOS_MAX: usize = 1 << 16;

/// A bio that was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bio {
    pub(super) sector: u64,
    pub(super) sectors: u64,
    pub(super) op: Op,
    since_ns: u64,
}

/// Those of one disk.
#[derive(Default)]
pub(super) struct OpenBios {
    /// By end, beginning, and a number that tells apart those of one extent.
    by_end: BTreeMap<(u64, u64, u64), Bio>,
    next: u64,
}

impl OpenBios {
    pub(super) fn insert(&mut self, event: &Event) {
        if self.by_end.len() >= BIOS_MAX {
            return;
        }
        let bio = Bio {
            sector: event.sector,
            sectors: event.sectors,
            op: event.op,
            since_ns: event.time_ns,
        };
        self.by_end
            .insert((event.end(), event.sector, self.next), bio);
        self.next += 1;
    }

    /// The oldest of an extent.
    pub(super) fn take(&mut self, sector: u64, end: u64) -> Option<Bio> {
        let key = *self
            .by_end
            .range((end, sector, 0)..=(end, sector, u64::MAX))
            .next()?
            .0;
        self.by_end.remove(&key)
    }

    /// One that ends at a sector.
    pub(super) fn take_ending_at(&mut self, end: u64) -> Option<Bio> {
        let key = *self
            .by_end
            .range((end, 0, 0)..=(end, u64::MAX, u64::MAX))
            .next()?
            .0;
        self.by_end.remove(&key)
    }

    /// Those whose last sector is in an extent, one of those that are alike.
    pub(super) fn take_ending_within(&mut self, sector: u64, end: u64) -> Vec<Bio> {
        if end <= sector {
            return Vec::new();
        }
        let within = self
            .by_end
            .range((sector.saturating_add(1), 0, 0)..=(end, u64::MAX, u64::MAX));
        let mut keys: Vec<(u64, u64, u64)> = within.map(|(key, _)| *key).collect();
        keys.dedup_by_key(|key| (key.0, key.1));
        keys.iter()
            .filter_map(|key| self.by_end.remove(key))
            .collect()
    }

    pub(super) fn forget_before(&mut self, oldest_ns: u64) {
        self.by_end.retain(|_, bio| bio.since_ns >= oldest_ns);
    }
}
