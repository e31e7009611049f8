//! The calendar of the place where the host is, by the time zone of the process (`TZ`, or `/etc/localtime`).

/// A moment of a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarTime {
    /// Year.
    pub year: i32,
    /// Month, from 1.
    pub month: i32,
    /// Day of the month, from 1.
    pub day: i32,
    /// Hour.
    pub hour: i32,
    /// Minute.
    pub minute: i32,
    /// Second.
    pub second: i32,
}

/// Seconds since 1970 of a moment of the local calendar; `None` for a day that no month has. For an hour that a change of the clock skips
/// or repeats, the C library chooses a moment near it.
#[must_use]
pub fn seconds_of(local: CalendarTime) -> Option<i64> {
    // SAFETY: all fields of the struct are integers, or a pointer that mktime does not read; zeros are valid for each.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    parts.tm_year = local.year.checked_sub(1900)?;
    parts.tm_mon = local.month.checked_sub(1)?;
    parts.tm_mday = local.day;
    parts.tm_hour = local.hour;
    parts.tm_min = local.minute;
    parts.tm_sec = local.second;
    // The library finds out whether it is summer time.
    parts.tm_isdst = -1;
    // SAFETY: the pointer is to a struct of this function.
    let seconds = unsafe { libc::mktime(&raw mut parts) };
    // It carries days beyond the end of a month to the next one.
    let is_same = parts.tm_mday == local.day && parts.tm_mon == local.month - 1;
    is_same.then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the C library's own way back.
    #[test]
    fn the_way_back_gives_the_same_moment() {
        let local = CalendarTime {
            year: 2026,
            month: 11,
            day: 14,
            hour: 8,
            minute: 30,
            second: 5,
        };
        let seconds = seconds_of(local).expect("a moment");
        // SAFETY: as above; the result is written to a struct of this function.
        let parts = unsafe {
            let mut parts: libc::tm = std::mem::zeroed();
            libc::localtime_r(&raw const seconds, &raw mut parts);
            parts
        };
        let found = [
            parts.tm_year + 1900,
            parts.tm_mon + 1,
            parts.tm_mday,
            parts.tm_hour,
            parts.tm_min,
            parts.tm_sec,
        ];
        assert_eq!(found, [2026, 11, 14, 8, 30, 5]);
        assert_eq!(seconds_of(CalendarTime { day: 31, ..local }), None);
    }
}
