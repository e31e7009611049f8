//! Probes that a user ends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plumb_load::probe::{ProbeReader, ProbeVerdict, Probed, Reason, Sliced, Watched, probe};

use super::device::{Failed, SimulatedDevice};
use super::{grid, settings};

/// Sets a flag after a number of reads.
struct UntilRead<'a> {
    device: SimulatedDevice,
    left: u64,
    stop: &'a AtomicBool,
}

impl ProbeReader for UntilRead<'_> {
    type Error = Failed;

    fn read_each(
        &mut self,
        starts: &[u64],
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Duration, Failed> {
        assert!(
            !self.stop.load(Ordering::Relaxed),
            "a read after the end: {starts:?}"
        );
        self.left = self.left.saturating_sub(starts.len() as u64);
        if self.left == 0 {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.device
            .read_each(starts, len_bytes, depth, latencies_ns)
    }

    fn slice(
        &mut self,
        starts: &[u64],
        lead: usize,
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Sliced, Failed> {
        self.left = self.left.saturating_sub(starts.len() as u64);
        if self.left == 0 {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.device
            .slice(starts, lead, len_bytes, depth, latencies_ns)
    }
}

/// The probe of a device that a user ends after a number of reads, and the reads that were counted.
fn ended_after(reads: u64, offset: u64) -> (Probed, u64) {
    let (stop, counted) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut reader = UntilRead {
        device: SimulatedDevice::throttled(4096, offset, 2.0, 5),
        left: reads,
        stop: &stop,
    };
    let mut watched = Watched::new(&mut reader, &stop, &counted);
    let probed = probe(&mut watched, &settings(7)).expect("no read fails");
    (probed, counted.into_inner())
}

/// A probe that a user ends stops after the slice in flight, and has no verdict.
#[test]
fn an_ended_probe_has_no_verdict() {
    for offset in [0, 1024] {
        let (whole, reads) = ended_after(u64::MAX, offset);
        assert_eq!(
            (whole.grid, whole.reads),
            (grid(4096, offset), reads),
            "every read is counted"
        );
        let mut seen_early = 0;
        for part in 0..40 {
            let most = 1 + reads * part / 40;
            let (probed, counted) = ended_after(most, offset);
            assert_eq!(
                probed.verdict,
                ProbeVerdict::Inconclusive(Reason::Ended),
                "after {most} of {reads}"
            );
            assert_eq!(counted, probed.reads);
            assert!(
                (most..most + 1_100).contains(&counted),
                "{counted} of {most}"
            );
            seen_early += u32::from(probed.grid.is_some());
            assert!(probed.grid.is_none() || probed.grid == whole.grid);
        }
        assert!(
            seen_early > 3,
            "the result names a grid that the reads have shown: {seen_early} times"
        );
    }
}
