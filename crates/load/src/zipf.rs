//! Ranks drawn with a probability proportional to k^-theta, for any number of ranks, without a table.
//!
//! Rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 6 (1996). The integral of the density is inverted at a random height, and values outside
//! the steps are drawn again; that happens rarely at every theta.

use crate::random::Random;

/// A distribution over the ranks 1 to n.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    ranks: f64,
    theta: f64,
    /// Integral at the right edge of the first step, less its area, and at that of the last one.
    integral_first: f64,
    integral_last: f64,
    /// Up to this distance right of its centre a point is below its step for certain.
    sure: f64,
}

impl Zipf {
    /// Over a number of ranks, 1 or more, with a theta above 0.
    pub fn new(ranks: u64, theta: f64) -> Zipf {
        let ranks = ranks as f64;
        let mut zipf = Zipf {
            ranks,
            theta,
            integral_first: 0.0,
            integral_last: 0.0,
            sure: 0.0,
        };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(ranks + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank from 0 on, the most popular one first.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let height =
                self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(height);
            let rank = x.round().clamp(1.0, self.ranks);
            if rank - x <= self.sure || height >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Of the density, from 1 to x: (x^(1-theta) - 1) / (1 - theta), and ln x at theta 1.
    fn integral(&self, x: f64) -> f64 {
        let ln = x.ln();
        ln * ratio((1.0 - self.theta) * ln, f64::exp_m1)
    }

    fn inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.theta)).max(-1.0);
        (area * ratio(t, f64::ln_1p)).exp()
    }
}

/// `f(x) / x`, which is 1 at 0 for both functions used.
fn ratio(x: f64, f: fn(f64) -> f64) -> f64 {
    if x.abs() < 1e-12 { 1.0 } else { f(x) / x }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of the first ranks against the definition, summed term by term.
    #[test]
    fn shares_are_those_of_the_definition() {
        for (ranks, theta) in [
            (1, 0.99),
            (7, 0.5),
            (1000, 0.99),
            (1000, 1.0),
            (1000, 1.2),
            (100_000, 2.0),
        ] {
            let total: f64 = (1..=ranks).map(|k| (k as f64).powf(-theta)).sum();
            let (zipf, mut random) = (Zipf::new(ranks, theta), Random::new(5, ranks));
            let draws = 200_000u32;
            let mut drawn = [0u32; 4];
            for _ in 0..draws {
                let rank = zipf.draw(&mut random);
                assert!(rank < ranks);
                if let Some(count) = drawn.get_mut(rank as usize) {
                    *count += 1;
                }
            }
            for (rank, &count) in drawn.iter().enumerate().take(ranks as usize) {
                let share = ((rank + 1) as f64).powf(-theta) / total;
                // Five standard deviations of a binomial count, and one for its rounding.
                let expected = share * f64::from(draws);
                let allowed = 5.0 * (expected * (1.0 - share)).sqrt() + 1.0;
                let off = (f64::from(count) - expected).abs();
                assert!(
                    off <= allowed,
                    "{ranks} {theta} rank {rank}: {count}, expected {expected:.0}"
                );
            }
        }
    }
}
