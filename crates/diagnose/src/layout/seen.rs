//! What passed through a layer while its device was looked at, told beside what is wrong with the layer.
//!
//! I/O are counted where requests are made, by disk and by the partition that they were sent to. What came through a volume
//! above a partition is in the count of the partition.

use std::collections::HashMap;

use plumb_geometry::{Bytes, Grid, group_digits, plural};
use plumb_profile::fit::{FitTally, Select};
use plumb_profile::what_if;
use plumb_profile::{Places, Profile, ProfileSet};
use plumb_stack::{Kind, NodeId, Stack, Standing, Verdict};
use plumb_trace::{Layer, Op};

use super::context::Context;
use super::words;
use crate::finding::{Evidence, Finding};
use crate::rules::{latency_words, share_text};
use crate::share::Share;

/// Processes that are named.
const NAMED: usize = 3;

const MIB: f64 = 1_048_576.0;

/// What was counted of a disk or a partition.
#[derive(Clone, Copy)]
pub(super) struct Passed<'a> {
    profile: &'a Profile,
    /// The disk.
    disk: NodeId,
    /// `None` where nothing passed through the partition.
    places: Option<&'a Places>,
}

/// Nodes of which I/O were counted: the disks that were looked at and all of their partitions.
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

/// Adds to a finding about a start what the I/O through it show: how many are off for it, and what they took.
pub(super) fn explain(
    context: &Context<'_>,
    finding: Finding,
    device: NodeId,
    worst: &Standing,
) -> Finding {
    let way = worst
        .landing
        .via
        .iter()
        .copied()
        .filter(|id| *id != worst.landing.on || *id == device);
    let mut layers = std::iter::once(device).chain(way);
    let Some((id, seen)) = layers.find_map(|id| Some((id, context.passed.get(&id)?))) else {
        return finding;
    };
    let through = if id == device {
        "it".to_owned()
    } else {
        format!("{}, which it lies on,", context.name(id))
    };
    let Some(places) = seen
        .places
        .filter(|places| places.table.count(Select::DATA) > 0)
    else {
        return finding.explained(format!("no I/O through {through} seen{}", in_time(context)));
    };
    let grid = grid_on(context, seen.disk, worst);
    let Some((grid, tally)) =
        grid.and_then(|grid| Some((grid, places.table.fit(&grid, Select::DATA).ok()?)))
    else {
        return finding;
    };
    let share = Share::new(tally.misaligned, tally.ios);
    let finding = finding
        .with_evidence(counted(
            context,
            id,
            seen,
            "ios_unfit",
            share.part as f64,
            "ios",
        ))
        .with_evidence(counted(context, id, seen, "ios", share.whole as f64, "ios"))
        .explained(format!(
            "I/O through {through}{}: {}; {} start off the {} {} of {}",
            in_time(context),
            moved(places),
            share_text(share),
            worst.fact.granularity(),
            worst.fact.what.text(),
            context.name(worst.landing.on)
        ));
    let finding = with_latency(context, finding, (id, seen), places);
    let finding = after(finding, places, &grid, &tally, worst);
    // All I/O through one partition mostly stand alike, so the others of the disk are what to compare with.
    let finding = match seen.profile.places.table.latency_by_fit(&grid) {
        Ok(latency) if seen.profile.timed_ios() > 0 => finding.explained(latency_words(&latency)),
        _ => finding,
    };
    by_whom(context, finding, id)
}

/// Adds to any other finding what was seen of the device that it is about.
pub(super) fn tell(context: &Context<'_>, finding: &mut Finding) {
    let is_told = finding
        .evidence()
        .iter()
        .any(|evidence| matches!(evidence.name, "ios" | "ios_unfit"));
    let Some(id) = context
        .stack
        .find(&finding.target().device)
        .map(|id| context.device_of(id))
    else {
        return;
    };
    let Some(seen) = context.passed.get(&id).filter(|_| !is_told) else {
        return;
    };
    let Some(places) = seen.places.filter(|places| !places.table.is_empty()) else {
        let words = format!("no I/O through it seen{}", in_time(context));
        // A rule that looked has said so.
        if !finding.explanation().contains(&words) {
            finding.explain(words);
        }
        return;
    };
    let ios = places.table.count(Select::DATA);
    finding.add_evidence(counted(context, id, seen, "ios", ios as f64, "ios"));
    let took = mean_ns(places)
        .map(|ns| format!(", {:.1} µs each on average", ns / 1e3))
        .unwrap_or_default();
    finding.explain(format!(
        "I/O through it{}: {}{took}",
        in_time(context),
        moved(places)
    ));
}

