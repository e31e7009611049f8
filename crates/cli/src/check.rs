//! `plumb check`: from the facts on a host's storage to the alignment of each layer.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use plumb_diagnose::Diagnosis;
use plumb_diagnose::accept::Accepted;
use plumb_diagnose::layout::{self, Known};
use plumb_geometry::{group_digits, plural};
use plumb_model::result::check::Unseen;
use plumb_model::{Finding, Target};
use plumb_report::check::{Check as Report, json, text};
use plumb_report::exports;
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_stack::linux::Live;
use plumb_stack::{NodeId, Stack, Survey, collection, devices};

use crate::cli::{Check, Export};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::inputs;
use crate::output;
use crate::sandbox::{self, Files};
use crate::unseen;

pub(crate) mod advice;
mod beneath;
mod hosts;
mod image;
pub(crate) mod sources;
pub(crate) mod target;

use sources::GatheredHost;

/// Runs the command.
///
/// # Errors
/// When nothing could be read, or the target is not in the input.
pub fn run(args: &Check) -> Result<Exit, Failure> {
    if let Some(path) = &args.collect {
        return collect(path, &args.images);
    }
    some_are_asked(args)?;
    check(args).or_else(|failure| {
        if args.json && args.output.is_none() && failure.exit() == Exit::Unknown {
            output::print(&refusal(&failure)?)?;
        }
        Err(failure)
    })
}

/// The document of a check that came to nothing, with the reason among its notes.
fn refusal(failure: &Failure) -> Result<String, Failure> {
    let (stack, diagnosis) = (Stack::default(), Diagnosis::default());
    let run = crate::this_run::now();
    let report = Report {
        run: &run,
        is_of_this_host: false,
        is_full: false,
        inputs: &[],
        stack: &stack,
        survey: &Survey::default(),
        wanted: None,
        diagnosis: &diagnosis,
        accepted: &Accepted::default(),
        elsewhere: &[],
        unread: &[],
        unseen: &[],
        notes: &[failure.text("")],
        outcome: Outcome::Unknown(WhyUnknown::ReadInPart),
    };
    Ok(json(&report).map_err(|error| Failure::failed(&error))? + "\n")
}

