//! Whether the target kept its pace: the same short reads, again and again between the rounds.
//!
//! Comparisons are within one round, so a change of pace does not make a grid. It may hide one: a throttle paces all
//! reads alike, and a full cache answers them without the medium.

use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// Time between two looks at the pace: at least this, and this many times the duration of a look.
const EVERY: Duration = Duration::from_millis(100);
const TIMES_A_LOOK: u32 = 24;
/// Looks on either side of a change.
const SIDE_MIN: usize = 6;
/// Of the looks on either side this number must be on its own side of the middle between the two paces: one of `1 /
/// OFF` may not.
const OFF: usize = 6;
/// A smaller change is none.
const CHANGED: f64 = 1.2;

/// How long a short read took at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReadPace {
    /// Time of all reads before.
    #[serde(rename = "at_seconds", serialize_with = "as_seconds")]
    pub at: Duration,
    /// ns a read, with the others in flight.
    pub ns: f64,
}

/// The paces of a probe, in order.
#[derive(Clone, Debug, Default)]
pub struct PaceCourse {
    paces: Vec<ReadPace>,
    next: Duration,
}

/// Another pace from some moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceChange {
    /// Time of all reads before it.
    pub at: Duration,
    /// Median ns a read before it.
    pub before_ns: f64,
    /// Median ns a read after it.
    pub after_ns: f64,
}

impl PaceChange {
    /// Time of a read after it by that of one before: above 1 where it became slower.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.after_ns / self.before_ns
    }
}

/// A document has the factor beside the two times.
impl Serialize for PaceChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("PaceChange", 4)?;
        fields.serialize_field("at_seconds", &self.at.as_secs_f64())?;
        fields.serialize_field("before_ns", &self.before_ns)?;
        fields.serialize_field("after_ns", &self.after_ns)?;
        fields.serialize_field("factor", &self.factor())?;
        fields.end()
    }
}

fn as_seconds<S: Serializer>(at: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(at.as_secs_f64())
}

impl PaceCourse {
    /// Whether it is time for a look: the first ones follow at once, so that there is something to compare with.
    #[must_use]
    pub fn is_due(&self, spent: Duration) -> bool {
        spent >= self.next || self.paces.len() < SIDE_MIN
    }

    /// A look that took `took` in all and has ended at `spent`.
    pub fn push(&mut self, spent: Duration, took: Duration, ns: f64) {
        self.paces.push(ReadPace { at: spent, ns });
        self.next = spent + EVERY.max(took * TIMES_A_LOOK);
    }

    /// All paces.
    #[must_use]
    pub fn paces(&self) -> &[ReadPace] {
        &self.paces
    }

    /// The moment that parts the paces best into two, where it does so clearly.
    #[must_use]
    pub fn change(&self) -> Option<PaceChange> {
        let logs: Vec<f64> = self
            .paces
            .iter()
            .map(|pace| pace.ns.max(1.0).ln())
            .collect();
        let last = logs.len().checked_sub(SIDE_MIN)?;
        let split = (SIDE_MIN..=last).map(|at| Split::at(&logs, at));
        let split = split.min_by(|a, b| a.rest.total_cmp(&b.rest))?;
        split.is_clear(&logs).then(|| PaceChange {
            at: self.paces[split.at].at,
            before_ns: split.before.exp(),
            after_ns: split.after.exp(),
        })
    }
}

/// Paces as two levels.
struct Split {
    at: usize,
    before: f64,
    after: f64,
    /// The residual of the levels: sum of distances from the median.
    rest: f64,
}

impl Split {
    fn at(logs: &[f64], at: usize) -> Split {
        let (first, second) = logs.split_at(at);
        let (before, after) = (super::scale::middle(first), super::scale::middle(second));
        let rest =
            |logs: &[f64], level: f64| logs.iter().map(|log| (log - level).abs()).sum::<f64>();
        Split {
            at,
            before,
            after,
            rest: rest(first, before) + rest(second, after),
        }
    }

    fn is_clear(&self, logs: &[f64]) -> bool {
        let step = self.after - self.before;
        let middle = (self.after + self.before) / 2.0;
        let (first, second) = logs.split_at(self.at);
        let is_after = |log: &&f64| (**log - middle) * step.signum() > 0.0;
        let off_before = first.iter().filter(is_after).count();
        let off_after = second.len() - second.iter().filter(is_after).count();
        step.abs() > CHANGED.ln()
            && off_before * OFF <= first.len()
            && off_after * OFF <= second.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn course(ns: impl IntoIterator<Item = f64>) -> PaceCourse {
        let mut course = PaceCourse::default();
        for (at, ns) in ns.into_iter().enumerate() {
            course.push(
                Duration::from_millis(100 * at as u64),
                Duration::from_millis(4),
                ns,
            );
        }
        course
    }

    /// About normal: the sum of twelve (Irwin and Hall).
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn a_change_is_found_at_its_position() {
        let mut random = Random::new(4, 0);
        for (looks, at, factor) in [
            (20, 7, 5.0),
            (20, 13, 0.2),
            (60, 8, 1.5),
            (200, 190, 3.0),
            (13, 6, 2.0),
        ] {
            let noisy = |n: usize| {
                let level = if n < at {
                    500_000.0
                } else {
                    500_000.0 * factor
                };
                level * (0.05 * normal(&mut random)).exp()
            };
            let change = course((0..looks).map(noisy)).change().expect("a change");
            assert_eq!(
                change.at,
                Duration::from_millis(100 * at as u64),
                "{factor}"
            );
            assert!((change.factor() / factor - 1.0).abs() < 0.1, "{change:?}");
        }
    }

    /// Noise, waves, a pause and a single slow look are no change; nor are few looks.
    #[test]
    fn disturbances_are_no_change() {
        let wave = (0..50).map(|n| 1e5 * (1.0 + 0.5 * f64::from(n).sin()));
        assert_eq!(course(wave).change(), None);
        let pause = (0..30).map(|n| if n == 11 { 1e9 } else { 1e5 });
        assert_eq!(course(pause).change(), None);
        assert_eq!(
            course([1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0].map(|n| n * 1e5)).change(),
            None
        );
        assert_eq!(course([]).change(), None);
        let mut random = Random::new(9, 0);
        let runs = 2_000;
        for (spread, most) in [(0.1, 2), (0.3, 20)] {
            let mut alarms = 0;
            for run in 0..runs {
                let looks = 10 + run % 60;
                let noise = (0..looks).map(|_| 1e5 * (spread * normal(&mut random)).exp());
                alarms += u32::from(course(noise).change().is_some());
            }
            eprintln!("spread {spread}: {alarms} of {runs}");
            assert!(alarms <= most, "{spread}: {alarms} of {runs}");
        }
    }

    #[test]
    fn looks_take_a_small_part_of_the_time() {
        let mut course = PaceCourse::default();
        let ms = Duration::from_millis;
        for _ in 0..SIDE_MIN {
            assert!(course.is_due(Duration::ZERO));
            course.push(ms(10), ms(2), 1.0);
        }
        assert!(!course.is_due(ms(109)) && course.is_due(ms(110)));
        course.push(ms(120), ms(20), 1.0);
        assert!(!course.is_due(ms(599)) && course.is_due(ms(600)));
    }
}
