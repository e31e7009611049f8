//! `misfit-rose` in words.

use plumb_geometry::Bounds;
use plumb_model::Target;
use plumb_model::facts::MisfitRose;

use super::{Sentences, change_time, target};
use crate::format::percent;

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &MisfitRose) -> Sentences {
    Sentences::new(format!(
        "Since {} {} of the I/O on {} start off 4 KiB, on the mean {}; before it was {}.",
        change_time::since(&facts.time),
        percent(facts.share_after),
        target::name(on),
        change_time::window(&facts.time),
        percent(facts.share_before)
    ))
    .and(format!(
        "The rise is {} (99 % interval over {}).",
        points(facts.rise),
        change_time::windows(&facts.time)
    ))
    .and(change_time::beside(&facts.time))
}

/// A difference of shares: `40 to 52 points`.
pub(super) fn points(change: Bounds<f64>) -> String {
    let points = change.map(|share| format!("{:.0}", share * 100.0));
    match points.low == points.high {
        true => format!("{} points", points.low),
        false => format!("{} to {} points", points.low, points.high),
    }
}
