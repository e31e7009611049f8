//! A simulated array of disks: each does one part after the other, so that reads on few of them take longer than
//! others, with or without a boundary.

use std::convert::Infallible;
use std::time::Duration;

use plumb_load::probe::ProbeReader;
use plumb_testkit::Rng;

/// RAID 5, left-symmetric, md's default; or RAID 0.
pub struct SimulatedArray {
    pub chunk_bytes: u64,
    pub members: u64,
    pub has_parity: bool,
    /// A member needs its time for each cell of this size that a part touches; 0 for once a part.
    pub cell_bytes: u64,
    /// A member's time for a part of any length.
    pub part_ns: f64,
    /// Standard deviation of it, as a share.
    pub spread: f64,
    clock_ns: f64,
    free_ns: Vec<f64>,
    rng: Rng,
}

impl SimulatedArray {
    pub fn new(chunk_bytes: u64, members: u64, seed: u64) -> SimulatedArray {
        let free_ns = vec![0.0; members as usize];
        SimulatedArray {
            chunk_bytes,
            members,
            has_parity: true,
            cell_bytes: 0,
            part_ns: 2e6,
            spread: 0.1,
            clock_ns: 0.0,
            free_ns,
            rng: Rng::new(seed),
        }
    }

    /// The member that has a chunk: the first one behind that of the parity.
    fn member_of(&self, chunk: u64) -> usize {
        if !self.has_parity {
            return (chunk % self.members) as usize;
        }
        let (row, column) = (chunk / (self.members - 1), chunk % (self.members - 1));
        let parity = self.members - 1 - row % self.members;
        ((parity + 1 + column) % self.members) as usize
    }

    /// How many cells of a chunk a read touches, or 1.
    fn cells(&self, chunk: u64, start: u64, len_bytes: u64) -> u64 {
        if self.cell_bytes == 0 {
            return 1;
        }
        let first = start.max(chunk * self.chunk_bytes);
        let last = (start + len_bytes - 1).min((chunk + 1) * self.chunk_bytes - 1);
        last / self.cell_bytes - first / self.cell_bytes + 1
    }

    /// When a read that is sent at that time has all its parts.
    fn send(&mut self, at_ns: f64, start: u64, len_bytes: u64) -> f64 {
        let chunks = start / self.chunk_bytes..=(start + len_bytes - 1) / self.chunk_bytes;
        let mut end_ns = at_ns;
        for chunk in chunks {
            let member = self.member_of(chunk);
            // Of the continuous uniform distribution with that deviation.
            let share = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
            let part_ns = self.part_ns * self.cells(chunk, start, len_bytes) as f64;
            let own_ns = part_ns * (1.0 + self.spread * 12f64.sqrt() * share);
            let free_ns = self.free_ns[member].max(at_ns) + own_ns;
            self.free_ns[member] = free_ns;
            end_ns = end_ns.max(free_ns);
        }
        end_ns
    }
}

impl ProbeReader for SimulatedArray {
    type Error = Infallible;

    fn read_each(
        &mut self,
        starts: &[u64],
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Duration, Infallible> {
        latencies_ns.clear();
        let begin_ns = self.clock_ns;
        let mut in_flight: Vec<f64> = Vec::new();
        for &start in starts {
            if in_flight.len() >= depth as usize {
                let first =
                    (0..in_flight.len()).min_by(|a, b| in_flight[*a].total_cmp(&in_flight[*b]));
                self.clock_ns = self
                    .clock_ns
                    .max(in_flight.swap_remove(first.expect("one")));
            }
            let end_ns = self.send(self.clock_ns, start, len_bytes);
            latencies_ns.push((end_ns - self.clock_ns) as u64);
            in_flight.push(end_ns);
        }
        self.clock_ns = in_flight.into_iter().fold(self.clock_ns, f64::max);
        Ok(Duration::from_nanos((self.clock_ns - begin_ns) as u64))
    }
}
