//! The state of a move, computed from every record of its journal.

use std::ops::Range;

use super::record::{Ending, Image, JournalRecord, LossStep, Turn};
use crate::moving::edit;
use crate::moving::loss::{covers, joined, without};
use crate::moving::plan::{Plan, meet};
use crate::moving::script::Script;
use crate::moving::{LossKind, LostRange};
use crate::mutation::{Mutation, Mutations};

/// A recorded image without a record of its write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingImage {
    pub(crate) at: u64,
    pub(crate) image: Image,
}

/// Windows that were noted before they were written: some of them may be, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unproven {
    /// Whether the journal's slot has, or had, all their data.
    pub(crate) is_saved: bool,
    /// Sums of the data of step `next` and those behind it.
    pub(crate) sums: Vec<u64>,
}

/// A unit that is written again, out of the order of steps, without a record of its write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingMend {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The data that a step could not copy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StepLoss {
    step: LossStep,
    ranges: Vec<LostRange>,
}

/// The state of a move.
#[derive(Debug)]
pub(crate) struct MoveState {
    pub(crate) plan: Plan,
    /// The original signatures, in the plan's order.
    pub(crate) saved: Vec<Vec<u8>>,
    /// The script in progress; `None` before the move began.
    pub(crate) script: Option<Script>,
    /// Steps of it that were written, for sure.
    pub(crate) next: u64,
    /// The image of step `next`, to be written first.
    pub(crate) pending: Option<PendingImage>,
    /// Those behind them that may have been.
    pub(crate) unproven: Option<Unproven>,
    /// Units that edits of this script have written for sure: the step, the place, and the bytes.
    pub(crate) images: Vec<(u64, u64, Vec<u8>)>,
    /// Blocks of edits in either direction, as they were about to be written, the latest last.
    recorded: Vec<(u64, Vec<u8>)>,
    /// The unit that has to be written again first.
    pub(crate) mend: Option<PendingMend>,
    /// How many units were written again.
    pub(crate) mends: u64,
    /// Sums of the data that each window of the move wrote, or was about to.
    pub(crate) moved: Vec<u64>,
    /// How many windows of the move were written when it turned back.
    pub(crate) copied: u64,
    losses: Vec<StepLoss>,
    /// Losses that a rollback has undone: their blocks at the old place stay as unreadable as the move found them.
    undone: Vec<LostRange>,
    pub(crate) ending: Option<Ending>,
}

/// The expected kind of record.
type Expected = &'static str;

