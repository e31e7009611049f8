//! How much more often something happens in a group than in the rest: the lift, its interval, and the chance of it.

use crate::error::StatsError;
use crate::interval::{Interval, Level};
use crate::student::{self, ln_gamma};

/// A group and the rest, each with the number of members that have a trait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contrast {
    /// Members of the group.
    pub inside: u64,
    /// Those of them that have the trait.
    pub inside_with: u64,
    /// Members of the rest.
    pub outside: u64,
    /// Those of them that have the trait.
    pub outside_with: u64,
}

impl Contrast {
    fn is_sound(&self) -> bool {
        self.inside > 0
            && self.outside > 0
            && self.inside_with <= self.inside
            && self.outside_with <= self.outside
    }

    /// The share in the group, divided by the share in the rest. Half a member is added to each count, so that a rest
    /// without the trait has a finite lift; the interval is symmetric in logarithms (S. D. Walter, Biometrika 62, 1975).
    /// `n` has the members of both sides.
    ///
    /// # Errors
    /// When a side is empty, or has more members with the trait than members.
    pub fn lift(&self, level: Level) -> Result<Interval<[u64; 2]>, StatsError> {
        if !self.is_sound() {
            return Err(StatsError::NotProbability {
                value: self.inside_with as f64 / self.inside as f64,
            });
        }
        let half = |count: u64| count as f64 + 0.5;
        let [with, all] = [half(self.inside_with), half(self.inside)];
        let [rest_with, rest] = [half(self.outside_with), half(self.outside)];
        let estimate = (with / all) / (rest_with / rest);
        let variance = 1.0 / with - 1.0 / all + 1.0 / rest_with - 1.0 / rest;
        let reach = student::quantile_above(level.beyond(), f64::INFINITY) * variance.sqrt();
        let n = [self.inside, self.outside];
        // The estimate itself: no digit is lost on the way through logarithms.
        Ok(Interval {
            estimate,
            ..Interval::around(estimate.ln(), reach, level, n).map(f64::exp)
        })
    }

    /// Twice the logarithm of the likelihood with a share for each side, over that with one share for all (the G statistic).
    /// The larger it is, the better the group explains the trait.
    #[must_use]
    pub fn explained(&self) -> f64 {
        let sides = [
            (self.inside, self.inside_with),
            (self.outside, self.outside_with),
        ];
        let all = (self.inside + self.outside) as f64;
        let with = (self.inside_with + self.outside_with) as f64;
        let term = |seen: f64, expected: f64| match seen > 0.0 {
            true => seen * (seen / expected).ln(),
            false => 0.0,
        };
        let sum: f64 = sides
            .into_iter()
            .map(|(members, having)| {
                let (members, having) = (members as f64, having as f64);
                term(having, members * with / all)
                    + term(members - having, members * (all - with) / all)
            })
            .sum();
        2.0 * sum
    }

    /// The probability of at least as many members with the trait in the group, if the group were drawn from all by lot:
    /// Fisher's exact test to one side. 1 for an empty side.
    #[must_use]
    pub fn chance(&self) -> f64 {
        if !self.is_sound() {
            return 1.0;
        }
        let all = self.inside + self.outside;
        let with = self.inside_with + self.outside_with;
        let most = with.min(self.inside);
        let total = ln_choose(all, self.inside);
        let drawn = |having: u64| {
            // More without the trait than there are.
            if self.inside - having > all - with {
                return 0.0;
            }
            let ways = ln_choose(with, having) + ln_choose(all - with, self.inside - having);
            (ways - total).exp()
        };
        let sum: f64 = (self.inside_with..=most).map(drawn).sum();
        sum.min(1.0)
    }
}

/// The logarithm of the number of ways to choose.
fn ln_choose(from: u64, chosen: u64) -> f64 {
    let factorial = |n: u64| ln_gamma(n as f64 + 1.0);
    factorial(from) - factorial(chosen) - factorial(from - chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contrast(inside: [u64; 2], outside: [u64; 2]) -> Contrast {
        Contrast {
            inside: inside[1],
            inside_with: inside[0],
            outside: outside[1],
            outside_with: outside[0],
        }
    }

    /// Fisher's tea: of four cups three are right, 17 of 70 draws (Fisher, The Design of Experiments, 1935). All four: 1 of 70.
    #[test]
    fn chances_are_shares_of_draws() {
        for (sides, chance) in [
            (contrast([3, 4], [1, 4]), 17.0 / 70.0),
            (contrast([4, 4], [0, 4]), 1.0 / 70.0),
            (contrast([0, 4], [4, 4]), 1.0),
            // Two of ten are drawn, and three of the ten have the trait: 3 of 45 pairs have it twice.
            (contrast([2, 2], [1, 8]), 3.0 / 45.0),
            (contrast([9, 10], [5, 5]), 1.0),
            (contrast([0, 0], [5, 5]), 1.0),
        ] {
            let found = sides.chance();
            assert!((found - chance).abs() < 1e-9, "{sides:?}: {found}");
        }
    }

    /// By hand: (10.5 / 20.5) / (5.5 / 100.5), and a variance of 1/10.5 - 1/20.5 + 1/5.5 - 1/100.5.
    #[test]
    fn a_lift_has_its_interval() {
        let found = contrast([10, 20], [5, 100])
            .lift(Level::P95)
            .expect("sides");
        assert!((found.estimate - 9.359_202).abs() < 1e-5, "{found:?}");
        let reach = 1.959_964 * 0.218_325_5_f64.sqrt();
        assert!(
            (found.low - 9.359_202 * (-reach).exp()).abs() < 1e-3,
            "{found:?}"
        );
        assert!(
            (found.high - 9.359_202 * reach.exp()).abs() < 1e-3,
            "{found:?}"
        );
        assert_eq!(found.n, [20, 100]);
        let none = contrast([10, 10], [0, 1000]).lift(Level::P95);
        assert!(none.is_ok_and(|lift| lift.low > 100.0 && lift.high.is_finite()));
        assert!(contrast([0, 0], [1, 2]).lift(Level::P95).is_err());
        assert!(contrast([3, 2], [1, 2]).lift(Level::P95).is_err());
    }

    /// 2 (10 ln 2 + 10 ln 2) where the group has all ten of twenty; 0 where the shares are equal.
    #[test]
    fn a_group_explains_as_much_as_it_parts() {
        let whole = contrast([10, 10], [0, 10]).explained();
        assert!((whole - 40.0 * 2f64.ln()).abs() < 1e-12, "{whole}");
        assert_eq!(contrast([3, 10], [6, 20]).explained(), 0.0);
        assert!(contrast([10, 20], [0, 10]).explained() < whole);
    }

    /// Draws by lot: at most one in a hundred has a chance below 1 %, and an interval of 95 % holds 1 as often as it says.
    #[test]
    fn rates_of_draws_by_lot() {
        let mut state = 88_172_645_463_325_252u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) % below
        };
        let (mut rare, mut held) = (0, 0);
        for _ in 0..2000 {
            let mut with = |members: u64| (0..members).filter(|_| random(10) < 3).count() as u64;
            let (inside_with, outside_with) = (with(40), with(200));
            let sides = contrast([inside_with, 40], [outside_with, 200]);
            rare += u32::from(sides.chance() < 0.01);
            held += u32::from(sides.lift(Level::P95).expect("sides").holds(1.0));
        }
        // 20 expected at most, with a spread of 4.5; 1900 with one of 10.
        assert!(rare <= 34, "{rare}");
        assert!(held >= 1860, "{held}");
    }
}
