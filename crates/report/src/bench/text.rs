//! A benchmark as text: a line an interval with the columns of Vdbench, and a summary.

use plumb_load::figures::{
    AverageFigures, Brief, DirectionFigures, IntervalFigures, Measurement, Times,
};
use plumb_load::result::bench::{Bench, BenchRun, BenchTarget};
use plumb_quoting::visible;

use crate::bench::{processor, study, sweep, verdict};
use crate::brief;
use crate::format::{bytes, count, ns, rate};
use crate::text::{FigureColumn, Page, Paper};
use crate::verdict::Outcome;

/// The columns of the lines of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalColumns {
    /// All those of Vdbench.
    All,
    /// Those that a terminal of 80 columns has room for: lengths are left out, and times of reads and writes apart, which the
    /// summary tells.
    Fewer,
    /// Those that a terminal of 60 columns has room for.
    Fewest,
}

impl IntervalColumns {
    /// As many as there is room for; all where it is no terminal.
    #[must_use]
    pub fn within(width: Option<usize>) -> IntervalColumns {
        let all = [IntervalColumns::All, IntervalColumns::Fewer];
        let fits = |columns: &IntervalColumns| width.is_none_or(|width| width >= columns.width());
        all.into_iter()
            .find(fits)
            .unwrap_or(IntervalColumns::Fewest)
    }

    fn width(self) -> usize {
        let widths = self.places().iter().map(|at| WIDTHS[*at]);
        widths.sum::<usize>() + self.places().len() - 1
    }

    const fn places(self) -> &'static [usize] {
        match self {
            IntervalColumns::All => &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
            IntervalColumns::Fewer => &[0, 1, 2, 4, 5, 8, 9, 10, 11, 12],
            IntervalColumns::Fewest => &[0, 1, 2, 4, 5, 8, 10],
        }
    }
}

/// The head of the lines of intervals. MB are 1,048,576 bytes, times are milliseconds, as Vdbench has them.
#[must_use]
pub fn heading(columns: IntervalColumns) -> String {
    HEADING.map(|words| row(&words, columns) + "\n").concat()
}

const HEADING: [[&str; 13]; 2] = [
    [
        "interval", "i/o", "MB/sec", "bytes", "read", "resp", "read", "write", "resp", "resp",
        "queue", "cpu%", "cpu%",
    ],
    [
        "", "rate", "1024**2", "i/o", "pct", "time", "resp", "resp", "max", "stddev", "depth",
        "sys+u", "sys",
    ],
];

/// Width of each column.
const WIDTHS: [usize; 13] = [8, 9, 8, 7, 5, 7, 7, 7, 9, 7, 6, 5, 5];

fn row(words: &[impl AsRef<str>; 13], columns: IntervalColumns) -> String {
    let cell = |&at: &usize| format!("{:>width$}", words[at].as_ref(), width = WIDTHS[at]);
    columns
        .places()
        .iter()
        .map(cell)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The line of an interval.
#[must_use]
pub fn interval_line(interval: &IntervalFigures, columns: IntervalColumns) -> String {
    let name = if interval.is_partial {
        "rest".to_owned()
    } else if interval.is_warmup {
        format!("w{}", interval.number)
    } else {
        interval.number.to_string()
    };
    row(&cells(&name, interval), columns)
}

/// The line of an average: `avg_2-60`.
#[must_use]
pub fn average_line(average: &AverageFigures, columns: IntervalColumns) -> String {
    row(&cells(&average_name(average), &average.interval), columns)
}

fn average_name(average: &AverageFigures) -> String {
    format!("avg_{}-{}", average.first, average.interval.number)
}

/// The line before the intervals of a run of several.
#[must_use]
pub fn run_heading(number: usize, runs: usize, name: &str, columns: IntervalColumns) -> String {
    let gap = if number > 1 { "\n" } else { "" };
    let (number, runs, name) = (count(number as u64), count(runs as u64), visible(name));
    format!("{gap}run {number} of {runs}: {name}\n{}", heading(columns))
}

/// Columns as Vdbench has them.
fn cells(name: &str, interval: &IntervalFigures) -> [String; 13] {
    let seconds = interval.seconds.max(f64::MIN_POSITIVE);
    let ms = |ns: f64| format!("{:.3}", ns / 1e6);
    let mean = |time: Option<Brief>| time.map_or_else(|| "-".to_owned(), |time| ms(time.mean_ns));
    let max = interval
        .time
        .map_or_else(|| "-".to_owned(), |time| ms(time.max_ns as f64));
    let deviation = interval
        .time
        .map_or_else(|| "-".to_owned(), |time| ms(time.deviation_ns));
    let cpu = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0))
    };
    // The rest of a run is too short for a rate.
    let unless_partial = |words: &dyn Fn() -> String| {
        if interval.is_partial {
            "-".to_owned()
        } else {
            words()
        }
    };
    let bytes = interval.bytes.checked_div(interval.ios).unwrap_or(0);
    let read = interval
        .read_share
        .map_or_else(|| "-".to_owned(), |share| format!("{:.0}", share * 100.0));
    [
        name.to_owned(),
        unless_partial(&|| format!("{:.1}", interval.ios as f64 / seconds)),
        unless_partial(&|| {
            let bytes = interval.bytes as f64 / seconds;
            format!("{:.2}", bytes / f64::from(1 << 20))
        }),
        bytes.to_string(),
        read,
        mean(interval.time),
        mean(interval.read_time),
        mean(interval.write_time),
        max,
        deviation,
        unless_partial(&|| format!("{:.1}", interval.in_flight_mean)),
        cpu(interval.cpu.map(|cpu| cpu.busy_share)),
        cpu(interval.cpu.map(|cpu| cpu.system_share)),
    ]
}

