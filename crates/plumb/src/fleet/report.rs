//! `plumb fleet report`: judges each device of each host as `plumb analyze` does, and ranks them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plumb_diagnose::analysis::GridFit;
use plumb_diagnose::{Analysis, GridSource, Questions, analyze, diagnose};
use plumb_fleet::HostIo;
use plumb_geometry::Bounds;
use plumb_model::RuleId;
use plumb_profile::Profile;
use plumb_profile::fit::Unknown;
use plumb_profile::latency_fit::LatencyByFit;
use plumb_profile::profile::Losses;
use plumb_report::fleet::{self, FleetAnswer, FleetUnknown, RankedDevice};
use plumb_report::verdict::{Outcome, WhyUnknown};

use super::state::FleetState;
use super::{is_fleet, next_host, open_all, pass, sources};
use crate::cli::FleetReport;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::sandbox::{self, Files};
use crate::{output, this_run};

/// Runs the command.
///
/// # Errors
/// When an input cannot be read.
pub fn run(args: &FleetReport) -> Result<Exit, Failure> {
    let questions = Questions {
        grids: args.input.grids(),
        ..Questions::default()
    };
    let mut answer = FleetAnswer::default();
    let fleet_files = args.sources.iter().filter(|path| is_fleet(path)).count();
    let mut judge = |host: &HostIo| judge(host, &questions, args.top, &mut answer);
    if fleet_files > 0 && (fleet_files < args.sources.len() || args.state.is_some()) {
        return Err(Failure::usage(
            "found fleet files as SOURCE, expected nothing but fleet files, and no --state",
        )
        .with_help(
            "profile recordings with `plumb fleet profile`, and report on all fleet files",
        ));
    } else if fleet_files > 0 {
        sandbox::enter(&Files {
            inputs: args.sources.clone(),
            outputs: Vec::new(),
        })?;
        let mut files = open_all(&args.sources)?;
        while let Some(host) = next_host(&mut files)? {
            judge(&host);
        }
    } else {
        read(args, &questions, &mut judge)?;
    }
    answer.settle();
    let outcome = outcome(args, &answer);
    let shown = if args.json {
        fleet::json(&this_run::now(), &answer, outcome).map_err(|error| Failure::failed(&error))?
            + "\n"
    } else {
        output::drawn(fleet::text(&answer, outcome, output::paper(args.color)))
    };
    output::print(&shown)?;
    Ok(outcome.into())
}

/// Passes on the hosts of recordings, and of the state if there is one.
fn read(
    args: &FleetReport,
    questions: &Questions,
    judge: &mut dyn FnMut(&HostIo),
) -> Result<(), Failure> {
    let outputs: Vec<&Path> = args.state.iter().map(PathBuf::as_path).collect();
    let mut found = sources(&args.sources, &outputs)?.found;
    let mut state = match &args.state {
        Some(path) => Some(FleetState::open(path, &mut found)?),
        None => None,
    };
    let settings = questions.settings();
    pass::run(&found, &settings, args.input.skip_bad, &mut |host| {
        match &mut state {
            Some(state) => state.add(host, judge)?,
            None => judge(&host),
        }
        Ok(())
    })?;
    state.map_or(Ok(()), |state| state.finish(judge))
}

fn outcome(args: &FleetReport, answer: &FleetAnswer) -> Outcome {
    let worst = answer.examples.iter().map(|finding| finding.severity).max();
    if worst.is_some_and(|worst| args.fail_on.covers(worst)) {
        Outcome::Findings
    } else if answer.partial + answer.unread > 0 {
        Outcome::Unknown(WhyUnknown::ReadInPart)
    } else if answer.ios == 0 {
        Outcome::Unknown(WhyUnknown::TooFewIos)
    } else if answer.rules.iter().any(|rule| rule.unknown > 0) {
        Outcome::Unknown(WhyUnknown::Layout)
    } else {
        Outcome::Clean
    }
}

