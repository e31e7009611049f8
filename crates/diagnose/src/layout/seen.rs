//! I/O that passed through a layer while its device was watched, beside the defect of the layer.
//!
//! I/O are counted at the request layer, by disk and by the partition that they were sent to. I/O through a volume
//! above a partition are in the count of the partition.

use std::collections::HashMap;

use plumb_geometry::{Bounds, Bytes, Grid, SmallSort};
use plumb_model::seen::{FitAfterMove, SeenFit, SentBy};
use plumb_model::{Facts, Finding, Seen};
use plumb_profile::fit::Select;
use plumb_profile::what_if;
use plumb_profile::{Places, Profile, ProfileSet};
use plumb_stack::{Kind, NodeId, Stack, Standing, Verdict};
use plumb_trace::{Layer, Op};

use super::context::Context;

/// Processes that are named.
const NAMED: usize = 3;

/// The counts of a disk or a partition.
#[derive(Clone, Copy)]
pub(super) struct Passed<'a> {
    profile: &'a Profile,
    /// The disk.
    disk: NodeId,
    /// `None` where nothing passed through the partition.
    places: Option<&'a Places>,
}

/// Nodes with counted I/O: the watched disks and all of their partitions.
pub(super) fn passed<'a>(
    stack: &Stack,
    profiles: Option<&'a ProfileSet>,
) -> HashMap<NodeId, Passed<'a>> {
    let mut passed = HashMap::new();
    let placed = profiles
        .into_iter()
        .flat_map(ProfileSet::iter)
        .filter(|one| one.layer != Layer::Vfs);
    for profile in placed {
        let Some(disk) = stack.find(&profile.device) else {
            continue;
        };
        passed.insert(
            disk,
            Passed {
                profile,
                disk,
                places: Some(&profile.places),
            },
        );
        for part in stack
            .above(disk)
            .iter()
            .filter(|id| stack.node(**id).kind == Kind::Partition)
        {
            let mut named = profile.partitions.iter();
            let mine = named
                .find(|(name, _)| stack.find(name) == Some(*part))
                .map(|(_, places)| places);
            passed.insert(
                *part,
                Passed {
                    profile,
                    disk,
                    places: mine,
                },
            );
        }
    }
    passed
}

/// I/O through a misaligned start: the number that is off because of it, and their latency. `None` if nothing was
/// watched.
pub(super) fn through(context: &Context<'_>, device: NodeId, worst: &Standing) -> Option<Seen> {
    let way = worst
        .landing
        .via
        .iter()
        .copied()
        .filter(|id| *id != worst.landing.on || *id == device);
    let mut layers = std::iter::once(device).chain(way);
    let (id, passed) = layers.find_map(|id| Some((id, context.passed.get(&id)?)))?;
    let seen = of_layer(context, (id, passed), id != device);
    let places = passed
        .places
        .filter(|places| places.table.count(Select::DATA) > 0);
    let Some(places) = places else {
        return Some(seen);
    };
    let (senders, more_senders) = senders(context, id);
    Some(Seen {
        fit: fit(context, passed, places, worst),
        senders,
        more_senders,
        ..seen
    })
}

/// Adds to any other finding the I/O that passed through its target.
pub(super) fn add(context: &Context<'_>, finding: &mut Finding) {
    // Findings about I/O have counts of their own.
    let is_counted = finding.seen.is_some() || counts_ios(finding);
    let Some(id) = finding.target.node.map(|id| context.device_of(id)) else {
        return;
    };
    if let Some(passed) = context.passed.get(&id).filter(|_| !is_counted) {
        finding.seen = Some(of_layer(context, (id, passed), false));
    }
}

fn counts_ios(finding: &Finding) -> bool {
    match &finding.facts {
        Facts::SplitIo(facts) => facts.counted.is_some(),
        Facts::ParitySmallWrites(facts) => facts.counted.is_some(),
        _ => false,
    }
}

