//! `stalled-io` in words.

use plumb_geometry::group_digits;
use plumb_model::Target;
use plumb_model::facts::{Stall, StalledIo};

use super::single_io::single_io;
use super::{Sentences, target};
use crate::format::ns;

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &StalledIo) -> Sentences {
    let device = target::name(on);
    match &facts.stall {
        Stall::Silent {
            in_flight,
            for_ns,
            oldest,
        } => Sentences::new(format!(
            "{device} does not answer: {} in flight, none completed for at least {}.",
            group_digits(*in_flight) + " I/O",
            ns(*for_ns)
        ))
        .and(
            oldest
                .as_ref()
                .map(|oldest| format!("The oldest that was seen: {}.", single_io(oldest))),
        )
        .say(UNINTERRUPTIBLE)
        .say(WHERE_TO_LOOK),
        Stall::LeftBehind { in_flight, oldest } => Sentences::new(format!(
            "{device} leaves I/O unanswered: {} in flight, the oldest for {}.",
            group_digits(*in_flight) + " I/O",
            ns(oldest.ns)
        ))
        .say(&format!(
            "The oldest: {}. Other I/O complete meanwhile.",
            single_io(oldest)
        ))
        .say(UNINTERRUPTIBLE)
        .say(WHERE_TO_LOOK),
        Stall::WasSilent { for_ns, slowest } => Sentences::new(format!(
            "{device} stalled: no I/O completed for at least {} while some were in flight. It has gone on since.",
            ns(*for_ns)
        ))
        .and(
            slowest
                .as_ref()
                .map(|slowest| format!("The slowest: {}.", single_io(slowest))),
        )
        .say(WHERE_TO_LOOK),
        Stall::Slow {
            ios,
            limit_ns,
            longest_ns,
            median_ns,
            slowest,
        } => Sentences::new(format!(
            "{device} stalled: {} took {} or longer, the longest at least {}; half of all took at most {}.",
            group_digits(*ios) + " I/O",
            ns(*limit_ns),
            ns(*longest_ns),
            ns(*median_ns)
        ))
        .and(
            slowest
                .as_ref()
                .map(|slowest| format!("The slowest: {}.", single_io(slowest))),
        )
        .say(WHERE_TO_LOOK),
    }
}

const UNINTERRUPTIBLE: &str = "Programs that wait for these I/O hang (state D) and cannot be killed before the device \
                               answers or the kernel gives up.";
const WHERE_TO_LOOK: &str = "The kernel log may name the reason: `dmesg | grep -iE 'timeout|reset|blocked for more'`. Check \
                             the path, the array or the server behind the device.";
