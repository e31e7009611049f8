//! The steps of a move, and of a rollback from its present state.
//!
//! Both follow from the plan alone, so a number in the journal identifies a step.

use std::ops::Range;

use super::edit;
use super::plan::{Plan, meet};
use super::windows::{MoveWindow, Windows};
use crate::mutation::{Mutation, Mutations};

/// A place of the partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartitionPlace {
    Old,
    New,
}

/// A list of label changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelChange {
    /// From the label that was to the one of type *moving*.
    Hide,
    /// From there to the new one.
    Finish,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// One change of the label, or its undoing.
    Label {
        which: LabelChange,
        index: usize,
        undo: bool,
    },
    /// A signature is overwritten by markers.
    Hide {
        signature: usize,
        place: PartitionPlace,
    },
    /// A signature comes back, fixed up for its place.
    Reveal {
        signature: usize,
        place: PartitionPlace,
    },
    /// A fix-up outside of the signatures, at the new place, or its undoing.
    FixUp { index: usize, undo: bool },
    /// Possible signatures become zeros.
    Wipe(Range<u64>),
    /// A marker where both places begin, if that is not within the old one.
    Mark(Range<u64>),
    /// A window of data.
    Window(u64),
}

/// The stage of a step, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Label and signatures are hidden.
    Hiding,
    /// Data are copied.
    Copying,
    /// The copied data are read again.
    Verifying,
    /// Label and signatures come back.
    Finishing,
    /// All is done.
    Done,
}

/// All steps of one direction.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    is_back: bool,
    head: Vec<Action>,
    windows: Windows,
    tail: Vec<Action>,
}

fn labels(plan: &Plan, which: LabelChange, undo: bool) -> impl Iterator<Item = Action> + use<> {
    let count = match which {
        LabelChange::Hide => plan.hide.len(),
        LabelChange::Finish => plan.finish.len(),
    };
    (0..count).map(move |index| Action::Label { which, index, undo })
}

fn hidden(plan: &Plan, place: PartitionPlace) -> impl Iterator<Item = Action> + use<> {
    (0..plan.signatures.len()).map(move |signature| Action::Hide { signature, place })
}

/// The one that decides comes last.
fn revealed(plan: &Plan, place: PartitionPlace) -> impl Iterator<Item = Action> + use<> {
    (0..plan.signatures.len())
        .rev()
        .map(move |signature| Action::Reveal { signature, place })
}

/// Fix-ups that no signature contains: those come with it.
fn fix_ups(plan: &Plan, undo: bool) -> impl Iterator<Item = Action> + '_ {
    let is_apart = |index: &usize| {
        let range = plan.fix_ups[*index].range_in_partition();
        !plan
            .signatures
            .iter()
            .any(|signature| meet(signature, &range))
    };
    (0..plan.fix_ups.len())
        .filter(is_apart)
        .map(move |index| Action::FixUp { index, undo })
}

/// A search at the start of the entry over both places finds the journal.
fn mark(plan: &Plan) -> Option<Range<u64>> {
    let start = plan.union().start;
    let range = start..start + u64::from(plan.logical_block_bytes);
    (!meet(&range, &plan.old_place())).then_some(range)
}

/// Markers of one place that the partition at the other place does not cover.
fn wiped<'a>(
    plan: &'a Plan,
    left: &'a Range<u64>,
    kept: &'a Range<u64>,
) -> impl Iterator<Item = Action> + 'a {
    let at_left = |range: &Range<u64>| left.start + range.start..left.start + range.end;
    plan.signatures.iter().map(at_left).flat_map(|range| {
        let before = range.start..range.end.min(kept.start).max(range.start);
        let after = range.start.max(kept.end).min(range.end)..range.end;
        [before, after]
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(Action::Wipe)
    })
}

impl Script {
    /// The move.
    pub(crate) fn forward(plan: &Plan, mutations: Mutations) -> Self {
        let mut head: Vec<Action> = labels(plan, LabelChange::Hide, false).collect();
        if !mutations.has(Mutation::NoHiding) {
            head.extend(hidden(plan, PartitionPlace::Old));
        }
        head.extend(plan.strays.iter().cloned().map(Action::Wipe));
        head.extend(mark(plan).map(Action::Mark));
        let label: Vec<Action> = labels(plan, LabelChange::Finish, false).collect();
        let mut tail = Vec::new();
        if mutations.has(Mutation::LabelFirst) {
            &mut head
        } else {
            &mut tail
        }
        .extend(label);
        tail.extend(fix_ups(plan, false));
        tail.extend(wiped(plan, &plan.old_place(), &plan.new_place()));
        // From the last of them on the partition can be used: nothing may be left to do.
        tail.extend(revealed(plan, PartitionPlace::New));
        Self {
            is_back: false,
            head,
            windows: Windows::forward(plan, mutations),
            tail,
        }
    }

