//! `plumb check`: from what is known of a host's storage to how each layer stands.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use plumb_diagnose::layout::{self, Known};
use plumb_diagnose::{Diagnosis, Finding, Fix};
use plumb_geometry::{group_digits, plural};
use plumb_plan::{Answer, Harm, Remedy, Wishes};
use plumb_profile::codec::Saved;
use plumb_report::check::{Check as Report, json, text};
use plumb_stack::catalogue::{self, Catalogue, FILE_BYTES_MAX};
use plumb_stack::linux::Live;
use plumb_stack::survey::Overall;
use plumb_stack::{Builder, Kind, NodeId, Stack, Survey};

use crate::cli::Check;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::inputs;
use crate::output;

mod archive;
mod disks;
mod hosts;
mod sources;
mod target;

use sources::Gathered;

/// Rules on settings, paths and load. They need facts that a layout does not hold, so that they cannot tell does not make
/// it unknown how the layers lie; the report says so all the same.
const BEYOND_LAYOUT: [&str; 13] = [
    "double-counted",
    "mirror-write-copy",
    "narrow-stripe",
    "no-direct-io",
    "no-logging",
    "parity-small-writes",
    "queue-setting",
    "read-policy",
    "single-path",
    "small-maxphys",
    "small-resync-io",
    "small-segmap",
    "too-few-disks",
];

/// Runs the command.
///
/// # Errors
/// When nothing could be read, or the target is not in what was read.
pub fn run(args: &Check) -> Result<Exit, Failure> {
    if let Some(path) = &args.collect {
        return collect(path, &args.images);
    }
    some_are_asked(args)?;
    let known = known(args)?;
    let profile = args.profile.as_deref().map(inputs::profile).transpose()?;
    let mut gathered = sources::gather(args, &known)?;
    give(args, &known, &mut gathered.builder)?;
    let stack = std::mem::take(&mut gathered.builder).finish();
    if stack.nodes().next().is_none() {
        return Err(Failure::unknown("no device in what was read"));
    }
    let target = target::find(&stack, args, gathered.target)?;
    let wanted = target.map(|id| target::around(&stack, id));
    let survey = Survey::of(&stack);
    let mut diagnosis = judge(args, target, &stack, profile.as_ref());
    if let Some(wanted) = &wanted {
        keep(&mut diagnosis, &stack, wanted);
    }
    with_commands(args, &stack, &mut diagnosis);
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        inputs: &gathered.inputs,
        stack: &stack,
        survey: &survey,
        wanted: wanted.as_ref(),
        diagnosis: &diagnosis,
        notes: stack.notes(),
    };
    let shown = if args.json {
        json(&report).map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        text(&report, output::color(args.color))
    };
    output::print(&shown)?;
    Ok(exit_of(args, &gathered, &report))
}

/// Rates of 0 ask for nothing.
fn some_are_asked(args: &Check) -> Result<(), Failure> {
    let is_nothing = |rate: Option<f64>| rate.is_none_or(|rate| rate == 0.0);
    let is_given = args.reads.is_some() || args.writes.is_some();
    if is_given && is_nothing(args.reads) && is_nothing(args.writes) {
        let what = "--reads and --writes: found 0 I/O a second, expected a rate above 0 for one of them";
        return Err(Failure::usage(what));
    }
    Ok(())
}

/// Gathers what another host needs to check this one.
fn collect(path: &Path, images: &[PathBuf]) -> Result<Exit, Failure> {
    output::must_be_new(path)?;
    let images = images.iter().map(|image| target::whole_path(image)).collect::<Result<Vec<_>, _>>()?;
    let mut bytes = Vec::new();
    let kernel = Live::default();
    let root = Path::new("/");
    let origin =
        archive::Origin { root, kernel: &kernel, disks: &disks::Here, images: &images, asks_tools: true };
    let found = archive::collect(&origin, &mut bytes).map_err(|error| {
        let help = "/sys/class/block must be there, and images must be open to the user: only a Linux host is collected";
        Failure::failed(&error).with_help(help)
    })?;
    // Gathering takes its time.
    output::must_be_new(path)?;
    output::write_file(path, &bytes)?;
    output::print(&gathered_words(path, &found, bytes.len()))?;
    Ok(Exit::Clean)
}

/// What a collection holds, for whoever hands it on.
fn gathered_words(path: &Path, found: &archive::Gathered, len: usize) -> String {
    let held = [
        format!("files of sysfs and procfs of {}", plural(found.devices, "block device")),
        format!(
            "{} of labels and superblocks of {}",
            plural(found.bytes, "byte"),
            plural(found.read, "device")
        ),
        format!("where {} lie", plural(found.files, "file")),
        format!("Identify pages of {}", plural(found.identified, "NVMe namespace")),
        plural(found.dumps, "output") + " of tools",
    ];
    format!(
        "{}: {} bytes, with names, mount points and identities of disks\n  {}\n\
         no content of files and no keys; tar --zstd -tvf shows what is in it\n",
        path.display(),
        group_digits(len as u64),
        held.join("\n  ")
    )
}

/// The known arrays: the user's before those that come with the program.
fn known(args: &Check) -> Result<Catalogue, Failure> {
    let built_in = Catalogue::built_in();
    let Some(path) = &args.known else { return Ok(built_in) };
    let bytes = inputs::read(path, FILE_BYTES_MAX)?;
    let mine = Catalogue::parse(&path.display().to_string(), &String::from_utf8_lossy(&bytes));
    Ok(built_in.behind(mine.map_err(|error| Failure::failed(&error))?))
}

