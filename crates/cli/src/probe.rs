//! `plumb probe`: from a target to reads or writes, and from their times to a verdict.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use plumb_load::probe::beside as load_beside;
use plumb_load::probe::conclusion::{Conclusion, Facts, Why};
use plumb_load::probe::counters::{self, DiskCounters, Others};
use plumb_load::probe::media::MediaSurvey;
use plumb_load::probe::session::ReadError;
use plumb_load::probe::write_back::{self, WriteBack};
use plumb_load::probe::{self, Broken, ProbeReader, Settings, Watched};
use plumb_load::result::probe as result;
use plumb_load::{EngineChoice, Session, Target};
use plumb_model::Finding;
use plumb_model::facts::Direction;
use plumb_report::probe as report;
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_stack::Kind;
use plumb_stats::Interval;

use crate::cli::Probe;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::signals::stop_flag;
use crate::status::Meter;
use crate::typed;

mod beside;
mod finding;
mod hints;
mod ranges;
mod reason;
mod words;
mod writes;

use hints::Stated;
use ranges::{depth_in, readable, with_data};
use writes::Writing;

/// Powers of two that are looked for.
const GRANULARITY_MAX: u64 = 4 << 20;

/// Runs the command.
///
/// # Errors
/// When the target cannot be measured.
pub fn run(args: &Probe) -> Result<Exit, Failure> {
    if let Some(page) = &args.html {
        output::may_write(std::slice::from_ref(&args.target), &[page])?;
    }
    let (target, writing) = match args.write {
        true => writes::open(args).map(|(target, writing)| (target, Some(writing)))?,
        false => (
            Target::open(&args.target).map_err(|error| Failure::of_system(&error))?,
            None,
        ),
    };
    ranges::must_be_measurable(args, &target)?;
    let probe = ProbeRun::carry_out(args, &target, writing)?;
    probe.report(args, &target)
}

/// A finished probe, and the facts beside it.
struct ProbeRun {
    outcome: Result<probe::Probed, Broken<ReadError>>,
    is_gone: bool,
    is_device: bool,
    survey: MediaSurvey,
    writing: Option<Writing>,
    /// Time of a short write alone.
    lone_write_ns: Option<u64>,
    passes_cache: bool,
    /// Of the server of a file: how long it takes to answer.
    answer_ns: Option<u64>,
    others: Option<Others>,
    stated: Vec<Stated>,
    layer: Kind,
    notes: Vec<String>,
    means: String,
    depth: u32,
    seed: u64,
    seconds: f64,
}

