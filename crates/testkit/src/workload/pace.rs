//! Times of synthetic I/O: irregular, right-skewed, and the same on every machine.
//!
//! Only integer arithmetic is used, since `exp` of two C libraries may differ in the last bit.

use crate::event::MAX_QUEUE_NS;
use crate::rng::Rng;

/// Quantiles a table holds.
const STEPS: usize = 1024;

/// A log-normal-like distribution of nanoseconds, as a table to draw from.
#[derive(Debug, Clone)]
pub struct LatencyTable {
    ns: Box<[i64; STEPS]>,
}

impl LatencyTable {
    /// Median `median_ns`; one standard deviation is `spread_256ths` / 256 powers of two. Never over `max_ns`.
    #[must_use]
    pub fn new(median_ns: u64, spread_256ths: u64, max_ns: i64, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut ns = Box::new([0; STEPS]);
        for slot in ns.iter_mut() {
            // Twelve uniform numbers of variance 1/12 sum to variance 1 (Irwin-Hall): here in 1/65536.
            let sum: i64 = (0..12).map(|_| rng.below(65_536) as i64).sum::<i64>() - 6 * 65_536;
            let exponent = sum * spread_256ths as i64 / 256;
            *slot = scale_by_power(median_ns, exponent).min(max_ns).max(1);
        }
        Self { ns }
    }

    /// One draw, ns.
    #[inline]
    pub fn draw(&self, random: u64) -> i64 {
        self.ns[(random % STEPS as u64) as usize]
    }
}

/// `value` · 2^(`exponent` / 65536), linear between powers of two.
fn scale_by_power(value: u64, exponent: i64) -> i64 {
    let (whole, part) = (
        exponent.div_euclid(65_536),
        exponent.rem_euclid(65_536) as u64,
    );
    let scaled = u128::from(value) * u128::from(65_536 + part);
    let shift = 16 - whole.clamp(-40, 16);
    (scaled >> shift) as i64
}

/// The clock of a workload: issue times that go up irregularly, and the intervals of each I/O.
#[derive(Debug, Clone)]
pub struct WorkloadClock {
    now_ns: i64,
    mean_gap_ns: u64,
    queue: LatencyTable,
}

impl WorkloadClock {
    /// Gaps between 1 ns and twice `mean_gap_ns`.
    #[must_use]
    pub fn new(mean_gap_ns: u64, seed: u64) -> Self {
        Self {
            now_ns: 0,
            mean_gap_ns,
            queue: LatencyTable::new(4_000, 256, MAX_QUEUE_NS / 8, seed ^ 0x51),
        }
    }

    /// The next issue, ns: after the last, and at least the longest queue time after 0.
    #[inline]
    pub fn next_ns(&mut self, random: u64) -> i64 {
        let range = (2 * self.mean_gap_ns).max(1);
        self.now_ns += 1 + ((u128::from(random) * u128::from(range)) >> 64) as i64;
        self.now_ns + MAX_QUEUE_NS
    }

    /// A queue time, ns.
    #[inline]
    pub fn queue_ns(&self, random: u64) -> i64 {
        self.queue.draw(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_exact_at_whole_exponents() {
        assert_eq!(scale_by_power(1000, 0), 1000);
        assert_eq!(scale_by_power(1000, 2 * 65_536), 4000);
        assert_eq!(scale_by_power(1000, -65_536), 500);
        assert_eq!(scale_by_power(1000, 32_768), 1500);
    }

    #[test]
    fn table_is_centred_on_its_median() {
        let table = LatencyTable::new(300_000, 256, 100_000_000, 1);
        let mut ns: Vec<i64> = table.ns.to_vec();
        ns.sort_unstable();
        assert!(
            (270_000..330_000).contains(&ns[STEPS / 2]),
            "{}",
            ns[STEPS / 2]
        );
        // One standard deviation up is a doubling.
        let p84 = ns[STEPS * 84 / 100];
        assert!((540_000..660_000).contains(&p84), "{p84}");
    }
}
