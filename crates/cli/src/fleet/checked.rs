//! Hosts whose layers are judged: collections (`plumb check --collect`) among the inputs of a report, judged as `plumb check --from` does.
//!
//! A finding belongs to the disks below its layer, because models and I/O are those of disks. A report keeps the findings, and reads a
//! collection again for a plan: the layers of ten thousand hosts would not fit into its memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use plumb_diagnose::accept::Accepted;
use plumb_diagnose::layout::Known;
use plumb_diagnose::{ABOUT_STARTS, Diagnosis};
use plumb_fleet::answer::FleetCause;
use plumb_fleet::{ClassMeans, HostAttributes, Source};
use plumb_geometry::Grid;
use plumb_model::{Finding, RuleId, Severity, Target};
use plumb_report::check::{Check as Report, json};
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_stack::{Stack, Survey, collection};
use plumb_trace::Layer;

use super::collected;
use super::judge::DeviceVerdict;
use super::pass::{InputMeter, named};
use crate::check::advice;
use crate::check::sources::{CollectedHost, GatheredHost};
use crate::cli::Beneath;
use crate::failure::Failure;
use crate::inputs;
use crate::{output, side_by_side, this_run};

/// A disk of a host.
pub struct CheckedDisk {
    /// The findings on it and on the layers above it.
    pub verdict: DeviceVerdict,
    /// Its WWN, UUID or serial number.
    pub identity: Option<String>,
    /// The rules whose findings have a proven remedy.
    pub remedied: BTreeSet<RuleId>,
}

/// A host that was read from its collection.
pub struct CheckedHost {
    /// The collection.
    pub path: PathBuf,
    /// Its attributes.
    pub attributes: HostAttributes,
    /// Its disks.
    pub disks: Vec<CheckedDisk>,
    /// Whether all of it was read.
    pub is_whole: bool,
}

/// Hosts by name.
pub type CheckedHosts = BTreeMap<String, CheckedHost>;

/// Takes the collections out of a list of inputs. Only names that end with `.zst` are opened for this.
pub fn take_collections(found: &mut Vec<Source>) -> Vec<Source> {
    let is_collection = |source: &mut Source| {
        let path = &source.piece.path;
        path.extension().is_some_and(|end| end == "zst") && begins_as_collection(path)
    };
    found.extract_if(.., is_collection).collect()
}

/// A file that cannot be read is none; the error comes when it is read as a source.
fn begins_as_collection(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| {
        let mut head_of = file.take(collection::HEAD_BYTES);
        head_of.read_to_end(&mut head)
    });
    read.is_ok() && collection::is_collection(&head)
}

/// Judges collections, several at a time. Returns the hosts, and the number of collections that could not be read.
///
/// # Errors
/// When one cannot be read, unless those are skipped, and when two are of one host.
pub fn judge_all(
    sources: &[Source],
    grids: &[Grid],
    skips_bad: bool,
) -> Result<(CheckedHosts, u64), Failure> {
    let (mut hosts, mut unread) = (CheckedHosts::new(), 0);
    let meter = InputMeter::start(sources.len(), "collections");
    let judged = side_by_side::each(sources, |source| {
        let judged = judge(source, grids);
        meter.advance();
        judged
    });
    drop(meter);
    for (source, judged) in sources.iter().zip(judged) {
        match judged {
            Ok((name, host)) => {
                let Some(other) = hosts.insert(name.clone(), host) else {
                    continue;
                };
                let [one, two] = [&other.path, &source.piece.path].map(|path| path.display());
                return Err(Failure::usage(format!(
                    "{one} and {two}: found two collections of host {name}, expected one"
                ))
                .with_help("pass the newer one alone"));
            }
            Err(failure) if skips_bad => {
                output::say(&format!(
                    "plumb: skipped: {}",
                    named(failure, source).text("")
                ));
                unread += 1;
            }
            Err(failure) => return Err(named(failure, source)),
        }
    }
    Ok((hosts, unread))
}

