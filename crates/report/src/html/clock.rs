//! Unix time as the date and the time of day in UTC, and round times of day for axes.

const NS: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * NS;

/// Steps between ticks, ns. Longer ones are whole multiples of weeks.
const STEPS: [i128; 26] = [
    NS / 1_000,
    NS / 500,
    NS / 200,
    NS / 100,
    NS / 50,
    NS / 20,
    NS / 10,
    NS / 5,
    NS / 2,
    NS,
    2 * NS,
    5 * NS,
    10 * NS,
    15 * NS,
    30 * NS,
    60 * NS,
    120 * NS,
    300 * NS,
    600 * NS,
    900 * NS,
    1_800 * NS,
    3_600 * NS,
    7_200 * NS,
    4 * 3_600 * NS,
    12 * 3_600 * NS,
    DAY,
];

/// Most ticks on an axis.
const MARKS_MAX: i128 = 9;

/// Year, month and day of a day number since 1970-01-01, in the proleptic Gregorian calendar. Method: H. Hinnant,
/// "chrono-compatible low-level date algorithms": years begin in March, eras have 400 years.
fn date(day: i128) -> (i128, i128, i128) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let in_era = day.rem_euclid(146_097);
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let calendar_month = if month < 10 { month + 3 } else { month - 9 };
    let calendar_year = year + era * 400 + i128::from(calendar_month <= 2);
    (
        calendar_year,
        calendar_month,
        in_year - (153 * month + 2) / 5 + 1,
    )
}

/// `2014-01-31`.
fn day_words(ns: i128) -> String {
    let (year, month, day) = date(ns.div_euclid(DAY));
    format!("{year:04}-{month:02}-{day:02}")
}

/// `10:00:03`, with as many digits behind the second as `step` needs.
fn time_words(ns: i128, step: i128) -> String {
    let of_day = ns.rem_euclid(DAY);
    let seconds = of_day / NS;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if step >= 60 * NS {
        format!("{hour:02}:{minute:02}")
    } else if step >= NS {
        format!("{hour:02}:{minute:02}:{second:02}")
    } else {
        format!("{minute:02}:{second:02}.{:03}", of_day % NS / 1_000_000)
    }
}

/// `2014-01-31 10:00:03`.
#[must_use]
pub fn to_the_second(ns: i128) -> String {
    format!("{} {}", day_words(ns), time_words(ns, NS))
}

/// `2014-01-31 10:00:03.250`.
#[must_use]
pub fn to_the_millisecond(ns: i128) -> String {
    format!("{}.{:03}", to_the_second(ns), ns.rem_euclid(NS) / 1_000_000)
}

/// Round times between two, with their words, and the title of the axis.
#[must_use]
pub fn marks(from_ns: i128, to_ns: i128) -> (Vec<(i128, String)>, String) {
    let span = (to_ns - from_ns).max(1);
    let fits = |step: &i128| span / step < MARKS_MAX;
    let step = STEPS
        .into_iter()
        .find(fits)
        .unwrap_or(7 * DAY * (span / (7 * DAY * MARKS_MAX) + 1));
    let first = from_ns.div_euclid(step) * step;
    let times = (0..=MARKS_MAX + 1)
        .map(|n| first + n * step)
        .filter(|ns| (from_ns..=to_ns).contains(ns));
    let words = |ns: i128| {
        if step >= DAY || (ns.rem_euclid(DAY) == 0 && step >= 60 * NS) {
            day_words(ns)
        } else {
            time_words(ns, step)
        }
    };
    let title = format!("time of day, UTC, from {}", to_the_second(from_ns));
    (times.map(|ns| (ns, words(ns))).collect(), title)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against `date -u -d @N '+%F %T'` of GNU coreutils.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_391_162_403, "2014-01-31 10:00:03"),
            (4_107_542_399, "2100-02-28 23:59:59"),
        ] {
            assert_eq!(to_the_second(seconds * NS), shown);
        }
    }

    #[test]
    fn marks_are_round_and_few() {
        let start = 1_391_162_403 * NS;
        let words = |span| {
            marks(start, start + span)
                .0
                .into_iter()
                .map(|(_, words)| words)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(8 * NS)[..2], ["10:00:03", "10:00:04"]);
        assert_eq!(words(4 * NS)[..2], ["00:03.000", "00:03.500"]);
        assert_eq!(words(2 * 3_600 * NS)[..2], ["10:15", "10:30"]);
        assert_eq!(words(2 * DAY)[..3], ["12:00", "2014-02-01", "12:00"]);
        for span in [1, NS / 3, 77 * NS, 3 * DAY, 900 * DAY, i128::from(i64::MAX)] {
            let found = words(span).len();
            assert!(found <= 9, "{span}: {found}");
        }
    }
}
