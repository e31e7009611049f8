//! Reading the writes again, and comparing them with the sums in the journal.
//!
//! Three times: the copied data, while all of it is hidden; before a rollback the data that will go back; and after it
//! all recorded data of the move, at the old place. A resume after one of these compares again, as long as the
//! partition is not back: a disk that falsely confirmed a flush loses data at a power cut.

use std::ops::Range;

use plumb_sys::AlignedBuffer;

use super::ahead::{Due, Reading, within};
use super::edit;
use super::label::LabelCourse;
use super::loss::{LossKind, LostRange, OnLoss, covers, joined};
use super::read::{common, holes_in, read_around, read_what_can_be};
use super::script::PartitionPlace;
use super::windows::MoveWindow;
use super::{Move, MoveError, Stage};
use crate::disk::{Disk, JournalStore};
use crate::journal::{Image, JournalRecord, LossStep, Turn, sum};
use crate::marker;
use crate::mutation::Mutation;

/// Most comparisons of the same data because of writes that do not arrive.
const ROUNDS_MAX: u32 = 8;

/// The kind of comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// The new place, after the move has copied.
    Moved,
    /// The part of the new place that a rollback will copy back.
    Before,
    /// The old place, after a rollback has copied.
    After,
}

/// How far comparing has come.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The one that is due, and the windows that are left.
    current: Option<(Check, Range<u64>)>,
    /// The differences so far, without those that are in the journal.
    found: Vec<LostRange>,
    /// Windows of the old place that differ. The last ones are restored first: earlier ones may overwrite their copies.
    differing: Vec<u64>,
    /// Unreadable blocks of each window, for zeros as soon as their loss is in the journal.
    to_fill: Vec<(u64, Range<u64>, Vec<Range<u64>>)>,
    /// The window that is written again.
    window: u64,
    /// Windows that are not written again any more, since a write did not arrive.
    given_up: Vec<u64>,
    /// Whether to compare once more, since that write may have gone elsewhere.
    repeats: bool,
    /// How often one comparison has found writes that did not arrive.
    rounds: u32,
    done: Vec<Check>,
    /// Whether to compare although the last steps were begun.
    again: bool,
    /// A loss that is not in the journal yet.
    to_note: Option<(LossStep, Vec<LostRange>)>,
    /// Blocks of signatures that are not as they were written.
    to_write: Vec<(u64, Vec<u8>)>,
}

impl Checks {
    /// A write did not arrive.
    pub(super) fn has_missed(&mut self) {
        self.repeats = true;
    }

