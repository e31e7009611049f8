//! The average of a run over the intervals that count.

use std::time::Duration;

use crate::tally::Tally;

/// The intervals of a run that count, added up: those behind its warm-up, or all but the first where it has none.
#[derive(Debug, Default)]
pub struct Average {
    tally: Tally,
    time: Duration,
    span: Option<(u32, u32)>,
    rates: Vec<f64>,
}

impl Average {
    /// Adds the activity of jobs in an interval of the run.
    pub fn add(
        &mut self,
        number: u32,
        jobs: &[Tally],
        length: Duration,
        planned: Duration,
        is_warmup: bool,
    ) {
        // A cold start is no part of a rate: without a warm-up the first interval is one.
        if is_warmup || number < 2 {
            return;
        }
        let before = self.tally.ios();
        jobs.iter().for_each(|job| self.tally.add(job));
        self.time += length;
        self.span = Some((self.span.map_or(number, |(first, _)| first), number));
        // The rest at the end is too short for a rate of its own.
        if length * 2 >= planned {
            let ios = self.tally.ios() - before;
            self.rates
                .push(ios as f64 / length.as_secs_f64().max(f64::MIN_POSITIVE));
        }
    }

    /// First and last interval; `None` where none counts.
    #[must_use]
    pub fn span(&self) -> Option<(u32, u32)> {
        self.span
    }

    /// Time that they took together.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }

    /// I/O a second of each interval.
    #[must_use]
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// All that was counted.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(reads: usize) -> Tally {
        let mut tally = Tally::default();
        (0..reads).for_each(|_| tally.reads.latency.record(1_000));
        tally
    }

    #[test]
    fn it_begins_with_the_second_interval_or_behind_the_warm_up() {
        let second = Duration::from_secs(1);
        let mut average = Average::default();
        for (number, ios) in [(1, 50), (2, 10), (3, 20)] {
            average.add(number, &[tally(ios)], second, second, false);
        }
        average.add(4, &[tally(1)], Duration::from_millis(10), second, false);
        assert_eq!(
            (average.span(), average.rates()),
            (Some((2, 4)), &[10.0, 20.0][..])
        );
        assert_eq!(
            (average.tally().ios(), average.time()),
            (31, Duration::from_millis(2_010))
        );

        let mut warm = Average::default();
        for number in 1..=4 {
            warm.add(number, &[tally(1)], second, second, number <= 2);
        }
        assert_eq!((warm.span(), warm.tally().ios()), (Some((3, 4)), 2));
    }
}