impl ProbeRun {
    fn carry_out(
        args: &Probe,
        target: &Target,
        writing: Option<Writing>,
    ) -> Result<ProbeRun, Failure> {
        let seed = args.seed.unwrap_or_else(seed_of_now);
        let stop = stop_flag()?;
        let mut notes = Vec::new();
        let (stated, layer) = hints::collect(&args.target, &args.grid);
        let begin = Instant::now();
        let ranges = readable(args, target, &mut notes);
        let surveyed = match ranges.is_empty() {
            true => Ok(MediaSurvey::default()),
            false => MediaSurvey::read(target, &ranges, seed),
        };
        let survey = surveyed.as_ref().cloned().unwrap_or_default();
        let ranges = match writing {
            // A thin volume would have to make room for zeros as for other bytes.
            Some(_) => survey.data.clone(),
            None => with_data(&survey, ranges, &mut notes),
        };
        let depth = depth_in(args, writing.as_ref(), &ranges, &mut notes);
        let before = DiskCounters::read(target);
        let settings = Settings {
            ranges,
            block_bytes: u64::from(target.block_bytes().max(512)),
            depth,
            limit: args.limit,
            margin: args.margin,
            granularity_max: GRANULARITY_MAX,
            granularities: stated
                .iter()
                .filter(|stated| stated.doubt.is_none())
                .map(|stated| stated.grid.granularity_bytes)
                .collect(),
            // Of writes a repetition tells nothing.
            cache_bytes: args
                .cache
                .map(|cache| cache.0)
                .or(writing.as_ref().map(|_| 0)),
            seed,
        };
        let len_bytes_max = (GRANULARITY_MAX / 4) as u32;
        let slots = if writing.is_some() {
            depth.max(write_back::SLOTS)
        } else {
            depth
        };
        let mut session = Session::open(target, len_bytes_max, slots, EngineChoice::default())
            .map_err(|error| Failure::failed(&error))?;
        let means = words::means(session.means());
        let mut lone_write_ns = None;
        let outcome = surveyed.and_then(|_| match &writing {
            None => watched(&mut session, &settings, &stop, op_of(&writing)),
            Some(Writing { may_write, .. }) => {
                let mut writes = WriteBack::new(&mut session, may_write);
                lone_write_ns = writes.lone_ns(&settings.ranges)?;
                watched(&mut writes, &settings, &stop, op_of(&writing))
            }
        });
        let seconds = begin.elapsed().as_secs_f64();
        let counters = DiskCounters::read(target)
            .zip(before)
            .zip(outcome.as_ref().ok());
        let others =
            counters.map(|((after, before), probed)| after.others(before, own(probed, &writing)));
        if let Ok(probed) = &outcome {
            notes.extend(words::notes(probed, op_of(&writing)));
        }
        let passes_cache = !target.is_direct() || counters::is_buffered_loop(target);
        if passes_cache {
            notes.push(words::through_cache(target, op_of(&writing)));
        }
        notes.extend(writing.as_ref().map(|writing| writing.note.to_owned()));
        let answer_ns = load_beside::answer_ns(target).filter(|_| writing.is_none());
        let (is_gone, is_device) = (!target.io().is_there(), target.is_block_device());
        Ok(ProbeRun {
            outcome,
            is_gone,
            is_device,
            survey,
            writing,
            lone_write_ns,
            passes_cache,
            answer_ns,
            others,
            stated,
            layer,
            notes,
            means,
            depth,
            seed,
            seconds,
        })
    }

    /// The facts beside the reads.
    fn facts(&self) -> Facts<'_> {
        Facts {
            survey: &self.survey,
            is_writing: self.writing.is_some(),
            lone_write_ns: self.lone_write_ns,
            passes_cache: self.passes_cache,
            answer_ns: self.answer_ns,
            others_share: self.others.map(|others| others.share),
            is_device: self.is_device,
        }
    }

    fn report(self, args: &Probe, target: &Target) -> Result<Exit, Failure> {
        let verdict = self.facts().conclude(&self.outcome);
        let why = match verdict {
            Conclusion::Inconclusive(why) => Some(why),
            Conclusion::Misaligned | Conclusion::Aligned | Conclusion::NoPenalty => None,
        };
        let reason = why.map(|why| self.reason(why));
        let probed = self.outcome.as_ref().ok();
        // Measurements that are not believed are not shown as if they were.
        let believed = probed.filter(|_| why.is_none());
        // If a cache answered (`Why::Against`), writing would only fill it once more.
        let is_unbacked = matches!(why, Some(Why::NotBacked(_)));
        let op = op_of(&self.writing);
        let (commands, reason) = match is_unbacked.then(|| words::scratch(target, op)) {
            None => (Vec::new(), reason),
            Some(Ok(commands)) => (commands.to_vec(), reason),
            Some(Err(why)) => (
                Vec::new(),
                Some(reason.map_or_else(|| why.to_string(), |reason| format!("{reason}; {why}"))),
            ),
        };
        let hints: Vec<result::Hint> = self
            .stated
            .iter()
            .map(|stated| stated.judged(believed, verdict, op))
            .collect();
        let sweep = believed.map_or(&[][..], |probed| &probed.bars);
        let block_bytes = u64::from(target.block_bytes().max(512));
        let of_len =
            |ratio: Option<Interval>, len_bytes| ratio.map(|ratio| ratio_of(ratio, len_bytes));
        let failed = self.outcome.as_ref().err().and_then(failed_reads);
        let (reads, bytes) = match &self.outcome {
            Ok(probed) => (probed.reads, probed.bytes),
            Err(broken) => (
                broken.reads + failed.as_ref().map_or(0, |failed| failed.reads),
                broken.bytes,
            ),
        };
        let shown = result::ProbeReport {
            target: target.name(),
            size_bytes: target.size_bytes(),
            verdict,
            op,
            durability: self.writing.as_ref().map(|writing| writing.done),
            reason,
            commands: &commands,
            grid: believed.and_then(|probed| probed.grid),
            penalty: believed.and_then(|probed| of_len(probed.penalty, probed.penalty_len_bytes)),
            crossing: believed.and_then(|probed| of_len(probed.crossing, 2 * block_bytes)),
            margin_percent: args.margin.share() * 100.0,
            sweep,
            searched: probed.map_or(&[], |probed| &probed.searched),
            hints: &hints,
            cache: beside::cache(probed, args.cache.map(|cache| cache.0)),
            drift: probed.and_then(|probed| probed.course.change()),
            pace: probed.map_or(&[], |probed| probed.course.paces()),
            others: self.others,
            block_bytes,
            depth: self.depth,
            means: &self.means,
            reads,
            writes: if op == Direction::Write { reads } else { 0 },
            bytes,
            failed,
            seconds: self.seconds,
            seed: self.seed,
            notes: &self.notes,
        };
        let findings: Vec<Finding> = finding::finding(&shown, self.layer).into_iter().collect();
        let outcome = match verdict {
            Conclusion::Inconclusive(_) => Outcome::Unknown(WhyUnknown::Layout),
            _ if findings
                .iter()
                .any(|finding| args.fail_on.covers(finding.severity)) =>
            {
                Outcome::Findings
            }
            _ => Outcome::Clean,
        };
        print(args, &shown, &findings, outcome)?;
        Ok(outcome.into())
    }
}

