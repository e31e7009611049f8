//! Observations beside the reads: caches, the pace, other users of the device. For display, and in words if they
//! contradict a verdict.

use plumb_load::probe::Probed;
use plumb_load::probe::beside::Against;
use plumb_load::probe::cache::Reach;
use plumb_load::probe::counters::Others;
use plumb_load::probe::drift::PaceChange;
use plumb_report::format;
use plumb_report::probe as report;

/// The beginning of a reason where a cache answered instead of media.
const CACHE_SPEED: &str = "not backed by media: cache speed";

/// The facts about a cache, found or stated.
pub fn cache(probed: Option<&Probed>, stated_bytes: Option<u64>) -> Option<report::Cache> {
    let found = probed
        .and_then(|probed| probed.cache)
        .map(|found| report::FoundCache {
            first_ns: found.first_ns,
            again_ns: found.again_ns,
            held: found.held.map(reach),
            lost: found.lost.map(reach),
            fast_share: found.fast_share,
        });
    (found.is_some() || stated_bytes.is_some()).then_some(report::Cache {
        stated_bytes,
        found,
    })
}

fn reach(reach: Reach) -> report::Reach {
    report::Reach {
        reads: reach.reads,
        bytes: reach.bytes,
    }
}

/// The pace, look by look.
pub fn pace(probed: Option<&Probed>) -> Vec<report::ProbePace> {
    let paces = probed.map_or(&[][..], |probed| probed.course.paces());
    paces
        .iter()
        .map(|pace| report::ProbePace {
            at_seconds: pace.at.as_secs_f64(),
            ns: pace.ns,
        })
        .collect()
}

/// The moment from which on it was another.
pub fn drift(probed: Option<&Probed>) -> Option<report::Drift> {
    let change = probed.and_then(|probed| probed.course.change())?;
    let PaceChange {
        at,
        before_ns,
        after_ns,
    } = change;
    Some(report::Drift {
        at_seconds: at.as_secs_f64(),
        before_ns,
        after_ns,
        factor: change.factor(),
    })
}

/// The I/O of others.
pub fn others(others: Others) -> report::Others {
    let Others {
        reads,
        read_bytes,
        writes,
        written_bytes,
        share,
    } = others;
    report::Others {
        reads,
        read_bytes,
        writes,
        written_bytes,
        share,
    }
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
