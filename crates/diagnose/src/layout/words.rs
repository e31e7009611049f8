//! How rules say places and sizes.

use plumb_geometry::Bytes;
use plumb_stack::NodeId;
use plumb_stack::grid::Source;

use super::context::Context;
use crate::finding::{Confidence, Evidence};

/// `17 KiB (34 sectors)`: bytes and, where they are whole, sectors.
pub fn place(bytes: Bytes) -> String {
    match bytes.to_sectors_exact() {
        Some(sectors) if bytes.0 > 0 => format!("{bytes} ({sectors})"),
        _ => bytes.to_string(),
    }
}

/// `1 of 4`, or `none`, `all`.
pub fn share(share: plumb_geometry::Share) -> String {
    match (share.numerator, share.denominator) {
        (0, _) => "none".to_owned(),
        (part, whole) if part == whole => "all".to_owned(),
        (part, whole) => format!(
            "{part} of {whole} ({})",
            crate::rules::percent(share.value())
        ),
    }
}

/// The sum of a position and a shift; `None` when it is no position.
pub fn shifted(position: Bytes, shift: i128) -> Option<Bytes> {
    u64::try_from(i128::from(position.0) + shift)
        .ok()
        .map(Bytes)
}

/// Whether one size is a whole multiple of another, which is not 0.
pub fn is_multiple(of: Bytes, unit: Bytes) -> bool {
    unit.0 > 0 && of.0.is_multiple_of(unit.0)
}

/// Evidence in bytes.
pub fn bytes(name: &'static str, value: Bytes, source: impl ToString) -> Evidence {
    number(name, value.0, "bytes", source)
}

/// Evidence that is a whole number.
pub fn number(
    name: &'static str,
    value: u64,
    unit: &'static str,
    source: impl ToString,
) -> Evidence {
    Evidence {
        name,
        value: value as f64,
        unit,
        source: source.to_string(),
    }
}

/// Evidence that is none.
pub fn real(name: &'static str, value: f64, unit: &'static str, source: impl ToString) -> Evidence {
    Evidence {
        name,
        value,
        unit,
        source: source.to_string(),
    }
}

/// How far a conclusion from a statement can be trusted.
pub fn confidence_in(source: &Source) -> Confidence {
    match source {
        Source::Assumed => Confidence::Low,
        // A table speaks of a model; this device may be set up otherwise.
        Source::Catalogue { .. } => Confidence::Medium,
        _ => Confidence::High,
    }
}

/// The lesser of two.
pub fn lesser(a: Confidence, b: Confidence) -> Confidence {
    let rank = |confidence| match confidence {
        Confidence::Low => 0,
        Confidence::Medium => 1,
        Confidence::High => 2,
    };
    if rank(a) <= rank(b) { a } else { b }
}

/// `a`, `a and b`, `a, b and 3 more`.
pub fn list(words: &[String]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first, last] => format!("{first} and {last}"),
        [first, second, rest @ ..] if rest.len() == 1 => {
            format!("{first}, {second} and {}", rest[0])
        }
        [first, second, rest @ ..] => format!("{first}, {second} and {} more", rest.len()),
    }
}

/// The largest unit that the user gave of a device; where 4 KiB are assumed all the same it was a sector.
pub fn given(context: &Context<'_>, id: NodeId) -> Option<Bytes> {
    let grids = context.stack.grids(id);
    grids
        .iter()
        .filter(|fact| fact.source == Source::User)
        .map(|fact| fact.granularity())
        .max()
}

/// A rate with its thousands apart and no more digits than it has: `402`, `1,206`, `65.5`.
pub fn rate(rate: f64) -> String {
    let tenths = (rate * 10.0).round() as u64;
    let whole = plumb_geometry::group_digits(tenths / 10);
    match tenths % 10 {
        0 => whole,
        tenth => format!("{whole}.{tenth}"),
    }
}
