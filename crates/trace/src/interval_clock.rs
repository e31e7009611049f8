//! Time stamps that a script prints at the end of each interval, as times since its first interval began.
//!
//! The clock reads the time of day only. A stamp smaller than the one before it means that midnight has passed. The time zone of
//! the host is unknown, so these are no calendar times.

use crate::reader::CountedTime;

const DAY_SECONDS: i64 = 86_400;
const NS: i64 = 1_000_000_000;

/// Longer gaps are pauses of the script, and no interval.
const INTERVAL_SECONDS_MAX: i64 = 3600;

/// Seconds since midnight of `10:00:10`.
#[must_use]
pub fn seconds_of_day(word: &[u8]) -> Option<i64> {
    let word = std::str::from_utf8(word).ok()?;
    let parts: Vec<&str> = word.split(':').collect();
    let [hours, minutes, seconds] = parts[..] else {
        return None;
    };
    let number = |part: &str, max: i64| {
        let is_two_digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = is_two_digits.then(|| part.parse().ok())??;
        (number <= max).then_some(number)
    };
    Some((number(hours, 23)? * 60 + number(minutes, 59)?) * 60 + number(seconds, 60)?)
}

/// The stamps so far.
#[derive(Debug)]
pub struct IntervalClock {
    /// Length of the first interval. No stamp marks its beginning.
    first_seconds: i64,
    last: Option<LastStamp>,
    now: Option<CountedTime>,
}

#[derive(Clone, Copy, Debug)]
struct LastStamp {
    of_day: i64,
    since_start_ns: i64,
}

impl IntervalClock {
    /// A clock for a script with intervals of `first_seconds`.
    #[must_use]
    pub fn new(first_seconds: i64) -> IntervalClock {
        IntervalClock {
            first_seconds,
            last: None,
            now: None,
        }
    }

    /// Takes the stamp of the interval that ends here.
    pub fn stamp(&mut self, of_day: i64) {
        let (from_ns, seconds) = match self.last {
            None => (0, self.first_seconds),
            Some(last) => (
                last.since_start_ns,
                (of_day - last.of_day).rem_euclid(DAY_SECONDS),
            ),
        };
        let to_ns = from_ns.saturating_add(seconds * NS);
        self.last = Some(LastStamp {
            of_day,
            since_start_ns: to_ns,
        });
        let is_interval = (1..=INTERVAL_SECONDS_MAX).contains(&seconds);
        self.now = is_interval.then_some(CountedTime { from_ns, to_ns });
    }

    /// The interval of the counts below the last stamp; `None` before the first, and after a gap that is no interval.
    #[must_use]
    pub fn interval(&self) -> Option<CountedTime> {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_each_other_over_midnight() {
        let mut clock = IntervalClock::new(10);
        assert_eq!(clock.interval(), None);
        let mut intervals = Vec::new();
        for word in ["23:59:45", "23:59:55", "00:00:05", "00:00:05", "02:00:00"] {
            clock.stamp(seconds_of_day(word.as_bytes()).unwrap());
            let interval = clock.interval();
            intervals.push(interval.map(|time| (time.from_ns / NS, time.to_ns / NS)));
        }
        assert_eq!(
            intervals,
            [Some((0, 10)), Some((10, 20)), Some((20, 30)), None, None]
        );
    }

    #[test]
    fn times_of_day_have_six_digits() {
        assert_eq!(seconds_of_day(b"01:02:03"), Some(3723));
        for word in ["1:02:03", "24:00:00", "10:00", "10:00:1x", "10:00:00.5", ""] {
            assert_eq!(seconds_of_day(word.as_bytes()), None, "{word}");
        }
    }
}