/// Adds what the user knows of the disks.
fn give(args: &Check, known: &Catalogue, builder: &mut Builder) -> Result<(), Failure> {
    let picked = args.disk_type.as_deref().map(|name| known.named(name)).transpose();
    let picked = picked.map_err(|error| Failure::usage(error.to_string()))?;
    known.apply(builder, picked);
    for grid in args.grid.iter().chain(&args.segment) {
        catalogue::give(builder, *grid);
    }
    Ok(())
}

/// What the layout rules say.
fn judge(args: &Check, target: Option<NodeId>, stack: &Stack, profile: Option<&Saved>) -> Diagnosis {
    let writes = args.writes.unwrap_or_default();
    let ios = args.reads.unwrap_or_default() + writes;
    let known = Known {
        page: args.page,
        segment: args.segment.map(|segment| segment.granularity()),
        ios_per_second: (ios > 0.0).then_some(ios),
        write_share: (ios > 0.0).then(|| writes / ios),
        volume: target,
        disk_ios_per_second: args.disk_rate,
        response_ns: args.response.map(|ms| ms * 1e6),
    };
    layout::diagnose(stack, &known, profile.map(|saved| &saved.profiles))
}

/// Gives findings the commands of the way of least harm; the others are told of by `plumb plan`.
fn with_commands(args: &Check, stack: &Stack, diagnosis: &mut Diagnosis) {
    let segment = args.segment.map(|segment| segment.granularity());
    let wishes = Wishes { page: args.page, segment, unit: None };
    // The commands for one soft partition lay out all of its component, so only one finding gets them.
    let mut laid_out: HashMap<NodeId, String> = HashMap::new();
    for finding in &mut diagnosis.findings {
        let Some(node) = stack.find(&finding.target().device) else { continue };
        // Inside of a virtual disk no tool works on the file.
        if args.image && stack.under(node).into_iter().any(|below| stack.node(below).kind == Kind::ImageDisk)
        {
            finding.explain("no commands for it: attach the image as a device first, and check that");
            continue;
        }
        if let Some(component) = plumb_plan::component_laid_out(stack, finding.id(), node) {
            if let Some(first) = laid_out.get(&component) {
                finding.explain(format!(
                    "all soft partitions of {} are laid out anew together: see {first}",
                    stack.node(component).own_name()
                ));
                continue;
            }
            laid_out.insert(component, format!("{} of {}", finding.id(), finding.target()));
        }
        match plumb_plan::for_finding(stack, finding.id(), node, &wishes) {
            Some(Ok(Answer { changes, plan })) => match (plan.remedies.into_iter().next(), plan.refusal) {
                (Some(way), _) => {
                    if let Some(whose) = whose(stack, node, changes) {
                        finding.explain(whose);
                    }
                    tell(finding, way);
                }
                (None, Some(why)) => finding.explain(format!("no commands for it: {why}")),
                (None, None) => {}
            },
            Some(Err(why)) => finding.explain(format!("no commands for it: {why}")),
            None => {}
        }
    }
}

/// On which host the commands are to be run: names of devices are those of the host of what they change, which may be
/// below the host that a finding is about.
fn whose(stack: &Stack, found: NodeId, changes: NodeId) -> Option<String> {
    let (found, changes) = (&stack.node(found).host, stack.node(changes));
    let host = match (&changes.host, found) {
        (Some(host), _) => host,
        (None, Some(_)) => "this host",
        (None, None) => return None,
    };
    let what = if changes.host == *found { String::new() } else { format!(": they change {}", changes.name) };
    Some(format!("commands are for {host}, with the names that it has for its devices{what}"))
}

/// Adds one way with all that must hold for it: a command alone would be taken at its word.
fn tell(finding: &mut Finding, way: Remedy) {
    finding.explain(format!("the way of least harm is to {}: {}", way.harm.words(), way.title));
    for constraint in way.constraints {
        finding.explain(constraint);
    }
    let data = match way.harm {
        Harm::Tune | Harm::Online => "",
        Harm::Recreate => "data there are not taken along, so only where there are none or a copy is; ",
        Harm::Shift => "data are moved in place, so only with a copy; ",
    };
    for step in way.steps {
        let changes = !step.risk.starts_with("none: ");
        let risk = if changes { format!("{data}{}", step.risk) } else { step.risk };
        finding.add_fix(Fix { command: step.command, risk: risk.into(), undo: step.undo.into() });
    }
}

/// Leaves out what was found on other devices than those asked about; what is true of the host stays.
fn keep(diagnosis: &mut Diagnosis, stack: &Stack, wanted: &HashSet<NodeId>) {
    let is_wanted = |device: &str| stack.find(device).is_none_or(|id| wanted.contains(&id));
    diagnosis.findings.retain(|finding| is_wanted(&finding.target().device));
    diagnosis.unknown.retain(|unjudged| is_wanted(&unjudged.target.device));
}

fn exit_of(args: &Check, gathered: &Gathered, report: &Report<'_>) -> Exit {
    if report.diagnosis.worst().is_some_and(|worst| args.fail_on.covers(worst)) {
        return Exit::Findings;
    }
    let mut unknown = report.diagnosis.unknown.iter();
    if gathered.is_partial || unknown.any(|one| !BEYOND_LAYOUT.contains(&one.rule)) {
        return Exit::Unknown;
    }
    // Also where no rule had anything to judge.
    let is_wanted = |id: &NodeId| report.wanted.is_none_or(|wanted| wanted.contains(id));
    let mut tops = report.stack.tops().into_iter().filter(is_wanted);
    let is_unknown = |id| report.survey.stand(id).is_some_and(|stand| stand.overall == Overall::Unknown);
    if tops.any(is_unknown) {
        return Exit::Unknown;
    }
    Exit::Clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_decide_nothing_are_rules() {
        for id in BEYOND_LAYOUT {
            assert!(layout::RULES.iter().any(|rule| rule.id == id), "{id}");
        }
    }
}
