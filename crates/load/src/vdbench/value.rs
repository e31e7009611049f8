//! Values of Vdbench's parameters: a word, a list in parentheses, and ranges within a list.
//!
//! Whether a word is a name or a number is up to the parameter that asks. Units are powers of 1024; for times `m` is minutes
//! and `h` hours.

use super::text::{Letter, plain};
use crate::job_file::{FileLine, JobFileError};

/// Most values of one list, its ranges spread out: the number of Vdbench itself.
const VALUES_MAX: usize = 10_240;

/// The value after `keyword=`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParameterValue {
    items: Vec<Item>,
    is_list: bool,
}

/// A word of a list, or two with a dash between them.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    One(String),
    Range(String, String),
}

/// A number, and whether a percent sign follows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    pub value: f64,
    pub is_percent: bool,
}

/// The meaning of units after a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberUnit {
    /// `k`, `m`, `g`, `t`, each with a `b` behind it or without.
    Binary,
    /// `m` and `h`.
    Time,
}

impl ParameterValue {
    /// Reads the text after the `=`.
    pub fn read(letters: &[Letter], place: &FileLine) -> Result<ParameterValue, JobFileError> {
        let sign_at = |at: usize, sign: char| {
            letters
                .get(at)
                .is_some_and(|letter| letter.sign == sign && !letter.is_quoted)
        };
        if !sign_at(0, '(') {
            return Ok(ParameterValue {
                items: vec![Item::One(plain(letters))],
                is_list: false,
            });
        }
        let inside = letters.get(1..letters.len() - 1).unwrap_or_default();
        let is_sign = |letter: &Letter| !letter.is_quoted && matches!(letter.sign, '(' | ')');
        if !sign_at(letters.len() - 1, ')') || inside.iter().any(is_sign) {
            return Err(JobFileError::Shape {
                place: place.clone(),
                found: format!("`{}`", plain(letters)),
                expected: "a word, or one list in parentheses: (1,2,4)",
            });
        }
        let items = inside
            .split(|letter| letter.sign == ',' && !letter.is_quoted)
            .map(item)
            .collect();
        Ok(ParameterValue {
            items,
            is_list: true,
        })
    }

    /// As it was written, for messages.
    pub fn shown(&self) -> String {
        let shown = |item: &Item| match item {
            Item::One(word) => word.clone(),
            Item::Range(from, to) => format!("{from}-{to}"),
        };
        let items: Vec<String> = self.items.iter().map(shown).collect();
        if self.is_list {
            format!("({})", items.join(","))
        } else {
            items.concat()
        }
    }

    /// The one word, outside of parentheses or alone within them.
    pub fn word(&self) -> Option<&str> {
        match &self.items[..] {
            [Item::One(word)] => Some(word),
            _ => None,
        }
    }

    /// Words, with `sd1-sd4` spread out.
    pub fn words(&self) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        for item in &self.items {
            match item {
                Item::One(word) if word.is_empty() => return Err("at least one name".to_owned()),
                Item::One(word) => words.push(word.clone()),
                Item::Range(from, to) => spread_names(from, to, &mut words)?,
            }
            if words.len() > VALUES_MAX {
                return Err(format!("at most {VALUES_MAX} names"));
            }
        }
        Ok(words)
    }

    /// The one number.
    pub fn number(&self, unit: NumberUnit) -> Option<Number> {
        number(self.word()?, unit)
    }

    /// Numbers, with `1-64,d` and `10-50,10` spread out.
    pub fn numbers(&self, unit: NumberUnit) -> Result<Vec<Number>, String> {
        self.numbers_or(unit, |_| None)
    }

    /// The same, with a meaning for some words: `max`.
    pub fn numbers_or(
        &self,
        unit: NumberUnit,
        meaning: impl Fn(&str) -> Option<Number>,
    ) -> Result<Vec<Number>, String> {
        let expected = || match unit {
            NumberUnit::Binary => "numbers, as in 4096, 4k or (1-64,d)".to_owned(),
            NumberUnit::Time => "a time: seconds, or minutes and hours as in 5m and 1h".to_owned(),
        };
        let read = |word: &str| {
            meaning(word)
                .or_else(|| number(word, unit))
                .ok_or_else(expected)
        };
        let mut numbers = Vec::new();
        let mut items = self.items.iter();
        while let Some(item) = items.next() {
            match item {
                Item::One(word) => numbers.push(read(word)?),
                Item::Range(from, to) => {
                    let step = "a step behind a range: (1-10,1), or (1-64,d) to double";
                    let Some(Item::One(by)) = items.next() else {
                        return Err(step.to_owned());
                    };
                    let (from, to) = (read(from)?, read(to)?);
                    let by = match by.as_str() {
                        "d" => None,
                        by => Some(read(by).map_err(|_| step.to_owned())?.value),
                    };
                    spread_numbers(from, to, by, &mut numbers)?;
                }
            }
            if numbers.len() > VALUES_MAX {
                return Err(format!("at most {VALUES_MAX} values"));
            }
        }
        Ok(numbers)
    }
}

