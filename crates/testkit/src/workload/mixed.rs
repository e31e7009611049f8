//! A busy host with everything at once, fast enough to measure readers with.

use super::pace::{LatencyTable, WorkloadClock};
use crate::event::{SynthEvent, SynthOp};
use crate::rng::{self, Rng};

/// Parameters of the busy host.
///
/// Roughly: 56 % reads, 41 % writes, 1.5 % discards, 0.8 % flushes; three of ten transfers continue one of
/// `streams` streams a device; sizes from 512 B to 1 MiB with 4 and 8 KiB most frequent, 6 % no multiple of 4 KiB.
/// Devices begin their data at sectors 0, 34, 63, 2048 and 256 by turns, so that phases differ. Of these numbers
/// none is exact: use the other workloads where the answer has to be known.
#[derive(Debug, Clone)]
pub struct Mixed {
    /// Seed.
    pub seed: u64,
    /// How many events.
    pub events: u64,
    /// How many devices.
    pub devices: u32,
    /// How many CPUs issue.
    pub cpus: u32,
    /// Streams a device.
    pub streams: u32,
    /// Mean time between issues over all devices, ns.
    pub mean_gap_ns: u64,
}

impl Default for Mixed {
    /// A million events on 16 devices and 16 CPUs, at 40,000 a second.
    fn default() -> Self {
        Self {
            seed: 1,
            events: 1_000_000,
            devices: 16,
            cpus: 16,
            streams: 4,
            mean_gap_ns: 25_000,
        }
    }
}

/// Lengths in sectors, one drawn from 32.
const SIZES: [u16; 32] = [
    8, 8, 8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16, 32, 32, 32, 64, 64, 128, 128, 128, 256,
    256, 512, 2048, 1, 7, 24, 33,
];

/// First sectors of the partitions.
const PARTITION_STARTS: [u64; 5] = [0, 34, 63, 2048, 256];

/// Sectors of each device.
const DEVICE_SECTORS: u64 = 1 << 31;

const COMMS: [&str; 10] = [
    "oracle",
    "mysqld",
    "kworker/u32:3",
    "jbd2/sda1-8",
    "java",
    "rsync",
    "postgres",
    "qemu-kvm",
    "Readahead Threa",
    "xfsaild/dm-2",
];

impl Mixed {
    /// The events; prints the seed.
    #[must_use]
    pub fn iter(&self) -> MixedIter {
        rng::announce("Mixed", self.seed);
        let devices = self.devices.max(1);
        let mut rng = Rng::new(self.seed);
        let streams = self.streams.max(1);
        let tails = (0..u64::from(devices) * u64::from(streams))
            .map(|_| (rng.below(DEVICE_SECTORS / 2048) * 2048, 128));
        MixedIter {
            tails: tails.collect(),
            left: self.events,
            devices,
            streams,
            cpus: self.cpus.max(1),
            pace: WorkloadClock::new(self.mean_gap_ns, self.seed),
            reads: LatencyTable::new(350_000, 300, 200_000_000, self.seed ^ 0xc3),
            writes: LatencyTable::new(90_000, 330, 200_000_000, self.seed ^ 0xd4),
            rng,
        }
    }
}

/// Iterator of [`Mixed`].
#[derive(Debug, Clone)]
pub struct MixedIter {
    rng: Rng,
    left: u64,
    devices: u32,
    streams: u32,
    cpus: u32,
    /// Next sector and length in sectors of each stream of each device.
    tails: Vec<(u64, u64)>,
    pace: WorkloadClock,
    reads: LatencyTable,
    writes: LatencyTable,
}

/// `bits` (of 16) as a share of `bound`.
fn share(bits: u64, bound: u32) -> u32 {
    (((bits & 0xffff) * u64::from(bound)) >> 16) as u32
}

impl MixedIter {
    /// Start and length in sectors of a transfer; streams read and write by their own number.
    fn transfer(&mut self, device: u32, bits: u64) -> (bool, u64, u64) {
        if bits % 10 < 3 {
            let stream = share(bits >> 16, self.streams);
            let tail = &mut self.tails[(device * self.streams + stream) as usize];
            let start = tail.0;
            tail.0 = if start + 4096 > DEVICE_SECTORS {
                2048
            } else {
                start + tail.1
            };
            return (stream.is_multiple_of(2), start, tail.1);
        }
        let sectors = u64::from(SIZES[(bits >> 32 & 31) as usize]);
        // Whole pages start on a page, odd lengths on any sector, as files and logs do.
        let grain = if sectors.is_multiple_of(8) { 8 } else { 1 };
        let start = self.rng.below((DEVICE_SECTORS - 4096) / grain) * grain;
        (bits >> 40 & 0xff < 156, start, sectors)
    }
}

impl Iterator for MixedIter {
    type Item = SynthEvent;

    #[inline]
    fn next(&mut self) -> Option<SynthEvent> {
        self.left = self.left.checked_sub(1)?;
        let (bits, times) = (self.rng.next_u64(), self.rng.next_u64());
        let device = share(bits, self.devices);
        let place = self.rng.next_u64();
        let (read, sector, sectors) = self.transfer(device, place);
        let (op, sector, sectors) = match bits >> 16 & 0x7f {
            0 => (SynthOp::Flush, 0, 0),
            1 | 2 => (SynthOp::Discard, sector & !2047, 2048),
            _ if read => (SynthOp::Read, sector, sectors),
            _ => (SynthOp::Write, sector, sectors),
        };
        let base = if op == SynthOp::Flush {
            0
        } else {
            PARTITION_STARTS[device as usize % PARTITION_STARTS.len()]
        };
        let who = share(bits >> 24, COMMS.len() as u32);
        let latency = if op == SynthOp::Read {
            &self.reads
        } else {
            &self.writes
        };
        Some(SynthEvent {
            time_ns: self.pace.next_ns(times),
            device,
            op,
            start_bytes: (base + sector) * 512,
            len_bytes: sectors * 512,
            device_ns: Some(latency.draw(times & 0xffff) + (place >> 54) as i64),
            queue_ns: Some(self.pace.queue_ns(times >> 7)),
            pid: 1000 + who * 16 + (bits >> 40 & 3) as u32,
            comm: COMMS[who as usize],
            cpu: share(bits >> 44, self.cpus),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn has_every_kind_on_every_device() {
        let load = Mixed {
            events: 200_000,
            ..Mixed::default()
        };
        let mut ops = BTreeMap::new();
        let (mut devices, mut comms, mut sizes) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut previous_ns = 0;
        for event in load.iter() {
            *ops.entry(event.op).or_insert(0u32) += 1;
            devices.insert(event.device);
            comms.insert(event.comm);
            sizes.insert(event.len_bytes);
            assert!(event.time_ns > previous_ns && event.insert_ns() >= 0);
            previous_ns = event.time_ns;
        }
        assert_eq!(
            (devices.len(), comms.len(), sizes.len()),
            (16, 10, 13),
            "{sizes:?}"
        );
        let percent = |op| ops[&op] / 2_000;
        assert!((50..65).contains(&percent(SynthOp::Read)), "{ops:?}");
        assert!((33..45).contains(&percent(SynthOp::Write)), "{ops:?}");
        assert_eq!(percent(SynthOp::Discard), 1);
        assert_eq!(load.iter().count(), 200_000);
    }

    #[test]
    fn same_seed_same_events() {
        let load = Mixed {
            events: 10_000,
            ..Mixed::default()
        };
        assert!(load.iter().eq(load.iter()));
        assert!(load.iter().ne(Mixed { seed: 2, ..load }.iter()));
    }
}
