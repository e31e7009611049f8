//! Remedies that are recommended, applied: the finding is gone, nothing is worse, and no data are destroyed that may be there.
//!
//! The advisor proves its remedies on the part of a stack that is connected with the target. Here they are applied to the whole
//! stack, one by one, and the whole is judged again; starts are held against arithmetic of their own.

mod examples;
mod fixtures;
mod generated;

use plumb_diagnose::Diagnosis;
use plumb_diagnose::layout::{Known, diagnose};
use plumb_geometry::Bytes;
use plumb_model::{Action, Applied, Class, Effect, Finding, Severity, apply};
use plumb_plan::Wishes;
use plumb_plan::recommend::{Circumstances, recommend};
use plumb_stack::fold::Phase;
use plumb_stack::{CellKind, Kind, NodeId, Placing, Stack};

/// The results of all rules and of the advisor for a stack without known empty places.
fn advised(stack: &Stack, page: Option<Bytes>) -> Diagnosis {
    let known = Known {
        page,
        ..Known::default()
    };
    let mut diagnosis = diagnose(stack, &known, None);
    let circumstances = Circumstances {
        known: &known,
        profiles: None,
        wishes: Wishes {
            page,
            ..Wishes::default()
        },
        is_known_empty: &|_| false,
        is_image: false,
    };
    recommend(stack, &circumstances, &mut diagnosis);
    diagnosis
}

/// How many remedies were recommended, and everything that is wrong with them.
fn violations(stack: &Stack, page: Option<Bytes>, before: &Diagnosis) -> (u64, Vec<String>) {
    let known = Known {
        page,
        ..Known::default()
    };
    let (mut recommended, mut wrong) = (0, Vec::new());
    for finding in &before.findings {
        let Some(remedy) = finding.recommended() else {
            assert!(
                finding.fix.is_empty(),
                "commands without a remedy: {finding:?}"
            );
            continue;
        };
        recommended += 1;
        let about = format!("{} of {}", finding.rule(), finding.target.device);
        let destroys = |action: &Action| action.effect() == Effect::DestroysData;
        if remedy.actions.iter().any(destroys) {
            wrong.push(format!("{about}: data may be there: {:?}", remedy.actions));
        }
        let applied = match apply(stack, &remedy.actions) {
            Ok(applied) => applied,
            Err(why) => {
                wrong.push(format!("{about}: {why:?}: {:?}", remedy.actions));
                continue;
            }
        };
        let after = diagnose(&applied.stack, &known, None);
        wrong.extend(
            worse(finding, before, &after, &applied)
                .into_iter()
                .chain(off_block(&applied, &remedy.actions))
                .map(|why| format!("{about}: {why} after {:?}", remedy.actions)),
        );
    }
    (recommended, wrong)
}

/// The part of the finding that remains, or is worse elsewhere.
fn worse(
    finding: &Finding,
    before: &Diagnosis,
    after: &Diagnosis,
    applied: &Applied,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let count = |all: &Diagnosis, like: &Finding, least: Severity| {
        let same = |one: &&Finding| {
            one.rule() == like.rule()
                && one.target.node == like.target.node
                && one.severity >= least
        };
        all.findings.iter().filter(same).count()
    };
    for found in &after.findings {
        let is_emptied = found
            .target
            .node
            .is_some_and(|id| applied.emptied.contains(&id));
        let is_own = found.rule() == finding.rule() && found.target.node == finding.target.node;
        if is_own {
            wrong.push("the finding remains".to_owned());
        } else if !is_emptied
            && found.severity >= finding.severity
            && count(after, found, found.severity) > count(before, found, found.severity)
        {
            wrong.push(format!("new: {} of {}", found.rule(), found.target.device));
        }
    }
    let grid_assumed = matches!(
        finding.recommended().map(|remedy| &remedy.class),
        Some(Class::Proven { rests_on: Some(_) })
    );
    let is_unknown = after
        .unknown
        .iter()
        .any(|one| one.rule == finding.rule() && one.target.node == finding.target.node);
    let is_emptied = finding
        .target
        .node
        .is_some_and(|id| applied.emptied.contains(&id));
    if is_unknown && !grid_assumed && !is_emptied {
        wrong.push("nobody can tell whether it remains".to_owned());
    }
    wrong
}

/// A partition on a disk that was moved for its own sake starts on the physical block of the disk, by plain division.
fn off_block(applied: &Applied, actions: &[Action]) -> Option<String> {
    let [
        Action::Move {
            partition,
            to_bytes,
        },
    ] = actions
    else {
        return None;
    };
    let disk = partition.disk.node.0?;
    let node = applied.stack.node(disk);
    let only_data = applied.stack.above(partition.node.0?).is_empty();
    let block = node
        .grids
        .iter()
        .find(|fact| fact.what == CellKind::PhysicalBlock && fact.is_believed())?;
    let past = (to_bytes.0 + block.granularity().0 - block.grid.offset().0) % block.granularity().0;
    (node.kind == Kind::Disk && only_data && past != 0)
        .then(|| format!("byte {to_bytes} is {past} past a block"))
}

/// The first place of a node on the layer at the bottom, modulo a unit.
fn past(stack: &Stack, name: &str, unit: u64) -> Vec<u64> {
    let id = stack.find(name).expect("a node of that name");
    let grid = plumb_geometry::Grid::unit(Bytes(unit)).expect("a unit");
    let landings = stack.landings(id);
    let leaves = landings.all.iter().filter(|one| stack.is_leaf(one.on));
    leaves
        .filter_map(|one| match one.phase(&grid) {
            Phase::Past(past) => Some(past.0),
            Phase::Varies(_) => None,
        })
        .collect()
}

/// The chunk of a striped node.
fn chunk(stack: &Stack, id: NodeId) -> Option<Bytes> {
    match &stack.node(id).placing {
        Placing::Chunks(chunks) => Some(chunks.chunk),
        _ => None,
    }
}
