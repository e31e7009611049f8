//! Where a move stands, folded from every record of its journal.

use super::record::{Ending, Image, JournalRecord, Turn};
use crate::moving::edit;
use crate::moving::plan::Plan;
use crate::moving::script::Script;
use crate::mutation::Mutations;

/// An image that was recorded, and of which nobody noted that it was written.
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

/// Where a move stands.
#[derive(Debug)]
pub(crate) struct MoveState {
    pub(crate) plan: Plan,
    /// What the signatures were, in the plan's order.
    pub(crate) saved: Vec<Vec<u8>>,
    /// What is carried out; `None` before the move began.
    pub(crate) script: Option<Script>,
    /// Steps of it that were written, for sure.
    pub(crate) next: u64,
    /// The image of step `next`, to be written first.
    pub(crate) pending: Option<PendingImage>,
    /// Those behind them that may have been.
    pub(crate) unproven: Option<Unproven>,
    /// Sums of the data that each window of the move wrote.
    pub(crate) moved: Vec<u64>,
    pub(crate) ending: Option<Ending>,
}

/// What a record should have been.
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
            moved: Vec::new(),
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
        match (record, &self.script) {
            (JournalRecord::Saved { signature, bytes }, None) => self.save(signature, bytes),
            (JournalRecord::Turn(turn), _) => self.turn(turn, mutations),
            (JournalRecord::Image { step, at, image }, Some(script)) => {
                if step != self.end_of_unproven() || step >= script.len() || self.pending.is_some()
                {
                    return Err("an image of the next step");
                }
                self.must_be_image_of(script, step, at, &image)?;
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
            (JournalRecord::End(ending), Some(_)) => {
                self.ending = Some(ending);
                Ok(())
            }
            _ => Err("a record that can stand here"),
        }
    }

    /// An image has the blocks of its step, neither more nor less; and where it changes a few bytes of them, these bytes.
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
                    return Err("a rollback from where the move stands");
                }
                self.turn_back(from, mutations);
                Ok(())
            }
            _ => Err("a turn that is possible here"),
        }
    }

    /// From here on the steps are those of a rollback.
    pub(crate) fn turn_back(&mut self, from: u64, mutations: Mutations) {
        self.script = Some(Script::rollback(&self.plan, from, mutations));
        (self.next, self.unproven, self.pending) = (0, None, None);
    }

    fn written(&mut self, step: u64, moved: u64) -> Result<(), Expected> {
        if step != self.next || self.pending.take().is_none() {
            return Err("the image that was recorded last");
        }
        self.note_moved(step, &[moved])?;
        self.next = step + 1;
        Ok(())
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

    /// Keeps the sums of what windows of the move wrote, from that step on; there are none behind it.
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

    /// Whether the steps before this one can be those that were written: some of the windows that were noted, or all of
    /// them where the journal has them.
    fn reaches(&self, step: u64) -> bool {
        let end = self.end_of_unproven();
        let is_saved = self
            .unproven
            .as_ref()
            .is_some_and(|unproven| unproven.is_saved);
        step == end || (!is_saved && (self.next..end).contains(&step))
    }
}