/// The report behind the intervals. If their lines were held, it begins with the verdict and contains them.
#[must_use]
pub fn summary(bench: &Bench, outcome: Outcome, held: &str, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    let verdict = verdict(bench, outcome);
    if !held.is_empty() {
        brief::first_line(&mut page, &verdict);
        page.gap();
        held.lines().for_each(|line| page.line(line));
    }
    match &bench.runs[..] {
        // Lines of intervals were printed before.
        [run] => {
            page.line("");
            run_summary(&mut page, run);
        }
        // The table of a study has the rates of all of them.
        _ if bench.study.is_some() => {}
        runs => averages(&mut page, runs),
    }
    bench
        .sweep
        .iter()
        .for_each(|found| sweep::draw(&mut page, found));
    bench
        .study
        .iter()
        .for_each(|found| study::draw(&mut page, found));
    let limited = processor::sentence(bench);
    if !bench.notes.is_empty() || limited.is_some() {
        page.gap();
    }
    for note in bench.notes.iter().chain(&limited) {
        page.wrapped("  note: ", "    ", note);
    }
    page.gap();
    brief::first_line(&mut page, &verdict);
    page.text
}

/// Columns of the table of averages that come from an interval's, by their place there; those of Vdbench that set runs apart, so
/// that a line stays on a terminal.
const OF_AVERAGE: [usize; 7] = [0, 1, 2, 5, 8, 10, 11];

/// A longer name of a run has a line of its own.
const NAME_MAX: usize = 20;

/// The averages of several runs, one below the other.
fn averages(page: &mut Page, runs: &[BenchRun]) {
    let names: Vec<String> = runs
        .iter()
        .map(|run| visible(run.name.as_deref().unwrap_or_default()).into_owned())
        .collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .filter(|width| *width <= NAME_MAX)
        .max()
        .unwrap_or(0);
    page.line("");
    for words in HEADING {
        page.line(format!("{:width$}{}", "", of_average(&words)));
    }
    for (run, name) in runs.iter().zip(names) {
        let measured = run.average.as_ref().map_or_else(
            || " no interval counts".to_owned(),
            |average| of_average(&cells(&average_name(average), &average.interval)),
        );
        if name.chars().count() > width {
            page.line(name);
            page.line(format!("{:width$}{measured}", ""));
        } else {
            page.line(format!("{name:<width$}{measured}"));
        }
    }
}

fn of_average(words: &[impl AsRef<str>; 13]) -> String {
    let cell = |at: usize| {
        format!(
            " {:>width$}",
            words[at].as_ref(),
            width = WIDTHS[at] + usize::from(at == 0)
        )
    };
    OF_AVERAGE.map(cell).concat()
}

