//! Numbers as iostat prints them.

/// A printed number, and its distance from the true one at most: half a step of its last digit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Printed {
    /// As printed, in the unit of its column.
    pub value: f64,
    /// Half a step, in the same unit.
    pub half_step: f64,
}

/// Rates, times and counts of I/O stay far below; iostat printed no larger number.
const NUMBER_MAX: f64 = 1e15;

impl Printed {
    /// A number of 0 or more, with the half of its last digit; some languages write a comma.
    #[must_use]
    pub fn parse(word: &str) -> Option<Printed> {
        let word = word.replace(',', ".");
        let is_plain = word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let value = word
            .parse::<f64>()
            .ok()
            .filter(|value| is_plain && *value <= NUMBER_MAX)?;
        let decimals = word
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len().min(12));
        Some(Printed {
            value,
            half_step: 0.5 / 10f64.powi(decimals as i32),
        })
    }
}
