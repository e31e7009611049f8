//! Values of parameters that are more than a number: lengths, places, rates, lists.

use super::definition::{COUNT_MAX, MAX, Order, RateAsked, THREADS_MAX, Varied};
use super::keyword::{Known, whole};
use super::value::{Number, NumberUnit};
use crate::job_file::JobFileError;
use crate::plan::Arrivals;
use crate::series::Edge;

/// Longest I/O.
const LENGTH_MAX: u64 = 64 << 20;
/// Most lengths of `xfersize=(min,max,align)`.
const LENGTHS_MAX: u64 = 4_096;

/// I/O to devices are always direct, so this asks for a property that always holds, or never does.
pub(super) fn check_open_flags(known: &Known<'_>) -> Result<(), JobFileError> {
    let words = known.words()?;
    let is_direct =
        |word: &String| ["o_direct", "directio"].contains(&word.to_lowercase().as_str());
    words
        .iter()
        .all(is_direct)
        .then_some(())
        .ok_or_else(|| known.wrong("o_direct, which is always so here"))
}

pub(super) fn count(known: &Known<'_>) -> Result<(u64, u64), JobFileError> {
    let expected = || {
        known.wrong(format!(
            "the first number and how many, as in (1,8); at most {COUNT_MAX}"
        ))
    };
    match &known.numbers(NumberUnit::Binary)?[..] {
        [start, many] => {
            let start = whole(*start, 0, u64::from(u32::MAX));
            start.zip(whole(*many, 1, COUNT_MAX)).ok_or_else(expected)
        }
        _ => Err(expected()),
    }
}

/// Up to 100 a place is a percentage, as for Vdbench; beyond, it is bytes.
pub(super) fn range(known: &Known<'_>) -> Result<(Edge, Edge), JobFileError> {
    let expected =
        "two places that go up: percent up to 100, as in (10,20), or bytes, as in (1g,2g)";
    let edge = |number: &Number| match number.value {
        value if value <= 100.0 => Edge::Percent(value),
        value => Edge::Bytes(value as u64),
    };
    match &known.numbers(NumberUnit::Binary)?[..] {
        // Between 100 and 200 Vdbench takes the second for a percentage and wraps around the end.
        [_, to] if to.value > 100.0 && to.value <= 200.0 => {
            Err(known.wrong("a range that does not wrap around the end"))
        }
        [from, to] if from.value < to.value => Ok((edge(from), edge(to))),
        _ => Err(known.wrong(expected)),
    }
}

/// One length, lengths with percentages, or all from a length to another by steps.
pub(super) fn lengths(known: &Known<'_>) -> Result<Vec<(u64, f64)>, JobFileError> {
    let numbers = known.numbers(NumberUnit::Binary)?;
    let length = |number: &Number| {
        whole(*number, 512, LENGTH_MAX)
            .filter(|bytes| bytes.is_multiple_of(512))
            .ok_or_else(|| known.wrong("lengths that are multiples of 512, up to 64m"))
    };
    match &numbers[..] {
        [one] => Ok(vec![(length(one)?, 1.0)]),
        [min, max, step] => {
            let (min, max, step) = (length(min)?, length(max)?, length(step)?);
            if min >= max || (max - min) / step >= LENGTHS_MAX {
                return Err(
                    known.wrong(format!("(MIN,MAX,STEP) with at most {LENGTHS_MAX} lengths"))
                );
            }
            Ok((0..=(max - min) / step)
                .map(|at| (min + at * step, 1.0))
                .collect())
        }
        pairs if pairs.len() % 2 == 0 => {
            let weighed = pairs
                .chunks(2)
                .map(|pair| Ok((length(&pair[0])?, pair[1].value)));
            let weighed = weighed.collect::<Result<Vec<_>, JobFileError>>()?;
            let sum: f64 = weighed.iter().map(|(_, percent)| percent).sum();
            if sum.round() != 100.0 {
                return Err(known.wrong("percentages that add up to 100, as in (4k,25,8k,75)"));
            }
            Ok(weighed
                .into_iter()
                .filter(|(_, percent)| *percent > 0.0)
                .collect())
        }
        _ => Err(known.wrong("lengths and percentages in pairs, as in (4k,25,8k,75)")),
    }
}

/// The percentages of `seekpct=`, with words for its ends.
const PERCENTAGES: &str = "a whole number from 0 (sequential) to 100 (random), seq or rand";

/// The starts of I/O.
pub(super) fn order(known: &Known<'_>) -> Result<Order, JobFileError> {
    match known.word()? {
        word if word.eq_ignore_ascii_case("eof") => Ok(Order::ToEnd),
        "seqnz" => Ok(Order::FromAnywhere),
        word => {
            let percent = percent_random(word).map(|percent| Order::Random(percent.value as u8));
            percent.ok_or_else(|| known.wrong(format!("{PERCENTAGES}, or seqnz or eof")))
        }
    }
}

