//! `plumb probe`: from a target to reads, and from what they show to a verdict.

use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use plumb_diagnose::finding::{Basis, Confidence, Cost, Evidence, Fix};
use plumb_diagnose::{Finding, MISALIGNED_TARGET, Severity, Target as Of, TargetLayer};
use plumb_geometry::plural;
use plumb_load::probe::media::{DATA_BYTES_MIN, Doubt, Survey};
use plumb_load::probe::{self, Reason, Settings, Verdict};
use plumb_load::{EngineChoice, Means, Session, SysError, Target};
use plumb_report::format;
use plumb_report::probe as report;
use plumb_stack::Kind;
use plumb_stats::Interval;
use plumb_stats::equivalence::Margin;

use crate::cli::Probe;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

mod counters;
mod hints;

use counters::Counters;
use hints::Stated;

/// Powers of two that are looked for.
const GRANULARITY_MAX: u64 = 4 << 20;
/// What a probe needs at least: the smallest grids some dozen times.
const SIZE_BYTES_MIN: u64 = 1 << 20;
/// A read at the beginning and one at the end differ by more than this: something else has changed.
const DRIFT: f64 = 1.2;
/// Reads of others, as a share of those of the probe, that are worth a note.
const OTHERS: f64 = 0.05;

/// How a reason begins where no medium answered.
const NOT_BACKED: &str = "not backed by media";

/// Runs the command.
///
/// # Errors
/// When the target cannot be measured.
pub fn run(args: &Probe) -> Result<Exit, Failure> {
    if let Some(page) = &args.html {
        output::may_write(std::slice::from_ref(&args.target), &[page])?;
    }
    let target = open(&args.target)?;
    let probe = Run::of(args, &target)?;
    probe.report(args, &target)
}

fn open(path: &Path) -> Result<Target, Failure> {
    let target = Target::open(path).map_err(|error| refused(path, &error))?;
    if target.size_bytes() < SIZE_BYTES_MIN {
        let (found, expected) = (format::bytes(target.size_bytes()), format::bytes(SIZE_BYTES_MIN));
        let what = format!("{}: found {found}, expected {expected} or more to measure", path.display());
        return Err(Failure::usage(what));
    }
    Ok(target)
}

fn refused(path: &Path, error: &SysError) -> Failure {
    match error {
        SysError::NotPermitted { .. } => {
            Failure::not_permitted(error, format!("sudo plumb probe {}", path.display()))
        }
        SysError::Failed { .. } => Failure::failed(error),
        _ => Failure::usage(error.to_string()),
    }
}

/// A probe that was made, and what is known beside it.
struct Run {
    outcome: Result<probe::Probed, String>,
    survey: Survey,
    passes_cache: bool,
    stated: Vec<Stated>,
    layer: Kind,
    notes: Vec<String>,
    means: String,
    depth: u32,
    seed: u64,
    seconds: f64,
}

impl Run {
    fn of(args: &Probe, target: &Target) -> Result<Run, Failure> {
        let seed = args.seed.unwrap_or_else(seed_of_now);
        let mut notes = Vec::new();
        let (stated, layer) = hints::of(&args.target, &args.grid);
        let begin = Instant::now();
        let ranges = readable(args, target, &mut notes)?;
        let failed = |error: std::io::Error| Failure::failed(&error);
        let survey = match ranges.is_empty() {
            true => Survey::default(),
            false => Survey::of(target, &ranges, seed).map_err(failed)?,
        };
        let ranges = with_data(&survey, ranges, &mut notes);
        let before = Counters::of(target);
        let margin = Margin::new(args.margin).map_err(|error| Failure::failed(&error))?;
        let settings = Settings {
            ranges,
            block_bytes: u64::from(target.block_bytes().max(512)),
            depth: args.depth,
            limit: args.limit,
            margin,
            granularity_max: GRANULARITY_MAX,
            granularities: stated.iter().map(|stated| stated.grid.granularity_bytes).collect(),
            seed,
        };
        let len_bytes_max = (GRANULARITY_MAX / 4) as u32;
        let mut session = Session::open(target, len_bytes_max, args.depth, EngineChoice::default())
            .map_err(|error| Failure::failed(&error))?;
        let means = means_words(session.means());
        let outcome = probe::probe(&mut session, &settings).map_err(|error| error.to_string());
        let seconds = begin.elapsed().as_secs_f64();
        if let Ok(probed) = &outcome {
            notes.extend(
                Counters::of(target)
                    .zip(before)
                    .and_then(|(after, before)| after.others(before, probed.reads, OTHERS)),
            );
            notes.extend(notes_on(probed));
        }
        let passes_cache = !target.is_direct() || counters::is_buffered_loop(target);
        if passes_cache {
            notes.push("reads go through a page cache of this host".to_owned());
        }
        let depth = args.depth;
        Ok(Run { outcome, survey, passes_cache, stated, layer, notes, means, depth, seed, seconds })
    }

