//! Whether the processor was the limit of a benchmark: then the rates are those of the machine, and the target may be
//! faster.

use plumb_geometry::plural;
use plumb_load::result::bench::{Bench, BenchRun};

use crate::format::count;

/// Threads that run, or wait for a processor, for this share of the time hardly ever wait for the target. Processors are
/// never busy for all of the time: each start of a thread leaves a gap.
const LIMIT_SHARE_MIN: f64 = 0.9;

/// The part of the machine that had no time left, with its share.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ProcessorLimit {
    /// The threads of a target.
    Senders(f64),
    /// All processors of the host.
    Host(f64),
}

fn limit(run: &BenchRun) -> Option<ProcessorLimit> {
    // I/O that fail at once take no time but that of the processor.
    let whole = run.targets.iter().filter(|target| target.is_whole);
    let shares = whole.filter_map(|target| target.processor_share);
    let senders = shares
        .max_by(f64::total_cmp)
        .filter(|share| *share >= LIMIT_SHARE_MIN);
    let host = run.cpu.map(|cpu| cpu.busy_share);
    let host = host.filter(|share| *share >= LIMIT_SHARE_MIN);
    senders
        .map(ProcessorLimit::Senders)
        .or(host.map(ProcessorLimit::Host))
}

/// The note on the processor; `None` if it was no limit of any run.
#[must_use]
pub fn sentence(bench: &Bench) -> Option<String> {
    let limits: Vec<ProcessorLimit> = bench.runs.iter().filter_map(limit).collect();
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    match (&bench.runs[..], &limits[..]) {
        (_, []) => None,
        ([_], [ProcessorLimit::Senders(share)]) => Some(format!(
            "the processor was the limit: the threads that sent I/O ran on one, or waited for one, for {} of the time. \
             The target may be faster.",
            percent(*share)
        )),
        ([_], [ProcessorLimit::Host(share), ..]) => Some(format!(
            "all processors of this machine were busy for {} of the time, with this load or with other programs. The target \
             may be faster.",
            percent(*share)
        )),
        (runs, limits) => Some(format!(
            "in {} of {} the threads that sent I/O, or all processors of this machine, had no time left. The target may be \
             faster.",
            count(limits.len() as u64),
            plural(runs.len() as u64, "run")
        )),
    }
}

#[cfg(test)]
mod tests {
    use plumb_load::figures::{CpuShares, DirectionFigures, Measurement};
    use plumb_load::result::bench::BenchTarget;

    use super::*;

    fn measurement() -> Measurement {
        let side = || DirectionFigures {
            ios: 0,
            bytes: 0,
            latency: None,
            response: None,
        };
        Measurement {
            ios: 0,
            bytes: 0,
            ios_per_second: 0.0,
            bytes_per_second: 0.0,
            in_flight_mean: 0.0,
            all: side(),
            reads: side(),
            writes: side(),
            failures: Vec::new(),
            not_issued: 0,
            never_back: 0,
        }
    }

    fn run(senders: &[Option<f64>], host: Option<f64>) -> BenchRun {
        let target = |share: &Option<f64>| BenchTarget {
            target: "disk".to_owned(),
            size_bytes: 0,
            is_direct: true,
            engine: String::new(),
            ended: String::new(),
            is_whole: true,
            processor_share: *share,
            measured: measurement(),
        };
        BenchRun {
            name: None,
            workload: String::new(),
            warmup_seconds: 0.0,
            seconds: 1.0,
            intervals: Vec::new(),
            average: None,
            cpu: host.map(|busy_share| CpuShares {
                busy_share,
                system_share: 0.0,
            }),
            total: measurement(),
            targets: senders.iter().map(target).collect(),
        }
    }

    /// Fires, is silent, and has not enough data.
    #[test]
    fn limits_by_share() {
        use ProcessorLimit::{Host, Senders};
        for (senders, host, expected) in [
            (&[Some(0.93)][..], Some(0.6), Some(Senders(0.93))),
            (&[Some(0.2), None, Some(0.97)], None, Some(Senders(0.97))),
            (&[Some(0.4)], Some(0.99), Some(Host(0.99))),
            (&[Some(0.98)], Some(0.99), Some(Senders(0.98))),
            (&[Some(0.89)], Some(0.89), None),
            (&[None], None, None),
        ] {
            assert_eq!(limit(&run(senders, host)), expected, "{senders:?} {host:?}");
        }
    }

    #[test]
    fn one_sentence_for_all_runs() {
        let bench = |runs| Bench {
            runs,
            sweep: None,
            study: None,
            notes: Vec::new(),
        };
        let busy = || run(&[Some(0.97)], None);
        let idle = || run(&[Some(0.03)], Some(0.1));
        let one = sentence(&bench(vec![busy()])).expect("a limit");
        let some = sentence(&bench(vec![busy(), idle(), busy()])).expect("a limit");
        let host = sentence(&bench(vec![run(&[Some(0.02)], Some(0.99))])).expect("a limit");
        insta::assert_snapshot!([one, some, host].join("\n\n"));
        for runs in [vec![idle()], vec![idle(), idle()], vec![]] {
            assert_eq!(sentence(&bench(runs)), None);
        }
    }
}
