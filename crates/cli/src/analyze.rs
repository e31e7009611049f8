//! `plumb analyze`: from traces to findings.

use std::path::{Path, PathBuf};

use plumb_diagnose::{Analysis, Diagnosis, Questions, analyze, diagnose};
use plumb_profile::{Profile, codec};
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_report::{Report, Section, html, json, text};

use crate::cli::Analyze;
use crate::collect::{Collected, collect};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::history::span::read_all;
use crate::sandbox::{self, Files};
use crate::{output, side_by_side};

/// Runs the command.
///
/// # Errors
/// When nothing could be read, or a requested file could not be written.
pub fn run(args: &Analyze) -> Result<Exit, Failure> {
    let questions = questions(args);
    let settings = questions.settings();
    let outputs: Vec<&Path> = args
        .html
        .iter()
        .chain(&args.save)
        .map(PathBuf::as_path)
        .collect();
    let (spans, files) = read_all(&args.files, args.state_dir.as_deref())?;
    output::may_write(&files, &outputs)?;
    sandbox::enter(&Files {
        inputs: files.clone(),
        outputs: outputs.iter().map(|path| path.to_path_buf()).collect(),
    })?;
    let mut collected = collect(&files, spans, &args.select, &settings, args.together);
    let failures = std::mem::take(&mut collected.failures);
    if collected.saved.sources.is_empty() {
        return Err(
            Failure::first_of(failures).unwrap_or_else(|| Failure::unknown("nothing to analyze"))
        );
    }
    let is_any_wanted = collected
        .saved
        .profiles
        .iter()
        .any(|profile| collected.is_wanted(&args.select, profile));
    let is_missing = failures
        .iter()
        .any(|failure| failure.exit() == Exit::Failed);
    if !is_any_wanted && is_missing {
        return Err(
            Failure::first_of(failures).unwrap_or_else(|| Failure::unknown("nothing to analyze"))
        );
    }
    failures.iter().for_each(Failure::print);
    collected.partial |= !failures.is_empty();
    collected
        .saved
        .notes
        .extend(failures.iter().map(Failure::note));

    let profiles: Vec<&Profile> = collected
        .saved
        .profiles
        .iter()
        .filter(|profile| collected.is_wanted(&args.select, profile))
        .collect();
    let answers = side_by_side::each(&profiles, |profile| {
        let analysis = analysis(args, profile, &collected, &questions);
        let diagnosis = diagnose(profile, &analysis, &questions);
        (analysis, diagnosis)
    });
    let (analyses, diagnoses): (Vec<Analysis>, Vec<Diagnosis>) = answers.into_iter().unzip();
    let mut diagnosis = Diagnosis::default();
    diagnoses
        .into_iter()
        .for_each(|of_profile| diagnosis.absorb(of_profile));
    let outcome = outcome(args, &collected, &analyses, &diagnosis);
    write_outputs(args, &collected, &profiles, &analyses, &diagnosis, outcome)?;
    let usage = failures.iter().any(|failure| failure.exit() == Exit::Usage);
    Ok(if usage { Exit::Usage } else { outcome.into() })
}

fn analysis(
    args: &Analyze,
    profile: &Profile,
    collected: &Collected,
    questions: &Questions,
) -> Analysis {
    let mut analysis = analyze(profile, args.select.part(), questions);
    if let Some(losses) = collected
        .losses
        .get(&(profile.device.clone(), profile.layer))
    {
        analysis.losses = losses.clone();
    }
    analysis
}

fn questions(args: &Analyze) -> Questions {
    Questions {
        grids: args.grids(),
        chunk: args.chunk,
        members: args.members,
        record: args.record,
        shift_bytes: args.shift,
        command: Some(crate::typed::without(
            &["--json"],
            &["--html", "--save", "--shift"],
        )),
        ..Questions::default()
    }
}

fn write_outputs(
    args: &Analyze,
    collected: &Collected,
    profiles: &[&Profile],
    analyses: &[Analysis],
    diagnosis: &Diagnosis,
    outcome: Outcome,
) -> Result<(), Failure> {
    let sources: Vec<String> = collected.saved.sources.iter().cloned().collect();
    let notes: Vec<String> = collected.saved.notes.iter().cloned().collect();
    let names: Vec<String> = args
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let sections = profiles
        .iter()
        .zip(analyses)
        .map(|(profile, analysis)| Section { profile, analysis })
        .collect();
    let report = Report {
        title: names.join(" "),
        version: env!("CARGO_PKG_VERSION"),
        command: crate::typed::for_page(),
        sources: &sources,
        notes: &notes,
        sections,
        diagnosis,
        outcome,
    };
    let shown = if args.json {
        json::analyze(&crate::this_run::now(), &report, &collected.infos)
            .map_err(|error| Failure::failed(&error))?
            + "\n"
    } else {
        output::drawn(text::text(&report, output::paper(args.color)))
    };
    // A file that could not be written is no reason to keep the answer back.
    let written = write_files(args, &report, collected);
    output::print(&shown)?;
    written
}

fn write_files(args: &Analyze, report: &Report<'_>, collected: &Collected) -> Result<(), Failure> {
    let page = args
        .html
        .as_ref()
        .map(|path| output::write_file(path, html::html(report).as_bytes()));
    let profile = args.save.as_ref().map(|path| {
        let bytes = codec::encode(&collected.saved).map_err(|error| Failure::failed(&error))?;
        output::write_file(path, &bytes)
    });
    page.into_iter().chain(profile).collect()
}

fn outcome(
    args: &Analyze,
    collected: &Collected,
    analyses: &[Analysis],
    diagnosis: &Diagnosis,
) -> Outcome {
    let worst = diagnosis.worst();
    if worst.is_some_and(|worst| args.fail_on.covers(worst)) {
        Outcome::Findings
    } else if collected.partial {
        Outcome::Unknown(WhyUnknown::ReadInPart)
    } else if analyses.iter().all(|analysis| analysis.ios == 0) {
        Outcome::Unknown(WhyUnknown::TooFewIos)
    } else if !diagnosis.unknown.is_empty() || what_if_unknown(analyses) {
        Outcome::Unknown(WhyUnknown::Layout)
    } else {
        Outcome::Clean
    }
}

/// Whether a layout was asked about and the answer is unknown or refused.
fn what_if_unknown(analyses: &[Analysis]) -> bool {
    analyses.iter().any(|analysis| {
        let asked = &analysis.what_if;
        asked.shifted.iter().any(|shifted| shifted.tally.is_err())
            || matches!(&asked.striped, Some(Err(_)))
            || matches!(&asked.recorded, Some(Err(_)))
    })
}
