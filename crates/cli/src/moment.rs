//! Times as `--since` and `--until` take them: since the first I/O, or of the day in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plumb_sys::local_time::{self, CalendarTime};
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

/// A time of the day in ns since 1970: RFC 3339, or a date with or without a time in the calendar of this host.
pub(crate) fn parse_local(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let in_utc = |time: &str| {
        let seconds = if time.len() == "08:00".len() {
            ":00"
        } else {
            ""
        };
        parse_unix(&format!("{date}T{time}{seconds}Z"))
    };
    if let Some(time) = time.strip_suffix('Z') {
        return in_utc(time);
    }
    if let Some(at) = time.rfind(['+', '-']) {
        let (time, zone) = time.split_at(at);
        let [hours, minutes] = numbers(zone.get(1..)?, ':')?;
        let east_ns = i64::from(hours * 60 + minutes) * 60_000_000_000;
        let east_ns = if zone.starts_with('-') {
            -east_ns
        } else {
            east_ns
        };
        return in_utc(time)?.checked_sub(east_ns).filter(|ns| *ns >= 0);
    }
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = match numbers(time, ':') {
        Some(all) => all,
        None => {
            let [hour, minute] = numbers(time, ':')?;
            [hour, minute, 0]
        }
    };
    let is_time = hour < 24 && minute < 60 && second < 60;
    let local = CalendarTime {
        year,
        month,
        day,
        hour,
        minute,
        second,
    };
    let seconds = local_time::seconds_of(local).filter(|_| is_time)?;
    seconds.checked_mul(1_000_000_000).filter(|ns| *ns >= 0)
}

/// Whole numbers with digits alone, parted by a character.
fn numbers<const COUNT: usize>(text: &str, by: char) -> Option<[i32; COUNT]> {
    let all: Option<Vec<i32>> = text
        .split(by)
        .map(|word| {
            let is_number =
                (1..=4).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
            word.parse().ok().filter(|_| is_number)
        })
        .collect();
    all?.try_into().ok()
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

    /// Times with a zone; those without one are tested with a zone of the process in `history.rs`.
    #[test]
    fn times_with_a_zone() {
        let eight = 1_794_643_200_000_000_000;
        for (text, expected) in [
            ("2026-11-14T08:00:00Z", Some(eight)),
            ("2026-11-14T08:00Z", Some(eight)),
            ("2026-11-14 08:00:00.5Z", Some(eight + 500_000_000)),
            ("2026-11-14T09:00+01:00", Some(eight)),
            ("2026-11-14T04:30:00-03:30", Some(eight)),
            ("2026-11-31", None),
            ("2026-13-01", None),
            ("2026-11-14T24:00", None),
            ("2026-11-14T08", None),
            ("2026-11-14T08:00+1", None),
            ("2026-11", None),
            ("1970-01-01T00:00+01:00", None),
            ("now", None),
            ("", None),
        ] {
            assert_eq!(parse_local(text), expected, "{text}");
        }
    }
}
