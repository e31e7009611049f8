//! A database: random pages, and some sequential readers, all with the phase of one partition.

use super::pace::{LatencyTable, WorkloadClock};
use super::recent::Recent;
use crate::event::{SynthEvent, SynthOp};
use crate::rng::{self, Rng};

/// Parameters of a database workload.
///
/// Known: every start is `partition_start_sectors` · 512 modulo `page_bytes`, and pages are uniform, so no
/// granularity above the page shows a phase. Of every hundred events the first `stream_percent` belong to the
/// streams, by turns; all others are stream heads, checked against the last 512 ends.
#[derive(Debug, Clone)]
pub struct Oltp {
    /// Seed.
    pub seed: u64,
    /// How many events.
    pub events: u64,
    /// First sector of the partition: the phase.
    pub partition_start_sectors: u64,
    /// Page, and length of every I/O.
    pub page_bytes: u64,
    /// Pages of the database. The streams run above them.
    pub pages: u64,
    /// Of 100 random I/O, how many read.
    pub read_percent: u64,
    /// Sequential readers; at most 100, so that a detector that looks back 256 I/O finds every one.
    pub streams: u64,
    /// Of every 100 events, how many are of a stream.
    pub stream_percent: u64,
    /// Mean time between issues, ns.
    pub mean_gap_ns: u64,
    /// The device.
    pub device: u32,
}

impl Default for Oltp {
    /// 100,000 pages of 8 KiB, 70 % reads, on a partition at sector 63, with two scans that make 10 % of it.
    fn default() -> Self {
        Self {
            seed: 1,
            events: 100_000,
            partition_start_sectors: 63,
            page_bytes: 8192,
            pages: 1 << 23,
            read_percent: 70,
            streams: 2,
            stream_percent: 10,
            mean_gap_ns: 100_000,
            device: 0,
        }
    }
}

impl Oltp {
    /// How many events belong to a stream.
    #[must_use]
    pub fn stream_events(&self) -> u64 {
        let (hundreds, rest) = (self.events / 100, self.events % 100);
        if self.streams == 0 {
            return 0;
        }
        hundreds * self.stream_percent.min(100) + rest.min(self.stream_percent)
    }

    /// How many events do not start where a recent one of the same kind ended: the random ones, and the
    /// first of each stream.
    #[must_use]
    pub fn heads(&self) -> u64 {
        let in_streams = self.stream_events();
        self.events - in_streams + in_streams.min(self.streams)
    }

    /// The events; prints the seed.
    pub fn iter(&self) -> impl Iterator<Item = SynthEvent> + use<> {
        rng::announce("Oltp", self.seed);
        let mut state = OltpState::new(self.clone());
        (0..self.events).map(move |index| state.event(index))
    }
}

struct OltpState {
    plan: Oltp,
    rng: Rng,
    recent: Recent,
    pace: WorkloadClock,
    latency: LatencyTable,
    next_in_stream: Vec<u64>,
    turn: usize,
}

impl OltpState {
    fn new(plan: Oltp) -> Self {
        let per_stream = plan.events / plan.streams.max(1) + 2;
        // A page between the regions keeps one stream from running into the next.
        let first_page = |stream| plan.pages + 1 + stream * per_stream;
        Self {
            rng: Rng::new(plan.seed),
            recent: Recent::default(),
            pace: WorkloadClock::new(plan.mean_gap_ns, plan.seed),
            latency: LatencyTable::new(250_000, 256, 50_000_000, plan.seed ^ 0xa1),
            next_in_stream: (0..plan.streams).map(first_page).collect(),
            turn: 0,
            plan,
        }
    }

    fn event(&mut self, index: u64) -> SynthEvent {
        let streaming = !self.next_in_stream.is_empty() && index % 100 < self.plan.stream_percent;
        let (op, page) = if streaming {
            self.stream_page()
        } else {
            self.random_page()
        };
        SynthEvent {
            time_ns: self.pace.next_ns(self.rng.next_u64()),
            device: self.plan.device,
            op,
            start_bytes: self.plan.partition_start_sectors * 512 + page * self.plan.page_bytes,
            len_bytes: self.plan.page_bytes,
            device_ns: Some(self.latency.draw(self.rng.next_u64())),
            queue_ns: Some(self.pace.queue_ns(self.rng.next_u64())),
            pid: if streaming {
                3000 + self.turn as u32
            } else {
                2000 + (index % 8) as u32
            },
            comm: if streaming { "oracle_scan" } else { "oracle" },
            cpu: (index % 4) as u32,
        }
    }

    fn stream_page(&mut self) -> (SynthOp, u64) {
        self.turn = (self.turn + 1) % self.next_in_stream.len();
        let page = &mut self.next_in_stream[self.turn];
        *page += 1;
        (SynthOp::Read, *page - 1)
    }

    fn random_page(&mut self) -> (SynthOp, u64) {
        let op = if self.rng.percent(self.plan.read_percent) {
            SynthOp::Read
        } else {
            SynthOp::Write
        };
        let (rng, pages) = (&mut self.rng, self.plan.pages);
        (op, self.recent.fresh_start(1, || rng.below(pages)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::streams::tests::heads_by_brute_force;

    #[test]
    fn every_start_has_the_phase_of_the_partition() {
        let load = Oltp {
            events: 10_000,
            ..Oltp::default()
        };
        for event in load.iter() {
            assert_eq!(event.start_bytes % 8192, 63 * 512 % 8192);
            assert_eq!(event.len_bytes, 8192);
        }
    }

    #[test]
    fn heads_are_as_many_as_stated() {
        for streams in [0, 1, 7] {
            // A small database, so that accidental continuations would happen if they were not prevented.
            let load = Oltp {
                events: 20_050,
                streams,
                pages: 4_000,
                ..Oltp::default()
            };
            assert_eq!(
                heads_by_brute_force(load.iter(), 256),
                load.heads(),
                "{streams} streams"
            );
        }
    }

    #[test]
    fn times_go_up_and_seeds_matter() {
        let load = Oltp {
            events: 1000,
            ..Oltp::default()
        };
        let events: Vec<_> = load.iter().collect();
        assert!(
            events
                .windows(2)
                .all(|pair| pair[0].time_ns < pair[1].time_ns)
        );
        assert!(events.iter().all(|e| e.insert_ns() >= 0));
        assert_eq!(events, load.iter().collect::<Vec<_>>());
        assert_ne!(events, Oltp { seed: 2, ..load }.iter().collect::<Vec<_>>());
    }
}