/// Adds a host to the answer.
fn judge(host: &HostIo, questions: &Questions, top: usize, answer: &mut FleetAnswer) {
    let facts = &host.facts;
    answer.hosts += 1;
    answer.inputs += facts.inputs.len() as u64;
    answer.partial += facts.partial.len() as u64;
    answer.unread += facts.unread.len() as u64;
    // A source does not have the device of its lost events.
    let mut losses = Losses::default();
    host.profiles
        .iter()
        .for_each(|profile| losses.merge(&profile.losses));
    let mut rules = BTreeSet::new();
    for profile in host.profiles.iter() {
        let key = (profile.device.clone(), profile.layer);
        let observed = facts.observed.get(&key).copied().unwrap_or_default();
        let mut analysis = analyze(profile, None, questions);
        analysis.losses = losses.clone();
        // From the first to the last I/O of several recordings there are pauses.
        analysis.span_ns = observed.known_ns();
        analysis.ios_per_second = analysis
            .span_ns
            .map(|ns| analysis.ios as f64 * 1e9 / ns as f64);
        judge_device(
            &facts.host,
            profile,
            &analysis,
            questions,
            &mut rules,
            answer,
        );
        rank(&facts.host, profile, &analysis, top, answer);
    }
    for rule in rules {
        answer.rule(rule).hosts += 1;
    }
}

/// Counts the findings on a device. `on_host` has the rules that found something on its host.
fn judge_device(
    host: &str,
    profile: &Profile,
    analysis: &Analysis,
    questions: &Questions,
    on_host: &mut BTreeSet<RuleId>,
    answer: &mut FleetAnswer,
) {
    answer.devices += 1;
    answer.ios = answer.ios.saturating_add(analysis.ios);
    let diagnosis = diagnose(profile, analysis, questions);
    let unknown: BTreeSet<RuleId> = diagnosis.unknown.iter().map(|one| one.rule).collect();
    for rule in unknown {
        answer.rule(rule).unknown += 1;
    }
    let mut on_device = BTreeSet::new();
    for mut finding in diagnosis.findings {
        let rule = finding.rule();
        on_host.insert(rule);
        answer.rule(rule).findings += 1;
        if on_device.insert(rule) {
            answer.rule(rule).devices += 1;
        }
        finding.target.host = Some(host.to_owned());
        answer.show(finding);
    }
    answer.with_findings += u64::from(!on_device.is_empty());
}

fn rank(host: &str, profile: &Profile, analysis: &Analysis, top: usize, answer: &mut FleetAnswer) {
    let fit = analysis.device().and_then(|place| place.grids.first());
    let Some(fit) = fit else { return };
    let ranked = |per_second| RankedDevice {
        host: host.to_owned(),
        device: profile.device.clone(),
        layer: profile.layer.word(),
        ios: analysis.ios,
        ios_per_second: analysis.ios_per_second,
        grid: fit.grid,
        grid_source: fit.source,
        per_second,
    };
    answer
        .by_waste
        .add(wasted(fit, analysis.span_ns).map(ranked), top);
    let lost = lost(fit, analysis);
    answer.by_time_lost.add(lost.map(ranked), top);
}

/// The cells that the I/O touch beyond those that their lengths need, each second. An I/O touches at most one more than it needs, so
/// this is the number of split I/O.
fn wasted(fit: &GridFit, span_ns: Option<u64>) -> Result<Bounds<f64>, FleetUnknown> {
    let split = tally(fit)?.split;
    if fit.source == GridSource::Assumed && split.high == 0 {
        return Err(FleetUnknown::NoGrid);
    }
    let seconds = span_ns.ok_or(FleetUnknown::NoTime)? as f64 / 1e9;
    Ok(split.map(|ios| ios as f64 / seconds))
}

/// The time that misaligned I/O take longer than like ones on the grid, ns each second.
fn lost(fit: &GridFit, analysis: &Analysis) -> Result<Bounds<f64>, FleetUnknown> {
    let misaligned = tally(fit)?.misaligned.map(|ios| ios as f64);
    if misaligned.high == 0.0 {
        return match fit.source {
            GridSource::Assumed => Err(FleetUnknown::NoGrid),
            _ => Ok(Bounds::exact(0.0)),
        };
    }
    let Some(LatencyByFit::Difference {
        low_ns, high_ns, ..
    }) = fit.latency
    else {
        return Err(match analysis.timed {
            0 => FleetUnknown::NoLatency,
            _ => FleetUnknown::NotComparable,
        });
    };
    let seconds = analysis.span_ns.ok_or(FleetUnknown::NoTime)? as f64 / 1e9;
    let times = |ns: f64, fewest: f64, most: f64| ns * if ns < 0.0 { most } else { fewest };
    Ok(Bounds {
        low: times(low_ns, misaligned.low, misaligned.high) / seconds,
        high: times(high_ns, misaligned.high, misaligned.low) / seconds,
    })
}

fn tally(fit: &GridFit) -> Result<&plumb_profile::FitTally, FleetUnknown> {
    fit.all.as_ref().map_err(|why| match why {
        Unknown::NoIo => FleetUnknown::NoIo,
        _ => FleetUnknown::NotCounted,
    })
}
