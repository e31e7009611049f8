//! `plumb fleet report`: judges each device of each host as `plumb analyze` does, ranks them, and finds the attributes that explain findings.

use std::path::{Path, PathBuf};

use plumb_diagnose::Questions;
use plumb_fleet::HostIo;
use plumb_report::fleet::{self, FleetAnswer};
use plumb_report::verdict::{Outcome, WhyUnknown};

use super::judge::{Judge, Unjudged};
use super::state::FleetState;
use super::survey::{Earlier, Survey};
use super::{FleetFiles, collected, engine, is_fleet, next_parts, open_all, pass, sources};
use crate::cli::{FleetExport, FleetReport};
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
    let fleet_files = args.sources.iter().filter(|path| is_fleet(path)).count();
    let reads_recordings = args.state.is_some() || args.engine.is_some();
    if fleet_files > 0 && (fleet_files < args.sources.len() || reads_recordings) {
        return Err(Failure::usage(
            "found fleet files as SOURCE, expected nothing but fleet files, and neither --state nor --engine",
        )
        .with_help(
            "profile recordings with `plumb fleet profile`, and report on all fleet files",
        ));
    }
    let mut survey = Survey::new(args.top);
    let outputs = |state: Option<&PathBuf>| -> Vec<PathBuf> {
        state.into_iter().chain(&args.html).cloned().collect()
    };
    let beside: Vec<PathBuf> = args.since.iter().chain(&args.inventory).cloned().collect();
    if fleet_files > 0 || args.engine.is_some() {
        // Only the cluster reads the sources, and this host may lack them.
        let own = args.sources.iter().filter(|_| args.engine.is_none());
        let files = Files {
            inputs: own.cloned().chain(beside).collect(),
            outputs: outputs(None),
        };
        let paths: Vec<&Path> = files.outputs.iter().map(PathBuf::as_path).collect();
        output::may_write(&files.inputs, &paths)?;
        let merged = args.engine.as_ref();
        let merged = merged.map(|master| engine::profile(args, master));
        let merged = merged.transpose()?;
        sandbox::enter(&files)?;
        survey.inventory = collected::inventory(&args.inventory)?;
        survey.since = read_earlier(args, &questions)?;
        let merged = merged.map_or_else(|| open_all(&args.sources), Ok)?;
        read_fleet(merged, &questions, &mut survey)?;
    } else {
        let outputs = outputs(args.state.as_ref());
        let paths: Vec<&Path> = outputs.iter().map(PathBuf::as_path).collect();
        let found = sources(&args.sources, &beside, &paths)?.found;
        survey.inventory = collected::inventory(&args.inventory)?;
        survey.since = read_earlier(args, &questions)?;
        read(args, found, &questions, &mut survey)?;
    }
    let answer = survey.finish(args.silent_after.as_secs());
    let outcome = outcome(args, &answer);
    let run = this_run::now();
    if let Some(path) = &args.html {
        output::write_file(path, fleet::html(&run, &answer, outcome).as_bytes())?;
    }
    let shown = match args.format {
        Some(FleetExport::Csv) => fleet::csv(&answer),
        Some(FleetExport::Openmetrics) => fleet::openmetrics(&answer),
        None if args.json => {
            let document = fleet::json(&run, &answer, outcome);
            document.map_err(|error| Failure::failed(&error))? + "\n"
        }
        None => output::drawn(fleet::text(&answer, outcome, output::paper(args.color))),
    };
    output::print(&shown)?;
    Ok(outcome.into())
}

/// Judges the earlier fleet file, if there is one.
fn read_earlier(args: &FleetReport, questions: &Questions) -> Result<Option<Earlier>, Failure> {
    let Some(path) = &args.since else {
        return Ok(None);
    };
    let mut earlier = Earlier::default();
    let mut take = |host| earlier.add(host);
    let mut judge = Judge::new(questions, &mut take);
    let mut files = open_all(std::slice::from_ref(path))?;
    while let Some(parts) = next_parts(&mut files)? {
        judge.add(Unjudged::Packed(parts))?;
    }
    judge.finish()?;
    Ok(Some(earlier))
}

fn read_fleet(
    mut files: FleetFiles,
    questions: &Questions,
    survey: &mut Survey,
) -> Result<(), Failure> {
    let mut take = |host| survey.add(host);
    let mut judge = Judge::new(questions, &mut take);
    while let Some(parts) = next_parts(&mut files)? {
        judge.add(Unjudged::Packed(parts))?;
    }
    judge.finish()
}

/// Judges the hosts of recordings, and those of the state if there is one.
fn read(
    args: &FleetReport,
    mut found: Vec<plumb_fleet::Source>,
    questions: &Questions,
    survey: &mut Survey,
) -> Result<(), Failure> {
    let mut state = match &args.state {
        Some(path) => FleetState::open(path, &mut found)?,
        None => None,
    };
    if let (None, Some(path)) = (&state, &args.state) {
        // Nothing is new: the file stays as it is.
        return read_fleet(open_all(std::slice::from_ref(path))?, questions, survey);
    }
    let settings = questions.settings();
    let mut take = |host| survey.add(host);
    let mut judge = Judge::new(questions, &mut take);
    let mut pass_on = |host: HostIo| judge.add(Unjudged::Whole(Box::new(host)));
    pass::run(
        &found,
        &settings,
        args.input.skip_bad,
        &mut |host| match &mut state {
            Some(state) => state.add(host, &mut pass_on),
            None => pass_on(host),
        },
    )?;
    if let Some(state) = state {
        state.finish(&mut pass_on)?;
    }
    judge.finish()
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
