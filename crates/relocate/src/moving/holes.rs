//! The replacement of unreadable blocks, and the owner of the loss.

use std::ops::Range;

use super::edit;
use super::label::LabelCourse;
use super::loss::{LossKind, LostRange, OnLoss, covers, joined};
use super::read::common;
use super::script::{Action, PartitionPlace};
use super::{Move, MoveError, Stage};
use crate::PartOffset;
use crate::disk::{Disk, JournalStore};
use crate::journal::{JournalRecord, LossStep};
use crate::marker;
use crate::mutation::Mutation;

/// The content of a block beside the bytes of a step.
enum Beside {
    /// A part of the label or of a signature, or a neighbour of them in a block that was written: the plan or the journal has it.
    Known(Vec<u8>),
    /// A byte of the partition that is nowhere else, counted from its first.
    Partition(u64),
    /// Nothing that is needed.
    Free,
    /// Bytes of a neighbour, perhaps.
    Foreign,
}

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Fills holes in `blocks`; `written` will be overwritten. Returns the loss of the partition.
    ///
    /// # Errors
    /// When somebody else would lose something.
    pub(super) fn fill_holes(
        &self,
        blocks: &Range<u64>,
        bytes: &mut [u8],
        holes: &[Range<u64>],
        written: &Range<u64>,
    ) -> Result<Vec<LostRange>, MoveError> {
        let block = u64::from(self.state.plan.logical_block_bytes);
        let mut lost = Vec::new();
        for at in holes
            .iter()
            .flat_map(|hole| hole.clone().step_by(block as usize))
        {
            let range = at..at + block;
            if common(&range, written).as_ref() == Some(&range) {
                continue;
            }
            let here = &mut bytes[(at - blocks.start) as usize..][..block as usize];
            match self.beside(&range) {
                Beside::Known(known) => here.copy_from_slice(&known),
                Beside::Partition(start) => lost.push(LostRange {
                    range: start..start + block,
                    kind: LossKind::Unreadable,
                }),
                Beside::Free => {}
                Beside::Foreign => return Err(MoveError::Bystander { at, len: block }),
            }
        }
        Ok(joined(lost))
    }

    fn beside(&self, block: &Range<u64>) -> Beside {
        let plan = &self.state.plan;
        let known = self.label_bytes(block);
        if let Some(known) = known.or_else(|| self.signature_bytes(block)) {
            return Beside::Known(known);
        }
        if let Some(at) = self.needed(block.start) {
            return Beside::Partition(at);
        }
        // Between the two places there is nothing that the label knows, and perhaps a boot loader.
        let is_own = |place: &Range<u64>| common(block, place).as_ref() == Some(block);
        if [plan.old_place(), plan.new_place()].iter().any(is_own) {
            return Beside::Free;
        }
        // An earlier edit wrote it with its own bytes, and nobody else writes it during the move.
        let recorded = self.state.recorded_bytes(block);
        recorded.map_or(Beside::Foreign, Beside::Known)
    }

    /// The bytes of the label there at this step, as far as known.
    fn label_bytes(&self, block: &Range<u64>) -> Option<Vec<u8>> {
        let course = LabelCourse::of_plan(&self.state.plan);
        let stage = self.script.stage(self.state.next);
        let done = match (self.script.is_back(), stage) {
            (false, _) => self.script.label_changes_before(self.state.next),
            (true, Stage::Copying) => self.state.plan.hide.len(),
            (true, _) => return None,
        };
        course.has(block).then(|| course.after(done, block))
    }

    /// The bytes of a signature there at this step: itself, or markers.
    pub(super) fn signature_bytes(&self, block: &Range<u64>) -> Option<Vec<u8>> {
        let plan = &self.state.plan;
        let (place, start) = match (self.script.is_back(), self.script.stage(self.state.next)) {
            (false, Stage::Hiding | Stage::Copying) => (PartitionPlace::Old, plan.from),
            (false, _) | (true, Stage::Hiding) => (PartitionPlace::New, plan.to),
            (true, _) => (PartitionPlace::Old, plan.from),
        };
        let PartOffset(offset) = start.offset_of(block.start)?;
        if place == PartitionPlace::Old && !self.script.is_back() && self.is_noted(offset) {
            return None;
        }
        let index = plan
            .signatures
            .iter()
            .position(|range| range.contains(&offset))?;
        let range = &plan.signatures[index];
        let bytes = match self.is_shown(index, place) {
            true => edit::revealed(plan, &self.state.saved, index, place)?,
            false => marker::fill(plan, range.end - range.start),
        };
        let here = (offset - range.start) as usize;
        let len = (block.end - block.start) as usize;
        bytes.get(here..here + len).map(<[u8]>::to_vec)
    }

    /// Whether a signature is not hidden after the steps so far.
    fn is_shown(&self, index: usize, place: PartitionPlace) -> bool {
        let done = self.script.edits_before(self.state.next);
        let shown = done.filter_map(|action| match action {
            Action::Hide {
                signature,
                place: at,
            } if (*signature, *at) == (index, place) => Some(false),
            Action::Reveal {
                signature,
                place: at,
            } if (*signature, *at) == (index, place) => Some(true),
            _ => None,
        });
        // A move finds it shown at the old place, and a rollback if the move had not hidden it yet.
        let is_found_shown = || match self.script.is_back() {
            false => true,
            true => !self.script.reveals(index, PartitionPlace::Old),
        };
        shown
            .last()
            .unwrap_or_else(|| place == PartitionPlace::Old && is_found_shown())
    }

    /// The byte of the partition that is at this byte of the disk, if it is nowhere else or has to stay there.
    pub(super) fn needed(&self, at: u64) -> Option<u64> {
        let plan = &self.state.plan;
        let old = plan.old_place().contains(&at).then(|| at - plan.from.0);
        let new = plan.new_place().contains(&at).then(|| at - plan.to.0);
        let put_back = self.script.windows().place();
        let goes_back = |offset: &u64| put_back.contains(&(offset + plan.from.0));
        match (self.script.is_back(), self.script.stage(self.state.next)) {
            (false, Stage::Hiding) => old,
            // Beside a window of the move is the data of earlier windows.
            (false, Stage::Copying) => old.filter(|offset| !self.is_noted(*offset)),
            (false, _) => new,
            (true, Stage::Hiding) => new
                .filter(goes_back)
                .or(old.filter(|offset| !goes_back(offset))),
            (true, _) => old,
        }
    }

    /// Whether a window with this byte of the partition was copied, or was about to be.
    fn is_noted(&self, offset: u64) -> bool {
        let (noted, len) = (
            self.forward.bytes_after(self.state.moved.len() as u64).0,
            self.state.plan.len,
        );
        match self.state.plan.to < self.state.plan.from {
            true => offset < noted,
            false => offset >= len - noted,
        }
    }

    /// Whether bytes of either place were lost, in this direction or before the move turned back: their content then belongs to
    /// no owner.
    pub(super) fn is_lost(&self, range: &Range<u64>) -> bool {
        let (plan, lost) = (&self.state.plan, self.state.ever_lost());
        [plan.from, plan.to].into_iter().any(|start| {
            lost.iter().any(|lost| {
                let there = start.of_partition(&lost.range);
                common(&there, range).is_some()
            })
        })
    }

    /// Whether a loss may be: it was accepted, now or before. Then it is in the journal when this returns. Kept losses stay;
    /// this call replaces those of a step.
    ///
    /// # Errors
    /// [`MoveError::Lost`] when nobody has accepted it.
    pub(super) fn must_be_accepted(
        &mut self,
        step: LossStep,
        mut lost: Vec<LostRange>,
    ) -> Result<(), MoveError> {
        if self.mutations.has(Mutation::SilentLoss) {
            return Ok(());
        }
        let noted = self.state.lost_by(step);
        let is_noted = lost.iter().all(|lost| covers(noted, &lost.range));
        let stays = step.number == LossStep::KEPT;
        if is_noted && (!lost.is_empty() || noted.is_empty() || stays) {
            return Ok(());
        }
        let all = self.state.lost();
        let is_accepted = lost.iter().all(|lost| covers(&all, &lost.range));
        if !is_accepted && self.on_loss == OnLoss::Stop {
            return Err(MoveError::Lost { ranges: lost });
        }
        if stays {
            lost.extend_from_slice(noted);
            lost = joined(lost);
        }
        self.note_lost(step, lost)
    }

    /// Records a loss in the journal, and replaces the earlier record of the step.
    pub(super) fn note_lost(
        &mut self,
        step: LossStep,
        lost: Vec<LostRange>,
    ) -> Result<(), MoveError> {
        if !self.mutations.has(Mutation::NoLossRecord) {
            self.journal.append_durable(&JournalRecord::Lost {
                step,
                ranges: lost.clone(),
            })?;
        }
        self.state.note_lost(step, lost);
        Ok(())
    }

    /// For losses that no later step may take back: they stay where they are.
    pub(super) fn kept_step(&self) -> LossStep {
        if self.mutations.has(Mutation::LossOfNextStep) {
            return self.loss_step(0);
        }
        LossStep {
            number: LossStep::KEPT,
            is_of_move: !self.script.is_back(),
        }
    }

    /// The step that comes next, as losses are noted of it.
    pub(super) fn loss_step(&self, behind: u64) -> LossStep {
        LossStep {
            number: self.state.next + behind,
            is_of_move: !self.script.is_back(),
        }
    }
}