fn run_summary(page: &mut Page, run: &BenchRun) {
    if let Some(name) = &run.name {
        page.heading(name);
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

fn target_summary(page: &mut Page, target: &BenchTarget) {
    let BenchTarget { measured, .. } = target;
    let seconds = if measured.ios_per_second > 0.0 {
        measured.ios as f64 / measured.ios_per_second
    } else {
        0.0
    };
    page.wrapped(
        "",
        "  ",
        format!("{}: {}", target.target, rates(measured, seconds)),
    );
    times(page, measured);
    page.wrapped(
        "  ",
        "    ",
        format!("by {}; ended {}", target.engine, target.ended),
    );
    for failures in &measured.failures {
        let words = format!(
            "{} {}s failed: {}",
            count(failures.ios),
            failures.op,
            failures.kind
        );
        page.wrapped("  ", "    ", &words);
    }
    let missed = [
        (
            measured.not_issued,
            "I/O were due before the end, and not issued any more",
        ),
        (measured.never_back, "I/O never came back"),
    ];
    for (ios, words) in missed.into_iter().filter(|(ios, _)| *ios > 0) {
        page.wrapped("  ", "    ", format!("{} {words}", count(ios)));
    }
}

pub(crate) fn rates(measured: &Measurement, seconds: f64) -> String {
    format!(
        "{} I/O in {seconds:.1} s: {}, {}/s, {:.1} in flight",
        count(measured.ios),
        rate(measured.ios_per_second),
        bytes(measured.bytes_per_second as u64),
        measured.in_flight_mean
    )
}

pub(crate) fn times(page: &mut Page, measured: &Measurement) {
    let directions = [("reads", &measured.reads), ("writes", &measured.writes)];
    let made: Vec<(&str, &DirectionFigures)> = directions
        .into_iter()
        .filter(|(_, side)| side.ios > 0)
        .collect();
    if made.is_empty() {
        return;
    }
    let head = ["mean", "p50", "p90", "p99", "p99.9", "max"];
    page.row(&format!("  {:<25}", ""), &TIMES, &head.map(str::to_owned));
    for (name, side) in made {
        if let Some(response) = &side.response {
            times_line(page, &format!("{name}, due to complete"), response);
        }
        if let Some(latency) = &side.latency {
            times_line(page, &format!("{name}, issue to complete"), latency);
        }
    }
}

pub(crate) fn times_line(page: &mut Page, name: &str, times: &Times) {
    let shown = |value: i64| ns(value.unsigned_abs());
    let cells = [
        ns(times.mean_ns as u64),
        shown(times.p50_ns),
        shown(times.p90_ns),
        shown(times.p99_ns),
        shown(times.p999_ns),
        shown(times.max_ns),
    ];
    page.row(&format!("  {name:<25}"), &TIMES, &cells);
}

/// Columns of response times.
const TIMES: [FigureColumn; 6] = [
    FigureColumn { width: 8, rank: 0 },
    FigureColumn { width: 9, rank: 3 },
    FigureColumn { width: 9, rank: 4 },
    FigureColumn { width: 9, rank: 1 },
    FigureColumn { width: 9, rank: 5 },
    FigureColumn { width: 9, rank: 2 },
];

#[cfg(test)]
mod tests {
    use plumb_load::figures::CpuShares;

    use super::*;

    /// The sums by hand: 2,000 I/O of 8 KiB in 2 s are 1,000 a second and 7.8125 MiB/s.
    #[test]
    fn columns_are_those_of_vdbench() {
        let brief = |ios, mean_ns| Brief {
            ios,
            mean_ns,
            deviation_ns: 250_000.0,
            p50_ns: 1_400_000,
            p90_ns: 1_800_000,
            p99_ns: 2_100_000,
            max_ns: 12_345_678,
        };
        let interval = IntervalFigures {
            number: 3,
            at_seconds: 6.0,
            seconds: 2.0,
            is_warmup: true,
            is_partial: false,
            ios: 2_000,
            bytes: 2_000 * 8192,
            failed: 0,
            time: Some(brief(2_000, 1_500_000.0)),
            read_time: Some(brief(1_400, 1_000_000.0)),
            write_time: None,
            read_share: Some(0.7),
            in_flight_mean: 1.5,
            cpu: Some(CpuShares {
                busy_share: 0.125,
                system_share: 0.05,
            }),
        };
        for (columns, expected) in [
            (
                IntervalColumns::All,
                "w3 1000.0 7.81 8192 70 1.500 1.000 - 12.346 0.250 1.5 12.5 5.0",
            ),
            (
                IntervalColumns::Fewer,
                "w3 1000.0 7.81 70 1.500 12.346 0.250 1.5 12.5 5.0",
            ),
        ] {
            let line = interval_line(&interval, columns);
            assert_eq!(
                line.split_whitespace().collect::<Vec<_>>().join(" "),
                expected
            );
            // Each column ends where its heading does.
            let heads = heading(columns);
            assert!(
                heads.lines().all(|head| head.len() == line.len()),
                "{heads}{line}"
            );
            let heads = heads.lines().nth(1).expect("two lines");
            for (word, head) in [("1000.0", "rate"), ("12.346", "max"), ("12.5", "sys+u")] {
                let ends = (
                    line.find(word).map(|at| at + word.len()),
                    heads.find(head).map(|at| at + head.len()),
                );
                assert_eq!(ends.0, ends.1, "{heads}\n{line}");
            }
        }
    }

    /// 32 I/O that waited 5.4 ms each and ended in the last millisecond are no queue of 171.6.
    #[test]
    fn rest_of_a_run_has_no_rate() {
        let brief = Brief {
            ios: 32,
            mean_ns: 5_400_000.0,
            deviation_ns: 0.0,
            p50_ns: 5_400_000,
            p90_ns: 5_400_000,
            p99_ns: 5_400_000,
            max_ns: 5_400_000,
        };
        let rest = IntervalFigures {
            number: 4,
            at_seconds: 3.001,
            seconds: 0.001,
            is_warmup: false,
            is_partial: true,
            ios: 32,
            bytes: 32 * 4096,
            failed: 0,
            time: Some(brief),
            read_time: Some(brief),
            write_time: None,
            read_share: Some(1.0),
            in_flight_mean: 171.6,
            cpu: None,
        };
        let line = interval_line(&rest, IntervalColumns::All);
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "rest - - 4096 100 5.400 5.400 - 5.400 0.000 - - -"
        );
    }

    #[test]
    fn lines_have_room_on_a_terminal() {
        for (width, columns) in [
            (None, IntervalColumns::All),
            (Some(102), IntervalColumns::All),
            (Some(101), IntervalColumns::Fewer),
            (Some(80), IntervalColumns::Fewer),
        ] {
            assert_eq!(IntervalColumns::within(width), columns, "{width:?}");
            let widest = heading(columns).lines().map(str::len).max();
            assert!(widest <= width.or(widest), "{width:?}");
        }
    }
}
