//! Results of Vdbench: the lines of intervals and averages of its console, `summary.html` and `logfile.html`, and `flatfile.html`.
//!
//! A run counts as a device, and an interval as a report. If a run has intervals, its average lines (`avg_2-5`) are
//! left out, and so is its first interval, which the averages leave out too; if it has averages alone, those are used.
//! Columns are found by their names; without a heading the first five are rate, MB/s, bytes an I/O, percentage of reads
//! and response time in every version. Flat files of file systems separate reads and writes and have other names. Rows
//! of formatting runs are kept like any other. Left out: individual targets and workloads, histograms, processors.

use super::{DeviceRow, OpRow, Printed, Report, Series, SeriesTool, Span};
use crate::error::{Damage, Place, shown};

/// `reqrate` of runs that go as fast as they can: Vdbench prints this for `iorate=max`.
const RATE_MAX: f64 = 9_999_000.0;

const MIB: f64 = (1 << 20) as f64;

/// Whether a line is one of its headings or averages.
pub fn sniff(text: &str) -> bool {
    text.lines().any(|line| {
        is_flat_heading(line) || console_heading(line).is_some() || average_line(line).is_some()
    })
}

/// A number that a run has in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunColumn {
    Rate,
    MibPerSecond,
    IoBytes,
    ReadPercent,
    Ms,
    ReadMs,
    WriteMs,
    InFlight,
    ReadRate,
    WriteRate,
    ReadMib,
    WriteMib,
    Requested,
    Run,
    Interval,
    Tod,
    Other,
}

fn flat_column(word: &str) -> RunColumn {
    match word.to_ascii_lowercase().as_str() {
        "tod" => RunColumn::Tod,
        "run" => RunColumn::Run,
        "interval" => RunColumn::Interval,
        "reqrate" => RunColumn::Requested,
        "rate" => RunColumn::Rate,
        "mb/sec" => RunColumn::MibPerSecond,
        "bytes/io" => RunColumn::IoBytes,
        "read%" => RunColumn::ReadPercent,
        "resp" => RunColumn::Ms,
        "read_resp" => RunColumn::ReadMs,
        "write_resp" => RunColumn::WriteMs,
        "queue_depth" => RunColumn::InFlight,
        "read_rate" => RunColumn::ReadRate,
        "write_rate" => RunColumn::WriteRate,
        "mb_read" => RunColumn::ReadMib,
        "mb_write" => RunColumn::WriteMib,
        _ => RunColumn::Other,
    }
}

fn is_flat_heading(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    words.first() == Some(&"tod") && words.contains(&"Run") && words.contains(&"Interval")
}

/// The first line of a heading of the console: the words behind `interval`.
fn console_heading(line: &str) -> Option<Vec<&str>> {
    let (_, behind) = line.split_once(" interval ")?;
    let words: Vec<&str> = behind.split_whitespace().collect();
    (words.len() >= 5 && words[..2] == ["i/o", "MB/sec"]).then_some(words)
}

/// The columns of both lines of a heading, one word of each.
fn console_columns(above: &[&str], below: &[&str]) -> Option<Vec<RunColumn>> {
    if above.len() != below.len() || below.first() != Some(&"rate") {
        return None;
    }
    let column = |(above, below): (&&str, &&str)| match (*above, *below) {
        ("i/o", "rate") => RunColumn::Rate,
        ("MB/sec", _) => RunColumn::MibPerSecond,
        ("bytes", "i/o") => RunColumn::IoBytes,
        ("read", "pct") => RunColumn::ReadPercent,
        ("resp", "time") => RunColumn::Ms,
        ("read", "resp") => RunColumn::ReadMs,
        ("write", "resp") => RunColumn::WriteMs,
        ("queue", "depth") => RunColumn::InFlight,
        _ => RunColumn::Other,
    };
    Some(above.iter().zip(below).map(column).collect())
}

const WITHOUT_HEADING: [RunColumn; 5] = [
    RunColumn::Rate,
    RunColumn::MibPerSecond,
    RunColumn::IoBytes,
    RunColumn::ReadPercent,
    RunColumn::Ms,
];