    /// The verdict, and why it cannot be told where that is so.
    fn verdict(&self) -> (report::Verdict, Option<String>) {
        let probed = match &self.outcome {
            Ok(probed) => probed,
            Err(error) => return (report::Verdict::Inconclusive, Some(error.clone())),
        };
        let verdict = match probed.verdict {
            Verdict::Misaligned => report::Verdict::Misaligned,
            Verdict::Aligned => report::Verdict::Aligned,
            Verdict::NoPenalty => report::Verdict::NoPenalty,
            Verdict::Inconclusive(reason) => {
                return (report::Verdict::Inconclusive, Some(self.reason(reason, probed)));
            }
        };
        let doubt = self.survey.doubt(self.passes_cache, probed.settled_ns);
        match doubt.filter(|doubt| doubt.stands(probed, self.depth)) {
            None => (verdict, None),
            Some(doubt) => {
                let why = format!("{NOT_BACKED}: {}", doubt_words(doubt));
                (report::Verdict::Inconclusive, Some(why))
            }
        }
    }

    fn reason(&self, reason: Reason, probed: &probe::Probed) -> String {
        let doubt = self.survey.doubt(self.passes_cache, probed.settled_ns);
        let beside = doubt.map_or(String::new(), |doubt| format!("; {}", doubt_words(doubt)));
        match reason {
            Reason::Time => format!("time was over before a verdict: --limit gives more{beside}"),
            Reason::NoRoom if probed.space_bytes == 0 => {
                format!("{NOT_BACKED}: no part of it was ever written")
            }
            Reason::NoRoom => {
                format!("{} are too few to measure in{beside}", format::bytes(probed.space_bytes))
            }
        }
    }

    fn report(self, args: &Probe, target: &Target) -> Result<Exit, Failure> {
        let (verdict, reason) = self.verdict();
        let probed = self.outcome.as_ref().ok();
        // What was seen of something that is not believed is not shown as if it were.
        let believed = probed.filter(|_| verdict != report::Verdict::Inconclusive);
        let is_unbacked = reason.as_deref().is_some_and(|reason| reason.starts_with(NOT_BACKED));
        let commands = if is_unbacked { scratch(target) } else { Vec::new() };
        let hints: Vec<report::Hint> =
            self.stated.iter().map(|stated| stated.judged(believed, verdict)).collect();
        let sweep = believed.map_or(&[][..], |probed| &probed.bars);
        let sweep: Vec<report::Bar> =
            sweep.iter().map(|bar| report::Bar { offset_bytes: bar.offset_bytes, ns: bar.ns }).collect();
        let searched = probed.map_or(&[][..], |probed| &probed.searched);
        let searched = searched.iter().map(|one| report::Searched {
            granularity_bytes: one.granularity_bytes,
            len_bytes: one.len_bytes,
            flat_within: one.flat_within,
        });
        let searched: Vec<report::Searched> = searched.collect();
        let block_bytes = u64::from(target.block_bytes().max(512));
        let of_len = |ratio: Option<Interval>, len_bytes| ratio.map(|ratio| ratio_of(ratio, len_bytes));
        let shown = report::Probed {
            target: target.name(),
            size_bytes: target.size_bytes(),
            verdict,
            op: "read",
            reason,
            commands: &commands,
            grid: believed.and_then(|probed| probed.grid).map(grid_of),
            penalty: believed.and_then(|probed| of_len(probed.penalty, probed.penalty_len_bytes)),
            crossing: believed.and_then(|probed| of_len(probed.crossing, 2 * block_bytes)),
            margin_percent: args.margin * 100.0,
            sweep: &sweep,
            searched: &searched,
            hints: &hints,
            block_bytes,
            depth: args.depth,
            means: &self.means,
            reads: probed.map_or(0, |probed| probed.reads),
            bytes: probed.map_or(0, |probed| probed.bytes),
            seconds: self.seconds,
            seed: self.seed,
            notes: &self.notes,
        };
        let findings: Vec<Finding> = finding(&shown, self.layer).into_iter().collect();
        print(args, &shown, &findings)?;
        Ok(match verdict {
            report::Verdict::Inconclusive => Exit::Unknown,
            _ if findings.iter().any(|finding| args.fail_on.covers(finding.severity())) => Exit::Findings,
            _ => Exit::Clean,
        })
    }
}

