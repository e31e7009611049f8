//! Observations beside the reads: caches, the pace, other users of the device. In words if they contradict a verdict.

use plumb_load::probe::Probed;
use plumb_load::probe::beside::Against;
use plumb_load::probe::drift::PaceChange;
use plumb_load::result::probe::Cache;
use plumb_report::format;

/// The beginning of a reason where a cache answered instead of media.
const CACHE_SPEED: &str = "not backed by media: cache speed";

/// The facts about a cache, found or stated.
pub fn cache(probed: Option<&Probed>, stated_bytes: Option<u64>) -> Option<Cache> {
    let found = probed.and_then(|probed| probed.cache);
    (found.is_some() || stated_bytes.is_some()).then_some(Cache {
        stated_bytes,
        found,
    })
}

/// Why a verdict is not believed.
pub fn doubt_text(against: Against) -> String {
    let ns = |ns: f64| format::ns(ns as u64);
    match against {
        Against::ServerSpeed {
            first_ns,
            answer_ns,
        } => format!(
            "{CACHE_SPEED}: a read takes {}, and its server answers in {} without reading",
            format::ns(first_ns),
            format::ns(answer_ns)
        ),
        Against::Held { share, again_ns } => format!(
            "{CACHE_SPEED}: {} of first reads are as fast as repetitions, which take {}; it is smaller than its cache, or \
             was read before",
            format::percent(share),
            format::ns(again_ns)
        ),
        Against::Faster(PaceChange {
            at,
            before_ns,
            after_ns,
        }) => format!(
            "{CACHE_SPEED}: from {:.1} s on a read took {} instead of {}, and repetitions are no faster: it is smaller than \
             its cache, which has filled, or another load ended",
            at.as_secs_f64(),
            ns(after_ns),
            ns(before_ns)
        ),
        Against::Slower(PaceChange {
            at,
            before_ns,
            after_ns,
        }) => format!(
            "throttled: from {:.1} s on a read took {} instead of {}, and a throttle may hide a penalty",
            at.as_secs_f64(),
            ns(after_ns),
            ns(before_ns)
        ),
        Against::Others { share } => format!(
            "others made {} of the device's I/O, which may hide a penalty: probe while it is idle",
            format::percent(share)
        ),
    }
}
