//! Layout and I/O in one diagnosis: I/O are judged by the grids that the stack states for their device, and I/O that a
//! fault of the layout explains are reported with that fault alone.

use std::collections::BTreeSet;

use plumb_geometry::Grid;
use plumb_model::{Finding, RuleId};
use plumb_profile::{Profile, ProfileSet, Settings};
use plumb_stack::grid::Source;
use plumb_stack::{CellKind, GridFact, Kind, NodeId, Stack};
use plumb_trace::Layer;

use crate::analysis::{Analysis, analyze};
use crate::contents;
use crate::layout::{self, Known, Watch};
use crate::question::{GridSource, Questions};
use crate::rules::{Diagnosis, IOS_MIN, diagnose, diagnose_answers};

/// Findings about a start: they explain why I/O behind it are off.
pub const ABOUT_STARTS: [RuleId; 2] = [RuleId::MisalignedPartition, RuleId::SoftPartitionDrift];

/// Findings that small writes have of a unit: starts and lengths off it are the same once more.
const ABOUT_UNITS: RuleId = RuleId::IndirectionUnit;

/// Nothing here adds devices up, so that advice is not needed.
const ABOUT_SUMS: RuleId = RuleId::DoubleCounted;

/// The joint result.
pub struct Joined<'a> {
    /// Findings about the layout, with the I/O that show them, and those of the I/O that no fault of the layout explains.
    pub diagnosis: Diagnosis,
    /// Devices that had I/O, with the numbers of each.
    pub seen: Vec<(&'a Profile, Analysis)>,
    /// Devices that had I/O, too few to judge them.
    pub too_few: Vec<&'a str>,
}

/// Judges a stack and the I/O that its devices were seen to receive.
#[must_use]
pub fn join<'a>(
    stack: &Stack,
    known: &Known,
    profiles: Option<&'a ProfileSet>,
    given: &[Grid],
) -> Joined<'a> {
    let mut diagnosis = layout::diagnose(stack, known, profiles);
    diagnosis
        .findings
        .retain(|finding| finding.rule() != ABOUT_SUMS);
    let mut joined = Joined {
        diagnosis,
        seen: Vec::new(),
        too_few: Vec::new(),
    };
    let of_layout = joined.diagnosis.findings.clone();
    for profile in profiles
        .into_iter()
        .flat_map(ProfileSet::iter)
        .filter(|profile| profile.ios() > 0 || profile.answers.is_some())
    {
        let questions = questions(stack, &of_layout, profile, given);
        let mut analysis = analyze(profile, None, &questions);
        if let Some(id) = stack.find(&profile.device) {
            analysis.target.node = Some(id);
            analysis.target.identity = stack.identity(id);
        }
        // A device that fails or stalls need not have answered many I/O.
        let is_judged = profile.placed_ios() >= IOS_MIN;
        let of_profile = match is_judged {
            true => diagnose(profile, &analysis, &questions),
            false => diagnose_answers(profile, &analysis, &questions),
        };
        let mut of_profile = of_profile;
        if known
            .watch
            .as_ref()
            .is_some_and(|watch| is_idle(profile, watch))
        {
            of_profile.findings.retain(|finding| !is_part(finding));
        }
        joined.diagnosis.absorb(of_profile);
        if profile.ios() == 0 {
            continue;
        }
        if !is_judged {
            joined.too_few.push(&profile.device);
        }
        joined.seen.push((profile, analysis));
    }
    joined
}

/// Fewer I/O in a watch, at a lower rate, are those of an idle host: a log, a timestamp, an update of a label.
const IDLE_IOS_MAX: u64 = 500;
const IDLE_IOS_PER_SECOND_MAX: f64 = 50.0;

/// From this share on nearly all I/O of a device are meant, and a few hundred are enough to say so.
const SHARE_OF_ALL: f64 = 0.9;

fn is_idle(profile: &Profile, watch: &Watch) -> bool {
    let ios = profile.ios();
    ios < IDLE_IOS_MAX && (ios as f64) < watch.seconds * IDLE_IOS_PER_SECOND_MAX
}

