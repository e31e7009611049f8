//! Where a move stands, folded from every record of its journal.

use super::record::{Ending, Image, Record, Turn};
use crate::moving::plan::Plan;
use crate::moving::script::Script;
use crate::mutation::Mutations;

/// An image that was recorded, and of which nobody noted that it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) at: u64,
    pub(crate) image: Image,
}

/// Where a move stands.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) plan: Plan,
    /// What the signatures were, in the plan's order.
    pub(crate) saved: Vec<Vec<u8>>,
    /// What is carried out; `None` before the move began.
    pub(crate) script: Option<Script>,
    /// Steps of it that were written.
    pub(crate) next: u64,
    /// The image of step `next`, to be written first.
    pub(crate) pending: Option<Pending>,
    /// Sum of step `next - 1`, copied straight: its record may be older than what it tells of.
    pub(crate) unproven: Option<u64>,
    /// Sums of the data that each window of the move wrote.
    pub(crate) moved: Vec<u64>,
    pub(crate) ending: Option<Ending>,
}

/// What a record should have been.
type Expected = &'static str;

impl State {
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

    pub(super) fn fold(&mut self, record: Record, mutations: Mutations) -> Result<(), Expected> {
        if self.ending.is_some() {
            return Err("nothing behind the end");
        }
        match (record, &self.script) {
            (Record::Saved { signature, bytes }, None) => self.save(signature, bytes),
            (Record::Turn(turn), _) => self.turn(turn, mutations),
            (Record::Image { step, at, image }, Some(script)) => {
                if step != self.next || step >= script.len() || self.pending.is_some() {
                    return Err("an image of the next step");
                }
                self.unproven = None;
                self.pending = Some(Pending { at, image });
                Ok(())
            }
            (Record::Written { step, sum, moved }, Some(_)) => self.written(step, sum, moved),
            (Record::End(ending), Some(_)) => {
                self.ending = Some(ending);
                Ok(())
            }
            _ => Err("a record that can stand here"),
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
                // One less where the last window turned out not to have arrived.
                let is_reached = from == self.next || (from + 1 == self.next && self.unproven.is_some());
                if script.is_back() || !is_reached || self.pending.is_some() {
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

    fn written(&mut self, step: u64, sum: u64, moved: u64) -> Result<(), Expected> {
        let Some(script) = &self.script else { return Err("a turn to move before it") };
        let is_again = self.unproven.is_some() && step + 1 == self.next;
        if (step != self.next && !is_again) || step >= script.len() {
            return Err("the step that comes next");
        }
        if let Some(window) = script.window_at(step)
            && !script.is_back()
        {
            let window = usize::try_from(window).map_err(|_| "a window of this plan")?;
            self.moved.truncate(window);
            if self.moved.len() != window {
                return Err("the windows before it");
            }
            self.moved.push(moved);
        }
        self.unproven = self.pending.take().is_none().then_some(sum);
        self.next = step + 1;
        Ok(())
    }
}
