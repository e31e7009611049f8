//! Reading again what was written.

use super::edit;
use super::plan::meet;
use super::script::Place;
use super::{Move, MoveError, read};
use crate::disk::{Disk, JournalStore};
use crate::journal::sum;
use crate::marker;
use crate::mutation::Mutation;

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Holds a window of the finished move against the sum of what was copied. Where signatures and fix-ups have come
    /// back since, they are held against the journal, and what was copied is thought in their place.
    pub(super) fn verify(&mut self, index: u64) -> Result<(), MoveError> {
        let Some(window) = self.script.windows().get(index) else { return Ok(()) };
        let (at, end) = (window.moved.start, window.moved.end);
        let len = end - at;
        let mut found = read(&mut self.disk, at, len as usize, &self.state.plan)?;
        for (place, now, then) in self.brought_back() {
            let range = place..place + now.len() as u64;
            if !meet(&range, &window.moved) {
                continue;
            }
            let (start, stop) = (range.start.max(at), range.end.min(end));
            let here = (start - at) as usize..(stop - at) as usize;
            let there = (start - place) as usize..(stop - place) as usize;
            if found[here.clone()] != now[there.clone()] {
                return Err(MoveError::NotAsWritten { at: start, len: stop - start });
            }
            found[here].copy_from_slice(&then[there]);
        }
        let expected = usize::try_from(index).ok().and_then(|index| self.state.moved.get(index));
        if expected == Some(&sum(&[&found])) { Ok(()) } else { Err(MoveError::NotAsWritten { at, len }) }
    }

    /// What was changed at the new place after the copy: where, what is there now, what was there then.
    fn brought_back(&self) -> Vec<(u64, Vec<u8>, Vec<u8>)> {
        let (plan, saved) = (&self.state.plan, &self.state.saved);
        let were_hidden = !self.mutations.has(Mutation::NoHiding);
        let signatures =
            plan.signatures.iter().enumerate().filter(|_| were_hidden).filter_map(|(index, range)| {
                let now = edit::revealed(plan, saved, index, Place::New)?;
                Some((plan.to + range.start, now, marker::fill(plan, range.end - range.start)))
            });
        let is_apart = |change: &&super::Change| !plan.signatures.iter().any(|s| meet(s, &change.range()));
        let fix_ups = plan
            .fix_ups
            .iter()
            .filter(is_apart)
            .map(|fix_up| (plan.to + fix_up.at, fix_up.new.clone(), fix_up.old.clone()));
        signatures.chain(fix_ups).collect()
    }
}