/// Probes until there is a result or a signal asks for the end, and shows how far it has come.
fn watched<R: ProbeReader>(
    reader: &mut R,
    settings: &Settings,
    stop: &AtomicBool,
    op: Direction,
) -> Result<probe::Probed, Broken<R::Error>> {
    let ios = Arc::new(AtomicU64::default());
    let (told, limit) = (Arc::clone(&ios), settings.limit);
    let _meter = Meter::start(move |elapsed| words::progress(&told, op, elapsed, limit));
    probe::probe(&mut Watched::new(reader, stop, &ios), settings)
}

fn print(
    args: &Probe,
    shown: &result::ProbeReport<'_>,
    findings: &[Finding],
    outcome: Outcome,
) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    if let Some(path) = &args.html {
        let command = typed::for_page();
        let page = plumb_report::html::probed(shown, findings, version, &command);
        output::write_file(path, page.as_bytes())?;
    }
    output::print(&match args.json {
        true => {
            report::json(&crate::this_run::now(), shown, findings, outcome)
                .map_err(|error| Failure::failed(&error))?
                + "\n"
        }
        false => output::drawn(report::text(
            shown,
            findings,
            outcome,
            output::paper(args.color),
        )),
    })
}

/// The measured operation.
const fn op_of(writing: &Option<Writing>) -> Direction {
    match writing {
        None => Direction::Read,
        Some(_) => Direction::Write,
    }
}

/// I/O of the probe itself, as the device counts them.
fn own(probed: &probe::Probed, writing: &Option<Writing>) -> DiskCounters {
    let (reads, read_bytes) = (probed.reads, probed.bytes);
    let (writes, written_bytes) = if writing.is_some() {
        (reads, read_bytes)
    } else {
        (0, 0)
    };
    DiskCounters {
        reads,
        read_bytes,
        writes,
        written_bytes,
    }
}

fn failed_reads(broken: &Broken<ReadError>) -> Option<result::Failed> {
    match &broken.error {
        ReadError::Failed {
            failed,
            is_write,
            at,
            failure,
        } => {
            let (reads, writes) = if *is_write {
                (0, *failed)
            } else {
                (*failed, 0)
            };
            Some(result::Failed {
                reads,
                writes,
                at_bytes: *at,
                error: failure.to_string(),
            })
        }
        ReadError::Load(_) => None,
    }
}

fn ratio_of(ratio: Interval, len_bytes: u64) -> result::PenaltyRatio {
    result::PenaltyRatio {
        ratio: ratio.estimate,
        low: ratio.low,
        high: ratio.high,
        level: ratio.level.value(),
        pairs: ratio.n as u64,
        len_bytes,
    }
}

/// Any number: it is printed, so that a probe can be repeated.
fn seed_of_now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // Small enough for every reader of JSON.
    since.as_nanos() as u64 % (1 << 32)
}