/// Whether a finding is about a part of the I/O, and not nearly all of them. The part that an idle host shows is not that of a
/// load.
fn is_part(finding: &Finding) -> bool {
    let counted = finding.facts.counted();
    counted.is_some_and(|share| share.value() < SHARE_OF_ALL)
}

/// Settings of tables that answer for all grids that may be asked about: given ones, and those that the stack states.
#[must_use]
pub fn settings(stack: &Stack, given: &[Grid]) -> Settings {
    // I/O of partitions are counted at their disk.
    let devices = stack
        .nodes()
        .filter(|(_, node)| node.kind != Kind::Partition);
    let mut all: Vec<(Grid, GridSource)> = Vec::new();
    for (grid, source) in devices.flat_map(|(id, _)| stated(stack, &[], id)) {
        if !all.iter().any(|(known, _)| *known == grid) {
            all.push((grid, source));
        }
    }
    Questions {
        grids: given.to_vec(),
        stated: all,
        ..Questions::default()
    }
    .settings()
}

/// The questions to a profile.
fn questions(stack: &Stack, found: &[Finding], profile: &Profile, given: &[Grid]) -> Questions {
    let disk = stack
        .find(&profile.device)
        .filter(|_| profile.layer != Layer::Vfs);
    let mut questions = Questions {
        grids: given.to_vec(),
        ..Questions::default()
    };
    if let Some(disk) = disk {
        questions.stated = stated(stack, found, disk);
        questions.explained = explained(stack, found, profile, disk);
        let names = std::iter::once(&profile.device).chain(profile.partitions.keys());
        questions.file_systems = names
            .filter_map(|name| {
                let on_it = contents::file_systems(stack, stack.find(name)?)?;
                Some((name.clone(), on_it))
            })
            .collect();
    }
    questions
}

/// The grids below a device and in it, in its own address space; none if one is only assumed.
fn stated(stack: &Stack, found: &[Finding], disk: NodeId) -> Vec<(Grid, GridSource)> {
    let is_told = about(found, &[ABOUT_UNITS]).any(|id| stack.under(id).contains(&disk));
    let is_wanted = |fact: &GridFact| {
        fact.what != CellKind::Assumed && !(is_told && fact.what == CellKind::IndirectionUnit)
    };
    let is_shown = stack
        .under(disk)
        .iter()
        .any(|id| stack.node(*id).kind == Kind::VirtualDisk && stack.is_leaf(*id));
    let mut grids: Vec<(Grid, GridSource)> = Vec::new();
    for fact in stack.grids_through(disk).into_iter().filter(is_wanted) {
        let source = match fact.source {
            Source::User => GridSource::User,
            _ if is_shown => GridSource::Shown,
            _ => GridSource::Stated,
        };
        if !grids.iter().any(|(grid, _)| *grid == fact.grid) {
            grids.push((fact.grid, source));
        }
    }
    grids
}

/// Partitions that begin off a grid themselves, or carry a layer that does; and the device, if it is such a layer.
fn explained(
    stack: &Stack,
    found: &[Finding],
    profile: &Profile,
    device: NodeId,
) -> BTreeSet<String> {
    let off: BTreeSet<NodeId> = about(found, &ABOUT_STARTS)
        .flat_map(|id| stack.under(id))
        .collect();
    let is_off = |name: &&String| stack.find(name).is_some_and(|id| off.contains(&id));
    let layer = (off.contains(&device) && !stack.is_leaf(device)).then(|| profile.device.clone());
    profile
        .partitions
        .keys()
        .filter(is_off)
        .cloned()
        .chain(layer)
        .collect()
}

/// The targets of findings of these rules.
fn about<'a>(found: &'a [Finding], rules: &'a [RuleId]) -> impl Iterator<Item = NodeId> + 'a {
    let mine = found
        .iter()
        .filter(move |finding| rules.contains(&finding.rule()));
    mine.filter_map(|finding| finding.target.node)
}