fn print(args: &Probe, shown: &report::Probed<'_>, findings: &[Finding]) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    if let Some(path) = &args.html {
        let command = format!("plumb probe {}", args.target.display());
        let page = plumb_report::html::probed(shown, findings, version, &command);
        output::write_file(path, page.as_bytes())?;
    }
    output::print(&match args.json {
        true => report::json(version, shown, findings).map_err(|error| Failure::failed(&error))? + "\n",
        false => report::text(shown, findings, output::color(args.color)),
    })
}

/// The parts that are worth reading, and what a reader must know of them.
fn readable(args: &Probe, target: &Target, notes: &mut Vec<String>) -> Result<Vec<(u64, u64)>, Failure> {
    let size_bytes = target.size_bytes();
    let (start, end) = args.range.map_or((0, size_bytes), |(start, end)| (start.0, end.0));
    if end > size_bytes {
        let (found, size) = (format::bytes(end), format::bytes(size_bytes));
        let name = target.name();
        let what = format!("--range: found an end at {found}, expected at most {size}, the size of {name}");
        return Err(Failure::usage(what));
    }
    let Some(ranges) = probe::written(target, (start, end)) else {
        if !target.is_block_device() {
            notes.push("its file system does not tell which parts were written".to_owned());
        }
        return Ok(vec![(start, end)]);
    };
    let written: u64 = ranges.iter().map(|(first, last)| last - first).sum();
    if written < end - start {
        let (written, all) = (format::bytes(written), format::bytes(end - start));
        notes.push(format!("{written} of {all} were ever written: nothing else was measured"));
    }
    Ok(ranges)
}

/// Only the parts with data, where there are enough of them.
fn with_data(survey: &Survey, ranges: Vec<(u64, u64)>, notes: &mut Vec<String>) -> Vec<(u64, u64)> {
    let data = survey.data_bytes();
    let all: u64 = ranges.iter().map(|(start, end)| end - start).sum();
    if survey.zeros == 0 || survey.zeros == survey.places || data < DATA_BYTES_MIN || data == all {
        return ranges;
    }
    notes.push(format!(
        "{} of {} places read as zeros: only parts with other bytes were measured, {} of {}",
        format::count(survey.zeros),
        plural(survey.places, "place"),
        format::bytes(data),
        format::bytes(all)
    ));
    survey.data.clone()
}

fn means_words(means: Means) -> String {
    match means {
        Means::Ring { .. } => "by io_uring".to_owned(),
        Means::Blocking { refused: None } => "by calls that wait".to_owned(),
        Means::Blocking { refused: Some(why) } => format!("by calls that wait: io_uring is refused ({why})"),
    }
}

