//! `plumb fleet report`: judges each device of each host as `plumb analyze` does, ranks them, and finds the attributes that explain findings.

use std::path::{Path, PathBuf};

use plumb_diagnose::Questions;
use plumb_fleet::HostIo;
use plumb_fleet::answer::FleetAnswer;
use plumb_report::fleet;
use plumb_report::verdict::{Outcome, WhyUnknown};

use super::answers::KeptAnswer;
use super::judge::{Judge, Unjudged};
use super::pass::HostAge;
use super::state::FleetState;
use super::survey::{Earlier, Survey};
use super::{
    FleetFiles, checked, collected, engine, is_fleet, next_parts, open_all, pass, plans, sources,
};
use crate::cli::{FleetExport, FleetReport, FleetSince};
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
    let (fleet_files, others): (Vec<PathBuf>, Vec<PathBuf>) = args
        .sources
        .iter()
        .cloned()
        .partition(|path| is_fleet(path));
    if !fleet_files.is_empty() && (args.state.is_some() || args.engine.is_some()) {
        return Err(mixed());
    }
    let has_sums = !fleet_files.is_empty() || args.state.is_some() || args.engine.is_some();
    if has_sums && matches!(args.since, Some(FleetSince::Time(_))) {
        let found = "--since: found a time with a fleet file, --state or --engine, expected an earlier fleet file";
        return Err(Failure::usage(found).with_help(
            "sums have no dates: pass recordings, or the fleet file of an earlier week",
        ));
    }
    let mut survey = Survey::new(args.top);
    // The folder of plans gets a file of some name.
    let plan = args.plans.as_ref().map(|folder| folder.join("plan.json"));
    let outputs = args.state.iter().chain(&args.html).chain(&plan);
    let outputs: Vec<&Path> = outputs.map(PathBuf::as_path).collect();
    let earlier = args.since.iter().filter_map(FleetSince::file);
    let beside: Vec<PathBuf> = earlier.chain(&args.inventory).cloned().collect();
    let mut kept = None;
    if let Some(master) = &args.engine {
        // Only the cluster reads the sources, and this host may lack them.
        output::may_write(&beside, &outputs)?;
        let merged = engine::profile(args, master)?;
        sandbox::enter(&Files {
            inputs: beside,
            outputs: outputs.iter().map(|path| path.to_path_buf()).collect(),
        })?;
        survey.inventory = collected::inventory(&args.inventory)?;
        survey.since = read_earlier(args, &questions)?;
        read_fleet(merged, &questions, &mut survey)?;
    } else {
        let mut found = sources(&others, &[&fleet_files[..], &beside].concat(), &outputs)?.found;
        let collections = checked::take_collections(&mut found);
        if !fleet_files.is_empty() && !found.is_empty() {
            return Err(mixed());
        }
        kept = KeptAnswer::new(args, [&found, &collections], &beside);
        if let Some((shown, exit)) = kept.as_ref().and_then(KeptAnswer::find) {
            output::print(&shown)?;
            return Ok(exit);
        }
        survey.inventory = collected::inventory(&args.inventory)?;
        let (checked, unread) =
            checked::judge_all(&collections, &questions.grids, args.input.skip_bad)?;
        survey.checked = checked;
        survey.add_unread(unread);
        survey.since = read_earlier(args, &questions)?;
        if fleet_files.is_empty() {
            read(args, found, &questions, &mut survey)?;
        } else {
            read_fleet(open_all(&fleet_files)?, &questions, &mut survey)?;
        }
    }
    let (mut answer, planned) = survey.finish(args.silent_after.as_secs());
    if let Some(folder) = &args.plans {
        plans::write(folder, &mut answer, &planned, &questions.grids)?;
    }
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
    // Inputs that are skipped are named each time.
    if let Some(kept) = kept.filter(|_| answer.unread == 0) {
        kept.keep(&shown, outcome.into());
    }
    output::print(&shown)?;
    Ok(outcome.into())
}

fn mixed() -> Failure {
    let found = "found fleet files as SOURCE, expected nothing but fleet files and collections, and neither --state nor --engine";
    Failure::usage(found)
        .with_help("profile recordings with `plumb fleet profile`, and report on all fleet files")
}

/// Judges the earlier fleet file, if there is one. Earlier recordings are judged with the others.
fn read_earlier(args: &FleetReport, questions: &Questions) -> Result<Option<Earlier>, Failure> {
    let path = match &args.since {
        None => return Ok(None),
        Some(FleetSince::Time(time)) => {
            return Ok(Some(Earlier::before(*time)));
        }
        Some(FleetSince::File(path)) => path,
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
    let mut pass_on = |host: HostIo, age| judge.add(Unjudged::Whole(Box::new(host), age));
    let since = match &args.since {
        Some(FleetSince::Time(time)) => Some(*time),
        _ => None,
    };
    pass::run(
        &found,
        &settings,
        args.input.skip_bad,
        since,
        &mut |host, age| match &mut state {
            Some(state) => state.add(host, &mut |host| pass_on(host, age)),
            None => pass_on(host, age),
        },
    )?;
    if let Some(state) = state {
        state.finish(&mut |host| pass_on(host, HostAge::Now))?;
    }
    judge.finish()
}

fn outcome(args: &FleetReport, answer: &FleetAnswer) -> Outcome {
    let worst = answer.examples.iter().map(|finding| finding.severity).max();
    if worst.is_some_and(|worst| args.fail_on.covers(worst)) {
        Outcome::Findings
    } else if answer.partial + answer.unread > 0 {
        Outcome::Unknown(WhyUnknown::ReadInPart)
    } else if answer.ios == 0 && answer.collections == 0 {
        Outcome::Unknown(WhyUnknown::TooFewIos)
    } else if answer.rules.iter().any(|rule| rule.unknown > 0) {
        Outcome::Unknown(WhyUnknown::Layout)
    } else {
        Outcome::Clean
    }
}
