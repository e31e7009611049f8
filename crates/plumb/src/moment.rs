//! Times as `--since` and `--until` take them: since the first I/O, or of the day in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plumb_trace::{Clock, SourceInfo};

/// A time within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// This number of ns after the first I/O.
    SinceFirst(i64),
    /// Unix time, ns.
    Unix(i64),
}

/// A year: longer waits do not occur, and clocks stay far from their end.
pub(crate) const LONGEST: Duration = Duration::from_secs(8760 * 3600);

const EXPECTED: &str =
    "a duration since the first I/O (90, 90s, 250ms, 5m, 2h) or a UTC time (2026-01-31T08:00:00Z)";

impl Moment {
    /// Parses the text typed.
    ///
    /// # Errors
    /// When it is neither a duration nor a time.
    pub fn parse(text: &str) -> Result<Moment, String> {
        if let Some(ns) = parse_duration(text) {
            return Ok(Moment::SinceFirst(ns));
        }
        parse_unix(text)
            .map(Moment::Unix)
            .ok_or_else(|| format!("found `{text}`, expected {EXPECTED}"))
    }

    /// The same on the clock of a trace; `None` when the trace does not know the time of day.
    #[must_use]
    pub fn on_clock_of(self, info: &SourceInfo, first_ns: i64) -> Option<i64> {
        match self {
            Moment::SinceFirst(ns) => Some(first_ns.saturating_add(ns)),
            Moment::Unix(ns) if info.clock == Clock::Unix => Some(ns),
            Moment::Unix(ns) => info.unix_ns_at_zero.map(|zero| ns.saturating_sub(zero)),
        }
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Moment::SinceFirst(ns) => write!(f, "{} s after the first I/O", ns as f64 / 1e9),
            Moment::Unix(ns) => {
                let time = UNIX_EPOCH + Duration::from_nanos(ns.unsigned_abs());
                write!(f, "{}", humantime::format_rfc3339(time))
            }
        }
    }
}

/// A UTC time as ns since 1970.
pub(crate) fn parse_unix(text: &str) -> Option<i64> {
    unix_ns(humantime::parse_rfc3339_weak(text).ok()?)
}

/// Now, in ns since 1970; `None` if the clock is set to a time before.
pub(crate) fn now_ns() -> Option<i64> {
    unix_ns(SystemTime::now())
}

fn unix_ns(time: SystemTime) -> Option<i64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()
}

/// A time in ns since 1970 as reports print it, in seconds; `None` before 1970.
pub(crate) fn unix_words(ns: i64) -> Option<String> {
    let time = UNIX_EPOCH + Duration::from_nanos(u64::try_from(ns).ok()?);
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

/// A duration in ns; bare numbers are seconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit_ns: i64 = match &text[digits.len()..] {
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let thousandths = plumb_trace::number::parse_decimal(digits.as_bytes(), 3)?;
    let ns = i128::from(thousandths) * i128::from(unit_ns) / 1000;
    i64::try_from(ns).ok().filter(|ns| *ns >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_times() {
        let check = |text: &str, moment| assert_eq!(Moment::parse(text), Ok(moment), "{text}");
        check("90", Moment::SinceFirst(90_000_000_000));
        check("250ms", Moment::SinceFirst(250_000_000));
        check("1.5h", Moment::SinceFirst(5_400_000_000_000));
        check("1970-01-01T00:01:00Z", Moment::Unix(60_000_000_000));
        check(
            "2007-02-22 17:00:00",
            Moment::Unix(1_172_163_600_000_000_000),
        );
        for bad in ["", "5x", "-5s", "yesterday", "5 m"] {
            assert!(Moment::parse(bad).is_err(), "{bad}");
        }
    }
}