/// ` in 10.0 s`; nothing where it is a profile of another time.
fn in_time(context: &Context<'_>) -> String {
    context
        .known
        .watch
        .as_ref()
        .map_or_else(String::new, |watch| format!(" in {:.1} s", watch.seconds))
}

/// The grid that a start is off, as it lies on the disk whose I/O were counted.
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

fn counted(
    context: &Context<'_>,
    id: NodeId,
    seen: &Passed<'_>,
    name: &'static str,
    value: f64,
    unit: &'static str,
) -> Evidence {
    let source = format!(
        "counted on {} ({} layer){}",
        context.name(id),
        seen.profile.layer.word(),
        in_time(context)
    );
    words::real(name, value, unit, source)
}

/// `211 reads and 101 writes, 2.4 MiB`.
fn moved(places: &Places) -> String {
    let table = &places.table;
    let some = |op, one: &str| plural(table.count(Select::op(op)), one);
    let data = table
        .iter()
        .filter(|(key, _)| matches!(key.op(), Op::Read | Op::Write));
    let units: u128 = data
        .map(|(key, row)| u128::from(key.length()) * u128::from(row.ios))
        .sum();
    let bytes = (units * u128::from(table.unit_bytes())) as f64;
    let (size, unit) = if bytes < MIB {
        (bytes / 1024.0, "KiB")
    } else {
        (bytes / MIB, "MiB")
    };
    format!(
        "{} and {}, {} {unit}",
        some(Op::Read, "read"),
        some(Op::Write, "write"),
        words::rate(size)
    )
}

/// Mean latency of what was timed, ns.
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

fn with_latency(
    context: &Context<'_>,
    finding: Finding,
    (id, seen): (NodeId, &Passed<'_>),
    places: &Places,
) -> Finding {
    match mean_ns(places) {
        Some(ns) => finding
            .with_evidence(counted(context, id, seen, "device_ns_mean", ns, "ns"))
            .explained(format!(
                "they took {:.1} µs each on average, from issue to completion",
                ns / 1e3
            )),
        None => finding,
    }
}

/// How many of these very I/O a start on the grid would leave off it.
fn after(
    finding: Finding,
    places: &Places,
    grid: &Grid,
    tally: &FitTally,
    worst: &Standing,
) -> Finding {
    let Verdict::Misaligned { by } = worst.verdict else {
        return finding;
    };
    let on_by = Bytes(worst.fact.granularity().0.saturating_sub(by.0));
    let shifted = i64::try_from(on_by.0)
        .ok()
        .map(|by| what_if::shifted(&places.table, grid, by, Select::DATA));
    let Some(Ok(then)) = shifted else {
        return finding;
    };
    let left = Share::new(then.misaligned, then.ios);
    let less = if then.misaligned < tally.misaligned {
        ""
    } else {
        ": it is not the start alone"
    };
    finding.explained(format!(
        "begun {} further on, {} of them would still start off it{less} (exact for these I/O)",
        words::place(on_by),
        share_text(left)
    ))
}

fn by_whom(context: &Context<'_>, finding: Finding, id: NodeId) -> Finding {
    let watch = context.known.watch.iter();
    let mine = watch
        .flat_map(|watch| &watch.senders)
        .filter(|one| context.stack.find(&one.device) == Some(id));
    let mut by_name: HashMap<&str, u64> = HashMap::new();
    mine.for_each(|one| *by_name.entry(&one.comm).or_default() += one.ios);
    let mut names: Vec<(&str, u64)> = by_name.into_iter().collect();
    names.sort_by_key(|(name, ios)| (std::cmp::Reverse(*ios), *name));
    if names.is_empty() {
        return finding;
    }
    let shown = names
        .iter()
        .take(NAMED)
        .map(|(name, ios)| format!("{name} {}", group_digits(*ios)));
    let more = if names.len() > NAMED {
        format!(" and {} more", names.len() - NAMED)
    } else {
        String::new()
    };
    finding.explained(format!(
        "sent by {}{more}",
        shown.collect::<Vec<_>>().join(", ")
    ))
}