/// `seq`, `rand` or a percentage.
fn percent_random(word: &str) -> Option<Number> {
    let percent = |value: f64| {
        Some(Number {
            value,
            is_percent: false,
        })
    };
    match word {
        word if word.len() >= 3 && "sequential".starts_with(word) => percent(0.0),
        word if word.len() >= 3 && "random".starts_with(word) => percent(100.0),
        word => word
            .parse::<u8>()
            .ok()
            .filter(|value| *value <= 100)
            .and_then(|value| percent(value.into())),
    }
}

pub(super) fn stride(known: &Known<'_>) -> Result<u64, JobFileError> {
    let numbers = known.numbers(NumberUnit::Binary)?;
    let bytes: Option<Vec<u64>> = numbers
        .iter()
        .map(|number| whole(*number, 512, 1 << 50))
        .collect();
    match bytes.as_deref() {
        Some([min, max]) if min == max && min.is_multiple_of(512) => Ok(*min),
        _ => Err(known.wrong("the same multiple of 512 twice, as in (1m,1m)")),
    }
}

pub(super) fn rate(known: &Known<'_>) -> Result<RateAsked, JobFileError> {
    match known.parameter.value.word() {
        Some("curve") => return Ok(RateAsked::Curve),
        Some(word) if word.eq_ignore_ascii_case("max") => return Ok(RateAsked::Max),
        _ => {}
    }
    rates(known).map(RateAsked::Each)
}

fn rates(known: &Known<'_>) -> Result<Vec<Number>, JobFileError> {
    let max = |word: &str| (word == "max").then_some(MAX);
    let expected = "max, curve, I/O a second above 0, or a list, as in (100,200) or (100-1000,100)";
    let rates = known
        .parameter
        .value
        .numbers_or(NumberUnit::Binary, max)
        .map_err(|_| known.wrong(expected))?;
    match rates.iter().all(|rate| rate.value > 0.0) {
        true => Ok(rates),
        false => Err(known.wrong(expected)),
    }
}

pub(super) fn curve(known: &Known<'_>) -> Result<Vec<f64>, JobFileError> {
    let points = known.numbers(NumberUnit::Binary)?;
    match points
        .iter()
        .all(|point| (1.0..=100.0).contains(&point.value))
    {
        true => Ok(points.into_iter().map(|point| point.value).collect()),
        false => Err(known.wrong("percentages of the highest rate, from 1 to 100")),
    }
}

/// Values of a `for` list. A percentage of a rate is negative, as Vdbench keeps it.
pub(super) fn varied(what: Varied, known: &Known<'_>) -> Result<Vec<f64>, JobFileError> {
    let numbers = match what {
        Varied::RandomPercent => {
            let numbers = known
                .parameter
                .value
                .numbers_or(NumberUnit::Binary, percent_random);
            numbers.map_err(|_| known.wrong(PERCENTAGES))?
        }
        Varied::Rate => rates(known)?,
        _ => known.numbers(NumberUnit::Binary)?,
    };
    let is_sectors = |number: &Number, max| {
        whole(*number, 512, max).is_some_and(|bytes| bytes.is_multiple_of(512))
    };
    let (is_good, expected): (fn(&Number) -> bool, _) = match what {
        Varied::Length => (|_| true, "lengths that are multiples of 512, up to 64m"),
        Varied::HitArea => (|_| true, "bytes, multiples of 512"),
        Varied::Threads => (
            |number| whole(*number, 1, THREADS_MAX).is_some(),
            "whole numbers from 1 to 4096",
        ),
        Varied::Rate => (|_| true, ""),
        _ => (
            |number| whole(*number, 0, 100).is_some(),
            "whole numbers from 0 to 100",
        ),
    };
    let is_whole = match what {
        Varied::Length => numbers.iter().all(|number| is_sectors(number, LENGTH_MAX)),
        Varied::HitArea => numbers.iter().all(|number| is_sectors(number, 1 << 50)),
        _ => true,
    };
    if !is_whole || !numbers.iter().all(is_good) {
        return Err(known.wrong(expected));
    }
    Ok(numbers
        .iter()
        .map(|number| {
            if number.is_percent {
                -number.value
            } else {
                number.value
            }
        })
        .collect())
}

pub(super) fn arrivals(known: &Known<'_>) -> Result<Arrivals, JobFileError> {
    let expected = "exponential, uniform or deterministic, or the beginning of one; variable and spike change the rate \
                    while it is measured";
    let word = known.word().map_err(|_| known.wrong(expected))?;
    let all = [
        ("exponential", Arrivals::Exponential),
        ("uniform", Arrivals::Uniform),
        ("deterministic", Arrivals::Even),
    ];
    let found = all.iter().find(|(name, _)| name.starts_with(word));
    found
        .map(|(_, arrivals)| *arrivals)
        .ok_or_else(|| known.wrong(expected))
}
