//! Reasons against a verdict beside the reads themselves: caches, throttles and other users of the target.
//!
//! Within a round all reads are disturbed alike, so none of this makes a grid. But a grid that is seen at the speed of
//! a cache is that of the cache, and if something else takes the time of a read, a penalty does not show.

use plumb_sys::server;

use super::drift::PaceChange;
use super::{ProbeVerdict, Probed, Reason};
use crate::target::Target;

/// A change of pace by this factor is none of the device that the verdict is on.
const PACE: f64 = 1.5;
/// Reads come from the server's memory if they take at most half as long again as any answer of the server, plus this
/// number of ns for another process and the transfer. nbdfuse before nbdkit answers in 14 µs, and reads from its cache
/// in 31 µs.
const HANDED_ON_NS: u64 = 60_000;
/// How often a server is asked.
const ASKED: usize = 31;
/// First reads that are as fast as repetitions: with half of them the median is one.
const FAST_SHARE: f64 = 0.5;
/// Of a penalty others hide at most their share of the I/O: of one as large as the margin a fifth more is left out.
const OTHERS_SHARE: f64 = 0.2;

/// Facts beside the reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// Median ns of a read alone, of places that were looked at first.
    pub first_ns: Option<u64>,
    /// ns that the server of the file takes to answer, where it has one.
    pub answer_ns: Option<u64>,
    /// Share of the device's I/O that others made, where it is counted.
    pub others_share: Option<f64>,
}

/// A reason against a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Against {
    /// Reads are about as fast as the server answers without reading.
    ServerSpeed {
        /// Of a read.
        first_ns: u64,
        /// Of an answer.
        answer_ns: u64,
    },
    /// First reads are as fast as repetitions that come from a cache.
    Held {
        /// Share of them.
        share: f64,
        /// Of a repetition.
        again_ns: u64,
    },
    /// Reads became faster in the middle, and in the end repetitions are no faster.
    Faster(PaceChange),
    /// Reads became slower in the middle.
    Slower(PaceChange),
    /// Others used the device as well.
    Others {
        /// Their share of the I/O.
        share: f64,
    },
}

/// Median ns that the server of a file takes to answer; `None` where it has none.
#[must_use]
pub fn answer_ns(target: &Target) -> Option<u64> {
    let answers: Option<Vec<_>> = (0..ASKED)
        .map(|_| server::answer_time(target.io()))
        .collect();
    let mut answers = answers?;
    answers.sort_unstable();
    Some(answers[ASKED / 2].as_nanos() as u64)
}

/// The reason against a probe's result, the weightiest first; `None` if there is no reason. If the time limit came
/// first, only caches are reported.
#[must_use]
pub fn against(probed: &Probed, beside: Beside) -> Option<Against> {
    if matches!(
        probed.verdict,
        ProbeVerdict::Inconclusive(Reason::NoRoom | Reason::Cache)
    ) {
        return None;
    }
    let change = probed.course.change();
    let (faster, slower) = (
        change.filter(|it| it.factor() < 1.0 / PACE),
        change.filter(|it| it.factor() > PACE),
    );
    // A measured penalty was charged, independent of other delays.
    let is_flat = probed.verdict == ProbeVerdict::NoPenalty;
    server_speed(probed, beside)
        .or_else(|| held(probed))
        .or_else(|| {
            let is_filled = probed.cache.is_some_and(|cache| cache.held.is_none());
            faster.filter(|_| is_filled).map(Against::Faster)
        })
        .or_else(|| slower.filter(|_| is_flat).map(Against::Slower))
        .or_else(|| {
            let share = beside
                .others_share
                .filter(|share| is_flat && *share > OTHERS_SHARE)?;
            Some(Against::Others { share })
        })
}

fn server_speed(probed: &Probed, beside: Beside) -> Option<Against> {
    let (first_ns, answer_ns) = beside.first_ns.zip(beside.answer_ns)?;
    let most_ns = answer_ns
        .saturating_add(answer_ns / 2)
        .saturating_add(HANDED_ON_NS);
    // A throttle lets some through at the speed of memory before.
    let stays = probed
        .settled_ns
        .is_none_or(|settled_ns| settled_ns <= most_ns as f64);
    (first_ns <= most_ns && stays).then_some(Against::ServerSpeed {
        first_ns,
        answer_ns,
    })
}

