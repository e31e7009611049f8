//! Output of `fio --output-format=json`: one document for a run, or one for each interval with `--status-interval`.
//!
//! A job counts as a device; jobs of one name in a document run side by side and are added up. Documents of
//! `--status-interval` count from the beginning of the run: the difference of two consecutive ones is an interval. A
//! document that does not continue the one before it is a separate run, so that one file can contain several runs. The
//! latency is fio's `lat`, from submission to completion. Versions 2 (microseconds) and 3 (nanoseconds) are read. Left
//! out: trims, percentiles and the figures of disks.

use serde_json::{Deserializer, Value};

use super::{DeviceRow, OpRow, Printed, Report, Series, SeriesTool, Span};
use crate::error::{Damage, Place, shown};

/// How late a document may be printed, ms: fio prints it after it has summed the jobs up. A busy machine may take longer: see [`continues`].
const LATE_MS: f64 = 250.0;

/// Shorter intervals are remainders of the clock.
const INTERVAL_MS_MIN: f64 = 50.0;

/// Whether bytes begin like it. With `--status-interval` or unknown options lines of text precede the first document.
pub fn sniff(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let Some(at) = text.find('{') else {
        return false;
    };
    text[at + 1..].trim_start().starts_with("\"fio version\"")
}

/// Sums of one operation of a job, since its beginning.
#[derive(Clone, Copy, Debug, Default)]
struct OpSum {
    ios: f64,
    bytes: f64,
    timed: f64,
    ns: f64,
}

/// Sums of a job, since its beginning.
#[derive(Clone, Debug, Default)]
struct JobSum {
    name: String,
    ops: [OpSum; 2],
    runtime_ms: f64,
    /// When the document was printed.
    at_ms: f64,
    /// Steps of that time: old versions print seconds.
    step_ms: f64,
    /// Whether a rate was asked for.
    is_limited: bool,
}

/// Options that hold a job back.
const LIMITS: [&str; 4] = ["rate", "rate_iops", "thinktime", "rate_process"];

/// Reads all documents.
///
/// # Errors
/// When there is no document, or one is cut or no result of fio.
pub fn read(bytes: &[u8]) -> Result<Series, Damage> {
    let text = String::from_utf8_lossy(bytes);
    let mut series = Series::new(SeriesTool::Fio);
    let mut before: Vec<JobSum> = Vec::new();
    let (mut rest, mut line) = (&text[..], 1);
    // Between documents fio may say something.
    while let Some(at) = rest.find('{') {
        line += newlines(&rest[..at]);
        rest = &rest[at..];
        let mut documents = Deserializer::from_str(rest).into_iter::<Value>();
        let document = match documents.next() {
            Some(Ok(document)) => document,
            Some(Err(error)) => {
                return Err(Damage {
                    place: Place::Line(line + (error.line() as u64).saturating_sub(1)),
                    found: error.to_string(),
                    expected: "whole JSON documents of `fio --output-format=json`".to_owned(),
                });
            }
            None => break,
        };
        let end = documents.byte_offset();
        let jobs = sums(&document, line, &mut series)?;
        let report = Report {
            line,
            at: document["time"].as_str().map(str::to_owned),
            rows: rows(&jobs, &before, line),
            is_damaged: false,
        };
        if !report.rows.is_empty() {
            series.reports.push(report);
        }
        before = bases(jobs, before);
        line += newlines(&rest[..end]);
        rest = &rest[end..];
    }
    Ok(series)
}

fn newlines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// The jobs of a document; those of one name together.
fn sums(document: &Value, line: u64, series: &mut Series) -> Result<Vec<JobSum>, Damage> {
    let missing = |what: &str, found: &Value| Damage {
        place: Place::Line(line),
        found: shown(found.to_string().as_bytes()),
        expected: format!("a member {what}"),
    };
    let jobs = document["jobs"]
        .as_array()
        .ok_or_else(|| missing("jobs", document))?;
    let (at_ms, step_ms) = match document["timestamp_ms"].as_f64() {
        Some(at_ms) => (at_ms, 1.0),
        None => (document["timestamp"].as_f64().unwrap_or(0.0) * 1e3, 1e3),
    };
    let mut sums: Vec<JobSum> = Vec::new();
    for job in jobs {
        let name = job["jobname"]
            .as_str()
            .ok_or_else(|| missing("jobname", job))?;
        if let Some(error) = job["error"].as_i64().filter(|error| *error != 0) {
            series.damage(Damage {
                place: Place::Line(line),
                found: format!("job {name} ended with error {error}"),
                expected: "error 0".to_owned(),
            });
        }
        let mut ops = [OpSum::default(); 2];
        // The time of the job itself goes on while nothing is measured.
        let mut runtime_ms: f64 = 0.0;
        for (sum, op) in ops.iter_mut().zip(["read", "write"]) {
            let part = &job[op];
            *sum = op_sum(part).ok_or_else(|| missing(op, part))?;
            runtime_ms = runtime_ms.max(part["runtime"].as_f64().unwrap_or(0.0));
        }
        let options = [&document["global options"], &job["job options"]];
        let is_limited = options
            .iter()
            .any(|options| LIMITS.iter().any(|limit| options.get(*limit).is_some()));
        let known = sums.iter_mut().find(|sum| sum.name == name);
        match known {
            Some(known) => {
                for (sum, more) in known.ops.iter_mut().zip(ops) {
                    sum.ios += more.ios;
                    sum.bytes += more.bytes;
                    sum.timed += more.timed;
                    sum.ns += more.ns;
                }
                known.runtime_ms = known.runtime_ms.max(runtime_ms);
                known.is_limited |= is_limited;
            }
            None => sums.push(JobSum {
                name: name.to_owned(),
                ops,
                runtime_ms,
                at_ms,
                step_ms,
                is_limited,
            }),
        }
    }
    Ok(sums)
}