fn check(args: &Check) -> Result<Exit, Failure> {
    let is_of_host = args.from.is_empty() && args.root.is_none() && !args.image;
    // Before the sandbox closes all other files.
    let config = args.accepting.read(is_of_host)?;
    let outputs: Vec<&Path> = args.output.iter().map(PathBuf::as_path).collect();
    output::may_write(&args.from, &outputs)?;
    if reads_files_alone(args) {
        let targets = args.target.iter().filter(|_| args.image);
        let named = targets.chain(&args.profile).chain(&args.beneath.known);
        sandbox::enter(&Files {
            inputs: args.from.iter().chain(named).cloned().collect(),
            outputs: args.output.iter().cloned().collect(),
        })?;
    }
    let catalogue = args.beneath.catalogue()?;
    let profile = args.profile.as_deref().map(inputs::profile).transpose()?;
    let mut gathered = sources::gather(args, &catalogue)?;
    args.beneath.give(&catalogue, &mut gathered.builder)?;
    let stack = std::mem::take(&mut gathered.builder).finish();
    if stack.nodes().next().is_none() {
        return Err(Failure::unknown("no device in the input"));
    }
    let target = target::find(&stack, args.target.as_deref(), gathered.target)?;
    let wanted = target.map(|id| target::around(&stack, id));
    let survey = Survey::judge(&stack);
    let known = what_is_known(args, target);
    let judged = advice::Judged {
        stack: &stack,
        known: &known,
        profiles: profile.as_ref().map(|saved| &saved.profiles),
    };
    let mut diagnosis = layout::diagnose(&stack, &known, judged.profiles);
    let elsewhere = wanted
        .as_ref()
        .map(|wanted| keep(&mut diagnosis, wanted))
        .unwrap_or_default();
    advice::with_commands(&args.beneath, args.image, judged, &mut diagnosis);
    let accepted = config.apply(&mut diagnosis, &stack);
    let run = crate::this_run::now();
    let unread = gathered.unread_layers(&stack);
    let unseen: Vec<Unseen> = [
        unseen::content(&stack, wanted.as_ref(), &gathered.unread),
        unseen::below(&stack, wanted.as_ref()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut report = Report {
        run: &run,
        is_of_this_host: is_of_host,
        is_full: args.full,
        inputs: &gathered.inputs,
        stack: &stack,
        survey: &survey,
        wanted: wanted.as_ref(),
        diagnosis: &diagnosis,
        accepted: &accepted,
        elsewhere: &elsewhere,
        unread: &unread,
        unseen: &unseen,
        notes: stack.notes(),
        outcome: Outcome::Clean,
    };
    report.outcome = outcome(args, &gathered, &report);
    if let Some(format) = args.export {
        return export(args, format, &report);
    }
    let shown = if args.json {
        json(&report).map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        output::drawn(text(
            &report,
            args.verbosity.detail(),
            output::paper(args.color),
        ))
    };
    give(args, &shown)?;
    Ok(report.outcome.into())
}

/// Prints or writes the result in the format of another program.
fn export(args: &Check, format: Export, report: &Report<'_>) -> Result<Exit, Failure> {
    let mut exit = report.outcome.into();
    let shown = match format {
        Export::Nagios => {
            let (line, status) = exports::nagios(report);
            exit = Exit::Plugin(status);
            line
        }
        Export::Junit => exports::junit(report, args.fail_on.lowest()),
        Export::Csv => exports::csv(report),
        Export::Markdown => exports::markdown(report),
        Export::Prometheus => exports::prometheus(report),
    };
    give(args, &shown)?;
    Ok(exit)
}

/// Prints a result, or writes it to the file that was named.
fn give(args: &Check, shown: &str) -> Result<(), Failure> {
    match &args.output {
        Some(path) => output::write_file(path, shown.as_bytes()),
        None => output::print(shown),
    }
}

/// Whether nothing of this host is looked at but the files that are named.
fn reads_files_alone(args: &Check) -> bool {
    args.image || (!args.from.is_empty() && args.join.is_empty())
}

/// Rates of 0 ask for nothing.
fn some_are_asked(args: &Check) -> Result<(), Failure> {
    let is_nothing = |rate: Option<f64>| rate.is_none_or(|rate| rate == 0.0);
    let is_given = args.reads.is_some() || args.writes.is_some();
    if is_given && is_nothing(args.reads) && is_nothing(args.writes) {
        let what =
            "--reads and --writes: found 0 I/O a second, expected a rate above 0 for one of them";
        return Err(Failure::usage(what));
    }
    Ok(())
}

/// Gathers the facts that another host needs to check this one.
fn collect(path: &Path, images: &[PathBuf]) -> Result<Exit, Failure> {
    output::must_be_new(path)?;
    let images = images
        .iter()
        .map(|image| target::whole_path(image))
        .collect::<Result<Vec<_>, _>>()?;
    let mut bytes = Vec::new();
    let kernel = Live::default();
    let root = Path::new("/");
    let origin = collection::Origin {
        root,
        kernel: &kernel,
        disks: &devices::Here,
        images: &images,
        asks_tools: true,
    };
    let found = collection::collect(&origin, &mut bytes).map_err(|error| {
        let help = "/sys/class/block must be there, and images must be open to the user: only a Linux host is collected";
        Failure::failed(&error).with_help(help)
    })?;
    // Gathering takes its time.
    output::must_be_new(path)?;
    output::write_private(path, &bytes)?;
    output::print(&gathered_words(&found, bytes.len()))?;
    Ok(Exit::Clean)
}

/// The contents of a collection, for anyone who passes it on.
fn gathered_words(found: &collection::ArchiveCounts, len: usize) -> String {
    let held = [
        format!(
            "files of sysfs and procfs of {}",
            plural(found.devices, "block device")
        ),
        format!(
            "{} of labels and superblocks of {}",
            plural(found.bytes, "byte"),
            plural(found.read, "device")
        ),
        format!("where {} lie", plural(found.files, "file")),
        format!(
            "Identify pages of {}",
            plural(found.identified, "NVMe namespace")
        ),
        plural(found.dumps, "output") + " of tools",
    ];
    format!(
        "collected {} bytes, with names, mount points and identities of disks\n  {}\n\
         no content of files and no keys; tar --zstd -tvf lists its files\n",
        group_digits(len as u64),
        held.join("\n  ")
    )
}

/// The user's statements for the rules on layouts.
fn what_is_known(args: &Check, target: Option<NodeId>) -> Known {
    let writes = args.writes.unwrap_or_default();
    let ios = args.reads.unwrap_or_default() + writes;
    Known {
        page: args.beneath.page,
        segment: args.beneath.segment_bytes(),
        ios_per_second: (ios > 0.0).then_some(ios),
        write_share: (ios > 0.0).then(|| writes / ios),
        volume: target,
        disk_ios_per_second: args.disk_rate,
        response_ns: args.response.map(|ms| ms * 1e6),
        watch: None,
    }
}

/// Takes out findings on other devices than those asked about, and returns them. Findings about the host stay.
pub(crate) fn keep(diagnosis: &mut Diagnosis, wanted: &HashSet<NodeId>) -> Vec<Finding> {
    let is_wanted = |target: &Target| target.node.is_none_or(|id| wanted.contains(&id));
    let findings = std::mem::take(&mut diagnosis.findings);
    let (kept, elsewhere) = findings
        .into_iter()
        .partition(|finding| is_wanted(&finding.target));
    diagnosis.findings = kept;
    diagnosis
        .unknown
        .retain(|unjudged| is_wanted(&unjudged.target));
    elsewhere
}

fn outcome(args: &Check, gathered: &GatheredHost, report: &Report<'_>) -> Outcome {
    if report
        .diagnosis
        .worst()
        .is_some_and(|worst| args.fail_on.covers(worst))
    {
        return Outcome::Findings;
    }
    if gathered.is_partial {
        Outcome::Unknown(WhyUnknown::ReadInPart)
    } else if report.is_unknown() {
        Outcome::Unknown(WhyUnknown::Layout)
    } else {
        Outcome::Clean
    }
}
