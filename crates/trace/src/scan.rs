//! Takes a line apart from left to right: a field is split off and understood in the same pass.
//!
//! For formats with a separator of one byte; a run of blanks counts as one. The usual case (a plain number, the
//! separator, the next) uses the fast way; blanks around a value, a sign or an error use the slow one, which reads the
//! field again. Nothing is copied but the text of an error.

use rustc_hash::FxHashMap;

use crate::error::shown;
use crate::names::{DeviceId, Names};
use crate::number::{leading_digits, parse_decimal, parse_u64};
use crate::op::Op;
use crate::text::LineError;

/// A number without sign, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Without a point.
    Whole(u64),
    /// With a point; times `10^scale`, exactly.
    Decimal(i64),
}

/// The rest of a line; every method takes one field with the separator after it.
#[derive(Clone)]
pub struct Scan<'line> {
    line: &'line [u8],
    /// The start of the next field; beyond the line's length after the last one.
    at: usize,
    separator: u8,
}

impl<'line> Scan<'line> {
    /// Begins at the first field.
    #[inline]
    #[must_use]
    pub fn new(line: &'line [u8], separator: u8) -> Scan<'line> {
        let mut scan = Scan {
            line,
            at: 0,
            separator,
        };
        scan.skip_run();
        scan
    }

    #[inline]
    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.skip_run();
    }

    /// Several blanks separate like one, and those at the ends of a line do not separate at all.
    #[inline]
    fn skip_run(&mut self) {
        if self.separator == b' ' {
            while self.line.get(self.at) == Some(&b' ') {
                self.at += 1;
            }
            if self.at == self.line.len() {
                self.at += 1;
            }
        }
    }

