//! Whether the disk still has the label that the move has given it.

use std::ops::{Range, RangeInclusive};

use super::plan::{ByteChange, Plan};
use super::read::{holes_in, read_what_can_be};
use super::script::Script;
use super::{Move, MoveError, OnLoss};
use crate::DiskOffset;
use crate::disk::{Disk, JournalStore};
use crate::mutation::Mutation;

/// The content of label blocks after a number of its changes.
pub(super) struct LabelCourse<'a> {
    changes: Vec<&'a ByteChange<DiskOffset>>,
}

impl<'a> LabelCourse<'a> {
    /// All changes of a plan.
    pub(super) fn of_plan(plan: &'a Plan) -> Self {
        Self {
            changes: plan.hide.iter().chain(&plan.finish).collect(),
        }
    }

    /// The places of the label's changes, each once.
    pub(super) fn places(&self) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for change in &self.changes {
            let range = change.range();
            if !found.contains(&range) {
                found.push(range);
            }
        }
        found
    }

    /// Whether some change is about all bytes of a range.
    pub(super) fn has(&self, range: &Range<u64>) -> bool {
        let contains = |all: Range<u64>| all.start <= range.start && range.end <= all.end;
        self.changes.iter().any(|change| contains(change.range()))
    }

    /// The blocks of a range after the first `done` changes. Each byte belongs to some change: its value is the new one
    /// of the last change done, or else the old one of the first other.
    pub(super) fn after(&self, done: usize, range: &Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let (done, others) = self.changes.split_at(done);
        let put = others
            .iter()
            .rev()
            .map(|change| (change.range(), &change.old));
        for (their, image) in put.chain(done.iter().map(|change| (change.range(), &change.new))) {
            let (start, end) = (range.start.max(their.start), range.end.min(their.end));
            if start < end {
                let (here, there) = (
                    (start - range.start) as usize,
                    (start - their.start) as usize,
                );
                let len = (end - start) as usize;
                bytes[here..here + len].copy_from_slice(&image[there..there + len]);
            }
        }
        bytes
    }
}

/// Of how many of the label's changes, those that hide and then those that finish, the disk can show the outcome. On the way
/// back the label may be the one that was before, with which it ends.
fn changes_done(
    plan: &Plan,
    script: &Script,
    next: u64,
    turns_back: bool,
) -> RangeInclusive<usize> {
    let (hide, all) = (plan.hide.len(), plan.hide.len() + plan.finish.len());
    if script.is_back() {
        // It begins with the changes that had finished the move, if there were any.
        return 0..=if script.is_in_head(next) { all } else { hide };
    }
    let done = script.label_changes_before(next);
    if turns_back { 0..=done } else { done..=done }
}

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Before the first write the label must be the result of the earlier steps. Otherwise somebody has written another
    /// one, or it is another disk. Blocks that a pending image is about to overwrite are not compared: they may be
    /// torn. Unreadable blocks are not compared either, and return with the next change of the label; but one copy has
    /// to be complete.
    pub(super) fn must_be_its_label(&mut self, turns_back: bool) -> Result<(), MoveError> {
        let (plan, next) = (&self.state.plan, self.state.next);
        self.must_be_label_after(changes_done(plan, &self.script, next, turns_back))
    }

    /// At the end of a rollback the label has to be the old one.
    pub(super) fn must_be_final_label(&mut self) -> Result<(), MoveError> {
        match self.script.is_back() {
            true => self.must_be_label_after(0..=0),
            false => self.must_be_its_label(false),
        }
    }

    fn must_be_label_after(&mut self, done: RangeInclusive<usize>) -> Result<(), MoveError> {
        if self.mutations.has(Mutation::LabelFirst) {
            return Ok(());
        }
        let Self { disk, state, .. } = self;
        let plan = &state.plan;
        let course = LabelCourse::of_plan(plan);
        let block = u64::from(plan.logical_block_bytes);
        let (mut whole, mut unreadable) = (0, None);
        for Range { start, end } in course.places() {
            let (found, holes) = read_what_can_be(disk, start, (end - start) as usize, plan)?;
            let images: Vec<Vec<u8>> = done
                .clone()
                .map(|done| course.after(done, &(start..end)))
                .collect();
            let mut has_hole = false;
            for (at, found) in (start..end)
                .step_by(block as usize)
                .zip(found.chunks(block as usize))
            {
                let range = at..at + found.len() as u64;
                if state.is_being_written(&range) {
                    continue;
                }
                if !holes_in(&holes, &range).is_empty() {
                    has_hole = true;
                    unreadable.get_or_insert(at);
                    continue;
                }
                let here = (at - start) as usize..(range.end - start) as usize;
                if !images.iter().any(|image| image[here.clone()] == *found) {
                    return Err(MoveError::Changed { at });
                }
            }
            whole += u32::from(!has_hole);
        }
        match unreadable {
            Some(at) if whole == 0 && self.on_loss == OnLoss::Stop => {
                Err(MoveError::LabelUnreadable { at })
            }
            _ => Ok(()),
        }
    }
}
