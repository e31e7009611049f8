//! A simulated device: its charge for a read is known by construction, and so is the noise.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use plumb_load::probe::ProbeReader;
use plumb_testkit::Rng;

/// The charge of a read beside its length.
#[derive(Clone, Copy, Debug)]
pub enum Charge {
    /// A throttle counts whole cells in units of this size, at least one: a throttle of I/O of a size, over a device
    /// that reads whole cells.
    Cells { unit_bytes: f64 },
    /// One command for each cell touched, the first for 1 and each further one for `more`, and transfer by the byte.
    Commands { more: f64, bytes_for_1: f64 },
}

/// A second grid: a read pays this share of the cheapest read more for each of its boundaries that it crosses.
#[derive(Clone, Copy, Debug)]
pub struct Second {
    pub granularity: u64,
    pub offset: u64,
    pub more: f64,
}

/// Disturbances.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// Standard deviation of the logarithm of each read's time.
    pub spread: f64,
    /// Of 10,000 reads this number take 50 times as long.
    pub outliers: u64,
    /// Of 10,000 reads this number are followed by a pause of another program, of up to 20 ms.
    pub pauses: u64,
    /// Slower and faster by this share, in waves of some 700 ms.
    pub drift: f64,
    /// During this time everything takes a tenth of its time.
    pub burst: Duration,
    /// Lines that are kept, the oldest going first; reads of them take 5 µs.
    pub cached_lines: usize,
    /// Length of a line; 0 for 4 KiB.
    pub line_bytes: u64,
    /// A throttle before the device starts at this time, and then lets a read pass every given number of ns.
    pub throttle: Option<(Duration, f64)>,
}

/// The device.
pub struct SimulatedDevice {
    pub size_bytes: u64,
    pub granularity: u64,
    pub offset: u64,
    pub charge: Charge,
    pub second: Option<Second>,
    /// Time of the cheapest read.
    pub base_ns: f64,
    pub noise: Noise,
    /// Whether a read pays for the one before it, as a throttle lets it.
    pub pays_later: bool,
    pub fails_after: Option<u64>,
    rng: Rng,
    clock_ns: f64,
    owed_ns: f64,
    cached: HashSet<u64>,
    lines: VecDeque<u64>,
    pub reads: u64,
}

impl SimulatedDevice {
    pub fn new(granularity: u64, offset: u64, charge: Charge, seed: u64) -> SimulatedDevice {
        SimulatedDevice {
            size_bytes: 1 << 30,
            granularity,
            offset,
            charge,
            second: None,
            base_ns: 500_000.0,
            noise: Noise::default(),
            pays_later: false,
            fails_after: None,
            rng: Rng::new(seed),
            clock_ns: 0.0,
            owed_ns: 0.0,
            cached: HashSet::new(),
            lines: VecDeque::new(),
            reads: 0,
        }
    }

    /// As a throttle over whole cells has it: a read of the length of a cell costs `ratio` times as much off the grid.
    pub fn throttled(period: u64, offset: u64, ratio: f64, seed: u64) -> SimulatedDevice {
        let unit_bytes = 2.0 * period as f64 / ratio;
        let mut device = SimulatedDevice::new(period, offset, Charge::Cells { unit_bytes }, seed);
        device.noise = Noise {
            spread: 0.05,
            outliers: 5,
            burst: Duration::from_millis(100),
            ..Noise::default()
        };
        device.pays_later = true;
        device
    }

    fn cost_ns(&self, start: u64, len: u64) -> f64 {
        let touched = cells(self.granularity, self.offset, start, len) as f64;
        let first = match self.charge {
            Charge::Cells { unit_bytes } => {
                (touched * self.granularity as f64 / unit_bytes).max(1.0)
            }
            Charge::Commands { more, bytes_for_1 } => {
                1.0 + (touched - 1.0) * more + len as f64 / bytes_for_1
            }
        };
        let second = self.second.map_or(
            0.0,
            |Second {
                 granularity,
                 offset,
                 more,
             }| { (cells(granularity, offset, start, len) - 1) as f64 * more },
        );
        self.base_ns * (first + second)
    }

    fn is_cached(&mut self, start: u64, len: u64) -> bool {
        let Noise {
            cached_lines,
            line_bytes,
            ..
        } = self.noise;
        if cached_lines == 0 {
            return false;
        }
        let line_bytes = if line_bytes == 0 { 4096 } else { line_bytes };
        let mut is_cached = true;
        for line in start / line_bytes..=(start + len - 1) / line_bytes {
            if self.cached.insert(line) {
                is_cached = false;
                self.lines.push_back(line);
            }
            while self.lines.len() > cached_lines {
                let oldest = self.lines.pop_front().expect("one of many");
                self.cached.remove(&oldest);
            }
        }
        is_cached
    }

    /// A throttle before it delays a read of any cost.
    fn throttled_ns(&self, own: f64) -> f64 {
        let throttle = self
            .noise
            .throttle
            .filter(|(from, _)| self.clock_ns >= from.as_nanos() as f64);
        throttle.map_or(own, |(_, every_ns)| own.max(every_ns))
    }

    fn disturbed(&mut self, ns: f64) -> f64 {
        let Noise {
            spread,
            outliers,
            drift,
            burst,
            ..
        } = self.noise;
        let wave = 1.0 + drift * (self.clock_ns / 7e8 * std::f64::consts::TAU).sin();
        let mut ns = ns * wave * (spread * self.normal()).exp();
        if self.rng.below(10_000) < outliers {
            ns *= 50.0;
        }
        if self.clock_ns < burst.as_nanos() as f64 {
            ns /= 10.0;
        }
        ns
    }

    /// Of the standard normal distribution (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let share = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (a, b) = (share(self.rng.next_u64()), share(self.rng.next_u64()));
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

/// How many cells of a grid a read touches.
fn cells(granularity: u64, offset: u64, start: u64, len: u64) -> u64 {
    let cell = |at: u64| (at + granularity - offset) / granularity;
    cell(start + len - 1) - cell(start) + 1
}

/// A read that failed.
#[derive(Debug, PartialEq)]
pub struct Failed;

impl From<Infallible> for Failed {
    fn from(never: Infallible) -> Failed {
        match never {}
    }
}

impl ProbeReader for SimulatedDevice {
    type Error = Failed;

    fn read_each(
        &mut self,
        starts: &[u64],
        len_bytes: u64,
        depth: u32,
        latencies_ns: &mut Vec<u64>,
    ) -> Result<Duration, Failed> {
        latencies_ns.clear();
        let begin_ns = self.clock_ns;
        for &start in starts {
            assert!(start + len_bytes <= self.size_bytes && start.is_multiple_of(512));
            self.reads += 1;
            if self.fails_after.is_some_and(|after| self.reads > after) {
                return Err(Failed);
            }
            let mut own = self.cost_ns(start, len_bytes);
            if self.is_cached(start, len_bytes) {
                own = 5_000.0;
            }
            let ns = if self.pays_later {
                std::mem::replace(&mut self.owed_ns, own)
            } else {
                own
            };
            let ns = self.throttled_ns(ns);
            let ns = self.disturbed(ns);
            self.clock_ns += ns;
            latencies_ns.push((ns * f64::from(depth)) as u64);
            if self.rng.below(10_000) < self.noise.pauses {
                self.clock_ns += self.rng.below(20_000_000) as f64;
            }
        }
        Ok(Duration::from_nanos((self.clock_ns - begin_ns) as u64))
    }
}