fn op_sum(part: &Value) -> Option<OpSum> {
    let number = |name: &str| part[name].as_f64().filter(|value| *value >= 0.0);
    // Version 2 printed KiB in `io_bytes`, and microseconds in `lat`.
    let is_old = part["lat_ns"].is_null();
    let (lat, ns) = if is_old {
        (&part["lat"], 1e3)
    } else {
        (&part["lat_ns"], 1.0)
    };
    let ios = number("total_ios")?;
    let bytes = match (number("io_bytes"), number("io_kbytes")) {
        (Some(bytes), Some(_)) => bytes,
        (Some(kib), None) => kib * 1024.0,
        _ => return None,
    };
    let timed = lat["N"].as_f64().unwrap_or(ios);
    let mean = lat["mean"].as_f64()?;
    Some(OpSum {
        ios,
        bytes,
        timed,
        ns: mean * ns * timed,
    })
}

fn rows(jobs: &[JobSum], before: &[JobSum], line: u64) -> Vec<(String, DeviceRow)> {
    let mut rows = Vec::new();
    for job in jobs {
        let earlier = before
            .iter()
            .find(|earlier| earlier.name == job.name && continues(job, earlier));
        let none = JobSum::default();
        let base = earlier.unwrap_or(&none);
        let ms = job.runtime_ms - base.runtime_ms;
        if ms < INTERVAL_MS_MIN || earlier.is_some_and(|earlier| is_idle(job, earlier)) {
            continue;
        }
        let seconds = ms / 1e3;
        let op = |at: usize| {
            let (now, then) = (&job.ops[at], &base.ops[at]);
            let timed = now.timed - then.timed;
            OpRow {
                per_second: exact((now.ios - then.ios) / seconds),
                bytes_per_second: Some((now.bytes - then.bytes) / seconds),
                ms: (timed > 0.0).then(|| exact(((now.ns - then.ns) / timed / 1e6).max(0.0))),
            }
        };
        rows.push((
            job.name.clone(),
            DeviceRow {
                line,
                data: [op(0), op(1)],
                span: Span::Device,
                seconds: Some(seconds),
                is_limited: job.is_limited,
                ..DeviceRow::default()
            },
        ));
    }
    rows
}

/// The sums that the next document is compared with. A document that made no interval moves no base: the time of a stall
/// belongs to the next interval with I/O, and the time after a job has ended, which fio goes on counting, to none.
fn bases(jobs: Vec<JobSum>, before: Vec<JobSum>) -> Vec<JobSum> {
    let base = |job: JobSum| {
        let kept = before.iter().find(|earlier| {
            earlier.name == job.name
                && continues(&job, earlier)
                && (is_idle(&job, earlier) || job.runtime_ms - earlier.runtime_ms < INTERVAL_MS_MIN)
        });
        kept.cloned().unwrap_or(job)
    };
    jobs.into_iter().map(base).collect()
}

fn is_idle(job: &JobSum, earlier: &JobSum) -> bool {
    let mut ops = job.ops.iter().zip(&earlier.ops);
    ops.all(|(now, then)| now.ios <= then.ios)
}

/// Whether the sums are those of the same run, later on. A new run begins after the last document was printed, so that all of its time has to
/// fit between the two documents.
fn continues(job: &JobSum, earlier: &JobSum) -> bool {
    let has_grown = |(now, then): (&OpSum, &OpSum)| now.ios >= then.ios && now.bytes >= then.bytes;
    let apart_ms = job.at_ms - earlier.at_ms;
    let began_before = apart_ms + job.step_ms < job.runtime_ms;
    job.runtime_ms >= earlier.runtime_ms
        && job.ops.iter().zip(&earlier.ops).all(has_grown)
        && (began_before || apart_ms <= job.runtime_ms - earlier.runtime_ms + LATE_MS)
}

/// A number that was not rounded to be printed.
fn exact(value: f64) -> Printed {
    Printed {
        value,
        half_step: 0.0,
    }
}
