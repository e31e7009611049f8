//! Interleaved sequential streams and nothing else.

use super::pace::{LatencyTable, WorkloadClock};
use crate::event::{SynthEvent, SynthOp};
use crate::rng::{self, Rng};

/// Parameters: `streams` readers or writers that take turns.
///
/// Known: with at most 256 streams the first event of each is a head and every other continues a stream;
/// with more, a detector that looks back 256 I/O finds none, and every event is a head.
#[derive(Debug, Clone)]
pub struct Streams {
    /// Seed of the times and of the streams' starts.
    pub seed: u64,
    /// How many events.
    pub events: u64,
    /// How many streams take turns.
    pub streams: u64,
    /// Length of each I/O.
    pub len_bytes: u64,
    /// Added to every start.
    pub phase_bytes: u64,
    /// Their operation.
    pub op: SynthOp,
    /// The device.
    pub device: u32,
}

impl Default for Streams {
    /// 100,000 reads of 64 KiB in eight streams.
    fn default() -> Self {
        Self {
            seed: 1,
            events: 100_000,
            streams: 8,
            len_bytes: 65_536,
            phase_bytes: 0,
            op: SynthOp::Read,
            device: 0,
        }
    }
}

impl Streams {
    /// Events that continue no stream, for a detector that remembers the last `look_back` ends.
    #[must_use]
    pub fn heads(&self, look_back: u64) -> u64 {
        if self.streams <= look_back {
            self.events.min(self.streams)
        } else {
            self.events
        }
    }

    /// The events; prints the seed.
    pub fn iter(&self) -> impl Iterator<Item = SynthEvent> + use<> {
        rng::announce("Streams", self.seed);
        let plan = self.clone();
        let streams = plan.streams.max(1);
        let turns = plan.events / streams + 1;
        let mut rng = Rng::new(plan.seed);
        let mut pace = WorkloadClock::new(200_000, plan.seed);
        let latency = LatencyTable::new(180_000, 160, 50_000_000, plan.seed);
        // Each stream has a region of its own with room before and after.
        let firsts: Vec<u64> = (0..streams)
            .map(|s| s * (turns + 64) + 1 + rng.below(60))
            .collect();
        (0..plan.events).map(move |index| {
            let stream = (index % streams) as usize;
            SynthEvent {
                time_ns: pace.next_ns(rng.next_u64()),
                device: plan.device,
                op: plan.op,
                start_bytes: plan.phase_bytes + (firsts[stream] + index / streams) * plan.len_bytes,
                len_bytes: plan.len_bytes,
                device_ns: Some(latency.draw(rng.next_u64())),
                queue_ns: Some(pace.queue_ns(rng.next_u64())),
                pid: 5000 + stream as u32,
                comm: "dd",
                cpu: stream as u32 % 4,
            }
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// The slow and obvious detector: the last `look_back` ends of the device, of any kind of I/O but
    /// matched by kind.
    pub fn heads_by_brute_force(events: impl Iterator<Item = SynthEvent>, look_back: usize) -> u64 {
        let mut last: VecDeque<(u32, SynthOp, u64)> = VecDeque::new();
        let mut heads = 0;
        for event in events {
            let continues = last.contains(&(event.device, event.op, event.start_bytes));
            heads += u64::from(!continues);
            last.push_back((event.device, event.op, event.end_bytes()));
            if last.len() > look_back {
                last.pop_front();
            }
        }
        heads
    }

    #[test]
    fn heads_are_as_many_as_stated() {
        for streams in [1, 8, 255, 256, 257, 1000] {
            let load = Streams {
                events: 5_000,
                streams,
                phase_bytes: 512 * 7,
                ..Streams::default()
            };
            assert_eq!(
                heads_by_brute_force(load.iter(), 256),
                load.heads(256),
                "{streams} streams"
            );
        }
    }
}
