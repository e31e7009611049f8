//! An option with its value, its expected type, and the error for other values.

use std::time::Duration;

use super::text::Setting;
use crate::job_file::JobFileError;
use crate::series::Edge;

const LENGTH_MAX: u64 = 64 << 20;

/// An option with its section.
pub(super) struct SectionOption<'a> {
    pub setting: &'a Setting,
    pub section: &'a str,
}

impl SectionOption<'_> {
    pub fn wrong(&self, expected: impl Into<String>) -> JobFileError {
        JobFileError::Value {
            place: self.setting.place.clone(),
            parameter: format!("{} of [{}]", self.setting.name, self.section),
            found: self.setting.value.clone().unwrap_or_default(),
            expected: expected.into(),
        }
    }

    pub fn text(&self) -> Result<&str, JobFileError> {
        self.setting
            .value
            .as_deref()
            .filter(|text| !text.is_empty())
            .ok_or_else(|| self.wrong("a value"))
    }

    /// A flag alone is on.
    pub fn is_on(&self) -> Result<bool, JobFileError> {
        match self.setting.value.as_deref() {
            None | Some("1") => Ok(true),
            Some("0") => Ok(false),
            _ => Err(self.wrong("0 or 1")),
        }
    }

    pub fn whole(&self, min: u64, max: u64) -> Result<u64, JobFileError> {
        let number = self.setting.value.as_deref().and_then(size);
        let number = number.filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.wrong(format!("a whole number from {min} to {max}")))
    }

    pub fn time(&self) -> Result<Duration, JobFileError> {
        let time = self.setting.value.as_deref().and_then(time);
        time.ok_or_else(|| self.wrong("a time: seconds, or with a unit of us, ms, s, m, h, d"))
    }

    pub fn edge(&self, is_size: bool) -> Result<Edge, JobFileError> {
        let text = self.setting.value.as_deref().unwrap_or_default();
        let min = u64::from(is_size);
        let edge = match text.strip_suffix('%') {
            Some(percent) => percent
                .parse()
                .ok()
                .filter(|percent| (min..=100).contains(percent))
                .map(|percent: u64| Edge::Percent(percent as f64)),
            None => size(text).filter(|bytes| *bytes >= min).map(Edge::Bytes),
        };
        edge.ok_or_else(|| self.wrong(SIZE))
    }

    pub fn length(&self, text: &str) -> Result<u64, JobFileError> {
        let length = size(text)
            .filter(|bytes| bytes.is_multiple_of(512) && (512..=LENGTH_MAX).contains(bytes));
        length.ok_or_else(|| self.wrong("lengths that are multiples of 512, up to 64m"))
    }
}

pub(super) const SIZE: &str =
    "a size: bytes, with k, m, g or t for powers of 1024, or a percentage";

/// A size as fio reads it: bytes without a unit, else powers of 1024. `64ki` is 64,000 bytes in fio and 65,536
/// everywhere else, so it is refused here.
fn size(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits_end = text
        .find(|sign: char| !sign.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let shift = match unit {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return None,
    };
    digits
        .parse::<u64>()
        .ok()?
        .checked_mul(1 << shift)
        .filter(|size| *size <= 1 << 60)
}

/// A time as fio reads it: without a unit seconds.
fn time(text: &str) -> Option<Duration> {
    const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);
    let digits_end = text
        .find(|sign: char| !sign.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let micros: u64 = match unit {
        "us" => 1,
        "ms" => 1_000,
        "" | "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    };
    let time = Duration::from_micros(digits.parse::<u64>().ok()?.checked_mul(micros)?);
    (time <= YEAR).then_some(time)
}
