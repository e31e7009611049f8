//! Job files of fio, as far as they are about reading and writing a device or a single file.
//!
//! Options keep fio's meaning and defaults. An option that would silently change the measurement here is refused by its
//! name and line, or reported in the notes of the series: I/O always bypass the page cache and are sent by io_uring; an
//! engine of blocking I/O has one in flight, for any `iodepth`.

mod asked;
mod job;
mod refused;
mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

use asked::SectionOption;
use job::Job;
use text::JobLine;

use crate::job_file::{FileLine, JobFileError, read_text};
use crate::series::{Area, Edge, Rate, Run, RunPart, Series};

/// Reads a job file.
///
/// # Errors
/// If it cannot be read, or asks for something that cannot run: with file, line, the text found and the text expected.
pub fn read(path: &Path) -> Result<Series, JobFileError> {
    let text = read_text(path)?;
    parse(&path.display().to_string(), &text, &|name| {
        std::env::var(name).ok()
    })
}

/// The same of a text; `variable` gives the value of one of the environment.
///
/// # Errors
/// As [`read`].
pub fn parse(
    name: &str,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Series, JobFileError> {
    let jobs = jobs(text::lines(name, text, variable)?)?;
    let mut series = Series::default();
    let mut group: Vec<Job> = Vec::new();
    for job in jobs {
        if job.waits && !group.is_empty() {
            series.runs.push(run_of(&group, &mut series.notes)?);
            group.clear();
        }
        group.push(job);
    }
    if group.is_empty() {
        return Err(JobFileError::Unfinished {
            path: name.to_owned(),
            expected: "a job: [NAME]",
        });
    }
    series.runs.push(run_of(&group, &mut series.notes)?);
    Ok(series)
}

/// Sections with their options, those of `[global]` before them.
fn jobs(lines: Vec<JobLine>) -> Result<Vec<Job>, JobFileError> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut global: Option<Job> = None;
    let mut is_global = false;
    for line in lines {
        match line {
            JobLine::Section { place, name } => {
                is_global = name == "global";
                let base = global
                    .clone()
                    .unwrap_or_else(|| Job::new(&name, place.clone()));
                if is_global {
                    global = Some(base);
                } else {
                    jobs.push(Job {
                        name,
                        place,
                        ..base
                    });
                }
            }
            JobLine::Option(setting) => {
                let open = if is_global {
                    global.as_mut()
                } else {
                    jobs.last_mut()
                };
                let Some(job) = open else { continue };
                let section = if is_global {
                    "global".to_owned()
                } else {
                    job.name.clone()
                };
                job.take(&SectionOption {
                    setting: &setting,
                    section: &section,
                })?;
            }
        }
    }
    Ok(jobs)
}

/// Jobs that go on at once.
fn run_of(jobs: &[Job], notes: &mut Vec<String>) -> Result<Run, JobFileError> {
    let first = &jobs[0];
    must_agree(jobs, "runtime", |job| (job.runtime, job.is_time_based))?;
    must_agree(jobs, "ramp_time", |job| job.ramp)?;
    must_agree(jobs, "rate_iops, given for all or none", |job| {
        job.rate.is_some()
    })?;
    must_agree(jobs, "randrepeat and randseed", |job| {
        (job.is_repeatable, job.seed)
    })?;
    if first.is_time_based && first.runtime.is_none() {
        return Err(lacking(
            first,
            "runtime=",
            "runtime=SECONDS with time_based",
        ));
    }
    let rates: Vec<f64> = jobs
        .iter()
        .filter_map(|job| Some(job.rate? * f64::from(job.jobs)))
        .collect();
    let rate: f64 = rates.iter().sum();
    let parts = jobs.iter().enumerate().map(|(at, job)| {
        let share = rates.get(at).map_or(1.0, |own| own / rate);
        part_of(job, share, notes)
    });
    let names: Vec<&str> = jobs.iter().map(|job| &*job.name).collect();
    Ok(Run {
        name: names.join(" + "),
        overrides: Vec::new(),
        parts: parts.collect::<Result<Vec<RunPart>, JobFileError>>()?,
        rate: if rates.is_empty() {
            Rate::Max
        } else {
            Rate::PerSecond(rate)
        },
        arrivals: None,
        elapsed: first.runtime,
        is_one_pass: !first.is_time_based,
        interval: Duration::from_secs(1),
        warmup: first.ramp,
        pause: Duration::ZERO,
        seed: first.is_repeatable.then_some(first.seed),
    })
}

fn must_agree<T: PartialEq>(
    jobs: &[Job],
    option: &str,
    of: impl Fn(&Job) -> T,
) -> Result<(), JobFileError> {
    match jobs.iter().find(|job| of(job) != of(&jobs[0])) {
        Some(job) => Err(JobFileError::Value {
            place: job.place.clone(),
            parameter: format!("{option} of [{}]", job.name),
            found: format!("another than in [{}]", jobs[0].name),
            expected: "the same in all jobs that go on at once, or stonewall between them"
                .to_owned(),
        }),
        None => Ok(()),
    }
}