/// A host with its stack and the results of the rules.
struct JudgedLayers {
    host: CollectedHost,
    stack: Stack,
    diagnosis: Diagnosis,
}

fn look(path: &Path, grids: &[Grid]) -> Result<JudgedLayers, Failure> {
    let bytes = inputs::read(path, inputs::DUMP_BYTES_MAX)?;
    let mut host = CollectedHost::open(path, &bytes)?;
    let beneath = Beneath {
        grid: grids.to_vec(),
        ..Beneath::default()
    };
    let mut builder = std::mem::take(&mut host.gathered.builder);
    beneath.give(&beneath.catalogue()?, &mut builder)?;
    let stack = builder.finish();
    Ok(JudgedLayers {
        host,
        diagnosis: advice::diagnose(&beneath, &stack, &Known::default()),
        stack,
    })
}

/// Judges a collection. Its host is that of its path, and for a file outside of folders the host that it names itself.
fn judge(source: &Source, grids: &[Grid]) -> Result<(String, CheckedHost), Failure> {
    let path = &source.piece.path;
    let JudgedLayers {
        host,
        stack,
        diagnosis,
    } = look(path, grids)?;
    let name = match source.host == source.name {
        true => host.name,
        false => source.host.clone(),
    };
    let checked = CheckedHost {
        path: path.clone(),
        attributes: collected::attributes(&stack, host.kernel),
        disks: disks(&name, &stack, diagnosis),
        is_whole: is_whole(&host.gathered),
    };
    Ok((name, checked))
}

fn is_whole(gathered: &GatheredHost) -> bool {
    !gathered.is_partial && gathered.unread.is_empty()
}

/// The disks of a host with the results on the layers above them. A finding on several disks is counted on the first one.
fn disks(host: &str, stack: &Stack, diagnosis: Diagnosis) -> Vec<CheckedDisk> {
    let roots = stack.roots().into_iter().filter(|id| stack.is_leaf(*id));
    let mut names: Vec<String> = Vec::new();
    let mut disks: Vec<CheckedDisk> = Vec::new();
    for id in roots {
        names.push(stack.node(id).name.clone());
        disks.push(CheckedDisk {
            verdict: DeviceVerdict {
                device: stack.node(id).own_name().to_owned(),
                layer: Layer::Request,
                ios: 0,
                findings: Vec::new(),
                repeated: BTreeMap::new(),
                unknown: BTreeSet::new(),
                silent: diagnosis.silent.clone(),
                wasted: None,
                lost: None,
                latencies: ClassMeans::default(),
            },
            identity: stack.identity(id),
            remedied: BTreeSet::new(),
        });
    }
    // The disks below a target; all of them if it is the host.
    let below = |target: &Target| -> Vec<usize> {
        let under = target.node.map(|id| stack.under(id));
        let is_below = |name: &String| {
            let under = under.as_ref();
            under.is_none_or(|all| all.iter().any(|id| stack.node(*id).name == *name))
        };
        (0..names.len())
            .filter(|at| is_below(&names[*at]))
            .collect()
    };
    let mut looked: BTreeSet<RuleId> = BTreeSet::new();
    for unjudged in &diagnosis.unknown {
        if unjudged.rule.rule().decides {
            for at in below(&unjudged.target) {
                disks[at].verdict.unknown.insert(unjudged.rule);
            }
        }
    }
    for mut finding in diagnosis.findings {
        let (rule, severity) = (finding.rule(), finding.severity);
        looked.insert(rule);
        let on = below(&finding.target);
        for at in &on {
            if finding.recommended().is_some() {
                disks[*at].remedied.insert(rule);
            }
        }
        finding.target.host = Some(host.to_owned());
        let mut on = on.into_iter();
        if let Some(first) = on.next() {
            disks[first].verdict.findings.push(finding);
        }
        for at in on {
            let worst = disks[at].verdict.repeated.entry(rule).or_insert(severity);
            *worst = severity.max(*worst);
        }
    }
    // A rule that found something on one disk has judged the others as well.
    for disk in &mut disks {
        let verdict = &mut disk.verdict;
        let of_other = looked.iter().copied();
        verdict
            .silent
            .extend(of_other.filter(|rule| !verdict.unknown.contains(rule)));
    }
    disks
}