/// The counts of a layer, without their fit.
fn of_layer(context: &Context<'_>, (id, passed): (NodeId, &Passed<'_>), is_below: bool) -> Seen {
    let count = |op| {
        passed
            .places
            .map_or(0, |places| places.table.count(Select::op(op)))
    };
    let watch = context.known.watch.as_ref();
    Seen {
        on: context.name(id).to_owned(),
        is_below,
        layer: passed.profile.layer,
        seconds: watch.map(|watch| watch.seconds),
        reads: count(Op::Read),
        writes: count(Op::Write),
        moved_bytes: passed.places.map_or(Bounds::exact(0), moved),
        mean_ns: passed.places.and_then(mean_ns),
        fit: None,
        senders: Vec::new(),
        more_senders: 0,
    }
}

/// The fit of the I/O on the grid that the layer is off; `None` if the table does not have it.
fn fit(
    context: &Context<'_>,
    passed: &Passed<'_>,
    places: &Places,
    worst: &Standing,
) -> Option<SeenFit> {
    let grid = grid_on(context, passed.disk, worst)?;
    let tally = places.table.fit(&grid, Select::DATA).ok()?;
    // All I/O through one partition mostly have the same fit, so the fitting ones of the disk are the comparison.
    let of_disk = &passed.profile.places.table;
    let latency = places.table.latency_by_fit_beside(of_disk, &grid).ok();
    Some(SeenFit {
        ios: tally.ios,
        misaligned: tally.misaligned,
        cells_ratio: tally.cells_ratio(),
        moved: after(places, &grid, worst),
        latency: latency.filter(|_| passed.profile.timed_ios() > 0),
    })
}

/// The grid that a start is off, on the disk whose I/O were counted.
fn grid_on(context: &Context<'_>, disk: NodeId, worst: &Standing) -> Option<Grid> {
    if disk == worst.landing.on {
        return Some(worst.fact.grid);
    }
    let same = |grid: &Grid| grid.granularity() == worst.fact.granularity();
    let mut through = context.stack.grids_through(disk).into_iter();
    through
        .find(|fact| fact.what == worst.fact.what && same(&fact.grid))
        .map(|fact| fact.grid)
}

/// Bytes read and written.
fn moved(places: &Places) -> Bounds<u64> {
    let table = &places.table;
    let data = table
        .iter()
        .filter(|(key, _)| matches!(key.op(), Op::Read | Op::Write));
    let mut bytes = Bounds::exact(0u64);
    for (key, row) in data {
        bytes.add(table.len_bytes(key).times(row.ios));
    }
    bytes
}

/// Mean latency of the timed I/O, ns.
fn mean_ns(places: &Places) -> Option<f64> {
    let (mut timed, mut sum) = (0, 0.0);
    for (key, row) in places.table.iter() {
        if matches!(key.op(), Op::Read | Op::Write) {
            timed += row.timed;
            sum += row.ns_sum as f64;
        }
    }
    (timed > 0).then(|| sum / timed as f64)
}

/// The same I/O, if the layer started on the grid.
fn after(places: &Places, grid: &Grid, worst: &Standing) -> Option<FitAfterMove> {
    let Verdict::Misaligned { by } = worst.verdict else {
        return None;
    };
    let up = Bytes(worst.fact.granularity().0.saturating_sub(by.0));
    let by = i64::try_from(up.0).ok()?;
    let then = what_if::shifted(&places.table, grid, by, Select::DATA).ok()?;
    Some(FitAfterMove {
        by_bytes: up,
        ios: then.ios,
        misaligned: then.misaligned,
    })
}

/// The processes that sent most, and the number of the others.
fn senders(context: &Context<'_>, id: NodeId) -> (Vec<SentBy>, u64) {
    let watch = context.known.watch.iter();
    let mine = watch
        .flat_map(|watch| &watch.senders)
        .filter(|one| context.stack.find(&one.device) == Some(id));
    let mut by_name: HashMap<&str, u64> = HashMap::new();
    mine.for_each(|one| *by_name.entry(&one.comm).or_default() += one.ios);
    let mut names: Vec<(&str, u64)> = by_name.into_iter().collect();
    names.small_sort_by_key(|(name, ios)| (std::cmp::Reverse(*ios), *name));
    let more = names.len().saturating_sub(NAMED) as u64;
    let named = names.into_iter().take(NAMED).map(|(comm, ios)| SentBy {
        comm: comm.to_owned(),
        ios,
    });
    (named.collect(), more)
}