fn lacking(job: &Job, lacking: &'static str, expected: &'static str) -> JobFileError {
    JobFileError::Lacking {
        place: job.place.clone(),
        owner: format!("[{}]", job.name),
        lacking,
        expected,
    }
}

fn part_of(job: &Job, share: f64, notes: &mut Vec<String>) -> Result<RunPart, JobFileError> {
    let Some((path, place)) = job.file.clone() else {
        return Err(lacking(
            job,
            "filename=",
            "the device or file: filename=/dev/sdb",
        ));
    };
    let lengths = lengths(job)?;
    let unit = job
        .align
        .unwrap_or_else(|| lengths.iter().map(|(bytes, _)| *bytes).max().unwrap_or(512));
    let (area, offset) = area(job, unit)?;
    remark(job, notes);
    let pattern = job.pattern;
    Ok(RunPart {
        workload: job.name.clone(),
        storage: job.name.clone(),
        path: PathBuf::from(path),
        place,
        streams: job.jobs,
        depth: if job.is_sync { 1 } else { job.depth },
        read_percent: match (pattern.reads, pattern.writes) {
            (true, true) => job.mix_read_percent,
            (reads, _) => {
                if reads {
                    100
                } else {
                    0
                }
            }
        },
        random_percent: if pattern.is_random {
            job.random_percent
        } else {
            0
        },
        from_anywhere: false,
        zipf: job.zipf,
        stride: None,
        area,
        offset,
        align: job.align,
        hits: None,
        lengths,
        share,
    })
}

fn lengths(job: &Job) -> Result<Vec<(u64, f64)>, JobFileError> {
    let [reads, writes] = &job.lengths;
    match (job.pattern.reads, job.pattern.writes) {
        (true, true) if reads != writes => Err(JobFileError::Value {
            place: job.place.clone(),
            parameter: format!("bs of [{}]", job.name),
            found: "one for reads and another for writes".to_owned(),
            expected: "the same for both where a job does both".to_owned(),
        }),
        (false, true) => Ok(writes.clone()),
        _ => Ok(reads.clone()),
    }
}

/// The area of the I/O, and the offset added to starts that are multiples of `unit`: fio counts blocks from `offset`
/// on.
fn area(job: &Job, unit: u64) -> Result<(Area, u64), JobFileError> {
    let mixed = || JobFileError::Value {
        place: job.place.clone(),
        parameter: format!("size and offset of [{}]", job.name),
        found: "a percentage and bytes".to_owned(),
        expected: "both in bytes, or both as percentages".to_owned(),
    };
    let (from, to, added) = match (job.offset.unwrap_or(Edge::Bytes(0)), job.size) {
        (Edge::Bytes(from), None) => (
            Edge::Bytes(from - from % unit),
            Edge::Percent(100.0),
            from % unit,
        ),
        (Edge::Bytes(from), Some(Edge::Bytes(size))) => {
            let end = from.checked_add(size).ok_or_else(mixed)?;
            (
                Edge::Bytes(from - from % unit),
                Edge::Bytes(end),
                from % unit,
            )
        }
        (Edge::Bytes(0), Some(to)) => (Edge::Bytes(0), to, 0),
        (from @ Edge::Percent(_), None) => (from, Edge::Percent(100.0), 0),
        (Edge::Percent(from), Some(Edge::Percent(size))) if from + size <= 100.0 => {
            (Edge::Percent(from), Edge::Percent(from + size), 0)
        }
        _ => return Err(mixed()),
    };
    Ok((
        Area {
            size: None,
            from,
            to,
            spares_first: false,
        },
        added,
    ))
}

/// Notes on differences from fio.
fn remark(job: &Job, notes: &mut Vec<String>) {
    let mut note = |place: &FileLine, words: String| {
        let note = format!("{place}: {words}");
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    if let Some((engine, place)) = &job.engine
        && engine != "io_uring"
    {
        note(
            place,
            format!("ioengine={engine}: I/O are sent by io_uring here"),
        );
    }
    if job.is_sync && job.depth > 1 {
        let words = format!(
            "[{}]: iodepth={} has no meaning with an engine that waits for each I/O",
            job.name, job.depth
        );
        note(&job.place, words + "; one is in flight");
    }
    if !job.is_direct {
        note(
            &job.place,
            format!(
                "[{}]: direct=1 is not given; I/O go past the page cache all the same",
                job.name
            ),
        );
    }
    if job.has_map && job.pattern.is_random {
        note(
            &job.place,
            format!(
                "[{}]: each start is drawn again, as with norandommap",
                job.name
            ),
        );
    }
}