    /// The way back after `done` steps of the move.
    pub(crate) fn rollback(plan: &Plan, done: u64, mutations: Mutations) -> Self {
        let forward = Self::forward(plan, mutations);
        let begun = done.saturating_sub(forward.head.len() as u64);
        let was_finishing = begun > forward.windows.count();
        let mut head = Vec::new();
        if was_finishing {
            head.extend(labels(plan, LabelChange::Finish, true));
            head.extend(fix_ups(plan, true));
            head.extend(hidden(plan, PartitionPlace::New));
        }
        let was_copying = done >= forward.head.len() as u64;
        let windows = Windows::back(plan, begun.min(forward.windows.count()), mutations);
        let windows = if was_copying { windows } else { windows.none() };
        // Unreached parts are left alone: they are unchanged, or somebody else has written them, and the move stopped.
        let labels_hidden = usize::try_from(done)
            .unwrap_or(usize::MAX)
            .min(plan.hide.len());
        let hidden = usize::try_from(done).unwrap_or(usize::MAX) - labels_hidden;
        let mut tail: Vec<Action> = labels(plan, LabelChange::Hide, true)
            .take(labels_hidden)
            .collect();
        let count = plan.signatures.len();
        tail.extend(revealed(plan, PartitionPlace::Old).skip(count.saturating_sub(hidden)));
        if was_copying {
            tail.extend(wiped(plan, &plan.new_place(), &plan.old_place()));
            tail.extend(mark(plan).map(Action::Wipe));
        }
        Self {
            is_back: true,
            head,
            windows,
            tail,
        }
    }

    pub(crate) fn is_back(&self) -> bool {
        self.is_back
    }

    pub(crate) fn windows(&self) -> &Windows {
        &self.windows
    }

    /// The steps before the windows.
    pub(crate) fn head(&self) -> &[Action] {
        &self.head
    }

    /// How many steps there are.
    pub(crate) fn len(&self) -> u64 {
        self.head.len() as u64 + self.windows.count() + self.tail.len() as u64
    }

    pub(crate) fn get(&self, step: u64) -> Option<Action> {
        if let Some(window) = self.window_at(step) {
            return Some(Action::Window(window));
        }
        let head = self.head.len() as u64;
        let (list, index) = if step < head {
            (&self.head, step)
        } else {
            (&self.tail, step - head - self.windows.count())
        };
        list.get(usize::try_from(index).ok()?).cloned()
    }

    /// The steps before that one but for windows.
    pub(crate) fn edits_before(&self, step: u64) -> impl Iterator<Item = &Action> {
        let head = (step as usize).min(self.head.len());
        let tail = step.saturating_sub(self.head.len() as u64 + self.windows.count());
        let tail = (tail as usize).min(self.tail.len());
        self.head[..head].iter().chain(&self.tail[..tail])
    }

    /// Whether some step brings a signature back at a place.
    pub(crate) fn reveals(&self, index: usize, at: PartitionPlace) -> bool {
        let is_it = |action: &Action| matches!(action, Action::Reveal { signature, place } if (*signature, *place) == (index, at));
        self.head.iter().chain(&self.tail).any(is_it)
    }

    /// The step that brings back the signature that decides: from then on somebody may use the partition.
    pub(crate) fn deciding_step(&self) -> Option<u64> {
        let is_it = |action: &Action| matches!(action, Action::Reveal { signature: 0, .. });
        let in_tail = self.tail.iter().position(is_it)? as u64;
        Some(self.head.len() as u64 + self.windows.count() + in_tail)
    }

    /// How many changes of the label the steps before that one of a move are.
    pub(crate) fn label_changes_before(&self, step: u64) -> usize {
        let is_label = |action: &&Action| matches!(action, Action::Label { .. });
        self.edits_before(step).filter(is_label).count()
    }

    /// Whether a step comes before the windows.
    pub(crate) fn is_in_head(&self, step: u64) -> bool {
        step < self.head.len() as u64
    }

    /// Whether a step is the first one behind the windows.
    pub(crate) fn is_behind_windows(&self, step: u64) -> bool {
        step == self.head.len() as u64 + self.windows.count()
    }

    /// Number of the window that a step writes.
    pub(crate) fn window_at(&self, step: u64) -> Option<u64> {
        step.checked_sub(self.head.len() as u64)
            .filter(|window| *window < self.windows.count())
    }

    /// The window that a step copies straight.
    pub(crate) fn straight_at(&self, step: u64) -> Option<MoveWindow> {
        self.windows
            .get(self.window_at(step)?)
            .filter(|window| !window.is_journalled)
    }

    pub(crate) fn stage(&self, step: u64) -> Stage {
        let head = self.head.len() as u64;
        match step {
            _ if step < head => Stage::Hiding,
            _ if step < head + self.windows.count() => Stage::Copying,
            _ => Stage::Finishing,
        }
    }

    /// Bytes at their place when `next` is the next step, and all that have to come there.
    pub(crate) fn bytes_at(&self, next: u64) -> (u64, u64) {
        self.windows
            .bytes_after(next.saturating_sub(self.head.len() as u64))
    }

    /// Blocks of the journal that all steps take.
    pub(crate) fn journal_blocks(&self, plan: &Plan, block_bytes: u64) -> u64 {
        let edits = self.head.iter().chain(&self.tail);
        let blocks = edits.map(|action| {
            let range = edit::range(plan, action)
                .map_or(0..0, |range| plan.unit.cover(&range, plan.disk_bytes));
            // The image with its header, and the record that it was written.
            (range.end - range.start).div_ceil(block_bytes) + 2
        });
        blocks
            .sum::<u64>()
            .saturating_add(self.windows.journal_blocks(block_bytes))
    }
}
