//! The places with the most I/O, and the latencies at each since it was last idle: a completion without an issue makes them
//! doubtful.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::pending::{IoKey, SAME_PLACE_NS_MAX};

/// Latencies at a place since it was last idle.
#[derive(Clone, Copy)]
struct BusyPlace {
    key: IoKey,
    given: u64,
    done_ns: i64,
    /// Completions there less those of other places that would take its slot.
    votes: u32,
}

/// Latencies at the places with the most I/O. A place has one slot, which others take over if they have more I/O.
#[derive(Default)]
pub(crate) struct BusyPlaces(Vec<Option<BusyPlace>>);

impl BusyPlaces {
    /// A power of two. Places with less than one I/O in this number may be missed: they move no percentile.
    const SLOTS: usize = 1 << 10;

    fn slot(&mut self, key: IoKey) -> &mut Option<BusyPlace> {
        if self.0.is_empty() {
            self.0.resize(BusyPlaces::SLOTS, None);
        }
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        // The upper bits of the hash are the good ones.
        let at = (hasher.finish() >> 48) as usize % BusyPlaces::SLOTS;
        &mut self.0[at]
    }

    /// A latency was given.
    pub(crate) fn count(&mut self, key: IoKey, issued_ns: i64, done_ns: i64) {
        let slot = self.slot(key);
        match slot {
            Some(place) if place.key == key => {
                if issued_ns.saturating_sub(place.done_ns) > SAME_PLACE_NS_MAX {
                    place.given = 0;
                }
                place.given += 1;
                place.votes = place.votes.saturating_add(1);
                place.done_ns = done_ns;
            }
            Some(place) if place.votes > 0 => place.votes -= 1,
            _ => {
                *slot = Some(BusyPlace {
                    key,
                    given: 1,
                    done_ns,
                    votes: 1,
                });
            }
        }
    }

    /// Takes the latencies that were given at a place up to a time, unless it was idle since.
    pub(crate) fn take(&mut self, key: IoKey, now_ns: i64) -> u64 {
        let Some(place) = self.slot(key).as_mut().filter(|place| place.key == key) else {
            return 0;
        };
        let given = std::mem::take(&mut place.given);
        match now_ns.saturating_sub(place.done_ns) > SAME_PLACE_NS_MAX {
            true => 0,
            false => given,
        }
    }
}
