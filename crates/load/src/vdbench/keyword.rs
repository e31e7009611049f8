//! Keywords: abbreviations, refused words with the reason, and values with their bounds.

use super::text::Parameter;
use super::value::{Number, NumberUnit};
use crate::job_file::{JobFileError, listed};

/// The meaning of a word of Vdbench.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning<K> {
    Taken(K),
    /// It has no meaning on a device or file that is measured, and why.
    Refused(&'static str),
}

/// Words in the order in which Vdbench looks at them: a beginning stands for the first that has it.
pub(super) type KeywordTable<K> = &'static [(&'static str, Meaning<K>)];

/// A parameter whose word is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// In full.
    pub word: &'static str,
    /// `sd=sd1`.
    pub owner: &'a str,
    pub parameter: &'a Parameter,
}

/// Looks a keyword up.
pub(super) fn find<'a, K: Copy>(
    table: KeywordTable<K>,
    parameter: &'a Parameter,
    owner: &'a str,
) -> Result<(K, Known<'a>), JobFileError> {
    let place = || parameter.place.clone();
    let found = || format!("{}=", parameter.keyword);
    match table
        .iter()
        .find(|(word, _)| word.starts_with(&parameter.keyword))
    {
        Some((word, Meaning::Taken(key))) => Ok((
            *key,
            Known {
                word,
                owner,
                parameter,
            },
        )),
        Some((word, Meaning::Refused(why))) => {
            let found = if *word == parameter.keyword {
                found()
            } else {
                format!("{word}= ({})", found())
            };
            Err(JobFileError::Refused {
                place: place(),
                found,
                owner: owner.to_owned(),
                why,
            })
        }
        None => {
            let taken = table
                .iter()
                .filter(|(_, meaning)| matches!(meaning, Meaning::Taken(_)));
            let expected = listed(taken.map(|(word, _)| *word));
            let (place, found) = (place(), found());
            let order = "; the order of definitions is hd, sd, wd, rd";
            let is_definition = ["hd", "sd", "wd", "lun"].contains(&parameter.keyword.as_str());
            let expected = if is_definition {
                expected + order
            } else {
                expected
            };
            Err(JobFileError::UnknownParameter {
                place,
                found,
                owner: owner.to_owned(),
                expected,
            })
        }
    }
}

impl Known<'_> {
    /// An error on its value.
    pub fn wrong(&self, expected: impl Into<String>) -> JobFileError {
        JobFileError::Value {
            place: self.parameter.place.clone(),
            parameter: format!("{} of {}", self.word, self.owner),
            found: self.parameter.value.shown(),
            expected: expected.into(),
        }
    }

    pub fn word(&self) -> Result<&str, JobFileError> {
        let word = self.parameter.value.word().filter(|word| !word.is_empty());
        word.ok_or_else(|| self.wrong("one name"))
    }

    pub fn words(&self) -> Result<Vec<String>, JobFileError> {
        self.parameter
            .value
            .words()
            .map_err(|expected| self.wrong(expected))
    }

    pub fn numbers(&self, unit: NumberUnit) -> Result<Vec<Number>, JobFileError> {
        self.parameter
            .value
            .numbers(unit)
            .map_err(|expected| self.wrong(expected))
    }

    /// A whole number within bounds.
    pub fn whole(&self, min: u64, max: u64) -> Result<u64, JobFileError> {
        let number = self.parameter.value.number(NumberUnit::Binary);
        let whole = number.and_then(|number| whole(number, min, max));
        whole.ok_or_else(|| self.wrong(format!("a whole number from {min} to {max}")))
    }

    /// Bytes, a multiple of 512.
    pub fn sectors(&self, min: u64) -> Result<u64, JobFileError> {
        let number = self.parameter.value.number(NumberUnit::Binary);
        let bytes = number.and_then(|number| whole(number, min, u64::MAX >> 11));
        let bytes = bytes.filter(|bytes| bytes.is_multiple_of(512));
        bytes.ok_or_else(|| self.wrong("bytes, a multiple of 512"))
    }

    /// A whole number from 0 to 100.
    pub fn percent(&self) -> Result<u8, JobFileError> {
        self.whole(0, 100).map(|percent| percent as u8)
    }

    /// Whole seconds.
    pub fn seconds(&self, min: u64) -> Result<u64, JobFileError> {
        const YEAR: u64 = 366 * 24 * 3600;
        let number = self.parameter.value.number(NumberUnit::Time);
        let seconds = number.and_then(|number| whole(number, min, YEAR));
        seconds.ok_or_else(|| {
            self.wrong(format!(
                "whole seconds of at least {min}, or minutes and hours as in 5m and 1h"
            ))
        })
    }
}

/// The number where it is whole and within bounds.
pub(super) fn whole(number: Number, min: u64, max: u64) -> Option<u64> {
    let Number { value, is_percent } = number;
    let is_whole = !is_percent && value.fract() == 0.0 && (0.0..9.1e15).contains(&value);
    is_whole
        .then_some(value as u64)
        .filter(|value| (min..=max).contains(value))
}

/// The parameters given in a definition.
#[derive(Debug, Default)]
pub(super) struct GivenParameters(Vec<(&'static str, usize)>);

impl GivenParameters {
    /// Takes note of a parameter.
    pub fn once(&mut self, known: &Known<'_>) -> Result<(), JobFileError> {
        let place = known.parameter.place.clone();
        if let Some((_, first)) = self.0.iter().find(|(word, _)| *word == known.word) {
            let what = format!("{}= of {}", known.word, known.owner);
            return Err(JobFileError::Twice {
                place,
                what,
                first: *first,
            });
        }
        self.0.push((known.word, place.line));
        Ok(())
    }
}