/// The first interval of an average: 2 of `avg_2-5`.
fn average_from(word: &str) -> Option<u64> {
    let (from, to) = word.strip_prefix("avg_")?.split_once('-')?;
    to.parse::<u64>().ok()?;
    from.parse().ok()
}

/// The words before `avg_2-5` on an average line, its first interval, and the words behind it.
fn average_line(line: &str) -> Option<(Vec<&str>, u64, Vec<&str>)> {
    let words: Vec<&str> = line.split_whitespace().take(64).collect();
    let at = words.iter().position(|word| average_from(word).is_some())?;
    let (before, rest) = words.split_at(at);
    let from = average_from(rest[0])?;
    let numbers = &rest[1..];
    let are_numbers = numbers.len() >= WITHOUT_HEADING.len()
        && numbers[..WITHOUT_HEADING.len()]
            .iter()
            .all(|word| Printed::parse(word).is_some());
    are_numbers.then(|| (before.to_vec(), from, numbers.to_vec()))
}

/// `16:24:30.156`, with or without the thousandths.
fn is_clock(word: &str) -> bool {
    let clock = word.split('.').next().unwrap_or(word);
    let parts: Vec<&str> = clock.split(':').collect();
    parts.len() == 3
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether `Starting RD=` asks for a rate: `I/O rate: 100`, `fwdrate=100`; other runs have `Uncontrolled MAX` and `fwdrate=max`.
fn is_limited(starting: &str) -> bool {
    ["I/O rate: ", "fwdrate="].iter().any(|name| {
        let behind = starting.split_once(name).map(|(_, behind)| behind);
        behind.is_some_and(|rate| rate.starts_with(|letter: char| letter.is_ascii_digit()))
    })
}

/// The number of an interval, or its average.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stretch {
    Interval(u64),
    /// From this interval on.
    Average(u64),
}

fn stretch(word: &str) -> Option<Stretch> {
    match average_from(word) {
        Some(from) => Some(Stretch::Average(from)),
        None => word.parse().ok().map(Stretch::Interval),
    }
}

/// A run as it is read.
struct VdbenchRun {
    name: String,
    intervals: Vec<(u64, Report)>,
    averages: Vec<Report>,
    /// Number of the last interval.
    last: u64,
    /// Averages are of intervals from this one on.
    from: u64,
}

/// If no average shows it: Vdbench leaves the first interval out.
const FROM: u64 = 2;

struct VdbenchReader {
    series: Series,
    runs: Vec<VdbenchRun>,
    /// Of a flat file.
    flat: Option<Vec<RunColumn>>,
    /// Of the console, behind the interval.
    console: Option<Vec<RunColumn>>,
    above: Option<Vec<String>>,
    /// Named by the last `Starting RD=`.
    run: Option<String>,
    /// Whether that line asked for a rate.
    is_limited: bool,
}

/// Reads all runs.
pub fn read(text: &str) -> Series {
    let mut reader = VdbenchReader {
        series: Series::new(SeriesTool::Vdbench),
        runs: Vec::new(),
        flat: None,
        console: None,
        above: None,
        run: None,
        is_limited: false,
    };
    for (number, line) in (1..).zip(text.lines()) {
        if let Err((found, expected)) = reader.line(number, line) {
            reader.series.damage(Damage {
                place: Place::Line(number),
                found,
                expected,
            });
        }
    }
    reader.end()
}

type Damaged = (String, String);

impl VdbenchReader {
    fn line(&mut self, number: u64, line: &str) -> Result<(), Damaged> {
        if line.starts_with('*') || line.trim().is_empty() {
            return Ok(());
        }
        if is_flat_heading(line) {
            self.flat = Some(line.split_whitespace().map(flat_column).collect());
            return Ok(());
        }
        if let Some((_, run)) = line.split_once("Starting RD=") {
            let name = run.split([';', ' ', '<']).next().unwrap_or_default();
            self.run = Some(name.to_owned());
            self.is_limited = is_limited(run);
            return Ok(());
        }
        if let Some(above) = console_heading(line) {
            self.above = Some(above.into_iter().map(str::to_owned).collect());
            self.console = None;
            return Ok(());
        }
        if let Some(above) = self.above.take() {
            let above: Vec<&str> = above.iter().map(String::as_str).collect();
            let below: Vec<&str> = line.split_whitespace().collect();
            self.console = console_columns(&above, &below);
            return match self.console {
                Some(_) => Ok(()),
                None => Err((
                    shown(line.trim().as_bytes()),
                    format!(
                        "the second line of a heading, {} words from `rate` on",
                        above.len()
                    ),
                )),
            };
        }
        let words: Vec<&str> = line.split_whitespace().take(160).collect();
        if let Some(columns) = self.flat.clone() {
            return if words.first().is_some_and(|word| is_clock(word)) {
                self.flat_row(&columns, &words, number)
            } else {
                Ok(())
            };
        }
        self.console_row(&words, line, number)
    }