/// Rules with a proven remedy that a plan needs, with the disks.
pub type WantedRemedies = BTreeSet<(RuleId, String)>;

/// The rules whose remedies remove a cause.
fn rules_of(cause: FleetCause) -> Vec<RuleId> {
    match cause {
        // I/O behind a start that is off a boundary are off that boundary.
        FleetCause::Rule(RuleId::MisalignedIo) => ABOUT_STARTS.to_vec(),
        FleetCause::Rule(rule) => vec![rule],
        FleetCause::SlowDevice => Vec::new(),
    }
}

/// The collection of a host in a report, with the proven remedies on its devices.
pub struct PlannedHost {
    path: PathBuf,
    /// The name of a disk, and the rules with a proven remedy, by the name that the report has for the device.
    disks: BTreeMap<String, (String, BTreeSet<RuleId>)>,
}

impl PlannedHost {
    /// The plans of a host that has such a collection.
    pub fn new(path: PathBuf) -> PlannedHost {
        PlannedHost {
            path,
            disks: BTreeMap::new(),
        }
    }

    /// Adds a disk. `device` is its name in the report.
    pub fn add(&mut self, device: &str, disk: String, remedied: BTreeSet<RuleId>) {
        if !remedied.is_empty() {
            self.disks.insert(device.to_owned(), (disk, remedied));
        }
    }

    /// The proven remedies for a cause on some devices, as rules and disks.
    pub fn remedies(&self, cause: FleetCause, devices: &[String]) -> Vec<(RuleId, String)> {
        let rules = rules_of(cause);
        let disks = devices.iter().filter_map(|device| self.disks.get(device));
        disks
            .flat_map(|(disk, remedied)| {
                let rules = rules.iter().filter(|rule| remedied.contains(rule));
                rules.map(|rule| (*rule, disk.clone()))
            })
            .collect()
    }

    /// The document of `plumb check --json` with nothing but these remedies: `plumb fix plan` takes it.
    ///
    /// # Errors
    /// When the collection cannot be read.
    pub fn document(&self, wanted: &WantedRemedies, grids: &[Grid]) -> Result<String, Failure> {
        let JudgedLayers {
            host,
            stack,
            mut diagnosis,
        } = look(&self.path, grids)?;
        let is_wanted = |finding: &Finding| {
            let under = finding.target.node.map(|id| stack.under(id));
            let mut wanted = wanted.iter().filter(|(rule, _)| *rule == finding.rule());
            finding.recommended().is_some()
                && wanted.any(|(_, disk)| {
                    let under = under.as_ref();
                    under.is_none_or(|all| all.iter().any(|id| stack.node(*id).own_name() == disk))
                })
        };
        diagnosis.findings.retain(is_wanted);
        let run = this_run::now();
        let unread = host.gathered.unread_layers(&stack);
        let report = Report {
            run: &run,
            is_of_this_host: false,
            is_full: false,
            inputs: &host.gathered.inputs,
            stack: &stack,
            survey: &Survey::judge(&stack),
            wanted: None,
            diagnosis: &diagnosis,
            accepted: &Accepted::default(),
            elsewhere: &[],
            unread: &unread,
            unseen: &[],
            notes: stack.notes(),
            outcome: match diagnosis.findings.iter().map(|one| one.severity).max() {
                Some(worst) if worst >= Severity::Warning => Outcome::Findings,
                _ if !is_whole(&host.gathered) => Outcome::Unknown(WhyUnknown::ReadInPart),
                _ => Outcome::Clean,
            },
        };
        Ok(json(&report).map_err(|error| Failure::failed(&error))? + "\n")
    }
}
