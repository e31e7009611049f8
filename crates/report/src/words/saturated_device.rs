//! `saturated-device` in words.

use plumb_model::Target;
use plumb_model::facts::SaturatedDevice;

use super::{Sentences, target};
use crate::format::{bytes, digits, ns, percent, rate};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &SaturatedDevice) -> Sentences {
    let device = target::name(on);
    Sentences::new(format!(
        "{device} is saturated: busy {} of the time, {} I/O in flight, {} for an I/O on average.",
        percent(facts.busy_share),
        digits(facts.depth_mean),
        ns(facts.mean_ns as u64)
    ))
    .say(&format!(
        "It completed {} ({} a second), one every {}. The rest of the time of an I/O is waiting for others.",
        rate(facts.ios_per_second),
        bytes(facts.bytes_per_second as u64),
        ns(facts.served_ns as u64)
    ))
    .say(
        "More I/O at once make each wait longer and complete no sooner. Find the processes that send the most, send fewer or \
         larger I/O, cache more, or use a faster device.",
    )
}