    /// The window is not written again.
    pub(super) fn give_up(&mut self) {
        self.given_up.push(self.window);
    }
}

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// A resume. As long as nobody can have used the partition, earlier writes are compared once more.
    pub(super) fn begin_checks(&mut self) -> Result<(), MoveError> {
        let windows_end = self.windows_end();
        let is_behind = self.state.next > windows_end
            || (self.state.next == windows_end && self.state.pending.is_some());
        self.must_have_label_images()?;
        let is_hidden = self.is_hidden()?;
        if !self.mutations.has(Mutation::NoCheckAgain) {
            self.checks.again = is_behind && is_hidden;
            if is_hidden {
                self.must_have_images()?;
            }
        }
        // If windows went back already, their source may be overwritten.
        if self.state.unproven.is_some() || self.state.pending.is_some() {
            let in_windows = self.script.window_at(self.state.next).is_some();
            if self.script.is_back() && in_windows {
                self.checks.done.push(Check::Before);
            }
        }
        Ok(())
    }

    /// Compares before the last step is written again, if a resume would begin with it: a program that finds the
    /// signature then may use the partition.
    pub(super) fn check_before_last(&mut self) -> Result<(), MoveError> {
        if self.checks.again && self.has_begun_to_show() {
            while self.check_next()? {}
        }
        Ok(())
    }

    /// Whether the step was begun after which the partition can be used.
    fn has_begun_to_show(&self) -> bool {
        let begun = self.state.next + u64::from(self.state.pending.is_some());
        // Without signatures the label decides, with each of its changes.
        let deciding = self.script.deciding_step();
        begun > deciding.unwrap_or_else(|| self.windows_end())
    }

    /// Whether nobody can have found the partition: the step that shows it was not begun, or the signature that it brings back
    /// is a marker still.
    fn is_hidden(&mut self) -> Result<bool, MoveError> {
        if !self.has_begun_to_show() {
            return Ok(true);
        }
        if self.has_hidden_label()? {
            return Ok(true);
        }
        if self.script.deciding_step().is_none() {
            return Ok(false);
        }
        let Self {
            disk,
            state,
            script,
            ..
        } = self;
        let plan = &state.plan;
        let Some(range) = plan.signatures.first() else {
            return Ok(false);
        };
        let start = match script.is_back() {
            true => plan.from,
            false => plan.to,
        };
        let len = range.end - range.start;
        let (found, _) = read_what_can_be(disk, start.0 + range.start, len as usize, plan)?;
        Ok(found == marker::fill(plan, len))
    }

    /// Whether every block of the label that a rollback writes back is as the move left it: the disk has lost all of that.
    fn has_hidden_label(&mut self) -> Result<bool, MoveError> {
        if !self.script.is_back() {
            return Ok(false);
        }
        let Self { disk, state, .. } = self;
        let plan = &state.plan;
        for change in &plan.hide {
            let (found, holes) = read_what_can_be(disk, change.at.0, change.new.len(), plan)?;
            if found != change.new || !holes.is_empty() {
                return Ok(false);
            }
        }
        Ok(!plan.hide.is_empty())
    }

    /// Blocks of the label that a rollback wrote back, and that are as they were before: they are written again.
    fn must_have_label_images(&mut self) -> Result<(), MoveError> {
        if !self.script.is_back() || self.script.stage(self.state.next) != Stage::Finishing {
            return Ok(());
        }
        let block = u64::from(self.state.plan.logical_block_bytes);
        let blocks_of = |place: Range<u64>| {
            let first = place.start - place.start % block;
            let blocks = (first..place.end).step_by(block as usize);
            blocks.filter_map(move |at| Some((at..at + block, common(&place, &(at..at + block))?)))
        };
        let places = LabelCourse::of_plan(&self.state.plan).places();
        for (here, part) in places.into_iter().flat_map(blocks_of) {
            let last = self
                .state
                .images
                .iter()
                .rev()
                .find_map(|(_, start, bytes)| {
                    let image = *start..start + bytes.len() as u64;
                    let has_it = common(&image, &here).as_ref() == Some(&here);
                    has_it.then(|| bytes[within(*start, &part)].to_vec())
                });
            let Some(expected) = last.filter(|_| !self.state.is_being_written(&here)) else {
                continue;
            };
            let mut found = AlignedBuffer::new(block as usize);
            let holes = read_around(&mut self.disk, here.start, &mut found)?;
            let part = within(here.start, &part);
            if holes.is_empty() && found[part.clone()] != expected {
                found[part].copy_from_slice(&expected);
                self.checks.to_write.push((here.start, found.to_vec()));
            }
        }
        Ok(())
    }

    /// Blocks that were written with a signature or the label, and hold data of the partition that are nowhere else, have to
    /// be as they were written: a flush that lied may have let a power cut spoil them.
    fn must_have_images(&mut self) -> Result<(), MoveError> {
        let block = u64::from(self.state.plan.logical_block_bytes);
        // Windows that go back overwrite earlier writes of signatures and labels.
        if self.script.is_back() && self.script.stage(self.state.next) == Stage::Copying {
            return Ok(());
        }
        // Earlier writes than the windows are in the partition's new place, or free, behind them.
        let first = match self.script.stage(self.state.next) {
            Stage::Finishing => self.windows_end(),
            _ => 0,
        };
        let (mut lost, mut again) = (Vec::new(), Vec::new());
        for (index, (step, at, bytes)) in self.state.images.iter().enumerate() {
            let later = &self.state.images[index + 1..];
            if *step < first {
                continue;
            }
            let mut found = AlignedBuffer::new(bytes.len());
            let holes = read_around(&mut self.disk, *at, &mut found)?;
            let blocks = (*at..).step_by(block as usize);
            let pairs = bytes
                .chunks(block as usize)
                .zip(found.chunks(block as usize));
            for (at, (expected, found)) in blocks.zip(pairs) {
                let here = at..at + block;
                // An unreadable block is handled when it is needed. But one read may fail and the next one not: a signature,
                // which may be a marker still, is written again.
                let is_hole = !holes_in(&holes, &here).is_empty();
                let is_later = |(_, at, bytes): &(u64, u64, Vec<u8>)| {
                    (*at..at + bytes.len() as u64).contains(&here.start)
                };
                let is_torn = self.state.is_being_written(&here);
                let is_right = found == expected && !is_hole;
                if is_right || is_torn || later.iter().any(is_later) {
                    continue;
                }
                match self.needed(at) {
                    Some(start) if self.is_signature(start) => {
                        again.push((at, expected.to_vec()));
                    }
                    _ if is_hole => {}
                    Some(start) => lost.push(LostRange {
                        range: start..start + block,
                        kind: LossKind::Doubtful,
                    }),
                    None => {}
                }
            }
        }
        let noted = self.state.lost();
        lost.retain(|lost| !covers(&noted, &lost.range));
        self.checks.to_write.extend(again);
        if lost.is_empty() {
            return Ok(());
        }
        let lost = joined(lost);
        if self.on_loss == OnLoss::Stop {
            return Err(MoveError::Lost { ranges: lost });
        }
        let step = self.kept_step();
        self.checks.to_note = Some((
            step,
            joined([lost, self.state.lost_by(step).to_vec()].concat()),
        ));
        Ok(())
    }

    fn is_signature(&self, start: u64) -> bool {
        let mut signatures = self.state.plan.signatures.iter();
        signatures.any(|range| range.contains(&start))
    }

    /// Records the differences from before the journal was writable, and restores written signatures and markers.
    pub(super) fn restore_images(&mut self) -> Result<(), MoveError> {
        if let Some((step, lost)) = self.checks.to_note.take() {
            self.note_lost(step, lost)?;
        }
        let to_write = std::mem::take(&mut self.checks.to_write);
        for (at, bytes) in &to_write {
            self.write_within(*at, bytes)?;
        }
        if !to_write.is_empty() {
            // A later resume must not write them again: the partition may be in use by then.
            self.journal
                .append_durable(&JournalRecord::Turn(Turn::Resume))?;
        }
        Ok(())
    }

    fn windows_end(&self) -> u64 {
        self.script.head().len() as u64 + self.script.windows().count()
    }

    /// The comparison before the next step, and its windows of the move.
    fn due(&self) -> Option<(Check, Range<u64>)> {
        let next = self.state.next;
        let is_behind = self.script.is_behind_windows(next)
            || (self.checks.again && next >= self.windows_end());
        let is_first = next == self.script.head().len() as u64;
        let has_windows = self.script.windows().count() > 0;
        let check = match self.script.is_back() {
            false if is_behind => Check::Moved,
            true if is_behind && (!is_first || !has_windows || self.checks.again) => Check::After,
            true if is_first && has_windows => Check::Before,
            _ => return None,
        };
        if self.checks.done.contains(&check) || self.is_left_out(check) {
            return None;
        }
        Some((check, self.windows_of(check)))
    }

    fn is_left_out(&self, check: Check) -> bool {
        match check {
            Check::Moved => self.mutations.has(Mutation::NoCheckMoved),
            Check::Before => self.mutations.has(Mutation::NoCheckBefore),
            Check::After => self.mutations.has(Mutation::NoCheckAfter),
        }
    }

    fn windows_of(&self, check: Check) -> Range<u64> {
        let noted = self.state.moved.len() as u64;
        match check {
            Check::Moved => 0..self.forward.count(),
            Check::After => 0..noted,
            Check::Before => {
                let back = self.script.windows();
                let source = back.source_of(&back.place());
                let is_needed = |index: &u64| {
                    let window = self.forward.get(*index);
                    window.is_some_and(|window| common(&window.moved, &source).is_some())
                };
                let all = 0..self.state.copied.min(noted);
                let first = all.clone().find(is_needed).unwrap_or(all.end);
                let last = all.clone().rfind(is_needed).map_or(first, |last| last + 1);
                first..last
            }
        }
    }

    /// Bytes that were compared, and all of them; `None` when nothing is being compared.
    pub(super) fn checked_bytes(&self) -> Option<(u64, u64)> {
        let (_, windows) = self.checks.current.clone().or_else(|| self.due())?;
        if windows.is_empty() {
            return None;
        }
        let all = |count: u64| self.forward.bytes_after(count).0;
        Some((all(windows.start), all(windows.end)))
    }

    /// Compares the next windows. `false` when there is nothing to compare before the next step.
    pub(super) fn check_next(&mut self) -> Result<bool, MoveError> {
        if self.checks.current.is_none() {
            self.checks.current = self.due();
        }
        let Some((check, windows)) = self.checks.current.clone() else {
            return Ok(false);
        };
        if !windows.is_empty() {
            let count = self.compare(check, &windows)?;
            self.checks.current = Some((check, windows.start + count..windows.end));
            if windows.start + count < windows.end {
                return Ok(true);
            }
        }
        for index in std::mem::take(&mut self.checks.differing).into_iter().rev() {
            self.treat(check, index)?;
        }
        self.accept_found()?;
        for (index, place, holes) in std::mem::take(&mut self.checks.to_fill) {
            let has_missed = std::mem::take(&mut self.checks.repeats);
            match check {
                // They are copied as zeros.
                Check::Before => {}
                Check::Moved => self.mend_holes(&place, &holes)?,
                Check::After => self.mend_old_holes(&place, &holes)?,
            }
            if self.checks.repeats {
                self.checks.window = index;
                self.checks.give_up();
            }
            self.checks.repeats |= has_missed;
        }
        self.checks.current = None;
        if std::mem::take(&mut self.checks.repeats) {
            self.checks.rounds += 1;
            return match self.checks.rounds < ROUNDS_MAX {
                true => Ok(true),
                false => Err(self.not_as_written(check)),
            };
        }
        self.checks.done.push(check);
        Ok(!windows.is_empty())
    }

    /// The window whose writes do not arrive.
    fn not_as_written(&self, check: Check) -> MoveError {
        let window = self.forward.get(self.checks.window);
        let place = window.map_or(0..0, |window| self.compared(check, &window));
        MoveError::NotAsWritten {
            at: place.start,
            len: place.end - place.start,
        }
    }

    /// Records all differences of a comparison at once: the journal has no room for a record of each window.
    fn accept_found(&mut self) -> Result<(), MoveError> {
        let mut found = std::mem::take(&mut self.checks.found);
        if found.is_empty() {
            return Ok(());
        }
        if self.on_loss == OnLoss::Stop {
            return Err(MoveError::Lost {
                ranges: joined(found),
            });
        }
        let step = LossStep {
            number: self.forward_head(),
            is_of_move: true,
        };
        found.extend_from_slice(self.state.lost_by(step));
        self.note_lost(step, joined(found))
    }

    /// Windows that are read at once, as they are compared.
    fn group_at(&self, windows: &Range<u64>) -> Vec<MoveWindow> {
        let mut group = self.forward.read_with(windows.start);
        group.truncate(usize::try_from(windows.end - windows.start).unwrap_or(usize::MAX));
        group
    }

    /// The place for the comparison of a window.
    fn compared(&self, check: Check, window: &MoveWindow) -> Range<u64> {
        match check {
            Check::After => self.forward.source_of(&window.moved),
            Check::Moved | Check::Before => window.moved.clone(),
        }
    }

    fn reading_of(&self, check: Check, group: &[MoveWindow]) -> Reading {
        let places: Vec<Range<u64>> = group
            .iter()
            .map(|window| self.compared(check, window))
            .collect();
        Reading::to_compare(places.iter())
    }

    /// Compares windows that are read together; how many these were.
    fn compare(&mut self, check: Check, windows: &Range<u64>) -> Result<u64, MoveError> {
        let group = self.group_at(windows);
        let count = group.len() as u64;
        let reading = self.reading_of(check, &group);
        let Due {
            bytes: mut found,
            holes,
            ..
        } = self.data_of(&reading)?;
        let next = self.group_at(&(windows.start + count..windows.end));
        if !next.is_empty() {
            self.read_ahead(self.reading_of(check, &next));
        }
        let base = reading.base();
        let holes = self.lay_pending(base, &mut found, holes);
        self.hide_again(check_place(check), base, &mut found);
        let places: Vec<(u64, Range<u64>)> = (windows.start..)
            .zip(&group)
            .map(|(index, window)| (index, self.compared(check, window)))
            .collect();
        let sums: Vec<Option<u64>> = places
            .iter()
            .map(|(index, _)| self.noted_sum(*index))
            .collect();
        let differing: Vec<u64> = self.meanwhile(1, |_, _| {
            let differs = |((_, place), expected): &(&(u64, Range<u64>), &Option<u64>)| {
                **expected != Some(sum(&[&found[within(base, place)]]))
                    || !holes_in(&holes, place).is_empty()
            };
            let found = places.iter().zip(&sums).filter(differs);
            found.map(|((index, _), _)| *index).collect()
        });
        self.spare = found;
        match check {
            Check::After => self.checks.differing.extend(differing),
            Check::Moved | Check::Before => differing
                .into_iter()
                .try_for_each(|index| self.treat(check, index))?,
        }
        Ok(count)
    }

    fn noted_sum(&self, window: u64) -> Option<u64> {
        let index = usize::try_from(window).ok()?;
        self.state.moved.get(index).copied()
    }

    /// A window that differs from its record: writes it again if there is a copy, or names the loss.
    fn treat(&mut self, check: Check, index: u64) -> Result<(), MoveError> {
        let (Some(window), Some(expected)) = (self.forward.get(index), self.noted_sum(index))
        else {
            return Ok(());
        };
        let place = self.compared(check, &window);
        let (bytes, holes) = self.found_at(check_place(check), &place)?;
        let is_right = |bytes: &[u8]| sum(&[bytes]) == expected;
        if is_right(&bytes) && holes.is_empty() {
            return Ok(());
        }
        self.checks.window = index;
        if check == Check::After && self.on_loss == OnLoss::Stop && !self.checks.found.is_empty() {
            // Restored, an earlier window may overwrite the copy of a later one, whose loss nobody has accepted.
            if self.copy_of_old(&window, expected)?.is_some() {
                return Ok(());
            }
        }
        let may_write = !self.checks.given_up.contains(&index);
        let has_come_back = self.state.next > self.windows_end();
        let is_mended = match check {
            _ if !may_write => false,
            Check::Moved if has_come_back => self.refill(&window, expected, &holes)?,
            Check::Moved | Check::Before if !has_come_back => self.rewrite(&window, expected)?,
            Check::After if !is_right(&bytes) => self.restore(&window, expected)?,
            _ => false,
        };
        if is_mended {
            return Ok(());
        }
        let may_write = may_write && !self.checks.given_up.contains(&index);
        // A part of it may have been written.
        let (mut bytes, mut holes) = self.found_at(check_place(check), &place)?;
        if is_right(&bytes) && may_write {
            // The bytes are known: they are zeros.
            match check {
                Check::After => self.mend_old_holes(&place, &holes)?,
                Check::Moved | Check::Before => self.mend_holes(&place, &holes)?,
            }
            (bytes, holes) = self.found_at(check_place(check), &place)?;
        }
        let is_right = is_right(&bytes);
        if check == Check::After && is_right {
            holes = self.but_as_they_were(&holes);
        }
        if is_right && may_write && !holes.is_empty() {
            self.checks.give_up();
        }
        if is_right && holes.is_empty() {
            return Ok(());
        }
        let start = self.start_of(check);
        let lost = |range: &Range<u64>, kind| LostRange {
            range: range.start - start..range.end - start,
            kind,
        };
        let mut ranges: Vec<LostRange> = holes
            .iter()
            .map(|hole| lost(hole, LossKind::Unreadable))
            .collect();
        if !is_right {
            ranges.push(lost(&place, LossKind::Doubtful));
        }
        let noted = self.state.lost();
        if !ranges.iter().all(|lost| covers(&noted, &lost.range)) {
            if self.mutations.has(Mutation::SilentLoss) {
                return Ok(());
            }
            self.checks.found.extend(ranges);
        }
        if may_write && !self.checks.given_up.contains(&index) {
            self.checks.to_fill.push((index, place, holes));
        }
        Ok(())
    }

    /// Steps of the move before its windows.
    fn forward_head(&self) -> u64 {
        match self.script.is_back() {
            false => self.script.head().len() as u64,
            true => super::script::Script::forward(&self.state.plan, self.mutations)
                .head()
                .len() as u64,
        }
    }

    /// The start of the partition at the compared place.
    fn start_of(&self, check: Check) -> u64 {
        match check_place(check) {
            PartitionPlace::Old => self.state.plan.from.0,
            PartitionPlace::New => self.state.plan.to.0,
        }
    }

    /// Lays a pending image over the bytes read, which may be torn. Returns the holes that it does not fill.
    pub(super) fn lay_pending(
        &self,
        at: u64,
        bytes: &mut [u8],
        holes: Vec<Range<u64>>,
    ) -> Vec<Range<u64>> {
        let Some(pending) = &self.state.pending else {
            return holes;
        };
        let Image::Inline(image) = &pending.image else {
            return holes;
        };
        let read = at..at + bytes.len() as u64;
        let written = pending.at..pending.at + image.len() as u64;
        let Some(part) = common(&written, &read) else {
            return holes;
        };
        bytes[within(at, &part)].copy_from_slice(&image[within(pending.at, &part)]);
        let sides = |hole: Range<u64>| {
            let before = hole.start..hole.end.min(part.start);
            let behind = hole.start.max(part.end)..hole.end;
            [before, behind].into_iter().filter(|side| !side.is_empty())
        };
        holes.into_iter().flat_map(sides).collect()
    }

    /// Restores the state during the copy in the bytes of a place: markers in place of signatures, the old values of fix-ups, and
    /// zeros in blocks that the move found unreadable.
    pub(super) fn hide_again(&self, place: PartitionPlace, at: u64, bytes: &mut [u8]) {
        let plan = &self.state.plan;
        let start = match place {
            PartitionPlace::Old => plan.from,
            PartitionPlace::New => plan.to,
        };
        let read = at..at + bytes.len() as u64;
        if place == PartitionPlace::Old {
            // The move copied zeros for them.
            for lost in self.state.as_they_were() {
                if let Some(part) = common(&start.of_partition(&lost.range), &read) {
                    bytes[within(at, &part)].fill(0);
                }
            }
        }
        for (index, range) in plan.signatures.iter().enumerate() {
            let signature = start.of_partition(range);
            let Some(part) = common(&signature, &read) else {
                continue;
            };
            let (here, there) = (within(at, &part), within(signature.start, &part));
            let hidden = marker::fill(plan, range.end - range.start);
            let revealed = edit::revealed(plan, &self.state.saved, index, place);
            let found = &mut bytes[here];
            let is_wiped = place == PartitionPlace::Old && found.iter().all(|byte| *byte == 0);
            if is_wiped || revealed.is_some_and(|bytes| bytes[there.clone()] == *found) {
                found.copy_from_slice(&hidden[there]);
            }
        }
        if place == PartitionPlace::New {
            for fix_up in &plan.fix_ups {
                let fixed = fix_up.range_on_disk(start);
                let Some(part) = common(&fixed, &read) else {
                    continue;
                };
                let (here, there) = (within(at, &part), within(fixed.start, &part));
                if bytes[here.clone()] == fix_up.new[there.clone()] {
                    bytes[here].copy_from_slice(&fix_up.old[there]);
                }
            }
        }
    }
}

fn check_place(check: Check) -> PartitionPlace {
    match check {
        Check::After => PartitionPlace::Old,
        Check::Moved | Check::Before => PartitionPlace::New,
    }
}
