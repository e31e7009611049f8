//! The verdict on a benchmark: the sweep's answer, or the rate that was measured.

use plumb_geometry::plural;
use plumb_load::result::bench::{Bench, BenchRun};
use plumb_model::result::verdict::{Verdict, Word};

use crate::bench::sweep;
use crate::format::{bytes, count, digits, ns};
use crate::verdict::Outcome;

/// The verdict on all runs.
#[must_use]
pub fn verdict(bench: &Bench, outcome: Outcome) -> Verdict {
    let word = match outcome {
        Outcome::Clean => Word::Ok,
        Outcome::Findings => Word::Misfit,
        Outcome::Unknown(_) => Word::Inconclusive,
    };
    let failed = bench.runs.iter().flat_map(|run| &run.total.failures);
    let failed: u64 = failed.map(|failures| failures.ios).sum();
    let failed = match failed {
        0 => String::new(),
        ios => format!("{} I/O failed; ", count(ios)),
    };
    let answer = match (&bench.sweep, &bench.runs[..]) {
        (Some(found), _) => {
            let answer = sweep::sentences(found).into_iter().next();
            let answer = answer.unwrap_or_default();
            let answer = answer.trim_start_matches("verdict: ");
            answer.trim_start_matches("inconclusive: ").to_owned()
        }
        (None, [run]) => rates(run),
        (None, runs) => {
            let ios: u64 = runs.iter().map(|run| run.total.ios).sum();
            format!("{} I/O in {}", count(ios), plural(runs.len() as u64, "run"))
        }
    };
    Verdict::measured(word, format!("{failed}{}.", answer.trim_end_matches('.')))
}

/// `48,210 I/O in 30.0 s: 1,607/s, 6.28 MiB/s, 99 % within 1.20 ms`.
fn rates(run: &BenchRun) -> String {
    let total = &run.total;
    let slow = total.all.waited();
    let slow = slow.map_or_else(String::new, |times| {
        format!(", 99 % within {}", ns(times.p99_ns.unsigned_abs()))
    });
    format!(
        "{} I/O in {:.1} s: {}/s, {}/s{slow}",
        count(total.ios),
        run.seconds,
        digits(total.ios_per_second),
        bytes(total.bytes_per_second as u64)
    )
}
