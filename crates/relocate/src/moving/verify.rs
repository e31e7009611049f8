//! Reading again what was written.

use std::ops::Range;

use super::edit;
use super::plan::{Change, meet};
use super::script::Place;
use super::{Move, MoveError, read_into};
use crate::disk::{Disk, JournalStore};
use crate::journal::sum;
use crate::marker;
use crate::mutation::Mutation;

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Holds a window of the finished move against the sum of what was copied. Where signatures and fix-ups have come
    /// back since, they are held against the journal, and what was copied is thought in their place.
    pub(super) fn verify(&mut self, index: u64) -> Result<(), MoveError> {
        let Some(window) = self.script.windows().get(index) else { return Ok(()) };
        let mut found = std::mem::take(&mut self.spare);
        found.resize((window.moved.end - window.moved.start) as usize);
        read_into(&mut self.disk, window.moved.start, &mut found)?;
        self.think_back(&window.moved, &mut found)?;
        let expected = usize::try_from(index).ok().and_then(|index| self.state.moved.get(index));
        let (at, len) = (window.moved.start, found.len() as u64);
        if expected != Some(&sum(&[&found])) {
            return Err(MoveError::NotAsWritten { at, len });
        }
        self.spare = found;
        Ok(())
    }

    /// Puts into `found`, which was read at `moved`, what was there before signatures and fix-ups came back.
    fn think_back(&self, moved: &Range<u64>, found: &mut [u8]) -> Result<(), MoveError> {
        for (place, now, then) in self.brought_back(moved) {
            let (start, end) = (place.max(moved.start), (place + now.len() as u64).min(moved.end));
            let here = (start - moved.start) as usize..(end - moved.start) as usize;
            let there = (start - place) as usize..(end - place) as usize;
            if found[here.clone()] != now[there.clone()] {
                return Err(MoveError::NotAsWritten { at: start, len: end - start });
            }
            found[here].copy_from_slice(&then[there]);
        }
        Ok(())
    }

    /// What was changed after the copy within these bytes of the new place: where, what is there now, what was there
    /// then.
    fn brought_back(&self, moved: &Range<u64>) -> Vec<(u64, Vec<u8>, Vec<u8>)> {
        let (plan, saved) = (&self.state.plan, &self.state.saved);
        let is_near = |range: &Range<u64>| meet(&(plan.to + range.start..plan.to + range.end), moved);
        let were_hidden = !self.mutations.has(Mutation::NoHiding);
        let signatures = plan.signatures.iter().enumerate();
        let signatures = signatures.filter(|(_, range)| were_hidden && is_near(range));
        let signatures = signatures.filter_map(|(index, range)| {
            let now = edit::revealed(plan, saved, index, Place::New)?;
            Some((plan.to + range.start, now, marker::fill(plan, range.end - range.start)))
        });
        let is_apart = |change: &&Change| !plan.signatures.iter().any(|range| meet(range, &change.range()));
        let fix_ups = plan.fix_ups.iter().filter(is_apart).filter(|fix_up| is_near(&fix_up.range()));
        let fix_ups = fix_ups.map(|fix_up| (plan.to + fix_up.at, fix_up.new.clone(), fix_up.old.clone()));
        signatures.chain(fix_ups).collect()
    }
}