    fn flat_row(
        &mut self,
        columns: &[RunColumn],
        words: &[&str],
        number: u64,
    ) -> Result<(), Damaged> {
        if words.len() != columns.len() {
            let expected = format!("{} words, as in the heading", columns.len());
            return Err((format!("{} words", words.len()), expected));
        }
        let cells = columns.iter().copied().zip(words.iter().copied());
        let word = |wanted: RunColumn| {
            let mut cells = cells.clone().filter(|(column, _)| *column == wanted);
            cells.next().map_or("", |(_, word)| word)
        };
        let interval = word(RunColumn::Interval);
        let stretch = stretch(interval).ok_or_else(|| {
            (
                shown(interval.as_bytes()),
                "the number of an interval, or avg_FROM-TO".to_owned(),
            )
        })?;
        let row = row(cells.clone(), number)?;
        self.put(
            word(RunColumn::Run).to_owned(),
            stretch,
            word(RunColumn::Tod),
            row,
        );
        Ok(())
    }

    fn console_row(&mut self, words: &[&str], line: &str, number: u64) -> Result<(), Damaged> {
        let is_interval = self.console.is_some()
            && words.len() > WITHOUT_HEADING.len()
            && is_clock(words[0])
            && words[1].parse::<u64>().is_ok();
        let (before, stretch, numbers) = if is_interval {
            let number = words[1].parse().unwrap_or(0);
            (
                vec![words[0]],
                Stretch::Interval(number),
                words[2..].to_vec(),
            )
        } else if let Some((before, from, numbers)) = average_line(line) {
            (before, Stretch::Average(from), numbers)
        } else {
            return Ok(());
        };
        let columns = self
            .console
            .clone()
            .unwrap_or_else(|| WITHOUT_HEADING.to_vec());
        if numbers.len() < columns.len() {
            let expected = format!("{} numbers, as in the heading", columns.len());
            return Err((format!("{} numbers", numbers.len()), expected));
        }
        let mut row = row(columns.into_iter().zip(numbers), number)?;
        row.is_limited = self.is_limited;
        let labels: Vec<&str> = before
            .iter()
            .copied()
            .filter(|word| !is_clock(word))
            .collect();
        let name = match (&self.run, &labels[..]) {
            (_, [_, ..]) => labels.join(" "),
            (Some(run), []) => run.clone(),
            (None, []) => "run".to_owned(),
        };
        let at = before
            .iter()
            .copied()
            .find(|word| is_clock(word))
            .unwrap_or("");
        self.put(name, stretch, at, row);
        Ok(())
    }

    /// Adds a row to its run. A run of the same name is another one where its intervals begin again.
    fn put(&mut self, name: String, stretch: Stretch, at: &str, row: DeviceRow) {
        let is_again = |run: &VdbenchRun| match stretch {
            Stretch::Interval(number) => number <= run.last || !run.averages.is_empty(),
            Stretch::Average(_) => !run.averages.is_empty(),
        };
        let same = |run: &VdbenchRun| {
            run.name == name
                || run
                    .name
                    .strip_prefix(&name)
                    .is_some_and(|rest| rest.starts_with('#'))
        };
        let known = self.runs.iter().filter(|run| same(run)).count();
        let open = self
            .runs
            .iter()
            .rposition(|run| same(run) && !is_again(run));
        let at_run = open.unwrap_or_else(|| {
            let name = match known {
                0 => name.clone(),
                known => format!("{name}#{}", known + 1),
            };
            self.runs.push(VdbenchRun {
                name,
                intervals: Vec::new(),
                averages: Vec::new(),
                last: 0,
                from: FROM,
            });
            self.runs.len() - 1
        });
        let run = &mut self.runs[at_run];
        let report = Report {
            line: row.line,
            at: (!at.is_empty()).then(|| at.to_owned()),
            rows: vec![(run.name.clone(), row)],
            is_damaged: false,
        };
        match stretch {
            Stretch::Interval(number) => {
                run.last = number;
                run.intervals.push((number, report));
            }
            Stretch::Average(from) => {
                run.from = from;
                run.averages.push(report);
            }
        }
    }