    #[inline]
    fn rest(&self) -> &'line [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Whether all fields were taken.
    #[inline]
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.at > self.line.len()
    }

    /// The next field unchanged; `None` after the last one.
    #[inline]
    pub fn field(&mut self) -> Option<&'line [u8]> {
        let rest = self.line.get(self.at..)?;
        // Fields have a few bytes: looking at each is faster than calling a search of vectors.
        let length = rest
            .iter()
            .position(|&byte| byte == self.separator)
            .unwrap_or(rest.len());
        self.advance(length + 1);
        Some(&rest[..length])
    }

    /// The next field without the blanks around it.
    ///
    /// # Errors
    /// After the last field.
    #[inline]
    pub fn word(&mut self, expected: &'static str) -> Result<&'line [u8], LineError> {
        match self.field() {
            Some(field) => Ok(field.trim_ascii()),
            None => Err(missing(self.line, expected)),
        }
    }

    /// The next two fields as one piece of text, with the separator between them.
    ///
    /// # Errors
    /// When there are not two.
    #[inline]
    pub fn two_words(&mut self, expected: &'static str) -> Result<&'line [u8], LineError> {
        let start = self.at;
        match (self.field(), self.field()) {
            (Some(_), Some(_)) => Ok(&self.line[start..self.at - 1]),
            _ => Err(missing(self.line, expected)),
        }
    }

    /// Takes one byte that fills a field; `None`, with nothing taken, when the field is anything else.
    #[inline]
    pub fn letter(&mut self) -> Option<u8> {
        let (&letter, after) = self.rest().split_first()?;
        let ends = after.first().is_none_or(|&byte| byte == self.separator);
        if !ends || letter == self.separator {
            return None;
        }
        self.advance(2);
        Some(letter)
    }

    /// Skips an empty or blank field; `false`, without a change, if it is not blank or missing.
    #[inline]
    pub fn blank(&mut self) -> bool {
        match self.rest().first() {
            Some(&byte) if byte != self.separator && byte != b' ' => false,
            _ => {
                let mut ahead = self.clone();
                let is_blank = ahead
                    .field()
                    .is_some_and(|field| field.trim_ascii().is_empty());
                if is_blank {
                    *self = ahead;
                }
                is_blank
            }
        }
    }

    /// `R`, `W`, `Read` or `Write`, in capitals or not.
    ///
    /// # Errors
    /// When the next field is anything else, or missing.
    #[inline]
    pub fn read_or_write(&mut self, expected: &'static str) -> Result<Op, LineError> {
        match self.letter() {
            Some(b'R' | b'r') => return Ok(Op::Read),
            Some(b'W' | b'w') => return Ok(Op::Write),
            Some(other) => return Err(LineError::new(&[other], expected)),
            None => {}
        }
        match self.word(expected)? {
            b"Read" => Ok(Op::Read),
            b"Write" => Ok(Op::Write),
            word if word.eq_ignore_ascii_case(b"read") || word.eq_ignore_ascii_case(b"r") => {
                Ok(Op::Read)
            }
            word if word.eq_ignore_ascii_case(b"write") || word.eq_ignore_ascii_case(b"w") => {
                Ok(Op::Write)
            }
            word => Err(LineError::new(word, expected)),
        }
    }

    /// A whole number without sign.
    ///
    /// # Errors
    /// When the next field is anything else, or missing.
    #[inline]
    pub fn u64(&mut self, expected: &'static str) -> Result<u64, LineError> {
        match self.plain_u64() {
            Some(value) => Ok(value),
            None => self.slow(expected, parse_u64),
        }
    }

    /// A field of digits alone; `None`, with nothing taken, when the field is anything else.
    #[inline(always)]
    pub fn plain_u64(&mut self) -> Option<u64> {
        let rest = self.rest();
        let (value, digits) = leading_digits(rest)?;
        if digits == 0 || rest.get(digits).is_some_and(|&byte| byte != self.separator) {
            return None;
        }
        self.advance(digits + 1);
        Some(value)
    }

    /// Whole seconds, a point and nine digits; `None`, with nothing taken, when the field is anything else.
    #[inline]
    pub fn seconds_and_ns(&mut self) -> Option<(u64, u64)> {
        let rest = self.rest();
        let (seconds, digits) = leading_digits(rest)?;
        if digits == 0 || rest.get(digits) != Some(&b'.') {
            return None;
        }
        let fraction = &rest[digits + 1..];
        let (ns, places) = leading_digits(fraction)?;
        let is_whole_field = fraction.get(9).is_none_or(|&byte| byte == self.separator);
        if places != 9 || !is_whole_field {
            return None;
        }
        self.advance(digits + 11);
        Some((seconds, ns))
    }

    /// All remaining fields, unchanged.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> &'line [u8] {
        self.rest()
    }

    /// A decimal number times `10^scale`, exactly; see [`parse_decimal`].
    ///
    /// # Errors
    /// When the next field is anything else, or missing.
    #[inline]
    pub fn decimal(&mut self, scale: u32, expected: &'static str) -> Result<i64, LineError> {
        match self.number_ahead(scale) {
            Some((Number::Decimal(value), length)) => {
                self.advance(length + 1);
                Ok(value)
            }
            _ => self.slow(expected, |text| parse_decimal(text, scale)),
        }
    }

    /// A field of digits with at most one point between them; `None`, with nothing taken, when the field is anything
    /// else. `scale` is that of [`Scan::decimal`].
    #[inline(always)]
    pub fn number(&mut self, scale: u32) -> Option<Number> {
        let (number, length) = self.number_ahead(scale)?;
        self.advance(length + 1);
        Some(number)
    }

    /// The number that fills the next field, and the field's length.
    #[inline(always)]
    fn number_ahead(&self, scale: u32) -> Option<(Number, usize)> {
        let rest = self.rest();
        let (whole, digits) = leading_digits(rest)?;
        if digits == 0 {
            return None;
        }
        match rest.get(digits) {
            Some(b'.') => {}
            Some(&byte) if byte != self.separator => return None,
            _ => return Some((Number::Whole(whole), digits)),
        }
        let fraction = &rest[digits + 1..];
        let (parts, places) = leading_digits(fraction)?;
        let is_whole_field = fraction
            .get(places)
            .is_none_or(|&byte| byte == self.separator);
        if places == 0 || !is_whole_field {
            return None;
        }
        let missing = scale.checked_sub(places as u32)?;
        let value = joined(whole, parts, scale, missing)?;
        Some((Number::Decimal(value), digits + places + 1))
    }

    #[cold]
    fn slow<T>(
        &mut self,
        expected: &'static str,
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, LineError> {
        let word = self.word(expected)?;
        parse(word).ok_or_else(|| LineError::new(word, expected))
    }

    /// Ensures that nothing follows the last field.
    ///
    /// # Errors
    /// When there are further fields.
    #[inline]
    pub fn end(&self, expected: &'static str) -> Result<(), LineError> {
        if self.is_at_end() {
            Ok(())
        } else {
            Err(missing(self.line, expected))
        }
    }
}

/// `whole` and the digits after its point, as one number with `scale` places.
#[inline]
fn joined(whole: u64, parts: u64, scale: u32, missing: u32) -> Option<i64> {
    let value = whole.checked_mul(10u64.checked_pow(scale)?)?;
    let value = value.checked_add(parts.checked_mul(10u64.checked_pow(missing)?)?)?;
    i64::try_from(value).ok()
}

/// A row, or nothing for a header line: called only if the line is no row.
///
/// # Errors
/// When the line is neither.
#[inline]
pub fn row_or_header<Row>(
    row: Result<Row, LineError>,
    is_header: impl FnOnce() -> bool,
) -> Result<Option<Row>, LineError> {
    match row {
        Err(_) if is_header() => Ok(None),
        row => row.map(Some),
    }
}

/// Whether a line begins with these words, in capitals or not: how a header line is recognised.
#[must_use]
pub fn begins_with(line: &[u8], words: &[u8]) -> bool {
    line.get(..words.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(words))
}

/// The first byte, checked to be in range together with the last: sectors or bytes of `unit_bytes`.
///
/// # Errors
/// When the extent does not fit 64 bits.
#[inline]
pub fn extent(start: u64, len: u64, unit_bytes: u64, line: &[u8]) -> Result<(u64, u64), LineError> {
    let extent = || {
        let (start, len) = (start.checked_mul(unit_bytes)?, len.checked_mul(unit_bytes)?);
        start.checked_add(len).map(|_| (start, len))
    };
    extent().ok_or_else(|| missing(line, "a start and length whose sum is below 2^64 bytes"))
}

/// A count of units as ns.
///
/// # Errors
/// When it does not fit.
#[inline]
pub fn ns(units: u64, unit_ns: i64, line: &[u8]) -> Result<i64, LineError> {
    let ns = i64::try_from(units)
        .ok()
        .and_then(|units| units.checked_mul(unit_ns));
    ns.ok_or_else(|| missing(line, "a time below 2^63 ns"))
}

#[cold]
fn missing(line: &[u8], expected: &'static str) -> LineError {
    LineError {
        found: shown(line),
        expected,
    }
}

/// Ids of devices by a key in each line, so that a name is made once for each device.
#[derive(Default)]
pub struct DeviceKeys {
    last: (Vec<u8>, DeviceId),
    by_text: FxHashMap<Box<[u8]>, DeviceId>,
    /// Ids of small numbers, by the number.
    by_small_number: Vec<Option<DeviceId>>,
    by_number: FxHashMap<u64, DeviceId>,
}

/// Numbers of devices below it need no map.
const SMALL_NUMBERS: usize = 256;

impl DeviceKeys {
    /// The device of a piece of text; `name` makes its name when it is seen for the first time.
    #[inline]
    pub fn text(
        &mut self,
        key: &[u8],
        names: &mut Names,
        name: impl Fn(&[u8]) -> String,
    ) -> DeviceId {
        if self.last.0 == key && !key.is_empty() {
            return self.last.1;
        }
        let id = match self.by_text.get(key) {
            Some(&id) => id,
            None => {
                let id = names.device(&name(key));
                self.by_text.insert(key.into(), id);
                id
            }
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(key);
        self.last.1 = id;
        id
    }

    /// The device of a number, which is its name.
    #[inline]
    pub fn number(&mut self, number: u64, names: &mut Names) -> DeviceId {
        if let Some(&Some(id)) = usize::try_from(number)
            .ok()
            .and_then(|number| self.by_small_number.get(number))
        {
            return id;
        }
        self.new_number(number, names)
    }

    #[inline(never)]
    fn new_number(&mut self, number: u64, names: &mut Names) -> DeviceId {
        let id = *self
            .by_number
            .entry(number)
            .or_insert_with(|| names.device(&number.to_string()));
        if number < SMALL_NUMBERS as u64 {
            self.by_small_number.resize(SMALL_NUMBERS, None);
            self.by_small_number[number as usize] = Some(id);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_in_a_row() {
        let mut scan = Scan::new(b"12, 7 ,R,1.25,hm,0,", b',');
        assert_eq!(scan.u64("n").ok(), Some(12));
        assert_eq!(scan.u64("n").ok(), Some(7));
        assert_eq!(scan.letter(), Some(b'R'));
        assert_eq!(scan.decimal(3, "t").ok(), Some(1250));
        let names = scan.two_words("host and disk").ok();
        assert_eq!(names, Some(&b"hm,0"[..]));
        assert_eq!(scan.letter(), None);
        assert_eq!(scan.word("last").ok(), Some(&b""[..]));
        assert!(scan.is_at_end());
        assert!(scan.word("one more").is_err());
    }

    #[test]
    fn fast_and_slow_way_agree() {
        let texts = [
            "0",
            "7.5",
            "1.123456789",
            "1.1234567891",
            "18446744073709551616",
            "-1.5",
            "+2",
            ".5",
            "1.",
            "1e3",
            "NaN",
            "",
            " 3 ",
            "9223372036.854775807",
            "9223372036.854775808",
            "00000000000000000001.5",
            "1.5x",
            "12345678",
            "1234567890123456",
            "99999999999999999999.9",
        ];
        for text in texts {
            let slow = parse_decimal(text.trim_ascii().as_bytes(), 9);
            assert_eq!(
                Scan::new(text.as_bytes(), b',').decimal(9, "t").ok(),
                slow,
                "{text:?}"
            );
            let with_more = format!("{text},1");
            assert_eq!(
                Scan::new(with_more.as_bytes(), b',').decimal(9, "t").ok(),
                slow,
                "{text:?}"
            );
            match Scan::new(with_more.as_bytes(), b',').number(9) {
                Some(Number::Decimal(value)) => assert_eq!(Some(value), slow, "{text:?}"),
                Some(Number::Whole(value)) => assert_eq!(Some(value), parse_u64(text.as_bytes())),
                None => assert!(!matches!(text, "0" | "7.5" | "12345678"), "{text:?}"),
            }
            let slow = parse_u64(text.trim_ascii().as_bytes());
            assert_eq!(
                Scan::new(with_more.as_bytes(), b',').u64("n").ok(),
                slow,
                "{text:?}"
            );
        }
    }

    #[test]
    fn runs_of_blanks() {
        let mut scan = Scan::new(b"  1   2.5 write ", b' ');
        assert_eq!(scan.u64("n").ok(), Some(1));
        assert_eq!(scan.decimal(1, "t").ok(), Some(25));
        assert_eq!(scan.read_or_write("op").ok(), Some(Op::Write));
        assert!(scan.is_at_end() && scan.field().is_none());
    }

    #[test]
    fn blank_fields() {
        let mut scan = Scan::new(b", ,7,", b',');
        assert!(scan.blank() && scan.blank() && !scan.blank());
        assert_eq!(scan.u64("n").ok(), Some(7));
        assert!(scan.blank() && !scan.blank());
    }

    #[test]
    fn one_device_a_key() {
        let (mut keys, mut names) = (DeviceKeys::default(), Names::default());
        let name = |key: &[u8]| String::from_utf8_lossy(key).replace(',', "_");
        let ids = [&b"a,0"[..], b"a,1", b"a,0", b""].map(|key| keys.text(key, &mut names, name));
        assert_eq!(ids, [0, 1, 0, 2]);
        assert_eq!(
            [9, 9, 8, 9].map(|key| keys.number(key, &mut names)),
            [3, 3, 4, 3]
        );
        assert_eq!(names.devices()[4].name, "8");
    }
}
