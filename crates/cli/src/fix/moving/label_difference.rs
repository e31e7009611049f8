//! Changes in the label of a disk during an incomplete move, which have to be undone before it continues.

use plumb_geometry::{Bytes, SECTOR};
use plumb_label::{Label, Partition};
use plumb_relocate::labels::{Change, ChangeStep};
use plumb_relocate::{DiskOffset, Stage, Status, moving};
use plumb_report::format::count;

use crate::fix::subject::Subject;

/// Partitions that are not as the move left them, in words; none where one of the two labels cannot be read.
pub fn differences(status: &Status, subject: &Subject) -> Vec<String> {
    let step = |change: &moving::ByteChange<DiskOffset>| ChangeStep::Write {
        at: Bytes(change.at.0),
        old: change.old.clone(),
        new: change.new.clone(),
    };
    let left = Change::from_steps(left(status).iter().map(step)).ok();
    let expected = left.and_then(|left| subject.label_after(&left, None).ok().flatten());
    match (subject.label().ok().flatten(), expected) {
        (Some(found), Some(expected)) => between(&found, &expected),
        _ => Vec::new(),
    }
}

/// Whether the label is the one of before the move.
pub fn is_old(status: &Status, subject: &Subject) -> bool {
    status.plan.hide.iter().all(|change| {
        let mut found = vec![0; change.old.len()];
        plumb_label::Disk::read_at(&subject.raw(), change.at.0, &mut found).is_ok()
            && found == change.old
    })
}

/// The changes that make the label that the move has left, in the parts that it writes.
fn left(status: &Status) -> Vec<moving::ByteChange<DiskOffset>> {
    let plan = &status.plan;
    match (status.progress.is_back, status.progress.stage) {
        (false, Stage::Hiding) | (true, Stage::Verifying | Stage::Done) => plan
            .hide
            .iter()
            .map(|change| moving::ByteChange {
                new: change.old.clone(),
                ..change.clone()
            })
            .collect(),
        (false, Stage::Verifying | Stage::Done) => plan.finish.clone(),
        _ => plan.hide.clone(),
    }
}

fn between(found: &Label, expected: &Label) -> Vec<String> {
    let of = |label: &Label, part: &Partition| {
        label
            .partitions
            .iter()
            .find(|other| other.id == part.id)
            .cloned()
    };
    let known = expected
        .partitions
        .iter()
        .map(|part| (part.id, of(found, part), Some(part.clone())));
    let new = found
        .partitions
        .iter()
        .filter(|part| of(expected, part).is_none());
    let all = known.chain(new.map(|part| (part.id, Some(part.clone()), None)));
    let differ =
        all.filter(|(_, found, expected)| facts(found.as_ref()) != facts(expected.as_ref()));
    let words = |part: Option<&Partition>| part.map_or_else(|| "none".to_owned(), place);
    differ
        .map(|(id, found, expected)| match (&found, &expected) {
            (Some(one), Some(other)) if one.extent == other.extent => {
                format!("{id}: found another type than the move left there")
            }
            _ => format!(
                "{id}: found {}, expected {}",
                words(found.as_ref()),
                words(expected.as_ref())
            ),
        })
        .collect()
}

/// The compared facts of a partition.
fn facts(part: Option<&Partition>) -> Option<(plumb_geometry::Extent, plumb_label::PartitionType)> {
    part.map(|part| (part.extent, part.kind))
}

fn place(part: &Partition) -> String {
    let (start, end) = (part.extent.start().0 / SECTOR, part.extent.end().0 / SECTOR);
    format!(
        "sectors {} to {}",
        count(start),
        count(end.saturating_sub(1))
    )
}
