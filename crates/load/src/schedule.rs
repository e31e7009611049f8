//! Due times of a thread's I/O. They depend on the number of the I/O, not on the last one, so that nothing drifts and
//! delays are caught up.

use crate::plan::{Arrivals, Pace};
use crate::random::Random;

/// The times at which a thread's I/O are due, rising.
#[derive(Debug)]
pub(crate) struct Schedule {
    arrivals: Arrivals,
    gap_ns: f64,
    /// When the next one is due.
    next_ns: f64,
    /// Of an even schedule: when the first one was due, and how many have been.
    first_ns: f64,
    number: u64,
    random: Random,
}

impl Schedule {
    /// That of one thread among several; `None` where nothing is due but as fast as it goes.
    pub fn new(pace: Pace, thread: u32, threads: u32, random: Random) -> Option<Schedule> {
        let (per_second, arrivals) = match pace {
            Pace::Max => return None,
            Pace::Closed { per_second } => (per_second, Arrivals::Even),
            Pace::Open {
                per_second,
                arrivals,
            } => (per_second, arrivals),
        };
        let gap_ns = 1e9 * f64::from(threads) / per_second;
        let first_ns = gap_ns * f64::from(thread) / f64::from(threads);
        let mut schedule = Schedule {
            arrivals,
            gap_ns,
            next_ns: first_ns,
            first_ns,
            number: 0,
            random,
        };
        if arrivals != Arrivals::Even {
            schedule.next_ns = schedule.gap();
        }
        Some(schedule)
    }

    /// When the next I/O is due.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns as u64
    }

    /// Goes on to the one after it.
    #[inline]
    pub fn advance(&mut self) {
        self.number += 1;
        self.next_ns = match self.arrivals {
            Arrivals::Even => self.first_ns + self.number as f64 * self.gap_ns,
            Arrivals::Exponential | Arrivals::Uniform => self.next_ns + self.gap(),
        };
    }

    /// I/O that are due before this time and were not taken.
    pub fn due_before(&mut self, end_ns: u64) -> u64 {
        let mut due = 0;
        while self.next_ns() < end_ns {
            self.advance();
            due += 1;
        }
        due
    }

    /// A gap at random.
    fn gap(&mut self) -> f64 {
        let gaps = match self.arrivals {
            Arrivals::Uniform => 2.0 * self.random.unit(),
            Arrivals::Exponential | Arrivals::Even => -self.random.unit().ln(),
        };
        gaps * self.gap_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pace: Pace, thread: u32, threads: u32, count: usize) -> Vec<u64> {
        let schedule = Schedule::new(pace, thread, threads, Random::new(3, u64::from(thread)));
        let mut schedule = schedule.expect("it has a rate");
        let mut time = || {
            let next_ns = schedule.next_ns();
            schedule.advance();
            next_ns
        };
        (0..count).map(|_| time()).collect()
    }

    #[test]
    fn even_times_of_two_threads_interleave() {
        let pace = Pace::Open {
            per_second: 1000.0,
            arrivals: Arrivals::Even,
        };
        assert_eq!(times(pace, 0, 2, 3), [0, 2_000_000, 4_000_000]);
        assert_eq!(times(pace, 1, 2, 3), [1_000_000, 3_000_000, 5_000_000]);
        assert_eq!(
            times(Pace::Closed { per_second: 1000.0 }, 1, 2, 2),
            [1_000_000, 3_000_000]
        );
    }

    #[test]
    fn an_hour_of_even_times_does_not_drift() {
        let last = times(Pace::Closed { per_second: 3.0 }, 0, 1, 3 * 3600 + 1);
        assert_eq!(last.last(), Some(&3_600_000_000_000));
    }

    /// Gaps of a Poisson process: mean and standard deviation are both the gap, and e^-2 of them exceed twice the gap.
    #[test]
    fn random_times_are_exponential() {
        let pace = Pace::Open {
            per_second: 1000.0,
            arrivals: Arrivals::Exponential,
        };
        let times = times(pace, 0, 1, 100_001);
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let long = gaps.iter().filter(|&&gap| gap > 2e6).count() as f64 / gaps.len() as f64;
        assert!((mean - 1e6).abs() < 2e4, "{mean}");
        assert!((square.sqrt() - 1e6).abs() < 3e4, "{}", square.sqrt());
        assert!((long - (-2.0f64).exp()).abs() < 0.01, "{long}");
    }

    /// Gaps between 0 and twice their mean, a quarter of them in each quarter of that; the first one too.
    #[test]
    fn spread_gaps_are_as_often_short_as_long() {
        let pace = Pace::Open {
            per_second: 1000.0,
            arrivals: Arrivals::Uniform,
        };
        let times = times(pace, 0, 1, 40_000);
        let mut quarters = [0; 4];
        for pair in std::iter::once(0)
            .chain(times)
            .collect::<Vec<u64>>()
            .windows(2)
        {
            let gap = pair[1] - pair[0];
            assert!(gap <= 2_000_001, "{gap}");
            quarters[(gap / 500_000).min(3) as usize] += 1;
        }
        // 10,000 expected of each, with a standard deviation of 87.
        assert!(
            quarters.iter().all(|count| (9_600..10_400).contains(count)),
            "{quarters:?}"
        );
    }

    #[test]
    fn missed_arrivals_are_counted() {
        let pace = Pace::Open {
            per_second: 1000.0,
            arrivals: Arrivals::Even,
        };
        let mut schedule = Schedule::new(pace, 0, 1, Random::new(1, 1)).expect("it has a rate");
        schedule.advance();
        assert_eq!(schedule.due_before(10_000_000), 9);
        assert!(Schedule::new(Pace::Max, 0, 1, Random::new(1, 1)).is_none());
    }
}
