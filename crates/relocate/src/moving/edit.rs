//! Steps that change a few bytes: the bytes, and the allowed former content.

use std::ops::Range;

use super::plan::{ByteChange, Plan, meet};
use super::read::holes_in;
use super::script::{Action, LabelChange, PartitionPlace};
use crate::DiskOffset;
use crate::marker;

/// Bytes to be put somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Their position on the disk.
    pub(crate) at: u64,
    /// Their content.
    pub(crate) bytes: Vec<u8>,
    /// Other allowed former content, if that matters.
    pub(crate) before: Option<Vec<u8>>,
}

impl Edit {
    /// The blocks that are written with it.
    pub(crate) fn blocks(&self, plan: &Plan) -> Range<u64> {
        let end = self.at + self.bytes.len() as u64;
        plan.unit.cover(&(self.at..end), plan.disk_bytes)
    }

    /// Whether it may overwrite the content found. Unreadable blocks do not forbid it, and are written next.
    pub(crate) fn fits(&self, found: &[u8], holes: &[Range<u64>]) -> bool {
        let own = self.at..self.at + self.bytes.len() as u64;
        let holes = holes_in(holes, &own);
        let is_it = |expected: &[u8]| {
            let mut expected = expected.to_vec();
            for hole in &holes {
                let here = (hole.start - own.start) as usize..(hole.end - own.start) as usize;
                expected[here.clone()].copy_from_slice(&found[here]);
            }
            expected == found
        };
        self.before.as_deref().is_none_or(is_it) || is_it(&self.bytes)
    }
}

fn change(plan: &Plan, which: LabelChange, index: usize) -> Option<&ByteChange<DiskOffset>> {
    match which {
        LabelChange::Hide => plan.hide.get(index),
        LabelChange::Finish => plan.finish.get(index),
    }
}

fn start(plan: &Plan, place: PartitionPlace) -> DiskOffset {
    match place {
        PartitionPlace::Old => plan.from,
        PartitionPlace::New => plan.to,
    }
}

/// The bytes of the disk that a step changes; `None` for a window.
pub(crate) fn range(plan: &Plan, action: &Action) -> Option<Range<u64>> {
    match action {
        Action::Label { which, index, .. } => change(plan, *which, *index).map(ByteChange::range),
        Action::Hide { signature, place } | Action::Reveal { signature, place } => plan
            .signatures
            .get(*signature)
            .map(|range| start(plan, *place).of_partition(range)),
        Action::FixUp { index, .. } => plan
            .fix_ups
            .get(*index)
            .map(|fix_up| fix_up.range_on_disk(plan.to)),
        Action::Wipe(range) | Action::Mark(range) => Some(range.clone()),
        Action::Window(_) => None,
    }
}

/// Makes the edit of a step; `None` for a window.
pub(crate) fn for_action(plan: &Plan, saved: &[Vec<u8>], action: &Action) -> Option<Edit> {
    let range = range(plan, action)?;
    let edit = |bytes| Edit {
        at: range.start,
        bytes,
        before: None,
    };
    Some(match action {
        Action::Label { which, index, undo } => {
            turned(range.start, change(plan, *which, *index)?, *undo)
        }
        Action::FixUp { index, undo } => turned(range.start, plan.fix_ups.get(*index)?, *undo),
        Action::Hide { signature, place } => {
            // Any other content than this and a marker means that the partition was used since.
            let before = revealed(plan, saved, *signature, *place);
            Edit {
                before,
                ..edit(marker::fill(plan, range.end - range.start))
            }
        }
        Action::Reveal { signature, place } => edit(revealed(plan, saved, *signature, *place)?),
        Action::Mark(_) => edit(marker::fill(plan, range.end - range.start)),
        Action::Wipe(_) => edit(vec![0; usize::try_from(range.end - range.start).ok()?]),
        Action::Window(_) => return None,
    })
}

fn turned<At>(at: u64, change: &ByteChange<At>, undo: bool) -> Edit {
    let (bytes, before) = if undo {
        (&change.old, &change.new)
    } else {
        (&change.new, &change.old)
    };
    Edit {
        at,
        bytes: bytes.clone(),
        before: Some(before.clone()),
    }
}

/// The signature at one of the two places.
pub(crate) fn revealed(
    plan: &Plan,
    saved: &[Vec<u8>],
    signature: usize,
    place: PartitionPlace,
) -> Option<Vec<u8>> {
    let (range, mut bytes) = (
        plan.signatures.get(signature)?,
        saved.get(signature)?.clone(),
    );
    if place == PartitionPlace::New {
        for fix_up in plan
            .fix_ups
            .iter()
            .filter(|fix_up| meet(range, &fix_up.range_in_partition()))
        {
            let at = usize::try_from(fix_up.at.0.checked_sub(range.start)?).ok()?;
            bytes
                .get_mut(at..at + fix_up.new.len())?
                .copy_from_slice(&fix_up.new);
        }
    }
    Some(bytes)
}