    /// Each run has reports of its own: those of others say nothing of it.
    fn end(mut self) -> Series {
        for run in self.runs {
            let all = run.intervals.len() as u64;
            let from = run.from;
            let measured = run
                .intervals
                .into_iter()
                .filter(|(number, _)| *number >= from);
            let measured: Vec<Report> = measured.map(|(_, report)| report).collect();
            if measured.is_empty() {
                self.series.reports.extend(run.averages);
            } else {
                self.series.warm_up_left_out += all - measured.len() as u64;
                self.series.reports.extend(measured);
            }
        }
        self.series
    }
}

fn row<'a>(
    cells: impl Iterator<Item = (RunColumn, &'a str)>,
    line: u64,
) -> Result<DeviceRow, Damaged> {
    let mut numbers: Vec<(RunColumn, Printed)> = Vec::new();
    for (column, word) in cells {
        let is_number = !matches!(
            column,
            RunColumn::Other | RunColumn::Run | RunColumn::Interval | RunColumn::Tod
        );
        if is_number && word != "n/a" && word != "NaN" {
            let number = Printed::parse(word).ok_or_else(|| {
                (
                    shown(word.as_bytes()),
                    "a number of 0 or more, or n/a".to_owned(),
                )
            })?;
            numbers.push((column, number));
        }
    }
    let number = |wanted: RunColumn| {
        let mut found = numbers.iter().filter(|(column, _)| *column == wanted);
        found.next().map(|(_, number)| *number)
    };
    let rate = number(RunColumn::Rate).ok_or_else(|| {
        (
            "no rate".to_owned(),
            "a column with the I/O rate".to_owned(),
        )
    })?;
    let ms = number(RunColumn::Ms);
    let data = match (number(RunColumn::ReadRate), number(RunColumn::WriteRate)) {
        (Some(reads), Some(writes)) => {
            let op = |rate, mib: RunColumn, ms: RunColumn| OpRow {
                per_second: rate,
                bytes_per_second: number(mib).map(|mib| mib.value * MIB),
                ms: number(ms),
            };
            [
                op(reads, RunColumn::ReadMib, RunColumn::ReadMs),
                op(writes, RunColumn::WriteMib, RunColumn::WriteMs),
            ]
        }
        _ => {
            let share = number(RunColumn::ReadPercent)
                .map_or(1.0, |percent| (percent.value / 100.0).clamp(0.0, 1.0));
            let bytes = number(RunColumn::IoBytes)
                .map(|bytes| bytes.value * rate.value)
                .or_else(|| Some(number(RunColumn::MibPerSecond)?.value * MIB));
            let op = |share: f64, ms: Option<Printed>| OpRow {
                per_second: Printed {
                    value: rate.value * share,
                    half_step: rate.half_step * share,
                },
                bytes_per_second: bytes.map(|bytes| bytes * share),
                ms: ms.filter(|_| share > 0.0),
            };
            let alone = |wanted, share: f64| number(wanted).or(ms.filter(|_| share >= 1.0));
            [
                op(share, alone(RunColumn::ReadMs, share)),
                op(1.0 - share, alone(RunColumn::WriteMs, 1.0 - share)),
            ]
        }
    };
    let is_apart = data
        .iter()
        .all(|op| op.per_second.value <= 0.0 || op.ms.is_some());
    Ok(DeviceRow {
        line,
        data,
        ms: ms.filter(|_| !is_apart),
        span: Span::Device,
        in_flight: number(RunColumn::InFlight).filter(|depth| depth.value > 0.0),
        is_limited: number(RunColumn::Requested).is_some_and(|rate| rate.value < RATE_MAX),
        ..DeviceRow::default()
    })
}