fn notes_on(probed: &probe::Probed) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((first, last)) = probed.settled_ns.zip(probed.last_ns)
        && (last / first > DRIFT || first / last > DRIFT)
    {
        let [first, last] = [first, last].map(|ns| format::ns(ns as u64));
        notes.push(format!(
            "a short read took {first} at the beginning and {last} at the end: a throttle, a cache that fills, or another \
             load; what is compared lies close together in time"
        ));
    }
    if probed.bytes > probed.space_bytes {
        notes.push("more was read than there is: caches may have answered".to_owned());
    }
    notes
}

fn doubt_words(doubt: Doubt) -> String {
    match doubt {
        Doubt::Zeros { places } => {
            format!("all of {} read as zeros, as what was never written does", plural(places, "place"))
        }
        Doubt::Memory { ns } => format!("a read takes {}, as from memory", format::ns(ns)),
        Doubt::Cached { first_ns, again_ns } => format!(
            "the first read of a place takes {}, and the second one from the cache {}",
            format::ns(first_ns),
            format::ns(again_ns)
        ),
    }
}

/// How a range comes to be backed by media.
fn scratch(target: &Target) -> Vec<String> {
    let (name, mib) = (target.name(), (target.size_bytes() >> 20).clamp(1, 1024));
    let direct = if target.is_direct() { " oflag=direct" } else { "" };
    vec![
        format!("# overwrites the first {} MiB: only where nothing is kept", format::count(mib)),
        format!("dd if=/dev/urandom of={name} bs=1M count={mib}{direct} conv=notrunc,fsync"),
        format!("plumb probe {name} --range 0-{mib}m"),
    ]
}

fn grid_of(grid: probe::Candidate) -> report::Grid {
    report::Grid { granularity_bytes: grid.granularity_bytes, offset_bytes: grid.offset_bytes }
}

fn ratio_of(ratio: Interval, len_bytes: u64) -> report::Ratio {
    report::Ratio {
        ratio: ratio.estimate,
        low: ratio.low,
        high: ratio.high,
        level: ratio.level.value(),
        pairs: ratio.n as u64,
        len_bytes,
    }
}

/// The defect, where the grid lies at an offset.
fn finding(shown: &report::Probed<'_>, layer: Kind) -> Option<Finding> {
    let grid = shown.grid.filter(|_| shown.verdict == report::Verdict::Misaligned)?;
    let of = Of { device: shown.target.to_owned(), part: None, layer: TargetLayer::Stack(layer) };
    let (granularity, offset) = (format::bytes(grid.granularity_bytes), format::bytes(grid.offset_bytes));
    let summary = format!(
        "blocks of {granularity} begin {offset} past its beginning: what starts on multiples of {granularity} misses all of them"
    );
    let source = format!("{} reads", format::count(shown.reads));
    let evidence =
        |name, value: u64| Evidence { name, value: value as f64, unit: "bytes", source: source.clone() };
    let begin = Evidence { ..evidence("offset", grid.offset_bytes) };
    let mut finding =
        Finding::new(MISALIGNED_TARGET, Severity::Warning, &of, Confidence::High, summary, begin)
            .with_evidence(evidence("granularity", grid.granularity_bytes));
    if let Some(penalty) = shown.penalty {
        for (name, value) in
            [("penalty", penalty.ratio), ("penalty_low", penalty.low), ("penalty_high", penalty.high)]
        {
            finding = finding.with_evidence(Evidence { name, value, unit: "ratio", source: source.clone() });
        }
        let unit = "times the time of a read on the grid";
        finding = finding.with_cost(Some(Cost { value: penalty.ratio, unit, basis: Basis::Measured }));
    }
    let command = format!("plumb check {}", shown.target);
    let risk = "none: reads only; it shows which layer begins off, and plans where it should";
    Some(finding.with_fix(Fix { command, risk: risk.into(), undo: "".into() }))
}

/// Any number: it is printed, so that a probe can be repeated.
fn seed_of_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Small enough for every reader of JSON.
    since.as_nanos() as u64 % (1 << 32)
}