fn item(letters: &[Letter]) -> Item {
    let dash = letters
        .iter()
        .position(|letter| letter.sign == '-' && !letter.is_quoted);
    match dash {
        Some(at) if at > 0 && at + 1 < letters.len() => {
            Item::Range(plain(&letters[..at]), plain(&letters[at + 1..]))
        }
        _ => Item::One(plain(letters)),
    }
}

/// A number of 0 or more; `None` for every other word. Java's other numbers (`1e3`, `7d`, `NaN`) do not occur.
fn number(word: &str, unit: NumberUnit) -> Option<Number> {
    let word = word.to_ascii_lowercase();
    let digits_end = word
        .find(|sign: char| !sign.is_ascii_digit() && sign != '.')
        .unwrap_or(word.len());
    let (digits, tail) = word.split_at(digits_end);
    if !digits.starts_with(|sign: char| sign.is_ascii_digit()) {
        return None;
    }
    let value: f64 = digits.parse().ok()?;
    let factor = match (unit, tail) {
        (_, "" | "%") => 1.0,
        (NumberUnit::Binary, "k" | "kb") => 1024.0,
        (NumberUnit::Binary, "m" | "mb") => f64::from(1 << 20),
        (NumberUnit::Binary, "g" | "gb") => f64::from(1 << 30),
        (NumberUnit::Binary, "t" | "tb") => 1024.0 * f64::from(1 << 30),
        (NumberUnit::Time, "m") => 60.0,
        (NumberUnit::Time, "h") => 3600.0,
        _ => return None,
    };
    let value = value * factor;
    // Beyond 2^53 a sum of such numbers is no longer exact, and no device is as large.
    (value <= 9e15).then_some(Number {
        value,
        is_percent: tail == "%",
    })
}

/// From a number to another, by a step or by doubling; downwards by halving alone, as in Vdbench.
fn spread_numbers(
    from: Number,
    to: Number,
    by: Option<f64>,
    into: &mut Vec<Number>,
) -> Result<(), String> {
    let (mut value, last) = (from.value, to.value);
    let is_up = value <= last;
    match by {
        Some(step) if step <= 0.0 || !is_up => {
            return Err("a range that goes up by a step above 0, as in (1-10,1)".to_owned());
        }
        None if value <= 0.0 || last <= 0.0 => {
            return Err("a range above 0 where it is doubled, as in (1-64,d)".to_owned());
        }
        _ => {}
    }
    while (is_up && value <= last) || (!is_up && value >= last) {
        into.push(Number {
            value,
            is_percent: to.is_percent,
        });
        if into.len() > VALUES_MAX {
            return Err(format!("at most {VALUES_MAX} values"));
        }
        value = match by {
            Some(step) => value + step,
            None if is_up => value * 2.0,
            None => value / 2.0,
        };
    }
    Ok(())
}