fn held(probed: &Probed) -> Option<Against> {
    let cache = probed.cache.filter(|cache| cache.fast_share > FAST_SHARE)?;
    Some(Against::Held {
        share: cache.fast_share,
        again_ns: cache.again_ns,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Candidate;
    use super::super::cache::{Cache, Reach};
    use super::super::drift::PaceCourse;
    use super::*;

    fn probed(verdict: ProbeVerdict, factor: f64, cache: Option<Cache>) -> Probed {
        let mut course = PaceCourse::default();
        for at in 0..20 {
            let ns = if at < 8 { 1e6 } else { 1e6 * factor };
            course.push(
                Duration::from_millis(100 * at),
                Duration::from_millis(4),
                ns,
            );
        }
        let grid = Candidate {
            granularity_bytes: 4096,
            offset_bytes: 0,
        };
        Probed {
            grid: (verdict == ProbeVerdict::Aligned).then_some(grid),
            verdict,
            penalty: None,
            penalty_len_bytes: 4096,
            crossing: None,
            coarser_within: None,
            searched: Vec::new(),
            bars: Vec::new(),
            reads: 2_000,
            bytes: 4 << 20,
            spent: Duration::from_secs(2),
            settled_ns: Some(1e6),
            course,
            cache,
            space_bytes: 1 << 30,
        }
    }

    fn cache(is_held: bool, fast_share: f64) -> Option<Cache> {
        let reach = Reach {
            reads: 64,
            bytes: 64 << 12,
        };
        Some(Cache {
            first_ns: 1_000_000,
            again_ns: 60_000,
            held: is_held.then_some(reach),
            lost: (!is_held).then_some(reach),
            fast_share,
        })
    }

    #[test]
    fn hidden_penalties_forbid_the_verdict_of_no_penalty() {
        use ProbeVerdict::{Aligned, Inconclusive, NoPenalty};
        let change = |factor| probed(NoPenalty, factor, None).course.change();
        let others = |share| Beside {
            others_share: Some(share),
            ..Beside::default()
        };
        let server = |first_ns, answer_ns| Beside {
            first_ns: Some(first_ns),
            answer_ns: Some(answer_ns),
            ..Beside::default()
        };
        let slower = change(3.0).map(Against::Slower);
        let faster = change(0.2).map(Against::Faster);
        assert!(slower.is_some() && faster.is_some());
        let none = Beside::default();
        let timed_out = Inconclusive(Reason::Time);
        let (held, filled) = (
            Against::Held {
                share: 0.9,
                again_ns: 60_000,
            },
            cache(false, 0.0),
        );
        let served = Against::ServerSpeed {
            first_ns: 1_050_000,
            answer_ns: 700_000,
        };
        let over = Inconclusive(Reason::NoRoom);
        for (verdict, factor, cache, beside, expected) in [
            (NoPenalty, 1.0, filled, none, None),
            (NoPenalty, 1.3, filled, none, None),
            (NoPenalty, 3.0, filled, none, slower),
            (Aligned, 3.0, filled, none, None),
            (timed_out.clone(), 3.0, filled, none, None),
            (NoPenalty, 0.2, filled, none, faster),
            (Aligned, 0.2, filled, none, faster),
            // Repetitions are faster still: first reads do reach the medium.
            (Aligned, 0.2, cache(true, 0.1), none, None),
            // The user says how large it is.
            (NoPenalty, 0.2, None, none, None),
            (Aligned, 1.0, cache(true, 0.9), none, Some(held)),
            (NoPenalty, 1.0, cache(true, 0.4), none, None),
            (NoPenalty, 1.0, filled, others(0.1), None),
            (
                NoPenalty,
                1.0,
                filled,
                others(0.3),
                Some(Against::Others { share: 0.3 }),
            ),
            (Aligned, 1.0, filled, others(0.9), None),
            (timed_out.clone(), 0.2, filled, none, faster),
            (timed_out, 1.0, filled, others(0.9), None),
            (over, 0.2, filled, none, None),
            (
                Aligned,
                1.0,
                filled,
                server(1_050_000, 700_000),
                Some(served),
            ),
            (Aligned, 1.0, filled, server(1_050_000, 600_000), None),
            // Some pass at once; later ones do not.
            (Aligned, 1.0, filled, server(100_000, 30_000), None),
        ] {
            let shown = format!("{verdict:?} {factor} {cache:?} {beside:?}");
            assert_eq!(
                against(&probed(verdict, factor, cache), beside),
                expected,
                "{shown}"
            );
        }
    }
}
