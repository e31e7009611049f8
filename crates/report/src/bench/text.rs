//! A benchmark as text: a line an interval with the columns of Vdbench, and a summary.

use crate::bench::{Average, Bench, Brief, Interval, Measured, Run, Side, Target, Times};
use crate::bench::{study, sweep};
use crate::format::{bytes, count, ns, rate};
use crate::text::{Color, Page, tame};

/// What stands over the lines of intervals. MB are 1,048,576 bytes, times are milliseconds, as Vdbench has them.
#[must_use]
pub fn heading() -> &'static str {
    "interval       i/o   MB/sec   bytes  read    resp    read   write      resp    resp  queue  cpu%  cpu%\n\
     \x20             rate 1024**2     i/o   pct    time    resp    resp       max  stddev  depth sys+u   sys\n"
}

/// The line of an interval.
#[must_use]
pub fn interval_line(interval: &Interval) -> String {
    let name = if interval.is_warmup { format!("w{}", interval.number) } else { interval.number.to_string() };
    columns(&name, interval)
}

/// The line of an average: `avg_2-60`.
#[must_use]
pub fn average_line(average: &Average) -> String {
    columns(&format!("avg_{}-{}", average.first, average.interval.number), &average.interval)
}

/// What stands before the intervals of a run of several.
#[must_use]
pub fn run_heading(number: usize, runs: usize, name: &str) -> String {
    let gap = if number > 1 { "\n" } else { "" };
    format!("{gap}run {} of {}: {}\n{}", count(number as u64), count(runs as u64), tame(name), heading())
}

/// Columns as Vdbench has them.
fn columns(name: &str, interval: &Interval) -> String {
    let seconds = interval.seconds.max(f64::MIN_POSITIVE);
    let ms = |ns: f64| format!("{:.3}", ns / 1e6);
    let mean = |time: Option<Brief>| time.map_or_else(|| "-".to_owned(), |time| ms(time.mean_ns));
    let max = interval.time.map_or_else(|| "-".to_owned(), |time| ms(time.ns_max as f64));
    let deviation = interval.time.map_or_else(|| "-".to_owned(), |time| ms(time.deviation_ns));
    let cpu =
        |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0));
    let bytes = interval.bytes.checked_div(interval.ios).unwrap_or(0);
    let read = interval.read_share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}", share * 100.0));
    format!(
        "{name:>8} {:>9.1} {:>8.2} {bytes:>7} {read:>5} {:>7} {:>7} {:>7} {max:>9} {deviation:>7} {:>6.1} {:>5} {:>5}",
        interval.ios as f64 / seconds,
        interval.bytes as f64 / seconds / f64::from(1 << 20),
        mean(interval.time),
        mean(interval.read_time),
        mean(interval.write_time),
        interval.in_flight_mean,
        cpu(interval.cpu.map(|cpu| cpu.busy_share)),
        cpu(interval.cpu.map(|cpu| cpu.system_share)),
    )
}

/// The summary behind the intervals.
#[must_use]
pub fn summary(bench: &Bench, color: Color) -> String {
    let mut page = Page { text: String::new(), color };
    match &bench.runs[..] {
        [run] => {
            page.gap();
            run_summary(&mut page, run);
        }
        runs => averages(&mut page, runs),
    }
    bench.sweep.iter().for_each(|found| sweep::draw(&mut page, found));
    bench.study.iter().for_each(|found| study::draw(&mut page, found));
    if !bench.notes.is_empty() {
        page.gap();
    }
    for note in &bench.notes {
        page.wrapped("  note: ", "    ", note);
    }
    page.text
}

/// The averages of several runs, one below the other.
fn averages(page: &mut Page, runs: &[Run]) {
    let width =
        runs.iter().filter_map(|run| run.name.as_ref()).map(|name| name.chars().count()).max().unwrap_or(0);
    // Lines of intervals were printed before.
    page.text.push('\n');
    for line in heading().lines() {
        page.line(format!("{:width$} {line}", ""));
    }
    for run in runs {
        let name = tame(run.name.as_deref().unwrap_or_default());
        let measured = run.average.as_ref().map_or_else(|| "no interval counts".to_owned(), average_line);
        page.line(format!("{name:<width$} {measured}"));
    }
}

fn run_summary(page: &mut Page, run: &Run) {
    if let Some(name) = &run.name {
        page.heading(&tame(name));
    }
    page.wrapped("", "  ", &run.workload);
    for target in &run.targets {
        page.gap();
        target_summary(page, target);
    }
    if run.targets.len() > 1 {
        page.gap();
        page.line(format!(
            "all {} targets: {}",
            count(run.targets.len() as u64),
            rates(&run.total, run.seconds)
        ));
        times(page, &run.total);
    }
}

fn target_summary(page: &mut Page, target: &Target) {
    let Target { measured, .. } = target;
    let seconds =
        if measured.ios_per_second > 0.0 { measured.ios as f64 / measured.ios_per_second } else { 0.0 };
    page.wrapped("", "  ", &format!("{}: {}", tame(&target.target), rates(measured, seconds)));
    times(page, measured);
    page.wrapped("  ", "    ", &format!("by {}; ended {}", target.engine, target.ended));
    for failures in &measured.failures {
        let words = format!("{} {}s failed: {}", count(failures.ios), failures.op, failures.kind);
        page.wrapped("  ", "    ", &words);
    }
    let missed = [
        (
            measured.not_issued,
            "I/O were due and found no free slot before the end: the target could not follow",
        ),
        (measured.never_back, "I/O never came back"),
    ];
    for (ios, words) in missed.into_iter().filter(|(ios, _)| *ios > 0) {
        page.wrapped("  ", "    ", &format!("{} {words}", count(ios)));
    }
}

fn rates(measured: &Measured, seconds: f64) -> String {
    format!(
        "{} I/O in {seconds:.1} s: {}, {}/s, {:.1} in flight",
        count(measured.ios),
        rate(measured.ios_per_second),
        bytes(measured.bytes_per_second as u64),
        measured.in_flight_mean
    )
}

fn times(page: &mut Page, measured: &Measured) {
    let directions = [("reads", &measured.reads), ("writes", &measured.writes)];
    let made: Vec<(&str, &Side)> = directions.into_iter().filter(|(_, side)| side.ios > 0).collect();
    if made.is_empty() {
        return;
    }
    page.line(format!(
        "  {:<22} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "mean", "p50", "p90", "p99", "p99.9", "max"
    ));
    for (name, side) in made {
        if let Some(response) = &side.response {
            times_line(page, &format!("{name}, due to complete"), response);
        }
        if let Some(latency) = &side.latency {
            times_line(page, &format!("{name}, in flight"), latency);
        }
    }
}

fn times_line(page: &mut Page, name: &str, times: &Times) {
    let shown = |value: i64| ns(value.unsigned_abs());
    page.line(format!(
        "  {name:<22} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        ns(times.mean_ns as u64),
        shown(times.ns_p50),
        shown(times.ns_p90),
        shown(times.ns_p99),
        shown(times.ns_p99_9),
        shown(times.ns_max),
    ));
}