/// `sd1`, `sd4` to four names.
fn spread_names(from: &str, to: &str, into: &mut Vec<String>) -> Result<(), String> {
    let expected = || "a range of names that end in numbers and go up, as in (sd1-sd4)".to_owned();
    let parts = |name: &str| {
        let at = name
            .trim_end_matches(|sign: char| sign.is_ascii_digit())
            .len();
        let number: u64 = name[at..].parse().ok()?;
        Some((name[..at].to_owned(), number))
    };
    let ((prefix, first), (other, last)) = (
        parts(from).ok_or_else(expected)?,
        parts(to).ok_or_else(expected)?,
    );
    if prefix != other || first >= last {
        return Err(expected());
    }
    if last - first >= VALUES_MAX as u64 {
        return Err(format!("at most {VALUES_MAX} names"));
    }
    // The first keeps its zeros, the others have none.
    into.push(from.to_owned());
    into.extend((first + 1..=last).map(|number| format!("{prefix}{number}")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> ParameterValue {
        let letters: Vec<Letter> = text
            .chars()
            .map(|sign| Letter {
                sign,
                is_quoted: false,
            })
            .collect();
        ParameterValue::read(
            &letters,
            &FileLine {
                file: "p".into(),
                line: 1,
            },
        )
        .expect("a value")
    }

    #[track_caller]
    fn numbers(text: &str, unit: NumberUnit, expected: &[f64]) {
        let found = value(text)
            .numbers(unit)
            .map(|all| all.iter().map(|one| one.value).collect::<Vec<_>>());
        assert_eq!(found, Ok(expected.to_vec()), "{text}");
    }

    #[track_caller]
    fn no_numbers(text: &str, expected: &str) {
        let found = value(text).numbers(NumberUnit::Binary).expect_err(text);
        assert!(found.contains(expected), "{text}: {found}");
    }

    #[test]
    fn units_are_binary_and_times_have_minutes_and_hours() {
        numbers("4096", NumberUnit::Binary, &[4096.0]);
        numbers(
            "(1k,1KB,2m,3g,1tb)",
            NumberUnit::Binary,
            &[1024.0, 1024.0, 2097152.0, 3221225472.0, 1099511627776.0],
        );
        numbers("1.5k", NumberUnit::Binary, &[1536.0]);
        numbers("(90,2m,1h)", NumberUnit::Time, &[90.0, 120.0, 3600.0]);
        no_numbers("4x", "numbers");
        no_numbers("-4", "numbers");
        no_numbers("", "numbers");
        no_numbers("1e3", "numbers");
        assert!(
            value("5k").number(NumberUnit::Time).is_none(),
            "1,024 s are nobody's wish"
        );
        assert_eq!(
            value("30%").number(NumberUnit::Binary),
            Some(Number {
                value: 30.0,
                is_percent: true
            })
        );
    }

    #[test]
    fn ranges_step_double_and_halve() {
        numbers(
            "(1-64,d)",
            NumberUnit::Binary,
            &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0],
        );
        numbers(
            "(1-65,d)",
            NumberUnit::Binary,
            &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0],
        );
        numbers(
            "(8k-1k,d)",
            NumberUnit::Binary,
            &[8192.0, 4096.0, 2048.0, 1024.0],
        );
        numbers("(1-10,3)", NumberUnit::Binary, &[1.0, 4.0, 7.0, 10.0]);
        numbers(
            "(7,10-30,10,5)",
            NumberUnit::Binary,
            &[7.0, 10.0, 20.0, 30.0, 5.0],
        );
        numbers("(8-16,4)", NumberUnit::Binary, &[8.0, 12.0, 16.0]);
        no_numbers("(1-10)", "a step behind a range");
        no_numbers("(1-10,0)", "a step above 0");
        no_numbers("(10-1,1)", "goes up");
        no_numbers("(0-64,d)", "above 0");
        no_numbers("(1-9000000,1)", "at most 10240 values");
    }

    #[test]
    fn names_have_ranges_too() {
        let words = |text: &str| value(text).words();
        assert_eq!(
            words("(sd1-sd3,x)"),
            Ok(["sd1", "sd2", "sd3", "x"].map(str::to_owned).to_vec())
        );
        assert_eq!(words("one"), Ok(vec!["one".to_owned()]));
        assert_eq!(
            words("a-b"),
            Ok(vec!["a-b".to_owned()]),
            "no range outside of parentheses"
        );
        for bad in [
            "(sd1-wd3)",
            "(sd3-sd1)",
            "(sd-sd3)",
            "()",
            "(sd1-sd99999999)",
        ] {
            assert!(words(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn parentheses_are_one_level_deep() {
        let messages = ["(1,(2,3))", "(1)2", "(1,2)x"].map(|bad| {
            let letters: Vec<Letter> = bad
                .chars()
                .map(|sign| Letter {
                    sign,
                    is_quoted: false,
                })
                .collect();
            let error = ParameterValue::read(
                &letters,
                &FileLine {
                    file: "p".into(),
                    line: 7,
                },
            )
            .expect_err(bad);
            error.to_string()
        });
        insta::assert_snapshot!(messages.join("\n\n"));
        assert_eq!(value("(1,2-3,d)").shown(), "(1,2-3,d)");
    }
}