impl MoveState {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            saved: Vec::new(),
            script: None,
            next: 0,
            pending: None,
            unproven: None,
            images: Vec::new(),
            recorded: Vec::new(),
            mend: None,
            mends: 0,
            moved: Vec::new(),
            copied: 0,
            losses: Vec::new(),
            undone: Vec::new(),
            ending: None,
        }
    }

    pub(super) fn fold(
        &mut self,
        record: JournalRecord,
        mutations: Mutations,
    ) -> Result<(), Expected> {
        if self.ending.is_some() {
            return Err("nothing behind the end");
        }
        self.mend = None;
        match (record, &self.script) {
            (JournalRecord::Saved { signature, bytes }, None) => self.save(signature, bytes),
            (JournalRecord::Turn(turn), _) => self.turn(turn, mutations),
            (JournalRecord::Image { step, at, image }, Some(script)) => {
                if step != self.end_of_unproven() || step >= script.len() || self.pending.is_some()
                {
                    return Err("an image of the next step");
                }
                self.must_be_image_of(script, step, at, &image)?;
                if let (true, Image::Inline(bytes)) = (self.is_edit(step), &image) {
                    self.record_blocks(at, bytes);
                }
                (self.next, self.unproven) = (step, None);
                self.pending = Some(PendingImage { at, image });
                Ok(())
            }
            (JournalRecord::Written { step, moved }, Some(_)) => self.written(step, moved),
            (
                JournalRecord::Windows {
                    step,
                    is_saved,
                    sums,
                },
                Some(_),
            ) => self.windows(step, is_saved, sums),
            (JournalRecord::Lost { step, ranges }, Some(script)) => {
                let is_possible = ranges
                    .iter()
                    .all(|lost| !lost.range.is_empty() && lost.range.end <= self.plan.len);
                if !is_possible || (!step.is_of_move && !script.is_back()) {
                    return Err("ranges of the partition");
                }
                self.note_lost(step, ranges);
                Ok(())
            }
            (JournalRecord::Mend { at, bytes }, Some(_)) => self.mend(at, bytes),
            (JournalRecord::End(ending), Some(_)) => {
                self.ending = Some(ending);
                Ok(())
            }
            _ => Err("a record that is possible here"),
        }
    }

    /// An image has exactly the blocks of its step; and if it changes a few bytes of them, these bytes.
    fn must_be_image_of(
        &self,
        script: &Script,
        step: u64,
        at: u64,
        image: &Image,
    ) -> Result<(), Expected> {
        if let Some(index) = script.window_at(step) {
            let window = script.windows().get(index);
            let window = window.filter(|window| window.is_journalled);
            let is_its = window
                .is_some_and(|window| window.blocks == (at..at.saturating_add(image.len_bytes())));
            return if is_its {
                Ok(())
            } else {
                Err("an image of the blocks of its window")
            };
        }
        let edit = script
            .get(step)
            .and_then(|action| edit::for_action(&self.plan, &self.saved, &action));
        let (Some(edit), Image::Inline(bytes)) = (edit, image) else {
            return Err("an image in a record, of a step that writes one");
        };
        let blocks = edit.blocks(&self.plan);
        if (at, image.len_bytes()) != (blocks.start, blocks.end - blocks.start) {
            return Err("an image of the blocks of its step");
        }
        let start = (edit.at - blocks.start) as usize;
        match bytes.get(start..start + edit.bytes.len()) == Some(&edit.bytes[..]) {
            true => Ok(()),
            false => Err("an image with the bytes of its step"),
        }
    }

    /// One unit, of either place or of the label.
    fn mend(&mut self, at: u64, bytes: Vec<u8>) -> Result<(), Expected> {
        let (plan, len) = (&self.plan, bytes.len() as u64);
        let end = at
            .checked_add(len)
            .filter(|end| (1..=plan.unit.bytes).contains(&len) && *end <= plan.disk_bytes);
        let is_unit =
            end.is_some_and(|end| plan.unit.cover(&(at..at + 1), plan.disk_bytes) == (at..end));
        let label = plan.hide.iter().chain(&plan.finish);
        let is_own = label
            .map(|change| change.range())
            .chain([plan.old_place(), plan.new_place()])
            .any(|place| meet(&place, &(at..at.saturating_add(len))));
        if !is_unit || !is_own {
            return Err("a unit of either place or of the label");
        }
        self.mend = Some(PendingMend { at, bytes });
        self.mends += 1;
        Ok(())
    }

    /// Whether a block of a range was being written, and may be torn.
    pub(crate) fn is_being_written(&self, range: &Range<u64>) -> bool {
        let pending = self.pending.as_ref();
        let image = pending.map(|image| image.at..image.at + image.image.len_bytes());
        let mend = self.mend.as_ref();
        let mend = mend.map(|mend| mend.at..mend.at + mend.bytes.len() as u64);
        [image, mend]
            .into_iter()
            .flatten()
            .any(|blocks| meet(&blocks, range))
    }

    /// Keeps the content of blocks that an edit is about to write.
    pub(crate) fn record_blocks(&mut self, at: u64, bytes: &[u8]) {
        self.recorded.retain(|(other, _)| *other != at);
        self.recorded.push((at, bytes.to_vec()));
    }

    /// The last recorded content of a block.
    pub(crate) fn recorded_bytes(&self, block: &Range<u64>) -> Option<Vec<u8>> {
        self.recorded.iter().rev().find_map(|(at, bytes)| {
            let start = usize::try_from(block.start.checked_sub(*at)?).ok()?;
            let len = usize::try_from(block.end - block.start).ok()?;
            bytes
                .get(start..start.checked_add(len)?)
                .map(<[u8]>::to_vec)
        })
    }

    /// Replaces the earlier losses of that step.
    pub(crate) fn note_lost(&mut self, step: LossStep, ranges: Vec<LostRange>) {
        self.losses.retain(|loss| loss.step != step);
        if !ranges.is_empty() {
            self.losses.push(StepLoss { step, ranges });
        }
    }

    /// The recorded losses of a step.
    pub(crate) fn lost_by(&self, step: LossStep) -> &[LostRange] {
        let found = self.losses.iter().find(|loss| loss.step == step);
        found.map_or(&[], |loss| &loss.ranges)
    }

    /// Everything that is lost but for signatures, which come back from the journal.
    pub(crate) fn lost_for_good(&self) -> Vec<LostRange> {
        without(self.lost(), &self.plan.signatures)
    }

    /// Whether every byte of a range was unreadable at the old place, where it stays.
    pub(crate) fn is_as_it_was(&self, range: &Range<u64>) -> bool {
        covers(&self.undone, range)
    }

    /// Blocks of the partition that cannot be read at the old place, and stay as they were found there.
    pub(crate) fn as_they_were(&self) -> &[LostRange] {
        &self.undone
    }

    /// Everything that was not brought along, and all that a rollback found still in its place.
    pub(crate) fn ever_lost(&self) -> Vec<LostRange> {
        joined([self.lost(), self.undone.clone()].concat())
    }

    /// Everything that was not brought along, in order.
    pub(crate) fn lost(&self) -> Vec<LostRange> {
        let all = self.losses.iter().flat_map(|loss| loss.ranges.clone());
        joined(all.collect())
    }

    fn save(&mut self, signature: u64, bytes: Vec<u8>) -> Result<(), Expected> {
        let range = self.plan.signatures.get(self.saved.len());
        let fits = range.is_some_and(|range| range.end - range.start == bytes.len() as u64);
        if !fits || signature != self.saved.len() as u64 {
            return Err("the signature that comes next");
        }
        self.saved.push(bytes);
        Ok(())
    }

    fn turn(&mut self, turn: Turn, mutations: Mutations) -> Result<(), Expected> {
        match (turn, &self.script) {
            (Turn::Move, None) if self.saved.len() == self.plan.signatures.len() => {
                self.script = Some(Script::forward(&self.plan, mutations));
                Ok(())
            }
            (Turn::Resume, Some(_)) => Ok(()),
            (Turn::Rollback { from }, Some(script)) => {
                if script.is_back() || !self.reaches(from) || self.pending.is_some() {
                    return Err("a rollback from the present state of the move");
                }
                self.turn_back(from, mutations);
                Ok(())
            }
            _ => Err("a turn that is possible here"),
        }
    }

    /// From here on the steps are those of a rollback.
    pub(crate) fn turn_back(&mut self, from: u64, mutations: Mutations) {
        let forward = Script::forward(&self.plan, mutations);
        let head = forward.head().len() as u64;
        let back = Script::rollback(&self.plan, from, mutations);
        self.copied = from.saturating_sub(head).min(forward.windows().count());
        self.keep_losses_of(head, &back.windows().place(), mutations);
        self.script = Some(back);
        (self.next, self.unproven, self.pending) = (0, None, None);
        self.images.clear();
    }

    /// The old place still has the blocks that the move could not read, unless a rollback restores it from the new place, or an
    /// edit has written them together with a signature. Losses from writes to the old place itself, before any copy, stay
    /// lost, and so do bytes that no sum proves: they are wrong in the old place too, or overwritten there.
    fn keep_losses_of(&mut self, head: u64, put_back: &Range<u64>, mutations: Mutations) {
        let (from, block) = (self.plan.from, u64::from(self.plan.logical_block_bytes));
        let mut undone = Vec::new();
        let mut losses = std::mem::take(&mut self.losses);
        let is_of_copy =
            |loss: &&mut StepLoss| loss.step.number >= head && loss.step.number != LossStep::KEPT;
        for loss in losses.iter_mut().filter(is_of_copy) {
            let is_unreadable = |lost: &LostRange| lost.kind == LossKind::Unreadable;
            let ranges = std::mem::take(&mut loss.ranges).into_iter();
            let (unreadable, mut kept): (Vec<_>, Vec<_>) = ranges.partition(is_unreadable);
            if mutations.has(Mutation::UnprovenForgotten) {
                kept.clear();
            }
            let blocks = unreadable
                .into_iter()
                .flat_map(|LostRange { range, kind }| {
                    let end = range.end;
                    range.step_by(block as usize).map(move |start| LostRange {
                        range: start..end.min(start + block),
                        kind,
                    })
                });
            let (overwritten, left): (Vec<_>, Vec<_>) = blocks.partition(|lost| {
                let place = from.of_partition(&lost.range);
                meet(&place, put_back) || self.recorded_bytes(&place).is_some()
            });
            kept.extend(overwritten);
            undone.extend(left);
            loss.ranges = joined(kept);
        }
        losses.retain(|loss| !loss.ranges.is_empty());
        (self.losses, self.undone) = (losses, joined(undone));
    }

    fn written(&mut self, step: u64, moved: u64) -> Result<(), Expected> {
        let Some(pending) = self.pending.take().filter(|_| step == self.next) else {
            return Err("the image that was recorded last");
        };
        if let Image::Inline(bytes) = pending.image
            && self.is_edit(step)
        {
            self.images.push((step, pending.at, bytes));
        }
        self.note_moved(step, &[moved])?;
        self.next = step + 1;
        Ok(())
    }

    /// Whether a step writes a label, a signature or the like, and no window.
    fn is_edit(&self, step: u64) -> bool {
        let script = self.script.as_ref();
        script.is_some_and(|script| script.window_at(step).is_none())
    }

    fn windows(&mut self, step: u64, is_saved: bool, sums: Vec<u64>) -> Result<(), Expected> {
        let Some(script) = &self.script else {
            return Err("a turn to move before it");
        };
        let count = sums.len() as u64;
        let is_window = |step: u64| script.straight_at(step).is_some();
        let fits = self.reaches(step)
            && (1..=self.plan.at_once).contains(&count)
            && self.pending.is_none();
        if !fits || !is_window(step) || !is_window(step + count - 1) {
            return Err("the windows that come next");
        }
        self.note_moved(step, &sums)?;
        (self.next, self.unproven) = (step, Some(Unproven { is_saved, sums }));
        Ok(())
    }

    /// Keeps the sums of the windows that the move wrote, from that step on; later ones are dropped.
    pub(crate) fn note_moved(&mut self, step: u64, sums: &[u64]) -> Result<(), Expected> {
        let Some(script) = self.script.as_ref().filter(|script| !script.is_back()) else {
            return Ok(());
        };
        let Some(window) = script.window_at(step) else {
            return Ok(());
        };
        let window = usize::try_from(window).map_err(|_| "a window of this plan")?;
        self.moved.truncate(window);
        if self.moved.len() != window {
            return Err("the windows before it");
        }
        self.moved.extend_from_slice(sums);
        Ok(())
    }

    /// The first step that cannot have been written.
    fn end_of_unproven(&self) -> u64 {
        self.next
            + self
                .unproven
                .as_ref()
                .map_or(0, |unproven| unproven.sums.len() as u64)
    }

    /// Whether the steps before this one can be those that were written: some of the windows that were noted, or all.
    fn reaches(&self, step: u64) -> bool {
        (self.next..=self.end_of_unproven()).contains(&step)
    }
}
